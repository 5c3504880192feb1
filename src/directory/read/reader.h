/* The reader of a container: finds, scans and verifies what is committed. No MPI.
 *
 * A key's partition is known from its hash, or from the epoch's pivots; the partition's index log gives, for each
 * epoch, the segments with their fences (from the tail, in one read). In each segment one leaf can hold the key (read),
 * which gives the blocks of the data log that hold its records (read). */
#ifndef DELTAFS_DIRECTORY_READER_H
#define DELTAFS_DIRECTORY_READER_H

#include "directory/read/leaf_cache.h"
#include "io/fetch.h"
#include "directory/format/index.h"
#include "directory/format/manifest.h"

#define READER_OPEN_PARTS 32 /* partitions that are kept open, unless reader_keep is called */

/* One partition's files. */
struct part_reader {
    uint32_t partition;
    int is_open;
    uint64_t used; /* when, by the reader's clock */
    struct index_reader index;
    struct io_file data;
    uint64_t data_size;
    struct error tail; /* of a tail that is not right; DELTAFS_OK otherwise */
};

struct lookup_scratch;
struct gather;

struct reader {
    struct io io;
    char *path;
    struct manifest manifest;
    uint64_t clock;
    int is_scanning;    /* a scan's function is being called: the partition that it scans must stay open */
    uint32_t iterators; /* that are open: all partitions stay open */
    int skips_covered;  /* lookups, and scans by key, leave out epochs that another one of those asked for covers */
    struct team *team;
    struct lookup_scratch *scratch;
    struct leaf_cache *leaves;
    struct gather *gather;
    enum fetch_pace pace;     /* of the last leaves; or slow, as a guess, after a log took long to open */
    uint64_t cache;           /* bytes of them */
    uint64_t memory;          /* the option; OPTION_AUTO: auto */
    const uint8_t *wanted;    /* NULL, or for each byte of a stored value of one size whether it is needed */
    struct part_reader *part; /* those that are kept, in their own place if it is free */
    uint32_t part_count;
    struct part_reader own[READER_OPEN_PARTS];
};

/* Close the files of all partitions. */
void reader_close_parts(struct reader *r);
/* Keep `n` partitions in row open, for a caller that reads them again and again; this closes others that are open, if
 * they are more than before. If they are more than usual, a file takes a descriptor only while it is read. */
int reader_keep(struct reader *r, uint32_t n, struct error *e);

/* The part of the range in epoch numbers: *first <= number < *end. */
void reader_epochs(const struct reader *r, const struct deltafs_range *range, uint32_t *first, uint32_t *end);

/* The first epoch from `epoch` on that is to be read, of those before `end`; `end` if there is no more. */
uint32_t reader_next_epoch(const struct reader *r, uint32_t epoch, uint32_t end);

/* Another directory is at the path by now: sets *e to DELTAFS_ERR_CHANGED, and returns that. */
int reader_replaced(const struct reader *r, struct error *e);
/* After an error: reader_replaced, if that is so. Returns the status. */
int reader_explain(struct reader *r, int status, struct error *e);

/* The partition's files, open. Valid until the next call. */
int reader_part(struct reader *r, uint32_t partition, struct part_reader **out, struct error *e);

/* The segments of an epoch, as index_epoch, of which those of numbers have whole keys. */
int reader_epoch(struct reader *r, struct part_reader *p, uint32_t epoch, struct segment **first, uint32_t *count,
                 struct error *e);
int reader_malformed_leaf(struct part_reader *p, const struct segment *s, uint32_t leaf, struct error *e);

/* Bytes of a record, on average, of what is stored with an epoch; at least 1. */
uint64_t reader_record_size(const struct reader *r, uint32_t epoch);

/* What is stored, taken apart: key_bytes, key_size (0 if keys are numbers), value and size of the record. Returns 0, or
 * -1 if it is too short. */
int record_split(const struct reader *r, const uint8_t *stored, size_t size, struct deltafs_record *record);

/* Bytes of all files of the container. */
int reader_bytes_stored(struct reader *r, uint64_t *out, struct error *e);

#endif
