#include "mpi/shuffle/router.h"

/* Nodes that share pairs with a node are its neighbours: all others (3hop), or those of its row and its column (grid).
 * They are numbered from 0. The pairs with neighbour 0, those with neighbour 1 and so on go to the node's ranks in
 * turn: pair p of neighbour k to local rank (k * pairs + p) modulo the node's size. */

static uint32_t grid_columns(uint32_t nodes)
{
    uint32_t c = 1;

    while ((uint64_t)c * c < nodes)
        c++;
    return c;
}

struct router router_make(enum router_kind kind, const struct layout *l, uint32_t pairs)
{
    return (struct router){.kind = kind, .layout = *l, .columns = grid_columns(l->nodes), .pairs = pairs};
}

/* Nodes in a row of the grid: the last may be short. */
static uint32_t row_length(const struct router *r, uint32_t row)
{
    uint32_t before = row * r->columns, n = r->layout.nodes - before;

    return n < r->columns ? n : r->columns;
}

static uint32_t column_length(const struct router *r, uint32_t column)
{
    return (r->layout.nodes - column - 1) / r->columns + 1;
}

static uint32_t neighbours(const struct router *r, uint32_t node)
{
    if (r->kind == ROUTER_3HOP)
        return r->layout.nodes - 1;
    return row_length(r, node / r->columns) - 1 + column_length(r, node % r->columns) - 1;
}

/* The number, in a circle of n without `own`, of `other`: the next one after `own` is 0. */
static uint32_t circle_number(uint32_t n, uint32_t own, uint32_t other)
{
    return (other > own ? other - own : other + n - own) - 1;
}

static uint32_t circle_at(uint32_t n, uint32_t own, uint32_t number)
{
    return (uint32_t)(((uint64_t)own + 1 + number) % n);
}

/* The number of neighbour `other` among those of `node`. */
static uint32_t neighbour_number(const struct router *r, uint32_t node, uint32_t other)
{
    uint32_t row = node / r->columns, column = node % r->columns, length = row_length(r, row);

    if (r->kind == ROUTER_3HOP)
        return circle_number(r->layout.nodes, node, other);
    if (other / r->columns == row)
        return circle_number(length, column, other % r->columns);
    return length - 1 + circle_number(column_length(r, column), row, other / r->columns);
}

static uint32_t neighbour_at(const struct router *r, uint32_t node, uint32_t number)
{
    uint32_t row = node / r->columns, column = node % r->columns, length = row_length(r, row);

    if (r->kind == ROUTER_3HOP)
        return circle_at(r->layout.nodes, node, number);
    if (number < length - 1)
        return row * r->columns + circle_at(length, column, number);
    return circle_at(column_length(r, column), row, number - (length - 1)) * r->columns + column;
}

/* The rank of `node` that is its end of the pair-th pair with its neighbour `other`. */
static uint32_t representative(const struct router *r, uint32_t node, uint32_t other, uint32_t pair)
{
    uint64_t slot = (uint64_t)neighbour_number(r, node, other) * r->pairs + pair;

    return layout_first(&r->layout, node) + (uint32_t)(slot % layout_size(&r->layout, node));
}

/* Which pair of its node with `other` a rank would be the end of; it is if that is below r->pairs. */
static uint32_t pair_of(const struct router *r, uint32_t rank, uint32_t node, uint32_t other)
{
    uint32_t size = layout_size(&r->layout, node), local = rank - layout_first(&r->layout, node);
    uint32_t first = (uint32_t)((uint64_t)neighbour_number(r, node, other) * r->pairs % size);

    return (local + size - first) % size;
}

/* The neighbour of node `from` on the way to node `to`: along the row first; along the column where the row is short
 * and does not reach so far. */
static uint32_t next_node(const struct router *r, uint32_t from, uint32_t to)
{
    if (r->kind == ROUTER_3HOP || from / r->columns == to / r->columns || from % r->columns == to % r->columns)
        return to;
    uint32_t corner = from / r->columns * r->columns + to % r->columns;
    return corner < r->layout.nodes ? corner : to / r->columns * r->columns + from % r->columns;
}

struct router_hop router_next(const struct router *r, uint32_t rank, enum router_stage came, uint32_t destination)
{
    uint32_t here = layout_node(&r->layout, rank), there = layout_node(&r->layout, destination), next, pair;

