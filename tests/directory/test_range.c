/* Partitions by ranges of keys: samples, pivots, directories against the model, their balance, and what a range reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <deltafs/deltafs_query.h>
#include "base/number.h"
#include "directory/format/directory_format.h"
#include "directory/format/manifest.h"
#include "directory/write/pivots.h"
#include "io/io.h"
#include "unit_help.h"
#include "unit_io.h"

/* ---- Pivots ---- */

static void test_partition(void **state)
{
    struct rng r = rng_init(411);
    uint64_t pivots[70];

    (void)state;
    for (uint32_t n = 0; n < 70; n++) {
        for (uint32_t i = 0; i < n; i++) /* some are the same, and the ends are among them */
            pivots[i] = n % 3 ? rng_below(&r, 50) : rng_key(&r, KEYS_ENDS);
        qsort(pivots, n, sizeof *pivots, compare_u64);
        const struct partitioner by = {.partitions = n + 1, .pivots = pivots};
        for (int i = 0; i < 200; i++) {
            uint64_t key = i % 2 ? rng_below(&r, 52) : rng_key(&r, KEYS_ENDS);
            uint32_t slow = 0;
            for (uint32_t k = 0; k < n; k++)
                slow += pivots[k] <= key;
            CHECK_IS(partition_of(&by, key), slow);
        }
    }
}

static void add(struct key_sample *s, const uint64_t *keys, size_t n, struct rng *r)
{
    for (size_t at = 0, some; at < n; at += some) {
        some = 1 + rng_below(r, 500);
        some = some < n - at ? some : n - at;
        sample_add(s, some, (const uint8_t *)(keys + at), sizeof *keys);
    }
}

/* However many keys there are, and if their order has a period: the sample has as many of each sort. */
static void test_sample(void **state)
{
    enum { N = 300000, SORTS = 16 };
    static uint64_t keys[N];
    struct rng r = rng_init(412);
    struct error e;

    (void)state;
    for (size_t i = 0; i < N; i++)
        keys[i] = i % SORTS;
    for (size_t n = 0; n < N; n = 2 * n + 1) {
        struct key_sample s = {0};
        uint32_t count[SORTS] = {0};
        CHECK_IS(sample_init(&s, 4096, n, NULL, &e), DELTAFS_OK);
        add(&s, keys, n, &r);
        CHECK_IS(s.seen, n);
        CHECK(n < 4096 ? s.count == n : s.count >= 2047 && s.count < 4096);
        for (uint32_t i = 0; i < s.count; i++)
            count[s.key[i]]++;
        for (int i = 0; i < SORTS && n >= 4096; i++)
            CHECK(count[i] > s.count / SORTS / 2 && count[i] < s.count / SORTS * 3 / 2);
        sample_clear(&s);
        add(&s, keys + 1, 10, &r);
        CHECK(s.count == 10 && s.key[9] == 10);
        sample_fini(&s);
    }
}

/* A process that has no memory for its keys sends none, and not a part of them. */
static void test_pack_memory(void **state)
{
    enum { N = 1000 };
    struct rng r = rng_init(418);
    struct error e;

    (void)state;
    for (uint64_t limit = 0; limit <= 40000; limit += 1000) {
        struct memory memory = {.limit = limit};
        struct bytes packed = {.buffer = {.memory = &memory}};
        struct key_sample s = {0};
        uint64_t keys[N];
        for (int i = 0; i < N; i++)
            keys[i] = rng_next(&r);
        CHECK_IS(sample_init(&s, 4096, 0, NULL, &e), DELTAFS_OK);
        add(&s, keys, N, &r);
        int status = sample_pack(&s, 64, N, &packed, &e);
        CHECK_IS(status, limit < 9000 ? DELTAFS_ERR_MEMORY : limit > 30000 ? DELTAFS_OK : status);
        CHECK(status == DELTAFS_OK ? packed.used > N * sizeof(uint64_t) : packed.used == 0);
        sample_fini(&s);
        buffer_fini(&packed.buffer);
    }
}

