/* File operations that fail: the k-th of a whole life of a directory, for every k, in several ways. What was committed
 * stays readable to the bit, every failure is reported, nothing is left open or behind, and once the fault is gone the
 * epoch can be written again, unless the writer says that it cannot go on. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include "fake_io.h"
#include "unit_help.h"

enum fault { FAULT_EIO, FAULT_ENOSPC, FAULT_TORN, FAULT_EINTR, FAULT_SHORT, FAULTS };

static const char *const names[] = {"EIO", "ENOSPC", "torn", "EINTR", "short"};

static struct {
    struct fake_io fake;
    enum fault fault;
    uint64_t first, end;    /* the operations that fail */
    uint64_t count;         /* operations so far */
    uint64_t fired, passed; /* operations that failed; those of them that need not be reported */
    uint64_t synced;        /* the operation that synced the manifest last */
    enum fake_op last;      /* that failed */
} plan;

/* Of the plan and what is noted: threads of the writer come through here, too. */
static pthread_mutex_t plan_lock = PTHREAD_MUTEX_INITIALIZER;

static void plan_faults(enum fault fault, uint64_t first, uint64_t end)
{
    plan.fault = fault;
    plan.first = first;
    plan.end = end;
    plan.count = plan.fired = plan.passed = 0;
}

/* Whether a signal can interrupt it. (Of these, syncing and truncating were not taken up again.) */
static int can_wait(enum fake_op op)
{
    return op == FAKE_OPEN || op == FAKE_READ || op == FAKE_WRITE || op == FAKE_SYNC || op == FAKE_TRUNCATE ||
           op == FAKE_SYNC_FOLDER;
}

static int faulty_next(enum fake_op op, size_t n)
{
    uint64_t k = plan.count++;

    if (k < plan.first || k >= plan.end)
        return 0;
    /* Interrupted for ever would be waiting for ever: every second time, then. */
    if (plan.fault == FAULT_EINTR && plan.end - plan.first > 1 && k % 2 == 1)
        return 0;
    if ((plan.fault == FAULT_EINTR && !can_wait(op)) || (plan.fault == FAULT_SHORT && n < 2))
        return 0;
    plan.fired++;
    plan.last = op;
    return plan.fault == FAULT_ENOSPC ? -ENOSPC : plan.fault == FAULT_EINTR ? -EINTR : -EIO;
}

/* Whether this operation fails, and with which errno; `n` is the length of a read or write, 0 for others. */
static int faulty(enum fake_op op, size_t n)
{
    pthread_mutex_lock(&plan_lock);
    int rc = faulty_next(op, n);
    pthread_mutex_unlock(&plan_lock);
    return rc;
}

/* What would be lost if the power went now: files written to, and folders changed, since their last sync. */
static struct {
    struct unsynced_file {
        int is_open, is_manifest, is_copy, is_writers, is_lease, is_dirty;
    } file[1024]; /* by descriptor */
    char folder[16][256];
    unsigned premature; /* writes to the manifest while anything else was unsynced */
    unsigned lost;      /* files closed so */
    unsigned syncs;
} unsynced;

static int unsynced_folders(void)
{
    int n = 0;

    for (size_t i = 0; i < 16; i++)
        n += unsynced.folder[i][0] != '\0';
    return n;
}

static int unsynced_files(int with_manifest)
{
    int n = 0;

    for (size_t i = 0; i < 1024; i++)
        n += unsynced.file[i].is_dirty && (with_manifest || !unsynced.file[i].is_manifest);
    return n;
}

/* The folder of `path` has a new entry, or lost one. */
static void note_entry(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = (size_t)(slash - path), to = 16;

    for (size_t i = 16; i-- > 0;) {
        if (strlen(unsynced.folder[i]) == n && memcmp(unsynced.folder[i], path, n) == 0)
            return;
        to = unsynced.folder[i][0] == '\0' ? i : to;
    }
    CHECK(to < 16 && n < sizeof unsynced.folder[0]);
    memcpy(unsynced.folder[to], path, n);
    unsynced.folder[to][n] = '\0';
}

