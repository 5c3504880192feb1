#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "directory/format/directory_format.h"
#include "directory/read/gather.h"
#include "directory/read/scan.h"

#define INDEX_AHEAD ((size_t)256 << 10) /* bytes of a scan's reads of the index log */
#define REFS_MIN    (8u << 10)          /* records gathered at once, at least, */
#define REFS_MAX    (256u << 10)        /* and at most, also where value logs have them in any order, */
#define REFS_RUN    512u                /* of each run, so that few blocks are read for two gatherings, */
#define REFS_BYTES  ((size_t)32 << 20)  /* and of so many bytes, about */

struct scan {
    struct reader *reader;
    struct part_reader *part;
    const struct segment *segment;
    struct scan_to *to;
    struct scan_damages *damages;
    struct window index_window;
    struct buffer leaf_bytes;
    struct leaf leaf;
    struct buffer keys;
    struct buffer next; /* uint32_t: how many records of each of the leaf's runs have been taken */
    struct buffer refs; /* struct ref: `key` and `note` are the key and by how many bits it is shortened */
    size_t ref_count, ref_bytes;
};

static void scan_fini(struct scan *s)
{
    window_fini(&s->index_window);
    buffer_fini(&s->leaf_bytes);
    leaf_fini(&s->leaf);
    buffer_fini(&s->keys);
    buffer_fini(&s->next);
    buffer_fini(&s->refs);
}

void scan_damage(void *arg, const struct error *e)
{
    struct scan_damages *damages = arg;

    if (damages->count++ == 0)
        damages->first = *e;
    if (damages->report)
        damages->report(damages->arg, e);
}

/* An error of one leaf or record: DELTAFS_OK to go on behind it, or what ends the scan. */
static int scan_failed(struct scan *s, const struct error *e)
{
    if (e->status == DELTAFS_ERR_MEMORY)
        return e->status;
    scan_damage(s->damages, e);
    return DELTAFS_OK;
}

static void scan_gather_damage(void *scan, const struct error *e)
{
    scan_damage(((struct scan *)scan)->damages, e);
}

/* Hand out a record. Returns 1 if that ends the scan. */
static int scan_give(void *scan, const struct ref *ref, const uint8_t *stored, struct error *e)
{
    struct scan *s = scan;
    struct deltafs_record record = {.key = ref->key, .label = s->reader->manifest.epoch[ref->epoch].label};
    const char *wrong = NULL;

    if (!stored)
        return DELTAFS_OK;
    if (record_split(s->reader, stored, ref->size, &record) != 0) {
        wrong = "a record is not of its key and the value's size";
    } else if (record.key_size > 0) {
        record.key = hash_bytes(record.key_bytes, record.key_size);
        wrong = record.key >> ref->note == ref->key ? NULL : "a record is not that of the index";
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

static int scan_gather(struct scan *s, struct error *e)
{
    struct gather_to to = {.give = scan_give, .damage = scan_gather_damage, .arg = s};
    int status = gather(s->reader, s->part, (struct ref *)(void *)s->refs.bytes, s->ref_count, REFS_BYTES, &to, e);

    s->to->counts.blocks += to.blocks;
    s->ref_count = s->ref_bytes = 0;
    return status;
}

static int scan_record(struct scan *s, uint32_t i, struct ref *ref, struct error *e)
{
    uint32_t run = leaf_run_of(&s->leaf, i), *next = (uint32_t *)(void *)s->next.bytes;
    uint64_t share = (uint64_t)REFS_RUN * s->segment->footer.runs;
    uint64_t most = s->reader->manifest.is_local || share > REFS_MAX ? REFS_MAX : share < REFS_MIN ? REFS_MIN : share;
    int status = DELTAFS_OK;

    if (run >= s->leaf.run_count || leaf_place(&s->leaf, run, next[run]++, &ref->place) != 0)
        return reader_malformed_leaf(s->part, s->segment, ref->note, e);
    if (s->ref_count >= most || s->ref_bytes > REFS_BYTES)
        status = scan_gather(s, e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->refs, (s->ref_count + 1) * sizeof *ref, "a scan", e);
    if (status != DELTAFS_OK)
        return status;
    ref->key = ((const uint64_t *)(const void *)s->keys.bytes)[i];
    ref->note = s->segment->footer.key_shift;
    s->ref_bytes += ref->place.at.length / ref->place.at.count;
    ((struct ref *)(void *)s->refs.bytes)[s->ref_count++] = *ref;
    return DELTAFS_OK;
}

static int scan_leaf(struct scan *s, uint32_t leaf, struct error *e)
{
    int status = index_read_leaf(&s->part->index, s->segment, leaf, &s->index_window, &s->leaf_bytes, &s->leaf, e);
    size_t runs = s->leaf.run_count * sizeof(uint32_t);

    if (status != DELTAFS_OK)
        return scan_failed(s, e);
    status = buffer_reserve(&s->keys, s->leaf.count * sizeof(uint64_t), "a scan", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->next, runs, "a scan", e);
    if (status != DELTAFS_OK)
        return status;
    s->to->counts.leaves++;
    leaf_keys(&s->leaf, (uint64_t *)(void *)s->keys.bytes);
    memset(s->next.bytes, 0, runs);
    for (uint32_t i = 0; i < s->leaf.count && status == DELTAFS_OK; i++) {
        struct ref ref = {.epoch = s->segment->footer.epoch, .note = leaf};
        status = scan_record(s, i, &ref, e);
    }
    return status == DELTAFS_ERR_DAMAGED ? scan_failed(s, e) : status; /* the rest of the leaf is of no use */
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
