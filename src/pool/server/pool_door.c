#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/memory.h"
#include "pool/server/pool_door.h"

#define EVENTS        32
#define MILLISECOND   1000000 /* nanoseconds */
#define CLIENTS_LEAST 4

/* A client that is connected, or has been, as long as a request of it is being served. */
struct pool_guest {
    int socket, event;
    int is_gone;
    int is_to_wake;
    struct pool_shared *shared;
    uint32_t taken;    /* requests so far */
    uint32_t answered; /* as many */
    uint32_t busy;     /* bit for each slot */
    uint64_t number;   /* of all clients of the pool it has this one */
    uint8_t *locked;   /* for each server, whether it may have locks of this client; NULL: none has */
    uint32_t parting;  /* the server that is the next to release them when it is gone */
    struct pool_job job[POOL_SLOTS];
};

struct pool_door {
    struct sockaddr_un address;
    int listener, epoll;
    struct pool_door_options options;
    struct pool_guest **guest;
    size_t count, capacity;
    size_t most;  /* clients, by memory */
    size_t next;  /* whose turn it is */
    uint64_t all; /* clients so far */
    int has_gone; /* a client, perhaps */
    int has_to_wake;
};

static int door_watch(struct pool_door *d, int fd, uint32_t events, void *what)
{
    struct epoll_event event = {.events = events, .data.ptr = what};

    return epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void guest_destroy(struct pool_guest *g)
{
    if (g->socket != -1)
        close(g->socket);
    if (g->event != -1)
        close(g->event);
    pool_ring_unmap(g->shared);
    free(g->locked);
    free(g);
}

/* Forget clients that are gone, and have nothing under way. */
static void door_sweep(struct pool_door *d)
{
    size_t left = 0;

    for (size_t i = 0; i < d->count; i++) {
        struct pool_guest *g = d->guest[i];
        if (g->is_gone && g->socket != -1) {
            epoll_ctl(d->epoll, EPOLL_CTL_DEL, g->socket, NULL);
            epoll_ctl(d->epoll, EPOLL_CTL_DEL, g->event, NULL);
            close(g->socket);
            g->socket = -1;
        }
        if (g->is_gone && g->busy == 0 && !g->locked)
            guest_destroy(g);
        else
            d->guest[left++] = g;
    }
    d->count = left;
}

static int send_hello(struct pool_door *d, int socket, int memory, int event)
{
    struct pool_hello hello = {.version = POOL_VERSION,
                               .bytes = sizeof(struct pool_shared),
                               .server = d->options.server,
                               .is_local = d->options.is_local != 0,
                               .number = d->options.number};
    struct iovec part = {.iov_base = &hello, .iov_len = sizeof hello};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control = {.room = {0}};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    const int both[2] = {memory, event};

    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof both);
    memcpy(CMSG_DATA(rights), both, sizeof both);
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof hello ? 0 : -1;
}

static int is_same_user(int socket)
{
    struct ucred who;
    socklen_t n = sizeof who;

    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 && who.uid == geteuid();
}

static struct pool_guest *guest_create(struct pool_door *d, int socket)
{
    struct pool_guest *g = calloc(1, sizeof *g);
    int memory = -1;

    if (!g)
        return NULL;
    *g = (struct pool_guest){.socket = socket,
                             .event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                             .number = (uint64_t)d->options.server << 48 | d->all++};
    int is_fine = g->event != -1 && pool_ring_create(&g->shared, &memory, error_ignored()) == DELTAFS_OK &&
                  send_hello(d, socket, memory, g->event) == 0 && door_watch(d, socket, EPOLLIN | EPOLLRDHUP, g) == 0 &&
                  /* It only wakes: nobody reads what it counts. */
                  door_watch(d, g->event, EPOLLIN | EPOLLET, d) == 0;
    if (memory != -1)
        close(memory);
    if (is_fine)
        return g;
    g->socket = -1; /* the caller closes it */
    guest_destroy(g);
    return NULL;
}

/* A client that gets nothing finds the connection closed. */
static void door_accept(struct pool_door *d)
{
    int socket;

    while ((socket = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) != -1) {
        struct pool_guest *g = NULL;
        if (d->count < d->most && is_same_user(socket) &&
            memory_extend(NULL, &d->guest, d->count, &d->capacity, sizeof(struct pool_guest *), "clients",
                          error_ignored()) == DELTAFS_OK)
            g = guest_create(d, socket);
        if (g)
            d->guest[d->count++] = g;
        else
            close(socket);
    }
}

