/* Columns into lanes. The loops over values that lie side by side become vector instructions. */
#include "base/coding.h"
#include "query/expr_code.h"

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
    static void NAME(const uint8_t *restrict first, size_t stride, size_t n, union lanes *restrict out)                \
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

void expr_load(enum code code, const struct expr_column *column, size_t first, size_t n, union lanes *out)
{
    typedef void load_fn(const uint8_t *restrict, size_t, size_t, union lanes *restrict);
    static load_fn *const loads[CODE_COUNT] = {
        [CODE_LOAD_F4] = lanes_f4, [CODE_LOAD_F8] = lanes_f8, [CODE_LOAD_I1] = lanes_i1,
        [CODE_LOAD_I2] = lanes_i2, [CODE_LOAD_I4] = lanes_i4, [CODE_LOAD_U1] = lanes_u1,
        [CODE_LOAD_U2] = lanes_u2, [CODE_LOAD_U4] = lanes_u4, [CODE_LOAD_WIDE] = lanes_wide,
    };

    loads[code]((const uint8_t *)column->first + first * column->stride, column->stride, n, out);
}
