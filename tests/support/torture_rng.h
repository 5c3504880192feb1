/* Seeded random numbers: splitmix64. */
#ifndef DELTAFS_TORTURE_RNG_H
#define DELTAFS_TORTURE_RNG_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct torture_rng {
    uint64_t state;
};

static inline uint64_t torture_next(struct torture_rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0 .. n - 1 */
static inline uint64_t torture_below(struct torture_rng *r, uint64_t n)
{
    return (uint64_t)((unsigned __int128)torture_next(r) * n >> 64);
}

/* One of some texts. */
#define TORTURE_PICK(rng, ...)                                                                                         \
    ((const char *const[]){                                                                                            \
        __VA_ARGS__})[torture_below(rng, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))]

static inline void torture_fill(struct torture_rng *r, void *bytes, size_t n)
{
    uint8_t *p = bytes;

    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v = torture_next(r);
        memcpy(p, &v, 8);
    }
    for (uint64_t v = torture_next(r); n > 0; n--, v >>= 8)
        *p++ = (uint8_t)v;
}

#endif
