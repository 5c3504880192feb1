/* Leaves against an oracle that keeps, of each record, its key and its place as plain numbers. A leaf forged with a
 * right checksum must be refused or read, but never beyond its bytes (run this under a sanitizer). */
#include "base/coding.h"
#include "directory/format/directory_format.h"
#include "directory/format/leaf.h"
#include "unit_help.h"

#define SEED     0x5eedu
#define RUNS_MAX 200

static const struct leaf_id here = {2, 4, 6, 8};

/* Records in the merge's order, with what a leaf must say of each. */
struct record {
    uint64_t key;
    uint32_t cursor; /* its run, as an index */
    uint32_t run;    /* and as a number */
    uint64_t rank;   /* of the run */
    uint32_t epoch;
    struct leaf_place place;
};

static struct keys_store store; /* a leaf is given its keys: only the runs' beginnings stand here */

struct sample {
    struct run run[RUNS_MAX];
    struct run_cursor cursor[RUNS_MAX];
    uint32_t scratch[RUNS_MAX];
    uint32_t runs;
    struct record *record;
    uint32_t count;
    int has_epochs;
};

static int record_compare(const void *a, const void *b)
{
    const struct record *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->cursor != y->cursor)
        return x->cursor < y->cursor ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Cut one run into blocks of random counts and lengths, and note where each of its records is. `record` are its own. */
static void sample_cut(struct sample *s, uint32_t c, struct record *record, uint32_t n, struct rng *r)
{
    struct run *run = &s->run[c];
    struct error e;
    uint64_t offset = LOG_HEADER_SIZE + rng_below(r, UINT64_C(1) << rng_below(r, 40));
    uint32_t most = (uint32_t)rng_below(r, 300) + 1;

    CHECK_IS(run_init(run, 3 * c + 1, n, offset, &store, &e), DELTAFS_OK);
    run->blocks = malloc((n + 1) * sizeof *run->blocks);
    CHECK(run->blocks != NULL);
    for (uint32_t at = 0; at < n;) {
        uint32_t here_count = (uint32_t)rng_below(r, most) + 1;
        if (here_count > n - at)
            here_count = n - at;
        uint32_t length = BLOCK_HEADER_SIZE + (uint32_t)rng_below(r, 100000);
        for (uint32_t i = 0; i < here_count; i++, at++) {
            record[at].place = (struct leaf_place){{offset, length, here_count}, run->number, run->block_count, i};
        }
        run->blocks[run->block_count++] = (struct run_block){length, here_count};
        offset += length;
    }
    s->cursor[c] = (struct run_cursor){.run = run, .offset = run->offset};
}

/* `count` records over `runs` runs, of which some may be empty. */
static void sample_init(struct sample *s, struct rng *r, enum key_kind kind, uint32_t runs, uint32_t count)
{
    uint32_t at = 0;

    *s = (struct sample){.runs = runs, .count = count, .record = calloc(count + 1, sizeof *s->record)};
    CHECK(s->record != NULL);
    for (uint32_t i = 0; i < count; i++)
        s->record[i] = (struct record){.key = rng_key(r, kind), .cursor = (uint32_t)rng_below(r, runs), .rank = i};
    /* By run first, to number the records of each; then by key. */
    for (uint32_t c = 0; c < runs; c++) {
        uint32_t first = at;
        for (uint32_t i = at; i < count; i++) {
            if (s->record[i].cursor == c) {
                struct record swapped = s->record[at];
                s->record[at++] = s->record[i];
                s->record[i] = swapped;
            }
        }
        qsort(s->record + first, at - first, sizeof *s->record, record_compare);
        sample_cut(s, c, s->record + first, at - first, r);
    }
    qsort(s->record, count, sizeof *s->record, record_compare);
    s->has_epochs = rng_below(r, 2) == 0;
    for (uint32_t i = 0; i < count; i++) {
        int is_expected = rng_below(r, 4) > 0, is_next = i > 0 && s->record[i].key == s->record[i - 1].key;
        s->record[i].epoch = is_next ? s->record[i - 1].epoch + (is_expected ? 1 : (uint32_t)rng_below(r, 1000))
                                     : (is_expected ? 0 : (uint32_t)rng_below(r, 1000));
    }
}

