/* The manifest: a container's text file of facts, one checksummed line each, appended to and never changed.
 *
 * It is made aside and renamed, so a container either has a whole one or none. A line at its end that was left
 * incomplete by a crash does not count; any other line that does not match its checksum is damage. */
#ifndef DELTAFS_DIRECTORY_MANIFEST_H
#define DELTAFS_DIRECTORY_MANIFEST_H

#include "base/options.h"
#include "base/uuid.h"
#include "directory/format/attribute.h"
#include "directory/format/partition.h"
#include "directory/format/strips.h"
#include "io/textlog.h"

struct manifest_epoch {
    uint64_t label;
    uint64_t records;
    uint64_t bytes_raw;
    uint64_t bytes_stored;
    uint32_t covers;     /* so many epochs before it have nothing that counts and is not in this one, too */
    uint32_t covered_by; /* the number of the first such epoch that covers it; 0: none */
};

/* A job that wrote a directory in which records stay with their writer, and its writers' value logs. */
struct manifest_job {
    uint64_t epochs;  /* there were, when it began */
    uint32_t first;   /* number of its first writer among those of all jobs */
    uint32_t writers; /* 1 or more */
    unsigned bits;    /* of a place: the number of the record in its block */
    uint64_t read;    /* bytes that hold most of its blocks */
    int is_closed;    /* by itself */
};

/* Pivots of a directory that is partitioned by ranges of keys. */
struct manifest_pivots {
    uint64_t epochs; /* they hold from this one on */
    uint64_t *key;   /* partitions - 1 */
};

struct manifest {
    uint8_t uuid[16];
    char uuid_text[UUID_TEXT_SIZE];
    enum option_keys keys;
    enum option_partitioner partitioner;
    char partitioner_name[PARTITIONER_NAME_ROOM]; /* of a caller's, */
    struct caller_partitioner caller;             /* which a reader may have */
    uint32_t partitions;
    int64_t value_size; /* -1: any */
    char *schema;       /* "" if there is none */
    int has_bounds;     /* the schema has error bounds, from a line of their own */
    struct strips strips;
    uint64_t epoch_count;
    struct manifest_epoch *epoch;
    size_t epoch_capacity;
    struct manifest_pivots *pivots;
    size_t pivots_count, pivots_capacity;
    uint32_t compacted;       /* so many epochs are stored together, in the first of them; 0: none */
    int is_index;             /* over files, which its file SOURCES names */
    int is_local;             /* records stay with their writers: */
    struct manifest_job *job; /* 1 or more */
    uint32_t job_count;
    int lacks_job; /* it was reopened by a job whose line is still missing */
    struct attributes attributes;
    int is_closed, was_closed; /* now, or ever */
    uint64_t tail_length;      /* bound of the index logs' tails, if closed */
    uint64_t size;             /* bytes of the file, a torn line at its end left out */
};

/* ---- Containers ---- */

/* Write a new container's manifest: uuid_text, keys, partitioner and its name, partitions, value_size, schema, strips,
 * compacted, the first pivots and the first job are used. `sync`: make it durable. */
int manifest_create(struct io *io, const char *folder, const struct manifest *m, int sync, struct error *e);
/* Append a line, at *size, which is moved behind it. */
int manifest_append_epoch(struct io_file *file, uint64_t *size, uint64_t number, const struct manifest_epoch *epoch,
                          int sync, struct error *e);
/* The pivots by which the epochs are placed whose lines follow. */
int manifest_append_pivots(struct io_file *file, uint64_t *size, const uint64_t *pivots, uint32_t n, int sync,
                           struct error *e);
/* That the container is open for writing again: what the last close line says of the index logs' ends holds no more. */
int manifest_append_open(struct io_file *file, uint64_t *size, uint64_t epochs, int sync, struct error *e);
/* Another job goes on with a directory in which records stay with their writer. */
int manifest_append_job(struct io_file *file, uint64_t *size, const struct manifest_job *job, int sync,
                        struct error *e);
int manifest_append_close(struct io_file *file, uint64_t *size, uint64_t epochs, uint64_t tail_length, int sync,
                          struct error *e);

/* Write the bytes from *copied to `size` of an open manifest to its copy, and move *copied to `size`. At 0 the copy is
 * created, or written again. The manifest's lines come first: a line that only the copy has is one that the manifest
 * has lost. `sync`: make the copy durable. */
int manifest_copy(struct io_file *manifest, uint64_t *copied, uint64_t size, int sync, struct error *e);

/* Parse the text of a manifest, which is changed. */
int manifest_parse(struct manifest *m, char *text, size_t n, const char *path, struct error *e);

int manifest_open(struct io *io, const char *folder, int flags, struct io_file *file, struct error *e);
/* Read and check a directory's manifest. DELTAFS_ERR_NOT_FOUND if there is no such folder, _NOT_DELTAFS if it has none,
 * or it is a logical file's; _DAMAGED also if its copy has a line that it has lost. */
int manifest_read(struct io *io, const char *folder, struct manifest *m, struct error *e);
/* The same for a repair: the message does not say that 'deltafs repair' helps. */
int manifest_read_to_repair(struct io *io, const char *folder, struct manifest *m, struct error *e);
/* DELTAFS_ERR_DAMAGED if it is of a compaction that did not end: nothing of one is synced before. */
int manifest_check_compacted(const struct manifest *m, const char *folder, struct error *e);
/* The same of one that is open; `m` is all zero, or to be freed. */
int manifest_read_file(struct io_file *file, struct manifest *m, struct error *e);
/* Whether an open manifest has an epoch with this label. It is not kept in memory. */
int manifest_find_label(struct io_file *file, uint64_t label, int *is_there, struct error *e);
/* What the manifest's first lines say, as far as they can be read, and none of its damages; `m` is all zero. */
void manifest_read_head(struct io *io, const char *folder, struct manifest *m);
/* DELTAFS_ERR_DAMAGED: it is an index that has epochs, and its file SOURCES is missing. */
int manifest_check_sources(struct io *io, const char *folder, const struct manifest *m, struct error *e);
void manifest_fini(struct manifest *m);

/* Before a directory is written to: that its buckets are its own (volume_check_bucket). */
int manifest_check_buckets(struct io *io, const char *folder, const struct manifest *m, struct error *e);

/* The first epoch from `epoch` on that none before `end` covers; `end` if there is no more. */
uint64_t manifest_uncovered(const struct manifest *m, uint64_t epoch, uint64_t end);
/* The job that wrote an epoch, of a manifest that has any; also of one more epoch than it has. */
const struct manifest_job *manifest_job_of(const struct manifest *m, uint64_t epoch);
/* How the records of an epoch are placed, also of one more epoch than the manifest has. *end, unless it is NULL, gets
 * the first later epoch that other pivots hold for, or UINT64_MAX. It refers to the manifest: to what is freed when
 * that ends, or when another line of pivots is read. */
struct partitioner manifest_partitioner(const struct manifest *m, uint64_t epoch, uint64_t *end);
/* How many writers all jobs had. */
uint32_t manifest_writers(const struct manifest *m);
/* Bytes of what the data logs have in a value's place, -1: any. */
int64_t manifest_stored_size(const struct manifest *m);

#endif
