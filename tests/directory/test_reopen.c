/* Going on with a directory that is there, after a close, a crash or damage at its ends; who may; and readers
 * meanwhile. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "unit_help.h"
#include "unit_io.h"

struct shape {
    const char *keys, *value_size, *partitions, *threads, *commit, *sync;
    uint32_t records;
    const char *place;
};

static const struct shape shapes[] = {
    {"u64", "40", "1", "0", "wait", "none", 3000, "partitioned"},
    {"u64", "any", "3", "2", "wait", "commit", 2000, "partitioned"},
    {"u64", "0", "5", "1", "async", "close", 500, "partitioned"},
    {"u64", "4000", "2", "2", "async", "none", 2500, "partitioned"}, /* several runs and segments */
    {"bytes", "any", "2", "0", "wait", "none", 700, "partitioned"},
    {"u64", "40", "2", "0", "async", "commit", 1500, "local"},
    {"bytes", "any", "3", "2", "wait", "close", 700, "local"},
};

#define SHAPES (sizeof shapes / sizeof shapes[0])

static char names[5000][20];

static deltafs_options *options(const struct shape *s)
{
    return unit_options("memory", "8M", "threads", s->threads, "commit", s->commit, "sync", s->sync, NULL);
}

static deltafs_dir *create(const struct shape *s, const char *path)
{
    deltafs_options *o = options(s);

    CHECK_IS(deltafs_options_set(o, "keys", s->keys), DELTAFS_OK);
    CHECK_IS(deltafs_options_set(o, "value_size", s->value_size), DELTAFS_OK);
    CHECK_IS(deltafs_options_set(o, "partitions", s->partitions), DELTAFS_OK);
    CHECK_IS(deltafs_options_set(o, "layout", s->place), DELTAFS_OK);
    return unit_create(path, o);
}

static int try_reopen(const char *path, deltafs_options *o, deltafs_dir **d)
{
    int status = deltafs_reopen(path, o, d);

    deltafs_options_destroy(o);
    return status;
}

static deltafs_dir *reopen(const struct shape *s, const char *path)
{
    deltafs_dir *d = NULL;

    CHECK_IS(try_reopen(path, options(s), &d), DELTAFS_OK);
    return d;
}

static void append(const struct shape *s, struct model *m, deltafs_dir *d, struct rng *r)
{
    for (uint32_t i = 0; i < s->records; i++) {
        uint32_t size = s->value_size[0] == 'a' ? (uint32_t)rng_below(r, 100) : (uint32_t)atoi(s->value_size);
        if (s->keys[0] == 'u') {
            CHECK_CALL(d, model_append(m, d, rng_below(r, 5000), size), DELTAFS_OK);
        } else {
            const char *name = names[rng_below(r, 5000)];
            CHECK_CALL(d, model_append_bytes(m, d, name, strlen(name), size), DELTAFS_OK);
        }
    }
}

static void write_epoch(const struct shape *s, struct model *m, deltafs_dir *d, struct rng *r, uint64_t label)
{
    append(s, m, d, r);
    CHECK_CALL(d, deltafs_epoch_end(d, label), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_wait(d), DELTAFS_OK);
    model_keep(m, label);
}

static void check_handle(const struct shape *s, struct model *m, deltafs_dir *d)
{
    struct rng r = {9};

    if (s->keys[0] == 'u')
        model_check_all(m, d, &r);
    else
        for (int i = 0; i < 5000; i += 7)
            model_check_name(m, d, names[i], strlen(names[i]), NULL);
    model_check_scan(m, d, NULL);
    model_check_facts(m, d);
}

