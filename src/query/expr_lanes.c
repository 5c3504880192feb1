/* One step over the lanes of vectors; the simplest are in simd_lanes.c. */
#include <math.h>
#include "query/expr_code.h"

#define ARGUMENTS const union lanes *restrict a, const union lanes *restrict b, union lanes *restrict out, size_t n

static inline double lane_floor(double x)
{
    return fabs(x) < 0x1p51 ? copysign(lane_round_down(x), x) : floor(x);
}

/* Calls, for the lanes that count only. */
#define CALL(NAME, VALUE)                                                                                              \
    static void NAME(ARGUMENTS)                                                                                        \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            double x = a->d[i], y = b->d[i];                                                                           \
            (void)y;                                                                                                   \
            out->d[i] = VALUE;                                                                                         \
        }                                                                                                              \
    }

/* Python's x % y: of fmod's result, which is exact and has the sign of x, the one that has the sign of y. */
static double lane_mod(double x, double y)
{
    double mod = fmod(x, y);

    if (mod == 0)
        return copysign(0.0, y);
    return (mod < 0) != (y < 0) ? mod + y : mod;
}

static double lane_floordiv(double x, double y)
{
    double mod = lane_mod(x, y);

    if (y == 0)
        return x / y;
    double whole = (x - mod) / y; /* an integer, but for the rounding */
    double down = floor(whole);
    if (whole == 0)
        return copysign(0.0, x / y);
    return whole - down > 0.5 ? down + 1 : down;
}

CALL(step_floor, lane_floor(x))
CALL(step_floordiv, lane_floordiv(x, y))
CALL(step_mod, lane_mod(x, y))
CALL(step_pow, pow(x, y))
CALL(step_atan2, atan2(x, y))
CALL(step_log, log(x))
CALL(step_exp, exp(x))
CALL(step_sin, sin(x))
CALL(step_cos, cos(x))

static void step_to_wide(ARGUMENTS)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        out->u[i] = (uint64_t)(int64_t)a->d[i];
}

/* ---- Wide integers ---- */

static inline double lane_real(uint64_t x, int is_signed)
{
    return is_signed ? (double)(int64_t)x : (double)x;
}

static inline __int128 lane_wide(uint64_t x, int is_signed)
{
    return is_signed ? (__int128)(int64_t)x : (__int128)x;
}

