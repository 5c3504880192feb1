/* A rank has at most one request under way; it goes to another rank, which replies at once, without asking others. So
 * whoever waits for a reply only has to serve meanwhile. */
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include "mpi/job/namespace_link.h"

#define CROWDED_NS   200000 /* a pause that takes as long was one of another program */
#define CROWDED_NAPS 100    /* after such a pause, so many are naps: who has slept gets the processor back sooner */
#define NAP_NS       1000   /* which take some 50 us */
#define PAUSES_MOST  2000   /* of a wait, then they are longer naps */
#define LONG_NAP_NS  50000

#define TAG_REQUEST 1
#define TAG_REPLY   2
#define REPLY_ROOM  (16u << 10) /* bytes that any reply may need for an error */

_Static_assert(REPLY_ROOM > 2 * sizeof(struct error), "an error goes in the room of a reply");

/* ---- Messages ---- */

static void link_fail(struct namespace_link *l, int code, const char *what)
{
    struct error e;

    mpi_group_fail(&l->group, code, what, &e);
}

/* A place for a reply, with its bytes. NULL: no memory, or MPI has failed. */
static struct reply *free_reply(struct namespace_link *l)
{
    int done = 0;

    for (size_t i = 0; i < l->replies; i++) {
        int code = MPI_Test(&l->reply[i].request, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            link_fail(l, code, "send");
        if (code != MPI_SUCCESS || done)
            return code == MPI_SUCCESS ? &l->reply[i] : NULL;
    }
    struct reply *more = realloc(l->reply, (l->replies + 1) * sizeof *more);
    if (!more)
        return NULL;
    l->reply = more;
    more[l->replies] = (struct reply){.request = MPI_REQUEST_NULL};
    if (buffer_reserve(&more[l->replies].bytes.buffer, REPLY_ROOM, "a message", error_ignored()) != DELTAFS_OK)
        return NULL;
    return &more[l->replies++];
}

/* Receive a message that has come, into `to`. */
static int receive(struct namespace_link *l, const MPI_Status *from, struct bytes *to)
{
    int size, code = MPI_Get_count(from, MPI_BYTE, &size);

    if (code == MPI_SUCCESS && buffer_reserve(&to->buffer, (size_t)size, "a message", error_ignored()) != DELTAFS_OK)
        return 0; /* try again later */
    if (code == MPI_SUCCESS)
        code = MPI_Recv(to->buffer.bytes, size, MPI_BYTE, from->MPI_SOURCE, from->MPI_TAG, l->group.comm,
                        MPI_STATUS_IGNORE);
    to->used = code == MPI_SUCCESS ? (size_t)size : 0;
    if (code != MPI_SUCCESS)
        link_fail(l, code, "receive");
    return code == MPI_SUCCESS;
}

static void serve(struct namespace_link *l, const MPI_Status *from)
{
    struct reply *r = free_reply(l);

    if (!r || !receive(l, from, &l->incoming))
        return;
    deltafs_private_namespace_serve(l->client, &l->incoming, &r->bytes);
    int code = MPI_Isend(r->bytes.buffer.bytes, (int)r->bytes.used, MPI_BYTE, from->MPI_SOURCE, TAG_REPLY,
                         l->group.comm, &r->request);
    if (code != MPI_SUCCESS)
        link_fail(l, code, "send");
}

/* Take one message, if one has come. `reply` gets it if it is a reply: then *got is set. */
static int take_message(struct namespace_link *l, struct bytes *reply, int *got)
{
    MPI_Status from;
    int has_come = 0;

    if (mpi_group_is_lost(&l->group))
        return 0;
    int code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, l->group.comm, &has_come, &from);
    if (code != MPI_SUCCESS)
        link_fail(l, code, "receive");
    if (code != MPI_SUCCESS || !has_come)
        return 0;
    if (from.MPI_TAG == TAG_REQUEST)
        serve(l, &from);
    else if (reply)
        *got = receive(l, &from, reply);
    return 1;
}

/* ---- Waiting ---- */

static _Thread_local unsigned pauses; /* since this thread last had something to do */
static _Thread_local unsigned crowded;

