/* Select from whole blocks: the condition is evaluated on the columns of a block, and rows are made of the records that
 * pass. Their keys are known only behind all blocks of a portion, in the order of keys: then the rows are given. */
#include <stdlib.h>
#include <string.h>
#include "base/short_copy.h"
#include "directory/read/scan_blocks.h"
#include "query/select.h"

#define AHEAD_MAX ((uint64_t)1 << 20) /* bytes of rows that the caller has not taken yet: they stay in the cache */

void looked_fini(struct looked *l)
{
    buffer_fini(&l->rows);
    buffer_fini(&l->by);
    buffer_fini(&l->marks);
    free(l->chunk);
}

/* ---- Blocks ---- */

/* Make rows of the `count` records of the part that pass. */
static int look_rows(struct worker *w, size_t at, size_t n, size_t count, struct error *e)
{
    struct looked *l = &w->looked;
    size_t size = select_plan_row_size(&w->select->plan);
    int status = buffer_reserve(&l->rows, (l->count + count) * size + 1, "rows", e);

    if (status == DELTAFS_OK)
        status = buffer_reserve(&l->by, (l->count + count) * sizeof(double), "rows", e);
    if (status == DELTAFS_OK)
        status = eval_part_rows(&w->eval, w->pass, count, l->rows.bytes + l->count * size, e);
    uint32_t *mark = (uint32_t *)(void *)l->marks.bytes + at;
    double *by = (double *)(void *)l->by.bytes;
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        if (!w->pass[i])
            continue;
        by[l->count] = w->by[i];
        mark[i] = (uint32_t)++l->count;
    }
    return status;
}

static int look_block(void *worker, struct block *b, const uint8_t *keys, const uint32_t **marks, struct error *e)
{
    struct worker *w = worker;
    struct looked *l = &w->looked;
    size_t before = l->count;

    if (w->select->is_stopping)
        return error_set(e, DELTAFS_ERR_CANCELLED, "the select is being closed");
    int status = buffer_reserve(&l->marks, b->count * sizeof(uint32_t), "marks", e);
    if (status == DELTAFS_OK)
        status = eval_set_block(&w->eval, b, keys, e);
    for (size_t at = 0; at < b->count && status == DELTAFS_OK; at += BATCH) {
        size_t n = b->count - at < BATCH ? b->count - at : BATCH;
        eval_set_part(&w->eval, at, n);
        eval_test(&w->eval, w->pass);
        if (w->select->plan.by)
            worker_leave_out(w, n);
        size_t count = worker_passes(w, n);
        if (count > 0 && l->count == before)
            memset(l->marks.bytes, 0, b->count * sizeof(uint32_t));
        if (count > 0)
            status = look_rows(w, at, n, count, e);
    }
    if (status != DELTAFS_OK)
        l->count = before;
    *marks = l->count > before ? (const uint32_t *)(const void *)l->marks.bytes : NULL;
    return status;
}

/* ---- Records that pass, in the order of keys ---- */

static void look_flush(struct worker *w)
{
    struct chunk *c = w->looked.chunk;

    w->looked.chunk = NULL;
    if (!c)
        return;
    c->bytes = c->count * (sizeof *c->record + c->record->size);
    worker_give(w, c);
}

/* Add a row of `size` bytes to the chunk. */
static int look_add(struct worker *w, uint64_t key, const uint8_t *row, size_t size, struct error *e)
{
    struct chunk *c = w->looked.chunk;
    if (!c) {
        /* Leaves that name the same records, as no writer makes them, give more than passed. */
        size_t left = w->looked.count > w->looked.given ? w->looked.count - w->looked.given : 1;
        size_t most = left < BATCH ? left : BATCH;
        size_t bytes = sizeof *c + most * (sizeof *c->record + size) + 1;
        c = w->looked.chunk = worker_chunk(w, bytes);
        if (!c)
            return error_no_memory(e, bytes, "rows");
        w->looked.most = most;
        w->looked.given += most;
    }
    uint8_t *value = (uint8_t *)&c->record[w->looked.most] + c->count * size;
    copy_short(value, row, size);
    c->record[c->count++] =
        (struct deltafs_record){.key = key, .label = w->eval.batch.label, .value = value, .size = size};
    if (c->count == w->looked.most)
        look_flush(w);
    return DELTAFS_OK;
}

static int look_give(void *worker, uint64_t key, uint32_t mark, struct error *e)
{
    struct worker *w = worker;
    struct deltafs_select *s = w->select;
    const size_t size = select_plan_row_size(&s->plan), number = mark - 1;
    const uint8_t *row = w->looked.rows.bytes + number * size;
    const struct deltafs_record record = {.key = key, .label = w->eval.batch.label, .value = row, .size = size};

    if (s->except.count > 0 && key_set_has(&s->except, s->manifest, &record))
        return DELTAFS_OK;
    if (!s->plan.by)
        return look_add(w, key, row, size, e);
    pthread_mutex_lock(&s->lock);
    int status =
        top_offer(&s->top, ((const double *)(const void *)w->looked.by.bytes)[number], w->records++, &record, e);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static int look_end(void *worker, struct error *e)
{
    struct worker *w = worker;

    (void)e;
    w->looked.count = w->looked.given = 0;
    look_flush(w);
    return DELTAFS_OK;
}

/* ---- The unit ---- */

/* A segment has its records by key. */
static void look_begin(void *worker, uint32_t segments)
{
    struct worker *w = worker;
    struct deltafs_select *s = w->select;

    if (s->units > 1 || segments > 1 || s->plan.by)
        return;
    pthread_mutex_lock(&s->lock);
    s->is_overflowing = 1;
    s->ahead = s->limit < AHEAD_MAX ? s->limit : AHEAD_MAX;
    s->least = s->ahead / 2;
    pthread_mutex_unlock(&s->lock);
}

int worker_look(struct worker *w, struct error *damage)
{
    struct damages damages = {0};
    const struct scan_look look = {w->eval.needs_keys, look_begin, look_block, look_give, look_end, w, &damages};
    struct part_reader *p;
    int status = reader_part(w->reader, w->partition, &p, &w->error);

    w->looked.count = w->looked.given = 0;
    if (status == DELTAFS_ERR_MEMORY)
        return status;
    if (status != DELTAFS_OK) {
        *damage = w->error;
        return DELTAFS_OK;
    }
    status = part_look(w->reader, p, w->epoch, &look, &w->error);
    if (status == DELTAFS_OK && damages.count > 0)
        error_set(damage, damages.first.status, "%s%s", damages.first.text,
                  damages.count > 1 ? "; there is more damage, which verify lists" : "");
    return status == DELTAFS_ERR_CANCELLED ? DELTAFS_OK : status;
}
