/* Scans of whole blocks. What is known of a leaf's records at first is only how many each run has, and so in which
 * blocks they are. Its keys are decoded once the blocks have been looked at, if any record is marked. */
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "directory/read/scan_blocks.h"

#define INDEX_AHEAD ((size_t)256 << 10) /* bytes of reads of the index log */
#define RECORDS_MIN 8192u               /* of a portion, at least, */
#define RECORDS_MAX (256u << 10)        /* and at most, */
#define RECORDS_RUN 512u                /* of each run, so that few blocks are in two portions, */
#define RUNS_FEW    16u                 /* whose records are counted run by run */
#define MARKS_FEW   16u                 /* of a leaf: only the keys of these records are decoded */
#define VALUES_MAX  ((size_t)32 << 20)  /* and of so many bytes, about */

/* A leaf of the portion. */
struct held {
    struct leaf leaf; /* in `bytes` */
    struct buffer bytes;
    size_t base; /* of its first run */
};

struct block_scan {
    struct reader *reader;
    struct part_reader *part;
    const struct segment *segment;
    const struct scan_look *look;
    struct window index_window;
    struct buffer leaf_bytes;
    struct leaf leaf;
    struct buffer held; /* struct held: the portion's leaves */
    size_t held_count, held_most;
    struct buffer base; /* uint32_t: of each run of each leaf, the number of its first record in the portion */
    size_t base_count;
    struct buffer refs; /* struct ref: run by run of each leaf */
    uint32_t ref_count;
    size_t record_count;
    struct buffer numbers, keys, next; /* of a leaf's records, and the next record of each of its runs */
    struct buffer record_keys;         /* of the portion's records, if they are needed */
};

static void block_scan_fini(struct block_scan *s)
{
    struct held *held = (struct held *)(void *)s->held.bytes;

    for (size_t i = 0; i < s->held_most; i++)
        buffer_fini(&held[i].bytes);
    window_fini(&s->index_window);
    leaf_fini(&s->leaf);
    struct buffer *const buffers[] = {&s->leaf_bytes, &s->held, &s->base, &s->refs,
                                      &s->numbers,    &s->keys, &s->next, &s->record_keys};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        buffer_fini(buffers[i]);
}

static void block_scan_damage(void *look, const struct error *e)
{
    damages_add(((const struct scan_look *)look)->damages, e);
}

static int block_scan_look(void *look, struct block *b, const uint8_t *keys, const uint32_t **marks, struct error *e)
{
    const struct scan_look *l = look;

    return l->look(l->arg, b, keys, marks, e);
}

/* ---- Leaves ---- */

static int hold_reserve(struct block_scan *s, struct error *e)
{
    const struct leaf *l = &s->leaf;
    int status = buffer_reserve(&s->numbers, l->count * sizeof(uint32_t), "a scan", e);

    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->keys, l->count * sizeof(uint64_t), "a scan", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->next, l->run_count * sizeof(uint32_t), "a scan", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->base, (s->base_count + l->run_count) * sizeof(uint32_t), "a scan", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->refs, (s->ref_count + l->block_count) * sizeof(struct ref), "a scan", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->held, (s->held_count + 1) * sizeof(struct held), "a scan", e);
    if (status != DELTAFS_OK)
        return status;
    struct held *held = (struct held *)(void *)s->held.bytes + s->held_count;
    if (s->held_count == s->held_most) {
        *held = (struct held){.base = 0};
        s->held_most++;
    }
    return buffer_reserve(&held->bytes, l->size + LEAF_SLACK, "a scan", e);
}

/* How many records each run has; returns -1 in a malformed leaf. */
static int hold_count(struct block_scan *s, uint32_t *count)
{
    uint32_t *number = (uint32_t *)(void *)s->numbers.bytes, all = 0;

    if (s->leaf.run_count <= RUNS_FEW) {
        for (uint32_t r = 0; r < s->leaf.run_count; r++)
            all += count[r] = leaf_rank(&s->leaf, r, s->leaf.count);
        return all == s->leaf.count ? 0 : -1;
    }
    memset(count, 0, s->leaf.run_count * sizeof *count);
    leaf_runs_of(&s->leaf, number);
    for (uint32_t i = 0; i < s->leaf.count; i++) {
        if (number[i] >= s->leaf.run_count)
            return -1;
        count[number[i]]++;
    }
    return 0;
}