static void note_open(int fd, const char *path, int flags)
{
    CHECK(fd < 1024);
    int is_copy = strstr(path, "/MANIFEST.copy") != NULL, is_manifest = !is_copy && strstr(path, "/MANIFEST") != NULL;
    unsynced.file[fd] = (struct unsynced_file){.is_open = 1,
                                               .is_manifest = is_manifest,
                                               .is_copy = is_copy,
                                               .is_writers = is_manifest && flags == O_RDWR,
                                               .is_lease = strstr(path, "/LEASE") != NULL};
    if ((flags & O_CREAT) && !is_copy)
        note_entry(path);
}

/* The manifest's copy may stay behind: what fails with it, or with reading the manifest for it, is made up for by the
 * next line, or reported by the close. */
static int may_pass(int fd)
{
    return unsynced.file[fd].is_copy || unsynced.file[fd].is_writers;
}

static void note_write(int fd)
{
    /* A lease need not outlive the job, and the copy is synced at the close. */
    unsynced.file[fd].is_dirty = !unsynced.file[fd].is_lease && !unsynced.file[fd].is_copy;
    unsynced.premature += unsynced.file[fd].is_manifest && unsynced_files(0) > 0;
}

static void note_close(int fd)
{
    unsynced.lost += (unsigned)unsynced.file[fd].is_dirty;
    unsynced.file[fd] = (struct unsynced_file){0};
}

static ssize_t fault_open(struct fake_call *c)
{
    ssize_t failed = faulty(c->op, 0), rc = failed ? failed : fake_do(c);

    pthread_mutex_lock(&plan_lock);
    /* Then there are no direct writes, or no copy: nothing to be reported. */
    plan.passed += failed && ((c->flags & O_DIRECT) || strstr(c->path, "/MANIFEST.copy"));
    if (rc >= 0)
        note_open((int)rc, c->path, c->flags);
    pthread_mutex_unlock(&plan_lock);
    return rc;
}

static ssize_t fault_move(struct fake_call *c)
{
    ssize_t rc = faulty(c->op, c->n);

    pthread_mutex_lock(&plan_lock);
    if (c->op == FAKE_WRITE)
        note_write(c->fd);
    plan.passed += rc && (c->op == FAKE_READ ? may_pass(c->fd) : unsynced.file[c->fd].is_copy);
    pthread_mutex_unlock(&plan_lock);
    if (rc)
        c->n /= 2;
    if (rc && plan.fault == FAULT_TORN && c->op == FAKE_WRITE)
        fake_do(c);
    return rc && plan.fault != FAULT_SHORT ? rc : fake_do(c);
}

/* Who makes a directory and fails takes it away before others may have it. (The lease went first.) */
static void check_unlink(const char *path)
{
    const char *slash = strrchr(path, '/');
    char lease[300];

    if (!slash || strcmp(slash, "/MANIFEST") != 0 || !unit_exists(path))
        return;
    snprintf(lease, sizeof lease, "%.*s/LEASE", (int)(slash - path), path);
    CHECK(unit_exists(lease));
}

/* Nothing here is about power: syncing for real would only take time. */
static ssize_t fault_sync(struct fake_call *c)
{
    int rc = faulty(c->op, 0);

    unsynced.syncs++;
    if (c->op == FAKE_SYNC) {
        unsynced.file[c->fd].is_dirty &= rc != 0;
        plan.synced = unsynced.file[c->fd].is_manifest ? plan.count - 1 : plan.synced;
    }
    for (size_t i = 0; i < 16 && c->op == FAKE_SYNC_FOLDER; i++)
        if (rc == 0 && strcmp(unsynced.folder[i], c->path) == 0)
            unsynced.folder[i][0] = '\0';
    return rc;
}

static ssize_t fault_do(struct fake_call *c)
{
    switch (c->op) {
    case FAKE_OPEN:
        return fault_open(c);
    case FAKE_READ:
    case FAKE_WRITE:
        return fault_move(c);
    case FAKE_SYNC:
    case FAKE_SYNC_FOLDER:
        return fault_sync(c);
    case FAKE_LOCK:
        return fake_do(c);
    case FAKE_TRUNCATE:
        unsynced.file[c->fd].is_dirty = !unsynced.file[c->fd].is_lease && !unsynced.file[c->fd].is_copy;
        break;
    case FAKE_MKDIR:
    case FAKE_RENAME:
    case FAKE_LINK:
    case FAKE_SYMLINK:
        note_entry(c->path);
        break;
    case FAKE_UNLINK:
        check_unlink(c->path);
        break;
    default:
        break;
    }
    ssize_t rc = faulty(c->op, 0);
    if (c->op == FAKE_TRUNCATE || c->op == FAKE_CLOSE)
        plan.passed += rc && unsynced.file[c->fd].is_copy;
    if (c->op != FAKE_CLOSE)
        return rc ? rc : fake_do(c);
    /* A close that fails has closed nevertheless. */
    note_close(c->fd);
    ssize_t closed = fake_do(c);
    return rc ? rc : closed;
}

