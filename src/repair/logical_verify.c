/* Verifying a logical file: all logs of all sessions, one after another, whatever is wrong with others. The file need
 * not be open for that, nor is what it says used for more than to know what to read. */
#include <fcntl.h>
#include <stdlib.h>
#include "logical/format/logical_format.h"
#include "logical/logical.h"
#include "io/log.h"
#include "repair/repair_parts.h"

#define VERIFY_PIECE (1u << 20) /* bytes read at once; where these are damaged, frame by frame */
#define VERIFY_CACHE (1u << 20)

struct verification {
    const struct container *container;
    struct io *io;
    struct frame_cache cache;
    const struct session *session; /* that is being read; NULL: none */
    struct damages damages;
    uint64_t bytes, end;
    uint8_t *piece;
};

/* What is being removed while it is read is not damaged: the first thing that goes is SESSION. */
static int verify_is_gone(const struct verification *v)
{
    struct session now;

    return v->session &&
           session_read(v->container, v->io, v->session->number, &now, error_ignored()) == DELTAFS_ERR_NOT_FOUND &&
           container_check(v->container, v->io, error_ignored()) == DELTAFS_OK;
}

static void verify_report(struct verification *v, const struct error *e)
{
    if (!verify_is_gone(v))
        damages_add(&v->damages, e);
}

/* The same, of what a closed session should have. */
static void verify_report_missing(struct verification *v, const struct session *s, struct error *e)
{
    if (s->is_closed && !s->is_synced && e->status == DELTAFS_ERR_DAMAGED)
        error_set(e, e->status,
                  "%s; the session was closed without a sync: if a crash has taken it, readers get what is "
                  "left",
                  e->text);
    verify_report(v, e);
}

static int verify_extent(const struct extent *x, void *arg, struct error *e)
{
    struct verification *v = arg;

    (void)e;
    if (x->kind == EXTENT_DATA && extent_position_end(x) > v->end)
        v->end = extent_position_end(x);
    return DELTAFS_OK;
}

/* The bytes that a writer's extents speak of. Where the file ends before that, once is enough said. */
static void verify_frames(struct verification *v, struct frame_reader *r)
{
    struct error e = {0};

    for (uint64_t at = 0, n; at < v->end; at += n) {
        n = v->end - at < VERIFY_PIECE ? v->end - at : VERIFY_PIECE;
        int status = frame_reader_read(r, at, v->piece, n, &e);
        if (status != DELTAFS_OK) {
            n = n < FRAME_SIZE ? n : FRAME_SIZE;
            status = frame_reader_read(r, at, v->piece, n, &e);
        }
        if (status == DELTAFS_OK) {
            v->bytes += n;
            continue;
        }
        verify_report(v, &e);
        if (at >= r->source.end || !frame_reader_has_sums(r, at))
            return;
    }
}

static void verify_data(struct verification *v, const struct session *s, uint32_t writer)
{
    const struct container *c = v->container;
    struct frame_reader reader;
    struct error e = {0};
    char path[PATH_ROOM];

    session_log_path(c, s, writer, LOG_KIND_FRAMES, path);
    int status = frame_reader_open(&reader, v->io, path, s->number, writer, c->uuid, &v->cache, &e);
    if (status != DELTAFS_OK) {
        verify_report(v, &e);
        return;
    }
    verify_frames(v, &reader);
    if (frame_reader_close(&reader, &e) != DELTAFS_OK)
        verify_report(v, &e);
}

/* What a writer has noted; of a session that a crash has cut, what is left of that. */
static int verify_read_extents(struct verification *v, const struct session *s, uint32_t writer, const char *path,
                               struct bytes *out, struct error *e)
{
    const uint8_t *uuid = v->container->uuid;
    uint64_t from = 0;
    int is_last = 0;
    int status = extent_log_read(v->io, path, s->number, writer, uuid, s->is_closed, &from, &is_last, &out->buffer,
                                 &out->used, e);

