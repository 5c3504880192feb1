#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/short_copy.h"
#include "query/select_eval.h"

#define EVAL_JOIN_SHARE 8 /* values are joined if more than this part of them pass */

/* ---- Binding ---- */

static void bound_fini(struct bound *x)
{
    expr_work_destroy(x->work);
    expr_bound_destroy(x->expr);
    free(x->column);
    *x = (struct bound){0};
}

/* Note what the expression needs. */
static void bound_want(const struct bound *x, struct eval *v, struct wanted *w)
{
    size_t n;
    const uint32_t *number = expr_columns(x->expr, &n);

    for (size_t i = 0; i < n; i++) {
        if (number[i] == COLUMN_KEY)
            v->needs_keys = 1;
        if (number[i] >= COLUMN_EPOCH)
            continue;
        const struct deltafs_field *f = deltafs_schema_field(v->plan->schema, number[i]);
        w->fields[number[i]] = 1;
        if (w->bytes)
            memset(w->bytes + f->offset, 1, f->size);
    }
}

static int bound_make(struct bound *x, const struct expr *expr, struct columns *c, enum expr_want want, struct eval *v,
                      struct wanted *w, struct error *e)
{
    const struct expr_scope scope = columns_scope(c);
    size_t n;
    int status = expr_bind(expr, &scope, want, &x->expr, e);

    if (status == DELTAFS_OK)
        status = expr_work_create(x->expr, &x->work, e);
    if (status != DELTAFS_OK)
        return status;
    expr_columns(x->expr, &n);
    x->column = calloc(n + 1, sizeof *x->column);
    if (!x->column)
        return error_no_memory(e, n * sizeof *x->column, "an expression");
    bound_want(x, v, w);
    return DELTAFS_OK;
}

static void eval_unbind(struct eval *v)
{
    bound_fini(&v->where);
    bound_fini(&v->by);
    for (size_t i = 0; v->output && i < v->plan->outputs; i++)
        bound_fini(&v->output[i]);
    v->is_bound = 0;
}

/* A computed output that is missing in this epoch keeps no expression, but its values. */
static void output_miss(struct eval *v, size_t i)
{
    const uint64_t bits = DELTAFS_MISSING_BITS;

    bound_fini(&v->output[i]);
    for (size_t k = 0; k < BATCH; k++)
        memcpy(&v->computed[i * BATCH + k], &bits, sizeof bits);
}

static int eval_bind_outputs(struct eval *v, struct columns *c, struct error *e)
{
    const struct select_plan *p = v->plan;
    int status = DELTAFS_OK;

    for (size_t i = 0; i < p->outputs && status == DELTAFS_OK; i++) {
        const struct output *out = &p->output[i];
        if (out->computed)
            status = bound_make(&v->output[i], out->computed, c, EXPR_ANY, v, &v->row, e);
        else if (v->row.bytes)
            memset(v->row.bytes + out->from, 1, out->size);
        if (status == DELTAFS_ERR_NOT_FOUND) {
            output_miss(v, i);
            status = DELTAFS_OK;
        }
        status = select_plan_blame_output(out, status, e);
    }
    return status;
}

static void wanted_clear(const struct eval *v, struct wanted *w)
{
    if (w->bytes)
        memset(w->bytes, 0, (size_t)v->plan->manifest->value_size);
    if (w->fields)
        memset(w->fields, 0, deltafs_schema_count(v->plan->schema));
}

int eval_bind(struct eval *v, uint64_t label, struct error *e)
{
    const struct select_plan *p = v->plan;
    struct columns c = {.manifest = p->manifest, .schema = p->schema, .label = label, .last = UINT64_MAX};
    int status = DELTAFS_OK;

    if (v->is_bound && label >= v->first && label <= v->last)
        return DELTAFS_OK;
    eval_unbind(v);
    v->needs_keys = 0;
    wanted_clear(v, &v->test);
    wanted_clear(v, &v->row);
    wanted_clear(v, &v->sure);
    if (p->where)
        status = select_plan_blame("where", bound_make(&v->where, p->where, &c, EXPR_CONDITION, v, &v->test, e), e);
    if (status == DELTAFS_OK && p->by)
        status = select_plan_blame("by", bound_make(&v->by, p->by, &c, EXPR_NUMBER, v, &v->test, e), e);
    if (status == DELTAFS_OK && p->by)
        bound_want(&v->by, v, &v->sure);
    if (status == DELTAFS_OK)
        status = eval_bind_outputs(v, &c, e);
    for (int64_t i = 0; v->row.bytes && i < p->manifest->value_size; i++) {
        v->sure.bytes[i] |= v->row.bytes[i];
        v->row.bytes[i] = v->sure.bytes[i] | v->test.bytes[i];
    }
    v->is_bound = status == DELTAFS_OK;
    v->first = c.first;
    v->last = c.last;
    return status;
}

