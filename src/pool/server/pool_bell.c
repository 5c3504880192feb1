#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "pool/server/pool_bell.h"

struct pool_bell {
    uint32_t server;
    int socket, event;          /* -1: there is none */
    struct pool_shared *shared; /* NULL: the server has not answered yet */
};

struct pool_bells {
    uint32_t count;
    struct pool_bell bell[];
};

static int is_beside(const char *nodes, uint32_t a, uint32_t b)
{
    return a != b && strcmp(nodes + (size_t)a * POINT_NODE_ROOM, nodes + (size_t)b * POINT_NODE_ROOM) == 0;
}

static int bell_connect(struct pool_bell *b, const struct pool_point *p, struct error *e)
{
    struct sockaddr_un address;

    if (pool_point_socket(p, b->server, &address, e) != DELTAFS_OK)
        return e->status;
    b->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (b->socket != -1 && connect(b->socket, (const struct sockaddr *)&address, sizeof address) == 0)
        return DELTAFS_OK;
    return error_system(e, errno, "connect to the server", address.sun_path);
}

int pool_bells_create(const struct pool_point *p, uint32_t server, const char *nodes, uint32_t servers,
                      struct pool_bells **out, struct error *e)
{
    uint32_t count = 0;
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < servers; i++)
        count += is_beside(nodes, server, i) != 0;
    size_t size = sizeof(struct pool_bells) + count * sizeof(struct pool_bell);
    struct pool_bells *b = calloc(1, size);
    if (!b)
        return error_no_memory(e, size, "the servers of a node");
    for (uint32_t i = 0; i < servers && status == DELTAFS_OK; i++) {
        if (!is_beside(nodes, server, i))
            continue;
        b->bell[b->count] = (struct pool_bell){.server = i, .socket = -1, .event = -1};
        status = bell_connect(&b->bell[b->count++], p, e);
    }
    if (status == DELTAFS_OK)
        *out = b;
    else
        pool_bells_destroy(b);
    return status;
}

void pool_bells_destroy(struct pool_bells *b)
{
    for (uint32_t i = 0; b && i < b->count; i++) {
        pool_ring_unmap(b->bell[i].shared);
        if (b->bell[i].socket != -1)
            close(b->bell[i].socket);
        if (b->bell[i].event != -1)
            close(b->bell[i].event);
    }
    free(b);
}

uint32_t pool_bells_count(const struct pool_bells *b)
{
    return b->count;
}

/* Take what the server has sent, if it has. */
static int bell_greet(struct pool_bell *b)
{
    struct pool_hello hello;
    int memory;

    if (b->shared || b->event != -1)
        return b->shared != NULL;
    if (pool_ring_receive(b->socket, 0, &hello, &memory, &b->event) != 0)
        return 0;
    int status = pool_ring_map(memory, &b->shared, error_ignored());
    close(memory);
    return status == DELTAFS_OK;
}

void pool_bells_ring(struct pool_bells *b, uint32_t server)
{
    const uint64_t one = 1;

    for (uint32_t i = 0; i < b->count; i++) {
        struct pool_bell *bell = &b->bell[i];
        if (bell->server != server || !bell_greet(bell) || !atomic_load(&bell->shared->is_asleep))
            continue;
        ssize_t put = write(bell->event, &one, sizeof one);
        (void)put;
    }
}