/* Refs to the blocks of the first `count` records that the leaf's run `r` has; returns -1 in a malformed leaf. */
static int hold_run(struct block_scan *s, uint32_t r, uint32_t count)
{
    for (uint32_t k = 0; k < count;) {
        struct ref ref = {.epoch = s->segment->footer.epoch};
        if (leaf_place(&s->leaf, r, k, &ref.place) != 0)
            return -1;
        uint32_t left = ref.place.at.count - ref.place.record;
        ref.wanted = left < count - k ? left : count - k;
        k += ref.wanted;
        ((struct ref *)(void *)s->refs.bytes)[s->ref_count++] = ref;
    }
    return 0;
}

/* Add the leaf to the portion; returns -1 if it is malformed. */
static int hold_leaf(struct block_scan *s)
{
    struct held *held = (struct held *)(void *)s->held.bytes + s->held_count;
    uint32_t *base = (uint32_t *)(void *)s->base.bytes + s->base_count, *count = (uint32_t *)(void *)s->next.bytes;
    uint32_t refs = s->ref_count;
    size_t at = s->record_count;

    int failed = hold_count(s, count);
    for (uint32_t r = 0; r < s->leaf.run_count && !failed; r++) {
        base[r] = (uint32_t)at;
        at += count[r];
        failed = hold_run(s, r, count[r]);
    }
    if (failed) {
        s->ref_count = refs;
        return -1;
    }
    leaf_copy(&held->leaf, &s->leaf, held->bytes.bytes);
    held->base = s->base_count;
    s->base_count += s->leaf.run_count;
    s->record_count = at;
    s->held_count++;
    return 0;
}

/* ---- Portions ---- */

static uint32_t count_marked(const uint32_t *marks, size_t n)
{
    uint32_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += marks[i] > 0;
    return count;
}

/* The runs of the leaf's records in s->numbers, and in s->next the number of the first record of each. */
static void walk_begin(struct block_scan *s, const struct held *h)
{
    memcpy(s->next.bytes, (const uint32_t *)(const void *)s->base.bytes + h->base,
           h->leaf.run_count * sizeof(uint32_t));
    leaf_runs_of(&h->leaf, (uint32_t *)(void *)s->numbers.bytes);
}

/* Give the leaf's records that have marks, of which there are `left`, by key. */
static int leaf_give(struct block_scan *s, const struct held *h, const uint32_t *marks, uint32_t left, struct error *e)
{
    const struct leaf *l = &h->leaf;
    const uint32_t *number = (const uint32_t *)(const void *)s->numbers.bytes;
    uint32_t *next = (uint32_t *)(void *)s->next.bytes;
    uint64_t *key = left > MARKS_FEW ? (uint64_t *)(void *)s->keys.bytes : NULL;
    int status = DELTAFS_OK;

    walk_begin(s, h);
    if (key)
        leaf_keys(l, key);
    for (uint32_t i = 0; left > 0 && status == DELTAFS_OK; i++) {
        uint32_t mark = marks[next[number[i]]++];
        if (mark == 0)
            continue;
        left--;
        status = s->look->give(s->look->arg, key ? key[i] : leaf_key(l, i), mark, e);
    }
    return status;
}

static int portion_give(struct block_scan *s, const uint32_t *marks, struct error *e)
{
    const struct held *held = (const struct held *)(const void *)s->held.bytes;
    int status = DELTAFS_OK;

    for (size_t h = 0; h < s->held_count && status == DELTAFS_OK; h++) {
        uint32_t first = ((const uint32_t *)(const void *)s->base.bytes)[held[h].base];
        uint32_t marked = count_marked(marks + first, held[h].leaf.count);
        if (marked > 0)
            status = leaf_give(s, &held[h], marks, marked, e);
    }
    return status;
}

