#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/path.h"
#include "base/thread.h"
#include "io/io_format.h"
#include "logical/logical.h"

#define MEMORY_DEFAULT  (UINT64_C(16) << 20) /* bytes of buffers, where the option memory is auto */
#define PIECES_PART     16                   /* this part of it is for the pieces of one lookup */
#define CAPTURE_DEFAULT (UINT64_C(64) << 20) /* bytes of captured keys, where the option memory is auto */
#define CAPTURE_PART    8                    /* or this part of it, if the file is also read */

/* ---- Opening ---- */

/* Bytes for captured keys. If the file is also read, they reduce the cache. */
static uint64_t logical_capture_limit(const deltafs_logical *f, const deltafs_options *o)
{
    uint64_t memory = deltafs_private_options_number(o, OPTION_MEMORY);

    if (!f->group.ctx || f->mode == O_RDONLY || *deltafs_private_options_text(o, OPTION_KEY) == '\0')
        return 0;
    if (memory == OPTION_AUTO)
        return CAPTURE_DEFAULT;
    return logical_can_read(f) ? memory / CAPTURE_PART : memory / 2;
}

static int logical_configure(deltafs_logical *f, const deltafs_options *o, struct error *e)
{
    uint64_t memory = deltafs_private_options_number(o, OPTION_MEMORY);

    f->memory_limit = memory == OPTION_AUTO ? MEMORY_DEFAULT : memory;
    /* Half is for the cache, a quarter for write buffers; the rest is for the index, which has no limit with auto. */
    f->memory.limit = memory == OPTION_AUTO ? UINT64_MAX : memory - memory / 2;
    f->map.memory = f->pieces.memory = f->list.memory = &f->memory;
    f->unpublished.buffer.memory = f->batches.buffer.memory = &f->memory;
    f->capture_limit = logical_capture_limit(f, o);
    f->cache_limit = logical_can_read(f) ? f->memory_limit / 2 : 0;
    if (memory != OPTION_AUTO && f->cache_limit > 0)
        f->cache_limit -= f->capture_limit;
    f->pieces.limit = (size_t)(f->memory_limit / PIECES_PART / sizeof(struct piece));
    f->sync = (enum option_sync)deltafs_private_options_number(o, OPTION_SYNC);
    f->index = (enum option_extents)deltafs_private_options_number(o, OPTION_EXTENTS);
    f->volumes = strdup(deltafs_private_options_text(o, OPTION_VOLUMES));
    return f->volumes ? DELTAFS_OK : error_no_memory(e, 1, "an option");
}

/* Where the job leaves each process a second processor, that helps to verify checksums. */
static int logical_make_team(deltafs_logical *f, const deltafs_options *o, struct error *e)
{
    uint64_t threads = deltafs_private_options_number(o, OPTION_THREADS);

    if (threads == OPTION_AUTO)
        threads = thread_processors() / 2 >= f->group.job;
    return threads > 0 && logical_can_read(f) ? team_create((uint32_t)threads, &f->team, e) : DELTAFS_OK;
}

/* NULL options mean those of the environment. */
static int logical_options(deltafs_logical *f, const deltafs_options *given, struct error *e)
{
    deltafs_options *o = NULL;
    int status = given ? DELTAFS_OK : deltafs_options_create(&o);

    if (status != DELTAFS_OK) {
        *e = *deltafs_private_thread_error();
        return status;
    }
    status = logical_configure(f, given ? given : o, e);
    if (status == DELTAFS_OK)
        status = logical_make_team(f, given ? given : o, e);
    if (status == DELTAFS_OK && f->mode != O_RDONLY)
        status = write_order_create(&f->turn, e);
    deltafs_options_destroy(o);
    return status;
}

/* Rank 0 creates or opens the container; the other ranks get its UUID at the first refresh. *e may be an error already.
 */