    if (here == there)
        return (struct router_hop){destination, STAGE_IN};
    if (r->kind == ROUTER_DIRECT)
        return (struct router_hop){destination, STAGE_NET};
    next = next_node(r, here, there);
    pair = pair_of(r, rank, here, next);
    if (pair >= r->pairs)
        return (struct router_hop){representative(r, here, next, pair % r->pairs),
                                   came == STAGE_VIA ? STAGE_MID : STAGE_OUT};
    return (struct router_hop){representative(r, next, here, pair), next == there ? STAGE_NET : STAGE_VIA};
}

int router_has_stage(const struct router *r, enum router_stage stage)
{
    switch (stage) {
    case STAGE_OUT:
        return r->kind != ROUTER_DIRECT && r->layout.nodes > 1;
    case STAGE_VIA:
    case STAGE_MID:
        return r->kind == ROUTER_GRID && r->layout.nodes > 1;
    case STAGE_NET:
        return r->layout.nodes > 1;
    default:
        return 1;
    }
}

uint32_t router_peers(const struct router *r, uint32_t rank, enum router_stage stage)
{
    uint32_t node = layout_node(&r->layout, rank), size = layout_size(&r->layout, node), n;

    if (!router_has_stage(r, stage))
        return 0;
    if (!stage_is_net(stage))
        return size - 1;
    if (r->kind == ROUTER_DIRECT)
        return r->layout.ranks - size;
    n = neighbours(r, node) * r->pairs;
    rank -= layout_first(&r->layout, node);
    return n > rank ? (n - rank - 1) / size + 1 : 0;
}

uint32_t router_peer(const struct router *r, uint32_t rank, enum router_stage stage, uint32_t i)
{
    uint32_t node = layout_node(&r->layout, rank), first = layout_first(&r->layout, node);
    uint32_t size = layout_size(&r->layout, node);

    if (!stage_is_net(stage))
        return first + circle_at(size, rank - first, i);
    if (r->kind == ROUTER_DIRECT)
        return (uint32_t)(((uint64_t)first + size + i) % r->layout.ranks);
    uint32_t slot = rank - first + i * size;
    return representative(r, neighbour_at(r, node, slot / r->pairs), node, slot % r->pairs);
}

uint32_t router_peer_index(const struct router *r, uint32_t rank, enum router_stage stage, uint32_t peer)
{
    uint32_t node = layout_node(&r->layout, rank), first = layout_first(&r->layout, node);
    uint32_t size = layout_size(&r->layout, node);

    if (!stage_is_net(stage))
        return circle_number(size, rank - first, peer - first);
    if (r->kind == ROUTER_DIRECT)
        return peer >= first + size ? peer - first - size : peer + r->layout.ranks - first - size;
    uint32_t other = layout_node(&r->layout, peer);
    return (neighbour_number(r, node, other) * r->pairs + pair_of(r, rank, node, other)) / size;
}

/* Ranks of the smallest node, or of the largest. */
static uint32_t extreme_size(const struct layout *l, int is_largest)
{
    uint32_t found = layout_size(l, 0);

    for (uint32_t i = l->first ? 1 : l->nodes - 1; i < l->nodes; i++) {
        uint32_t size = layout_size(l, i);
        if (is_largest ? size > found : size < found)
            found = size;
    }
    return found;
}

uint32_t router_most_pairs(enum router_kind kind, const struct layout *l)
{
    return kind == ROUTER_3HOP ? extreme_size(l, 0) : 1;
}

uint32_t router_most_peers(const struct router *r, enum router_stage stage)
{
    const struct layout *l = &r->layout;
    uint32_t most = 0;

    if (!router_has_stage(r, stage))
        return 0;
    if (!stage_is_net(stage))
        return extreme_size(l, 1) - 1;
    if (r->kind == ROUTER_DIRECT)
        return l->ranks - extreme_size(l, 0);
    /* A node's first rank has the most of it. Where nodes are even, the first has the most neighbours, and the last
     * perhaps the fewest ranks. */
    for (uint32_t i = 0, step = l->first || l->nodes < 2 ? 1 : l->nodes - 1; i < l->nodes; i += step) {
        uint32_t n = router_peers(r, layout_first(l, i), stage);
        most = n > most ? n : most;
    }
    return most;
}

uint32_t router_hops(const struct router *r)
{
    const struct layout *l = &r->layout;
    uint32_t largest = extreme_size(l, 1), inside = largest > 1;

    if (l->ranks == 1)
        return 0;
    if (l->nodes == 1 || r->kind == ROUTER_DIRECT)
        return 1;
    if (r->kind == ROUTER_3HOP || l->nodes == 2)
        return 1 + inside + (largest > r->pairs);
    return 2 + 3 * inside;
}
