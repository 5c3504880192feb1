#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "logical/read/extent_map.h"

#define FRESH_MAX      16384 /* entries; more are sorted and merged, which keeps adding cheap on average */
#define FRESH_FIND_MAX 64    /* entries that a lookup checks one by one instead of merging them */

/* ---- Entries ---- */

int map_compare(const struct map_run *a, uint64_t a_at, const struct map_run *b, uint64_t b_at)
{
    if (a->order != b->order)
        return compare(a->order, b->order);
    if (a->session != b->session)
        return compare(a->session, b->session);
    return compare_two(a->writer, b->writer, a_at, b_at);
}

/* Order by offset; entries with the same pieces are adjacent, the highest last. */
static int compare_places(const void *left, const void *right)
{
    const struct map_run *a = left, *b = right;
    int c = compare_two(a->offset, b->offset, a->size, b->size);

    if (c == 0)
        c = compare_two(a->stride, b->stride, a->count, b->count);
    if (c == 0)
        c = map_compare(a, a->position, b, b->position);
    return c != 0 ? c : compare(a->position_stride, b->position_stride);
}

/* Whether `b`, which is not sorted before `a`, hides every piece of it. */
static int is_hidden(const struct map_run *a, const struct map_run *b)
{
    if (a->offset != b->offset || a->size != b->size || a->stride != b->stride || a->count != b->count)
        return 0;
    if (a->order != b->order || a->session != b->session || a->writer != b->writer)
        return 1;
    return a->position_stride <= b->position_stride;
}

static void runs_fini(struct extent_map *m, struct map_runs *runs)
{
    memory_give(m->memory, runs->run, runs->capacity * sizeof *runs->run);
    *runs = (struct map_runs){0};
}

/* ---- Levels ---- */

/* Remove hidden entries from sorted ones. Returns how many remain. */
static size_t runs_thin(struct map_run *run, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (kept > 0 && is_hidden(&run[kept - 1], &run[i]))
            kept--;
        run[kept++] = run[i];
    }
    return kept;
}

static int runs_merge(struct extent_map *m, const struct map_runs *a, const struct map_runs *b, struct map_runs *out,
                      struct error *e)
{
    size_t i = 0, j = 0, n = 0;

    *out = (struct map_runs){.capacity = a->count + b->count};
    int status = memory_take(m->memory, out->capacity * sizeof *out->run, "the index of a logical file", &out->run, e);
    if (status != DELTAFS_OK)
        return status;
    while (i < a->count && j < b->count)
        out->run[n++] = compare_places(&a->run[i], &b->run[j]) <= 0 ? a->run[i++] : b->run[j++];
    if (i < a->count)
        memcpy(&out->run[n], &a->run[i], (a->count - i) * sizeof *out->run);
    if (j < b->count)
        memcpy(&out->run[n], &b->run[j], (b->count - j) * sizeof *out->run);
    out->count = runs_thin(out->run, out->capacity);
    return DELTAFS_OK;
}

/* Set the reach of each subtree; returns that of run[0 .. n), n > 0. */
static uint64_t tree_build(struct map_run *run, size_t n)
{
    size_t middle = n / 2;
    uint64_t reach = map_run_end(&run[middle]), part;

    if (middle > 0 && (part = tree_build(run, middle)) > reach)
        reach = part;
    if (middle + 1 < n && (part = tree_build(run + middle + 1, n - middle - 1)) > reach)
        reach = part;
    return run[middle].reach = reach;
}

static void fresh_sort(struct map_runs *fresh)
{
    size_t sorted = 1;

    while (sorted < fresh->count && compare_places(&fresh->run[sorted - 1], &fresh->run[sorted]) <= 0)
        sorted++;
    if (sorted < fresh->count)
        qsort(fresh->run, fresh->count, sizeof *fresh->run, compare_places);
    fresh->count = runs_thin(fresh->run, fresh->count);
}

/* Merge the fresh entries and the levels that are at most twice as long into one level. */
static int map_flush(struct extent_map *m, struct error *e)
{
    struct map_runs sum = {0}, next, none = {0};
    unsigned first = m->levels;

    fresh_sort(&m->fresh);
    int status = runs_merge(m, &m->fresh, &none, &sum, e);
    while (status == DELTAFS_OK && first > 0 && m->level[first - 1].count <= 2 * sum.count) {
        status = runs_merge(m, &m->level[first - 1], &sum, &next, e);
        if (status == DELTAFS_OK) {
            runs_fini(m, &sum);
            sum = next;
            first--;
        }
    }
    if (status != DELTAFS_OK) {
        runs_fini(m, &sum);
        return status;
    }
    while (m->levels > first)
        runs_fini(m, &m->level[--m->levels]);
    tree_build(sum.run, sum.count);
    m->level[m->levels++] = sum;
    m->fresh.count = 0;
    return DELTAFS_OK;
}

/* Visit the entries of the tree run[0 .. n) that overlap [from, to). */
static int tree_each(const struct map_run *run, size_t n, uint64_t from, uint64_t to, map_run_fn fn, void *arg,
                     struct error *e)
{
    while (n > 0) {
        size_t middle = n / 2;
        if (run[middle].reach <= from)
            return DELTAFS_OK;
        int status = tree_each(run, middle, from, to, fn, arg, e);
        if (status != DELTAFS_OK || run[middle].offset >= to)
            return status;
        status = fn(arg, &run[middle], e);
        if (status != DELTAFS_OK)
            return status;
        run += middle + 1;
        n -= middle + 1;
    }
    return DELTAFS_OK;
}