static int setup(void **state)
{
    return unit_setup(state);
}

static int teardown(void **state)
{
    io_replace_default(NULL, NULL);
    return unit_teardown(state);
}

/* ---- Writing ---- */

/* A small directory, whose life has few operations; or one whose epochs take several runs and segments. */
struct shape {
    const char *partitions, *value_size, *sync;
    const char *threads, *commit;
    uint32_t records, size;
    unsigned tries; /* for an epoch that fails; then the directory is closed */
};

#define EPOCHS   2
#define ATTEMPTS 4

/* What one life came to. */
struct life {
    struct model model;             /* what is committed for certain */
    struct model attempt[ATTEMPTS]; /* the epoch that failed last, each time with other records */
    unsigned attempts;              /* that failed */
    unsigned failures;              /* calls that did */
    int is_broken;                  /* the writer said that it cannot go on */
    uint64_t operations;
};

static void check_status(int status, const char *message)
{
    int want = plan.fault == FAULT_ENOSPC ? DELTAFS_ERR_NO_SPACE : DELTAFS_ERR_IO;

    if (status != want)
        fail_msg("%s at operation %llu (kind %d): status %d: %s", names[plan.fault], (unsigned long long)plan.first,
                 (int)plan.last, status, message);
    CHECK(strstr(message, unit_folder) != NULL);
}

static deltafs_dir *create(const struct shape *s, const char *path, struct life *life)
{
    deltafs_options *o = unit_options("memory", "8M", "partitions", s->partitions, "value_size", s->value_size, "sync",
                                      s->sync, "threads", s->threads, "commit", s->commit, NULL);
    deltafs_dir *d = NULL;
    int status = deltafs_create(path, o, &d);

    deltafs_options_destroy(o);
    if (status != DELTAFS_OK) {
        check_status(status, deltafs_errmsg(NULL));
        CHECK(d == NULL);
        life->failures++;
    }
    return d;
}

/* Append `n` records and end the epoch. On failure the attempt is kept, as what may be there nevertheless. */
static int write_epoch(deltafs_dir *d, struct life *life, uint64_t label, uint32_t n, uint32_t size)
{
    struct model *m = &life->model;
    struct rng r = {label * 1000 + n};

    for (uint32_t i = 0; i < n; i++)
        CHECK_CALL(d, model_append(m, d, rng_below(&r, n), size), DELTAFS_OK);
    int status = deltafs_epoch_end(d, label);
    if (status == DELTAFS_OK)
        status = deltafs_epoch_wait(d); /* with commit=async it comes to light here */
    if (status == DELTAFS_OK) {
        model_keep(m, label);
        while (life->attempts > 0)
            model_fini(&life->attempt[--life->attempts]);
        return status;
    }
    check_status(status, deltafs_errmsg(d));
    life->failures++;
    if (life->attempts < ATTEMPTS) {
        struct model *a = &life->attempt[life->attempts++];
        *a = *m;
        a->capacity = m->count + 1;
        a->record = malloc(a->capacity * sizeof *a->record);
        CHECK(a->record != NULL);
        memcpy(a->record, m->record, m->count * sizeof *m->record);
        model_keep(a, label);
    }
    model_discard(m);
    return status;
}

/* Create, write, close, under the faults planned. Returns 0 if there is no directory in the end. */
static int live(const struct shape *s, const char *path, struct life *life)
{
    *life = (struct life){0};
    unit_remove(path);
    fake_io_begin(&plan.fake, fault_do);
    deltafs_dir *d = create(s, path, life);
    for (uint64_t epoch = 0; d && epoch < EPOCHS && !life->is_broken; epoch++) {
        unsigned tries = 0;
        while (write_epoch(d, life, epoch, s->records + tries, s->size) != DELTAFS_OK && ++tries < s->tries)
            ;
        life->is_broken = tries == s->tries;
    }
    if (d) {
        int status = deltafs_close(d);
        if (status != DELTAFS_OK) {
            check_status(status, deltafs_errmsg(NULL));
            life->failures++;
        }
    }
    CHECK_IS(fake_io_end(&plan.fake), 0);
    life->operations = plan.count;
    return d != NULL;
}

