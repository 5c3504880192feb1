/* Radix sort. Bits that are the same in all keys are left out: what remains of a key, above it the partition and below
 * it the record's value or its index make one number of 64 bits where they fit, as they do for dense IDs and for IDs
 * made of a rank and a counter; numbers are moved, not records, and the sorted keys are made of them again without a
 * look at where the records are, values of up to eight bytes too, where they fit. A pass by the top bits makes shares,
 * which a processor's own cache holds where keys are spread evenly, and which threads share; within each, passes go by
 * one digit after the other, the least significant first. Where not all fits, as with random IDs of 64 bits, the lowest
 * bits of the keys are left out: few keys differ in these alone, and those are put in order at last. Where they are
 * many, indices alone are moved, and every pass looks the keys up. */
#include <stdatomic.h>
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
    unsigned bits; /* of both */
    /* From a number to what is squeezed, and the bits that each range has there. */
    unsigned low_shift, high_shift;
    uint64_t low, high;
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
    unsigned low_bits = gap > 0 ? gap_at - low : top - low, high_at = gap > 0 ? gap_at + gap : top;
    return (struct sort_bits){.bits = low_bits + top - high_at,
                              .low_shift = low,
                              .high_shift = high_at - low_bits,
                              .low = mask_of(low_bits),
                              .high = top > high_at ? mask_of(top - high_at) << low_bits : 0};
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
    return (key >> s->low_shift & s->low) | (key >> s->high_shift & s->high);
}

/* The key that was squeezed, in the low bits of `number`; `same` are the bits of all keys in neither range. */
static inline uint64_t sort_expand(const struct sort_bits *s, uint64_t number, uint64_t same)
{
    return same | (number & s->low) << s->low_shift | (number & s->high) << s->high_shift;
}

static inline uint64_t sort_partition(const struct sort_partitions *p, uint64_t key)
{
    return p->count > 1 ? partition_of(p->by, key) - p->first : 0;
}

/* Where each of so many numbers begins. */
static void sort_begins(uint32_t *counts, uint64_t values)
{
    uint32_t at = 0;

    for (uint64_t value = 0; value < values; value++) {
        uint32_t count = counts[value];
        counts[value] = at;
        at += count;
    }
}

/* Move numbers to their places by some of their bits; `end` is how many have each value of these, then where they end.
 */
static void sort_move(const uint64_t *from, uint64_t *to, uint32_t n, unsigned shift, uint64_t mask, uint32_t *end)
{
    sort_begins(end, mask + 1);
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

/* Whether numbers that are sorted by their bits from `low` to `top` are in the other array then. */
static int sort_is_odd(unsigned low, unsigned top)
{
    return sort_digits(top - low, DIGIT_BITS_MAX) % 2;
}

/* Sort numbers by their bits from `low` to `top`, those above are alike. */
static void sort_numbers(uint64_t *a, uint64_t *b, uint32_t n, unsigned low, unsigned top)
{
    uint32_t histogram[DIGITS_MAX][1 << DIGIT_BITS_MAX];
    uint64_t *wanted = sort_is_odd(low, top) ? b : a;
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
}

/* One pass over indices, by the byte from `shift` on of what stands for the key, or of its partition. */
static void sort_pass(const uint64_t *keys, const uint32_t *from, uint32_t *to, uint32_t n,
                      const struct sort_bits *bits, const struct sort_partitions *p, unsigned shift)
{
    uint32_t histogram[256] = {0};

    for (uint32_t i = 0; i < n; i++)
        histogram[(bits ? sort_squeeze(bits, keys[i]) : sort_partition(p, keys[i])) >> shift & 0xff]++;
    sort_begins(histogram, 256);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t key = keys[from[i]];
        to[histogram[(bits ? sort_squeeze(bits, key) : sort_partition(p, key)) >> shift & 0xff]++] = from[i];
    }
}

