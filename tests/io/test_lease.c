/* The lease where the file system knows no locks: of several that take it at once one has it, and who loses it between
 * asking and writing is told. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "io/io_format.h"
#include "io/lease.h"
#include "fake_io.h"
#include "unit_help.h"

static struct {
    struct fake_io fake;
    int meets; /* so many more askings for a size wait for each other, two by two; */
    int waits; /* and so many more of the waits for what others write */
    pthread_barrier_t barrier;
    pthread_mutex_t lock;
    const char *stolen; /* the lease that another takes over while the next epoch's line is written; NULL: none does */
    const char *opened; /* or when a file of this name is opened to be read, */
    unsigned opens;     /* this often */
} plan = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void meet(int *left)
{
    pthread_mutex_lock(&plan.lock);
    int is_met = *left > 0;
    *left -= is_met;
    pthread_mutex_unlock(&plan.lock);
    if (is_met)
        pthread_barrier_wait(&plan.barrier);
}

static ssize_t plan_attributes(struct fake_call *c)
{
    ssize_t rc = fake_do(c);

    meet(&plan.meets);
    return rc;
}

/* Stands in for libc's: the second in which others may write is over when they have written. */
__attribute__((visibility("default"))) int nanosleep(const struct timespec *t, struct timespec *rest)
{
    (void)t;
    (void)rest;
    meet(&plan.waits);
    return 0;
}

static void save_lease(const char *path)
{
    char line[300];
    int n = snprintf(line, sizeof line,
                     "host=elsewhere pid=1 job=- session=01234567-89ab-4def-8123-456789abcdef renewed=%020llu\n",
                     (unsigned long long)time(NULL));

    unit_save(path, line, (size_t)n);
}

static ssize_t plan_do(struct fake_call *c)
{
    if (c->op == FAKE_LOCK)
        return -ENOLCK;
    if (c->op == FAKE_ATTRIBUTES)
        return plan_attributes(c);
    if (c->op == FAKE_OPEN && plan.opened && !(c->flags & O_RDWR) && strstr(c->path, plan.opened) &&
        --plan.opens == 0) {
        save_lease(plan.stolen);
        plan.stolen = plan.opened = NULL;
    }
    if (c->op == FAKE_WRITE && plan.stolen && !plan.opened && c->n > 12 && memcmp(c->data, "Epoch number", 12) == 0) {
        save_lease(plan.stolen);
        plan.stolen = NULL;
    }
    return fake_do(c);
}

static void plan_begin(void)
{
    fake_io_begin(&plan.fake, plan_do);
}

static void plan_end(void)
{
    io_replace_default(NULL, NULL);
}

struct taker {
    pthread_t thread;
    struct io io;
    struct lease lease;
    struct error error;
    int status;
};

static void *take(void *arg)
{
    struct taker *t = arg;

    t->io = io_default();
    t->status = lease_take(&t->lease, &t->io, unit_folder, 0, 0, &t->error);
    return NULL;
}

/* Two find the lease free, and only then write their lines. (Both had it.) */
static void test_at_once(void **state)
{
    static struct taker takers[2];
    struct lease_epoch note = {.number = 7};
    struct error e;

    (void)state;
    CHECK(pthread_barrier_init(&plan.barrier, NULL, 2) == 0);
    for (int is_left = 0; is_left < 2; is_left++) {
        if (is_left)
            save_lease(unit_path(LEASE_NAME)); /* by a job that has died */
        plan_begin();
        plan.meets = 2; /* after the lock, and before the line is read */
        plan.waits = 2; /* after the line is written */
        for (int i = 0; i < 2; i++)
            CHECK(pthread_create(&takers[i].thread, NULL, take, &takers[i]) == 0);
        for (int i = 0; i < 2; i++)
            CHECK(pthread_join(takers[i].thread, NULL) == 0);
        CHECK_IS(plan.waits, 0);
        struct taker *first = takers[0].status == DELTAFS_OK ? &takers[0] : &takers[1];
        struct taker *other = first == &takers[0] ? &takers[1] : &takers[0];
        CHECK_IS(first->status, DELTAFS_OK);
        CHECK_IS(other->status, DELTAFS_ERR_BUSY);
        CHECK(strstr(other->error.text, LEASE_NAME) && strstr(other->error.text, "is writing the directory"));
        CHECK_IS(lease_renew(&first->lease, &note, &e), DELTAFS_OK);
        CHECK_IS(lease_confirm(&first->lease, &e), DELTAFS_OK);
        save_lease(unit_path(LEASE_NAME));
        CHECK_IS(lease_confirm(&first->lease, &e), DELTAFS_ERR_BUSY);
        CHECK_IS(lease_renew(&first->lease, NULL, &e), DELTAFS_ERR_BUSY);
        CHECK_IS(lease_drop(&first->lease, &e), DELTAFS_OK);
        CHECK(unit_exists(unit_path(LEASE_NAME)));
        unit_remove(unit_path(LEASE_NAME));
        plan_end();
    }
    pthread_barrier_destroy(&plan.barrier);
}

