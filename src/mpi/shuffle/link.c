#include <stdlib.h>
#include "base/coding.h"
#include "base/simd_stream.h"
#include "mpi/rank_group.h"
#include "mpi/shuffle/link.h"

_Static_assert(sizeof(MPI_Request) + sizeof(int) <= LINK_REQUEST, "plan.c computes with it");

_Static_assert(PLAN_BUFFERS_MAX <= 8, "there is a bit for each");

/* A channel has buffers to receive into, and as many to send from, of which one fills. Its requests, in the one array
 * that MPI_Testsome gets: for each buffer that is received into, each that is sent from, credits in, credits out. */
struct link {
    MPI_Comm comm;
    uint32_t message;
    int buffers, requests; /* of a channel, each way; in all */
    uint32_t count;
    struct link_channel *channel;
    MPI_Request *request;
    int *done;            /* what MPI_Testsome says */
    MPI_Status *statuses; /* none: MPI_STATUSES_IGNORE, which GCC takes for an array where it sees it */
    uint8_t *memory;
};

static MPI_Request *link_request(struct link *l, uint32_t index, int which)
{
    return &l->request[(size_t)index * (size_t)l->requests + (size_t)which];
}

/* Of a channel the buffers to receive into, then those to send from. */
static uint8_t *link_buffer(const struct link *l, uint32_t index, int which)
{
    return l->memory + ((size_t)index * 2 * (size_t)l->buffers + (size_t)which) * l->message;
}

/* Begin to receive or send `n` bytes, as the request `which` of a channel. */
static int link_begin(struct link *l, uint32_t index, int which, uint32_t n, struct error *e)
{
    struct link_channel *c = &l->channel[index];
    int credit = which - (l->requests - 2), is_receive = which < l->buffers || credit == 0;
    void *bytes = credit < 0 ? link_buffer(l, index, which) : (uint8_t *)&c->back[credit];
    int tag = (credit < 0 ? MPI_TAG_RECORDS : MPI_TAG_CREDITS) + c->stage;
    MPI_Request *request = link_request(l, index, which);
    int code = is_receive ? MPI_Irecv(bytes, (int)n, MPI_BYTE, c->peer, tag, l->comm, request)
                          : MPI_Isend(bytes, (int)n, MPI_BYTE, c->peer, tag, l->comm, request);

    return code == MPI_SUCCESS ? DELTAFS_OK : mpi_error(e, code, is_receive ? "post a receive" : "send");
}

/* The same, where the number of bytes is known: a buffer to receive into, or credits. */
static int link_post(struct link *l, uint32_t index, int which, struct error *e)
{
    return link_begin(l, index, which, which < l->buffers ? l->message : sizeof(uint32_t), e);
}

/* Give the credits that are owed back in a message of their own; later, if one is under way. */
static int link_give_back(struct link *l, uint32_t index, struct error *e)
{
    struct link_channel *c = &l->channel[index];
    int which = l->requests - 1;

    if (*link_request(l, index, which) != MPI_REQUEST_NULL)
        return DELTAFS_OK;
    put_u32((uint8_t *)&c->back[1], c->owed);
    c->owed = 0;
    return link_post(l, index, which, e);
}

int link_create(const struct plan *p, uint32_t rank, MPI_Comm comm, struct link **out, struct error *e)
{
    struct link *l = calloc(1, sizeof *l);
    int status = DELTAFS_OK;

    if (!l)
        return error_no_memory(e, sizeof *l, "channels between nodes");
    *l = (struct link){.comm = comm,
                       .statuses = MPI_STATUSES_IGNORE,
                       .message = p->message,
                       .buffers = (int)p->buffers,
                       .requests = 2 * (int)p->buffers + 2};
    for (enum router_stage i = 0; i < STAGES; i++)
        l->count += stage_is_net(i) ? router_peers(&p->router, rank, i) : 0;
    size_t n = l->count, requests = n * (size_t)l->requests, room = n * 2 * (size_t)l->buffers * l->message;
    l->channel = calloc(n + 1, sizeof *l->channel);
    l->request = malloc((requests + 1) * sizeof *l->request);
    l->done = malloc((requests + 1) * sizeof *l->done);
    l->memory = aligned_alloc(STREAM_LINE, room + STREAM_LINE);
    if (!l->channel || !l->request || !l->done || !l->memory)
        status = error_no_memory(e, room + requests * LINK_REQUEST, "channels between nodes");
    for (size_t i = 0; i < requests && l->request; i++)
        l->request[i] = MPI_REQUEST_NULL;
    uint32_t index = 0;
    for (enum router_stage stage = 0; stage < STAGES && status == DELTAFS_OK; stage++) {
        uint32_t peers = stage_is_net(stage) ? router_peers(&p->router, rank, stage) : 0;
        for (uint32_t i = 0; i < peers && status == DELTAFS_OK; i++, index++) {
            l->channel[index] = (struct link_channel){.peer = (int32_t)router_peer(&p->router, rank, stage, i),
                                                      .stage = (uint16_t)stage,
                                                      .credits = (uint16_t)l->buffers};
            for (int k = 0; k < l->buffers && status == DELTAFS_OK; k++)
                status = link_post(l, index, k, e);
            if (status == DELTAFS_OK)
                status = link_post(l, index, l->requests - 2, e);
        }
    }
    if (status != DELTAFS_OK) {
        link_destroy(l, 0);
        return status;
    }
    *out = l;
    return DELTAFS_OK;
}