int extent_map_each(struct extent_map *m, uint64_t from, uint64_t to, map_run_fn fn, void *arg, struct error *e)
{
    int status = m->fresh.count > FRESH_FIND_MAX ? map_flush(m, e) : DELTAFS_OK;

    for (size_t i = 0; i < m->fresh.count && status == DELTAFS_OK; i++)
        if (m->fresh.run[i].offset < to)
            status = fn(arg, &m->fresh.run[i], e);
    for (unsigned i = 0; i < m->levels && status == DELTAFS_OK; i++)
        status = tree_each(m->level[i].run, m->level[i].count, from, to, fn, arg, e);
    return status;
}

/* ---- Truncations and extensions ---- */

/* Whether a mark `a` hides the lower one `b`: a truncation to a lower size, or an extension to a higher one. */
static int mark_hides(const struct map_run *a, const struct map_run *b, int is_cut)
{
    return is_cut ? a->offset <= b->offset : a->offset >= b->offset;
}

/* Keep only marks that no higher one hides, the highest last. The offsets of truncations then rise, and those of
 * extensions fall. */
static int marks_push(struct extent_map *m, struct map_runs *marks, const struct map_run *x, int is_cut,
                      struct error *e)
{
    size_t behind = marks->count, at;
    int status = memory_extend(m->memory, &marks->run, marks->count, &marks->capacity, sizeof *x,
                               "the index of a logical file", e);

    if (status != DELTAFS_OK)
        return status;
    struct map_run *run = marks->run;
    while (behind > 0 && map_compare(&run[behind - 1], run[behind - 1].position, x, x->position) > 0)
        behind--;
    if (behind < marks->count && mark_hides(&run[behind], x, is_cut))
        return DELTAFS_OK;
    for (at = behind; at > 0 && mark_hides(x, &run[at - 1], is_cut);)
        at--;
    memmove(&run[at + 1], &run[behind], (marks->count - behind) * sizeof *run);
    run[at] = *x;
    marks->count += at + 1 - behind;
    return DELTAFS_OK;
}

/* ---- Size ---- */

/* Whether the entry is above the highest truncation. A run's last piece is its highest, and ends last. */
static int is_above_top(const struct extent_map *m, const struct map_run *x)
{
    uint64_t last = x->position + (x->count - 1) * x->position_stride;

    return !m->has_top || map_compare(x, last, &m->top, m->top.position) >= 0;
}

static void size_take(struct extent_map *m, const struct map_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        if (is_above_top(m, &runs->run[i]) && map_run_end(&runs->run[i]) > m->size)
            m->size = map_run_end(&runs->run[i]);
}

uint64_t extent_map_size(struct extent_map *m)
{
    if (!m->has_top || m->is_size_known)
        return m->size;
    m->size = m->top.offset;
    size_take(m, &m->fresh);
    size_take(m, &m->extends);
    for (unsigned i = 0; i < m->levels; i++)
        size_take(m, &m->level[i]);
    m->is_size_known = 1;
    return m->size;
}

/* Update the size for `x`, which has just been added. */
static void size_add(struct extent_map *m, const struct map_run *x, int is_cut)
{
    if (!is_cut && is_above_top(m, x) && map_run_end(x) > m->size)
        m->size = map_run_end(x);
    int c = m->has_top ? map_compare(x, x->position, &m->top, m->top.position) : 1;
    if (!is_cut || c < 0 || (c == 0 && x->offset >= m->top.offset))
        return;
    m->top = *x;
    m->has_top = 1;
    m->is_size_known = 0; /* the entries above it are searched when the size is asked for */
}

/* ---- Adding ---- */

int extent_map_add(struct extent_map *m, const struct extent *x, struct error *e)
{
    struct map_run run = {.offset = x->offset,
                          .size = x->size,
                          .stride = x->stride,
                          .count = x->count,
                          .position = x->position,
                          .position_stride = x->position_stride,
                          .order = x->order,
                          .session = x->session,
                          .writer = x->writer};
    int status = DELTAFS_OK, is_cut = x->kind == EXTENT_TRUNCATE;

    if (!extent_is_valid(x))
        return error_set(e, DELTAFS_ERR_INVALID, "the numbers of an extent contradict each other");
    if (x->kind == EXTENT_DATA && m->fresh.count >= FRESH_MAX)
        status = map_flush(m, e);
    if (status == DELTAFS_OK && x->kind == EXTENT_DATA)
        status = memory_extend(m->memory, &m->fresh.run, m->fresh.count, &m->fresh.capacity, sizeof run,
                               "the index of a logical file", e);
    else if (status == DELTAFS_OK)
        status = marks_push(m, is_cut ? &m->cuts : &m->extends, &run, is_cut, e);
    if (status != DELTAFS_OK)
        return status;
    if (x->kind == EXTENT_DATA)
        m->fresh.run[m->fresh.count++] = run;
    size_add(m, &run, is_cut);
    if (x->order > m->order)
        m->order = x->order;
    return DELTAFS_OK;
}

size_t extent_map_count(const struct extent_map *m)
{
    size_t n = m->fresh.count + m->cuts.count + m->extends.count;

    for (unsigned i = 0; i < m->levels; i++)
        n += m->level[i].count;
    return n;
}

void extent_map_fini(struct extent_map *m)
{
    runs_fini(m, &m->fresh);
    runs_fini(m, &m->cuts);
    runs_fini(m, &m->extends);
    while (m->levels > 0)
        runs_fini(m, &m->level[--m->levels]);
    *m = (struct extent_map){.memory = m->memory};
}
