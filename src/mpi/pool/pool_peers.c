#include <stdlib.h>
#include <string.h>
#include "base/thread.h"
#include "mpi/rank_group.h"
#include "mpi/pool/pool_peers.h"

#define CALLS      32   /* that are under way */
#define CALLS_TO   8    /* to one server */
#define CALLS_MOST 1024 /* with those that are late, which MPI still has */
#define TAKERS     16   /* buffers for requests of others */
#define PATIENCE   (UINT64_C(30) * 1000000000)
#define LOOK_LATE  (UINT64_C(1000000000)) /* how often calls are looked at that may be late */

enum { TAG_REQUEST = 1, TAG_ANSWER = 2 }; /* and one more for each call */

struct request_message {
    uint32_t call; /* the asking server's */
    uint32_t zero;
    struct pool_request request;
    uint8_t bytes[POOL_REMOTE_BYTES];
};
struct answer_message {
    struct pool_answer answer;
    uint8_t bytes[POOL_SLOT_BYTES]; /* what a service may write; no more than POOL_REMOTE_BYTES are sent */
};

#define REQUEST_HEAD offsetof(struct request_message, bytes)
#define ANSWER_HEAD  offsetof(struct answer_message, bytes)

enum peer_lost {
    PEER_FINE,
    PEER_LATE, /* it has not answered; when it does, it is fine again */
    PEER_GONE  /* MPI could not send to it */
};

struct peer_call {
    struct pool_job *jobs; /* that get the answer; NULL: the call is free, or late */
    int is_busy, is_late;
    uint32_t server;
    uint64_t since;
    struct request_message *request;
    struct answer_message *answer;
};

struct peer_taker {
    int is_answering;
    struct request_message *request;
    struct answer_message *answer;
};

/* MPI's requests: of each taker, then of each call its sending and its answer. */
#define SENDING(call)   (TAKERS + 2 * (call))
#define ANSWERING(call) (SENDING(call) + 1)
#define REQUESTS        SENDING(CALLS_MOST)

struct pool_peers {
    MPI_Comm comm;
    struct pool_service *service;
    struct pool_door *door;
    struct pool_job *first, *last;     /* that wait for a call */
    unsigned busy, late;               /* calls; busy ones of which nobody waits for the answer any more */
    int calls;                         /* all behind these are free */
    uint8_t *calls_to;                 /* under way, for each server */
    uint8_t *lost;                     /* enum peer_lost of each server */
    uint64_t looked;                   /* when for late calls */
    struct peer_call call[CALLS_MOST]; /* those behind CALLS have buffers only while they are busy */
    struct peer_taker taker[TAKERS];
    MPI_Request request[REQUESTS];
    int index[REQUESTS];
    MPI_Status status[REQUESTS];
};

/* ---- Creating ---- */

_Static_assert(sizeof(struct request_message) == POOL_PEER_MESSAGE &&
                   offsetof(struct answer_message, bytes) + POOL_REMOTE_BYTES <= POOL_PEER_MESSAGE,
               "the largest message");

uint64_t pool_peers_bytes(void)
{
    return sizeof(struct pool_peers) +
           (CALLS + TAKERS) * (sizeof(struct request_message) + sizeof(struct answer_message));
}

uint64_t pool_peers_lost_bytes(void)
{
    return CALLS_TO * (sizeof(struct request_message) + sizeof(struct answer_message));
}

static int take(struct pool_peers *p, int i, struct error *e)
{
    struct peer_taker *t = &p->taker[i];

    t->is_answering = 0;
    int code =
        MPI_Irecv(t->request, sizeof *t->request, MPI_BYTE, MPI_ANY_SOURCE, TAG_REQUEST, p->comm, &p->request[i]);
    return code == MPI_SUCCESS ? DELTAFS_OK : mpi_error(e, code, "receive from another server");
}

static void call_drop_buffers(struct peer_call *c)
{
    free(c->request);
    free(c->answer);
    c->request = NULL;
    c->answer = NULL;
}

static int call_get_buffers(struct peer_call *c)
{
    if (c->request)
        return 1;
    c->request = malloc(sizeof *c->request);
    c->answer = malloc(sizeof *c->answer);
    if (c->request && c->answer)
        return 1;
    call_drop_buffers(c);
    return 0;
}

static int peers_allocate(struct pool_peers *p)
{
    int is_fine = p->calls_to && p->lost;

    for (int i = 0; i < CALLS; i++)
        is_fine &= call_get_buffers(&p->call[i]);
    for (int i = 0; i < TAKERS; i++) {
        p->taker[i].request = malloc(sizeof *p->taker[i].request);
        p->taker[i].answer = malloc(sizeof *p->taker[i].answer);
        is_fine &= p->taker[i].request && p->taker[i].answer;
    }
    return is_fine;
}

