/* A compressor for the Snappy format, as its public description (format_description.txt) defines it: the length as a
 * varint, then literals and copies of earlier bytes.
 *
 * The input is cut into fragments of 64 KiB, so that a position in one fits 16 bits. A hash table has the last position
 * of each hash of four bytes. The search takes the first match that it finds, and skips ahead faster the longer it
 * finds none: one more byte per 32 failures. */
#include <string.h>
#include "base/coding.h"
#include "base/short_copy.h"
#include "directory/format/pack.h"

#define PACK_FRAGMENT   65536u
#define PACK_TABLE_BITS 14
#define PACK_TABLE_LOW  8   /* bits of the smallest table: short inputs need not clear a large one */
#define PACK_MARGIN     15u /* bytes at the end that begin no match, so that eight bytes can be loaded anywhere */
#define PACK_COPY_MAX   64u
#define PACK_SKIP_SHIFT 5

enum { PACK_LITERAL, PACK_COPY_1, PACK_COPY_2 };

size_t pack_max(size_t n)
{
    return 32 + n + n / 6;
}

static uint8_t *pack_literal(uint8_t *out, const uint8_t *p, size_t n)
{
    size_t left = n - 1;

    if (left < 60) {
        *out++ = (uint8_t)(left << 2 | PACK_LITERAL);
    } else {
        uint8_t *tag = out++;
        unsigned bytes = 0;
        for (; left > 0; left >>= 8, bytes++)
            *out++ = (uint8_t)left;
        *tag = (uint8_t)((59 + bytes) << 2 | PACK_LITERAL);
    }
    copy_short(out, p, n);
    return out + n;
}

static uint8_t *pack_copy(uint8_t *out, size_t offset, size_t n)
{
    while (n > 0) {
        /* At least four bytes are left for the last one, which may then be of the short kind. */
        size_t part = n <= PACK_COPY_MAX ? n : n < PACK_COPY_MAX + 4 ? PACK_COPY_MAX - 4 : PACK_COPY_MAX;
        if (part >= 4 && part < 12 && offset < 2048) {
            *out++ = (uint8_t)(PACK_COPY_1 | (part - 4) << 2 | (offset >> 8) << 5);
            *out++ = (uint8_t)offset;
        } else {
            *out++ = (uint8_t)(PACK_COPY_2 | (part - 1) << 2);
            put_u16(out, (uint16_t)offset);
            out += 2;
        }
        n -= part;
    }
    return out;
}

/* How many bytes from a and from b on are equal; b is behind a and ends at `end`. */
static size_t pack_match(const uint8_t *a, const uint8_t *b, const uint8_t *end)
{
    const uint8_t *start = b;

    for (; end - b >= 8; a += 8, b += 8) {
        uint64_t differ = get_u64(a) ^ get_u64(b);
        if (differ != 0)
            return (size_t)(b - start) + (size_t)__builtin_ctzll(differ) / 8;
    }
    while (b < end && *a == *b)
        a++, b++;
    return (size_t)(b - start);
}

static uint8_t *pack_fragment(const uint8_t *in, size_t n, uint8_t *out)
{
    uint16_t table[1u << PACK_TABLE_BITS];
    unsigned bits = PACK_TABLE_LOW;
    size_t at = 0, literal = 0, last = n > PACK_MARGIN ? n - PACK_MARGIN : 0;

    while (bits < PACK_TABLE_BITS && (size_t)1 << bits < n)
        bits++;
    memset(table, 0, sizeof *table << bits);
    for (size_t next = 1, tries = 1u << PACK_SKIP_SHIFT; next < last; next = at + (tries++ >> PACK_SKIP_SHIFT)) {
        at = next;
        uint32_t four = get_u32(in + at);
        uint16_t *slot = &table[four * 0x1e35a7bdu >> (32 - bits)];
        size_t candidate = *slot;
        *slot = (uint16_t)at;
        if (get_u32(in + candidate) != four)
            continue;
        size_t length = 4 + pack_match(in + candidate + 4, in + at + 4, in + n);
        if (at > literal)
            out = pack_literal(out, in + literal, at - literal);
        out = pack_copy(out, at - candidate, length);
        literal = at + length;
        if (literal < last)
            table[get_u32(in + literal - 1) * 0x1e35a7bdu >> (32 - bits)] = (uint16_t)(literal - 1);
        at = literal - 1;
        tries = 1u << PACK_SKIP_SHIFT;
    }
    return n > literal ? pack_literal(out, in + literal, n - literal) : out;
}

size_t pack_compress(const uint8_t *in, size_t n, uint8_t *out)
{
    uint8_t *p = put_varint(out, n);

    for (size_t done = 0; done < n; done += PACK_FRAGMENT)
        p = pack_fragment(in + done, n - done < PACK_FRAGMENT ? n - done : PACK_FRAGMENT, p);
    return (size_t)(p - out);
}
