/* Damage of all kinds to a small container: every byte changed, every file cut at every length, files that are missing
 * or belong elsewhere. Reading never hands out anything wrong, and deltafs_verify finds every damage. */
#include <unistd.h>
#include "directory/format/directory_format.h"
#include "directory/format/index.h"
#include "directory/format/manifest.h"
#include "unit_help.h"

#define PARTITIONS 2u
#define EPOCHS     3

static const char *const kinds[] = {LOG_NAME_DATA, LOG_NAME_INDEX};

/* Folder `name` holds a container of a few records; not closed, it is what a crash leaves. Some keys have so many that
 * they stand in several blocks. */
static void make(struct model *m, const char *name, int is_closed, const char *value_size, const char *codec)
{
    char work[64];
    snprintf(work, sizeof work, "%s.open", name);
    deltafs_dir *d = unit_create(unit_path("%s", work), unit_options("partitions", "2", "block", "256", "value_size",
                                                                     value_size, "codec", codec, NULL));
    struct rng r = {7};

    *m = (struct model){0};
    for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
        for (int i = 0; i < 14; i++) {
            uint32_t size = strcmp(value_size, "any") == 0 ? (uint32_t)rng_below(&r, 30) : (uint32_t)atoi(value_size);
            CHECK_CALL(d, model_append(m, d, rng_below(&r, i % 2 ? 12 : 2) * 1000, size), DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_epoch_end(d, 5 * epoch), DELTAFS_OK);
        model_keep(m, 5 * epoch);
    }
    if (!is_closed)
        unit_copy(unit_path("%s", work), unit_path("%s", name));
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    if (is_closed)
        CHECK_IS(rename(unit_path("%s", work), unit_path("%s", name)), 0);
    unit_remove(unit_path("%s", work));
}

static void drop(struct model *m, const char *name)
{
    unit_remove(unit_path("%s", name));
    model_fini(m);
}

static const char *log_path(const char *name, int kind, uint32_t partition)
{
    char log[64];

    snprintf(log, sizeof log, kinds[kind], partition, partition);
    return unit_path("%s/%s", name, log);
}

struct messages {
    unsigned count;
    int status;
};

static void note_damage(int status, const char *message, void *arg)
{
    struct messages *m = arg;

    CHECK(strstr(message, unit_folder) != NULL);
    m->status = m->count++ == 0 ? status : m->status;
}

/* Read all in every way; returns what deltafs_verify found. */
static unsigned check(struct model *m, const char *name)
{
    struct deltafs_verify_counts stat = {.struct_size = sizeof stat};
    struct messages messages = {0};
    deltafs_dir *d = unit_open(unit_path("%s", name));
    unsigned failed = model_check_honest(m, d);
    int status = deltafs_verify(d, note_damage, &messages, &stat);

    CHECK_IS(stat.damages, messages.count);
    CHECK_CALL(d, status, messages.status);
    CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_DAMAGED);
    CHECK(failed == 0 || stat.damages > 0);
    /* Without damage to what is read, all is as it was; and the other partition is, at any rate. */
    CHECK(stat.records <= m->committed);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    return (unsigned)stat.damages;
}

/* Every byte of every log, changed in one bit and in all. */
static void check_flips(int is_closed, const char *value_size, const char *codec)
{
    struct model m;

    make(&m, "flip", is_closed, value_size, codec);
    CHECK_IS(check(&m, "flip"), 0);
    for (int kind = 0; kind < 2; kind++) {
        for (uint32_t p = 0; p < PARTITIONS; p++) {
            const char *path = log_path("flip", kind, p);
            size_t n;
            uint8_t *bytes = unit_load(path, &n);
            for (size_t at = 0; at < n; at++) {
                for (int pass = 0; pass < 2; pass++) {
                    unit_poke(path, at, (uint8_t)(bytes[at] ^ (pass ? 0xff : 1 << at % 8)));
                    if (check(&m, "flip") == 0)
                        fail_msg("verify does not see byte %zu of %zu of %s changed", at, n, path);
                }
                unit_poke(path, at, bytes[at]);
            }
            free(bytes);
        }
    }
    CHECK_IS(check(&m, "flip"), 0);
    drop(&m, "flip");
}

