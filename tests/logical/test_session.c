/* Containers of logical files and their sessions: who creates, who claims, what is refused, and that nothing is removed
 * which is not ours. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/crc32c.h"
#include "io/io_format.h"
#include "io/volume.h"
#include "logical/format/logical_format.h"
#include "logical/format/session.h"
#include "fake_io.h"
#include "unit_help.h"
#include "unit_kth.h"

#define PROCESSES 8
#define EACH      5

static struct io io;

static int open_it(struct container *c, const char *name, int flags, struct error *e)
{
    return container_open(c, &io, unit_path("%s", name), flags, 0, e);
}

static void test_life(void **state)
{
    struct container c;
    struct session s, *list;
    struct error e;
    size_t n;
    char kind;

    (void)state;
    CHECK_IS(open_it(&c, "life", O_RDONLY, &e), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(open_it(&c, "life", O_CREAT | O_EXCL, &e), DELTAFS_OK);
    CHECK_IS(container_kind(&io, unit_path("life"), &kind, &e), DELTAFS_OK);
    CHECK_IS(kind, 'f');
    CHECK_IS(session_list(&c, &io, &list, &n, &e), DELTAFS_OK);
    CHECK_IS(n, 0);
    free(list);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_IS(session_create(&c, &io, 100 * i + 1, 10 + i, "", 0, &s, &e), DELTAFS_OK);
        CHECK_IS(s.number, i);
        if (i == 1)
            CHECK_IS(session_close(&c, &io, &s, 50, 77, 4711, 0, &e), DELTAFS_OK);
        for (uint32_t w = 0; w < s.writers; w += 50) {
            char path[PATH_ROOM];
            session_log_path(&c, &s, w, LOG_KIND_FRAMES, path);
            unit_save(path, "x", 1);
        }
    }
    CHECK_IS(session_list(&c, &io, &list, &n, &e), DELTAFS_OK);
    CHECK_IS(n, 3);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t *writer;
        CHECK(list[i].number == i && list[i].writers == 100 * i + 1 && list[i].order == 10 + i);
        CHECK_IS(list[i].is_closed, i == 1);
        CHECK_IS(session_logs(&c, &io, &list[i], LOG_KIND_FRAMES, &writer, &n, &e), DELTAFS_OK);
        CHECK_IS(n, 2 * i + 1);
        for (uint32_t k = 0; k < n; k++)
            CHECK_IS(writer[k], 50 * k);
        free(writer);
    }
    CHECK(list[1].logs == 50 && list[1].last_order == 77 && list[1].size == 4711);
    CHECK(list[0].buckets == 0 && list[2].buckets == 4);
    CHECK_IS(session_remove(&c, &io, list[1].number, 1, &e), DELTAFS_OK);
    free(list);
    CHECK_IS(session_list(&c, &io, &list, &n, &e), DELTAFS_OK);
    CHECK_IS(n, 2);
    free(list);
    container_fini(&c);
    CHECK_IS(container_remove(&io, unit_path("life"), &e), DELTAFS_OK);
    CHECK(!unit_exists(unit_path("life")));
    CHECK_IS(container_remove(&io, unit_path("life"), &e), DELTAFS_ERR_NOT_FOUND);
}

static unsigned entries;

static int count_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)path;
    (void)st;
    (void)flag;
    (void)ftw;
    entries++;
    return 0;
}

/* How many files and folders there are at a path. */
static unsigned count_entries(const char *path)
{
    entries = 0;
    nftw(path, count_one, 16, FTW_PHYS);
    return entries;
}

static void make(const char *name, struct container *c)
{
    struct error e;

    CHECK_IS(open_it(c, name, O_CREAT | O_EXCL, &e), DELTAFS_OK);
}

/* A session with the logs of every third writer. */
static void make_session(const struct container *c, uint32_t writers, const char *volumes, struct session *s)
{
    struct error e = {0};

    if (session_create(c, &io, writers, 5, volumes, 0, s, &e) != DELTAFS_OK)
        fail_msg("%s", e.text);
    for (uint32_t w = 0; w < writers; w += 3)
        for (int kind = LOG_KIND_FRAMES; kind <= LOG_KIND_EXTENTS; kind++) {
            char path[PATH_ROOM];
            session_log_path(c, s, w, kind, path);
            unit_save(path, "x", 1);
        }
}

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

    r->status = open_it(&c, "race", flags, &e);
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
        CHECK_IS(count_entries(unit_path("race")), 2);
    }
    munmap(r, PROCESSES * sizeof *r);
}

static void work_claim(struct report *r, unsigned who)
{
    struct container c;
    struct session s;
    struct error e;

    r->status = open_it(&c, "race", 0, &e);
    for (int i = 0; i < EACH && r->status == DELTAFS_OK; i++) {
        r->status = session_create(&c, &io, who + 1, who, "", 0, &s, &e);
        r->number[i] = s.number;
    }
    container_fini(&c);
}