int eval_bind_failed(int status, uint64_t label, struct error *e)
{
    int is_missing = status == DELTAFS_ERR_NOT_FOUND;

    return error_set(e, is_missing ? DELTAFS_ERR_INVALID : status, "epoch %llu: %s", (unsigned long long)label,
                     e->text);
}

static int wanted_init(struct wanted *w, size_t bytes, size_t fields, int has_bytes, struct error *e)
{
    w->fields = calloc(fields + 1, 1);
    w->bytes = has_bytes ? calloc(bytes + 1, 1) : NULL;
    return w->fields && (w->bytes || !has_bytes) ? DELTAFS_OK : error_no_memory(e, bytes + fields, "a value");
}

static void wanted_fini(struct wanted *w)
{
    free(w->bytes);
    free(w->fields);
}

int eval_init(struct eval *v, const struct select_plan *p, struct error *e)
{
    size_t fields = p->schema ? deltafs_schema_count(p->schema) : 0;

    *v = (struct eval){.plan = p};
    v->output = calloc(p->outputs + 1, sizeof *v->output);
    v->computed = calloc(p->outputs + 1, BATCH * sizeof *v->computed);
    v->field = calloc(fields + 1, sizeof *v->field);
    v->column = calloc(fields + 1, sizeof *v->column);
    if (!v->output || !v->computed || !v->field || !v->column)
        return error_no_memory(e, p->outputs * BATCH * sizeof *v->computed, "computed columns");
    if (!p->schema)
        return DELTAFS_OK;
    int status = wanted_init(&v->test, (size_t)p->manifest->value_size, fields, 1, e);
    if (status == DELTAFS_OK)
        status = wanted_init(&v->row, (size_t)p->manifest->value_size, fields, !p->is_whole, e);
    return status == DELTAFS_OK ? wanted_init(&v->sure, (size_t)p->manifest->value_size, fields, !p->is_whole, e)
                                : status;
}

void eval_fini(struct eval *v)
{
    if (v->plan)
        eval_unbind(v);
    free(v->output);
    free(v->computed);
    for (size_t i = 0; v->plan && v->plan->schema && v->column && i < deltafs_schema_count(v->plan->schema); i++)
        buffer_fini(&v->column[i]);
    free(v->column);
    free(v->field);
    wanted_fini(&v->test);
    wanted_fini(&v->row);
    wanted_fini(&v->sure);
    buffer_fini(&v->batch.values);
    buffer_fini(&v->batch.key_bytes);
}

/* ---- Batches ---- */

static size_t before(const size_t *end, size_t i)
{
    return i > 0 ? end[i - 1] : 0;
}

int batch_add(struct batch *b, const struct deltafs_record *record, struct error *e)
{
    size_t at = before(b->value_end, b->n), key_at = before(b->key_end, b->n);
    int status = buffer_reserve(&b->values, at + record->size + 1, "records", e);

    if (status == DELTAFS_OK && record->key_size > 0)
        status = buffer_reserve(&b->key_bytes, key_at + record->key_size, "keys", e);
    if (status != DELTAFS_OK)
        return status;
    copy_short(b->values.bytes + at, record->value, record->size);
    if (record->key_size > 0)
        memcpy(b->key_bytes.bytes + key_at, record->key_bytes, record->key_size);
    put_u64(b->key + 8 * b->n, record->key);
    b->value_end[b->n] = at + record->size;
    b->key_end[b->n] = key_at + record->key_size;
    b->label = record->label;
    b->n++;
    return DELTAFS_OK;
}

