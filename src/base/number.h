/* Numbers from texts, and their order. */
#ifndef DELTAFS_BASE_NUMBER_H
#define DELTAFS_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/* Strictly: the whole text must be the number. Return 0, or -1 and leave *out alone. */
int number_parse(const char *text, uint64_t *out);      /* decimal, or hexadecimal after 0x */
int number_parse_size(const char *text, uint64_t *out); /* decimal with an optional K, M, G or T (powers of 1024) */
int number_parse_real(const char *text, double *out);   /* finite and decimal, as 1e-4 or .5; in any locale */

/* What qsort is to return: also by a second number where the first is the same, and of arrays of numbers. */
static inline int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static inline int compare_two(uint64_t a, uint64_t b, uint64_t a2, uint64_t b2)
{
    return a != b ? compare(a, b) : compare(a2, b2);
}

static inline int compare_u64(const void *a, const void *b)
{
    return compare(*(const uint64_t *)a, *(const uint64_t *)b);
}

static inline int compare_u32(const void *a, const void *b)
{
    return compare(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* The first place of an array whose number is not less than this one. The numbers ascend; `first` is that of the first
 * element, and each element has `stride` bytes. */
size_t number_position(const uint64_t *first, size_t count, size_t stride, uint64_t number);

#endif
