#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "logical/format/logical_format.h"
#include "logical/logical.h"
#include "io/log.h"

#define BUFFER_MAX   (UINT64_C(4) << 20) /* bytes of a data log's buffer */
#define LIST_MAX     4096                /* extents that may still grow; a batch has no more */
#define PUBLISH_SOON (UINT64_C(1) << 20) /* bytes of extents after which they are published, */
#define PUBLISH_PART 16                  /* or this part of the memory, which is to have room for more */
#define ALIGN_MIN    (64u << 10)         /* bytes; longer writes are aligned within their frames */

/* ---- The session and its logs ---- */

int logical_discard_session(deltafs_logical *f, struct error *e)
{
    int status =
        container_record(&f->container, &f->io, RECORD_REMOVED, &f->session.number, 1, f->sync != SYNC_NONE, e);

    return status == DELTAFS_OK ? session_remove(&f->container, &f->io, f->session.number, 0, e) : status;
}

int logical_create_session(deltafs_logical *f, struct error *e)
{
    struct bytes message = {{0}, 0};
    int is_created = 0;

    e->status = DELTAFS_OK;
    if (f->group.rank == 0)
        e->status = container_check(&f->container, &f->io, e);
    if (e->status == DELTAFS_OK && f->group.rank == 0) {
        e->status = session_create(&f->container, &f->io, f->group.ranks, f->order, f->volumes, f->sync != SYNC_NONE,
                                   &f->session, e);
        is_created = e->status == DELTAFS_OK;
    }
    if (is_created)
        bytes_append(&message, &f->session, sizeof f->session, e);
    int status = collective_broadcast(&f->group, &message, e);
    if (status == DELTAFS_OK && message.used == sizeof f->session)
        memcpy(&f->session, message.buffer.bytes, sizeof f->session);
    buffer_fini(&message.buffer);
    if (status == DELTAFS_OK)
        status = collective_agree(&f->group, e);
    if (status != DELTAFS_OK && is_created)
        logical_discard_session(f, error_ignored());
    f->has_session = status == DELTAFS_OK;
    f->is_durable = 0;
    return status;
}

static int logical_make_logs(deltafs_logical *f, struct error *e)
{
    char data[PATH_ROOM], extents[PATH_ROOM];
    size_t capacity = (size_t)(f->memory_limit / 4 < BUFFER_MAX ? f->memory_limit / 4 : BUFFER_MAX);

    if (f->has_logs)
        return DELTAFS_OK;
    int status = f->has_session ? container_check(&f->container, &f->io, e) : logical_refresh(f, e);
    /* A process alone creates its session at its first write. Whatever others did since it opened the file, truncation
     * included, is ordered before that write. */
    if (status == DELTAFS_OK && !f->has_session) {
        f->size = extent_map_size(&f->map);
        status = logical_create_session(f, e);
    }
    if (status != DELTAFS_OK)
        return status;
    session_log_path(&f->container, &f->session, f->group.rank, LOG_KIND_FRAMES, data);
    session_log_path(&f->container, &f->session, f->group.rank, LOG_KIND_EXTENTS, extents);
    status = frame_log_create(&f->data, &f->io, data, f->session.number, f->group.rank, f->container.uuid, capacity,
                              &f->memory, e);
    if (status != DELTAFS_OK)
        return status;
    status = extent_log_create(&f->extents, &f->io, extents, f->group.rank, f->container.uuid, e);
    if (status != DELTAFS_OK) {
        frame_log_close(&f->data, error_ignored());
        extent_log_close(&f->extents, error_ignored());
        f->io.ops->unlink(f->io.ctx, extents);
        f->io.ops->unlink(f->io.ctx, data);
        return status;
    }
    if (logical_can_read(f))
        frame_log_use_cache(&f->data, &f->cache);
    f->has_logs = 1;
    return DELTAFS_OK;
}

/* ---- Publishing ---- */

int logical_seal(deltafs_logical *f, int is_last, struct error *e)
{
    size_t before = f->unpublished.used;

    if (!f->has_logs || (f->list.count == 0 && !is_last))
        return DELTAFS_OK;
    int status = extent_list_encode(&f->list, log_seed(f->container.uuid), f->session.number, f->group.rank, f->order,
                                    frame_log_end(&f->data), is_last, &f->unpublished.buffer, &f->unpublished.used, e);
    /* After the last batch nothing is read. Adding an entry to the map twice is harmless. */
    for (size_t i = 0; i < f->list.count && logical_can_read(f) && !is_last && status == DELTAFS_OK; i++) {
        struct extent x = f->list.extent[i];
        x.order = f->order;
        x.session = f->session.number;
        x.writer = f->group.rank;
        status = extent_map_add(&f->map, &x, e);
    }
    if (status == DELTAFS_OK)
        extent_list_clear(&f->list);
    else
        f->unpublished.used = before;
    return status;
}

