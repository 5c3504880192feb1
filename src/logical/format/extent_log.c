/* Extent logs as files. */
#include <fcntl.h>
#include <string.h>
#include "base/coding.h"
#include "logical/format/extents.h"
#include "io/log.h"
#include "logical/format/logical_format.h"

#define ANY_WRITER   UINT32_MAX   /* no writer's number; in an index of all writers' batches */
#define READ_AT_ONCE (256u << 10) /* bytes; what a log has beyond is read in pieces that grow */

int extent_log_create(struct extent_log *l, struct io *io, const char *path, uint32_t writer, const uint8_t uuid[16],
                      struct error *e)
{
    uint8_t header[LOG_HEADER_SIZE];

    *l = (struct extent_log){.file.fd = -1, .is_sync_due = 1};
    int status = io_file_open(io, path, O_WRONLY | O_CREAT | O_EXCL, &l->file, e);
    if (status != DELTAFS_OK)
        return status;
    log_put_header(header, LOG_KIND_EXTENTS, writer, uuid);
    status = io_file_write(&l->file, 0, header, sizeof header, e);
    l->end = sizeof header;
    return status;
}

static int extent_log_write(struct extent_log *l, const void *batches, size_t n, struct error *e)
{
    int status = l->is_dirty ? io_file_truncate(&l->file, l->end, e) : DELTAFS_OK;

    if (status != DELTAFS_OK)
        return status;
    l->is_dirty = l->is_sync_due = 1;
    status = io_file_write(&l->file, l->end, batches, n, e);
    if (status != DELTAFS_OK)
        return status;
    l->is_dirty = 0;
    l->end += n;
    return DELTAFS_OK;
}

int extent_log_append(struct extent_log *l, const void *batches, size_t n, int sync, struct error *e)
{
    int status = DELTAFS_OK;

    if (l->is_lost)
        return error_set(e, DELTAFS_ERR_IO, "%s: an earlier sync failed: what was written may be lost", l->file.path);
    if (n > 0)
        status = extent_log_write(l, batches, n, e);
    if (status != DELTAFS_OK || !sync || !l->is_sync_due)
        return status;
    status = io_file_sync(&l->file, e);
    l->is_sync_due = 0;
    l->is_lost = status != DELTAFS_OK;
    return status;
}

int extent_log_close(struct extent_log *l, struct error *e)
{
    return l->file.path ? io_file_close(&l->file, e) : DELTAFS_OK;
}

/* ---- Reading ---- */

struct log_reader {
    struct io_file file;
    uint32_t seed, session, writer;
    uint64_t size;
    int is_last;
    uint64_t offset; /* of what is not checked yet */
    const struct extent_sink *sink;
};

static int check_owner(const struct log_reader *r, const uint8_t *bytes, size_t n, struct error *e)
{
    for (size_t at = 0; at < n; at += get_u32(bytes + at + 8))
        if (get_u32(bytes + at + 12) != r->session ||
            (r->writer != ANY_WRITER && get_u32(bytes + at + 16) != r->writer))
            return error_damaged(e, r->file.path, r->offset + at, "a batch belongs elsewhere");
    return DELTAFS_OK;
}

/* Pass the batches from `begin` to *sound to the sink, if there is one, and remove them. */
static int pass_on(const struct log_reader *r, struct buffer *out, size_t begin, size_t *sound, size_t *have,
                   struct error *e)
{
    size_t n = *sound - begin;

    if (!r->sink || n == 0)
        return DELTAFS_OK;
    int status = r->sink->take(r->sink->arg, out->bytes + begin, n, e);
    memmove(out->bytes + begin, out->bytes + *sound, *have - *sound);
    *have -= n;
    *sound = begin;
    return status;
}

