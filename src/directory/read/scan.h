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
    int has_others; /* with other texts: what is read again is met again */
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

/* All records that are stored with an epoch and can be read, by key, until to->fn stops. The compacted epochs are
 * stored with the first of them; the records of a key are then in the order of epochs. An error is one that is no
 * damage (memory). */
int part_scan(struct reader *r, struct part_reader *p, uint32_t epoch, struct scan_to *to, struct damages *damages,
              struct error *e);

/* The same, but of the compacted epochs only those from `first` to `end` - 1; 0, 0: all. */
int part_scan_stored(struct reader *r, struct part_reader *p, uint32_t epoch, uint32_t first, uint32_t end,
                     struct scan_to *to, struct damages *damages, struct error *e);
/* The records of epochs `first` to `end` - 1 that can be read, epoch after epoch, and in each by key. */
int part_scan_epochs(struct reader *r, struct part_reader *p, uint32_t first, uint32_t end, struct scan_to *to,
                     struct damages *damages, struct error *e);

/* The epoch that the records of an epoch are stored with. */
static inline uint32_t scan_stored_epoch(const struct reader *r, uint32_t epoch)
{
    return epoch < r->manifest.compacted ? 0 : epoch;
}

/* A scan of one segment, portion by portion. Zeroed, with the first four set, it can be begun; and again after that. */
struct scan {
    struct reader *reader;
    struct part_reader *part;
    struct scan_to *to;
    struct damages *damages;
    uint32_t first_epoch, end_epoch; /* of a segment of compacted epochs: those that are wanted; 0, 0: all */
    /* Of scan.c: */
    uint32_t compacted; /* epochs that the segment has the records of; 0: its own only */
    struct leaf_epochs epochs;
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
    uint32_t begin_leaf, begin_at; /* where the portion began */
    size_t given;                  /* records of it, also those that could not be read */
};

/* Scan the records of the segment with low <= key <= high. Only the leaves that can have such keys are read, and only
 * the blocks that have such records. */
void scan_begin(struct scan *s, const struct segment *segment, uint64_t low, uint64_t high);
/* Hand out the next records, at most `most`: as many as can be read; so there may be none although more follow. */
int scan_give_portion(struct scan *s, size_t most, struct error *e);
/* After to->fn has stopped a portion: let the next one begin with the record at which it did. */
int scan_stay(struct scan *s, struct error *e);
int scan_is_done(const struct scan *s);
void scan_fini(struct scan *s);
/* Bytes of a record of its epoch on average, at least 1. */
uint64_t scan_record_size(const struct scan *s);

#endif