/* Data that storage may have lost cannot be written again. No later write counts as durable. */
static int logical_lose(deltafs_logical *f, const struct error *e)
{
    f->lost = *e;
    return e->status;
}

static int logical_check_lost(const deltafs_logical *f, struct error *e)
{
    if (f->lost.status != DELTAFS_OK)
        *e = f->lost;
    return f->lost.status;
}

/* A failed write (a full disk) can be repeated; a failed sync cannot. */
static int logical_flush(deltafs_logical *f, int sync, int is_last, struct error *e)
{
    int status = is_last ? frame_log_finish(&f->data, sync, e) : frame_log_flush(&f->data, sync, e);

    if (status == DELTAFS_OK)
        status = extent_log_append(&f->extents, f->unpublished.buffer.bytes, f->unpublished.used, sync, e);
    if (f->data.is_lost || f->extents.is_lost)
        return logical_lose(f, e);
    if (status != DELTAFS_OK || !sync || f->is_named)
        return status;
    if (session_sync_folder(&f->container, &f->io, &f->session, f->group.rank, e) != DELTAFS_OK)
        return logical_lose(f, e);
    f->is_named = 1;
    return DELTAFS_OK;
}

/* Make the file, and its session if it has one, durable once, when the caller asks for it. */
static int logical_sync_session(deltafs_logical *f, struct error *e)
{
    if (f->group.rank != 0 || f->is_durable)
        return DELTAFS_OK;
    int status = f->has_session ? session_sync(&f->container, &f->io, &f->session, f->volumes, e)
                                : container_sync(&f->container, &f->io, e);
    f->is_durable = status == DELTAFS_OK;
    return status == DELTAFS_OK ? status : logical_lose(f, e);
}

int logical_publish(deltafs_logical *f, int sync, int is_last, struct error *e)
{
    /* Within the group. In atomic mode the others read the logs; the last batch is not exchanged. */
    int is_exchanged = !logical_is_alone(f) && logical_can_read(f) && !f->is_atomic && !is_last;
    int status = logical_check_lost(f, e);

    if (status == DELTAFS_OK)
        status = logical_seal(f, is_last, e);
    if (status == DELTAFS_OK && sync)
        status = logical_sync_session(f, e);
    if (status != DELTAFS_OK || !f->has_logs)
        return status;
    /* Reserve before writing to the log: a retry must not log the batch twice. */
    if (is_exchanged)
        status =
            buffer_reserve(&f->batches.buffer, f->batches.used + f->unpublished.used, "the index of a logical file", e);
    if (status == DELTAFS_OK)
        status = logical_flush(f, sync, is_last, e);
    if (status == DELTAFS_OK && is_exchanged)
        status = bytes_append(&f->batches, f->unpublished.buffer.bytes, f->unpublished.used, e);
    if (status == DELTAFS_OK)
        f->unpublished.used = 0;
    if (status == DELTAFS_OK && sync)
        f->is_unsynced = 0;
    return status;
}

/* Rank 0: if the file was deleted meanwhile, its path may name another file. That error hides any other. */
static void logical_check_there(deltafs_logical *f, struct error *e)
{
    struct error gone;
    int status = f->group.rank == 0 ? container_check(&f->container, &f->io, &gone) : DELTAFS_OK;

    if (status == DELTAFS_ERR_NOT_FOUND || (status != DELTAFS_OK && e->status == DELTAFS_OK))
        *e = gone;
}

static int logical_sync_all(deltafs_logical *f, int sync, struct error *e)
{
    e->status = DELTAFS_OK;
    if (f->mode != O_RDONLY) {
        e->status = logical_publish(f, sync, 0, e);
        logical_check_there(f, e);
    }
    int status = collective_agree(&f->group, e);
    if (status != DELTAFS_OK || !f->is_atomic)
        return status == DELTAFS_OK ? logical_refresh(f, e) : status;
    e->status = logical_refresh_alone(f, e);
    return collective_agree(&f->group, e);
}

int deltafs_logical_sync(deltafs_logical *f)
{
    return logical_sync_all(f, f->sync != SYNC_NONE, deltafs_private_thread_error());
}

/* Exchange what the ranks have published since the last exchange. */
static int logical_exchange_published(deltafs_logical *f, struct error *e)
{
    struct bytes all = {{0}, 0};
    int status = collective_gather(&f->group, f->batches.buffer.bytes, f->batches.used, &all, e);

    if (status == DELTAFS_OK) {
        e->status = logical_add_batches(f, &all, e);
        status = collective_agree(&f->group, e);
    }
    buffer_fini(&all.buffer);
    if (status == DELTAFS_OK)
        f->batches.used = 0;
    return status;
}