void link_destroy(struct link *l, int is_lost)
{
    if (!l)
        return;
    for (size_t i = 0; l->request && !is_lost && i < (size_t)l->count * (size_t)l->requests; i++)
        if (l->request[i] != MPI_REQUEST_NULL) {
            MPI_Cancel(&l->request[i]);
            MPI_Wait(&l->request[i], MPI_STATUS_IGNORE);
        }
    /* Where peers are lost, MPI may still read from messages under way: what they use must stay. */
    if (!is_lost) {
        free(l->memory);
        free(l->channel);
    }
    free(l->request);
    free(l->done);
    free(l);
}

static int link_complete(struct link *l, uint32_t index, int which, struct error *e)
{
    struct link_channel *c = &l->channel[index];

    if (which < l->buffers) {
        c->arrived |= (uint8_t)(1u << which);
        c->credits = (uint16_t)(c->credits + get_u16(link_buffer(l, index, which) + 18));
    } else if (which < l->requests - 2) {
        c->is_leaving &= (uint8_t) ~(1u << (which - l->buffers));
    } else if (which == l->requests - 2) {
        c->credits = (uint16_t)(c->credits + get_u32((const uint8_t *)&c->back[0]));
        return link_post(l, index, which, e);
    } else if (2 * c->owed >= l->buffers) {
        return link_give_back(l, index, e);
    }
    return DELTAFS_OK;
}

int link_poll(struct link *l, struct error *e)
{
    int count, status = DELTAFS_OK;

    if (l->count == 0)
        return DELTAFS_OK;
    int code = MPI_Testsome((int)l->count * l->requests, l->request, &count, l->done, l->statuses);
    if (code != MPI_SUCCESS)
        return mpi_error(e, code, "send or receive");
    for (int i = 0; count != MPI_UNDEFINED && i < count && status == DELTAFS_OK; i++)
        status = link_complete(l, (uint32_t)(l->done[i] / l->requests), l->done[i] % l->requests, e);
    return status;
}

uint8_t *link_acquire(struct link *l, uint32_t index)
{
    struct link_channel *c = &l->channel[index];

    if (c->credits == 0 || c->is_leaving >> c->out & 1)
        return NULL;
    return link_buffer(l, index, l->buffers + c->out);
}

int link_lacks_credit(const struct link *l, uint32_t index)
{
    return l->channel[index].credits == 0;
}

int link_send(struct link *l, uint32_t index, uint32_t bytes, struct error *e)
{
    struct link_channel *c = &l->channel[index];
    int which = l->buffers + c->out;
    uint8_t *buffer = link_buffer(l, index, which);

    put_u16(buffer + 18, c->owed);
    c->owed = 0;
    c->credits--;
    c->is_leaving |= (uint8_t)(1u << c->out);
    c->out = (uint8_t)((c->out + 1) % l->buffers);
    return link_begin(l, index, which, bytes, e);
}

const uint8_t *link_peek(const struct link *l, uint32_t index)
{
    const struct link_channel *c = &l->channel[index];

    return c->arrived >> c->in & 1 ? link_buffer(l, index, c->in) : NULL;
}

int link_release(struct link *l, uint32_t index, struct error *e)
{
    struct link_channel *c = &l->channel[index];
    int which = c->in, status = link_post(l, index, which, e);

    c->arrived &= (uint8_t) ~(1u << which);
    c->in = (uint8_t)((which + 1) % l->buffers);
    c->owed++;
    if (status == DELTAFS_OK && 2 * c->owed >= l->buffers)
        status = link_give_back(l, index, e);
    return status;
}

int link_is_sent(const struct link *l)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->channel[i].is_leaving)
            return 0;
    return 1;
}

int link_wind_up(struct link *l, struct error *e)
{
    int is_over = 1;

    for (uint32_t i = 0; i < l->count; i++) {
        const struct link_channel *c = &l->channel[i];
        if (c->owed > 0 && link_give_back(l, i, e) != DELTAFS_OK)
            return 0;
        is_over &= c->owed == 0 && c->credits == l->buffers && !c->is_leaving &&
                   *link_request(l, i, l->requests - 1) == MPI_REQUEST_NULL;
    }
    return is_over;
}
