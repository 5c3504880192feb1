/* A lookup finds the entries that overlap the window, then sweeps over the window. Each entry has a cursor at its next
 * piece. Two heaps hold the cursors: `pending`, by the offset of the next piece, and `active`, by priority, for pieces
 * that have begun. A piece that has ended leaves `active` only when it reaches the top; a cursor is there at most once,
 * because pieces of a run do not overlap. Pieces that the current winner hides completely are skipped by arithmetic, so
 * a long piece over dense old runs costs nothing for what it hides. */
#include "logical/read/extent_map.h"

struct map_cursor {
    const struct map_run *run;
    uint64_t piece, begin; /* the next one's number and offset */
    uint64_t active_begin, active_end, active_position;
    size_t place; /* index in the heap `active`, from 1; 0: not in it */
    int is_hole;
};

struct sweep {
    struct map_cursor *cursor;
    size_t *pending, *active;
    size_t pendings, actives;
};

void pieces_fini(struct pieces *p)
{
    memory_give(p->memory, p->piece, p->capacity * sizeof *p->piece);
    memory_give(p->memory, p->cursor, p->cursor_capacity * sizeof *p->cursor);
    memory_give(p->memory, p->heap, 2 * p->heap_capacity * sizeof *p->heap);
    *p = (struct pieces){.limit = p->limit, .memory = p->memory};
}

/* ---- Cursors ---- */

static int pieces_add_cursor(struct pieces *p, const struct map_cursor *c, struct error *e)
{
    int status = memory_extend(p->memory, &p->cursor, p->cursors, &p->cursor_capacity, sizeof *c,
                               "a lookup in the index of a logical file", e);

    if (status == DELTAFS_OK)
        p->cursor[p->cursors++] = *c;
    return status;
}

/* The number of the first piece that ends after `at`; the run's count or more if there is none. */
static uint64_t run_piece_behind(const struct map_run *x, uint64_t at)
{
    if (at < x->offset + x->size)
        return 0;
    return x->count > 1 ? (at - x->offset - x->size) / x->stride + 1 : 1;
}

/* A lookup that collects its cursors. */
struct window {
    struct pieces *pieces;
    uint64_t from, to;
};

/* If the entry has a piece in the window, add a cursor. */
static int take_run(void *arg, const struct map_run *x, struct error *e)
{
    const struct window *w = arg;
    struct map_cursor c = {.run = x, .piece = run_piece_behind(x, w->from)};

    if (c.piece >= x->count)
        return DELTAFS_OK;
    c.begin = x->offset + c.piece * x->stride;
    return c.begin < w->to ? pieces_add_cursor(w->pieces, &c, e) : DELTAFS_OK;
}

/* Collect the truncations in the window, and the last one before it. */
static int take_cuts(const struct extent_map *m, struct pieces *p, uint64_t from, uint64_t to, struct error *e)
{
    size_t low = 0, high = m->cuts.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->cuts.run[middle].offset <= from)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low > 0 ? low - 1 : 0; i < m->cuts.count && m->cuts.run[i].offset < to; i++) {
        struct map_cursor c = {.run = &m->cuts.run[i], .begin = m->cuts.run[i].offset, .is_hole = 1};
        int status = pieces_add_cursor(p, &c, e);
        if (status != DELTAFS_OK)
            return status;
    }
    return DELTAFS_OK;
}

static int take_all(struct extent_map *m, struct pieces *p, uint64_t from, uint64_t to, struct error *e)
{
    struct window w = {p, from, to};

    p->cursors = 0;
    int status = take_cuts(m, p, from, to, e);
    if (status == DELTAFS_OK)
        status = extent_map_each(m, from, to, take_run, &w, e);
    if (status != DELTAFS_OK || (p->heap && p->cursors <= p->heap_capacity))
        return status;
    status = memory_grow(p->memory, &p->heap, 2 * p->heap_capacity * sizeof *p->heap,
                         2 * (p->cursor_capacity + 1) * sizeof *p->heap, "a lookup in the index of a logical file", e);
    if (status == DELTAFS_OK)
        p->heap_capacity = p->cursor_capacity + 1;
    return status;
}