int pool_peers_create(MPI_Comm comm, struct pool_service *service, struct pool_door *door, struct pool_peers **out,
                      struct error *e)
{
    struct pool_peers *p = calloc(1, sizeof *p);
    int status = DELTAFS_OK;

    if (!p)
        return error_no_memory(e, sizeof *p, "calls of servers");
    *p = (struct pool_peers){.comm = comm,
                             .service = service,
                             .door = door,
                             .calls_to = calloc(service->servers, 1),
                             .lost = calloc(service->servers, 1)}; /* POOL_PEER_BYTES */
    for (int i = 0; i < REQUESTS; i++)
        p->request[i] = MPI_REQUEST_NULL;
    if (!peers_allocate(p))
        status = error_no_memory(e, CALLS * (sizeof(struct request_message) + sizeof(struct answer_message)),
                                 "calls of servers");
    for (int i = 0; i < TAKERS && status == DELTAFS_OK && service->servers > 1; i++)
        status = take(p, i, e);
    if (status == DELTAFS_OK)
        *out = p;
    else
        pool_peers_destroy(p);
    return status;
}

void pool_peers_destroy(struct pool_peers *p)
{
    int is_done = 1, one;

    if (!p)
        return;
    for (int i = 0; i < REQUESTS; i++) {
        if (p->request[i] == MPI_REQUEST_NULL)
            continue;
        MPI_Cancel(&p->request[i]);
        is_done &= MPI_Test(&p->request[i], &one, MPI_STATUS_IGNORE) == MPI_SUCCESS && one;
    }
    /* MPI may still write to the buffers: they are left to it. */
    for (int i = 0; i < CALLS_MOST && is_done; i++)
        call_drop_buffers(&p->call[i]);
    for (int i = 0; i < TAKERS && is_done; i++) {
        free(p->taker[i].request);
        free(p->taker[i].answer);
    }
    free(p->calls_to);
    free(p->lost);
    if (is_done)
        free(p);
}

/* ---- Asking ---- */

static void answer_all(struct pool_peers *p, struct pool_job *jobs, const struct pool_answer *answer,
                       const uint8_t *bytes)
{
    for (struct pool_job *job = jobs, *next; job; job = next) {
        next = job->next;
        if (answer->bytes > 0)
            memcpy(job->bytes, bytes, answer->bytes);
        pool_door_answer(p->door, job, answer);
    }
}

/* The server that was asked has not answered before, or does not now. */
static void answer_lost(struct pool_peers *p, struct pool_job *jobs)
{
    struct pool_answer answer = {.bytes = 0};
    uint8_t text[ERROR_TEXT_MAX];
    struct error e;

    error_set(&e, DELTAFS_ERR_IO, "does not answer");
    pool_answer_error(&e, text, &answer);
    answer_all(p, jobs, &answer, text);
}

static void call_free(struct pool_peers *p, int i)
{
    struct peer_call *c = &p->call[i];

    /* Both of its requests may have been completed at once; then this is called for each. */
    if (!c->is_busy || c->jobs || p->request[SENDING(i)] != MPI_REQUEST_NULL ||
        p->request[ANSWERING(i)] != MPI_REQUEST_NULL)
        return;
    p->busy--;
    p->late -= c->is_late != 0;
    p->calls_to[c->server]--;
    c->is_busy = c->is_late = 0;
    if (i >= CALLS)
        call_drop_buffers(c);
    while (p->calls > 0 && !p->call[p->calls - 1].is_busy)
        p->calls--;
}

/* All calls to a server fail, and those to come. */
static void server_lose(struct pool_peers *p, uint32_t server, enum peer_lost how)
{
    p->lost[server] = (uint8_t)how;
    for (int i = 0; i < p->calls; i++) {
        struct peer_call *c = &p->call[i];
        if (!c->jobs || c->server != server)
            continue;
        answer_lost(p, c->jobs);
        c->jobs = NULL;
        c->is_late = 1;
        p->late++;
    }
}

/* A call could not be sent: no answer comes. */
static void call_lose(struct pool_peers *p, int i)
{
    server_lose(p, p->call[i].server, PEER_GONE);
    if (p->request[ANSWERING(i)] != MPI_REQUEST_NULL)
        MPI_Cancel(&p->request[ANSWERING(i)]);
    call_free(p, i);
}

/* Whether both grow one file, on one server. */
static int are_alike(const struct pool_request *a, const struct pool_request *b)
{
    return a->op == POOL_GROW && b->op == POOL_GROW && a->id == b->id && a->server == b->server;
}

