/* The calls of deltafs_query.h that select records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "base/short_copy.h"
#include "base/sized.h"
#include "base/team.h"
#include "base/thread.h"
#include "directory/dir.h"
#include "directory/serial.h"
#include "query/select.h"

#define ROWS_AT_ONCE  4096
#define BYTES_AT_ONCE ((size_t)1 << 20)
#define ROWS_DIRECT   256  /* on average; fewer are copied together */
#define KEYS_EACH     1024 /* a thread is worth so many that are looked up, */
#define KEYS_ALONE    256  /* and none is if it is one of so many */

/* ---- Opening ---- */

static int select_take_keys(struct deltafs_select *s, const struct deltafs_select_options *o, struct error *e)
{
    const struct manifest *m = s->manifest;
    struct key_set also = {0};
    int status = key_set_take(&s->only, o->keys, m, "keys", e);

    if (status == DELTAFS_OK)
        status = key_set_take(&also, o->and_keys, m, "and_keys", e);
    if (status == DELTAFS_OK)
        status = key_set_take(&s->except, o->not_keys, m, "not_keys", e);
    if (status == DELTAFS_OK && also.is_given && s->only.is_given) {
        key_set_filter(&s->only, &also, 1);
    } else if (status == DELTAFS_OK && also.is_given) {
        s->only = also;
        also = (struct key_set){0};
    }
    if (status == DELTAFS_OK && s->only.is_given)
        key_set_filter(&s->only, &s->except, 0);
    key_set_fini(&also);
    return status;
}

/* An index of the worker's own, in the same state. */
static int worker_open_index(struct worker *w, const deltafs_options *options, struct error *e)
{
    const deltafs_fileindex *of = w->select->files->index;
    int status = error_of_call(deltafs_fileindex_open(fileindex_path(of), options, &w->index), e);

    if (status == DELTAFS_OK && !fileindex_is_same(w->index, of))
        return error_set(e, DELTAFS_ERR_CHANGED, "%s: files were indexed since it was opened; open it again",
                         fileindex_path(of));
    return status;
}

/* A reader of the worker's own, for the same directory in the same state or a later one. */
static int worker_open(struct worker *w, const deltafs_options *options, struct error *e)
{
    const struct manifest *m = &w->select->reader->manifest, *own;
    int status = deltafs_open(w->select->reader->path, options, &w->dir);

    if (status != DELTAFS_OK)
        return error_set(e, status, "%s", deltafs_errmsg(NULL));
    status = dir_reader(w->dir, "deltafs_select_open", NULL, &w->reader, &(struct error *){NULL});
    if (status != DELTAFS_OK)
        return error_set(e, status, "%s", deltafs_errmsg(NULL));
    own = &w->reader->manifest;
    w->reader->manifest.caller = m->caller;
    if (memcmp(own->uuid, m->uuid, sizeof m->uuid) != 0 || own->epoch_count < m->epoch_count ||
        own->value_size != m->value_size || strcmp(own->schema, m->schema) != 0 || own->compacted != m->compacted)
        return error_set(e, DELTAFS_ERR_CHANGED, "%s: was replaced since it was opened; open it again",
                         w->reader->path);
    return DELTAFS_OK;
}

/* All workers read as the caller's reader does, but share its cache. */
static int select_open_readers(struct deltafs_select *s, struct error *e)
{
    deltafs_options *o = NULL;
    char threads[32], cache[32];
    int status = deltafs_options_create(&o);

    snprintf(threads, sizeof threads, "%u", team_threads(s->reader->team));
    snprintf(cache, sizeof cache, "%llu", (unsigned long long)(s->reader->cache / s->workers));
    if (status == DELTAFS_OK)
        status = deltafs_options_set(o, "read_threads", threads);
    if (status == DELTAFS_OK)
        status = deltafs_options_set(o, "read_cache", cache);
    if (status == DELTAFS_OK && s->files)
        status = deltafs_options_set(o, "hdf5", fileindex_hdf5(s->files->index));
    if (status != DELTAFS_OK)
        error_set(e, status, "%s", deltafs_errmsg(NULL));
    for (uint32_t i = 0; i < s->workers && status == DELTAFS_OK; i++)
        status = (s->files ? worker_open_index : worker_open)(&s->worker[i], o, e);
    deltafs_options_destroy(o);
    return status;
}