    if (status == DELTAFS_ERR_DAMAGED && s->is_closed && !s->is_synced) {
        verify_report_missing(v, s, e);
        status = extent_log_read(v->io, path, s->number, writer, uuid, 0, &from, &is_last, &out->buffer, &out->used, e);
        status = status == DELTAFS_ERR_DAMAGED ? DELTAFS_OK : status; /* said already */
    }
    v->bytes += from;
    return status;
}

static void verify_writer(struct verification *v, const struct session *s, uint32_t writer)
{
    const struct container *c = v->container;
    struct bytes batches = {{0}, 0};
    struct error e = {0};
    char path[PATH_ROOM];

    session_log_path(c, s, writer, LOG_KIND_EXTENTS, path);
    int status = verify_read_extents(v, s, writer, path, &batches, &e);
    v->end = 0;
    if (status == DELTAFS_OK)
        status = extent_batches_decode(batches.buffer.bytes, batches.used, log_seed(c->uuid), path, 0, verify_extent, v,
                                       NULL, NULL, &e);
    if (status != DELTAFS_OK)
        verify_report(v, &e);
    else if (v->end > 0)
        verify_data(v, s, writer);
    buffer_fini(&batches.buffer);
}

/* A writer has both logs before it writes bytes. Readers of a session that is not closed take what there is, and so
 * only the bytes show that the extents are missing. They are looked at first, as the writer may just have created its
 * logs. */
static void verify_has_extents(struct verification *v, const struct session *s, uint32_t writer)
{
    struct io_file file;
    struct error e = {0};
    uint64_t size = 0;
    char path[PATH_ROOM];

    session_log_path(v->container, s, writer, LOG_KIND_FRAMES, path);
    if (log_open_read(v->io, path, &file, &size, &e) != DELTAFS_OK)
        verify_report(v, &e);
    io_file_close(&file, error_ignored());
    if (size <= FRAME_SIZE)
        return;
    session_log_path(v->container, s, writer, LOG_KIND_EXTENTS, path);
    if (io_file_open_name(v->io, path, O_RDONLY, &file, &e) == DELTAFS_ERR_NOT_FOUND) {
        error_damaged(&e, path, 0,
                      "the file is missing, so readers ignore the data log beside it; restore a copy (if nothing was "
                      "synced, a power failure can have taken it)");
        verify_report(v, &e);
    }
    io_file_close(&file, error_ignored());
}

static void verify_open_session(struct verification *v, const struct session *s, const uint32_t *writer, size_t n)
{
    struct error e = {0};
    uint32_t *data = NULL;
    size_t count = 0;

    if (session_logs(v->container, v->io, s, LOG_KIND_FRAMES, &data, &count, &e) != DELTAFS_OK)
        verify_report(v, &e);
    for (size_t i = 0; i < count; i++)
        if (!session_is_listed(writer, n, data[i]))
            verify_has_extents(v, s, data[i]);
    free(data);
}

static void verify_session(struct verification *v, const struct session *s)
{
    struct bytes index = {{0}, 0};
    struct error e = {0};
    char path[PATH_ROOM];
    uint32_t *writer = NULL;
    size_t n = 0;

    v->session = s;
    int status = session_logs(v->container, v->io, s, LOG_KIND_EXTENTS, &writer, &n, &e);
    if (status == DELTAFS_OK && s->is_closed)
        status = session_check_logs(v->container, v->io, s, writer, n, &e);
    if (status != DELTAFS_OK)
        verify_report_missing(v, s, &e);
    else if (!s->is_closed)
        verify_open_session(v, s, writer, n);
    for (size_t i = 0; i < n; i++)
        verify_writer(v, s, writer[i]);
    free(writer);
    session_path(v->container, s->number, SESSION_INDEX_NAME, path);
    if (s->has_index &&
        extent_index_read(v->io, path, s->number, v->container->uuid, &index.buffer, &index.used, &e) != DELTAFS_OK)
        verify_report(v, &e);
    else
        v->bytes += index.used;
    buffer_fini(&index.buffer);
    v->session = NULL;
}