enum distribution { UNIFORM, POWER, NARROW, EQUAL, GIANT, FEW, ENDS, DISTRIBUTIONS };

static uint64_t draw(struct rng *r, enum distribution of)
{
    double u = ((double)rng_below(r, 1u << 30) + 1) / (1u << 30);

    switch (of) {
    case POWER: /* most are small, and some are a million times larger */
        return (uint64_t)(1000 / (u * u));
    case NARROW:
        return UINT64_MAX / 2 + rng_below(r, 100000);
    case EQUAL:
        return 77;
    case GIANT:
        return rng_below(r, 2) ? 5000000 : rng_below(r, 10000000);
    case FEW:
        return rng_below(r, 3) * 1000;
    case ENDS:
        return rng_key(r, KEYS_ENDS);
    default:
        return rng_next(r);
    }
}

/* The largest partition over the mean. */
static double balance(const struct partitioner *by, const uint64_t *keys, size_t n)
{
    static size_t count[512];
    size_t largest = 0;

    memset(count, 0, sizeof count);
    for (size_t i = 0; i < n; i++) {
        size_t now = ++count[partition_of(by, keys[i])];
        largest = now > largest ? now : largest;
    }
    return (double)largest * by->partitions / (double)n;
}

/* The pivots by the samples of some processes, which get keys as they are placed by `now`. */
static int choose(const struct partitioner *now, const uint64_t *keys, size_t n, uint32_t processes, uint64_t *pivots)
{
    uint32_t all = now->partitions;
    uint64_t *own = malloc(n * sizeof *own);
    struct bytes packed = {.used = 0};
    struct rng r = rng_init(413);
    struct error e;

    CHECK(own != NULL);
    for (uint32_t p = 0; p < processes; p++) {
        struct key_sample s = {0};
        uint32_t first = partition_first((int)p, all, (int)processes);
        uint32_t count = partition_first((int)p + 1, all, (int)processes) - first;
        size_t m = 0;
        for (size_t i = 0; i < n; i++)
            if (partition_of(now, keys[i]) - first < count)
                own[m++] = keys[i];
        CHECK_IS(sample_init(&s, sample_capacity(all, 64 << 20), p, NULL, &e), DELTAFS_OK);
        add(&s, own, m, &r);
        CHECK_IS(sample_pack(&s, all, n, &packed, &e), DELTAFS_OK);
        sample_fini(&s);
    }
    int is_better = pivots_choose(&packed, now, pivots);
    free(own);
    buffer_fini(&packed.buffer);
    return is_better;
}

/* The first pivots come from keys placed by their hash, the next ones from keys placed by these. */
static void test_choose(void **state)
{
    enum { N = 60000 };
    static const uint32_t partitions[] = {2, 7, 64}, processes[] = {1, 16};
    static uint64_t keys[N], pivots[2][256];
    struct rng r = rng_init(414);

    (void)state;
    for (int of = 0; of < DISTRIBUTIONS; of++)
        for (size_t p = 0; p < 3; p++)
            for (size_t k = 0; k < 2; k++) {
                struct partitioner by = {.partitions = partitions[p]},
                                   next = {.partitions = partitions[p], .pivots = pivots[0]};
                for (size_t i = 0; i < N; i++)
                    keys[i] = draw(&r, (enum distribution)of);
                CHECK_IS(choose(&by, keys, N, processes[k], pivots[0]), 1);
                for (uint32_t i = 0; i + 2 < partitions[p]; i++)
                    CHECK(pivots[0][i] <= pivots[0][i + 1]);
                for (size_t i = 0; i < N; i++)
                    keys[i] = draw(&r, (enum distribution)of);
                double now = balance(&next, keys, N);
                if (of <= NARROW)
                    CHECK(now <= 1.3);
                if (of == GIANT) /* the others have equal shares of what is left */
                    CHECK(now < partitions[p] * 0.5 + 1.3);
                /* They still do. */
                CHECK_IS(choose(&next, keys, N, processes[k], pivots[1]), 0);
                /* For others they do not. */
                for (size_t i = 0; i < N; i++)
                    keys[i] = UINT64_C(1) << 60 | rng_next(&r) >> 8;
                CHECK_IS(choose(&next, keys, N, processes[k], pivots[1]), 1);
                next.pivots = pivots[1];
                CHECK(balance(&next, keys, N) <= 1.3);
            }
    const struct partitioner by = {.partitions = 256};
    CHECK_IS(choose(&by, keys, 1000, 4, pivots[0]), 0); /* too few to say anything */
    CHECK_IS(choose(&by, keys, 0, 4, pivots[0]), 0);
}

