/* Ordered scans: the records of a range of keys, epoch after epoch, and in each by key, whatever their partition; or
 * all by key, and those of one key by epoch. */
#ifndef DELTAFS_DIRECTORY_ORDERED_H
#define DELTAFS_DIRECTORY_ORDERED_H

#include "directory/read/scan.h"

struct stream;

/* A stream's number, and the key of its next record. */
struct heap_item {
    uint64_t key;
    size_t stream;
};

struct ordered {
    struct reader *reader;
    struct damages damages;
    uint64_t low, high;
    int is_by_key;       /* all epochs at the same time */
    uint32_t epoch, end; /* epochs that are still to be read */
    size_t limit;        /* bytes of the records that are held, about */
    uint8_t *is_lost;    /* of each partition: it cannot be opened, and that has been reported */
    struct stream *stream;
    size_t streams, streams_most; /* of the epochs that are read; and those that have memory */
    struct heap_item *heap;       /* the streams that have records, the least one's first */
    size_t heap_count;
    int is_given; /* the least record was handed out */
};

/* Bytes of records that ordered scans hold at a time, about. */
size_t ordered_limit(const struct reader *r);
/* Begin with a scan of the keys low <= key <= high; ordered_fini in any case. The reader keeps all its partitions. */
int ordered_init(struct ordered *o, struct reader *r, uint64_t low, uint64_t high, int is_by_key,
                 const struct deltafs_range *epochs, struct error *e);
/* The next record, valid until the next call; NULL at the end. Damage is counted, and is no error. */
int ordered_next(struct ordered *o, const struct deltafs_record **out, struct error *e);
/* Call `fn` for each record from the first one on. What it returns ends the scan, unless it is 0; *stopped, 0 before,
 * gets it. Otherwise damage is an error at the end. */
int ordered_each(struct ordered *o, deltafs_record_fn fn, void *arg, int *stopped, struct error *e);
/* Of a scan by key: whether no more records of the last one's key follow, as far as is known without reading on. */
int ordered_is_last_of_key(const struct ordered *o);
void ordered_fini(struct ordered *o);

#endif
