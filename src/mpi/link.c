#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include "base/buffer.h"
#include "base/coding.h"
#include "mpi/link.h"
#include "mpi/mpi_tags.h"

#define MESSAGE_HEADER 8
#define ITEM_HEADER    20 /* key, value size, offset, piece */
#define SLOTS_MIN      2
#define RECEIVES_MAX   32

struct send_slot {
    uint8_t *bytes;
    size_t used; /* 0: free */
    uint32_t records;
    int peer;
};

/* A long value of which some pieces have come; its sender sends nothing else between them. */
struct partial {
    struct partial *next;
    int source;
    struct buffer value;
    size_t got;
};

struct link {
    struct link_config config;
    uint32_t round;
    int is_compact; /* items are key and value alone */
    struct error error;
    int is_dead; /* MPI has failed: nothing is sent or received any more */
    uint8_t *memory;
    size_t memory_size;
    /* Sending: */
    struct send_slot *slot;
    MPI_Request *request; /* of each slot; MPI_REQUEST_NULL if none is under way */
    int *done;            /* scratch of link_complete_sends, as is the next */
    MPI_Status *statuses;
    int slots;
    int32_t *open;      /* by peer: the slot that collects for it, or -1 */
    int32_t *free_slot; /* stack */
    int free_count;
    uint32_t *sent; /* by peer: messages of the round */
    /* Receiving: */
    uint8_t **receive;
    MPI_Request *receive_request;
    int receives, head;
    uint64_t received; /* messages of the round */
    int is_receiving;  /* delivery is under way: no recursion */
    struct partial *partials;
    int ranks;
};

static void link_fail(struct link *l, const struct error *e)
{
    if (l->error.status == DELTAFS_OK)
        l->error = *e;
}

static void link_mpi_failed(struct link *l, int code, const char *what)
{
    struct error e;

    agree_mpi_error(&e, code, what);
    link_fail(l, &e);
    l->is_dead = 1;
}

int link_take_error(struct link *l, struct error *e)
{
    int status = l->error.status;

    if (status == DELTAFS_OK)
        return DELTAFS_OK;
    *e = l->error;
    if (!l->is_dead)
        l->error = (struct error){0};
    return status;
}

void link_kill(struct link *l)
{
    l->is_dead = 1;
}

size_t link_memory(const struct link *l)
{
    return l->memory_size;
}

/* ---- Setting up ---- */

static int link_post(struct link *l, int i)
{
    int code = MPI_Irecv(l->receive[i], (int)l->config.message, MPI_BYTE, MPI_ANY_SOURCE, MPI_TAG_LINK, l->config.comm,
                         &l->receive_request[i]);

    if (code != MPI_SUCCESS)
        link_mpi_failed(l, code, "post a receive");
    return code;
}

static int link_allocate(struct link *l, struct error *e)
{
    size_t message = l->config.message, total = (size_t)l->slots + (size_t)l->receives;
    size_t ranks = (size_t)l->ranks;

    l->memory_size = total * message + ranks * (sizeof *l->open + sizeof *l->sent);
    l->memory = malloc(total * message);
    l->slot = calloc((size_t)l->slots, sizeof *l->slot);
    l->request = malloc((size_t)l->slots * sizeof *l->request);
    l->done = malloc((size_t)l->slots * sizeof *l->done);
    l->statuses = malloc((size_t)l->slots * sizeof *l->statuses);
    l->free_slot = malloc((size_t)l->slots * sizeof *l->free_slot);
    l->open = malloc(ranks * sizeof *l->open);
    l->sent = calloc(ranks, sizeof *l->sent);
    l->receive = malloc((size_t)l->receives * sizeof *l->receive);
    l->receive_request = malloc((size_t)l->receives * sizeof *l->receive_request);
    if (!l->memory || !l->slot || !l->request || !l->done || !l->statuses || !l->free_slot || !l->open || !l->sent ||
        !l->receive || !l->receive_request)
        return error_no_memory(e, l->memory_size, "messages");
    for (int i = 0; i < l->slots; i++) {
        l->slot[i].bytes = l->memory + (size_t)i * message;
        l->request[i] = MPI_REQUEST_NULL;
        l->free_slot[l->free_count++] = l->slots - 1 - i;
    }
    for (int i = 0; i < l->ranks; i++)
        l->open[i] = -1;
    for (int i = 0; i < l->receives; i++) {
        l->receive[i] = l->memory + ((size_t)l->slots + (size_t)i) * message;
        l->receive_request[i] = MPI_REQUEST_NULL;
    }
    return DELTAFS_OK;
}

