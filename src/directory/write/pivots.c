/* What processes exchange are quantiles of their samples, as many of each as its share of the records asks for. So the
 * quantiles of all keys are those of a list in which all these have about the same weight.
 *
 * Pivots that still do are kept: each new set is stored in the manifest, and ends the row of epochs that a reader asks
 * together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "directory/write/pivots.h"

#define SAMPLE_KEYS   1024u      /* for each partition: so its share is known to 3 %; */
#define SAMPLE_LEAST  4096u      /* keys of a process, */
#define SAMPLE_MOST   (1u << 18) /* which it sorts at the end of each epoch */
#define MEMORY_SHARE  32         /* of the memory for the sample, at most */
#define PACKED_KEYS   128u       /* that all processes together send for each partition, */
#define PACKED_MOST   (1u << 20) /* and for all */
#define RECORDS_LEAST 16         /* for each partition; fewer say little of the next epoch */
#define HEAD          3          /* numbers before the keys of a process: of its keys, of its sample, of those sent */
/* Pivots stay while the largest share is at most so many times what it could be, and so many of the standard errors
 * more that shares by a sample have. */
#define KEEP        1.1
#define KEEP_ERRORS 3

/* ---- A sample ---- */

uint32_t sample_capacity(uint32_t partitions, uint64_t memory)
{
    uint64_t n = (uint64_t)SAMPLE_KEYS * partitions, most = memory / MEMORY_SHARE / sizeof(uint64_t);

    n = n < most ? n : most;
    n = n < SAMPLE_MOST ? n : SAMPLE_MOST;
    return (uint32_t)(n < SAMPLE_LEAST ? SAMPLE_LEAST : n & ~UINT64_C(1));
}

