/* Strips with constant planes, all of which come back; and damaged ones, which are refused or are other planes, but are
 * never read beyond their end. */
#include <stdlib.h>
#include "directory/format/directory_format.h"
#include "directory/format/pack.h"
#include "directory/format/planes.h"
#include "directory/format/strip_pack.h"
#include "unit_help.h"

#define COUNT_MAX 700
#define BYTES_MAX 9
#define ROOM      (COUNT_MAX * BYTES_MAX + PLANES_SLACK)

struct sample {
    size_t n, size;
    uint32_t entry;
    uint8_t planes[8 * BYTES_MAX * ((COUNT_MAX + 7) / 8) + PLANES_SLACK];
    uint8_t *stored; /* exactly as long as the table says */
};

/* Each bit is random, the same in all values, or rarely another. */
static void make(struct sample *s, struct rng *r, uint8_t *room)
{
    uint8_t values[ROOM] = {0}, differ[BYTES_MAX], seldom[BYTES_MAX], all[BYTES_MAX];
    static uint8_t scratch[sizeof s->planes];

    s->n = 16 + rng_below(r, COUNT_MAX - 15);
    s->size = 1 + rng_below(r, BYTES_MAX);
    size_t front = rng_below(r, s->size + 1);
    for (size_t k = 0; k < s->size; k++) {
        uint64_t kind = k < front ? 0 : rng_below(r, 3);
        differ[k] = kind == 0 ? 0xff : kind == 1 ? 0 : (uint8_t)rng_next(r);
        seldom[k] = k < front ? 0 : (uint8_t)(rng_next(r) & rng_next(r));
        all[k] = (uint8_t)rng_next(r);
    }
    for (size_t i = 0; i < s->n * s->size; i++) {
        uint8_t rare = rng_below(r, 50) == 0 ? seldom[i % s->size] : 0;
        values[i] = all[i % s->size] ^ (uint8_t)(rng_next(r) & (differ[i % s->size] | rare));
    }
    planes_split(values, s->n, s->size, s->planes);
    memcpy(scratch, s->planes, sizeof scratch);
    s->entry = strip_pack(scratch, s->n, s->size, front, room);
    s->stored = malloc(BLOCK_STRIP_LENGTH(s->entry));
    CHECK(s->stored != NULL);
    memcpy(s->stored, room, BLOCK_STRIP_LENGTH(s->entry));
}

static void test_round_trip(void **state)
{
    static struct sample s;
    static uint8_t back[sizeof s.planes];
    uint8_t *room = malloc(pack_max(ROOM));
    struct rng r = rng_init(40);
    unsigned kinds[4] = {0};

    (void)state;
    CHECK(room != NULL);
    for (int round = 0; round < 300; round++) {
        make(&s, &r, room);
        size_t all = planes_length(s.n, s.size);
        kinds[(s.entry >> 31) * 2 + (s.entry & 1)]++;
        CHECK(BLOCK_STRIP_LENGTH(s.entry) <= all && strip_may_be(s.entry, s.n, s.size));
        memset(back, 0x55, sizeof back);
        CHECK_IS(strip_unpack(s.entry, s.stored, s.n, s.size, back), 0);
        CHECK(memcmp(back, s.planes, all) == 0 && back[all] == 0x55);
        free(s.stored);
    }
    for (int kind = 0; kind < 4; kind++)
        CHECK(kinds[kind] > 0);
    free(room);
}

/* A column that is the same everywhere takes two bytes for each of its own. */
static void test_constant(void **state)
{
    static uint8_t values[512 * 4 + PLANES_SLACK], planes[512 * 4 + PLANES_SLACK], room[4096];

    (void)state;
    for (size_t i = 0; i < 512; i++)
        memcpy(values + 4 * i, "\0\1\x80\x3f", 4);
    planes_split(values, 512, 4, planes);
    CHECK_IS(strip_pack(planes, 512, 4, 0, room), 8u << 1 | BLOCK_STRIP_SPARSE);
    assert_memory_equal(room, "\0\0\0\1\0\x80\0\x3f", 8);
}

/* Other bytes, lengths and kinds. */
static void test_damaged(void **state)
{
    static struct sample s;
    static uint8_t back[sizeof s.planes];
    uint8_t *room = malloc(pack_max(ROOM));
    struct rng r = rng_init(41);
    unsigned refused = 0;

    (void)state;
    CHECK(room != NULL);
    for (int round = 0; round < 2000; round++) {
        make(&s, &r, room);
        size_t length = BLOCK_STRIP_LENGTH(s.entry), other = rng_below(&r, 2) ? rng_below(&r, length + 1) : length;
        uint32_t entry = (uint32_t)other << 1 | (s.entry & BLOCK_STRIP_FLAGS);
        entry ^= rng_below(&r, 4) == 0 ? BLOCK_STRIP_SPARSE : 0;
        entry ^= rng_below(&r, 4) == 0 ? BLOCK_STRIP_SNAPPY : 0;
        uint8_t *damaged = malloc(other > 0 ? other : 1);
        CHECK(damaged != NULL);
        memcpy(damaged, s.stored, other);
        if (other > 0 && rng_below(&r, 2))
            damaged[rng_below(&r, other < 20 ? other : 20)] = (uint8_t)rng_next(&r);
        refused += !strip_may_be(entry, s.n, s.size) || strip_unpack(entry, damaged, s.n, s.size, back) != 0;
        free(damaged);
        free(s.stored);
    }
    CHECK(refused > 1000);
    free(room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
