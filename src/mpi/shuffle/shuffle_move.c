/* Moving records by a shuffle: out of channels, into them, and to storage. */
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/short_copy.h"
#include "base/thread.h"
#include "mpi/shuffle/shuffle_state.h"

#define PUT_AT_ONCE   (64u << 10) /* bytes put between two looks at what has come */
#define TAKE_AT_ONCE  8           /* messages taken from one channel before it is the turn of others */
#define ROUTE_AT_ONCE 64          /* records whose ways are looked up together */
#define ORIGIN        1u /* as the holder of a channel: this rank's own records; channels into it are 2 and up */

/* Where an error goes: the first counts. */
static struct error *shuffle_error(struct shuffle *s)
{
    return error_after(s->error.status, &s->error);
}

static void shuffle_lose(struct shuffle *s)
{
    s->is_dead = 1;
    if (s->config.lose)
        s->config.lose(s->config.arg, &s->error);
}

int shuffle_take_error(struct shuffle *s, struct error *e)
{
    int status = s->error.status;

    if (status == DELTAFS_OK)
        return DELTAFS_OK;
    *e = s->error;
    if (!s->is_dead)
        s->error = (struct error){0};
    return status;
}

void shuffle_kill(struct shuffle *s)
{
    s->is_dead = 1;
}

/* ---- Channels out ---- */

static void out_send(struct shuffle *s, struct channel_out *o, uint16_t flags)
{
    uint8_t *p = o->bytes;

    if (s->whole > 0)
        o->records = (o->used - MESSAGE_HEADER) / s->whole;
    put_u32(p, s->round);
    put_u32(p + 4, o->sent++);
    put_u32(p + 8, o->used);
    put_u32(p + 12, o->records);
    put_u16(p + 16, flags);
    put_u16(p + 18, 0);
    put_u32(p + 20, 0);
    s->stat.messages[o->stage]++;
    s->stat.bytes[o->stage] += o->used;
    s->stat.records[o->stage] += o->records;
    if (!stage_is_net(o->stage))
        ring_send(s->rings, o->index, o->used);
    else if (link_send(s->link, o->index, o->used, shuffle_error(s)) != DELTAFS_OK)
        shuffle_lose(s);
    o->bytes = NULL;
    o->used = o->room;
    s->has_sent = 1;
}

static int own_flush(struct shuffle *s);

/* Have a buffer with `need` bytes free; returns whether there is one. */
static int out_make_room(struct shuffle *s, struct channel_out *o, size_t need)
{
    if (o->bytes) {
        if (o->used + need <= o->room)
            return 1;
        if (o->bytes == s->own)
            return own_flush(s);
        out_send(s, o, 0);
        if (s->is_dead)
            return 0;
    }
    o->bytes = stage_is_net(o->stage) ? link_acquire(s->link, o->index) : ring_acquire(s->rings, o->index);
    if (!o->bytes) {
        s->why = !stage_is_net(o->stage)                ? STALL_RING
                 : link_lacks_credit(s->link, o->index) ? STALL_CREDIT
                                                        : STALL_SEND;
        return 0;
    }
    o->used = MESSAGE_HEADER;
    o->records = 0;
    return 1;
}

/* Put an item in its short form; there is room. */
static inline void out_put_whole(struct channel_out *o, const uint8_t *key, const uint8_t *value, size_t size)
{
    memcpy(o->bytes + o->used, key, 8);
    copy_short(o->bytes + o->used + 8, value, size);
    o->used += (uint32_t)(8 + size);
}

/* A piece of a value: where it is in the value, and how much of it has gone already. */
struct piece {
    uint64_t key;
    const uint8_t *bytes;
    uint32_t value_size, offset, size, moved;
};