static struct sorted sort_indices(const uint64_t *keys, uint32_t n, const struct sort_bits *bits,
                                  const struct sort_partitions *p, uint64_t *a, uint64_t *b)
{
    unsigned key_bits = bits->bits, partition_bits = bits_for(p->count - 1);
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

/* What is below the keys in the numbers: indices, or what is to be said of values of up to eight bytes. */
struct sort_payload {
    size_t size; /* bytes of it, in the result */
    const uint8_t *values;
    struct sort_bits of;
    uint64_t same; /* of the values */
};

/* Values of eight bytes, of which only what differs is needed. */
static struct sort_payload sort_eight(const struct sort_input *in)
{
    uint64_t differ = 0, first = get_u64(in->values);

    for (uint32_t i = 1; i < in->count; i++)
        differ |= get_u64(in->values + i * sizeof first) ^ first;
    const struct sort_bits of = sort_bits_of(differ);
    return (struct sort_payload){sizeof first, in->values, of, first & ~sort_expand(&of, UINT64_MAX, 0)};
}

/* Values, if they fit. */
static struct sort_payload sort_payload(const struct sort_input *in, unsigned bits_above)
{
    size_t size = in->value_size;

    if (in->values && size > 0 && size <= 8 && in->count > 0) {
        const struct sort_payload p =
            size == 8 ? sort_eight(in)
                      : (struct sort_payload){size, in->values, sort_bits_of(mask_of(8 * (unsigned)size)), 0};
        if (bits_above + p.of.bits < 64 || (bits_above + p.of.bits == 64 && size < 8))
            return p;
    }
    return (struct sort_payload){sizeof(uint32_t), NULL, sort_bits_of(mask_of(bits_for(in->count - (in->count > 0)))),
                                 0};
}

/* Each key without the bits that all have and the `dropped` lowest of the others, and above it its partition;
 * counts[v] gets how many of them have the value v in their bits from `shift` on. */
static void sort_squeeze_keys(const struct sort_input *in, const struct sort_partitions *p, struct sort_bits bits,
                              unsigned dropped, uint64_t *squeezed, unsigned shift, uint64_t mask, uint32_t *counts)
{
    const uint64_t *keys = in->keys;
    const uint32_t n = in->count;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t key = keys[i], number = sort_squeeze(&bits, key) >> dropped;
        if (p->count > 1)
            number |= sort_partition(p, key) << (bits.bits - dropped);
        squeezed[i] = number;
        counts[number >> shift & mask]++;
    }
}

/* The numbers of `n` records, whose squeezed keys these are, each to its share: as sort_move. */
static void sort_scatter(const uint64_t *keys, uint32_t n, struct sort_payload with, unsigned shift, uint64_t mask,
                         uint64_t *to, uint32_t *end)
{
    sort_begins(end, mask + 1);
    for (uint32_t i = 0; i < n && with.values; i++) {
        uint64_t low = sort_squeeze(&with.of, get_u64(with.values + i * with.size)),
                 number = keys[i] << with.of.bits | low;
        to[end[number >> shift & mask]++] = number;
    }
    for (uint32_t i = 0; i < n && !with.values; i++) {
        uint64_t number = keys[i] << with.of.bits | i;
        to[end[number >> shift & mask]++] = number;
    }
}

/* The keys of sorted numbers. */
static void sort_keys(const uint64_t *number, uint32_t n, const struct sort_bits *bits, unsigned shift, uint64_t same,
                      uint64_t *sorted)
{
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = sort_expand(bits, number[i] >> shift, same);
}

/* What is below the keys in sorted numbers, in the place of what has been read. */
static void sort_lows(uint64_t *number, uint32_t n, struct sort_payload with)
{
    uint8_t *low = (uint8_t *)number;

    for (uint32_t i = 0; i < n && with.values; i++)
        put_u64(low + i * with.size, sort_expand(&with.of, number[i], with.same));
    for (uint32_t i = 0; i < n && !with.values; i++) {
        uint32_t index = (uint32_t)(number[i] & with.of.low);
        memcpy(low + i * with.size, &index, sizeof index);
    }
}

/* How many of the top bits make shares, of `all` bits and no more than `most`: so many that no share is much too large,
 * and more where that leaves one digit. end[v] is how many numbers have the value v of `most` bits, then of those. */
