#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "query/select_top.h"

/* Below 0 if `a` comes before `b`. */
static int top_compare(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;
    size_t size = x->record.key_size < y->record.key_size ? x->record.key_size : y->record.key_size;
    int order = (isnan(x->by) != 0) - (isnan(y->by) != 0);

    if (order == 0 && !isnan(x->by))
        order = (x->by < y->by) - (x->by > y->by);
    if (order == 0 && size > 0)
        order = memcmp(x->record.key_bytes, y->record.key_bytes, size);
    if (order == 0)
        order = size > 0 ? compare(x->record.key_size, y->record.key_size) : compare(x->record.key, y->record.key);
    return order != 0 ? order : compare_two(x->record.label, y->record.label, x->order, y->order);
}

void top_fini(struct top *t)
{
    for (size_t i = 0; i < t->count; i++)
        buffer_fini(&t->row[i].bytes);
    free(t->row);
    *t = (struct top){0};
}

int top_has_least(const struct top *t, double *least)
{
    *least = t->count < t->most ? (double)NAN : t->row[0].by;
    return !isnan(*least);
}

static void top_swap(struct top *t, size_t i, size_t k)
{
    struct top_row row = t->row[i];

    t->row[i] = t->row[k];
    t->row[k] = row;
}

static void top_up(struct top *t, size_t i)
{
    for (size_t above; i > 0; i = above) {
        above = (i - 1) / 2;
        if (top_compare(&t->row[i], &t->row[above]) <= 0)
            return;
        top_swap(t, i, above);
    }
}

static void top_down(struct top *t)
{
    size_t i = 0, below;

    while ((below = 2 * i + 1) < t->count) {
        if (below + 1 < t->count && top_compare(&t->row[below + 1], &t->row[below]) > 0)
            below++;
        if (top_compare(&t->row[below], &t->row[i]) <= 0)
            return;
        top_swap(t, i, below);
        i = below;
    }
}

/* Copy the record's bytes into the row's own memory. */
static int row_take(struct top_row *row, double by, uint64_t order, const struct deltafs_record *record,
                    struct error *e)
{
    int status = buffer_reserve(&row->bytes, record->size + record->key_size + 1, "rows", e);

    if (status != DELTAFS_OK)
        return status;
    uint8_t *p = row->bytes.bytes;
    row->by = by;
    row->order = order;
    row->record = *record;
    row->record.value = p;
    if (record->size > 0)
        memcpy(p, record->value, record->size);
    if (record->key_size > 0) {
        memcpy(p + record->size, record->key_bytes, record->key_size);
        row->record.key_bytes = p + record->size;
    }
    return DELTAFS_OK;
}

int top_offer(struct top *t, double by, uint64_t order, const struct deltafs_record *record, struct error *e)
{
    struct top_row offered = {.by = by, .order = order, .record = *record};
    int status = DELTAFS_OK;

    if (t->count == t->most) {
        if (top_compare(&offered, &t->row[0]) >= 0)
            return DELTAFS_OK;
        status = row_take(&t->row[0], by, order, record, e);
        top_down(t);
        return status;
    }
    status = memory_extend(NULL, &t->row, t->count, &t->capacity, sizeof *t->row, "rows", e);
    if (status != DELTAFS_OK)
        return status;
    t->row[t->count] = (struct top_row){0};
    status = row_take(&t->row[t->count], by, order, record, e);
    if (status == DELTAFS_OK)
        top_up(t, t->count++);
    return status;
}

void top_sort(struct top *t)
{
    if (t->count > 0)
        qsort(t->row, t->count, sizeof *t->row, top_compare);
}
