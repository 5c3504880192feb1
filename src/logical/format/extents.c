/* The list of what a writer has written, which finds regular patterns as they come.
 *
 * The last entry is the open piece: it grows as long as writes go on where it ended. When another begins, the piece is
 * folded into the entries before it, in one of two ways.
 *
 * Rows: three pieces of one size at one distance make a run, and each that comes at that distance makes it longer. Any
 * two random writes would make a run of two, which reaches over much of the file and slows lookups.
 *
 * Columns: rows that come back at one distance in the file each, and at one in the log all, are variables written in
 * turn. When a row ends, list_find_columns checks whether the last rows repeat those before them with some period. They
 * become columns as soon as these are fewer than the rows. From then on a piece is compared with what the next column
 * expects; the first that differs ends this. A variable that stays in place (a header that is written again in each
 * step) is a column of one piece, the last. */
#include <inttypes.h>
#include <string.h>
#include "logical/format/extents.h"

int extent_is_valid(const struct extent *x)
{
    if (x->offset > EXTENT_MAX || x->position > EXTENT_MAX || x->order > EXTENT_MAX)
        return 0;
    if (x->kind != EXTENT_DATA)
        return (x->kind == EXTENT_TRUNCATE || x->kind == EXTENT_EXTEND) && x->size == 0 && x->count == 1 &&
               x->stride == 0 && x->position_stride == 0;
    if (x->size == 0 || x->size > EXTENT_MAX - x->offset || x->size > EXTENT_MAX - x->position)
        return 0;
    if (x->count == 1)
        return x->stride == 0 && x->position_stride == 0;
    return x->count > 1 && x->stride >= x->size && x->position_stride >= x->size &&
           x->count - 1 <= (EXTENT_MAX - x->offset - x->size) / x->stride &&
           x->count - 1 <= (EXTENT_MAX - x->position - x->size) / x->position_stride;
}

/* ---- Folding ---- */

static void list_forget(struct extent_list *l, size_t first)
{
    l->columns = 0;
    l->first = l->examined = first;
    memset(l->repeats, 0, sizeof l->repeats);
}

/* Whether `p` is what comes behind the run `q`, and if so, add it. */
static int run_take(struct extent *q, const struct extent *p)
{
    /* No product wraps: all but the last stride are below 2^63, and so is that. */
    if (q->size != p->size || p->offset < q->offset || p->position < q->position ||
        p->offset - q->offset != q->count * q->stride || p->position - q->position != q->count * q->position_stride)
        return 0;
    q->count++;
    return 1;
}

/* Whether the last entry goes on with the row before it, or makes one with the two before it. */
static int row_take(struct extent_list *l)
{
    struct extent *p = &l->extent[l->count - 1], *q = p - 1, *r = q - 1;

    if (l->count - 1 > l->first && q->count > 1 && run_take(q, p)) {
        l->count--;
        return 1;
    }
    if (l->count - 1 < l->first + 2 || q->count > 1 || r->count > 1 || q->size != p->size || r->size != p->size ||
        q->offset < r->offset || q->position < r->position || q->offset - r->offset < p->size ||
        q->position - r->position < p->size || p->offset - q->offset != q->offset - r->offset ||
        p->position - q->position != q->position - r->position)
        return 0;
    r->stride = q->offset - r->offset;
    r->position_stride = q->position - r->position;
    r->count = 3;
    l->count -= 2;
    return 1;
}

/* Whether there are columns, and `p` is what the next of them expects; if so, add it. If not, there are none any more,
 * and what comes has nothing to do with them: from `p` on, which is or will be the last entry. */
static int column_take(struct extent_list *l, const struct extent *p)
{
    struct extent *q = &l->extent[l->column_first + l->column_next];

    if (l->columns == 0)
        return 0;
    int is_next = q->count > 1
                      ? run_take(q, p)
                      : q->offset == p->offset && q->size == p->size && p->position - q->position == l->column_step;
    if (!is_next) {
        list_forget(l, l->column_first + l->columns);
        return 0;
    }
    if (q->count == 1)
        q->position = p->position;
    l->column_next = l->column_next + 1 < l->columns ? l->column_next + 1 : 0;
    return 1;
}