/* How many threads there may be, for how many partitions of one epoch. */
static uint32_t select_most_threads(const struct deltafs_select *s, uint32_t *mine)
{
    uint32_t most = team_threads(s->reader->team), processors = thread_processors();

    *mine = s->partitions / s->parts + (s->partitions % s->parts > 0);
    most = most < processors ? most : processors;
    return most > 0 ? most : 1;
}

static uint32_t select_threads(const struct deltafs_select *s)
{
    uint32_t mine, most = select_most_threads(s, &mine);

    most = s->is_alone ? 1 : most;
    return most < mine * s->slices ? most : mine * s->slices;
}

/* Whether an index has what is needed of nearly all records that it has found. */
static int select_is_alone(const struct deltafs_select *s)
{
    size_t keys = 0, lookups = 0;

    for (size_t i = 0; s->found && i < s->founds; i++) {
        const struct key_set *found = &s->found[i].keys;
        if (!found->is_given)
            return 0;
        for (size_t k = 0; k < found->count; k++)
            lookups += found->key[k].record == 0;
        keys += found->count;
    }
    return s->found && !s->files && lookups <= keys / KEYS_ALONE;
}

/* How many slices a partition has: so that all threads have keys to look up, or each slice is a batch of records that
 * are there. */
static uint32_t select_slices(const struct deltafs_select *s)
{
    uint32_t mine, most = select_most_threads(s, &mine);
    size_t keys = s->only.count;

    for (size_t i = 0; s->found && i < s->founds; i++)
        keys = s->found[i].keys.count > keys ? s->found[i].keys.count : keys;
    if (s->is_alone)
        return (uint32_t)(keys / s->partitions / BATCH + 1);
    size_t slices = keys / KEYS_EACH / mine;
    size_t needed = (most + mine - 1) / mine;
    slices = slices < needed ? slices : needed;
    return slices > 0 ? (uint32_t)slices : 1;
}

static int worker_init(struct worker *w, struct deltafs_select *s, struct error *e)
{
    size_t size = s->found ? (size_t)s->manifest->value_size : 0;
    int status = eval_init(&w->eval, &s->plan, e);

    w->select = s;
    if (status == DELTAFS_OK)
        status = buffer_reserve(&w->value, size + 1, "a record", e);
    if (status == DELTAFS_OK)
        memset(w->value.bytes, 0, size);
    return status;
}

/* The expressions are bound once here, so that mistakes in them are found by the open. */
static int select_make_workers(struct deltafs_select *s, uint64_t label, struct error *e)
{
    int status = DELTAFS_OK;

    s->workers = select_threads(s);
    s->worker = calloc(s->workers, sizeof *s->worker);
    if (!s->worker) {
        status = error_no_memory(e, s->workers * sizeof *s->worker, "threads");
        s->workers = 0;
    }
    for (uint32_t i = 0; i < s->workers && status == DELTAFS_OK; i++)
        status = worker_init(&s->worker[i], s, e);
    if (status == DELTAFS_OK)
        status = eval_bind(&s->worker[0].eval, label, e);
    if (status == DELTAFS_ERR_NOT_FOUND)
        status = eval_bind_failed(status, label, e);
    return status == DELTAFS_OK ? select_open_readers(s, e) : status;
}

/* With fewer threads than wanted it only takes longer; there must be one. */
static int select_start(struct deltafs_select *s, struct error *e)
{
    uint32_t wanted = s->left > 0 && !s->is_alone ? s->workers : 0;

    for (uint32_t i = 0; i < wanted; i++) {
        struct worker *w = &s->worker[i];
        int status = thread_start(&w->thread, worker_run, w, error_after(i > 0, e));
        w->is_started = status == DELTAFS_OK;
        if (!w->is_started)
            return i > 0 ? DELTAFS_OK : status;
    }
    return DELTAFS_OK;
}