static inline __int128 floordiv_128(__int128 x, __int128 y)
{
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static inline __int128 mod_128(__int128 x, __int128 y)
{
    __int128 mod = x % y;

    return mod != 0 && (mod < 0) != (y < 0) ? mod + y : mod;
}

/* Of two unsigned ones, or two signed ones but -2^63 // -1, 64 bits are enough; lanes of both kinds are rare. */
static inline uint64_t lane_wide_floordiv(uint64_t x, uint64_t y, uint32_t signs)
{
    int64_t s = (int64_t)x, t = (int64_t)y;

    if (signs == 0)
        return x / y;
    if (signs == (SIGNED_A | SIGNED_B) && t != -1)
        return (uint64_t)(s / t - (s % t != 0 && (s < 0) != (t < 0)));
    return (uint64_t)floordiv_128(lane_wide(x, signs & SIGNED_A), lane_wide(y, signs & SIGNED_B));
}

static inline uint64_t lane_wide_mod(uint64_t x, uint64_t y, uint32_t signs)
{
    int64_t s = (int64_t)x, t = (int64_t)y;

    if (signs == 0)
        return x % y;
    if (signs == (SIGNED_A | SIGNED_B) && t != -1) {
        int64_t mod = s % t;
        return (uint64_t)(mod != 0 && (mod < 0) != (t < 0) ? mod + t : mod);
    }
    return (uint64_t)mod_128(lane_wide(x, signs & SIGNED_A), lane_wide(y, signs & SIGNED_B));
}

static inline double lane_wide_floordiv_real(uint64_t x, uint64_t y, uint32_t signs)
{
    if (y == 0)
        return lane_real(x, signs & SIGNED_A) / 0.0;
    return (double)floordiv_128(lane_wide(x, signs & SIGNED_A), lane_wide(y, signs & SIGNED_B));
}

static inline double lane_wide_mod_real(uint64_t x, uint64_t y, uint32_t signs)
{
    return y == 0 ? (double)NAN : (double)mod_128(lane_wide(x, signs & SIGNED_A), lane_wide(y, signs & SIGNED_B));
}

static inline double lane_wide_order(uint64_t x, uint64_t y, uint32_t signs)
{
    __int128 s = lane_wide(x, signs & SIGNED_A), t = lane_wide(y, signs & SIGNED_B);

    return (s > t) - (s < t);
}

static inline double lane_real_order(uint64_t x, double y, uint32_t signs)
{
    if (!(fabs(y) < 0x1p65))
        return y > 0 ? -1 : y < 0 ? 1 : (double)NAN;
    __int128 s = lane_wide(x, signs & SIGNED_A), t = (__int128)y; /* towards 0 */
    if (s != t)
        return s < t ? -1 : 1;
    double rest = y - (double)t;
    return (rest < 0) - (rest > 0);
}

/* The loop once for each combination of signs, which is a constant in it. */
#define WIDE_LOOP(SIGNS, VALUE)                                                                                        \
    case SIGNS:                                                                                                        \
        for (size_t i = 0; i < n; i++)                                                                                 \
            VALUE(SIGNS);                                                                                              \
        break;
#define WIDE_STEP(NAME, VALUE)                                                                                         \
    static void NAME(ARGUMENTS, uint32_t signs)                                                                        \
    {                                                                                                                  \
        switch (signs) {                                                                                               \
            WIDE_LOOP(0, VALUE)                                                                                        \
            WIDE_LOOP(SIGNED_A, VALUE)                                                                                 \
            WIDE_LOOP(SIGNED_B, VALUE)                                                                                 \
            WIDE_LOOP((SIGNED_A | SIGNED_B), VALUE)                                                                    \
        }                                                                                                              \
    }

#define VALUE_TO_REAL(signs)       (void)b, out->d[i] = lane_real(a->u[i], (signs)&SIGNED_A)
#define VALUE_FLOORDIV(signs)      out->u[i] = lane_wide_floordiv(a->u[i], b->u[i], signs)
#define VALUE_MOD(signs)           out->u[i] = lane_wide_mod(a->u[i], b->u[i], signs)
#define VALUE_FLOORDIV_REAL(signs) out->d[i] = lane_wide_floordiv_real(a->u[i], b->u[i], signs)
#define VALUE_MOD_REAL(signs)      out->d[i] = lane_wide_mod_real(a->u[i], b->u[i], signs)
#define VALUE_ORDER(signs)         out->d[i] = lane_wide_order(a->u[i], b->u[i], signs)
#define VALUE_REAL_ORDER(signs)    out->d[i] = lane_real_order(a->u[i], b->d[i], signs)

WIDE_STEP(step_to_real, VALUE_TO_REAL)
WIDE_STEP(step_wide_floordiv, VALUE_FLOORDIV)
WIDE_STEP(step_wide_mod, VALUE_MOD)
WIDE_STEP(step_wide_floordiv_real, VALUE_FLOORDIV_REAL)
WIDE_STEP(step_wide_mod_real, VALUE_MOD_REAL)
WIDE_STEP(step_wide_order, VALUE_ORDER)
WIDE_STEP(step_real_order, VALUE_REAL_ORDER)

static void step_gather(const struct expr_array *array, const union lanes *a, union lanes *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double at = a->d[i];
        out->d[i] = at >= 0 && at < (double)array->count ? array->values[(size_t)at] : (double)NAN;
    }
}

typedef void step_fn(ARGUMENTS);
typedef void wide_fn(ARGUMENTS, uint32_t signs);

static step_fn *const steps[CODE_COUNT] = {
    [CODE_TO_WIDE] = step_to_wide, [CODE_FLOORDIV] = step_floordiv, [CODE_MOD] = step_mod, [CODE_POW] = step_pow,
    [CODE_ATAN2] = step_atan2,     [CODE_FLOOR] = step_floor,       [CODE_LOG] = step_log, [CODE_EXP] = step_exp,
    [CODE_SIN] = step_sin,         [CODE_COS] = step_cos,
};

static wide_fn *const wide_steps[CODE_COUNT] = {
    [CODE_TO_REAL] = step_to_real,
    [CODE_WIDE_FLOORDIV] = step_wide_floordiv,
    [CODE_WIDE_MOD] = step_wide_mod,
    [CODE_WIDE_FLOORDIV_REAL] = step_wide_floordiv_real,
    [CODE_WIDE_MOD_REAL] = step_wide_mod_real,
    [CODE_WIDE_ORDER] = step_wide_order,
    [CODE_REAL_ORDER] = step_real_order,
};

void expr_step(const struct step *s, const struct expr_array *arrays, size_t n, const union lanes *a,
               const union lanes *b, union lanes *out)
{
    if (s->code == CODE_GATHER)
        step_gather(&arrays[s->item], a, out, n);
    else if (wide_steps[s->code])
        wide_steps[s->code](a, b, out, n, s->signs);
    else if (steps[s->code])
        steps[s->code](a, b, out, n);
    else
        expr_vectors(s->code, a, b, out, n);
}
