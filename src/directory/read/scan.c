#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "directory/format/partition.h"
#include "directory/read/scan.h"
#include "directory/read/value_log_read.h"

#define INDEX_AHEAD   ((size_t)256 << 10) /* bytes of a scan's reads of the index log */
#define RUNS_AHEAD    ((size_t)8 << 20)   /* and of all of a segment's runs, */
#define RUN_AHEAD_MIN ((size_t)16 << 10)  /* but for each not less than this */
#define RUN_AHEAD_MAX ((size_t)256 << 10) /* nor more */
#define RUNS_HELD_MAX ((size_t)64 << 20)  /* and of what all of a scan's runs have in memory, about */
#define AWAY_RECORDS  ((size_t)256 << 10) /* records whose values are fetched from their writers' logs at once, */
#define AWAY_BYTES    ((size_t)32 << 20)  /* of so many bytes at most */

/* Each run of a leaf is read on its own, block by block. */
struct scan_run {
    uint32_t next;         /* record of the run in the leaf */
    int has_block, is_bad; /* a block was read, or could not be */
    uint32_t epoch;        /* of that block, and its place */
    struct leaf_place place;
    struct window window;
    struct block block;
};

struct scan {
    struct reader *reader;
    struct part_reader *part;
    const struct segment *segment;
    struct scan_to *to;
    struct scan_damages *damages;
    int is_bad_leaf; /* the rest of the leaf is of no use */
    struct window index_window;
    struct buffer leaf_bytes;
    struct leaf leaf;
    struct scan_run *run; /* by index in the leaf's run table; runs follow each other from leaf to leaf by number */
    uint32_t run_capacity;
    size_t run_ahead, runs_held;
    struct buffer keys;
    /* With layout=local, records whose values are still to be fetched: */
    struct buffer wanted, away;
    size_t away_count;
    struct buffer values; /* of those that have been */
};

/* The key of such a record, shortened as its segment has it. */
struct scan_away {
    uint64_t key;
    unsigned key_shift;
};

static void scan_fini(struct scan *s)
{
    for (uint32_t i = 0; i < s->run_capacity; i++) {
        window_fini(&s->run[i].window);
        block_fini(&s->run[i].block);
    }
    free(s->run);
    window_fini(&s->index_window);
    buffer_fini(&s->leaf_bytes);
    leaf_fini(&s->leaf);
    buffer_fini(&s->keys);
    buffer_fini(&s->wanted);
    buffer_fini(&s->away);
    buffer_fini(&s->values);
}

static int scan_reserve(struct scan *s, uint32_t runs, struct error *e)
{
    if (runs <= s->run_capacity)
        return DELTAFS_OK;
    struct scan_run *grown = realloc(s->run, runs * sizeof *grown);
    if (!grown)
        return error_no_memory(e, runs * sizeof *grown, "a scan");
    memset(grown + s->run_capacity, 0, (runs - s->run_capacity) * sizeof *grown);
    for (uint32_t i = s->run_capacity; i < runs; i++)
        grown[i].window.ahead = s->run_ahead;
    s->run = grown;
    s->run_capacity = runs;
    return DELTAFS_OK;
}

void scan_damage(void *arg, const struct error *e)
{
    struct scan_damages *damages = arg;

    if (damages->count++ == 0)
        damages->first = *e;
    if (damages->report)
        damages->report(damages->arg, e);
}

/* An error of one leaf or block: DELTAFS_OK to go on behind it, or what ends the scan. */
static int scan_failed(struct scan *s, const struct error *e)
{
    if (e->status == DELTAFS_ERR_MEMORY)
        return e->status;
    scan_damage(s->damages, e);
    return DELTAFS_OK;
}

static size_t scan_run_bytes(const struct scan_run *run)
{
    const struct block *b = &run->block;

    return run->window.bytes.capacity + b->values.capacity + b->ends.capacity + b->payload.capacity;
}

/* A leaf may name more runs than there is memory for: all but one let go of theirs, and are read anew where they go on.
 */
static void scan_let_go(struct scan *s, const struct scan_run *but)
{
    for (struct scan_run *run = s->run; run < s->run + s->run_capacity; run++) {
        if (run == but)
            continue;
        window_fini(&run->window);
        block_fini(&run->block);
        run->has_block &= run->is_bad;
    }
    s->runs_held = scan_run_bytes(but);
}