/* No number is claimed twice, and none is left out. */
static void test_claim_race(void **state)
{
    struct report *r = new_report();
    struct container c;
    struct session *list;
    struct error e;
    size_t n;

    (void)state;
    unit_remove(unit_path("race"));
    make("race", &c);
    at_once(r, work_claim);
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

/* What others do when the folder of session 1 is about to be made: they claim it, and two more, of which the second
 * with logs removes it, and the third has none yet. */
static struct {
    const struct container *c;
    int is_due;
} rivals;

static ssize_t mkdir_behind_others(struct fake_call *c)
{
    struct session s[2], third;
    struct error e;

    if (c->op == FAKE_MKDIR && rivals.is_due && strstr(c->path, "/s00000001")) {
        rivals.is_due = 0;
        for (int i = 0; i < 2; i++)
            make_session(rivals.c, 4, "", &s[i]);
        CHECK_IS(session_create(rivals.c, &io, 4, 5, "", 0, &third, &e), DELTAFS_OK);
        CHECK_IS(session_close(rivals.c, &io, &s[0], 2, 6, 7, 0, &e), DELTAFS_OK);
        CHECK_IS(session_remove(rivals.c, &io, s[0].number, 0, &e), DELTAFS_OK);
    }
    return fake_do(c);
}

/* A number that others have used and given up meanwhile is not taken again: they may know what had it. */
static void test_claim_late(void **state)
{
    static struct fake_io fake;
    struct io late = {.ops = &fake.ops, .ctx = &fake};
    struct container c;
    struct session s;
    struct error e;

    (void)state;
    fake_io_init(&fake, mkdir_behind_others);
    CHECK(mkdir(unit_path("vlate"), 0777) == 0);
    make("late", &c);
    make_session(&c, 4, "", &s);
    rivals.c = &c;
    rivals.is_due = 1;
    CHECK_IS(session_create(&c, &late, 4, 5, unit_path("vlate"), 0, &s, &e), DELTAFS_OK);
    CHECK_IS(rivals.is_due, 0);
    CHECK_IS(s.number, 4);
    CHECK(!unit_exists(unit_path("late/s00000001")));
    CHECK(!unit_exists(unit_path("vlate/deltafs.%s/s00000001", c.uuid_text)));
    container_fini(&c);
}

static void work_come_and_go(struct report *r, unsigned who)
{
    struct container c;
    struct error e;

    for (int i = 0; i < 40 && r->status == DELTAFS_OK; i++) {
        r->status = who % 2 ? open_it(&c, "race", O_CREAT, &e) : container_remove(&io, unit_path("race"), &e);
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
        CHECK_IS(open_it(&c, name, flags[i], &e), want[i]);
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
    CHECK_IS(open_it(&c, "empty", O_CREAT | O_EXCL, &e), DELTAFS_ERR_EXISTS);
    container_fini(&c);
    check_place("empty", '-', DELTAFS_ERR_NOT_FOUND, DELTAFS_OK, DELTAFS_ERR_EXISTS);
    CHECK(symlink("nowhere", unit_path("dangling")) == 0);
    CHECK_IS(open_it(&c, "dangling", O_CREAT, &e), DELTAFS_ERR_NOT_FOUND);
    CHECK(strstr(e.text, "leads to nothing"));
    container_fini(&c);
    /* A directory, and one opened as what it is not. */
    CHECK_IS(deltafs_close(unit_create(unit_path("dir"), unit_options(NULL))), DELTAFS_OK);
    check_place("dir", 'd', DELTAFS_ERR_NOT_DELTAFS, DELTAFS_ERR_NOT_DELTAFS, DELTAFS_ERR_EXISTS);
    CHECK_IS(container_remove(&io, unit_path("dir"), &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK_IS(deltafs_close(unit_open(unit_path("dir"))), DELTAFS_OK);
    unit_remove(unit_path("file"));
    make("file", &c);
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
    make("foreign", &c);
    make_session(&c, 5, "", &s);
    make_session(&c, 200, "", &s);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        unit_save(unit_path("foreign/%s", foreign[i]), "mine", 4);
        unsigned before = count_entries(unit_folder);
        CHECK_IS(container_remove(&io, unit_path("foreign"), &e), DELTAFS_ERR_NOT_DELTAFS);
        CHECK(strstr(e.text, foreign[i]));
        CHECK_IS(count_entries(unit_folder), before);
        unit_remove(unit_path("foreign/%s", foreign[i]));
    }
    /* Links out of it. */
    make("other", &other);
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

/* ---- Sessions ---- */

static int list_it(const struct container *c, struct session *first, size_t *n, struct error *e)
{
    struct session *list;
    int status = session_list(c, &io, &list, n, e);

    if (status != DELTAFS_OK)
        return status;
    if (*n > 0)
        *first = list[0];
    free(list);
    return DELTAFS_OK;
}

static size_t put_line(char *out, const char *text)
{
    return (size_t)sprintf(out, "%s ~%08x\n", text, crc32c(0, text, strlen(text)));
}

static void test_lines(void **state)
{
    static const struct {
        const char *first, *second;
        int status;
    } cases[] = {
        {"Session writers=1 order=0 buckets=0", NULL, DELTAFS_OK},
        {"Session writers=16777216 order=9223372036854775807 buckets=256", NULL, DELTAFS_OK},
        {"Session writers=4 order=9223372036854775808 buckets=0", NULL, DELTAFS_ERR_DAMAGED},
        {"Session writers=4 order=0 buckets=0", "later that=is all=right", DELTAFS_OK},
        {"Session writers=4 order=0 buckets=0", "Later that=is not", DELTAFS_ERR_VERSION},
        {"Session writers=0 order=0 buckets=0", NULL, DELTAFS_ERR_DAMAGED},
        {"Session writers=16777217 order=0 buckets=0", NULL, DELTAFS_ERR_DAMAGED},
        {"Session writers=4294967297 order=0 buckets=0", NULL, DELTAFS_ERR_DAMAGED},
        {"Session writers=4 order=0 buckets=257", NULL, DELTAFS_ERR_DAMAGED},
        {"Session writers=4 order=18446744073709551616 buckets=0", NULL, DELTAFS_ERR_DAMAGED},
        {"Session writers=4 buckets=0", NULL, DELTAFS_ERR_DAMAGED},
        {"close logs=1 order=0 size=0", NULL, DELTAFS_ERR_DAMAGED},
        {"Session writers=4 order=0 buckets=0", "Session writers=4 order=0 buckets=0", DELTAFS_ERR_DAMAGED},
        {"Session writers=4 order=0 buckets=0", "close logs=5 order=0 size=0", DELTAFS_ERR_DAMAGED},
        {"Session writers=4 order=0 buckets=0", "close logs=4 order=0 size=9223372036854775808", DELTAFS_ERR_DAMAGED},
        {"Session writers=4 order=0 buckets=0", "close logs=4 size=0", DELTAFS_ERR_DAMAGED},
    };
    static char text[1 << 17];
    struct container c;
    struct session s;
    struct error e;
    size_t n;

    (void)state;
    make("lines", &c);
    make_session(&c, 4, "", &s);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        n = put_line(text, cases[i].first);
        if (cases[i].second)
            n += put_line(text + n, cases[i].second);
        unit_save(unit_path("lines/s00000000/SESSION"), text, n);
        CHECK_IS(list_it(&c, &s, &n, &e), cases[i].status);
    }
    memset(text, 'a', sizeof text);
    unit_save(unit_path("lines/s00000000/SESSION"), text, sizeof text);
    CHECK_IS(list_it(&c, &s, &n, &e), DELTAFS_ERR_DAMAGED);
    /* The last number there is: no other is claimed, and none is overrun. */
    CHECK(mkdir(unit_path("lines/sffffffff"), 0777) == 0);
    CHECK_IS(session_create(&c, &io, 1, 0, "", 0, &s, &e), DELTAFS_ERR_DAMAGED);
    CHECK_IS(session_create(&c, &io, 0, 0, "", 0, &s, &e), DELTAFS_ERR_INVALID);
    container_fini(&c);
}

/* A closing line that is cut short is none; closing again replaces it. Any other byte that changes is found. */
static void test_torn(void **state)
{
    struct container c;
    struct session s, got;
    struct error e;
    size_t size, n;

    (void)state;
    make("torn", &c);
    make_session(&c, 4, "", &s);
    CHECK_IS(session_close(&c, &io, &s, 2, 99, 1234, 0, &e), DELTAFS_OK);
    CHECK(s.is_closed && s.logs == 2 && s.last_order == 99 && s.size == 1234);
    uint8_t *file = unit_load(unit_path("torn/s00000000/SESSION"), &size);
    size_t first = (size_t)((uint8_t *)memchr(file, '\n', size) + 1 - file);
    for (size_t cut = 0; cut < size; cut++) {
        unit_save(unit_path("torn/s00000000/SESSION"), file, cut);
        CHECK_IS(list_it(&c, &got, &n, &e), cut < first ? DELTAFS_ERR_DAMAGED : DELTAFS_OK);
        if (cut < first)
            continue;
        CHECK(!got.is_closed && !got.has_index && got.writers == 4 && got.order == 5);
        CHECK_IS(session_close(&c, &io, &got, 2, 99, 1234, 0, &e), DELTAFS_OK);
        uint8_t *again = unit_load(unit_path("torn/s00000000/SESSION"), &n);
        CHECK(n == size && memcmp(again, file, n) == 0);
        free(again);
    }
    for (size_t i = 0; i < size; i++) {
        unit_poke(unit_path("torn/s00000000/SESSION"), i, file[i] ^ 1);
        CHECK_IS(list_it(&c, &got, &n, &e), DELTAFS_ERR_DAMAGED);
        unit_poke(unit_path("torn/s00000000/SESSION"), i, file[i]);
    }
    unit_save(unit_path("torn/s00000000/INDEX"), "x", 1);
    CHECK_IS(list_it(&c, &got, &n, &e), DELTAFS_OK);
    CHECK(got.is_closed && got.has_index);
    free(file);
    container_fini(&c);
}

/* A session of the same number, of a file that was made anew, is not closed instead; nor by another's words. */
static void test_other_session(void **state)
{
    struct container old, new;
    struct session s, other;
    struct error e;
    size_t n;

    (void)state;
    make("again", &old);
    CHECK_IS(session_create(&old, &io, 4, 5, "", 0, &s, &e), DELTAFS_OK);
    CHECK_IS(container_check(&old, &io, &e), DELTAFS_OK);
    CHECK_IS(container_remove(&io, unit_path("again"), &e), DELTAFS_OK);
    CHECK_IS(container_check(&old, &io, &e), DELTAFS_ERR_NOT_FOUND);
    make("again", &new);
    CHECK_IS(container_check(&old, &io, &e), DELTAFS_ERR_NOT_FOUND);
    CHECK(strstr(e.text, "created again"));
    CHECK_IS(container_check(&new, &io, &e), DELTAFS_OK);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_IS(session_create(&new, &io,
                                i == 0   ? 3
                                : i == 1 ? 4
                                         : 70,
                                i == 1 ? 6 : 5, "", 0, &other, &e),
                 DELTAFS_OK);
        s.number = other.number;
        s.writers = i == 2 ? 70 : 4;
        CHECK_IS(session_close(&old, &io, &s, 1, 9, 9, 0, &e), DELTAFS_ERR_NOT_FOUND);
        CHECK(strstr(e.text, "another session's") && !s.is_closed);
    }
    CHECK_IS(list_it(&new, &other, &n, &e), DELTAFS_OK);
    CHECK(n == 3 && !other.is_closed);
    container_fini(&old);
    container_fini(&new);
}

/* ---- Failures ---- */

static int faulty_life(struct io *faulty, const char *volumes)
{
    struct container c;
    struct session s, *list;
    struct error e;
    size_t n;
    int status = container_open(&c, faulty, unit_path("fault"), O_CREAT, 1, &e);

    if (status == DELTAFS_OK)
        status = session_create(&c, faulty, 130, 1, volumes, 1, &s, &e);
    if (status == DELTAFS_OK)
        status = session_sync_folder(&c, faulty, &s, 129, &e);
    if (status == DELTAFS_OK)
        status = session_close(&c, faulty, &s, 3, 4, 5, 1, &e);
    if (status == DELTAFS_OK)
        status = session_list(&c, faulty, &list, &n, &e);
    if (status == DELTAFS_OK) {
        CHECK(n == 1 && list[0].is_closed);
        free(list);
    }
    container_fini(&c);
    return status;
}

/* Whatever fails, it is an error; no session is half there, a second attempt goes well, and it can all be removed. */
static void test_faults(void **state)
{
    char volumes[600];
    struct container c;
    struct session s;
    struct error e;
    size_t n;
    int goes_on = 1;

    (void)state;
    snprintf(volumes, sizeof volumes, "%s:%s", unit_path("v1"), unit_path("v2"));
    CHECK(mkdir(unit_path("v1"), 0777) == 0 && mkdir(unit_path("v2"), 0777) == 0);
    for (uint64_t k = 0; goes_on; k++) {
        struct io faulty;
        unit_kth_begin(&faulty, k, EIO);
        int status = faulty_life(&faulty, k % 2 ? "" : volumes), has_failed = unit_kth_end();
        /* Nothing hangs on some of them: on closing what was read, on removing the name that a link has replaced. */
        CHECK(status == DELTAFS_OK || (has_failed && status == DELTAFS_ERR_IO));
        CHECK_IS(open_it(&c, "fault", O_CREAT, &e), DELTAFS_OK);
        CHECK_IS(list_it(&c, &s, &n, &e), DELTAFS_OK);
        CHECK(n <= 1 && (n == 0 || s.writers == 130));
        make_session(&c, 10, volumes, &s);
        container_fini(&c);
        CHECK_IS(container_remove(&io, unit_path("fault"), &e), DELTAFS_OK);
        CHECK_IS(count_entries(unit_path("v1")) + count_entries(unit_path("v2")), 2);
        goes_on = has_failed || k % 2;
    }
}

/* Removal that fails can be gone on with, under the name that the message says. */
static void test_remove_faults(void **state)
{
    struct container c;
    struct session s;
    struct error e;
    int goes_on = 1;

    (void)state;
    for (uint64_t k = 0; goes_on; k++) {
        struct io faulty;
        char hidden[600];
        make("gone", &c);
        make_session(&c, 5, "", &s);
        make_session(&c, 100, unit_path("v1"), &s);
        container_fini(&c);
        unit_kth_begin(&faulty, k, EIO);
        int status = container_remove(&faulty, unit_path("gone"), &e);
        goes_on = unit_kth_end();
        CHECK(status == DELTAFS_OK || (goes_on && status == DELTAFS_ERR_IO));
        if (status == DELTAFS_OK) {
            CHECK_IS(count_entries(unit_path("v1")), 1);
            CHECK(!unit_exists(unit_path("gone")));
            continue;
        }
        if (!unit_exists(unit_path("gone"))) {
            const char *at = strstr(e.text, ".deltafs-removed-");
            CHECK(at);
            snprintf(hidden, sizeof hidden, "%s/%.*s", unit_folder, 17 + 36, at);
        } else {
            snprintf(hidden, sizeof hidden, "%s", unit_path("gone"));
        }
        status = container_remove(&io, hidden, &e);
        /* But for the manifest it was empty already. */
        CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND);
        unit_remove(hidden);
        CHECK_IS(count_entries(unit_path("v1")), 1);
    }
}

/* Whenever the removal of a session is cut short, it still counts and is whole, or is known to be removed as long as it
 * has logs; and the next one that comes by removes the rest. */
static void test_remove_session_faults(void **state)
{
    int goes_on = 1, before = 0, remains = 0;
    struct container c;
    struct session s, now;
    struct error e;

    (void)state;
    make("short", &c);
    for (uint64_t k = 0; goes_on || k % 2; k++) {
        struct io faulty;
        uint32_t *writer = NULL;
        size_t n = 0;
        int is_removed;
        make_session(&c, 7, k % 2 ? unit_path("v1") : "", &s);
        unit_kth_begin(&faulty, k / 2, EIO);
        int status = session_remove(&c, &faulty, s.number, 1, &e);
        goes_on = unit_kth_end();
        CHECK_IS(status, goes_on ? DELTAFS_ERR_IO : DELTAFS_OK);
        int read = session_read(&c, &io, s.number, &now, &e);
        CHECK_IS(session_is_removed(&c, &io, s.number, &is_removed, &e), DELTAFS_OK);
        if (!is_removed && unit_exists(unit_path("short/s%08x", s.number)))
            CHECK_IS(session_guess(&c, &io, s.number, &now, &writer, &n, &e), DELTAFS_OK);
        CHECK(read == DELTAFS_OK ? n == 3 : read == DELTAFS_ERR_NOT_FOUND && (is_removed || n == 0));
        CHECK(read != DELTAFS_OK || !is_removed);
        before += read == DELTAFS_OK;
        remains += is_removed;
        free(writer);
        if (session_remove(&c, &io, s.number, 1, &e) != DELTAFS_OK)
            fail_msg("operation %llu: %s", (unsigned long long)k, e.text);
        CHECK_IS(count_entries(unit_path("short")), 2);
        CHECK_IS(count_entries(unit_path("v1")), 1);
    }
    CHECK(before > 0 && remains > 0);
    container_fini(&c);
    CHECK_IS(container_remove(&io, unit_path("short"), &e), DELTAFS_OK);
}

/* ---- Volumes ---- */

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
    struct error e;
    uint32_t number = 3;
    size_t size, n;

    (void)state;
    fake_io_init(&fake, append_behind_reader);
    make("lockless", &c);
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
    make("unseen", &c);
    make_session(&c, 1, "", &s);
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

static void test_volumes(void **state)
{
    static const struct {
        uint32_t writers, volumes, buckets;
    } cases[] = {{1, 0, 0}, {64, 0, 0},  {65, 0, 2},        {1000, 0, 16}, {1 << 20, 0, 256}, {1, 1, 1},
                 {3, 3, 3}, {200, 3, 6}, {1 << 20, 3, 255}, {1, 4, 1},     {3, 4, 3},         {70, 4, 4}};
    char volumes[2000], target[600];
    struct container c;
    struct session s;
    struct error e;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = 0;
        volumes[0] = '\0';
        for (uint32_t v = 0; v < cases[i].volumes; v++) {
            mkdir(unit_path("vol%u", v), 0777);
            n += (size_t)snprintf(volumes + n, sizeof volumes - n, "%s%s", v ? ":" : "", unit_path("vol%u", v));
        }
        make("spread", &c);
        CHECK_IS(session_create(&c, &io, cases[i].writers, 5, volumes, 0, &s, &e), DELTAFS_OK);
        CHECK_IS(s.buckets, cases[i].buckets);
        uint32_t first = 0;
        if (cases[i].volumes > 0) {
            size_t skip = strlen(unit_path("vol"));
            CHECK(readlink(unit_path("spread/s00000000/00"), target, sizeof target) > (ssize_t)skip);
            first = (uint32_t)(target[skip] - '0');
        }
        for (uint32_t w = 0; w < cases[i].writers && w < 1000; w += 7) {
            char path[PATH_ROOM];
            session_log_path(&c, &s, w, LOG_KIND_EXTENTS, path);
            unit_save(path, "x", 1);
            if (cases[i].volumes > 0) {
                snprintf(target, sizeof target, "%s/deltafs.%s/s00000000/%02x/w%08x.extents",
                         unit_path("vol%u", (first + w % s.buckets) % cases[i].volumes), c.uuid_text, w % s.buckets, w);
                CHECK(unit_exists(target));
            }
        }
        container_fini(&c);
        CHECK_IS(container_remove(&io, unit_path("spread"), &e), DELTAFS_OK);
        for (uint32_t v = 0; v < cases[i].volumes; v++)
            CHECK_IS(count_entries(unit_path("vol%u", v)), 1);
    }
}