static int64_t nanoseconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A rank waits for each of many short answers, so a pause must be short, too. On processors with nothing else to do it
 * is to yield to the rank that answers; but among other programs, each of them has its turn first, of some ms. */
static void link_pause(void)
{
    const struct timespec nap = {.tv_nsec = pauses < PAUSES_MOST ? NAP_NS : LONG_NAP_NS};

    if (pauses++ >= PAUSES_MOST || crowded > 0) {
        crowded -= crowded > 0;
        nanosleep(&nap, NULL);
        return;
    }
    int64_t begin = nanoseconds();
    sched_yield();
    if (nanoseconds() - begin > CROWDED_NS)
        crowded = CROWDED_NAPS;
}

/* Take one message, or serve something else, or pause. */
static void take_or_pause(struct namespace_link *l, struct bytes *reply, int *got)
{
    if (take_message(l, reply, got) || job_serve_others())
        pauses = 0;
    else
        link_pause();
}

/* ---- The transport ---- */

void namespace_link_wait(void *arg)
{
    struct namespace_link *l = arg;

    if (l && l->client)
        take_or_pause(l, NULL, NULL);
    else
        job_wait(NULL);
}

static int link_call(void *ctx, uint32_t rank, const struct bytes *request, struct bytes *reply, struct error *e)
{
    struct namespace_link *l = ctx;
    MPI_Request sent;
    int got = 0;

    if (mpi_group_check(&l->group, e) != DELTAFS_OK)
        return e->status;
    int code =
        MPI_Isend(request->buffer.bytes, (int)request->used, MPI_BYTE, (int)rank, TAG_REQUEST, l->group.comm, &sent);
    if (code != MPI_SUCCESS)
        return mpi_group_fail(&l->group, code, "send", e);
    while (!got && !mpi_group_is_lost(&l->group))
        take_or_pause(l, reply, &got);
    if (!got)
        return mpi_group_check(&l->group, e);
    code = MPI_Wait(&sent, MPI_STATUS_IGNORE);
    return code == MPI_SUCCESS ? DELTAFS_OK : mpi_group_fail(&l->group, code, "send", e);
}

/* A rank whose calls all concern what it owns must serve others, too. */
static void link_enter(void *ctx)
{
    struct namespace_link *l = ctx;

    pthread_mutex_lock(&l->other.lock);
    take_message(l, NULL, NULL);
}

static void link_leave(void *ctx)
{
    struct namespace_link *l = ctx;

    pthread_mutex_unlock(&l->other.lock);
}

static void link_destroy(void *ctx)
{
    namespace_link_destroy(ctx);
}

const struct shared_transport namespace_link_transport = {
    .call = link_call, .wait = namespace_link_wait, .enter = link_enter, .leave = link_leave, .destroy = link_destroy};

/* ---- Links ---- */

static int link_serve(struct job_other *o)
{
    struct namespace_link *l = (struct namespace_link *)(void *)((char *)o - offsetof(struct namespace_link, other));

    return take_message(l, NULL, NULL);
}

int namespace_link_init(struct namespace_link *l, struct error *e)
{
    int level = MPI_THREAD_SINGLE;

    pthread_mutex_init(&l->other.lock, NULL);
    l->other.serve = link_serve;
    l->group.arg = l;
    MPI_Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE ? job_start_thread(&l->thread, e) : DELTAFS_OK;
}

void namespace_link_start(struct namespace_link *l, deltafs_namespace *client)
{
    l->client = client;
    job_register_other(&l->other);
}

void namespace_link_destroy(struct namespace_link *l)
{
    job_stop_thread(&l->thread);
    job_unregister_other(&l->other);
    for (size_t i = 0; i < l->replies; i++) {
        if (!mpi_group_is_lost(&l->group))
            MPI_Wait(&l->reply[i].request, MPI_STATUS_IGNORE);
        buffer_fini(&l->reply[i].bytes.buffer);
    }
    free(l->reply);
    buffer_fini(&l->incoming.buffer);
    pthread_mutex_destroy(&l->other.lock);
    mpi_group_destroy(&l->group);
}
