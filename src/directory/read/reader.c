#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/thread.h"
#include "directory/format/directory_format.h"
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
    for (uint32_t i = 0; i < r->part_count; i++)
        part_reader_close(&r->part[i]);
}

int reader_keep(struct reader *r, uint32_t n, struct error *e)
{
    if (n <= r->part_count)
        return DELTAFS_OK;
    struct part_reader *part = calloc(n, sizeof *part);
    if (!part)
        return error_no_memory(e, n * sizeof *part, "partitions");
    reader_close_parts(r);
    if (r->part != r->own)
        free(r->part);
    r->part = part;
    r->part_count = n;
    return DELTAFS_OK;
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

uint32_t reader_next_epoch(const struct reader *r, uint32_t epoch, uint32_t end)
{
    return r->skips_covered ? (uint32_t)manifest_uncovered(&r->manifest, epoch, end) : epoch;
}

int reader_replaced(const struct reader *r, struct error *e)
{
    return error_set(e, DELTAFS_ERR_CHANGED,
                     "%s: was replaced since it was opened ('deltafs-mpi index --compact' does that); open it again",
                     r->path);
}

int reader_explain(struct reader *r, int status, struct error *e)
{
    struct manifest now = {0};

    if (status == DELTAFS_OK)
        return status;
    manifest_read_head(&r->io, r->path, &now);
    if (now.uuid_text[0] != '\0' && memcmp(now.uuid, r->manifest.uuid, sizeof now.uuid) != 0)
        status = reader_replaced(r, e);
    manifest_fini(&now);
    return status;
}

/* The files get a descriptor for each read, if so many partitions are kept. */
static int part_reader_release(struct reader *r, struct part_reader *p, struct error *e)
{
    if (r->part_count <= READER_OPEN_PARTS)
        return DELTAFS_OK;
    int status = io_file_release(&p->data, 0, e);
    return error_first(status, io_file_release(&p->index.file, 0, error_after(status, e)));
}

/* If another directory takes this one's place meanwhile, the index log, which is opened last, is that one's. */
static int part_reader_open(struct reader *r, struct part_reader *p, uint32_t partition, struct error *e)
{
    const struct manifest *m = &r->manifest;
    char data[PATH_ROOM], index[PATH_ROOM];
    struct error data_error;

    io_path_in(data, r->path, LOG_NAME_DATA, partition % BUCKET_COUNT, partition);
    io_path_in(index, r->path, LOG_NAME_INDEX, partition % BUCKET_COUNT, partition);
    *p = (struct part_reader){.partition = partition, .is_open = 1, .data.fd = -1, .index.file.fd = -1};
    int data_status = log_open_read(&r->io, data, &p->data, &p->data_size, &data_error);
    uint64_t before = thread_clock();
    int status = index_reader_open(&p->index, &r->io, index, partition, m->uuid, (uint32_t)m->epoch_count,
                                   (uint32_t)m->epoch_count, m->is_closed ? m->tail_length : 0, &p->tail, e);
    if (thread_clock() - before > FETCH_SLOW_NS)
        r->pace = FETCH_SLOW;
    p->index.compacted = m->compacted;
    /* An index log has a footer of each epoch. If there is none of this directory, it may be of another. */
    if (status == DELTAFS_OK && m->epoch_count > 0 && p->index.count == 0 &&
        reader_explain(r, DELTAFS_ERR_DAMAGED, e) == DELTAFS_ERR_CHANGED)
        status = DELTAFS_ERR_CHANGED;
    if (status == DELTAFS_OK && data_status != DELTAFS_OK) {
        *e = data_error;
        status = data_status;
    }
    if (status == DELTAFS_OK)
        status = part_reader_release(r, p, e);
    if (status != DELTAFS_OK)
        part_reader_close(p);
    return reader_explain(r, status, e);
}

int reader_part(struct reader *r, uint32_t partition, struct part_reader **out, struct error *e)
{
    struct part_reader *oldest = &r->part[partition % r->part_count];

    r->clock++;
    for (uint32_t i = 0; i < r->part_count; i++) {
        struct part_reader *p = &r->part[(partition + i) % r->part_count];
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
    int status = index_epoch(&p->index, epoch, first, count, e);

    for (uint32_t i = 0; status == DELTAFS_OK && r->manifest.keys == KEYS_U64 && i < *count; i++)
        if ((*first)[i].footer.key_shift != 0)
            return error_damaged(e, p->index.file.path, (*first)[i].footer.offset, "a footer shortens keys of numbers");
    return status;
}

int reader_malformed_leaf(struct part_reader *p, const struct segment *s, uint32_t leaf, struct error *e)
{
    return error_damaged(e, p->index.file.path, fence_leaf(&s->fence, leaf).offset,
                         "the leaf's records do not fit its run table");
}

uint64_t reader_record_size(const struct reader *r, uint32_t epoch)
{
    const struct manifest *m = &r->manifest;
    uint64_t records = 0, bytes = 0, end = epoch < m->compacted ? m->compacted : epoch + UINT64_C(1);

    for (uint64_t i = epoch; i < end && i < m->epoch_count; i++) {
        records += m->epoch[i].records;
        bytes += m->epoch[i].bytes_raw;
    }
    return bytes > records && records > 0 ? bytes / records : 1;
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
