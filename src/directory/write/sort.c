/* Radix sort. Bits that are the same in all keys are left out: what remains of a key, above it the partition and below
 * it the record's value or its index make one number of 64 bits where they fit, as they do for dense IDs and for IDs
 * made of a rank and a counter; numbers are moved, not records, and the sorted keys are made of them again without a
 * look at where the records are, values of up to eight bytes too, where they fit. A pass by the top bits makes shares,
 * which a processor's own cache holds where keys are spread evenly; within each, passes go by one digit after the
 * other, the least significant first. Where numbers do not fit, indices alone are moved, and every pass looks the keys
 * up. */
#include <string.h>
#include "base/coding.h"
#include "directory/write/sort.h"
#include "directory/format/planes.h"

#define FEW            16   /* numbers are sorted otherwise, */
#define SHORT          1024 /* and below that by shorter digits */
#define SHORT_BITS_MAX 8
#define DIGIT_BITS_MAX 11
#define DIGITS_MAX     8     /* of 8 bits in 64 */
#define SHARE          8192  /* numbers of a share, about: 64 KiB, and as much to move them to */
#define SHARE_MAX      32768 /* of the largest, where keys are not spread evenly, */
#define SHARE_BITS_MAX 12    /* as far as so many bits allow */

/* Up to two ranges of bits: those in which keys differ, without the widest gap between them. */
struct sort_bits {
    unsigned low_shift, low_bits;
    unsigned high_shift, high_bits;
};

static unsigned bits_for(uint64_t v)
{
    return v == 0 ? 0 : 64u - (unsigned)__builtin_clzll(v);
}

static uint64_t mask_of(unsigned bits)
{
    return bits == 0 ? 0 : UINT64_MAX >> (64 - bits);
}

/* The ranges of some numbers that differ in these bits. */
static struct sort_bits sort_bits_of(uint64_t differ)
{
    unsigned end, gap = 0, gap_at = 0;

    if (differ == 0)
        return (struct sort_bits){0};
    unsigned low = (unsigned)__builtin_ctzll(differ), top = bits_for(differ);
    for (unsigned at = low; at < top; at = end) {
        for (end = at; end < top && !(differ >> end & 1);)
            end++;
        if (end - at > gap) {
            gap = end - at;
            gap_at = at;
        }
        end += end == at;
    }
    if (gap == 0)
        return (struct sort_bits){.low_shift = low, .low_bits = top - low};
    return (struct sort_bits){low, gap_at - low, gap_at + gap, top - gap_at - gap};
}

static struct sort_bits sort_find_bits(const uint64_t *keys, uint32_t n)
{
    uint64_t differ = 0;

    for (uint32_t i = 1; i < n; i++)
        differ |= keys[i] ^ keys[0];
    return sort_bits_of(differ);
}

static inline uint64_t sort_squeeze(const struct sort_bits *s, uint64_t key)
{
    return (key >> s->low_shift & mask_of(s->low_bits)) |
           (s->high_bits ? (key >> s->high_shift & mask_of(s->high_bits)) << s->low_bits : 0);
}

/* The key that was squeezed, in the low bits of `number`; `same` are the bits of all keys in neither range. */
static inline uint64_t sort_expand(const struct sort_bits *s, uint64_t number, uint64_t same)
{
    return same | (number & mask_of(s->low_bits)) << s->low_shift |
           (s->high_bits ? (number >> s->low_bits & mask_of(s->high_bits)) << s->high_shift : 0);
}

static inline uint64_t sort_partition(const struct sort_partitions *p, uint64_t key)
{
    return p->count > 1 ? partition_of(p->by, key) - p->first : 0;
}

/* Move numbers to their places by some of their bits; `end` is how many have each value of these, then where they end.
 */
static void sort_move(const uint64_t *from, uint64_t *to, uint32_t n, unsigned shift, uint64_t mask, uint32_t *end)
{
    uint32_t at = 0;

    for (uint64_t value = 0; value <= mask; value++) {
        uint32_t count = end[value];
        end[value] = at;
        at += count;
    }
    for (uint32_t i = 0; i < n; i++)
        to[end[from[i] >> shift & mask]++] = from[i];
}

/* Sort a few numbers by their bits from `low` on. */
static void sort_few(uint64_t *a, uint32_t n, unsigned low)
{
    for (uint32_t i = 1; i < n; i++) {
        uint64_t number = a[i];
        uint32_t at = i;
        for (; at > 0 && a[at - 1] >> low > number >> low; at--)
            a[at] = a[at - 1];
        a[at] = number;
    }
}

static unsigned sort_digits(unsigned bits, unsigned most)
{
    return (bits + most - 1) / most;
}

