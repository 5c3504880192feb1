/* Merge of the runs: a tree of losers (Knuth, The Art of Computer Programming 3, 5.4.1) over the runs' next keys,
 * ordered by (key, run). Records come out in the order in which they were appended wherever keys are equal, since runs
 * are numbered in time and sorting a memtable is stable.
 *
 * Leaves are cut every LEAF_RECORDS records, and before that where keys jump so far that two leaves are shorter than
 * one; but never inside a key that did not begin its leaf: so all records of a key are in one leaf, or in several that
 * all begin with that key, and the fences alone say which. */
#include <string.h>
#include "base/coding.h"
#include "base/crc32c.h"
#include "directory/format/directory_format.h"
#include "directory/format/index.h"

/* A run's next key, above it nothing, below it the run's number among those merged, which is less than 2^32 - 1. */
typedef unsigned __int128 merge_item;

#define MERGE_END  (~(merge_item)0) /* no key left; its lower half says so, too */
#define MERGE_WIDE 64u              /* gaps of this part of the range are looked at, */
#define MERGE_NEAR 16u              /* and none where so many of them together are no wider */
#define MERGE_ROW  12u              /* bytes that a row of a leaf's run table takes, about */

struct merge {
    struct run_cursor *cursor; /* one for each run: where the next leaf begins */
    struct keys_cursor *next;  /* and the keys behind the one in the tree */
    merge_item *loser;         /* [1 .. width - 1]: of each match the one that came second */
    merge_item winner;
    /* If all keys are below 2^32, the lower halves of items have all: in the place of the others, these, and of each
     * run the key that follows (not where epochs are compacted), so that no match waits for it. */
    int is_short;
    uint64_t *short_loser, *ahead;
    uint64_t short_winner;
    int is_only;                  /* one run, without epochs */
    uint32_t cursor_count, width; /* width: a power of two */
    unsigned key_shift;
    uint64_t *keys; /* of the leaf being collected, and then of what it left over */
    uint32_t *cursors, *epochs;
    uint32_t count; /* of these */
    int has_epochs;
    uint32_t *scratch;
    struct memory *memory;
};

static inline int merge_is_over(const struct merge *m)
{
    return m->is_short ? m->short_winner == (uint64_t)MERGE_END : (uint64_t)m->winner == (uint64_t)MERGE_END;
}

static inline uint64_t merge_key(const struct merge *m)
{
    return m->is_short ? m->short_winner >> 32 : (uint64_t)(m->winner >> 32);
}

static inline merge_item merge_item_of(struct merge *m, uint32_t c)
{
    return c < m->cursor_count && m->next[c].left > 0 ? (merge_item)(keys_next(&m->next[c]) >> m->key_shift) << 32 | c
                                                      : MERGE_END;
}

/* Take records out, from number `n` on, until there is enough for a leaf: the run's next key takes the place of the
 * winner. Returns their number. */
static uint32_t merge_take(struct merge *m, uint32_t n)
{
    for (; !merge_is_over(m) && n < LEAF_RECORDS; n++) {
        uint32_t c = (uint32_t)m->winner;
        m->keys[n] = merge_key(m);
        m->cursors[n] = c;
        if (m->has_epochs)
            m->epochs[n] = m->next[c].epoch;
        merge_item item = merge_item_of(m, c);
        for (uint32_t at = (m->width + c) / 2; at > 0; at /= 2) {
            merge_item other = m->loser[at];
            int loses = other < item;
            m->loser[at] = loses ? item : other;
            item = loses ? other : item;
        }
        m->winner = item;
    }
    return n;
}

/* The same of one run, which is compared with none. */
static uint32_t merge_take_only(struct merge *m, uint32_t n)
{
    struct keys_cursor next = m->next[0];

    if (merge_is_over(m))
        return n;
    uint64_t key = merge_key(m);
    for (; next.left > 0 && n + 1 < LEAF_RECORDS; n++) {
        m->keys[n] = key;
        key = keys_next(&next) >> m->key_shift;
    }
    m->keys[n] = key;
    m->next[0] = next;
    m->winner = merge_item_of(m, 0);
    return n + 1;
}

static inline uint64_t merge_short_item(struct keys_cursor *next, uint32_t c, unsigned key_shift)
{
    return next[c].left > 0 ? (keys_next(&next[c]) >> key_shift) << 32 | c : (uint64_t)MERGE_END;
}

