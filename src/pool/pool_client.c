#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "base/options.h"
#include "base/sized.h"
#include "pool/pool_client.h"

#define STOP_WAITS 3000 /* of 10 ms */

void pool_place_root(struct pool_place *place)
{
    memcpy(place->path, "/", 2);
    place->n = 1;
    place->owner = 0;
}

void pool_place_up(const struct deltafs_pool *p, struct pool_place *place)
{
    place->n = pool_path_parent(place->path, place->n);
    place->path[place->n] = '\0';
    place->owner = pool_owner(place->path, place->n, p->link.servers);
}

int pool_place_add(const struct deltafs_pool *p, struct pool_place *place, const char *name, size_t n, struct error *e)
{
    size_t above = place->n == 1 ? 0 : place->n;

    if (n > POOL_NAME_MAX || above + 1 + n > POOL_PATH_MAX)
        return error_set(e, DELTAFS_ERR_NAME, "%s: the name of an entry there is too long, or its path is",
                         place->path);
    place->path[above] = '/';
    memcpy(place->path + above + 1, name, n);
    place->n = above + 1 + n;
    place->path[place->n] = '\0';
    place->owner = pool_owner(place->path, place->n, p->link.servers);
    return DELTAFS_OK;
}

void pool_place_parent(const struct deltafs_pool *p, const struct pool_place *place, struct pool_place *out)
{
    out->n = pool_path_parent(place->path, place->n);
    memcpy(out->path, place->path, out->n);
    out->path[out->n] = '\0';
    out->owner = pool_owner(out->path, out->n, p->link.servers);
}

struct pool_call pool_call_at(enum pool_op op, const struct pool_place *place)
{
    struct pool_call c = pool_call_of(op, place->owner);

    c.in = place->path;
    c.request.bytes = (uint32_t)place->n;
    return c;
}

struct pool_call pool_call_id(enum pool_op op, uint64_t id)
{
    struct pool_call c = pool_call_of(op, pool_id_server(id));

    c.request.id = id;
    return c;
}

int pool_refuse(int status, const char *name, struct error *e)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {{DELTAFS_ERR_NOT_FOUND, "does not exist"},
                 {DELTAFS_ERR_EXISTS, "exists already"},
                 {DELTAFS_ERR_FOLDER, "is a folder"},
                 {DELTAFS_ERR_NOT_FOLDER, "is no folder, or what it is in is none"},
                 {DELTAFS_ERR_NOT_EMPTY, "is not empty"},
                 {DELTAFS_ERR_BUSY, "is the root"},
                 {DELTAFS_ERR_LOOP, "is a symbolic link, or leads through too many"},
                 {DELTAFS_ERR_TOO_LARGE, "would be too large"}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (texts[i].status == status)
            return error_set(e, status, "%s: %s", name, texts[i].text);
    return error_set(e, status, "%s: %s", name, deltafs_strerror(status));
}

int pool_ask(struct deltafs_pool *p, struct pool_call *c, const char *name, struct error *e)
{
    int status = pool_link_calls(&p->link, c, 1, e);

    if (status != DELTAFS_OK)
        return error_set(e, status, "%s: %s", name, e->text);
    return c->answer.status < 0 ? pool_refuse(c->answer.status, name, e) : c->answer.status;
}

/* ---- The handle ---- */

int deltafs_pool_open(const char *point, deltafs_pool **out)
{
    struct error e = {.status = DELTAFS_OK};
    struct deltafs_pool *p = NULL;

    if (!point || !out)
        return error_of_thread(error_set(&e, DELTAFS_ERR_INVALID, "deltafs_pool_open: point and out must be given"),
                               &e);
    if (!(p = malloc(sizeof *p)))
        return error_of_thread(error_no_memory(&e, sizeof *p, "a handle of a pool"), &e);
    int status = pool_link_open(&p->link, point, &e);
    if (status == DELTAFS_OK)
        *out = p;
    else
        free(p);
    return error_of_thread(status, &e);
}

int deltafs_pool_close(deltafs_pool *pool)
{
    if (pool && pool_leave(pool)) {
        pool_link_close(&pool->link);
        free(pool);
    }
    return DELTAFS_OK;
}

/* ---- Servers ---- */

uint32_t deltafs_pool_servers(const deltafs_pool *pool)
{
    return pool->link.servers;
}

int deltafs_pool_status(deltafs_pool *pool, uint32_t server, struct deltafs_pool_status *out)
{
    struct error e = {.status = DELTAFS_OK};
    struct pool_status s = {0};
    struct pool_call c = pool_call_of(POOL_STATUS, server);

    if (server >= pool->link.servers)
        return error_of_thread(error_set(&e, DELTAFS_ERR_INVALID, "there is no server %u", server), &e);
    c.out = &s;
    c.room = sizeof s;
    int status = pool_ask(pool, &c, "status", &e);
    const struct deltafs_pool_status all = {.node = pool_link_node(&pool->link, server),
                                            .files = s.files,
                                            .folders = s.folders,
                                            .bytes = s.bytes,
                                            .room = s.room,
                                            .operations = s.operations,
                                            .clients = s.clients};
    if (status == DELTAFS_OK)
        status = sized_fill(out, &all, sizeof all, "deltafs_pool_status", &e);
    return error_of_thread(status, &e);
}

/* Wait until a server of this node has removed its socket. */
static int wait_for_end(const struct deltafs_pool *p, uint32_t server, struct error *e)
{
    const struct timespec nap = {.tv_nsec = 10000000};
    struct sockaddr_un address;
    int waits = 0, status = pool_point_socket(&p->link.point, server, &address, e);

    while (status == DELTAFS_OK && access(address.sun_path, F_OK) == 0) {
        if (waits++ == STOP_WAITS)
            return error_set(e, DELTAFS_ERR_IO, "%s: the pool does not end", p->link.point.point);
        nanosleep(&nap, NULL);
    }
    return status;
}

int deltafs_pool_stop(deltafs_pool *pool)
{
    struct error e = {.status = DELTAFS_OK};
    int status = DELTAFS_OK;

    /* The home passes the others' requests on, and is the last. If some do not answer, the rest end. */
    for (uint32_t i = 1; i <= pool->link.servers; i++) {
        struct pool_call c = pool_call_of(POOL_STOP, (pool->link.server + i) % pool->link.servers);
        status = error_first(status, pool_ask(pool, &c, "stop", error_after(status, &e)));
    }
    for (uint32_t i = 0; i < pool->link.wires && status == DELTAFS_OK; i++)
        status = wait_for_end(pool, pool->link.wire[i].server, &e);
    return error_of_thread(status, &e);
}
