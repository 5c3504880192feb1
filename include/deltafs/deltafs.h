/* DeltaFS in C: one file per particle, without the files.
 *
 * A program writes as if every key (a particle's ID) had a file of its own in one directory, epoch by epoch (a dump, a
 * timestep). Each key's bytes can then be read with a few reads. This header is the serial API: writing from one
 * process, and reading from any. deltafs_mpi.h adds writing from all ranks of an MPI job.
 *
 * Conventions
 *  1. A function that can fail returns a status: DELTAFS_OK (0) or a negative DELTAFS_ERR_*. It sets its outputs only
 *     on DELTAFS_OK, unless its comment says otherwise. deltafs_errmsg returns the message, which names the file, the
 *     offset and the cause.
 *  2. Sizes, strides and offsets are in bytes. A key is an unsigned 64-bit number, or 1 to 255 bytes in a directory
 *     created with keys=bytes. A label is the caller's own unsigned 64-bit number of an epoch (the timestep). Labels
 *     increase strictly.
 *  3. The library copies what it needs: arguments may be freed when the call returns. Objects that the library hands
 *     out belong to the caller, who frees them with the function named there. Every destroy and close function accepts
 *     NULL.
 *  4. A handle may be used by one thread at a time. Different handles are independent. No function is safe in a signal
 *     handler. The library starts no process, prints nothing and never exits. Its own threads (options threads,
 *     read_threads) end with the handle.
 *  5. On a handle of deltafs_mpi_create or deltafs_mpi_reopen, deltafs_epoch_end, deltafs_epoch_wait and deltafs_close
 *     are collective: all ranks call them and get the same status. All other functions are local.
 *  6. The library never hands out bytes that do not match their checksum. It returns DELTAFS_ERR_DAMAGED instead.
 *  7. A struct that begins with struct_size may grow in later versions. The caller sets struct_size to sizeof of the
 *     struct before the call; the library reads and writes only that much of it. DELTAFS_ERR_INVALID if it is 0.
 */
#ifndef DELTAFS_H
#define DELTAFS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks each public function; the libraries hide all other symbols. */
#ifndef DELTAFS_API
#define DELTAFS_API __attribute__((visibility("default")))
#endif

/* The numbers never change their meaning, and numbers no longer used are not used again. */
enum deltafs_status {
    DELTAFS_OK = 0,

    /* The call itself. */
    DELTAFS_ERR_INVALID = -1,    /* an argument that the function does not accept */
    DELTAFS_ERR_OPTION = -2,     /* an unknown option, or a value that the option does not accept */
    DELTAFS_ERR_SCHEMA = -3,     /* a schema that cannot be parsed or does not fit */
    DELTAFS_ERR_SIZE = -4,       /* a value that does not have the directory's value size */
    DELTAFS_ERR_LABEL = -5,      /* a label that is not above the last one, or differs between ranks */
    DELTAFS_ERR_MODE = -6,       /* a write to a directory that is open for reading, or the reverse */
    DELTAFS_ERR_COLLECTIVE = -7, /* the ranks did not make the same collective call */
    DELTAFS_ERR_CANCELLED = -8,  /* the caller aborted the epoch, with deltafs_epoch_cancel */

    /* What is asked for. */
    DELTAFS_ERR_NOT_FOUND = -20,   /* no such directory, key or epoch */
    DELTAFS_ERR_EXISTS = -21,      /* the directory to be created exists */
    DELTAFS_ERR_NOT_DELTAFS = -22, /* a folder or file that is not a DeltaFS container */
    DELTAFS_ERR_UNCOMMITTED = -23, /* close discarded records appended after the last epoch end */
    DELTAFS_ERR_BUSY = -24,        /* another job is writing the directory */
    DELTAFS_ERR_CHANGED = -25,     /* a file was changed after it was indexed, or is gone */

    /* The system. */
    DELTAFS_ERR_MEMORY = -40,   /* no memory, or a memory limit that is too small for the work */
    DELTAFS_ERR_IO = -41,       /* the operating system refused or failed a file operation */
    DELTAFS_ERR_NO_SPACE = -42, /* the file system or the quota is full */

