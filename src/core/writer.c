/* How the memory budget is shared out. For n partitions, and a memtable of c records of r bytes (key and value):
 *     c r         the memtable, which the partitions share
 *     16 c        the two arrays that sort it
 *     (10 + (r + 16) / h) c   keys of written runs, held for the segments' merge: at least those of one memtable
 *     48 c / b    the list of a run's blocks, of b records each, as it grows
 *     n k         k: a partition's log buffers, and the heads of a few runs
 *     1/16        leaves, merges
 * and one block being encoded. c is what makes that the budget. Before a memtable is written, segments are closed
 * (which lets go of held keys) if what it needs is not there. At the close the memtable goes first, and the tails take
 * its place. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "core/part_writer.h"
#include "core/partition.h"
#include "store/store_format.h"

#define DATA_BUFFER_MAX   (1u << 20)
#define INDEX_BUFFER_MAX  (256u << 10)
#define BUFFER_MIN        (4u << 10)
#define BUFFERS_SHARE     8 /* the logs' buffers get at most 1/8 of the memory */
#define TAIL_SHARE        2 /* a tail's fences get at most 1/2 of the memory */
#define TAIL_FENCES_MAX   (4u << 20)
#define MERGE_SHARE       16
#define HELD_SHARE        3           /* h */
#define RUN_HEAD          512         /* bytes of a run's descriptor and its first blocks, as they grow */
#define MERGE_ROOM        (96u << 10) /* bytes that a merge of few runs and a leaf take */
#define TABLE_RECORDS_MIN 2u
#define TABLE_RECORDS_MAX (1u << 30)

struct writer {
    struct io io;
    struct memory memory;
    char *path;
    enum option_sync sync;
    uint32_t partitions;   /* of the container */
    uint32_t first, count; /* its own */
    struct part_writer *part;
    struct part_shared shared;
    struct memtable table;
    uint64_t *sort[2]; /* room for a memtable's records each */
    uint32_t epoch;
    int has_label;
    uint64_t last_label;
    struct error failed; /* the epoch's first error */
    struct error broken; /* after this no epoch can follow */
    int is_maker;
    struct io_file manifest;
    uint64_t manifest_size;
};

int deltafs_writer_configure(struct writer_config *c, const char *path, const deltafs_options *o, struct error *e)
{
    uint64_t value_size = deltafs_options_number(o, OPTION_VALUE_SIZE);
    uint64_t schema_size = deltafs_options_number(o, OPTION_SCHEMA);

    *c = (struct writer_config){
        .path = path,
        .partitions = 1,
        .value_size = value_size == OPTION_AUTO ? -1 : (int64_t)value_size,
        .schema = options_text(o, OPTION_SCHEMA),
        .codec = (enum option_codec)deltafs_options_number(o, OPTION_CODEC),
        .sync = (enum option_sync)deltafs_options_number(o, OPTION_SYNC),
        .block = deltafs_options_number(o, OPTION_BLOCK),
        .memory = deltafs_options_number(o, OPTION_MEMORY),
    };
    if (c->schema[0] == '\0')
        return DELTAFS_OK;
    if (c->value_size >= 0 && (uint64_t)c->value_size != schema_size)
        return error_set(e, DELTAFS_ERR_SCHEMA,
                         "the schema '%.200s' is of %llu bytes, the option value_size says %lld; leave value_size out",
                         c->schema, (unsigned long long)schema_size, (long long)c->value_size);
    c->value_size = (int64_t)schema_size;
    return DELTAFS_OK;
}

/* ---- Making a container ---- */

static int make_bucket(struct io *io, const struct writer_config *c, uint32_t bucket, struct error *e)
{
    char *path = io_path(c->path, BUCKET_NAME, bucket);
    int status = path ? io_mkdir(io, path, e) : error_no_memory(e, 1, "a path");

    free(path);
    return status;
}

/* Make the container's own entry in its parent durable. */
static int sync_parent(struct io *io, const char *path, struct error *e)
{
    char *parent = strdup(path);

    if (!parent)
        return error_no_memory(e, strlen(path), "a path");
    size_t n = strlen(parent);
    while (n > 1 && parent[n - 1] == '/')
        parent[--n] = '\0';
    char *slash = strrchr(parent, '/');
    if (slash)
        slash[slash == parent] = '\0';
    int status = io_sync_folder(io, slash ? parent : ".", e);
    free(parent);
    return status;
}

