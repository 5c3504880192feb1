/* Steps with what is known of their values: whether they are integers and in what range, which decides what is exact.
 * The functions add steps, and return the number of the one that has the result. After an error they do nothing. */
#ifndef DELTAFS_QUERY_EXPR_TYPES_H
#define DELTAFS_QUERY_EXPR_TYPES_H

#include "query/expr_code.h"
#include "query/expr_node.h"

/* What fits into 128 bits needs no care: operands have 65. */
struct value {
    int is_condition;
    int is_constant;
    int is_integer;     /* then there is a range */
    int is_wide;        /* lanes are wide integers */
    int may_be_missing; /* an integer or NaN or infinite, never wide */
    __int128 low, high;
};

struct draft {
    struct step *step;
    struct value *value;
    size_t count, steps, values; /* in use; room in both arrays */
    struct expr_array *array;
    size_t arrays, array_room;
    int status;
    struct error *e;
};

uint32_t draft_integer(struct draft *d, __int128 v); /* of 64 bits, signed or not */
uint32_t draft_real(struct draft *d, double v);
/* A column of a type that schemas have: 0 if it has no numbers. `item` is its number in expr_columns. */
int draft_load(struct draft *d, char letter, uint32_t size, uint32_t item, uint32_t *out);
uint32_t draft_gather(struct draft *d, uint32_t array, const struct value *element, uint32_t index);
uint32_t draft_one(struct draft *d, enum node_kind kind, uint32_t a);
uint32_t draft_two(struct draft *d, enum node_kind kind, uint32_t a, uint32_t b);

/* Make *b of the steps that `result` needs. */
int draft_finish(struct draft *d, uint32_t result, struct expr_bound *b);

/* Whether integers in this range are doubles exactly. */
static inline int range_is_small(__int128 low, __int128 high)
{
    const __int128 limit = (__int128)1 << 53;

    return low >= -limit && high <= limit;
}

#endif