/* Sort numbers by their bits from `low` to `top`, those above are alike; returns a or b, whatever the numbers. */
static uint64_t *sort_numbers(uint64_t *a, uint64_t *b, uint32_t n, unsigned low, unsigned top)
{
    uint32_t histogram[DIGITS_MAX][1 << DIGIT_BITS_MAX];
    uint64_t *wanted = sort_digits(top - low, DIGIT_BITS_MAX) % 2 ? b : a;
    unsigned digits = n <= FEW ? 0 : sort_digits(top - low, n < SHORT ? SHORT_BITS_MAX : DIGIT_BITS_MAX);
    unsigned bits = digits > 0 ? (top - low + digits - 1) / digits : 0;
    uint64_t mask = mask_of(bits);

    if (n <= FEW)
        sort_few(a, n, low);
    for (unsigned digit = 0; digit < digits; digit++)
        memset(histogram[digit], 0, sizeof histogram[digit][0] << bits);
    for (uint32_t i = 0; i < n; i++)
        for (unsigned digit = 0; digit < digits; digit++)
            histogram[digit][a[i] >> (low + digit * bits) & mask]++;
    for (unsigned digit = 0; digit < digits; digit++) {
        sort_move(a, b, n, low + digit * bits, mask, histogram[digit]);
        uint64_t *swapped = a;
        a = b;
        b = swapped;
    }
    if (a != wanted)
        memcpy(wanted, a, n * sizeof *a);
    return wanted;
}

/* One pass over indices, by the byte from `shift` on of what stands for the key, or of its partition. */
static void sort_pass(const uint64_t *keys, const uint32_t *from, uint32_t *to, uint32_t n,
                      const struct sort_bits *bits, const struct sort_partitions *p, unsigned shift)
{
    uint32_t histogram[256] = {0}, at = 0;

    for (uint32_t i = 0; i < n; i++)
        histogram[(bits ? sort_squeeze(bits, keys[i]) : sort_partition(p, keys[i])) >> shift & 0xff]++;
    for (unsigned value = 0; value < 256; value++) {
        uint32_t count = histogram[value];
        histogram[value] = at;
        at += count;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t key = keys[from[i]];
        to[histogram[(bits ? sort_squeeze(bits, key) : sort_partition(p, key)) >> shift & 0xff]++] = from[i];
    }
}

static struct sorted sort_indices(const uint64_t *keys, uint32_t n, const struct sort_bits *bits,
                                  const struct sort_partitions *p, uint64_t *a, uint64_t *b)
{
    unsigned key_bits = bits->low_bits + bits->high_bits, partition_bits = bits_for(p->count - 1);
    uint32_t *from = (uint32_t *)a, *to = (uint32_t *)b;

    for (uint32_t i = 0; i < n; i++)
        from[i] = i;
    for (unsigned at = 0; at < key_bits + partition_bits;) {
        int is_key = at < key_bits;
        sort_pass(keys, from, to, n, is_key ? bits : NULL, p, is_key ? at : at - key_bits);
        uint32_t *swapped = from;
        from = to;
        to = swapped;
        at = is_key && at + 8 > key_bits ? key_bits : at + 8;
    }
    uint64_t *sorted = (uint32_t *)a == from ? b : a;
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = keys[from[i]];
    return (struct sorted){.keys = sorted, .order = from};
}

/* What is below the keys in the numbers. */
struct sort_payload {
    unsigned bits;
    size_t size;           /* bytes of it, in the result */
    const uint8_t *values; /* NULL: indices */
    int is_squeezed;       /* of values of eight bytes, what differs: these bits; the others are */
    struct sort_bits of;
    uint64_t same;
};

/* Values of eight bytes. */
static struct sort_payload sort_squeezed(const struct sort_input *in)
{
    uint64_t differ = 0, first = get_u64(in->values);

    for (uint32_t i = 1; i < in->count; i++)
        differ |= get_u64(in->values + i * sizeof first) ^ first;
    struct sort_payload p = {.size = sizeof first, .values = in->values, .is_squeezed = 1, .of = sort_bits_of(differ)};
    p.bits = p.of.low_bits + p.of.high_bits;
    p.same = first & ~sort_expand(&p.of, UINT64_MAX, 0);
    return p;
}

/* Values, if they fit. */
static struct sort_payload sort_payload(const struct sort_input *in, unsigned bits_above)
{
    size_t size = in->value_size;

