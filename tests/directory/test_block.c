/* Blocks: what went in comes out; any damage, or a block from elsewhere, is found; and a block that was forged with a
 * right checksum is refused or read, but never beyond its bytes (run this under a sanitizer). */
#include "directory/format/block.h"
#include "directory/format/directory_format.h"
#include "directory/format/planes.h"
#include "structures.h"
#include "unit_help.h"

static const struct block_id here = {3, 5, 7, 11, 0};
#define SEED 0x1234abcdu

/* ---- Planes ---- */

/* The oracle: the definition in planes.h, bit by bit. */
static void planes_slow(const uint8_t *values, size_t n, size_t size, uint8_t *planes)
{
    size_t length = (n + 7) / 8;

    memset(planes, 0, planes_length(n, size));
    for (size_t k = 0; k < size; k++)
        for (size_t bit = 0; bit < 8; bit++)
            for (size_t i = 0; i < n; i++)
                planes[(8 * k + bit) * length + i / 8] |= (uint8_t)((values[i * size + k] >> (7 - bit) & 1) << i % 8);
}

typedef void join_fn(const uint8_t *planes, size_t n, size_t size, const uint8_t *wanted, uint8_t *values);

/* The bytes that are wanted are right. */
static void check_wanted(struct rng *r, const uint8_t *values, size_t n, size_t size, const uint8_t *planes,
                         join_fn *join)
{
    uint8_t *back = calloc(n * size + 1, 1), *wanted = malloc(size + 1);

    CHECK(back && wanted);
    for (size_t k = 0; k < size; k++)
        wanted[k] = (uint8_t)rng_below(r, 2);
    join(planes, n, size, wanted, back);
    for (size_t i = 0; i < n * size; i++)
        CHECK(!wanted[i % size] || back[i] == values[i]);
    free(back);
    free(wanted);
}

static void test_planes(void **state)
{
    static const size_t sizes[] = {0, 1, 3, 4, 8, 16, 31, 40, 100};
    struct rng r = rng_init(20);

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (size_t n = 1; n <= 600; n += n < 70 ? 1 : 61) {
            size_t size = sizes[s], length = planes_length(n, size);
            uint8_t *values = malloc(n * size + PLANES_SLACK), *back = malloc(n * size + 1);
            uint8_t *want = malloc(length + PLANES_SLACK), *got = malloc(length + 1);
            CHECK(values && back && want && got);
            rng_fill(&r, values, n * size);
            planes_slow(values, n, size, want);
            planes_split(values, n, size, got);
            CHECK(memcmp(got, want, length) == 0);
            memset(got, 0xaa, length);
            planes_split_from(values, 0, n, size, got);
            CHECK(memcmp(got, want, length) == 0);
            planes_join(want, n, size, NULL, back);
            CHECK(memcmp(back, values, n * size) == 0);
            memset(back, 0xaa, n * size);
            planes_join_portable(want, n, size, NULL, back);
            CHECK(memcmp(back, values, n * size) == 0);
            check_wanted(&r, values, n, size, want, planes_join);
            check_wanted(&r, values, n, size, want, planes_join_portable);
            for (size_t i = 0; i < n; i++) {
                planes_get(want, n, size, i, back);
                CHECK(memcmp(back, values + i * size, size) == 0);
            }
            free(values);
            free(back);
            free(want);
            free(got);
        }
    }
}

/* ---- Blocks ---- */

/* A block of records sized by the caller, some values packable, some noise. */
struct sample {
    struct block_writer w;
    int64_t value_size;
    struct strips strips;
    uint32_t count;
    uint32_t sizes[BLOCK_RECORDS_MAX];
    uint8_t *bytes; /* finished, in memory of just that size */
    size_t n;
};

/* With `strip` above 0, in strips of so many bytes. */
static void sample_begin(struct sample *s, int64_t value_size, uint32_t strip, enum option_codec codec, size_t target)
{
    struct error e;

    s->value_size = value_size;
    s->count = 0;
    s->strips.count = 0;
    if (strip > 0)
        for (uint32_t left = (uint32_t)value_size; left > 0; left -= s->strips.bytes[s->strips.count++])
            s->strips.bytes[s->strips.count] = left < strip ? left : strip;
    CHECK_IS(block_writer_init(&s->w, value_size, &s->strips, codec, target, NULL, &e), DELTAFS_OK);
}

