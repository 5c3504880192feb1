#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "directory/format/directory_format.h"
#include "directory/format/partition.h"
#include "directory/format/value_log.h"
#include "directory/read/reader.h"

static void part_reader_close(struct part_reader *p)
{
    if (!p->is_open)
        return;
    index_reader_close(&p->index, error_ignored());
    io_file_close(&p->data, error_ignored());
    p->is_open = 0;
}

void reader_close_parts(struct reader *r)
{
    for (int i = 0; i < READER_OPEN_PARTS; i++)
        part_reader_close(&r->part[i]);
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

/* After an error: whether another directory is at the path by now. Returns the status. */
static int reader_explain(struct reader *r, int status, struct error *e)
{
    struct manifest now = {0};

    if (status == DELTAFS_OK)
        return status;
    manifest_read_head(&r->io, r->path, &now);
    if (now.uuid_text[0] != '\0' && memcmp(now.uuid, r->manifest.uuid, sizeof now.uuid) != 0)
        status = error_set(e, DELTAFS_ERR_CHANGED,
                           "%s: was replaced since it was opened ('deltafs-mpi index --compact' does that); open it "
                           "again",
                           r->path);
    manifest_fini(&now);
    return status;
}

static int part_reader_open(struct reader *r, struct part_reader *p, uint32_t partition, struct error *e)
{
    const struct manifest *m = &r->manifest;
    char data[PATH_ROOM], index[PATH_ROOM];

    io_path_in(data, r->path, LOG_NAME_DATA, partition % BUCKET_COUNT, partition);
    io_path_in(index, r->path, LOG_NAME_INDEX, partition % BUCKET_COUNT, partition);
    *p = (struct part_reader){.partition = partition, .is_open = 1, .data.fd = -1, .index.file.fd = -1};
    int status = index_reader_open(&p->index, &r->io, index, partition, m->uuid, (uint32_t)m->epoch_count,
                                   (uint32_t)m->epoch_count, m->is_closed ? m->tail_length : 0, &p->tail, e);
    if (status == DELTAFS_OK)
        status = log_open_read(&r->io, data, &p->data, &p->data_size, e);
    if (status != DELTAFS_OK)
        part_reader_close(p);
    return reader_explain(r, status, e);
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

int reader_epoch(struct reader *r, struct part_reader *p, uint32_t epoch, struct segment **first, uint32_t *count,
                 struct error *e)
{
    int status = reader_explain(r, index_epoch(&p->index, epoch, first, count, e), e);

    for (uint32_t i = 0; status == DELTAFS_OK && r->manifest.keys == KEYS_U64 && i < *count; i++)
        if ((*first)[i].footer.key_shift != 0)
            return error_damaged(e, p->index.file.path, (*first)[i].footer.offset, "a footer shortens keys of numbers");
    return status;
}

int reader_malformed_leaf(struct part_reader *p, const struct segment *s, uint32_t leaf, struct error *e)
{
    return error_damaged(e, p->index.file.path, s->leaf_offsets[leaf], "the leaf's records do not fit its run table");
}

int record_split(const struct reader *r, const uint8_t *stored, size_t size, struct deltafs_record *record)
{
    size_t before = 0;

    record->key_bytes = NULL;
    record->key_size = 0;
    if (r->manifest.keys == KEYS_BYTES) {
        if (size < 2 || stored[0] == 0 || stored[0] > size - 1)
            return -1;
        record->key_size = stored[0];
        record->key_bytes = stored + 1;
        before = 1 + record->key_size;
    }
    record->value = stored + before;
    record->size = size - before;
    return r->manifest.keys == KEYS_BYTES && r->manifest.value_size >= 0 &&
                   record->size != (size_t)r->manifest.value_size
               ? -1
               : 0;
}

/* Add a file's size; `may_lack`: it may be missing. */
static int reader_add_size(struct reader *r, const char *path, int may_lack, uint64_t *sum, struct error *e)
{
    struct io_file file;
    uint64_t size = 0;
    int status = io_file_open(&r->io, path, O_RDONLY, &file, e);

    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND && may_lack ? DELTAFS_OK : status;
    status = io_file_size(&file, &size, e);
    *sum += size;
    return io_file_finish(&file, status, e);
}

int reader_bytes_stored(struct reader *r, uint64_t *out, struct error *e)
{
    const struct manifest *m = &r->manifest;
    int is_empty = m->epoch_count == 0; /* a job that was killed before its first epoch may not have made all logs */
    char path[PATH_ROOM];
    struct buffer writers = {0};
    size_t count = 0;
    uint64_t sum = 0;
    int status = reader_add_size(r, io_path_in(path, r->path, MANIFEST_NAME), 0, &sum, e);

    if (status == DELTAFS_OK)
        status = reader_add_size(r, io_path_in(path, r->path, MANIFEST_COPY_NAME), 1, &sum, e);
    for (uint32_t p = 0; p < m->partitions && status == DELTAFS_OK; p++) {
        io_path_in(path, r->path, LOG_NAME_DATA, p % BUCKET_COUNT, p);
        status = reader_add_size(r, path, is_empty, &sum, e);
        io_path_in(path, r->path, LOG_NAME_INDEX, p % BUCKET_COUNT, p);
        if (status == DELTAFS_OK)
            status = reader_add_size(r, path, is_empty, &sum, e);
    }
    if (status == DELTAFS_OK && m->is_local)
        status = values_list(&r->io, r->path, m->partitions, &writers, &count, e);
    for (size_t i = 0; i < count && status == DELTAFS_OK; i++) {
        values_path(path, r->path, m->partitions, ((const uint32_t *)(const void *)writers.bytes)[i]);
        status = reader_add_size(r, path, 1, &sum, e);
    }
    buffer_fini(&writers);
    *out = sum;
    return status;
}
