#include <fcntl.h>
#include <stdlib.h>
#include "base/sized.h"
#include "logical/format/logical_format.h"
#include "logical/format/names.h"
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

struct stat_folder {
    deltafs_logical *f;
    const char *path;
    enum name kind;
    uint64_t *bytes;
    int *is_away; /* a bucket is a link to a volume that is missing */
};

/* Add the stored bytes of a file, or of the files in a folder; nothing if others have removed it meanwhile. Of the
 * files that cannot be opened, the logs alone matter: what else reading needs, opening the file has read. */
static int stat_name(void *arg, const char *text, struct error *e)
{
    const struct stat_folder *in = arg;
    struct io_file file;
    char path[PATH_ROOM], target[PATH_MAX];
    uint32_t number;
    struct io_attributes a;
    const struct stat_folder folder = {in->f, path, name_of(in->kind, text, &number), in->bytes, in->is_away};
    int status;

    io_path_in(path, in->path, "%s", text);
    if (folder.kind == NAME_SESSION || folder.kind == NAME_BUCKET) {
        status = io_list(&in->f->io, path, stat_name, (void *)(uintptr_t)&folder, e);
        if (folder.kind == NAME_BUCKET && status == DELTAFS_ERR_NOT_DELTAFS)
            return DELTAFS_OK; /* a file with such a name: what needs a folder there reports it */
        if (status != DELTAFS_ERR_NOT_FOUND)
            return status;
        *in->is_away |= folder.kind == NAME_BUCKET &&
                        io_readlink(&in->f->io, path, target, sizeof target, error_ignored()) == DELTAFS_OK;
        return *in->is_away ? status : DELTAFS_OK;
    }
    if (folder.kind < NAME_MANIFEST)
        return DELTAFS_OK;
    int is_log = folder.kind == NAME_FRAMES || folder.kind == NAME_EXTENTS;
    status = io_file_open(&in->f->io, path, O_RDONLY, &file, e);
    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND || (!is_log && status != DELTAFS_ERR_MEMORY) ? DELTAFS_OK : status;
    status = io_file_attributes(&file, &a, e);
    if (status == DELTAFS_OK)
        *in->bytes += a.stored < a.size ? a.stored : a.size; /* without the holes */
    return io_file_finish(&file, status, e);
}

int deltafs_logical_stat(deltafs_logical *f, struct deltafs_logical_stat *out)
{
    struct error *e = deltafs_private_thread_error();
    struct deltafs_logical_stat stat = {.size = f->size,
                                        .extents = extent_map_count(&f->map),
                                        .uuid = f->container.uuid_text,
                                        .is_closed = !f->has_session,
                                        .is_incomplete = f->is_cut};
    struct session now;
    int is_away = 0;
    struct stat_folder folder = {f, f->container.path, NAME_CONTAINER, &stat.bytes_stored, &is_away};
    int status = io_list(&f->io, f->container.path, stat_name, &folder, e);

    for (size_t i = 0; i < f->known_count; i++) {
        const struct session *s = &f->known[i];
        int is_own = f->has_session && s->number == f->session.number;
        /* It may have been removed since. */
        if (is_own || session_read(&f->container, &f->io, s->number, &now, error_ignored()) == DELTAFS_ERR_NOT_FOUND)
            continue;
        stat.sessions++;
        stat.writers += s->logs;
        stat.flat_sessions += (uint64_t)s->has_index;
        stat.is_closed &= s->is_closed;
    }
    stat.sessions += (uint64_t)f->has_session;
    stat.writers += (uint64_t)f->has_logs;
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
