#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "core/partition.h"
#include "core/reader.h"
#include "store/store_format.h"

static void part_reader_close(struct part_reader *p)
{
    struct error ignored; /* opened for reading: nothing can be lost */

    if (!p->is_open)
        return;
    index_reader_close(&p->index, &ignored);
    io_file_close(&p->data, &ignored);
    leaf_fini(&p->leaf);
    block_fini(&p->block);
    buffer_fini(&p->leaf_bytes);
    buffer_fini(&p->block_bytes);
    p->is_open = 0;
}

int reader_open(const char *path, struct reader **out, struct error *e)
{
    struct reader *r = calloc(1, sizeof *r);

    if (!r)
        return error_no_memory(e, sizeof *r, "a reader");
    r->io = io_default();
    r->path = strdup(path);
    int status = r->path ? manifest_read(&r->io, path, &r->manifest, e) : error_no_memory(e, strlen(path), "a path");
    if (status == DELTAFS_ERR_NOT_FOUND) {
        /* Tell what is missing from what is no container, or of which only a half was made. */
        struct io_file folder;
        if (io_file_open(&r->io, path, O_RDONLY, &folder, e) == DELTAFS_OK)
            status = error_set(e, DELTAFS_ERR_NOT_DELTAFS,
                               "%s: has no %s: not a DeltaFS directory, or one whose creation was cut short", path,
                               MANIFEST_NAME);
        else
            status = e->status;
        struct error ignored;
        io_file_close(&folder, &ignored);
    }
    if (status != DELTAFS_OK) {
        reader_close(r);
        return status;
    }
    *out = r;
    return DELTAFS_OK;
}

void reader_close(struct reader *r)
{
    if (!r)
        return;
    for (int i = 0; i < READER_OPEN_PARTS; i++)
        part_reader_close(&r->part[i]);
    manifest_fini(&r->manifest);
    free(r->path);
    free(r);
}

