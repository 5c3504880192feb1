/* DeltaFS in C: one file per particle, without the files.
 *
 * A program writes as if every key (a particle's ID) had a file of its own inside a directory, epoch by epoch (a dump,
 * a timestep); each file's bytes come back in a few reads. This header is the whole serial API: writing from one
 * process, and reading from any. deltafs_mpi.h adds the collective way to write from all ranks of an MPI job.
 *
 * Conventions
 *  1. Functions that can fail return a status: DELTAFS_OK (0), or a negative DELTAFS_ERR_*. Outputs are set only on
 *     DELTAFS_OK, unless a function says otherwise. deltafs_errmsg gives the message with the file, offset and cause.
 *  2. Sizes, strides and offsets are in bytes. Keys are unsigned 64-bit integers, or 1 to 255 bytes where a directory
 *     was made so. Labels are the caller's own unsigned 64-bit numbers for epochs (the timestep), strictly increasing.
 *  3. The caller keeps what it passes in; nothing passed is kept after the call returns. What a function hands out is
 *     owned by the caller and freed with the function named there. Every destroy function takes NULL.
 *  4. A handle is used by one thread at a time; different handles are independent. No function is safe in a signal
 *     handler. The library starts no process, prints nothing, and never exits; threads of its own (the options threads
 *     and read_threads) end with the handle.
 *  5. On a directory made by deltafs_mpi_create, deltafs_epoch_end, deltafs_epoch_wait and deltafs_close are collective
 *     over its communicator and return the same status on all ranks; everything else is local.
 *  6. Bytes that do not match their checksum are never handed out: DELTAFS_ERR_DAMAGED comes instead.
 */
#ifndef DELTAFS_H
#define DELTAFS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Set before each public declaration; the libraries hide all other symbols. */
#ifndef DELTAFS_API
#define DELTAFS_API __attribute__((visibility("default")))
#endif

/* The numbers are pinned: they never change their meaning, and retired ones are not used again. */
enum deltafs_status {
    DELTAFS_OK = 0,

    /* The call itself. */
    DELTAFS_ERR_INVALID = -1,    /* an argument that the function does not take */
    DELTAFS_ERR_OPTION = -2,     /* no such option, or a value that it does not take */
    DELTAFS_ERR_SCHEMA = -3,     /* a schema that cannot be parsed or does not fit */
    DELTAFS_ERR_SIZE = -4,       /* a value of another size than the directory's */
    DELTAFS_ERR_LABEL = -5,      /* an epoch's label that is not above the last one, or differs between ranks */
    DELTAFS_ERR_MODE = -6,       /* writing to a directory opened for reading, or the reverse */
    DELTAFS_ERR_COLLECTIVE = -7, /* the ranks did not make the same collective call */
    DELTAFS_ERR_CANCELLED = -8,  /* the caller gave the epoch up, with deltafs_epoch_cancel */

    /* What is asked for. */
    DELTAFS_ERR_NOT_FOUND = -20,   /* no such directory, key or epoch */
    DELTAFS_ERR_EXISTS = -21,      /* the directory to be created is there already */
    DELTAFS_ERR_NOT_DELTAFS = -22, /* a folder or file that is no DeltaFS directory */
    DELTAFS_ERR_UNCOMMITTED = -23, /* records appended after the last epoch end were given up at close */
    DELTAFS_ERR_BUSY = -24,        /* another job is writing the directory */
    DELTAFS_ERR_CHANGED = -25,     /* a file was written to since its keys were indexed, or is gone */

    /* The system. */
    DELTAFS_ERR_MEMORY = -40,   /* no memory, or a budget too small for the work */
    DELTAFS_ERR_IO = -41,       /* the operating system refused or failed a file operation */
    DELTAFS_ERR_NO_SPACE = -42, /* the file system or the quota is full */

    /* What is on disk. */
    DELTAFS_ERR_DAMAGED = -60, /* bytes that are not what was written; the message names file and offset */
    DELTAFS_ERR_VERSION = -61, /* written by a newer version, in a way that this one must not guess at */