int deltafs_writer_make(struct writer_config *c, struct error *e)
{
    struct io io = io_default();
    struct manifest m = {
        .partitions = c->partitions, .value_size = c->value_size, .schema = (char *)(uintptr_t)c->schema};
    int status = manifest_new_uuid(c->uuid, e);

    if (status == DELTAFS_OK)
        status = io_mkdir(&io, c->path, e);
    if (status == DELTAFS_ERR_EXISTS)
        return error_set(e, status, "%s: exists already; choose another name, or remove it", c->path);
    if (status != DELTAFS_OK)
        return status;
    manifest_uuid_text(c->uuid, m.uuid_text);
    for (uint32_t b = 0; b < BUCKET_COUNT && b < c->partitions && status == DELTAFS_OK; b++)
        status = make_bucket(&io, c, b, e);
    if (status == DELTAFS_OK)
        status = manifest_create(&io, c->path, &m, c->sync != SYNC_NONE, e);
    if (status == DELTAFS_OK && c->sync != SYNC_NONE)
        status = sync_parent(&io, c->path, e);
    if (status != DELTAFS_OK)
        deltafs_writer_unmake(c);
    return status;
}

void deltafs_writer_unmake(const struct writer_config *c)
{
    struct io io = io_default();
    char *path;

    if ((path = io_path(c->path, MANIFEST_NAME)))
        io.ops->unlink(io.ctx, path);
    free(path);
    for (uint32_t p = 0; p < c->partitions; p++) {
        for (int kind = 0; kind < 2; kind++) {
            path = kind == 0 ? io_path(c->path, LOG_NAME_DATA, p % BUCKET_COUNT, p)
                             : io_path(c->path, LOG_NAME_INDEX, p % BUCKET_COUNT, p);
            if (path)
                io.ops->unlink(io.ctx, path);
            free(path);
        }
    }
    for (uint32_t b = 0; b < BUCKET_COUNT && b < c->partitions; b++) {
        if ((path = io_path(c->path, BUCKET_NAME, b)))
            io.ops->rmdir(io.ctx, path);
        free(path);
    }
    io.ops->rmdir(io.ctx, c->path);
}

/* ---- Opening ---- */

/* Share out `memory` bytes as the head of this file says; returns the memtable's records. */
static uint64_t writer_share_out(const struct writer_config *c, uint64_t memory, uint32_t count,
                                 struct part_shared *shared)
{
    uint64_t n = count > 0 ? count : 1, share = memory / n / BUFFERS_SHARE, tail = memory / TAIL_SHARE;

    shared->data_buffer = share < BUFFER_MIN ? BUFFER_MIN : share > DATA_BUFFER_MAX ? DATA_BUFFER_MAX : (size_t)share;
    share /= 4;
    shared->index_buffer = share < BUFFER_MIN         ? BUFFER_MIN
                           : share > INDEX_BUFFER_MAX ? INDEX_BUFFER_MAX
                                                      : (size_t)share;
    shared->tail_fences_max = tail > TAIL_FENCES_MAX ? TAIL_FENCES_MAX : (size_t)tail;
    uint64_t fixed = n * (shared->data_buffer + shared->index_buffer + 2 * RUN_HEAD) + memory / MERGE_SHARE +
                     MERGE_ROOM + block_writer_memory(c->value_size, c->block) + c->reserved +
                     (c->value_size < 0 ? MEMTABLE_ROOM_MIN : 0);
    uint64_t each = memtable_record_bytes(c->value_size) + SORT_RECORD_BYTES;
    each += each / HELD_SHARE + VARINT_MAX + 48 / block_records(c->value_size, c->block);
    uint64_t records = memory > fixed ? (memory - fixed) / each : 0;
    return records < TABLE_RECORDS_MAX ? records : TABLE_RECORDS_MAX;
}

static int writer_plan(struct writer *w, const struct writer_config *c, uint32_t count, uint32_t *records,
                       struct error *e)
{
    uint64_t n = writer_share_out(c, c->memory, count, &w->shared), enough = c->memory;