static int scan_try_block(struct scan *s, struct scan_run *run, const struct leaf_place *place, struct error *e)
{
    struct part_reader *p = s->part;
    const uint8_t *bytes;
    uint64_t end = s->segment->footer.data_end;
    int status = window_read(&run->window, &p->data, end < p->data_size ? end : p->data_size, place->at.offset,
                             place->at.length, &bytes, e);

    return status == DELTAFS_OK
               ? reader_decode_block(s->reader, p, s->segment->footer.epoch, place, bytes, &run->block, e)
               : status;
}

static int scan_read_block(struct scan *s, struct scan_run *run, const struct leaf_place *place, struct error *e)
{
    unsigned waited = 0;
    int status = reader_check_place(s->part, place, e);

    if (status != DELTAFS_OK)
        return status;
    while ((status = scan_try_block(s, run, place, e)) == DELTAFS_ERR_DAMAGED && io_file_wait(&s->part->data, &waited))
        window_fini(&run->window);
    return status;
}

/* Have the block at `place` in run->block, unless run->is_bad. */
static int scan_block(struct scan *s, struct scan_run *run, const struct leaf_place *place, struct error *e)
{
    uint32_t epoch = s->segment->footer.epoch;

    if (run->has_block && run->epoch == epoch && reader_is_same_block(&run->place, place))
        return DELTAFS_OK;
    run->has_block = 1;
    run->epoch = epoch;
    run->place = *place;
    size_t before = scan_run_bytes(run);
    run->is_bad = scan_read_block(s, run, place, e) != DELTAFS_OK || block_join(&run->block, e) != DELTAFS_OK;
    s->runs_held += scan_run_bytes(run) - before;
    if (s->runs_held > RUNS_HELD_MAX)
        scan_let_go(s, run);
    s->to->counts.blocks += !run->is_bad;
    return run->is_bad ? scan_failed(s, e) : DELTAFS_OK;
}

/* A record that is not what the index says; `in` is where its value is, NULL: in the partition's data log. */
static int scan_is_wrong(struct scan *s, uint64_t offset, const struct position *in, const char *what, struct error *e)
{
    if (in)
        values_damaged(s->reader, in, what, e);
    else
        error_damaged(e, s->part->data.path, offset, "%s", what);
    return scan_failed(s, e);
}

/* Hand out a record as it is stored. */
static int scan_give(struct scan *s, const struct scan_away *a, const uint8_t *stored, size_t size, uint64_t offset,
                     const struct position *in, struct error *e)
{
    struct deltafs_record record = {.key = a->key, .label = s->reader->manifest.epoch[s->segment->footer.epoch].label};

    if (record_split(s->reader, stored, size, &record) != 0)
        return scan_is_wrong(s, offset, in, "a record is not of its key and the value's size", e);
    if (record.key_size > 0) {
        record.key = hash_bytes(record.key_bytes, record.key_size);
        if (record.key >> a->key_shift != a->key)
            return scan_is_wrong(s, offset, in, "a record is not that of the index", e);
    }
    s->to->counts.records++;
    s->to->counts.bytes += record.size;
    s->to->stopped = s->to->fn(&record, s->to->arg);
    return DELTAFS_OK;
}

/* Fetch the values that are away, and hand the records out, in their order. */
static int scan_fetch(struct scan *s, struct error *e)
{
    struct value_wanted *wanted = (struct value_wanted *)(void *)s->wanted.bytes;
    const struct scan_away *away = (const struct scan_away *)(void *)s->away.bytes;
    int status = DELTAFS_OK;

    for (size_t at = 0, done; at < s->away_count && status == DELTAFS_OK && !s->to->stopped; at += done) {
        status = values_fetch(s->reader, wanted + at, s->away_count - at, AWAY_BYTES, &s->values, &done, scan_damage,
                              s->damages, &s->to->counts.blocks, e);
        for (size_t i = at; i < at + done && status == DELTAFS_OK && !s->to->stopped; i++)
            if (!wanted[i].is_bad)
                status = scan_give(s, &away[i], s->values.bytes + wanted[i].at, wanted[i].size, 0, &wanted[i].in, e);
    }
    s->away_count = 0;
    return status;
}

/* A record whose value is with its writer: `bytes` say where. */
static int scan_send_for(struct scan *s, const struct scan_away *a, const uint8_t *bytes, uint64_t offset,
                         struct error *e)
{
    struct value_wanted w = {.epoch = s->segment->footer.epoch, .hash = hash_key(a->key)};
    int status = values_locate(s->reader, w.epoch, bytes, s->part->data.path, offset, &w.in, e);

