#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/thread.h"
#include "pool/pool_link.h"

#define SECOND   UINT64_C(1000000000)
#define SPIN     6000          /* nanoseconds that a client waits without sleeping */
#define VAIN     30            /* waits that sleep at once, after one that has spun in vain: processors are scarce */
#define SLEEP    100           /* milliseconds; then it looks whether the server is still there */
#define PATIENCE (60 * SECOND) /* for an answer */
#define HELLO    10000         /* milliseconds for the first message */

/* ---- Connecting ---- */

/* Descriptors have high numbers, out of the way of programs that count on low ones. */
#define DESCRIPTOR_MIN 512

static int raise_descriptor(int fd)
{
    int high = fd == -1 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTOR_MIN);

    if (high == -1)
        return fd;
    close(fd);
    return high;
}

static void link_drop(struct pool_link *l)
{
    if (l->socket != -1)
        close(l->socket);
    if (l->event != -1)
        close(l->event);
    pool_ring_unmap(l->shared);
    l->socket = l->event = -1;
    l->shared = NULL;
}

static int other_version(const struct pool_link *l, struct error *e)
{
    return error_set(e, DELTAFS_ERR_VERSION, "%s: the pool's servers are of another version of DeltaFS",
                     l->point.point);
}

static int link_greet(struct pool_link *l, struct error *e)
{
    struct pool_hello hello;
    int memory, event, answer = pool_ring_receive(l->socket, HELLO, &hello, &memory, &event);

    if (answer == -ETIMEDOUT)
        return error_set(e, DELTAFS_ERR_IO, "%s: the pool's server on this node does not answer", l->point.point);
    if (answer == -EPROTO)
        return other_version(l, e);
    if (answer != 0)
        return error_set(e, DELTAFS_ERR_IO,
                         "%s: the pool's server on this node lets nobody in: it has as many clients as its option "
                         "--memory allows, or belongs to another user",
                         l->point.point);
    l->event = raise_descriptor(event);
    int status = DELTAFS_OK;
    if (hello.version != POOL_VERSION || hello.bytes != sizeof *l->shared || hello.servers != l->servers)
        status = other_version(l, e);
    if (status == DELTAFS_OK)
        status = pool_ring_map(memory, &l->shared, e);
    close(memory);
    l->server = hello.server;
    l->is_local = hello.is_local != 0;
    return status;
}

/* Connect to the socket of a server; returns whether it is there. */
static int link_try(struct pool_link *l, uint32_t server, struct error *e)
{
    struct sockaddr_un address;

    if (pool_point_socket(&l->point, server, &address, e) != DELTAFS_OK || access(address.sun_path, F_OK) != 0)
        return 0;
    l->socket = raise_descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (l->socket != -1 && connect(l->socket, (const struct sockaddr *)&address, sizeof address) == 0)
        return 1;
    link_drop(l);
    return 0;
}

/* Processes of a machine that has several servers are distributed over them. */
static int link_connect(struct pool_link *l, struct error *e)
{
    char node[POINT_NODE_ROOM] = "";
    uint32_t first = (uint32_t)getpid() % l->servers;

    e->status = DELTAFS_OK;
    gethostname(node, sizeof node - 1);
    l->asked = l->seen = 0;
    for (uint32_t i = 0; i < l->servers && l->socket == -1; i++) {
        uint32_t server = (first + i) % l->servers;
        if (strcmp(pool_link_node(l, server), node) == 0)
            link_try(l, server, e);
    }
    if (l->socket == -1 && e->status == DELTAFS_OK)
        return error_set(e, DELTAFS_ERR_IO, "%s: no server of the pool answers on this node (%s)", l->point.point,
                         node);
    int status = l->socket != -1 ? link_greet(l, e) : e->status;
    if (status != DELTAFS_OK)
        link_drop(l);
    else
        l->process = getpid();
    return status;
}

int pool_link_open(struct pool_link *l, const char *point, struct error *e)
{
    *l = (struct pool_link){.socket = -1, .event = -1};
    int status = pool_point_init(&l->point, point, 0, e);
    if (status != DELTAFS_OK)
        return status;
    pthread_mutex_init(&l->lock, NULL);
    status = pool_point_read(&l->point, &l->nodes, &l->servers, e);
    if (status == DELTAFS_OK)
        status = link_connect(l, e);
    if (status != DELTAFS_OK)
        pool_link_close(l);
    return status;
}

void pool_link_close(struct pool_link *l)
{
    link_drop(l);
    pthread_mutex_destroy(&l->lock);
    free(l->nodes);
    pool_point_fini(&l->point);
}

/* ---- Calls ---- */

static void call_put(struct pool_link *l, const struct pool_call *c, uint32_t slot)
{
    struct pool_shared *s = l->shared;

    s->slot[slot].request = c->request;
    if (c->request.bytes > 0)
        memcpy(s->buffer[slot], c->in, c->request.bytes);
    s->request[l->asked % POOL_SLOTS] = (uint8_t)slot;
    l->asked++;
}