/* Whether the entries at `x`, x - period and x - 2 * period are alike, and as far from each other. */
static int is_repeated(const struct extent *x, size_t period)
{
    const struct extent *y = x - period, *z = y - period;

    return x->size == y->size && x->offset - y->offset == y->offset - z->offset && x->size == z->size &&
           x->count == y->count && x->count == z->count && x->stride == y->stride && x->stride == z->stride &&
           x->position_stride == y->position_stride && x->position_stride == z->position_stride &&
           x->position - y->position == y->position - z->position;
}

/* The number of columns that the last `period` of the `n` closed entries would become; 0: they cannot. */
static uint32_t columns_of(const struct extent_list *l, size_t n, size_t period)
{
    const struct extent *last = &l->extent[n - period];
    uint64_t columns = 0, step = last->position - last[-(ptrdiff_t)period].position;

    for (size_t j = 0; j < period; j++) {
        const struct extent *x = &last[j], *y = x - period;
        if (x->count > EXTENT_COLUMNS_MAX || x->offset < y->offset || x->position - y->position != step ||
            step < x->size || (x->offset > y->offset && x->offset - y->offset < x->size))
            return 0;
        columns += x->count;
    }
    return columns <= EXTENT_COLUMNS_MAX ? (uint32_t)columns : 0;
}

/* Make columns of the last `turns` * `period` of the `n` closed entries. The pieces behind these, two at most, are put
 * where they belong then. */
static void columns_make(struct extent_list *l, size_t n, size_t period, uint64_t turns, uint32_t columns)
{
    struct extent made[EXTENT_COLUMNS_MAX], rest[2];
    size_t rests = l->count - n, at = n - turns * period;
    uint32_t c = 0;

    l->column_step = l->extent[at + period].position - l->extent[at].position;
    for (size_t j = 0; j < period; j++) {
        const struct extent *x = &l->extent[at + j];
        uint64_t stride = l->extent[at + j + period].offset - x->offset;
        for (uint64_t i = 0; i < x->count; i++, c++) {
            made[c] = (struct extent){.offset = x->offset + i * x->stride,
                                      .size = x->size,
                                      .count = 1,
                                      .position = x->position + i * x->position_stride};
            if (stride == 0) {
                made[c].position += (turns - 1) * l->column_step;
                continue;
            }
            made[c].count = turns;
            made[c].stride = stride;
            made[c].position_stride = l->column_step;
        }
    }
    memcpy(rest, &l->extent[n], rests * sizeof *rest);
    memcpy(&l->extent[at], made, columns * sizeof *made);
    l->count = at + columns;
    list_forget(l, l->count);
    l->column_first = at;
    l->columns = columns;
    l->column_next = 0;
    for (size_t i = 0; i < rests; i++)
        if (!column_take(l, &rest[i]))
            l->extent[l->count++] = rest[i];
}

/* Look at the next closed entry: does it make columns with those before it? Returns whether it does. */
static int list_find_columns(struct extent_list *l)
{
    size_t n = ++l->examined, closed = n - l->first;

    for (size_t period = 1; period <= EXTENT_COLUMNS_MAX && 2 * period < closed; period++) {
        if (!is_repeated(&l->extent[n - 1], period)) {
            l->repeats[period] = 0;
            continue;
        }
        l->repeats[period]++;
        size_t turns = l->repeats[period] / period + 2;
        if (turns < 3)
            continue;
        uint32_t columns = columns_of(l, n, period);
        if (columns > 0 && columns < turns * period) {
            columns_make(l, n, period, turns, columns);
            return 1;
        }
    }
    return 0;
}