static void sample_fini(struct sample *s)
{
    for (uint32_t c = 0; c < s->runs; c++)
        run_fini(&s->run[c]);
    keys_clear(&store);
    free(s->record);
}

/* The next `n` records as a leaf, in memory of just that size and the slack. */
static uint8_t *sample_encode(struct sample *s, uint32_t first, uint32_t n, size_t *length)
{
    struct buffer out = {0};
    struct error e;
    uint64_t *keys = malloc(n * sizeof *keys);
    uint32_t *cursors = malloc(n * sizeof *cursors), *epochs = malloc(n * sizeof *epochs);

    CHECK(keys && cursors && epochs);
    for (uint32_t i = 0; i < n; i++) {
        keys[i] = s->record[first + i].key;
        cursors[i] = s->record[first + i].cursor;
        epochs[i] = s->record[first + i].epoch;
    }
    struct leaf_input in = {keys, cursors, n, s->cursor, s->runs, s->scratch, 0, s->has_epochs ? epochs : NULL};
    CHECK_IS(leaf_encode(&in, &here, SEED, &out, length, &e), DELTAFS_OK);
    uint8_t *bytes = calloc(1, *length + LEAF_SLACK);
    CHECK(bytes != NULL);
    memcpy(bytes, out.bytes, *length);
    buffer_fini(&out);
    free(keys);
    free(cursors);
    free(epochs);
    return bytes;
}

static int parse(struct leaf *leaf, const uint8_t *bytes, size_t n)
{
    struct error e;
    int status = leaf_parse(leaf, bytes, n, &here, SEED, "log", 64, &e);
    if (status == DELTAFS_OK)
        status = leaf_load(leaf, "log", 64, &e);

    if (status != DELTAFS_OK) {
        CHECK_IS(status, DELTAFS_ERR_DAMAGED);
        CHECK(strstr(e.text, "log: damaged at offset 64: ") == e.text);
    }
    return status;
}

static void check_absent(const struct leaf *leaf, const struct record *want, uint32_t n, uint64_t key)
{
    uint32_t first, present = 0;

    for (uint32_t i = 0; i < n; i++)
        present += want[i].key == key;
    CHECK_IS(leaf_find(leaf, key, &first), present);
}

static int is_place(const struct leaf_place *a, const struct leaf_place *b)
{
    return a->at.offset == b->at.offset && a->at.length == b->at.length && a->at.count == b->at.count &&
           a->run == b->run && a->block == b->block && a->record == b->record;
}

/* The epochs of all records, and of those of some keys. */
static void check_epochs(const struct leaf *leaf, const struct record *want, uint32_t n, struct rng *r)
{
    struct leaf_epochs all = leaf_epochs_begin(leaf), some = all;
    int is_left_out = 0;

    for (uint32_t i = 0; i < n; i++) {
        int is_first = i == 0 || want[i].key != want[i - 1].key;
        CHECK_IS(leaf_epochs_next(&all, i, is_first), want[i].epoch);
        if (is_first)
            is_left_out = rng_below(r, 2) == 0;
        if (!is_left_out)
            CHECK_IS(leaf_epochs_next(&some, i, is_first), want[i].epoch);
    }
}

static void check_leaf(struct leaf *leaf, const uint8_t *bytes, size_t length, const struct record *want, uint32_t n,
                       struct rng *r)
{
    uint64_t *keys = malloc(n * sizeof *keys);
    uint32_t first = 0, of_run[RUNS_MAX] = {0}, *runs = malloc(n * sizeof *runs);
    struct leaf_place place;

