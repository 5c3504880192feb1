/* Which step computes an operation: in doubles, or in 64-bit integers where doubles would round. */
#include <math.h>
#include <string.h>
#include "base/memory.h"
#include "query/expr_types.h"

static const struct value real_value = {0};
static const struct value condition_value = {.is_condition = 1};

static int is_wide_range(__int128 low, __int128 high)
{
    return low >= INT64_MIN ? high <= INT64_MAX || (low >= 0 && high <= UINT64_MAX) : 0;
}

static struct value integer_value(__int128 low, __int128 high, int may_be_missing)
{
    return (struct value){.is_integer = 1, .low = low, .high = high, .may_be_missing = may_be_missing};
}

static uint64_t double_bits(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static int draft_reserve(struct draft *d)
{
    if (d->count == EXPR_STEPS_MAX)
        return error_set(d->e, DELTAFS_ERR_INVALID,
                         "offset 0: with its computed columns, the expression has more than "
                         "%d operations",
                         EXPR_STEPS_MAX);
    int status = memory_extend(NULL, &d->step, d->count, &d->steps, sizeof *d->step, "an expression", d->e);
    if (status != DELTAFS_OK)
        return status;
    return memory_extend(NULL, &d->value, d->count, &d->values, sizeof *d->value, "an expression", d->e);
}

static uint32_t draft_add(struct draft *d, struct step s, struct value v)
{
    if (d->status == DELTAFS_OK)
        d->status = draft_reserve(d);
    if (d->status != DELTAFS_OK)
        return 0;
    d->step[d->count] = s;
    d->value[d->count] = v;
    return (uint32_t)d->count++;
}

static uint32_t draft_constant(struct draft *d, uint64_t bits, struct value v)
{
    v.is_constant = 1;
    return draft_add(d, (struct step){.code = CODE_CONSTANT, .bits = bits}, v);
}

uint32_t draft_integer(struct draft *d, __int128 v)
{
    struct value value = integer_value(v, v, 0);

    value.is_wide = !range_is_small(v, v);
    return draft_constant(d, value.is_wide ? (uint64_t)v : double_bits((double)v), value);
}

uint32_t draft_real(struct draft *d, double v)
{
    return draft_constant(d, double_bits(v), real_value);
}

/* The constant that a step with constant operands makes. */
static uint32_t draft_fold(struct draft *d, const struct step *s, struct value v)
{
    union lanes a = {{0}}, b = {{0}}, out = {{0}};

    a.u[0] = d->step[s->a].bits;
    b.u[0] = d->step[s->b].bits;
    expr_step(s, d->array, 1, &a, &b, &out);
    if (v.is_integer && v.is_wide)
        return draft_integer(d, v.low < 0 ? (__int128)(int64_t)out.u[0] : (__int128)out.u[0]);
    if (v.is_integer && isfinite(out.d[0]))
        return draft_integer(d, (__int128)out.d[0]);
    if (v.is_integer)
        v = integer_value(0, 0, 1);
    return draft_constant(d, out.u[0], v);
}

static uint32_t draft_step(struct draft *d, enum code code, uint32_t a, uint32_t b, struct value v)
{
    struct step s = {.code = code, .a = a, .b = b};

    if (d->status != DELTAFS_OK)
        return 0;
    s.signs = (d->value[a].low < 0 ? SIGNED_A : 0) | (d->value[b].low < 0 ? SIGNED_B : 0);
    if (d->value[a].is_constant && d->value[b].is_constant)
        return draft_fold(d, &s, v);
    return draft_add(d, s, v);
}

static struct value value_of(const struct draft *d, uint32_t number)
{
    return d->status == DELTAFS_OK ? d->value[number] : real_value;
}

static uint32_t as_real(struct draft *d, uint32_t a)
{
    return value_of(d, a).is_wide ? draft_step(d, CODE_TO_REAL, a, a, real_value) : a;
}

static uint32_t as_wide(struct draft *d, uint32_t a)
{
    struct value v = value_of(d, a);

    if (v.is_wide)
        return a;
    v.is_wide = 1;
    if (v.is_constant)
        return draft_constant(d, (uint64_t)v.low, v);
    return draft_add(d, (struct step){.code = CODE_TO_WIDE, .a = a, .b = a}, v);
}

/* A step that makes wide integers of wide ones: doubles again, if they are exact. */
static uint32_t draft_wide(struct draft *d, enum code code, uint32_t a, uint32_t b, struct value v)
{
    v.is_wide = 1;
    uint32_t result = draft_step(d, code, as_wide(d, a), as_wide(d, b), v);
    if (!value_of(d, result).is_wide || !range_is_small(v.low, v.high))
        return result;
    v.is_wide = 0;
    return draft_step(d, CODE_TO_REAL, result, result, v);
}

static uint32_t draft_in_real(struct draft *d, enum code code, uint32_t a, uint32_t b)
{
    uint32_t x = as_real(d, a);

    return draft_step(d, code, x, a == b ? x : as_real(d, b), real_value);
}

/* ---- Columns, arrays ---- */

static const struct {
    char letter;
    uint32_t size;
    enum code code;
    __int128 low, high; /* of integers */
} loads[] = {
    {'f', 4, CODE_LOAD_F4, 0, 0},
    {'f', 8, CODE_LOAD_F8, 0, 0},
    {'i', 1, CODE_LOAD_I1, INT8_MIN, INT8_MAX},
    {'i', 2, CODE_LOAD_I2, INT16_MIN, INT16_MAX},
    {'i', 4, CODE_LOAD_I4, INT32_MIN, INT32_MAX},
    {'i', 8, CODE_LOAD_WIDE, INT64_MIN, INT64_MAX},
    {'u', 1, CODE_LOAD_U1, 0, UINT8_MAX},
    {'u', 2, CODE_LOAD_U2, 0, UINT16_MAX},
    {'u', 4, CODE_LOAD_U4, 0, UINT32_MAX},
    {'u', 8, CODE_LOAD_WIDE, 0, UINT64_MAX},
};

int draft_load(struct draft *d, char letter, uint32_t size, uint32_t item, uint32_t *out)
{
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        if (loads[i].letter != letter || loads[i].size != size)
            continue;
        struct value v = letter == 'f' ? real_value : integer_value(loads[i].low, loads[i].high, 0);
        v.is_wide = letter != 'f' && size == 8;
        *out = draft_add(d, (struct step){.code = loads[i].code, .item = item}, v);
        return 1;
    }
    return 0;
}

