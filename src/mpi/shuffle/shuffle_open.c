/* Making a shuffle: its channels, and the table of where the records of each partition go. */
#include <stdlib.h>
#include "mpi/shuffle/shuffle_state.h"

#define WHOLE_ITEMS_MIN 4 /* values of one size go without their sizes if so many fit any buffer */
#define NOT_IN_TABLE    UINT16_MAX

/* Number the channels, and say which has which ring or link. */
static int shuffle_open_channels(struct shuffle *s, struct error *e)
{
    const struct router *r = &s->plan.router;

    for (enum router_stage i = 0; i < STAGES; i++) {
        s->base[i] = s->channels;
        s->channels += router_peers(r, s->config.rank, i);
    }
    s->stage_shift = s->base[STAGE_MID] - s->base[STAGE_OUT];
    s->out = calloc(s->channels + 1u, sizeof *s->out);
    s->in = calloc(s->channels + 1u, sizeof *s->in);
    s->own = malloc(OWN_BYTES);
    if (!s->out || !s->in || !s->own)
        return error_no_memory(e, OWN_BYTES + s->channels * CHANNEL_BYTES, "channels");
    s->out[s->channels] = (struct channel_out){.bytes = s->own, .room = OWN_BYTES, .stage = STAGES};
    uint32_t links = 0, rings = 0;
    struct channel_out *out = s->out;
    struct channel_in *in = s->in;
    for (enum router_stage i = 0; i < STAGES; i++)
        for (uint32_t k = 0; k < router_peers(r, s->config.rank, i); k++) {
            uint32_t index = stage_is_net(i) ? links++ : rings++;
            uint32_t room = stage_is_net(i) ? s->plan.message : s->plan.chunk;
            *out++ = (struct channel_out){.index = index, .used = room, .room = room, .stage = (uint8_t)i};
            *in++ = (struct channel_in){.index = index, .stage = (uint8_t)i};
        }
    return DELTAFS_OK;
}

uint32_t shuffle_compute(const struct shuffle *s, uint32_t partition)
{
    uint32_t owner = (uint32_t)partition_owner(partition, s->plan.partitions, (int)s->config.ranks);
    const struct router *r = &s->plan.router;

    if (owner == s->config.rank)
        return s->channels;
    struct router_hop hop = router_next(r, s->config.rank, STAGE_OUT, owner);
    return s->base[hop.stage] + router_peer_index(r, s->config.rank, hop.stage, hop.rank);
}

static int shuffle_make_table(struct shuffle *s, struct error *e)
{
    size_t n = s->plan.partitions;

    if (!plan_has_table(&s->plan) || s->channels >= NOT_IN_TABLE)
        return DELTAFS_OK;
    s->table = malloc(n * sizeof *s->table);
    if (!s->table)
        return error_no_memory(e, n * sizeof *s->table, "routes");
    for (uint32_t i = 0; i < n; i++)
        s->table[i] = (uint16_t)shuffle_compute(s, i);
    return DELTAFS_OK;
}

static void shuffle_find_own(struct shuffle *s)
{
    int rank = (int)s->config.rank, ranks = (int)s->config.ranks;

    s->own_first = partition_first(rank, s->plan.partitions, ranks);
    s->own_count = partition_first(rank + 1, s->plan.partitions, ranks) - s->own_first;
}

void shuffle_place(struct shuffle *s, const struct partitioner *by)
{
    s->by = *by;
}

/* Bytes of an item in its short form, or 0 if it has none. */
static uint32_t shuffle_whole(const struct plan *p, int64_t value_size)
{
    uint32_t room = (p->message < p->chunk ? p->message : p->chunk) - MESSAGE_HEADER;

    room = room < OWN_BYTES ? room : OWN_BYTES;
    return value_size >= 0 && (uint64_t)value_size + 8 <= room / WHOLE_ITEMS_MIN ? (uint32_t)value_size + 8 : 0;
}

uint64_t shuffle_memory(const struct shuffle *s)
{
    uint64_t value = s->config.value_size < 0 ? BLOCK_VALUE_MAX : (uint64_t)s->config.value_size;

    return s->stat.memory + (s->whole > 0 ? 0 : value);
}

int shuffle_create(const struct shuffle_config *c, struct shuffle **out, struct error *e)
{
    struct shuffle *s = calloc(1, sizeof *s);

    if (!s)
        return error_no_memory(e, sizeof *s, "the shuffle");
    s->config = *c;
    s->plan = *c->plan;
    s->whole = shuffle_whole(c->plan, c->value_size);
    s->by = (struct partitioner){.partitions = s->plan.partitions};
    shuffle_find_own(s);
    int status = rings_create(&s->plan, c->rank, c->cache, &s->rings, e);
    if (status == DELTAFS_OK)
        status = link_create(&s->plan, c->rank, c->comm, &s->link, e);
    if (status == DELTAFS_OK)
        status = shuffle_open_channels(s, e);
    if (status == DELTAFS_OK)
        status = shuffle_make_table(s, e);
    if (status != DELTAFS_OK) {
        shuffle_destroy(s);
        return status;
    }
    s->stat.memory = plan_bytes(&s->plan, c->rank);
    shuffle_begin(s);
    s->round = 0;
    *out = s;
    return DELTAFS_OK;
}

int shuffle_share(struct shuffle *s, MPI_Comm node, struct error *e)
{
    int status = rings_share(s->rings, node, e);

    s->is_open = status == DELTAFS_OK;
    return status;
}

void shuffle_destroy(struct shuffle *s)
{
    if (!s)
        return;
    link_destroy(s->link, s->is_dead);
    rings_destroy(s->rings, s->is_dead);
    free(s->out);
    free(s->in);
    free(s->own);
    free(s->table);
    free(s->value);
    free(s);
}

void shuffle_get_stat(const struct shuffle *s, struct shuffle_stat *out)
{
    *out = s->stat;
}

const struct plan *shuffle_plan(const struct shuffle *s)
{
    return &s->plan;
}