static int door_listen(struct pool_door *d, const char *point, struct error *e)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const struct sockaddr *address = (const struct sockaddr *)&d->address;

    if (fd == -1)
        return error_system(e, errno, "create a socket", d->address.sun_path);
    if (connect(fd, address, sizeof d->address) == 0) {
        close(fd);
        return error_set(e, DELTAFS_ERR_BUSY, "%s: another pool is mounted here; 'deltafs pool stop' ends it", point);
    }
    unlink(d->address.sun_path);
    if (bind(fd, address, sizeof d->address) != 0 || listen(fd, SOMAXCONN) != 0) {
        error_system(e, errno, "create the socket", d->address.sun_path);
        close(fd);
        return e->status;
    }
    d->listener = fd;
    return DELTAFS_OK;
}

uint64_t pool_door_most(const struct pool_door_options *o)
{
    return o->memory / sizeof(struct pool_shared);
}

uint64_t pool_door_bytes(const struct pool_door_options *o)
{
    /* At the end, which servers may have its locks. */
    return sizeof(struct pool_shared) + sizeof(struct pool_guest) + sizeof(struct pool_guest *) + o->servers;
}

int pool_door_open(const struct pool_point *p, const struct pool_door_options *o, struct pool_door **out,
                   struct error *e)
{
    struct pool_door *d = calloc(1, sizeof *d);

    if (!d)
        return error_no_memory(e, sizeof *d, "the connections of clients");
    *d = (struct pool_door){
        .options = *o, .listener = -1, .epoll = epoll_create1(EPOLL_CLOEXEC), .most = (size_t)pool_door_most(o)};
    int status = d->most >= CLIENTS_LEAST
                     ? DELTAFS_OK
                     : error_set(e, DELTAFS_ERR_INVALID, "memory for clients: at least %zu bytes are needed",
                                 CLIENTS_LEAST * sizeof(struct pool_shared));
    if (status == DELTAFS_OK)
        status = pool_point_socket(p, o->server, &d->address, e);
    if (status == DELTAFS_OK)
        status = door_listen(d, p->point, e);
    if (status == DELTAFS_OK && (d->epoll == -1 || door_watch(d, d->listener, EPOLLIN, NULL) != 0))
        status = error_system(e, errno, "watch the socket", d->address.sun_path);
    if (status == DELTAFS_OK)
        *out = d;
    else
        pool_door_close(d);
    return status;
}

void pool_door_close(struct pool_door *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->count; i++)
        guest_destroy(d->guest[i]);
    if (d->listener != -1) {
        unlink(d->address.sun_path); /* first: then it cannot be that of the next pool */
        close(d->listener);
    }
    if (d->epoll != -1)
        close(d->epoll);
    free(d->guest);
    free(d);
}

/* Ask one server after the other to release the locks of a client that is gone. */
static struct pool_job *guest_part(struct pool_door *d, struct pool_guest *g)
{
    struct pool_job *job = &g->job[0];

    if (g->busy != 0 || !g->locked)
        return NULL;
    while (g->parting < d->options.servers && !g->locked[g->parting])
        g->parting++;
    if (g->parting == d->options.servers) {
        free(g->locked);
        g->locked = NULL;
        d->has_gone = 1;
        return NULL;
    }
    *job = (struct pool_job){.guest = g, .bytes = g->shared->buffer[0]};
    job->request = (struct pool_request){.op = POOL_LEAVE, .server = g->parting++, .value = g->number};
    g->busy = 1;
    return job;
}

/* Locks are those of the client, whatever it says. Returns whether it can be done. */
static int guest_sign(const struct pool_door *d, struct pool_guest *g, struct pool_request *r)
{
    if (r->op != POOL_LOCK && r->op != POOL_LEAVE)
        return 1;
    r->value = g->number;
    if (!g->locked)
        g->locked = calloc(d->options.servers, 1);
    if (g->locked && r->server < d->options.servers)
        g->locked[r->server] = 1;
    return g->locked != NULL;
}

/* Take the next request of a client. One that breaks the rules is disconnected. */
static struct pool_job *guest_next(struct pool_door *d, struct pool_guest *g)
{
    struct pool_shared *shared = g->shared;
    uint32_t asked = atomic_load_explicit(&shared->asked, memory_order_acquire);

