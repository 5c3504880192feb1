/* Opening, committing and closing a namespace that ranks share, which all of them do together. */
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "namespace/shared.h"

#define MESSAGE_BYTES (64u << 10) /* room for most */

static void shared_destroy(struct shared *s)
{
    buffer_fini(&s->request.bytes.buffer);
    buffer_fini(&s->reply.bytes.buffer);
    buffer_fini(&s->moved.bytes.buffer);
    free(s->seen);
    free(s->own_seal);
    free(s->table);
    free(s->sorted);
    free(s);
}

static int client_init(deltafs_namespace *client, struct shared *s, struct error *e)
{
    const deltafs_namespace *store = s->store;

    *client = (deltafs_namespace){.error.text = "no error",
                                  .io = store->io,
                                  .path = strdup(store->path),
                                  .last_stamp = s->first_stamp,
                                  .root = store->root,
                                  .first_stamp = s->first_stamp,
                                  .tables = store->tables,
                                  .own = store->own,
                                  .recent = recent_of(store->recent.room),
                                  .shared = s,
                                  .uid = store->uid,
                                  .gid = store->gid};
    client->own.path = client->path;
    client->own.io = &client->io;
    client->own.dir = NULL;
    int status = client->path ? DELTAFS_OK : error_no_memory(e, strlen(store->path), "a path");
    if (status == DELTAFS_OK)
        status = name_table_init(&client->names, SHARED_CACHE_BYTES, e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->reply.bytes.buffer, MESSAGE_BYTES, "messages", e);
    if (status != DELTAFS_OK)
        return status;
    s->sorted = malloc(s->group.ranks * sizeof *s->sorted);
    if (!s->sorted)
        return error_no_memory(e, s->group.ranks * sizeof *s->sorted, "tables");
    memcpy(s->sorted, s->table, s->group.ranks * sizeof *s->sorted);
    qsort(s->sorted, s->group.ranks, sizeof *s->sorted, compare_u64);
    return DELTAFS_OK;
}

/* A list of a folder asks the owners of all parts, and what many ranks create in one folder at once is with so many
 * owners. So there are about twice the square root of the number of ranks. */
static uint32_t count_parts(uint32_t ranks)
{
    uint32_t parts = 1;

    while (parts < ranks && parts < SHARED_PARTS_MOST && parts * parts < 4 * (uint64_t)ranks)
        parts++;
    return parts;
}

/* What the client has from its store. */
static void client_return(deltafs_namespace *client)
{
    client->tables = (struct tables){.count = 0};
    client->own.options = NULL;
}

int deltafs_private_namespace_share(deltafs_namespace *store, const struct collective *group,
                                    const struct shared_transport *transport, void *ctx, uint64_t *table,
                                    uint64_t first_stamp, deltafs_namespace **out, struct error *e)
{
    /* A name of a merge may depend on others, which other ranks own. */
    if (store->has_resolver)
        return error_set(e, DELTAFS_ERR_MODE,
                         "%s: is on snapshots that were merged by the policy first or last, and cannot be shared; use "
                         "mode private, or merge them by newest",
                         store->path);
    int status = ns_end_journal(store, e); /* which may have bytes of files: these are the client's from now on */
    if (status != DELTAFS_OK)
        return status;
    struct shared *s = calloc(1, sizeof *s);
    deltafs_namespace *client = malloc(sizeof *client);

    if (!s || !client) {
        free(s);
        free(client);
        return error_no_memory(e, sizeof *s + sizeof *client, "a namespace");
    }
    *s = (struct shared){.store = store,
                         .client = client,
                         .transport = transport,
                         .ctx = ctx,
                         .group = *group,
                         .parts = count_parts(group->ranks),
                         .table = table,
                         .first_stamp = first_stamp};
    status = client_init(client, s, e);
    if (status != DELTAFS_OK) {
        client_return(client);
        ns_free(client, error_ignored());
        s->table = NULL;
        shared_destroy(s);
        return status;
    }
    store->own.has_journal = store->has_journals;
    store->first_stamp = store->last_stamp = first_stamp;
    store->job = s;
    *out = client;
    return DELTAFS_OK;
}

int shared_has_table(const struct shared *s, uint64_t number)
{
    return bsearch(&number, s->sorted, s->group.ranks, sizeof number, compare_u64) != NULL;
}

uint64_t deltafs_private_namespace_table(const deltafs_namespace *ns, uint64_t *last_stamp)
{
    *last_stamp = ns->last_stamp;
    return ns->own.number;
}

