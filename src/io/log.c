#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include "base/coding.h"
#include "base/crc32c.h"
#include "base/simd_stream.h"
#include "io/io_format.h"
#include "io/log.h"

uint32_t log_seed(const uint8_t uuid[16])
{
    return crc32c(0, uuid, FORMAT_UUID_SIZE);
}

void log_seal(uint32_t seed, uint8_t *bytes, size_t n)
{
    put_u32(bytes, crc32c(seed, bytes + 4, n - 4));
}

int log_is_sealed(uint32_t seed, const uint8_t *bytes, size_t n)
{
    return get_u32(bytes) == crc32c(seed, bytes + 4, n - 4);
}

void log_put_header(uint8_t h[static LOG_HEADER_SIZE], int kind, uint32_t partition, const uint8_t uuid[16])
{
    memset(h, 0, LOG_HEADER_SIZE);
    h[4] = FORMAT_LOG_HEADER;
    h[5] = (uint8_t)kind;
    put_u16(h + 6, FORMAT_VERSION);
    put_u32(h + 8, partition);
    memcpy(h + 16, uuid, FORMAT_UUID_SIZE);
    log_seal(log_seed(uuid), h, LOG_HEADER_SIZE);
}

int log_check_header(struct io_file *file, int kind, uint32_t partition, const uint8_t uuid[16], struct error *e)
{
    uint8_t h[LOG_HEADER_SIZE], want[LOG_HEADER_SIZE];
    int status = io_file_read(file, 0, h, sizeof h, e);

    log_put_header(want, kind, partition, uuid);
    if (status == DELTAFS_OK && memcmp(h, want, sizeof h) != 0)
        return error_damaged(e, file->path, 0, "the header does not match its checksum, or belongs elsewhere");
    return status;
}