static void sample_add(struct sample *s, uint32_t size, int is_noise)
{
    static uint8_t value[BLOCK_VALUE_MAX];
    struct error e;

    model_value(2 * (uint64_t)s->count + (unsigned)is_noise, value, size);
    CHECK_IS(block_writer_add(&s->w, NULL, size > 0 ? value : NULL, size, &e), DELTAFS_OK);
    s->sizes[s->count++] = size;
}

static void sample_close(struct sample *s)
{
    struct error e;

    CHECK_IS(block_writer_close(&s->w, &here, SEED, 0, &s->n, &e), DELTAFS_OK);
    CHECK(s->n <= s->w.out.capacity);
    s->bytes = malloc(s->n);
    CHECK(s->bytes != NULL);
    memcpy(s->bytes, s->w.out.bytes, s->n);
    CHECK(s->w.count == 0 && s->w.used == 0);
}

static void sample_fini(struct sample *s)
{
    free(s->bytes);
    block_writer_fini(&s->w);
}

static int sample_decode(const struct sample *s, struct block *b, uint8_t *bytes, size_t n)
{
    struct error e;
    const struct block_of of = {.value_size = s->value_size, .strips = &s->strips};
    int status = block_decode(b, bytes, n, &here, SEED, &of, s->count, "log", 4096, &e);

    if (status != DELTAFS_OK) {
        CHECK_IS(status, DELTAFS_ERR_DAMAGED);
        CHECK(strstr(e.text, "log: damaged at offset 4096: ") == e.text);
    }
    return status;
}

static void sample_check(const struct sample *s, struct block *b, int is_noise)
{
    static uint8_t value[BLOCK_VALUE_MAX];
    size_t size;

    CHECK_IS(sample_decode(s, b, s->bytes, s->n), DELTAFS_OK);
    CHECK_IS(b->count, s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        const uint8_t *got = block_value(b, i, &size);
        CHECK_IS(size, s->sizes[i]);
        model_value(2 * (uint64_t)i + (unsigned)is_noise, value, size);
        CHECK(memcmp(got, value, size) == 0);
    }
}

/* Blocks that fill up by themselves: they close at the target, or, with small values, at the most records. */
static void test_round_trip(void **state)
{
    static const int64_t sizes[] = {0, 1, 3, 8, 32, 40, 1000, 5000, -1};
    static const size_t targets[] = {256, 4096, 1 << 20};
    static struct sample s;
    struct rng r = rng_init(21);
    struct block b = {0};

    (void)state;
    for (int pass = 0; pass < 4; pass++) {
        enum option_codec codec = pass & 1 ? CODEC_SNAPPY : CODEC_NONE;
        for (size_t t = 0; t < 3; t++) {
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                sample_begin(&s, sizes[i], 0, codec, targets[t]);
                do
                    sample_add(&s, sizes[i] < 0 ? (uint32_t)rng_below(&r, 5001) : (uint32_t)sizes[i], pass / 2);
                while (!block_writer_is_full(&s.w));
                size_t used = s.w.used;
                sample_close(&s);
                sample_check(&s, &b, pass / 2);
                if (codec == CODEC_NONE && sizes[i] >= 0)
                    CHECK_IS(s.n, BLOCK_HEADER_SIZE + used);
                if (codec == CODEC_SNAPPY && sizes[i] >= 1000 && pass / 2 == 0)
                    CHECK(s.n < used / 2);
                sample_fini(&s);
            }
        }
    }
    block_fini(&b);
}

/* Values that lie anywhere make the block of the same values added one by one, wherever the order's end is. */
static void test_any_order(void **state)
{
    static const uint32_t sizes[] = {1, 8, 40, 200};
    static struct sample s, t;
    uint8_t source[300 * 200 + PLANES_SLACK];
    uint32_t order[100];
    struct rng r = rng_init(22);
    struct error e;

    (void)state;
    rng_fill(&r, source, sizeof source);
    for (uint32_t k = 0; k < 40; k++) {
        uint32_t size = sizes[k % 4], n = 1 + (uint32_t)rng_below(&r, 60), following = k % 3 ? 0 : 100 - n;
        for (uint32_t i = 0; i < n + following; i++)
            order[i] = (uint32_t)rng_below(&r, 300);
        sample_begin(&s, size, 0, CODEC_SNAPPY, 1 << 16);
        sample_begin(&t, size, 0, CODEC_SNAPPY, 1 << 16);
        for (uint32_t i = 0; i < n; i++)
            CHECK_IS(block_writer_add(&s.w, NULL, source + order[i] * size, size, &e), DELTAFS_OK);
        block_writer_set(&t.w, source, order, n, following);
        sample_close(&s);
        sample_close(&t);
        CHECK_IS(s.n, t.n);
        CHECK(memcmp(s.bytes, t.bytes, s.n) == 0);
        sample_fini(&s);
        sample_fini(&t);
    }
}

