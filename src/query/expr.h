/* Expressions over the columns of records: one language for conditions, computed columns, orders and plots.
 *
 *     or    and    not    < <= > >= == !=    + -    * / // %    -x    **    name  name[i]  f(x)  (x)  123  0x7b  1.5e-3
 *
 * The operators are Python's, and bind as in Python: those on the left bind last. -x**2 is -(x**2); a < b <= c is
 * a < b and b <= c. The functions are sqrt, abs, floor, log, exp, sin, cos of one value, atan2 of two values, min and
 * max of two or more. A name consists of letters, digits, '_' and '.', and begins with a letter or '_'. Write any other
 * name, and a column named and, or, not, in `backquotes`.
 *
 * An expression is a number or a condition. `and`, `or`, `not` take conditions; everything else takes numbers.
 *
 * What is exact. Integer columns (also key and label), integer attributes and integer literals are integers, and so is
 * what + - * // % -x abs floor min max make of integers. Everything else is a double.
 *   - Comparisons are exact: also of 64-bit integers with each other, or with a double.
 *   - `//` and `%` are exact for integers. They round as in Python: down, so that x % y has the sign of y.
 *   - + - * are exact if the result always fits into 64 bits, as the types of the columns and the values of the
 *     attributes tell. The product of two i4 columns is exact. key + 1 is not, because a key may be 2^64 - 1: it is a
 *     double, which is computed from rounded operands.
 *   - abs, min and max are exact for integers up to 2^53. `**` is exact for integer literals and attributes if the
 *     result fits (2**40), and x**2 is x * x.
 *   - A result is returned as a double. This rounds integers beyond 2^53.
 * Special values. x / 0 and x // 0 are infinite or NaN, and x % 0 is NaN, also for integers. Comparisons with NaN are
 * false, except `!=`, which is true. -0 equals 0. If one value is NaN, min and max return the other. name[i] is NaN
 * unless i is the number of a value, from 0 on; one number is an array of one, too. An integer that may be NaN (an
 * index that may be outside the array, a divisor that may be 0) becomes a double where 64 bits would be needed.
 *
 * Messages begin with "offset N: ", where N is a number of bytes from the beginning of the text. A message about a
 * computed column has "computed column 'NAME': " before it. Texts may be hostile: length, depth and work are limited.
 */
#ifndef DELTAFS_QUERY_EXPR_H
#define DELTAFS_QUERY_EXPR_H

#include "base/error.h"

#define EXPR_TEXT_MAX     16384 /* bytes of a text */
#define EXPR_NODES_MAX    4096  /* operations, names and literals of a text */
#define EXPR_DEPTH_MAX    100   /* levels of parentheses, prefixes, powers */
#define EXPR_STEPS_MAX    8192  /* operations with those of all computed columns */
#define EXPR_COMPUTED_MAX 32    /* computed columns that refer to each other */

/* A parsed text. DELTAFS_ERR_INVALID: it is not an expression; the message says what was expected. */
struct expr;
int expr_parse(const char *text, struct expr **out, struct error *e);
void expr_destroy(struct expr *x);
/* The part of an expression whose root is node number `root` (expr_node.h), as an expression; `x` must stay. */
int expr_part(const struct expr *x, uint32_t root, struct expr **out, struct error *e);

/* What a name means. `letter` and `size` are the type of a column or a value, as in a schema. */
enum expr_meaning_kind {
    EXPR_COLUMN,  /* stored, or key, or label: values of their own for each record */
    EXPR_SINGLE,  /* one value, of type f8, i8 or u8 */
    EXPR_ARRAY,   /* `count` values of type f8, i8 or u8: for name[i] */
    EXPR_TEXT,    /* a text, which has no place in an expression */
    EXPR_COMPUTED /* an expression */
};
struct expr_meaning {
    enum expr_meaning_kind kind;
    char letter;
    uint32_t size;
    uint32_t column;    /* EXPR_COLUMN: a number of the caller's own, for expr_columns */
    const void *values; /* EXPR_SINGLE, EXPR_ARRAY: in the machine's byte order. Read before `find` is called again */
    size_t count;
    const char *text; /* EXPR_COMPUTED; read as `values` are */
};

/* The names that there are. `find` returns whether there is such a name; `name` the i-th of all, NULL behind the last,
 * for messages. */
struct expr_scope {
    void *context;
    int (*find)(void *context, const char *name, struct expr_meaning *out);
    const char *(*name)(void *context, size_t i);
};

/* An expression whose names are resolved and whose types fit. It includes its computed columns, each once. It does not
 * refer to `x` or `scope` any longer, and many threads can use it.
 *
 * DELTAFS_ERR_INVALID: a name does not exist (the message lists those that do), a type does not fit or is not what
 * `want` asks for, or computed columns refer to each other in a loop. DELTAFS_ERR_NOT_FOUND: `find` has no meaning for
 * a name that `name` lists: an attribute of other epochs. */
struct expr_bound;
enum expr_want { EXPR_ANY, EXPR_NUMBER, EXPR_CONDITION };
int expr_bind(const struct expr *x, const struct expr_scope *scope, enum expr_want want, struct expr_bound **out,
              struct error *e);
void expr_bound_destroy(struct expr_bound *b);
/* The stored columns that are needed, each once. */
const uint32_t *expr_columns(const struct expr_bound *b, size_t *count);
int expr_is_condition(const struct expr_bound *b);
/* Bound expressions with the same number compute the same of the same columns. The number may be another in another
 * version of DeltaFS. */
uint64_t expr_fingerprint(const struct expr_bound *b);

/* The memory of one thread for evaluating a bound expression, which must stay. */
struct expr_work;
int expr_work_create(const struct expr_bound *b, struct expr_work **out, struct error *e);
void expr_work_destroy(struct expr_work *w);

/* Record i's value is at first + i * stride: little-endian, at any address. With stride 0, all records have one value.
 */
struct expr_column {
    const void *first;
    size_t stride;
};

/* Evaluate for `n` records. `columns` are those of expr_columns, in that order. A condition is 1 or 0; expr_test is for
 * conditions only. */
void expr_eval(struct expr_work *w, size_t n, const struct expr_column *columns, double *out);
void expr_test(struct expr_work *w, size_t n, const struct expr_column *columns, uint8_t *out);
/* Clear pass[i] where value[i] is not at least `least`. */
void expr_at_least(const double *value, double least, size_t n, uint8_t *pass);

#endif