int link_create(const struct link_config *c, struct link **out, struct error *e)
{
    struct link *l = calloc(1, sizeof *l);

    if (!l)
        return error_no_memory(e, sizeof *l, "a link");
    l->config = *c;
    MPI_Comm_size(c->comm, &l->ranks);
    /* Two slots a peer keep one collecting while the other is under way; a third of the memory receives. */
    size_t slots = c->memory / c->message, receives = slots / 3;
    receives = receives < SLOTS_MIN ? SLOTS_MIN : receives > RECEIVES_MAX ? RECEIVES_MAX : receives;
    slots = slots > receives + SLOTS_MIN ? slots - receives : SLOTS_MIN;
    if (slots > 2 * (size_t)c->peers + SLOTS_MIN)
        slots = 2 * (size_t)c->peers + SLOTS_MIN;
    l->slots = (int)slots;
    l->receives = (int)receives;
    l->is_compact = c->value_size >= 0 && MESSAGE_HEADER + 8 + (size_t)c->value_size <= c->message;
    int status = link_allocate(l, e);
    for (int i = 0; i < l->receives && status == DELTAFS_OK; i++)
        if (link_post(l, i) != MPI_SUCCESS) {
            *e = l->error;
            status = e->status;
        }
    if (status != DELTAFS_OK) {
        link_destroy(l);
        return status;
    }
    *out = l;
    return DELTAFS_OK;
}

static void link_drop_partials(struct link *l)
{
    while (l->partials) {
        struct partial *p = l->partials;
        l->partials = p->next;
        buffer_fini(&p->value);
        free(p);
    }
}

void link_destroy(struct link *l)
{
    if (!l)
        return;
    for (int i = 0; l->receive_request && i < l->receives; i++)
        if (l->receive_request[i] != MPI_REQUEST_NULL) {
            MPI_Cancel(&l->receive_request[i]);
            MPI_Wait(&l->receive_request[i], MPI_STATUS_IGNORE);
        }
    link_drop_partials(l);
    /* Where peers are lost, MPI may still read from messages under way: their memory must stay. */
    if (!l->is_dead)
        free(l->memory);
    free(l->slot);
    free(l->request);
    free(l->done);
    free(l->statuses);
    free(l->free_slot);
    free(l->open);
    free(l->sent);
    free(l->receive);
    free(l->receive_request);
    free(l);
}

/* ---- Receiving ---- */

static struct partial *link_partial(struct link *l, int source)
{
    struct partial *p = l->partials;

    while (p && p->source != source)
        p = p->next;
    if (p)
        return p;
    p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->source = source;
    p->next = l->partials;
    l->partials = p;
    return p;
}

static void link_forget_partial(struct link *l, struct partial *gone)
{
    struct partial **at = &l->partials;

    while (*at != gone)
        at = &(*at)->next;
    *at = gone->next;
    buffer_fini(&gone->value);
    free(gone);
}

/* A piece of a long value; returns whether it fits what came before. */
static int link_take_piece(struct link *l, int source, uint64_t key, size_t size, size_t offset, const uint8_t *bytes,
                           size_t n)
{
    struct error e;
    struct partial *p = link_partial(l, source);

    if (!p || buffer_reserve(&p->value, size, "a value under way", &e) != DELTAFS_OK) {
        error_no_memory(&e, size, "a value under way");
        link_fail(l, &e);
        return 1;
    }
    if (p->got != offset || n > size - offset)
        return 0;
    memcpy(p->value.bytes + offset, bytes, n);
    p->got += n;
    if (p->got == size) {
        l->config.deliver(l->config.arg, key, p->value.bytes, size);
        link_forget_partial(l, p);
    }
    return 1;
}

