/* A compressor and a decompressor for the Snappy format, as its public description (format_description.txt) defines it:
 * the length as a varint, then literals and copies of earlier bytes.
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

static uint8_t *pack_fragment(const uint8_t *in, size_t n, size_t skip, uint8_t *out)
{
    uint16_t table[1u << PACK_TABLE_BITS];
    unsigned bits = PACK_TABLE_LOW;
    size_t at = 0, literal = 0, last = n > PACK_MARGIN ? n - PACK_MARGIN : 0;

    while (bits < PACK_TABLE_BITS && (size_t)1 << bits < n - skip)
        bits++;
    memset(table, 0, sizeof *table << bits);
    for (size_t next = skip + 1, tries = 1u << PACK_SKIP_SHIFT; next < last; next = at + (tries++ >> PACK_SKIP_SHIFT)) {
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

size_t pack_compress(const uint8_t *in, size_t n, size_t skip, uint8_t *out)
{
    uint8_t *p = put_varint(out, n);

    for (size_t done = 0; done < n; done += PACK_FRAGMENT) {
        size_t here = n - done < PACK_FRAGMENT ? n - done : PACK_FRAGMENT, skipped = skip < done ? 0 : skip - done;
        p = pack_fragment(in + done, here, skipped < here ? skipped : here, p);
    }
    return (size_t)(p - out);
}

/* ---- Decompression ---- */

#define PACK_STEP      16u /* bytes that are copied at once where there is room */
#define PACK_SHORT_MAX 60u /* of a literal whose tag says how long it is */

/* The length of a literal whose tag has been read: returns the byte behind it, or NULL. */
static const uint8_t *pack_literal_length(const uint8_t *p, const uint8_t *end, uint8_t tag, size_t *n)
{
    unsigned bytes = tag >> 2 < 60 ? 0 : (tag >> 2) - 59u;
    size_t length = bytes > 0 ? 0 : tag >> 2;

    if ((size_t)(end - p) < bytes)
        return NULL;
    for (unsigned i = 0; i < bytes; i++)
        length |= (size_t)p[i] << 8 * i;
    *n = length + 1;
    return p + bytes;
}

/* The length and the distance of a copy whose tag has been read: returns the byte behind it, or NULL. */
static const uint8_t *pack_copy_place(const uint8_t *p, const uint8_t *end, uint8_t tag, size_t *n, size_t *back)
{
    size_t bytes = (tag & 3) == PACK_COPY_1 ? 1 : (tag & 3) == PACK_COPY_2 ? 2 : 4;

    if ((size_t)(end - p) < bytes)
        return NULL;
    *n = (size_t)(tag >> 2) + 1;
    if (bytes == 1) {
        *n = (size_t)(tag >> 2 & 7) + 4;
        *back = (size_t)(tag >> 5) << 8 | p[0];
    } else {
        *back = bytes == 2 ? (size_t)(p[0] | p[1] << 8) : get_u32(p);
    }
    return p + bytes;
}

/* PACK_STEP bytes, which may overlap: all are loaded before any is stored. */
static inline void pack_step(uint8_t *out, const uint8_t *from)
{
    uint8_t bytes[PACK_STEP];

    memcpy(bytes, from, sizeof bytes);
    memcpy(out, bytes, sizeof bytes);
}

/* n bytes and up to PACK_STEP - 1 more; each step may read what those before it have written. */
static inline void pack_steps(uint8_t *out, const uint8_t *from, size_t n)
{
    for (size_t i = 0; i < n; i += PACK_STEP)
        pack_step(out + i, from + i);
}

/* One byte PACK_COPY_MAX times: quicker than a call for as many as are needed. */
static inline void pack_run(uint8_t *out, uint8_t byte)
{
    uint8_t bytes[PACK_STEP];

    memset(bytes, byte, sizeof bytes);
    for (size_t i = 0; i < PACK_COPY_MAX; i += PACK_STEP)
        memcpy(out + i, bytes, sizeof bytes);
}

/* n bytes, at most PACK_COPY_MAX, from `back` before; `room` can be written. */
static inline void pack_repeat(uint8_t *out, size_t back, size_t n, size_t room)
{
    const uint8_t *from = out - back;

    if (back == 1) {
        memset(out, *from, n);
        return;
    }
    if (room < n + PACK_STEP) {
        for (size_t i = 0; i < n; i++)
            out[i] = from[i];
        return;
    }
    /* What is repeated becomes twice as long each time. */
    for (; back < PACK_STEP && back < n; out += back, n -= back, back *= 2)
        pack_step(out, from);
    pack_steps(out, from, n);
}

/* Literals of at most PACK_SHORT_MAX bytes and copies, as long as there is so much room on both sides that nothing
 * needs to be checked but where copies are from, and whether there is all of a literal of more than PACK_STEP bytes.
 * Returns the first byte that is left to others, with *written moved on; NULL: the input is wrong. */
static const uint8_t *pack_decompress_short(const uint8_t *in, const uint8_t *end, const uint8_t *start,
                                            uint8_t **written, const uint8_t *stop)
{
    uint8_t *out = *written;

    while (end - in > (ptrdiff_t)PACK_STEP && stop - out >= (ptrdiff_t)PACK_COPY_MAX) {
        unsigned tag = *in, kind = tag & 3;
        size_t n = (tag >> 2) + 1, back;
        if (kind == PACK_LITERAL) {
            if (n > PACK_STEP && (n > PACK_SHORT_MAX || end - in <= (ptrdiff_t)PACK_COPY_MAX))
                break;
            pack_steps(out, in + 1, n);
            in += 1 + n;
            out += n;
            continue;
        }
        if (kind > PACK_COPY_2)
            break;
        if (kind == PACK_COPY_1) {
            n = (tag >> 2 & 7) + 4;
            back = (size_t)(tag >> 5) << 8 | in[1];
            in += 2;
        } else {
            back = get_u16(in + 1);
            in += 3;
        }
        if (back - 1 >= (size_t)(out - start))
            return NULL;
        if (n <= PACK_STEP && back >= n) {
            pack_step(out, out - back);
        } else if (back >= PACK_STEP) {
            pack_steps(out, out - back, n);
        } else if (back == 1) {
            pack_run(out, out[-1]);
        } else {
            pack_repeat(out, back, n, (size_t)(stop - out));
        }
        out += n;
    }
    *written = out;
    return in;
}

int pack_decompress(const uint8_t *in, size_t packed, uint8_t *out, size_t n)
{
    const uint8_t *end = in + packed, *start = out;
    uint64_t length;
    size_t part, back;

    in = get_varint(in, end, &length);
    if (!in || length != n)
        return -1;
    for (uint8_t *stop = out + n; in < end; out += part) {
        in = pack_decompress_short(in, end, start, &out, stop);
        if (!in || in == end)
            break;
        uint8_t tag = *in++;
        size_t room = (size_t)(stop - out);
        int is_literal = (tag & 3) == PACK_LITERAL;
        in = is_literal ? pack_literal_length(in, end, tag, &part) : pack_copy_place(in, end, tag, &part, &back);
        if (!in || part > room)
            return -1;
        if (!is_literal) {
            if (back == 0 || back > (size_t)(out - start))
                return -1;
            pack_repeat(out, back, part, room);
            continue;
        }
        if (part > (size_t)(end - in))
            return -1;
        if (part <= PACK_STEP && room >= PACK_STEP && (size_t)(end - in) >= PACK_STEP)
            memcpy(out, in, PACK_STEP);
        else
            memcpy(out, in, part);
        in += part;
    }
    return in && out == start + n ? 0 : -1;
}