uint32_t draft_gather(struct draft *d, uint32_t array, const struct value *element, uint32_t index)
{
    struct value at = value_of(d, index), v = *element;
    uint32_t a = as_real(d, index);

    v.may_be_missing = at.may_be_missing || at.low < 0 || at.high >= (__int128)d->array[array].count;
    return draft_add(d, (struct step){.code = CODE_GATHER, .a = a, .b = a, .item = array}, v);
}

/* ---- Operations ---- */

static int range_sum(const struct value *a, const struct value *b, struct value *out)
{
    out->low = a->low + b->low;
    out->high = a->high + b->high;
    return 1;
}

static int range_difference(const struct value *a, const struct value *b, struct value *out)
{
    out->low = a->low - b->high;
    out->high = a->high - b->low;
    return 1;
}

/* The least and the greatest of four. */
static void range_corners(const __int128 *corner, struct value *out)
{
    out->low = out->high = corner[0];
    for (int i = 1; i < 4; i++) {
        out->low = corner[i] < out->low ? corner[i] : out->low;
        out->high = corner[i] > out->high ? corner[i] : out->high;
    }
}

static int range_product(const struct value *a, const struct value *b, struct value *out)
{
    __int128 corner[4];

    if (__builtin_mul_overflow(a->low, b->low, &corner[0]) || __builtin_mul_overflow(a->low, b->high, &corner[1]) ||
        __builtin_mul_overflow(a->high, b->low, &corner[2]) || __builtin_mul_overflow(a->high, b->high, &corner[3]))
        return 0;
    range_corners(corner, out);
    return 1;
}