/* Deliver the records of one message; returns whether it was well-formed. */
static int link_take_message(struct link *l, int source, const uint8_t *p, size_t n)
{
    const uint8_t *end = p + n;
    uint32_t records = 0, expected;

    if (n < MESSAGE_HEADER || get_u32(p) != l->round)
        return 0;
    expected = get_u32(p + 4);
    p += MESSAGE_HEADER;
    if (l->is_compact) {
        size_t size = (size_t)l->config.value_size;
        for (; (size_t)(end - p) >= 8 + size; p += 8 + size, records++)
            l->config.deliver(l->config.arg, get_u64(p), p + 8, size);
        return p == end && records == expected;
    }
    while (end - p >= ITEM_HEADER) {
        uint64_t key = get_u64(p);
        size_t size = get_u32(p + 8), offset = get_u32(p + 12), piece = get_u32(p + 16);
        p += ITEM_HEADER;
        if (piece > (size_t)(end - p) || offset > size)
            return 0;
        if (piece == size)
            l->config.deliver(l->config.arg, key, p, size);
        else if (!link_take_piece(l, source, key, size, offset, p, piece))
            return 0;
        p += piece;
        records += offset + piece == size;
    }
    return p == end && records == expected;
}

static void link_complete_receives(struct link *l)
{
    while (!l->is_dead) {
        MPI_Status status;
        int done, n, i = l->head, code = MPI_Test(&l->receive_request[i], &done, &status);
        if (code != MPI_SUCCESS) {
            link_mpi_failed(l, code, "receive");
            return;
        }
        if (!done)
            return;
        MPI_Get_count(&status, MPI_BYTE, &n);
        l->received++;
        if (!link_take_message(l, status.MPI_SOURCE, l->receive[i], (size_t)n)) {
            struct error e;
            error_set(&e, DELTAFS_ERR_MPI, "a message of %d bytes from rank %d is malformed or of another round", n,
                      status.MPI_SOURCE);
            link_fail(l, &e);
        }
        link_post(l, i);
        l->head = (i + 1) % l->receives;
    }
}

/* ---- Sending ---- */

static void link_complete_sends(struct link *l)
{
    int count, code;

    if (l->is_dead)
        return;
    code = MPI_Testsome(l->slots, l->request, &count, l->done, l->statuses);
    if (code != MPI_SUCCESS) {
        link_mpi_failed(l, code, "send");
        return;
    }
    for (int k = 0; count != MPI_UNDEFINED && k < count; k++) {
        l->slot[l->done[k]].used = 0;
        l->free_slot[l->free_count++] = l->done[k];
    }
}

void link_progress(void *link)
{
    struct link *l = link;

    if (l->is_receiving)
        return;
    l->is_receiving = 1;
    link_complete_receives(l);
    l->is_receiving = 0;
    link_complete_sends(l);
}

static void link_send_slot(struct link *l, int i)
{
    struct send_slot *s = &l->slot[i];

    put_u32(s->bytes, l->round);
    put_u32(s->bytes + 4, s->records);
    int code = MPI_Issend(s->bytes, (int)s->used, MPI_BYTE, s->peer, MPI_TAG_LINK, l->config.comm, &l->request[i]);
    if (code == MPI_SUCCESS)
        l->sent[s->peer]++;
    else
        link_mpi_failed(l, code, "send");
    l->open[s->peer] = -1;
}

/* Send the fullest of the slots that collect, if any does. */
static void link_send_fullest(struct link *l)
{
    int fullest = -1;

    for (int i = 0; i < l->slots; i++)
        if (l->slot[i].used > 0 && l->open[l->slot[i].peer] == i &&
            (fullest < 0 || l->slot[i].used > l->slot[fullest].used))
            fullest = i;
    if (fullest >= 0)
        link_send_slot(l, fullest);
}

