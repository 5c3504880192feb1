/* Merge of the runs: a binary heap of the runs' next keys, ordered by (key, run). Records come out in the order in
 * which they were appended wherever keys are equal, since runs are numbered in time and sorting a memtable is stable.
 *
 * Leaves are cut every LEAF_RECORDS records, but never inside a key that did not begin its leaf: so all records of a
 * key are in one leaf, or in several that all begin with that key, and the fences alone say which. */
#include <stdlib.h>
#include "base/coding.h"
#include "base/crc32c.h"
#include "store/index.h"
#include "store/store_format.h"

struct merge {
    struct run_cursor *cursor; /* one for each run: where the next leaf begins */
    uint32_t *heap;            /* cursors by next key */
    uint32_t heap_count;
    uint64_t *taken; /* records taken from each run so far */
    uint32_t cursor_count;
    uint64_t *keys; /* of the leaf being collected, and then of what it left over */
    uint32_t *cursors;
    uint32_t count; /* of these */
    uint32_t *scratch;
};

static uint64_t merge_key(const struct merge *m, uint32_t c)
{
    return m->cursor[c].run->keys[m->taken[c]];
}

static int merge_is_before(const struct merge *m, uint32_t a, uint32_t b)
{
    uint64_t x = merge_key(m, a), y = merge_key(m, b);

    return x < y || (x == y && a < b);
}

static void merge_sift_down(struct merge *m, uint32_t at)
{
    for (;;) {
        uint32_t least = at, left = 2 * at + 1;
        for (uint32_t child = left; child < left + 2 && child < m->heap_count; child++)
            if (merge_is_before(m, m->heap[child], m->heap[least]))
                least = child;
        if (least == at)
            return;
        uint32_t moved = m->heap[at];
        m->heap[at] = m->heap[least];
        m->heap[least] = moved;
        at = least;
    }
}

static void merge_fini(struct merge *m)
{
    free(m->cursor);
    free(m->heap);
    free(m->taken);
    free(m->keys);
    free(m->cursors);
    free(m->scratch);
}

static int merge_init(struct merge *m, const struct run *runs, uint32_t n, struct error *e)
{
    *m = (struct merge){.cursor_count = n};
    m->cursor = calloc(n + 1, sizeof *m->cursor);
    m->heap = malloc((n + 1) * sizeof *m->heap);
    m->taken = calloc(n + 1, sizeof *m->taken);
    m->scratch = malloc((n + 1) * sizeof *m->scratch);
    m->keys = malloc(LEAF_RECORDS * sizeof *m->keys);
    m->cursors = malloc(LEAF_RECORDS * sizeof *m->cursors);
    if (!m->cursor || !m->heap || !m->taken || !m->scratch || !m->keys || !m->cursors) {
        merge_fini(m);
        return error_no_memory(e, LEAF_RECORDS * 12, "merging runs");
    }
    for (uint32_t c = 0; c < n; c++) {
        m->cursor[c] = (struct run_cursor){.run = &runs[c], .offset = runs[c].offset};
        if (runs[c].count > 0)
            m->heap[m->heap_count++] = c;
    }
    for (uint32_t i = m->heap_count / 2; i-- > 0;)
        merge_sift_down(m, i);
    return DELTAFS_OK;
}

/* Collect records until there is enough for a leaf; returns how many are to go into it. */
static uint32_t merge_leaf(struct merge *m)
{
    uint32_t n = m->count, group = 0; /* group: where the records of the last key begin */

    while (m->heap_count > 0 && n < LEAF_RECORDS) {
        uint32_t c = m->heap[0];
        uint64_t key = merge_key(m, c);
        if (n > 0 && key != m->keys[n - 1])
            group = n;
        m->keys[n] = key;
        m->cursors[n++] = c;
        if (++m->taken[c] == m->cursor[c].run->count)
            m->heap[0] = m->heap[--m->heap_count];
        merge_sift_down(m, 0);
    }
    m->count = n;
    return m->heap_count > 0 && group > 0 && merge_key(m, m->heap[0]) == m->keys[n - 1] ? group : n;
}

/* Forget the first `n` records, which are in a leaf now. */
static void merge_drop(struct merge *m, uint32_t n)
{
    m->count -= n;
    memmove(m->keys, m->keys + n, m->count * sizeof *m->keys);
    memmove(m->cursors, m->cursors + n, m->count * sizeof *m->cursors);
}

