#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench_data.h"
#include "bench_help.h"
#include "directory/format/partition.h"

#define VPIC_RANKS     64
#define VPIC_SHIFT     46
#define GAP_PARTITIONS 4096

static void make_ids(uint64_t *ids, size_t n, enum id_kind kind)
{
    uint64_t key = 0;
    size_t share = (n + VPIC_RANKS - 1) / VPIC_RANKS;

    for (size_t i = 0; i < n; i++) {
        switch (kind) {
        case ID_DENSE:
            ids[i] = i;
            break;
        case ID_VPIC:
            ids[i] = (uint64_t)(i / share) << VPIC_SHIFT | i % share;
            break;
        case ID_GAPS:
            while (partition_by_hash(key, GAP_PARTITIONS) != 0)
                key++;
            ids[i] = key++;
            break;
        }
    }
}

/* Fisher and Yates. */
static void shuffle(uint64_t *ids, size_t n, uint64_t *random)
{
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)random_below(random, i);
        uint64_t id = ids[i - 1];
        ids[i - 1] = ids[k];
        ids[k] = id;
    }
}

/* From 32 random bits each, so that also small numbers have all the digits that a float can have: rounder ones would
 * flatter whoever compresses. */
static void make_floats(float *out, size_t n, uint64_t *random)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(int32_t)(random_next(random) >> 32) * 0x1p-31f;
}

/* Columns of floats, as a simulation would name its particles' fields. */
static char *float_schema(size_t value_size)
{
    size_t room = value_size / 4 * 8 + 1, at = 0;
    char *text = bench_grow(NULL, room);

    *text = '\0';
    for (size_t i = 0; i < value_size / 4; i++)
        at += (size_t)snprintf(text + at, room - at, "%sv%zu:f4", i ? "," : "", i);
    return text;
}

static void data_take(struct dataset *d, size_t epochs, size_t n, size_t value_size, size_t value_bytes)
{
    *d = (struct dataset){.value_size = value_size, .n = n, .epochs = epochs, .value_bytes = value_bytes};
    d->epoch = bench_grow(NULL, epochs * sizeof *d->epoch);
    d->key_memory = bench_alloc(epochs * n * sizeof *d->key_memory);
    d->value_memory = bench_alloc(value_bytes);
}

void data_make(struct dataset *d, enum id_kind kind, size_t epochs, size_t n, size_t value_size)
{
    static const char *const names[] = {[ID_DENSE] = "dense", [ID_VPIC] = "VPIC-like", [ID_GAPS] = "gaps of 4096"};
    uint64_t random = 12345;
    char count[16];

    data_take(d, epochs, n, value_size, n * value_size);
    d->schema = float_schema(value_size);
    snprintf(d->name, sizeof d->name, "%s %zu B, %zu x %s", names[kind], 8 + value_size, epochs, bench_count(count, n));
    make_floats((float *)(void *)d->value_memory, n * value_size / 4, &random);
    make_ids(d->key_memory, n, kind);
    for (size_t e = 0; e < epochs; e++) {
        uint64_t *keys = d->key_memory + e * n;
        if (e > 0)
            memcpy(keys, keys - n, n * sizeof *keys);
        shuffle(keys, n, &random);
        d->epoch[e] = (struct epoch_data){.label = 100 * e, .keys = keys, .values = d->value_memory};
    }
}

void data_free(struct dataset *d)
{
    bench_free(d->key_memory, d->epochs * d->n * sizeof *d->key_memory);
    bench_free(d->value_memory, d->value_bytes);
    free(d->epoch);
    free(d->schema);
    *d = (struct dataset){0};
}

/* ---- Probes ---- */

#define FILTER_BITS (UINT64_C(1) << 20) /* few enough probes are in it that nearly all other keys stop here */

struct slot {
    uint64_t key;
    size_t probe;
};

static int slot_compare(const void *a, const void *b)
{
    uint64_t x = ((const struct slot *)a)->key, y = ((const struct slot *)b)->key;

    return (x > y) - (x < y);
}

/* Find the probes among the records of epoch `e`, and copy their values. */
static void probes_fill(struct probes *p, const struct dataset *d, size_t e, const struct slot *slots,
                        const uint8_t *filter)
{
    size_t size = d->value_size, found = 0;

    for (size_t i = 0; i < d->n; i++) {
        uint64_t key = d->epoch[e].keys[i], bit = hash_key(key) % FILTER_BITS;
        if (!(filter[bit / 8] >> bit % 8 & 1))
            continue;
        const struct slot *s = bsearch(&(struct slot){.key = key}, slots, p->n, sizeof *slots, slot_compare);
        if (!s)
            continue;
        memcpy(p->values + (s->probe * d->epochs + e) * size, d->epoch[e].values + i * size, size);
        found++;
    }
    if (found != p->n)
        bench_die("%s: %zu of %zu keys are in epoch %zu, once each: the input is not what it should be", d->name, found,
                  p->n, e);
}

void probes_make(struct probes *p, const struct dataset *d, size_t n)
{
    uint64_t random = 777;
    uint8_t *filter = bench_alloc(FILTER_BITS / 8);
    struct slot *slots = bench_grow(NULL, n * sizeof *slots);
    size_t step = d->n / n;

    if (step == 0)
        bench_die("%s: %zu probes are too many", d->name, n);
    *p = (struct probes){.n = n};
    p->keys = bench_grow(NULL, n * sizeof *p->keys);
    p->values = bench_grow(NULL, n * d->epochs * d->value_size);
    /* One of each `step` places of the first epoch, whose order is random: so no key comes twice. */
    for (size_t i = 0; i < n; i++) {
        p->keys[i] = d->epoch[0].keys[i * step + random_below(&random, step)];
        slots[i] = (struct slot){.key = p->keys[i], .probe = i};
        uint64_t bit = hash_key(p->keys[i]) % FILTER_BITS;
        filter[bit / 8] |= (uint8_t)(1u << bit % 8);
    }
    qsort(slots, n, sizeof *slots, slot_compare);
    for (size_t e = 0; e < d->epochs; e++)
        probes_fill(p, d, e, slots, filter);
    free(slots);
    bench_free(filter, FILTER_BITS / 8);
}

void probes_free(struct probes *p)
{
    free(p->keys);
    free(p->values);
    *p = (struct probes){0};
}

void probes_check(const struct probes *p, const struct dataset *d, size_t i, const uint8_t *values, size_t found,
                  const char *engine)
{
    size_t size = d->epochs * d->value_size;

    if (found != d->epochs)
        bench_die("WRONG ANSWER of %s: %s: key %llu has %zu records instead of %zu", engine, d->name,
                  (unsigned long long)p->keys[i], found, d->epochs);
    if (memcmp(values, p->values + i * size, size) != 0)
        bench_die("WRONG ANSWER of %s: %s: key %llu has other values than were written", engine, d->name,
                  (unsigned long long)p->keys[i]);
}