/* ---- Directories ---- */

static deltafs_dir *create_in(const char *memory, const char *path, const char *partitioner, const char *partitions,
                              const char *commit)
{
    return unit_create(path, unit_options("partitioner", partitioner, "partitions", partitions, "value_size", "8",
                                          "commit", commit, "memory", memory, NULL));
}

static deltafs_dir *create(const char *path, const char *partitioner, const char *partitions, const char *commit)
{
    return create_in("auto", path, partitioner, partitions, commit);
}

static size_t pivots_stored(const char *path)
{
    struct io io = io_default();
    struct manifest m;
    struct error e;

    CHECK_IS(manifest_read(&io, path, &m, &e), DELTAFS_OK);
    size_t n = m.pivots_count;
    for (size_t i = 1; i < n; i++)
        CHECK(m.pivots[i].epochs > m.pivots[i - 1].epochs);
    manifest_fini(&m);
    return n;
}

/* The first epoch that is placed by pivots. */
static uint64_t pivots_first(const char *path)
{
    struct io io = io_default();
    struct manifest m;
    struct error e;

    CHECK_IS(manifest_read(&io, path, &m, &e), DELTAFS_OK);
    CHECK(m.pivots_count > 0);
    uint64_t first = m.pivots[0].epochs;
    manifest_fini(&m);
    return first;
}

/* The keys rise from epoch to epoch, are all the same, the ends, skewed: whatever they are, all is found; also of
 * epochs that cannot be held back. */
