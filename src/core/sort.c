/* Least-significant-digit radix sort, a byte a pass. All histograms come from one pass over the entries, and a byte
 * that is the same in all of them costs no pass: dense IDs below 2^24 in one partition take three. */
#include <string.h>
#include "core/sort.h"

#define DIGITS 12 /* bytes of key and partition */

static inline unsigned sort_digit(const struct sort_entry *entry, unsigned digit)
{
    return (unsigned)(digit < 8 ? entry->key >> 8 * digit : entry->partition >> 8 * (digit - 8)) & 0xff;
}

struct sort_entry *sort_entries(struct sort_entry *a, struct sort_entry *b, uint32_t n)
{
    uint32_t histogram[DIGITS][256];

    memset(histogram, 0, sizeof histogram);
    for (uint32_t i = 0; i < n; i++)
        for (unsigned digit = 0; digit < DIGITS; digit++)
            histogram[digit][sort_digit(&a[i], digit)]++;
    for (unsigned digit = 0; digit < DIGITS && n > 0; digit++) {
        uint32_t *h = histogram[digit], at = 0;
        if (h[sort_digit(&a[0], digit)] == n)
            continue;
        for (unsigned value = 0; value < 256; value++) {
            uint32_t count = h[value];
            h[value] = at;
            at += count;
        }
        for (uint32_t i = 0; i < n; i++)
            b[h[sort_digit(&a[i], digit)]++] = a[i];
        struct sort_entry *swapped = a;
        a = b;
        b = swapped;
    }
    return a;
}