int log_open_read(struct io *io, const char *path, struct io_file *file, uint64_t *size, struct error *e)
{
    int status = io_file_open(io, path, O_RDONLY, file, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = error_damaged(e, path, 0, "the file is missing");
    return status == DELTAFS_OK ? io_file_size(file, size, e) : status;
}

int log_check_restart(struct io_file *file, const uint8_t uuid[16], struct error *e)
{
    static const uint8_t none[FORMAT_UUID_SIZE];
    uint8_t h[LOG_HEADER_SIZE], *its = h + sizeof h - sizeof none;
    uint64_t size;
    int status = io_file_size(file, &size, e);

    if (status != DELTAFS_OK || size < sizeof h)
        return status;
    status = io_file_read(file, 0, h, sizeof h, e);
    if (status != DELTAFS_OK || memcmp(its, uuid, sizeof none) == 0 || memcmp(its, none, sizeof none) == 0)
        return status;
    return error_damaged(e, file->path, (uint64_t)(its - h),
                         "the UUID is not the container's, so this may be a log of another one; no committed epoch "
                         "needs it: move it away and try again");
}

static int log_begin(struct log *log, struct io *io, const char *path, int flags, int kind, uint32_t partition,
                     const uint8_t uuid[16], size_t capacity, struct flusher *flusher, struct memory *memory,
                     struct error *e)
{
    *log =
        (struct log){.file.fd = -1, .capacity = capacity, .flusher = flusher, .seed = log_seed(uuid), .memory = memory};
    log_put_header(log->header, kind, partition, uuid);
    int status = memory_take(memory, capacity, "a log's buffer", &log->buffer, e);

    return status == DELTAFS_OK ? io_file_open(io, path, flags, &log->file, e) : status;
}

int log_open(struct log *log, struct io *io, const char *path, int kind, uint32_t partition, const uint8_t uuid[16],
             uint64_t end, size_t capacity, struct flusher *flusher, struct memory *memory, struct error *e)
{
    uint64_t size;
    int status = log_begin(log, io, path, O_RDWR, kind, partition, uuid, capacity, flusher, memory, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = error_damaged(e, path, 0, "the file is missing");
    if (status == DELTAFS_OK)
        status = log_check_header(&log->file, kind, partition, uuid, e);
    if (status == DELTAFS_OK)
        status = io_file_size(&log->file, &size, e);
    if (status != DELTAFS_OK)
        return status;
    if (size < end)
        return error_damaged(e, path, size, "the file ends %" PRIu64 " bytes before its last committed epoch does",
                             end - size);
    log->base = end - end % MEMORY_PAGE;
    log->start = log->used = (size_t)(end - log->base);
    return DELTAFS_OK;
}

int log_truncate(struct log *log, int sync, struct error *e)
{
    uint64_t size, end = log->base + log->start;
    int status = io_file_size(&log->file, &size, e);

    if (status != DELTAFS_OK || size <= end)
        return status;
    status = io_file_truncate(&log->file, end, e);
    return status == DELTAFS_OK && sync ? io_file_sync(&log->file, e) : status;
}

int log_create(struct log *log, struct io *io, const char *path, int kind, uint32_t partition, const uint8_t uuid[16],
               int is_new, size_t capacity, struct flusher *flusher, struct memory *memory, struct error *e)
{
    int flags = O_RDWR | O_CREAT | (is_new ? O_EXCL : 0);
    int status = log_begin(log, io, path, flags, kind, partition, uuid, capacity, flusher, memory, e);

    if (status == DELTAFS_OK && !is_new)
        status = log_check_restart(&log->file, uuid, e);
    if (status != DELTAFS_OK)
        return status;
    status = log_append(log, log->header, sizeof log->header, e);
    /* At once, so that a log is never seen without. */
    return status == DELTAFS_OK ? log_flush(log, e) : status;
}

int log_close(struct log *log, struct error *e)
{
    memory_give(log->memory, log->buffer, log->capacity);
    if (log->spare)
        memory_give(log->memory, log->spare, log->capacity);
    log->buffer = log->spare = NULL;
    return log->file.path ? io_file_close(&log->file, e) : DELTAFS_OK;
}

int log_flush(struct log *log, struct error *e)
{
    if (log->used == log->start)
        return DELTAFS_OK;
    int status = io_file_write(&log->file, log->base + log->start, log->buffer + log->start, log->used - log->start, e);
    if (status == DELTAFS_OK)
        log->start = log->used;
    return status;
}

/* The buffer is full: have it written, and go on with an empty one. */
static int log_turn(struct log *log, struct error *e)
{
    int status = DELTAFS_OK;

    if (log->flusher)
        log->buffer =
            flusher_write(log->flusher, &log->file, log->base, log->buffer, log->start, log->used, log->spare);
    else
        status = log_flush(log, e);
    if (status == DELTAFS_OK) {
        log->spare = NULL;
        log->base += log->capacity;
        log->start = log->used = 0;
    }
    return status;
}

int log_reserve(struct log *log, size_t n)
{
    if (log->flusher && !log->spare && n > log->capacity - log->used)
        log->spare = flusher_take(log->flusher);
    return !log->flusher || log->spare || n <= log->capacity - log->used;
}

int log_hand_over(struct log *log)
{
    if (!log->spare && log->used > log->start)
        log->spare = flusher_take(log->flusher);
    if (!log->spare || log->used == log->start)
        return log->used == log->start;
    log->buffer = flusher_write(log->flusher, &log->file, log->base, log->buffer, log->start, log->used, log->spare);
    log->spare = NULL;
    log->start = log->used; /* what is before is not looked at again */
    return 1;
}

int log_append(struct log *log, const void *bytes, size_t n, struct error *e)
{
    const uint8_t *p = bytes;

    while (n > 0) {
        if (log->used == log->capacity) {
            int status = log_turn(log, e);
            if (status != DELTAFS_OK)
                return status;
        }
        size_t part = log->capacity - log->used;
        if (part > n)
            part = n;
        if (log->flusher) /* which may read it on another core */
            stream_copy_any(log->buffer + log->used, p, part);
        else
            memcpy(log->buffer + log->used, p, part);
        log->used += part;
        p += part;
        n -= part;
    }
    return DELTAFS_OK;
}

int log_rewind(struct log *log, uint64_t end, struct error *e)
{
    if (end == LOG_HEADER_SIZE) {
        log->base = log->start = 0;
        log->used = LOG_HEADER_SIZE;
        memcpy(log->buffer, log->header, LOG_HEADER_SIZE);
        return io_file_truncate(&log->file, end, e);
    }
    if (end < log->base + log->start) {
        log->base = end - end % MEMORY_PAGE;
        log->start = log->used = (size_t)(end - log->base);
    } else {
        log->used = (size_t)(end - log->base);
    }
    /* Also when nothing was written: a write that failed may have written a part. */
    return io_file_truncate(&log->file, log->base + log->start, e);
}