/* Another takes the directory over while the line of an epoch is written: its end does not say that it is committed.
 * (It did, and so could the other's.) */
static void test_taken_meanwhile(void **state)
{
    const char *path = unit_path("meanwhile"), *file = unit_path("meanwhile/LEASE");
    struct model m = {0};
    deltafs_dir *d, *other = NULL;

    (void)state;
    plan_begin();
    d = unit_create(path, unit_options("value_size", "8", NULL));
    CHECK_CALL(d, model_append(&m, d, 1, 8), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    model_keep(&m, 1);
    CHECK_IS(deltafs_reopen(path, NULL, &other), DELTAFS_ERR_BUSY); /* the process is alive */
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK(!unit_exists(file));
    CHECK_IS(deltafs_reopen(path, NULL, &d), DELTAFS_OK);
    CHECK_CALL(d, model_append(&m, d, 2, 8), DELTAFS_OK);
    plan.stolen = file;
    CHECK_CALL(d, deltafs_epoch_end(d, 2), DELTAFS_ERR_BUSY);
    CHECK(strstr(deltafs_errmsg(d), "host elsewhere") && strstr(deltafs_errmsg(d), "the epoch labelled 2"));
    model_keep(&m, 2); /* as it happens: nobody else has written */
    CHECK_CALL(d, deltafs_epoch_end(d, 3), DELTAFS_ERR_BUSY);
    CHECK_IS(deltafs_close(d), DELTAFS_ERR_BUSY);
    CHECK(unit_exists(file));
    plan_end();
    d = unit_open(path);
    model_check_scan(&m, d, NULL);
    model_check_facts(&m, d);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    model_fini(&m);
}

/* Another takes the directory over while repair looks at the logs, which may take longer than a lease counts: nothing
 * of it is replaced then. (The manifest was, by what it had been before, and so were index logs.) */
static void test_taken_from_repair(void **state)
{
    static const char *const replaced[] = {"MANIFEST", "00/p00000000.index", "01/p00000001.index"};
    const char *path = unit_path("mended"), *lease = unit_path("mended/LEASE");
    struct deltafs_repair_options wish = {.struct_size = sizeof wish, .has_lease = 1};
    size_t n, after;

    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *file = unit_path("mended/%s", replaced[i]);
        unit_remove(path);
        deltafs_dir *d = unit_create(path, unit_options("keys", "bytes", "partitions", "2", NULL));
        for (int k = 0; k < 100; k++)
            CHECK_CALL(d, deltafs_append_bytes(d, &k, sizeof k, "value", 5), DELTAFS_OK);
        CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        /* A byte of the manifest, or of a leaf. */
        unit_poke(file, 60, '#');
        uint8_t *before = unit_load(file, &n);
        plan_begin();
        plan.stolen = lease;
        plan.opened = i == 1 ? "00/p00000000.data" : "01/p00000001.data";
        plan.opens = i == 0 ? 1 : 2;
        CHECK_IS(deltafs_repair(path, &wish, NULL, NULL), DELTAFS_ERR_BUSY);
        CHECK(!plan.opened && strstr(deltafs_errmsg(NULL), "host elsewhere"));
        plan_end();
        uint8_t *now = unit_load(file, &after);
        CHECK(n == after && memcmp(before, now, n) == 0 && !unit_exists(unit_path("mended/%s.damaged", replaced[i])));
        CHECK(unit_exists(lease));
        free(before);
        free(now);
    }
}

