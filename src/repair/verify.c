/* Verification: read everything there is, and count. What is damaged is reported, and reading goes on behind it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/sized.h"
#include "directory/dir.h"
#include "directory/format/directory_format.h"
#include "directory/read/gather.h"
#include "repair/repair_parts.h"

struct verify {
    struct reader *reader;
    struct damages damages;
    struct scan_to to;
    int is_cut;      /* the manifest lacks lines, which was reported */
    int is_replaced; /* another directory is at the path, which was reported */
    /* While one partition's epoch is read: */
    struct partitioner by;
    uint32_t partition;
    uint32_t epoch; /* of the last record */
    uint64_t records, bytes_raw;
    int is_misplaced;   /* a record of another partition, or a key below the one before it */
    int is_ordered;     /* whether keys must rise: with several segments they begin again */
    unsigned key_shift; /* and by how much less than whole keys they rise */
    uint64_t last_key;
    /* Of each epoch, over all partitions: */
    struct manifest_epoch *sum;
    uint8_t *is_short; /* records of it may be missing, which was reported */
};

int damages_of(struct damages *d, int status, const struct error *e)
{
    if (status != DELTAFS_OK)
        damages_add(d, e);
    return status;
}

int damages_end(const struct damages *d, struct deltafs_verify_counts *counts, struct deltafs_verify_counts *out,
                const char *call, struct error *e)
{
    counts->damages = d->count;
    int status = out ? sized_fill(out, counts, sizeof *counts, call, e) : DELTAFS_OK;
    if (d->count > 0)
        *e = d->first;
    return error_first(d->first.status, status);
}

static int verify_record(const struct deltafs_record *record, void *arg)
{
    struct verify *v = arg;

    if ((!v->by.is_unknown && partition_of(&v->by, record->key) != v->partition) ||
        (v->is_ordered && record->key >> v->key_shift < v->last_key))
        v->is_misplaced = 1;
    v->last_key = record->key >> v->key_shift;
    if (v->reader->manifest.epoch[v->epoch].label != record->label) {
        const struct deltafs_range one = {record->label, record->label};
        uint32_t end;
        reader_epochs(v->reader, &one, &v->epoch, &end);
    }
    uint64_t bytes_raw = (record->key_bytes ? record->key_size : 8) + record->size;
    v->records++;
    v->bytes_raw += bytes_raw;
    v->sum[v->epoch].records++;
    v->sum[v->epoch].bytes_raw += bytes_raw;
    return 0;
}

/* A truncated log, once for all the blocks that are not there; each of these is reported as it is met. */
static void verify_length(struct verify *v, const struct part_reader *p)
{
    uint64_t needed = 0;
    struct error e;

    for (uint32_t i = 0; i < p->index.count; i++)
        if (p->index.segment[i].footer.data_end > needed)
            needed = p->index.segment[i].footer.data_end;
    if (p->data_size >= needed)
        return;
    error_set(&e, DELTAFS_ERR_DAMAGED, "%s: truncated at offset %llu: the file has %llu bytes, at least %llu expected",
              p->data.path, (unsigned long long)p->data_size, (unsigned long long)p->data_size,
              (unsigned long long)needed);
    damages_add(&v->damages, &e);
}

