#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/sized.h"
#include "logical/format/logical_format.h"
#include "logical/logical.h"
#include "io/log.h"

/* In atomic mode the size includes every write that has returned. */
int deltafs_logical_size(deltafs_logical *f, uint64_t *size)
{
    int status = f->is_atomic ? logical_seal(f, 0, deltafs_private_thread_error()) : DELTAFS_OK;

    if (status == DELTAFS_OK && f->is_atomic)
        status = logical_refresh_atomic(f, deltafs_private_thread_error());
    if (status == DELTAFS_OK)
        *size = f->size;
    return status;
}

int deltafs_logical_io_stat(const deltafs_logical *f, struct deltafs_io_stat *out)
{
    struct deltafs_io_stat s;

    io_stat(&f->io, &s);
    return sized_fill(out, &s, sizeof s, "deltafs_logical_io_stat", deltafs_private_thread_error());
}

/* ---- Statistics ---- */

/* Add the stored bytes of the file at `path`. */
static int stat_file(deltafs_logical *f, const char *path, int may_lack, uint64_t *bytes, struct error *e)
{
    struct io_file file;
    struct io_attributes a = {0};
    int status = io_file_open(&f->io, path, O_RDONLY, &file, e);

    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND && may_lack ? DELTAFS_OK : status;
    status = io_file_attributes(&file, &a, e);
    *bytes += a.stored < a.size ? a.stored : a.size; /* without the holes */
    return io_file_finish(&file, status, e);
}

static int stat_session_files(deltafs_logical *f, const struct session *s, uint64_t *bytes, struct error *e)
{
    const struct container *c = &f->container;
    char path[PATH_ROOM];
    uint32_t *writer = NULL;
    size_t n = 0;
    int status = stat_file(f, session_path(c, s->number, SESSION_NAME, path), 0, bytes, e);

    if (status == DELTAFS_OK)
        status = session_logs(c, &f->io, s, LOG_KIND_EXTENTS, &writer, &n, e);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        status = stat_file(f, session_log_path(c, s, writer[i], LOG_KIND_FRAMES, path), 1, bytes, e);
        if (status == DELTAFS_OK)
            status = stat_file(f, session_log_path(c, s, writer[i], LOG_KIND_EXTENTS, path), 1, bytes, e);
    }
    free(writer);
    return status == DELTAFS_OK ? stat_file(f, session_path(c, s->number, SESSION_INDEX_NAME, path), 1, bytes, e)
                                : status;
}

/* Add the counts of another session; nothing if it has been removed since. */
static int stat_session(deltafs_logical *f, const struct session *s, struct deltafs_logical_stat *stat, struct error *e)
{
    struct session now;
    struct error own;
    uint64_t bytes = 0;
    int status = stat_session_files(f, s, &bytes, &own);

    if (status == DELTAFS_ERR_NOT_FOUND && session_read(&f->container, &f->io, s->number, &now, e) == status)
        return DELTAFS_OK;
    if (status != DELTAFS_OK) {
        *e = own;
        return status;
    }
    stat->sessions++;
    stat->writers += s->logs;
    stat->flat_sessions += s->is_closed && s->has_index;
    stat->is_closed &= s->is_closed;
    stat->bytes_stored += bytes;
    return DELTAFS_OK;
}

int deltafs_logical_stat(deltafs_logical *f, struct deltafs_logical_stat *out)
{
    struct error *e = deltafs_private_thread_error();
    char path[PATH_ROOM];
    struct deltafs_logical_stat stat = {.size = f->size,
                                        .extents = extent_map_count(&f->map),
                                        .uuid = f->container.uuid_text,
                                        .is_closed = 1,
                                        .is_incomplete = f->is_cut};
    int status = stat_file(f, io_path_in(path, f->container.path, MANIFEST_NAME), 1, &stat.bytes_stored, e);

    for (size_t i = 0; i < f->known_count && status == DELTAFS_OK; i++) {
        const struct session *s = &f->known[i];
        if (!f->has_session || s->number != f->session.number)
            status = stat_session(f, s, &stat, e);
    }
    if (status == DELTAFS_OK && f->has_session) {
        stat.sessions++;
        stat.writers += (uint64_t)f->has_logs;
        stat.is_closed = 0;
        status = stat_session_files(f, &f->session, &stat.bytes_stored, e);
    }
    return status == DELTAFS_OK ? sized_fill(out, &stat, sizeof stat, "deltafs_logical_stat", e) : status;
}

/* ---- Files as a whole ---- */

int deltafs_logical_remove(const char *path)
{
    struct io io = io_default();
    struct error *e = deltafs_private_thread_error();

    return path ? container_remove(&io, path, e)
                : error_set(e, DELTAFS_ERR_INVALID, "deltafs_logical_remove: path must be given");
}

int deltafs_kind(const char *path, char *kind)
{
    struct io io = io_default();
    struct error *e = deltafs_private_thread_error();

    return path && kind ? container_kind(&io, path, kind, e)
                        : error_set(e, DELTAFS_ERR_INVALID, "deltafs_kind: path and kind must be given");
}

/* Write all batches of a closed session into one file. A session that a crash left incomplete stays as it is: opening
 * it reports that. */
static int flatten_session(const struct container *c, struct io *io, const struct session *s, struct error *e)
{
    char path[PATH_ROOM];
    struct bytes all = {{0}, 0};
    uint32_t *writer = NULL;
    size_t n = 0;
    int status = session_logs(c, io, s, LOG_KIND_EXTENTS, &writer, &n, e);

    if (status == DELTAFS_OK)
        status = session_check_logs(c, io, s, writer, n, e);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        uint64_t from = 0;
        int is_last = 0;
        session_log_path(c, s, writer[i], LOG_KIND_EXTENTS, path);
        status =
            extent_log_read(io, path, s->number, writer[i], c->uuid, 1, &from, &is_last, &all.buffer, &all.used, e);
    }
    if (status == DELTAFS_OK)
        status = session_write_index(c, io, s->number, all.buffer.bytes, all.used, 1, e);
    free(writer);
    buffer_fini(&all.buffer);
    return status == DELTAFS_ERR_DAMAGED && !s->is_synced ? DELTAFS_OK : status;
}

int deltafs_logical_flatten(const char *path)
{
    struct io io = io_default();
    struct error *e = deltafs_private_thread_error();
    struct container c;
    struct session *session = NULL;
    size_t n = 0;

    if (!path)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_logical_flatten: path must be given");
    int status = container_open(&c, &io, path, 0, 0, e);
    if (status != DELTAFS_OK)
        return status;
    status = session_list(&c, &io, &session, &n, e);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        if (session[i].is_closed)
            status = flatten_session(&c, &io, &session[i], e);
    free(session);
    container_fini(&c);
    return status;
}
