/* The part of a select's thread that reads files of an index: the rows of a share of a table, all of them or those that
 * an index by value has found; or, if there are few keys, the rows that the index has of them. */
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "query/select.h"

#define ROWS_EACH 4096 /* that are read in the time in which a key is looked up */

/* What a thread reads. */
struct reading {
    struct worker *worker;
    struct table_part part; /* its fields, and those that are wanted */
    uint8_t *wanted;
    struct error *damage;
    struct buffer found; /* of a key: struct found_row; of an index by value: numbers of rows that are to be read */
    size_t count;
};

struct found_row {
    size_t table;
    uint64_t row;
};

/* A deltafs_row_fn. */
static int read_row(const struct deltafs_row *row, void *worker)
{
    struct worker *w = worker;
    const struct deltafs_select *s = w->select;
    const struct deltafs_record record = {.key = row->key, .label = row->label, .value = row->value, .size = row->size};

    if (s->only.is_given && !key_set_has(&s->only, s->manifest, &record))
        return 0;
    w->is_sure[w->eval.batch.n] = 0;
    return worker_take(&record, w);
}

/* Note which fields the rows, or their test, need. */
static int reading_init(struct reading *r, struct worker *w, struct error *damage)
{
    const deltafs_schema *schema = w->select->plan.schema;
    const uint8_t *bytes = w->eval.row.bytes; /* NULL: all */
    size_t fields = w->select->files->fields;

    *r = (struct reading){.worker = w, .damage = damage, .wanted = malloc(fields + 1)};
    for (size_t i = 0; r->wanted && i < fields; i++)
        r->wanted[i] = !bytes || bytes[deltafs_schema_field(schema, i)->offset];
    return r->wanted ? DELTAFS_OK : error_no_memory(&w->error, fields, "columns");
}

static void reading_fini(struct reading *r)
{
    free(r->wanted);
    buffer_fini(&r->found);
}

/* Keep the first message of what does not end the select. */
static int reading_failed(struct reading *r, const struct error *e)
{
    if (e->status == DELTAFS_ERR_MEMORY)
        r->worker->error = *e;
    else if (r->damage->status == DELTAFS_OK)
        *r->damage = *e;
    return r->worker->error.status;
}

static int read_part(struct reading *r, int *stopped)
{
    struct error e = {.status = DELTAFS_OK};

    r->part.wanted = r->wanted;
    int status = fileindex_scan_part(r->worker->index, &r->part, read_row, r->worker, stopped, &e);
    return status == DELTAFS_OK || *stopped ? r->worker->error.status : reading_failed(r, &e);
}

/* ---- Rows that an index by value has found ---- */

/* Read the rows that were noted. */
static int read_noted(struct reading *r, int *stopped)
{
    struct error e = {.status = DELTAFS_OK};
    size_t n = r->count;

    r->count = 0;
    if (n == 0 || *stopped)
        return DELTAFS_OK;
    int status = fileindex_scan_rows(r->worker->index, &r->part, (const void *)r->found.bytes, n, read_row, r->worker,
                                     stopped, &e);
    return status == DELTAFS_OK || *stopped ? r->worker->error.status : reading_failed(r, &e);
}

/* Take the row from the index, or note it to be read. */
static int read_found_row(struct reading *r, const struct found *f, const struct set_key *key, int *stopped)
{
    struct worker *w = r->worker;
    struct deltafs_record record = {
        .label = w->eval.batch.label, .value = w->value.bytes, .size = (size_t)w->select->manifest->value_size};

    if (key->record == 0) {
        ((uint64_t *)(void *)r->found.bytes)[r->count++] = key->number;
        return DELTAFS_OK;
    }
    /* Rows are taken in their order. */
    int status = read_noted(r, stopped);
    if (status != DELTAFS_OK || *stopped)
        return status;
    const uint8_t *found = f->records.bytes + (key->record - 1) * f->size;
    record.key = get_u64(found);
    if (f->size > sizeof record.key)
        carried_put(&w->select->carried, found + sizeof record.key, w->value.bytes);
    w->is_sure[w->eval.batch.n] = key->is_sure;
    *stopped = worker_take(&record, w);
    return w->error.status;
}

