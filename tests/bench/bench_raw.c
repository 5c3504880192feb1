/* The file-per-process dump that a simulation has today: records of key and value, one file an epoch, in writes of
 * 1 MiB, synced where ours syncs. Through the page cache, or past it with O_DIRECT. It goes through the same table of
 * file operations as ours does, so that both can be throttled in the same place. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "bench_engine.h"
#include "bench_help.h"
#include "io/io.h"

#define WRITE_SIZE (1u << 20)
#define ALIGNMENT  4096u /* of O_DIRECT, on all disks */

struct raw_writer {
    struct io io;
    struct io_file file;
    uint8_t *buffer;
    size_t used;
    uint64_t end; /* of the file so far */
};

static void must(int status, const struct error *e)
{
    if (status != DELTAFS_OK)
        bench_die("raw dump: %s", e->text);
}

static void raw_flush(struct raw_writer *w, size_t n)
{
    struct error e;

    must(io_file_write(&w->file, w->end, w->buffer, n, &e), &e);
    w->end += n;
    w->used = 0;
}

static void raw_put(struct raw_writer *w, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t room = WRITE_SIZE - w->used;

    if (n >= room) {
        memcpy(w->buffer + w->used, p, room);
        raw_flush(w, WRITE_SIZE);
        p += room;
        n -= room;
    }
    memcpy(w->buffer + w->used, p, n);
    w->used += n;
}

static void raw_write_epoch(struct raw_writer *w, const struct job *job, size_t epoch, int flags)
{
    const struct dataset *d = job->data;
    const struct epoch_data *from = &d->epoch[epoch];
    struct error e;
    char path[PATH_ROOM];

    io_path_in(path, job->path, "dump.%llu", (unsigned long long)from->label);
    must(io_file_open(&w->io, path, O_WRONLY | O_CREAT | O_EXCL | flags, &w->file, &e), &e);
    w->end = 0;
    for (size_t i = 0; i < d->n; i++) {
        raw_put(w, &from->keys[i], sizeof from->keys[i]);
        raw_put(w, from->values + i * d->value_size, d->value_size);
    }
    uint64_t size = w->end + w->used;
    if (w->used > 0)
        raw_flush(w, flags & O_DIRECT ? (w->used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : w->used);
    if (w->end != size)
        must(io_file_truncate(&w->file, size, &e), &e);
    if (job->bench->is_synced)
        must(io_file_sync(&w->file, &e), &e);
    must(io_file_close(&w->file, &e), &e);
}

static void raw_write(const struct job *job, int flags, struct outcome *out)
{
    struct raw_writer w = {.io = io_default()};
    struct error e;
    struct meter meter;

    w.buffer = aligned_alloc(ALIGNMENT, WRITE_SIZE);
    if (!w.buffer)
        bench_die("no memory for a buffer");
    meter_start(&meter);
    must(io_mkdir(&w.io, job->path, &e), &e);
    for (size_t epoch = 0; epoch < job->data->epochs; epoch++)
        raw_write_epoch(&w, job, epoch, flags);
    meter_stop(&meter, out);
    free(w.buffer);
}

static void raw_write_cached(const struct job *job, struct outcome *out)
{
    raw_write(job, 0, out);
}

static void raw_write_direct(const struct job *job, struct outcome *out)
{
    raw_write(job, O_DIRECT, out);
}

const struct engine engine_raw = {.name = "raw dump", .write = raw_write_cached};
const struct engine engine_raw_direct = {.name = "raw dump, O_DIRECT", .write = raw_write_direct};
