/* commit=async: an epoch's end returns while the epoch is still being written, and the next call commits it, or gives
 * it up together with what was appended since. What may happen when is made certain by files that wait. */
#include <errno.h>
#include "directory/format/index.h"
#include "directory/format/manifest.h"
#include "unit_help.h"
#include "unit_io.h"

/* A writer with its model: what is committed, and what is pending behind it. */
struct async {
    deltafs_dir *d;
    struct model m;
    int is_pending;
    uint64_t pending_label;
    size_t pending_end; /* records of the pending epoch end here */
};

static struct async begin(const char *path, const char *threads, const char *sync, const char *partitions)
{
    struct async a = {0};

    unit_io_begin();
    a.d = unit_create(path, unit_options("commit", "async", "threads", threads, "sync", sync, "partitions", partitions,
                                         "memory", "8M", "value_size", "16", NULL));
    return a;
}

static void append(struct async *a, struct rng *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        CHECK_CALL(a->d, model_append(&a->m, a->d, rng_below(r, 3000), 16), DELTAFS_OK);
}

/* The pending epoch turned out to be committed; what was appended since stays. */
static void kept(struct async *a)
{
    size_t count = a->m.count;

    if (!a->is_pending)
        return;
    a->m.count = a->pending_end;
    model_keep(&a->m, a->pending_label);
    a->m.count = count;
    a->is_pending = 0;
}

/* It was discarded, with what was appended since. */
static void lost(struct async *a)
{
    CHECK(a->is_pending);
    model_discard(&a->m);
    a->is_pending = 0;
}

static void ended(struct async *a, uint64_t label)
{
    kept(a);
    a->is_pending = 1;
    a->pending_label = label;
    a->pending_end = a->m.count;
}

/* What a reader finds that opens the directory now. */
static void check_now(struct async *a, const char *path, struct rng *r)
{
    deltafs_dir *d = unit_open(path);

    model_check_all(&a->m, d, r);
    model_check_scan(&a->m, d, NULL);
    model_check_facts(&a->m, d);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void finish(struct async *a)
{
    unit_io_end();
    model_fini(&a->m);
}

static void check_message(const char *text, uint64_t label)
{
    char want[64];

    snprintf(want, sizeof want, "the epoch labelled %llu", (unsigned long long)label);
    if (!strstr(text, want))
        fail_msg("seed %llu: no '%s' in '%s'", (unsigned long long)unit_seed, want, text);
}

/* The end returns although nothing can be written; until the next call the epoch is not there, and then it is. */
static void test_returns_early(void **state)
{
    static const char *const threads[] = {"1", "2"};
    struct rng r = rng_init(231);
    const char *path = unit_path("early");

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct async a = begin(path, threads[i], "none", "3");
        for (uint64_t epoch = 1; epoch < 6; epoch++) {
            append(&a, &r, 2000);
            unit_io_hold("p0000");
            /* The previous epoch was waited for, so that this end has nothing to wait for. */
            CHECK_CALL(a.d, deltafs_epoch_end(a.d, epoch), DELTAFS_OK);
            ended(&a, epoch);
            check_now(&a, path, &r);
            append(&a, &r, 500);
            check_now(&a, path, &r);
            unit_io_release();
            check_now(&a, path, &r); /* written or not, it is not committed */
            CHECK_CALL(a.d, deltafs_epoch_wait(a.d), DELTAFS_OK);
            kept(&a);
            check_now(&a, path, &r);
            CHECK_CALL(a.d, deltafs_epoch_wait(a.d), DELTAFS_OK);
        }
        CHECK_CALL(a.d, deltafs_epoch_end(a.d, 6), DELTAFS_OK);
        ended(&a, 6);
        CHECK_IS(deltafs_close(a.d), DELTAFS_OK);
        kept(&a);
        check_now(&a, path, &r);
        finish(&a);
        unit_remove(path);
    }
}