/* One record, empty ones, and the largest that there may be. */
static void test_few_records(void **state)
{
    static const uint32_t sizes[] = {0, 1, 127, 128, 65536, BLOCK_VALUE_MAX};
    static struct sample s;
    struct block b = {0};

    (void)state;
    for (int pass = 0; pass < 4; pass++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (int any = 0; any < 2; any++) {
                sample_begin(&s, any ? -1 : (int64_t)sizes[i], 0, (enum option_codec)(pass & 1), 4096);
                sample_add(&s, sizes[i], pass / 2);
                sample_close(&s);
                sample_check(&s, &b, pass / 2);
                sample_fini(&s);
            }
        }
        /* Just below the target, and then the largest. */
        sample_begin(&s, -1, 0, (enum option_codec)(pass & 1), 1 << 20);
        sample_add(&s, (1 << 20) - 1, pass / 2);
        CHECK(!block_writer_is_full(&s.w));
        sample_add(&s, BLOCK_VALUE_MAX, pass / 2);
        CHECK(block_writer_is_full(&s.w));
        sample_close(&s);
        sample_check(&s, &b, pass / 2);
        sample_fini(&s);
    }
    block_fini(&b);
}

static void test_most_records(void **state)
{
    static struct sample s;
    struct block b = {0};

    (void)state;
    for (int64_t size = -1; size <= 0; size++) {
        sample_begin(&s, size, 0, CODEC_SNAPPY, 1 << 20);
        while (!block_writer_is_full(&s.w))
            sample_add(&s, 0, 0);
        CHECK_IS(s.count, BLOCK_RECORDS_MAX);
        sample_close(&s);
        sample_check(&s, &b, 0);
        sample_fini(&s);
    }
    block_fini(&b);
}

static void make_small(struct sample *s, struct rng *r, int64_t size, uint32_t strip, enum option_codec codec,
                       int is_noise)
{
    /* Few records are packed as they stand, more in planes. */
    int records = rng_below(r, 2) ? 12 : 25;

    sample_begin(s, size, strip, codec, 1024);
    for (int i = 0; i < records; i++)
        sample_add(s, size < 0 ? (uint32_t)rng_below(r, 60) : (uint32_t)size, is_noise);
    sample_close(s);
}

static void test_every_bit_flip(void **state)
{
    static const int64_t sizes[] = {0, 8, 40, 40, -1};
    static const uint32_t strips[] = {0, 0, 0, 7, 0};
    static struct sample s;
    struct rng r = rng_init(22);
    struct block b = {0};

    (void)state;
    for (int pass = 0; pass < 4; pass++) {
        for (size_t i = 0; i < 5; i++) {
            make_small(&s, &r, sizes[i], strips[i], (enum option_codec)(pass & 1), pass / 2);
            for (size_t bit = 0; bit < 8 * s.n; bit++) {
                s.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
                CHECK_IS(sample_decode(&s, &b, s.bytes, s.n), DELTAFS_ERR_DAMAGED);
                s.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            }
            sample_check(&s, &b, pass / 2);
            sample_fini(&s);
        }
    }
    block_fini(&b);
}

static void test_elsewhere(void **state)
{
    static struct sample s;
    const struct block_of of = {.value_size = 40}, of_41 = {.value_size = 41}, of_any = {.value_size = -1};
    struct rng r = rng_init(23);
    struct block b = {0};
    struct error e;

    (void)state;
    make_small(&s, &r, 40, 0, CODEC_SNAPPY, 0);
    for (int field = 0; field < 4; field++) {
        struct block_id id = here;
        *(field == 0 ? &id.partition : field == 1 ? &id.epoch : field == 2 ? &id.run : &id.block) += 1;
        CHECK_IS(block_decode(&b, s.bytes, s.n, &id, SEED, &of, s.count, "log", 0, &e), DELTAFS_ERR_DAMAGED);
        CHECK(strstr(e.text, "belongs elsewhere") != NULL);
    }
    CHECK_IS(block_decode(&b, s.bytes, s.n, &here, SEED + 1, &of, s.count, "log", 0, &e), DELTAFS_ERR_DAMAGED);
    CHECK_IS(block_decode(&b, s.bytes, s.n, &here, SEED, &of_41, s.count, "log", 0, &e), DELTAFS_ERR_DAMAGED);
    CHECK_IS(block_decode(&b, s.bytes, s.n, &here, SEED, &of_any, s.count, "log", 0, &e), DELTAFS_ERR_DAMAGED);
    CHECK_IS(block_decode(&b, s.bytes, s.n, &here, SEED, &of, s.count + 1, "log", 0, &e), DELTAFS_ERR_DAMAGED);
    CHECK_IS(block_decode(&b, s.bytes, s.n, &here, SEED, &of, s.count - 1, "log", 0, &e), DELTAFS_ERR_DAMAGED);
    sample_check(&s, &b, 0);
    sample_fini(&s);
    block_fini(&b);
}