    /* What is on disk. */
    DELTAFS_ERR_DAMAGED = -60, /* bytes that differ from what was written; the message names file and offset */
    DELTAFS_ERR_VERSION = -61, /* written by a newer version, in a form that this version cannot read */

    /* The job. */
    DELTAFS_ERR_MPI = -80, /* MPI failed, or a rank sent an invalid message */
};

/* A constant text for a status, known or not. Thread-safe. */
DELTAFS_API const char *deltafs_strerror(int status);

/* The version of this header. */
#define DELTAFS_VERSION_MAJOR 0
#define DELTAFS_VERSION_MINOR 2
#define DELTAFS_VERSION_PATCH 0
#define DELTAFS_VERSION       "0.2.0"

/* The version of the library, such as "0.2.0", which may differ from the header's. Thread-safe. */
DELTAFS_API const char *deltafs_version(void);

/* ---- Options: see deltafs(7), or `deltafs help options` ---- */

typedef struct deltafs_options deltafs_options;

struct deltafs_option_info {
    const char *name;          /* as given to deltafs_options_set */
    const char *takes;         /* the values that it accepts, in words */
    const char *default_value; /* as a text for deltafs_options_set */
    const char *text;          /* what it does, in one line */
};

/* Create options. Each has its default, or the value of the environment variable DELTAFS_NAME (its name in upper case).
 * DELTAFS_ERR_OPTION if the environment has a bad value. Free with deltafs_options_destroy. */
DELTAFS_API int deltafs_options_create(deltafs_options **out);
DELTAFS_API void deltafs_options_destroy(deltafs_options *options);

/* Set an option from a text. DELTAFS_ERR_OPTION for an unknown name or a bad value: the message lists the valid ones,
 * and the option does not change. DELTAFS_ERR_SCHEMA for a bad schema. */
DELTAFS_API int deltafs_options_set(deltafs_options *options, const char *name, const char *value);

/* Get an option's text, which is valid until the option is set again. DELTAFS_ERR_OPTION for an unknown name. */
DELTAFS_API int deltafs_options_get(const deltafs_options *options, const char *name, const char **value);

/* Row `i` of the table of options, or NULL after the last. Constant; thread-safe. */
DELTAFS_API const struct deltafs_option_info *deltafs_option_at(size_t i);

/* ---- Schemas: the columns of a value ---- */

/* A schema is a text such as "x:f4,y:f4,cell:i4,tag:S8": pairs of name:type, separated by commas. The fields are packed
 * one after the other, little-endian. Types are NumPy's letters with a size in bytes: f4 f8 i1 i2 i4 i8 u1 u2 u4 u8, Sn
 * for text of n bytes, Vn for n bytes of anything. A '<' before the letter is accepted. */
typedef struct deltafs_schema deltafs_schema;

struct deltafs_field {
    const char *name;
    char kind;       /* 'f', 'i', 'u', 'S' or 'V' */
    uint32_t size;   /* bytes */
    uint32_t offset; /* bytes from the start of the record */
};

/* Parse a schema. On DELTAFS_ERR_SCHEMA the message has the place of the error and the valid types. Free with
 * deltafs_schema_destroy. */
DELTAFS_API int deltafs_schema_parse(const char *text, deltafs_schema **out);
DELTAFS_API void deltafs_schema_destroy(deltafs_schema *schema);
DELTAFS_API size_t deltafs_schema_size(const deltafs_schema *schema);  /* bytes of one record */
DELTAFS_API size_t deltafs_schema_count(const deltafs_schema *schema); /* fields */
/* Field `i`, owned by the schema; NULL if there are fewer. */
DELTAFS_API const struct deltafs_field *deltafs_schema_field(const deltafs_schema *schema, size_t i);

/* ---- Directories ---- */

typedef struct deltafs_dir deltafs_dir;

/* The message of the calling thread's last call that failed, of any function of this library, if `dir` is NULL.
 * Otherwise the message of the last call on this handle that failed. Never NULL. The text is valid until the next
 * failing call of the thread or on the handle. A failing open or close has no handle: use NULL. */
DELTAFS_API const char *deltafs_errmsg(const deltafs_dir *dir);

