#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/logical.h"
#include "store/flat.h"
#include "store/log.h"
#include "store/store_format.h"

#define VERIFY_PIECE (1u << 20) /* bytes read at once; where these are damaged, frame by frame */

const char *deltafs_logical_errmsg(const deltafs_logical *f)
{
    return f ? f->error.text : deltafs_thread_error()->text;
}

/* In atomic mode others' writes count as soon as they have returned. */
int deltafs_logical_size(deltafs_logical *f, uint64_t *size)
{
    int status = f->is_atomic ? logical_seal(f, 0, &f->error) : DELTAFS_OK;

    if (status == DELTAFS_OK && f->is_atomic)
        status = logical_learn_alone(f, &f->error);
    if (status == DELTAFS_OK)
        *size = f->size;
    return status;
}

int deltafs_logical_io_stat(const deltafs_logical *f, struct deltafs_io_stat *out)
{
    io_stat(&f->io, out);
    return DELTAFS_OK;
}

/* ---- What there is ---- */

/* Adds the bytes of the file at `path`, which it frees; one that is not there has none. */
static int ask_add_size(deltafs_logical *f, char *path, uint64_t *bytes, struct error *e)
{
    struct io_file file;
    struct error second;
    uint64_t size = 0;
    int status = path ? io_file_open(&f->io, path, O_RDONLY, &file, e) : error_no_memory(e, 1, "a path");

    free(path);
    if (status == DELTAFS_ERR_NOT_FOUND)
        return DELTAFS_OK;
    if (status != DELTAFS_OK)
        return status;
    status = io_file_size(&file, &size, e);
    int closed = io_file_close(&file, status == DELTAFS_OK ? e : &second);
    *bytes += size;
    return status != DELTAFS_OK ? status : closed;
}

static int ask_session_size(deltafs_logical *f, const struct session *s, uint64_t *bytes, struct error *e)
{
    uint32_t *writer = NULL;
    size_t n = 0;
    int status = session_logs(&f->container, &f->io, s, LOG_KIND_EXTENTS, &writer, &n, e);

    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        status = ask_add_size(f, session_log_path(&f->container, s, writer[i], LOG_KIND_FRAMES), bytes, e);
        if (status == DELTAFS_OK)
            status = ask_add_size(f, session_log_path(&f->container, s, writer[i], LOG_KIND_EXTENTS), bytes, e);
    }
    free(writer);
    if (status == DELTAFS_OK)
        status = ask_add_size(f, session_path(&f->container, s->number, SESSION_NAME), bytes, e);
    return status == DELTAFS_OK && s->has_index
               ? ask_add_size(f, session_path(&f->container, s->number, SESSION_INDEX_NAME), bytes, e)
               : status;
}

int deltafs_logical_stat(deltafs_logical *f, struct deltafs_logical_stat *out)
{
    struct deltafs_logical_stat stat = {
        .size = f->size, .extents = extent_map_count(&f->map), .uuid = f->container.uuid_text, .is_closed = 1};
    int status = ask_add_size(f, io_path(f->container.path, MANIFEST_NAME), &stat.bytes_stored, &f->error);

    for (size_t i = 0; i < f->known_count && status == DELTAFS_OK; i++) {
        const struct session *s = &f->known[i];
        if (f->has_session && s->number == f->session.number)
            continue;
        stat.sessions++;
        stat.writers += s->logs;
        stat.is_flat += s->is_closed && s->has_index;
        stat.is_closed &= s->is_closed;
        status = ask_session_size(f, s, &stat.bytes_stored, &f->error);
    }
    if (status == DELTAFS_OK && f->has_session) {
        stat.sessions++;
        stat.writers += (uint64_t)f->has_logs;
        stat.is_closed = 0;
        status = ask_session_size(f, &f->session, &stat.bytes_stored, &f->error);
    }
    if (status == DELTAFS_OK)
        *out = stat;
    return status;
}

/* ---- Verifying ---- */

struct verification {
    deltafs_logical *file;
    deltafs_damage_fn fn;
    void *arg;
    uint64_t bytes, end;
    uint8_t *piece;
    struct error first;
};

static void verify_report(struct verification *v, const struct error *e)
{
    if (v->first.status == DELTAFS_OK)
        v->first = *e;
    if (v->fn)
        v->fn(e->status, e->text, v->arg);
}

static int verify_extent(const struct extent *x, void *arg, struct error *e)
{
    struct verification *v = arg;

    (void)e;
    if (x->kind == EXTENT_DATA && extent_position_end(x) > v->end)
        v->end = extent_position_end(x);
    return DELTAFS_OK;
}

/* The bytes that a writer's extents speak of. */
static void verify_data(struct verification *v, const struct session *s, uint32_t writer)
{
    deltafs_logical *f = v->file;
    struct frame_reader reader;
    struct error e = {0};
    char *path = session_log_path(&f->container, s, writer, LOG_KIND_FRAMES);
    int status = path ? frame_reader_open(&reader, &f->io, path, s->number, writer, f->container.uuid, &f->cache, &e)
                      : error_no_memory(&e, 1, "a path");

    free(path);
    if (status != DELTAFS_OK) {
        verify_report(v, &e);
        return;
    }
    for (uint64_t at = 0, n; at < v->end; at += n) {
        n = v->end - at < VERIFY_PIECE ? v->end - at : VERIFY_PIECE;
        if (frame_reader_read(&reader, at, v->piece, n, &e) == DELTAFS_OK) {
            v->bytes += n;
            continue;
        }
        n = n < FRAME_SIZE ? n : FRAME_SIZE;
        if (frame_reader_read(&reader, at, v->piece, n, &e) == DELTAFS_OK)
            v->bytes += n;
        else
            verify_report(v, &e);
    }
    if (frame_reader_close(&reader, &e) != DELTAFS_OK)
        verify_report(v, &e);
}