static void verify_epoch(struct verify *v, struct part_reader *p, uint32_t epoch)
{
    struct segment *segment;
    uint32_t segments;
    struct error e;
    uint64_t records = 0, bytes_raw = 0;

    v->records = v->bytes_raw = v->last_key = 0;
    v->is_misplaced = 0;
    v->epoch = epoch;
    v->by = manifest_partitioner(&v->reader->manifest, epoch, NULL);
    if (damages_of(&v->damages, reader_epoch(v->reader, p, epoch, &segment, &segments, &e), &e) != DELTAFS_OK)
        return;
    v->is_ordered = segments == 1;
    v->key_shift = segment->footer.key_shift;
    uint64_t before = v->damages.count;
    if (damages_of(&v->damages, part_scan(v->reader, p, epoch, &v->to, &v->damages, &e), &e) != DELTAFS_OK)
        return;
    int is_read = v->damages.count == before;
    for (uint32_t i = 0; i < segments; i++) {
        damages_of(&v->damages, index_verify_segment(&p->index, &segment[i], &e), &e);
        records += segment[i].footer.records;
        bytes_raw += segment[i].footer.bytes_raw;
    }
    /* With layout=local, footers know nothing of the values' bytes. */
    int is_short = records != v->records || (!v->reader->manifest.is_local && bytes_raw != v->bytes_raw);
    if (is_read && (is_short || v->is_misplaced)) {
        error_damaged(&e, p->index.file.path, segment[0].footer.offset,
                      "epoch number %u does not have the records that its footer says", epoch);
        damages_add(&v->damages, &e);
    }
}

/* Whether the container still ends in the close that the reader knows: whoever reopens it cuts the tails off. */
static int verify_is_closed(const struct verify *v)
{
    const struct manifest *m = &v->reader->manifest;
    struct manifest now;

    if (manifest_read(&v->reader->io, v->reader->path, &now, error_ignored()) != DELTAFS_OK)
        return 1;
    int is_closed = now.is_closed && now.size == m->size && memcmp(now.uuid, m->uuid, sizeof now.uuid) == 0;
    manifest_fini(&now);
    return is_closed;
}

/* The data log of a partition whose index log, or itself, cannot be opened for the reason `known`: that it is missing
 * too, or its header is not right, is not passed over. */
static void verify_data_alone(struct verify *v, uint32_t partition, const struct error *known)
{
    const struct manifest *m = &v->reader->manifest;
    char path[PATH_ROOM];
    struct io_file file;
    struct error e;
    uint64_t size;

    io_path_in(path, v->reader->path, LOG_NAME_DATA, partition % BUCKET_COUNT, partition);
    int status = log_open_read(&v->reader->io, path, &file, &size, &e);
    if (status == DELTAFS_OK)
        status = log_check_header(&file, LOG_KIND_DATA, partition, m->uuid, &e);
    if (status != DELTAFS_OK && strcmp(e.text, known->text) != 0)
        damages_add(&v->damages, &e);
    io_file_close(&file, error_ignored());
}

/* Whether the log has more committed epochs than the manifest, also by now: a writer goes on meanwhile. */
static void verify_manifest_end(struct verify *v, const struct index_reader *index)
{
    const struct manifest *m = &v->reader->manifest;
    struct manifest now;
    struct error e;

    if (v->is_cut || index_check_committed(index, m->epoch_count, m->is_closed, &e) == DELTAFS_OK)
        return;
    int status = e.status;
    if (manifest_read(&v->reader->io, v->reader->path, &now, error_ignored()) == DELTAFS_OK) {
        status = index_check_committed(index, now.epoch_count, now.is_closed, &e);
        manifest_fini(&now);
    }
    v->is_cut = damages_of(&v->damages, reader_explain(v->reader, status, &e), &e) != DELTAFS_OK;
}

/* Before the first commit a power loss may leave logs without their headers, or none: no record is in them. */
static void verify_no_epochs(struct verify *v, uint32_t partition)
{
    const struct manifest *m = &v->reader->manifest;
    char path[PATH_ROOM];
    struct index_reader index = {.file.fd = -1};
    struct error e;

    io_path_in(path, v->reader->path, LOG_NAME_INDEX, partition % BUCKET_COUNT, partition);
    int status = index_reader_open(&index, &v->reader->io, path, partition, m->uuid, 0, 0, 0, error_ignored(), &e);

    if (status == DELTAFS_OK)
        verify_manifest_end(v, &index);
    else if (status != DELTAFS_ERR_DAMAGED)
        damages_add(&v->damages, &e);
    index_reader_close(&index, error_ignored());
}