/* Find out what there is in the index. That not all of it is known, is said at the end. */
static int select_take_files(struct deltafs_select *s, deltafs_fileindex *index, const struct deltafs_select_options *o,
                             struct error *e)
{
    int status = select_files_create(index, o->range, o->fields == NULL, &s->files, e);

    if (status != DELTAFS_OK)
        return status;
    s->manifest = &s->files->manifest;
    s->damage_epoch = UINT32_MAX;
    fileindex_check(index, &s->damage);
    return DELTAFS_OK;
}

/* Whether the caller gets the rows of an epoch unit by unit from the start: those of the next unit have larger keys. */
static int select_is_by_unit(const struct deltafs_select *s)
{
    return s->is_alone && s->partitions == 1;
}

static int select_make(struct deltafs_select *s, deltafs_fileindex *index, const struct deltafs_select_options *o,
                       struct error *e)
{
    uint32_t first;
    int status = DELTAFS_OK;

    s->part = o->part;
    s->parts = o->parts > 0 ? o->parts : 1;
    s->manifest = &s->reader->manifest;
    if (s->part >= s->parts)
        status = error_set(e, DELTAFS_ERR_INVALID, "part: is %u, of %u parts", s->part, s->parts);
    if (status == DELTAFS_OK && index)
        status = select_take_files(s, index, o, e);
    const struct manifest *m = s->manifest;
    if (status == DELTAFS_OK)
        status = select_plan_make(&s->plan, m, o, e);
    if (status == DELTAFS_OK)
        status = select_take_keys(s, o, e);
    if (status != DELTAFS_OK)
        return status;
    if (s->files)
        select_files_epochs(s->files, o->range, &first, &s->end);
    else
        reader_epochs(s->reader, o->range, &first, &s->end);
    s->partitions = m->partitions;
    s->does_look = !s->files && m->keys == KEYS_U64 && m->value_size >= 0 && !m->is_local && !s->only.is_given &&
                   (first >= m->compacted || first == s->end);
    s->next_epoch = s->epoch = s->begin = first;
    s->top.most = o->top;
    s->limit = (s->reader->memory == OPTION_AUTO ? SERIAL_MEMORY_DEFAULT : s->reader->memory) / 2;
    s->ahead = s->limit;
    select_use_index(s);
    s->is_alone = select_is_alone(s);
    s->is_overflowing = select_is_by_unit(s);
    s->slices = s->files ? 1 : select_slices(s);
    s->units = s->partitions * s->slices;
    s->left = (uint64_t)(s->end - first) * s->units;
    s->unit = calloc(s->units, sizeof *s->unit);
    if (!s->unit)
        return error_no_memory(e, s->units * sizeof *s->unit, "partitions");
    for (uint32_t i = 0; i < s->units; i++)
        s->unit[i].last = &s->unit[i].first;
    status = select_make_workers(s, first < s->end ? m->epoch[first].label : o->range ? o->range->first : 0, e);
    return status == DELTAFS_OK ? select_start(s, e) : status;
}

/* From a directory, or the files of the index that it is. */
static int select_open(const char *call, deltafs_dir *dir, deltafs_fileindex *index,
                       const struct deltafs_select_options *options, deltafs_select **out)
{
    struct deltafs_select_options o = {0};
    struct reader *r;
    struct error *e;
    int status = dir_reader(dir, call, !options ? "options" : !out ? "out" : NULL, &r, &e);

    if (status == DELTAFS_OK)
        status = dir_end(dir, sized_take(&o, options, sizeof o, call, e));
    if (status != DELTAFS_OK)
        return status;
    struct deltafs_select *s = calloc(1, sizeof *s);
    if (!s)
        return dir_end(dir, error_no_memory(e, sizeof *s, "a select"));
    s->dir = dir;
    s->reader = r;
    s->error = e;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->rows, NULL);
    status = select_make(s, index, &o, e);
    if (status != DELTAFS_OK)
        deltafs_select_close(s);
    else
        *out = s;
    return dir_end(dir, status);
}