static void out_put_piece(struct channel_out *o, struct piece *p, uint32_t n)
{
    uint8_t *to = o->bytes + o->used;

    memcpy(to, &p->key, 8);
    put_u32(to + 8, p->value_size);
    put_u32(to + 12, p->offset + p->moved);
    put_u32(to + 16, n);
    if (n > 0)
        memcpy(to + ITEM_HEADER, p->bytes + p->moved, n);
    o->used += ITEM_HEADER + n;
    p->moved += n;
    o->records += p->offset + p->moved == p->value_size;
}

/* Put a piece, or as much of it as there is room for; returns whether all of it has gone. */
static int out_put(struct shuffle *s, struct channel_out *o, uint32_t holder, struct piece *p)
{
    int is_whole = p->offset == 0 && p->moved == 0 && p->size == p->value_size;

    if (o->holder != 0 && o->holder != holder) {
        s->why = stage_is_net(o->stage) ? STALL_CREDIT : STALL_RING;
        return 0;
    }
    /* A value that fits a buffer of its own is not cut. */
    if (is_whole && MESSAGE_HEADER + ITEM_HEADER + p->size <= o->room) {
        if (!out_make_room(s, o, ITEM_HEADER + p->size))
            return 0;
        out_put_piece(o, p, p->size);
        return 1;
    }
    while (p->moved < p->size) {
        if (!out_make_room(s, o, ITEM_HEADER + 1))
            return 0;
        uint32_t room = o->room - o->used - ITEM_HEADER, left = p->size - p->moved;
        out_put_piece(o, p, left < room ? left : room);
        o->holder = holder;
    }
    /* The last piece leaves at once: at its end others may be waiting for it to pass. */
    if (p->offset + p->size == p->value_size) {
        o->holder = 0;
        out_send(s, o, 0);
    }
    return 1;
}

/* ---- Storage ---- */

static size_t shuffle_store(struct shuffle *s, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                            size_t value_stride, size_t size)
{
    size_t stored = s->config.store(s->config.arg, n, keys, key_stride, values, value_stride, size);

    if (stored < n)
        s->why = STALL_STORAGE;
    return stored;
}

/* Store what has been collected for this rank itself. Returns whether all of it is. */
static int own_flush(struct shuffle *s)
{
    struct channel_out *o = &s->out[s->channels];
    uint32_t n = (o->used - s->own_at) / (s->whole > 0 ? s->whole : 1);
    const uint8_t *p = s->own + s->own_at;

    if (n > 0)
        s->own_at += s->whole * (uint32_t)shuffle_store(s, n, p, s->whole, p + 8, s->whole, s->whole - 8);
    if (s->own_at < o->used)
        return 0;
    s->own_at = o->used = 0;
    return 1;
}

static void shuffle_drop_value(struct shuffle *s)
{
    free(s->value);
    s->value = NULL;
    s->value_holder = 0;
}

/* Take a piece of a value that is for this rank; returns 0 if it must wait, -1 if it does not follow the last. Only one
 * long value is put together at a time, so that no more memory is needed than for one. */
static int shuffle_store_piece(struct shuffle *s, uint32_t holder, struct piece *p)
{
    if (p->offset == 0 && p->size == p->value_size)
        return shuffle_store(s, 1, (uint8_t *)&p->key, 0, p->bytes, 0, p->size) == 1;
    if (s->value_holder == 0 && p->offset == 0) {
        s->value = malloc(p->value_size);
        s->value_key = p->key;
        s->value_size = p->value_size;
        s->value_got = 0;
        s->value_holder = holder;
        if (!s->value)
            error_no_memory(shuffle_error(s), p->value_size, "a value under way");
    }
    s->why = STALL_STORAGE;
    if (s->value_holder != holder)
        return s->value_holder == 0 ? -1 : 0;
    if (p->value_size != s->value_size || p->key != s->value_key)
        return -1;
    if (p->moved == 0) {
        if (p->offset != s->value_got)
            return -1;
        if (s->value)
            memcpy(s->value + p->offset, p->bytes, p->size);
        s->value_got += p->size;
        p->moved = p->size;
    }
    if (p->offset + p->size < p->value_size)
        return 1;
    if (s->value && shuffle_store(s, 1, (uint8_t *)&p->key, 0, s->value, 0, p->value_size) == 0)
        return 0;
    shuffle_drop_value(s);
    return 1;
}

