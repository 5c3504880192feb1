/* Binding: names become columns, constants, arrays and the steps of computed columns; every operand's type is checked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "query/expr_names.h"
#include "query/expr_types.h"

/* A name that has been resolved. */
struct known {
    char *name;
    int is_array;
    uint32_t number;      /* of a step, or an array */
    struct value element; /* of an array */
};

/* The computed columns that are being bound, from the inner one out; the expression itself has no name. */
struct frame {
    const struct frame *outer;
    const char *name;
    unsigned depth;
};

struct binder {
    const struct expr_scope *scope;
    struct expr_bound *bound;
    struct draft draft;
    struct known *known;
    size_t knowns, known_room, column_room;
    struct error *e;
};

static int bind_tree(struct binder *b, const struct frame *frame, const struct expr *x, uint32_t *out);

/* ---- What a name means ---- */

static int has_numbers(struct binder *b, const struct node *n, const struct expr_meaning *m)
{
    if (m->letter == 'f' || m->letter == 'i' || m->letter == 'u')
        return DELTAFS_OK;
    return error_set(b->e, DELTAFS_ERR_INVALID, "offset %u: expected a number, but the column '%s' holds bytes (%c%u)",
                     n->offset, n->name, m->letter, m->size);
}

static int bind_column(struct binder *b, const struct node *n, const struct expr_meaning *m, uint32_t *out)
{
    struct expr_bound *bound = b->bound;
    int status = has_numbers(b, n, m);

    if (status == DELTAFS_OK)
        status = memory_extend(NULL, &bound->column, bound->columns, &b->column_room, sizeof *bound->column,
                               "an expression", b->e);
    if (status != DELTAFS_OK)
        return status;
    if (!draft_load(&b->draft, m->letter, m->size, (uint32_t)bound->columns, out))
        return error_set(b->e, DELTAFS_ERR_INVALID,
                         "offset %u: the column '%s' has the type %c%u, which does not exist", n->offset, n->name,
                         m->letter, m->size);
    bound->column[bound->columns++] = m->column;
    return b->draft.status;
}

/* Value `i` of an attribute: an integer of 65 bits, or a double. */
static __int128 meaning_integer(const struct expr_meaning *m, size_t i)
{
    uint64_t v;

    memcpy(&v, (const uint8_t *)m->values + 8 * i, 8);
    return m->letter == 'i' ? (__int128)(int64_t)v : (__int128)v;
}

static double meaning_real(const struct expr_meaning *m, size_t i)
{
    double v;

    if (m->letter != 'f')
        return (double)meaning_integer(m, i);
    memcpy(&v, (const uint8_t *)m->values + 8 * i, 8);
    return v;
}

/* Integers stay such if all are doubles exactly. */
static struct value array_element(const struct expr_meaning *m)
{
    struct value v = {.is_integer = m->letter != 'f' && m->count > 0};

    for (size_t i = 0; v.is_integer && i < m->count; i++) {
        __int128 x = meaning_integer(m, i);
        v.low = i == 0 || x < v.low ? x : v.low;
        v.high = i == 0 || x > v.high ? x : v.high;
    }
    if (!range_is_small(v.low, v.high))
        v = (struct value){0};
    return v;
}

static int bind_array(struct binder *b, const struct expr_meaning *m, struct known *k)
{
    struct draft *d = &b->draft;
    int status = memory_extend(NULL, &d->array, d->arrays, &d->array_room, sizeof *d->array, "an expression", b->e);
    double *values = NULL;

    if (status == DELTAFS_OK)
        status = memory_take(NULL, m->count * sizeof *values, "an array", &values, b->e);
    if (status != DELTAFS_OK)
        return status;
    for (size_t i = 0; i < m->count; i++)
        values[i] = meaning_real(m, i);
    k->is_array = 1;
    k->element = array_element(m);
    k->number = (uint32_t)d->arrays;
    d->array[d->arrays++] = (struct expr_array){m->count, values};
    return DELTAFS_OK;
}

/* "x -> y -> x": from the outer one that has the name. */
static int bind_loop(struct binder *b, const struct frame *frame, const struct node *n)
{
    char loop[512], before[sizeof loop];

    snprintf(loop, sizeof loop, "%s", n->name);
    for (const struct frame *f = frame; f->name; f = f->outer) {
        memcpy(before, loop, sizeof loop);
        if (snprintf(loop, sizeof loop, "%s -> %s", f->name, before) >= (int)sizeof loop)
            memcpy(loop, before, sizeof loop);
        if (strcmp(f->name, n->name) == 0)
            return error_set(b->e, DELTAFS_ERR_INVALID, "offset %u: computed columns refer to each other in a loop: %s",
                             n->offset, loop);
    }
    return DELTAFS_OK;
}

