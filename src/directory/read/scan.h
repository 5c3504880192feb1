/* Scans: the records of an epoch's partition, all or those of a range of keys, in the order of their keys. */
#ifndef DELTAFS_DIRECTORY_SCAN_H
#define DELTAFS_DIRECTORY_SCAN_H

#include "directory/read/gather.h"

/* What could not be read, or is wrong: a scan goes on behind it. */
struct damages {
    deltafs_damage_fn fn; /* called for each; may be NULL */
    void *arg;
    uint64_t count;
    struct error first;
};
void damages_add(struct damages *d, const struct error *e);
/* The status at the end of a scan that went on behind them. */
int damages_status(const struct damages *d, struct error *e);

/* Where a scan hands its records, and what it has done. */
struct scan_to {
    deltafs_record_fn fn;
    void *arg;
    int stopped;                         /* what fn returned, if that was not 0 */
    struct deltafs_verify_counts counts; /* of what was read: all but damages */
};

/* All records of one epoch that can be read, by key, until to->fn stops. An error is one that is no damage (memory). */
int part_scan(struct reader *r, struct part_reader *p, uint32_t epoch, struct scan_to *to, struct damages *damages,
              struct error *e);

/* A scan of one segment, portion by portion. Zeroed, with the first four set, it can be begun; and again after that. */
struct scan {
    struct reader *reader;
    struct part_reader *part;
    struct scan_to *to;
    struct damages *damages;
    /* Of scan.c: */
    const struct segment *segment;
    uint64_t low, high;        /* keys, shortened as the segment's */
    uint32_t next, leaves_end; /* leaves that are still to be read */
    uint32_t at, end;          /* records of the open leaf that are still to be collected */
    struct window index_window;
    struct buffer leaf_bytes;
    struct leaf leaf;
    struct buffer keys;
    struct buffer runs;    /* struct scan_run: of the leaf */
    struct buffer refs;    /* struct ref: `note` is by how many bits keys are shortened */
    struct buffer records; /* struct ref_record */
    uint32_t ref_count;
    size_t record_count;
};

/* Scan the records of the segment with low <= key <= high. Only the leaves that can have such keys are read, and only
 * the blocks that have such records. */
void scan_begin(struct scan *s, const struct segment *segment, uint64_t low, uint64_t high);
/* Hand out the next records, at most `most`: as many as can be read; so there may be none although more follow. */
int scan_give_portion(struct scan *s, size_t most, struct error *e);
int scan_is_done(const struct scan *s);
void scan_fini(struct scan *s);
/* Bytes of a record of its epoch on average, at least 1. */
uint64_t scan_record_size(const struct scan *s);

#endif