/* The slot that collects for `peer`, with `need` bytes free; NULL if the link has failed. */
static struct send_slot *link_slot_for(struct link *l, int peer, size_t need)
{
    int i = l->open[peer];

    if (i >= 0 && l->slot[i].used + need <= l->config.message)
        return &l->slot[i];
    if (i >= 0) {
        link_send_slot(l, i);
        link_progress(l);
    }
    if (l->free_count == 0)
        link_send_fullest(l);
    while (l->free_count == 0 && !l->is_dead) {
        l->config.wait(l->config.arg);
        if (l->free_count == 0)
            sched_yield();
    }
    if (l->is_dead)
        return NULL;
    i = l->free_slot[--l->free_count];
    l->open[peer] = i;
    l->slot[i].peer = peer;
    l->slot[i].used = MESSAGE_HEADER;
    l->slot[i].records = 0;
    return &l->slot[i];
}

static void link_send_pieces(struct link *l, int peer, uint64_t key, const uint8_t *value, size_t size)
{
    size_t at = 0;

    do {
        struct send_slot *s = link_slot_for(l, peer, ITEM_HEADER + (size > at ? 1 : 0));
        if (!s)
            return;
        size_t room = l->config.message - s->used - ITEM_HEADER, piece = size - at < room ? size - at : room;
        /* A value that fits a message of its own is not cut. */
        if (piece < size && at == 0 && MESSAGE_HEADER + ITEM_HEADER + size <= l->config.message) {
            s = link_slot_for(l, peer, ITEM_HEADER + size);
            if (!s)
                return;
            piece = size;
        }
        uint8_t *p = s->bytes + s->used;
        put_u64(p, key);
        put_u32(p + 8, (uint32_t)size);
        put_u32(p + 12, (uint32_t)at);
        put_u32(p + 16, (uint32_t)piece);
        if (piece > 0)
            memcpy(p + ITEM_HEADER, value + at, piece);
        s->used += ITEM_HEADER + piece;
        at += piece;
        s->records += at == size;
    } while (at < size);
}

void link_send(struct link *l, int peer, uint64_t key, const void *value, size_t size)
{
    if (l->is_dead)
        return;
    if (!l->is_compact) {
        link_send_pieces(l, peer, key, value, size);
        return;
    }
    struct send_slot *s = link_slot_for(l, peer, 8 + size);
    if (!s)
        return;
    put_u64(s->bytes + s->used, key);
    if (size > 0)
        memcpy(s->bytes + s->used + 8, value, size);
    s->used += 8 + size;
    s->records++;
}

void link_flush(struct link *l)
{
    for (int i = 0; i < l->slots && !l->is_dead; i++)
        if (l->slot[i].used > 0 && l->open[l->slot[i].peer] == i)
            link_send_slot(l, i);
    while (l->free_count < l->slots && !l->is_dead) {
        l->config.wait(l->config.arg);
        if (l->free_count < l->slots)
            sched_yield();
    }
}

void link_drain(struct link *l, const struct agree *a)
{
    uint32_t expected = 0;
    MPI_Request request;
    struct error e;
    int code = MPI_Ireduce_scatter_block(l->sent, &expected, 1, MPI_UINT32_T, MPI_SUM, a->comm, &request);

    if (code != MPI_SUCCESS) {
        link_mpi_failed(l, code, "count messages");
        return;
    }
    if (agree_wait(a, &request, "count messages", &e) != DELTAFS_OK) {
        link_fail(l, &e);
        l->is_dead = 1;
        return;
    }
    while (l->received < expected && !l->is_dead) {
        l->config.wait(l->config.arg);
        if (l->received < expected)
            sched_yield();
    }
    l->round++;
    l->received = 0;
    memset(l->sent, 0, (size_t)l->ranks * sizeof *l->sent);
    link_drop_partials(l);
}