/* Note the keys of all records. */
static void portion_keys(struct block_scan *s)
{
    const struct held *held = (const struct held *)(const void *)s->held.bytes;
    const uint32_t *number = (const uint32_t *)(const void *)s->numbers.bytes;
    uint32_t *next = (uint32_t *)(void *)s->next.bytes;
    uint64_t *key = (uint64_t *)(void *)s->keys.bytes;

    for (size_t h = 0; h < s->held_count; h++) {
        walk_begin(s, &held[h]);
        leaf_keys(&held[h].leaf, key);
        for (uint32_t i = 0; i < held[h].leaf.count; i++)
            put_u64(s->record_keys.bytes + next[number[i]]++ * sizeof(uint64_t), key[i]);
    }
}

static int portion_end(struct block_scan *s, struct error *e)
{
    const struct scan_look *l = s->look;
    const struct gather_look look = {block_scan_look, block_scan_damage, (void *)(uintptr_t)l};
    const uint32_t *marks = NULL;
    int status = DELTAFS_OK;

    if (l->needs_keys)
        status = buffer_reserve(&s->record_keys, s->record_count * sizeof(uint64_t) + 1, "keys", e);
    if (status == DELTAFS_OK && l->needs_keys)
        portion_keys(s);
    if (status == DELTAFS_OK)
        status = gather_blocks(s->reader, s->part, (struct ref *)(void *)s->refs.bytes, s->ref_count, s->record_count,
                               l->needs_keys ? s->record_keys.bytes : NULL, &look, &marks, e);
    if (status == DELTAFS_OK && marks)
        status = portion_give(s, marks, e);
    s->held_count = s->base_count = s->record_count = 0;
    s->ref_count = 0;
    return status == DELTAFS_OK ? l->end(l->arg, e) : status;
}

static int portion_is_full(const struct block_scan *s)
{
    uint64_t most = (uint64_t)RECORDS_RUN * s->segment->footer.runs;
    uint64_t each = reader_record_size(s->reader, s->segment->footer.epoch);

    most = most > RECORDS_MAX ? RECORDS_MAX : most;
    most = most < RECORDS_MIN ? RECORDS_MIN : most;
    if (most > VALUES_MAX / each)
        most = VALUES_MAX / each;
    return s->record_count >= most;
}

/* ---- The scan ---- */

static int look_leaf(struct block_scan *s, uint32_t leaf, struct error *e)
{
    int status = index_read_leaf(&s->part->index, s->segment, leaf, &s->index_window, &s->leaf_bytes, &s->leaf, e);

    if (status == DELTAFS_OK) {
        status = hold_reserve(s, e);
        if (status == DELTAFS_OK && hold_leaf(s) != 0)
            status = reader_malformed_leaf(s->part, s->segment, leaf, e);
    }
    if (status != DELTAFS_OK && status != DELTAFS_ERR_MEMORY) {
        damages_add(s->look->damages, e);
        return DELTAFS_OK;
    }
    return status == DELTAFS_OK && portion_is_full(s) ? portion_end(s, e) : status;
}

int part_look(struct reader *r, struct part_reader *p, uint32_t epoch, const struct scan_look *look, struct error *e)
{
    struct block_scan s = {.reader = r, .part = p, .look = look, .index_window.ahead = INDEX_AHEAD};
    struct segment *segment;
    uint32_t segments;
    int status = reader_epoch(r, p, epoch, &segment, &segments, e);

    if (status != DELTAFS_OK && status != DELTAFS_ERR_MEMORY) {
        damages_add(look->damages, e);
        return DELTAFS_OK;
    }
    if (status == DELTAFS_OK)
        look->begin(look->arg, segments);
    for (uint32_t i = 0; status == DELTAFS_OK && i < segments; i++) {
        s.segment = &segment[i];
        for (uint32_t leaf = 0; leaf < segment[i].footer.leaves && status == DELTAFS_OK; leaf++)
            status = look_leaf(&s, leaf, e);
    }
    if (status == DELTAFS_OK)
        status = portion_end(&s, e);
    block_scan_fini(&s);
    return status;
}
