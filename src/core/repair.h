/* What deltafs_repair does. */
#ifndef DELTAFS_CORE_REPAIR_H
#define DELTAFS_CORE_REPAIR_H

#include "store/manifest.h"

/* Make a partition's index log anew from its data log, beside the old one: the directory's keys are bytes, which stand
 * before the values. Adds the records of each epoch to records[number]. */
int rebuild_index(struct io *io, const char *folder, const struct manifest *m, uint32_t partition, uint64_t *records,
                  struct error *e);
/* Put it in the old one's place, which keeps another name. */
int rebuild_adopt(struct io *io, const char *folder, uint32_t partition, struct error *e);

/* As deltafs_repair; but nothing is closed yet, which is for whoever has opened the directory to write. */
int repair_directory(const char *path, const struct deltafs_repair_wish *wish, uint64_t lease, deltafs_repair_fn fn,
                     void *arg, struct error *e);

#endif
