/* Loading columns into lanes, and the simple steps: loops that become vector instructions, compiled for AVX2 too. No
 * loop depends on errno or on traps, and those of STEP run over whole groups of LANES_STEP lanes. */
#include <math.h>
#include <string.h>
#include "base/coding.h"
#include "query/expr_code.h"

#define INLINE    static inline __attribute__((always_inline))
#define ARGUMENTS const union lanes *restrict a, const union lanes *restrict b, union lanes *restrict out, size_t n

/* ---- Loads ---- */

static inline float load_f4(const uint8_t *p)
{
    uint32_t bits = get_u32(p);
    float v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline double load_f8(const uint8_t *p)
{
    uint64_t bits = get_u64(p);
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static inline uint16_t load_u2(const uint8_t *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof v);
    return le16toh(v);
}

#define LOAD(NAME, SIZE, MEMBER, VALUE)                                                                                \
    INLINE void NAME(const uint8_t *restrict first, size_t stride, size_t n, union lanes *restrict out)                \
    {                                                                                                                  \
        size_t group = 0;                                                                                              \
        if (stride == (SIZE))                                                                                          \
            for (; group + LANES_STEP <= n; group += LANES_STEP)                                                       \
                for (size_t i = 0; i < LANES_STEP; i++)                                                                \
                    out->MEMBER[group + i] = VALUE(first + (group + i) * (SIZE));                                      \
        for (size_t i = group; i < n; i++)                                                                             \
            out->MEMBER[i] = VALUE(first + i * stride);                                                                \
    }

LOAD(lanes_f4, 4, d, (double)load_f4)
LOAD(lanes_f8, 8, d, load_f8)
LOAD(lanes_i1, 1, d, (double)(int8_t) *)
LOAD(lanes_i2, 2, d, (double)(int16_t)load_u2)
LOAD(lanes_i4, 4, d, (double)(int32_t)get_u32)
LOAD(lanes_u1, 1, d, (double)*)
LOAD(lanes_u2, 2, d, (double)load_u2)
LOAD(lanes_u4, 4, d, (double)get_u32)
LOAD(lanes_wide, 8, u, get_u64)

INLINE void load_all(enum code code, const uint8_t *restrict first, size_t stride, size_t n, union lanes *restrict out)
{
    switch (code) {
    case CODE_LOAD_F4:
        lanes_f4(first, stride, n, out);
        break;
    case CODE_LOAD_F8:
        lanes_f8(first, stride, n, out);
        break;
    case CODE_LOAD_I1:
        lanes_i1(first, stride, n, out);
        break;
    case CODE_LOAD_I2:
        lanes_i2(first, stride, n, out);
        break;
    case CODE_LOAD_I4:
        lanes_i4(first, stride, n, out);
        break;
    case CODE_LOAD_U1:
        lanes_u1(first, stride, n, out);
        break;
    case CODE_LOAD_U2:
        lanes_u2(first, stride, n, out);
        break;
    case CODE_LOAD_U4:
        lanes_u4(first, stride, n, out);
        break;
    case CODE_LOAD_WIDE:
        lanes_wide(first, stride, n, out);
        break;
    default:
        break;
    }
}

/* ---- Steps ---- */

/* `x` and `y` are the operands' lanes. */
#define STEP(NAME, IN, OUT, TYPE, VALUE)                                                                               \
    INLINE void NAME(ARGUMENTS)                                                                                        \
    {                                                                                                                  \
        for (size_t group = 0; group < n; group += LANES_STEP)                                                         \
            for (size_t i = 0; i < LANES_STEP; i++) {                                                                  \
                TYPE x = a->IN[group + i], y = b->IN[group + i];                                                       \
                (void)y;                                                                                               \
                out->OUT[group + i] = VALUE;                                                                           \
            }                                                                                                          \
    }

STEP(step_add, d, d, double, x + y)
STEP(step_sub, d, d, double, x - y)
STEP(step_mul, d, d, double, x *y)
STEP(step_div, d, d, double, x / y)
STEP(step_negate, d, d, double, -x)
STEP(step_abs, d, d, double, fabs(x))
STEP(step_sqrt, d, d, double, sqrt(x))
STEP(step_min, d, d, double, (x < y) | (y != y) ? x : y)
STEP(step_max, d, d, double, (x > y) | (y != y) ? x : y)
STEP(step_integer_mul, d, d, double, x *y + 0.0)
/* Exact, since |x| + |y| < 2^51: x / y is nearer to itself than to an integer that it is not. */
STEP(step_integer_floordiv, d, d, double, lane_round_down(x / y))
STEP(step_integer_mod, d, d, double, x - lane_round_down(x / y) * y)
STEP(step_wide_add, u, u, uint64_t, x + y)
STEP(step_wide_sub, u, u, uint64_t, x - y)
STEP(step_wide_mul, u, u, uint64_t, x *y)
STEP(step_lt, d, d, double, x < y ? 1.0 : 0.0)
STEP(step_le, d, d, double, x <= y ? 1.0 : 0.0)
STEP(step_eq, d, d, double, x == y ? 1.0 : 0.0)
STEP(step_ne, d, d, double, x != y ? 1.0 : 0.0)

INLINE void step_all(enum code code, ARGUMENTS)
{
    switch (code) {
    case CODE_ADD:
        step_add(a, b, out, n);
        break;
    case CODE_SUB:
        step_sub(a, b, out, n);
        break;
    case CODE_MUL:
        step_mul(a, b, out, n);
        break;
    case CODE_DIV:
        step_div(a, b, out, n);
        break;
    case CODE_INTEGER_MUL:
        step_integer_mul(a, b, out, n);
        break;
    case CODE_INTEGER_FLOORDIV:
        step_integer_floordiv(a, b, out, n);
        break;
    case CODE_INTEGER_MOD:
        step_integer_mod(a, b, out, n);
        break;
    case CODE_WIDE_ADD:
        step_wide_add(a, b, out, n);
        break;
    case CODE_WIDE_SUB:
        step_wide_sub(a, b, out, n);
        break;
    case CODE_WIDE_MUL:
        step_wide_mul(a, b, out, n);
        break;
    case CODE_MIN:
        step_min(a, b, out, n);
        break;
    case CODE_MAX:
        step_max(a, b, out, n);
        break;
    case CODE_NEGATE:
        step_negate(a, b, out, n);
        break;
    case CODE_SQRT:
        step_sqrt(a, b, out, n);
        break;
    case CODE_ABS:
        step_abs(a, b, out, n);
        break;
    case CODE_LT:
        step_lt(a, b, out, n);
        break;
    case CODE_LE:
        step_le(a, b, out, n);
        break;
    case CODE_EQ:
        step_eq(a, b, out, n);
        break;
    case CODE_NE:
        step_ne(a, b, out, n);
        break;
    default:
        break;
    }
}

/* ---- Tests ---- */

/* Let pass[i] stay 1 only where the value is at least `least`. Most groups have no such value. */
INLINE void at_least(const double *restrict value, double least, size_t n, uint8_t *restrict pass)
{
    size_t group = 0;

    for (; group + LANES_STEP <= n; group += LANES_STEP) {
        uint64_t is[LANES_STEP], any = 0;
        for (size_t i = 0; i < LANES_STEP; i++)
            is[i] = value[group + i] >= least;
        for (size_t i = 0; i < LANES_STEP; i++)
            any |= is[i];
        for (size_t i = 0; any && i < LANES_STEP; i++)
            pass[group + i] &= (uint8_t)is[i];
        if (!any)
            memset(pass + group, 0, LANES_STEP);
    }
    for (; group < n; group++)
        pass[group] &= value[group] >= least;
}

/* ---- For the processor ---- */

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
#define AVX2

static int has_avx2(void)
{
    return 0;
}
#endif

AVX2 static void load_avx2(enum code code, const uint8_t *restrict first, size_t stride, size_t n,
                           union lanes *restrict out)
{
    load_all(code, first, stride, n, out);
}

AVX2 static void step_avx2(enum code code, ARGUMENTS)
{
    step_all(code, a, b, out, n);
}

AVX2 static void at_least_avx2(const double *restrict value, double least, size_t n, uint8_t *restrict pass)
{
    at_least(value, least, n, pass);
}

void expr_load(enum code code, const struct expr_column *column, size_t first, size_t n, union lanes *out)
{
    const uint8_t *from = (const uint8_t *)column->first + first * column->stride;

    if (has_avx2())
        load_avx2(code, from, column->stride, n, out);
    else
        load_all(code, from, column->stride, n, out);
}

void expr_vectors(enum code code, ARGUMENTS)
{
    if (has_avx2())
        step_avx2(code, a, b, out, n);
    else
        step_all(code, a, b, out, n);
}

void expr_at_least(const double *value, double least, size_t n, uint8_t *pass)
{
    if (has_avx2())
        at_least_avx2(value, least, n, pass);
    else
        at_least(value, least, n, pass);
}