    if (in->values && size > 0 && size < 8 && bits_above + 8 * size <= 64)
        return (struct sort_payload){.bits = (unsigned)(8 * size), .size = size, .values = in->values};
    if (in->values && size == 8 && in->count > 0) {
        const struct sort_payload squeezed = sort_squeezed(in);
        if (bits_above + squeezed.bits < 64)
            return squeezed;
    }
    return (struct sort_payload){.bits = in->count > 0 ? bits_for(in->count - 1) : 0, .size = sizeof(uint32_t)};
}

static inline uint64_t sort_payload_of(const struct sort_payload *p, uint32_t i)
{
    if (p->is_squeezed)
        return sort_squeeze(&p->of, get_u64(p->values + i * sizeof(uint64_t)));
    return p->values ? get_u64(p->values + i * p->size) & mask_of(p->bits) : i;
}

/* Put record i's, with which a number ends. */
static inline void sort_payload_put(const struct sort_payload *p, uint64_t number, uint8_t *to, uint32_t i)
{
    uint64_t one = number & mask_of(p->bits);
    uint32_t index = (uint32_t)one;

    if (p->values)
        put_u64(to + i * p->size, p->is_squeezed ? sort_expand(&p->of, one, p->same) : one);
    else
        memcpy(to + i * p->size, &index, sizeof index);
}

/* How many of the top bits make shares, no more than `most`: so many that no share is much too large. end[v] is how
 * many numbers have the value v of `most` bits, then of those. */
static unsigned sort_share_bits(uint32_t *end, uint32_t n, unsigned most)
{
    unsigned bits = bits_for(n / SHARE) < most ? bits_for(n / SHARE) : most;
    uint32_t largest = UINT32_MAX;

    for (; bits < most && largest > SHARE_MAX; bits += largest > SHARE_MAX) {
        largest = 0;
        for (uint32_t value = 0, count = 0; value < 1u << most; value++) {
            count = value & ((1u << (most - bits)) - 1) ? count + end[value] : end[value];
            largest = count > largest ? count : largest;
        }
    }
    for (uint32_t value = 0; value < 1u << most && bits < most; value++) {
        uint32_t count = end[value];
        end[value] = 0;
        end[value >> (most - bits)] += count;
    }
    return bits;
}

struct sorted sort_records(const struct sort_input *in, const struct sort_partitions *p, uint64_t *a, uint64_t *b)
{
    const uint64_t *keys = in->keys;
    uint32_t n = in->count;
    struct sort_bits bits = sort_find_bits(keys, n);
    unsigned key_bits = bits.low_bits + bits.high_bits, partition_bits = bits_for(p->count - 1);
    const struct sort_payload with = sort_payload(in, key_bits + partition_bits);
    unsigned partition_shift = with.bits + key_bits, top = partition_shift + partition_bits;
    struct sorted out;

    if (top > 64) {
        out = sort_indices(keys, n, &bits, p, a, b);
        out.values = in->values;
        return out;
    }
    unsigned most_bits = n <= SHARE ? 0 : top - with.bits < SHARE_BITS_MAX ? top - with.bits : SHARE_BITS_MAX;
    unsigned shift = most_bits > 0 ? top - most_bits : 0;
    uint32_t end[1 << SHARE_BITS_MAX] = {0};
    for (uint32_t i = 0; i < n; i++) {
        a[i] = (p->count > 1 ? sort_partition(p, keys[i]) << partition_shift : 0) |
               sort_squeeze(&bits, keys[i]) << with.bits | sort_payload_of(&with, i);
        end[a[i] >> shift & mask_of(most_bits)]++;
    }
    unsigned share_bits = sort_share_bits(end, n, most_bits);
    shift = share_bits > 0 ? top - share_bits : 0;
    if (share_bits > 0) {
        sort_move(a, b, n, shift, mask_of(share_bits), end);
        uint64_t *swapped = a;
        a = b;
        b = swapped;
    }
    uint64_t same = n > 0 ? keys[0] & ~sort_expand(&bits, UINT64_MAX, 0) : 0;
    uint64_t *number = a, *sorted = b;
    uint32_t i = 0;
    for (uint64_t share = 0; share <= mask_of(share_bits); share++) {
        if (end[share] == i)
            continue;
        number = sort_numbers(a + i, b + i, end[share] - i, with.bits, top - share_bits) - i;
        uint8_t *low = (uint8_t *)number; /* what is below the keys, in the place of what has been read */
        sorted = number == a ? b : a;
        for (; i < end[share]; i++) {
            uint64_t one = number[i];
            sorted[i] = sort_expand(&bits, one >> with.bits, same);
            sort_payload_put(&with, one, low, i);
        }
    }
    out.keys = sorted;
    out.order = with.values ? NULL : (const uint32_t *)(const void *)number;
    out.values = with.values ? (const uint8_t *)number : in->values;
    return out;
}
