/* Scans: all records of an epoch's partition, in the order of their keys. */
#ifndef DELTAFS_DIRECTORY_SCAN_H
#define DELTAFS_DIRECTORY_SCAN_H

#include "directory/read/reader.h"

/* What a scan could not read: it goes on behind it. */
struct scan_damages {
    void (*report)(void *arg, const struct error *e); /* called for each; may be NULL */
    void *arg;
    uint64_t count;
    struct error first;
};
void scan_damage(struct scan_damages *damages, const struct error *e);

/* All records of one epoch that can be read, by key. `counts` gets leaves and blocks read. Returns what `fn` did, if
 * that was not 0, or an error that is no damage (memory). */
int part_scan(struct reader *r, struct part_reader *p, uint32_t epoch, deltafs_record_fn fn, void *arg,
              struct deltafs_verify_counts *counts, struct scan_damages *damages, struct error *e);

#endif