static void check(const struct shape *s, struct model *m, const char *path)
{
    deltafs_dir *d = unit_open(path);

    check_handle(s, m, d);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void check_last(deltafs_dir *d, uint64_t label)
{
    uint64_t last;

    CHECK_CALL(d, deltafs_last_label(d, &last), DELTAFS_OK);
    CHECK_IS(last, label);
    CHECK_CALL(d, deltafs_epoch_end(d, label), DELTAFS_ERR_LABEL);
}

static struct model model_of(const struct shape *s)
{
    return (struct model){.is_bytes = s->keys[0] == 'b'};
}

/* Closed and opened again and again; once without writing anything. */
static void test_after_close(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        const struct shape *s = &shapes[i];
        const char *path = unit_path("close%zu", i);
        struct rng r = rng_init(700 + i);
        struct model m = model_of(s);
        deltafs_dir *d = create(s, path);
        for (uint64_t round = 0; round < 4; round++) {
            write_epoch(s, &m, d, &r, 10 * round + 1);
            write_epoch(s, &m, d, &r, 10 * round + 2);
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
            CHECK(!unit_exists(unit_path("close%zu/LEASE", i)));
            check(s, &m, path);
            d = reopen(s, path);
            check_last(d, 10 * round + 2);
            check(s, &m, path);
            if (round == 2) {
                CHECK_IS(deltafs_close(d), DELTAFS_OK);
                check(s, &m, path);
                d = reopen(s, path);
            }
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        check(s, &m, path);
        model_fini(&m);
    }
}

/* A copy of the folder while it is open is what a crash leaves: all that was written, and nothing closed. */
static void test_after_crash(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        const struct shape *s = &shapes[i];
        struct rng r = rng_init(720 + i);
        struct model m = model_of(s);
        deltafs_dir *d = create(s, unit_path("crash%zu", i));
        for (uint64_t round = 0; round < 5; round++) {
            if (round != 1)
                write_epoch(s, &m, d, &r, round);
            append(s, &m, d, &r);
            unit_copy(unit_path("crash%zu", i), unit_path("crash%zu", i + 100 * (round + 1)));
            model_discard(&m);
            CHECK_CALL(d, deltafs_epoch_cancel(d, "enough"), DELTAFS_OK);
            CHECK_CALL(d, deltafs_epoch_end(d, 100), s->commit[0] == 'a' ? DELTAFS_OK : DELTAFS_ERR_CANCELLED);
            CHECK_CALL(d, deltafs_epoch_wait(d), s->commit[0] == 'a' ? DELTAFS_ERR_CANCELLED : DELTAFS_OK);
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
            /* On with the copy: the writer that left its lease there has no lock on it. */
            const char *path = unit_path("crash%zu", i + 100 * (round + 1));
            check(s, &m, path);
            d = reopen(s, path);
            if (round > 1)
                check_last(d, round);
            write_epoch(s, &m, d, &r, round + 50);
            check(s, &m, path);
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
            check(s, &m, path);
            model_fini(&m);
            m = model_of(s);
            unit_remove(unit_path("crash%zu", i));
            d = create(s, unit_path("crash%zu", i));
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        model_fini(&m);
    }
}

/* A line of the manifest that is incomplete goes; logs that were never begun are begun; a log that ends too early, or
 * is not there, is not gone on with, and nothing is changed. */
static void test_ends(void **state)
{
    const struct shape *s = &shapes[1];
    const char *path = unit_path("ends"), *manifest = unit_path("ends/MANIFEST"),
               *log = unit_path("ends/01/p00000001.data");
    const char *index = unit_path("ends/01/p00000001.index"), *lease = unit_path("ends/LEASE");
    struct rng r = rng_init(740);
    struct model m = model_of(s);
    deltafs_dir *d = create(s, path);
    size_t n;

    (void)state;
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK(unlink(log) == 0 && truncate(index, 7) == 0);
    d = reopen(s, path);
    write_epoch(s, &m, d, &r, 3);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    uint8_t *bytes = unit_load(manifest, &n);
    unit_cut_manifest(path, n - 5);
    d = reopen(s, path);
    write_epoch(s, &m, d, &r, 4);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    check(s, &m, path);
    free(bytes);

    const char *const logs[] = {log, index};
    for (int i = 0; i < 2; i++) {
        uint8_t *before = unit_load(manifest, &n);
        size_t size;
        bytes = unit_load(logs[i], &size);
        unit_save(logs[i], bytes, size / 3);
        d = NULL;
        CHECK_IS(try_reopen(path, options(s), &d), DELTAFS_ERR_DAMAGED);
        CHECK(strstr(deltafs_errmsg(NULL), logs[i]) && d == NULL && !unit_exists(lease));
        unit_save(logs[i], bytes, size);
        check(s, &m, path);
        size_t now;
        uint8_t *after = unit_load(manifest, &now);
        CHECK(now == n && memcmp(after, before, n) == 0);
        free(after);
        free(bytes);
        free(before);
    }
    d = reopen(s, path);
    write_epoch(s, &m, d, &r, 5);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    check(s, &m, path);
    model_fini(&m);
}

/* What a directory was made with cannot be asked to be other. */
static void test_options(void **state)
{
    static const char *const wrong[][2] = {
        {"partitions", "4"}, {"keys", "bytes"}, {"value_size", "8"}, {"schema", "x:f4,y:f4,z:f4"}};
    static const char *const right[][2] = {{"partitions", "3"}, {"value_size", "12"}, {"schema", "x:f4,y:f8"}};
    const char *path = unit_path("options");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "3", "schema", "x:f4,y:f8", NULL));

    (void)state;
    CHECK_CALL(d, deltafs_append(d, 7, "abcdefghijkl", 12), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 0), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_IS(try_reopen(path, unit_options(wrong[i][0], wrong[i][1], NULL), &d), DELTAFS_ERR_OPTION);
        CHECK(strstr(deltafs_errmsg(NULL), wrong[i][0]) &&
              strstr(deltafs_errmsg(NULL), i < 3 ? "leave it out" : "or use another directory"));
    }
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        CHECK_IS(try_reopen(path, unit_options(right[i][0], right[i][1], NULL), &d), DELTAFS_OK);
        CHECK_CALL(d, deltafs_append(d, 7, "abcdefghijk", 11), DELTAFS_ERR_SIZE);
        CHECK_CALL(d, deltafs_epoch_end(d, 9), DELTAFS_ERR_SIZE);
        CHECK_CALL(d, deltafs_append(d, 7, "abcdefghijkl", 12), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_end(d, 1 + i), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    CHECK_IS(deltafs_reopen(unit_path("nowhere"), NULL, &d), DELTAFS_ERR_NOT_FOUND);
    /* What is there is not for deltafs_create to make, even if it has no manifest: a job died that was making it. */
    CHECK(mkdir(unit_path("half"), 0777) == 0 && mkdir(unit_path("half/00"), 0777) == 0);
    CHECK_IS(deltafs_reopen(unit_path("half"), NULL, &d), DELTAFS_ERR_NOT_DELTAFS);
    CHECK(strstr(deltafs_errmsg(NULL), "creation was interrupted"));
    /* Nobody is told to remove an ordinary folder. */
    CHECK_IS(deltafs_reopen(unit_folder, NULL, &d), DELTAFS_ERR_NOT_DELTAFS);
    CHECK(!strstr(deltafs_errmsg(NULL), "remove"));
    CHECK_IS(deltafs_reopen("", NULL, &d), DELTAFS_ERR_INVALID);
}