static void life_fini(struct life *life)
{
    model_fini(&life->model);
    while (life->attempts > 0)
        model_fini(&life->attempt[--life->attempts]);
}

/* What is on disk: the epochs committed; and maybe, if the writer could not take it back, the whole of one that it said
 * had failed. */
static void check_disk(struct life *life, const char *path, int may_be_more)
{
    struct rng r = {1};
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct model *m = &life->model;
    deltafs_dir *d = unit_open(path);

    CHECK_CALL(d, deltafs_stat(d, &stat), DELTAFS_OK);
    if (stat.epochs != m->epochs) {
        CHECK(may_be_more && life->is_broken && stat.epochs == m->epochs + 1);
        for (unsigned i = 0; i < life->attempts; i++)
            if (life->attempt[i].committed == stat.records)
                m = &life->attempt[i];
        CHECK(m != &life->model);
    }
    model_check_all(m, d, &r);
    model_check_scan(m, d, NULL);
    model_check_facts(m, d);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* One life with these faults. Returns whether any came to pass. */
static int check_life(const struct shape *s, enum fault fault, uint64_t first, uint64_t end)
{
    const char *path = unit_path("life");
    struct life life;
    int is_hard = fault != FAULT_EINTR && fault != FAULT_SHORT;

    plan_faults(fault, first, end);
    int is_there = live(s, path, &life);
    uint64_t fired = plan.fired;
    if (!is_hard)
        CHECK_IS(life.failures, 0);
    if (fired > plan.passed && is_hard && life.failures == 0)
        fail_msg("%s at operation %llu (kind %d) was reported by nobody", names[fault], (unsigned long long)first,
                 (int)plan.last);
    if (is_there)
        check_disk(&life, path, end - first > 1);
    else if (end - first == 1)
        CHECK(!unit_exists(path)); /* more faults may have hit the cleaning up itself */
    /* One fault that is gone again stops nothing but what it hit. */
    if (is_there && end - first == 1 && s->tries > 1)
        CHECK(!life.is_broken);
    unit_remove(path);
    life_fini(&life);
    return fired > 0;
}

static const struct shape small = {"3", "8", "commit", "0", "wait", 60, 8, ATTEMPTS};
static const struct shape small_unsynced = {"2", "any", "none", "0", "wait", 60, 8, ATTEMPTS};
static const struct shape small_once = {"3", "8", "commit", "0", "wait", 60, 8, 1};
static const struct shape small_late = {"3", "8", "commit", "0", "async", 60, 8, ATTEMPTS};
static const struct shape large = {"1", "4000", "commit", "0", "wait", 2500, 4000, ATTEMPTS};
/* With threads no two lives are alike: samples of these. */
static const struct shape small_threads = {"3", "8", "commit", "2", "async", 60, 8, ATTEMPTS};
static const struct shape large_threads = {"1", "4000", "none", "2", "async", 2500, 4000, ATTEMPTS};

static uint64_t count_operations(const struct shape *s)
{
    struct life life;
    uint64_t n;

    plan_faults(FAULT_EIO, UINT64_MAX, UINT64_MAX);
    CHECK(live(s, unit_path("life"), &life));
    CHECK_IS(life.failures, 0);
    check_disk(&life, unit_path("life"), 0);
    n = life.operations;
    life_fini(&life);
    return n;
}

static void test_every_write_once(void **state)
{
    const struct shape *shapes[] = {&small, &small_unsynced, &small_once, &small_late};

    (void)state;
    for (size_t s = 0; s < 4; s++) {
        uint64_t n = count_operations(shapes[s]);
        CHECK(n > 40);
        for (int fault = 0; fault < FAULTS; fault++)
            for (uint64_t k = 0; k < n; k += shapes[s] == &small_late ? 5 : 1)
                check_life(shapes[s], (enum fault)fault, k, k + 1);
    }
}

/* The process may have so few descriptors that most logs are opened for each call. */
static void test_every_write_of_released_logs(void **state)
{
    static const struct shape released = {"7", "8", "commit", "0", "wait", 60, 8, ATTEMPTS};
    struct rlimit all;

    (void)state;
    CHECK(getrlimit(RLIMIT_NOFILE, &all) == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){24, all.rlim_max}) == 0);
    uint64_t n = count_operations(&released);
    for (int fault = 0; fault < FAULTS; fault++)
        for (uint64_t k = (uint64_t)fault; k < n; k += 3)
            check_life(&released, (enum fault)fault, k, k + 1);
    CHECK(setrlimit(RLIMIT_NOFILE, &all) == 0);
}

