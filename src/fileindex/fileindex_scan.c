/* Scanning: a block of rows is read column by column, its rows are put together, and handed out. A file that changes
 * meanwhile is noticed before the rows of a block are. */
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "fileindex/fileindex_lookup.h"
#include "fileindex/fileindex_scan.h"

#define BLOCK_BYTES ((uint64_t)1 << 22) /* about. Not less, since HDF5 decompresses a whole chunk for a part of it */
#define GAP_BYTES   4096                /* between two values of a column that are read rather than passed over, */
#define GAP_ROWS    65536               /* and rows of a dataset: they are likely to be in one chunk */

/* A table that is being scanned. */
struct scan {
    deltafs_fileindex *k;
    const struct table_part *part;
    const struct keys_entry *entry;
    struct key_file *file;
    uint8_t *wanted; /* for each column of the table */
    size_t size;     /* bytes of a value */
    uint64_t most;   /* rows of a block */
    uint64_t gap;    /* rows from one to the next, at most, that are read together */
    uint64_t *key;   /* of a block's rows */
    uint8_t *value;
};

/* The column of value number `i`. */
static size_t scan_column(const struct scan *s, size_t i)
{
    size_t field = s->part->field ? s->part->field[i] : i;

    return field + (field >= s->entry->table->table.key);
}

/* What a row of it takes in memory. */
static uint64_t column_bytes(const struct deltafs_column *c)
{
    return c->stride < BLOCK_BYTES ? c->stride : BLOCK_BYTES;
}

static int scan_is_wanted(const struct scan *s, size_t i)
{
    return !s->part->wanted || s->part->wanted[i];
}

static void scan_fini(struct scan *s)
{
    free(s->wanted);
    free(s->key);
    free(s->value);
}

/* From the first row that is read to the last there are `rows`. */
static int scan_init(struct scan *s, uint64_t rows, struct error *e)
{
    const struct deltafs_table *t = &s->entry->table->table;
    uint64_t row = column_bytes(&t->column[t->key]);

    s->gap = GAP_ROWS;
    s->wanted = calloc(t->column_count, 1);
    if (!s->wanted)
        return error_no_memory(e, t->column_count, "columns");
    s->wanted[t->key] = 1;
    for (size_t i = 0; i < s->part->count; i++) {
        const struct deltafs_column *c = &t->column[scan_column(s, i)];
        s->size += c->size;
        row += scan_is_wanted(s, i) ? column_bytes(c) : 0;
        s->wanted[scan_column(s, i)] |= (uint8_t)scan_is_wanted(s, i);
    }
    for (size_t i = 0; i < t->column_count; i++) {
        const struct deltafs_column *c = &t->column[i];
        if (s->wanted[i] && !c->dataset && c->stride > 0 && s->gap > GAP_BYTES / c->stride + 1)
            s->gap = GAP_BYTES / c->stride + 1;
    }
    row += s->size;
    s->most = BLOCK_BYTES / row + 1;
    s->most = s->most < rows ? s->most : rows;
    s->key = calloc((size_t)s->most + 1, sizeof *s->key);
    s->value = calloc((size_t)s->most + 1, s->size + 1);
    return s->key && s->value ? DELTAFS_OK : error_no_memory(e, (size_t)(s->most * (s->size + 9)), "rows");
}

/* Get `n` values that lie one stride after the other. */
static void scan_put(const struct deltafs_column *c, const uint8_t *from, uint64_t n, uint8_t *to, size_t step)
{
    const size_t stride = c->constant ? 0 : (size_t)c->stride;

    for (uint64_t i = 0; i < n; i++, from += stride, to += step)
        column_value(c, from, to);
}

/* The values of a column into `to`, where the first row has it; or the keys into `key`, if `to` is NULL. */
static int scan_take(struct scan *s, const struct deltafs_column *c, uint64_t from, uint64_t end, uint64_t *key,
                     uint8_t *to, struct error *e)
{
    const char *path = s->k->source[s->entry->source].path;
    const uint8_t *elements = c->constant;
    int status = DELTAFS_OK;

    if (c->dataset)
        status = rows_elements(s->k, s->entry, s->file, c, from, end - from, &elements, e);
    for (uint64_t row = from, run; row < end && status == DELTAFS_OK; row += run) {
        uint64_t place = column_place(c, row);
        run = elements ? end - row : column_run(c, row, end);
        const uint8_t *value = elements ? elements : rows_value(s->k, place);
        if (to)
            scan_put(c, value, run, to + (row - from) * s->size, s->size);
        else
            status = key_column_decode(c, value, (size_t)run, place, path, key + (row - from), e);
    }
    return status;
}

