/* Logical files of which another process removes sessions while they are read, by one process or by several together,
 * or of which a crash has taken something; and the two at once. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "logical/format/logical_format.h"
#include "logical/logical.h"
#include "unit_help.h"
#include "unit_io.h"
#include "unit_team.h"

#define ANEW 150

/* Cut to nothing and written again and again: each time what was there is removed. */
static void *rewrite(void *arg)
{
    deltafs_options *o = unit_options(NULL);
    deltafs_logical *f;
    size_t bad = 0;

    for (int i = 0; i < ANEW; i++) {
        bad += (size_t)FAILED(deltafs_logical_open(arg, O_RDWR | O_TRUNC, o, &f));
        bad += (size_t)FAILED(deltafs_logical_write(f, 0, "abcdefgh", 8));
        bad += (size_t)FAILED(deltafs_logical_close(f));
    }
    deltafs_options_destroy(o);
    return bad > 0 ? arg : NULL;
}

/* Whoever opens a file while another process removes what was in it is not told that it is damaged. */
static void test_opened_while_removed(void **state)
{
    char *path = strdup(unit_path("anew"));
    pthread_t thread;
    deltafs_logical *f;
    void *bad;

    (void)state;
    CHECK_IS(deltafs_logical_open(path, O_RDWR | O_CREAT, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    CHECK_IS(pthread_create(&thread, NULL, rewrite, path), 0);
    for (int i = 0; i < 2 * ANEW; i++) {
        struct deltafs_logical_stat stat = {.struct_size = sizeof stat};
        uint64_t size;
        CHECK_IS(deltafs_logical_open(path, i % 2 ? O_RDONLY : O_RDWR, NULL, &f), DELTAFS_OK);
        CHECK_IS(deltafs_logical_size(f, &size), DELTAFS_OK);
        CHECK(size == 0 || size == 8);
        if (deltafs_logical_stat(f, &stat) == DELTAFS_OK)
            CHECK(!stat.is_incomplete);
        CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    }
    CHECK_IS(pthread_join(thread, &bad), 0);
    CHECK(!bad);
    free(path);
}

/* What another process does when a file with `name` in its path is about to be opened for the `at`-th time. */
static struct {
    struct fake_io fake;
    const char *name;
    void (*fn)(void *arg);
    void *arg;
    atomic_int at; /* the ranks are threads */
} other;

static ssize_t open_beside_other(struct fake_call *c)
{
    if (c->op == FAKE_OPEN && strstr(c->path, other.name) && atomic_fetch_sub(&other.at, 1) == 1)
        other.fn(other.arg);
    return fake_do(c);
}

/* It removes a session, whose SESSION is the first path, and has come as far as the second. */
static void begin_removal(void *arg)
{
    char **path = arg, gone[PATH_ROOM];

    snprintf(gone, sizeof gone, "%s.removed", path[0]);
    CHECK_IS(rename(path[0], gone), 0);
    if (path[1])
        CHECK_IS(unlink(path[1]), 0);
}

struct looker {
    struct unit_member member;
    const char *path, *index;
    int flags, is_cut, status;
    uint64_t size, extents, peak;
};

static void *look_at(void *arg)
{
    struct looker *l = arg;
    struct collective group = unit_team_group(&l->member);
    deltafs_options *o = unit_options("extents", l->index, NULL);
    struct deltafs_logical_stat stat = {.struct_size = sizeof stat};
    deltafs_logical *f;
    struct error e = {0};

    l->status = deltafs_private_logical_open_group(l->path, l->flags, o, &group, &f, &e);
    if (l->status == DELTAFS_OK) {
        l->status = deltafs_logical_stat(f, &stat);
        l->size = stat.size;
        l->extents = stat.extents;
        l->is_cut = stat.is_incomplete;
        l->peak = f->memory.peak;
        deltafs_logical_close(f);
    }
    deltafs_options_destroy(o);
    return NULL;
}

/* By `ranks` ranks together. */
static void look_together(struct looker *looker, uint32_t ranks, const char *path, int flags, const char *index)
{
    struct unit_team team;
    pthread_t thread[TEAM_MAX];

    unit_team_init(&team, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        looker[i] = (struct looker){.member = {&team, i}, .path = path, .flags = flags, .index = index};
        CHECK_IS(pthread_create(&thread[i], NULL, look_at, &looker[i]), 0);
    }
    for (uint32_t i = 0; i < ranks; i++)
        pthread_join(thread[i], NULL);
    unit_team_fini(&team);
}

/* The same beside the other process; they must agree. */
static void look_beside_other(struct looker *looker, uint32_t ranks, const char *path, int flags)
{
    fake_io_begin(&other.fake, open_beside_other);
    look_together(looker, ranks, path, flags, "parallel");
    CHECK_IS(fake_io_end(&other.fake), 0);
    for (uint32_t i = 0; i < ranks; i++) {
        CHECK_IS(looker[i].status, DELTAFS_OK);
        CHECK(looker[i].is_cut == looker[0].is_cut && looker[i].size == looker[0].size);
    }
}

/* A session that loses a part of a log, and keeps its text, has been cut by a crash; one that loses its text is being
 * removed, at whichever attempt to read the file that is seen. */
static void test_cut_or_removed(void **state)
{
    char *path = strdup(unit_path("cut")), *text = strdup(unit_path("cut/s00000000/SESSION"));
    char *log = strdup(unit_path("cut/s00000000/w00000000.extents"));
    deltafs_options *o = unit_options(NULL);
    struct looker looker[TEAM_MAX];
    deltafs_logical *f;

    (void)state;
    other.name = ".extents";
    other.fn = begin_removal;
    for (int turn = 0; turn < 6; turn++) {
        int at = turn % 3;
        unit_remove(path);
        CHECK_IS(deltafs_logical_open(path, O_RDWR | O_CREAT, o, &f), DELTAFS_OK);
        CHECK_IS(deltafs_logical_write(f, 0, "abcdefgh", 8), DELTAFS_OK);
        CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
        if (at != 1)
            CHECK_IS(truncate(log, 10), 0);
        char *gone[2] = {text, at == 1 ? log : NULL};
        other.at = at;
        other.arg = gone;
        look_beside_other(looker, turn < 3 ? 1 : 3, path, O_RDONLY);
        CHECK_IS(looker[0].is_cut, at == 0);
        CHECK_IS(unit_exists(text), at == 0);
    }
    deltafs_options_destroy(o);
    free(path);
    free(text);
    free(log);
}

static void write_one(const char *path, int flags, const char *text)
{
    deltafs_options *o = unit_options(NULL);
    deltafs_logical *f;

    CHECK_IS(deltafs_logical_open(path, flags, o, &f), DELTAFS_OK);
    if (*text)
        CHECK_IS(deltafs_logical_write(f, 0, text, strlen(text)), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    deltafs_options_destroy(o);
}

static void cut_file(void *path)
{
    write_one(path, O_RDWR | O_TRUNC, "");
}

static void check_missing(const char *path, const char *what, uint32_t ranks, int flags)
{
    struct looker looker[TEAM_MAX];
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};

    look_together(looker, ranks, path, flags, "parallel");
    for (uint32_t i = 0; i < ranks; i++)
        CHECK_IS(looker[i].status, DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_logical_verify_path(path, NULL, NULL, &counts), DELTAFS_ERR_DAMAGED);
    CHECK_IS(counts.damages, 1);
    CHECK(strstr(deltafs_errmsg(NULL), what));
}

static void note_damage(int status, const char *message, void *arg)
{
    (void)status;
    (void)message;
    ++*(int *)arg;
}

/* A session that is gone, or only its SESSION, is damage for whoever opens the file, until a repair. What verify knows
 * of a lost one it does not forget. */
static void test_missing(void **state)
{
    static const struct {
        const char *gone;
        int sessions;
    } cases[] = {{"s00000001/SESSION", 2}, {"s00000001", 2}, {"s00000006", 7}, {"s00000002/SESSION", 7}};
    const struct deltafs_repair_options dry = {.struct_size = sizeof dry, .dry_run = 1};
    char *path = strdup(unit_path("missing"));
    struct looker looker[TEAM_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int is_folder = !strstr(cases[i].gone, "SESSION"), found = 0;
        for (int k = 0; k < cases[i].sessions; k++)
            write_one(path, O_RDWR | O_CREAT, "abcdefgh" + k);
        unit_remove(unit_path("missing/%s", cases[i].gone));
        for (uint32_t ranks = 1; ranks <= 3; ranks += 2) {
            check_missing(path, cases[i].gone, ranks, O_RDONLY);
            check_missing(path, cases[i].gone, ranks, O_WRONLY);
        }
        CHECK_IS(deltafs_logical_repair(path, &dry, note_damage, &found), DELTAFS_OK);
        CHECK_IS(found, 1);
        check_missing(path, cases[i].gone, 1, O_RDONLY);
        CHECK_IS(deltafs_logical_repair(path, NULL, NULL, NULL), DELTAFS_OK);
        look_together(looker, 1, path, O_RDONLY, "parallel");
        CHECK_IS(looker[0].status, DELTAFS_OK);
        CHECK(looker[0].size == 8 && looker[0].is_cut == is_folder);
        CHECK_IS(deltafs_logical_verify_path(path, NULL, NULL, NULL), is_folder ? DELTAFS_ERR_DAMAGED : DELTAFS_OK);
        write_one(path, O_RDWR | O_TRUNC, "a");
        CHECK_IS(deltafs_logical_remove(path), DELTAFS_OK);
    }
    free(path);
}

/* So is one whose folder is a link that leads to nothing. (After the repair its statistics could not be had.) */
static void test_missing_link(void **state)
{
    char *path = strdup(unit_path("leading"));
    struct looker looker[TEAM_MAX];

    (void)state;
    write_one(path, O_RDWR | O_CREAT, "abcdefgh");
    write_one(path, O_RDWR, "ij");
    unit_remove(unit_path("leading/s00000001"));
    CHECK_IS(symlink("nothing", unit_path("leading/s00000001")), 0);
    check_missing(path, "s00000001", 1, O_RDONLY);
    CHECK_IS(deltafs_logical_repair(path, NULL, NULL, NULL), DELTAFS_OK);
    look_together(looker, 3, path, O_RDONLY, "parallel");
    CHECK(looker[0].status == DELTAFS_OK && looker[0].size == 8 && looker[0].is_cut);
    free(path);
}

/* What a truncation has removed, or an opening that wrote nothing has left, is not missed; nor is anything after the
 * manifest was rebuilt. */
static void test_not_missing(void **state)
{
    char *path = strdup(unit_path("present")), *manifest = strdup(unit_path("present/MANIFEST"));
    struct looker looker[TEAM_MAX];
    struct container c;
    struct io io = io_default();
    struct error e;

    (void)state;
    write_one(path, O_RDWR | O_CREAT, "abc");
    write_one(path, O_RDWR, "defgh");
    look_together(looker, 3, path, O_RDWR, "parallel");
    CHECK(!unit_exists(unit_path("present/s00000002")));
    CHECK_IS(deltafs_logical_verify_path(path, NULL, NULL, NULL), DELTAFS_OK);
    write_one(path, O_RDWR | O_TRUNC, "ij");
    write_one(path, O_RDWR, "k");
    CHECK_IS(deltafs_logical_verify_path(path, NULL, NULL, NULL), DELTAFS_OK);
    for (int i = 0; i < 2; i++) {
        look_together(looker, 3, path, O_RDONLY, "parallel");
        CHECK(looker[0].status == DELTAFS_OK && looker[0].size == 2 && !looker[0].is_cut);
        CHECK_IS(container_open(&c, &io, path, O_RDONLY, 0, &e), DELTAFS_OK);
        CHECK_IS(c.recorded_count, 2);
        CHECK(c.recorded[0].number == 2 && c.recorded[1].number == 3 && !c.recorded[0].is_lost);
        container_fini(&c);
        unlink(manifest);
        CHECK_IS(deltafs_logical_repair(path, NULL, NULL, NULL), DELTAFS_OK);
    }
    free(path);
    free(manifest);
}

#define CREATORS 4
#define CREATED  20

static void *create_sessions(void *path)
{
    struct io io = io_default();
    struct container c;
    struct session s;
    struct error e;
    size_t bad = container_open(&c, &io, path, O_CREAT, 0, &e) != DELTAFS_OK;

    for (int i = 0; i < CREATED; i++)
        bad += session_create(&c, &io, 1, 0, "", 0, &s, &e) != DELTAFS_OK;
    container_fini(&c);
    return bad > 0 ? path : NULL;
}

/* Sessions of several processes are all recorded, also behind a line that a crash has cut, and if another one has cut
 * the file's creation before the manifest lost its first name. */
static void test_recorded_together(void **state)
{
    char *path = strdup(unit_path("together"));
    pthread_t thread[CREATORS];
    struct io io = io_default();
    struct container c;
    struct error e;
    void *bad;

    (void)state;
    write_one(path, O_RDWR | O_CREAT, "");
    CHECK_IS(container_open(&c, &io, path, O_RDONLY, 0, &e), DELTAFS_OK);
    CHECK_IS(link(unit_path("together/MANIFEST"), unit_path("together/MANIFEST.new-%s", c.uuid_text)), 0);
    container_fini(&c);
    FILE *text = fopen(unit_path("together/MANIFEST"), "a");
    fputs("session num", text);
    CHECK_IS(fclose(text), 0);
    for (int i = 0; i < CREATORS; i++)
        CHECK_IS(pthread_create(&thread[i], NULL, create_sessions, path), 0);
    for (int i = 0; i < CREATORS; i++) {
        CHECK_IS(pthread_join(thread[i], &bad), 0);
        CHECK(!bad);
    }
    CHECK_IS(container_open(&c, &io, path, O_RDONLY, 0, &e), DELTAFS_OK);
    CHECK_IS(c.recorded_count, CREATORS * CREATED);
    container_fini(&c);
    free(path);
}

/* Remains of a session that was being removed are nobody's damage, and go with what is removed next. */
static void test_remains(void **state)
{
    char *path = strdup(unit_path("remains")), *folder = strdup(unit_path("remains/s00000001"));
    char *text = strdup(unit_path("remains/s00000001/SESSION"));

    (void)state;
    write_one(path, O_RDWR | O_CREAT, "abc");
    write_one(path, O_RDWR, "defg");
    CHECK_IS(rename(text, unit_path("remains/s00000001/SESSION.removed")), 0);
    write_one(path, O_RDWR, "h");
    CHECK_IS(deltafs_logical_verify_path(path, NULL, NULL, NULL), DELTAFS_OK);
    CHECK(unit_exists(folder));
    write_one(path, O_RDWR | O_TRUNC, "");
    CHECK(!unit_exists(folder) && !unit_exists(unit_path("remains/s00000002")));
    CHECK(unit_exists(unit_path("remains/s00000003/SESSION")));
    free(path);
    free(folder);
    free(text);
}

/* A writer that was killed has closed nothing: what it had written shows that its extent log is missing. Before it
 * wrote, it need not have created that. */
static void test_missing_extents(void **state)
{
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
    deltafs_logical *f;
    char *copy = strdup(unit_path("killed"));

    (void)state;
    CHECK_IS(deltafs_logical_open(unit_path("alive"), O_RDWR | O_CREAT, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_write(f, 0, "abc", 3), DELTAFS_OK);
    CHECK_IS(deltafs_logical_sync(f), DELTAFS_OK);
    unit_copy(unit_path("alive"), copy);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_verify_path(copy, NULL, NULL, NULL), DELTAFS_OK);
    CHECK_IS(unlink(unit_path("killed/s00000000/w00000000.extents")), 0);
    CHECK_IS(deltafs_logical_verify_path(copy, NULL, NULL, &counts), DELTAFS_ERR_DAMAGED);
    CHECK(counts.damages == 1 && strstr(deltafs_errmsg(NULL), "w00000000.extents: damaged"));
    unit_io_begin();
    unit_io_fail(OP_OPEN, "w00000000.data", 0, 1000, EIO); /* nothing can be said of it */
    CHECK_IS(deltafs_logical_verify_path(copy, NULL, NULL, NULL), DELTAFS_ERR_IO);
    CHECK(strstr(deltafs_errmsg(NULL), "w00000000.data") != NULL);
    unit_io_end();
    CHECK_IS(truncate(unit_path("killed/s00000000/w00000000.data"), FRAME_SIZE), 0);
    CHECK_IS(deltafs_logical_verify_path(copy, NULL, NULL, NULL), DELTAFS_OK);
    free(copy);
}

/* Verifying beside a truncation: what goes meanwhile is not damaged, whichever log it is about to look at. */
static void test_verified_while_removed(void **state)
{
    static const char *const at[] = {"s00000000/SESSION", "s00000000/w00000000.extents", "s00000000/w00000000.data",
                                     "s00000000/INDEX"};
    char *path = strdup(unit_path("verified"));

    (void)state;
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        deltafs_options *o = unit_options("memory", "8M", "extents", "flatten", NULL);
        deltafs_logical *f;
        CHECK_IS(deltafs_logical_open(path, O_RDWR | O_CREAT, o, &f), DELTAFS_OK);
        CHECK_IS(deltafs_logical_write(f, 0, "abcdefgh", 8), DELTAFS_OK);
        CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
        deltafs_options_destroy(o);
        unit_io_begin();
        unit_io_call(OP_OPEN, at[i], cut_file, path);
        CHECK_IS(deltafs_logical_verify_path(path, NULL, NULL, NULL), DELTAFS_OK);
        unit_io_end();
        CHECK(!unit_exists(unit_path("verified/s00000000")));
        CHECK_IS(deltafs_logical_remove(path), DELTAFS_OK);
    }
    free(path);
}

/* Three sessions, of which a crash has cut the first. */
static void make_cut(const char *path)
{
    char log[PATH_ROOM];

    io_path_in(log, path, "s00000000/w00000000.extents");
    unit_remove(path);
    write_one(path, O_RDWR | O_CREAT, "abc");
    write_one(path, O_RDWR, "defg");
    write_one(path, O_RDWR, "hi");
    CHECK_IS(truncate(log, 10), 0);
}

/* What another process removes while the file is read without what a crash has taken is not taken for that. */
static void test_cut_and_removed(void **state)
{
    static const struct {
        uint32_t ranks;
        int flags, at;
    } cases[] = {{1, O_RDONLY, 1}, {3, O_RDONLY, 2}, {3, O_WRONLY, 1}};
    char *path = strdup(unit_path("both"));
    struct looker looker[TEAM_MAX];

    (void)state;
    other.name = "s00000002/w00000000.extents";
    other.fn = cut_file;
    other.arg = path;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make_cut(path);
        other.at = cases[i].at;
        look_beside_other(looker, cases[i].ranks, path, cases[i].flags);
        CHECK(!unit_exists(unit_path("both/s00000002")));
        CHECK(looker[0].size == 0 && !looker[0].is_cut);
    }
    free(path);
}

