/* The processor's instruction takes three cycles for eight bytes and can begin one each cycle: so three parts are done
 * at a time, and their checksums joined by what LANE zero bytes do to one, which is linear and stands in a table of its
 * own (Gopal et al., 2011).
 *
 * The other table is the slicing-by-8 one (Kounavis and Berry, 2005): eight bytes a step, one look-up a byte. It is
 * computed once, on first use, from the reflected polynomial 0x82f63b78. */
#include <pthread.h>
#include "base/coding.h"
#include "base/crc32c.h"

#define CRC32C_POLYNOMIAL 0x82f63b78u

static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int has_instruction;

#if defined(__x86_64__)
#define LANE 256 /* bytes of each of the three parts */

static uint32_t behind_lane[4][256]; /* what a checksum's byte k of value v becomes behind LANE zero bytes */

static void crc32c_prepare_lanes(void)
{
    uint32_t bit[32];

    for (int i = 0; i < 32; i++) {
        bit[i] = UINT32_C(1) << i;
        for (int n = 0; n < LANE; n++)
            bit[i] = (bit[i] >> 8) ^ table[0][bit[i] & 0xff];
    }
    for (int k = 0; k < 4; k++)
        for (uint32_t v = 1; v < 256; v++)
            behind_lane[k][v] = behind_lane[k][v & (v - 1)] ^ bit[8 * k + __builtin_ctz(v)];
}

static uint64_t crc32c_behind_lane(uint64_t c)
{
    return behind_lane[0][c & 0xff] ^ behind_lane[1][c >> 8 & 0xff] ^ behind_lane[2][c >> 16 & 0xff] ^
           behind_lane[3][c >> 24 & 0xff];
}
#endif

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
    crc32c_prepare_lanes();
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

    for (; n >= 3 * LANE; n -= 3 * LANE, p += 3 * LANE) {
        uint64_t second = 0, third = 0;
        for (size_t i = 0; i < LANE; i += 8) {
            c = __builtin_ia32_crc32di(c, get_u64(p + i));
            second = __builtin_ia32_crc32di(second, get_u64(p + LANE + i));
            third = __builtin_ia32_crc32di(third, get_u64(p + 2 * LANE + i));
        }
        c = crc32c_behind_lane(crc32c_behind_lane(c) ^ second) ^ third;
    }
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