static void check_even(const unsigned on[4], unsigned n, unsigned percent)
{
    for (int i = 0; i < 4; i++)
        if (on[i] * 400 < n * (100 - percent) || on[i] * 400 > n * (100 + percent))
            fail_msg("%u, %u, %u, %u of %u", on[0], on[1], on[2], on[3], n);
}

/* Files, or sessions of one file, of one writer each on 4 volumes: the first 1,000 are within 10 % of even (which is
 * less than two standard deviations, so there are seeds with more), and 100,000 within 2 %. (All were on the first.) */
static void test_volumes_are_even(void **state)
{
    struct rng r = rng_of(4);

    (void)state;
    for (int is_one = 0; is_one < 2; is_one++) {
        unsigned on[4] = {0};
        uint8_t uuid[16];
        char uuid_text[UUID_TEXT_SIZE], part[16];
        const struct volume_part p = {&io, "", uuid_text, part};
        for (unsigned i = 0; i < 100000; i++) {
            struct volumes v = {.folder = {"0", "1", "2", "3"}, .count = 4};
            if (i == 0 || !is_one)
                rng_fill(&r, uuid, sizeof uuid);
            uuid_to_text(uuid, uuid_text);
            snprintf(part, sizeof part, "s%08x", is_one ? i : 0);
            volumes_choose(&v, &p, 1);
            CHECK_IS(v.count, 1);
            on[v.folder[0][0] - '0']++;
            if (i + 1 == 1000)
                check_even(on, 1000, 10);
        }
        check_even(on, 100000, 2);
    }
}