static void verify_partition(struct verify *v, uint32_t partition)
{
    const struct manifest *m = &v->reader->manifest;
    struct part_reader *p;
    struct error e;

    v->partition = partition;
    int status = reader_part(v->reader, partition, &p, &e);
    if (damages_of(&v->damages, status, &e) != DELTAFS_OK) {
        v->is_replaced = status == DELTAFS_ERR_CHANGED;
        if (!v->is_replaced)
            verify_data_alone(v, partition, &e);
        memset(v->is_short, 1, m->epoch_count);
        return;
    }
    if (p->tail.status != DELTAFS_OK && verify_is_closed(v))
        damages_add(&v->damages, &p->tail);
    /* The headers at the logs' start, which only this looks at. */
    damages_of(&v->damages, log_check_header(&p->index.file, LOG_KIND_INDEX, partition, m->uuid, &e), &e);
    damages_of(&v->damages, log_check_header(&p->data, LOG_KIND_DATA, partition, m->uuid, &e), &e);
    verify_length(v, p);
    verify_manifest_end(v, &p->index);
    for (uint32_t epoch = 0; epoch < m->epoch_count; epoch++) {
        uint64_t damages = v->damages.count;
        verify_epoch(v, p, epoch);
        /* With the first of the compacted epochs the records of all are stored. */
        uint32_t end = epoch < m->compacted ? m->compacted : epoch + 1;
        for (uint32_t i = epoch; v->damages.count > damages && i < end; i++)
            v->is_short[i] = 1;
    }
}

/* The manifest's counts, of epochs that all partitions have whole. */
static void verify_counts(struct verify *v)
{
    const struct manifest *m = &v->reader->manifest;

    for (uint64_t i = 0; i < m->epoch_count; i++) {
        struct error e;
        if (v->is_short[i] ||
            (v->sum[i].records == m->epoch[i].records && v->sum[i].bytes_raw == m->epoch[i].bytes_raw))
            continue;
        error_set(&e, DELTAFS_ERR_DAMAGED,
                  "%s: epoch %llu has %llu records of %llu bytes; its commit says %llu of %llu", v->reader->path,
                  (unsigned long long)m->epoch[i].label, (unsigned long long)v->sum[i].records,
                  (unsigned long long)v->sum[i].bytes_raw, (unsigned long long)m->epoch[i].records,
                  (unsigned long long)m->epoch[i].bytes_raw);
        damages_add(&v->damages, &e);
    }
}

static int reader_verify(struct reader *r, struct verify *v, struct error *e)
{
    v->sum = calloc(r->manifest.epoch_count + 1, sizeof *v->sum);
    v->is_short = calloc(r->manifest.epoch_count + 1, 1);
    if (!v->sum || !v->is_short)
        return error_no_memory(e, r->manifest.epoch_count * sizeof *v->sum, "verifying");
    gather_check_headers(r->gather, 1);
    for (uint32_t p = 0; p < r->manifest.partitions && !v->is_replaced; p++) {
        if (r->manifest.epoch_count == 0)
            verify_no_epochs(v, p);
        else
            verify_partition(v, p);
    }
    verify_counts(v);
    if (!v->is_replaced)
        damages_of(&v->damages, reader_explain(r, text_check_copy(&r->io, r->path, r->manifest.is_closed, e), e), e);
    gather_check_headers(r->gather, 0);
    return DELTAFS_OK;
}

int deltafs_verify(deltafs_dir *d, deltafs_damage_fn fn, void *arg, struct deltafs_verify_counts *out)
{
    struct verify v = {.damages = {.fn = fn, .arg = arg}};
    struct error *e;
    int status = dir_reader(d, "deltafs_verify", NULL, &v.reader, &e);

    if (status != DELTAFS_OK)
        return status;
    v.to = (struct scan_to){.fn = verify_record, .arg = &v};
    status = reader_verify(v.reader, &v, e);
    free(v.sum);
    free(v.is_short);
    if (status == DELTAFS_OK)
        status = damages_end(&v.damages, &v.to.counts, out, "deltafs_verify", e);
    return dir_end(d, status);
}
