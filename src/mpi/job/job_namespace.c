/* Opening a namespace with all ranks of a communicator. Rank 0 opens it first, which may create it. In a private one
 * nothing more is done together; a shared one keeps the link between the ranks. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>
#include "mpi/job/job_call.h"
#include "mpi/job/namespace_link.h"
#include "namespace/registry.h"

#define MEMORY_MIN   (40u << 20) /* of a shared namespace */
#define MEMORY_CACHE (4u << 20)  /* a part of it: for copies of others' names, and messages */

static int check_call(const struct namespace_link *l, const char *path, enum deltafs_namespace_mode mode,
                      deltafs_namespace *const *out, struct error *e)
{
    if (!out || (l->group.rank == 0 && (!path || !*path)) ||
        (mode != DELTAFS_NAMESPACE_PRIVATE && mode != DELTAFS_NAMESPACE_SHARED))
        return error_set(
            e, DELTAFS_ERR_INVALID,
            "deltafs_mpi_namespace_open: path, a mode of enum deltafs_namespace_mode and out must be given");
    return DELTAFS_OK;
}

/* A shared namespace has a store, with a part of the memory. */
static int store_options(deltafs_options *o, struct error *e)
{
    uint64_t memory = deltafs_private_options_number(o, OPTION_MEMORY);
    char text[32];

    if (memory == OPTION_AUTO)
        return DELTAFS_OK;
    if (memory < MEMORY_MIN)
        return error_set(e, DELTAFS_ERR_MEMORY,
                         "option memory: %llu bytes are too few for a namespace that is shared; give %u",
                         (unsigned long long)memory, MEMORY_MIN);
    snprintf(text, sizeof text, "%llu", (unsigned long long)(memory - MEMORY_CACHE));
    return error_of_call(deltafs_options_set(o, "memory", text), e);
}

/* Collective: rank 0 first, then the others. */
static int open_stores(struct rank_group *g, const char *path, int flags, const deltafs_options *o,
                       deltafs_namespace **out, struct error *e)
{
    if (g->rank == 0 && e->status == DELTAFS_OK)
        e->status = error_of_call(deltafs_namespace_open(path, flags, o, out), e);
    if (mpi_agree(g, e) != DELTAFS_OK)
        return e->status;
    if (g->rank != 0)
        e->status = error_of_call(deltafs_namespace_open(path, flags & ~(O_CREAT | O_EXCL), o, out), e);
    return mpi_agree(g, e);
}

/* Collective: the tables of all ranks, and the last stamp of any of them. */
static int exchange_tables(struct rank_group *g, const deltafs_namespace *store, uint64_t *last_stamp,
                           struct bytes *tables, struct error *e)
{
    uint64_t own = deltafs_private_namespace_table(store, last_stamp);
    int status = mpi_gather(g, &own, sizeof own, tables, e);

    return status == DELTAFS_OK ? mpi_reduce(g, last_stamp, 1, MPI_MAX, e) : status;
}

/* Collective: make a client for the store, which is closed if that fails. */
static int share_store(struct namespace_link *l, deltafs_namespace *store, deltafs_namespace **out, struct error *e)
{
    const struct collective group = mpi_group_collective(&l->group);
    struct bytes tables = {.used = 0};
    deltafs_namespace *client = NULL;
    uint64_t last_stamp;

    if (exchange_tables(&l->group, store, &last_stamp, &tables, e) == DELTAFS_OK) {
        e->status = deltafs_private_namespace_share(store, &group, &namespace_link_transport, l,
                                                    (uint64_t *)(void *)tables.buffer.bytes, last_stamp, &client, e);
        if (client)
            tables.buffer.bytes = NULL;
    }
    /* Other ranks may have begun already: only one of this rank's threads must answer them. */
    pthread_mutex_lock(&l->other.lock);
    if (e->status == DELTAFS_OK)
        namespace_link_start(l, client);
    mpi_agree(&l->group, e);
    pthread_mutex_unlock(&l->other.lock);
    free(tables.buffer.bytes);
    if (e->status == DELTAFS_OK)
        *out = client;
    else if (client)
        deltafs_private_namespace_unshare(client);
    else
        deltafs_namespace_close(store);
    return e->status;
}

static int open_all(struct namespace_link *l, const char *path, int flags, deltafs_options *o,
                    enum deltafs_namespace_mode mode, deltafs_namespace **out, int *is_shared, struct error *e)
{
    deltafs_namespace *store = NULL;

    *is_shared = mode == DELTAFS_NAMESPACE_SHARED && (flags & O_ACCMODE) == O_RDWR;
    if (*is_shared && e->status == DELTAFS_OK)
        store_options(o, e);
    if (open_stores(&l->group, path, flags, o, &store, e) != DELTAFS_OK) {
        deltafs_namespace_close(store);
        return e->status;
    }
    if (*is_shared)
        return share_store(l, store, out, e);
    *out = store;
    return DELTAFS_OK;
}

/* Collective: the call's arguments, which are those of rank 0. */
static int share_arguments(struct namespace_link *l, const char **path, int *flags, const deltafs_options *given,
                           deltafs_options **o, struct bytes *call, struct error *e)
{
    char *whole = NULL;

    if (e->status == DELTAFS_OK)
        e->status = error_of_call(deltafs_options_create(o), e);
    if (e->status == DELTAFS_OK && l->group.rank == 0 && given)
        deltafs_private_options_copy(*o, given, e);
    if (e->status == DELTAFS_OK && l->group.rank == 0 && !(whole = deltafs_private_registry_whole(*path)))
        error_no_memory(e, strlen(*path), "a path");
    const char *shared = whole;
    int status = job_call_share(&l->group, &shared, flags, *o, call, e);
    free(whole);
    if (l->group.rank != 0)
        *path = shared;
    return status;
}

int deltafs_mpi_namespace_open(MPI_Comm comm, const char *path, int flags, const deltafs_options *options,
                               enum deltafs_namespace_mode mode, deltafs_namespace **out)
{
    struct error *e = deltafs_private_thread_error(), own = {0};
    struct bytes call = {.used = 0};
    struct rank_group *group;
    deltafs_options *o = NULL;
    int is_shared = 0;

    if (mpi_group_create(comm, sizeof(struct namespace_link), namespace_link_wait, &group, e) != DELTAFS_OK)
        return e->status;
    struct namespace_link *l = (struct namespace_link *)(void *)group;
    own.status = DELTAFS_OK;
    if (check_call(l, path, mode, out, &own) == DELTAFS_OK)
        namespace_link_init(l, &own);
    int status = share_arguments(l, &path, &flags, options, &o, &call, &own);
    if (status == DELTAFS_OK)
        status = open_all(l, path, flags, o, mode, out, &is_shared, &own);
    deltafs_options_destroy(o);
    buffer_fini(&call.buffer);
    if (status != DELTAFS_OK || !is_shared)
        namespace_link_destroy(l);
    if (status != DELTAFS_OK)
        *e = own;
    return status;
}

int deltafs_mpi_namespace_barrier(deltafs_namespace *ns)
{
    return deltafs_private_namespace_barrier(ns);
}