    CHECK(keys && runs);
    CHECK_IS(parse(leaf, bytes, length), DELTAFS_OK);
    CHECK_IS(leaf->count, n);
    CHECK(leaf->first_key == want[0].key && leaf->last_key == want[n - 1].key);
    leaf_keys(leaf, keys);
    leaf_runs_of(leaf, runs);
    for (uint32_t i = 0, group = 0; i < n; i++) {
        CHECK(keys[i] == want[i].key);
        uint32_t row = leaf_run_of(leaf, i);
        CHECK(row < leaf->run_count && runs[i] == row);
        CHECK(leaf_place(leaf, row, of_run[row], &place) == 0 && is_place(&place, &want[i].place));
        CHECK(leaf_seek(leaf, row, of_run[row]++, &place) == 0 && is_place(&place, &want[i].place));
        if (n < 300 || rng_below(r, n) < 100)
            CHECK_IS(leaf_key(leaf, i), want[i].key);
        if (n < 300 || rng_below(r, n) < 100)
            CHECK(leaf_place(leaf, leaf_run_of(leaf, i), leaf_rank(leaf, leaf_run_of(leaf, i), i), &place) == 0 &&
                  is_place(&place, &want[i].place));
        if (i + 1 < n && want[i + 1].key == want[i].key)
            continue;
        CHECK_IS(leaf_find(leaf, want[i].key, &first), i + 1 - group);
        CHECK_IS(first, group);
        group = i + 1;
    }
    for (int i = 0; i < 20; i++) {
        uint64_t near = want[rng_below(r, n)].key;
        check_absent(leaf, want, n, near + 1);
        check_absent(leaf, want, n, near - 1);
        check_absent(leaf, want, n, rng_next(r));
        check_absent(leaf, want, n, near ^ UINT64_C(1) << rng_below(r, 64));
    }
    check_absent(leaf, want, n, 0);
    check_absent(leaf, want, n, UINT64_MAX);
    if (leaf->epochs)
        check_epochs(leaf, want, n, r);
    free(keys);
    free(runs);
}

/* One sample cut into leaves of random counts, which continue the runs where the leaf before ended. */
static void check_sample(struct rng *r, enum key_kind kind, uint32_t runs, uint32_t count, uint32_t leaf_most)
{
    struct sample s;
    struct leaf leaf = {0};
    size_t length;

    sample_init(&s, r, kind, runs, count);
    for (uint32_t at = 0, n; at < count; at += n) {
        n = (uint32_t)rng_below(r, leaf_most) + 1;
        n = n < count - at ? n : count - at;
        uint8_t *bytes = sample_encode(&s, at, n, &length);
        check_leaf(&leaf, bytes, length, s.record + at, n, r);
        CHECK((leaf.epochs != NULL) == s.has_epochs);
        free(bytes);
    }
    leaf_fini(&leaf);
    sample_fini(&s);
}

static void test_against_oracle(void **state)
{
    static const uint32_t runs[] = {1, 2, 3, 7, 16, 17, 200};
    struct rng r = rng_init(31);

    (void)state;
    for (int kind = 0; kind < KEYS_KINDS; kind++) {
        for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
            check_sample(&r, (enum key_kind)kind, runs[i], 1, 1);
            check_sample(&r, (enum key_kind)kind, runs[i], 40, 5);
            check_sample(&r, (enum key_kind)kind, runs[i], 2500, LEAF_RECORDS);
        }
    }
}

static void test_every_count(void **state)
{
    struct rng r = rng_init(32);

    (void)state;
    for (uint32_t n = 1; n <= LEAF_RECORDS; n += n < 70 ? 1 : (uint32_t)rng_below(&r, 150) + 1)
        check_sample(&r, (enum key_kind)(n % KEYS_KINDS), n % 5 + 1, n, n);
    check_sample(&r, KEYS_SPARSE, 3, LEAF_RECORDS, LEAF_RECORDS);
}

