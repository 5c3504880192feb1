#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/thread.h"
#include "pool/pool_wire.h"

#define SLEEP 100   /* milliseconds; then it looks whether the server is still there */
#define HELLO 10000 /* milliseconds for the first message */

/* ---- Connecting ---- */

/* Descriptors have high numbers, out of the way of programs that count on low ones. */
#define DESCRIPTOR_MIN 512 /* if so many are allowed */

static int raise_descriptor(int fd)
{
    struct rlimit allowed;
    int is_few = getrlimit(RLIMIT_NOFILE, &allowed) == 0 && allowed.rlim_cur / 2 < DESCRIPTOR_MIN;
    int high = fd == -1 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, is_few ? (int)(allowed.rlim_cur / 2) : DESCRIPTOR_MIN);

    if (high == -1)
        return fd;
    close(fd);
    return high;
}

void pool_wire_close(struct pool_wire *w)
{
    if (w->socket != -1)
        close(w->socket);
    if (w->event != -1)
        close(w->event);
    pool_ring_unmap(w->shared);
    *w = pool_wire_of(w->server);
}

static int other_version(const struct pool_point *p, struct error *e)
{
    return error_set(e, DELTAFS_ERR_VERSION, "%s: the pool's servers are of another version of DeltaFS", p->point);
}

static int wire_greet(struct pool_wire *w, const struct pool_point *p, uint64_t number, struct pool_hello *hello,
                      struct error *e)
{
    int memory, event, answer = pool_ring_receive(w->socket, HELLO, hello, &memory, &event);

    if (answer == -ETIMEDOUT)
        return error_set(e, DELTAFS_ERR_IO, "%s: server %u of the pool, on this node, does not answer", p->point,
                         w->server);
    if (answer == -EPROTO)
        return other_version(p, e);
    if (answer == -EMFILE)
        return error_system(e, EMFILE, "connect to the pool", p->point);
    if (answer != 0)
        return error_set(e, DELTAFS_ERR_IO,
                         "%s: server %u of the pool, on this node, lets nobody in: it has as many clients as its "
                         "option --memory or its limit of open files allows, or belongs to another user",
                         p->point, w->server);
    w->event = raise_descriptor(event);
    int status = DELTAFS_OK;
    if (hello->version != POOL_VERSION || hello->bytes != sizeof *w->shared)
        status = other_version(p, e);
    else if (hello->number != number)
        status = error_set(e, DELTAFS_ERR_IO, "%s: the pool has ended, and there is another one", p->point);
    if (status == DELTAFS_OK)
        status = pool_ring_map(memory, &w->shared, e);
    close(memory);
    return status;
}

/* Whatever signals come. */
static int wire_connect(const struct pool_wire *w, const struct sockaddr_un *address)
{
    int answer;

    do
        answer = connect(w->socket, (const struct sockaddr *)address, sizeof *address);
    while (answer != 0 && errno == EINTR);
    return answer;
}

int pool_wire_open(struct pool_wire *w, const struct pool_point *p, uint64_t number, struct pool_hello *hello,
                   struct error *e)
{
    struct sockaddr_un address;
    int status = pool_point_socket(p, w->server, &address, e);

    if (status != DELTAFS_OK)
        return status;
    w->socket = raise_descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (w->socket == -1)
        return error_system(e, errno, "create a socket", address.sun_path);
    if (wire_connect(w, &address) == 0)
        status = wire_greet(w, p, number, hello, e);
    else
        status = e->status = DELTAFS_ERR_NOT_FOUND;
    if (status != DELTAFS_OK)
        pool_wire_close(w);
    return status;
}

/* ---- Calls ---- */

void pool_wire_ask(struct pool_wire *w, const struct pool_call *c, uint32_t slot)
{
    const uint64_t one = 1;
    struct pool_shared *s = w->shared;

    s->slot[slot].request = c->request;
    if (c->request.bytes > 0)
        memcpy(s->buffer[slot], c->in, c->request.bytes);
    s->request[w->asked % POOL_SLOTS] = (uint8_t)slot;
    w->left |= 1u << slot;
    atomic_store(&s->asked, ++w->asked);
    if (atomic_load(&s->is_asleep)) {
        ssize_t put = write(w->event, &one, sizeof one);
        (void)put;
    }
}

int pool_wire_is_cut(const struct pool_wire *w)
{
    struct pollfd p = {.fd = w->socket, .events = POLLIN | POLLRDHUP};

    return poll(&p, 1, 0) == 1;
}

/* Spin until there is an answer more; returns whether there is one. */
static int wire_spin(struct pool_wire *w)
{
    uint64_t start = thread_clock();

    while (atomic_load_explicit(&w->shared->answered, memory_order_acquire) == w->seen)
        if (!pool_spin(&w->spin, start))
            return 0;
    return 1;
}

/* Wait until there is an answer more; returns -1 if none comes. */
static int wire_wait(struct pool_wire *w, uint64_t deadline)
{
    struct pool_shared *s = w->shared;

    if (wire_spin(w))
        return 0;
    uint64_t looked = thread_clock();
    while (atomic_load_explicit(&s->answered, memory_order_acquire) == w->seen) {
        atomic_store(&s->is_waiting, 1);
        if (atomic_load(&s->answered) == w->seen)
            pool_ring_sleep(&s->answered, w->seen, SLEEP);
        atomic_store(&s->is_waiting, 0);
        uint64_t now = thread_clock();
        if (now - looked < (uint64_t)SLEEP * 1000000 || atomic_load(&s->answered) != w->seen)
            continue; /* also if signals end each sleep early */
        if (now > deadline || pool_wire_is_cut(w))
            return -1;
        looked = now;
    }
    return 0;
}

/* Take an answer; returns -1 if it is no valid one. */
static int call_take(struct pool_wire *w, struct pool_call *calls)
{
    struct pool_shared *s = w->shared;
    uint32_t slot = s->answer[w->seen % POOL_SLOTS];

    if (slot >= POOL_SLOTS || !(w->left & 1u << slot))
        return -1;
    struct pool_call *c = &calls[slot];
    c->answer = s->slot[slot].answer;
    if (c->answer.bytes > POOL_SLOT_BYTES)
        return -1;
    size_t bytes = c->answer.bytes < c->room ? c->answer.bytes : c->room;
    if (c->out && bytes > 0 && c->answer.status >= 0)
        memcpy(c->out, s->buffer[slot], bytes);
    w->left &= ~(1u << slot);
    w->seen++;
    return 0;
}

int pool_wire_finish(struct pool_wire *w, struct pool_call *calls, uint64_t deadline)
{
    while (w->left != 0)
        if (wire_wait(w, deadline) != 0 || call_take(w, calls) != 0)
            return -1;
    return 0;
}
