#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs.h>
#include "base/coding.h"
#include "base/options.h"
#include "directory/write/error_bounds.h"

/* IEEE 754: a sign, `exponents` bits of exponent, `fraction` bits. Returns the nearest multiple of 2^to, in the same
 * form; where that is beyond the largest number, x. */
static inline uint64_t round_float(uint64_t x, int exponents, int fraction, int to)
{
    const int infinite = (1 << exponents) - 1, bias = infinite / 2;
    int exponent = (int)(x >> fraction) & infinite;
    /* A number is a multiple of 2^unit; so many of its last bits must be zero. */
    int unit = (exponent > 0 ? exponent : 1) - bias - fraction, drop = to - unit;
    uint64_t sign = x & UINT64_C(1) << (exponents + fraction), r;

    if (exponent == infinite || drop <= 0)
        return x;
    if (drop <= fraction) /* a carry out of the fraction goes into the exponent, as it should */
        r = (x + (UINT64_C(1) << (drop - 1))) >> drop << drop;
    else if (drop == fraction + 1 && exponent > 0) /* half of 2^to, or more */
        r = sign | (uint64_t)(exponent + 1) << fraction;
    else
        r = sign;
    return ((int)(r >> fraction) & infinite) == infinite ? x : r;
}

int bounds_init(struct bounds *b, const char *schema, struct error *e)
{
    deltafs_schema *s;

    *b = (struct bounds){.count = 0};
    if (!strchr(schema, '~'))
        return DELTAFS_OK;
    if (error_of_call(deltafs_schema_parse(schema, &s), e) != DELTAFS_OK)
        return e->status;
    size_t fields = deltafs_schema_count(s);
    b->each = calloc(fields, sizeof *b->each);
    for (size_t i = 0; i < fields && b->each; i++) {
        const struct deltafs_field *f = deltafs_schema_field(s, i);
        if (f->bound == 0)
            continue;
        struct bound *of = &b->each[b->count++];
        *of = (struct bound){.offset = f->offset, .size = f->size};
        frexp(f->bound, &of->exponent); /* 2^exponent is at most twice the bound */
    }
    deltafs_schema_destroy(s);
    return b->each ? DELTAFS_OK : error_no_memory(e, fields * sizeof *b->each, "error bounds");
}

void bounds_fini(struct bounds *b)
{
    free(b->each);
    *b = (struct bounds){.count = 0};
}

void bounds_round(const struct bounds *b, uint8_t *values, size_t n, size_t stride)
{
    for (size_t k = 0; k < b->count; k++) {
        const struct bound *of = &b->each[k];
        uint8_t *at = values + of->offset;
        for (size_t i = 0; i < n; i++, at += stride) {
            if (of->size == sizeof(float))
                put_u32(at, (uint32_t)round_float(get_u32(at), 8, 23, of->exponent));
            else
                put_u64(at, round_float(get_u64(at), 11, 52, of->exponent));
        }
    }
}

void bounds_copy(const struct bounds *b, uint8_t *to, const uint8_t *values, size_t n, size_t stride, size_t size)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * size, values + i * stride, size);
    bounds_round(b, to, n, size);
}