/* A column by itself is that column of all values. */
static void check_column(struct block *b, const struct block *all, size_t at, size_t size)
{
    size_t stride, n = b->count;
    uint8_t *room = malloc(n * size);

    CHECK(room != NULL);
    const uint8_t *first = block_column(b, at, size, room, &stride);
    for (size_t i = 0; i < n; i++)
        CHECK(memcmp(first + i * stride, all->plain + 40 * i + at, size) == 0);
    free(room);
}

/* Damage in the last strip is seen by who wants that strip, and by nobody else. */
static void check_damaged_strip(struct sample *s, struct block *b)
{
    const uint32_t last = s->strips.bytes[s->strips.count - 1];
    uint8_t wanted[40] = {0};
    const struct block_of of = {.value_size = 40, .strips = &s->strips, .wanted = wanted};
    struct error e;

    memset(wanted, 1, 40 - last);
    s->bytes[s->n - 1] ^= 1;
    CHECK_IS(block_decode(b, s->bytes, s->n, &here, SEED, &of, s->count, "log", 7, &e), DELTAFS_OK);
    CHECK_IS(block_want(b, NULL, &e), DELTAFS_ERR_DAMAGED);
    char text[100];
    snprintf(text, sizeof text, "log: damaged at offset 7: strip %u of the block does not match its checksum",
             s->strips.count - 1);
    assert_string_equal(e.text, text);
    s->bytes[s->n - 1] ^= 1;
}

/* Only the strips that are wanted are looked at, at once or later, and none of them is another. */
static void test_strips(void **state)
{
    static const uint32_t strips[] = {1, 4, 7, 39};
    static struct sample s;
    struct rng r = rng_init(26);
    struct block b = {0}, all = {0};
    uint8_t wanted[40], more[40];
    struct error e;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        for (size_t target = 1024; target <= 65536; target *= 8) {
            sample_begin(&s, 40, strips[i], CODEC_SNAPPY, target);
            while (!block_writer_is_full(&s.w))
                sample_add(&s, 40, 0);
            sample_close(&s);
            CHECK(s.bytes[5] == BLOCK_FLAG_STRIPS);
            sample_check(&s, &all, 0);
            CHECK_IS(block_join(&all, NULL, &e), DELTAFS_OK);
            for (size_t k = 0; k < 40; k++) {
                wanted[k] = rng_below(&r, 8) == 0;
                more[k] = wanted[k] || rng_below(&r, 2);
            }
            const struct block_of of = {.value_size = 40, .strips = &s.strips, .wanted = wanted};
            const struct block_of other = {.value_size = 40};
            CHECK_IS(block_decode(&b, s.bytes, s.n, &here, SEED, &of, s.count, "log", 0, &e), DELTAFS_OK);
            for (uint32_t at = 0, k = 0; k < s.strips.count; at += s.strips.bytes[k++])
                CHECK_IS(b.strip[k].planes == NULL, memchr(wanted + at, 1, s.strips.bytes[k]) == NULL);
            CHECK_IS(block_want(&b, more, &e), DELTAFS_OK);
            for (size_t at = 0; at + 4 <= 40; at++)
                if (memchr(more + at, 0, 4) == NULL)
                    check_column(&b, &all, at, 4);
            CHECK_IS(block_join(&b, more, &e), DELTAFS_OK);
            for (size_t at = 0; at < 40 * (size_t)s.count; at++)
                CHECK(!more[at % 40] || b.plain[at] == all.plain[at]);
            CHECK_IS(block_decode(&b, s.bytes, s.n, &here, SEED, &other, s.count, "log", 0, &e), DELTAFS_ERR_DAMAGED);
            check_damaged_strip(&s, &b);
            sample_fini(&s);
        }
    }
    block_fini(&b);
    block_fini(&all);
}

