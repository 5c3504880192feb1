/* Opening a writer, and closing it. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "directory/format/planes.h"
#include "directory/write/writer_state.h"
#include "io/io_format.h"

#define DIRECT_BUFFER_MIN (256u << 10) /* shorter writes are better left to the page cache */
#define FILES_SHARE       8 /* partitions with open logs: for so many of the descriptors that the process may have, one */

static _Atomic uint32_t partitions_kept; /* with open logs, of all writers of the process */

/* Take what all partitions share, and start the threads. */
static int writer_open_shared(struct writer *w, const struct writer_config *c, uint32_t records, struct error *e)
{
    int status = DELTAFS_OK;

    w->shared.keys.has_epochs = c->compacted > 0;
    for (; w->tables < writer_tables(w->threads) && status == DELTAFS_OK; w->tables++) {
        status = memtable_init(&w->table[w->tables], c->value_size, records, &w->memory, e);
        if (status == DELTAFS_OK && c->compacted > 0)
            status = memtable_add_epochs(&w->table[w->tables], e);
    }
    for (int i = 0; i < 2 && status == DELTAFS_OK; i++)
        status = memory_take(&w->memory, records * sizeof *w->sort[i] + PLANES_SLACK, "sorting", &w->sort[i], e);
    if (status == DELTAFS_OK)
        status = block_writer_init(&w->shared.block, c->value_size, &c->strips, c->codec, c->block, &w->memory, e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&w->shared.scratch.leaf, LEAF_ENCODED_MAX, "a leaf", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&w->shared.scratch.fence, w->shared.scratch.fence_max, "a fence", e);
    if (status == DELTAFS_OK && w->threads > 1)
        status = flusher_create(w->shared.data_buffer, SPARE_BUFFERS, &w->memory, &w->shared.flusher, e);
    if (status == DELTAFS_OK && writer_encoders(c, w->threads) > 0)
        status = encoder_create(c, writer_encoders(c, w->threads), &w->memory, &w->shared.encoder, e);
    if (status == DELTAFS_OK)
        status = queue_create(TABLES_MOST, sizeof w->filling, w->threads > 0, writer_work, w, &w->queue, e);
    for (uint32_t i = 0; i < w->tables && status == DELTAFS_OK; i++)
        queue_add(w->queue, &w->table[i]);
    if (status == DELTAFS_OK)
        w->filling = queue_take(w->queue);
    return status;
}

/* How the records of the first epoch are placed, and room for what is chosen for the next ones. */
static int writer_open_pivots(struct writer *w, const struct writer_config *c, struct error *e)
{
    size_t n = c->partitions * sizeof(uint64_t);
    int status = DELTAFS_OK;

    w->by[0] = w->by[1] = (struct partitioner){.partitions = c->partitions,
                                               .fn = c->caller.fn,
                                               .arg = c->caller.arg,
                                               .is_unknown = c->partitioner == PARTITIONER_CALLER && !c->caller.fn};
    if (c->partitioner != PARTITIONER_RANGE || c->partitions == 1)
        return DELTAFS_OK;
    for (int i = 0; i < 2 && status == DELTAFS_OK; i++) {
        status = memory_take(&w->memory, n, "pivots", &w->pivots[i], e);
        if (status == DELTAFS_OK)
            memset(w->pivots[i], 0, n);
    }
    if (status == DELTAFS_OK && c->pivots) {
        memcpy(w->pivots[0] + 1, c->pivots, n - sizeof(uint64_t));
        w->by[0].pivots = w->pivots[0] + 1;
    }
    if (status == DELTAFS_OK && w->hold_room > 0)
        status = hold_init(&w->hold, w->hold_room, c->value_size, &w->memory, e);
    return status == DELTAFS_OK ? sample_init(&w->sample, writer_sample(c), w->first, &w->memory, e) : status;
}

/* Make the new logs' folder entries durable. */
static int writer_sync_folders(struct writer *w, struct error *e)
{
    char path[PATH_ROOM];
    int status = DELTAFS_OK;

    for (uint32_t b = 0; b < BUCKET_COUNT && b < w->count && status == DELTAFS_OK; b++)
        status = io_sync_folder(&w->io, io_path_in(path, w->c.path, BUCKET_NAME, (w->first + b) % BUCKET_COUNT), e);
    return status;
}

/* Decide how many of `count` partitions keep their logs open. */
static uint32_t writer_keep(uint32_t count)
{
    struct rlimit files;
    uint64_t most = getrlimit(RLIMIT_NOFILE, &files) == 0 ? files.rlim_cur / FILES_SHARE : UINT64_MAX;
    uint32_t others = partitions_kept,
             n = most > others ? (uint32_t)(most - others < count ? most - others : count) : 0;

    partitions_kept += n;
    return n;
}

static int writer_open_partitions(struct writer *w, const struct writer_config *c, uint32_t count, struct error *e)
{
    int status = DELTAFS_OK;

    w->kept = writer_keep(count);
    /* A partition whose opening failed half-way is counted: it is closed with the others. */
    for (; w->count < count && status == DELTAFS_OK; w->count++) {
        struct partition_writer *p = &w->part[w->count];
        status = partition_writer_open(p, &w->io, c, w->first + w->count, &w->shared, e);
        if (status == DELTAFS_OK && w->count >= w->kept)
            status = partition_writer_release(p, e);
    }
    return status;
}

/* Write around the page cache, where that brings anything; it takes one more descriptor for each partition. */
static void writer_use_direct(struct writer *w)
{
    if (w->c.sync == SYNC_NONE || w->shared.data_buffer < DIRECT_BUFFER_MIN)
        return;
    w->values.may_direct = 1;
    for (uint32_t i = 0; i < w->kept; i++)
        io_file_use_direct(&w->part[i].data.file);
}

