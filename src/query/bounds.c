#include <math.h>
#include <stdlib.h>
#include "query/bounds.h"
#include "query/expr_node.h"

/* A side of a comparison. */
struct side {
    int is_number; /* the same for all records: */
    double number;
    uint64_t fingerprint; /* otherwise */
};

static int side_take(const struct expr *x, uint32_t root, const struct expr_scope *scope, struct side *out,
                     struct error *e)
{
    struct expr *part = NULL;
    struct expr_bound *bound = NULL;
    struct expr_work *work = NULL;
    size_t columns = 1;

    *out = (struct side){0};
    int status = expr_part(x, root, &part, e);
    if (status == DELTAFS_OK)
        status = expr_bind(part, scope, EXPR_NUMBER, &bound, e);
    if (status == DELTAFS_OK) {
        expr_columns(bound, &columns);
        out->fingerprint = expr_fingerprint(bound);
    }
    if (status == DELTAFS_OK && columns == 0) {
        out->is_number = 1;
        status = expr_work_create(bound, &work, e);
    }
    if (status == DELTAFS_OK && columns == 0)
        expr_eval(work, 1, NULL, &out->number);
    expr_work_destroy(work);
    expr_bound_destroy(bound);
    expr_destroy(part);
    return status;
}

/* The value compared with a number. The comparison is exact, the number here may be rounded: so take one more, and know
 * nothing about the number. */
static void bounds_cut(struct bounds *b, enum node_kind kind, double number)
{
    double below = nextafter(number, -INFINITY), above = nextafter(number, INFINITY);

    b->is_found = 1;
    if (isnan(number)) {
        b->low = INFINITY;
        b->high = -INFINITY;
        return;
    }
    if (kind == NODE_GT || kind == NODE_GE || kind == NODE_EQ) {
        b->low = fmax(b->low, below);
        b->all_above = fmax(b->all_above, above);
    }
    if (kind == NODE_LT || kind == NODE_LE || kind == NODE_EQ) {
        b->high = fmin(b->high, above);
        b->all_below = fmin(b->all_below, below);
    }
}

/* The comparison with its sides exchanged. */
static enum node_kind turned(enum node_kind kind)
{
    switch (kind) {
    case NODE_LT:
        return NODE_GT;
    case NODE_LE:
        return NODE_GE;
    case NODE_GT:
        return NODE_LT;
    case NODE_GE:
        return NODE_LE;
    default:
        return kind;
    }
}

static int bounds_compare(struct bounds *b, const struct expr *x, const struct node *n, const struct expr_scope *scope,
                          uint64_t of, struct error *e)
{
    struct side left, right;
    int status = side_take(x, n->a, scope, &left, e);

    if (status == DELTAFS_OK)
        status = side_take(x, n->b, scope, &right, e);
    if (status != DELTAFS_OK)
        return status;
    if (right.is_number && !left.is_number && left.fingerprint == of)
        bounds_cut(b, n->kind, right.number);
    else if (left.is_number && !right.is_number && right.fingerprint == of)
        bounds_cut(b, turned(n->kind), left.number);
    else
        b->is_all = 0;
    return DELTAFS_OK;
}

int bounds_find(const struct expr *condition, const struct expr_scope *scope, uint64_t of, struct bounds *out,
                struct error *e)
{
    const struct expr *x = condition;
    uint8_t *is_joined = calloc(x->count, 1); /* by `and` with all others */
    int status = is_joined ? DELTAFS_OK : error_no_memory(e, x->count, "a condition");

    *out =
        (struct bounds){.is_all = 1, .low = -INFINITY, .high = INFINITY, .all_above = -INFINITY, .all_below = INFINITY};
    if (is_joined)
        is_joined[x->count - 1] = 1;
    for (size_t i = x->count; status == DELTAFS_OK && i-- > 0;) {
        const struct node *n = &x->node[i];
        if (!is_joined[i])
            continue;
        if (n->kind == NODE_AND)
            is_joined[n->a] = is_joined[n->b] = 1;
        else if (n->kind >= NODE_LT && n->kind <= NODE_EQ)
            status = bounds_compare(out, x, n, scope, of, e);
        else
            out->is_all = 0;
    }
    free(is_joined);
    if (status == DELTAFS_ERR_MEMORY)
        return status;
    if (status != DELTAFS_OK)
        out->is_found = 0;
    return DELTAFS_OK;
}
