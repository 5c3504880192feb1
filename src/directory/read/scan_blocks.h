/* Scans of whole blocks, for directories whose data logs have values of one size. */
#ifndef DELTAFS_DIRECTORY_SCAN_BLOCKS_H
#define DELTAFS_DIRECTORY_SCAN_BLOCKS_H

#include "directory/read/gather.h"
#include "directory/read/scan.h"

/* A call that returns another status than DELTAFS_OK ends the scan, but DELTAFS_ERR_DAMAGED of `look` leaves out only
 * the block. */
struct scan_look {
    int needs_keys;
    /* Called before all others, if the epoch's segments, so many, can be read. */
    void (*begin)(void *arg, uint32_t segments);
    /* As in struct gather_look; `keys` only with needs_keys. */
    int (*look)(void *arg, struct block *b, const uint8_t *keys, const uint32_t **marks, struct error *e);
    /* A record whose mark is not 0, in the order of keys. */
    int (*give)(void *arg, uint64_t key, uint32_t mark, struct error *e);
    /* The records of all blocks so far have been given: their marks can be used again. */
    int (*end)(void *arg, struct error *e);
    void *arg;
    struct damages *damages;
};

/* All records of one epoch that can be read; no compacted one. An error is one that is no damage. */
int part_look(struct reader *r, struct part_reader *p, uint32_t epoch, const struct scan_look *look, struct error *e);

#endif
