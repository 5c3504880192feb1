#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "logical/format/extents.h"
#include "logical/format/flat.h"
#include "io/log.h"
#include "logical/format/logical_format.h"

#define FLAT_PIECE (8u << 20) /* bytes read at once: memory grows with what the file really has */

static void flat_put_trailer(uint8_t *t, const struct container *c, const struct session *s, uint64_t n)
{
    memset(t, 0, FLAT_TRAILER_SIZE);
    t[4] = FORMAT_FLAT_TRAILER;
    put_u32(t + 8, s->number);
    put_u64(t + 16, n);
    memcpy(t + 24, FLAT_MAGIC, 8);
    log_seal(log_seed(c->uuid), t, FLAT_TRAILER_SIZE);
}

static int flat_write_aside(const struct container *c, struct io *io, const struct session *s, const char *aside,
                            const void *batches, size_t n, int sync, struct error *e)
{
    uint8_t header[LOG_HEADER_SIZE], trailer[FLAT_TRAILER_SIZE];
    struct io_file file;
    int status = io_file_open(io, aside, O_RDWR | O_CREAT | O_TRUNC, &file, e);

    if (status != DELTAFS_OK)
        return status;
    log_put_header(header, LOG_KIND_FLAT, s->number, c->uuid);
    flat_put_trailer(trailer, c, s, n);
    status = io_file_write(&file, 0, header, sizeof header, e);
    if (status == DELTAFS_OK)
        status = io_file_write(&file, sizeof header, batches, n, e);
    if (status == DELTAFS_OK)
        status = io_file_write(&file, sizeof header + n, trailer, sizeof trailer, e);
    if (status == DELTAFS_OK && sync)
        status = io_file_sync(&file, e);
    return io_file_finish(&file, status, e);
}

int flat_write(const struct container *c, struct io *io, const struct session *s, const void *batches, size_t n,
               int sync, struct error *e)
{
    char aside[PATH_ROOM], path[PATH_ROOM];

    session_path(c, s->number, SESSION_INDEX_NEW, aside);
    session_path(c, s->number, SESSION_INDEX_NAME, path);
    int status = flat_write_aside(c, io, s, aside, batches, n, sync, e);
    if (status == DELTAFS_OK)
        status = io_rename(io, aside, path, e);
    if (status != DELTAFS_OK)
        io->ops->unlink(io->ctx, aside);
    return status == DELTAFS_OK && sync ? io_sync_parent(io, path, e) : status;
}

/* Whether what was read is whole: the trailer says only how much it is. */
static int flat_check(const char *path, const struct container *c, const uint8_t *batches, size_t n, struct error *e)
{
    size_t used;
    int is_last = 0;
    int status =
        extent_batches_decode(batches, n, log_seed(c->uuid), path, LOG_HEADER_SIZE, NULL, NULL, &used, &is_last, e);

    if (status == DELTAFS_OK && used != n)
        status = error_damaged(e, path, LOG_HEADER_SIZE + used, "a batch is incomplete");
    return status;
}

static int flat_read_open(struct io_file *file, const struct container *c, const struct session *s, struct buffer *out,
                          size_t *used, struct error *e)
{
    uint8_t trailer[FLAT_TRAILER_SIZE], want[FLAT_TRAILER_SIZE];
    uint64_t size;
    int status = log_check_header(file, LOG_KIND_FLAT, s->number, c->uuid, e);

    if (status == DELTAFS_OK)
        status = io_file_size(file, &size, e);
    if (status == DELTAFS_OK && size < LOG_HEADER_SIZE + FLAT_TRAILER_SIZE)
        status = error_damaged(e, file->path, size, "the index is incomplete");
    if (status != DELTAFS_OK)
        return status;
    uint64_t n = size - LOG_HEADER_SIZE - FLAT_TRAILER_SIZE;
    size_t before = *used;
    flat_put_trailer(want, c, s, n);
    status = io_file_read(file, size - FLAT_TRAILER_SIZE, trailer, sizeof trailer, e);
    if (status == DELTAFS_OK && memcmp(trailer, want, sizeof want) != 0)
        status =
            error_damaged(e, file->path, size - FLAT_TRAILER_SIZE,
                          "the index does not end as it should; it repeats what the writers' logs have, and 'deltafs "
                          "flatten' makes it again");
    for (uint64_t at = 0; at < n && status == DELTAFS_OK;) {
        size_t part = n - at < FLAT_PIECE ? (size_t)(n - at) : FLAT_PIECE;
        status = buffer_reserve(out, *used + part, "the index of a logical file", e);
        if (status == DELTAFS_OK)
            status = io_file_read(file, LOG_HEADER_SIZE + at, out->bytes + *used, part, e);
        if (status == DELTAFS_OK) {
            *used += part;
            at += part;
        }
    }
    return status == DELTAFS_OK ? flat_check(file->path, c, out->bytes + before, n, e) : status;
}

int flat_read(const struct container *c, struct io *io, const struct session *s, struct buffer *out, size_t *used,
              struct error *e)
{
    struct io_file file;
    char path[PATH_ROOM];
    int status = io_file_open(io, session_path(c, s->number, SESSION_INDEX_NAME, path), O_RDONLY, &file, e);

    return status == DELTAFS_OK ? io_file_finish(&file, flat_read_open(&file, c, s, out, used, e), e) : status;
}