/* Collective: exchange what was written so far, if the ranks may read, and order later writes after all earlier ones of
 * any rank. */
int deltafs_logical_exchange(deltafs_logical *f)
{
    struct error *e = deltafs_private_thread_error(), own = {.status = DELTAFS_OK};
    int is_shown = logical_can_read(f), has_new = f->list.count > 0 || f->unpublished.used > 0 || f->batches.used > 0;

    if (logical_is_alone(f) || f->is_atomic || f->mode == O_RDONLY)
        return DELTAFS_OK;
    uint64_t most[3] = {f->order, (uint64_t)has_new, logical_seal(f, 0, &own) != DELTAFS_OK};
    int status = collective_max(&f->group, most, 3, e);
    if (status != DELTAFS_OK || (is_shown && !most[1]))
        return status;
    *e = own;
    if (is_shown && !most[2])
        e->status = logical_publish(f, 0, 0, e);
    if (is_shown || most[2])
        status = collective_agree(&f->group, e);
    if (status == DELTAFS_OK && is_shown)
        status = logical_exchange_published(f, e);
    if (status != DELTAFS_OK)
        return status;
    f->order = most[0] + 1;
    if (is_shown)
        logical_find_size(f);
    return DELTAFS_OK;
}

/* ---- Writing ---- */

static int logical_may_write(deltafs_logical *f, const char *call, struct error *e)
{
    return f->mode == O_RDONLY
               ? error_set(e, DELTAFS_ERR_MODE, "%s: %s: the file is open for reading only", f->container.path, call)
               : DELTAFS_OK;
}

static int logical_add(deltafs_logical *f, uint64_t offset, const uint8_t *bytes, size_t size, struct error *e)
{
    uint64_t position = frame_log_end(&f->data);
    int status = frame_log_append(&f->data, bytes, size, e);

    f->is_unsynced = 1;
    if (status == DELTAFS_OK)
        status = extent_list_add(&f->list, offset, size, position, e);
    if (status == DELTAFS_OK && offset + size > f->size)
        f->size = offset + size;
    if (status == DELTAFS_OK && f->captured)
        captured_keys_take(f->captured, offset, bytes, size, position);
    return status == DELTAFS_OK && f->list.count >= LIST_MAX ? logical_seal(f, 0, e) : status;
}

/* Start a long write at the same offset within a frame as it has within a page of the file: a read of whole pages then
 * reads the same number of frames. Some processors also copy at half speed between buffers whose alignment differs by
 * a few bytes. */
static int logical_place(deltafs_logical *f, uint64_t offset, size_t size, struct error *e)
{
    static const uint8_t zeros[FRAME_SIZE];

    if (size < ALIGN_MIN || f->list.count > 0 || frame_log_end(&f->data) % FRAME_SIZE != 0)
        return DELTAFS_OK;
    return frame_log_append(&f->data, zeros, offset % FRAME_SIZE, e);
}

/* If the process has written through another handle meanwhile, the next write of this one is ordered after that. The
 * ranks of a session that are threads of one process write without an order among themselves. */
static int logical_take_turn(deltafs_logical *f, struct error *e)
{
    struct write_order *w = f->turn;
    uint64_t session = f->has_session ? f->session.number : WRITE_ORDER_NONE;
    int status = DELTAFS_OK;

    write_order_lock();
    uint64_t before = w->session == session && f->has_session ? w->before : w->order;
    if (f->order <= before) {
        status = logical_seal(f, 0, e);
        f->order = status == DELTAFS_OK ? before + 1 : f->order;
    }
    if (status == DELTAFS_OK) {
        w->before = before;
        w->session = session;
        w->order = f->order > w->order ? f->order : w->order;
    }
    write_order_unlock();
    return status;
}

static int logical_write_pieces(deltafs_logical *f, size_t n, const struct deltafs_extent *extent, const uint8_t *bytes,
                                struct error *e)
{
    int status = logical_make_logs(f, e);

    if (status == DELTAFS_OK)
        status = logical_take_turn(f, e);
    if (status == DELTAFS_OK && n > 0)
        status = logical_place(f, extent->offset, extent->size, e);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        if (extent[i].size > 0)
            status = logical_add(f, extent[i].offset, bytes, extent[i].size, e);
        bytes += extent[i].size;
    }
    uint64_t soon = f->memory_limit / PUBLISH_PART;
    if (status == DELTAFS_OK && f->unpublished.used >= (soon < PUBLISH_SOON ? soon : PUBLISH_SOON))
        status = logical_publish(f, 0, 0, e);
    return status;
}