/* Each end commits the epoch before; the close the last one; with any number of threads. */
static void test_next_commits(void **state)
{
    static const char *const threads[] = {"0", "1", "2"};
    struct rng r = rng_init(232);
    const char *path = unit_path("next");

    (void)state;
    for (int i = 0; i < 6; i++) {
        struct async a = begin(path, threads[i % 3], i < 3 ? "commit" : "none", i % 2 ? "1" : "5");
        unit_io_slow(OP_WRITE, i == 4 ? 200 : 0);
        CHECK_CALL(a.d, deltafs_epoch_wait(a.d), DELTAFS_OK);
        for (uint64_t epoch = 0; epoch < 6; epoch++) {
            append(&a, &r, epoch == 3 ? 0 : epoch == 4 ? 120000 : 2000);
            CHECK_CALL(a.d, deltafs_epoch_end(a.d, 7 * epoch), DELTAFS_OK);
            ended(&a, 7 * epoch);
            check_now(&a, path, &r);
        }
        append(&a, &r, i % 2 ? 10 : 0);
        CHECK_IS(deltafs_close(a.d), i % 2 ? DELTAFS_ERR_UNCOMMITTED : DELTAFS_OK);
        a.m.count = i % 2 ? a.m.count - 10 : a.m.count;
        kept(&a);
        check_now(&a, path, &r);
        finish(&a);
        unit_remove(path);
    }
}

/* Labels must be greater than the pending one's; one that is refused commits the pending epoch first. */
static void test_labels(void **state)
{
    struct rng r = rng_init(233);
    const char *path = unit_path("labels");
    struct async a = begin(path, "2", "none", "1");

    (void)state;
    append(&a, &r, 100);
    CHECK_CALL(a.d, deltafs_epoch_end(a.d, 10), DELTAFS_OK);
    ended(&a, 10);
    CHECK_CALL(a.d, deltafs_append(a.d, 1, "a value of 16 by", 16), DELTAFS_OK);
    CHECK_IS(deltafs_epoch_end(a.d, 10), DELTAFS_ERR_LABEL);
    CHECK(strstr(deltafs_errmsg(a.d), "(1) are discarded"));
    kept(&a);
    check_now(&a, path, &r);
    CHECK_IS(deltafs_epoch_end(a.d, 9), DELTAFS_ERR_LABEL);
    append(&a, &r, 100);
    CHECK_CALL(a.d, deltafs_epoch_end(a.d, 11), DELTAFS_OK);
    ended(&a, 11);
    check_now(&a, path, &r);
    CHECK_CALL(a.d, deltafs_epoch_wait(a.d), DELTAFS_OK);
    kept(&a);
    CHECK_IS(deltafs_epoch_end(a.d, 11), DELTAFS_ERR_LABEL);
    /* The label of an epoch that is discarded is free again. */
    append(&a, &r, 100);
    unit_io_fail(OP_WRITE, "p0000", 0, 1, EIO);
    CHECK_CALL(a.d, deltafs_epoch_end(a.d, 20), DELTAFS_OK);
    ended(&a, 20);
    CHECK_IS(deltafs_epoch_end(a.d, 20), DELTAFS_ERR_IO);
    check_message(deltafs_errmsg(a.d), 20);
    lost(&a);
    append(&a, &r, 100);
    CHECK_CALL(a.d, deltafs_epoch_end(a.d, 12), DELTAFS_OK);
    ended(&a, 12);
    CHECK_IS(deltafs_close(a.d), DELTAFS_OK);
    kept(&a);
    check_now(&a, path, &r);
    finish(&a);
    unit_remove(path);
}

/* A cancel is of the epoch that fills, not of the one that is pending; and that comes to light at the end after. */
static void test_cancel(void **state)
{
    static const char *const threads[] = {"0", "1", "2"};
    struct rng r = rng_init(234);
    const char *path = unit_path("cancel");

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct async a = begin(path, threads[i], "none", "2");
        append(&a, &r, 1000);
        CHECK_CALL(a.d, deltafs_epoch_end(a.d, 1), DELTAFS_OK);
        ended(&a, 1);
        append(&a, &r, 1000);
        CHECK_CALL(a.d, deltafs_epoch_cancel(a.d, "no input"), DELTAFS_OK);
        CHECK_CALL(a.d, deltafs_epoch_end(a.d, 2), DELTAFS_OK); /* commits the first */
        ended(&a, 2);
        check_now(&a, path, &r);
        append(&a, &r, 1000);
        CHECK_IS(i == 2 ? deltafs_epoch_wait(a.d) : deltafs_epoch_end(a.d, 3), DELTAFS_ERR_CANCELLED);
        CHECK(strstr(deltafs_errmsg(a.d), "no input"));
        check_message(deltafs_errmsg(a.d), 2);
        lost(&a);
        check_now(&a, path, &r);
        /* Cancelled while another is pending, which a wait then commits. */
        append(&a, &r, 1000);
        CHECK_CALL(a.d, deltafs_epoch_end(a.d, 4), DELTAFS_OK);
        ended(&a, 4);
        CHECK_CALL(a.d, deltafs_epoch_cancel(a.d, "again"), DELTAFS_OK);
        CHECK_CALL(a.d, deltafs_epoch_wait(a.d), DELTAFS_OK);
        kept(&a);
        append(&a, &r, 100);
        CHECK_CALL(a.d, deltafs_epoch_end(a.d, 5), DELTAFS_OK);
        ended(&a, 5);
        CHECK_IS(deltafs_close(a.d), DELTAFS_ERR_CANCELLED);
        check_message(deltafs_errmsg(NULL), 5);
        lost(&a);
        check_now(&a, path, &r);
        finish(&a);
        unit_remove(path);
    }
}