static uint32_t draft_arithmetic(struct draft *d, enum node_kind kind, uint32_t a, uint32_t b)
{
    static const struct {
        int (*range)(const struct value *, const struct value *, struct value *);
        enum code real, integer, wide;
    } codes[] = {
        [NODE_ADD - NODE_ADD] = {range_sum, CODE_ADD, CODE_ADD, CODE_WIDE_ADD},
        [NODE_SUB - NODE_ADD] = {range_difference, CODE_SUB, CODE_SUB, CODE_WIDE_SUB},
        [NODE_MUL - NODE_ADD] = {range_product, CODE_MUL, CODE_INTEGER_MUL, CODE_WIDE_MUL},
    };
    struct value x = value_of(d, a), y = value_of(d, b);
    struct value v = integer_value(0, 0, x.may_be_missing || y.may_be_missing);

    if (x.is_integer && y.is_integer && codes[kind - NODE_ADD].range(&x, &y, &v)) {
        if (!x.is_wide && !y.is_wide && range_is_small(v.low, v.high))
            return draft_step(d, codes[kind - NODE_ADD].integer, a, b, v);
        if (!v.may_be_missing && is_wide_range(v.low, v.high))
            return draft_wide(d, codes[kind - NODE_ADD].wide, a, b, v);
    }
    return draft_in_real(d, codes[kind - NODE_ADD].real, a, b);
}

