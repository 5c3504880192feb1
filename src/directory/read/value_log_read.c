/* Blocks are sorted by log and offset, and those that lie close together are read at once (a piece): a scan then reads
 * its logs nearly from end to end. How long the last block of a piece is, only it says: so many bytes are read as the
 * job's line in the manifest says that most blocks have, and where that is too little, the rest is read after. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "directory/format/directory_format.h"
#include "directory/read/value_log_read.h"

#define LOGS_OPEN  64                  /* at a time */
#define PIECES     64                  /* read at a time, */
#define PIECE_MAX  ((size_t)256 << 10) /* of so many bytes each, about */
#define PIECES_MAX ((size_t)8 << 20)   /* and all of them */
#define READ_MAX   ((uint64_t)2 << 20) /* bytes for a block that are read before it is known how long it is */
#define PIECE_GAP  4                   /* as many times that may lie between two blocks of a piece */
#define SHRINK     2                   /* so much less is tried where values take too much */

struct values_log {
    int is_open;
    uint32_t writer;
    uint64_t used; /* when, by the clock */
    struct io_file file;
    uint64_t size;
    struct error error; /* why it cannot be opened */
};

/* A value, to be ordered by where it is. */
struct value_position {
    struct position in;
    size_t index; /* among those that are wanted */
};

struct values_reader {
    struct values_log log[LOGS_OPEN];
    uint64_t clock;
    int does_check; /* headers */
    size_t reported_count;
    struct buffer reported; /* uint32_t: writers whose headers are damaged, as has been reported */
    struct buffer positions, pieces, whole;
    struct block block;
};

/* What is read at once. */
struct piece {
    struct values_log *log;
    size_t first, end; /* positions */
    uint64_t offset;
    size_t length;
};

struct values_job {
    struct reader *r;
    struct values_reader *v;
    struct value_wanted *wanted;
    size_t n, most, used;
    struct buffer *bytes;
    void (*damage)(void *arg, const struct error *e);
    void *arg;
    uint64_t *blocks;
    int is_full;
};

/* ---- Logs ---- */

int values_reader_create(struct values_reader **out, struct error *e)
{
    *out = calloc(1, sizeof **out);
    return *out ? DELTAFS_OK : error_no_memory(e, sizeof **out, "a reader");
}

void values_reader_forget(struct values_reader *v)
{
    struct error ignored; /* opened for reading: nothing can be lost */

    for (int i = 0; i < LOGS_OPEN; i++) {
        if (v->log[i].is_open)
            io_file_close(&v->log[i].file, &ignored);
        v->log[i].is_open = 0;
    }
}

void values_reader_check_headers(struct values_reader *v, int does_check)
{
    values_reader_forget(v); /* those that are open have not been checked */
    v->does_check = does_check;
    v->reported_count = 0;
}

void values_reader_destroy(struct values_reader *v)
{
    if (!v)
        return;
    values_reader_forget(v);
    buffer_fini(&v->reported);
    buffer_fini(&v->positions);
    buffer_fini(&v->pieces);
    buffer_fini(&v->whole);
    block_fini(&v->block);
    free(v);
}

static void values_log_open(struct reader *r, struct values_log *log, uint32_t writer)
{
    char *path = values_path(r->path, r->manifest.partitions, writer);
    struct error *e = &log->error;

    *log = (struct values_log){.is_open = 1, .writer = writer, .file.fd = -1};
    int status = path ? io_file_open(&r->io, path, O_RDONLY, &log->file, e) : error_no_memory(e, 1, "a path");
    if (status == DELTAFS_ERR_NOT_FOUND)
        status = error_damaged(e, path, 0, "the file is missing");
    if (status == DELTAFS_OK)
        status = io_file_size(&log->file, &log->size, e);
    log->error.status = status;
    free(path);
}

/* Tell of a header that is not right, once. */
static void values_check_header(struct values_job *j, struct values_log *log)
{
    struct values_reader *v = j->v;
    struct error e, second;

    if (!v->does_check || log->error.status != DELTAFS_OK ||
        log_check_header(&log->file, LOG_KIND_VALUES, log->writer, j->r->manifest.uuid, &e) == DELTAFS_OK)
        return;
    for (size_t i = 0; i < v->reported_count; i++)
        if (((const uint32_t *)(const void *)v->reported.bytes)[i] == log->writer)
            return;
    if (buffer_reserve(&v->reported, (v->reported_count + 1) * sizeof log->writer, "verifying", &second) == DELTAFS_OK)
        ((uint32_t *)(void *)v->reported.bytes)[v->reported_count++] = log->writer;
    j->damage(j->arg, &e);
}