static int removals;

static ssize_t mkdir_and_remove(struct fake_call *c)
{
    char root[600];

    if (c->op == FAKE_MKDIR && strstr(c->path, "/deltafs.") && strstr(c->path, "/s00000000") && removals > 0) {
        removals--;
        snprintf(root, sizeof root, "%.*s", (int)(strrchr(c->path, '/') - c->path), c->path);
        CHECK_IS(rmdir(root), 0);
    }
    return fake_do(c);
}

/* Who removes the last session on a volume removes the folder for all sessions of the file there, at any time. */
static void test_volumes_race(void **state)
{
    static struct fake_io fake;
    struct io racing = {.ops = &fake.ops, .ctx = &fake};
    struct container c;
    struct session s;
    struct error e;

    (void)state;
    fake_io_init(&fake, mkdir_and_remove);
    CHECK(mkdir(unit_path("vrace"), 0777) == 0);
    make("raced", &c);
    removals = 3;
    CHECK_IS(session_create(&c, &racing, 4, 5, unit_path("vrace"), 0, &s, &e), DELTAFS_OK);
    CHECK_IS(removals, 0);
    CHECK_IS(session_remove(&c, &io, s.number, 0, &e), DELTAFS_OK);
    CHECK_IS(count_entries(unit_path("vrace")), 1);
    container_fini(&c);
}

