/* Bit planes: values of one size laid out so that bits of the same place in each value stand together. Signs, exponents
 * and upper digits, which are alike in many values, become runs of equal bytes that Snappy packs.
 *
 * Plane (k, b), for each byte k of a value and each bit b from 7 down to 0, in that order: bit b of byte k of value 0,
 * 1, 2, ..., the first in the lowest bit of the plane's first byte; a plane ends at a byte, filled up with zeros. */
#ifndef DELTAFS_STORE_PLANES_H
#define DELTAFS_STORE_PLANES_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of all planes of `n` values of `size` bytes. */
static inline size_t planes_length(size_t n, size_t size)
{
    return size * 8 * ((n + 7) / 8);
}

/* Bytes of scratch memory that the two below need. */
static inline size_t planes_scratch(size_t n, size_t size)
{
    return size * ((n + 15) / 16 * 16);
}

void planes_split(const uint8_t *values, size_t n, size_t size, uint8_t *planes, uint8_t *scratch);
void planes_join(const uint8_t *planes, size_t n, size_t size, uint8_t *values, uint8_t *scratch);

/* planes_split without the processor's vector instructions; the same bytes. For tests, and other processors. */
void planes_split_portable(const uint8_t *values, size_t n, size_t size, uint8_t *planes, uint8_t *scratch);

#endif