/* The message on such an option says what was given, by whom, and what the directory has. (It named the option alone;
 * and keys=u64, the default, passed where keys were bytes.) */
static void test_options_say_why(void **state)
{
    static const struct {
        const char *name, *given, *is;
    } wrong[] = {{"keys", "u64", "was made with 'bytes'"},
                 {"partitions", "4", "was made with '3'"},
                 {"value_size", "8", "was made with 'any'"},
                 {"schema", "x:f4", "was made without one"}};
    const char *path = unit_path("why");
    deltafs_dir *d = unit_create(path, unit_options("partitions", "3", "keys", "bytes", NULL));
    char given[200], variable[64];

    (void)state;
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(given, sizeof given, "option %s: '%s' is given, but", wrong[i].name, wrong[i].given);
        CHECK_IS(try_reopen(path, unit_options(wrong[i].name, wrong[i].given, NULL), &d), DELTAFS_ERR_OPTION);
        CHECK(strstr(deltafs_errmsg(NULL), given) && strstr(deltafs_errmsg(NULL), path) &&
              strstr(deltafs_errmsg(NULL), wrong[i].is));
        snprintf(variable, sizeof variable, "DELTAFS_%s", wrong[i].name);
        for (char *c = variable; *c; c++)
            *c = (char)toupper((unsigned char)*c);
        snprintf(given, sizeof given, "option %s: '%s' is given by the environment variable %s, but", wrong[i].name,
                 wrong[i].given, variable);
        setenv(variable, wrong[i].given, 1);
        CHECK_IS(deltafs_reopen(path, NULL, &d), DELTAFS_ERR_OPTION);
        CHECK(strstr(deltafs_errmsg(NULL), given) && strstr(deltafs_errmsg(NULL), wrong[i].is));
        /* Repairing does not ask for any of these. */
        CHECK_IS(deltafs_repair(path, NULL, NULL, NULL), DELTAFS_OK);
        unsetenv(variable);
    }
    CHECK_IS(try_reopen(path, unit_options("keys", "bytes", "partitions", "auto", NULL), &d), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void save_lease(const char *path, const char *host, const char *job, long age)
{
    char line[300];
    int n = snprintf(line, sizeof line,
                     "host=%s pid=1 job=%s session=01234567-89ab-4def-8123-456789abcdef renewed=%020llu\n", host, job,
                     (unsigned long long)(time(NULL) - age));

    unit_save(path, line, (size_t)n);
}

static int is_free(const char *path, const char *lease)
{
    deltafs_dir *d = NULL;
    int status = try_reopen(path, unit_options("lease", lease, NULL), &d);

    CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_BUSY);
    if (status == DELTAFS_OK)
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    else
        CHECK(strstr(deltafs_errmsg(NULL), "is writing the directory"));
    return status == DELTAFS_OK;
}

