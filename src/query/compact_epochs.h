/* Compaction of a directory's epochs, by all ranks of a group. */
#ifndef DELTAFS_QUERY_COMPACT_EPOCHS_H
#define DELTAFS_QUERY_COMPACT_EPOCHS_H

#include "base/collective.h"
#include "base/private.h"

/* deltafs_compact by the ranks of `group`, which give the same arguments. */
DELTAFS_PRIVATE int deltafs_private_compact(const struct collective *group, const char *from, const char *to,
                                            const struct deltafs_compact_options *options, struct error *e);

#endif
