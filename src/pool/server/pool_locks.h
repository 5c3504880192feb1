/* Locks of parts of files, in the server that has the files' attributes. A client holds them until it is gone. */
#ifndef DELTAFS_POOL_LOCKS_H
#define DELTAFS_POOL_LOCKS_H

#include "base/error.h"
#include "pool/pool_protocol.h"

#define POOL_LOCKS_MOST 10000 /* all are looked at for each request */

struct pool_range {
    uint64_t id; /* of the file */
    uint64_t client;
    uint64_t from, to;
    enum pool_lock lock;
    uint32_t process; /* of the client, for others */
};

struct pool_locks {
    struct pool_range *range;
    size_t count, capacity;
};

/* A lock of another client in this range that does not allow this one; NULL: there is none. */
const struct pool_range *pool_locks_other(const struct pool_locks *l, const struct pool_range *r);
/* What the client has in this range becomes what `r` says. DELTAFS_ERR_NO_SPACE: there are too many locks. */
int pool_locks_set(struct pool_locks *l, const struct pool_range *r, struct error *e);
/* A client is gone. */
void pool_locks_leave(struct pool_locks *l, uint64_t client);
/* A file is gone. */
void pool_locks_forget(struct pool_locks *l, uint64_t id);
void pool_locks_fini(struct pool_locks *l);

#endif
