/* The threads of a select. */
#include <stdlib.h>
#include <string.h>
#include "query/select.h"

#define PASS_STEP   32 /* a loop of so many becomes vector instructions; divides BATCH */
#define ROWS_BITS   40 /* a unit of files has fewer rows than two to this */
#define FOUND_AHEAD 16 /* records of an index that are fetched into the processor's cache, since they lie anywhere */

/* ---- Units ---- */

/* Take the next unit; returns 0 if there is none. */
static int worker_next(struct worker *w)
{
    struct deltafs_select *s = w->select;

    pthread_mutex_lock(&s->lock);
    while (!s->is_stopping && s->next_epoch < s->end && !s->plan.by && s->next_epoch > s->epoch)
        pthread_cond_wait(&s->work, &s->lock);
    int is_there = !s->is_stopping && s->next_epoch < s->end;
    if (is_there) {
        w->epoch = s->next_epoch;
        w->unit = s->next_unit++;
        w->partition = w->unit / s->slices;
        if (s->next_unit == s->units) {
            s->next_unit = 0;
            s->next_epoch++;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return is_there;
}

/* Damage keeps no other unit from being read; other errors end the select. */
static void worker_failed(struct worker *w, int status)
{
    struct deltafs_select *s = w->select;

    if (status == DELTAFS_ERR_MEMORY || status == DELTAFS_ERR_INVALID) {
        if (s->fatal.status == DELTAFS_OK)
            s->fatal = w->error;
        s->is_stopping = 1;
        pthread_cond_broadcast(&s->work);
    } else if (s->damage.status == DELTAFS_OK || w->epoch < s->damage_epoch ||
               (w->epoch == s->damage_epoch && w->unit < s->damage_unit)) {
        s->damage = w->error;
        s->damage_epoch = w->epoch;
        s->damage_unit = w->unit;
    }
}

static void worker_finish(struct worker *w, int status)
{
    struct deltafs_select *s = w->select;

    pthread_mutex_lock(&s->lock);
    if (status != DELTAFS_OK)
        worker_failed(w, status);
    s->left--;
    if (!s->plan.by) {
        s->unit[w->unit].is_done = 1;
        s->done++;
    }
    pthread_cond_signal(&s->rows);
    pthread_mutex_unlock(&s->lock);
}

/* Whether the worker must wait for the caller to take rows. The worker of the unit whose rows the caller takes waits
 * only if there are some. */
static int worker_must_wait(const struct worker *w)
{
    const struct deltafs_select *s = w->select;

    return !s->is_alone && !s->is_stopping && s->held > s->ahead && (w->unit != s->taken || s->unit[w->unit].first);
}

struct chunk *worker_chunk(struct worker *w, size_t bytes)
{
    struct deltafs_select *s = w->select;

    pthread_mutex_lock(&s->lock);
    struct chunk *c = s->spare;
    /* What is in use is counted by its rows: so not one with much more room. */
    if (c && (c->room < bytes || c->room / 2 > bytes))
        c = NULL;
    if (c)
        s->spare = c->next;
    pthread_mutex_unlock(&s->lock);
    size_t room = c ? c->room : bytes;
    c = c ? c : malloc(bytes);
    if (c)
        *c = (struct chunk){.room = room};
    return c;
}

void worker_give(struct worker *w, struct chunk *c)
{
    struct deltafs_select *s = w->select;
    struct unit *u = &s->unit[w->unit];

    pthread_mutex_lock(&s->lock);
    *u->last = c;
    u->last = &c->next;
    s->held += c->bytes;
    if (s->held > s->limit)
        s->is_overflowing = 1;
    if (s->is_overflowing && s->held >= s->least)
        pthread_cond_signal(&s->rows);
    while (s->is_overflowing && worker_must_wait(w))
        pthread_cond_wait(&s->work, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

/* ---- Batches ---- */

void worker_leave_out(struct worker *w, size_t n)
{
    struct deltafs_select *s = w->select;
    double least;

    eval_by(&w->eval, w->by);
    pthread_mutex_lock(&s->lock);
    int has_least = top_has_least(&s->top, &least);
    pthread_mutex_unlock(&s->lock);
    if (has_least)
        expr_at_least(w->by, least, n, w->pass);
}

size_t worker_passes(const struct worker *w, size_t n)
{
    size_t count = 0, group = 0;

    for (; group + PASS_STEP <= n; group += PASS_STEP) {
        uint8_t some = 0;
        for (size_t i = 0; i < PASS_STEP; i++)
            some += w->pass[group + i];
        count += some;
    }
    for (; group < n; group++)
        count += w->pass[group];
    return count;
}

/* Offer rows that may be among the first. */
static int worker_offer(struct worker *w)
{
    struct deltafs_select *s = w->select;
    struct batch *b = &w->eval.batch;
    struct chunk *c;
    worker_leave_out(w, b->n);
    size_t count = worker_passes(w, b->n);
    if (count == 0)
        return DELTAFS_OK;
    int status = eval_rows(&w->eval, w->pass, count, &c, &w->error);
    if (status != DELTAFS_OK)
        return status;
    const struct deltafs_record *record = c->record;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < b->n && status == DELTAFS_OK; i++)
        if (w->pass[i])
            status = top_offer(&s->top, w->by[i], w->records + i, record++, &w->error);
    pthread_mutex_unlock(&s->lock);
    free(c);
    return status;
}

/* The batch's records that are not left out by their keys; returns how many pass. */
static size_t worker_except(struct worker *w)
{
    struct deltafs_select *s = w->select;
    const struct batch *b = &w->eval.batch;

    for (size_t i = 0; s->except.count > 0 && i < b->n; i++)
        if (w->pass[i]) {
            struct deltafs_record record = batch_record(b, i);
            w->pass[i] = !key_set_has(&s->except, s->manifest, &record);
        }
    return worker_passes(w, b->n);
}

static int worker_flush(struct worker *w)
{
    struct batch *b = &w->eval.batch;
    struct chunk *c;
    int status = DELTAFS_OK;

    if (b->n == 0)
        return DELTAFS_OK;
    eval_test(&w->eval, w->pass);
    for (size_t i = 0; w->select->found && i < b->n; i++)
        w->pass[i] |= w->is_sure[i];
    size_t count = worker_except(w);
    if (count > 0 && w->select->plan.by) {
        status = worker_offer(w);
    } else if (count > 0) {
        status = eval_rows(&w->eval, w->pass, count, &c, &w->error);
        if (status == DELTAFS_OK)
            worker_give(w, c);
    }
    w->records += b->n;
    b->n = 0;
    return status;
}

int worker_take(const struct deltafs_record *record, void *worker)
{
    struct worker *w = worker;
    int status = batch_add(&w->eval.batch, record, &w->error);

    if (status == DELTAFS_OK && batch_is_full(&w->eval.batch))
        status = worker_flush(w);
    return status != DELTAFS_OK || w->select->is_stopping;
}

/* ---- Reading ---- */

/* Keep the first message. */
static void worker_damaged(const struct error *e, struct error *damage)
{
    if (damage->status == DELTAFS_OK)
        *damage = *e;
}

static int worker_scan(struct worker *w, const struct deltafs_range *range, struct error *damage)
{
    int stopped = 0, status = deltafs_scan_partition(w->dir, w->partition, range, worker_take, w, &stopped);
    struct error e;

    if (stopped)
        return w->error.status;
    if (status == DELTAFS_OK)
        return DELTAFS_OK;
    error_set(&e, status, "%s", deltafs_errmsg(w->dir));
    if (status != DELTAFS_ERR_MEMORY)
        worker_damaged(&e, damage);
    else
        w->error = e;
    return w->error.status;
}

/* Whether a key is in the partition of the unit; `by` NULL: it is. Where that is not known, the unit takes it by its
 * hash.
 */
static int worker_has(const struct worker *w, const struct partitioner *by, const struct set_key *key)
{
    return !by || partition_of(by, key->number) == w->partition;
}

/* Take the records that an index has found, as far as it has all that is needed of them. */
static int worker_take_found(struct worker *w, const struct set_key *key, size_t n, const struct partitioner *by)
{
    const struct deltafs_select *s = w->select;
    const struct found *f = &s->found[w->epoch - s->begin];
    struct deltafs_record record = {.label = w->eval.batch.label, .value = w->value.bytes};
    int stopped = 0;

    record.size = (size_t)s->manifest->value_size;
    for (size_t i = 0; i < n && !stopped; i++) {
        if (i + FOUND_AHEAD < n && key[i + FOUND_AHEAD].record > 0)
            __builtin_prefetch(f->records.bytes + (key[i + FOUND_AHEAD].record - 1) * f->size);
        if (key[i].record == 0 || !worker_has(w, by, &key[i]))
            continue;
        record.key = key[i].number;
        if (f->size > 0)
            carried_put(&s->carried, f->records.bytes + (key[i].record - 1) * f->size, w->value.bytes);
        w->is_sure[w->eval.batch.n] = key[i].is_sure;
        stopped = worker_take(&record, w);
    }
    int status = stopped ? w->error.status : worker_flush(w);
    memset(w->is_sure, 0, sizeof w->is_sure);
    return status;
}

/* Look up `n` keys, and let `fn` take their records. */
static int worker_look_up(struct worker *w, const struct lookup_key *key, size_t n, deltafs_record_fn fn, int *stopped,
                          struct error *damage)
{
    struct lookup_to to = {.fn = fn, .arg = w};
    struct part_reader *p;
    struct error e;
    int status = reader_part(w->reader, w->partition, &p, &e);

    if (status == DELTAFS_OK)
        status = lookup_give(w->reader, p, key, n, w->epoch, w->epoch + 1, &to, &e);
    *stopped = to.stopped;
    if (status == DELTAFS_ERR_MEMORY)
        w->error = e;
    else if (status != DELTAFS_OK)
        worker_damaged(&e, damage);
    return w->error.status;
}

/* A deltafs_record_fn: the next of the keys' records, in their order, if each has one. */
static int worker_take_sure(const struct deltafs_record *record, void *worker)
{
    struct worker *w = worker;
    size_t n = w->eval.batch.n;

    if (n == w->looked_up || record->key != w->key[n].key)
        return 1;
    w->is_sure[n] = 1;
    return batch_add(&w->eval.batch, record, &w->error) != DELTAFS_OK;
}

/* Look up `n` keys, a batch. Without a test, unless a key has several records, or an epoch several segments, or a key
 * may have none here. */
static int worker_get_batch(struct worker *w, size_t n, int is_sure, struct error *damage)
{
    const uint8_t *wanted = w->reader->wanted; /* NULL: the reader must have all */
    int stopped = 0, status = DELTAFS_OK;

    w->looked_up = n;
    if (is_sure) {
        w->reader->wanted = wanted ? w->eval.sure.bytes : NULL;
        status = worker_look_up(w, w->key, n, worker_take_sure, &stopped, &(struct error){.status = DELTAFS_OK});
        w->reader->wanted = wanted;
        is_sure = !stopped && w->eval.batch.n == n;
        if (status == DELTAFS_OK && is_sure)
            status = worker_flush(w);
        w->eval.batch.n = 0;
        memset(w->is_sure, 0, sizeof w->is_sure);
    }
    if (status == DELTAFS_OK && !is_sure)
        status = worker_look_up(w, w->key, n, worker_take, &stopped, damage);
    return status == DELTAFS_OK ? worker_flush(w) : status; /* the next batch begins with none */
}

/* Look up the keys of which an index has found no records, those with records that pass for sure, or the others. */
static int worker_get_some(struct worker *w, const struct set_key *key, size_t n, const struct partitioner *by,
                           int is_sure, struct error *damage)
{
    const struct manifest *m = w->select->manifest;
    size_t count = 0, most = BATCH;
    int is_everywhere = by && by->is_unknown, status = DELTAFS_OK;

    if (is_sure && m->value_size > 0 && BATCH_BYTES / (size_t)m->value_size < most)
        most = BATCH_BYTES / (size_t)m->value_size + 1;
    for (size_t i = 0; i < n && status == DELTAFS_OK && !w->select->is_stopping; i++) {
        if (key[i].record > 0 || key[i].is_sure != is_sure || !(is_everywhere || worker_has(w, by, &key[i])))
            continue;
        w->key[count++] = (struct lookup_key){
            .partition = w->partition, .key = key[i].number, .bytes = key[i].bytes, .size = key[i].size};
        if (count < most)
            continue;
        status = worker_get_batch(w, count, is_sure && !is_everywhere, damage);
        count = 0;
    }
    return status == DELTAFS_OK && count > 0 ? worker_get_batch(w, count, is_sure && !is_everywhere, damage) : status;
}

static int worker_get(struct worker *w, const struct key_set *only, struct error *damage)
{
    const struct deltafs_select *s = w->select;
    const struct manifest *m = s->manifest;
    const struct partitioner all = manifest_partitioner(m, w->epoch, NULL), *by = NULL;
    size_t slice = w->unit % s->slices, at, end;
    int status = DELTAFS_OK;

    if (!key_set_part(only, m, w->epoch, w->partition, &at, &end))
        by = &all;
    const struct set_key *key = only->key + at + (end - at) * slice / s->slices;
    size_t n = (end - at) * (slice + 1) / s->slices - (end - at) * slice / s->slices;
    if (s->found)
        status = worker_take_found(w, key, n, by);
    for (int is_sure = 1; is_sure >= 0 && status == DELTAFS_OK; is_sure--)
        status = worker_get_some(w, key, n, by, is_sure, damage);
    return status;
}

/* Whether the unit belongs to the caller's part of the work. A scan is not sliced. */
static int worker_is_mine(const struct worker *w)
{
    const struct deltafs_select *s = w->select;

    return ((uint64_t)(w->epoch - s->begin) * s->partitions + w->partition) % s->parts == s->part;
}

static int worker_unit(struct worker *w)
{
    struct deltafs_select *s = w->select;
    uint64_t label = s->manifest->epoch[w->epoch].label;
    const struct deltafs_range range = {label, label};
    const struct manifest *m = s->manifest;
    const struct key_set *found = s->found && !s->files ? &s->found[w->epoch - s->begin].keys : NULL;
    const struct key_set *only = found && found->is_given ? found : &s->only;
    int does_look = s->does_look && !only->is_given;
    struct error damage = {.status = DELTAFS_OK};

    if (!worker_is_mine(w) || (!only->is_given && w->unit % s->slices > 0))
        return DELTAFS_OK;
    w->error.status = DELTAFS_OK;
    /* Rows of files may have the same key in several units of an epoch. */
    w->records = s->files ? (uint64_t)w->unit << ROWS_BITS : 0;
    memset(w->is_sure, 0, sizeof w->is_sure);
    w->eval.block = NULL;
    w->eval.batch.n = 0;
    w->eval.batch.label = label;
    int status = eval_bind(&w->eval, label, &w->error);
    if (status != DELTAFS_OK)
        return eval_bind_failed(status, label, &w->error);
    if (m->keys == KEYS_U64 && !m->is_local && !s->files)
        w->reader->wanted = does_look ? w->eval.test.bytes : w->eval.row.bytes;
    if (s->files)
        status = worker_read_files(w, &damage);
    else if (does_look)
        status = worker_look(w, &damage);
    else
        status = only->is_given ? worker_get(w, only, &damage) : worker_scan(w, &range, &damage);
    if (status == DELTAFS_OK && !does_look)
        status = worker_flush(w);
    if (status == DELTAFS_OK && damage.status != DELTAFS_OK)
        w->error = damage;
    return error_first(status, damage.status);
}

int worker_step(struct worker *w)
{
    int is_there = worker_next(w);

    if (is_there)
        worker_finish(w, worker_unit(w));
    return is_there;
}

void *worker_run(void *worker)
{
    while (worker_step(worker))
        ;
    return NULL;
}