/* Read and check, piece by piece: what is not sound ends this before much memory is taken for it. */
static int read_batches(struct log_reader *r, struct buffer *out, size_t *n, struct error *e)
{
    size_t sound = *n, have = *n, piece = READ_AT_ONCE, used;
    uint64_t end = r->offset;
    int status = DELTAFS_OK;

    while (status == DELTAFS_OK && end < r->size) {
        size_t part = r->size - end < piece ? (size_t)(r->size - end) : piece;
        status = buffer_reserve(out, have + part, "an extent log", e);
        if (status == DELTAFS_OK)
            status = io_file_read(&r->file, end, out->bytes + have, part, e);
        if (status != DELTAFS_OK)
            break;
        have += part;
        end += part;
        status = extent_batches_decode(out->bytes + sound, have - sound, r->seed, r->file.path, r->offset, NULL, NULL,
                                       &used, &r->is_last, e);
        if (status == DELTAFS_OK)
            status = check_owner(r, out->bytes + sound, used, e);
        if (status != DELTAFS_OK)
            break;
        sound += used;
        r->offset += used;
        status = pass_on(r, out, *n, &sound, &have, e);
        /* Zeros as far as the eye reaches, or a batch that is longer than this piece. */
        if (piece < BATCH_SIZE_MAX && !(r->sink && used > 0))
            piece *= 2;
        if (have - sound > BATCH_SIZE_MAX)
            break;
    }
    if (status == DELTAFS_OK)
        *n = sound;
    return status;
}

/* Whether the log's header was never written, as a crash leaves it: then nothing of the log was ever durable. */
static int is_header_lost(struct log_reader *r)
{
    static const uint8_t zeros[LOG_HEADER_SIZE];
    uint8_t header[LOG_HEADER_SIZE];

    return io_file_read(&r->file, 0, header, sizeof header, error_ignored()) == DELTAFS_OK &&
           memcmp(header, zeros, sizeof header) == 0;
}

/* `is_whole`: the log must be complete. */
static int read_log(struct log_reader *r, const uint8_t uuid[16], int is_whole, struct buffer *out, size_t *n,
                    struct error *e)
{
    size_t got = *n;
    int status = io_file_size(&r->file, &r->size, e);

    if (status == DELTAFS_OK && r->size < r->offset)
        return error_damaged(e, r->file.path, r->size, "the log has become shorter");
    /* The log is being created, or a crash came then. */
    if (status == DELTAFS_OK && !is_whole && (r->size < LOG_HEADER_SIZE || (r->offset == 0 && is_header_lost(r))))
        return DELTAFS_OK;
    if (status == DELTAFS_OK && r->offset == 0) {
        status = log_check_header(&r->file, LOG_KIND_EXTENTS, r->writer, uuid, e);
        r->offset = LOG_HEADER_SIZE;
    }
    if (status == DELTAFS_OK)
        status = read_batches(r, out, &got, e);
    if (status == DELTAFS_OK && is_whole && r->offset < r->size)
        return error_damaged(e, r->file.path, r->offset, "the last batch is incomplete");
    if (status == DELTAFS_OK && is_whole && !r->is_last)
        return error_damaged(e, r->file.path, r->offset, "the last batch is missing");
    if (status == DELTAFS_OK)
        *n = got;
    return status;
}

static int open_and_read(struct log_reader r, struct io *io, const char *path, const uint8_t uuid[16], int is_whole,
                         uint64_t *from, int *is_last, struct buffer *out, size_t *n, struct error *e)
{
    unsigned waited = 0;

    int status = io_file_open(io, path, O_RDONLY, &r.file, e);
    if (status != DELTAFS_OK)
        return status;
    /* GlusterFS may close a file before its server has all of it, and show the line that says so first. */
    do {
        r.is_last = *is_last;
        r.offset = *from;
        status = read_log(&r, uuid, is_whole, out, n, e);
    } while (status == DELTAFS_ERR_DAMAGED && io_file_wait(&r.file, &waited));
    if (status == DELTAFS_OK) {
        *from = r.offset;
        *is_last = r.is_last;
    }
    io_file_close(&r.file, error_ignored());
    return status;
}

int extent_log_read(struct io *io, const char *path, uint32_t session, uint32_t writer, const uint8_t uuid[16],
                    int is_whole, uint64_t *from, int *is_last, struct buffer *out, size_t *n, struct error *e)
{
    const struct log_reader r = {.seed = log_seed(uuid), .session = session, .writer = writer};

    return open_and_read(r, io, path, uuid, is_whole, from, is_last, out, n, e);
}