    if (g->is_gone)
        return guest_part(d, g);
    if (asked == g->taken)
        return NULL;
    uint32_t slot = shared->request[g->taken % POOL_SLOTS];
    if (asked - g->taken > POOL_SLOTS || slot >= POOL_SLOTS || g->busy & 1u << slot) {
        g->is_gone = d->has_gone = 1;
        return NULL;
    }
    struct pool_job *job = &g->job[slot];
    *job = (struct pool_job){.guest = g, .slot = slot, .bytes = shared->buffer[slot]};
    memcpy(&job->request, &shared->slot[slot].request, sizeof job->request);
    if (job->request.bytes > POOL_SLOT_BYTES || !guest_sign(d, g, &job->request)) {
        g->is_gone = d->has_gone = 1;
        return NULL;
    }
    g->taken++;
    g->busy |= 1u << slot;
    return job;
}

struct pool_job *pool_door_next(struct pool_door *d)
{
    struct pool_job *job = NULL;

    for (size_t i = 0; i < d->count && !job; i++) {
        d->next = d->next + 1 < d->count ? d->next + 1 : 0;
        job = guest_next(d, d->guest[d->next]);
    }
    return job;
}

void pool_door_answer(struct pool_door *d, struct pool_job *job, const struct pool_answer *answer)
{
    struct pool_guest *g = job->guest;
    struct pool_shared *shared = g->shared;

    d->has_gone |= g->is_gone;
    g->busy &= ~(1u << job->slot);
    shared->slot[job->slot].answer = *answer;
    shared->answer[g->answered % POOL_SLOTS] = (uint8_t)job->slot;
    g->answered++;
    atomic_store_explicit(&shared->answered, g->answered, memory_order_release);
    g->is_to_wake = d->has_to_wake = 1;
}

void pool_door_wake(struct pool_door *d)
{
    if (!d->has_to_wake)
        return;
    d->has_to_wake = 0;
    atomic_thread_fence(memory_order_seq_cst);
    for (size_t i = 0; i < d->count; i++) {
        struct pool_guest *g = d->guest[i];
        if (g->is_to_wake && atomic_load(&g->shared->is_waiting))
            pool_ring_wake(&g->shared->answered);
        g->is_to_wake = 0;
    }
}

/* Whether a client has asked something, after all were shown that the server sleeps. */
static int door_is_idle(struct pool_door *d, uint32_t is_asleep)
{
    for (size_t i = 0; i < d->count; i++)
        atomic_store(&d->guest[i]->shared->is_asleep, is_asleep);
    for (size_t i = 0; i < d->count; i++) {
        const struct pool_guest *g = d->guest[i];
        if (g->is_gone ? g->busy == 0 && g->locked : atomic_load(&g->shared->asked) != g->taken)
            return 0;
    }
    return 1;
}

/* Epoll counts in milliseconds; less than one is waited for by poll. Returns the number of events. */
static int door_sleep(struct pool_door *d, uint32_t nanoseconds, struct epoll_event event[EVENTS])
{
    struct pollfd p = {.fd = d->epoll, .events = POLLIN};
    const struct timespec most = {.tv_nsec = nanoseconds};
    int milliseconds = (int)(nanoseconds / MILLISECOND);

    if (!door_is_idle(d, 1))
        milliseconds = 0;
    else if (milliseconds == 0 && ppoll(&p, 1, &most, NULL) == 0)
        return 0;
    return epoll_wait(d->epoll, event, EVENTS, milliseconds);
}

/* Something has happened to a client's socket. */
static void guest_look(struct pool_door *d, struct pool_guest *g, uint32_t events)
{
    uint8_t byte;

    g->is_gone |= events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) ||
                  recv(g->socket, &byte, 1, MSG_DONTWAIT) >= 0; /* clients send nothing */
    d->has_gone |= g->is_gone;
}

void pool_door_wait(struct pool_door *d, uint32_t nanoseconds)
{
    struct epoll_event event[EVENTS];
    int n = nanoseconds > 0 ? door_sleep(d, nanoseconds, event) : epoll_wait(d->epoll, event, EVENTS, 0);

    if (nanoseconds > 0)
        door_is_idle(d, 0);
    for (int i = 0; i < n; i++) {
        if (!event[i].data.ptr)
            door_accept(d);
        else if (event[i].data.ptr != d)
            guest_look(d, event[i].data.ptr, event[i].events);
    }
    if (d->has_gone)
        door_sweep(d);
    d->has_gone = 0;
}

uint32_t pool_door_clients(const struct pool_door *d)
{
    return (uint32_t)d->count;
}
