#include <string.h>
#include "base/coding.h"
#include "directory/format/directory_format.h"
#include "directory/format/fence.h"

/* Goes from leaf to leaf. */
struct fence_walk {
    const uint8_t *at, *end; /* the next entry, and where the last one ends */
    struct fence_leaf leaf;
};

static size_t fence_marks(uint32_t leaves)
{
    return leaves / FENCE_STEP + (leaves % FENCE_STEP > 0);
}

static size_t fence_memory(const struct fence *f)
{
    return fence_marks(f->leaves) * sizeof *f->mark + f->size;
}

/* An entry: returns the byte behind it, or NULL. */
static inline const uint8_t *fence_get_entry(const uint8_t *p, const uint8_t *end, uint64_t *add, uint64_t *length)
{
    uint32_t both = end - p >= 4 ? get_u32(p) : 0;

    if ((both & 0x80808080u) == 0x00800080u) { /* as most are: two varints of two bytes */
        *add = (both & 0x7f) | (both >> 1 & 0x3f80);
        *length = (both >> 16 & 0x7f) | (both >> 17 & 0x3f80);
        return p + 4;
    }
    p = get_varint(p, end, add);
    return p ? get_varint(p, end, length) : NULL;
}

/* What FENCE_STEP entries add up to that are two varints of two bytes each; returns whether they are, and right. */
static int fence_sum_short(const uint8_t *p, uint64_t *add, uint64_t *length)
{
    uint32_t wrong = 0, adds = 0, lengths = 0;

    for (int i = 0; i < FENCE_STEP; i++) {
        uint32_t both = get_u32(p + 4 * i), bytes = (both >> 16 & 0x7f) | (both >> 17 & 0x3f80);
        wrong |= ((both & 0x80808080u) ^ 0x00800080u) | (bytes < LEAF_HEADER_SIZE);
        adds += (both & 0x7f) | (both >> 1 & 0x3f80);
        lengths += bytes;
    }
    *add = adds;
    *length = lengths;
    return wrong == 0;
}

/* What `n` entries add up to: returns the byte behind them, or NULL. */
static const uint8_t *fence_sum(const uint8_t *p, const uint8_t *end, uint32_t n, uint64_t *add, uint64_t *length)
{
    uint64_t key, bytes;

    if (n == FENCE_STEP && end - p >= 4 * FENCE_STEP && fence_sum_short(p, add, length))
        return p + (size_t)4 * FENCE_STEP;
    *add = *length = 0;
    for (; n > 0; n--) {
        p = fence_get_entry(p, end, &key, &bytes);
        if (!p || key > UINT64_MAX - *add || bytes < LEAF_HEADER_SIZE || bytes > LEAF_SIZE_MAX)
            return NULL;
        *add += key;
        *length += bytes;
    }
    return p;
}

const char *fence_parse(struct fence *f, const uint8_t *bytes, uint32_t size, uint32_t leaves, uint64_t stop,
                        struct memory *memory, int *status, struct error *e)
{
    const uint8_t *p = bytes + FENCE_HEADER_SIZE, *end = bytes + size;
    uint64_t key = 0, offset = get_u64(bytes + 32), add, length;

    *f = (struct fence){.size = size, .leaves = leaves};
    *status = memory_take(memory, fence_memory(f), "a fence", &f->mark, e);
    if (*status != DELTAFS_OK)
        return NULL;
    f->bytes = (uint8_t *)(f->mark + fence_marks(leaves));
    memcpy(f->bytes, bytes, size);
    if (offset > stop)
        return "a fence is malformed";
    for (uint32_t i = 0; i < leaves; i += FENCE_STEP) {
        f->mark[i / FENCE_STEP] = (struct fence_mark){key, offset, (uint32_t)(p - bytes)};
        p = fence_sum(p, end, leaves - i < FENCE_STEP ? leaves - i : FENCE_STEP, &add, &length);
        if (!p || add > UINT64_MAX - key || length > stop - offset)
            return "a fence is malformed";
        key += add;
        offset += length;
    }
    return p == end && offset == stop ? NULL : "a fence's sizes do not add up";
}

void fence_fini(struct fence *f, struct memory *memory)
{
    if (f->mark)
        memory_give(memory, f->mark, fence_memory(f));
    *f = (struct fence){0};
}

/* To the next leaf; there is one. */
static inline void fence_next(struct fence_walk *w)
{
    uint64_t add = 0, length = 0;

    w->at = fence_get_entry(w->at, w->end, &add, &length);
    w->leaf.first_key += add;
    w->leaf.offset += w->leaf.length;
    w->leaf.length = (uint32_t)length;
}

/* At the leaf of a mark. */
static struct fence_walk fence_begin(const struct fence *f, const struct fence_mark *m)
{
    struct fence_walk w = {f->bytes + m->at, f->bytes + f->size, {m->key, m->offset, 0}};

    fence_next(&w);
    return w;
}

struct fence_leaf fence_leaf(const struct fence *f, uint32_t i)
{
    struct fence_walk w = fence_begin(f, &f->mark[i / FENCE_STEP]);

    for (uint32_t n = i % FENCE_STEP; n > 0; n--)
        fence_next(&w);
    return w.leaf;
}

uint32_t fence_find(const struct fence *f, uint64_t key, uint32_t *leaves)
{
    const struct fence_mark *mark = f->mark;

    *leaves = 0;
    if (f->leaves == 0)
        return 0;
    /* The last mark before which all leaves begin below `key`: without branches, which nothing predicts. */
    for (size_t n = fence_marks(f->leaves); n > 1; n -= n / 2)
        mark += mark[n / 2].key < key ? n / 2 : 0;
    uint32_t i = (uint32_t)(mark - f->mark) * FENCE_STEP;
    struct fence_walk w = fence_begin(f, mark);
    while (w.leaf.first_key < key && i < f->leaves)
        if (++i < f->leaves)
            fence_next(&w);
    /* `i` is the first leaf that begins at `key` or above it. */
    if (i == f->leaves || w.leaf.first_key > key) {
        *leaves = i > 0;
        return i > 0 ? i - 1 : 0;
    }
    while (i + *leaves < f->leaves && w.leaf.first_key == key)
        if (++*leaves + i < f->leaves)
            fence_next(&w);
    return i;
}
