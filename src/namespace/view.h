/* Views: whoever has a namespace open only for reading holds a lease there, so that nothing is removed that it may
 * read. A view of snapshots holds one in each of their namespaces. The lease (io/lease.h) is a file of its own,
 * VIEW.UUID, which gets this name when it is locked and has its line; before that it is .VIEW.UUID.
 *
 * A process that may not write into the folder of a namespace, or cannot for another reason, reads without a lease. */
#ifndef DELTAFS_NAMESPACE_VIEW_H
#define DELTAFS_NAMESPACE_VIEW_H

#include "io/lease.h"
#include "namespace/layers.h"

struct views {
    struct lease *lease; /* all zero: it could not be taken */
    size_t count;
};

/* Take a lease in the namespace at `path`, or, if that is NULL, in all namespaces of the layers; views_end in any case.
 * An error only without memory. What is read after this is not removed. */
int views_begin(struct views *v, struct io *io, const char *path, const struct layers *layers, struct error *e);
void views_end(struct views *v);
/* Whether all leases could be taken, and are locked. */
int views_are_sure(const struct views *v);

/* With the lease of the folder of a namespace: DELTAFS_ERR_BUSY if a view of it is open. Leases of processes that have
 * ended are removed; those of another host, whose locks are not visible here, count for `seconds`. */
int views_check(struct io *io, const char *path, uint64_t seconds, struct error *e);

/* The other way round: DELTAFS_ERR_BUSY if a collection has the lease of the folder, or may have it. */
int views_check_collection(struct io *io, const char *path, uint64_t seconds, struct error *e);

#endif