/* ---- Channels in ---- */

static inline uint64_t key_at(const uint8_t *p)
{
    uint64_t key;

    memcpy(&key, p, sizeof key);
    return key;
}

/* The channel by which a partition's records go on from where they came to in stage `came`; s->channels: none, they are
 * this rank's. */
static inline uint32_t shuffle_channel(const struct shuffle *s, uint32_t partition, int came)
{
    uint32_t channel = s->table ? s->table[partition] : shuffle_compute(s, partition);

    return came == STAGE_VIA && channel < s->base[STAGE_VIA] ? channel + s->stage_shift : channel;
}

/* The partitions of `n` keys, at most ROUTE_AT_ONCE. */
static void shuffle_find(const struct shuffle *s, const uint8_t *keys, size_t stride, size_t n, uint32_t *partitions)
{
    const struct partitioner *by = &s->by;
    uint64_t hash[ROUTE_AT_ONCE];

    if (by->pivots) {
        for (size_t i = 0; i < n; i++)
            partitions[i] = partition_of_pivots(by->pivots, by->partitions - 1, key_at(keys + i * stride));
        return;
    }
    if (by->fn) {
        for (size_t i = 0; i < n; i++)
            partitions[i] = partition_of(by, key_at(keys + i * stride));
        return;
    }
    hash_keys(keys, stride, n, hash);
    for (size_t i = 0; i < n; i++)
        partitions[i] = partition_of_hash(hash[i], by->partitions);
}

/* The channels of the records of `n` keys, at most ROUTE_AT_ONCE. */
static void shuffle_route(const struct shuffle *s, const uint8_t *keys, size_t stride, size_t n, int came,
                          uint32_t *channels)
{
    shuffle_find(s, keys, stride, n, channels);
    for (size_t i = 0; i < n; i++)
        channels[i] = shuffle_channel(s, channels[i], came);
}

/* As the holder of others. */
static uint32_t in_holder(const struct shuffle *s, const struct channel_in *in)
{
    return (uint32_t)(in - s->in) + 2;
}

/* Whether a value that came in pieces lacks its rest. */
static int in_is_open(const struct shuffle *s, const struct channel_in *in)
{
    uint32_t holder = in_holder(s, in);

    for (uint32_t i = 0; i < s->channels; i++)
        if (s->out[i].holder == holder)
            return 1;
    return s->value_holder == holder;
}

static void in_malformed(struct shuffle *s, struct channel_in *in, const char *what)
{
    error_set(shuffle_error(s), DELTAFS_ERR_MPI, "a message of stage %d to rank %u %s", in->stage, s->config.rank,
              what);
    in->at = in->end;
    /* The rest of a value in pieces will not be known for what it is: what waits for it must not. */
    uint32_t holder = in_holder(s, in);
    for (uint32_t i = 0; i < s->channels; i++)
        s->out[i].holder = s->out[i].holder == holder ? 0 : s->out[i].holder;
    if (s->value_holder == holder)
        shuffle_drop_value(s);
}

/* Have a message to take in; returns whether there is one. */
static int in_begin(struct shuffle *s, struct channel_in *in)
{
    uint32_t room = stage_is_net(in->stage) ? s->plan.message : s->plan.chunk;

    in->bytes = stage_is_net(in->stage) ? link_peek(s->link, in->index) : ring_peek(s->rings, in->index);
    if (!in->bytes)
        return 0;
    in->at = MESSAGE_HEADER;
    in->end = get_u32(in->bytes + 8);
    in->records = 0;
    in->moved = 0;
    if (in->end < MESSAGE_HEADER || in->end > room) {
        in->end = MESSAGE_HEADER;
        in_malformed(s, in, "has no length");
    } else if (get_u32(in->bytes) != s->round || get_u32(in->bytes + 4) != in->received) {
        in_malformed(s, in, "is of another round, or one before it is missing");
    }
    in->received++;
    return 1;
}