static int logical_open_parts(deltafs_logical *f, const char *path, int flags, const deltafs_options *options,
                              struct error *e)
{
    if (e->status == DELTAFS_OK)
        logical_options(f, options, e);
    if (e->status == DELTAFS_OK && f->cache_limit > 0)
        frame_cache_init(&f->cache, (size_t)f->cache_limit);
    f->cache.team = f->team;
    if (e->status == DELTAFS_OK && f->group.rank != 0 && !(f->container.path = path_absolute(path)))
        error_no_memory(e, strlen(path), "a path");
    int status = collective_agree(&f->group, e);
    if (status != DELTAFS_OK)
        return status;
    if (f->group.rank == 0)
        e->status = container_open(&f->container, &f->io, path, flags & (O_CREAT | O_EXCL), f->sync != SYNC_NONE, e);
    if (!logical_is_alone(f) || e->status == DELTAFS_OK)
        e->status = logical_refresh(f, e);
    status = e->status;
    if (status == DELTAFS_OK && f->turn)
        write_order_join(&f->turn, f->container.uuid);
    /* A job's ranks share a session and create it here, together; a process alone creates one at its first write. */
    if (status == DELTAFS_OK && f->mode != O_RDONLY && !logical_is_alone(f))
        status = logical_create_session(f, e);
    if (status == DELTAFS_OK && (flags & O_TRUNC) && f->mode != O_RDONLY && f->size > 0)
        status = logical_truncate(f, 0, e);
    return status;
}

static int logical_free(deltafs_logical *f, struct error *e)
{
    int status = logical_close_logs(f, e);

    status = error_first(status, frame_log_close(&f->data, error_after(status, e)));
    status = error_first(status, extent_log_close(&f->extents, error_after(status, e)));
    status = io_file_finish(&f->lock, status, e);
    for (size_t i = 0; i < f->logs_count; i++)
        free(f->logs[i]);
    free(f->logs);
    free(f->known);
    free(f->volumes);
    frame_cache_fini(&f->cache);
    team_destroy(f->team);
    extent_map_fini(&f->map);
    pieces_fini(&f->pieces);
    extent_list_fini(&f->list);
    deltafs_private_captured_keys_destroy(f->captured);
    write_order_leave(f->turn);
    buffer_fini(&f->unpublished.buffer);
    buffer_fini(&f->batches.buffer);
    container_fini(&f->container);
    free(f);
    return status;
}

int deltafs_private_logical_open_group(const char *path, int flags, const deltafs_options *options,
                                       const struct collective *group, deltafs_logical **out, struct error *e)
{
    struct error second;
    deltafs_logical *f = calloc(1, sizeof *f);

    /* The other ranks wait in the first agreement of logical_open_parts. */
    if (!f) {
        error_no_memory(e, sizeof *f, "a file's handle");
        return collective_agree(group, e);
    }
    f->io = io_default();
    f->group = *group;
    f->mode = flags & O_ACCMODE;
    f->data.file.fd = f->extents.file.fd = f->lock.fd = -1;
    int status = logical_open_parts(f, path, flags, options, e);
    if (status == DELTAFS_OK) {
        *out = f;
        return DELTAFS_OK;
    }
    /* Remove the session, unless others may have read something in its log. */
    if (f->group.rank == 0 && f->has_session && f->extents.end <= LOG_HEADER_SIZE) {
        frame_log_close(&f->data, error_ignored());
        extent_log_close(&f->extents, error_ignored());
        logical_discard_session(f, error_ignored());
    }
    logical_free(f, &second);
    return status;
}

void deltafs_private_logical_capture_keys(deltafs_logical *f, const deltafs_options *o)
{
    struct deltafs_table *t;

    if (f->capture_limit == 0 ||
        deltafs_table_from_options(f->container.path, o, deltafs_private_options_number(o, OPTION_SKIP), &t) !=
            DELTAFS_OK)
        return;
    /* Indexing reads back what is not captured. */
    captured_keys_create(&t->column[t->key], f->capture_limit, &f->captured, error_ignored());
    deltafs_table_destroy(t);
}

int deltafs_logical_open(const char *path, int flags, const deltafs_options *options, deltafs_logical **out)
{
    const struct collective alone = COLLECTIVE_ALONE;
    struct error *e = deltafs_private_thread_error();

    e->status = DELTAFS_OK;
    if (!path || !out || (flags & O_ACCMODE) == O_ACCMODE)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_logical_open: path, flags and out must be given");
    return deltafs_private_logical_open_group(path, flags, options, &alone, out, e);
}

