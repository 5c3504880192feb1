/* Which process indexes which rows of a file that a group of processes has just written. Each takes the keys that it
 * wrote itself, as far as the file's merged index, which all have, says that they have not been overwritten since. So
 * the processes need not negotiate, and read back little. */
#include <stdlib.h>
#include <string.h>
#include "fileindex/source_file.h"
#include "logical/logical.h"

#define BATCH 1024 /* keys that are decoded at once */

struct share_scan {
    struct key_file *file;
    struct extent_map *map;
    const struct deltafs_column *column;
    uint64_t rows;
    const struct key_writer *who;
    const char *path;
    key_batch_fn fn;
    void *arg;
    struct pieces pieces;
    uint64_t key[BATCH];
};

static uint64_t row_place(const struct share_scan *s, uint64_t row)
{
    return s->column->offset + row * s->column->stride;
}

/* The first row whose key is at or behind `place` of the file. */
static uint64_t row_from(const struct share_scan *s, uint64_t place)
{
    const struct deltafs_column *c = s->column;
    uint64_t row = place <= c->offset ? 0 : (place - c->offset - 1) / c->stride + 1;

    return row < s->rows ? row : s->rows;
}

static int share_read_back(struct share_scan *s, uint64_t from, uint64_t end, struct error *e)
{
    return key_column_scan(s->file, s->column, from, end, s->path, s->fn, s->arg, e);
}

static int share_hand_out(struct share_scan *s, uint64_t row, const uint8_t *bytes, uint64_t n, struct error *e)
{
    struct deltafs_column packed = *s->column;
    int status = DELTAFS_OK;

    packed.stride = packed.size;
    for (uint64_t i = 0; i < n && status == DELTAFS_OK; i += BATCH) {
        size_t part = (size_t)(n - i < BATCH ? n - i : BATCH);
        status = key_column_decode(&packed, bytes + i * packed.size, part, 0, s->path, s->key, e);
        /* An impossible key: the message has its offset in the file. */
        status = status != DELTAFS_OK ? share_read_back(s, row + i, row + i + part, e)
                                      : s->fn(s->arg, row + i, s->key, part, e);
    }
    return status;
}

/* The rows of a piece that this process wrote last. */
static int share_take(struct share_scan *s, const struct piece *p, struct error *e)
{
    uint64_t row = row_from(s, p->offset), end = row_from(s, p->offset + p->size), size = s->column->size;
    int status = DELTAFS_OK;

    while (row < end && status == DELTAFS_OK) {
        uint64_t n = end - row, position = p->position + (row_place(s, row) - p->offset);
        const uint8_t *kept = NULL;
        /* The last key may go on elsewhere. */
        if (s->who->keys && row_place(s, row) + size <= p->offset + p->size) {
            n -= row_place(s, end - 1) + size > p->offset + p->size;
            kept = captured_keys_find(s->who->keys, row, position, &n);
        }
        status = kept ? share_hand_out(s, row, kept, n, e) : share_read_back(s, row, row + n, e);
        row += n;
    }
    return status;
}

static int is_own(const struct share_scan *s, const struct piece *p)
{
    return !p->is_hole && p->session == s->who->session && p->writer == s->who->writer;
}

/* What is left of one write. */
static int share_take_write(struct share_scan *s, uint64_t offset, uint64_t size, uint64_t position, struct error *e)
{
    uint64_t at = offset, end = offset + size;
    int status = DELTAFS_OK;

    if (row_from(s, offset) == row_from(s, end))
        return DELTAFS_OK;
    while (at < end && status == DELTAFS_OK) {
        status = extent_map_find(s->map, at, end, &s->pieces, e);
        for (size_t i = 0; i < s->pieces.count && status == DELTAFS_OK; i++) {
            const struct piece p = s->pieces.piece[i];
            at = p.offset + p.size;
            /* Another one of this process may have come over it. */
            if (is_own(s, &p) && p.position - position == p.offset - offset)
                status = share_take(s, &p, e);
        }
    }
    return status;
}

/* Where many have written in turn a look-up costs as much as there are writers, for each piece. */
static int share_take_run(void *arg, const struct map_run *r, struct error *e)
{
    struct share_scan *s = arg;
    int status = DELTAFS_OK;

    if (r->session != s->who->session || r->writer != s->who->writer)
        return DELTAFS_OK;
    int is_on_top = r->count > 1 && extent_map_is_on_top(s->map, r);
    for (uint64_t i = 0; i < r->count && status == DELTAFS_OK; i++) {
        const struct piece p = {.offset = r->offset + i * r->stride,
                                .size = r->size,
                                .position = r->position + i * r->position_stride,
                                .session = r->session,
                                .writer = r->writer};
        status = is_on_top ? share_take(s, &p, e) : share_take_write(s, p.offset, p.size, p.position, e);
    }
    return status;
}

/* Rows `from` to `end`, but for those whose keys the group has written. */
static int share_take_rest(struct share_scan *s, uint64_t from, uint64_t end, struct error *e)
{
    int status = DELTAFS_OK;

    while (from < end && status == DELTAFS_OK) {
        status = extent_map_find(s->map, row_place(s, from), row_place(s, end - 1) + 1, &s->pieces, e);
        for (size_t i = 0; i < s->pieces.count && status == DELTAFS_OK; i++) {
            const struct piece p = s->pieces.piece[i];
            uint64_t row = row_from(s, p.offset + p.size);
            row = row < end ? row : end;
            if (p.is_hole || p.session != s->who->session)
                status = share_read_back(s, from, row, e);
            from = row;
        }
    }
    return status;
}

/* One that has taken its place has sessions, writers and positions of the same numbers. */
static int is_written_file(const struct key_file *f, const struct key_writer *w)
{
    return f->kind == 'f' && memcmp(f->logical->container.uuid, w->uuid, sizeof w->uuid) == 0;
}

int key_column_scan_written(struct key_file *f, const struct deltafs_column *c, uint64_t rows, uint64_t from,
                            uint64_t end, const struct key_writer *w, const char *path, key_batch_fn fn, void *arg,
                            struct error *e)
{
    struct key_writer who = *w;

    if (!is_written_file(f, w))
        return key_column_scan(f, c, from, end, path, fn, arg, e);
    struct share_scan *s = calloc(1, sizeof *s);
    if (!s)
        return error_no_memory(e, sizeof *s, "keys");
    if (who.keys && !captured_keys_are_of(who.keys, c))
        who.keys = NULL;
    s->file = f;
    s->map = &f->logical->map;
    s->column = c;
    s->rows = rows;
    s->who = &who;
    s->path = path;
    s->fn = fn;
    s->arg = arg;
    s->pieces.limit = 4096;
    int status = extent_map_each(s->map, 0, UINT64_MAX, share_take_run, s, e);
    if (status == DELTAFS_OK)
        status = share_take_rest(s, from, end, e);
    pieces_fini(&s->pieces);
    free(s);
    return status;
}