static void test_every_byte_of_the_logs(void **state)
{
    (void)state;
    check_flips(1, "8", "snappy");
}

static void test_every_byte_with_any_sizes(void **state)
{
    (void)state;
    check_flips(1, "any", "none");
}

static void test_every_byte_without_a_tail(void **state)
{
    (void)state;
    check_flips(0, "40", "snappy");
}

/* Any change to the manifest keeps the directory from being opened. */
static void test_every_byte_of_the_manifest(void **state)
{
    struct model m;
    deltafs_dir *d = NULL;
    size_t n;

    (void)state;
    make(&m, "flip", 1, "8", "snappy");
    const char *path = unit_path("flip/" MANIFEST_NAME);
    uint8_t *bytes = unit_load(path, &n);
    for (size_t at = 0; at < n; at++) {
        for (int bit = 0; bit < 8; bit++) {
            unit_poke(path, at, bytes[at] ^ (uint8_t)(1 << bit));
            int status = deltafs_open(unit_path("flip"), NULL, &d);
            CHECK(status == DELTAFS_ERR_DAMAGED || (at < 8 && status == DELTAFS_ERR_NOT_DELTAFS));
            CHECK(d == NULL && strstr(deltafs_errmsg(NULL), path) != NULL);
        }
        unit_poke(path, at, bytes[at]);
    }
    free(bytes);
    drop(&m, "flip");
}

static void test_truncated(void **state)
{
    struct model m;

    (void)state;
    make(&m, "cut", 1, "any", "snappy");
    for (int kind = 0; kind < 2; kind++) {
        for (uint32_t p = 0; p < PARTITIONS; p++) {
            const char *path = log_path("cut", kind, p);
            size_t n;
            uint8_t *bytes = unit_load(path, &n);
            for (size_t cut = 0; cut < n; cut++) {
                unit_save(path, bytes, cut);
                CHECK(check(&m, "cut") > 0);
            }
            /* Too long is no harm to reading, but the tail is not where it was. */
            bytes = realloc(bytes, n + 100);
            CHECK(bytes != NULL);
            memset(bytes + n, 0, 100);
            unit_save(path, bytes, n + 100);
            CHECK(check(&m, "cut") > 0 || kind == 0);
            unit_save(path, bytes, n);
            free(bytes);
        }
    }
    CHECK_IS(check(&m, "cut"), 0);
    drop(&m, "cut");
}

/* Longer stretches: noise, zeros, and a copy of what stands elsewhere in the same file. */
static void test_stretches(void **state)
{
    struct rng r = rng_init(81);
    struct model m;

    (void)state;
    make(&m, "stretch", 1, "40", "none");
    for (int round = 0; round < 1500; round++) {
        const char *path = log_path("stretch", (int)rng_below(&r, 2), (uint32_t)rng_below(&r, PARTITIONS));
        size_t n;
        uint8_t *bytes = unit_load(path, &n), *changed = malloc(n);
        CHECK(changed != NULL);
        memcpy(changed, bytes, n);
        size_t length = (size_t)rng_below(&r, 300) + 1, at = (size_t)rng_below(&r, n);
        length = length < n - at ? length : n - at;
        if (round % 3 == 0)
            rng_fill(&r, changed + at, length);
        else if (round % 3 == 1)
            memset(changed + at, 0, length);
        else
            memcpy(changed + at, bytes + rng_below(&r, n - length + 1), length);
        unit_save(path, changed, n);
        CHECK((check(&m, "stretch") > 0) == (memcmp(bytes, changed, n) != 0));
        unit_save(path, bytes, n);
        free(bytes);
        free(changed);
    }
    drop(&m, "stretch");
}

/* ---- Forged: changed under a right checksum ---- */

/* A structure of a log: its place, and what is known of it. */
struct part {
    size_t at, n;
};