int deltafs_select_open(deltafs_dir *dir, const struct deltafs_select_options *options, deltafs_select **out)
{
    return select_open("deltafs_select_open", dir, NULL, options, out);
}

int deltafs_select_open_fileindex(deltafs_fileindex *index, const struct deltafs_select_options *options,
                                  deltafs_select **out)
{
    return select_open("deltafs_select_open_fileindex", index ? fileindex_dir(index) : NULL, index, options, out);
}

/* ---- Closing ---- */

static void chunks_free(struct chunk *c)
{
    for (struct chunk *next; c; c = next) {
        next = c->next;
        free(c);
    }
}

static void worker_fini(struct worker *w)
{
    if (w->is_started)
        pthread_join(w->thread, NULL);
    deltafs_close(w->dir);
    deltafs_fileindex_close(w->index);
    looked_fini(&w->looked);
    eval_fini(&w->eval);
    buffer_fini(&w->value);
}

void found_fini(struct found *f)
{
    key_set_fini(&f->keys);
    buffer_fini(&f->records);
}

int deltafs_select_close(deltafs_select *s)
{
    if (!s)
        return DELTAFS_OK;
    pthread_mutex_lock(&s->lock);
    s->is_stopping = 1;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < s->workers; i++)
        worker_fini(&s->worker[i]);
    for (uint32_t i = 0; s->unit && i < s->units; i++)
        chunks_free(s->unit[i].first);
    chunks_free(s->chunks);
    chunks_free(s->spare);
    top_fini(&s->top);
    key_set_fini(&s->only);
    key_set_fini(&s->except);
    for (size_t i = 0; s->found && i < s->founds; i++)
        found_fini(&s->found[i]);
    free(s->found);
    free(s->index);
    carried_fini(&s->carried);
    select_plan_fini(&s->plan);
    select_files_destroy(s->files);
    buffer_fini(&s->sorted);
    buffer_fini(&s->records);
    buffer_fini(&s->values);
    buffer_fini(&s->by);
    pthread_cond_destroy(&s->rows);
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->lock);
    free(s->unit);
    free(s->worker);
    free(s);
    return DELTAFS_OK;
}

/* ---- Rows for the caller ---- */

static int key_compare(const struct deltafs_record *x, const struct deltafs_record *y)
{
    size_t size = x->key_size < y->key_size ? x->key_size : y->key_size;
    int order = size > 0 ? memcmp(x->key_bytes, y->key_bytes, size) : compare(x->key, y->key);

    return order != 0 ? order : compare(x->key_size, y->key_size);
}

static int row_compare(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = key_compare(x->record, y->record);

    return order != 0 ? order : compare(x->order, y->order);
}

/* Take the rows of a unit, which become the caller's; returns the end of the list. */
static struct chunk **select_detach(struct deltafs_select *s, struct unit *u, struct chunk **end)
{
    if (!u->first)
        return end;
    *end = u->first;
    end = u->last;
    for (struct chunk *c = u->first; c; c = c->next)
        s->held -= c->bytes;
    u->first = NULL;
    u->last = &u->first;
    return end;
}

/* Let the workers go on to the next epoch. */
static void select_advance(struct deltafs_select *s)
{
    for (uint32_t i = 0; i < s->units; i++)
        s->unit[i].is_done = 0;
    s->done = 0;
    s->is_overflowing = select_is_by_unit(s);
    s->ahead = s->limit;
    s->least = 0;
    s->taken = 0;
    s->epoch++;
    pthread_cond_broadcast(&s->work);
}