/* A writer's log, in place of the one that has been used least lately. */
static struct values_log *values_log_of(struct values_job *j, uint32_t writer)
{
    struct reader *r = j->r;
    struct values_reader *v = j->v;
    struct values_log *oldest = &v->log[0];
    struct error ignored;

    v->clock++;
    for (int i = 0; i < LOGS_OPEN; i++) {
        struct values_log *log = &v->log[i];
        if (log->is_open && log->writer == writer) {
            if (log->error.status != DELTAFS_OK) {
                io_file_close(&log->file, &ignored);
                values_log_open(r, log, writer); /* it may be possible now */
            }
            log->used = v->clock;
            return log;
        }
        if (oldest->is_open && (!log->is_open || log->used < oldest->used))
            oldest = log;
    }
    if (oldest->is_open)
        io_file_close(&oldest->file, &ignored);
    values_log_open(r, oldest, writer);
    values_check_header(j, oldest);
    oldest->used = v->clock;
    return oldest;
}

/* ---- Places ---- */

int values_locate(const struct reader *r, uint32_t epoch, const uint8_t *bytes, const char *path, uint64_t offset,
                  struct position *out, struct error *e)
{
    if (position_unpack(manifest_job_of(&r->manifest, epoch), get_u64(bytes), out) == 0)
        return DELTAFS_OK;
    return error_damaged(e, path, offset, "a record is in the log of a writer that its job had not");
}

int values_damaged(const struct reader *r, const struct position *in, const char *what, struct error *e)
{
    char *path = values_path(r->path, r->manifest.partitions, in->writer);

    error_damaged(e, path ? path : r->path, in->offset, "%s", what);
    free(path);
    return DELTAFS_ERR_DAMAGED;
}