/* An error that has nothing to do with what is missing ends the attempts, though the one before has met that. */
static void test_cut_and_failing(void **state)
{
    char *path = strdup(unit_path("failing"));
    struct looker looker[TEAM_MAX];

    (void)state;
    make_cut(path);
    for (uint32_t ranks = 1; ranks <= 3; ranks += 2) {
        unit_io_begin();
        unit_io_fail(OP_OPEN, "s00000000/w00000000.extents", 1, 1000, EIO);
        look_together(looker, ranks, path, O_RDONLY, "parallel");
        CHECK_IS(unit_io_failures(), 1);
        unit_io_end();
        for (uint32_t i = 0; i < ranks; i++)
            CHECK_IS(looker[i].status, DELTAFS_ERR_IO);
    }
    free(path);
}

/* A session without logs, which another process discards when it is about to be listed, and creates again. */
static struct {
    struct fake_io fake;
    struct container container;
    struct session session;
    int is_due;
} pauper;

static ssize_t list_given_up(struct fake_call *c)
{
    struct io io = {.ops = c->io->real, .ctx = c->io->ctx};
    struct error e;

    if (c->op != FAKE_LIST || !pauper.is_due || !strstr(c->path, "/s00000001"))
        return fake_do(c);
    pauper.is_due = 0;
    CHECK_IS(session_remove(&pauper.container, &io, pauper.session.number, 0, &e), DELTAFS_OK);
    ssize_t rc = fake_do(c);
    CHECK_IS(session_create(&pauper.container, &io, 1, 5, "", 0, &pauper.session, &e), DELTAFS_OK);
    CHECK_IS(pauper.session.number, 1);
    return rc;
}

