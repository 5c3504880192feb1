/* Containers of logical files: who creates and who removes, many at once, what is refused, and that nothing is removed
 * which is not ours. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fake_io.h"
#include "io/io_format.h"
#include "logical/format/logical_format.h"
#include "logical/format/session.h"
#include "unit_container.h"

#define PROCESSES 8
#define EACH      5

static struct io io;

/* ---- Many at once ---- */

struct report {
    int status;
    uint8_t uuid[16];
    uint32_t number[EACH];
};

/* Have PROCESSES processes do `work` at once; what they report is shared. */
static void at_once(struct report *report, void (*work)(struct report *r, unsigned who))
{
    pid_t pid[PROCESSES];
    int gate[2], status;
    char byte;

    memset(report, 0, PROCESSES * sizeof *report);
    CHECK(pipe(gate) == 0);
    for (unsigned i = 0; i < PROCESSES; i++) {
        pid[i] = fork();
        CHECK(pid[i] >= 0);
        if (pid[i] == 0) {
            close(gate[1]);
            while (read(gate[0], &byte, 1) < 0)
                ;
            work(&report[i], i);
            _exit(0);
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (unsigned i = 0; i < PROCESSES; i++)
        CHECK(waitpid(pid[i], &status, 0) == pid[i] && status == 0);
}

static struct report *new_report(void)
{
    void *p = mmap(NULL, PROCESSES * sizeof(struct report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    return p;
}

static void work_create(struct report *r, int flags)
{
    struct container c;
    struct error e;

    r->status = unit_container_open(&c, "race", flags, &e);
    memcpy(r->uuid, c.uuid, sizeof r->uuid);
    container_fini(&c);
}

static void work_exclusive(struct report *r, unsigned who)
{
    (void)who;
    work_create(r, O_CREAT | O_EXCL);
}

static void work_any(struct report *r, unsigned who)
{
    (void)who;
    work_create(r, O_CREAT);
}

/* Exactly one of them all makes it; without O_EXCL they all have the same. */
static void test_create_race(void **state)
{
    struct report *r = new_report();

    (void)state;
    for (int round = 0; round < 60; round++) {
        int is_exclusive = round % 2, well = 0;
        unit_remove(unit_path("race"));
        if (round % 3 == 2 && !is_exclusive)
            CHECK(mkdir(unit_path("race"), 0777) == 0);
        at_once(r, is_exclusive ? work_exclusive : work_any);
        for (int i = 0; i < PROCESSES; i++) {
            well += r[i].status == DELTAFS_OK;
            CHECK(r[i].status == DELTAFS_OK || (is_exclusive && r[i].status == DELTAFS_ERR_EXISTS));
            CHECK(r[i].status != DELTAFS_OK || is_exclusive || memcmp(r[i].uuid, r[0].uuid, 16) == 0);
        }
        CHECK_IS(well, is_exclusive ? 1 : PROCESSES);
        CHECK_IS(unit_count_entries(unit_path("race")), 2);
    }
    munmap(r, PROCESSES * sizeof *r);
}

static void work_sessions(struct report *r, unsigned who)
{
    struct container c;
    struct session s;
    struct error e;

    r->status = unit_container_open(&c, "race", 0, &e);
    for (int i = 0; i < EACH && r->status == DELTAFS_OK; i++) {
        r->status = session_create(&c, &io, who + 1, who, "", 0, &s, &e);
        r->number[i] = s.number;
    }
    container_fini(&c);
}

/* No number is used twice, and none is left out. */
static void test_session_race(void **state)
{
    struct report *r = new_report();
    struct container c;
    struct session *list;
    struct error e;
    size_t n;

    (void)state;
    unit_remove(unit_path("race"));
    unit_container_make("race", &c);
    at_once(r, work_sessions);
    CHECK_IS(session_list(&c, &io, &list, &n, &e), DELTAFS_OK);
    CHECK_IS(n, PROCESSES * EACH);
    for (int i = 0; i < PROCESSES; i++) {
        CHECK_IS(r[i].status, DELTAFS_OK);
        for (int k = 0; k < EACH; k++) {
            CHECK(r[i].number[k] < n && list[r[i].number[k]].writers == (uint32_t)i + 1);
            list[r[i].number[k]].writers = 0;
        }
    }
    free(list);
    container_fini(&c);
    munmap(r, PROCESSES * sizeof *r);
}

static void work_come_and_go(struct report *r, unsigned who)
{
    struct container c;
    struct error e;

    for (int i = 0; i < 40 && r->status == DELTAFS_OK; i++) {
        r->status =
            who % 2 ? unit_container_open(&c, "race", O_CREAT, &e) : container_remove(&io, unit_path("race"), &e);
        if (who % 2 == 0 && (r->status == DELTAFS_ERR_NOT_FOUND || r->status == DELTAFS_ERR_NOT_DELTAFS))
            r->status = DELTAFS_OK;
        if (who % 2)
            container_fini(&c);
    }
}

/* Making and removing at the same time: whoever makes gets one. */
static void test_remove_race(void **state)
{
    struct report *r = new_report();

    (void)state;
    unit_remove(unit_path("race"));
    at_once(r, work_come_and_go);
    for (int i = 1; i < PROCESSES; i += 2)
        CHECK_IS(r[i].status, DELTAFS_OK);
    munmap(r, PROCESSES * sizeof *r);
}

/* ---- What else may be there ---- */

static void check_place(const char *name, char kind, int plain, int create, int exclusive)
{
    const int flags[] = {0, O_CREAT, O_CREAT | O_EXCL}, want[] = {plain, create, exclusive};
    struct container c;
    struct error e = {0};
    char got = 0;

    CHECK_IS(container_kind(&io, unit_path("%s", name), &got, &e), kind ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(got, kind);
    for (int i = 0; i < 3; i++) {
        CHECK_IS(unit_container_open(&c, name, flags[i], &e), want[i]);
        container_fini(&c);
    }
}

static void test_places(void **state)
{
    struct container c;
    struct error e;
    deltafs_dir *d;

    (void)state;
    check_place("nothing/below", 0, DELTAFS_ERR_NOT_FOUND, DELTAFS_ERR_NOT_FOUND, DELTAFS_ERR_NOT_FOUND);
    check_place("new", 0, DELTAFS_ERR_NOT_FOUND, DELTAFS_OK, DELTAFS_ERR_EXISTS);
    unit_save(unit_path("plain"), "x", 1);
    check_place("plain", '-', DELTAFS_ERR_NOT_DELTAFS, DELTAFS_ERR_NOT_DELTAFS, DELTAFS_ERR_EXISTS);
    CHECK(mkdir(unit_path("folder"), 0777) == 0);
    unit_save(unit_path("folder/mine"), "x", 1);
    check_place("folder", '-', DELTAFS_ERR_NOT_DELTAFS, DELTAFS_ERR_NOT_DELTAFS, DELTAFS_ERR_EXISTS);
    CHECK_IS(container_remove(&io, unit_path("folder"), &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK_IS(container_remove(&io, unit_path("plain"), &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK(unit_exists(unit_path("folder/mine")) && unit_exists(unit_path("plain")));
    /* An empty folder is somebody's, unless it is taken for a file whose maker died. */
    CHECK(mkdir(unit_path("empty"), 0777) == 0);
    CHECK_IS(unit_container_open(&c, "empty", O_CREAT | O_EXCL, &e), DELTAFS_ERR_EXISTS);
    container_fini(&c);
    check_place("empty", '-', DELTAFS_ERR_NOT_FOUND, DELTAFS_OK, DELTAFS_ERR_EXISTS);
    CHECK(symlink("nowhere", unit_path("dangling")) == 0);
    CHECK_IS(unit_container_open(&c, "dangling", O_CREAT, &e), DELTAFS_ERR_NOT_FOUND);
    CHECK(strstr(e.text, "leads to nothing"));
    container_fini(&c);
    /* A directory, and one opened as what it is not. */
    CHECK_IS(deltafs_close(unit_create(unit_path("dir"), unit_options(NULL))), DELTAFS_OK);
    check_place("dir", 'd', DELTAFS_ERR_NOT_DELTAFS, DELTAFS_ERR_NOT_DELTAFS, DELTAFS_ERR_EXISTS);
    CHECK_IS(container_remove(&io, unit_path("dir"), &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK_IS(deltafs_close(unit_open(unit_path("dir"))), DELTAFS_OK);
    unit_remove(unit_path("file"));
    unit_container_make("file", &c);
    container_fini(&c);
    check_place("file", 'f', DELTAFS_OK, DELTAFS_OK, DELTAFS_ERR_EXISTS);
    CHECK_IS(deltafs_open(unit_path("file"), NULL, &d), DELTAFS_ERR_NOT_DELTAFS);
    CHECK(strstr(deltafs_errmsg(NULL), "logical file") && strstr(deltafs_errmsg(NULL), "not a directory"));
    /* A link to it is a name of it, which is removed alone. */
    CHECK(symlink(unit_path("file"), unit_path("link")) == 0);
    check_place("link", 'f', DELTAFS_OK, DELTAFS_OK, DELTAFS_ERR_EXISTS);
    CHECK_IS(container_remove(&io, unit_path("link"), &e), DELTAFS_OK);
    CHECK(!unit_exists(unit_path("link")));
    check_place("file", 'f', DELTAFS_OK, DELTAFS_OK, DELTAFS_ERR_EXISTS);
    CHECK_IS(container_remove(&io, unit_path("file/"), &e), DELTAFS_OK);
    CHECK(!unit_exists(unit_path("file")));
}

/* A maker that died: its folder is not a file yet, is finished by the next, and can be removed. */
static void test_begun(void **state)
{
    static const char aside[] = "begun/MANIFEST.new-01234567-89ab-4cde-8f01-23456789abcd";
    struct error e;

    (void)state;
    for (int round = 0; round < 2; round++) {
        CHECK(mkdir(unit_path("begun"), 0777) == 0);
        CHECK_IS(container_remove(&io, unit_path("begun"), &e), DELTAFS_ERR_NOT_FOUND);
        unit_save(unit_path("%s", aside), "Deltafs ver", 11);
        if (round == 0)
            check_place("begun", '-', DELTAFS_ERR_NOT_FOUND, DELTAFS_OK, DELTAFS_ERR_EXISTS);
        CHECK_IS(container_remove(&io, unit_path("begun"), &e), DELTAFS_OK);
        CHECK(!unit_exists(unit_path("begun")));
    }
}

/* Something in it that is not ours, at any depth: nothing is touched. */
static void test_remove_foreign(void **state)
{
    static const char *const foreign[] = {
        "mine",       "s00000000/mine",      "s00000001/01/mine", "s00000001/01/w0000.data", "MANIFEST.new-x",
        "s0000000g",  "s00000000/00000001",  "s00000001/zz",      "s00000001/w00000001.dat", "LEASE",
        "s000000000", "s00000001/01/SESSION"};
    struct container c, other;
    struct session s;
    struct error e;

    (void)state;
    unit_container_make("foreign", &c);
    unit_session_make(&c, 5, "", &s);
    unit_session_make(&c, 200, "", &s);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        unit_save(unit_path("foreign/%s", foreign[i]), "mine", 4);
        unsigned before = unit_count_entries(unit_folder);
        CHECK_IS(container_remove(&io, unit_path("foreign"), &e), DELTAFS_ERR_NOT_DELTAFS);
        CHECK(strstr(e.text, foreign[i]));
        CHECK_IS(unit_count_entries(unit_folder), before);
        unit_remove(unit_path("foreign/%s", foreign[i]));
    }
    /* Links out of it. */
    unit_container_make("other", &other);
    container_fini(&other);
    CHECK(symlink(unit_path("other"), unit_path("foreign/s00000007")) == 0);
    CHECK_IS(container_remove(&io, unit_path("foreign"), &e), DELTAFS_ERR_NOT_DELTAFS);
    unit_remove(unit_path("foreign/s00000007"));
    CHECK(symlink(unit_path("other"), unit_path("foreign/s00000000/00")) == 0);
    CHECK_IS(container_remove(&io, unit_path("foreign"), &e), DELTAFS_ERR_NOT_DELTAFS);
    unit_remove(unit_path("foreign/s00000000/00"));
    CHECK_IS(container_remove(&io, unit_path("foreign"), &e), DELTAFS_OK);
    CHECK(!unit_exists(unit_path("foreign")) && unit_exists(unit_path("other/MANIFEST")));
    container_fini(&c);
}

/* ---- Without locks, and with names that are seen late ---- */

/* A file system without locks; another process records session 7 once MANIFEST has been read. */
static struct {
    const struct container *c;
    int is_due;
} lockless;

static ssize_t append_behind_reader(struct fake_call *c)
{
    struct error e;
    uint32_t number = 7;

    if (c->op == FAKE_LOCK)
        return -ENOLCK;
    ssize_t rc = fake_do(c);
    /* The second read is that of the lines. */
    if (c->op != FAKE_READ || !strstr(c->path, "/MANIFEST") || lockless.is_due == 0 || --lockless.is_due > 0)
        return rc;
    CHECK_IS(container_record(lockless.c, &io, RECORD_CREATED, &number, 1, 0, &e), DELTAFS_OK);
    return rc;
}

/* A line that another process appends meanwhile is not truncated. */
static void test_record_without_locks(void **state)
{
    static struct fake_io fake;
    struct io without = {.ops = &fake.ops, .ctx = &fake};
    struct container c, now;
    struct session s, *list;
    struct error e;
    uint32_t number = 3;
    size_t size, n;

    (void)state;
    fake_io_init(&fake, append_behind_reader);
    unit_container_make("lockless", &c);
    lockless.c = &c;
    lockless.is_due = 2;
    CHECK_IS(container_record(&c, &without, RECORD_CREATED, &number, 1, 0, &e), DELTAFS_OK);
    CHECK_IS(lockless.is_due, 0);
    CHECK_IS(container_read(&c, &io, &now, &e), DELTAFS_OK);
    CHECK(now.recorded_count == 2 && now.recorded[0].number == 3 && now.recorded[1].number == 7);
    container_fini(&now);
    /* Nor is one that may be half written; its writer is waited for. */
    uint8_t *file = unit_load(unit_path("lockless/MANIFEST"), &size);
    unit_save(unit_path("lockless/MANIFEST"), file, size - 4);
    number = 9;
    CHECK_IS(container_record(&c, &without, RECORD_CREATED, &number, 1, 0, &e), DELTAFS_ERR_BUSY);
    CHECK(strstr(e.text, "lockless/MANIFEST") && strstr(e.text, "truncate -s"));
    uint8_t *after = unit_load(unit_path("lockless/MANIFEST"), &n);
    CHECK(n == size - 4 && memcmp(after, file, n) == 0);
    /* Nor does a session stay that could not be recorded. */
    CHECK_IS(session_create(&c, &without, 1, 1, "", 0, &s, &e), DELTAFS_ERR_BUSY);
    CHECK_IS(session_list(&c, &io, &list, &n, &e), DELTAFS_OK);
    CHECK_IS(n, 0);
    free(list);
    CHECK_IS(unit_count_entries(unit_path("lockless")), 2);
    CHECK_IS(container_record(&c, &io, RECORD_CREATED, &number, 1, 0, &e), DELTAFS_OK);
    CHECK_IS(container_read(&c, &io, &now, &e), DELTAFS_OK);
    CHECK(now.recorded_count == 2 && now.recorded[1].number == 9);
    container_fini(&now);
    container_fini(&c);
    free(after);
    free(file);
}

/* This host remembers that a name was missing until it refreshes the folder, as NFS does. */
static struct {
    char path[PATH_ROOM];
    int is_stale;
} unseen;

static ssize_t open_unseen(struct fake_call *c)
{
    size_t n = strlen(c->path);

    if (c->op == FAKE_OPEN && unseen.is_stale && strcmp(c->path, unseen.path) == 0)
        return -ENOENT;
    if (c->op == FAKE_REFRESH && strncmp(c->path, unseen.path, n) == 0 && strrchr(unseen.path, '/') == unseen.path + n)
        unseen.is_stale = 0;
    return c->op == FAKE_REFRESH ? 1 : fake_do(c);
}

static void test_missing_name_is_cached(void **state)
{
    static const char *const names[] = {"unseen/s00000000/SESSION", "unseen/MANIFEST"};
    static struct fake_io fake;
    struct io cached = {.ops = &fake.ops, .ctx = &fake};
    struct container c, other;
    struct session s, got;
    struct error e = {0};

    (void)state;
    fake_io_init(&fake, open_unseen);
    fake_io_has_all(&fake);
    unit_container_make("unseen", &c);
    unit_session_make(&c, 1, "", &s);
    for (int i = 0; i < 2; i++) {
        snprintf(unseen.path, sizeof unseen.path, "%s", unit_path("%s", names[i]));
        unseen.is_stale = 1;
        if (container_open(&other, &cached, unit_path("unseen"), O_RDONLY, 0, &e) != DELTAFS_OK)
            fail_msg("%s", e.text);
        unseen.is_stale = 1;
        CHECK_IS(session_check_missing(&other, &cached, 0, NULL, &e), DELTAFS_OK);
        unseen.is_stale = 1;
        CHECK_IS(session_read(&other, &cached, 0, &got, &e), DELTAFS_OK);
        container_fini(&other);
    }
    container_fini(&c);
}

static int refreshes;

/* An open that is not awaited refreshes, too. */
static ssize_t count_refreshes(struct fake_call *c)
{
    if (c->op == FAKE_REFRESH)
        return ++refreshes > 0;
    ssize_t rc = fake_do(c);
    refreshes += c->op == FAKE_OPEN && rc >= 0 && !(c->flags & IO_AWAITED);
    return rc;
}

/* For a missing name its folder is refreshed once. A plain file, which is no folder, is not: that costs a sync. */
static void test_refreshed_once(void **state)
{
    static const char *const names[] = {"plain.once", "folder.once"};
    static struct fake_io fake;
    struct io cached = {.ops = &fake.ops, .ctx = &fake};
    struct error e;
    char kind;

    (void)state;
    fake_io_init(&fake, count_refreshes);
    fake_io_has_all(&fake);
    unit_save(unit_path("plain.once"), "x", 1);
    CHECK(mkdir(unit_path("folder.once"), 0777) == 0);
    for (int i = 0; i < 2; i++) {
        refreshes = 0;
        CHECK_IS(container_kind(&cached, unit_path("%s", names[i]), &kind, &e), DELTAFS_OK);
        CHECK_IS(kind, '-');
        CHECK_IS(refreshes, i);
    }
}

static int setup(void **state)
{
    io = io_default();
    return unit_setup(state);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_race),
        cmocka_unit_test(test_session_race),
        cmocka_unit_test(test_remove_race),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_begun),
        cmocka_unit_test(test_remove_foreign),
        cmocka_unit_test(test_record_without_locks),
        cmocka_unit_test(test_missing_name_is_cached),
        cmocka_unit_test(test_refreshed_once),
    };

    return cmocka_run_group_tests(tests, setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
