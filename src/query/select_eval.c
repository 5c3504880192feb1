#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/short_copy.h"
#include "query/select_eval.h"

/* ---- Binding ---- */

static void bound_fini(struct bound *x)
{
    expr_work_destroy(x->work);
    expr_bound_destroy(x->expr);
    free(x->column);
    *x = (struct bound){0};
}

/* Note which bytes of a value the expression needs. */
static void bound_want(const struct bound *x, const struct columns *c, uint8_t *wanted)
{
    size_t n;
    const uint32_t *number = expr_columns(x->expr, &n);

    for (size_t i = 0; wanted && i < n; i++)
        if (number[i] < COLUMN_EPOCH) {
            const struct deltafs_field *f = deltafs_schema_field(c->schema, number[i]);
            memset(wanted + f->offset, 1, f->size);
        }
}

static int bound_make(struct bound *x, const struct expr *expr, struct columns *c, enum expr_want want, uint8_t *wanted,
                      struct error *e)
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
    bound_want(x, c, wanted);
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

static int eval_bind_outputs(struct eval *v, struct columns *c, struct error *e)
{
    const struct plan *p = v->plan;
    int status = DELTAFS_OK;

    for (size_t i = 0; i < p->outputs && status == DELTAFS_OK; i++) {
        const struct output *out = &p->output[i];
        if (out->computed)
            status = plan_blame_output(out, bound_make(&v->output[i], out->computed, c, EXPR_ANY, v->wanted, e), e);
        else if (v->wanted)
            memset(v->wanted + out->from, 1, out->size);
    }
    return status;
}

int eval_bind(struct eval *v, uint64_t label, struct error *e)
{
    const struct plan *p = v->plan;
    struct columns c = {.manifest = p->manifest, .schema = p->schema, .label = label, .last = UINT64_MAX};
    int status = DELTAFS_OK;

    if (v->is_bound && label >= v->first && label <= v->last)
        return DELTAFS_OK;
    eval_unbind(v);
    if (v->wanted)
        memset(v->wanted, 0, (size_t)p->manifest->value_size);
    if (p->where)
        status = plan_blame("where", bound_make(&v->where, p->where, &c, EXPR_CONDITION, v->wanted, e), e);
    if (status == DELTAFS_OK && p->by)
        status = plan_blame("by", bound_make(&v->by, p->by, &c, EXPR_NUMBER, v->wanted, e), e);
    if (status == DELTAFS_OK)
        status = eval_bind_outputs(v, &c, e);
    v->is_bound = status == DELTAFS_OK;
    v->first = c.first;
    v->last = c.last;
    return status;
}

int eval_init(struct eval *v, const struct plan *p, struct error *e)
{
    *v = (struct eval){.plan = p};
    v->output = calloc(p->outputs + 1, sizeof *v->output);
    v->computed = calloc(p->outputs + 1, BATCH * sizeof *v->computed);
    if (!v->output || !v->computed)
        return error_no_memory(e, p->outputs * BATCH * sizeof *v->computed, "computed columns");
    if (p->is_whole || !p->schema)
        return DELTAFS_OK;
    v->wanted = calloc((size_t)p->manifest->value_size + 1, 1);
    return v->wanted ? DELTAFS_OK : error_no_memory(e, (size_t)p->manifest->value_size, "a value");
}

void eval_fini(struct eval *v)
{
    if (v->plan)
        eval_unbind(v);
    free(v->output);
    free(v->computed);
    free(v->wanted);
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
            *c = (struct expr_column){b->key, 8};
        } else if (number[i] == COLUMN_EPOCH) {
            *c = (struct expr_column){b->label_bytes, 0};
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

size_t eval_put_row(const struct eval *v, size_t i, uint8_t *row)
{
    const struct plan *p = v->plan;
    const size_t at = before(v->batch.value_end, i), size = v->batch.value_end[i] - at;
    const uint8_t *value = v->batch.values.bytes + at;
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

int eval_rows(struct eval *v, const uint8_t *pass, size_t count, struct chunk **out, struct error *e)
{
    size_t values, keys, head = sizeof(struct chunk) + count * sizeof(struct deltafs_record);

    rows_size(v, pass, &values, &keys);
    struct chunk *c = malloc(head + values + keys + 1);
    if (!c)
        return error_no_memory(e, head + values + keys, "rows");
    *c = (struct chunk){.count = count, .bytes = head + values + keys};
    uint8_t *row = (uint8_t *)c + head, *key = row + values;
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
