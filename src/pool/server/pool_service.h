/* What a server of a pool does for a request, by its own store alone. */
#ifndef DELTAFS_POOL_SERVICE_H
#define DELTAFS_POOL_SERVICE_H

#include "pool/server/pool_locks.h"
#include "pool/store/pool_store.h"

#define SERVICE_REMOVED 4096

struct pool_service {
    struct pool_store *store;
    struct pool_locks locks;
    uint64_t removed[SERVICE_REMOVED]; /* files that were removed lately, each at a place that its number says */
    uint32_t server, servers;
    uint64_t operations, clients;
    int is_stopping;
};

/* Create what every pool has: the root, on server 0. */
int pool_service_begin(struct pool_service *v, struct error *e);

/* Do what the request says. `in` has its bytes; `out` has room for POOL_SLOT_BYTES and may be the same memory. The
 * request is not trusted. `answer->bytes` are in `out`. */
void pool_service_do(struct pool_service *v, const struct pool_request *r, const void *in, void *out,
                     struct pool_answer *answer);

/* Make an answer of an error: its message goes along. */
void pool_answer_error(const struct error *e, void *out, struct pool_answer *answer);

#endif