static void in_finish(struct shuffle *s, struct channel_in *in)
{
    if (s->error.status == DELTAFS_OK && (get_u32(in->bytes + 12) != in->records || in->at != in->end))
        in_malformed(s, in, "does not have as many records as it says");
    if (get_u16(in->bytes + 16) & MESSAGE_END) {
        if (s->whole == 0 && in_is_open(s, in))
            in_malformed(s, in, "ends amid a value");
        in->has_ended = 1;
        s->open[in->stage]--;
    }
    if (!stage_is_net(in->stage))
        ring_release(s->rings, in->index);
    else if (link_release(s->link, in->index, shuffle_error(s)) != DELTAFS_OK)
        shuffle_lose(s);
    in->bytes = NULL;
}

/* Whether `n` records, at most ROUTE_AT_ONCE, are of this rank's partitions. Of a rank with one, placed by hash, only
 * the first is looked at: to hash every key again takes a tenth of a shuffle's time, and a rank that hashes differently
 * is found by its first messages. Pivots and a function of the program's may differ in a few keys, and where a rank has
 * several partitions its writer relies on this. */
static int shuffle_owns(const struct shuffle *s, const uint8_t *keys, size_t stride, size_t n)
{
    uint32_t partition[ROUTE_AT_ONCE], others = 0;

    n = s->own_count == 1 && !s->by.fn && !s->by.pivots ? 1 : n;
    shuffle_find(s, keys, stride, n, partition);
    for (size_t i = 0; i < n; i++)
        others |= partition[i] - s->own_first >= s->own_count;
    return !others;
}

/* Take items in their short form, all of which must be for this rank. */
static void in_take_last(struct shuffle *s, struct channel_in *in)
{
    uint32_t left;

    while ((left = (in->end - in->at) / s->whole) > 0) {
        const uint8_t *p = in->bytes + in->at;
        uint32_t n = left < ROUTE_AT_ONCE ? left : ROUTE_AT_ONCE;
        if (!shuffle_owns(s, p, s->whole, n)) {
            in_malformed(s, in, "has a record that another rank owns");
            return;
        }
        uint32_t stored = (uint32_t)shuffle_store(s, n, p, s->whole, p + 8, s->whole, s->whole - 8);
        in->at += stored * s->whole;
        in->records += stored;
        if (stored < n)
            return;
    }
}

/* Take or forward items in their short form. A record goes on by a later stage; the rank's own counts as the last. */
static void in_take_whole(struct shuffle *s, struct channel_in *in)
{
    uint32_t channels[ROUTE_AT_ONCE], left;

    while ((left = (in->end - in->at) / s->whole) > 0) {
        uint32_t some = left < ROUTE_AT_ONCE ? left : ROUTE_AT_ONCE;
        shuffle_route(s, in->bytes + in->at, s->whole, some, in->stage, channels);
        for (uint32_t i = 0; i < some; i++) {
            const uint8_t *p = in->bytes + in->at;
            struct channel_out *o = &s->out[channels[i]];
            if (o->stage <= in->stage) {
                in_malformed(s, in, "has a record that should not have come here");
                return;
            }
            if (o->used + s->whole > o->room && !out_make_room(s, o, s->whole))
                return;
            out_put_whole(o, p, p + 8, s->whole - 8);
            in->at += s->whole;
            in->records++;
        }
    }
}

