/* Copying short things whose size the compiler does not know. */
#ifndef DELTAFS_BASE_SHORT_COPY_H
#define DELTAFS_BASE_SHORT_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COPY_SHORT 128 /* bytes: longer ones are left to the C library, whose call costs a few ns */

/* Copy n bytes, which may be none, as memcpy does. Pieces of a fixed size, of which the last overlaps the one before.
 */
static inline void copy_short(uint8_t *to, const uint8_t *from, size_t n)
{
    if (n >= 16 && n <= COPY_SHORT) {
        for (size_t at = 0; at < n - 16; at += 16)
            memcpy(to + at, from + at, 16);
        memcpy(to + n - 16, from + n - 16, 16);
    } else if (n >= 8 && n < 16) {
        memcpy(to, from, 8);
        memcpy(to + n - 8, from + n - 8, 8);
    } else if (n >= 4 && n < 8) {
        memcpy(to, from, 4);
        memcpy(to + n - 4, from + n - 4, 4);
    } else if (n > 0) {
        memcpy(to, from, n);
    }
}

#endif