/* ---- The heap `pending` ---- */

static void pending_sink(struct sweep *s, size_t i)
{
    size_t x = s->pending[i], child;

    for (; (child = 2 * i + 1) < s->pendings; i = child) {
        if (child + 1 < s->pendings && s->cursor[s->pending[child + 1]].begin < s->cursor[s->pending[child]].begin)
            child++;
        if (s->cursor[s->pending[child]].begin >= s->cursor[x].begin)
            break;
        s->pending[i] = s->pending[child];
    }
    s->pending[i] = x;
}

/* ---- The heap `active` ---- */

/* Whether `a`, with its active piece, wins over `b`. */
static int wins(const struct map_cursor *a, const struct map_cursor *b)
{
    int c = map_compare(a->run, a->active_position, b->run, b->active_position);

    if (c == 0)
        c = b->is_hole - a->is_hole;
    return c != 0 ? c > 0 : a->active_begin > b->active_begin;
}

static void active_put(struct sweep *s, size_t i, size_t x)
{
    s->active[i] = x;
    s->cursor[x].place = i + 1;
}

static void active_rise(struct sweep *s, size_t i)
{
    size_t x = s->active[i];

    for (; i > 0 && wins(&s->cursor[x], &s->cursor[s->active[(i - 1) / 2]]); i = (i - 1) / 2)
        active_put(s, i, s->active[(i - 1) / 2]);
    active_put(s, i, x);
}

static void active_pop(struct sweep *s)
{
    size_t i = 0, child, x = s->active[--s->actives];

    s->cursor[s->active[0]].place = 0;
    if (s->actives == 0)
        return;
    for (; (child = 2 * i + 1) < s->actives; i = child) {
        if (child + 1 < s->actives && wins(&s->cursor[s->active[child + 1]], &s->cursor[s->active[child]]))
            child++;
        if (!wins(&s->cursor[s->active[child]], &s->cursor[x]))
            break;
        active_put(s, i, s->active[child]);
    }
    active_put(s, i, x);
}

/* ---- The sweep ---- */

/* `c` is at a piece that `top` hides: return the first later piece that may be visible. All pieces that end no later
 * than `top` are hidden too, unless both have the same writer and order: then later pieces win. */
static uint64_t piece_unhidden(const struct map_cursor *c, const struct map_cursor *top)
{
    const struct map_run *x = c->run, *y = top->run;
    uint64_t next = run_piece_behind(x, top->active_end), lost;

    if (c->is_hole || x->count == 1)
        return c->piece + 1;
    if (x->order == y->order && x->session == y->session && x->writer == y->writer) {
        lost = top->active_position - x->position;
        lost = lost > 0 ? (lost - 1) / x->position_stride + 1 : 0;
        if (lost < next)
            next = lost;
    }
    return next > c->piece ? next : c->piece + 1;
}

/* The next piece of the first pending cursor begins: make it active unless it is never visible, and move the cursor to
 * the piece after it. */
static void sweep_begin(struct sweep *s, uint64_t to)
{
    size_t x = s->pending[0];
    struct map_cursor *c = &s->cursor[x], piece = *c;
    const struct map_cursor *top = s->actives > 0 ? &s->cursor[s->active[0]] : NULL;

    piece.active_begin = c->begin;
    piece.active_end = c->is_hole ? UINT64_MAX : c->begin + c->run->size;
    piece.active_position = c->run->position + c->piece * c->run->position_stride;
    if (top && top->active_end >= piece.active_end && wins(top, &piece)) {
        c->piece = piece_unhidden(c, top);
    } else {
        *c = piece;
        c->piece++;
        if (c->place == 0) {
            s->active[s->actives] = x;
            c->place = ++s->actives;
        }
        active_rise(s, c->place - 1);
    }
    if (c->piece < c->run->count && c->run->stride * c->piece < to - c->run->offset)
        c->begin = c->run->offset + c->piece * c->run->stride;
    else
        s->pending[0] = s->pending[--s->pendings];
    if (s->pendings > 0)
        pending_sink(s, 0);
}