/* What a schema's columns make, and the line of the manifest. */
static void test_strip_sizes(void **state)
{
    static const char *const schemas[] = {"", "x:f8", "a:u1,b:u2", "a:u1,b:u2,c:u1", NULL};
    struct strips made, again;
    char text[STRIPS_TEXT], schema[4000] = "x:V1000000";
    struct error e;

    (void)state;
    for (size_t i = 0; schemas[i]; i++) {
        CHECK_IS(strips_make(&made, schemas[i], &e), DELTAFS_OK);
        CHECK_IS(made.count, 0);
    }
    CHECK_IS(strips_make(&made, "a:u1,b:u2,c:f8,d:f4,e:u2,f:S9,g:u1", &e), DELTAFS_OK);
    strips_print(&made, text);
    assert_string_equal(text, "11,4,11,1");
    CHECK_IS(strips_parse(&again, text, 27), 0);
    CHECK(again.count == 4 && memcmp(&made.bytes, &again.bytes, 4 * sizeof made.bytes[0]) == 0);
    for (int i = 0, n = (int)strlen(schema); i < 200; i++)
        n += snprintf(schema + n, sizeof schema - (size_t)n, ",c%d:%s", i, i % 2 ? "f8" : "V99");
    CHECK_IS(strips_make(&made, schema, &e), DELTAFS_OK);
    CHECK_IS(made.count, 2);
    static const char *const wrong[] = {"",     "27",    "4",     "4,",    "4,23,", "4,24",
                                        "0,27", "4,,23", "4 ,23", "-4,31", "x",     NULL};
    for (size_t i = 0; wrong[i]; i++)
        CHECK_IS(strips_parse(&made, wrong[i], 27), -1);
    for (size_t i = 0; i < 65; i++)
        memcpy(schema + 2 * i, "1,", 3);
    CHECK_IS(strips_parse(&made, schema, 65), -1);
    schema[2 * 65 - 1] = '\0';
    CHECK_IS(strips_parse(&made, schema, 65), -1);
    CHECK_IS(strips_parse(&made, schema + 2, 64), 0);
}

static void check_truncated(int is_any)
{
    static struct sample s;
    struct rng r = rng_init(24);
    struct block b = {0};

    make_small(&s, &r, is_any ? -1 : 40, is_any ? 0 : 5, CODEC_SNAPPY, 0);
    for (size_t n = 0; n < s.n; n++) {
        uint8_t *cut = malloc(n + 1);
        CHECK(cut != NULL);
        memcpy(cut, s.bytes, n);
        CHECK_IS(sample_decode(&s, &b, cut, n), DELTAFS_ERR_DAMAGED);
        /* With a right checksum, too. */
        if (n >= 8) {
            structures_seal_block(SEED, cut, n, s.strips.count);
            CHECK_IS(sample_decode(&s, &b, cut, n), DELTAFS_ERR_DAMAGED);
        }
        free(cut);
    }
    sample_fini(&s);
    block_fini(&b);
}

static void test_truncated(void **state)
{
    (void)state;
    check_truncated(0);
    check_truncated(1);
}

static void test_forged(void **state)
{
    static const int64_t sizes[] = {0, 3, 40, 40, -1};
    static const uint32_t strips[] = {0, 0, 0, 7, 0};
    static struct sample s;
    struct rng r = rng_init(25);
    struct block b = {0};
    unsigned sum = 0;

    (void)state;
    for (int pass = 0; pass < 4; pass++) {
        for (size_t i = 0; i < 5; i++) {
            make_small(&s, &r, sizes[i], strips[i], (enum option_codec)(pass & 1), pass / 2);
            for (int round = 0; round < 2000; round++) {
                uint8_t *forged = malloc(s.n);
                CHECK(forged != NULL);
                memcpy(forged, s.bytes, s.n);
                for (uint64_t k = rng_below(&r, 3) + 1; k > 0; k--)
                    forged[rng_below(&r, s.n)] = (uint8_t)(rng_below(&r, 3) ? rng_next(&r) : 0xff);
                structures_seal_block(SEED, forged, s.n, s.strips.count);
                if (sample_decode(&s, &b, forged, s.n) == DELTAFS_OK) {
                    for (uint32_t k = 0; k < b.count; k++) {
                        size_t size;
                        const uint8_t *value = block_value(&b, k, &size);
                        for (size_t at = 0; at < size; at++)
                            sum += value[at];
                    }
                }
                free(forged);
            }
            sample_fini(&s);
        }
    }
    CHECK(sum > 0);
    block_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planes),       cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_few_records),
        cmocka_unit_test(test_most_records), cmocka_unit_test(test_every_bit_flip), cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_truncated),    cmocka_unit_test(test_forged),         cmocka_unit_test(test_strips),
        cmocka_unit_test(test_strip_sizes),  cmocka_unit_test(test_any_order),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