/* Two, three or four operations in a row: the fault meets the way back from the first, too. */
static void test_every_write_in_a_row(void **state)
{
    (void)state;
    uint64_t n = count_operations(&small);
    for (int fault = 0; fault <= FAULT_TORN; fault++)
        for (uint64_t k = 0; k < n; k++)
            for (uint64_t length = 2; length <= 4; length++)
                check_life(&small, (enum fault)fault, k, k + length);
}

static void test_every_write_from_then_on(void **state)
{
    (void)state;
    uint64_t n = count_operations(&small);
    for (int fault = 0; fault < FAULTS; fault++)
        for (uint64_t k = 0; k < n; k++)
            check_life(&small, (enum fault)fault, k, UINT64_MAX);
}

/* Without any fault: what each call has made durable when it returns, and that the manifest is written to last. */
static void test_order_of_syncs(void **state)
{
    const struct shape *shapes[] = {&small, &small_unsynced};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *path = unit_path("order");
        struct life life = {0};
        memset(&unsynced, 0, sizeof unsynced);
        plan_faults(FAULT_EIO, UINT64_MAX, UINT64_MAX);
        fake_io_begin(&plan.fake, fault_do);
        deltafs_dir *d = create(shapes[i], path, &life);
        CHECK(d != NULL && (i == 1 || unsynced_folders() == 0));
        unsynced.premature = 0; /* logs' headers need not be durable before */
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            CHECK_IS(write_epoch(d, &life, epoch, 500, 8), DELTAFS_OK);
            CHECK(i == 1 || (unsynced_files(1) == 0 && unsynced_folders() == 0 && unsynced.premature == 0));
        }
        /* What is discarded at the close is truncated from the data log; that need not be durable. */
        unsynced.lost = 0;
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK(i == 1 || (unsynced.lost <= 3 && unsynced.syncs > 0));
        CHECK(i == 0 || unsynced.syncs == 0);
        io_replace_default(NULL, NULL);
        unit_remove(path);
        life_fini(&life);
    }
}

/* Runs and segments on disk before the epoch's end: some of the operations, as each life takes its time. */
static void test_some_writes_of_many(void **state)
{
    struct rng r = rng_init(91);

    (void)state;
    uint64_t n = count_operations(&large), fired = 0;
    for (int i = 0; i < 15; i++) {
        uint64_t k = rng_below(&r, n), length = i % 3 == 0 ? UINT64_MAX - k : (uint64_t)i % 3;
        fired += (uint64_t)check_life(&large, (enum fault)(i % FAULTS), k, k + length);
    }
    CHECK(fired > 3);
}

/* The same with threads that sort and write, and a commit that comes later. */
static void test_some_writes_of_threads(void **state)
{
    const struct shape *shapes[] = {&small_threads, &large_threads};
    struct rng r = rng_init(92);

    (void)state;
    for (int s = 0; s < 2; s++) {
        uint64_t n = count_operations(shapes[s]), fired = 0;
        for (int i = 0; i < (s == 0 ? 60 : 10); i++) {
            uint64_t k = rng_below(&r, n), length = i % 5 == 0 ? UINT64_MAX - k : 1 + (uint64_t)i % 3;
            fired += (uint64_t)check_life(shapes[s], (enum fault)(i % FAULTS), k, k + length);
        }
        CHECK(fired > 5);
    }
}

/* The commit's line is written, but its sync fails, and so does taking the line back: the epoch may be there, or not,
 * but if so it is whole, however much is appended afterwards. (It was not: segments of the next epoch went into the
 * logs under its number, and made it unreadable.) */
