#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "directory/read/gather.h"
#include "directory/read/scan.h"

#define INDEX_AHEAD ((size_t)256 << 10) /* bytes of a scan's reads of the index log */
#define RECORDS_MIN 8192u               /* gathered at once, at least, */
#define RECORDS_MAX (256u << 10)        /* and at most, also where value logs have them in any order, */
#define RECORDS_RUN 512u                /* of each run, so that few blocks are read for two gatherings, */
#define VALUES_MAX  ((size_t)32 << 20)  /* and of so many bytes, about */

/* A run of a leaf. */
struct scan_run {
    uint32_t taken; /* records */
    uint32_t ref;   /* of its block */
    uint32_t left;  /* records of that block */
};

struct scan {
    struct reader *reader;
    struct part_reader *part;
    const struct segment *segment;
    struct scan_to *to;
    struct damages *damages;
    struct window index_window;
    struct buffer leaf_bytes;
    struct leaf leaf;
    struct buffer keys;
    struct buffer runs;    /* struct scan_run: of the leaf */
    struct buffer refs;    /* struct ref: `note` is by how many bits keys are shortened */
    struct buffer records; /* struct ref_record */
    uint32_t ref_count;
    size_t record_count;
};

static void scan_fini(struct scan *s)
{
    window_fini(&s->index_window);
    buffer_fini(&s->leaf_bytes);
    leaf_fini(&s->leaf);
    buffer_fini(&s->keys);
    buffer_fini(&s->runs);
    buffer_fini(&s->refs);
    buffer_fini(&s->records);
}

void damages_add(struct damages *d, const struct error *e)
{
    if (d->count++ == 0)
        d->first = *e;
    if (d->fn)
        d->fn(e->status, e->text, d->arg);
}

/* An error of one leaf or record: DELTAFS_OK to go on behind it, or what ends the scan. */
static int scan_failed(struct scan *s, const struct error *e)
{
    if (e->status == DELTAFS_ERR_MEMORY)
        return e->status;
    damages_add(s->damages, e);
    return DELTAFS_OK;
}

static void scan_gather_damage(void *scan, const struct error *e)
{
    damages_add(((struct scan *)scan)->damages, e);
}

/* Hand out a record. Returns 1 if that ends the scan. */
static int scan_give(void *scan, const struct ref *ref, uint64_t key, const uint8_t *stored, size_t size,
                     struct error *e)
{
    struct scan *s = scan;
    struct deltafs_record record = {.key = key, .label = s->reader->manifest.epoch[ref->epoch].label};
    const char *wrong = NULL;

    if (!stored)
        return DELTAFS_OK;
    if (record_split(s->reader, stored, size, &record) != 0) {
        wrong = "a record is not of its key and the value's size";
    } else if (record.key_size > 0) {
        record.key = hash_bytes(record.key_bytes, record.key_size);
        wrong = record.key >> ref->note == key ? NULL : "a record is not that of the index";
    }
    if (wrong) {
        gather_damaged(s->reader, s->part, ref, wrong, e);
        return scan_failed(s, e);
    }
    s->to->counts.records++;
    s->to->counts.bytes += record.size;
    s->to->stopped = s->to->fn(&record, s->to->arg);
    return s->to->stopped != 0;
}

/* Hand out the records collected so far. */
static int scan_gather(struct scan *s, struct error *e)
{
    struct gather_to to = {.give = scan_give, .damage = scan_gather_damage, .arg = s};
    int status = gather(s->reader, s->part, (struct ref *)(void *)s->refs.bytes,
                        (const struct ref_record *)(const void *)s->records.bytes, s->record_count, VALUES_MAX, &to, e);

    s->to->counts.blocks += to.blocks;
    s->ref_count = 0;
    s->record_count = 0;
    return status;
}