    *records = (uint32_t)n;
    if (n >= TABLE_RECORDS_MIN)
        return DELTAFS_OK;
    while (writer_share_out(c, enough, count, &w->shared) < TABLE_RECORDS_MIN)
        enough += enough / 16 + 4096;
    return error_set(e, DELTAFS_ERR_MEMORY,
                     "option memory: %llu bytes are too few for %u partitions in one process and values of this size; "
                     "give %llu, or use more processes or fewer partitions",
                     (unsigned long long)c->memory, count, (unsigned long long)enough);
}

/* Take what all partitions share. */
static int writer_open_shared(struct writer *w, const struct writer_config *c, uint32_t records, struct error *e)
{
    int status = memtable_init(&w->table, c->value_size, records, &w->memory, e);

    for (int i = 0; i < 2 && status == DELTAFS_OK; i++)
        status = memory_take(&w->memory, records * sizeof *w->sort[i], "sorting", &w->sort[i], e);
    if (status == DELTAFS_OK)
        status = block_writer_init(&w->shared.block, c->value_size, c->codec, c->block, &w->memory, e);
    return status;
}

/* Make the new logs' folder entries durable. */
static int writer_sync_folders(struct writer *w, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t b = 0; b < BUCKET_COUNT && b < w->count && status == DELTAFS_OK; b++) {
        char *path = io_path(w->path, BUCKET_NAME, (w->first + b) % BUCKET_COUNT);
        status = path ? io_sync_folder(&w->io, path, e) : error_no_memory(e, 1, "a path");
        free(path);
    }
    return status;
}

static int writer_open_manifest(struct writer *w, struct error *e)
{
    char *path = io_path(w->path, MANIFEST_NAME);

    if (!path)
        return error_no_memory(e, strlen(w->path), "a path");
    int status = io_file_open(&w->io, path, O_RDWR, &w->manifest, e);
    free(path);
    return status == DELTAFS_OK ? io_file_size(&w->manifest, &w->manifest_size, e) : status;
}

static int writer_open(struct writer *w, const struct writer_config *c, uint32_t count, struct error *e)
{
    uint32_t records;

    w->path = strdup(c->path);
    w->part = calloc(count + 1, sizeof *w->part);
    if (!w->path || !w->part)
        return error_no_memory(e, count * sizeof *w->part, "partitions");
    int status = writer_plan(w, c, count, &records, e);
    if (status == DELTAFS_OK && count > 0)
        status = writer_open_shared(w, c, records, e);
    /* A partition whose opening failed half-way is counted: it is closed with the others. */
    for (; w->count < count && status == DELTAFS_OK; w->count++)
        status = part_writer_open(&w->part[w->count], &w->io, c, w->first + w->count, &w->shared, e);
    if (status == DELTAFS_OK && w->sync != SYNC_NONE)
        status = writer_sync_folders(w, e);
    if (status == DELTAFS_OK && w->is_maker)
        status = writer_open_manifest(w, e);
    return status;
}

int deltafs_writer_open(const struct writer_config *c, uint32_t first, uint32_t count, int is_maker,
                        struct writer **out, struct error *e)
{
    struct error ignored;
    struct writer *w = calloc(1, sizeof *w);

    if (!w)
        return error_no_memory(e, sizeof *w, "a writer");
    w->io = io_default();
    w->memory = (struct memory){.limit = c->memory, .used = c->reserved, .peak = c->reserved};
    w->sync = c->sync;
    w->partitions = c->partitions;
    w->first = first;
    w->is_maker = is_maker;
    w->manifest.fd = -1;
    w->shared.memory = w->shared.keys.memory = w->shared.scratch.leaf.memory = w->shared.scratch.fence.memory =
        &w->memory;
    int status = writer_open(w, c, count, e);
    if (status != DELTAFS_OK) {
        deltafs_writer_destroy(w, &ignored);
        return status;
    }
    *out = w;
    return DELTAFS_OK;
}

/* Let go of the memtable and what sorts it. */
static void writer_close_table(struct writer *w)
{
    for (int i = 0; i < 2; i++) {
        memory_give(&w->memory, w->sort[i], w->table.capacity * sizeof *w->sort[i]);
        w->sort[i] = NULL;
    }
    memtable_fini(&w->table);
}