static void test_volumes_bad(void **state)
{
    static const char *const bad[] = {"relative", "/tmp:", ":/tmp", "/tmp:/tmp", ":"};
    struct container c;
    struct session s;
    struct error e;
    size_t n;

    (void)state;
    make("badly", &c);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_IS(session_create(&c, &io, 1, 5, bad[i], 0, &s, &e), DELTAFS_ERR_OPTION);
        CHECK(strstr(e.text, "volumes"));
    }
    CHECK_IS(session_create(&c, &io, 1, 5, unit_path("no/such"), 0, &s, &e), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(list_it(&c, &s, &n, &e), DELTAFS_OK);
    CHECK_IS(n, 0);
    CHECK_IS(count_entries(unit_path("badly")), 2);
    /* A volume that is gone does not keep a file from being removed. */
    CHECK(mkdir(unit_path("vgone"), 0777) == 0);
    make_session(&c, 3, unit_path("vgone"), &s);
    unit_remove(unit_path("vgone"));
    CHECK_IS(container_remove(&io, unit_path("badly"), &e), DELTAFS_OK);
    container_fini(&c);
}

/* A copy of a logical file has links to the same logs: removing it, or a session of it, does not remove those. (It
 * did.) */
static void test_volumes_of_copy(void **state)
{
    char target[600] = "", volume[300];
    struct container c, copy;
    struct session s;
    struct error e;

    (void)state;
    snprintf(volume, sizeof volume, "%s", unit_path("vcopy"));
    CHECK(mkdir(volume, 0777) == 0);
    make("copied", &c);
    make_session(&c, 1, volume, &s);
    CHECK(mkdir(unit_path("copy"), 0777) == 0 && mkdir(unit_path("copy/s00000000"), 0777) == 0);
    unit_copy(unit_path("copied/MANIFEST"), unit_path("copy/MANIFEST"));
    unit_copy(unit_path("copied/s00000000/SESSION"), unit_path("copy/s00000000/SESSION"));
    CHECK(readlink(unit_path("copied/s00000000/00"), target, sizeof target - 1) > 0);
    CHECK(symlink(target, unit_path("copy/s00000000/00")) == 0);
    unsigned before = count_entries(volume);
    CHECK_IS(open_it(&copy, "copy", O_RDONLY, &e), DELTAFS_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_IS(i == 0 ? container_remove(&io, unit_path("copy"), &e) : session_remove(&copy, &io, 0, 0, &e),
                 DELTAFS_ERR_NOT_DELTAFS);
        CHECK(strstr(e.text, unit_path("copy")) && strstr(e.text, unit_path("copied")) && strstr(e.text, "OWNER"));
        CHECK_IS(count_entries(volume), before);
    }
    CHECK_IS(container_remove(&io, unit_path("copied"), &e), DELTAFS_OK);
    CHECK_IS(count_entries(volume), 1);
    container_fini(&copy);
    container_fini(&c);
}

