#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "torture_truth.h"

#define EPOCH_BYTES  (160u << 10) /* of most epochs, at most */
#define LARGE_BYTES  (5u << 20)   /* of some: several runs where memory is 8M */
#define RECORDS_MAX  60000u
#define COPIES_MAX   3
#define NAME_FORMAT  "particle.%llu"
#define NAME_SCANNED "particle."

uint64_t truth_mix(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t z = a * 0x9e3779b97f4a7c15u + b * 0xd1b54a32d192ed03u + c * 0x8cb92ba72f3d8dd7u + 1;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void truth_init(struct truth *t, uint64_t seed)
{
    static const struct {
        int is_bytes;
        const char *value_size;
        uint32_t value_most;
    } shapes[] = {{0, "40", 40},    {0, "any", 200}, {1, "any", 100}, {0, "0", 0},
                  {0, "any", 4000}, {1, "24", 24},   {0, "12", 12}};
    size_t shape = seed % (sizeof shapes / sizeof shapes[0]);

    *t = (struct truth){.seed = seed,
                        .is_bytes = shapes[shape].is_bytes,
                        .value_size = shapes[shape].value_size,
                        .value_most = shapes[shape].value_most,
                        .place = truth_mix(seed, 1, 2) % 3 ? "partitioned" : "local",
                        .partitioner = !shapes[shape].is_bytes && truth_mix(seed, 1, 3) % 2 ? "range" : "hash",
                        .factor = truth_mix(seed, 1, 1) % 2 ? 1 : 0x9e3779b97f4a7c15u};
}

static int is_fixed(const struct truth *t)
{
    return t->value_size[0] != 'a';
}

uint64_t truth_copies(const struct truth *t, uint64_t label)
{
    return t->value_most > 0 && truth_mix(t->seed, label, 2) % 3 == 0 ? COPIES_MAX : 1;
}

uint64_t truth_records(const struct truth *t, uint64_t label)
{
    uint64_t kind = truth_mix(t->seed, label, 3) % 32, any = truth_mix(t->seed, label, 4);
    uint64_t most = (kind < 2 ? LARGE_BYTES : EPOCH_BYTES) / (16 + t->value_most / 2);

    if (kind < 6)
        return kind < 2 ? any % (most < RECORDS_MAX ? most : RECORDS_MAX) : 0;
    return any % (kind < 12 ? 10 : most);
}

void truth_make(const struct truth *t, uint64_t label, uint64_t i, struct truth_record *out)
{
    uint64_t copies = truth_copies(t, label), any = truth_mix(t->seed, label, i + 5);

    out->key = i / copies * t->factor;
    out->name_size =
        t->is_bytes ? (size_t)snprintf(out->name, sizeof out->name, NAME_FORMAT, (unsigned long long)(i / copies)) : 0;
    out->size = is_fixed(t) ? t->value_most : (copies > 1) + any % t->value_most;
    for (size_t at = 0; at < out->size; at += sizeof any) {
        memcpy(out->value + at, &any, sizeof any);
        any = at % 32 == 0 ? truth_mix(any, at, 0) : any >> 8;
    }
    if (copies > 1)
        out->value[0] = (uint8_t)(i % copies);
}

/* The slot of a key of which truth_make has made it; of others, any. */
static uint64_t slot_of(const struct truth *t, const struct deltafs_record *r)
{
    uint64_t inverse = t->factor;
    char name[TRUTH_NAME_MAX];

    if (t->is_bytes) {
        size_t head = strlen(NAME_SCANNED);
        if (!r->key_bytes || r->key_size <= head || r->key_size >= sizeof name)
            return UINT64_MAX;
        memcpy(name, r->key_bytes, r->key_size);
        name[r->key_size] = '\0';
        return strtoull(name + head, NULL, 10);
    }
    for (int bits = 3; bits < 64; bits *= 2)
        inverse *= 2 - t->factor * inverse;
    return r->key * inverse;
}

uint64_t truth_find(const struct truth *t, const struct deltafs_record *r)
{
    uint64_t copies = truth_copies(t, r->label), n = truth_records(t, r->label), slot = slot_of(t, r);

    if (slot >= n || (copies > 1 && r->size == 0))
        return UINT64_MAX;
    uint64_t i = slot * copies + (copies > 1 ? *(const uint8_t *)r->value : 0);
    return i < n ? i : UINT64_MAX;
}

int truth_is(const struct truth *t, uint64_t i, const struct deltafs_record *r)
{
    struct truth_record own;

    truth_make(t, r->label, i, &own);
    if (r->size != own.size || (own.size > 0 && memcmp(r->value, own.value, own.size) != 0))
        return 0;
    if (!t->is_bytes)
        return r->key == own.key;
    return r->key_size == own.name_size && memcmp(r->key_bytes, own.name, own.name_size) == 0;
}