/* Find the leaves, fences and footers of an index log. */
static size_t find_parts(const char *name, uint32_t partition, struct part *part)
{
    struct io io = io_default();
    struct manifest m;
    struct index_reader r;
    struct error tail = {0}, e;
    struct segment *s;
    uint32_t count;
    size_t parts = 0;

    CHECK_IS(manifest_read(&io, unit_path("%s", name), &m, &e), DELTAFS_OK);
    CHECK_IS(index_reader_open(&r, &io, log_path(name, 1, partition), partition, m.uuid, EPOCHS, EPOCHS, 0, &tail, &e),
             DELTAFS_OK);
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        CHECK_IS(index_epoch(&r, epoch, &s, &count, &e), DELTAFS_OK);
        for (uint32_t i = 0; i < s->footer.leaves; i++) {
            struct fence_leaf leaf = fence_leaf(&s->fence, i);
            part[parts++] = (struct part){(size_t)leaf.offset, leaf.length};
        }
        part[parts++] = (struct part){(size_t)s->footer.fence_offset, s->footer.fence_length};
        part[parts++] = (struct part){(size_t)s->footer.offset, FOOTER_SIZE};
    }
    CHECK_IS(index_reader_close(&r, &e), DELTAFS_OK);
    manifest_fini(&m);
    return parts;
}

static int use_record(const struct deltafs_record *record, void *arg)
{
    for (size_t i = 0; i < record->size; i++)
        *(unsigned *)arg += ((const uint8_t *)record->value)[i];
    return 0;
}

/* Read all, whatever it may be: there is nothing to compare with, but a sanitizer has its say. */
static void use_directory(const char *name, unsigned *sum)
{
    struct deltafs_verify_counts stat = {.struct_size = sizeof stat};
    deltafs_dir *d = unit_open(unit_path("%s", name));

    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t key = 0; key < 12; key++) {
            deltafs_records *got = NULL;
            deltafs_get(d, 1000 * key, NULL, &got);
            for (size_t i = 0; got && i < got->count; i++)
                use_record(&got->record[i], sum);
            deltafs_records_destroy(got);
        }
        deltafs_scan(d, NULL, use_record, sum, NULL);
    }
    deltafs_verify(d, NULL, NULL, &stat);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Forged leaves name blocks that are not there, overlap, or are said to hold more than they do; forged fences and
 * footers point anywhere. */
static void test_forged(void **state)
{
    struct rng r = rng_init(82);
    unsigned sum = 0;

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct part part[64];
        struct manifest manifest;
        struct model m;
        struct io io = io_default();
        struct error e;
        size_t n;
        make(&m, "forged", 0, kind == 0 ? "8" : "any", kind == 2 ? "none" : "snappy");
        CHECK_IS(manifest_read(&io, unit_path("forged"), &manifest, &e), DELTAFS_OK);
        const char *path = log_path("forged", 1, 0);
        size_t parts = find_parts("forged", 0, part);
        uint8_t *bytes = unit_load(path, &n), *forged = malloc(n);
        CHECK(forged != NULL);
        for (int round = 0; round < 800; round++) {
            memcpy(forged, bytes, n);
            for (uint64_t changed = rng_below(&r, 2) + 1; changed > 0; changed--) {
                struct part p = part[rng_below(&r, parts)];
                for (uint64_t k = rng_below(&r, 3) + 1; k > 0; k--)
                    forged[p.at + 4 + rng_below(&r, p.n - 4)] =
                        (uint8_t)(rng_below(&r, 2) ? rng_next(&r) : rng_below(&r, 3));
                log_seal(log_seed(manifest.uuid), forged + p.at, p.n);
            }
            unit_save(path, forged, n);
            use_directory("forged", &sum);
        }
        free(bytes);
        free(forged);
        manifest_fini(&manifest);
        drop(&m, "forged");
    }
    CHECK(sum > 0);
}

/* ---- Files that are not where they belong ---- */