/* Create a directory at `path`, whose parent must exist, and open it for writing from this process alone. `options` may
 * be NULL for the defaults. Set the option schema or value_size if all values have the same size. DELTAFS_ERR_EXISTS if
 * there is anything at `path`. Close with deltafs_close. Not collective. */
DELTAFS_API int deltafs_create(const char *path, const deltafs_options *options, deltafs_dir **out);

/* Open an existing directory for writing; the next epoch follows the last committed one (deltafs_last_label). Any job
 * may have created it, serial or with any number of ranks, and may have ended in any way.
 *
 * What the last job did not commit is truncated. This may be an epoch that it wrote completely; then deltafs_errmsg of
 * the new handle (in a job: of rank 0's) says so. To commit such an epoch, call deltafs_repair before.
 *
 * Keys, partitions, schema and value size do not change: DELTAFS_ERR_OPTION if `options`, or the environment when they
 * were created, ask for others. DELTAFS_ERR_DAMAGED if the manifest has lost lines of committed epochs; nothing is
 * truncated then. DELTAFS_ERR_BUSY if another process is writing the directory, or may be (see the option lease).
 * DELTAFS_ERR_NOT_FOUND, _NOT_DELTAFS, _VERSION as for deltafs_open. Close with deltafs_close. Not collective. */
DELTAFS_API int deltafs_reopen(const char *path, const deltafs_options *options, deltafs_dir **out);

/* The label of the last epoch. The next label must be above it. On a writer with commit=async that epoch may not be
 * committed yet, and a crash can take it. DELTAFS_ERR_NOT_FOUND if there is no epoch. For any handle. Not collective.
 */
DELTAFS_API int deltafs_last_label(deltafs_dir *dir, uint64_t *label);

/* Open a directory for reading. This needs no MPI and changes nothing on disk. The handle sees what is committed now.
 * DELTAFS_ERR_NOT_FOUND, _NOT_DELTAFS, _VERSION, _DAMAGED. Close with deltafs_close. */
DELTAFS_API int deltafs_open(const char *path, const deltafs_options *options, deltafs_dir **out);

/* Let a handle that is open for reading see the epochs that were committed since; never half an epoch. Texts that
 * deltafs_stat handed out become invalid. After an error the handle sees what it saw before. Errors are those of
 * deltafs_open; DELTAFS_ERR_NOT_FOUND also if another directory was created at this path. Not collective. */
DELTAFS_API int deltafs_refresh(deltafs_dir *dir);

/* Close and free the handle, also when it returns an error. On a writer, records appended since the last epoch end are
 * discarded: DELTAFS_ERR_UNCOMMITTED. Committed epochs are safe in any case. Returns the first error of the close. */
DELTAFS_API int deltafs_close(deltafs_dir *dir);

/* Append one record to the subfile `key` in the current epoch. `size` must be the directory's value size if it has one
 * (DELTAFS_ERR_SIZE). Records that one writer appends to a key in an epoch keep their order.
 *
 * If an append fails, its epoch cannot be committed: deltafs_epoch_end returns the error, on all ranks (with
 * commit=async, the call that commits that epoch). So it is enough to check the status of deltafs_epoch_end.
 *
 * Not collective, but the call may wait until other ranks call DeltaFS. So between the first append of an epoch and its
 * end, make no call that waits for other ranks, such as a barrier. */
DELTAFS_API int deltafs_append(deltafs_dir *dir, uint64_t key, const void *value, size_t size);

/* The same for a directory created with keys=bytes. `key` is 1 to 255 bytes of any kind (DELTAFS_ERR_INVALID). Key and
 * value together must be less than 1 MiB (DELTAFS_ERR_SIZE). DELTAFS_ERR_MODE if the directory's keys are numbers;
 * deltafs_append returns it if they are bytes. */
DELTAFS_API int deltafs_append_bytes(deltafs_dir *dir, const void *key, size_t key_size, const void *value,
                                     size_t size);

/* Append `n` records. The key of record i is the native uint64_t at keys + i * key_stride. Its value is the `size`
 * bytes at values + i * value_stride. Strides and alignment are free. With a schema, a value is its fields packed,
 * little-endian, without padding. One call for a whole dump is the fastest way to write. */
