/* DeltaFS in C: storage for particle simulations, indexed by particle.
 *
 * A program writes as if every particle had a file of its own. It appends records (a particle's ID and its state) and
 * ends an epoch (one dump, one timestep). Afterwards any program can read all records of one particle, its trajectory,
 * with a few small reads. This header is the serial API: it writes from one process, and reads from any process.
 * deltafs_mpi.h adds writing from all ranks of an MPI job. deltafs(7) explains the concepts.
 *
 * Conventions
 *  1. A function that can fail returns a status: DELTAFS_OK (0) or a negative DELTAFS_ERR_*. It sets its outputs only
 *     on DELTAFS_OK, unless its comment says otherwise. deltafs_errmsg returns the message, which names the file, the
 *     offset and the cause.
 *  2. A key is an unsigned 64-bit number, such as the ID of a particle. In a directory that was created with the option
 *     keys=bytes, a key is a string of 1 to 255 bytes. A subfile is everything that was written for one key: the values
 *     of its records, epoch by epoch. A label is the number that the caller gives to an epoch, for example the
 *     timestep. It is an unsigned 64-bit number. Each label must be greater than the one before. Sizes, strides and
 *     offsets are in bytes.
 *  3. The library copies what it needs: the caller may free the arguments when the call returns. A function that
 *     creates an object names the function that frees it, and the caller must call that function. Every destroy and
 *     close function accepts NULL.
 *  4. Only one thread at a time may use a handle. Different handles are independent. No function is safe in a signal
 *     handler. The library starts no process, prints nothing and never exits. It starts threads of its own for a handle
 *     (see the options threads and read_threads); they end when the handle is closed. They do not call MPI, so every
 *     MPI thread level is enough (two exceptions, which deltafs_mpi.h has: the option progress=thread, and namespaces
 *     that ranks share).
 *  5. On a handle of deltafs_mpi_create or deltafs_mpi_reopen, deltafs_epoch_end, deltafs_epoch_wait, deltafs_close and
 *     deltafs_attribute_set (deltafs_query.h) are collective: all ranks call them and get the same status. All other
 *     functions are local.
 *  6. The library never returns bytes that do not match their checksum. It returns DELTAFS_ERR_DAMAGED instead.
 *  7. A struct that begins with struct_size may grow in later versions. The caller sets struct_size to sizeof of the
 *     struct before the call; the library reads and writes only that many bytes of it. If struct_size is 0, the call
 *     returns DELTAFS_ERR_INVALID.
 *  8. An epoch is committed when it has become part of the directory. Readers see committed epochs only.
 *     deltafs_epoch_end commits the epoch before it returns. With the option commit=async it returns earlier, and a
 *     later call commits the epoch: the next deltafs_epoch_end, deltafs_epoch_wait or deltafs_close.
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

/* The meaning of a number never changes. A number that is removed is never used for another status. */
enum deltafs_status {
    DELTAFS_OK = 0,

    /* The call itself. */
    DELTAFS_ERR_INVALID = -1,    /* an argument that the function does not accept */
    DELTAFS_ERR_OPTION = -2,     /* an unknown option, or a value that the option does not accept */
    DELTAFS_ERR_SCHEMA = -3,     /* a schema that cannot be parsed or does not fit */
    DELTAFS_ERR_SIZE = -4,       /* a value that does not have the directory's value size */
    DELTAFS_ERR_LABEL = -5,      /* a label that is not greater than the last one, or differs between ranks */
    DELTAFS_ERR_MODE = -6,       /* a write to a directory that is open for reading, or the reverse */
    DELTAFS_ERR_COLLECTIVE = -7, /* the ranks did not make the same collective call */
    DELTAFS_ERR_CANCELLED = -8,  /* the caller aborted the epoch, with deltafs_epoch_cancel */

    /* The directory, file, key or epoch of the call. */
    DELTAFS_ERR_NOT_FOUND = -20,   /* no such directory, key or epoch */
    DELTAFS_ERR_EXISTS = -21,      /* the directory to be created exists */
    DELTAFS_ERR_NOT_DELTAFS = -22, /* a folder or file that DeltaFS did not write */
    DELTAFS_ERR_UNCOMMITTED = -23, /* close discarded records appended after the last epoch end */
    DELTAFS_ERR_BUSY = -24,        /* another job is writing the directory */
    DELTAFS_ERR_CHANGED = -25,     /* an indexed file was changed or is gone, or an open directory was replaced */

    /* The system. */
    DELTAFS_ERR_MEMORY = -40,   /* no memory, or a memory limit that is too small for the work */
    DELTAFS_ERR_IO = -41,       /* the operating system refused or failed a file operation */
    DELTAFS_ERR_NO_SPACE = -42, /* the file system or the quota is full */