void deltafs_private_namespace_serve(deltafs_namespace *client, const struct bytes *request, struct bytes *reply)
{
    struct message m = {.bytes = *reply};

    shared_serve(client->shared, request, &m);
    *reply = m.bytes;
}

/* What all ranks call together. */
enum meeting { MEET_BARRIER, MEET_COMMIT, MEET_CLOSE };

/* Collective: whether all ranks have called the same. */
static int meet(struct shared *s, enum meeting what)
{
    uint64_t most[] = {what, MEET_CLOSE - what};
    int status = collective_max(&s->group, most, 2, &s->client->error);

    if (status == DELTAFS_OK && most[0] + most[1] != MEET_CLOSE)
        status = error_set(&s->client->error, DELTAFS_ERR_COLLECTIVE,
                           "%s: another rank called another collective function; all ranks must call "
                           "deltafs_namespace_commit, deltafs_namespace_close or deltafs_mpi_namespace_barrier",
                           s->client->path);
    return status;
}

int deltafs_private_namespace_barrier(deltafs_namespace *ns)
{
    int status = ns_begin(ns, "deltafs_mpi_namespace_barrier", 0);

    if (status != DELTAFS_OK)
        return status;
    if (!ns->shared)
        return ns_end(ns, error_set(&ns->error, DELTAFS_ERR_MODE, "%s: the namespace is not shared", ns->path));
    return ns_end(ns, meet(ns->shared, MEET_BARRIER));
}

/* Collective: an error of one rank is one of all. */
static int agree(struct shared *s, int status)
{
    if (status == DELTAFS_OK)
        s->client->error.status = DELTAFS_OK;
    return collective_agree(&s->group, &s->client->error);
}

/* Collective. */
static int commit_store(struct shared *s, enum commit_part part)
{
    int status = shared_commit_store(s, part);

    if (status != DELTAFS_OK)
        s->client->error = s->store->error;
    return agree(s, status);
}

/* All ranks are here. */
static int commit_together(deltafs_namespace *ns)
{
    struct shared *s = ns->shared;
    int status = ns_check_sound(ns);
    uint64_t has_moved;

    status = agree(s, status == DELTAFS_OK ? ns_flush_files(ns) : status);
    has_moved = (uint64_t)s->has_moved;
    if (status == DELTAFS_OK)
        status = agree(s, ns_commit_data(ns));
    if (status == DELTAFS_OK)
        status = collective_max(&s->group, &has_moved, 1, &ns->error);
    if (status == DELTAFS_OK && has_moved)
        status = commit_store(s, COMMIT_ADDED);
    if (status == DELTAFS_OK)
        status = commit_store(s, has_moved ? COMMIT_REMOVED : COMMIT_ALL);
    if (status == DELTAFS_OK)
        s->has_moved = 0;
    return ns_break(ns, status);
}

int shared_commit(deltafs_namespace *ns)
{
    int status = meet(ns->shared, MEET_COMMIT);

    return status == DELTAFS_OK ? commit_together(ns) : status;
}

/* Free both handles. *e has an error already if `status` is one; it gets the first. */
static void free_both(deltafs_namespace *client, int status, struct error *e)
{
    struct shared *s = client->shared;
    deltafs_namespace *store = s->store;

    client_return(client);
    shared_end_serving(s);
    status = error_first(status, ns_free(client, error_after(status, e)));
    status = error_first(status, ns_free(store, error_after(status, e)));
    shared_destroy(s);
    if (status == DELTAFS_OK)
        e->status = DELTAFS_OK;
}

void deltafs_private_namespace_unshare(deltafs_namespace *client)
{
    free_both(client, DELTAFS_OK, error_ignored());
}

int shared_close(deltafs_namespace *ns)
{
    const struct shared_transport *transport = ns->shared->transport;
    const struct collective group = ns->shared->group;
    void *ctx = ns->shared->ctx;
    struct error e = {0};

    transport->enter(ctx);
    while (meet(ns->shared, MEET_CLOSE) == DELTAFS_ERR_COLLECTIVE)
        ; /* others have got that error, and will close */
    int status = commit_together(ns);
    if (status != DELTAFS_OK)
        e = ns->error;
    free_both(ns, status, &e);
    status = collective_agree(&group, &e); /* all have closed their tables */
    transport->leave(ctx);
    transport->destroy(ctx);
    return error_of_thread(status, &e);
}