DELTAFS_API int deltafs_append_many(deltafs_dir *dir, size_t n, const void *keys, size_t key_stride, const void *values,
                                    size_t value_stride, size_t size);

/* Abort the current epoch for a reason of the caller's own (for example, an input file cannot be read).
 * deltafs_epoch_end will commit nothing and return DELTAFS_ERR_CANCELLED with the text `why`, on all ranks (with
 * commit=async, the call that would commit that epoch). Not collective: one rank can abort the epoch of all. */
DELTAFS_API int deltafs_epoch_cancel(deltafs_dir *dir, const char *why);

/* End the current epoch and give it `label`. On DELTAFS_OK all records of all ranks are sorted, indexed, on disk and
 * committed. On an error none of them is committed, earlier epochs are unchanged, and the next append begins an empty
 * epoch. DELTAFS_ERR_LABEL if the label is not above the last one; then the appended records stay, and the call can be
 * repeated. Collective in a job.
 *
 * With commit=async the call returns while the epoch is being written, so that the caller can compute. The next
 * deltafs_epoch_end, deltafs_epoch_wait or deltafs_close commits it. If that fails, it returns the error, with the
 * epoch's label in the message, and discards that epoch and all that was appended since. This holds also for errors
 * that a rank knew before, from an append or from deltafs_epoch_cancel. To lose no later records after such an error,
 * call deltafs_epoch_wait on all ranks before the next append. */
DELTAFS_API int deltafs_epoch_end(deltafs_dir *dir, uint64_t label);

/* Wait until the last ended epoch is committed, and return what deltafs_epoch_end would have returned without
 * commit=async. DELTAFS_OK if there is nothing to wait for. Collective in a job. */
DELTAFS_API int deltafs_epoch_wait(deltafs_dir *dir);

/* ---- Reading ---- */

/* The epochs with first <= label <= last. A NULL range means all. */
struct deltafs_range {
    uint64_t first;
    uint64_t last;
};

struct deltafs_record {
    uint64_t key; /* if keys are bytes: their hash */
    uint64_t label;
    const void *value;
    size_t size;
    const void *key_bytes; /* NULL if keys are numbers */
    size_t key_size;
};

/* The records of one key, in the order of their epochs, then as appended. All of it belongs to the deltafs_records. */
typedef struct deltafs_records deltafs_records;
struct deltafs_records {
    size_t count;
    const struct deltafs_record *record;
    size_t missing_count;    /* epochs that could not be read; 0 if the answer is complete */
    const uint64_t *missing; /* their labels */
};
DELTAFS_API void deltafs_records_destroy(deltafs_records *records);

/* Get all records of `key` in the range. DELTAFS_ERR_NOT_FOUND if there are none; *out is NULL then. On
 * DELTAFS_ERR_DAMAGED or _IO some epochs could not be read: *out has the records of the others and the labels of the
 * missing ones, or is NULL if nothing could be read; the message names the first damage. Free with
 * deltafs_records_destroy. */
DELTAFS_API int deltafs_get(deltafs_dir *dir, uint64_t key, const struct deltafs_range *range, deltafs_records **out);

/* The same for `n` keys. out[i] belongs to keys[i]; it is NULL if the key has no records. Returns the first error of
 * _DAMAGED or _IO, with in `out` what could be read; otherwise DELTAFS_ERR_NOT_FOUND if any key was not found. Free
 * each out[i] with deltafs_records_destroy, also after an error. */
DELTAFS_API int deltafs_get_many(deltafs_dir *dir, size_t n, const uint64_t *keys, const struct deltafs_range *range,
                                 deltafs_records **out);

/* The same for keys that are bytes. DELTAFS_ERR_MODE if the directory's keys are of the other kind. */
DELTAFS_API int deltafs_get_bytes(deltafs_dir *dir, const void *key, size_t key_size, const struct deltafs_range *range,
                                  deltafs_records **out);
DELTAFS_API int deltafs_get_many_bytes(deltafs_dir *dir, size_t n, const void *const *keys, const size_t *key_sizes,
                                       const struct deltafs_range *range, deltafs_records **out);

/* Called for each record of a scan. The record is valid during the call. A value other than 0 stops the scan. The
 * function must not read from the same handle (DELTAFS_ERR_MODE). */