static int bind_text(struct binder *b, const struct frame *inner, const char *text, uint32_t *out)
{
    struct expr *x;
    int status = expr_parse(text, &x, b->e);

    if (status != DELTAFS_OK)
        return status;
    status = bind_tree(b, inner, x, out);
    expr_destroy(x);
    return status;
}

static int bind_computed(struct binder *b, const struct frame *frame, const struct node *n, const char *text,
                         uint32_t *out)
{
    struct frame inner = {frame, n->name, frame->depth + 1};
    int status = bind_loop(b, frame, n);

    if (status == DELTAFS_OK && inner.depth > EXPR_COMPUTED_MAX)
        status = error_set(b->e, DELTAFS_ERR_INVALID, "offset %u: more than %d computed columns refer to each other",
                           n->offset, EXPR_COMPUTED_MAX);
    if (status != DELTAFS_OK)
        return status;
    status = bind_text(b, &inner, text, out);
    if (status == DELTAFS_ERR_INVALID || status == DELTAFS_ERR_NOT_FOUND)
        error_set(b->e, status, "computed column '%s': %s", n->name, b->e->text);
    return status;
}

static int bind_single(struct binder *b, const struct expr_meaning *m, uint32_t *out)
{
    *out =
        m->letter == 'f' ? draft_real(&b->draft, meaning_real(m, 0)) : draft_integer(&b->draft, meaning_integer(m, 0));
    return b->draft.status;
}

static int bind_meaning(struct binder *b, const struct frame *frame, const struct node *n, struct known *k)
{
    struct expr_meaning m = {0};

    if (!b->scope->find(b->scope->context, n->name, &m))
        return expr_unknown(b->scope, n->offset, n->name, b->e);
    switch (m.kind) {
    case EXPR_COLUMN:
        return bind_column(b, n, &m, &k->number);
    case EXPR_SINGLE:
        return bind_single(b, &m, &k->number);
    case EXPR_ARRAY:
        return bind_array(b, &m, k);
    case EXPR_COMPUTED:
        return bind_computed(b, frame, n, m.text, &k->number);
    default:
        return error_set(b->e, DELTAFS_ERR_INVALID, "offset %u: expected a number, but the attribute '%s' is a text",
                         n->offset, n->name);
    }
}

/* Each name once. */
static int bind_name(struct binder *b, const struct frame *frame, const struct node *n, struct known *out)
{
    for (size_t i = 0; i < b->knowns; i++)
        if (strcmp(b->known[i].name, n->name) == 0) {
            *out = b->known[i];
            return DELTAFS_OK;
        }
    *out = (struct known){0};
    int status = bind_meaning(b, frame, n, out);
    if (status == DELTAFS_OK)
        status = memory_extend(NULL, &b->known, b->knowns, &b->known_room, sizeof *out, "an expression", b->e);
    if (status != DELTAFS_OK)
        return status;
    out->name = strdup(n->name);
    if (!out->name)
        return error_no_memory(b->e, strlen(n->name), "a name");
    b->known[b->knowns++] = *out;
    return DELTAFS_OK;
}

/* ---- Nodes ---- */

static const char *value_kind(const struct value *v)
{
    return v->is_condition ? "a condition" : v->is_integer ? "an integer" : "a number with a fraction";
}

/* Operand `a` of node `n` must be a condition, or a number. */
static int bind_check(struct binder *b, const struct expr *x, const struct node *n, uint32_t a, uint32_t number)
{
    const int wants_condition = n->kind == NODE_NOT || n->kind == NODE_AND || n->kind == NODE_OR;
    const struct value *v = &b->draft.value[number];

    if (v->is_condition == wants_condition)
        return DELTAFS_OK;
    return error_set(b->e, DELTAFS_ERR_INVALID, "offset %u: expected %s, found %s", x->node[a].offset,
                     wants_condition ? "a condition such as x > 0" : "a number", value_kind(v));
}

static int bind_single_name(struct binder *b, const struct frame *frame, const struct node *n, uint32_t *out)
{
    struct known k;
    int status = bind_name(b, frame, n, &k);

    if (status == DELTAFS_OK && k.is_array)
        status =
            error_set(b->e, DELTAFS_ERR_INVALID, "offset %u: expected '%s[...]', since '%s' is an array of %zu values",
                      n->offset, n->name, n->name, b->draft.array[k.number].count);
    *out = k.number;
    return status;
}

/* An attribute with one number is also an array of one: a simulation may have had one rank. */
static int bind_array_of_one(struct binder *b, const struct node *n, struct known *k)
{
    struct expr_meaning m = {0};

    if (b->scope->find(b->scope->context, n->name, &m) && m.kind == EXPR_SINGLE)
        return bind_array(b, &m, k);
    return error_set(b->e, DELTAFS_ERR_INVALID, "offset %u: '%s' is not an array, and takes no index", n->offset,
                     n->name);
}

