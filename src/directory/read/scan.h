/* Scans: all records of an epoch's partition, in the order of their keys. */
#ifndef DELTAFS_DIRECTORY_SCAN_H
#define DELTAFS_DIRECTORY_SCAN_H

#include "directory/read/reader.h"

/* What could not be read, or is wrong: a scan goes on behind it. */
struct damages {
    deltafs_damage_fn fn; /* called for each; may be NULL */
    void *arg;
    uint64_t count;
    struct error first;
};
void damages_add(struct damages *d, const struct error *e);

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

#endif