static int read_found(struct reading *r, const struct found *f, int *stopped)
{
    struct error e = {.status = DELTAFS_OK};
    size_t from = key_set_from(&f->keys, 0, r->part.from), end = key_set_from(&f->keys, 0, r->part.end);

    r->part.wanted = r->wanted;
    if (fileindex_check_table(r->worker->index, r->part.table, &e) != DELTAFS_OK)
        return reading_failed(r, &e);
    int status = buffer_reserve(&r->found, (end - from) * sizeof(uint64_t) + 1, "rows", &r->worker->error);
    for (size_t i = from; i < end && status == DELTAFS_OK && !*stopped; i++)
        status = read_found_row(r, f, &f->keys.key[i], stopped);
    return status == DELTAFS_OK ? read_noted(r, stopped) : status;
}

/* ---- Keys ---- */

/* A deltafs_row_fn: note the row, whose columns may be others than those of the select. Each table of an index has a
 * text of its own for its schema. */
static int note_row(const struct deltafs_row *row, void *reading)
{
    struct reading *r = reading;
    const struct select_files *f = r->worker->select->files;
    struct deltafs_table_stat t = {.struct_size = sizeof t};
    size_t i = f->first[r->worker->epoch];

    while (deltafs_fileindex_table(r->worker->index, i, &t) == DELTAFS_OK && t.schema != row->schema)
        i++;
    if (buffer_reserve(&r->found, (r->count + 1) * sizeof(struct found_row), "rows", &r->worker->error) != DELTAFS_OK)
        return 1;
    ((struct found_row *)(void *)r->found.bytes)[r->count++] = (struct found_row){i, row->row};
    return 0;
}

static int read_key(struct reading *r, uint64_t key, int *stopped)
{
    const struct select_files *f = r->worker->select->files;
    const struct deltafs_range range = {r->worker->eval.batch.label, r->worker->eval.batch.label};
    const struct found_row *found;
    struct error e = {.status = DELTAFS_OK};

    r->count = 0;
    int status = deltafs_fileindex_get(r->worker->index, key, &range, note_row, r, stopped);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND) {
        error_of_call(status, &e);
        reading_failed(r, &e);
    }
    found = (const struct found_row *)(const void *)r->found.bytes;
    for (size_t i = 0; i < r->count && !*stopped && r->worker->error.status == DELTAFS_OK; i++) {
        r->part = (struct table_part){.table = found[i].table,
                                      .from = found[i].row,
                                      .end = found[i].row + 1,
                                      .count = f->fields,
                                      .field = f->table[found[i].table].field};
        read_part(r, stopped);
    }
    return r->worker->error.status;
}

/* Whether it takes less time to look up the keys than to read an epoch. */
static int has_few_keys(const struct deltafs_select *s, uint32_t epoch)
{
    return s->only.is_given && s->only.count < s->manifest->epoch[epoch].records / ROWS_EACH;
}

int worker_read_files(struct worker *w, struct error *damage)
{
    const struct deltafs_select *s = w->select;
    struct reading r;
    int stopped = 0, status = reading_init(&r, w, damage);

    if (status == DELTAFS_OK && has_few_keys(s, w->epoch)) {
        for (size_t i = 0; w->partition == 0 && i < s->only.count && status == DELTAFS_OK && !stopped; i++)
            status = read_key(&r, s->only.key[i].number, &stopped);
    } else if (status == DELTAFS_OK && select_files_part(s->files, w->epoch, w->partition, &r.part)) {
        const struct found *found = s->found ? &s->found[r.part.table - s->files->first[s->begin]] : NULL;
        status = found && found->keys.is_given ? read_found(&r, found, &stopped) : read_part(&r, &stopped);
    }
    reading_fini(&r);
    return status;
}