static void calls_send(struct pool_link *l)
{
    const uint64_t one = 1;

    atomic_store(&l->shared->asked, l->asked);
    if (atomic_load(&l->shared->is_asleep)) {
        ssize_t put = write(l->event, &one, sizeof one);
        (void)put;
    }
}

/* Whether the server has closed the connection. */
static int link_is_cut(const struct pool_link *l)
{
    struct pollfd p = {.fd = l->socket, .events = POLLIN | POLLRDHUP};

    return poll(&p, 1, 0) == 1;
}

static void pause_shortly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Spin until there is an answer more; returns whether there is one. */
static int link_spin(struct pool_link *l)
{
    struct pool_shared *s = l->shared;
    uint64_t end = 0;

    while (atomic_load_explicit(&s->answered, memory_order_acquire) == l->seen) {
        if (l->vain > 0) {
            l->vain--;
            return 0;
        }
        uint64_t now = thread_clock();
        end = end > 0 ? end : now + SPIN;
        if (now >= end)
            l->vain = VAIN;
        pause_shortly();
    }
    return 1;
}

/* Wait until there is an answer more; returns -1 if none comes. */
static int link_wait(struct pool_link *l, uint64_t deadline)
{
    struct pool_shared *s = l->shared;

    if (link_spin(l))
        return 0;
    while (atomic_load_explicit(&s->answered, memory_order_acquire) == l->seen) {
        uint64_t start = thread_clock();
        atomic_store(&s->is_waiting, 1);
        if (atomic_load(&s->answered) == l->seen)
            pool_ring_sleep(&s->answered, l->seen, SLEEP);
        atomic_store(&s->is_waiting, 0);
        uint64_t now = thread_clock();
        int is_long = now - start >= (uint64_t)SLEEP * 1000000 && atomic_load(&s->answered) == l->seen;
        if (is_long && (now > deadline || link_is_cut(l)))
            return -1;
    }
    return 0;
}

/* Take an answer; returns -1 if it is no valid one. */
static int call_take(struct pool_link *l, struct pool_call *calls, size_t n, uint32_t *left)
{
    struct pool_shared *s = l->shared;
    uint32_t slot = s->answer[l->seen % POOL_SLOTS];

    if (slot >= n || !(*left & 1u << slot))
        return -1;
    struct pool_call *c = &calls[slot];
    c->answer = s->slot[slot].answer;
    if (c->answer.bytes > POOL_SLOT_BYTES)
        return -1;
    size_t bytes = c->answer.bytes < c->room ? c->answer.bytes : c->room;
    if (c->out && bytes > 0 && c->answer.status >= 0)
        memcpy(c->out, s->buffer[slot], bytes);
    *left &= ~(1u << slot);
    l->seen++;
    return 0;
}

static int is_storage_error(int status)
{
    return status == DELTAFS_ERR_IO || status == DELTAFS_ERR_DAMAGED || status == DELTAFS_ERR_NO_SPACE ||
           status == DELTAFS_ERR_MEMORY;
}

static int call_fail(struct pool_link *l, const struct pool_call *c, uint32_t slot, struct error *e)
{
    int n = (int)(c->answer.bytes < ERROR_TEXT_MAX ? c->answer.bytes : ERROR_TEXT_MAX);
    uint32_t server = c->request.server;

    return error_set(e, c->answer.status, "%s: server %u on node %s: %.*s", l->point.point, server,
                     pool_link_node(l, server), n, (const char *)l->shared->buffer[slot]);
}

static int link_lost(struct pool_link *l, const struct pool_call *c, int is_cut, struct error *e)
{
    uint32_t server = is_cut ? l->server : c->request.server;

    error_set(e, DELTAFS_ERR_IO, "%s: server %u on node %s %s", l->point.point, server, pool_link_node(l, server),
              is_cut ? "has ended" : "does not answer");
    link_drop(l);
    return e->status;
}

static int calls_make(struct pool_link *l, struct pool_call *calls, size_t n, struct error *e)
{
    uint64_t deadline = thread_clock() + PATIENCE;
    uint32_t left = (1u << n) - 1;
    int status = DELTAFS_OK;

    if (l->process != getpid() || l->socket == -1) {
        link_drop(l);
        if (link_connect(l, e) != DELTAFS_OK)
            return e->status;
    }
    /* The server works on the first ones while the others are copied. */
    for (size_t i = 0; i < n; i++) {
        call_put(l, &calls[i], (uint32_t)i);
        calls_send(l);
    }
    while (left != 0)
        if (link_wait(l, deadline) != 0 || call_take(l, calls, n, &left) != 0)
            return link_lost(l, &calls[__builtin_ctz(left)], link_is_cut(l), e);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        if (is_storage_error(calls[i].answer.status))
            status = call_fail(l, &calls[i], (uint32_t)i, e);
    return status;
}

int pool_link_calls(struct pool_link *l, struct pool_call *calls, size_t n, struct error *e)
{
    pthread_mutex_lock(&l->lock);
    int status = calls_make(l, calls, n, e);
    pthread_mutex_unlock(&l->lock);
    return status;
}