static uint32_t merge_take_short(struct merge *m, uint32_t n)
{
    uint64_t *const keys = m->keys, *const loser = m->short_loser, *const ahead = m->ahead;
    uint64_t winner = m->short_winner;
    uint32_t *const cursors = m->cursors;
    const uint32_t width = m->width;
    struct keys_cursor *const next = m->next;

    for (; winner != (uint64_t)MERGE_END && n < LEAF_RECORDS; n++) {
        uint32_t c = (uint32_t)winner;
        keys[n] = winner >> 32;
        cursors[n] = c;
        if (m->has_epochs)
            m->epochs[n] = next[c].epoch;
        winner = m->has_epochs ? merge_short_item(next, c, m->key_shift) : ahead[c];
        for (uint32_t at = (width + c) / 2; at > 0; at /= 2) {
            uint64_t other = loser[at];
            int loses = other < winner;
            loser[at] = loses ? winner : other;
            winner = loses ? other : winner;
        }
        if (!m->has_epochs)
            ahead[c] = merge_short_item(next, c, m->key_shift);
    }
    m->short_winner = winner;
    return n;
}

/* Play all matches below `at`; returns who wins. */
static merge_item merge_play(struct merge *m, uint32_t at)
{
    if (at >= m->width)
        return merge_item_of(m, at - m->width);
    merge_item a = merge_play(m, 2 * at), b = merge_play(m, 2 * at + 1);
    if (m->is_short)
        m->short_loser[at] = (uint64_t)(a < b ? b : a);
    else
        m->loser[at] = a < b ? b : a;
    return a < b ? a : b;
}

/* Play all matches, of each run's first key. */
static void merge_begin(struct merge *m)
{
    m->short_loser = (uint64_t *)(void *)m->loser;
    m->ahead = m->short_loser + m->width;
    m->winner = merge_play(m, 1);
    m->short_winner = (uint64_t)m->winner;
    for (uint32_t c = 0; m->is_short && !m->has_epochs && c < m->cursor_count; c++)
        m->ahead[c] = (uint64_t)merge_item_of(m, c);
}

static uint32_t merge_width(uint32_t runs)
{
    uint32_t width = 1;

    while (width < runs)
        width *= 2;
    return width;
}

/* All arrays of a merge lie in one piece of memory, the widest first. */
size_t index_merge_bytes(uint32_t runs)
{
    size_t n = (size_t)runs + 1;

    return merge_width(runs) * sizeof(merge_item) + n * (sizeof(struct run_cursor) + sizeof(struct keys_cursor) + 4) +
           LEAF_RECORDS * (8 + 4 + 4);
}

static void merge_fini(struct merge *m)
{
    memory_give(m->memory, m->loser, index_merge_bytes(m->cursor_count));
}

static int merge_init(struct merge *m, const struct run *runs, uint32_t n, unsigned key_shift, struct memory *memory,
                      struct error *e)
{
    *m = (struct merge){.cursor_count = n,
                        .width = merge_width(n),
                        .key_shift = key_shift,
                        .is_only = n == 1 && !runs[0].keys.has_epochs,
                        .is_short = 1,
                        .has_epochs = n > 0 && runs[0].keys.has_epochs,
                        .memory = memory};
    int status = memory_take(memory, index_merge_bytes(n), "merging runs", &m->loser, e);
    if (status != DELTAFS_OK)
        return status;
    m->cursor = (struct run_cursor *)(void *)(m->loser + m->width);
    m->next = (struct keys_cursor *)(void *)(m->cursor + n + 1);
    m->keys = (uint64_t *)(void *)(m->next + n + 1);
    m->cursors = (uint32_t *)(void *)(m->keys + LEAF_RECORDS);
    m->epochs = m->cursors + LEAF_RECORDS;
    m->scratch = m->epochs + LEAF_RECORDS;
    for (uint32_t c = 0; c < n; c++) {
        m->cursor[c] = (struct run_cursor){.run = &runs[c], .offset = runs[c].offset};
        m->next[c] = runs[c].keys;
        m->is_short &= runs[c].is_short && !m->is_only;
    }
    merge_begin(m);
    return DELTAFS_OK;
}