/* Read rows `from` to end - 1 into the block, from row number `place` of it on. */
static int scan_read(struct scan *s, uint64_t from, uint64_t end, size_t place, struct error *e)
{
    const struct deltafs_table *t = &s->entry->table->table;
    uint64_t bytes = 0;
    size_t at = place * s->size;
    int status = rows_find(s->k, t->column, t->column_count, s->wanted, from, end, &bytes, e);

    if (status == DELTAFS_OK)
        status = rows_read(s->k, s->file, bytes, e);
    if (status == DELTAFS_OK)
        status = scan_take(s, &t->column[t->key], from, end, s->key + place, NULL, e);
    for (size_t i = 0; i < s->part->count && status == DELTAFS_OK; i++) {
        const struct deltafs_column *c = &t->column[scan_column(s, i)];
        if (scan_is_wanted(s, i))
            status = scan_take(s, c, from, end, NULL, s->value + at, e);
        at += c->size;
    }
    return status;
}

/* Some of `n` rows into the block: those that are near to each other, and the rows between them, are read together, and
 * then moved to where they belong. *some gets their number. */
static int scan_read_some(struct scan *s, const uint64_t *row, size_t n, size_t *some, struct error *e)
{
    size_t i = 0, end;
    int status = DELTAFS_OK;

    for (; i < n && i < s->most && status == DELTAFS_OK; i = end) {
        for (end = i + 1; end < n && row[end] - row[end - 1] <= s->gap && row[end] - row[i] < s->most - i;)
            end++;
        status = scan_read(s, row[i], row[end - 1] + 1, i, e);
        for (size_t k = i + 1; k < end && status == DELTAFS_OK; k++) {
            size_t from = i + (size_t)(row[k] - row[i]);
            s->key[k] = s->key[from];
            memmove(s->value + k * s->size, s->value + from * s->size, s->size);
        }
    }
    *some = i;
    return status;
}

/* The rows of the block: these; or those from `from` on, if `rows` is NULL. */
static void scan_hand_out(const struct scan *s, const uint64_t *rows, uint64_t from, uint64_t n, deltafs_row_fn fn,
                          void *arg, int *stop)
{
    const struct source_table *t = s->entry->table;
    struct deltafs_row r = {.label = t->table.label,
                            .path = s->k->source[s->entry->source].path,
                            .table = t->table.name,
                            .schema = t->schema,
                            .size = s->size};

    for (uint64_t i = 0; i < n && *stop == 0; i++) {
        r.key = s->key[i];
        r.row = rows ? rows[i] : from + i;
        r.value = s->value + i * s->size;
        if (!source_table_is_padding(t, r.key))
            *stop = fn(&r, arg);
    }
}

/* Of a part: all rows, if `rows` is NULL; or these. */
static int scan_rows(deltafs_fileindex *k, const struct table_part *p, const uint64_t *rows, uint64_t count,
                     deltafs_row_fn fn, void *arg, int *stop, struct error *e)
{
    struct scan s = {.k = k, .part = p, .entry = &k->entry[p->table]};
    int status = keys_source_open(k, s.entry->source, &s.file, e);

    if (status == DELTAFS_OK)
        status = scan_init(&s, rows && count > 0 ? rows[count - 1] - rows[0] + 1 : count, e);
    for (uint64_t at = 0; at < count && status == DELTAFS_OK && *stop == 0;) {
        size_t n = count - at < s.most ? (size_t)(count - at) : (size_t)s.most;
        status = keys_source_open(k, s.entry->source, &s.file, e);
        if (status == DELTAFS_OK)
            status =
                rows ? scan_read_some(&s, rows + at, n, &n, e) : scan_read(&s, p->from + at, p->from + at + n, 0, e);
        if (status == DELTAFS_OK)
            status = keys_source_open(k, s.entry->source, &s.file, e);
        if (status == DELTAFS_OK)
            scan_hand_out(&s, rows ? rows + at : NULL, p->from + at, n, fn, arg, stop);
        at += n;
    }
    scan_fini(&s);
    return status;
}

int fileindex_scan_part(deltafs_fileindex *k, const struct table_part *p, deltafs_row_fn fn, void *arg, int *stop,
                        struct error *e)
{
    return scan_rows(k, p, NULL, p->end - p->from, fn, arg, stop, e);
}