/* A process that has ended, and that nobody has waited for yet, writes nothing any more. (It was said to.) */
static void test_zombie(void **state)
{
    const char *folder = unit_path("zombie"), *path = unit_path("zombie/" LEASE_NAME);
    struct io io = io_default();
    struct lease lease;
    struct error e;
    char text[1200];
    int status = 0;

    (void)state;
    CHECK(mkdir(folder, 0777) == 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(lease_take(&lease, &io, folder, 3600, 0, &e) == DELTAFS_OK ? 0 : 1);
    CHECK(pid > 0);
    siginfo_t info;
    CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0 && info.si_status == 0);
    CHECK(unit_exists(path) && lease_describe(&io, folder, 3600, text, sizeof text));
    int is_said = strstr(text, "has ended without closing the directory") != NULL;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(is_said);
    CHECK_IS(lease_take(&lease, &io, folder, 3600, 0, &e), DELTAFS_OK);
    CHECK(lease_describe(&io, folder, 3600, text, sizeof text) && strstr(text, "repairing it is refused"));
    CHECK_IS(lease_drop(&lease, &e), DELTAFS_OK);
}

/* A process takes the lease and a lock, starts another, without which nothing is told, and ends. Returns when it has
 * ended; the other ends when *end is closed. */
static void leave_child(const char *folder, int is_raw, int *end)
{
    int ready[2], stop[2];
    char byte;

    CHECK(pipe(ready) == 0 && pipe(stop) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct io io = io_default();
        struct io_file file;
        struct lease lease;
        struct error e;
        int ok = lease_take(&lease, &io, folder, 3600, 0, &e) == DELTAFS_OK &&
                 io_file_open(&io, unit_path("ranges"), O_RDWR | O_CREAT, &file, &e) == DELTAFS_OK &&
                 io_file_lock_wait(&file, 3, 5, 0, &e) == DELTAFS_OK;
        pid_t child = is_raw ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
        if (child == 0) {
            close(stop[1]);
            ok = ok && write(ready[1], "", 1) == 1 && read(stop[0], &byte, 1) == 0;
            _exit(ok ? 0 : 1);
        }
        _exit(ok && child > 0 ? 0 : 1);
    }
    close(ready[1]);
    close(stop[0]);
    int status = 1;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    *end = stop[1];
}

/* A child of a writer that was killed keeps nothing locked (it did), unless it was started in an unusual way: then the
 * message says what to look for. */
static void test_orphan(void **state)
{
    const char *folder = unit_path("orphan");
    struct io io = io_default();
    struct io_file file;
    struct lease lease;
    struct error e;
    int end, is_free;

    (void)state;
    CHECK(mkdir(folder, 0777) == 0);
    for (int is_raw = 0; is_raw < 2; is_raw++) {
        leave_child(folder, is_raw, &end);
        CHECK_IS(lease_take(&lease, &io, folder, 0, 0, &e), is_raw ? DELTAFS_ERR_BUSY : DELTAFS_OK);
        CHECK(!is_raw || strstr(e.text, "fuser"));
        CHECK_IS(io_file_open(&io, unit_path("ranges"), O_RDWR, &file, &e), DELTAFS_OK);
        CHECK_IS(io_file_is_locked(&file, &is_free), is_raw);
        CHECK_IS(io_file_close(&file, &e), DELTAFS_OK);
        close(end);
        if (!is_raw)
            CHECK_IS(lease_drop(&lease, &e), DELTAFS_OK);
    }
}

/* A child that uses its parent's lease is refused, and does not remove it. */
static void test_child(void **state)
{
    const char *folder = unit_path("parent");
    struct io io = io_default();
    struct lease lease;
    struct error e;
    int status = 1;

    (void)state;
    CHECK(mkdir(folder, 0777) == 0);
    CHECK_IS(lease_take(&lease, &io, folder, 3600, 0, &e), DELTAFS_OK);
    pid_t pid = fork();
    if (pid == 0)
        _exit(lease_renew(&lease, NULL, &e) == DELTAFS_ERR_BUSY && lease_drop(&lease, &e) == DELTAFS_OK ? 0 : 1);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    CHECK_IS(lease_renew(&lease, NULL, &e), DELTAFS_OK);
    CHECK_IS(lease_drop(&lease, &e), DELTAFS_OK);
    CHECK(!unit_exists(unit_path("parent/" LEASE_NAME)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_taken_meanwhile),
        cmocka_unit_test(test_taken_from_repair),
        cmocka_unit_test(test_zombie),
        cmocka_unit_test(test_orphan),
        cmocka_unit_test(test_child),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