static int bind_index(struct binder *b, const struct frame *frame, const struct node *n, uint32_t index,
                      uint32_t offset, uint32_t *out)
{
    const struct value *v = &b->draft.value[index];
    struct known k;

    if (!v->is_integer)
        return error_set(b->e, DELTAFS_ERR_INVALID, "offset %u: expected an integer as the index of '%s', found %s",
                         offset, n->name, value_kind(v));
    int status = bind_name(b, frame, n, &k);
    if (status == DELTAFS_OK && !k.is_array)
        status = bind_array_of_one(b, n, &k);
    if (status == DELTAFS_OK)
        *out = draft_gather(&b->draft, k.number, &k.element, index);
    return error_first(status, b->draft.status);
}

/* An operation; `number` has the steps of the nodes before. */
static int bind_operation(struct binder *b, const struct expr *x, const struct node *n, const uint32_t *number,
                          uint32_t *out)
{
    int status = bind_check(b, x, n, n->a, number[n->a]);

    if (status == DELTAFS_OK)
        status = bind_check(b, x, n, n->b, number[n->b]);
    if (status != DELTAFS_OK)
        return status;
    *out = n->kind < NODE_ADD ? draft_one(&b->draft, n->kind, number[n->a])
                              : draft_two(&b->draft, n->kind, number[n->a], number[n->b]);
    return b->draft.status;
}

static int bind_node(struct binder *b, const struct frame *frame, const struct expr *x, size_t i, uint32_t *number)
{
    const struct node *n = &x->node[i];

    switch (n->kind) {
    case NODE_INTEGER:
        number[i] = draft_integer(&b->draft, (__int128)n->integer);
        return b->draft.status;
    case NODE_REAL:
        number[i] = draft_real(&b->draft, n->real);
        return b->draft.status;
    case NODE_NAME:
        return bind_single_name(b, frame, n, &number[i]);
    case NODE_INDEX:
        return bind_index(b, frame, n, number[n->a], x->node[n->a].offset, &number[i]);
    default:
        return bind_operation(b, x, n, number, &number[i]);
    }
}

static int bind_tree(struct binder *b, const struct frame *frame, const struct expr *x, uint32_t *out)
{
    uint32_t *number = calloc(x->count, sizeof *number);
    int status = number ? DELTAFS_OK : error_no_memory(b->e, x->count * sizeof *number, "an expression");

    for (size_t i = 0; status == DELTAFS_OK && i < x->count; i++)
        status = bind_node(b, frame, x, i, number);
    if (status == DELTAFS_OK)
        *out = number[x->count - 1];
    free(number);
    return status;
}

static int bind_want(struct binder *b, const struct expr *x, enum expr_want want, uint32_t result)
{
    const struct value *v = &b->draft.value[result];
    uint32_t offset = x->node[x->count - 1].offset;

    if (want == EXPR_CONDITION && !v->is_condition)
        return error_set(b->e, DELTAFS_ERR_INVALID, "offset %u: expected a condition such as x > 0, found %s", offset,
                         value_kind(v));
    if (want == EXPR_NUMBER && v->is_condition)
        return error_set(b->e, DELTAFS_ERR_INVALID, "offset %u: expected a number, found a condition", offset);
    return DELTAFS_OK;
}

static int bind_all(struct binder *b, const struct expr *x, enum expr_want want)
{
    const struct frame outermost = {0};
    uint32_t result = 0;
    int status = bind_tree(b, &outermost, x, &result);

    if (status == DELTAFS_OK)
        status = bind_want(b, x, want, result);
    if (status == DELTAFS_OK)
        status = draft_finish(&b->draft, result, b->bound);
    b->bound->array = b->draft.array;
    b->bound->arrays = b->draft.arrays;
    return status;
}

int expr_bind(const struct expr *x, const struct expr_scope *scope, enum expr_want want, struct expr_bound **out,
              struct error *e)
{
    struct binder b = {.scope = scope, .draft.e = e, .e = e};

    b.bound = calloc(1, sizeof *b.bound);
    if (!b.bound)
        return error_no_memory(e, sizeof *b.bound, "an expression");
    int status = bind_all(&b, x, want);
    for (size_t i = 0; i < b.knowns; i++)
        free(b.known[i].name);
    free(b.known);
    free(b.draft.step);
    free(b.draft.value);
    if (status != DELTAFS_OK) {
        expr_bound_destroy(b.bound);
        return status;
    }
    *out = b.bound;
    return DELTAFS_OK;
}

void expr_bound_destroy(struct expr_bound *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->arrays; i++)
        free(b->array[i].values);
    free(b->array);
    free(b->column);
    free(b->step);
    free(b);
}

const uint32_t *expr_columns(const struct expr_bound *b, size_t *count)
{
    *count = b->columns;
    return b->column;
}

int expr_is_condition(const struct expr_bound *b)
{
    return b->is_condition;
}