static int writer_open(struct writer *w, const struct writer_config *c, uint32_t count, struct error *e)
{
    uint32_t records;

    w->c.path = strdup(c->path);
    if (!w->c.path)
        return error_no_memory(e, strlen(c->path), "a path");
    int status = writer_plan(w, c, count, &records, e);
    if (status == DELTAFS_OK)
        status = memory_take(&w->memory, (count + (size_t)1) * sizeof *w->part, "partitions", &w->part, e);
    if (status == DELTAFS_OK) {
        memset(w->part, 0, (count + (size_t)1) * sizeof *w->part);
        w->part_capacity = count + 1;
    }
    for (uint32_t i = 0; i < count && c->is_reopened && status == DELTAFS_OK; i++)
        status = partition_writer_find(&w->part[i], &w->io, c, w->first + i, &w->memory, e);
    if (status == DELTAFS_OK && count > 0)
        status = writer_open_shared(w, c, records, e);
    if (status == DELTAFS_OK)
        status = writer_open_partitions(w, c, count, e);
    if (status == DELTAFS_OK)
        status = writer_open_pivots(w, c, e);
    if (status == DELTAFS_OK && w->c.sync != SYNC_NONE)
        status = writer_sync_folders(w, e);
    if (status == DELTAFS_OK)
        status = values_writer_open(&w->values, &w->io, &w->c, w->shared.data_buffer, w->shared.flusher, &w->memory, e);
    if (status == DELTAFS_OK)
        writer_use_direct(w);
    if (status == DELTAFS_OK && w->is_maker)
        status = writer_open_manifest(w, e);
    return status;
}

int deltafs_private_writer_open(const struct writer_config *c, uint32_t first, uint32_t count, struct lease *lease,
                                struct writer **out, struct error *e)
{
    struct writer *w = calloc(1, sizeof *w);

    if (!w)
        return error_no_memory(e, sizeof *w, "a writer");
    w->io = io_default();
    uint64_t taken = c->reserved + SYSTEM_ROOM + count * writer_path_room(c);
    w->memory = (struct memory){.limit = c->memory, .used = taken, .peak = taken};
    w->c = *c;
    w->c.path = w->c.schema = w->c.volumes = NULL;
    w->c.pivots = NULL;
    w->shared.config = &w->c;
    w->first = first;
    w->is_maker = lease != NULL;
    w->manifest.fd = -1;
    if (c->epochs > 0) {
        w->epoch = c->epochs;
        w->has_label = 1;
        w->last_label = c->last_label;
    }
    w->shared.memory = w->shared.keys.memory = w->shared.scratch.leaf.memory = w->shared.scratch.fence.memory =
        &w->memory;
    int status = writer_open(w, c, count, e);
    if (status != DELTAFS_OK) {
        deltafs_private_writer_destroy(w, error_ignored());
        return status;
    }
    if (lease) {
        w->lease = *lease;
        w->lease.file.io = &w->io;
        *lease = (struct lease){.file.fd = -1};
        w->has_cut = c->is_reopened && w->lease.has_note && w->lease.note.number == c->epochs;
        w->cut_label = w->lease.note.label;
    }
    *out = w;
    return DELTAFS_OK;
}

void deltafs_private_writer_return_lease(struct writer *w, struct lease *lease)
{
    if (!w)
        return;
    *lease = w->lease;
    w->lease = (struct lease){.file.fd = -1};
}

int deltafs_private_writer_truncate(struct writer *w, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < w->count && status == DELTAFS_OK; i++)
        status = partition_writer_cut(&w->part[i], w->c.sync != SYNC_NONE, e);
    return status;
}

void writer_close_tables(struct writer *w)
{
    queue_destroy(w->queue);
    w->queue = NULL;
    encoder_destroy(w->shared.encoder);
    w->shared.encoder = NULL;
    for (int i = 0; i < 2 && w->tables > 0; i++) {
        memory_give(&w->memory, w->sort[i], w->table[0].capacity * sizeof *w->sort[i] + PLANES_SLACK);
        w->sort[i] = NULL;
    }
    for (uint32_t i = 0; i < w->tables; i++)
        memtable_fini(&w->table[i]);
    w->tables = 0;
    w->filling = NULL;
}

int deltafs_private_writer_destroy(struct writer *w, struct error *e)
{
    int status = DELTAFS_OK;

    if (!w)
        return DELTAFS_OK;
    writer_close_tables(w);
    flusher_destroy(w->shared.flusher);
    for (uint32_t i = 0; i < w->count; i++)
        status = error_first(status, partition_writer_close(&w->part[i], error_after(status, e)));
    partitions_kept -= w->kept;
    status = error_first(status, values_writer_close(&w->values, error_after(status, e)));
    status = error_first(status, io_file_close(&w->manifest, error_after(status, e)));
    status = error_first(status, lease_drop(&w->lease, error_after(status, e)));
    keys_clear(&w->shared.keys);
    block_writer_fini(&w->shared.block);
    buffer_fini(&w->shared.scratch.leaf);
    buffer_fini(&w->shared.scratch.fence);
    sample_fini(&w->sample);
    hold_fini(&w->hold);
    for (int i = 0; i < 2; i++)
        memory_give(&w->memory, w->pivots[i], w->pivots[i] ? w->c.partitions * sizeof *w->pivots[i] : 0);
    memory_give(&w->memory, w->part, w->part_capacity * sizeof *w->part);
    free((char *)(uintptr_t)w->c.path);
    free(w);
    return status;
}