/* Take or forward items with their sizes. */
static void in_take_pieces(struct shuffle *s, struct channel_in *in)
{
    uint32_t holder = in_holder(s, in);

    while (in->end - in->at >= ITEM_HEADER) {
        const uint8_t *p = in->bytes + in->at;
        struct piece piece = {.key = key_at(p),
                              .bytes = p + ITEM_HEADER,
                              .value_size = get_u32(p + 8),
                              .offset = get_u32(p + 12),
                              .size = get_u32(p + 16),
                              .moved = in->moved};
        uint32_t channel = shuffle_channel(s, partition_of(&s->by, piece.key), in->stage);
        int has_nothing = piece.size == 0 && piece.value_size > 0;
        if (piece.value_size > BLOCK_VALUE_MAX || piece.offset > piece.value_size || has_nothing ||
            piece.size > piece.value_size - piece.offset || piece.size > in->end - in->at - ITEM_HEADER ||
            s->out[channel].stage <= in->stage) {
            in_malformed(s, in, "has a record that cannot be right");
            return;
        }
        int is_taken = channel == s->channels ? shuffle_store_piece(s, holder, &piece)
                                              : out_put(s, &s->out[channel], holder, &piece);
        in->moved = piece.moved;
        if (is_taken < 0)
            in_malformed(s, in, "has a piece of a value that does not follow the one before");
        if (is_taken <= 0)
            return;
        in->moved = 0;
        in->at += ITEM_HEADER + piece.size;
        in->records += piece.offset + piece.size == piece.value_size;
    }
}

/* Take in what a channel has, as far as it can go on; returns whether anything moved. */
static int in_take(struct shuffle *s, struct channel_in *in)
{
    int has_moved = 0;

    for (int i = 0; i < TAKE_AT_ONCE && !in->has_ended && !s->is_dead; i++) {
        if (!in->bytes && !in_begin(s, in))
            break;
        uint32_t before = in->at, moved = in->moved;
        if (s->whole == 0)
            in_take_pieces(s, in);
        else if (in->stage == STAGE_IN || s->plan.router.kind == ROUTER_DIRECT)
            in_take_last(s, in);
        else
            in_take_whole(s, in);
        has_moved |= in->at != before || in->moved != moved;
        if (in->end - in->at >= (s->whole ? s->whole : ITEM_HEADER))
            break;
        in_finish(s, in);
        has_moved = 1;
    }
    return has_moved;
}

/* ---- Progress ---- */

/* Whether no more can come in by stages before `stage`. */
static int shuffle_is_drained(const struct shuffle *s, uint32_t stage)
{
    for (uint32_t i = 0; i < stage; i++)
        if (s->open[i] > 0)
            return 0;
    return s->has_ended;
}

/* Put the marks that can be put. Returns whether any was. */
static int shuffle_put_marks(struct shuffle *s)
{
    int has_moved = 0;

    while (s->end_stage < STAGES && shuffle_is_drained(s, s->end_stage)) {
        uint32_t end = s->end_stage + 1 < STAGES ? s->base[s->end_stage + 1] : s->channels;
        for (; s->end_next < end; s->end_next++) {
            struct channel_out *o = &s->out[s->end_next];
            if (!out_make_room(s, o, 0))
                return has_moved;
            out_send(s, o, MESSAGE_END);
            has_moved = 1;
        }
        s->end_stage++;
    }
    return has_moved;
}

int shuffle_progress(struct shuffle *s)
{
    int has_moved = s->has_sent;

    if (!s->is_open || s->is_dead)
        return 0;
    s->has_sent = 0;
    if (link_poll(s->link, shuffle_error(s)) != DELTAFS_OK)
        shuffle_lose(s);
    /* The last stages first: they make room for the others. */
    for (uint32_t i = s->channels; i-- > 0 && !s->is_dead;)
        has_moved |= in_take(s, &s->in[i]);
    if (s->has_ended && !s->is_dead)
        has_moved |= shuffle_put_marks(s);
    return has_moved;
}

/* ---- From here ---- */

/* Something is full: let others have their turn. */
static void shuffle_wait(struct shuffle *s, enum shuffle_stall why)
{
    uint64_t start = thread_clock();

    s->config.wait(s->config.arg);
    s->stat.stall_ns[why] += thread_clock() - start;
}