/* Bits that the keys of a leaf take. */
static uint64_t merge_cost(uint64_t range, uint32_t n)
{
    uint64_t gap = range / n;

    return n * (uint64_t)(2 + (gap == 0 ? 0 : 63 - __builtin_clzll(gap)));
}

/* How many of the keys collected are best put into the next leaf: they are cut at the first wide gap where that makes
 * both parts shorter than the whole, as between the particles of one rank and the next. */
static uint32_t merge_cut(const struct merge *m, uint32_t n)
{
    const uint64_t *keys = m->keys;
    uint64_t range = keys[n - 1] - keys[0], wide = range / MERGE_WIDE, whole = merge_cost(range, n);
    uint64_t row = m->cursor_count < n ? m->cursor_count : n, leaf = 8 * (LEAF_HEADER_SIZE + MERGE_ROW * row);

    for (uint32_t i = 1, next; i < n; i = next) {
        next = i + MERGE_NEAR <= n && keys[i + MERGE_NEAR - 1] - keys[i - 1] <= wide ? i + MERGE_NEAR : i + 1;
        if (keys[i] - keys[i - 1] > wide &&
            merge_cost(keys[i - 1] - keys[0], i) + merge_cost(keys[n - 1] - keys[i], n - i) + leaf < whole)
            return i;
    }
    return n;
}

/* Collect records until there is enough for a leaf; returns how many are to go into it. */
static uint32_t merge_leaf(struct merge *m)
{
    uint32_t n = m->count, group = 0; /* group: where the records of the last key begin */

    n = m->is_only ? merge_take_only(m, n) : m->is_short ? merge_take_short(m, n) : merge_take(m, n);
    m->count = n;
    if (!merge_is_over(m) && merge_key(m) == m->keys[n - 1]) {
        for (group = n - 1; group > 0 && m->keys[group - 1] == m->keys[n - 1];)
            group--;
        n = group > 0 ? group : n;
    }
    return n > 0 ? merge_cut(m, n) : 0;
}

/* Forget the first `n` records, which are in a leaf now. */
static void merge_drop(struct merge *m, uint32_t n)
{
    m->count -= n;
    memmove(m->keys, m->keys + n, m->count * sizeof *m->keys);
    memmove(m->cursors, m->cursors + n, m->count * sizeof *m->cursors);
    if (m->has_epochs)
        memmove(m->epochs, m->epochs + n, m->count * sizeof *m->epochs);
}

static int index_fence_is_full(const struct index_writer *w, size_t used)
{
    size_t most =
        w->scratch->fence_max > 0 && w->scratch->fence_max < FENCE_SIZE_MAX ? w->scratch->fence_max : FENCE_SIZE_MAX;

    return used + 2 * VARINT_MAX > most;
}

/* Append leaves, and their entries to w->scratch->fence, until that is full or none is left; *used gets the fence's
 * bytes. */
static int index_write_leaves(struct index_writer *w, struct merge *m, struct footer *f, size_t *used, struct error *e)
{
    struct leaf_id id = {f->partition, f->epoch, f->segment, 0};
    uint64_t previous = 0;
    size_t length;
    uint32_t n;

    while (!index_fence_is_full(w, *used) && (n = merge_leaf(m)) > 0) {
        struct leaf_input in = {.keys = m->keys,
                                .cursors = m->cursors,
                                .count = n,
                                .cursor = m->cursor,
                                .cursor_count = m->cursor_count,
                                .scratch = m->scratch,
                                .flags = f->is_lost ? LEAF_FLAG_LOST : 0,
                                .epochs = m->has_epochs ? m->epochs : NULL};
        int status = leaf_encode(&in, &id, w->log.seed, &w->scratch->leaf, &length, e);
        if (status == DELTAFS_OK)
            status = log_append(&w->log, w->scratch->leaf.bytes, length, e);
        if (status == DELTAFS_OK)
            status = buffer_reserve(&w->scratch->fence, *used + 2 * VARINT_MAX, "a fence", e);
        if (status != DELTAFS_OK)
            return status;
        if (id.leaf == 0)
            f->first_key = m->keys[0];
        f->last_key = m->keys[n - 1];
        uint8_t *p = put_varint(w->scratch->fence.bytes + *used, m->keys[0] - previous);
        *used = (size_t)(put_varint(p, length) - w->scratch->fence.bytes);
        previous = m->keys[0];
        id.leaf++;
        f->records += f->is_lost ? 0 : n;
        merge_drop(m, n);
    }
    f->leaves = id.leaf;
    return DELTAFS_OK;
}