/* With the lock: take rows, if there are any to be taken now. Returns whether it makes sense to look again. */
static int select_take(struct deltafs_select *s, int *is_ordered)
{
    struct chunk **end = &s->chunks;

    *is_ordered = s->is_overflowing && !s->is_alone;
    if (s->is_overflowing) {
        struct unit *u = &s->unit[s->taken];
        if (!u->is_done && s->held < s->least)
            return 0;
        select_detach(s, u, end);
        if (s->chunks)
            pthread_cond_broadcast(&s->work);
        else if (u->is_done && ++s->taken == s->units)
            select_advance(s);
        else if (!u->is_done)
            return 0;
        return 1;
    }
    if (s->done < s->units)
        return 0;
    for (uint32_t i = 0; i < s->units; i++)
        end = select_detach(s, &s->unit[i], end);
    select_advance(s);
    return 1;
}

/* With the lock: wait for a thread that has done something, or do a unit if there are no threads. */
static void select_go_on(struct deltafs_select *s)
{
    if (!s->is_alone) {
        pthread_cond_wait(&s->rows, &s->lock);
        return;
    }
    pthread_mutex_unlock(&s->lock);
    worker_step(&s->worker[0]);
    pthread_mutex_lock(&s->lock);
}

/* Wait for rows; s->chunks stays NULL at the end. */
static int select_wait(struct deltafs_select *s, int *is_ordered)
{
    pthread_mutex_lock(&s->lock);
    while (!s->chunks && s->fatal.status == DELTAFS_OK && s->epoch < s->end)
        if (!select_take(s, is_ordered))
            select_go_on(s);
    int status = s->fatal.status;
    if (status != DELTAFS_OK)
        *s->error = s->fatal;
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* Whether the rows in s->chunks are in the order of keys. */
static int chunks_are_sorted(const struct deltafs_select *s)
{
    const struct deltafs_record *last = NULL;

    for (const struct chunk *c = s->chunks; c; c = c->next)
        for (size_t i = 0; i < c->count; last = &c->record[i++])
            if (last && key_compare(last, &c->record[i]) > 0)
                return 0;
    return 1;
}

/* The rows in s->chunks, in the order of keys unless they are in order. If these are in large chunks, they can be given
 * chunk by chunk. */
static int select_sort(struct deltafs_select *s, int is_ordered)
{
    size_t n = 0, count = 0, chunks = 0;

    for (const struct chunk *c = s->chunks; c; c = c->next, chunks++)
        count += c->count;
    is_ordered = is_ordered || chunks_are_sorted(s);
    s->is_direct = is_ordered && count >= chunks * ROWS_DIRECT;
    if (s->is_direct)
        return DELTAFS_OK;
    int status = buffer_reserve(&s->sorted, count * sizeof(struct row), "rows", s->error);
    if (status != DELTAFS_OK)
        return status;
    struct row *row = (struct row *)(void *)s->sorted.bytes;
    for (const struct chunk *c = s->chunks; c; c = c->next)
        for (size_t i = 0; i < c->count; i++, n++)
            row[n] = (struct row){&c->record[i], n};
    if (!is_ordered)
        qsort(row, n, sizeof *row, row_compare);
    s->count = n;
    return DELTAFS_OK;
}

/* The caller is done with the first chunk. */
static void select_drop(struct deltafs_select *s)
{
    struct chunk *c = s->chunks;

    s->chunks = c->next;
    if (c->room == 0 || c->count < BATCH) {
        free(c);
        return;
    }
    pthread_mutex_lock(&s->lock);
    c->next = s->spare;
    s->spare = c;
    pthread_mutex_unlock(&s->lock);
}

/* Wait for all rows of `top`. */
static int select_fill_top(struct deltafs_select *s)
{
    if (s->is_sorted)
        return DELTAFS_OK;
    pthread_mutex_lock(&s->lock);
    while (s->left > 0 && s->fatal.status == DELTAFS_OK)
        select_go_on(s);
    int status = s->fatal.status;
    if (status != DELTAFS_OK)
        *s->error = s->fatal;
    pthread_mutex_unlock(&s->lock);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->sorted, s->top.count * sizeof(struct row), "rows", s->error);
    if (status != DELTAFS_OK)
        return status;
    top_sort(&s->top);
    for (size_t i = 0; i < s->top.count; i++)
        ((struct row *)(void *)s->sorted.bytes)[i] = (struct row){&s->top.row[i].record, i};
    s->count = s->top.count;
    s->is_sorted = 1;
    return DELTAFS_OK;
}