/* Numbers that are random enough to be in step with nothing (SplitMix64, Steele and others, 2014). */
static uint64_t sample_random(struct key_sample *s)
{
    uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void sample_clear(struct key_sample *s)
{
    s->count = 0;
    s->stride = 1;
    s->seen = s->next = 0;
}

int sample_init(struct key_sample *s, uint32_t capacity, uint64_t seed, struct memory *memory, struct error *e)
{
    int status = memory_take(memory, capacity * sizeof *s->key, "a sample of keys", &s->key, e);

    s->memory = memory;
    s->capacity = status == DELTAFS_OK ? capacity : 0;
    s->random = seed;
    sample_clear(s);
    return status;
}

void sample_fini(struct key_sample *s)
{
    memory_give(s->memory, s->key, s->capacity * sizeof *s->key);
    *s = (struct key_sample){0};
}

/* Keep one of each two keys. */
static void sample_halve(struct key_sample *s)
{
    s->count /= 2;
    for (uint32_t i = 0; i < s->count; i++)
        s->key[i] = s->key[2 * i + (sample_random(s) & 1)];
    s->stride *= 2;
}

void sample_add_keys(struct key_sample *s, size_t n, const uint8_t *keys, size_t stride)
{
    while (s->next < s->seen + n) {
        memcpy(&s->key[s->count++], keys + (s->next - s->seen) * stride, sizeof *s->key);
        if (s->count == s->capacity)
            sample_halve(s);
        s->next = s->count * s->stride + sample_random(s) % s->stride;
    }
}

/* Keys that all processes together send for each partition, about. */
static uint64_t packed_each(uint32_t partitions)
{
    return PACKED_MOST / partitions < PACKED_KEYS ? PACKED_MOST / partitions : PACKED_KEYS;
}

int sample_pack(struct key_sample *s, uint32_t partitions, uint64_t seen, struct bytes *out, struct error *e)
{
    double share = seen > 0 ? (double)s->seen / (double)seen : 0;
    uint64_t most = (uint64_t)((double)(packed_each(partitions) * partitions) * share) + 1;
    uint64_t n = s->count < most ? s->count : most;
    const uint64_t head[HEAD] = {s->seen, s->count, n};

    if (n == 0)
        return DELTAFS_OK;
    qsort(s->key, s->count, sizeof *s->key, compare_u64);
    int status = buffer_reserve(&out->buffer, out->used + sizeof head + n * sizeof *s->key, "a sample of keys", e);
    if (status == DELTAFS_OK)
        status = bytes_append(out, head, sizeof head, e);
    for (uint64_t i = 0; i < n && status == DELTAFS_OK; i++)
        status = bytes_append(out, &s->key[(2 * i + 1) * s->count / (2 * n)], sizeof *s->key, e);
    return status;
}

/* ---- Pivots ---- */

/* A key of a sample, and how many records it stands for. */
struct weighted {
    uint64_t key;
    double records;
};

static int weighted_compare(const void *a, const void *b)
{
    return compare(((const struct weighted *)a)->key, ((const struct weighted *)b)->key);
}

/* Take the packed samples apart; returns how many keys there are. *sampled gets how many they were taken from. */
static size_t weighted_take(const struct bytes *packed, struct weighted *out, double *sampled)
{
    size_t n = 0;

    *sampled = 0;
    for (size_t at = 0; at < packed->used;) {
        uint64_t head[HEAD];
        memcpy(head, packed->buffer.bytes + at, sizeof head);
        at += sizeof head;
        *sampled += (double)head[1];
        for (uint64_t i = 0; i < head[2]; i++, n++, at += sizeof out->key) {
            memcpy(&out[n].key, packed->buffer.bytes + at, sizeof out->key);
            out[n].records = (double)head[0] / (double)head[2];
        }
    }
    qsort(out, n, sizeof *out, weighted_compare);
    return n;
}

/* Up to where the keys are that are the same as number `at`; *records gets what they stand for. */
static size_t weighted_same(const struct weighted *w, size_t n, size_t at, double *records)
{
    size_t end = at;

    for (*records = 0; end < n && w[end].key == w[at].key; end++)
        *records += w[end].records;
    return end;
}

/* One partition after the other gets its share of what is left: so one that a single key overfills leaves the others
 * with equal shares. */
static void pivots_divide(const struct weighted *w, size_t n, double left, uint32_t partitions, uint64_t *pivots)
{
    size_t at = 0;

    for (uint32_t i = 0; i + 1 < partitions; i++) {
        double share = left / (partitions - i), sum = 0, same;
        for (size_t end; at < n; at = end) {
            end = weighted_same(w, n, at, &same);
            if (sum > 0 && sum + same / 2 > share)
                break;
            sum += same;
        }
        left -= sum;
        pivots[i] = at < n ? w[at].key : UINT64_MAX;
    }
}

/* The most records that a partition gets. */
static double pivots_largest(const struct weighted *w, size_t n, const struct partitioner *by)
{
    double largest = 0, sum = 0;
    uint32_t last = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t partition = partition_of(by, w[i].key);
        sum = partition == last ? sum + w[i].records : w[i].records;
        last = partition;
        largest = sum > largest ? sum : largest;
    }
    return largest;
}

uint64_t pivots_memory(uint32_t partitions)
{
    uint64_t each = packed_each(partitions) * (2 * sizeof(uint64_t) + sizeof(struct weighted));

    return partitions * (3 * sizeof(uint64_t) + each);
}

int pivots_choose(const struct bytes *packed, const struct partitioner *now, uint64_t *pivots)
{
    struct weighted *w = malloc(packed->used / sizeof(uint64_t) * sizeof *w + 1);
    const struct partitioner next = {.partitions = now->partitions, .pivots = pivots};
    double records = 0, sampled;

    if (!w)
        return 0;
    size_t n = weighted_take(packed, w, &sampled);
    for (size_t i = 0; i < n; i++)
        records += w[i].records;
    int is_better = records >= (double)RECORDS_LEAST * now->partitions;
    if (is_better)
        pivots_divide(w, n, records, now->partitions, pivots);
    if (is_better && now->pivots) {
        double mean = records / now->partitions, least = pivots_largest(w, n, &next);
        double keep = KEEP + KEEP_ERRORS / sqrt(sampled / now->partitions);
        is_better = pivots_largest(w, n, now) > keep * (least > mean ? least : mean);
    }
    free(w);
    return is_better;
}
