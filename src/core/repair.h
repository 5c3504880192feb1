/* What deltafs_repair does. */
#ifndef DELTAFS_CORE_REPAIR_H
#define DELTAFS_CORE_REPAIR_H

#include "store/manifest.h"

/* Make a partition's index log anew from its data log, beside the old one, for `epochs` epochs: the directory's keys
 * are bytes, which stand before the values. Takes at most `memory` bytes for them. Adds the records of each epoch to
 * records[number]. Of what is not committed, an epoch whose blocks are damaged is left out. */
int rebuild_index(struct io *io, const char *folder, const struct manifest *m, uint64_t epochs, uint32_t partition,
                  uint64_t memory, uint64_t *records, struct error *e);
/* Put it in the old one's place, which keeps another name; or remove it. */
int rebuild_adopt(struct io *io, const char *folder, uint32_t partition, struct error *e);
void rebuild_discard(struct io *io, const char *folder, uint32_t partition);

struct repair_how {
    uint64_t lease, memory;                   /* the options */
    int (*close)(void *ctx, struct error *e); /* open the directory to write, and close it */
    void *ctx;
};

/* As deltafs_repair. */
int repair_directory(const char *path, const struct deltafs_repair_wish *wish, const struct repair_how *how,
                     deltafs_repair_fn fn, void *arg, struct error *e);

#endif