/* Wait until a channel has `need` bytes free. Returns whether it has; if not, all is lost. */
static int shuffle_wait_room(struct shuffle *s, struct channel_out *o, size_t need)
{
    if (out_make_room(s, o, need))
        return 1;
    s->stat.stalls[s->why]++;
    do {
        shuffle_wait(s, s->why);
    } while (!s->is_dead && !out_make_room(s, o, need));
    return !s->is_dead;
}

/* Send a record with its size. */
static void shuffle_put_sized(struct shuffle *s, uint64_t key, const uint8_t *value, size_t size)
{
    uint32_t channel = shuffle_channel(s, partition_of(&s->by, key), STAGE_OUT);
    struct piece p = {.key = key, .bytes = value, .value_size = (uint32_t)size, .size = (uint32_t)size};
    int is_first = 1;

    while (!s->is_dead && !(channel == s->channels ? shuffle_store_piece(s, ORIGIN, &p) == 1
                                                   : out_put(s, &s->out[channel], ORIGIN, &p))) {
        s->stat.stalls[s->why] += (uint64_t)is_first;
        is_first = 0;
        shuffle_wait(s, s->why);
    }
}

/* Send records in their short form, at most ROUTE_AT_ONCE. */
static void shuffle_put_some(struct shuffle *s, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                             size_t value_stride, size_t size)
{
    uint32_t channels[ROUTE_AT_ONCE];

    shuffle_route(s, keys, key_stride, n, STAGE_OUT, channels);
    for (size_t i = 0; i < n; i++, keys += key_stride) {
        struct channel_out *o = &s->out[channels[i]];
        if (o->used + s->whole > o->room && !shuffle_wait_room(s, o, s->whole))
            return;
        out_put_whole(o, keys, size > 0 ? values + i * value_stride : NULL, size);
    }
}

void shuffle_pass(struct shuffle *s, size_t bytes)
{
    s->since_progress += bytes;
    if (s->since_progress < PUT_AT_ONCE)
        return;
    s->since_progress = 0;
    shuffle_progress(s);
}

void shuffle_put(struct shuffle *s, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                 size_t value_stride, size_t size)
{
    while (n > 0 && !s->is_dead) {
        size_t some = s->whole == 0 ? 1 : n < ROUTE_AT_ONCE ? n : ROUTE_AT_ONCE;
        if (s->whole > 0)
            shuffle_put_some(s, some, keys, key_stride, values, value_stride, size);
        else
            shuffle_put_sized(s, key_at(keys), values, size);
        n -= some;
        keys += some * key_stride;
        if (size > 0)
            values += some * value_stride;
        shuffle_pass(s, some * (8 + size));
    }
}

void shuffle_end(struct shuffle *s)
{
    s->has_ended = 1;
    s->stat.stalls[STALL_END]++;
    shuffle_progress(s);
    while (!s->is_dead &&
           !(s->end_stage == STAGES && shuffle_is_drained(s, STAGES) && own_flush(s) && link_is_sent(s->link)))
        shuffle_wait(s, STALL_END);
    shuffle_drop_value(s);
}

void shuffle_begin(struct shuffle *s)
{
    s->round++;
    s->has_ended = 0;
    s->end_stage = s->end_next = 0;
    for (int i = 0; i < STAGES; i++)
        s->open[i] = 0;
    for (uint32_t i = 0; i < s->channels; i++) {
        s->out[i].sent = s->out[i].holder = 0;
        s->in[i].received = s->in[i].has_ended = 0;
        s->open[s->in[i].stage]++;
    }
}

void shuffle_wind_up(struct shuffle *s)
{
    struct error e = {0};

    while (!s->is_dead && !link_wind_up(s->link, &e)) {
        if (e.status != DELTAFS_OK) {
            *shuffle_error(s) = e;
            shuffle_lose(s);
        }
        shuffle_wait(s, STALL_END);
    }
}