int batch_is_full(const struct batch *b)
{
    return b->n == BATCH || before(b->value_end, b->n) >= BATCH_BYTES;
}

struct deltafs_record batch_record(const struct batch *b, size_t i)
{
    size_t at = before(b->value_end, i), key_at = before(b->key_end, i);
    struct deltafs_record r = {.key = get_u64(b->key + 8 * i), .label = b->label, .value = b->values.bytes + at};

    r.size = b->value_end[i] - at;
    r.key_size = b->key_end[i] - key_at;
    r.key_bytes = r.key_size > 0 ? b->key_bytes.bytes + key_at : NULL;
    return r;
}

/* ---- Evaluation ---- */

/* Where the columns of an expression are in the batch. */
static void bound_place(struct bound *x, struct eval *v)
{
    struct batch *b = &v->batch;
    size_t n;
    const uint32_t *number = expr_columns(x->expr, &n);

    put_u64(b->label_bytes, b->label);
    for (size_t i = 0; i < n; i++) {
        struct expr_column *c = &x->column[i];
        if (number[i] == COLUMN_KEY) {
            *c = (struct expr_column){v->block ? v->keys + 8 * v->at : b->key, 8};
        } else if (number[i] == COLUMN_EPOCH) {
            *c = (struct expr_column){b->label_bytes, 0};
        } else if (v->block) {
            *c = v->field[number[i]];
            c->first = (const uint8_t *)c->first + v->at * c->stride;
        } else {
            c->first = b->values.bytes + deltafs_schema_field(v->plan->schema, number[i])->offset;
            c->stride = (size_t)v->plan->manifest->value_size;
        }
    }
}

void eval_test(struct eval *v, uint8_t *pass)
{
    if (!v->where.expr) {
        memset(pass, 1, v->batch.n);
        return;
    }
    bound_place(&v->where, v);
    expr_test(v->where.work, v->batch.n, v->where.column, pass);
}

void eval_by(struct eval *v, double *by)
{
    bound_place(&v->by, v);
    expr_eval(v->by.work, v->batch.n, v->by.column, by);
}

/* ---- Rows ---- */

void eval_compute(struct eval *v)
{
    for (size_t i = 0; i < v->plan->outputs; i++) {
        struct bound *x = &v->output[i];
        if (!x->expr)
            continue;
        bound_place(x, v);
        expr_eval(x->work, v->batch.n, x->column, v->computed + i * BATCH);
    }
}

/* Bytes of all rows, and of their keys. */
static void rows_size(const struct eval *v, const uint8_t *pass, size_t *values, size_t *keys)
{
    const struct batch *b = &v->batch;

    *values = *keys = 0;
    for (size_t i = 0; i < b->n; i++)
        if (pass[i]) {
            *values += v->plan->is_whole ? b->value_end[i] - before(b->value_end, i) : v->plan->row_size;
            *keys += b->key_end[i] - before(b->key_end, i);
        }
}

/* Write the row of record `i` of the batch, which has this value; returns its bytes. */
static size_t put_row(const struct eval *v, size_t i, const uint8_t *value, size_t size, uint8_t *row)
{
    const struct select_plan *p = v->plan;
    uint64_t bits;

    if (p->is_whole) {
        copy_short(row, value, size);
        return size;
    }
    for (size_t k = 0; k < p->outputs; k++) {
        const struct output *out = &p->output[k];
        if (out->computed) {
            memcpy(&bits, &v->computed[k * BATCH + i], sizeof bits);
            put_u64(row + out->to, bits);
        } else {
            copy_short(row + out->to, value + out->from, out->size);
        }
    }
    return p->row_size;
}

size_t eval_put_row(const struct eval *v, size_t i, uint8_t *row)
{
    const size_t at = before(v->batch.value_end, i);

    return put_row(v, i, v->batch.values.bytes + at, v->batch.value_end[i] - at, row);
}

/* ---- Blocks ---- */