    /* The job. */
    DELTAFS_ERR_MPI = -80, /* MPI failed, or a message that breaks the protocol */
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

/* ---- Options: one table; see deltafs(7), or `deltafs help options` ---- */

typedef struct deltafs_options deltafs_options;

struct deltafs_option_info {
    const char *name;          /* as given to deltafs_options_set */
    const char *takes;         /* the values it takes, in words */
    const char *default_value; /* as a text that deltafs_options_set takes */
    const char *text;          /* one line on what it does */
};

/* Options at their defaults, or as the environment says: option NAME is read from DELTAFS_NAME (upper case). A bad
 * value there is DELTAFS_ERR_OPTION. Free with deltafs_options_destroy. */
DELTAFS_API int deltafs_options_create(deltafs_options **out);
DELTAFS_API void deltafs_options_destroy(deltafs_options *options);

/* Set an option from its text. DELTAFS_ERR_OPTION for an unknown name or a bad value (the message lists the valid
 * ones; the option keeps its value), DELTAFS_ERR_SCHEMA for a bad schema. */
DELTAFS_API int deltafs_options_set(deltafs_options *options, const char *name, const char *value);

/* An option's present text; valid until it is set again. DELTAFS_ERR_OPTION for an unknown name. */
DELTAFS_API int deltafs_options_get(const deltafs_options *options, const char *name, const char **value);

/* Row `i` of the options table, or NULL after the last. Constant; thread-safe. */
DELTAFS_API const struct deltafs_option_info *deltafs_option_at(size_t i);

/* ---- Schemas: the columns of a value ---- */

/* A schema is a text such as "x:f4,y:f4,cell:i4,tag:S8": name:type, comma-separated, the fields packed one after the
 * other, little-endian. Types are NumPy's letters with a size in bytes: f4 f8 i1 i2 i4 i8 u1 u2 u4 u8, Sn for text of
 * n bytes, Vn for n bytes of anything. A '<' before the letter is accepted. */
typedef struct deltafs_schema deltafs_schema;

struct deltafs_field {
    const char *name;
    char kind;       /* 'f', 'i', 'u', 'S' or 'V' */
    uint32_t size;   /* bytes */
    uint32_t offset; /* bytes from the record's start */
};

/* Parse a schema. DELTAFS_ERR_SCHEMA, with the place and the valid types in the message. Free with
 * deltafs_schema_destroy. */
DELTAFS_API int deltafs_schema_parse(const char *text, deltafs_schema **out);
DELTAFS_API void deltafs_schema_destroy(deltafs_schema *schema);
DELTAFS_API size_t deltafs_schema_size(const deltafs_schema *schema);  /* bytes of one record */
DELTAFS_API size_t deltafs_schema_count(const deltafs_schema *schema); /* fields */
/* Field `i`, owned by the schema; NULL if there are fewer. */
DELTAFS_API const struct deltafs_field *deltafs_schema_field(const deltafs_schema *schema, size_t i);

/* ---- Directories ---- */

typedef struct deltafs_dir deltafs_dir;

/* The detail of the handle's last failed call; with NULL, that of the calling thread's last failed call that had no
 * handle (create, open, options, schema) or that closed one. Never NULL; valid until the next call that fails. */
DELTAFS_API const char *deltafs_errmsg(const deltafs_dir *dir);

/* Make a new directory at `path` (whose parent exists) and open it for writing from this process alone. `options` may
 * be NULL for the defaults; set `schema` or `value_size` if values have a fixed size. DELTAFS_ERR_EXISTS if there is
 * anything at `path`. End with deltafs_close. Not collective. */
DELTAFS_API int deltafs_create(const char *path, const deltafs_options *options, deltafs_dir **out);

/* Open a directory that is there for writing, to go on behind its last committed epoch (deltafs_last_label); whatever
 * made it, serial or with any number of ranks, and however that ended: what it had not committed is cut off. That may
 * be an epoch that its job had written, and died before the commit: no deltafs_epoch_end has said that it is there, so
 * its records can be written again. deltafs_errmsg of the new handle (of several ranks, rank 0's) says so then, until a
 * call fails; deltafs_repair, called before, commits it instead.
 *
 * Keys, partitions, schema and value size are as they were made: DELTAFS_ERR_OPTION if `options`, or the environment
 * that they were made from, ask for others. DELTAFS_ERR_DAMAGED if the manifest has lost lines of committed epochs:
 * nothing is cut off then. DELTAFS_ERR_BUSY if another process is writing it, or may be (see the option lease);
 * DELTAFS_ERR_NOT_FOUND, _NOT_DELTAFS, _VERSION as deltafs_open. End with deltafs_close. Not collective. */
DELTAFS_API int deltafs_reopen(const char *path, const deltafs_options *options, deltafs_dir **out);

/* The label of the last epoch that is committed, or with commit=async has ended, which a crash can still undo: the next
 * one's must be above it.
 * DELTAFS_ERR_NOT_FOUND if there is none. Of any handle, open for reading or writing. Not collective. */
DELTAFS_API int deltafs_last_label(deltafs_dir *dir, uint64_t *label);

/* Open a directory for reading; needs no MPI and makes no change on disk. What is committed at this moment is what
 * the handle sees. DELTAFS_ERR_NOT_FOUND, _NOT_DELTAFS, _VERSION, _DAMAGED. End with deltafs_close. */
DELTAFS_API int deltafs_open(const char *path, const deltafs_options *options, deltafs_dir **out);

/* Have a handle that is open for reading see what has been committed since it was opened, by a job that writes
 * meanwhile. Never half an epoch. Texts that deltafs_stat handed out before are gone. On failure the handle sees what
 * it saw before: the errors of deltafs_open, and DELTAFS_ERR_NOT_FOUND too if another directory has taken this one's
 * place. Not collective. */
DELTAFS_API int deltafs_refresh(deltafs_dir *dir);

/* Close and free the handle, whatever is returned. On a writer, records appended since the last epoch end are not
 * kept: DELTAFS_ERR_UNCOMMITTED. The first error of the close is returned; committed epochs are safe in any case. */
DELTAFS_API int deltafs_close(deltafs_dir *dir);

/* Add one record to the subfile `key` in the current epoch. `size` must be the directory's value size if it has one
 * (DELTAFS_ERR_SIZE). Several records for a key in an epoch are kept in the order in which one writer appended them.
 * An append that fails spoils its epoch: deltafs_epoch_end returns the error, on all ranks; with the option
 * commit=async the call that commits the epoch does, which is the one after (see deltafs_epoch_end). So a caller may
 * leave it at testing these. Not collective, but it may wait for other ranks to come into DeltaFS: between the first
 * append of an epoch and its end, make no call that waits for other ranks (a barrier, say). */
DELTAFS_API int deltafs_append(deltafs_dir *dir, uint64_t key, const void *value, size_t size);

/* The same in a directory made with the option keys=bytes: the subfile's name is `key`, 1 to 255 bytes of any kind
 * (DELTAFS_ERR_INVALID). Key and value together have less than 1 MiB (DELTAFS_ERR_SIZE). DELTAFS_ERR_MODE if the
 * directory's keys are numbers; as from deltafs_append if they are bytes. */
DELTAFS_API int deltafs_append_bytes(deltafs_dir *dir, const void *key, size_t key_size, const void *value,
                                     size_t size);

/* Add `n` records: record i has the native uint64_t at keys + i * key_stride and `size` bytes at
 * values + i * value_stride (strides may be anything, alignment too; with a schema, the bytes are its fields packed,
 * little-endian, without padding). One call a dump is the fast way. */
DELTAFS_API int deltafs_append_many(deltafs_dir *dir, size_t n, const void *keys, size_t key_stride, const void *values,
                                    size_t value_stride, size_t size);

/* Give the current epoch up, for a reason of the caller's (one of its inputs cannot be read, say): deltafs_epoch_end
 * will return DELTAFS_ERR_CANCELLED with the text `why`, on all ranks, and commit nothing (with commit=async the call
 * after it, as for any error). Not collective: this is how one rank tells the others. */
DELTAFS_API int deltafs_epoch_cancel(deltafs_dir *dir, const char *why);

/* End the current epoch under `label`: all its records, of all ranks, are sorted, indexed, on disk and committed when
 * this returns DELTAFS_OK; on any error none of them is, earlier epochs are untouched, and the epoch begins anew,
 * empty. DELTAFS_ERR_LABEL if the label is not above the last one (here the appended records stay, and the call can be
 * made again). Collective on a directory made by deltafs_mpi_create.
 *
 * With the option commit=async it returns while the epoch is still being written, so that the caller computes
 * meanwhile; the next deltafs_epoch_end, deltafs_epoch_wait or deltafs_close commits it. If that fails, the call
 * returns the error with the epoch's label in the message, and neither that epoch nor what was appended since is kept.
 * That is so for an error that was known before, too: of an append that failed, or of deltafs_epoch_cancel. Whoever has
 * seen one on some rank and would rather lose no more calls deltafs_epoch_wait, on all ranks, before appending again.
 */
DELTAFS_API int deltafs_epoch_end(deltafs_dir *dir, uint64_t label);

/* Wait until the epoch that ended last is committed; returns what deltafs_epoch_end would have returned without
 * commit=async. DELTAFS_OK if there is nothing to wait for. Collective on a directory made by deltafs_mpi_create. */
DELTAFS_API int deltafs_epoch_wait(deltafs_dir *dir);

/* ---- Reading ---- */

/* The epochs with first <= label <= last. NULL, where a range is asked for, means all. */
struct deltafs_range {
    uint64_t first;
    uint64_t last;
};

struct deltafs_record {
    uint64_t key;   /* of bytes: their hash */
    uint64_t epoch; /* its label */
    const void *value;
    size_t size;
    const void *key_bytes; /* NULL if keys are numbers */
    size_t key_size;
};

/* What one key has: ordered by epoch, then as appended. */
typedef struct deltafs_records deltafs_records;
struct deltafs_records {
    size_t count;
    const struct deltafs_record *record; /* owned by the deltafs_records */
};
DELTAFS_API void deltafs_records_destroy(deltafs_records *records);

/* All records of `key` in the range. DELTAFS_ERR_NOT_FOUND if there are none. On DELTAFS_ERR_DAMAGED or _IO *out holds
 * the records of the epochs that could be read, or is NULL; the message names the first damage that was met, and the
 * labels of the epochs that are missing. Free with deltafs_records_destroy. */
DELTAFS_API int deltafs_get(deltafs_dir *dir, uint64_t key, const struct deltafs_range *range, deltafs_records **out);

/* The same for `n` keys, read in the order that is cheapest: out[i] belongs to keys[i], NULL if it has no records. The
 * first error of _DAMAGED or _IO is returned (out then holds what could be read), else DELTAFS_ERR_NOT_FOUND if any
 * key was not found. Each out[i] is freed with deltafs_records_destroy, whatever is returned. */
DELTAFS_API int deltafs_get_many(deltafs_dir *dir, size_t n, const uint64_t *keys, const struct deltafs_range *range,
                                 deltafs_records **out);

/* The same for keys of bytes. DELTAFS_ERR_MODE if the directory's keys are of the other kind. */
DELTAFS_API int deltafs_get_bytes(deltafs_dir *dir, const void *key, size_t key_size, const struct deltafs_range *range,
                                  deltafs_records **out);
DELTAFS_API int deltafs_get_many_bytes(deltafs_dir *dir, size_t n, const void *const *keys, const size_t *key_sizes,
                                       const struct deltafs_range *range, deltafs_records **out);

/* Called for each record of a scan; the record is valid during the call. A return other than 0 ends the scan. It must
 * not read from the same handle (DELTAFS_ERR_MODE). */
typedef int (*deltafs_record_fn)(const struct deltafs_record *record, void *arg);

/* Hand every record of the range to `fn`: partition by partition, in each epoch by epoch, in each by key; keys of bytes
 * in the order of their hashes, which is none that a reader would expect. (Where an epoch's keys did not fit its
 * writer's memory, it has several segments, each in order.) Returns what `fn` returned if that
 * was not 0. Damage does not end it: what can be read is handed out, and the first DELTAFS_ERR_DAMAGED or _IO is
 * returned at the end. */
DELTAFS_API int deltafs_scan(deltafs_dir *dir, const struct deltafs_range *range, deltafs_record_fn fn, void *arg);

/* The same for one partition (0 <= partition < deltafs_stat's partitions), so that a scan can be shared out. */
DELTAFS_API int deltafs_scan_partition(deltafs_dir *dir, uint32_t partition, const struct deltafs_range *range,
                                       deltafs_record_fn fn, void *arg);

struct deltafs_stat {
    uint32_t version; /* of the format on disk */
    uint32_t partitions;
    const char *keys;   /* "u64" or "bytes" */
    uint64_t epochs;    /* committed ones */
    uint64_t records;   /* in them */
    uint64_t bytes_raw; /* keys (numbers: 8 bytes each) and values as handed to append */
    int64_t value_size; /* bytes of every value, or -1 if they differ */
    const char *schema; /* "" if there is none; owned by the handle */
    const char *uuid;   /* owned by the handle */
    int is_closed;      /* whether its writer closed it */
    const char *layout; /* where its records are: "partitioned" or "local", as the option of this name */
};

struct deltafs_epoch_stat {
    uint64_t label;
    uint64_t records;
    uint64_t bytes_raw;
    uint64_t bytes_stored; /* added to the logs by this epoch */
};

/* Facts about a directory opened for reading, as its manifest has them. */
DELTAFS_API int deltafs_stat(deltafs_dir *dir, struct deltafs_stat *out);
/* Bytes of all its files; asks the file system for the size of each. */
DELTAFS_API int deltafs_bytes_stored(deltafs_dir *dir, uint64_t *out);
/* Facts about epoch number `i` (0 <= i < epochs), in label order. DELTAFS_ERR_INVALID beyond. */
DELTAFS_API int deltafs_epoch_stat(deltafs_dir *dir, uint64_t i, struct deltafs_epoch_stat *out);

/* File operations that this handle has made so far. */
struct deltafs_io_stat {
    uint64_t reads; /* read calls to the operating system */
    uint64_t bytes_read;
    uint64_t writes;
    uint64_t bytes_written;
};
DELTAFS_API int deltafs_io_stat(const deltafs_dir *dir, struct deltafs_io_stat *out);

/* Memory of a writing directory in this process: buffers, memtable, keys held for the index, messages. */
struct deltafs_memory_stat {
    uint64_t limit; /* bytes: the option `memory`, which is never exceeded */
    uint64_t used;  /* now */
    uint64_t peak;  /* at most so far */
};
DELTAFS_API int deltafs_memory_stat(deltafs_dir *dir, struct deltafs_memory_stat *out);

/* Called by deltafs_verify for each damage, as it is met, with a message: "FILE: damaged at offset N: ...", or where
 * something is wrong with all of a file or directory, "FILE: ...". */
typedef void (*deltafs_damage_fn)(int status, const char *message, void *arg);

struct deltafs_verify_counts {
    uint64_t records; /* read and found right */
    uint64_t blocks;
    uint64_t leaves;
    uint64_t damages;
};

/* Read everything that is committed and check it against its checksums, the index and the counts of the manifest. All
 * damages are reported to `fn` (may be NULL), not only the first. DELTAFS_ERR_DAMAGED (or the first other error) if
 * there are any; *out is set then too. */
DELTAFS_API int deltafs_verify(deltafs_dir *dir, deltafs_damage_fn fn, void *arg, struct deltafs_verify_counts *out);

/* Called by deltafs_repair for each thing that it finds, with a message: DELTAFS_OK, what has been done about it, or in
 * a dry run is to be done; DELTAFS_REPAIR_REMARK, something to know, about which nothing is done; or the status of what
 * cannot be repaired, or of what is lost. */
enum { DELTAFS_REPAIR_REMARK = 1 };
typedef void (*deltafs_repair_fn)(int status, const char *message, void *arg);

struct deltafs_repair_options {
    int dry_run;    /* only say what there is to do; changes nothing */
    int has_label;  /* an epoch whose commit is missing gets `label`, though its job may not have finished it; an error
                     * if there is none that can */
    uint64_t label; /* above the last committed one */
    int has_lease;  /* `lease` takes the place of the option lease */
    uint64_t lease;
    int has_drop_from;  /* epochs of which the logs have not all are given up, and those behind them */
    uint64_t drop_from; /* the label of the first that is; else it is an error */
};

/* Repair what a job that died has left, and damage where that is possible.
 *
 * An epoch that all processes had written, but whose line in the manifest is missing, is committed. Where it is not
 * known whether all had, it is committed only if `options` gives it a label. What has no commit is truncated, and the
 * directory is closed. A damaged index log is rebuilt from its data log if keys are bytes; numbers are in the index
 * alone. Records of damaged blocks are lost: reading their keys returns DELTAFS_ERR_DAMAGED. A damaged header, footer
 * or fence is restored if another place has all of its contents; so is a line of the manifest with one wrong byte. A
 * file that is replaced is kept as FILE.damaged, FILE.damaged.2, ...
 *
 * With sync=none or sync=close a power loss can take committed epochs. These and all later ones are dropped if
 * `options` names the first of them. A manifest that has lost lines of committed epochs at its end is refused. With a
 * label the first of these epochs gets its line again; with has_drop_from and any label above the last one they are
 * dropped.
 *
 * Returns DELTAFS_OK if all is sound afterwards, or in a dry run could be; otherwise the first error. DELTAFS_ERR_BUSY
 * as deltafs_reopen; a dry run only reports who is writing. If records are lost, all else is done and
 * DELTAFS_ERR_DAMAGED is returned. Damage that does not keep the directory from being opened is not searched for:
 * deltafs_verify does that. Of the environment's options only memory and lease apply. `options` and `fn` may be NULL.
 * The message is that of deltafs_errmsg(NULL). Not collective. */
DELTAFS_API int deltafs_repair(const char *path, const struct deltafs_repair_options *options, deltafs_repair_fn fn,
                               void *arg);

/* ---- The same, in the shape of files ---- */

/* Messages of these calls are those of deltafs_errmsg(NULL).
 *
 * A subfile is the concatenation of its records' values, epoch by epoch. Its name is its key's number in decimal, or in
 * hexadecimal after 0x; or, where keys are bytes, the key. */
typedef struct deltafs_file deltafs_file;

/* Open a subfile of an open directory: with `flags` O_WRONLY (or O_WRONLY | O_APPEND | O_CREAT, the same) on a writer,
 * with O_RDONLY on a reader. Opening for reading reads the whole subfile; DELTAFS_ERR_NOT_FOUND if it has no records.
 * The directory must stay open longer than the file. */
DELTAFS_API int deltafs_openat(deltafs_dir *dir, const char *name, int flags, deltafs_file **out);

/* Write at the end. The bytes written between open and close make one record, appended at the close. Returns `size`,
 * or a negative status; a write that fails spoils the epoch, as an append that fails does. */
DELTAFS_API ssize_t deltafs_write(deltafs_file *file, const void *bytes, size_t size);

/* Read on from where the last read ended. Returns the bytes read, 0 at the end, or a negative status. */
DELTAFS_API ssize_t deltafs_read(deltafs_file *file, void *bytes, size_t size);

/* Close and free the file. For a written one the status of its append. */
DELTAFS_API int deltafs_file_close(deltafs_file *file);

#ifdef __cplusplus
}
#endif
#endif
