#include <string.h>
#include "base/coding.h"
#include "base/short_copy.h"
#include "directory/format/directory_format.h"
#include "directory/format/pack.h"
#include "directory/format/planes.h"
#include "directory/format/strip_pack.h"

#define HEAD 2 /* bytes for each byte of a value where constant planes are left out */

/* What is packed must be shorter by this share, or reading it is not worth the unpacking. Without constant planes it is
 * not read in place anyway. */
#define MIN_GAIN_SHIFT        5
#define MIN_GAIN_SHIFT_SPARSE 7

/* The last byte of a plane that is all ones: it is filled up with zeros. */
static uint8_t last_ones(size_t n)
{
    return (uint8_t)(0xff >> (8 - n % 8) % 8);
}

static int is_constant(const uint8_t *plane, size_t n)
{
    size_t last = (n + 7) / 8 - 1, at = 0;
    uint64_t all = plane[0] & 1 ? UINT64_MAX : 0, other = (plane[last] ^ all) & last_ones(n);

    if (last < 8) {
        for (; at < last; at++)
            other |= (plane[at] ^ all) & 0xff;
        return other == 0;
    }
    if (get_u64(plane) != all)
        return 0; /* as nearly always if it is not */
    for (; at + 8 <= last; at += 8)
        other |= get_u64(plane + at) ^ all;
    return (other | (get_u64(plane + last - 8) ^ all)) == 0;
}

/* Whether bit 7 - p % 8 of byte p / 8 of the values differs, or is set in all of them. */
static int differs(const uint8_t *head, size_t p)
{
    return head[HEAD * (p / 8)] << p % 8 & 0x80;
}

static int is_set(const uint8_t *head, size_t p)
{
    return head[HEAD * (p / 8) + 1] << p % 8 & 0x80;
}

/* How many bits differ. */
static size_t head_count(const uint8_t *head, size_t size)
{
    size_t count = 0;

    for (size_t k = 0; k < size; k++)
        count += count_bits(head[HEAD * k]);
    return count;
}

static void head_make(const uint8_t *planes, size_t n, size_t size, size_t front, uint8_t *head)
{
    size_t length = (n + 7) / 8;

    for (size_t k = 0; k < size; k++) {
        const uint8_t *plane = planes + 8 * k * length;
        unsigned differ = k < front ? 0xff : 0, set = 0;
        for (unsigned bit = 0x80; bit > 0 && k >= front; bit >>= 1, plane += length) {
            if (!is_constant(plane, n))
                differ |= bit;
            else if (plane[0] & 1)
                set |= bit;
        }
        head[HEAD * k] = (uint8_t)differ;
        head[HEAD * k + 1] = (uint8_t)set;
    }
}

/* Let the planes that are not constant be one after the other. */
static void planes_close(uint8_t *planes, size_t n, size_t size, size_t front, const uint8_t *head)
{
    size_t length = (n + 7) / 8;
    uint8_t *to = planes += 8 * front * length;

    for (size_t p = 8 * front; p < 8 * size; p++, planes += length) {
        if (!differs(head, p))
            continue;
        if (to != planes)
            copy_short(to, planes, length);
        to += length;
    }
}

/* Let them be at their places again, and the constant ones between them. */
static void planes_open(uint8_t *planes, size_t n, size_t size, const uint8_t *head)
{
    size_t length = (n + 7) / 8;
    const uint8_t *from = planes + head_count(head, size) * length;

    /* They move up, so the last one comes first. */
    for (size_t p = 8 * size; p-- > 0;) {
        uint8_t *to = planes + p * length;
        if (differs(head, p)) {
            from -= length;
            if (from == to)
                return; /* those before are at their places */
            copy_short(to, from, length);
            continue;
        }
        memset(to, is_set(head, p) ? 0xff : 0, length);
        to[length - 1] &= last_ones(n);
    }
}

uint32_t strip_pack(uint8_t *planes, size_t n, size_t size, size_t front, uint8_t *to)
{
    size_t plane = planes_length(n, size) / (8 * size), used = 8 * size * plane, head = 0;
    unsigned shift = MIN_GAIN_SHIFT;
    uint32_t flags = 0;

    if (front < size) {
        head_make(planes, n, size, front, to);
        size_t rest = plane * head_count(to, size);
        /* Snappy makes 3 bytes of 64. */
        if ((used - rest) / 64 * 3 > HEAD * size) {
            planes_close(planes, n, size, front, to);
            used = rest;
            head = HEAD * size;
            flags = BLOCK_STRIP_SPARSE;
            shift = MIN_GAIN_SHIFT_SPARSE;
        }
    }
    size_t skip = 8 * front * plane, packed = skip < used ? pack_compress(planes, used, skip, to + head) : used;
    if (packed < used - (used >> shift))
        flags |= BLOCK_STRIP_SNAPPY;
    else
        memcpy(to + head, planes, packed = used);
    return flags | (uint32_t)(head + packed) << 1;
}

int strip_may_be(uint32_t entry, size_t n, size_t size)
{
    size_t length = BLOCK_STRIP_LENGTH(entry);

    if (entry & BLOCK_STRIP_SPARSE)
        return length >= HEAD * size;
    return (entry & BLOCK_STRIP_SNAPPY) || length == planes_length(n, size);
}

int strip_unpack(uint32_t entry, const uint8_t *stored, size_t n, size_t size, uint8_t *planes)
{
    size_t length = BLOCK_STRIP_LENGTH(entry), used = planes_length(n, size);
    const uint8_t *from = stored;

    if (entry & BLOCK_STRIP_SPARSE) {
        used = used / (8 * size) * head_count(stored, size);
        from += HEAD * size;
        length -= HEAD * size;
    }
    if ((entry & BLOCK_STRIP_SNAPPY) && pack_decompress(from, length, planes, used) != 0)
        return -1;
    if (!(entry & BLOCK_STRIP_SNAPPY)) {
        if (length != used)
            return -1;
        memcpy(planes, from, used);
    }
    if (entry & BLOCK_STRIP_SPARSE)
        planes_open(planes, n, size, stored);
    return 0;
}