enum call { CALL_END, CALL_WAIT, CALL_CLOSE, CALLS };

/* What goes wrong with the late epoch. */
static const struct late {
    enum unit_op op;
    const char *name;
    int errnum, status;
} lates[] = {
    {OP_WRITE, ".data", EIO, DELTAFS_ERR_IO},
    {OP_WRITE, ".index", EIO, DELTAFS_ERR_IO},
    {OP_WRITE, ".data", ENOSPC, DELTAFS_ERR_NO_SPACE},
    {OP_SYNC, ".data", EIO, DELTAFS_ERR_IO},
    {OP_SYNC, ".index", EIO, DELTAFS_ERR_IO},
    {OP_WRITE, "MANIFEST", EIO, DELTAFS_ERR_IO},
    {OP_WRITE, "MANIFEST", ENOSPC, DELTAFS_ERR_NO_SPACE},
    {OP_SYNC, "MANIFEST", EIO, DELTAFS_ERR_IO},
};

static void check_late(const struct late *late, enum call call, const char *threads, uint32_t records, struct rng *r)
{
    const char *path = unit_path("late");
    struct async a = begin(path, threads, "commit", "2");
    const char *message;
    int status;

    append(&a, r, 500);
    CHECK_CALL(a.d, deltafs_epoch_end(a.d, 1), DELTAFS_OK);
    ended(&a, 1);
    append(&a, r, records);
    CHECK_CALL(a.d, deltafs_epoch_wait(a.d), DELTAFS_OK);
    kept(&a);
    unit_io_fail(late->op, late->name, 0, 1, late->errnum);
    append(&a, r, records / 2);
    CHECK_CALL(a.d, deltafs_epoch_end(a.d, 22), DELTAFS_OK);
    ended(&a, 22);
    append(&a, r, records);
    status = call == CALL_END    ? deltafs_epoch_end(a.d, 33)
             : call == CALL_WAIT ? deltafs_epoch_wait(a.d)
                                 : deltafs_close(a.d);
    message = deltafs_errmsg(call == CALL_CLOSE ? NULL : a.d);
    CHECK_IS(unit_io_failures(), 1);
    CHECK_CALL(call == CALL_CLOSE ? NULL : a.d, status, late->status);
    CHECK(strstr(message, late->name));
    check_message(message, 22);
    lost(&a);
    check_now(&a, path, r);
    if (call != CALL_CLOSE) {
        /* Nothing to wait for; and both can be written again, under labels of before. */
        CHECK_CALL(a.d, deltafs_epoch_wait(a.d), DELTAFS_OK);
        check_now(&a, path, r);
        for (uint64_t label = 22; label <= 33; label += 11) {
            append(&a, r, records);
            CHECK_CALL(a.d, deltafs_epoch_end(a.d, label), DELTAFS_OK);
            ended(&a, label);
            check_now(&a, path, r);
        }
        CHECK_IS(deltafs_close(a.d), DELTAFS_OK);
        kept(&a);
        check_now(&a, path, r);
    }
    finish(&a);
    unit_remove(path);
}