/* One writer at a time; one that died is found out. */
static void test_lease(void **state)
{
    const char *path = unit_path("lease"), *file = unit_path("lease/LEASE");
    deltafs_dir *d = unit_create(path, unit_options(NULL, NULL));
    char host[256] = "";

    (void)state;
    unsetenv("SLURM_JOB_ID");
    CHECK(unit_exists(file) && !is_free(path, "0"));
    CHECK_CALL(d, deltafs_append(d, 1, "x", 1), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    CHECK(!is_free(path, "1800"));
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK(is_free(path, "1800"));

    CHECK(gethostname(host, sizeof host - 1) == 0);
    save_lease(file, host, "-", 0); /* nobody has locked it: its process is gone */
    CHECK(is_free(path, "1800"));
    save_lease(file, "elsewhere", "-", 100);
    CHECK(!is_free(path, "1800") && strstr(deltafs_errmsg(NULL), "host elsewhere") &&
          strstr(deltafs_errmsg(NULL), "lease=0"));
    CHECK(is_free(path, "100"));
    save_lease(file, "elsewhere", "-", -1000); /* of a clock that is ahead */
    CHECK(!is_free(path, "1800"));
    CHECK(is_free(path, "0"));
    save_lease(file, "elsewhere", "-", -2000); /* so far ahead that it says nothing */
    CHECK(is_free(path, "1800"));
    save_lease(file, "elsewhere", "4711.0", 0);
    CHECK(!is_free(path, "1800"));
    setenv("SLURM_JOB_ID", "4711", 1); /* the same run of the same batch job, which may have other steps */
    CHECK(!is_free(path, "1800"));
    setenv("SLURM_RESTART_COUNT", "1", 1); /* an earlier run of it */
    CHECK(is_free(path, "1800"));
    save_lease(file, "elsewhere", "471.0", 0);
    CHECK(!is_free(path, "1800"));
    unsetenv("SLURM_JOB_ID");
    unsetenv("SLURM_RESTART_COUNT");
    unit_save(file, "host", 4); /* incomplete */
    CHECK(is_free(path, "1800"));
}

/* A handle that was opened while the directory was closed finds no damage in what a job does meanwhile; but a tail that
 * is gone otherwise is damage. And a manifest that is cut at its end just when it is read is read as it is then. */
static void test_meanwhile(void **state)
{
    const struct shape *s = &shapes[1];
    const char *path = unit_path("meanwhile"), *manifest = unit_path("meanwhile/MANIFEST"),
               *index = unit_path("meanwhile/01/p00000001.index");
    struct rng r = rng_init(790);
    struct model m = model_of(s);
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
    deltafs_dir *d = create(s, path), *reader;
    size_t n;

    (void)state;
    write_epoch(s, &m, d, &r, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    reader = unit_open(path);
    d = reopen(s, path);
    CHECK_CALL(reader, deltafs_verify(reader, NULL, NULL, &counts), DELTAFS_OK);
    CHECK_IS(deltafs_close(reader), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    reader = unit_open(path);
    d = reopen(s, path);
    write_epoch(s, &m, d, &r, 2);
    CHECK_CALL(reader, deltafs_verify(reader, NULL, NULL, &counts), DELTAFS_OK);
    CHECK_IS(counts.records, s->records);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(deltafs_close(reader), DELTAFS_OK);

    reader = unit_open(path);
    free(unit_load(index, &n));
    CHECK(truncate(index, (off_t)n - 1) == 0);
    CHECK_CALL(reader, deltafs_verify(reader, NULL, NULL, &counts), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_close(reader), DELTAFS_OK);
    d = reopen(s, path);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);

    uint8_t *text = unit_load(manifest, &n);
    uint8_t *torn = malloc(n + 9);
    CHECK(torn != NULL);
    memcpy(torn, text, n);
    memcpy(torn + n, "Epoch num", 9);
    unit_save(manifest, torn, n + 9);
    unit_io_begin();
    unit_io_shrink("MANIFEST", n);
    reader = unit_open(path);
    CHECK_IS(deltafs_close(reader), DELTAFS_OK);
    unit_io_end();
    check(s, &m, path);
    free(text);
    free(torn);
    model_fini(&m);
}

/* A file system that shows whoever reads a directory, for some time, what it was: a copy of it. */
static struct {
    struct fake_io fake;
    const char *path, *copy;
} stale;

static ssize_t stale_do(struct fake_call *c)
{
    char was[600];
    size_t n = strlen(stale.path);

    if (c->op == FAKE_OPEN && (c->flags & O_ACCMODE) == O_RDONLY && strncmp(c->path, stale.path, n) == 0) {
        snprintf(was, sizeof was, "%s%s", stale.copy, c->path + n);
        c->path = was;
    }
    return fake_do(c);
}

/* Lines that a writer has not seen when it read the manifest are not taken for an incomplete one, and truncated. */
static void test_stale(void **state)
{
    const struct shape *s = &shapes[1];
    const char *path = unit_path("stale");
    struct rng r = rng_init(792);
    struct model m = model_of(s);
    deltafs_dir *d = create(s, path);

    (void)state;
    write_epoch(s, &m, d, &r, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    stale.path = path;
    stale.copy = unit_path("stale-copy");
    unit_copy(path, stale.copy);
    d = reopen(s, path);
    write_epoch(s, &m, d, &r, 2);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);

    io_replace_default(NULL, NULL);
    fake_io_begin(&stale.fake, stale_do);
    int status = try_reopen(path, options(s), &d);
    CHECK_IS(fake_io_end(&stale.fake), 0);
    CHECK_IS(status, DELTAFS_ERR_BUSY);
    CHECK(strstr(deltafs_errmsg(NULL), "MANIFEST: another job has written to it"));
    check(s, &m, path);
    d = reopen(s, path);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    check(s, &m, path);
    model_fini(&m);
}

/* The first sync of a log fails, and what was to be synced, its header too, is not on disk; nor does any later sync say
 * so. It is written again. (The header was not.) Where the header is all that a log has, but an epoch is committed,
 * giving up the next leaves it. */
static void test_dropped(void **state)
{
    const struct shape *s = &shapes[1];
    const char *path = unit_path("dropped"), *copy = unit_path("dropped.copy");
    const char *const logs[] = {"/02/p00000002.data", "/02/p00000002.index"};

    (void)state;
    for (int is_client_cached = 0; is_client_cached < 2; is_client_cached++)
        for (int i = 0; i < 2; i++) {
            struct rng r = rng_init(750);
            struct model m = model_of(s);
            unit_io_begin();
            deltafs_dir *d = create(s, path);
            if (is_client_cached) {
                CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
                model_keep(&m, 1);
            }
            unit_io_fail(OP_SYNC, logs[i], 0, 1, EIO);
            append(s, &m, d, &r);
            model_discard(&m);
            CHECK_CALL(d, deltafs_epoch_end(d, 2), DELTAFS_ERR_IO);
            CHECK(strstr(deltafs_errmsg(d), logs[i]));
            CHECK_IS(unit_io_failures(), 1);
            unit_copy(path, copy);
            for (size_t at = 0; at < 32 && !is_client_cached; at++)
                unit_poke(unit_path("dropped%s", logs[i]), at, 0);
            write_epoch(s, &m, d, &r, 3);
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
            check(s, &m, path);
            unit_remove(path);
            d = reopen(s, copy);
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
            unit_remove(copy);
            unit_io_end();
            model_fini(&m);
        }
}

/* A writer that was taken for dead commits nothing more, and cuts nothing off. */
static void test_taken_over(void **state)
{
    const struct shape *s = &shapes[1];
    const char *path = unit_path("taken"), *file = unit_path("taken/LEASE");
    struct rng r = rng_init(760);
    struct model m = model_of(s);
    deltafs_dir *d = create(s, path), *other;

    (void)state;
    write_epoch(s, &m, d, &r, 1);
    append(s, &m, d, &r);
    model_discard(&m);
    CHECK(unlink(file) == 0); /* by hand: the lock is not seen then */
    other = reopen(s, path);
    write_epoch(s, &m, other, &r, 2);
    /* The first one finds out; and cuts nothing off. */
    CHECK_CALL(d, deltafs_epoch_cancel(d, "the end"), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 2), DELTAFS_ERR_BUSY);
    check(s, &m, path);
    CHECK_CALL(d, deltafs_append(d, 1, "x", 1), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 3), DELTAFS_ERR_BUSY);
    CHECK_IS(deltafs_close(d), DELTAFS_ERR_BUSY);
    CHECK(unit_exists(file));
    check(s, &m, path);
    save_lease(file, "elsewhere", "-", 0);
    CHECK_CALL(other, deltafs_append(other, 1, "x", 1), DELTAFS_OK);
    CHECK_CALL(other, deltafs_epoch_end(other, 3), DELTAFS_ERR_BUSY);
    CHECK(strstr(deltafs_errmsg(other), "took over"));
    CHECK_CALL(other, deltafs_epoch_end(other, 4), DELTAFS_ERR_BUSY);
    CHECK_IS(deltafs_close(other), DELTAFS_ERR_BUSY);
    CHECK(unit_exists(file));
    unlink(file);
    check(s, &m, path);
    model_fini(&m);
}

