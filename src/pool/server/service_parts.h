/* The parts of pool_service.h, for its own files. */
#ifndef DELTAFS_POOL_SERVICE_PARTS_H
#define DELTAFS_POOL_SERVICE_PARTS_H

#include <stddef.h>
#include "base/error.h"
#include "pool/pool_protocol.h"

struct pool_service;
struct pool_store;

#define SERVICE_MODE_BITS 07777u

/* A request that is being served. */
struct service_call {
    struct pool_service *v;
    struct pool_store *store;
    const struct pool_request *r;
    char path[POOL_PATH_MAX + 1]; /* a copy: clients can change what they sent */
    size_t n;
    const char *after; /* behind the path's zero; a copy, too */
    size_t after_n;
    const void *in;
    void *out;
    struct pool_answer *answer;
};

int64_t service_now(void);

/* Before an entry is created: whether its folder is there, as far as this server knows. Returns an error,
 * POOL_NEEDS_FOLDER, or DELTAFS_OK. */
int service_folder_check(struct service_call *c, struct error *e);

/* Requests about names. */
int service_lookup(struct service_call *c, struct error *e);
int service_create(struct service_call *c, struct error *e);
int service_symlink(struct service_call *c, struct error *e);
int service_link(struct service_call *c, struct error *e);
int service_restore(struct service_call *c, struct error *e);
int service_unlink(struct service_call *c, struct error *e);
int service_remove(struct service_call *c, struct error *e);

#endif
