/* Little-endian and varint coding of the fields on disk and in messages. Decoders are given where the bytes end and
 * never read beyond. */
#ifndef DELTAFS_BASE_CODING_H
#define DELTAFS_BASE_CODING_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VARINT_MAX 10 /* bytes of the longest 64-bit varint */

static inline void put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void put_u32(uint8_t *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, 4);
}

static inline void put_u64(uint8_t *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, 8);
}

static inline uint16_t get_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t get_u32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return le32toh(v);
}

static inline uint64_t get_u64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, 8);
    return le64toh(v);
}

/* The number of bits that are set. */
static inline unsigned count_bits(uint64_t v)
{
    v -= v >> 1 & UINT64_C(0x5555555555555555);
    v = (v & UINT64_C(0x3333333333333333)) + (v >> 2 & UINT64_C(0x3333333333333333));
    v = (v + (v >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)(v * UINT64_C(0x0101010101010101) >> 56);
}

/* Seven bits a byte, least significant first, the top bit set on all but the last. Returns the byte behind it. */
static inline uint8_t *put_varint(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

/* Returns the byte behind the varint, or NULL if it does not end before `end` or does not fit 64 bits. */
static inline const uint8_t *get_varint(const uint8_t *p, const uint8_t *end, uint64_t *out)
{
    uint64_t v = 0;

    if (p < end && *p < 0x80) { /* most are */
        *out = *p;
        return p + 1;
    }
    if (end - p >= 2 && p[1] < 0x80) { /* nearly all others */
        *out = (uint64_t)p[1] << 7 | (p[0] & 0x7f);
        return p + 2;
    }
    for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
        uint64_t byte = *p++;
        if (shift == 63 && byte > 1)
            return NULL;
        v |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = v;
            return p;
        }
    }
    return NULL;
}

#endif
