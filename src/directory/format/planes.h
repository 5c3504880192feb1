/* Bit planes: values of one size laid out so that bits of the same place in each value stand together. Signs, exponents
 * and upper digits, which are alike in many values, become runs of equal bytes that Snappy packs.
 *
 * Plane (k, b), for each byte k of a value and each bit b from 7 down to 0, in that order: bit b of byte k of value 0,
 * 1, 2, ..., the first in the lowest bit of the plane's first byte; a plane ends at a byte, filled up with zeros. */
#ifndef DELTAFS_DIRECTORY_PLANES_H
#define DELTAFS_DIRECTORY_PLANES_H

#include <stddef.h>
#include <stdint.h>

#define PLANES_SLACK 16 /* bytes that must be readable behind the values, and behind the planes */

/* Bytes of all planes of `n` values of `size` bytes. */
static inline size_t planes_length(size_t n, size_t size)
{
    return size * 8 * ((n + 7) / 8);
}

void planes_split(const uint8_t *values, size_t n, size_t size, uint8_t *planes);
/* All values, one after the other. `wanted` has for each of the `size` bytes of a value whether it is needed: a byte
 * that is not gets any value, which saves time. NULL: all are needed. */
void planes_join(const uint8_t *planes, size_t n, size_t size, const uint8_t *wanted, uint8_t *values);
/* Value `i` of the `n` alone. */
void planes_get(const uint8_t *planes, size_t n, size_t size, size_t i, uint8_t *value);

/* The same without the processor's vector instructions; the same bytes. For tests, and other processors. The first
 * splits the values from `first` on, a multiple of 8. */
void planes_split_from(const uint8_t *values, size_t first, size_t n, size_t size, uint8_t *planes);
void planes_join_portable(const uint8_t *planes, size_t n, size_t size, const uint8_t *wanted, uint8_t *values);

#endif