/* A session counts from when its SESSION is there on; its logs are made after that, and when it is removed, what is
 * left of it says so. */
static void verify_no_session(struct verification *v, uint32_t number)
{
    struct session unknown;
    struct error e = {0};
    uint32_t *writer = NULL;
    size_t n = 0;
    int is_removed = 0;
    char path[PATH_ROOM];
    int status = session_check_missing(v->container, v->io, number, NULL, &e);

    if (status == DELTAFS_OK)
        status = session_is_removed(v->container, v->io, number, &is_removed, &e);
    if (status == DELTAFS_OK && !is_removed)
        status = session_guess(v->container, v->io, number, &unknown, &writer, &n, &e);
    if (status == DELTAFS_OK && n > 0)
        status = error_damaged(&e, session_path(v->container, number, SESSION_NAME, path), 0,
                               "it is missing, so readers ignore the logs beside it ('deltafs repair' rebuilds it)");
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND)
        verify_report(v, &e);
    free(writer);
}

/* What the manifest records is there, or its SESSION is looked for below: `number` has the sessions' folders. */
static void verify_recorded(struct verification *v, const uint32_t *number, size_t n)
{
    struct container now;
    struct error e = {0};

    if (container_read(v->container, v->io, &now, &e) != DELTAFS_OK)
        verify_report(v, &e);
    for (size_t i = 0; i < now.recorded_count; i++)
        if (!session_is_listed(number, n, now.recorded[i].number))
            verify_no_session(v, now.recorded[i].number);
    container_fini(&now);
}

static void verify_sessions(struct verification *v)
{
    struct error e = {0};
    uint32_t *number = NULL;
    size_t n = 0;

    if (session_numbers(v->container, v->io, &number, &n, &e) != DELTAFS_OK)
        verify_report(v, &e);
    else
        verify_recorded(v, number, n);
    for (size_t i = 0; i < n; i++) {
        struct session s;
        int status = session_read(v->container, v->io, number[i], &s, &e);
        if (status == DELTAFS_OK)
            verify_session(v, &s);
        else if (status != DELTAFS_ERR_NOT_FOUND)
            verify_report(v, &e);
        else
            verify_no_session(v, number[i]);
    }
    free(number);
}

static int verify_container(const struct container *c, struct io *io, deltafs_damage_fn fn, void *arg,
                            struct deltafs_verify_counts *out, const char *call, struct error *e)
{
    struct verification v = {
        .container = c, .io = io, .damages = {.fn = fn, .arg = arg}, .piece = malloc(VERIFY_PIECE)};
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};

    if (!v.piece)
        return error_no_memory(e, VERIFY_PIECE, "reading a file");
    frame_cache_init(&v.cache, VERIFY_CACHE);
    verify_sessions(&v);
    frame_cache_fini(&v.cache);
    free(v.piece);
    counts.bytes = v.bytes;
    return damages_end(&v.damages, &counts, out, call, e);
}

int deltafs_logical_verify(deltafs_logical *f, deltafs_damage_fn fn, void *arg, struct deltafs_verify_counts *out)
{
    return verify_container(&f->container, &f->io, fn, arg, out, "deltafs_logical_verify",
                            deltafs_private_thread_error());
}

int deltafs_logical_verify_path(const char *path, deltafs_damage_fn fn, void *arg, struct deltafs_verify_counts *out)
{
    static const char call[] = "deltafs_logical_verify_path";
    struct deltafs_verify_counts none = {.struct_size = sizeof none};
    struct damages damages = {.fn = fn, .arg = arg};
    struct io io = io_default();
    struct error *e = deltafs_private_thread_error();
    struct container c;

    if (!path)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: path must be given", call);
    int status = container_open(&c, &io, path, O_RDONLY, 0, e);
    if (status == DELTAFS_OK)
        status = verify_container(&c, &io, fn, arg, out, call, e);
    else if (status == DELTAFS_ERR_DAMAGED) {
        damages_add(&damages, e);
        status = damages_end(&damages, &none, out, call, e);
    }
    container_fini(&c);
    return status;
}