static int is_growing(const struct pool_peers *p, const struct pool_request *r)
{
    for (int i = 0; i < p->calls; i++)
        if (p->call[i].jobs && are_alike(&p->call[i].request->request, r))
            return 1;
    return 0;
}

static int can_start(const struct pool_peers *p, const struct pool_job *job)
{
    const struct pool_request *r = &job->request;

    return p->lost[r->server] != PEER_LATE && p->calls_to[r->server] < CALLS_TO &&
           !(r->op == POOL_GROW && is_growing(p, r));
}

/* Take all waiting jobs that grow the same file out of the queue, behind `job`. */
static void collect_growing(struct pool_peers *p, struct pool_job *job, struct pool_request *request)
{
    struct pool_job **at = &p->first, *end = job, *before = NULL;

    while (*at) {
        struct pool_job *other = *at;
        if (are_alike(&other->request, request)) {
            request->size = other->request.size > request->size ? other->request.size : request->size;
            *at = other->next;
            other->next = NULL;
            end->next = other;
            end = other;
        } else {
            before = other;
            at = &other->next;
        }
    }
    p->last = before;
}

static void call_start(struct pool_peers *p, int i, struct pool_job *job)
{
    struct peer_call *c = &p->call[i];
    struct request_message *m = c->request;
    uint32_t server = job->request.server, bytes = job->request.bytes;

    m->call = (uint32_t)i;
    m->zero = 0;
    m->request = job->request;
    memcpy(m->bytes, job->bytes, bytes);
    if (m->request.op == POOL_GROW)
        collect_growing(p, job, &m->request);
    c->jobs = job;
    c->is_busy = 1;
    c->server = server;
    p->calls = i < p->calls ? p->calls : i + 1;
    c->since = thread_clock();
    p->busy++;
    p->calls_to[server]++;
    int code = MPI_Irecv(c->answer, ANSWER_HEAD + POOL_REMOTE_BYTES, MPI_BYTE, (int)server, TAG_ANSWER + i, p->comm,
                         &p->request[ANSWERING(i)]);
    if (code == MPI_SUCCESS)
        code = MPI_Isend(m, (int)(REQUEST_HEAD + bytes), MPI_BYTE, (int)server, TAG_REQUEST, p->comm,
                         &p->request[SENDING(i)]);
    if (code != MPI_SUCCESS)
        call_lose(p, i);
}

/* A call that can be used; CALLS_MOST: there is none now. */
static int free_call(struct pool_peers *p)
{
    int i = 0;

    while (i < CALLS_MOST && p->call[i].is_busy)
        i++;
    return i < CALLS_MOST && call_get_buffers(&p->call[i]) ? i : CALLS_MOST;
}

/* Start what waits and can be started. */
static void calls_start(struct pool_peers *p)
{
    struct pool_job **at = &p->first, *before = NULL;

    while (*at && p->busy - p->late < CALLS) {
        struct pool_job *job = *at;
        if (!can_start(p, job)) {
            before = job;
            at = &job->next;
            continue;
        }
        int i = free_call(p);
        if (i == CALLS_MOST)
            return;
        *at = job->next;
        if (!*at)
            p->last = before;
        job->next = NULL;
        call_start(p, i, job);
        /* The queue may have lost others, too. */
        at = &p->first;
        before = NULL;
    }
}

/* Whether a request fails at once. Only that a client is gone waits for a late server: its locks would stay there. */
static int is_lost(const struct pool_peers *p, const struct pool_request *r)
{
    uint8_t lost = p->lost[r->server];

    return lost == PEER_GONE || (lost == PEER_LATE && r->op != POOL_LEAVE);
}

/* Answer what waits for servers that are lost. */
static void answer_waiting(struct pool_peers *p)
{
    struct pool_job **at = &p->first, *before = NULL;

    while (*at) {
        struct pool_job *job = *at;
        if (!is_lost(p, &job->request)) {
            before = job;
            at = &job->next;
            continue;
        }
        *at = job->next;
        job->next = NULL;
        answer_lost(p, job);
    }
    p->last = before;
}

void pool_peers_ask(struct pool_peers *p, struct pool_job *job)
{
    const struct pool_request *r = &job->request;
    struct pool_answer answer = {.status = DELTAFS_ERR_INVALID};

    job->next = NULL;
    if (r->server >= p->service->servers || r->bytes > POOL_REMOTE_BYTES ||
        (r->op == POOL_READ && r->size > POOL_REMOTE_BYTES)) {
        pool_door_answer(p->door, job, &answer);
        return;
    }
    if (r->op == POOL_GROW && r->size > POOL_FILE_MAX) { /* before it is one with those of others */
        answer.status = DELTAFS_ERR_TOO_LARGE;
        pool_door_answer(p->door, job, &answer);
        return;
    }
    if (is_lost(p, r)) {
        answer_lost(p, job);
        return;
    }
    if (p->first)
        p->last->next = job;
    else
        p->first = job;
    p->last = job;
}

