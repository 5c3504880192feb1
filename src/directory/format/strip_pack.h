/* The bit planes (planes.h) of a strip as they are stored. Planes in which all values have the same bit may be left
 * out. Then two bytes for each byte of a value are in front of the others: which of its bits differ, and what the
 * others are in all values. */
#ifndef DELTAFS_DIRECTORY_STRIP_PACK_H
#define DELTAFS_DIRECTORY_STRIP_PACK_H

#include <stddef.h>
#include <stdint.h>

/* Pack the planes of `n` values of `size` bytes into `to`; they are no planes any more then. In the first `front` bytes
 * of the values there is nothing to pack. Returns what the table of strips says: bytes and flags. */
uint32_t strip_pack(uint8_t *planes, size_t n, size_t size, size_t front, uint8_t *to);

/* Whether the table can be right about such a strip. */
int strip_may_be(uint32_t entry, size_t n, size_t size);

/* Let the planes be at `planes`. Returns 0, or -1 if what is stored is no such strip. */
int strip_unpack(uint32_t entry, const uint8_t *stored, size_t n, size_t size, uint8_t *planes);

#endif