/* Whether there are rows that have not been returned. */
static int select_has_rows(const struct deltafs_select *s)
{
    return s->is_direct ? s->chunks != NULL : s->at < s->count;
}

/* The next rows in s->sorted or s->chunks; none at the end. */
static int select_fill(struct deltafs_select *s)
{
    int is_ordered = 0;

    s->at = s->count = 0;
    s->is_direct = 0;
    if (s->plan.by)
        return select_fill_top(s);
    while (s->chunks)
        select_drop(s);
    int status = select_wait(s, &is_ordered);
    return status == DELTAFS_OK && s->chunks ? select_sort(s, is_ordered) : status;
}

/* Copy some rows, so that their values lie one after the other. */
static int select_copy(struct deltafs_select *s, size_t *count, struct error *e)
{
    const struct row *row = (const struct row *)(const void *)s->sorted.bytes + s->at;
    size_t n = 0, bytes = 0;

    while (n < s->count - s->at && n < ROWS_AT_ONCE && (n == 0 || bytes + row[n].record->size <= BYTES_AT_ONCE))
        bytes += row[n++].record->size;
    int status = buffer_reserve(&s->records, n * sizeof(struct deltafs_record) + 1, "rows", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->values, bytes + 1, "rows", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&s->by, n * sizeof(double) + 1, "rows", e);
    if (status != DELTAFS_OK)
        return status;
    for (size_t i = 0; s->plan.by && i < n; i++)
        ((double *)(void *)s->by.bytes)[i] = s->top.row[s->at + i].by;
    struct deltafs_record *record = (struct deltafs_record *)(void *)s->records.bytes;
    uint8_t *value = s->values.bytes;
    for (size_t i = 0; i < n; value += record[i++].size) {
        record[i] = *row[i].record;
        record[i].value = value;
        copy_short(value, row[i].record->value, record[i].size);
    }
    s->at += n;
    *count = n;
    return DELTAFS_OK;
}

int deltafs_select_next(deltafs_select *s, const struct deltafs_record **rows, size_t *count)
{
    size_t n = 0;

    if (!s || !rows || !count)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_select_next: select, rows and count must be given");
    if (s->is_given)
        select_drop(s);
    s->is_given = 0;
    int status = select_has_rows(s) ? DELTAFS_OK : select_fill(s);
    if (status == DELTAFS_OK && select_has_rows(s)) {
        status = s->is_direct ? DELTAFS_OK : select_copy(s, &n, s->error);
        s->is_given = s->is_direct;
    } else if (status == DELTAFS_OK && s->damage.status != DELTAFS_OK) {
        *s->error = s->damage;
        status = s->damage.status;
    }
    if (status == DELTAFS_OK) {
        *rows = s->is_given ? s->chunks->record : (const struct deltafs_record *)(const void *)s->records.bytes;
        *count = s->is_given ? s->chunks->count : n;
    }
    return dir_end(s->dir, status);
}

const double *deltafs_select_values(const deltafs_select *s)
{
    return s->plan.by ? (const double *)(const void *)s->by.bytes : NULL;
}

int deltafs_select_progress(deltafs_select *s, double *share)
{
    if (!s || !share)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_select_progress: select and share must be given");
    uint64_t all = (uint64_t)(s->end - s->begin) * s->units;
    pthread_mutex_lock(&s->lock);
    *share = all > 0 ? 1 - (double)s->left / (double)all : 1;
    pthread_mutex_unlock(&s->lock);
    return DELTAFS_OK;
}

const char *deltafs_select_index(const deltafs_select *s)
{
    return s->index;
}

const char *deltafs_select_schema(const deltafs_select *s)
{
    return (const char *)s->plan.text.bytes;
}