/* A number that is used again between two looks at its folder does not keep the file from being opened. */
static void test_claimed_again(void **state)
{
    char *path = strdup(unit_path("again"));
    struct io io = io_default();
    struct looker looker[TEAM_MAX];
    struct error e;

    (void)state;
    write_one(path, O_RDWR | O_CREAT, "abc");
    CHECK_IS(container_open(&pauper.container, &io, path, O_RDONLY, 0, &e), DELTAFS_OK);
    CHECK_IS(session_create(&pauper.container, &io, 1, 1, "", 0, &pauper.session, &e), DELTAFS_OK);
    for (uint32_t ranks = 1; ranks <= 3; ranks += 2) {
        pauper.is_due = 1;
        fake_io_begin(&pauper.fake, list_given_up);
        look_together(looker, ranks, path, O_RDONLY, "parallel");
        CHECK_IS(fake_io_end(&pauper.fake), 0);
        CHECK(!pauper.is_due);
        for (uint32_t i = 0; i < ranks; i++)
            CHECK(looker[i].status == DELTAFS_OK && looker[i].size == 3);
    }
    container_fini(&pauper.container);
    free(path);
}

#define SCATTERED 40000

static void write_scattered(const char *path)
{
    deltafs_options *o = unit_options("extents", "flatten", NULL);
    struct rng r = rng_of(3);
    deltafs_logical *f;

    CHECK_IS(deltafs_logical_open(path, O_WRONLY | O_CREAT, o, &f), DELTAFS_OK);
    for (int i = 0; i < SCATTERED; i++)
        CHECK_IS(deltafs_logical_write(f, rng_below(&r, SCATTERED * 100), "x", 1), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    deltafs_options_destroy(o);
}

/* What an attempt to read the index has had before it found that something is missing is not kept beside what the next
 * one reads. */
static void test_cut_beside_much(void **state)
{
    static const char *const index[] = {"parallel", "broadcast", "flatten", "parallel"};
    struct looker sound[TEAM_MAX], cut[TEAM_MAX];
    char *path = strdup(unit_path("much"));

    (void)state;
    write_scattered(path);
    write_one(path, O_RDWR, "z");
    for (uint32_t ranks = 1; ranks <= 3; ranks += 2)
        for (int i = 0; i < 4; i++) {
            int flags = i < 3 ? O_RDONLY : O_WRONLY;
            char *log = strdup(unit_path("much/s00000001/w00000000.extents"));
            size_t n;
            uint8_t *bytes = unit_load(log, &n);
            look_together(sound, ranks, path, flags, index[i]);
            CHECK_IS(truncate(log, 10), 0);
            look_together(cut, ranks, path, flags, index[i]);
            for (uint32_t k = 0; k < ranks; k++) {
                CHECK(sound[k].status == DELTAFS_OK && cut[k].status == DELTAFS_OK);
                CHECK((cut[k].is_cut || flags == O_WRONLY) && !sound[k].is_cut);
                CHECK(cut[k].extents <= sound[k].extents);
                CHECK(cut[k].peak <= sound[k].peak + sound[k].peak / 10);
            }
            unit_save(log, bytes, n);
            free(bytes);
            free(log);
        }
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_opened_while_removed),
                                       cmocka_unit_test(test_cut_or_removed),
                                       cmocka_unit_test(test_cut_and_removed),
                                       cmocka_unit_test(test_cut_and_failing),
                                       cmocka_unit_test(test_cut_beside_much),
                                       cmocka_unit_test(test_claimed_again),
                                       cmocka_unit_test(test_remains),
                                       cmocka_unit_test(test_missing),
                                       cmocka_unit_test(test_missing_extents),
                                       cmocka_unit_test(test_missing_link),
                                       cmocka_unit_test(test_not_missing),
                                       cmocka_unit_test(test_recorded_together),
                                       cmocka_unit_test(test_verified_while_removed)};

    return cmocka_run_group_tests_name("removal from logical files", tests, unit_setup, unit_teardown) == 0 ? 0 : 1;
}
