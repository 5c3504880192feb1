/* Slicing by 8 (Kounavis and Berry, 2005): eight bytes a step, one look-up a byte. The table is computed once, on first
 * use, from the reflected polynomial. */
#include <pthread.h>
#include "base/coding.h"
#include "base/crc32c.h"
#include "base/simd_crc32c.h"

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void crc32c_prepare(void)
{
    for (uint32_t i = 0; i < 256; i++)
        table[0][i] = crc32c_zeros(i, 1);
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xff];
}

uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint32_t c = ~crc;

    pthread_once(&once, crc32c_prepare);
    for (; n >= 8; n -= 8, p += 8) {
        uint32_t low = c ^ get_u32(p), high = get_u32(p + 4);
        c = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
            table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^ table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
    }
    for (; n > 0; n--)
        c = (c >> 8) ^ table[0][(c ^ *p++) & 0xff];
    return ~c;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t n)
{
    return simd_crc32c(&crc, bytes, n) ? crc : crc32c_portable(crc, bytes, n);
}