/* Whether enough records are collected, of the segment's epoch or before it. */
static int scan_has_enough(const struct scan *s)
{
    const struct manifest *m = &s->reader->manifest;
    const struct manifest_epoch *epoch = &m->epoch[s->segment->footer.epoch];
    uint64_t most = (uint64_t)RECORDS_RUN * s->segment->footer.runs;
    uint64_t each = epoch->records > 0 ? epoch->bytes_raw / epoch->records : 0;

    if (m->is_local || most > RECORDS_MAX)
        most = RECORDS_MAX;
    most = most < RECORDS_MIN ? RECORDS_MIN : most;
    if (each > 0 && most > VALUES_MAX / each)
        most = VALUES_MAX / each;
    return s->record_count > 0 && s->record_count >= most;
}

/* A ref to the block that has the next record of the leaf's run number `r`. */
static int scan_next_block(struct scan *s, uint32_t leaf, uint32_t r, struct scan_run *run, struct error *e)
{
    struct ref ref = {.epoch = s->segment->footer.epoch, .note = s->segment->footer.key_shift};

    if (r >= s->leaf.run_count || leaf_place(&s->leaf, r, run->taken, &ref.place) != 0)
        return reader_malformed_leaf(s->part, s->segment, leaf, e);
    run->left = ref.place.at.count - ref.place.record;
    run->ref = s->ref_count++;
    ((struct ref *)(void *)s->refs.bytes)[run->ref] = ref;
    return DELTAFS_OK;
}

static int scan_leaf(struct scan *s, uint32_t leaf, struct error *e)
{
    int status = index_read_leaf(&s->part->index, s->segment, leaf, &s->index_window, &s->leaf_bytes, &s->leaf, e);
    const struct leaf *l = &s->leaf;

    if (status != DELTAFS_OK)
        return scan_failed(s, e);
    status = buffer_reserve(&s->keys, l->count * sizeof(uint64_t), "a scan", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->runs, l->run_count * sizeof(struct scan_run), "a scan", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->refs, (s->ref_count + l->count) * sizeof(struct ref), "a scan", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->records, (s->record_count + l->count) * sizeof(struct ref_record), "a scan", e);
    if (status != DELTAFS_OK)
        return status;
    const uint64_t *keys = (const uint64_t *)(const void *)s->keys.bytes;
    struct scan_run *run = (struct scan_run *)(void *)s->runs.bytes;
    struct ref_record *record = (struct ref_record *)(void *)s->records.bytes;
    s->to->counts.leaves++;
    leaf_keys(l, (uint64_t *)(void *)s->keys.bytes);
    memset(run, 0, l->run_count * sizeof *run);
    for (uint32_t i = 0; i < l->count && status == DELTAFS_OK; i++) {
        uint32_t r = leaf_run_of(l, i);
        if (r >= l->run_count || run[r].left == 0)
            status = scan_next_block(s, leaf, r, &run[r], e);
        if (status != DELTAFS_OK)
            break;
        record[s->record_count++] = (struct ref_record){keys[i], run[r].ref};
        run[r].taken++;
        run[r].left--;
    }
    if (status == DELTAFS_ERR_DAMAGED)
        status = scan_failed(s, e); /* the rest of the leaf is of no use */
    return status == DELTAFS_OK && scan_has_enough(s) ? scan_gather(s, e) : status;
}

int part_scan(struct reader *r, struct part_reader *p, uint32_t epoch, struct scan_to *to, struct damages *damages,
              struct error *e)
{
    struct scan s = {.reader = r, .part = p, .to = to, .damages = damages, .index_window.ahead = INDEX_AHEAD};
    struct segment *segment;
    uint32_t segments;
    int status = reader_epoch(r, p, epoch, &segment, &segments, e);

    if (status != DELTAFS_OK)
        return scan_failed(&s, e);
    for (uint32_t i = 0; i < segments && status == DELTAFS_OK; i++) {
        s.segment = &segment[i];
        for (uint32_t leaf = 0; leaf < segment[i].footer.leaves && status == DELTAFS_OK; leaf++)
            status = scan_leaf(&s, leaf, e);
    }
    if (status == DELTAFS_OK)
        status = scan_gather(&s, e);
    scan_fini(&s);
    return to->stopped ? DELTAFS_OK : status;
}
