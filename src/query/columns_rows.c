/* The calls of deltafs_query.h that make rows of records which the caller has. */
#include <stdlib.h>
#include "base/number.h"
#include "directory/dir.h"
#include "directory/read/reader.h"
#include "query/select_eval.h"

struct deltafs_columns {
    const struct reader *reader; /* its manifest does not change meanwhile */
    struct select_plan plan;
    struct eval eval;
    /* The rows that are being returned. */
    struct buffer records, values, order;
};

/* A record that the caller gave. */
struct place {
    uint64_t label;
    size_t i;
};

int deltafs_columns_open(deltafs_dir *dir, const char *fields, deltafs_columns **out)
{
    const struct deltafs_select_options o = {.fields = fields};
    struct reader *r;
    struct error *e;
    int status = dir_reader(dir, "deltafs_columns_open", out ? NULL : "out", &r, &e);

    if (status == DELTAFS_OK && fields && *fields == '\0')
        status = dir_end(dir, error_set(e, DELTAFS_ERR_INVALID, "fields: offset 0: expected the name of a column"));
    if (status != DELTAFS_OK)
        return status;
    struct deltafs_columns *c = calloc(1, sizeof *c);
    if (!c)
        return dir_end(dir, error_no_memory(e, sizeof *c, "columns"));
    c->reader = r;
    status = select_plan_make(&c->plan, &r->manifest, &o, e);
    if (status == DELTAFS_OK)
        status = eval_init(&c->eval, &c->plan, e);
    if (status != DELTAFS_OK)
        deltafs_columns_close(c);
    else
        *out = c;
    return dir_end(dir, status);
}

int deltafs_columns_close(deltafs_columns *c)
{
    if (!c)
        return DELTAFS_OK;
    eval_fini(&c->eval);
    select_plan_fini(&c->plan);
    buffer_fini(&c->records);
    buffer_fini(&c->values);
    buffer_fini(&c->order);
    free(c);
    return DELTAFS_OK;
}

const char *deltafs_columns_schema(const deltafs_columns *c)
{
    return (const char *)c->plan.text.bytes;
}

static int place_compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;

    return compare_two(x->label, y->label, x->i, y->i);
}

/* The records by label, so that expressions are bound once for each epoch. */
static int columns_order(struct deltafs_columns *c, size_t n, const struct deltafs_record *records, struct error *e)
{
    int is_sorted = 1, status = buffer_reserve(&c->order, n * sizeof(struct place), "records", e);
    struct place *place = (struct place *)(void *)c->order.bytes;

    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        place[i] = (struct place){records[i].label, i};
        is_sorted = is_sorted && (i == 0 || records[i - 1].label <= records[i].label);
    }
    if (status == DELTAFS_OK && !is_sorted)
        qsort(place, n, sizeof *place, place_compare);
    return status;
}

/* Rows of as many of the `n` records as have the label of the first and fit into a batch; *end gets their number. */
static int columns_batch(struct deltafs_columns *c, const struct place *place, size_t n,
                         const struct deltafs_record *records, size_t *end, struct error *e)
{
    struct deltafs_record *row = (struct deltafs_record *)(void *)c->records.bytes;
    unsigned long long label = place->label;
    size_t count = 0;
    int status = eval_bind(&c->eval, label, e);

    if (status != DELTAFS_OK)
        return error_set(e, status, "%s: epoch %llu: %s", c->reader->path, label, e->text);
    c->eval.batch.n = 0;
    for (; count < n && place[count].label == label && !batch_is_full(&c->eval.batch) && status == DELTAFS_OK; count++)
        status = batch_add(&c->eval.batch, &records[place[count].i], e);
    if (status != DELTAFS_OK)
        return status;
    eval_compute(&c->eval);
    for (size_t k = 0; k < count; k++) {
        size_t i = place[k].i;
        row[i] = records[i];
        row[i].value = c->values.bytes + i * c->plan.row_size;
        row[i].size = eval_put_row(&c->eval, k, c->values.bytes + i * c->plan.row_size);
    }
    *end = count;
    return DELTAFS_OK;
}

/* Whether all values have the fields of the schema. */
static int columns_check(const struct deltafs_columns *c, size_t n, const struct deltafs_record *records,
                         struct error *e)
{
    for (size_t i = 0; c->plan.schema && i < n; i++)
        if (records[i].size != (size_t)c->reader->manifest.value_size)
            return error_set(e, DELTAFS_ERR_SIZE,
                             "deltafs_columns_rows: record %zu has a value of %zu bytes; those of %s have %lld", i,
                             records[i].size, c->reader->path, (long long)c->reader->manifest.value_size);
    return DELTAFS_OK;
}

int deltafs_columns_rows(deltafs_columns *c, size_t n, const struct deltafs_record *records,
                         const struct deltafs_record **rows)
{
    struct error *e = deltafs_private_thread_error();

    if (!c || !rows || (n > 0 && !records))
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_columns_rows: columns, records and rows must be given");
    if (c->plan.is_whole) {
        *rows = records;
        return DELTAFS_OK;
    }
    int status = columns_check(c, n, records, e);
    if (status == DELTAFS_OK)
        status = columns_order(c, n, records, e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&c->records, n * sizeof *records + 1, "rows", e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&c->values, n * c->plan.row_size + 1, "rows", e);
    const struct place *place = (const struct place *)(const void *)c->order.bytes;
    for (size_t at = 0, count = 0; at < n && status == DELTAFS_OK; at += count)
        status = columns_batch(c, place + at, n - at, records, &count, e);
    if (status == DELTAFS_OK)
        *rows = (const struct deltafs_record *)(const void *)c->records.bytes;
    return status;
}