/* A reader sees what was there when it was opened, until it asks for more; never half an epoch. */
static void test_refresh(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        const struct shape *s = &shapes[i];
        const char *path = unit_path("refresh%zu", i);
        struct rng r = rng_init(780 + i);
        struct model m = model_of(s), seen = model_of(s);
        struct deltafs_stat stat = {.struct_size = sizeof stat};
        deltafs_dir *d = create(s, path), *reader = unit_open(path);
        check_handle(s, &seen, reader);
        for (uint64_t epoch = 1; epoch < 6; epoch++) {
            append(s, &m, d, &r);
            CHECK_CALL(reader, deltafs_refresh(reader), DELTAFS_OK);
            CHECK_CALL(reader, deltafs_stat(reader, &stat), DELTAFS_OK);
            CHECK_IS(stat.epochs, epoch - 1);
            CHECK_CALL(d, deltafs_epoch_end(d, epoch), DELTAFS_OK);
            CHECK_CALL(d, deltafs_epoch_wait(d), DELTAFS_OK);
            CHECK_CALL(reader, deltafs_stat(reader, &stat), DELTAFS_OK);
            CHECK_IS(stat.epochs, epoch - 1);
            model_keep(&m, epoch);
            CHECK_CALL(reader, deltafs_refresh(reader), DELTAFS_OK);
            check_handle(s, &m, reader);
            if (epoch % 2 == 0) {
                CHECK_IS(deltafs_close(d), DELTAFS_OK);
                CHECK_CALL(reader, deltafs_refresh(reader), DELTAFS_OK);
                check_handle(s, &m, reader);
                d = reopen(s, path);
                check_handle(s, &m, reader);
            }
        }
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        check_handle(s, &m, reader);
        /* What cannot be refreshed stays as it was. */
        unit_poke(unit_path("refresh%zu/MANIFEST", i), 3, '!');
        CHECK_CALL(reader, deltafs_refresh(reader), DELTAFS_ERR_NOT_DELTAFS);
        model_check_scan(&m, reader, NULL);
        unit_remove(path);
        CHECK_CALL(reader, deltafs_refresh(reader), DELTAFS_ERR_NOT_FOUND);
        CHECK_IS(deltafs_close(create(s, path)), DELTAFS_OK);
        CHECK_CALL(reader, deltafs_refresh(reader), DELTAFS_ERR_CHANGED);
        CHECK(strstr(deltafs_errmsg(reader), "was replaced since it was opened"));
        CHECK_IS(deltafs_close(reader), DELTAFS_OK);
        model_fini(&m);
        model_fini(&seen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_after_close), cmocka_unit_test(test_after_crash),     cmocka_unit_test(test_ends),
        cmocka_unit_test(test_options),     cmocka_unit_test(test_options_say_why), cmocka_unit_test(test_lease),
        cmocka_unit_test(test_taken_over),  cmocka_unit_test(test_refresh),         cmocka_unit_test(test_meanwhile),
        cmocka_unit_test(test_stale),       cmocka_unit_test(test_dropped),
    };

    for (int i = 0; i < 5000; i++)
        snprintf(names[i], sizeof names[i], "name-%d", i);
    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