    if (status != DELTAFS_OK)
        return scan_failed(s, e);
    if (s->away_count == AWAY_RECORDS)
        status = scan_fetch(s, e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->wanted, (s->away_count + 1) * sizeof w, "a scan", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->away, (s->away_count + 1) * sizeof *a, "a scan", e);
    if (status != DELTAFS_OK)
        return status;
    ((struct value_wanted *)(void *)s->wanted.bytes)[s->away_count] = w;
    ((struct scan_away *)(void *)s->away.bytes)[s->away_count++] = *a;
    return DELTAFS_OK;
}

/* A record of the leaf, whose key (shifted) is `key`, as it stands in its block. */
static int scan_take(struct scan *s, struct scan_run *run, uint64_t key, struct error *e)
{
    struct scan_away a = {key, s->segment->footer.key_shift};
    size_t size;
    const uint8_t *stored = block_value(&run->block, run->place.record, &size);

    if (s->reader->manifest.is_local)
        return scan_send_for(s, &a, stored, run->place.at.offset, e);
    return scan_give(s, &a, stored, size, run->place.at.offset, NULL, e);
}

static int scan_record(struct scan *s, uint32_t leaf, uint32_t i, struct error *e)
{
    uint32_t number = leaf_run_of(&s->leaf, i);
    struct leaf_place place;

    if (number >= s->leaf.run_count || leaf_place(&s->leaf, number, s->run[number].next, &place) != 0) {
        s->is_bad_leaf = 1;
        reader_malformed_leaf(s->part, s->segment, leaf, e);
        return scan_failed(s, e);
    }
    struct scan_run *run = &s->run[number];
    run->next++;
    int status = scan_block(s, run, &place, e);
    if (status != DELTAFS_OK || run->is_bad)
        return status;
    run->place.record = place.record;
    return scan_take(s, run, ((const uint64_t *)(const void *)s->keys.bytes)[i], e);
}

static int scan_leaf(struct scan *s, uint32_t leaf, struct error *e)
{
    int status = index_read_leaf(&s->part->index, s->segment, leaf, &s->index_window, &s->leaf_bytes, &s->leaf, e);

    if (status != DELTAFS_OK)
        return scan_failed(s, e);
    status = buffer_reserve(&s->keys, s->leaf.count * sizeof(uint64_t), "a scan", e);
    if (status == DELTAFS_OK)
        status = scan_reserve(s, s->leaf.run_count, e);
    if (status != DELTAFS_OK)
        return status;
    s->to->counts.leaves++;
    leaf_keys(&s->leaf, (uint64_t *)(void *)s->keys.bytes);
    for (uint32_t i = 0; i < s->leaf.run_count; i++)
        s->run[i].next = 0;
    s->is_bad_leaf = 0;
    for (uint32_t i = 0; i < s->leaf.count && status == DELTAFS_OK && !s->is_bad_leaf && !s->to->stopped; i++)
        status = scan_record(s, leaf, i, e);
    return status;
}

/* A segment's runs share the memory for reading ahead. */
static void scan_share_out(struct scan *s, uint32_t runs)
{
    size_t share = RUNS_AHEAD / (runs > 0 ? runs : 1);

    s->run_ahead = share < RUN_AHEAD_MIN ? RUN_AHEAD_MIN : share > RUN_AHEAD_MAX ? RUN_AHEAD_MAX : share;
    for (uint32_t i = 0; i < s->run_capacity; i++)
        s->run[i].window.ahead = s->run_ahead;
}

int part_scan(struct reader *r, struct part_reader *p, uint32_t epoch, struct scan_to *to, struct scan_damages *damages,
              struct error *e)
{
    struct scan s = {.reader = r, .part = p, .to = to, .damages = damages, .index_window.ahead = INDEX_AHEAD};
    struct segment *segment;
    uint32_t segments;
    int status = reader_epoch(r, p, epoch, &segment, &segments, e);

    if (status != DELTAFS_OK)
        return scan_failed(&s, e);
    for (; segments > 0 && status == DELTAFS_OK && !to->stopped; segment++, segments--) {
        s.segment = segment;
        scan_share_out(&s, segment->footer.runs);
        for (uint32_t leaf = 0; leaf < segment->footer.leaves && status == DELTAFS_OK && !to->stopped; leaf++)
            status = scan_leaf(&s, leaf, e);
    }
    if (s.away_count > 0 && status == DELTAFS_OK && !to->stopped) {
        s.segment = segment - 1;
        status = scan_fetch(&s, e);
    }
    scan_fini(&s);
    return status;
}