static ssize_t fail_to_unlink_logs(struct fake_call *c)
{
    return c->op == FAKE_UNLINK && strstr(c->path, "/w0000") ? -EIO : fake_do(c);
}

/* What a bucket on a volume has besides its logs, or cannot lose, stays that container's: OWNER goes last. */
static void test_owner_goes_last(void **state)
{
    static struct fake_io fake;
    struct io failing = {.ops = &fake.ops, .ctx = &fake};
    char target[600] = "", owner[700], path[PATH_ROOM], other[PATH_ROOM];
    struct container c;
    struct session s;
    struct error e;

    (void)state;
    fake_io_init(&fake, fail_to_unlink_logs);
    CHECK(mkdir(unit_path("vlast"), 0777) == 0);
    make("last", &c);
    make_session(&c, 1, unit_path("vlast"), &s);
    CHECK(readlink(unit_path("last/s00000000/00"), target, sizeof target - 1) > 0);
    snprintf(owner, sizeof owner, "%s/OWNER", target);
    CHECK_IS(session_remove(&c, &failing, 0, 0, &e), DELTAFS_ERR_IO);
    CHECK(unit_exists(owner));
    /* A file that is not ours comes after the check. */
    const struct volume_part part = {&io, c.path, c.uuid_text, "s00000000"};
    for (int kind = LOG_KIND_FRAMES; kind <= LOG_KIND_EXTENTS; kind++)
        CHECK(unlink(session_log_path(&c, &s, 0, kind, path)) == 0);
    unit_save(io_path_in(other, target, "other"), "x", 1);
    CHECK_IS(volume_remove_bucket(&part, 0, &e), DELTAFS_ERR_IO);
    CHECK(strstr(e.text, target) && unit_exists(owner) && unit_exists(unit_path("last/s00000000/00")));
    CHECK(unlink(other) == 0);
    CHECK_IS(volume_remove_bucket(&part, 0, &e), DELTAFS_OK);
    CHECK_IS(count_entries(unit_path("vlast")), 1);
    CHECK_IS(container_remove(&io, unit_path("last"), &e), DELTAFS_OK);
    container_fini(&c);
}