void extent_list_settle(struct extent_list *l)
{
    if (!l->is_open)
        return;
    l->is_open = 0;
    if (column_take(l, &l->extent[l->count - 1])) {
        l->count--;
        return;
    }
    if (row_take(l))
        return;
    /* Closed is what is no part of a row to come: all but the last entry, and a piece before it. */
    size_t closed = l->count - 1;
    if (closed > l->first && l->extent[closed - 1].count == 1)
        closed--;
    while (l->examined < closed && !list_find_columns(l))
        ;
}

/* ---- Adding ---- */

static int list_reserve(struct extent_list *l, struct error *e)
{
    return memory_extend(l->memory, &l->extent, l->count, &l->capacity, sizeof *l->extent,
                         "the extents of what is written", e);
}

int extent_list_add(struct extent_list *l, uint64_t offset, uint64_t size, uint64_t position, struct error *e)
{
    struct extent *last = l->is_open ? &l->extent[l->count - 1] : NULL;

    if (size == 0)
        return DELTAFS_OK;
    if (offset > EXTENT_MAX || size > EXTENT_MAX - offset || position > EXTENT_MAX || size > EXTENT_MAX - position)
        return error_set(e, DELTAFS_ERR_INVALID, "%" PRIu64 " bytes at offset %" PRIu64 " go beyond what a file can be",
                         size, offset);
    if (last && last->offset + last->size == offset && last->position + last->size == position) {
        last->size += size;
        return DELTAFS_OK;
    }
    if (last && offset <= last->offset && offset + size >= last->offset + last->size) {
        *last = (struct extent){.offset = offset, .size = size, .count = 1, .position = position};
        return DELTAFS_OK;
    }
    int status = list_reserve(l, e);
    if (status != DELTAFS_OK)
        return status;
    extent_list_settle(l);
    l->extent[l->count++] = (struct extent){.offset = offset, .size = size, .count = 1, .position = position};
    l->is_open = 1;
    return DELTAFS_OK;
}

/* Marks that follow each other at one position could not be distinguished by it; so what they mean together is said by
 * at most one of each kind, of which the greater size counts (extent_map.h). */
static void list_join_marks(struct extent_list *l)
{
    struct extent *b = &l->extent[l->count - 1], *a = b - 1;

    if (l->count < 2 || a->kind == EXTENT_DATA || a->position != b->position)
        return;
    if (b->kind == EXTENT_TRUNCATE && a->kind == EXTENT_EXTEND) {
        *a = *b;
        l->count--;
        list_join_marks(l);
    } else if (b->kind == a->kind && (b->kind == EXTENT_EXTEND || b->offset <= a->offset)) {
        if (b->kind == EXTENT_TRUNCATE || b->offset > a->offset)
            *a = *b;
        l->count--;
    } else if (b->kind == EXTENT_TRUNCATE) {
        b->kind = EXTENT_EXTEND; /* what was beyond is gone already */
    }
}

int extent_list_mark(struct extent_list *l, enum extent_kind kind, uint64_t size, uint64_t position, struct error *e)
{
    struct extent x = {.offset = size, .count = 1, .position = position, .kind = kind};

    if (kind == EXTENT_DATA || !extent_is_valid(&x))
        return error_set(e, DELTAFS_ERR_INVALID, "%" PRIu64 " bytes are beyond what a file can be", size);
    int status = list_reserve(l, e);
    if (status != DELTAFS_OK)
        return status;
    extent_list_settle(l);
    l->extent[l->count++] = x;
    list_join_marks(l);
    list_forget(l, l->count);
    return DELTAFS_OK;
}

void extent_list_clear(struct extent_list *l)
{
    l->count = 0;
    l->is_open = 0;
    list_forget(l, 0);
}

void extent_list_fini(struct extent_list *l)
{
    memory_give(l->memory, l->extent, l->capacity * sizeof *l->extent);
    *l = (struct extent_list){.memory = l->memory};
}
