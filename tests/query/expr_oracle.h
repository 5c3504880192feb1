/* Random expressions with what they must give: each is a tree, which is printed as a text and evaluated, one record at
 * a time, in 128-bit integers and doubles. */
#ifndef DELTAFS_EXPR_ORACLE_H
#define DELTAFS_EXPR_ORACLE_H

#include "query/expr.h"
#include "unit_help.h"

/* The columns: one of each type, and the names of attributes. */
enum { ORACLE_COLUMNS = 10, ORACLE_RECORDS = 1200, ORACLE_ARRAY = 5 };
struct oracle_column {
    const char *name;
    char letter;
    uint32_t size;
};
extern const struct oracle_column oracle_columns[ORACLE_COLUMNS];
extern const int64_t oracle_small[2];             /* the attributes "nx" and "minus" */
extern const uint64_t oracle_big;                 /* "big" */
extern const double oracle_half;                  /* "half" */
extern const int64_t oracle_cells[ORACLE_ARRAY];  /* "cells" */
extern const double oracle_origins[ORACLE_ARRAY]; /* "origins" */

/* The scope of them all. */
extern const struct expr_scope oracle_scope;

/* The values of a column, `stride` bytes apart: limits, special values, noise. */
void oracle_fill(struct rng *r, size_t column, uint8_t *first, size_t stride, size_t n);

struct oracle;
struct oracle *oracle_create(struct rng *r, int is_condition);
void oracle_destroy(struct oracle *o);
const char *oracle_text(const struct oracle *o);
/* `columns` of all names, in the order above. */
double oracle_eval(const struct oracle *o, const struct expr_column *columns, size_t record);

#endif