/* The manual says to put a copy of the bucket's folder in the place of the link; that has OWNER, too. */
static void test_bucket_is_a_copy(void **state)
{
    char target[600] = "", path[PATH_ROOM];
    struct container c;
    struct session s;
    struct error e = {0};

    (void)state;
    CHECK(mkdir(unit_path("vown"), 0777) == 0);
    make("own", &c);
    make_session(&c, 1, unit_path("vown"), &s);
    CHECK(readlink(unit_path("own/s00000000/00"), target, sizeof target - 1) > 0);
    CHECK(unlink(unit_path("own/s00000000/00")) == 0 && mkdir(unit_path("own/s00000000/00"), 0777) == 0);
    unit_copy(io_path_in(path, target, "OWNER"), unit_path("own/s00000000/00/OWNER"));
    if (container_remove(&io, unit_path("own"), &e) != DELTAFS_OK)
        fail_msg("%s", e.text);
    CHECK(!unit_exists(unit_path("own")));
    container_fini(&c);
}

/* A container's folder on a volume that is a link to another's: nothing is written or removed there. (A new session was
 * written into the other container's folder.) */
static void test_volume_link(void **state)
{
    char volume[300], folder[400], target[400];
    struct container c, other;
    struct session s;
    struct error e;

    (void)state;
    snprintf(volume, sizeof volume, "%s", unit_path("vlink"));
    CHECK(mkdir(volume, 0777) == 0);
    make("leading", &c);
    make("led to", &other);
    make_session(&c, 1, volume, &s);
    make_session(&other, 1, volume, &s);
    snprintf(folder, sizeof folder, "%s/deltafs.%s", volume, c.uuid_text);
    snprintf(target, sizeof target, "%s/deltafs.%s", volume, other.uuid_text);
    unit_remove(folder);
    CHECK(symlink(target, folder) == 0);
    CHECK(mkdir(unit_path("vlink/deltafs.%s/s00000001", other.uuid_text), 0777) == 0);
    unsigned before = count_entries(volume);
    CHECK_IS(session_create(&c, &io, 1, 9, volume, 0, &s, &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK(strstr(e.text, folder) && strstr(e.text, "symbolic link"));
    CHECK_IS(session_remove(&c, &io, 0, 0, &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK_IS(container_remove(&io, unit_path("leading"), &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK(strstr(e.text, folder));
    CHECK_IS(count_entries(volume), before);
    CHECK(!unit_exists(unit_path("leading/s00000001")));
    container_fini(&other);
    container_fini(&c);
}

/* Nothing is written into a session's folder that is a link. */
static void test_session_link(void **state)
{
    struct container c;
    struct session s;
    struct error e;

    (void)state;
    make("linked", &c);
    make_session(&c, 1, "", &s);
    CHECK(rename(unit_path("linked/s00000000"), unit_path("away")) == 0);
    CHECK(symlink("../away", unit_path("linked/s00000000")) == 0);
    unsigned before = count_entries(unit_path("away"));
    CHECK_IS(session_write_index(&c, &io, 0, "", 0, 0, &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK(strstr(e.text, "linked/s00000000: is a symbolic link"));
    CHECK_IS(count_entries(unit_path("away")), before);
    CHECK_IS(container_remove(&io, unit_path("linked"), &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK_IS(count_entries(unit_path("away")), before);
    container_fini(&c);
}

/* A directory's buckets on volumes: written, read, and gone when its making fails. */
static void test_volumes_of_directory(void **state)
{
    char volumes[600];
    struct model m = {0};
    struct rng r = rng_init(3);
    deltafs_dir *d;

    (void)state;
    CHECK(mkdir(unit_path("d1"), 0777) == 0 && mkdir(unit_path("d2"), 0777) == 0);
    snprintf(volumes, sizeof volumes, "%s:%s", unit_path("d1"), unit_path("d2"));
    d = unit_create(unit_path("wide"), unit_options("volumes", volumes, "partitions", "5", "sync", "commit", NULL));
    for (int i = 0; i < 2000; i++)
        CHECK_CALL(d, model_append(&m, d, rng_key(&r, KEYS_DENSE), 20), DELTAFS_OK);
    CHECK_CALL(d, deltafs_epoch_end(d, 1), DELTAFS_OK);
    model_keep(&m, 1);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    /* deltafs.UUID, then 3 and 2 buckets of two logs, and whose each is. */
    CHECK_IS(count_entries(unit_path("d1")) + count_entries(unit_path("d2")), 2 * 2 + 5 * 4);
    CHECK(count_entries(unit_path("d1")) >= 2 + 2 * 4 && count_entries(unit_path("d2")) >= 2 + 2 * 4);
    d = unit_open(unit_path("wide"));
    model_check_all(&m, d, &r);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_remove(unit_path("d2"));
    CHECK(mkdir(unit_path("d2"), 0500) == 0);
    deltafs_options *o = unit_options("volumes", volumes, "partitions", "5", NULL);
    unsigned before = count_entries(unit_path("d1"));
    if (geteuid() != 0) {
        CHECK_IS(deltafs_create(unit_path("narrow"), o, &d), DELTAFS_ERR_IO);
        CHECK(!unit_exists(unit_path("narrow")));
    }
    unit_remove(unit_path("d2"));
    CHECK_IS(deltafs_create(unit_path("narrow"), o, &d), DELTAFS_ERR_NOT_FOUND);
    CHECK(!unit_exists(unit_path("narrow")));
    CHECK_IS(count_entries(unit_path("d1")), before);
    deltafs_options_destroy(o);
    model_fini(&m);
}

static int setup(void **state)
{
    io = io_default();
    return unit_setup(state);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_create_race),
        cmocka_unit_test(test_claim_race),
        cmocka_unit_test(test_claim_late),
        cmocka_unit_test(test_remove_race),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_begun),
        cmocka_unit_test(test_remove_foreign),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_other_session),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_remove_faults),
        cmocka_unit_test(test_remove_session_faults),
        cmocka_unit_test(test_volumes),
        cmocka_unit_test(test_volumes_are_even),
        cmocka_unit_test(test_volumes_race),
        cmocka_unit_test(test_volumes_bad),
        cmocka_unit_test(test_volumes_of_directory),
        cmocka_unit_test(test_volumes_of_copy),
        cmocka_unit_test(test_volume_link),
        cmocka_unit_test(test_owner_goes_last),
        cmocka_unit_test(test_bucket_is_a_copy),
        cmocka_unit_test(test_session_link),
        cmocka_unit_test(test_record_without_locks),
        cmocka_unit_test(test_missing_name_is_cached),
    };

    return cmocka_run_group_tests(tests, setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
