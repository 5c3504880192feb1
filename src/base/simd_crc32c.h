/* The processor's instructions for crc32c.c. */
#ifndef DELTAFS_BASE_SIMD_CRC32C_H
#define DELTAFS_BASE_SIMD_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define CRC32C_POLYNOMIAL 0x82f63b78u /* reflected */

/* What a checksum becomes behind `n` zero bytes. */
static inline uint32_t crc32c_zeros(uint32_t c, size_t n)
{
    for (n *= 8; n > 0; n--)
        c = (c >> 1) ^ (CRC32C_POLYNOMIAL & (0u - (c & 1)));
    return c;
}

/* From the slowest. */
enum simd_crc32c_way {
    CRC32C_INSTRUCTION, /* the one for CRC-32C alone */
    CRC32C_BOTH,        /* and multiplications of 256 bits, beside it */
    CRC32C_WIDE         /* multiplications of 512 bits */
};

/* As crc32c, in place. Returns 0, and nothing is done, if the processor has no instructions for that. */
int simd_crc32c_by(enum simd_crc32c_way way, uint32_t *crc, const void *bytes, size_t n);

/* The same, by the fastest way that the processor has. */
int simd_crc32c(uint32_t *crc, const void *bytes, size_t n);

#endif
