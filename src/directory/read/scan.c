#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
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

void scan_fini(struct scan *s)
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
    d->has_others |= strcmp(e->text, d->first.text) != 0;
    if (d->fn)
        d->fn(e->status, e->text, d->arg);
}

int damages_status(const struct damages *d, struct error *e)
{
    if (d->count == 0)
        return DELTAFS_OK;
    return error_set(e, d->first.status, "%s%s", d->first.text,
                     d->has_others ? "; there is more damage, which verify lists" : "");
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
static int scan_give(void *scan, const struct ref *ref, const struct ref_record *of, const uint8_t *stored, size_t size,
                     struct error *e)
{
    struct scan *s = scan;
    struct deltafs_record record = {.key = of->key, .label = s->reader->manifest.epoch[of->epoch].label};
    const char *wrong = NULL;

    s->given++;
    if (!stored)
        return DELTAFS_OK;
    if (record_split(s->reader, stored, size, &record) != 0) {
        wrong = "a record is not of its key and the value's size";
    } else if (record.key_size > 0) {
        record.key = hash_bytes(record.key_bytes, record.key_size);
        wrong = record.key >> ref->note == of->key ? NULL : "a record is not that of the index";
    }
    if (wrong) {
        gather_damaged(s->reader, s->part, ref, wrong, e);
        return scan_failed(s, e);
    }
    s->to->counts.records++;
    s->to->counts.bytes += record.size;
    s->to->stopped = s->to->fn(&record, s->to->arg);
    s->given -= s->to->stopped != 0;
    return s->to->stopped != 0;
}

/* Forget the records collected so far. The next record of a run is looked up anew: its ref is gone. */
static void scan_forget(struct scan *s)
{
    s->ref_count = 0;
    s->record_count = 0;
    for (uint32_t i = 0; s->at < s->end && i < s->leaf.run_count; i++)
        ((struct scan_run *)(void *)s->runs.bytes)[i].left = 0;
}

/* Hand them out. */
static int scan_gather(struct scan *s, struct error *e)
{
    struct gather_to to = {.give = scan_give, .damage = scan_gather_damage, .arg = s};
    s->given = 0;
    int status = gather(s->reader, s->part, (struct ref *)(void *)s->refs.bytes,
                        (const struct ref_record *)(const void *)s->records.bytes, s->record_count, VALUES_MAX, &to, e);

    s->to->counts.blocks += to.blocks;
    scan_forget(s);
    return status;
}

/* How many records of the segment to gather at once. */
static size_t scan_portion(const struct scan *s)
{
    const struct manifest *m = &s->reader->manifest;
    uint64_t most = (uint64_t)RECORDS_RUN * s->segment->footer.runs, size = scan_record_size(s);

    if (m->is_local || most > RECORDS_MAX)
        most = RECORDS_MAX;
    most = most < RECORDS_MIN ? RECORDS_MIN : most;
    most = most > VALUES_MAX / size ? VALUES_MAX / size : most;
    return most > 0 ? (size_t)most : 1;
}

uint64_t scan_record_size(const struct scan *s)
{
    return reader_record_size(s->reader, s->segment->footer.epoch);
}

/* A ref to the block that has the next record of the leaf's run number `r`. */
static int scan_next_block(struct scan *s, uint32_t r, struct scan_run *run, struct error *e)
{
    struct ref ref = {.epoch = s->segment->footer.epoch, .note = s->segment->footer.key_shift};
    int status = buffer_reserve(&s->refs, (s->ref_count + (size_t)1) * sizeof ref, "a scan", e);

    if (status != DELTAFS_OK)
        return status;
    if (leaf_place(&s->leaf, r, run->taken, &ref.place) != 0)
        return reader_malformed_leaf(s->part, s->segment, s->next - 1, e);
    run->left = ref.place.at.count - ref.place.record;
    run->ref = s->ref_count++;
    ((struct ref *)(void *)s->refs.bytes)[run->ref] = ref;
    return DELTAFS_OK;
}

/* Read the next leaf, and find which of its records are in the range. */
static int scan_open_leaf(struct scan *s, struct error *e)
{
    uint32_t number = s->next++;
    const struct leaf *l = &s->leaf;
    int status = index_read_leaf(&s->part->index, s->segment, number, &s->index_window, &s->leaf_bytes, &s->leaf, e);

    if (status != DELTAFS_OK)
        return scan_failed(s, e);
    status = buffer_reserve(&s->keys, l->count * sizeof(uint64_t), "a scan", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->runs, l->run_count * sizeof(struct scan_run), "a scan", e);
    if (status != DELTAFS_OK)
        return status;
    const uint64_t *keys = (const uint64_t *)(const void *)s->keys.bytes;
    struct scan_run *run = (struct scan_run *)(void *)s->runs.bytes;
    s->to->counts.leaves++;
    leaf_keys(l, (uint64_t *)(void *)s->keys.bytes);
    memset(run, 0, l->run_count * sizeof *run);
    s->epochs = leaf_epochs_begin(l);
    for (s->at = 0; s->at < l->count && keys[s->at] < s->low; s->at++) {
        uint32_t r = leaf_run_of(l, s->at);
        if (r < l->run_count)
            run[r].taken++;
    }
    s->end = l->count;
    while (s->end > s->at && keys[s->end - 1] > s->high)
        s->end--;
    return DELTAFS_OK;
}

/* The epoch of record `i` of the open leaf. */
static int scan_epoch_of(struct scan *s, uint32_t i, uint32_t *epoch, struct error *e)
{
    const uint64_t *keys = (const uint64_t *)(const void *)s->keys.bytes;

    *epoch = s->segment->footer.epoch;
    if (s->compacted == 0)
        return DELTAFS_OK;
    *epoch = leaf_epochs_next(&s->epochs, i, i == 0 || keys[i] != keys[i - 1]);
    return *epoch < s->compacted ? DELTAFS_OK : reader_malformed_leaf(s->part, s->segment, s->next - 1, e);
}

static int scan_wants_epoch(const struct scan *s, uint32_t epoch)
{
    return s->compacted == 0 || s->end_epoch == 0 || (epoch >= s->first_epoch && epoch < s->end_epoch);
}

/* Collect `n` more records of the open leaf. */
static int scan_collect(struct scan *s, uint32_t n, struct error *e)
{
    int status = buffer_reserve(&s->records, (s->record_count + n) * sizeof(struct ref_record), "a scan", e);

    if (status != DELTAFS_OK)
        return status;
    const uint64_t *keys = (const uint64_t *)(const void *)s->keys.bytes;
    struct scan_run *run = (struct scan_run *)(void *)s->runs.bytes;
    struct ref_record *record = (struct ref_record *)(void *)s->records.bytes;
    for (uint32_t i = s->at, end = s->at + n; i < end && status == DELTAFS_OK; i++) {
        uint32_t r = leaf_run_of(&s->leaf, i), epoch;
        status = scan_epoch_of(s, i, &epoch, e);
        int is_wanted = scan_wants_epoch(s, epoch);
        if (status == DELTAFS_OK && r >= s->leaf.run_count)
            status = reader_malformed_leaf(s->part, s->segment, s->next - 1, e);
        else if (status == DELTAFS_OK && is_wanted && run[r].left == 0)
            status = scan_next_block(s, r, &run[r], e);
        if (status != DELTAFS_OK)
            break;
        if (is_wanted)
            record[s->record_count++] = (struct ref_record){keys[i], run[r].ref, epoch};
        run[r].taken++;
        run[r].left = is_wanted ? run[r].left - 1 : 0; /* a ref's records are side by side */
    }
    s->at += n;
    if (status != DELTAFS_OK)
        s->at = s->end; /* the rest of the leaf is of no use */
    return status == DELTAFS_OK ? status : scan_failed(s, e);
}

/* Collect until there are `most` records, or the segment ends. */
static int scan_walk(struct scan *s, size_t most, struct error *e)
{
    size_t leaves = s->leaves_end > s->next ? s->leaves_end - s->next + 1 : 1, n = leaves * LEAF_RECORDS;
    int status = DELTAFS_OK;

    if (s->record_count < most) {
        n = n < most - s->record_count ? n : most - s->record_count;
        status = buffer_reserve(&s->records, (s->record_count + n) * sizeof(struct ref_record), "a scan", e);
    }
    while (s->record_count < most && !scan_is_done(s) && status == DELTAFS_OK) {
        size_t left = s->end - s->at, room = most - s->record_count;
        status = left > 0 ? scan_collect(s, (uint32_t)(left < room ? left : room), e) : scan_open_leaf(s, e);
    }
    return status;
}

void scan_begin(struct scan *s, const struct segment *segment, uint64_t low, uint64_t high)
{
    uint32_t leaves, from = 0, end = segment->footer.leaves;

    s->segment = segment;
    s->compacted = segment->footer.epoch < s->reader->manifest.compacted ? s->reader->manifest.compacted : 0;
    s->low = low;
    s->high = high;
    s->at = s->end = 0;
    s->next = low > segment->footer.last_key ? end : index_leaf_of(segment, low, &leaves);
    /* The first leaf that begins above `high`. */
    while (from < end) {
        uint32_t middle = from + (end - from) / 2;
        if (fence_leaf(&segment->fence, middle).first_key <= high)
            from = middle + 1;
        else
            end = middle;
    }
    s->leaves_end = end;
    uint64_t length = 0;
    if (s->next < end) {
        struct fence_leaf last = fence_leaf(&segment->fence, end - 1);
        length = last.offset + last.length - fence_leaf(&segment->fence, s->next).offset;
    }
    s->index_window.ahead = length < INDEX_AHEAD ? (size_t)length : INDEX_AHEAD;
}

int scan_is_done(const struct scan *s)
{
    return s->at == s->end && s->next >= s->leaves_end;
}

int scan_give_portion(struct scan *s, size_t most, struct error *e)
{
    size_t portion = scan_portion(s);

    s->begin_at = s->at < s->end ? s->at : 0;
    s->begin_leaf = s->next - (s->at < s->end);
    int status = scan_walk(s, most < portion ? most : portion, e);
    return status == DELTAFS_OK ? scan_gather(s, e) : status;
}

int scan_stay(struct scan *s, struct error *e)
{
    int status = DELTAFS_OK;

    s->next = s->begin_leaf;
    s->at = s->end = 0;
    if (s->begin_at > 0)
        status = scan_open_leaf(s, e);
    if (status == DELTAFS_OK && s->at < s->begin_at && s->begin_at <= s->end)
        status = scan_collect(s, s->begin_at - s->at, e);
    scan_forget(s);
    if (status == DELTAFS_OK)
        status = scan_walk(s, s->given, e);
    scan_forget(s);
    return status;
}

int part_scan_stored(struct reader *r, struct part_reader *p, uint32_t epoch, uint32_t first, uint32_t end,
                     struct scan_to *to, struct damages *damages, struct error *e)
{
    struct scan s = {.reader = r, .part = p, .to = to, .damages = damages, .first_epoch = first, .end_epoch = end};
    struct segment *segment;
    uint32_t segments;
    int status = reader_epoch(r, p, epoch, &segment, &segments, e);

    if (status != DELTAFS_OK)
        return scan_failed(&s, e);
    /* Records of short segments are gathered together. */
    for (uint32_t i = 0; i < segments && status == DELTAFS_OK; i++) {
        scan_begin(&s, &segment[i], 0, UINT64_MAX);
        while (status == DELTAFS_OK && !scan_is_done(&s)) {
            size_t portion = scan_portion(&s);
            status = scan_walk(&s, portion, e);
            if (status == DELTAFS_OK && s.record_count >= portion)
                status = scan_gather(&s, e);
        }
    }
    if (status == DELTAFS_OK)
        status = scan_gather(&s, e);
    scan_fini(&s);
    return to->stopped ? DELTAFS_OK : status;
}

int part_scan(struct reader *r, struct part_reader *p, uint32_t epoch, struct scan_to *to, struct damages *damages,
              struct error *e)
{
    return part_scan_stored(r, p, epoch, 0, 0, to, damages, e);
}
