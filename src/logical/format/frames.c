/* Writing a data log.
 *
 * Short appends are copied into the buffer, where each frame gets its checksum while it is in the processor's cache. A
 * full buffer is one write: the system caches long writes in longer pieces, and copies them faster. Appends of
 * LONG_BYTES and more go from the caller's memory. A group's page of checksums is written when the group is full, and
 * by each flush, at the group's end; torn by a crash it does no harm, because what it had before does not change. The
 * last flush writes the page once more, behind the last frame, and truncates the file there: else each log ended with a
 * hole. At any moment the file's size says which of the two pages counts, and that one is whole.
 *
 * An append or a flush that fails leaves the log as it was (frame_log_go_back). The file may then have more bytes,
 * which no reader uses and the next write overwrites. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/crc32c.h"
#include "logical/format/frames.h"
#include "io/log.h"
#include "logical/format/logical_format.h"

#define GROUP_BYTES  ((uint64_t)FRAME_GROUP * FRAME_SIZE)
#define GROUP_STRIDE (GROUP_BYTES + FRAME_SIZE)
#define LONG_BYTES   (256u << 10)         /* bytes of an append that are not copied */
#define PIECE        (256u << 10)         /* of them for one write, which leaves them in the cache for their sums */
#define ROOM_MIN     (UINT64_C(8) << 20)  /* bytes that are set aside in a log that has as many; or a quarter of */
#define ROOM_MAX     (UINT64_C(64) << 20) /* what it has */

_Static_assert(sizeof((struct frame_log *)0)->page == FRAME_SIZE && 4 * FRAME_GROUP == FRAME_SIZE, "on disk");

uint32_t frame_seed(const uint8_t uuid[16], uint32_t session, uint32_t writer)
{
    uint8_t id[8];

    put_u32(id, session);
    put_u32(id + 4, writer);
    return crc32c(log_seed(uuid), id, sizeof id);
}

uint32_t frame_sum(uint32_t seed, uint64_t frame, const uint8_t *bytes)
{
    uint8_t number[8];

    put_u64(number, frame);
    return crc32c(crc32c(seed, number, sizeof number), bytes, FRAME_SIZE);
}

uint64_t frame_offset(uint64_t position)
{
    return FRAME_SIZE + position / GROUP_BYTES * GROUP_STRIDE + position % GROUP_BYTES;
}

uint64_t frame_page_offset(uint64_t position)
{
    return FRAME_SIZE + position / GROUP_BYTES * GROUP_STRIDE + GROUP_BYTES;
}

int frame_log_create(struct frame_log *l, struct io *io, const char *path, uint32_t session, uint32_t writer,
                     const uint8_t uuid[16], size_t capacity, struct memory *memory, struct error *e)
{
    uint8_t header[FRAME_SIZE] = {0};

    memset(l, 0, sizeof *l);
    for (l->capacity = 2 * FRAME_SIZE; l->capacity <= capacity / 2 && l->capacity < GROUP_BYTES;)
        l->capacity *= 2;
    l->seed = frame_seed(uuid, session, writer);
    l->memory = memory;
    l->is_sync_due = 1;
    int status = io_file_open(io, path, O_RDWR | O_CREAT | O_EXCL, &l->file, e);
    if (status != DELTAFS_OK)
        return status;
    l->file.is_waited = 1;
    log_put_header(header, LOG_KIND_FRAMES, writer, uuid);
    status = memory_take(l->memory, l->capacity, "a data log's buffer", &l->buffer, e);
    if (status == DELTAFS_OK)
        status = io_file_write(&l->file, 0, header, sizeof header, e);
    if (status != DELTAFS_OK) {
        io->ops->unlink(io->ctx, path);
        frame_log_close(l, error_ignored());
    }
    return status;
}

/* Give back what was set aside and not written: the file ends behind what was. If that fails, some blocks are used for
 * nothing. */
static void frame_log_trim(struct frame_log *l)
{
    uint64_t size;

    if (l->room > 0 && io_file_size(&l->file, &size, error_ignored()) == DELTAFS_OK)
        io_file_truncate(&l->file, size, error_ignored());
    l->room = 0;
}

int frame_log_close(struct frame_log *l, struct error *e)
{
    frame_log_trim(l);
    int status = l->file.path ? io_file_close(&l->file, e) : DELTAFS_OK;

    if (l->own.cache)
        l->own.cache->readers--;
    if (l->buffer)
        memory_give(l->memory, l->buffer, l->capacity);
    memset(l, 0, sizeof *l);
    l->file.fd = l->file.direct = -1;
    return status;
}

/* ---- Appending ---- */

/* Undo an append or a flush that failed. */
static void frame_log_go_back(struct frame_log *l, const struct frame_log *m)
{
    l->base = m->base;
    l->used = m->used;
    l->is_page_due = m->is_page_due;
    memcpy(l->page, m->page, sizeof m->page);
}