void index_put_footer(const struct footer *f, uint32_t seed, uint8_t *p)
{
    memset(p, 0, FOOTER_SIZE);
    p[4] = FORMAT_FOOTER;
    p[5] = f->is_last ? FOOTER_FLAG_LAST : 0;
    p[6] = (uint8_t)f->key_shift;
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

void index_put_fence(const struct footer *f, uint64_t leaves_offset, uint32_t seed, uint8_t *h, size_t n)
{
    memset(h, 0, FENCE_HEADER_SIZE);
    h[4] = FORMAT_FENCE;
    put_u32(h + 8, (uint32_t)n);
    put_u32(h + 12, f->partition);
    put_u32(h + 16, f->epoch);
    put_u32(h + 20, f->segment);
    put_u32(h + 24, f->leaves);
    put_u64(h + 32, leaves_offset);
    log_seal(seed, h, n);
}

static int index_write_footer(struct index_writer *w, struct footer *f, struct error *e)
{
    uint8_t footer[FOOTER_SIZE];

    f->previous = w->end.last_footer;
    f->offset = log_end(&w->log);
    index_put_footer(f, w->log.seed, footer);
    int status = log_append(&w->log, footer, sizeof footer, e);
    if (status == DELTAFS_OK) {
        w->end.last_footer = f->offset;
        w->end.footers++;
        w->end.fences += f->fence_length;
    }
    return status;
}

/* One segment of what is left to be merged; its footer is the epoch's last if `f` says so and nothing is left. */
static int index_write_part(struct index_writer *w, struct merge *m, struct footer *f, int *is_done, struct error *e)
{
    size_t used = FENCE_HEADER_SIZE;
    struct footer part = *f;
    uint64_t leaves_offset = log_end(&w->log);
    int status = buffer_reserve(&w->scratch->fence, FENCE_HEADER_SIZE, "a fence", e);

    part.first_key = part.last_key = part.records = 0;
    if (status == DELTAFS_OK)
        status = index_write_leaves(w, m, &part, &used, e);
    *is_done = m->count == 0 && merge_is_over(m);
    if (!*is_done) {
        part.is_last = 0;
        part.bytes_raw = 0;
    }
    if (status == DELTAFS_OK) {
        index_put_fence(&part, leaves_offset, w->log.seed, w->scratch->fence.bytes, used);
        part.fence_offset = log_end(&w->log);
        part.fence_length = (uint32_t)used;
        status = log_append(&w->log, w->scratch->fence.bytes, used, e);
    }
    if (status == DELTAFS_OK)
        status = index_write_footer(w, &part, e);
    if (*is_done)
        *f = part;
    else
        f->segment++;
    return status;
}

int index_write_segment(struct index_writer *w, const struct run *runs, uint32_t run_count, struct footer *f,
                        struct error *e)
{
    struct merge m;
    int is_done = 0, status = merge_init(&m, runs, run_count, f->key_shift, w->memory, e);

    f->partition = w->partition;
    f->runs = run_count;
    if (status != DELTAFS_OK)
        return status;
    while (!is_done && status == DELTAFS_OK)
        status = index_write_part(w, &m, f, &is_done, e);
    merge_fini(&m);
    return status;
}

int index_write_lost(struct index_writer *w, const struct index_lost *lost, struct footer *f, struct error *e)
{
    uint64_t length = lost->length < BLOCK_HEADER_SIZE ? BLOCK_HEADER_SIZE : lost->length,
             most = BLOCK_HEADER_SIZE + BLOCK_PAYLOAD_MAX;
    struct run_block block = {(uint32_t)(length < most ? length : most), 2};
    struct run run = {.count = 2, .offset = lost->offset, .block_count = 1, .blocks = &block};
    struct keys_store keys = {.memory = w->memory};
    int status = keys_begin(&keys, 2, &run.keys, e);

    /* A run of two records: its leaf has their keys as its first and last. */
    if (status == DELTAFS_OK)
        status = keys_put(&keys, lost->low, e);
    if (status == DELTAFS_OK)
        status = keys_put(&keys, lost->high - lost->low, e);
    f->key_shift = 0;
    f->bytes_raw = 0;
    f->is_lost = 1;
    if (status == DELTAFS_OK)
        status = index_write_segment(w, &run, 1, f, e);
    keys_clear(&keys);
    return status;
}

struct index_end index_mark(const struct index_writer *w)
{
    struct index_end mark = w->end;

    mark.log_end = log_end(&w->log);
    return mark;
}

int index_rewind(struct index_writer *w, const struct index_end *mark, struct error *e)
{
    w->end = *mark;
    return log_rewind(&w->log, mark->log_end, e);
}

/* Fill bytes[0 .. end) with the footers, and their fences, from the last to the first. */
static int index_gather_tail(struct index_writer *w, uint8_t *bytes, size_t end, int has_fences, struct error *e)
{
    uint64_t at = w->end.last_footer;
    int status = DELTAFS_OK;

    while (at != 0 && status == DELTAFS_OK) {
        uint8_t footer[FOOTER_SIZE];
        status = io_file_read(&w->log.file, at, footer, sizeof footer, e);
        size_t fence = status == DELTAFS_OK ? get_u32(footer + 28) : 0, take = has_fences ? fence : 0;
        if (status == DELTAFS_OK && (!log_is_sealed(w->log.seed, footer, sizeof footer) || end < FOOTER_SIZE + take))
            status = error_damaged(e, w->log.file.path, at, "a footer is not what was written");
        if (status != DELTAFS_OK)
            return status;
        end -= FOOTER_SIZE + take;
        memcpy(bytes + end, footer, sizeof footer);
        status = io_file_read(&w->log.file, at - fence, bytes + end + FOOTER_SIZE, take, e);
        at = get_u64(footer + 56);
    }
    return status;
}

int index_write_tail(struct index_writer *w, uint64_t *length, struct error *e)
{
    int has_fences = w->end.fences <= w->tail_fences_max, status = log_flush(&w->log, e);
    size_t used = (size_t)(w->end.footers * (uint64_t)FOOTER_SIZE + (has_fences ? w->end.fences : 0));
    uint8_t *tail;

    if (status == DELTAFS_OK)
        status = memory_take(w->memory, used + TAIL_TRAILER_SIZE, "the tail", &tail, e);
    if (status == DELTAFS_ERR_MEMORY)
        return error_set(
            e, status,
            "%s: the directory cannot be closed: %s; its committed epochs can be read; to close it, reopen "
            "it with more memory",
            w->log.file.path, e->text);
    if (status != DELTAFS_OK)
        return status;
    status = index_gather_tail(w, tail, used, has_fences, e);
    uint8_t *t = tail + used;
    memset(t, 0, TAIL_TRAILER_SIZE);
    t[4] = FORMAT_TAIL;
    t[5] = has_fences ? 0 : TAIL_FLAG_NO_FENCES;
    put_u32(t + 8, w->partition);
    put_u32(t + 12, w->end.footers);
    put_u64(t + 16, used + TAIL_TRAILER_SIZE);
    memcpy(t + 24, TAIL_MAGIC, 8);
    if (status == DELTAFS_OK) {
        put_u32(t, crc32c(crc32c(w->log.seed, tail, used), t + 4, TAIL_TRAILER_SIZE - 4));
        *length = used + TAIL_TRAILER_SIZE;
        status = log_append(&w->log, tail, used + TAIL_TRAILER_SIZE, e);
    }
    if (status == DELTAFS_OK)
        status = log_flush(&w->log, e);
    memory_give(w->memory, tail, used + TAIL_TRAILER_SIZE);
    return status;
}

int index_writer_open(struct index_writer *w, struct io *io, const char *path, uint32_t partition,
                      const uint8_t uuid[16], const struct index_end *end, int is_new, size_t capacity,
                      size_t tail_fences_max, struct index_scratch *scratch, struct memory *memory, struct error *e)
{
    *w = (struct index_writer){
        .partition = partition, .scratch = scratch, .memory = memory, .tail_fences_max = tail_fences_max};
    if (!end)
        return log_create(&w->log, io, path, LOG_KIND_INDEX, partition, uuid, is_new, capacity, NULL, memory, e);
    w->end = *end;
    return log_open(&w->log, io, path, LOG_KIND_INDEX, partition, uuid, end->log_end, capacity, NULL, memory, e);
}