typedef int (*deltafs_record_fn)(const struct deltafs_record *record, void *arg);

/* Call `fn` for every record in the range: by partition, then by epoch, then by key (bytes: by their hash). An epoch
 * whose keys did not fit into the writer's memory has several segments, each sorted by itself.
 *
 * If `fn` returns a value other than 0, the scan stops, *stopped gets that value, and the status is DELTAFS_OK.
 * Otherwise *stopped is 0. `stopped` may be NULL. Damage does not stop a scan: it hands out all that can be read and
 * returns the first DELTAFS_ERR_DAMAGED or _IO at the end. */
DELTAFS_API int deltafs_scan(deltafs_dir *dir, const struct deltafs_range *range, deltafs_record_fn fn, void *arg,
                             int *stopped);

/* The same for one partition (0 <= partition < partitions of deltafs_stat), so that several processes can share a
 * scan. */
DELTAFS_API int deltafs_scan_partition(deltafs_dir *dir, uint32_t partition, const struct deltafs_range *range,
                                       deltafs_record_fn fn, void *arg, int *stopped);

struct deltafs_stat {
    size_t struct_size; /* see convention 7 */
    uint32_t version;   /* of the format on disk */
    uint32_t partitions;
    const char *keys;   /* "u64" or "bytes" */
    uint64_t epochs;    /* committed epochs */
    uint64_t records;   /* in them */
    uint64_t bytes_raw; /* keys (numbers: 8 bytes each) and values, as appended */
    int64_t value_size; /* bytes of every value, or -1 if sizes differ */
    const char *schema; /* "" if there is none; owned by the handle */
    const char *uuid;   /* owned by the handle */
    int is_closed;      /* whether its writer closed it */
    const char *layout; /* "partitioned" or "local", as the option layout */
};

struct deltafs_epoch_stat {
    size_t struct_size;
    uint64_t label;
    uint64_t records;
    uint64_t bytes_raw;
    uint64_t bytes_stored; /* added to the logs by this epoch */
};

/* Facts about a directory that is open for reading, from its manifest. */
DELTAFS_API int deltafs_stat(deltafs_dir *dir, struct deltafs_stat *out);
/* Bytes of all its files. Asks the file system for the size of each. */
DELTAFS_API int deltafs_bytes_stored(deltafs_dir *dir, uint64_t *out);
/* Facts about epoch number `i` (0 <= i < epochs), in the order of labels. DELTAFS_ERR_INVALID beyond the last. */
DELTAFS_API int deltafs_epoch_stat(deltafs_dir *dir, uint64_t i, struct deltafs_epoch_stat *out);

/* File operations of a handle so far. */
struct deltafs_io_stat {
    size_t struct_size;
    uint64_t reads; /* read calls to the operating system */
    uint64_t bytes_read;
    uint64_t writes;
    uint64_t bytes_written;
};
DELTAFS_API int deltafs_io_stat(const deltafs_dir *dir, struct deltafs_io_stat *out);

/* Memory of a writer in this process: buffers, memtable, keys for the index, messages. In bytes. */
struct deltafs_memory_stat {
    size_t struct_size;
    uint64_t limit; /* the option memory, which is never exceeded */
    uint64_t used;  /* now */
    uint64_t peak;  /* the most so far */
};
DELTAFS_API int deltafs_memory_stat(deltafs_dir *dir, struct deltafs_memory_stat *out);

/* Called by the verify functions for each damage when it is found. The message is "FILE: damaged at offset N: ...", or
 * "FILE: ..." if all of a file or directory is concerned. */
typedef void (*deltafs_damage_fn)(int status, const char *message, void *arg);

/* What a verify function has read and found correct. */
struct deltafs_verify_counts {
    size_t struct_size;
    uint64_t records; /* of a directory, or rows of an index's files */
    uint64_t bytes;   /* of a directory's values, or of a logical file's data */
    uint64_t blocks;
    uint64_t leaves;
    uint64_t damages; /* the number of calls of the damage function */
};

/* Read everything that is committed. Check it against its checksums, the index and the counts of the manifest. Reports
 * all damages to `fn` (may be NULL). Returns DELTAFS_ERR_DAMAGED, or the first other error, if there are any; *out is
 * set then too. `out` may be NULL. */