/* ---- Moving ---- */

static void call_answered(struct pool_peers *p, int i, int n)
{
    struct peer_call *c = &p->call[i];
    struct answer_message *m = c->answer;

    if (!c->jobs && p->lost[c->server] == PEER_LATE)
        p->lost[c->server] = PEER_FINE;
    if (n < (int)ANSWER_HEAD || m->answer.bytes > POOL_REMOTE_BYTES || (size_t)n != ANSWER_HEAD + m->answer.bytes)
        answer_lost(p, c->jobs);
    else
        answer_all(p, c->jobs, &m->answer, m->bytes);
    c->jobs = NULL;
}

/* A request of another server has come. */
static int taker_serve(struct pool_peers *p, int i, int source, int n, struct error *e)
{
    struct peer_taker *t = &p->taker[i];
    struct request_message *m = t->request;
    struct answer_message *a = t->answer;

    if (n < (int)REQUEST_HEAD || (size_t)n != REQUEST_HEAD + m->request.bytes || m->call >= CALLS_MOST)
        return error_set(e, DELTAFS_ERR_MPI, "server %d sent an invalid message", source);
    pool_service_do(p->service, &m->request, m->bytes, a->bytes, &a->answer);
    t->is_answering = 1;
    int code = MPI_Isend(a, (int)(ANSWER_HEAD + a->answer.bytes), MPI_BYTE, source, TAG_ANSWER + (int)m->call, p->comm,
                         &p->request[i]);
    /* Who has asked is gone. */
    return code == MPI_SUCCESS ? DELTAFS_OK : take(p, i, e);
}

static void call_done(struct pool_peers *p, int which, const MPI_Status *s, int code)
{
    int n, is_cancelled = 1, i = (which - TAKERS) / 2;

    if (code != MPI_SUCCESS) {
        call_lose(p, i);
        return;
    }
    if (which == ANSWERING(i))
        MPI_Test_cancelled(s, &is_cancelled);
    if (!is_cancelled) {
        MPI_Get_count(s, MPI_BYTE, &n);
        call_answered(p, i, n);
    }
    call_free(p, i);
}

/* One of MPI's requests is done, or has failed with this code. */
static int peers_done(struct pool_peers *p, int which, const MPI_Status *s, int code, struct error *e)
{
    int n;

    if (which >= TAKERS) {
        call_done(p, which, s, code);
        return DELTAFS_OK;
    }
    if (p->taker[which].is_answering)
        return take(p, which, e);
    if (code != MPI_SUCCESS)
        return mpi_error(e, code, "receive from another server");
    MPI_Get_count(s, MPI_BYTE, &n);
    return taker_serve(p, which, s->MPI_SOURCE, n, e);
}

/* Servers that have not answered for too long are lost. */
static void look_for_late(struct pool_peers *p)
{
    uint64_t now = thread_clock();

    if (p->busy == 0 || now - p->looked < LOOK_LATE)
        return;
    p->looked = now;
    for (int i = 0; i < p->calls; i++) {
        struct peer_call *c = &p->call[i];
        if (c->jobs && now - c->since >= PATIENCE)
            server_lose(p, c->server, PEER_LATE);
    }
    answer_waiting(p);
}

int pool_peers_poll(struct pool_peers *p, int *has_moved, struct error *e)
{
    int n = 0, class = MPI_SUCCESS, status = DELTAFS_OK;

    *has_moved = 0;
    if (p->service->servers == 1)
        return DELTAFS_OK;
    if (p->first)
        calls_start(p);
    int code = MPI_Testsome(SENDING(p->calls), p->request, &n, p->index, p->status);
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    if (class != MPI_SUCCESS && class != MPI_ERR_IN_STATUS)
        return mpi_error(e, code, "exchange messages with other servers");
    for (int i = 0; i < n && status == DELTAFS_OK; i++)
        status = peers_done(p, p->index[i], &p->status[i], class == MPI_SUCCESS ? class : p->status[i].MPI_ERROR, e);
    *has_moved = n > 0;
    look_for_late(p);
    return status;
}

int pool_peers_are_idle(const struct pool_peers *p)
{
    int is_answering = 0;

    for (int i = 0; i < TAKERS; i++)
        is_answering |= p->taker[i].is_answering;
    return p->busy == 0 && !p->first && !is_answering;
}