static void test_in_doubt(void **state)
{
    static const struct shape shape = {"1", "8", "commit", "0", "wait", 1000, 8, 1};
    const char *path = unit_path("doubt");
    struct life life = {0};

    (void)state;
    for (int dry_run = 1; dry_run >= 0; dry_run--) {
        static uint64_t end;
        unit_remove(path);
        if (dry_run)
            plan_faults(FAULT_EIO, UINT64_MAX, UINT64_MAX);
        else
            plan_faults(FAULT_EIO, end, end + 2); /* the line's sync, and taking it back */
        fake_io_begin(&plan.fake, fault_do);
        deltafs_dir *d = create(&shape, path, &life);
        CHECK(d != NULL);
        CHECK_IS(write_epoch(d, &life, 0, shape.records, shape.size), dry_run ? DELTAFS_OK : DELTAFS_ERR_IO);
        end = plan.synced;
        if (!dry_run) {
            CHECK_IS(plan.fired, 2);
            CHECK_IS(write_epoch(d, &life, 1, 1000 * shape.records, shape.size), DELTAFS_ERR_IO);
            life.is_broken = 1;
        }
        CHECK_IS(deltafs_close(d), dry_run ? DELTAFS_OK : DELTAFS_ERR_IO);
        io_replace_default(NULL, NULL);
        check_disk(&life, path, 1);
        life_fini(&life);
        life = (struct life){0};
    }
}

/* ---- Reading ---- */

static void make_for_reading(struct life *life, const char *closed, const char *open)
{
    static const struct shape shape = {"3", "any", "none", "0", "wait", 100, 20, 1};

    *life = (struct life){0};
    deltafs_dir *d = create(&shape, closed, life);
    CHECK(d != NULL);
    for (uint64_t epoch = 0; epoch < 3; epoch++)
        CHECK_IS(write_epoch(d, life, epoch, shape.records, shape.size), DELTAFS_OK);
    unit_copy(closed, open);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

/* Open, get, scan and verify under the faults planned; then, with the same handle, without. Returns how many operations
 * the first part had. */
static uint64_t read_under_faults(struct model *m, const char *path)
{
    struct deltafs_verify_counts stat = {.struct_size = sizeof stat};
    struct rng r = {2};
    deltafs_dir *d = NULL;
    uint64_t n = 0;
    int is_hard = plan.fault != FAULT_EINTR && plan.fault != FAULT_SHORT;

    fake_io_begin(&plan.fake, fault_do);
    int status = deltafs_open(path, NULL, &d);
    if (status != DELTAFS_OK) {
        check_status(status, deltafs_errmsg(NULL));
        CHECK(is_hard && d == NULL);
    } else {
        unsigned failed = model_check_honest(m, d);
        status = deltafs_verify(d, NULL, NULL, &stat);
        CHECK(is_hard || (failed == 0 && status == DELTAFS_OK));
        n = plan.count;
        plan.end = 0;
        model_check_all(m, d, &r);
        model_check_scan(m, d, NULL);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
    CHECK_IS(fake_io_end(&plan.fake), 0);
    return n;
}

static void test_every_read(void **state)
{
    const char *paths[] = {unit_path("closed"), unit_path("open")};
    struct life life;

    (void)state;
    make_for_reading(&life, paths[0], paths[1]);
    for (int which = 0; which < 2; which++) {
        plan_faults(FAULT_EIO, UINT64_MAX, UINT64_MAX);
        uint64_t n = read_under_faults(&life.model, paths[which]);
        CHECK(n > 100);
        for (int fault = 0; fault < FAULTS; fault++) {
            for (int from_then_on = 0; from_then_on < 2; from_then_on++) {
                for (uint64_t k = 0; k < n; k += k < 60 ? 1 : 17) {
                    plan_faults((enum fault)fault, k, from_then_on ? UINT64_MAX : k + 1);
                    read_under_faults(&life.model, paths[which]);
                }
            }
        }
    }
    life_fini(&life);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_write_once),
        cmocka_unit_test(test_every_write_of_released_logs),
        cmocka_unit_test(test_every_write_in_a_row),
        cmocka_unit_test(test_every_write_from_then_on),
        cmocka_unit_test(test_order_of_syncs),
        cmocka_unit_test(test_some_writes_of_many),
        cmocka_unit_test(test_some_writes_of_threads),
        cmocka_unit_test(test_in_doubt),
        cmocka_unit_test(test_every_read),
    };

    return cmocka_run_group_tests(tests, setup, teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