/* The first epoch number whose label is `label` or above. */
static uint32_t reader_epoch_from(const struct reader *r, uint64_t label)
{
    uint64_t low = 0, high = r->manifest.epoch_count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (r->manifest.epoch[middle].label < label)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

void reader_epochs(const struct reader *r, const struct deltafs_range *range, uint32_t *first, uint32_t *end)
{
    *first = range ? reader_epoch_from(r, range->first) : 0;
    *end = (uint32_t)r->manifest.epoch_count;
    if (range && range->last < UINT64_MAX)
        *end = reader_epoch_from(r, range->last + 1);
    if (*end < *first)
        *end = *first;
}

static int part_reader_open(struct reader *r, struct part_reader *p, uint32_t partition, struct error *e)
{
    const struct manifest *m = &r->manifest;
    char *data = io_path(r->path, LOG_NAME_DATA, partition % BUCKET_COUNT, partition);
    char *index = io_path(r->path, LOG_NAME_INDEX, partition % BUCKET_COUNT, partition);
    int status = data && index ? DELTAFS_OK : error_no_memory(e, 1, "a path");

    *p = (struct part_reader){.partition = partition, .is_open = 1, .data.fd = -1, .index.file.fd = -1};
    if (status == DELTAFS_OK)
        status = index_reader_open(&p->index, &r->io, index, partition, m->uuid, (uint32_t)m->epoch_count,
                                   m->is_closed ? m->tail_length : 0, &p->tail, e);
    if (status == DELTAFS_OK) {
        status = io_file_open(&r->io, data, O_RDONLY, &p->data, e);
        if (status == DELTAFS_ERR_NOT_FOUND)
            status = error_damaged(e, data, 0, "the file is missing");
    }
    if (status == DELTAFS_OK)
        status = io_file_size(&p->data, &p->data_size, e);
    free(data);
    free(index);
    if (status != DELTAFS_OK)
        part_reader_close(p);
    return status;
}

int reader_part(struct reader *r, uint32_t partition, struct part_reader **out, struct error *e)
{
    struct part_reader *oldest = &r->part[0];

    r->clock++;
    for (int i = 0; i < READER_OPEN_PARTS; i++) {
        struct part_reader *p = &r->part[i];
        if (p->is_open && p->partition == partition) {
            p->used = r->clock;
            *out = p;
            return DELTAFS_OK;
        }
        if (oldest->is_open && (!p->is_open || p->used < oldest->used))
            oldest = p;
    }
    part_reader_close(oldest);
    int status = part_reader_open(r, oldest, partition, e);
    oldest->used = r->clock;
    *out = oldest;
    return status;
}

/* Read leaf `i` of a segment, unless it was read last. */
static int part_read_leaf(struct part_reader *p, const struct segment *s, uint32_t i, struct error *e)
{
    if (p->leaf_segment == s && p->leaf_number == i)
        return DELTAFS_OK;
    p->leaf_segment = NULL;
    int status = index_read_leaf(&p->index, s, i, &p->leaf_bytes, &p->leaf, e);
    if (status == DELTAFS_OK) {
        p->leaf_segment = s;
        p->leaf_number = i;
    }
    return status;
}

static int read_block(struct reader *r, struct part_reader *p, uint32_t epoch, const struct leaf_place *place,
                      struct buffer *bytes, struct block *block, struct error *e)
{
    struct block_id id = {p->partition, epoch, place->run, place->block};
    size_t n = place->at.length;

    if (place->at.offset > p->data_size || n > p->data_size - place->at.offset)
        return error_damaged(e, p->data.path, place->at.offset, "the file ends before a block of %zu bytes", n);
    int status = buffer_reserve(bytes, n, "a block", e);
    if (status == DELTAFS_OK)
        status = io_file_read(&p->data, place->at.offset, bytes->bytes, n, e);
    if (status == DELTAFS_OK)
        status = block_decode(block, bytes->bytes, n, &id, p->index.seed, r->manifest.value_size, place->at.count,
                              p->data.path, place->at.offset, e);
    return status;
}

static int is_same_block(const struct leaf_place *a, const struct leaf_place *b)
{
    return a->at.offset == b->at.offset && a->at.length == b->at.length && a->at.count == b->at.count &&
           a->run == b->run && a->block == b->block;
}

/* Read the block at `place`, unless it was read last. */
static int part_read_block(struct reader *r, struct part_reader *p, uint32_t epoch, const struct leaf_place *place,
                           struct error *e)
{
    if (p->has_block && p->block_epoch == epoch && is_same_block(&p->block_place, place))
        return DELTAFS_OK;
    p->has_block = 0;
    int status = read_block(r, p, epoch, place, &p->block_bytes, &p->block, e);
    if (status == DELTAFS_OK) {
        p->has_block = 1;
        p->block_epoch = epoch;
        p->block_place = *place;
    }
    return status;
}

static int malformed_leaf(struct part_reader *p, const struct segment *s, uint32_t leaf, struct error *e)
{
    return error_damaged(e, p->index.file.path, s->leaf_offsets[leaf], "the leaf's records do not fit its run table");
}

/* The records of `key` in the leaf read last. */
static int part_get_in_leaf(struct reader *r, struct part_reader *p, const struct segment *s, uint32_t leaf,
                            uint64_t key, deltafs_record_fn fn, void *arg, struct error *e)
{
    uint32_t first = 0, found = leaf_find(&p->leaf, key, &first), epoch = s->footer.epoch;

    uint32_t run = UINT32_MAX, rank = 0;
    for (uint32_t i = first; i < first + found; i++) {
        struct leaf_place place;
        /* The records of a key stand run by run. */
        uint32_t of = leaf_run_of(&p->leaf, i);
        rank = of == run ? rank + 1 : leaf_rank(&p->leaf, of, i);
        run = of;
        if (leaf_place(&p->leaf, run, rank, &place) != 0)
            return malformed_leaf(p, s, leaf, e);
        int status = part_read_block(r, p, epoch, &place, e);
        if (status != DELTAFS_OK)
            return status;
        struct deltafs_record record = {.key = key, .epoch = r->manifest.epoch[epoch].label};
        record.value = block_value(&p->block, place.record, &record.size);
        status = fn(&record, arg);
        if (status != 0)
            return status;
    }
    return DELTAFS_OK;
}

int part_get(struct reader *r, struct part_reader *p, uint32_t epoch, uint64_t key, deltafs_record_fn fn, void *arg,
             struct error *e)
{
    struct segment *s;
    uint32_t segments, leaves;
    int status = index_epoch(&p->index, epoch, &s, &segments, e);

    for (; segments > 0 && status == DELTAFS_OK; s++, segments--) {
        uint32_t leaf = index_leaf_of(s, key, &leaves);
        for (; leaves > 0 && status == DELTAFS_OK; leaf++, leaves--) {
            status = part_read_leaf(p, s, leaf, e);
            if (status == DELTAFS_OK)
                status = part_get_in_leaf(r, p, s, leaf, key, fn, arg, e);
        }
    }
    return status;
}

/* ---- Scanning ---- */

/* Each run of a leaf is read on its own, block by block. */
struct scan_run {
    uint32_t next;         /* record of the run in the leaf */
    int has_block, is_bad; /* a block was read, or could not be */
    uint32_t epoch;        /* of that block, and its place */
    struct leaf_place place;
    struct buffer bytes;
    struct block block;
};

struct scan {
    struct reader *reader;
    struct part_reader *part;
    const struct segment *segment;
    deltafs_record_fn fn;
    void *arg;
    struct deltafs_verify_stat *counts;
    struct scan_damages *damages;
    int is_bad_leaf;      /* the rest of the leaf is of no use */
    struct scan_run *run; /* by index in the leaf's run table; runs follow each other from leaf to leaf by number */
    uint32_t run_capacity;
    struct buffer keys;
};

static void scan_fini(struct scan *s)
{
    for (uint32_t i = 0; i < s->run_capacity; i++) {
        buffer_fini(&s->run[i].bytes);
        block_fini(&s->run[i].block);
    }
    free(s->run);
    buffer_fini(&s->keys);
}

static int scan_reserve(struct scan *s, uint32_t runs, struct error *e)
{
    if (runs <= s->run_capacity)
        return DELTAFS_OK;
    struct scan_run *grown = realloc(s->run, runs * sizeof *grown);
    if (!grown)
        return error_no_memory(e, runs * sizeof *grown, "a scan");
    memset(grown + s->run_capacity, 0, (runs - s->run_capacity) * sizeof *grown);
    s->run = grown;
    s->run_capacity = runs;
    return DELTAFS_OK;
}

void scan_damage(struct scan_damages *damages, const struct error *e)
{
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

/* Have the block at `place` in run->block, unless run->is_bad. */
static int scan_block(struct scan *s, struct scan_run *run, const struct leaf_place *place, struct error *e)
{
    uint32_t epoch = s->segment->footer.epoch;

    if (run->has_block && run->epoch == epoch && is_same_block(&run->place, place))
        return DELTAFS_OK;
    run->has_block = 1;
    run->epoch = epoch;
    run->place = *place;
    run->is_bad = read_block(s->reader, s->part, epoch, place, &run->bytes, &run->block, e) != DELTAFS_OK ||
                  block_join(&run->block, e) != DELTAFS_OK;
    s->counts->blocks += !run->is_bad;
    return run->is_bad ? scan_failed(s, e) : DELTAFS_OK;
}

static int scan_record(struct scan *s, uint32_t leaf, uint32_t i, struct error *e)
{
    struct part_reader *p = s->part;
    uint32_t number = leaf_run_of(&p->leaf, i);
    struct leaf_place place;

    if (number >= p->leaf.run_count || leaf_place(&p->leaf, number, s->run[number].next, &place) != 0) {
        s->is_bad_leaf = 1;
        malformed_leaf(p, s->segment, leaf, e);
        return scan_failed(s, e);
    }
    struct scan_run *run = &s->run[number];
    run->next++;
    int status = scan_block(s, run, &place, e);
    if (status != DELTAFS_OK || run->is_bad)
        return status;
    struct deltafs_record record = {.key = ((const uint64_t *)(const void *)s->keys.bytes)[i],
                                    .epoch = s->reader->manifest.epoch[s->segment->footer.epoch].label};
    record.value = block_value(&run->block, place.record, &record.size);
    s->counts->records++;
    return s->fn(&record, s->arg);
}

static int scan_leaf(struct scan *s, uint32_t leaf, struct error *e)
{
    struct part_reader *p = s->part;
    int status = part_read_leaf(p, s->segment, leaf, e);

    if (status != DELTAFS_OK)
        return scan_failed(s, e);
    status = buffer_reserve(&s->keys, p->leaf.count * sizeof(uint64_t), "a scan", e);
    if (status == DELTAFS_OK)
        status = scan_reserve(s, p->leaf.run_count, e);
    if (status != DELTAFS_OK)
        return status;
    s->counts->leaves++;
    leaf_keys(&p->leaf, (uint64_t *)(void *)s->keys.bytes);
    for (uint32_t i = 0; i < p->leaf.run_count; i++)
        s->run[i].next = 0;
    s->is_bad_leaf = 0;
    for (uint32_t i = 0; i < p->leaf.count && status == DELTAFS_OK && !s->is_bad_leaf; i++)
        status = scan_record(s, leaf, i, e);
    return status;
}

int part_scan(struct reader *r, struct part_reader *p, uint32_t epoch, deltafs_record_fn fn, void *arg,
              struct deltafs_verify_stat *counts, struct scan_damages *damages, struct error *e)
{
    struct scan s = {.reader = r, .part = p, .fn = fn, .arg = arg, .counts = counts, .damages = damages};
    struct segment *segment;
    uint32_t segments;
    int status = index_epoch(&p->index, epoch, &segment, &segments, e);

    if (status != DELTAFS_OK)
        return scan_failed(&s, e);
    for (; segments > 0 && status == DELTAFS_OK; segment++, segments--) {
        s.segment = segment;
        for (uint32_t leaf = 0; leaf < segment->footer.leaves && status == DELTAFS_OK; leaf++)
            status = scan_leaf(&s, leaf, e);
    }
    scan_fini(&s);
    return status;
}

/* ---- The files ---- */

static int reader_add_size(struct reader *r, char *path, uint64_t *sum, struct error *e)
{
    struct io_file file;
    uint64_t size = 0;

    if (!path)
        return error_no_memory(e, 1, "a path");
    int status = io_file_open(&r->io, path, O_RDONLY, &file, e);
    free(path);
    if (status != DELTAFS_OK)
        return status;
    status = io_file_size(&file, &size, e);
    struct error ignored;
    io_file_close(&file, &ignored);
    *sum += size;
    return status;
}

int reader_bytes_stored(struct reader *r, uint64_t *out, struct error *e)
{
    uint64_t sum = 0;
    int status = reader_add_size(r, io_path(r->path, MANIFEST_NAME), &sum, e);

    for (uint32_t p = 0; p < r->manifest.partitions && status == DELTAFS_OK; p++) {
        status = reader_add_size(r, io_path(r->path, LOG_NAME_DATA, p % BUCKET_COUNT, p), &sum, e);
        if (status == DELTAFS_OK)
            status = reader_add_size(r, io_path(r->path, LOG_NAME_INDEX, p % BUCKET_COUNT, p), &sum, e);
    }
    *out = sum;
    return status;
}