int deltafs_writer_destroy(struct writer *w, struct error *e)
{
    struct error ignored;
    int status = DELTAFS_OK;

    if (!w)
        return DELTAFS_OK;
    for (uint32_t i = 0; i < w->count; i++) {
        int rc = part_writer_close(&w->part[i], status == DELTAFS_OK ? e : &ignored);
        status = status != DELTAFS_OK ? status : rc;
    }
    if (w->manifest.path) {
        int rc = io_file_close(&w->manifest, status == DELTAFS_OK ? e : &ignored);
        status = status != DELTAFS_OK ? status : rc;
    }
    writer_close_table(w);
    keys_clear(&w->shared.keys);
    block_writer_fini(&w->shared.block);
    buffer_fini(&w->shared.scratch.leaf);
    buffer_fini(&w->shared.scratch.fence);
    free(w->part);
    free(w->path);
    free(w);
    return status;
}

/* ---- An epoch ---- */

int deltafs_writer_check_label(const struct writer *w, uint64_t label, struct error *e)
{
    if (w->has_label && label <= w->last_label)
        return error_set(e, DELTAFS_ERR_LABEL,
                         "%s: the epoch's label %llu is not above the last one, %llu; labels must increase", w->path,
                         (unsigned long long)label, (unsigned long long)w->last_label);
    return DELTAFS_OK;
}

void deltafs_writer_fail(struct writer *w, const struct error *e)
{
    if (w->failed.status == DELTAFS_OK)
        w->failed = *e;
}

/* Let go of the keys held so far: close all partitions' segments. */
static int writer_close_segments(struct writer *w, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < w->count && status == DELTAFS_OK; i++)
        if (w->part[i].run_count > 0)
            status = part_writer_segment(&w->part[i], 0, e);
    keys_clear(&w->shared.keys);
    return status;
}

/* Which of the writer's own partitions a key belongs to. */
static uint32_t writer_partition(const struct writer *w, uint64_t key)
{
    return w->count > 1 ? partition_of(key, w->partitions) - w->first : 0;
}

/* Whether the budget has what writing the memtable takes, and the merge after it. */
static int writer_has_room(const struct writer *w)
{
    const struct memtable *t = &w->table;
    uint64_t low = UINT64_MAX, high = 0, block = block_records(t->value_size, w->shared.block.target);

    for (uint32_t i = 0; i < t->count; i++) {
        low = t->keys[i] < low ? t->keys[i] : low;
        high = t->keys[i] > high ? t->keys[i] : high;
    }
    uint64_t keys = keys_bound(t->count, w->count, high > low ? high - low : 0);
    uint64_t need = keys + t->count * 48 / block + (uint64_t)w->count * RUN_HEAD + MERGE_ROOM;
    return w->memory.limit - w->memory.used >= need;
}

/* Write the memtable as a run for each partition that has records in it, and empty it. */
static int writer_flush(struct writer *w, struct error *e)
{
    const struct sort_partitions partitions = {w->partitions, w->first, w->count};
    uint32_t n = w->table.count, end;
    int status = DELTAFS_OK;

    if (!writer_has_room(w))
        status = writer_close_segments(w, e);
    const uint32_t *order = sort_records(w->table.keys, n, &partitions, w->sort[0], w->sort[1]);
    for (uint32_t i = 0; i < n && status == DELTAFS_OK; i = end) {
        uint32_t partition = writer_partition(w, w->table.keys[order[i]]);
        if (w->count == 1)
            end = n;
        else
            for (end = i + 1; end < n && writer_partition(w, w->table.keys[order[end]]) == partition;)
                end++;
        status = part_writer_run(&w->part[partition], &w->table, order + i, end - i, e);
    }
    memtable_clear(&w->table);
    return status;
}

void deltafs_writer_put(struct writer *w, uint64_t key, const void *value, size_t size)
{
    struct error e;

    if (!memtable_has_room(&w->table, size)) {
        if (w->failed.status != DELTAFS_OK || w->broken.status != DELTAFS_OK)
            return;
        if (writer_flush(w, &e) != DELTAFS_OK) {
            w->failed = e;
            return;
        }
    }
    memtable_put(&w->table, key, value, size);
}