static int position_compare(const void *a, const void *b)
{
    const struct value_position *x = a, *y = b;

    if (x->in.writer != y->in.writer)
        return x->in.writer < y->in.writer ? -1 : 1;
    if (x->in.offset != y->in.offset)
        return x->in.offset < y->in.offset ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static int position_is_beside(const struct value_position *a, const struct value_position *b)
{
    return a->in.writer == b->in.writer && a->in.offset == b->in.offset;
}

/* ---- Blocks ---- */

/* The values of positions `first` to `end` - 1, which are in the block that is open. */
static int values_take(struct values_job *j, const struct value_position *first, const struct value_position *end,
                       struct error *e)
{
    size_t tag = j->r->manifest.keys == KEYS_U64 ? VALUES_TAG_SIZE : 0, size;
    struct block *b = &j->v->block;
    struct error wrong;
    int status = DELTAFS_OK;

    for (; first < end && status == DELTAFS_OK && !j->is_full; first++) {
        struct value_wanted *w = &j->wanted[first->index];
        const uint8_t *value = w->in.index < b->count ? block_value(b, w->in.index, &size) : NULL;
        w->is_bad = !value || size < tag || (tag && *value != (uint8_t)w->hash);
        if (w->is_bad) {
            values_damaged(j->r, &w->in, "a record there is not of the key that leads to it", &wrong);
            j->damage(j->arg, &wrong);
            continue;
        }
        w->at = j->used;
        w->size = size - tag;
        j->is_full = j->used + w->size > j->most && j->n > 1;
        if (!j->is_full)
            status = buffer_reserve(j->bytes, j->used + w->size + 1, "records", e);
        if (status != DELTAFS_OK || j->is_full)
            break;
        memcpy(j->bytes->bytes + w->at, value + tag, w->size);
        j->used += w->size;
    }
    return status;
}

/* All of a block, of which more is needed than was read, or nothing could be. */
static int values_read_whole(struct values_job *j, struct values_log *log, uint64_t offset, const uint8_t **bytes,
                             size_t *n, struct error *e)
{
    struct buffer *whole = &j->v->whole;
    int status = buffer_reserve(whole, BLOCK_HEADER_SIZE, "a block", e);

    if (status == DELTAFS_OK)
        status = io_file_read(&log->file, offset, whole->bytes, BLOCK_HEADER_SIZE, e);
    if (status != DELTAFS_OK)
        return status;
    *n = block_values_length(whole->bytes);
    if (*n == 0 || *n > log->size - offset)
        return error_damaged(e, log->file.path, offset, "there is no block of values");
    status = buffer_reserve(whole, *n, "a block", e);
    if (status == DELTAFS_OK)
        status = io_file_read(&log->file, offset, whole->bytes, *n, e);
    *bytes = whole->bytes;
    return status;
}

static int values_try_block(struct values_job *j, struct values_log *log, const struct value_wanted *w,
                            const uint8_t *bytes, size_t n, struct error *e)
{
    const struct manifest *m = &j->r->manifest;
    struct block_id id = values_block_id(w->in.writer, w->epoch, w->in.offset);
    int status = DELTAFS_OK;

    if (w->in.offset > log->size || log->size - w->in.offset < BLOCK_HEADER_SIZE)
        return error_damaged(e, log->file.path, w->in.offset, "the file, of %llu bytes, ends before a block",
                             (unsigned long long)log->size);
    if (n < BLOCK_HEADER_SIZE || block_values_length(bytes) > n)
        status = values_read_whole(j, log, w->in.offset, &bytes, &n, e);
    return status == DELTAFS_OK
               ? block_decode_values(&j->v->block, bytes, n, &id, log_seed(m->uuid),
                                     values_stored_size(m->keys, m->value_size), log->file.path, w->in.offset, e)
               : status;
}

/* Decode the block at a place, of which `n` bytes, maybe none, were read. */
static int values_open_block(struct values_job *j, struct values_log *log, const struct value_wanted *w,
                             const uint8_t *bytes, size_t n, struct error *e)
{
    struct error ignored;
    unsigned waited = 0;
    int status = log->error.status;

    if (status != DELTAFS_OK) {
        *e = log->error;
        return status;
    }
    while ((status = values_try_block(j, log, w, bytes, n, e)) == DELTAFS_ERR_DAMAGED &&
           io_file_wait(&log->file, &waited) && io_file_size(&log->file, &log->size, &ignored) == DELTAFS_OK)
        n = 0;
    return status;
}

/* The positions of one block, in a piece that was read, or could not be. */
static int values_take_block(struct values_job *j, const struct piece *p, const struct value_position *first,
                             const struct value_position *end, const struct fetch *f, struct error *e)
{
    uint64_t skip = first->in.offset - p->offset;
    size_t n = f && !f->is_bad && skip < f->length ? f->length - (size_t)skip : 0;
    struct error wrong;
    int status = values_open_block(j, p->log, &j->wanted[first->index], n > 0 ? f->bytes + skip : NULL, n, &wrong);

    if (status == DELTAFS_OK && (size_t)(end - first) > j->v->block.count / 8)
        status = block_join(&j->v->block, &wrong);
    if (status == DELTAFS_OK) {
        ++*j->blocks;
        return values_take(j, first, end, e);
    }
    if (status == DELTAFS_ERR_MEMORY) {
        *e = wrong;
        return status;
    }
    for (; first < end; first++)
        j->wanted[first->index].is_bad = 1;
    j->damage(j->arg, &wrong);
    return DELTAFS_OK;
}

static int values_take_piece(struct values_job *j, const struct piece *p, const struct value_position *positions,
                             const struct fetch *f, struct error *e)
{
    int status = DELTAFS_OK;

    for (size_t i = p->first, end; i < p->end && status == DELTAFS_OK && !j->is_full; i = end) {
        for (end = i + 1; end < p->end && position_is_beside(&positions[i], &positions[end]);)
            end++;
        /* A place may say any epoch's block; of those that agree on the offset each is asked for its own. */
        for (size_t k = i + 1; k < end; k++)
            if (j->wanted[positions[k].index].epoch != j->wanted[positions[i].index].epoch)
                end = k;
        status = values_take_block(j, p, positions + i, positions + end, f, e);
    }
    return status;
}

/* ---- Pieces ---- */

/* The next piece, from position `first` on. */
static struct piece values_cut_piece(struct values_job *j, const struct value_position *positions, size_t first)
{
    const struct value_position *s = &positions[first];
    const struct manifest_job *job = manifest_job_of(&j->r->manifest, j->wanted[s->index].epoch);
    uint64_t ahead = job->read < READ_MAX ? job->read : READ_MAX, end;
    struct piece p = {values_log_of(j, s->in.writer), first, first + 1, s->in.offset, 0};

    if (ahead < BLOCK_HEADER_SIZE)
        ahead = BLOCK_HEADER_SIZE;
    for (end = p.offset; p.end < j->n; end = positions[p.end++].in.offset)
        if (positions[p.end].in.writer != s->in.writer || positions[p.end].in.offset - end > PIECE_GAP * ahead ||
            positions[p.end].in.offset - p.offset > PIECE_MAX)
            break;
    end += ahead;
    end = end < p.log->size ? end : p.log->size;
    p.length = p.log->error.status == DELTAFS_OK && end > p.offset ? (size_t)(end - p.offset) : 0;
    return p;
}

/* Read some pieces at once. */
static int values_take_pieces(struct values_job *j, const struct value_position *positions, const struct piece *pieces,
                              size_t count, struct error *e)
{
    struct fetch fetch[PIECES];
    size_t total = 0, reads = 0;

    for (size_t i = 0; i < count; i++)
        total += pieces[i].length;
    int status = buffer_reserve(&j->v->pieces, total + 1, "reading", e);
    if (status != DELTAFS_OK)
        return status;
    uint8_t *at = j->v->pieces.bytes;
    for (size_t i = 0; i < count; at += pieces[i++].length)
        if (pieces[i].length > 0)
            fetch[reads++] = (struct fetch){
                .file = &pieces[i].log->file, .offset = pieces[i].offset, .length = pieces[i].length, .bytes = at};
    fetch_all(j->r->team, fetch, reads);
    reads = 0;
    for (size_t i = 0; i < count && status == DELTAFS_OK && !j->is_full; i++)
        status = values_take_piece(j, &pieces[i], positions, pieces[i].length > 0 ? &fetch[reads++] : NULL, e);
    return status;
}

/* Read all of j->n; j->is_full is set if they take too much. */
static int values_try(struct values_job *j, struct error *e)
{
    struct piece pieces[PIECES];
    int status = buffer_reserve(&j->v->positions, j->n * sizeof(struct value_position), "reading", e);

    if (status != DELTAFS_OK)
        return status;
    struct value_position *positions = (struct value_position *)(void *)j->v->positions.bytes;
    for (size_t i = 0; i < j->n; i++)
        positions[i] = (struct value_position){j->wanted[i].in, i};
    qsort(positions, j->n, sizeof *positions, position_compare);
    for (size_t at = 0; at < j->n && status == DELTAFS_OK && !j->is_full;) {
        size_t count = 0, total = 0;
        for (; at < j->n && count < PIECES && total < PIECES_MAX; total += pieces[count++].length) {
            pieces[count] = values_cut_piece(j, positions, at);
            at = pieces[count].end;
        }
        status = values_take_pieces(j, positions, pieces, count, e);
    }
    return status;
}

int values_fetch(struct reader *r, struct value_wanted *wanted, size_t n, size_t most, struct buffer *bytes,
                 size_t *done, void (*damage)(void *arg, const struct error *e), void *arg, uint64_t *blocks,
                 struct error *e)
{
    int64_t size = r->manifest.value_size;

    /* Of values of one size it is known how many are too many; of others, once they have been read. */
    if (size > 0 && n > most / (size_t)size)
        n = most / (size_t)size > 0 ? most / (size_t)size : 1;
    for (;; n = (n + SHRINK - 1) / SHRINK) {
        struct values_job j = {.r = r,
                               .v = r->values,
                               .wanted = wanted,
                               .n = n,
                               .most = most,
                               .bytes = bytes,
                               .damage = damage,
                               .arg = arg,
                               .blocks = blocks};
        int status = values_try(&j, e);
        *done = n;
        if (status != DELTAFS_OK || !j.is_full)
            return status;
    }
}