    /* What is on disk. */
    DELTAFS_ERR_DAMAGED = -60, /* bytes that do not match their checksum; the message names file and offset */
    DELTAFS_ERR_VERSION = -61, /* written by a newer version, in a form that this version cannot read */

    /* The job. */
    DELTAFS_ERR_MPI = -80, /* MPI failed, or a rank sent an invalid message */

    /* Names in a namespace (deltafs_namespace.h). */
    DELTAFS_ERR_NOT_FOLDER = -100, /* a part of the path, or what the call is for, is no folder */
    DELTAFS_ERR_FOLDER = -101,     /* it is a folder */
    DELTAFS_ERR_NOT_EMPTY = -102,  /* a folder that is to be removed or replaced has entries */
    DELTAFS_ERR_LOOP = -103,       /* too many symbolic links in a path, or one that must not be followed */
    DELTAFS_ERR_NAME = -104,       /* a name or a path that is too long */
    DELTAFS_ERR_TOO_LARGE = -105,  /* a file that would be larger than is possible */
    DELTAFS_ERR_CONFLICT = -106,   /* snapshots that have changed a path differently */
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

/* `size` bytes of a file (deltafs_logical.h, deltafs_pool.h) from `offset` on. */
struct deltafs_extent {
    uint64_t offset;
    uint64_t size;
};

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
 * and the option does not change. DELTAFS_ERR_SCHEMA for a bad schema, also one with the fields key and value.key, or
 * epoch and value.epoch: the former are shown under the names of the latter. */
DELTAFS_API int deltafs_options_set(deltafs_options *options, const char *name, const char *value);

/* The partition of a key: a number from 0 to `partitions` - 1, which depends on nothing but the arguments. May be
 * called by several threads at once, and by threads of the library. */
typedef uint32_t (*deltafs_partition_fn)(uint64_t key, uint32_t partitions, void *arg);

/* Let a function of the caller choose the partition of each key. `name` is the function's name in the manifest: 1 to 31
 * letters, digits, '_', '-' and '.', but not the words of the option partitioner. Keys must be numbers. An append fails
 * if the function returns a number that is not below `partitions`.
 *
 * A directory that is created with these options keeps the name. To write to it again, a function of that name must be
 * given; with MPI, by each rank. A reader may give it. If it does not, it looks for a key in all partitions. The
 * function and `arg` must stay valid as long as the options and all directories that are opened with them.
 * DELTAFS_ERR_OPTION: the name is not valid. */
DELTAFS_API int deltafs_options_set_partitioner(deltafs_options *options, const char *name, deltafs_partition_fn fn,
                                                void *arg);

/* Get an option's text, which is valid until the option is set again. DELTAFS_ERR_OPTION for an unknown name. */
DELTAFS_API int deltafs_options_get(const deltafs_options *options, const char *name, const char **value);

/* Row `i` of the table of options, or NULL after the last. Constant; thread-safe. */
DELTAFS_API const struct deltafs_option_info *deltafs_option_at(size_t i);

/* ---- Schemas: the columns of a value ---- */

/* A schema is a text such as "x:f4,y:f4,cell:i4,tag:S8": pairs of name:type, separated by commas. The fields are packed
 * one after the other, little-endian. Types are NumPy's letters with a size in bytes: f4 f8 i1 i2 i4 i8 u1 u2 u4 u8, Sn
 * for text of n bytes, Vn for n bytes of anything. A '<' before the letter is accepted.
 *
 * An array "pos:3f4" is short for "pos_0:f4,pos_1:f4,pos_2:f4". The text may also be what NumPy prints for dtype.descr:
 * "[('id', '<u8'), ('pos', '<f4', (3,))]"; its unnamed padding becomes fields padding_0, padding_1 and so on.
 *
 * "ux:f4~1e-4" declares an error bound: a stored value of ux may be larger or smaller than the appended one by 1e-4,
 * and takes less storage for that. Each value is replaced by the nearest multiple of the largest power of two that
 * keeps the bound (2^-13 for 1e-4). Infinity and NaN stay as they are, and so do values that would become infinite.
 * Only f4 and f8 can have a bound. */
typedef struct deltafs_schema deltafs_schema;

struct deltafs_field {
    const char *name;
    char kind;       /* 'f', 'i', 'u', 'S' or 'V' */
    uint32_t size;   /* bytes */
    uint32_t offset; /* bytes from the start of the record */
    double bound;    /* by so much a stored value may differ from the appended one; 0: not at all */
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

/* Return the message of the last call that failed: on the handle `dir`, or, if `dir` is NULL, in the calling thread.
 * Use NULL after a create, open or close that failed, because then there is no handle. The result is never NULL. It is
 * valid until the next call fails, on the handle or in the thread. */
DELTAFS_API const char *deltafs_errmsg(const deltafs_dir *dir);

/* Create a directory at `path`, whose parent must exist, and open it for writing from this process alone. `options` may
 * be NULL for the defaults. Set the option schema or value_size if all values have the same size. DELTAFS_ERR_EXISTS if
 * there is anything at `path`. Close with deltafs_close. Not collective. */
DELTAFS_API int deltafs_create(const char *path, const deltafs_options *options, deltafs_dir **out);

/* Open an existing directory for writing. The next epoch follows the last committed one (deltafs_last_label). Any job
 * may have created the directory, serial or with any number of ranks, and may have ended in any way.
 *
 * This call deletes all data that the last job did not commit. That can be an epoch that the job had written
 * completely, but not committed; then deltafs_errmsg of the new handle (in an MPI job: on rank 0) says so afterwards.
 * To look before you reopen, call deltafs_repair with dry_run = 1: it lists what can be committed, and changes nothing.
 * deltafs_repair without dry_run then commits the epoch.
 *
 * Keys, partitions, layout, schema and value size of a directory cannot be changed. If `options` has other values for
 * them, the call returns DELTAFS_ERR_OPTION. The values may also come from variables DELTAFS_NAME in the environment.
 * The directory keeps the error bounds of its schema, also if the given one has none.
 *
 * DELTAFS_ERR_DAMAGED: the manifest has lost the lines of committed epochs; nothing is deleted. DELTAFS_ERR_BUSY:
 * another process is writing the directory, or may be (see the option lease). DELTAFS_ERR_NOT_FOUND, _NOT_DELTAFS,
 * _VERSION: as for deltafs_open. Close with deltafs_close. Not collective. */
DELTAFS_API int deltafs_reopen(const char *path, const deltafs_options *options, deltafs_dir **out);

/* Get the label of the last epoch. The next label must be greater. For any handle. On a writer with commit=async this
 * can be an epoch that is not committed yet. DELTAFS_ERR_NOT_FOUND if there is no epoch. Not collective. */
DELTAFS_API int deltafs_last_label(deltafs_dir *dir, uint64_t *label);

/* Open a directory for reading. This needs no MPI and changes nothing on disk. The handle sees the epochs that are
 * committed now. DELTAFS_ERR_NOT_FOUND: there is no such directory. DELTAFS_ERR_NOT_DELTAFS: it is something else.
 * DELTAFS_ERR_VERSION: a newer version of DeltaFS wrote it. DELTAFS_ERR_DAMAGED: its manifest is damaged or incomplete.
 * If another directory replaces this one while it is open, as a compaction of an index does, calls that read return
 * what this one has, or DELTAFS_ERR_CHANGED: then open it again. Close with deltafs_close. */
DELTAFS_API int deltafs_open(const char *path, const deltafs_options *options, deltafs_dir **out);

/* Add the epochs that were committed after the handle was opened. The handle must be open for reading. Texts that
 * deltafs_stat returned become invalid. After an error the handle sees the same epochs as before. The errors are those
 * of deltafs_open. DELTAFS_ERR_CHANGED: another directory is at this path now. DELTAFS_ERR_MODE: an iterator
 * (deltafs_iter_open) is open. Not collective. */
DELTAFS_API int deltafs_refresh(deltafs_dir *dir);

/* Close and free the handle. The handle is freed even if the call returns an error. If records were appended after the
 * last epoch end, the call discards them and returns DELTAFS_ERR_UNCOMMITTED. With commit=async, the call first commits
 * the last epoch. Epochs that were committed before are safe, whatever the call returns. If several things fail, the
 * first error is returned. Collective in a job. */
DELTAFS_API int deltafs_close(deltafs_dir *dir);

/* Append one record to the subfile of `key` in the current epoch. If the directory has a value size, `size` must be
 * equal to it (DELTAFS_ERR_SIZE). If one process appends several records to the same key in one epoch, they keep their
 * order. The order of records that different ranks append to the same key in one epoch is not defined.
 *
 * If an append fails, its epoch cannot be committed: deltafs_epoch_end returns the error, on all ranks. (With
 * commit=async, the call that commits the epoch returns it.) So it is enough to check the status of deltafs_epoch_end.
 *
 * This call is not collective, but it may wait until other ranks call DeltaFS. So between the first append of an epoch
 * (on any rank) and deltafs_epoch_end, do not wait for other ranks in another way: no barrier, no other collective MPI
 * call, no blocking send or receive. Otherwise the job can hang. */
DELTAFS_API int deltafs_append(deltafs_dir *dir, uint64_t key, const void *value, size_t size);

/* Append one record to a directory that was created with keys=bytes. A key has 1 to 255 bytes of any kind
 * (DELTAFS_ERR_INVALID). Key and value together must be smaller than 1 MiB (DELTAFS_ERR_SIZE). If the keys of the
 * directory are numbers, the call returns DELTAFS_ERR_MODE. deltafs_append returns the same status if keys are bytes.
 */
DELTAFS_API int deltafs_append_bytes(deltafs_dir *dir, const void *key, size_t key_size, const void *value,
                                     size_t size);

/* Append `n` records. The key of record i is the uint64_t at the address keys + i * key_stride, in the byte order of
 * the machine. Its value is the `size` bytes at values + i * value_stride. Keys and values need no alignment, and a
 * stride can be any number of bytes: so keys and values can be members of an array of structs. With a schema, a value
 * consists of its fields in little-endian order, without padding. One call for a whole dump is the fastest way to
 * write. */
DELTAFS_API int deltafs_append_many(deltafs_dir *dir, size_t n, const void *keys, size_t key_stride, const void *values,
                                    size_t value_stride, size_t size);

/* Abort the current epoch, for example because the program cannot read an input file. The caller must still call
 * deltafs_epoch_end: on all ranks it discards the epoch and returns DELTAFS_ERR_CANCELLED with the text `why`. (With
 * commit=async, the call that would commit the epoch does this.) One rank can abort the epoch of all ranks. Not
 * collective. */
DELTAFS_API int deltafs_epoch_cancel(deltafs_dir *dir, const char *why);

/* End the current epoch, give it `label` and commit it. Collective in a job.
 *
 * DELTAFS_OK: the records of all ranks are sorted, indexed, written and committed. They survive if the job dies. They
 * also survive a power failure with the option sync=commit (the default). With sync=close that is so only after
 * deltafs_close, and with sync=none not even then.
 *
 * DELTAFS_ERR_LABEL: the label is not greater than the last one, or differs between ranks. All records of the epoch are
 * discarded, on all ranks; the message has their number. (With commit=async, the call commits the epoch before first,
 * and returns the error of that if there is one.) The option old_label, of create and reopen, changes this:
 *  - old_label=keep: the records stay in the open epoch. Call the function again with a valid label.
 *  - old_label=skip: if the label is already committed, the records are discarded, and the call returns DELTAFS_OK.
 *    So a program that restarts from an earlier step may end epochs again that are committed already.
 *
 * Any other error: all records of the epoch are discarded, on all ranks. Earlier epochs do not change. The next append
 * begins an empty epoch. (In rare cases it is not known whether the epoch was committed; then the message says so, and
 * the handle accepts no more epochs.)
 *
 * With commit=async the call returns while the library still writes the epoch, so that the program can compute
 * meanwhile. DELTAFS_OK then does not mean that the epoch is safe: the next deltafs_epoch_end, deltafs_epoch_wait or
 * deltafs_close commits the epoch, and returns the error of this epoch if there was one, also an error of an append or
 * of deltafs_epoch_cancel. The message has the label. That call discards the epoch, and all records that were appended
 * after it. To lose no later records, call the functions in this order, on all ranks: append, deltafs_epoch_end,
 * compute the next timesteps, deltafs_epoch_wait, append, deltafs_epoch_end, and so on; deltafs_close at the end. */
DELTAFS_API int deltafs_epoch_end(deltafs_dir *dir, uint64_t label);

/* With commit=async: wait until the last epoch that was ended is committed. The status is the one that
 * deltafs_epoch_end would have returned without commit=async. DELTAFS_OK if there is nothing to wait for. Collective in
 * a job. */
DELTAFS_API int deltafs_epoch_wait(deltafs_dir *dir);

/* ---- Reading ---- */

/* The epochs whose label is at least `first` and at most `last`. A NULL pointer to a range means all epochs. */
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

/* The records of one key, in the order of their epochs; within an epoch in the order of the appends. The library owns
 * everything that the struct points to. deltafs_records_destroy frees it all. */
typedef struct deltafs_records deltafs_records;
struct deltafs_records {
    size_t count;
    const struct deltafs_record *record;
    size_t missing_count;    /* epochs that could not be read; 0 if the answer is complete */
    const uint64_t *missing; /* their labels */
};
DELTAFS_API void deltafs_records_destroy(deltafs_records *records);

/* Get all records of `key` in the range. Free *out with deltafs_records_destroy.
 *
 * DELTAFS_ERR_NOT_FOUND: there are none, and *out is NULL. DELTAFS_ERR_DAMAGED or DELTAFS_ERR_IO: some epochs could not
 * be read. Then *out has the records of the other epochs and the labels of the missing ones, and the message names the
 * first damage. *out is NULL if nothing could be read. */
DELTAFS_API int deltafs_get(deltafs_dir *dir, uint64_t key, const struct deltafs_range *range, deltafs_records **out);

/* Get the records of `n` keys. out[i] gets those of keys[i], or NULL if that key has no records. The status is the
 * first DELTAFS_ERR_DAMAGED or DELTAFS_ERR_IO; `out` then has what could be read. If there is none, the status is
 * DELTAFS_ERR_NOT_FOUND if any key was not found. Free each out[i] with deltafs_records_destroy, also after an error.
 */
DELTAFS_API int deltafs_get_many(deltafs_dir *dir, size_t n, const uint64_t *keys, const struct deltafs_range *range,
                                 deltafs_records **out);

/* The same two calls for a directory with keys=bytes. DELTAFS_ERR_MODE if the keys of the directory are numbers. */
DELTAFS_API int deltafs_get_bytes(deltafs_dir *dir, const void *key, size_t key_size, const struct deltafs_range *range,
                                  deltafs_records **out);
DELTAFS_API int deltafs_get_many_bytes(deltafs_dir *dir, size_t n, const void *const *keys, const size_t *key_sizes,
                                       const struct deltafs_range *range, deltafs_records **out);

/* The library calls this function for each record of a scan. The record is valid until the function returns. If the
 * function returns a value other than 0, the scan stops. The function must not read from the same handle
 * (DELTAFS_ERR_MODE). */
typedef int (*deltafs_record_fn)(const struct deltafs_record *record, void *arg);

/* Call `fn` for every record in the range. The order is by partition, then by epoch, then by key (with keys=bytes: by
 * the hash of the key). If the keys of an epoch did not fit into the memory of the writer, the epoch has several parts
 * in a partition. Then the keys increase within each part only.
 *
 * If `fn` returns a value other than 0, the scan stops, *stopped gets that value, and the status is DELTAFS_OK.
 * Otherwise *stopped is 0. `stopped` may be NULL. Damage does not stop a scan: the scan continues with all records that
 * can be read, and at its end returns the first DELTAFS_ERR_DAMAGED or DELTAFS_ERR_IO. */
DELTAFS_API int deltafs_scan(deltafs_dir *dir, const struct deltafs_range *range, deltafs_record_fn fn, void *arg,
                             int *stopped);

/* Scan one partition, from 0 to partitions - 1 (see deltafs_stat). So several processes can share a scan. */
DELTAFS_API int deltafs_scan_partition(deltafs_dir *dir, uint32_t partition, const struct deltafs_range *range,
                                       deltafs_record_fn fn, void *arg, int *stopped);

/* Call `fn` for every record with low <= key <= high in the epochs of the range. The order is by epoch, then by key,
 * whatever the partition; records of one key are in the order of deltafs_get. If low > high there are none.
 *
 * The call reads only the parts of the index and the blocks that have such keys: a narrow range is read quickly. A
 * whole directory is read faster by deltafs_scan, which needs no order. For each partition the call holds some records
 * in memory, together about half of the option memory (auto: of 64 MiB), plus up to 100 KB and one record for each
 * partition; where values are far longer than their average, up to 48 MiB more.
 *
 * `stopped` and the errors are those of deltafs_scan. DELTAFS_ERR_MODE if keys are bytes. */
DELTAFS_API int deltafs_scan_range(deltafs_dir *dir, uint64_t low, uint64_t high, const struct deltafs_range *epochs,
                                   deltafs_record_fn fn, void *arg, int *stopped);

/* The same for keys that are bytes, in the order of memcmp. `low` or `high` NULL: no such end. These keys are stored by
 * their hashes, not in their order: so the call reads whole epochs, once for each quarter of the option memory that the
 * records of the range take. DELTAFS_ERR_MODE if keys are numbers. */
DELTAFS_API int deltafs_scan_range_bytes(deltafs_dir *dir, const void *low, size_t low_size, const void *high,
                                         size_t high_size, const struct deltafs_range *epochs, deltafs_record_fn fn,
                                         void *arg, int *stopped);

/* The same records one at a time. Between the calls, `dir` can be used for everything except deltafs_refresh
 * (DELTAFS_ERR_MODE). Close the iterator before `dir`, with deltafs_iter_close. */
typedef struct deltafs_iter deltafs_iter;
DELTAFS_API int deltafs_iter_open(deltafs_dir *dir, uint64_t low, uint64_t high, const struct deltafs_range *epochs,
                                  deltafs_iter **out);
DELTAFS_API int deltafs_iter_open_bytes(deltafs_dir *dir, const void *low, size_t low_size, const void *high,
                                        size_t high_size, const struct deltafs_range *epochs, deltafs_iter **out);
/* Get the next record, which is valid until the next call. At the end *record is NULL, and the status is DELTAFS_OK, or
 * the first DELTAFS_ERR_DAMAGED or DELTAFS_ERR_IO if some records could not be read. */
DELTAFS_API int deltafs_iter_next(deltafs_iter *iter, const struct deltafs_record **record);
/* Free the iterator; NULL is fine. Can be called at any time. */
DELTAFS_API int deltafs_iter_close(deltafs_iter *iter);

/* Arrays of the caller. Element i of an array is at its address + i * its stride, as for deltafs_append_many. An array
 * that is NULL is not filled. */
struct deltafs_arrays {
    size_t struct_size; /* see convention 7 */
    size_t capacity;    /* elements that each array has room for */
    void *keys;         /* a uint64_t per element, in the byte order of the machine */
    size_t key_stride;
    void *labels; /* the same */
    size_t label_stride;
    void *values; /* deltafs_stat.value_size bytes per element */
    size_t value_stride;
};

/* Scan into arrays: the reverse of deltafs_append_many, and faster than a call of a function for each record. Scans all
 * partitions, or, if `partition` is not NULL, that one. *count gets the number of records in the range, also after
 * DELTAFS_ERR_DAMAGED and DELTAFS_ERR_IO; it is then the number of those that can be read. If it is more than the
 * capacity, the arrays have the first ones only. The order and the errors are those of deltafs_scan.
 * DELTAFS_ERR_MODE if keys are bytes, or if values have different sizes. */
DELTAFS_API int deltafs_scan_many(deltafs_dir *dir, const uint32_t *partition, const struct deltafs_range *range,
                                  const struct deltafs_arrays *to, size_t *count);
/* The same for the records of deltafs_scan_range, in its order. */
DELTAFS_API int deltafs_scan_range_many(deltafs_dir *dir, uint64_t low, uint64_t high,
                                        const struct deltafs_range *epochs, const struct deltafs_arrays *to,
                                        size_t *count);

struct deltafs_stat {
    size_t struct_size; /* see convention 7 */
    uint32_t version;   /* of the format on disk */
    uint32_t partitions;
    const char *keys;        /* "u64" or "bytes" */
    uint64_t epochs;         /* committed epochs */
    uint64_t records;        /* in them */
    uint64_t bytes_raw;      /* of keys (8 bytes for a number) and values, as they were appended */
    int64_t value_size;      /* bytes of every value, or -1 if sizes differ */
    const char *schema;      /* "" if there is none; owned by the handle */
    const char *uuid;        /* owned by the handle */
    int is_closed;           /* whether its writer closed it */
    const char *layout;      /* "partitioned" or "local", as the option layout */
    size_t attributes;       /* as many as deltafs_attribute_at has (deltafs_query.h) */
    uint64_t compacted;      /* so many epochs, the first ones, are stored together (deltafs_compact) */
    const char *partitioner; /* "hash", "range", or the name of the caller's; owned by the handle */
};

struct deltafs_epoch_stat {
    size_t struct_size;
    uint64_t label;
    uint64_t records;
    uint64_t bytes_raw;
    uint64_t bytes_stored; /* added to the logs by this epoch */
};

/* Get the properties of a directory that is open for reading. Reads nothing. */
DELTAFS_API int deltafs_stat(deltafs_dir *dir, struct deltafs_stat *out);
/* Get the size of all its files, in bytes. Asks the file system for the size of each file. */
DELTAFS_API int deltafs_bytes_stored(deltafs_dir *dir, uint64_t *out);
/* Get the properties of epoch number `i`, from 0 to epochs - 1, in the order of labels. DELTAFS_ERR_INVALID if there is
 * no such epoch. */
DELTAFS_API int deltafs_epoch_stat(deltafs_dir *dir, uint64_t i, struct deltafs_epoch_stat *out);
/* Get how evenly the records of each epoch are distributed over the partitions: those of the largest partition, divided
 * by the mean; 0 for an epoch without records. `balance` has room for as many numbers as there are epochs. Compacted
 * epochs are counted together. Reads the ends of all index logs. */
DELTAFS_API int deltafs_balance(deltafs_dir *dir, double *balance);

/* How many file operations a handle has made so far. Another thread may ask while a call works on the handle. */
struct deltafs_io_stat {
    size_t struct_size;
    uint64_t reads; /* read calls to the operating system */
    uint64_t bytes_read;
    uint64_t writes;
    uint64_t bytes_written;
};
DELTAFS_API int deltafs_io_stat(const deltafs_dir *dir, struct deltafs_io_stat *out);

/* Memory that a writer uses in this process, in bytes: records before they are sorted and written (memtables), the keys
 * of the index, buffers and messages. */
struct deltafs_memory_stat {
    size_t struct_size;
    uint64_t limit; /* the option memory; `used` is never more */
    uint64_t used;  /* now */
    uint64_t peak;  /* the most so far */
};
DELTAFS_API int deltafs_memory_stat(deltafs_dir *dir, struct deltafs_memory_stat *out);

/* A verify function calls this function for each damaged place. The message is "FILE: damaged at offset N: ...", or
 * "FILE: ..." if the whole file or directory is concerned. */
typedef void (*deltafs_damage_fn)(int status, const char *message, void *arg);

/* What a verify function has read and found correct, and how many damaged places it has found. */
struct deltafs_verify_counts {
    size_t struct_size;
    uint64_t records; /* of a directory, or rows of an index's files */
    uint64_t bytes;   /* of a directory's values, or of a logical file's logs and indexes */
    uint64_t blocks;  /* of the data logs; a block has the values of some keys */
    uint64_t leaves;  /* of the index logs; a leaf has the places of some keys */
    uint64_t damages; /* damaged places: calls of the damage function */
};

/* Read everything that is committed, and check it against the checksums, the index and the number of records in the
 * manifest. `fn` is called for each damaged place. DELTAFS_ERR_DAMAGED if there is damage, or the first other error;
 * *out is set then too. `fn` and `out` may be NULL. */
DELTAFS_API int deltafs_verify(deltafs_dir *dir, deltafs_damage_fn fn, void *arg, struct deltafs_verify_counts *out);

/* A repair function calls this function for each thing that it finds. DELTAFS_OK: it was repaired (in a dry run: it can
 * be repaired). DELTAFS_REPAIR_REMARK: it needs no repair. An error: it cannot be repaired, or is lost. */
enum { DELTAFS_REPAIR_REMARK = 1 };
typedef void (*deltafs_repair_fn)(int status, const char *message, void *arg);

struct deltafs_repair_options {
    size_t struct_size;
    int dry_run;        /* report only, change nothing */
    int has_label;      /* directories only: `label` is set */
    uint64_t label;     /* commit an epoch with this label, see below; it must be above the last committed label */
    int has_lease;      /* `lease` is set, and replaces the option lease */
    uint64_t lease;     /* seconds */
    int has_drop_from;  /* directories only: `drop_from` is set */
    uint64_t drop_from; /* discard committed epochs from this label on, see below */
};

/* Repair a directory. To look first, set dry_run. Not collective.
 *
 * After a job died, an epoch may be written but not committed. Repair decides about it as follows, deletes all other
 * data that was not committed, and closes the directory.
 *  - If all processes had finished the epoch and the job recorded that, repair commits it.
 *  - If all log files have the epoch, but the job did not record that, you have two choices. Set `label` to commit the
 *    epoch: it may lack records that a process had not sent. Or set no label: repair deletes the epoch. If `label` is
 *    set and there is no such epoch, the call returns an error and deletes nothing.
 *
 * After damage, repair restores what is stored in a second place:
 *  - A damaged manifest is restored from its copy.
 *  - A damaged header or footer of a log is restored if its contents are also stored elsewhere.
 *  - With keys=bytes and layout=partitioned, a damaged index log is rebuilt from its data log. Otherwise that is not
 *    possible, because the data log does not have the keys.
 *  - Records in damaged blocks are lost. Reading their keys returns DELTAFS_ERR_DAMAGED.
 *
 * A file that is replaced is saved as FILE.damaged, FILE.damaged.2, ... Repair looks only for damage that prevents the
 * directory from being opened. deltafs_verify looks for all damage.
 *
 * After a power failure, committed epochs may be incomplete if the option sync was close or none. Repair reports the
 * first of them. You have two choices. Restore a copy of the directory. Or set `drop_from` to the label of this epoch:
 * repair discards it and all later epochs. Any other label is an error (but with layout=local, repair does not look for
 * incomplete values: deltafs_verify names the epoch, and any label is accepted).
 *
 * The manifest and its copy may both have lost the lines of the last committed epochs. Repair then changes nothing and
 * returns an error. You have three choices. Restore a copy of the manifest. Or set `label` to the label that the first
 * of these epochs had, and repeat that for each. Or set `drop_from` to any label above the last one that is left:
 * repair discards all of these epochs.
 *
 * DELTAFS_OK: the directory has no such fault any more (in a dry run: it would have none). DELTAFS_ERR_DAMAGED: some
 * records are lost, but everything else was repaired; or nothing could be repaired, as the message says. Every later
 * repair reports the loss again. DELTAFS_ERR_BUSY: as for deltafs_reopen; a dry run reports a writer as a remark
 * instead. Of the options in the environment, only memory and lease have an effect. `options` and `fn` may be NULL. */
DELTAFS_API int deltafs_repair(const char *path, const struct deltafs_repair_options *options, deltafs_repair_fn fn,
                               void *arg);

/* ---- Removing, renaming ---- */

/* Remove a directory, or an index, with what it has on volumes; also a damaged one. First it gets a hidden name beside
 * its own; if the call fails later, the message has this name, and the call can be repeated with it. Nothing is removed
 * if there is a file that is not the directory's (DELTAFS_ERR_NOT_DELTAFS, as for a symbolic link), or if a job is
 * writing it or an index by value of it, or may be (DELTAFS_ERR_BUSY; see the option lease). Readers that have it open
 * get errors. Not collective. */
DELTAFS_API int deltafs_remove(const char *path);

/* Rename a directory within a file system. An empty folder at `to` is replaced. What is on volumes stays there.
 * DELTAFS_ERR_BUSY: a job is writing it, or may be. DELTAFS_ERR_MODE: it is an index, which finds its files from where
 * it is. DELTAFS_ERR_IO: the system's error, also if `to` exists or is on another file system. Not collective. */
DELTAFS_API int deltafs_rename(const char *from, const char *to);

/* ---- Compacting ---- */

struct deltafs_compact_options {
    size_t struct_size;
    const struct deltafs_range *range; /* the labels of the epochs that are compacted; NULL: all */
    const deltafs_options *options;    /* of the new directory: memory, threads, codec, block, sync, volumes, lease;
                                          NULL: those of the environment */
    /* Called now and then, and at the end, with the number of records that this process has compacted since the last
     * call. If it returns a value other than 0, the compaction ends with DELTAFS_ERR_CANCELLED. May be NULL. */
    int (*progress)(uint64_t records, void *arg);
    void *arg;
};

/* Write the epochs of the directory `from` to a new directory `to`, in which all records of a key are side by side, in
 * the order of epochs. Getting a key then takes the same few reads for any number of epochs. Everything that reads sees
 * the same epochs, labels and records as before. But a scan of one epoch reads the records of all compacted epochs, and
 * a scan of more epochs than fit into memory reads them several times. Later epochs can be appended to `to` as to any
 * directory; they are stored one by one.
 *
 * `to` has the keys, partitions, values and attributes of `from`, and layout=partitioned; `from` stays as it is. The
 * call takes about the option memory (auto: 256 MiB), and the index of one partition. `options` may be NULL.
 *
 * DELTAFS_ERR_EXISTS if there is anything at `to`. DELTAFS_ERR_NOT_FOUND: no epoch is in the range. DELTAFS_ERR_MODE:
 * `from` is an index. DELTAFS_ERR_DAMAGED if any record cannot be read. After an error there is nothing at `to`. After
 * a crash there may be an incomplete directory, which cannot be opened; deltafs_remove removes it. Not collective. */
DELTAFS_API int deltafs_compact(const char *from, const char *to, const struct deltafs_compact_options *options);

/* ---- Subfiles, with the calls of files ---- */

/* A subfile can be written and read with calls like those for files. Its bytes are the values of one key, one after the
 * other, epoch by epoch. Its name is the key: a number in decimal, or in hexadecimal after 0x; with keys=bytes, the
 * bytes of the key. */
typedef struct deltafs_file deltafs_file;

/* Open a subfile of an open directory. On a directory that is open for writing, `flags` is O_WRONLY (O_APPEND and
 * O_CREAT may be added and have no effect). On one that is open for reading, `flags` is O_RDONLY; the call then reads
 * the whole subfile, and returns DELTAFS_ERR_NOT_FOUND if it has no records. Close the file with deltafs_file_close
 * before you close the directory. */
DELTAFS_API int deltafs_openat(deltafs_dir *dir, const char *name, int flags, deltafs_file **out);

/* Write at the end of the subfile. All bytes that are written before deltafs_file_close become one record;
 * deltafs_file_close appends it. If a write fails, its epoch cannot be committed, as for deltafs_append. */
DELTAFS_API int deltafs_write(deltafs_file *file, const void *bytes, size_t size);

/* Read the next bytes of the subfile, up to `size`. *got is less than `size` only at the end of the subfile. */
DELTAFS_API int deltafs_read(deltafs_file *file, void *bytes, size_t size, size_t *got);

/* Close and free the file. Returns the status of the append if the file was written. */
DELTAFS_API int deltafs_file_close(deltafs_file *file);

#ifdef __cplusplus
}
#endif
#endif