/* ---- Atomic mode ---- */

/* In atomic mode one write runs at a time. It is ordered after all writes that ended before it, and every process sees
 * it once it returns. */
static int logical_write_atomic(deltafs_logical *f, size_t n, const struct deltafs_extent *extent, const uint8_t *bytes,
                                struct error *e)
{
    int status = logical_lock(f, 0, e);

    if (status != DELTAFS_OK)
        return status;
    status = logical_refresh_alone(f, e);
    if (status == DELTAFS_OK)
        status = logical_write_pieces(f, n, extent, bytes, e);
    if (status == DELTAFS_OK)
        status = logical_publish(f, 0, 0, e);
    /* On a client-cached file system, others see a write only once the server has it. */
    if (status == DELTAFS_OK &&
        (io_file_refresh(&f->data.file, e) != DELTAFS_OK || io_file_refresh(&f->extents.file, e) != DELTAFS_OK))
        status = logical_lose(f, e);
    logical_unlock(f);
    return status;
}

/* ---- Public functions ---- */

int deltafs_logical_write_list(deltafs_logical *f, size_t n, const struct deltafs_extent *extent, const void *bytes)
{
    struct error *e = deltafs_private_thread_error();
    int status = logical_may_write(f, "deltafs_logical_write", e), has_bytes = 0;

    if (status == DELTAFS_OK)
        status = logical_check_lost(f, e);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        has_bytes |= extent[i].size > 0;
        if (extent[i].size > INT64_MAX || extent[i].offset > INT64_MAX - extent[i].size)
            status = error_set(e, DELTAFS_ERR_INVALID,
                               "%s: %" PRIu64 " bytes at offset %" PRIu64 " are beyond the greatest size of a file",
                               f->container.path, extent[i].size, extent[i].offset);
    }
    /* An empty write creates no logs. */
    if (status != DELTAFS_OK || !has_bytes)
        return status;
    return f->is_atomic ? logical_write_atomic(f, n, extent, bytes, e) : logical_write_pieces(f, n, extent, bytes, e);
}

int deltafs_logical_write(deltafs_logical *f, uint64_t offset, const void *bytes, size_t size)
{
    const struct deltafs_extent extent = {offset, size};

    return deltafs_logical_write_list(f, 1, &extent, bytes);
}

/* ---- The file's size ---- */

/* Rank 0 logs the new size at once: a late truncation would remove later writes. A truncation to zero is durable before
 * the old sessions are removed. The other ranks apply the new size without reading the log. So does rank 0 of a
 * write-only file, whose map holds the earlier extents only. */
static int logical_note_size(deltafs_logical *f, enum extent_kind kind, uint64_t size, struct error *e)
{
    int status = DELTAFS_OK;

    if (f->group.rank == 0) {
        status = f->has_logs ? container_check(&f->container, &f->io, e) : logical_make_logs(f, e);
        f->is_unsynced = 1;
        if (status == DELTAFS_OK)
            status = extent_list_mark(&f->list, kind, size, frame_log_end(&f->data), e);
        if (status == DELTAFS_OK)
            status = logical_publish(f, size == 0 && f->sync != SYNC_NONE, 0, e);
    }
    if (status != DELTAFS_OK || (f->group.rank == 0 && logical_can_read(f)))
        return status;
    const struct extent x = {.kind = kind, .offset = size, .count = 1, .order = f->order, .session = f->session.number};
    return extent_map_add(&f->map, &x, e);
}

static int logical_change_size(deltafs_logical *f, enum extent_kind kind, uint64_t size, struct error *e)
{
    logical_take_turn(f, e); /* all writes are sealed: it cannot fail */
    uint64_t order = f->order;
    int status = collective_max(&f->group, &order, 1, e);

    if (status != DELTAFS_OK)
        return status;
    f->order = order + 1;
    e->status = logical_note_size(f, kind, size, e);
    status = collective_agree(&f->group, e);
    f->order++;
    if (status == DELTAFS_OK)
        status = logical_take_turn(f, e);
    if (status == DELTAFS_OK && (kind == EXTENT_TRUNCATE || size > f->size))
        f->size = size;
    return status;
}