static __int128 floor_quotient(__int128 x, __int128 y)
{
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static __int128 most(const struct value *v)
{
    return v->high > -v->low ? v->high : -v->low;
}

/* The range of a // b or a % b, where b is not 0. */
static void range_quotient(enum node_kind kind, const struct value *a, const struct value *b, struct value *out)
{
    int has_zero = b->low <= 0 && b->high >= 0;

    if (kind == NODE_MOD) {
        out->low = b->low < 0 ? b->low + 1 : 0;
        out->high = b->high > 0 ? b->high - 1 : 0;
        if (a->low >= 0 && b->low >= 0 && a->high < out->high)
            out->high = a->high;
    } else if (has_zero) {
        out->low = -most(a);
        out->high = most(a);
    } else {
        const __int128 corner[4] = {floor_quotient(a->low, b->low), floor_quotient(a->low, b->high),
                                    floor_quotient(a->high, b->low), floor_quotient(a->high, b->high)};
        range_corners(corner, out);
    }
}

static uint32_t draft_quotient(struct draft *d, enum node_kind kind, uint32_t a, uint32_t b)
{
    const int is_mod = kind == NODE_MOD;
    struct value x = value_of(d, a), y = value_of(d, b);
    int has_zero = y.low <= 0 && y.high >= 0, may_be_missing = x.may_be_missing || y.may_be_missing;
    struct value v = integer_value(0, 0, may_be_missing || has_zero);

    if (!x.is_integer || !y.is_integer)
        return draft_in_real(d, is_mod ? CODE_MOD : CODE_FLOORDIV, a, b);
    range_quotient(kind, &x, &y, &v);
    if (!x.is_wide && !y.is_wide && most(&x) + most(&y) < (__int128)1 << 51)
        return draft_step(d, is_mod ? CODE_INTEGER_MOD : CODE_INTEGER_FLOORDIV, a, b, v);
    if (may_be_missing)
        return draft_in_real(d, is_mod ? CODE_MOD : CODE_FLOORDIV, a, b);
    if (!has_zero && is_wide_range(v.low, v.high))
        return draft_wide(d, is_mod ? CODE_WIDE_MOD : CODE_WIDE_FLOORDIV, a, b, v);
    return draft_step(d, is_mod ? CODE_WIDE_MOD_REAL : CODE_WIDE_FLOORDIV_REAL, as_wide(d, a), as_wide(d, b),
                      real_value);
}

static int is_sure_integer(const struct value *v)
{
    return v->is_integer && !v->may_be_missing;
}

/* Of wide integers: their order, compared with 0. */
static uint32_t draft_compare(struct draft *d, enum code code, uint32_t a, uint32_t b)
{
    struct value x = value_of(d, a), y = value_of(d, b);

    if (!x.is_wide && !y.is_wide)
        return draft_step(d, code, a, b, condition_value);
    uint32_t zero = draft_real(d, 0), order;
    if (is_sure_integer(&x) && is_sure_integer(&y))
        order = draft_step(d, CODE_WIDE_ORDER, as_wide(d, a), as_wide(d, b), real_value);
    else if (x.is_wide)
        order = draft_step(d, CODE_REAL_ORDER, a, b, real_value);
    else
        return draft_step(d, code, zero, draft_step(d, CODE_REAL_ORDER, b, a, real_value), condition_value);
    return draft_step(d, code, order, zero, condition_value);
}

/* Integers to the power of integers, all constant: 1 if the result has 64 bits. */
static int constant_power(const struct value *x, const struct value *y, __int128 *out)
{
    int is_exact =
        x->is_constant && y->is_constant && is_sure_integer(x) && is_sure_integer(y) && y->low >= 0 && y->low <= 64;

    *out = 1;
    for (int i = 0; is_exact && i < (int)y->low; i++)
        is_exact = !__builtin_mul_overflow(*out, x->low, out) && is_wide_range(*out, *out);
    return is_exact;
}

static uint32_t draft_power(struct draft *d, uint32_t a, uint32_t b)
{
    struct value x = value_of(d, a), y = value_of(d, b);
    __int128 power;

    if (constant_power(&x, &y, &power))
        return draft_integer(d, power);
    if (y.is_constant && is_sure_integer(&y) && y.low == 2)
        return draft_arithmetic(d, NODE_MUL, a, a);
    return draft_in_real(d, CODE_POW, a, b);
}

static uint32_t draft_extreme(struct draft *d, enum node_kind kind, uint32_t a, uint32_t b)
{
    const enum code code = kind == NODE_MIN ? CODE_MIN : CODE_MAX;
    struct value x = value_of(d, a), y = value_of(d, b);

    if (!x.is_integer || !y.is_integer || x.is_wide || y.is_wide)
        return draft_in_real(d, code, a, b);
    int takes_x_low = (x.low < y.low) == (kind == NODE_MIN), takes_x_high = (x.high < y.high) == (kind == NODE_MIN);
    /* If one is NaN, the result is the other. */
    int is_missing = x.may_be_missing || y.may_be_missing;
    __int128 low = is_missing ? (x.low < y.low ? x.low : y.low) : takes_x_low ? x.low : y.low;
    __int128 high = is_missing ? (x.high > y.high ? x.high : y.high) : takes_x_high ? x.high : y.high;
    return draft_step(d, code, a, b, integer_value(low, high, is_missing));
}

uint32_t draft_two(struct draft *d, enum node_kind kind, uint32_t a, uint32_t b)
{
    switch (kind) {
    case NODE_ADD:
    case NODE_SUB:
    case NODE_MUL:
        return draft_arithmetic(d, kind, a, b);
    case NODE_FLOORDIV:
    case NODE_MOD:
        return draft_quotient(d, kind, a, b);
    case NODE_POW:
        return draft_power(d, a, b);
    case NODE_MIN:
    case NODE_MAX:
        return draft_extreme(d, kind, a, b);
    case NODE_LT:
        return draft_compare(d, CODE_LT, a, b);
    case NODE_LE:
        return draft_compare(d, CODE_LE, a, b);
    case NODE_GT:
        return draft_compare(d, CODE_LT, b, a);
    case NODE_GE:
        return draft_compare(d, CODE_LE, b, a);
    case NODE_EQ:
        return draft_compare(d, CODE_EQ, a, b);
    case NODE_NE:
        return draft_compare(d, CODE_NE, a, b);
    case NODE_AND:
        return draft_step(d, CODE_MUL, a, b, condition_value);
    case NODE_OR:
        return draft_step(d, CODE_MAX, a, b, condition_value);
    case NODE_ATAN2:
        return draft_in_real(d, CODE_ATAN2, a, b);
    default:
        return draft_in_real(d, CODE_DIV, a, b);
    }
}

static uint32_t draft_abs(struct draft *d, uint32_t a)
{
    struct value v = value_of(d, a);

    if (!v.is_integer || v.is_wide)
        return draft_in_real(d, CODE_ABS, a, a);
    return draft_step(d, CODE_ABS, a, a, integer_value(0, most(&v), v.may_be_missing));
}

uint32_t draft_one(struct draft *d, enum node_kind kind, uint32_t a)
{
    static const enum code codes[] = {
        [NODE_NEGATE] = CODE_NEGATE, [NODE_SQRT] = CODE_SQRT, [NODE_FLOOR] = CODE_FLOOR, [NODE_LOG] = CODE_LOG,
        [NODE_EXP] = CODE_EXP,       [NODE_SIN] = CODE_SIN,   [NODE_COS] = CODE_COS,
    };
    int is_integer = value_of(d, a).is_integer;

    if (kind == NODE_NOT)
        return draft_step(d, CODE_EQ, a, draft_real(d, 0), condition_value);
    if (kind == NODE_ABS)
        return draft_abs(d, a);
    if (kind == NODE_NEGATE && is_integer)
        return draft_arithmetic(d, NODE_SUB, draft_integer(d, 0), a);
    if (kind == NODE_FLOOR && is_integer)
        return a;
    return draft_in_real(d, codes[kind], a, a);
}