int fileindex_scan_rows(deltafs_fileindex *k, const struct table_part *p, const uint64_t *row, size_t n,
                        deltafs_row_fn fn, void *arg, int *stop, struct error *e)
{
    return scan_rows(k, p, row, n, fn, arg, stop, e);
}

/* Note the labels of the tables that could not be read: now, since the caller's function may have looked keys up. */
static int scan_note_missing(deltafs_fileindex *k, const uint8_t *is_missing, struct error *e)
{
    int status = keys_miss_none(k, e);

    for (size_t i = 0; i < k->entry_count && status == DELTAFS_OK; i++)
        if (is_missing[i])
            keys_miss(k, &k->entry[i]);
    return status;
}

int deltafs_fileindex_scan(deltafs_fileindex *k, const struct deltafs_range *range, deltafs_row_fn fn, void *arg,
                           int *stopped)
{
    struct keys_faults faults = {{0}, 0};
    struct error e = {0};
    int stop = 0;

    if (!k || !fn)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_fileindex_scan: the handle and fn must be given");
    uint8_t *is_missing = calloc(k->entry_count + 1, 1);
    if (!is_missing)
        return error_no_memory(deltafs_private_thread_error(), k->entry_count, "labels");
    for (size_t i = 0; i < k->entry_count && stop == 0; i++) {
        const struct deltafs_table *t = &k->entry[i].table->table;
        const struct table_part all = {.table = i, .end = t->rows, .count = t->column_count - 1};
        if (!keys_entry_is_in(&k->entry[i], range))
            continue;
        e.status = DELTAFS_OK;
        is_missing[i] = fileindex_scan_part(k, &all, fn, arg, &stop, &e) != DELTAFS_OK;
        keys_keep_fault(&faults, &e);
    }
    e.status = DELTAFS_OK;
    scan_note_missing(k, is_missing, &e);
    keys_keep_fault(&faults, &e);
    free(is_missing);
    if (stopped)
        *stopped = stop;
    if (stop != 0)
        return DELTAFS_OK;
    e.status = DELTAFS_OK;
    fileindex_check(k, &e);
    keys_keep_fault(&faults, &e);
    return keys_end(&faults);
}

/* ---- For those who scan tables by themselves ---- */

int fileindex_is_same(const deltafs_fileindex *a, const deltafs_fileindex *b)
{
    const struct sources *x = &a->sources, *y = &b->sources;

    return strcmp(x->uuid_text, y->uuid_text) == 0 && x->size == y->size && x->chain == y->chain;
}

int fileindex_check(const deltafs_fileindex *k, struct error *e)
{
    int status = keys_check_any(k, e);

    if (status == DELTAFS_OK && k->lines.status != DELTAFS_OK) {
        *e = k->lines;
        status = e->status;
    }
    return status;
}

int fileindex_check_table(deltafs_fileindex *k, size_t table, struct error *e)
{
    struct key_file *file;

    return keys_source_open(k, k->entry[table].source, &file, e);
}

size_t fileindex_tables(const deltafs_fileindex *k)
{
    return k->entry_count;
}

size_t fileindex_table_indexed(const deltafs_fileindex *k, size_t i)
{
    return (size_t)(k->by_sequence[i] - k->entry);
}

int fileindex_table_epoch(const deltafs_fileindex *k, size_t table, uint64_t *sequence, uint64_t *records)
{
    const struct keys_entry *entry = &k->entry[table];

    *sequence = entry->table->sequence;
    *records = entry->table->records;
    return !entry->is_lost;
}

uint64_t fileindex_table_print(const deltafs_fileindex *k, size_t table, uint64_t what)
{
    const struct source_identity *id = &k->sources.source[k->entry[table].source].identity;
    uint64_t hash = hash_key(what + hash_bytes(id->uuid_text, strlen(id->uuid_text)));

    hash = hash_key(hash + id->session);
    hash = hash_key(hash + id->order);
    hash = hash_key(hash + id->mtime);
    return hash_key(hash + id->size);
}

deltafs_dir *fileindex_dir(const deltafs_fileindex *k)
{
    return k->dir;
}

const char *fileindex_path(const deltafs_fileindex *k)
{
    return k->place.path;
}

const char *fileindex_hdf5(const deltafs_fileindex *k)
{
    return k->hdf5;
}