static void frame_log_sum(struct frame_log *l, uint64_t position, const uint8_t *frame)
{
    put_u32(l->page + position % GROUP_BYTES / FRAME_SIZE * 4, frame_sum(l->seed, position / FRAME_SIZE, frame));
}

static int frame_log_write_page(struct frame_log *l, uint64_t position, struct error *e)
{
    l->reach = frame_page_offset(position) + FRAME_SIZE;
    return io_file_write(&l->file, frame_page_offset(position), l->page, sizeof l->page, e);
}

/* How much of `n` bytes is written next: whole frames of one group. Pieces end where pages of any size do: the system
 * then keeps each in few large ones. A short rest goes with the last. */
static size_t frame_log_piece(const struct frame_log *l, size_t n)
{
    size_t piece = PIECE - (size_t)(frame_offset(l->base) % PIECE), left = GROUP_BYTES - l->base % GROUP_BYTES;

    n = n - n % FRAME_SIZE < left ? n - n % FRAME_SIZE : left;
    return n < piece + PIECE / 4 ? n : piece;
}

/* Write whole frames of one group at `base`, which moves behind them. If they have no checksums yet, these are made
 * behind the write: the system's copy hides what it takes to fetch bytes from memory, which a checksum would wait for.
 */
static int frame_log_write(struct frame_log *l, const uint8_t *bytes, size_t n, int has_sums, struct error *e)
{
    uint64_t position = l->base;

    l->is_page_due = l->is_sync_due = 1;
    int status = io_file_write(&l->file, frame_offset(position), bytes, n, e);
    if (status != DELTAFS_OK)
        return status;
    for (size_t at = 0; at < n && !has_sums; at += FRAME_SIZE)
        frame_log_sum(l, position + at, bytes + at);
    l->base += n;
    if (l->base % GROUP_BYTES > 0)
        return DELTAFS_OK;
    status = frame_log_write_page(l, position, e);
    memset(l->page, 0, sizeof l->page);
    l->is_page_due = 0;
    return status;
}

/* Write the buffer, which has whole frames. They stay in the buffer's memory. */
static int frame_log_write_buffer(struct frame_log *l, struct error *e)
{
    int status = l->used > 0 ? frame_log_write(l, l->buffer, l->used, 1, e) : DELTAFS_OK;

    if (status == DELTAFS_OK)
        l->used = 0;
    return status;
}

/* A log that grows by much without a flush grows on: have room for the `n` bytes that are appended, and the page of
 * checksums that may follow, and some more, without a gap. Of what is refused, a part may have been set aside. */
static void frame_log_make_room(struct frame_log *l, size_t n)
{
    uint64_t offset = frame_offset(l->base), end = frame_offset(l->base + n) + FRAME_SIZE, more = l->base / 4;
    uint64_t from = l->room > 0 ? l->room : l->reach > offset ? l->reach : offset;

    if (l->is_crowded || l->base - l->flushed < ROOM_MIN || end <= from)
        return;
    more = more < ROOM_MIN ? ROOM_MIN : more < ROOM_MAX ? more : ROOM_MAX;
    l->room = end + more;
    l->is_crowded = !io_file_allocate(&l->file, from, l->room - from);
    if (l->is_crowded)
        frame_log_trim(l);
}

/* Bytes that the buffer has room for. It ends at a multiple of its capacity, so that it is in one group. */
static size_t frame_log_left(const struct frame_log *l)
{
    return l->capacity - (size_t)(l->base & (l->capacity - 1)) - l->used;
}

static void frame_log_copy(struct frame_log *l, const uint8_t *bytes, size_t n)
{
    size_t at = l->used - l->used % FRAME_SIZE;

    memcpy(l->buffer + l->used, bytes, n);
    l->used += n;
    for (; at + FRAME_SIZE <= l->used; at += FRAME_SIZE)
        frame_log_sum(l, l->base + at, l->buffer + at);
}

/* Whole frames of long appends are written from `bytes`. After a write of the buffer there is room for what follows: no
 * later write can fail when the buffer's old contents have been overwritten. */
static int frame_log_append_through(struct frame_log *l, const uint8_t *bytes, size_t n, int is_long, struct error *e)
{
    const struct frame_log mark = *l;
    int status = DELTAFS_OK;

    frame_log_make_room(l, l->used + n);
    for (size_t part; n > 0 && status == DELTAFS_OK; bytes += part, n -= part) {
        size_t begun = l->used % FRAME_SIZE;
        if (is_long && begun == 0 && n >= FRAME_SIZE) {
            status = frame_log_write_buffer(l, e);
            part = frame_log_piece(l, n);
            if (status == DELTAFS_OK)
                status = frame_log_write(l, bytes, part, 0, e);
            continue;
        }
        part = is_long && begun > 0 ? FRAME_SIZE - begun : frame_log_left(l);
        part = part < n ? part : n;
        frame_log_copy(l, bytes, part);
        if (frame_log_left(l) == 0)
            status = frame_log_write_buffer(l, e);
    }
    if (status != DELTAFS_OK)
        frame_log_go_back(l, &mark);
    return status;
}

