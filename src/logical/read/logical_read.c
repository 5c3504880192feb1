#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "logical/format/logical_format.h"
#include "logical/logical.h"

#define OPEN_MAX_LOGS 256                 /* data logs open at once */
#define LOOK_UP_MAX   (UINT64_C(8) << 20) /* bytes of the file in one lookup */

int logical_close_logs(deltafs_logical *f, struct error *e)
{
    int status = DELTAFS_OK;

    for (size_t i = 0; i < f->logs_count; i++)
        if (f->logs[i]->is_open) {
            status = error_first(status, frame_reader_close(&f->logs[i]->reader, error_after(status, e)));
            f->logs[i]->is_open = 0;
        }
    f->logs_open = 0;
    return status;
}

static int logical_open_logs(deltafs_logical *f, struct writer_logs *s, struct error *e)
{
    int is_own = f->has_session && f->session.number == s->session, status = DELTAFS_OK;
    const struct session *session = is_own ? &f->session : logical_known(f, s->session);
    char path[PATH_ROOM];

    if (!session)
        return error_set(e, DELTAFS_ERR_DAMAGED, "%s: extents of session %" PRIu32 ", which does not exist",
                         f->container.path, s->session);
    if (f->logs_open >= OPEN_MAX_LOGS)
        status = logical_close_logs(f, e);
    session_log_path(&f->container, session, s->writer, LOG_KIND_FRAMES, path);
    if (status == DELTAFS_OK)
        status = frame_reader_open(&s->reader, &f->io, path, s->session, s->writer, f->container.uuid, &f->cache, e);
    if (status == DELTAFS_OK) {
        s->is_open = 1;
        f->logs_open++;
    }
    return status;
}

static int logical_read_piece(deltafs_logical *f, const struct piece *p, uint8_t *bytes, struct error *e)
{
    if (p->is_hole) {
        memset(bytes, 0, p->size);
        return DELTAFS_OK;
    }
    if (f->has_logs && p->session == f->session.number && p->writer == f->group.rank)
        return frame_log_read(&f->data, p->position, bytes, p->size, e);
    struct writer_logs *s = logical_writer_logs(f, p->session, p->writer, e);
    int status = s ? DELTAFS_OK : e->status;
    if (status == DELTAFS_OK && !s->is_open)
        status = logical_open_logs(f, s, e);
    return status == DELTAFS_OK ? frame_reader_read(&s->reader, p->position, bytes, p->size, e) : status;
}

/* Read a range that lies inside the file, or behind its end. */
static int logical_read_range(deltafs_logical *f, uint64_t offset, uint8_t *bytes, uint64_t size, struct error *e)
{
    int status = DELTAFS_OK;

    while (size > 0 && status == DELTAFS_OK) {
        uint64_t n = size < LOOK_UP_MAX ? size : LOOK_UP_MAX;
        status = extent_map_find(&f->map, offset, offset + n, &f->pieces, e);
        for (size_t i = 0; i < f->pieces.count && status == DELTAFS_OK; i++)
            status = logical_read_piece(f, &f->pieces.piece[i], bytes + (f->pieces.piece[i].offset - offset), e);
        if (status == DELTAFS_OK) {
            const struct piece *last = &f->pieces.piece[f->pieces.count - 1];
            n = last->offset + last->size - offset;
        }
        offset += n;
        bytes += n;
        size -= n;
    }
    return status;
}

/* Add this process's own writes to the map, and in atomic mode those of others. */
static int logical_begin_read(deltafs_logical *f, const char *call, struct error *e)
{
    if (!logical_can_read(f))
        return error_set(e, DELTAFS_ERR_MODE, "%s: %s: the file is open for writing only", f->container.path, call);
    int status = logical_seal(f, 0, e);
    return status == DELTAFS_OK && f->is_atomic ? logical_refresh_atomic(f, e) : status;
}

int deltafs_logical_read_list(deltafs_logical *f, size_t n, const struct deltafs_extent *extent, void *bytes,
                              size_t *got)
{
    struct error *e = deltafs_private_thread_error();
    int status = logical_begin_read(f, "deltafs_logical_read", e);
    uint8_t *to = bytes;
    size_t last = 0;

    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        uint64_t size = extent[i].size, in_file = 0;
        if (extent[i].offset < f->size)
            in_file = f->size - extent[i].offset < size ? f->size - extent[i].offset : size;
        status = logical_read_range(f, extent[i].offset, to, in_file, e);
        memset(to + in_file, 0, size - in_file);
        if (in_file > 0)
            last = (size_t)(to - (uint8_t *)bytes) + in_file;
        to += size;
    }
    if (status == DELTAFS_OK)
        *got = last;
    return status;
}

int deltafs_logical_read(deltafs_logical *f, uint64_t offset, void *bytes, size_t size, size_t *got)
{
    const struct deltafs_extent extent = {offset, size};

    return deltafs_logical_read_list(f, 1, &extent, bytes, got);
}

/* The window grows over a hole and shrinks behind it, so that dense regions are not looked up as a whole. */
int deltafs_logical_next(deltafs_logical *f, uint64_t offset, uint64_t *start, uint64_t *end)
{
    struct error *e = deltafs_private_thread_error();
    uint64_t window = LOOK_UP_MAX, at = offset;
    int status = logical_begin_read(f, "deltafs_logical_next", e);

    while (status == DELTAFS_OK && at < f->size) {
        uint64_t n = f->size - at < window ? f->size - at : window;
        status = extent_map_find(&f->map, at, at + n, &f->pieces, e);
        if (status != DELTAFS_OK)
            return status;
        const struct piece *p = f->pieces.piece, *last = p + f->pieces.count;
        for (; p < last && p->is_hole; p++)
            at = p->offset + p->size;
        if (p < last) {
            *start = *end = p->offset;
            for (; p < last && !p->is_hole; p++)
                *end = p->offset + p->size;
            return DELTAFS_OK;
        }
        window = window < UINT64_MAX / 2 ? 2 * window : window;
    }
    if (status == DELTAFS_OK)
        *start = *end = f->size;
    return status;
}