static void verify_writer(struct verification *v, const struct session *s, uint32_t writer)
{
    deltafs_logical *f = v->file;
    struct bytes batches = {{0}, 0};
    struct error e = {0};
    uint64_t from = 0;
    size_t used;
    int is_last = 0;
    char *path = session_log_path(&f->container, s, writer, LOG_KIND_EXTENTS);
    int status = path ? extent_log_read(&f->io, path, s->number, writer, f->container.uuid, s->is_closed, &from,
                                        &is_last, &batches.buffer, &batches.used, &e)
                      : error_no_memory(&e, 1, "a path");

    v->end = 0;
    if (status == DELTAFS_OK)
        status = extent_batches_decode(batches.buffer.bytes, batches.used, log_seed(f->container.uuid), path, 0,
                                       verify_extent, v, &used, &is_last, &e);
    if (status != DELTAFS_OK)
        verify_report(v, &e);
    else if (v->end > 0)
        verify_data(v, s, writer);
    v->bytes += from;
    buffer_fini(&batches.buffer);
    free(path);
}

static void verify_session(struct verification *v, const struct session *s)
{
    deltafs_logical *f = v->file;
    struct bytes index = {{0}, 0};
    struct error e = {0};
    uint32_t *writer = NULL;
    size_t n = 0;

    if (session_logs(&f->container, &f->io, s, LOG_KIND_EXTENTS, &writer, &n, &e) != DELTAFS_OK)
        verify_report(v, &e);
    for (size_t i = 0; i < n; i++)
        verify_writer(v, s, writer[i]);
    free(writer);
    if (s->has_index && flat_read(&f->container, &f->io, s, &index.buffer, &index.used, &e) != DELTAFS_OK)
        verify_report(v, &e);
    v->bytes += index.used;
    buffer_fini(&index.buffer);
}

int deltafs_logical_verify(deltafs_logical *f, deltafs_damage_fn fn, void *arg, uint64_t *bytes)
{
    struct verification v = {.file = f, .fn = fn, .arg = arg};

    if (f->mode == O_WRONLY)
        return error_set(&f->error, DELTAFS_ERR_MODE, "%s: deltafs_logical_verify: the file is open for writing only",
                         f->container.path);
    v.piece = malloc(VERIFY_PIECE);
    if (!v.piece)
        return error_no_memory(&f->error, VERIFY_PIECE, "reading a file");
    for (size_t i = 0; i < f->known_count; i++)
        verify_session(&v, &f->known[i]);
    free(v.piece);
    if (bytes)
        *bytes = v.bytes;
    if (v.first.status != DELTAFS_OK)
        f->error = v.first;
    return v.first.status;
}

/* ---- Files as a whole ---- */

int deltafs_logical_remove(const char *path)
{
    struct io io = io_default();
    struct error *e = deltafs_thread_error();

    return path ? container_remove(&io, path, e)
                : error_set(e, DELTAFS_ERR_INVALID, "deltafs_logical_remove: path must be given");
}

int deltafs_kind(const char *path, char *kind)
{
    struct io io = io_default();
    struct error *e = deltafs_thread_error();

    return path && kind ? container_kind(&io, path, kind, e)
                        : error_set(e, DELTAFS_ERR_INVALID, "deltafs_kind: path and kind must be given");
}

/* All batches of a closed session into one file. */
static int flatten_session(const struct container *c, struct io *io, const struct session *s, struct error *e)
{
    struct bytes all = {{0}, 0};
    uint32_t *writer = NULL;
    size_t n = 0;
    int status = session_logs(c, io, s, LOG_KIND_EXTENTS, &writer, &n, e);

    if (status == DELTAFS_OK && n != s->logs)
        status = error_set(e, DELTAFS_ERR_DAMAGED,
                           "%s: session %" PRIu32 " was closed with %" PRIu32 " writers' logs, and has %zu", c->path,
                           s->number, s->logs, n);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        char *path = session_log_path(c, s, writer[i], LOG_KIND_EXTENTS);
        uint64_t from = 0;
        int is_last = 0;
        status = path ? extent_log_read(io, path, s->number, writer[i], c->uuid, 1, &from, &is_last, &all.buffer,
                                        &all.used, e)
                      : error_no_memory(e, 1, "a path");
        free(path);
    }
    if (status == DELTAFS_OK)
        status = flat_write(c, io, s, all.buffer.bytes, all.used, 1, e);
    free(writer);
    buffer_fini(&all.buffer);
    return status;
}

int deltafs_logical_flatten(const char *path)
{
    struct io io = io_default();
    struct error *e = deltafs_thread_error();
    struct container c;
    struct session *session = NULL;
    size_t n = 0;
    int is_new;

    if (!path)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_logical_flatten: path must be given");
    int status = container_open(&c, &io, path, 0, 0, &is_new, e);
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