int deltafs_writer_seal(struct writer *w, struct writer_totals *out, struct error *e)
{
    *out = (struct writer_totals){0};
    if (w->broken.status != DELTAFS_OK) {
        *e = w->broken;
        return e->status;
    }
    struct error failed;
    if (w->failed.status == DELTAFS_OK && writer_flush(w, &failed) != DELTAFS_OK)
        w->failed = failed;
    for (uint32_t i = 0; i < w->count && w->failed.status == DELTAFS_OK; i++) {
        if (part_writer_seal(&w->part[i], w->sync != SYNC_NONE, &failed) != DELTAFS_OK)
            w->failed = failed;
        out->records += w->part[i].totals.records;
        out->bytes_raw += w->part[i].totals.bytes_raw;
        out->bytes_stored += w->part[i].totals.bytes_stored;
    }
    keys_clear(&w->shared.keys);
    if (w->failed.status != DELTAFS_OK)
        *e = w->failed;
    return w->failed.status;
}

int deltafs_writer_commit(struct writer *w, uint64_t label, const struct writer_totals *totals, int *in_doubt,
                          struct error *e)
{
    struct manifest_epoch epoch = {label, totals->records, totals->bytes_raw, totals->bytes_stored};
    struct error ignored;
    uint64_t size = w->manifest_size;
    int status = manifest_append_epoch(&w->manifest, &w->manifest_size, w->epoch, &epoch, w->sync != SYNC_NONE, e);

    /* The line must go again, or a reader would find an epoch whose data is about to be overwritten. */
    *in_doubt = 0;
    if (status != DELTAFS_OK) {
        w->manifest_size = size;
        *in_doubt = io_file_truncate(&w->manifest, size, &ignored) != DELTAFS_OK ||
                    io_file_sync(&w->manifest, &ignored) != DELTAFS_OK;
        if (*in_doubt) {
            struct error why = *e;
            error_set(e, why.status,
                      "%.800s; nor can that be undone: whether the epoch labelled %llu is committed shows when the "
                      "directory is opened; no other can follow",
                      why.text, (unsigned long long)label);
        }
    }
    return status;
}

void deltafs_writer_keep(struct writer *w, uint64_t label)
{
    for (uint32_t i = 0; i < w->count; i++)
        part_writer_keep(&w->part[i]);
    w->epoch++;
    w->has_label = 1;
    w->last_label = label;
}

void deltafs_writer_give_up(struct writer *w, int in_doubt, const struct error *why)
{
    struct error e;

    if (w->broken.status != DELTAFS_OK)
        return;
    if (in_doubt) {
        w->broken = *why;
        return;
    }
    for (uint32_t i = 0; i < w->count; i++)
        if (part_writer_give_up(&w->part[i], &e) != DELTAFS_OK && w->broken.status == DELTAFS_OK)
            w->broken = e;
    keys_clear(&w->shared.keys);
    memtable_clear(&w->table);
    w->failed = (struct error){0};
}

int deltafs_writer_finish(struct writer *w, uint64_t *tail_length, struct error *e)
{
    int status = w->broken.status;

    *tail_length = 0;
    writer_close_table(w);
    if (status != DELTAFS_OK)
        *e = w->broken;
    for (uint32_t i = 0; i < w->count && status == DELTAFS_OK; i++) {
        uint64_t length;
        status = part_writer_finish(&w->part[i], w->sync != SYNC_NONE, &length, e);
        if (status == DELTAFS_OK && length > *tail_length)
            *tail_length = length;
    }
    return status;
}

int deltafs_writer_commit_close(struct writer *w, uint64_t tail_length, struct error *e)
{
    return manifest_append_close(&w->manifest, &w->manifest_size, w->epoch, tail_length, w->sync != SYNC_NONE, e);
}

void deltafs_writer_memory(const struct writer *w, struct deltafs_memory_stat *out)
{
    *out = (struct deltafs_memory_stat){w->memory.limit, w->memory.used, w->memory.peak};
}

const struct deltafs_io_stat *deltafs_writer_io(const struct writer *w)
{
    return &w->io.stat;
}