/* In atomic mode rank 0 changes the size like a write. The other ranks take part and need no lock. */
static int logical_set_size(deltafs_logical *f, enum extent_kind kind, uint64_t size, struct error *e)
{
    int is_locked = 0;

    e->status = logical_check_lost(f, e);
    if (e->status == DELTAFS_OK)
        e->status = size > EXTENT_MAX ? error_set(e, DELTAFS_ERR_INVALID, "%s: no file is %" PRIu64 " bytes long",
                                                  f->container.path, size)
                                      : logical_seal(f, 0, e);
    int status = collective_agree(&f->group, e);
    if (status == DELTAFS_OK && f->is_atomic) {
        if (f->group.rank == 0)
            e->status = logical_lock(f, 0, e);
        is_locked = f->group.rank == 0 && e->status == DELTAFS_OK;
        if (is_locked)
            e->status = logical_refresh_alone(f, e);
        status = collective_agree(&f->group, e);
    }
    if (status == DELTAFS_OK)
        status = logical_change_size(f, kind, size, e);
    if (is_locked)
        logical_unlock(f);
    return status;
}

/* Remove what interrupted removals have left below this session. */
static void logical_remove_remains(deltafs_logical *f)
{
    uint32_t *number = NULL;
    size_t n = 0;

    session_numbers(&f->container, &f->io, &number, &n, error_ignored());
    for (size_t i = 0; i < n && number[i] < f->session.number; i++)
        session_remove_remains(&f->container, &f->io, number[i], f->sync != SYNC_NONE, error_ignored());
    free(number);
}

/* Rank 0 removes the known sessions from `kept` on, if it can record that. What it cannot remove goes with a later
 * truncation. */
static void logical_remove_known(deltafs_logical *f, size_t kept)
{
    size_t n = f->known_count - kept;
    uint32_t *number = malloc((n + 1) * sizeof *number);
    int sync = f->sync != SYNC_NONE;

    for (size_t i = 0; i < n && number; i++)
        number[i] = f->known[kept + i].number;
    if (number && container_record(&f->container, &f->io, RECORD_REMOVED, number, n, 1, error_ignored()) == DELTAFS_OK)
        for (size_t i = 0; i < n; i++)
            session_remove(&f->container, &f->io, number[i], sync, error_ignored());
    free(number);
    logical_remove_remains(f);
}

/* The file was truncated to zero, and this session's log says so: remove the closed sessions below it, of which nothing
 * is visible any more. */
static void logical_remove_old_sessions(deltafs_logical *f)
{
    size_t kept = 0;

    /* A reader keeps the old bytes of logs that it has open, as with any file. Sessions numbered above this one stay
     * until a later truncation, so that numbers never go back: other processes may remember them as closed. */
    for (size_t i = 0; i < f->known_count; i++)
        if (!f->known[i].is_closed || f->known[i].number > f->session.number) {
            struct session s = f->known[kept];
            f->known[kept++] = f->known[i];
            f->known[i] = s;
        }
    if (f->group.rank == 0)
        logical_remove_known(f, kept);
    f->known_count = kept;
}

int logical_truncate(deltafs_logical *f, uint64_t size, struct error *e)
{
    int status = logical_set_size(f, EXTENT_TRUNCATE, size, e);

    if (status == DELTAFS_OK && size == 0)
        logical_remove_old_sessions(f);
    return status;
}

int deltafs_logical_truncate(deltafs_logical *f, uint64_t size)
{
    int status = logical_may_write(f, "deltafs_logical_truncate", deltafs_private_thread_error());

    return status == DELTAFS_OK ? logical_truncate(f, size, deltafs_private_thread_error()) : status;
}

int deltafs_logical_extend(deltafs_logical *f, uint64_t size)
{
    int status = logical_may_write(f, "deltafs_logical_extend", deltafs_private_thread_error());

    return status == DELTAFS_OK ? logical_set_size(f, EXTENT_EXTEND, size, deltafs_private_thread_error()) : status;
}

int deltafs_logical_set_atomic(deltafs_logical *f, int is_atomic)
{
    struct error *e = deltafs_private_thread_error();
    int status = logical_sync_all(f, 0, e);

    if (status != DELTAFS_OK)
        return status;
    e->status = is_atomic ? logical_lock(f, f->mode == O_RDONLY, e) : DELTAFS_OK; /* can files be locked here? */
    if (is_atomic && e->status == DELTAFS_OK)
        logical_unlock(f);
    if (f->mode == O_RDONLY && e->status == DELTAFS_ERR_NOT_FOUND)
        e->status = DELTAFS_OK;
    status = collective_agree(&f->group, e);
    if (status != DELTAFS_OK)
        return status;
    int is_end = f->is_atomic && !is_atomic && !logical_is_alone(f);
    f->is_atomic = is_atomic;
    if (!is_end)
        return DELTAFS_OK;
    logical_refresh_again(f);
    return logical_refresh(f, e);
}
