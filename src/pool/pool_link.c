#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/memory.h"
#include "base/thread.h"
#include "pool/pool_link.h"

#define PATIENCE (UINT64_C(60) * 1000000000) /* for answers */

/* ---- Connecting ---- */

static void own_node(char node[POINT_NODE_ROOM])
{
    memset(node, 0, POINT_NODE_ROOM);
    gethostname(node, POINT_NODE_ROOM - 1);
}

/* Whether a server runs on this node, and can be connected to. */
static int is_beside(const struct pool_link *l, const char *node, uint32_t server)
{
    struct sockaddr_un address;

    return strcmp(pool_link_node(l, server), node) == 0 &&
           pool_point_socket(&l->point, server, &address, error_ignored()) == DELTAFS_OK &&
           access(address.sun_path, F_OK) == 0;
}

static int link_find_wires(struct pool_link *l, struct error *e)
{
    char node[POINT_NODE_ROOM];
    size_t n = 0, capacity = 0;
    int status = DELTAFS_OK;

    own_node(node);
    for (uint32_t i = 0; i < l->servers && status == DELTAFS_OK; i++) {
        if (!is_beside(l, node, i))
            continue;
        status = memory_extend(NULL, &l->wire, n, &capacity, sizeof *l->wire, "connections to servers", e);
        if (status == DELTAFS_OK)
            l->wire[n++] = pool_wire_of(i);
    }
    l->wires = (uint32_t)n;
    return status;
}

static void link_close_wires(struct pool_link *l)
{
    for (uint32_t i = 0; i < l->wires; i++)
        pool_wire_close(&l->wire[i]);
}

static int link_open_wire(struct pool_link *l, struct pool_wire *w, struct error *e)
{
    struct pool_hello hello;

    if (w->socket != -1)
        return DELTAFS_OK;
    int status = pool_wire_open(w, &l->point, l->number, &hello, e);
    if (status == DELTAFS_OK)
        l->is_local = hello.is_local != 0;
    return status;
}

/* Connect to the home. The processes of a node are distributed over its servers. */
static int link_connect(struct pool_link *l, struct error *e)
{
    char node[POINT_NODE_ROOM];
    int status = DELTAFS_ERR_NOT_FOUND;

    /* Other connections of this process stay: its locks are theirs. */
    if (l->process != getpid())
        link_close_wires(l);
    for (uint32_t i = 0; i < l->wires && status == DELTAFS_ERR_NOT_FOUND; i++) {
        l->home = &l->wire[((uint32_t)getpid() + i) % l->wires];
        status = link_open_wire(l, l->home, e);
    }
    if (status == DELTAFS_ERR_NOT_FOUND) {
        own_node(node);
        return error_set(e, DELTAFS_ERR_IO,
                         "%s: no server of the pool answers on this node (%s); if they were killed, the pool is lost: "
                         "start another one, or remove the folder %s",
                         l->point.point, node, l->point.folder);
    }
    if (status != DELTAFS_OK)
        return status;
    l->server = l->home->server;
    l->process = getpid();
    return DELTAFS_OK;
}

int pool_link_open(struct pool_link *l, const char *point, struct error *e)
{
    *l = (struct pool_link){.servers = 0};
    int status = pool_point_init(&l->point, point, 0, e);
    if (status != DELTAFS_OK)
        return status;
    pthread_mutex_init(&l->lock, NULL);
    status = pool_point_read(&l->point, &l->number, &l->nodes, &l->servers, e);
    if (status == DELTAFS_OK)
        status = link_find_wires(l, e);
    if (status == DELTAFS_OK)
        status = link_connect(l, e);
    if (status != DELTAFS_OK)
        pool_link_close(l);
    return status;
}

void pool_link_close(struct pool_link *l)
{
    link_close_wires(l);
    pthread_mutex_destroy(&l->lock);
    free(l->wire);
    free(l->nodes);
    pool_point_fini(&l->point);
}

/* ---- Calls ---- */

/* The connection through which a server is asked: always the same one, since locks are those of a connection. */
static struct pool_wire *link_wire(const struct pool_link *l, uint32_t server)
{
    for (uint32_t i = 0; i < l->wires; i++)
        if (l->wire[i].server == server)
            return &l->wire[i];
    return l->home;
}

int pool_link_is_near(const struct pool_link *l, uint32_t server)
{
    return link_wire(l, server)->server == server;
}

/* The connection for a call, which is there afterwards. */
static int link_reach(struct pool_link *l, const struct pool_call *c, struct pool_wire **out, struct error *e)
{
    struct pool_wire *w = link_wire(l, c->request.server);
    int status = link_open_wire(l, w, e);

    *out = w;
    if (status != DELTAFS_ERR_NOT_FOUND)
        return status;
    return error_set(e, DELTAFS_ERR_IO, "%s: server %u on node %s has ended", l->point.point, w->server,
                     pool_link_node(l, w->server));
}

static int link_lost(struct pool_link *l, struct pool_wire *w, const struct pool_call *c, struct error *e)
{
    int is_cut = pool_wire_is_cut(w);
    uint32_t server = is_cut ? w->server : c->request.server;

    pool_wire_close(w);
    return error_set(e, DELTAFS_ERR_IO, "%s: server %u on node %s %s", l->point.point, server,
                     pool_link_node(l, server), is_cut ? "has ended" : "does not answer");
}

static int is_storage_error(int status)
{
    return status == DELTAFS_ERR_IO || status == DELTAFS_ERR_DAMAGED || status == DELTAFS_ERR_NO_SPACE ||
           status == DELTAFS_ERR_MEMORY;
}

static int call_fail(const struct pool_link *l, const struct pool_call *c, const uint8_t *bytes, struct error *e)
{
    int n = (int)(c->answer.bytes < ERROR_TEXT_MAX ? c->answer.bytes : ERROR_TEXT_MAX);
    uint32_t server = c->request.server;

    return error_set(e, c->answer.status, "%s: server %u on node %s: %.*s", l->point.point, server,
                     pool_link_node(l, server), n, (const char *)bytes);
}

/* Call i is in slot i, whichever server is asked. */
static int calls_make(struct pool_link *l, struct pool_call *calls, size_t n, struct error *e)
{
    uint64_t deadline = thread_clock() + PATIENCE;
    struct pool_wire *w[POOL_SLOTS];
    int status = DELTAFS_OK;

    if (l->process != getpid() || l->home->socket == -1)
        status = link_connect(l, e);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        status = link_reach(l, &calls[i], &w[i], e);
    if (status != DELTAFS_OK)
        return status;
    /* Servers work on the first ones while the others are copied. */
    for (size_t i = 0; i < n; i++)
        pool_wire_ask(w[i], &calls[i], (uint32_t)i);
    /* All answers are waited for, also after an error: then the next calls find nothing of these. */
    for (size_t i = 0; i < n; i++)
        if (pool_wire_finish(w[i], calls, deadline) != 0)
            status = error_first(status, link_lost(l, w[i], &calls[__builtin_ctz(w[i]->left)], error_after(status, e)));
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        if (is_storage_error(calls[i].answer.status))
            status = call_fail(l, &calls[i], w[i]->shared->buffer[i], e);
    return status;
}

int pool_link_calls(struct pool_link *l, struct pool_call *calls, size_t n, struct error *e)
{
    pthread_mutex_lock(&l->lock);
    int status = calls_make(l, calls, n, e);
    pthread_mutex_unlock(&l->lock);
    return status;
}