static unsigned sort_share_bits(uint32_t *end, uint32_t n, unsigned most, unsigned all)
{
    unsigned bits = bits_for(n / SHARE) < most ? bits_for(n / SHARE) : most;

    if (all - bits > DIGIT_BITS_MAX && all - most <= DIGIT_BITS_MAX && n >> (all - DIGIT_BITS_MAX) >= SHORT)
        bits = all - DIGIT_BITS_MAX;
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

/* Numbers in shares: those of share s end at number end[s] of `a`, and `b` has as much room. */
struct sort_shares {
    uint64_t *a, *b;
    const uint32_t *end;
    unsigned low, top; /* where the keys' bits begin, and those that a share's numbers have in common */
    struct sort_bits bits;
    uint64_t same;
    const uint64_t *whole; /* keys of which the numbers have not all bits; NULL: they have */
    atomic_int are_many;   /* too many of these are not in order */
};

/* The whole keys of sorted numbers; those that are alike in what the numbers have of them are put in order. */
static void sort_whole_keys(struct sort_shares *s, uint64_t *number, uint32_t n, uint64_t *sorted)
{
    uint64_t index = mask_of(s->low), left = FEW * (uint64_t)n;

    for (uint32_t i = 0; i < n; i++)
        sorted[i] = s->whole[number[i] & index];
    for (uint32_t i = 1; i < n && left > 0; i++) {
        uint64_t key = sorted[i], own = number[i];
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1] > key && number[at - 1] >> s->low == own >> s->low && left > 0; at--, left--) {
            sorted[at] = sorted[at - 1];
            number[at] = number[at - 1];
        }
        sorted[at] = key;
        number[at] = own;
    }
    if (left == 0 && n > 0)
        atomic_store(&s->are_many, 1);
}

/* Sort the numbers of a share, and make keys of them again beside them. */
static void sort_share(void *ctx, size_t share)
{
    struct sort_shares *s = ctx;
    int is_odd = sort_is_odd(s->low, s->top);
    uint64_t *number = is_odd ? s->b : s->a, *sorted = is_odd ? s->a : s->b;
    uint32_t i = share > 0 ? s->end[share - 1] : 0, n = s->end[share] - i;

    if (atomic_load(&s->are_many))
        return;
    sort_numbers(s->a + i, s->b + i, n, s->low, s->top);
    if (s->whole)
        sort_whole_keys(s, number + i, n, sorted + i);
    else
        sort_keys(number + i, n, &s->bits, s->low, s->same, sorted + i);
}

struct sorted sort_records(const struct sort_input *in, const struct sort_partitions *p, uint64_t *a, uint64_t *b)
{
    uint32_t n = in->count;
    struct sort_bits bits = sort_find_bits(in->keys, n);
    unsigned key_bits = bits.bits, partition_bits = bits_for(p->count - 1);
    const struct sort_payload with = sort_payload(in, key_bits + partition_bits);
    unsigned all = with.of.bits + key_bits + partition_bits, top = all < 64 ? all : 64, above = top - with.of.bits;
    uint64_t same = n > 0 ? in->keys[0] & ~sort_expand(&bits, UINT64_MAX, 0) : 0;
    uint64_t *squeezed = all > 64 ? a : in->keys; /* memory that is in use already, if the keys are not needed again */
    struct sorted out;

    unsigned most = n <= SHARE ? 0 : above < SHARE_BITS_MAX ? above : SHARE_BITS_MAX;
    uint32_t end[1 << SHARE_BITS_MAX] = {0};
    sort_squeeze_keys(in, p, bits, all - top, squeezed, most > 0 ? above - most : 0, mask_of(most), end);
    unsigned share_bits = sort_share_bits(end, n, most, above);
    sort_scatter(squeezed, n, with, share_bits > 0 ? top - share_bits : 0, mask_of(share_bits), b, end);
    struct sort_shares shares = {.a = b,
                                 .b = squeezed,
                                 .end = end,
                                 .low = with.of.bits,
                                 .top = top - share_bits,
                                 .bits = bits,
                                 .same = same,
                                 .whole = all > 64 ? in->keys : NULL};
    size_t count = (size_t)mask_of(share_bits) + 1;
    if (in->team && count > 1)
        team_run(in->team, sort_share, &shares, count);
    else
        for (size_t share = 0; share < count; share++)
            sort_share(&shares, share);
    if (shares.are_many) {
        out = sort_indices(in->keys, n, &bits, p, a, b);
        out.values = in->values;
        return out;
    }
    int is_odd = sort_is_odd(shares.low, shares.top);
    uint64_t *number = is_odd ? shares.b : shares.a;
    sort_lows(number, n, with);
    out.keys = is_odd ? shares.a : shares.b;
    out.order = with.values ? NULL : (const uint32_t *)(const void *)number;
    out.values = with.values ? (const uint8_t *)number : in->values;
    return out;
}