/* Append all leaves, and their entries to w->fence; *used gets the fence's bytes. */
static int index_write_leaves(struct index_writer *w, struct merge *m, struct footer *f, size_t *used, struct error *e)
{
    struct leaf_id id = {f->partition, f->epoch, f->segment, 0};
    uint64_t previous = 0;
    size_t length;
    uint32_t n;

    while ((n = merge_leaf(m)) > 0) {
        struct leaf_input in = {m->keys, m->cursors, n, m->cursor, m->cursor_count, m->scratch};
        int status = leaf_encode(&in, &id, w->log.seed, &w->leaf, &length, e);
        if (status == DELTAFS_OK)
            status = log_append(&w->log, w->leaf.bytes, length, e);
        if (status == DELTAFS_OK)
            status = buffer_reserve(&w->fence, *used + 2 * VARINT_MAX, "a fence", e);
        if (status != DELTAFS_OK)
            return status;
        if (id.leaf == 0)
            f->first_key = m->keys[0];
        f->last_key = m->keys[n - 1];
        uint8_t *p = put_varint(w->fence.bytes + *used, m->keys[0] - previous);
        *used = (size_t)(put_varint(p, length) - w->fence.bytes);
        previous = m->keys[0];
        id.leaf++;
        merge_drop(m, n);
    }
    f->leaves = id.leaf;
    return DELTAFS_OK;
}

static void index_put_footer(const struct footer *f, uint32_t seed, uint8_t *p)
{
    memset(p, 0, FOOTER_SIZE);
    p[4] = FORMAT_FOOTER;
    p[5] = f->is_last ? FOOTER_FLAG_LAST : 0;
    put_u32(p + 8, f->partition);
    put_u32(p + 12, f->epoch);
    put_u32(p + 16, f->segment);
    put_u32(p + 20, f->leaves);
    put_u32(p + 24, f->runs);
    put_u32(p + 28, f->fence_length);
    put_u64(p + 32, f->fence_offset);
    put_u64(p + 40, f->records);
    put_u64(p + 48, f->bytes_raw);
    put_u64(p + 56, f->previous);
    put_u64(p + 64, f->first_key);
    put_u64(p + 72, f->last_key);
    put_u64(p + 80, f->data_end);
    put_u64(p + 88, f->offset);
    memcpy(p + 96, FOOTER_MAGIC, 8);
    log_seal(seed, p, FOOTER_SIZE);
}

/* Keep footer and fence for the tail. Fences that grow too many are dropped from it; footers never are. */
static int index_keep_for_tail(struct index_writer *w, const uint8_t *footer, size_t fence_length, struct error *e)
{
    size_t fence = w->tail_has_fences ? fence_length : 0;
    int status = buffer_reserve(&w->tail, w->tail_used + FOOTER_SIZE + fence + TAIL_TRAILER_SIZE, "the tail", e);

    if (status != DELTAFS_OK)
        return status;
    memcpy(w->tail.bytes + w->tail_used, footer, FOOTER_SIZE);
    memcpy(w->tail.bytes + w->tail_used + FOOTER_SIZE, w->fence.bytes, fence);
    w->tail_used += FOOTER_SIZE + fence;
    w->tail_fences += fence;
    w->tail_footers++;
    return DELTAFS_OK;
}

/* Take all fences out of the tail: move the footers together. */
static void index_drop_fences(struct index_writer *w)
{
    uint8_t *from = w->tail.bytes, *to = w->tail.bytes;

    for (uint32_t i = 0; i < w->tail_footers; i++) {
        size_t fence = get_u32(from + 28);
        memmove(to, from, FOOTER_SIZE);
        to += FOOTER_SIZE;
        from += FOOTER_SIZE + fence;
    }
    w->tail_used = (size_t)(to - w->tail.bytes);
    w->tail_fences = 0;
    w->tail_has_fences = 0;
}

int index_write_segment(struct index_writer *w, const struct run *runs, uint32_t run_count, struct footer *f,
                        struct error *e)
{
    uint8_t footer[FOOTER_SIZE];
    struct merge m;
    size_t used = FENCE_HEADER_SIZE;
    uint64_t leaves_offset = log_end(&w->log);