static void swap_files(const char *a, const char *b)
{
    const char *aside = unit_path("aside");

    assert_int_equal(rename(a, aside), 0);
    assert_int_equal(rename(b, a), 0);
    assert_int_equal(rename(aside, b), 0);
}

static void test_swapped(void **state)
{
    struct model m;

    (void)state;
    for (int is_closed = 0; is_closed < 2; is_closed++) {
        make(&m, "swap", is_closed, "8", "snappy");
        for (int which = 1; which < 4; which++) {
            for (int kind = 0; kind < 2; kind++)
                if (which & 1 << kind)
                    swap_files(log_path("swap", kind, 0), log_path("swap", kind, 1));
            CHECK(check(&m, "swap") > 0);
            deltafs_dir *d = unit_open(unit_path("swap"));
            CHECK(model_check_honest(&m, d) > 0);
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
            for (int kind = 0; kind < 2; kind++)
                if (which & 1 << kind)
                    swap_files(log_path("swap", kind, 0), log_path("swap", kind, 1));
        }
        /* Data log and index log of one partition in each other's place. */
        swap_files(log_path("swap", 0, 1), log_path("swap", 1, 1));
        CHECK(check(&m, "swap") > 0);
        drop(&m, "swap");
    }
}

/* From a container with the very same records: only the UUID differs. */
static void test_of_another_container(void **state)
{
    struct model m, other;

    (void)state;
    for (int is_closed = 0; is_closed < 2; is_closed++) {
        make(&m, "mine", is_closed, "8", "snappy");
        make(&other, "other", is_closed, "8", "snappy");
        for (int which = 1; which < 4; which++) {
            for (int kind = 0; kind < 2; kind++)
                if (which & 1 << kind)
                    swap_files(log_path("mine", kind, 0), log_path("other", kind, 0));
            CHECK(check(&m, "mine") > 0);
            CHECK(check(&other, "other") > 0);
            for (int kind = 0; kind < 2; kind++)
                if (which & 1 << kind)
                    swap_files(log_path("mine", kind, 0), log_path("other", kind, 0));
        }
        swap_files(unit_path("mine/" MANIFEST_NAME), unit_path("other/" MANIFEST_NAME));
        CHECK(check(&m, "mine") > 0);
        drop(&m, "mine");
        drop(&other, "other");
    }
}

static void test_missing(void **state)
{
    struct model m;
    deltafs_dir *d = NULL;

    (void)state;
    make(&m, "missing", 1, "any", "snappy");
    for (int kind = 0; kind < 2; kind++) {
        const char *path = log_path("missing", kind, 1), *aside = unit_path("aside");
        assert_int_equal(rename(path, aside), 0);
        CHECK(check(&m, "missing") > 0);
        d = unit_open(unit_path("missing"));
        /* The other partition is as good as ever. */
        size_t failed = 0, count = 0;
        for (size_t i = 0; i < 12; i++) {
            deltafs_records *got = NULL;
            int status = deltafs_get(d, 1000 * i, NULL, &got);
            count += status != DELTAFS_ERR_NOT_FOUND;
            failed += status == DELTAFS_ERR_DAMAGED;
            CHECK(status == DELTAFS_OK ||
                  strstr(deltafs_errmsg(d), status == DELTAFS_ERR_DAMAGED ? path : "1") != NULL);
            deltafs_records_destroy(got);
        }
        CHECK(failed > 0 && failed < count);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        assert_int_equal(rename(aside, path), 0);
    }
    d = NULL;
    assert_int_equal(unlink(unit_path("missing/" MANIFEST_NAME)), 0);
    CHECK_IS(deltafs_open(unit_path("missing"), NULL, &d), DELTAFS_ERR_NOT_DELTAFS);
    CHECK(d == NULL);
    drop(&m, "missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_of_the_logs),
        cmocka_unit_test(test_every_byte_with_any_sizes),
        cmocka_unit_test(test_every_byte_without_a_tail),
        cmocka_unit_test(test_every_byte_of_the_manifest),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_stretches),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_swapped),
        cmocka_unit_test(test_of_another_container),
        cmocka_unit_test(test_missing),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
