/* Error bounds: what a schema says about how far a stored float may be from the one that was appended. Such a float is
 * replaced by the nearest multiple of a power of two, the largest that keeps the bound: so its last bits are zero, and
 * take no storage. */
#ifndef DELTAFS_DIRECTORY_ERROR_BOUNDS_H
#define DELTAFS_DIRECTORY_ERROR_BOUNDS_H

#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

struct bound {
    uint32_t offset, size; /* of the field */
    int exponent;          /* of the power of two */
};

struct bounds {
    struct bound *each;
    size_t count;
};

/* Of a schema that can be parsed; "": none. */
int bounds_init(struct bounds *b, const char *schema, struct error *e);
void bounds_fini(struct bounds *b);

/* Round values in place, `stride` bytes apart. What is rounded already does not change, nor what is not finite. */
void bounds_round(const struct bounds *b, uint8_t *values, size_t n, size_t stride);

/* Copy `n` values of `size` bytes, rounded, one after the other. */
void bounds_copy(const struct bounds *b, uint8_t *to, const uint8_t *values, size_t n, size_t stride, size_t size);

#endif
