/* The table is the slicing-by-8 one (Kounavis and Berry, 2005): eight bytes a step, one look-up a byte. It is computed
 * once, on first use, from the reflected polynomial 0x82f63b78. */
#include <pthread.h>
#include "base/coding.h"
#include "base/crc32c.h"

#define CRC32C_POLYNOMIAL 0x82f63b78u

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_instruction;

static void crc32c_prepare(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++)
            c = (c >> 1) ^ (CRC32C_POLYNOMIAL & (0u - (c & 1)));
        table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            table[k][i] = (table[k - 1][i] >> 8) ^ table[0][table[k - 1][i] & 0xff];
#if defined(__x86_64__)
    has_instruction = __builtin_cpu_supports("sse4.2");
#endif
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

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_instruction(uint32_t crc, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint64_t c = ~crc;

    for (; n >= 8; n -= 8, p += 8)
        c = __builtin_ia32_crc32di(c, get_u64(p));
    for (; n > 0; n--)
        c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
    return ~(uint32_t)c;
}
#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t n)
{
    pthread_once(&once, crc32c_prepare);
#if defined(__x86_64__)
    if (has_instruction)
        return crc32c_instruction(crc, bytes, n);
#endif
    return crc32c_portable(crc, bytes, n);
}