int frame_log_append(struct frame_log *l, const void *bytes, size_t n, struct error *e)
{
    int is_long = n >= LONG_BYTES || n > l->capacity / 2;

    if (is_long || n >= frame_log_left(l))
        return frame_log_append_through(l, bytes, n, is_long, e);
    if (n > 0)
        frame_log_copy(l, bytes, n);
    return DELTAFS_OK;
}

/* Write what was appended, padded to a whole frame. */
static int frame_log_write_rest(struct frame_log *l, struct error *e)
{
    static const uint8_t zeros[FRAME_SIZE];

    /* Before a page is at the group's end, and makes a hole of what is between. */
    frame_log_trim(l);
    frame_log_copy(l, zeros, (FRAME_SIZE - l->used % FRAME_SIZE) % FRAME_SIZE);
    return frame_log_write_buffer(l, e);
}

static int frame_log_sync(struct frame_log *l, struct error *e)
{
    if (!l->is_sync_due)
        return DELTAFS_OK;
    int status = io_file_sync(&l->file, e);

    l->is_sync_due = 0;
    l->is_lost = status != DELTAFS_OK;
    l->synced = status == DELTAFS_OK ? l->base : l->synced;
    return status;
}

int frame_log_flush(struct frame_log *l, int sync, struct error *e)
{
    const struct frame_log mark = *l;
    int status;

    if (l->is_lost)
        return error_set(e, DELTAFS_ERR_IO, "%s: an earlier sync failed: what was written may be lost", l->file.path);
    status = frame_log_write_rest(l, e);
    if (status == DELTAFS_OK && l->is_page_due)
        status = frame_log_write_page(l, l->base, e);
    if (status == DELTAFS_OK)
        l->is_page_due = 0;
    else
        frame_log_go_back(l, &mark);
    l->flushed = l->base;
    return status == DELTAFS_OK && sync ? frame_log_sync(l, e) : status;
}

/* What a failed append has left behind the frames would be taken for their page of checksums. */
static int frame_log_drop_leftovers(struct frame_log *l, struct error *e)
{
    uint64_t size;
    int status = io_file_size(&l->file, &size, e);

    return status == DELTAFS_OK && size > frame_offset(l->base) ? io_file_truncate(&l->file, frame_offset(l->base), e)
                                                                : status;
}

int frame_log_finish(struct frame_log *l, int sync, struct error *e)
{
    uint64_t begun = l->base - l->base % GROUP_BYTES;
    int has_page = l->reach > frame_offset(l->base); /* of this group */
    int status = has_page || l->is_lost ? frame_log_flush(l, 0, e) : frame_log_write_rest(l, e);

    if (status == DELTAFS_OK && !has_page && l->base % GROUP_BYTES > 0)
        status = frame_log_drop_leftovers(l, e);
    if (status == DELTAFS_OK && l->base % GROUP_BYTES > 0) {
        l->is_sync_due = 1;
        status = io_file_write(&l->file, frame_offset(l->base), l->page, sizeof l->page, e);
        l->is_page_due = 0;
        /* What was synced by means of the former page must not depend on one that is not. */
        sync |= has_page && l->synced > begun;
    }
    if (status == DELTAFS_OK && sync)
        status = frame_log_sync(l, e);
    /* If this fails, the former page counts. */
    if (status == DELTAFS_OK && has_page && l->base % GROUP_BYTES > 0)
        io_file_truncate(&l->file, frame_offset(l->base) + FRAME_SIZE, error_ignored());
    return status;
}

/* ---- Reading back ---- */

void frame_log_use_cache(struct frame_log *l, struct frame_cache *c)
{
    frame_source_init(&l->own, l->seed, c);
}

int frame_log_read(struct frame_log *l, uint64_t position, void *bytes, size_t n, struct error *e)
{
    uint64_t end = frame_log_end(l);
    uint8_t *to = bytes;
    int status = DELTAFS_OK;

    if (position > end || n > end - position)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: %zu bytes at position %llu were not written", l->file.path, n,
                         (unsigned long long)position);
    size_t stored = position >= l->base ? 0 : n < l->base - position ? n : (size_t)(l->base - position);
    if (stored > 0) {
        l->own.file = &l->file;
        l->own.end = l->base;
        l->own.page = l->page;
        status = frame_source_read(&l->own, position, to, stored, e);
    }
    if (status == DELTAFS_OK && n > stored)
        memcpy(to + stored, l->buffer + (position + stored - l->base), n - stored);
    return status;
}