/* Add [from, to), which belongs to `c` or is a hole. */
static int pieces_add(struct pieces *p, uint64_t from, uint64_t to, const struct map_cursor *c, struct error *e)
{
    struct piece x = {.offset = from, .size = to - from, .is_hole = 1};
    struct piece *before = p->count > 0 ? &p->piece[p->count - 1] : NULL;

    if (c && !c->is_hole)
        x = (struct piece){.offset = from,
                           .size = to - from,
                           .position = c->active_position + (from - c->active_begin),
                           .session = c->run->session,
                           .writer = c->run->writer};
    if (before && x.is_hole == before->is_hole && x.session == before->session && x.writer == before->writer &&
        (x.is_hole || before->position + before->size == x.position)) {
        before->size += x.size;
        return DELTAFS_OK;
    }
    int status = memory_extend(p->memory, &p->piece, p->count, &p->capacity, sizeof x,
                               "a lookup in the index of a logical file", e);
    if (status == DELTAFS_OK)
        p->piece[p->count++] = x;
    return status;
}

static int sweep_run(struct sweep *s, uint64_t from, uint64_t to, struct pieces *out, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint64_t at = from, next; at < to && status == DELTAFS_OK; at = next) {
        if (out->limit > 0 && out->count >= out->limit)
            break;
        while (s->actives > 0 && s->cursor[s->active[0]].active_end <= at)
            active_pop(s);
        while (s->pendings > 0 && s->cursor[s->pending[0]].begin <= at)
            sweep_begin(s, to);
        next = to;
        if (s->pendings > 0 && s->cursor[s->pending[0]].begin < next)
            next = s->cursor[s->pending[0]].begin;
        if (s->actives > 0 && s->cursor[s->active[0]].active_end < next)
            next = s->cursor[s->active[0]].active_end;
        status = pieces_add(out, at, next, s->actives > 0 ? &s->cursor[s->active[0]] : NULL, e);
    }
    return status;
}

int extent_map_find(struct extent_map *m, uint64_t from, uint64_t to, struct pieces *out, struct error *e)
{
    out->count = 0;
    if (from >= to)
        return DELTAFS_OK;
    int status = take_all(m, out, from, to, e);
    if (status != DELTAFS_OK)
        return status;
    struct sweep s = {.cursor = out->cursor,
                      .pending = out->heap,
                      .active = out->heap + out->heap_capacity,
                      .pendings = out->cursors};
    for (size_t i = 0; i < s.pendings; i++)
        s.pending[i] = i;
    for (size_t i = s.pendings / 2; i-- > 0;)
        pending_sink(&s, i);
    status = sweep_run(&s, from, to, out, e);
    if (status != DELTAFS_OK)
        out->count = 0;
    return status;
}

/* ---- Runs that nothing hides ---- */

/* Returns other than DELTAFS_OK if `x` may hide a piece of `arg`. Pieces at one stride either overlap everywhere or
 * nowhere; writers that write in turn are the common case. */
static int run_hides(void *arg, const struct map_run *x, struct error *e)
{
    const struct map_run *run = arg;
    uint64_t stride = run->stride;

    (void)e;
    if (x == run || x->offset >= map_run_end(run) || map_run_end(x) <= run->offset || map_compare(x, 0, run, 0) < 0)
        return DELTAFS_OK;
    if (run->count == 1 || (x->count > 1 && x->stride != stride))
        return 1;
    uint64_t ahead = (x->offset % stride + stride - run->offset % stride) % stride;
    return ahead < run->size || x->size > stride - ahead;
}

int extent_map_is_on_top(struct extent_map *m, const struct map_run *run)
{
    if (m->has_top && map_compare(&m->top, m->top.position, run, run->position) >= 0)
        return 0;
    return extent_map_each(m, run->offset, map_run_end(run), run_hides, (void *)(uintptr_t)run, error_ignored()) ==
           DELTAFS_OK;
}