/* ---- Closing ---- */

/* What a rank reports of the session at the close. */
struct session_end {
    uint64_t logs, order, size;
    uint64_t unsynced; /* ranks whose logs are not all on storage */
};

/* Collective: combine the reports of all ranks; with extents=flatten `batches` gets what all have published. *e may be
 * an error of this rank. */
static int logical_exchange_all(deltafs_logical *f, struct session_end *end, struct bytes *batches, struct error *e)
{
    struct bytes all = {{0}, 0}, own = *batches;
    struct session_end one;
    int status = collective_gather(&f->group, end, sizeof *end, &all, e);

    end->logs = end->unsynced = 0;
    for (size_t at = 0; at < all.used && status == DELTAFS_OK; at += sizeof one) {
        memcpy(&one, all.buffer.bytes + at, sizeof one);
        end->logs += one.logs;
        end->unsynced += one.unsynced;
        end->order = one.order > end->order ? one.order : end->order;
        end->size = one.size > end->size ? one.size : end->size;
    }
    all.used = 0;
    if (status != DELTAFS_OK || f->index != EXTENTS_FLATTEN) {
        buffer_fini(&all.buffer);
        return status;
    }
    e->status = DELTAFS_OK;
    status = collective_gather(&f->group, own.buffer.bytes, own.used, &all, e);
    *batches = all;
    buffer_fini(&own.buffer);
    return status;
}

/* The session's closing line records the number of logs and the file's size. A session without logs is removed. The end
 * of the close reports an error of rank 0 to all. */
static int logical_close_session(deltafs_logical *f, struct bytes *batches, int is_synced, struct error *e)
{
    struct session_end end = {(uint64_t)f->has_logs, f->order, f->size, (uint64_t)(f->has_logs && !is_synced)};
    int status = logical_is_alone(f) ? e->status : logical_exchange_all(f, &end, batches, e), sync = end.unsynced == 0;

    if (status != DELTAFS_OK || f->group.rank != 0 || !f->has_session)
        return status;
    if (end.logs == 0)
        return logical_discard_session(f, e);
    status = container_check(&f->container, &f->io, e);
    if (status == DELTAFS_OK && f->index == EXTENTS_FLATTEN)
        status = session_write_index(&f->container, &f->io, f->session.number, batches->buffer.bytes, batches->used,
                                     sync, e);
    return status == DELTAFS_OK
               ? session_close(&f->container, &f->io, &f->session, (uint32_t)end.logs, end.order, end.size, sync, e)
               : status;
}

/* Free the memory that only reading needs. */
static void logical_free_index(deltafs_logical *f)
{
    extent_map_fini(&f->map);
    pieces_fini(&f->pieces);
    buffer_fini(&f->batches.buffer);
    f->batches.used = 0;
}

static int logical_close_writer(deltafs_logical *f, struct error *e)
{
    struct bytes batches = {{0}, 0};
    /* If all logs are durable already, the closing line is made durable too. */
    int sync = f->sync == SYNC_CLOSE || (f->has_logs && !f->is_unsynced);

    logical_free_index(f);
    e->status = logical_publish(f, sync, 1, e);
    if (e->status == DELTAFS_OK && f->index == EXTENTS_FLATTEN && f->has_logs)
        e->status = logical_read_own(f, &batches, e);
    int status = logical_close_session(f, &batches, sync, e);
    buffer_fini(&batches.buffer);
    return status;
}

int deltafs_private_logical_close(deltafs_logical *f)
{
    struct error *e = deltafs_private_thread_error();
    int status = DELTAFS_OK;
    struct collective group = f->group;
    e->status = DELTAFS_OK;
    if (f->mode != O_RDONLY)
        status = logical_close_writer(f, e);
    e->status = error_first(status, logical_free(f, error_after(status, e)));
    status = collective_agree(&group, e);
    collective_destroy(&group);
    return status;
}

int deltafs_logical_close(deltafs_logical *f)
{
    if (!f)
        return DELTAFS_OK;
    return f->on_close ? f->on_close(f) : deltafs_private_logical_close(f);
}
