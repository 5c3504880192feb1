/* Least-significant-digit radix sort, a byte a pass. All histograms come from one pass over the keys, and a byte that
 * is the same in all keys costs no pass: dense IDs below 2^24 take three. */
#include <string.h>
#include "core/sort.h"

struct sort_entry *sort_entries(struct sort_entry *a, struct sort_entry *b, uint32_t n)
{
    uint32_t histogram[8][256];

    memset(histogram, 0, sizeof histogram);
    for (uint32_t i = 0; i < n; i++)
        for (unsigned byte = 0; byte < 8; byte++)
            histogram[byte][a[i].key >> 8 * byte & 0xff]++;
    for (unsigned byte = 0; byte < 8 && n > 0; byte++) {
        uint32_t *h = histogram[byte], at = 0;
        if (h[a[0].key >> 8 * byte & 0xff] == n)
            continue;
        for (unsigned digit = 0; digit < 256; digit++) {
            uint32_t count = h[digit];
            h[digit] = at;
            at += count;
        }
        for (uint32_t i = 0; i < n; i++)
            b[h[a[i].key >> 8 * byte & 0xff]++] = a[i];
        struct sort_entry *swapped = a;
        a = b;
        b = swapped;
    }
    return a;
}