static void test_random(void **state)
{
    static const char *const partitions[] = {"1", "2", "7", "40"};
    struct rng r = rng_init(415);

    (void)state;
    for (int i = 0; i < 8; i++) {
        struct model m = {0};
        const char *path = unit_path("random");
        const char *memory = i > 4 ? "8M" : "auto";
        deltafs_dir *d = create_in(memory, path, "range", partitions[i / 2], i % 2 ? "async" : "wait");
        for (uint64_t epoch = 0; epoch < 6; epoch++) {
            if (epoch == 3) {
                CHECK_IS(deltafs_close(d), DELTAFS_OK);
                deltafs_options *o = unit_options("commit", i % 2 ? "async" : "wait", "memory", memory, NULL);
                CHECK_IS(deltafs_reopen(path, o, &d), DELTAFS_OK);
                deltafs_options_destroy(o);
            }
            for (uint32_t k = 0; k < (epoch == 4 ? 0 : i > 4 && epoch % 4 == 1 ? 70000 : 3000); k++) {
                uint64_t key =
                    epoch % 2 ? draw(&r, (enum distribution)(rng_below(&r, DISTRIBUTIONS))) : epoch * 100000 + k;
                CHECK_CALL(d, model_append(&m, d, key, 8), DELTAFS_OK);
            }
            if (epoch == 2) { /* what comes instead of it is placed as it was */
                CHECK_CALL(d, deltafs_epoch_cancel(d, NULL), DELTAFS_OK);
                int status = deltafs_epoch_end(d, epoch);
                CHECK_CALL(d, status == DELTAFS_OK ? deltafs_epoch_wait(d) : status, DELTAFS_ERR_CANCELLED);
                model_discard(&m);
            } else {
                model_end_epoch(&m, d, epoch);
            }
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK(i < 2 ? pivots_stored(path) == 0 : pivots_stored(path) > 1);
        model_check_directory(&m, path, &r);
        unit_remove(path);
        model_fini(&m);
    }
}

/* Rows of chosen keys, of which each epoch has some in other partitions. */
static void test_select(void **state)
{
    enum { KEYS = 700 };
    struct rng r = rng_init(417);
    struct model m = {0};
    uint64_t keys[KEYS];
    const char *path = unit_path("select");
    deltafs_dir *d = create(path, "range", "7", "wait");
    size_t rows = 0, count = 1, wanted = 0;
    const struct deltafs_record *row;
    const struct model_record *ignored;
    deltafs_select *s;

    (void)state;
    for (uint64_t epoch = 0; epoch < 4; epoch++) {
        for (uint32_t i = 0; i < 3000; i++)
            CHECK_CALL(d, model_append(&m, d, epoch % 2 ? rng_below(&r, 9) * i : rng_below(&r, 4000), 8), DELTAFS_OK);
        model_end_epoch(&m, d, epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (size_t i = 0; i < KEYS; i++)
        keys[i] = 3 * i;
    for (size_t i = 0; i < KEYS; i++)
        wanted += model_find(&m, keys[i], 0, UINT64_MAX, &ignored);
    const struct deltafs_key_list list = {.count = KEYS, .number = keys};
    const struct deltafs_select_options o = {.struct_size = sizeof o, .keys = &list};
    d = unit_open(path);
    CHECK_CALL(d, deltafs_select_open(d, &o, &s), DELTAFS_OK);
    for (; count > 0; rows += count) {
        CHECK_CALL(d, deltafs_select_next(s, &row, &count), DELTAFS_OK);
        for (size_t i = 0; i < count; i++)
            CHECK(row[i].key % 3 == 0 && row[i].key < 3 * KEYS);
    }
    CHECK_IS(rows, wanted);
    CHECK(wanted > KEYS);
    CHECK_IS(deltafs_select_close(s), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_fini(&m);
}

/* The records of the partitions in an epoch: the largest over the mean. */
static double dir_balance(deltafs_dir *d, uint32_t partitions, uint64_t label)
{
    const struct deltafs_range range = {label, label};
    size_t largest = 0, sum = 0;

    for (uint32_t p = 0; p < partitions; p++) {
        const struct deltafs_arrays none = {.struct_size = sizeof none};
        size_t n = 0;
        CHECK_CALL(d, deltafs_scan_many(d, &p, &range, &none, &n), DELTAFS_OK);
        largest = n > largest ? n : largest;
        sum += n;
    }
    return (double)largest * partitions / (double)sum;
}

/* Partitions are balanced, also if the directory was reopened, whether epochs are held back or not; and pivots that do
 * are not stored again. */
static void test_balance(void **state)
{
    struct rng r = rng_init(416);

    (void)state;
    for (int run = 0; run < 2 * (NARROW + 1); run++) {
        int of = run / 2;
        const char *path = unit_path("balance");
        deltafs_dir *d = create_in(run % 2 ? "8M" : "auto", path, "range", "64", of == POWER ? "async" : "wait");
        for (uint64_t epoch = 0; epoch < 5; epoch++) {
            for (uint64_t i = 0; i < 100000; i++)
                CHECK_CALL(d, deltafs_append(d, draw(&r, (enum distribution)of), &i, 8), DELTAFS_OK);
            CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
            if (epoch == 0 || epoch == 2) {
                CHECK_IS(deltafs_close(d), DELTAFS_OK);
                deltafs_options *o = unit_options("memory", run % 2 ? "8M" : "auto", NULL);
                CHECK_IS(deltafs_reopen(path, o, &d), DELTAFS_OK);
                deltafs_options_destroy(o);
            }
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK_IS(pivots_stored(path), 1);
        d = unit_open(path);
        double known[5];
        CHECK_CALL(d, deltafs_balance(d, known), DELTAFS_OK);
        for (uint64_t epoch = 0; epoch < 5; epoch++) {
            double now = dir_balance(d, 64, epoch);
            CHECK(fabs(now - known[epoch]) < 1e-9);
            CHECK(now <= 1.3);
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_remove(path);
    }
}

/* A job may have died before the first commit, and before all logs were there. */
static void test_balance_of_nothing(void **state)
{
    const char *path = unit_path("nothing");
    deltafs_dir *d = unit_create(path, unit_options("partitioner", "range", "partitions", "16", NULL));
    char log[PATH_ROOM];
    double none = -1;

    (void)state;
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    io_path_in(log, path, LOG_NAME_INDEX, 5, 5);
    unit_remove(log);
    d = unit_open(path);
    CHECK_CALL(d, deltafs_balance(d, &none), DELTAFS_OK);
    CHECK(none == -1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_remove(path);
}

/* Keys that are others in each epoch, of values of any size: pivots of the epoch before would be of no use. */
static void test_drift(void **state)
{
    struct rng r = rng_init(420);
    const char *path = unit_path("drift");
    deltafs_dir *d = unit_create(path, unit_options("partitioner", "range", "partitions", "16", NULL));
    struct model m = {0};
    double known[5];

    (void)state;
    for (uint64_t epoch = 0; epoch < 5; epoch++) {
        for (uint64_t i = 0; i < 10000; i++)
            CHECK_CALL(d, model_append(&m, d, draw(&r, POWER) << 2 * epoch, (uint32_t)rng_below(&r, 30)), DELTAFS_OK);
        model_end_epoch(&m, d, epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(pivots_stored(path), 5);
    d = unit_open(path);
    CHECK_CALL(d, deltafs_balance(d, known), DELTAFS_OK);
    for (uint64_t epoch = 0; epoch < 5; epoch++)
        CHECK(known[epoch] >= 1 && known[epoch] <= 1.3);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_check_directory(&m, path, &r);
    unit_remove(path);
    model_fini(&m);
}

/* Where memory is too small to hold records back, it is not too small to write them: the pivots are those of the epoch
 * before. */
static void test_narrow(void **state)
{
    struct rng r = rng_init(421);
    const char *path = unit_path("narrow");
    deltafs_dir *d = unit_create(path, unit_options("partitioner", "range", "partitions", "200", "memory", "8M", NULL));
    struct model m = {0};

    (void)state;
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (uint64_t i = 0; i < 20000; i++)
            CHECK_CALL(d, model_append(&m, d, rng_below(&r, 100000) << 4 * epoch, (uint32_t)rng_below(&r, 30)),
                       DELTAFS_OK);
        model_end_epoch(&m, d, epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(pivots_first(path), 1);
    model_check_directory(&m, path, &r);
    unit_remove(path);
    model_fini(&m);
}

static uint64_t range_reads(const char *path, uint64_t label)
{
    const struct deltafs_range range = {label, label};
    const struct deltafs_arrays none = {.struct_size = sizeof none};
    struct deltafs_io_stat io = {.struct_size = sizeof io};
    deltafs_dir *d = unit_open(path);
    size_t n = 0;

    CHECK_CALL(d, deltafs_scan_range_many(d, 50000, 50099, &range, &none, &n), DELTAFS_OK);
    CHECK_IS(n, 100);
    CHECK_CALL(d, deltafs_io_stat(d, &io), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    return io.reads;
}

/* A range of 100 keys of 200000 asks one or two of 32 partitions, where that needs all of them by hash. */
static void test_reads(void **state)
{
    static const char *const partitioners[] = {"hash", "range", "range"}, *const memory[] = {"16M", "16M", "64M"};
    uint64_t reads[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *path = unit_path("reads%d", i);
        deltafs_dir *d = create_in(memory[i], path, partitioners[i], "32", "wait");
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            for (uint64_t k = 0; k < 200000; k++)
                CHECK_CALL(d, deltafs_append(d, k * 7919 % 200000, &k, 8), DELTAFS_OK);
            CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        reads[i] = range_reads(path, 1);
    }
    CHECK(reads[0] > 32 * 3);
    CHECK(reads[1] <= 2 * 8);
    CHECK(range_reads(unit_path("reads1"), 0) >= reads[0]); /* the first epoch has no pivots, */
    CHECK(range_reads(unit_path("reads2"), 0) <= 2 * 8);    /* but where it was held back */
    for (int i = 0; i < 3; i++)
        unit_remove(unit_path("reads%d", i));
}

/* ---- Damage ---- */

/* Three epochs, which are placed by other pivots each. */
static void make_three(struct model *m, const char *path, struct rng *r)
{
    deltafs_dir *d = create(path, "range", "5", "wait");

    *m = (struct model){0};
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        for (uint32_t i = 0; i < 1000; i++)
            CHECK_CALL(d, model_append(m, d, (epoch + 1) * 100000 + rng_below(r, 5000), 8), DELTAFS_OK);
        model_end_epoch(m, d, epoch);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Where a line of pivots begins in the manifest, from `from` on. */
static size_t find_pivots(const uint8_t *text, size_t n, size_t from)
{
    const uint8_t *at = memmem(text + from, n - from, "\nPivots ", 8);

    CHECK(at != NULL);
    return (size_t)(at - text) + 1;
}

/* A line of pivots is damaged, and its copy is not: repair takes that. */
static void test_damaged(void **state)
{
    struct rng r = rng_init(418);
    const char *path = unit_path("damaged"), *manifest = unit_path("damaged/MANIFEST");
    struct deltafs_repair_options options = {.struct_size = sizeof options};
    struct model m;
    deltafs_dir *d;
    size_t n;

    (void)state;
    make_three(&m, path, &r);
    uint8_t *text = unit_load(manifest, &n);
    size_t first = find_pivots(text, n, 0), second = find_pivots(text, n, first);
    unit_poke(manifest, first + 14, text[first + 14] == '1' ? '2' : '1');
    CHECK_IS(deltafs_open(path, NULL, &d), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(deltafs_errmsg(NULL), manifest) != NULL);
    CHECK_IS(deltafs_repair(path, &options, NULL, NULL), DELTAFS_OK);
    model_check_directory(&m, path, &r);
    unit_poke(manifest, second + 3, 'x');
    CHECK_IS(deltafs_repair(path, &options, NULL, NULL), DELTAFS_OK);
    model_check_directory(&m, path, &r);
    free(text);
    model_fini(&m);
}

/* An epoch whose lines cannot be written, or not both: its pivots go with it, and the next epoch is placed by those
 * that are stored, though some of its records may have been placed already. */
static void test_uncommitted(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < 24; k++) {
        const char *path = unit_path("uncommitted");
        struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
        int failed = 0;
        unit_io_begin();
        deltafs_dir *d = create(path, "range", "5", k % 2 ? "async" : "wait");
        unit_io_fail(OP_WRITE, "MANIFEST", k / 2, 1, ENOSPC);
        for (uint64_t epoch = 0; epoch < 6; epoch++) {
            for (uint64_t i = 0; i < 500; i++)
                CHECK_CALL(d, deltafs_append(d, epoch * 100000 + i, &i, 8), DELTAFS_OK);
            failed += deltafs_epoch_end(d, epoch) != DELTAFS_OK;
        }
        failed += deltafs_close(d) != DELTAFS_OK;
        CHECK_IS(unit_io_failures(), 1);
        unit_io_end();
        CHECK(failed < 2);
        d = unit_open(path);
        CHECK_CALL(d, deltafs_verify(d, NULL, NULL, &counts), DELTAFS_OK);
        CHECK(counts.records >= 4 * 500 + (failed ? 0 : 1000));
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        unit_remove(path);
    }
}

static void note(int status, const char *message, void *arg)
{
    (void)status;
    *(int *)arg |= strstr(message, "a line of pivots is lost") != NULL;
}

/* A line is lost in both: the epochs behind it are not taken for what they are not. */
static void test_lost(void **state)
{
    struct rng r = rng_init(419);
    const char *path = unit_path("lost");
    struct deltafs_repair_options options = {.struct_size = sizeof options, .has_label = 1, .label = 1};
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
    struct model m;
    struct error e;
    struct io io = io_default();
    struct io_file file;
    size_t n;
    int is_said = 0;

    (void)state;
    make_three(&m, path, &r);
    uint8_t *text = unit_load(unit_path("lost/MANIFEST"), &n);
    size_t second = find_pivots(text, n, find_pivots(text, n, 0));
    unit_cut_manifest(path, second);
    CHECK_IS(deltafs_repair(path, &options, note, &is_said), DELTAFS_ERR_NOT_FOUND);
    CHECK(is_said);
    /* Others in its place: verify finds records that a reader would not. */
    const uint64_t others[] = {1, 2, 3, 4};
    uint64_t size = second;
    CHECK_IS(io_file_open(&io, unit_path("lost/MANIFEST"), O_RDWR, &file, &e), DELTAFS_OK);
    CHECK_IS(manifest_append_pivots(&file, &size, others, 4, 0, &e), DELTAFS_OK);
    const struct manifest_epoch epoch = {1, 1000, 16000, 1, 0, 0};
    CHECK_IS(manifest_append_epoch(&file, &size, 1, &epoch, 0, &e), DELTAFS_OK);
    CHECK_IS(io_file_close(&file, &e), DELTAFS_OK);
    deltafs_dir *d = unit_open(path);
    CHECK_CALL(d, deltafs_verify(d, NULL, NULL, &counts), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    free(text);
    model_fini(&m);
}

/* ---- Errors ---- */

static void refused(const char *keys, const char *partitions, const char *say)
{
    deltafs_options *o = unit_options("partitioner", "range", "keys", keys, "partitions", partitions, NULL);
    deltafs_dir *d;

    CHECK_IS(deltafs_create(unit_path("refused"), o, &d), DELTAFS_ERR_OPTION);
    CHECK(strstr(deltafs_errmsg(NULL), say) != NULL);
    CHECK(!unit_exists(unit_path("refused")));
    deltafs_options_destroy(o);
}

static void test_refused(void **state)
{
    deltafs_options *o = unit_options("partitioner", "hash", NULL);
    deltafs_dir *d;

    (void)state;
    refused("bytes", "4", "keys=bytes");
    refused("u64", "65537", "65536");
    CHECK_IS(deltafs_close(create(unit_path("made"), "range", "4", "wait")), DELTAFS_OK);
    CHECK_IS(deltafs_reopen(unit_path("made"), o, &d), DELTAFS_ERR_OPTION);
    CHECK(strstr(deltafs_errmsg(NULL), "was made with 'range'") != NULL);
    deltafs_options_destroy(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_partition),   cmocka_unit_test(test_sample),
        cmocka_unit_test(test_pack_memory), cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_choose),      cmocka_unit_test(test_random),
        cmocka_unit_test(test_balance),     cmocka_unit_test(test_balance_of_nothing),
        cmocka_unit_test(test_drift),       cmocka_unit_test(test_reads),
        cmocka_unit_test(test_damaged),     cmocka_unit_test(test_uncommitted),
        cmocka_unit_test(test_lost),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_select),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? 0 : 1;
}
