/* A bound expression: steps over vectors of LANES records. A vector's lanes hold doubles, or wide integers: those
 * whose range is not within -2^53 and 2^53. A condition is 1 or 0, so `and` is the product and `or` the maximum. */
#ifndef DELTAFS_QUERY_EXPR_CODE_H
#define DELTAFS_QUERY_EXPR_CODE_H

#include "query/expr.h"

#define LANES      512 /* a multiple of LANES_STEP; some vectors fit into the first-level cache */
#define LANES_STEP 32

union lanes {
    double d[LANES];
    uint64_t u[LANES]; /* two's complement if signed */
};

enum code {
    CODE_CONSTANT,
    CODE_LOAD_F4,
    CODE_LOAD_F8,
    CODE_LOAD_I1,
    CODE_LOAD_I2,
    CODE_LOAD_I4,
    CODE_LOAD_U1,
    CODE_LOAD_U2,
    CODE_LOAD_U4,
    CODE_LOAD_WIDE,
    CODE_GATHER,  /* the array's value with the number a */
    CODE_TO_REAL, /* of a wide integer */
    CODE_TO_WIDE, /* of an integer in a double */
    CODE_ADD,
    CODE_SUB,
    CODE_MUL,
    CODE_DIV,
    CODE_FLOORDIV,
    CODE_MOD,
    CODE_INTEGER_MUL, /* without -0 */
    CODE_INTEGER_FLOORDIV,
    CODE_INTEGER_MOD,
    CODE_WIDE_ADD,
    CODE_WIDE_SUB,
    CODE_WIDE_MUL,
    CODE_WIDE_FLOORDIV, /* where b is not 0 and the result fits */
    CODE_WIDE_MOD,
    CODE_WIDE_FLOORDIV_REAL, /* the result is rounded to a double */
    CODE_WIDE_MOD_REAL,
    CODE_WIDE_ORDER, /* -1, 0 or 1, as a is less than b, equal or greater */
    CODE_REAL_ORDER, /* the same of a wide a and a double b; NaN if b is */
    CODE_POW,
    CODE_MIN,
    CODE_MAX,
    CODE_ATAN2,
    CODE_NEGATE,
    CODE_SQRT,
    CODE_ABS,
    CODE_FLOOR,
    CODE_LOG,
    CODE_EXP,
    CODE_SIN,
    CODE_COS,
    CODE_LT,
    CODE_LE,
    CODE_EQ,
    CODE_NE,
    CODE_COUNT
};

/* Which of the wide operands have a sign. */
#define SIGNED_A 1
#define SIGNED_B 2

struct step {
    enum code code;
    uint32_t signs;
    uint32_t a, b, out; /* numbers of vectors; while binding: of steps */
    uint32_t item;      /* a load's column in expr_columns, a gather's array */
    uint64_t bits;      /* a constant's lane */
};

struct expr_array {
    size_t count;
    double *values;
};

struct expr_bound {
    struct step *step; /* the constants first: constant i is vector i */
    size_t constants, count;
    uint32_t vectors; /* with the constants */
    uint32_t result;
    int is_condition, is_wide, is_signed; /* the result's lanes */
    uint32_t *column;
    size_t columns;
    struct expr_array *array;
    size_t arrays;
};

/* The next lower integer, without an instruction for it: adding 1.5 * 2^52 rounds. Doubles from 2^51 on are left. */
static inline double lane_round_down(double x)
{
    const double magic = 0x1.8p52;
    double near = (x + magic) - magic;

    return near - (near > x ? 1 : 0);
}

/* Run one step, other than a constant and a load, for `n` lanes. Lanes behind them may be computed too. */
void expr_step(const struct step *s, const struct expr_array *arrays, size_t n, const union lanes *a,
               const union lanes *b, union lanes *out);

/* A step whose loop is simple. */
void expr_vectors(enum code code, const union lanes *restrict a, const union lanes *restrict b,
                  union lanes *restrict out, size_t n);

void expr_load(enum code code, const struct expr_column *column, size_t first, size_t n, union lanes *out);

#endif