static void test_late_errors(void **state)
{
    static const char *const threads[] = {"0", "1", "2"};
    struct rng r = rng_init(235);

    (void)state;
    for (size_t i = 0; i < sizeof lates / sizeof lates[0]; i++)
        for (int call = 0; call < CALLS; call++)
            for (int t = 0; t < 3; t++)
                check_late(&lates[i], (enum call)call, threads[t], 300, &r);
    /* Epochs of many memtables: the fault meets the worker or the flusher amid the next epoch's appends. */
    for (int i = 0; i < 6; i++)
        check_late(&lates[i % 3], (enum call)(i / 2), threads[i % 3], 130000, &r);
}

/* In turns of all kinds, with a disk that fails now and then. */
static void test_random(void **state)
{
    struct rng r = rng_init(236);
    const char *path = unit_path("turns");

    (void)state;
    for (int round = 0; round < 5; round++) {
        static const char *const threads[] = {"0", "1", "2", "2"};
        struct async a = begin(path, threads[round % 4], round % 3 ? "none" : "commit", round % 2 ? "1" : "4");
        uint64_t label = 0;
        int cancelled = 0, pending_cancelled = 0;
        for (int turn = 0; turn < 25; turn++) {
            append(&a, &r, rng_below(&r, 25) == 0 ? 100000 : (uint32_t)rng_below(&r, 500));
            if (rng_below(&r, 4) == 0)
                unit_io_fail(rng_below(&r, 2) ? OP_WRITE : OP_SYNC, rng_below(&r, 3) ? "p0000" : "MANIFEST",
                             rng_below(&r, 3), 1, EIO);
            if (rng_below(&r, 8) == 0) {
                CHECK_CALL(a.d, deltafs_epoch_cancel(a.d, "cancelled"), DELTAFS_OK);
                cancelled = 1;
            }
            int is_end = rng_below(&r, 3) > 0, had = a.is_pending;
            int status = is_end ? deltafs_epoch_end(a.d, label + 1) : deltafs_epoch_wait(a.d);
            if (status == DELTAFS_OK) {
                CHECK(!had || !pending_cancelled);
                if (had)
                    kept(&a);
                if (is_end) {
                    ended(&a, ++label);
                    pending_cancelled = cancelled;
                    cancelled = 0;
                }
            } else {
                CHECK(had);
                CHECK_CALL(a.d, status,
                           pending_cancelled && status != DELTAFS_ERR_IO ? DELTAFS_ERR_CANCELLED : DELTAFS_ERR_IO);
                check_message(deltafs_errmsg(a.d), label);
                lost(&a);
                cancelled = 0;
                label--; /* free again */
            }
            unit_io_fail(OP_OPEN, "", 0, 0, 0);
            check_now(&a, path, &r);
        }
        CHECK_CALL(a.d, deltafs_epoch_cancel(a.d, "the rest"), DELTAFS_OK);
        int status = deltafs_epoch_end(a.d, label + 1);
        if (status == DELTAFS_OK && a.is_pending)
            kept(&a);
        else if (status != DELTAFS_OK)
            lost(&a);
        deltafs_close(a.d);
        model_discard(&a.m);
        check_now(&a, path, &r);
        finish(&a);
        unit_remove(path);
    }
}

/* Without commit=async there is never anything to wait for. */
static void test_wait_otherwise(void **state)
{
    const char *path = unit_path("wait");
    deltafs_dir *d = unit_create(path, unit_options(NULL, NULL));

    (void)state;
    rng_init(237);
    CHECK_CALL(d, deltafs_epoch_wait(d), DELTAFS_OK);
    CHECK_CALL(d, deltafs_append(d, 1, "x", 1), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_wait(d), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_wait(d), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    d = unit_open(path);
    CHECK_IS(deltafs_epoch_wait(d), DELTAFS_ERR_MODE);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(deltafs_epoch_wait(NULL), DELTAFS_ERR_INVALID);
}

/* A reader opens the directory while the writer gives an epoch up, which cuts it off the logs. (The reader took what
 * was truncated after it had asked for the size for damage.) */
static void test_reading_while_giving_up(void **state)
{
    struct rng r = rng_init(238);
    const char *path = unit_path("cut");
    static const char *const logs[] = {"cut/00/p00000000.index", "cut/00/p00000000.data"};
    size_t size[2], n;

    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        struct async a = begin(path, "0", "none", "1");
        append(&a, &r, 1000);
        CHECK_CALL(a.d, deltafs_epoch_end(a.d, 1), DELTAFS_OK);
        CHECK_CALL(a.d, deltafs_epoch_wait(a.d), DELTAFS_OK);
        model_keep(&a.m, 1);
        for (int i = 0; i < 2; i++)
            free(unit_load(unit_path("%s", logs[i]), &size[i]));
        append(&a, &r, 1000);
        CHECK_CALL(a.d, deltafs_epoch_cancel(a.d, "no more"), DELTAFS_OK);
        CHECK_IS(deltafs_epoch_end(a.d, 2), DELTAFS_OK);
        /* What it may have written by then. */
        uint8_t *bytes = unit_load(unit_path("%s", logs[cut]), &n);
        bytes = realloc(bytes, n + 100000);
        CHECK(bytes != NULL);
        memset(bytes + n, 'u', 100000);
        unit_save(unit_path("%s", logs[cut]), bytes, n + 100000);
        free(bytes);
        unit_io_shrink(logs[cut], size[cut]);
        model_discard(&a.m);
        check_now(&a, path, &r);
        CHECK_IS(deltafs_close(a.d), DELTAFS_ERR_CANCELLED);
        check_now(&a, path, &r);
        finish(&a);
        unit_remove(path);
    }
}