/* Keys that stand as far apart as can be, and all there is between. */
static void test_extremes(void **state)
{
    static const uint64_t keys[][3] = {{0, 0, 0},
                                       {UINT64_MAX, UINT64_MAX, UINT64_MAX},
                                       {0, 1, UINT64_MAX},
                                       {0, UINT64_MAX, UINT64_MAX},
                                       {0, 0, UINT64_MAX},
                                       {0, UINT64_C(1) << 63, UINT64_MAX},
                                       {UINT64_MAX - 2, UINT64_MAX - 1, UINT64_MAX},
                                       {(UINT64_C(1) << 63) - 1, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1}};
    struct rng r = rng_init(33);
    struct leaf leaf = {0};

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        for (uint32_t n = 1; n <= 3; n++) {
            struct sample s = {.runs = 1, .count = n};
            struct record record[3];
            size_t length;
            for (uint32_t k = 0; k < n; k++)
                record[k] = (struct record){.key = keys[i][k], .rank = k};
            s.record = record;
            sample_cut(&s, 0, record, n, &r);
            uint8_t *bytes = sample_encode(&s, 0, n, &length);
            check_leaf(&leaf, bytes, length, record, n, &r);
            free(bytes);
            run_fini(&s.run[0]);
            keys_clear(&store);
        }
    }
    leaf_fini(&leaf);
}

/* Dense keys cost 2 bits each, and the rest of a leaf little. */
static void test_size(void **state)
{
    struct rng r = rng_init(34);
    struct sample s;
    size_t length;

    (void)state;
    sample_init(&s, &r, KEYS_DENSE, 1, LEAF_RECORDS);
    for (uint32_t i = 0; i < s.count; i++)
        s.record[i].key = i; /* the places are of no matter here */
    uint8_t *bytes = sample_encode(&s, 0, s.count, &length);
    size_t table = 0;
    for (uint32_t b = 0; b < s.run[0].block_count; b++)
        table += 6;
    CHECK(length < LEAF_HEADER_SIZE + LEAF_RECORDS * 2 / 8 + 30 + table);
    free(bytes);
    sample_fini(&s);
}

static void make_small(struct sample *s, struct rng *r, int i, uint8_t **bytes, size_t *length)
{
    static const uint32_t runs[] = {1, 3, 9, 40}, counts[] = {1, 12, 60, 150};

    sample_init(s, r, (enum key_kind)(i % KEYS_KINDS), runs[i % 4], counts[i / 4 % 4]);
    *bytes = sample_encode(s, 0, s->count, length);
}