int extent_log_pass(struct io *io, const char *path, uint32_t session, uint32_t writer, const uint8_t uuid[16],
                    int is_whole, uint64_t *from, int *is_last, struct buffer *buffer, const struct extent_sink *sink,
                    struct error *e)
{
    const struct log_reader r = {.seed = log_seed(uuid), .session = session, .writer = writer, .sink = sink};
    size_t none = 0;

    return open_and_read(r, io, path, uuid, is_whole, from, is_last, buffer, &none, e);
}

/* ---- Indexes of sessions ---- */

static void put_trailer(uint8_t t[FLAT_TRAILER_SIZE], const uint8_t uuid[16], uint32_t session, uint64_t n)
{
    memset(t, 0, FLAT_TRAILER_SIZE);
    t[4] = FORMAT_FLAT_TRAILER;
    put_u32(t + 8, session);
    put_u64(t + 16, n);
    memcpy(t + 24, FLAT_MAGIC, 8);
    log_seal(log_seed(uuid), t, FLAT_TRAILER_SIZE);
}

int extent_index_write(struct io *io, const char *path, uint32_t session, const uint8_t uuid[16], const void *batches,
                       size_t n, int sync, struct error *e)
{
    uint8_t header[LOG_HEADER_SIZE], trailer[FLAT_TRAILER_SIZE];
    struct io_file file;
    int status = io_file_open(io, path, O_RDWR | O_CREAT, &file, e);

    if (status != DELTAFS_OK)
        return status;
    log_put_header(header, LOG_KIND_FLAT, session, uuid);
    put_trailer(trailer, uuid, session, n);
    status = io_file_truncate(&file, 0, e); /* not by opening it, which could be another container's */
    if (status == DELTAFS_OK)
        status = io_file_write(&file, 0, header, sizeof header, e);
    if (status == DELTAFS_OK)
        status = io_file_write(&file, sizeof header, batches, n, e);
    if (status == DELTAFS_OK)
        status = io_file_write(&file, sizeof header + n, trailer, sizeof trailer, e);
    if (status == DELTAFS_OK && sync)
        status = io_file_sync(&file, e);
    return io_file_finish(&file, status, e);
}

static int read_index(struct log_reader *r, const uint8_t uuid[16], struct buffer *out, size_t *n, struct error *e)
{
    uint8_t trailer[FLAT_TRAILER_SIZE], want[FLAT_TRAILER_SIZE];
    int status = log_check_header(&r->file, LOG_KIND_FLAT, r->session, uuid, e);

    if (status == DELTAFS_OK)
        status = io_file_size(&r->file, &r->size, e);
    if (status == DELTAFS_OK && r->size < LOG_HEADER_SIZE + FLAT_TRAILER_SIZE)
        return error_damaged(e, r->file.path, r->size, "the index is incomplete");
    if (status != DELTAFS_OK)
        return status;
    r->size -= FLAT_TRAILER_SIZE;
    put_trailer(want, uuid, r->session, r->size - LOG_HEADER_SIZE);
    status = io_file_read(&r->file, r->size, trailer, sizeof trailer, e);
    if (status == DELTAFS_OK && memcmp(trailer, want, sizeof want) != 0)
        return error_damaged(e, r->file.path, r->size,
                             "the index does not end as it should; it repeats what the writers' logs have, and "
                             "'deltafs flatten' creates it again");
    if (status == DELTAFS_OK)
        status = read_batches(r, out, n, e);
    return status == DELTAFS_OK && r->offset < r->size
               ? error_damaged(e, r->file.path, r->offset, "a batch is incomplete")
               : status;
}

int extent_index_read(struct io *io, const char *path, uint32_t session, const uint8_t uuid[16], struct buffer *out,
                      size_t *n, struct error *e)
{
    struct log_reader r = {.seed = log_seed(uuid), .session = session, .writer = ANY_WRITER, .offset = LOG_HEADER_SIZE};
    size_t got = *n;
    int status = io_file_open(io, path, O_RDONLY, &r.file, e);

    if (status != DELTAFS_OK)
        return status;
    status = io_file_finish(&r.file, read_index(&r, uuid, out, &got, e), e);
    if (status == DELTAFS_OK)
        *n = got;
    return status;
}