/* How many epochs partition 0 has something of. */
static uint64_t count_seen(const char *path)
{
    struct io io = io_default();
    struct manifest m = {0};
    struct index_reader index = {.file.fd = -1};
    struct error e, tail;
    char log[600];

    snprintf(log, sizeof log, "%s/00/p00000000.index", path);
    CHECK_IS(manifest_read(&io, path, &m, &e), DELTAFS_OK);
    CHECK_IS(
        index_reader_open(&index, &io, log, 0, m.uuid, (uint32_t)m.epoch_count, (uint32_t)m.epoch_count, 0, &tail, &e),
        DELTAFS_OK);
    uint64_t seen = index.seen.epochs;
    index_reader_close(&index, &e);
    manifest_fini(&m);
    return seen;
}

/* Records of keys that take as much memory as keys do. */
static void append_spread(deltafs_dir *d, struct rng *r, uint32_t n)
{
    uint8_t value[16] = {0};

    for (uint32_t i = 0; i < n; i++)
        CHECK_CALL(d, deltafs_append(d, rng_next(r), value, sizeof value), DELTAFS_OK);
}

/* A job that dies while an epoch awaits its commit, and has segments of the next one in its logs already. (They were
 * taken for proof that the manifest had lost a line, and the directory was not opened again.) */
static void test_segments_behind(void **state)
{
    const char *path = unit_path("behind"), *copy = unit_path("behind_copy");
    struct rng r = rng_init(239);
    deltafs_dir *d = NULL;
    struct deltafs_verify_counts stat = {.struct_size = sizeof stat};
    uint64_t last;

    (void)state;
    for (int has_first = 0; has_first < 2; has_first++) {
        struct async a = begin(path, "0", "none", "2");
        for (uint64_t epoch = !has_first; epoch < 2; epoch++) {
            append(&a, &r, 1000);
            CHECK_CALL(a.d, deltafs_epoch_end(a.d, 10 * epoch + 10), DELTAFS_OK);
            ended(&a, 10 * epoch + 10);
        }
        for (int i = 0; i < 60 && count_seen(path) < 2 + (uint64_t)has_first; i++)
            append_spread(a.d, &r, 50000);
        CHECK_IS(count_seen(path), 2 + (uint64_t)has_first);
        unit_copy(path, copy);
        d = unit_open(copy);
        CHECK_CALL(d, deltafs_verify(d, NULL, NULL, &stat), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK_IS(deltafs_reopen(copy, NULL, &d), DELTAFS_OK);
        CHECK_IS(deltafs_last_label(d, &last), has_first ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK_IS(deltafs_close(a.d), DELTAFS_ERR_UNCOMMITTED);
        finish(&a);
        unit_remove(path);
        unit_remove(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_returns_early),   cmocka_unit_test(test_next_commits),
        cmocka_unit_test(test_labels),          cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_late_errors),     cmocka_unit_test(test_random),
        cmocka_unit_test(test_wait_otherwise),  cmocka_unit_test(test_reading_while_giving_up),
        cmocka_unit_test(test_segments_behind),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