static void test_every_bit_flip(void **state)
{
    struct rng r = rng_init(35);
    struct leaf leaf = {0};
    struct sample s;
    uint8_t *bytes;
    size_t length;

    (void)state;
    for (int i = 0; i < 16; i++) {
        make_small(&s, &r, i, &bytes, &length);
        for (size_t bit = 0; bit < 8 * length; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            CHECK_IS(parse(&leaf, bytes, length), DELTAFS_ERR_DAMAGED);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        CHECK_IS(parse(&leaf, bytes, length), DELTAFS_OK);
        free(bytes);
        sample_fini(&s);
    }
    leaf_fini(&leaf);
}

static void test_elsewhere(void **state)
{
    struct rng r = rng_init(36);
    struct leaf leaf = {0};
    struct sample s;
    struct error e;
    uint8_t *bytes;
    size_t length;

    (void)state;
    make_small(&s, &r, 6, &bytes, &length);
    for (int field = 0; field < 4; field++) {
        struct leaf_id id = here;
        *(field == 0 ? &id.partition : field == 1 ? &id.epoch : field == 2 ? &id.segment : &id.leaf) += 1;
        CHECK_IS(leaf_parse(&leaf, bytes, length, &id, SEED, "log", 0, &e), DELTAFS_ERR_DAMAGED);
        CHECK(strstr(e.text, "belongs elsewhere") != NULL);
    }
    CHECK_IS(leaf_parse(&leaf, bytes, length, &here, SEED + 1, "log", 0, &e), DELTAFS_ERR_DAMAGED);
    free(bytes);
    sample_fini(&s);
    leaf_fini(&leaf);
}

/* Do with a leaf whatever a reader may, whatever it holds. */
static void use_leaf(const struct leaf *leaf, struct rng *r)
{
    uint64_t *keys = malloc(leaf->count * sizeof *keys);
    struct leaf_place place;
    uint32_t first = 0, found;

    CHECK(keys != NULL);
    leaf_keys(leaf, keys);
    for (uint32_t i = 0; i < leaf->count && i < 3000; i++) {
        leaf_place(leaf, leaf_run_of(leaf, i), i, &place);
        leaf_seek(leaf, leaf_run_of(leaf, i), i, &place);
        found = leaf_find(leaf, keys[i], &first);
        CHECK(found <= leaf->count && (found == 0 || first <= leaf->count - found));
    }
    if (leaf->epochs) {
        struct leaf_epochs epochs = leaf_epochs_begin(leaf);
        for (uint32_t i = 0; i < leaf->count; i++)
            leaf_epochs_next(&epochs, i, i == 0 || keys[i] != keys[i - 1]);
    }
    for (int i = 0; i < 10; i++) {
        uint32_t at = (uint32_t)rng_below(r, leaf->count), row = leaf_run_of(leaf, at);
        if (leaf_place(leaf, row, leaf_rank(leaf, row, at), &place) == 0)
            CHECK(place.record < place.at.count);
        found = leaf_find(leaf, leaf->first_key + rng_below(r, leaf->last_key - leaf->first_key), &first);
        CHECK(found <= leaf->count && (found == 0 || first <= leaf->count - found));
    }
    free(keys);
}

static void test_forged(void **state)
{
    struct rng r = rng_init(37);
    struct leaf leaf = {0};
    struct sample s;
    uint8_t *bytes;
    size_t length, used = 0;

    (void)state;
    for (int i = 0; i < 64; i++) {
        make_small(&s, &r, i, &bytes, &length);
        for (int round = 0; round < 600; round++) {
            uint8_t *forged = malloc(length + LEAF_SLACK);
            CHECK(forged != NULL);
            memcpy(forged, bytes, length + LEAF_SLACK);
            for (uint64_t k = rng_below(&r, 4) + 1; k > 0; k--)
                forged[4 + rng_below(&r, rng_below(&r, 2) ? LEAF_HEADER_SIZE - 4 : length - 4)] =
                    (uint8_t)(rng_below(&r, 3) ? rng_next(&r) : rng_below(&r, 2) * 0xff);
            log_seal(SEED, forged, length);
            if (parse(&leaf, forged, length) == DELTAFS_OK) {
                use_leaf(&leaf, &r);
                used++;
            }
            free(forged);
        }
        free(bytes);
        sample_fini(&s);
    }
    CHECK(used > 1000); /* or this tests nothing */
    leaf_fini(&leaf);
}

static void test_truncated(void **state)
{
    struct rng r = rng_init(38);
    struct leaf leaf = {0};
    struct sample s;
    uint8_t *bytes;
    size_t length;

    (void)state;
    for (int i = 0; i < 8; i++) {
        make_small(&s, &r, i, &bytes, &length);
        for (size_t n = 0; n < length; n++) {
            uint8_t *cut = calloc(1, n + LEAF_SLACK);
            CHECK(cut != NULL);
            memcpy(cut, bytes, n);
            CHECK_IS(parse(&leaf, cut, n), DELTAFS_ERR_DAMAGED);
            if (n >= 12) {
                /* With a right checksum and length, too. */
                put_u32(cut + 8, (uint32_t)n);
                log_seal(SEED, cut, n);
                if (parse(&leaf, cut, n) == DELTAFS_OK)
                    use_leaf(&leaf, &r);
            }
            free(cut);
        }
        free(bytes);
        sample_fini(&s);
    }
    leaf_fini(&leaf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_every_count),    cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_size),           cmocka_unit_test(test_every_bit_flip), cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_forged),         cmocka_unit_test(test_truncated),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