/* Decode the columns of these fields. */
static int eval_decode(struct eval *v, const uint8_t *fields, struct error *e)
{
    const deltafs_schema *schema = v->plan->schema;
    size_t n = schema ? deltafs_schema_count(schema) : 0;
    int status = DELTAFS_OK;

    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        if (!fields[i] || v->field[i].first)
            continue;
        const struct deltafs_field *f = deltafs_schema_field(schema, i);
        status = buffer_reserve(&v->column[i], v->block->count * (size_t)f->size, "a column", e);
        if (status == DELTAFS_OK)
            v->field[i].first = block_column(v->block, f->offset, f->size, v->column[i].bytes, &v->field[i].stride);
    }
    return status;
}

int eval_set_block(struct eval *v, struct block *b, const uint8_t *keys, struct error *e)
{
    v->block = b;
    v->keys = keys;
    v->has_rows = 0;
    for (size_t i = 0; v->plan->schema && i < deltafs_schema_count(v->plan->schema); i++)
        v->field[i].first = NULL;
    return eval_decode(v, v->test.fields, e);
}

void eval_set_part(struct eval *v, size_t at, size_t n)
{
    v->at = at;
    v->batch.n = n;
}

/* Decode what the rows need: all values at once if many records pass. */
static int eval_want_rows(struct eval *v, size_t count, struct error *e)
{
    int status = v->has_rows ? DELTAFS_OK : block_want(v->block, v->row.bytes, e);

    v->has_rows = 1;
    if (status == DELTAFS_OK)
        status = eval_decode(v, v->row.fields, e);
    return status == DELTAFS_OK && count > v->batch.n / EVAL_JOIN_SHARE ? block_join(v->block, v->row.bytes, e)
                                                                        : status;
}

/* The rows of records whose values lie one after the other, output by output. */
static void put_rows(const struct eval *v, const uint8_t *pass, const uint8_t *values, uint8_t *rows)
{
    const struct select_plan *p = v->plan;
    const size_t value_size = (size_t)p->manifest->value_size;
    uint64_t bits;

    for (size_t k = 0; k < p->outputs; k++) {
        const struct output *out = &p->output[k];
        const uint8_t *from = values + out->from;
        const double *computed = &v->computed[k * BATCH];
        uint8_t *to = rows + out->to;
        for (size_t i = 0; i < v->batch.n; i++) {
            if (!pass[i])
                continue;
            if (out->computed) {
                memcpy(&bits, &computed[i], sizeof bits);
                put_u64(to, bits);
            } else {
                copy_short(to, from + i * value_size, out->size);
            }
            to += p->row_size;
        }
    }
}

int eval_part_rows(struct eval *v, const uint8_t *pass, size_t count, uint8_t *rows, struct error *e)
{
    int status = eval_want_rows(v, count, e);

    if (status != DELTAFS_OK)
        return status;
    eval_compute(v);
    if (v->block->plain && !v->plan->is_whole) {
        put_rows(v, pass, v->block->plain + v->at * (size_t)v->block->value_size, rows);
        return DELTAFS_OK;
    }
    for (size_t i = 0; i < v->batch.n; i++) {
        size_t size;
        if (!pass[i])
            continue;
        const uint8_t *value = block_value(v->block, (uint32_t)(v->at + i), &size);
        rows += put_row(v, i, value, size, rows);
    }
    return DELTAFS_OK;
}

/* ---- Copies of records ---- */

int eval_rows(struct eval *v, const uint8_t *pass, size_t count, struct chunk **out, struct error *e)
{
    size_t values, keys, head = count * sizeof(struct deltafs_record);

    rows_size(v, pass, &values, &keys);
    struct chunk *c = malloc(sizeof *c + head + values + keys + 1);
    if (!c)
        return error_no_memory(e, sizeof *c + head + values + keys, "rows");
    *c = (struct chunk){.count = count, .bytes = head + values + keys};
    uint8_t *row = (uint8_t *)c->record + head, *key = row + values;
    struct deltafs_record *r = c->record;
    eval_compute(v);
    for (size_t i = 0; i < v->batch.n; i++) {
        if (!pass[i])
            continue;
        *r = batch_record(&v->batch, i);
        size_t size = eval_put_row(v, i, row);
        r->value = row;
        r->size = size;
        if (r->key_size > 0) {
            memcpy(key, r->key_bytes, r->key_size);
            r->key_bytes = key;
        }
        row += size;
        key += r->key_size;
        r++;
    }
    *out = c;
    return DELTAFS_OK;
}