    f->partition = w->partition;
    f->runs = run_count;
    f->first_key = f->last_key = 0;
    int status = buffer_reserve(&w->fence, FENCE_HEADER_SIZE, "a fence", e);
    if (status != DELTAFS_OK)
        return status;
    status = merge_init(&m, runs, run_count, e);
    if (status != DELTAFS_OK)
        return status;
    status = index_write_leaves(w, &m, f, &used, e);
    merge_fini(&m);
    if (status != DELTAFS_OK)
        return status;
    uint8_t *h = w->fence.bytes;
    memset(h, 0, FENCE_HEADER_SIZE);
    h[4] = FORMAT_FENCE;
    put_u32(h + 8, (uint32_t)used);
    put_u32(h + 12, w->partition);
    put_u32(h + 16, f->epoch);
    put_u32(h + 20, f->segment);
    put_u32(h + 24, f->leaves);
    put_u64(h + 32, leaves_offset);
    log_seal(w->log.seed, h, used);
    f->fence_offset = log_end(&w->log);
    f->fence_length = (uint32_t)used;
    f->previous = w->last_footer;
    status = log_append(&w->log, h, used, e);
    if (status != DELTAFS_OK)
        return status;
    f->offset = log_end(&w->log);
    index_put_footer(f, w->log.seed, footer);
    status = log_append(&w->log, footer, sizeof footer, e);
    if (status == DELTAFS_OK && w->tail_has_fences && w->tail_fences + used > TAIL_FENCES_MAX)
        index_drop_fences(w);
    if (status == DELTAFS_OK)
        status = index_keep_for_tail(w, footer, used, e);
    w->last_footer = f->offset;
    return status;
}

void index_mark(struct index_writer *w)
{
    w->mark.log_end = log_end(&w->log);
    w->mark.last_footer = w->last_footer;
    w->mark.tail_footers = w->tail_footers;
}

int index_rewind(struct index_writer *w, struct error *e)
{
    size_t at = 0;

    w->last_footer = w->mark.last_footer;
    w->tail_footers = w->mark.tail_footers;
    w->tail_fences = 0;
    for (uint32_t i = 0; i < w->tail_footers; i++) {
        size_t fence = w->tail_has_fences ? get_u32(w->tail.bytes + at + 28) : 0;
        at += FOOTER_SIZE + fence;
        w->tail_fences += fence;
    }
    w->tail_used = at;
    return log_rewind(&w->log, w->mark.log_end, e);
}

int index_write_tail(struct index_writer *w, uint64_t *length, struct error *e)
{
    int status = buffer_reserve(&w->tail, w->tail_used + TAIL_TRAILER_SIZE, "the tail", e);

    if (status != DELTAFS_OK)
        return status;
    uint8_t *t = w->tail.bytes + w->tail_used;
    memset(t, 0, TAIL_TRAILER_SIZE);
    t[4] = FORMAT_TAIL;
    t[5] = w->tail_has_fences ? 0 : TAIL_FLAG_NO_FENCES;
    put_u32(t + 8, w->partition);
    put_u32(t + 12, w->tail_footers);
    put_u64(t + 16, w->tail_used + TAIL_TRAILER_SIZE);
    memcpy(t + 24, TAIL_MAGIC, 8);
    put_u32(t, crc32c(crc32c(w->log.seed, w->tail.bytes, w->tail_used), t + 4, TAIL_TRAILER_SIZE - 4));
    *length = w->tail_used + TAIL_TRAILER_SIZE;
    status = log_append(&w->log, w->tail.bytes, (size_t)*length, e);
    return status == DELTAFS_OK ? log_flush(&w->log, e) : status;
}

int index_writer_create(struct index_writer *w, struct io *io, const char *path, uint32_t partition,
                        const uint8_t uuid[16], size_t capacity, struct error *e)
{
    *w = (struct index_writer){.partition = partition, .tail_has_fences = 1};
    int status = log_create(&w->log, io, path, LOG_KIND_INDEX, partition, uuid, capacity, e);
    index_mark(w);
    return status;
}

int index_writer_close(struct index_writer *w, struct error *e)
{
    buffer_fini(&w->tail);
    buffer_fini(&w->leaf);
    buffer_fini(&w->fence);
    return log_close(&w->log, e);
}