DELTAFS_API int deltafs_verify(deltafs_dir *dir, deltafs_damage_fn fn, void *arg, struct deltafs_verify_counts *out);

/* Called by the repair functions for each finding, with a message. The status is DELTAFS_OK for a repair that was done
 * (in a dry run: that can be done), DELTAFS_REPAIR_REMARK for a fact that needs no repair, or the error of what cannot
 * be repaired or is lost. */
enum { DELTAFS_REPAIR_REMARK = 1 };
typedef void (*deltafs_repair_fn)(int status, const char *message, void *arg);

struct deltafs_repair_options {
    size_t struct_size;
    int dry_run;        /* report only, change nothing */
    int has_label;      /* directories only: commit an epoch that has no commit and give it `label`, even if its job may
                         * not have finished it; an error if there is no such epoch */
    uint64_t label;     /* above the last committed label */
    int has_lease;      /* `lease` replaces the option lease */
    uint64_t lease;     /* seconds */
    int has_drop_from;  /* directories only: discard committed epochs whose logs are incomplete, and all later ones */
    uint64_t drop_from; /* the label of the first of them; any other label is an error */
};

/* Repair a directory after a crash or damage. Not collective.
 *
 * A crash: an epoch that all processes wrote, but that has no commit line in the manifest, is committed. If it is not
 * known whether all processes wrote it, it is committed only with a label in `options`. Everything else without a
 * commit is truncated, and the directory is closed.
 *
 * Damage: a damaged index log is rebuilt from its data log if keys are bytes; keys that are numbers are stored in the
 * index only. A damaged header, footer or fence is restored if all of its contents are stored elsewhere too. So is a
 * damaged manifest. Records of damaged blocks are lost: reading their keys returns DELTAFS_ERR_DAMAGED. A file that is
 * replaced is kept as FILE.damaged, FILE.damaged.2, ... This function searches only for damage that prevents the
 * directory from being opened; deltafs_verify searches for all.
 *
 * With sync=none or sync=close a power loss can take committed epochs. They and all later ones are discarded if
 * `options` names the first of them. A manifest that has lost the lines of its last epochs is refused; with a label the
 * first of these epochs gets its line again, and with has_drop_from and any label above the last they are discarded.
 *
 * Returns DELTAFS_OK if the directory is sound afterwards, or in a dry run could be; otherwise the first error. If
 * records are lost, everything else is repaired and DELTAFS_ERR_DAMAGED is returned. DELTAFS_ERR_BUSY as for
 * deltafs_reopen; a dry run reports a writer as a remark. Of the environment's options only memory and lease apply.
 * `options` and `fn` may be NULL. */
DELTAFS_API int deltafs_repair(const char *path, const struct deltafs_repair_options *options, deltafs_repair_fn fn,
                               void *arg);

/* ---- Subfiles, with the calls of files ---- */

/* A subfile is the concatenation of the values of one key, epoch by epoch. Its name is the key's number, in decimal or
 * in hexadecimal after 0x; or the key itself if keys are bytes. */
typedef struct deltafs_file deltafs_file;

/* Open a subfile of an open directory. `flags` is O_WRONLY on a writer (O_APPEND and O_CREAT may be added and change
 * nothing), O_RDONLY on a reader. Opening for reading reads the whole subfile; DELTAFS_ERR_NOT_FOUND if it has no
 * records. Close the file with deltafs_file_close before the directory. */
DELTAFS_API int deltafs_openat(deltafs_dir *dir, const char *name, int flags, deltafs_file **out);

/* Write at the end. All bytes written between open and close become one record, which the close appends. If a write
 * fails, its epoch cannot be committed, as for deltafs_append. */
DELTAFS_API int deltafs_write(deltafs_file *file, const void *bytes, size_t size);

/* Read up to `size` bytes from where the last read ended. *got is less than `size` only at the end of the subfile. */
DELTAFS_API int deltafs_read(deltafs_file *file, void *bytes, size_t size, size_t *got);

/* Close and free the file. Returns the status of the append if the file was written. */
DELTAFS_API int deltafs_file_close(deltafs_file *file);

#ifdef __cplusplus
}
#endif
#endif
