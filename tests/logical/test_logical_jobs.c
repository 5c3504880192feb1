/* A logical file that several jobs have open at once, each with a handle of its own: what one of them removes, and what
 * it creates again, as the others see it. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "logical/logical.h"
#include "unit_help.h"
#include "unit_io.h"
#include "unit_team.h"

#define PAGE 4096

static deltafs_logical *open_it(const char *path, int flags)
{
    deltafs_options *o = unit_options(NULL);
    deltafs_logical *f;

    CHECK_IS(deltafs_logical_open(path, flags, o, &f), DELTAFS_OK);
    deltafs_options_destroy(o);
    return f;
}

#define CHECK_FILE(f, call, want)                                                                                      \
    do {                                                                                                               \
        int check_status = (call);                                                                                     \
        if (check_status != (want))                                                                                    \
            fail_msg("%s is %d, not %d: %s", #call, check_status, (want), deltafs_errmsg(NULL));                       \
    } while (0)

static void write_page(deltafs_logical *f, int page, char byte)
{
    char bytes[PAGE];

    memset(bytes, byte, sizeof bytes);
    CHECK_FILE(f, deltafs_logical_write(f, (uint64_t)page * PAGE, bytes, sizeof bytes), DELTAFS_OK);
}

/* The file has as many pages as `want` has characters, each of that character. */
static void check_pages(deltafs_logical *f, const char *want)
{
    char bytes[PAGE];
    uint64_t size;
    size_t got;

    CHECK_FILE(f, deltafs_logical_size(f, &size), DELTAFS_OK);
    CHECK_IS(size, strlen(want) * PAGE);
    for (size_t i = 0; want[i]; i++) {
        CHECK_FILE(f, deltafs_logical_read(f, i * PAGE, bytes, sizeof bytes, &got), DELTAFS_OK);
        CHECK_IS(got, PAGE);
        for (size_t k = 0; k < PAGE; k++)
            CHECK_IS(bytes[k], want[i]);
    }
}

static void sync_it(deltafs_logical *f)
{
    CHECK_FILE(f, deltafs_logical_sync(f), DELTAFS_OK);
}

static void close_it(deltafs_logical *f)
{
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
}

static void check_fresh(const char *path, const char *want)
{
    deltafs_logical *f = open_it(path, O_RDONLY);

    check_pages(f, want);
    CHECK_FILE(f, deltafs_logical_verify(f, NULL, NULL, NULL), DELTAFS_OK);
    close_it(f);
}

/* ---- Numbers of sessions ---- */

/* A truncation by a job whose session is older than those that it makes superfluous. Their numbers were used again:
 * a reader knew them as closed, and never looked at the new sessions. */
static void test_truncated_by_older(void **state)
{
    const char *path = unit_path("older");
    deltafs_logical *old = open_it(path, O_RDWR | O_CREAT), *new, *reader;

    (void)state;
    write_page(old, 0, 'a');
    sync_it(old);
    new = open_it(path, O_RDWR);
    write_page(new, 0, 'b');
    close_it(new);
    reader = open_it(path, O_RDONLY);
    check_pages(reader, "b");
    sync_it(old);
    CHECK_FILE(old, deltafs_logical_truncate(old, 0), DELTAFS_OK);
    new = open_it(path, O_RDWR);
    write_page(new, 0, 'c');
    close_it(new);
    sync_it(reader);
    check_pages(reader, "c");
    close_it(reader);
    close_it(old);
    check_fresh(path, "c");
}

/* The same, and the reader had read a part of the removed session's logs, and had one of them open: it went on behind
 * that in the new ones, and took old bytes for new. */
static void test_truncated_while_read(void **state)
{
    const char *path = unit_path("while");
    deltafs_logical *old = open_it(path, O_RDWR | O_CREAT), *new, *reader;

    (void)state;
    write_page(old, 0, 'a');
    sync_it(old);
    new = open_it(path, O_RDWR);
    write_page(new, 0, 'b');
    sync_it(new);
    write_page(new, 1, 'b');
    sync_it(new);
    reader = open_it(path, O_RDONLY);
    check_pages(reader, "bb");
    write_page(new, 2, 'b');
    close_it(new);
    sync_it(old);
    CHECK_FILE(old, deltafs_logical_truncate(old, 0), DELTAFS_OK);
    new = open_it(path, O_RDWR);
    for (int i = 0; i < 3; i++) {
        write_page(new, i, 'c');
        sync_it(new);
    }
    sync_it(reader);
    check_pages(reader, "ccc");
    close_it(reader);
    close_it(new);
    close_it(old);
    check_fresh(path, "ccc");
    /* Who comes later removes what was kept. */
    new = open_it(path, O_RDWR | O_TRUNC);
    CHECK(unit_exists(unit_path("while/s00000003")));
    for (int i = 0; i < 3; i++)
        CHECK(!unit_exists(unit_path("while/s0000000%d", i)));
    close_it(new);
}

static void check_stat(deltafs_logical *f, uint64_t sessions, uint64_t writers, uint64_t flat, int is_closed)
{
    struct deltafs_logical_stat stat = {.struct_size = sizeof stat};

    CHECK_FILE(f, deltafs_logical_stat(f, &stat), DELTAFS_OK);
    CHECK_IS(stat.sessions, sessions);
    CHECK_IS(stat.writers, writers);
    CHECK_IS(stat.flat_sessions, flat);
    CHECK_IS(stat.is_closed, is_closed);
}

/* Who asks about a file gets an answer, though another job has removed what was known of it, or a file that no reader
 * needs cannot be opened; but not if a volume is not there. */
static void test_asked_after_removal(void **state)
{
    const char *path = unit_path("asked"), *volume = unit_path("away");
    deltafs_logical *f, *reader;

    (void)state;
    CHECK_IS(mkdir(volume, 0777), 0);
    for (int i = 0; i < 2; i++) {
        deltafs_options *o = unit_options("volumes", i == 0 ? "" : volume, "extents", "flatten", NULL);
        for (int k = 0; k < 2; k++) {
            CHECK_IS(deltafs_logical_open(path, O_RDWR | O_CREAT, o, &f), DELTAFS_OK);
            write_page(f, 0, 'a');
            close_it(f);
        }
        deltafs_options_destroy(o);
        reader = open_it(path, O_RDONLY);
        check_stat(reader, 2, 2, 2, 1);
        f = open_it(path, O_RDWR | O_TRUNC);
        check_stat(reader, 0, 0, 0, 1);
        check_stat(f, 1, 1, 0, 0);
        sync_it(reader);
        check_stat(reader, 1, 1, 0, 0);
        close_it(f);
        close_it(reader);
        CHECK_IS(deltafs_logical_remove(path), DELTAFS_OK);
    }
    deltafs_options *o = unit_options("volumes", volume, NULL);
    CHECK_IS(deltafs_logical_open(path, O_RDWR | O_CREAT, o, &f), DELTAFS_OK);
    deltafs_options_destroy(o);
    write_page(f, 0, 'a');
    close_it(f);
    reader = open_it(path, O_RDONLY);
    struct deltafs_logical_stat stat = {.struct_size = sizeof stat};
    /* Only writers need OWNER. */
    const char *owner = unit_path("asked/s00000000/00/OWNER");
    CHECK(unlink(owner) == 0 && symlink("OWNER", owner) == 0);
    CHECK_FILE(reader, deltafs_logical_stat(reader, &stat), DELTAFS_OK);
    unit_remove(volume);
    CHECK_FILE(reader, deltafs_logical_stat(reader, &stat), DELTAFS_ERR_NOT_FOUND);
    CHECK(strstr(deltafs_errmsg(NULL), "/00"));
    close_it(reader);
}

/* ---- Order ---- */

/* What a job wrote after another one's truncation had been closed was gone: its order was that of its opening. */
static void test_written_after_truncation(void **state)
{
    static const int modes[] = {O_WRONLY, O_RDWR};
    const char *path = unit_path("after");

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        deltafs_logical *f = open_it(path, O_RDWR | O_CREAT | O_TRUNC), *late;
        uint64_t size;
        write_page(f, 0, 'o');
        write_page(f, 1, 'o');
        close_it(f);
        late = open_it(path, modes[i]);
        close_it(open_it(path, O_RDWR | O_TRUNC));
        write_page(late, 0, 'a');
        CHECK_FILE(late, deltafs_logical_size(late, &size), DELTAFS_OK);
        CHECK_IS(size, PAGE);
        sync_it(late);
        check_fresh(path, "a");
        close_it(late);
        check_fresh(path, "a");
    }
}

/* ---- Files that are deleted and created again ---- */

static void make_anew(const char *path, deltafs_logical **new)
{
    CHECK_IS(deltafs_logical_remove(path), DELTAFS_OK);
    *new = open_it(path, O_RDWR | O_CREAT | O_EXCL);
    write_page(*new, 0, 'n');
    sync_it(*new);
}

/* The new file is what its own job makes of it. */
static void check_anew(const char *path, deltafs_logical *new)
{
    deltafs_logical *reader = open_it(path, O_RDONLY);

    check_pages(reader, "n");
    write_page(new, 1, 'n');
    sync_it(new);
    sync_it(reader);
    check_pages(reader, "nn");
    close_it(reader);
    close_it(new);
    check_fresh(path, "nn");
}

static void check_reported(const char *message)
{
    CHECK(strstr(message, "was deleted and created again meanwhile"));
}

/* A handle that was left open closed the session of the same number in the new file, which readers took for complete,
 * and a truncation for superfluous, while it was being written; it removed others. */
static void test_deleted_after_writing(void **state)
{
    static const char *const index[] = {"parallel", "flatten"};
    const char *path = unit_path("deleted");
    deltafs_logical *old, *new;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        deltafs_options *o = unit_options("extents", index[i], NULL);
        deltafs_logical_remove(path);
        close_it(open_it(path, O_RDWR | O_CREAT));
        CHECK_IS(deltafs_logical_open(path, O_RDWR, o, &old), DELTAFS_OK);
        deltafs_options_destroy(o);
        write_page(old, 0, 'o');
        sync_it(old);
        make_anew(path, &new);
        write_page(old, 1, 'o');
        CHECK_FILE(old, deltafs_logical_sync(old), DELTAFS_ERR_NOT_FOUND);
        check_reported(deltafs_errmsg(NULL));
        CHECK_FILE(old, deltafs_logical_truncate(old, 0), DELTAFS_ERR_NOT_FOUND);
        check_reported(deltafs_errmsg(NULL));
        CHECK_FILE(old, deltafs_logical_extend(old, 2 * PAGE), DELTAFS_ERR_NOT_FOUND);
        CHECK_IS(deltafs_logical_close(old), DELTAFS_ERR_NOT_FOUND);
        check_reported(deltafs_errmsg(NULL));
        check_anew(path, new);
    }
    old = open_it(path, O_RDWR);
    write_page(old, 0, 'o');
    CHECK_IS(deltafs_logical_remove(path), DELTAFS_OK);
    CHECK_FILE(old, deltafs_logical_sync(old), DELTAFS_ERR_NOT_FOUND);
    CHECK(strstr(deltafs_errmsg(NULL), "was deleted meanwhile"));
    CHECK_IS(deltafs_logical_close(old), DELTAFS_ERR_NOT_FOUND);
    CHECK(strstr(deltafs_errmsg(NULL), "was deleted meanwhile"));
    CHECK(!unit_exists(path));
}

/* One that had not written yet put its own session into the new file, which nobody could read from then on. */
static void test_deleted_before_writing(void **state)
{
    const char *path = unit_path("before");
    deltafs_logical *old = open_it(path, O_RDWR | O_CREAT), *new;

    (void)state;
    make_anew(path, &new);
    CHECK_FILE(old, deltafs_logical_sync(old), DELTAFS_ERR_NOT_FOUND);
    check_reported(deltafs_errmsg(NULL));
    CHECK_FILE(old, deltafs_logical_write(old, 0, "o", 1), DELTAFS_ERR_NOT_FOUND);
    check_reported(deltafs_errmsg(NULL));
    CHECK_FILE(old, deltafs_logical_truncate(old, 0), DELTAFS_ERR_NOT_FOUND);
    close_it(old);
    check_anew(path, new);
}

/* ---- The same of a job of several ranks ---- */

struct rank {
    struct unit_member member;
    pthread_t thread;
    const char *path;
    int flags, opened, written, synced, closed;
    int is_early; /* all write before that, too, and sync */
    const char *volumes;
    uint64_t words, words_max;         /* of rank 0's words; rank 1 has no memory for the next. 0: it has */
    void (*between)(const char *path); /* that rank 0 calls when all have opened */
    char told_sync[1024], told[1024];
    uint32_t written_by;
};

static int tell_too_much(struct rank_group *ctx, struct bytes *bytes, struct error *e)
{
    struct rank *r = (struct rank *)(void *)ctx; /* which begins with the member */
    int status = unit_team_calls.broadcast(ctx, bytes, e);

    if (status == DELTAFS_OK && r->member.rank == 1 && r->words++ == r->words_max) {
        bytes->used = 0;
        error_no_memory(e, 1, "what rank 0 says");
    }
    return status;
}

static void *run_rank(void *arg)
{
    struct rank *r = arg;
    struct collective group = unit_team_group(&r->member);
    struct collective_calls calls = unit_team_calls;
    deltafs_options *o = unit_options("volumes", r->volumes ? r->volumes : "", NULL);
    deltafs_logical *f;
    struct error e = {0};

    if (r->words_max > 0)
        calls.broadcast = tell_too_much;
    group.calls = &calls;
    r->opened = deltafs_private_logical_open_group(r->path, r->flags, o, &group, &f, &e);
    deltafs_options_destroy(o);
    if (r->opened != DELTAFS_OK)
        return NULL;
    if (r->is_early) {
        deltafs_logical_write(f, 1, "e", 1);
        r->synced = deltafs_logical_sync(f);
    }
    if (r->member.rank == 0 && r->between)
        r->between(r->path);
    unit_team_wait(&r->member);
    if (r->member.rank == r->written_by)
        r->written = deltafs_logical_write(f, 0, "o", 1);
    if (r->synced == DELTAFS_OK && (r->is_early || r->flags == O_RDONLY))
        r->synced = deltafs_logical_sync(f);
    snprintf(r->told_sync, sizeof r->told_sync, "%s", deltafs_errmsg(NULL));
    r->closed = deltafs_logical_close(f);
    snprintf(r->told, sizeof r->told, "%s", deltafs_errmsg(NULL));
    return NULL;
}

static void run_job(struct rank *rank, uint32_t ranks, const struct rank *like)
{
    struct unit_team team;

    unit_team_init(&team, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        rank[i] = *like;
        rank[i].member = (struct unit_member){&team, i};
        CHECK_IS(pthread_create(&rank[i].thread, NULL, run_rank, &rank[i]), 0);
    }
    for (uint32_t i = 0; i < ranks; i++)
        pthread_join(rank[i].thread, NULL);
    unit_team_fini(&team);
}

static deltafs_logical *newer;

static void between_anew(const char *path)
{
    make_anew(path, &newer);
}

/* Ranks put their logs into the new file's session of the same number. */
static void test_deleted_under_ranks(void **state)
{
    struct rank rank[2], like = {.path = unit_path("ranks"), .flags = O_RDWR | O_CREAT, .between = between_anew};

    (void)state;
    for (like.written_by = 0; like.written_by <= 2; like.written_by++) {
        deltafs_logical_remove(like.path);
        run_job(rank, 2, &like);
        for (uint32_t i = 0; i < 2; i++) {
            CHECK_IS(rank[i].written, i == like.written_by ? DELTAFS_ERR_NOT_FOUND : DELTAFS_OK);
            CHECK_IS(rank[i].closed, DELTAFS_ERR_NOT_FOUND);
            check_reported(rank[i].told);
        }
        check_anew(like.path, newer);
    }
}

/* What was synced was taken for durable, though the file that it had gone to was no more. */
static void test_deleted_before_sync(void **state)
{
    struct rank rank[2], like = {.path = unit_path("synced"), .flags = O_RDWR | O_CREAT, .is_early = 1};

    (void)state;
    like.between = between_anew;
    for (like.written_by = 0; like.written_by <= 2; like.written_by++) {
        deltafs_logical_remove(like.path);
        run_job(rank, 2, &like);
        for (uint32_t i = 0; i < 2; i++) {
            CHECK_IS(rank[i].written, DELTAFS_OK);
            CHECK_IS(rank[i].synced, DELTAFS_ERR_NOT_FOUND);
            check_reported(rank[i].told_sync);
            CHECK_IS(rank[i].closed, DELTAFS_ERR_NOT_FOUND);
        }
        check_anew(like.path, newer);
    }
}

static void between_deleted(const char *path)
{
    CHECK_IS(deltafs_logical_remove(path), DELTAFS_OK);
}

/* Ranks that read are told what happened to the file, as one process is. */
static void test_deleted_under_readers(void **state)
{
    struct rank rank[2], like = {.path = unit_path("read"), .written_by = 9, .between = between_deleted};

    (void)state;
    like.flags = O_RDONLY;
    close_it(open_it(like.path, O_RDWR | O_CREAT));
    run_job(rank, 2, &like);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_IS(rank[i].synced, DELTAFS_ERR_NOT_FOUND);
        CHECK(strstr(rank[i].told_sync, "was deleted meanwhile"));
        CHECK_IS(rank[i].closed, DELTAFS_OK);
    }
}

/* ---- Sessions in which nothing is ever written ---- */

static int is_session(const char *name, int number)
{
    return unit_exists(unit_path("%s/s%08d", name, number));
}

static deltafs_logical *watcher;

static void between_watched(const char *path)
{
    CHECK(is_session("nothing", 1));
    watcher = open_it(path, O_RDONLY);
    check_pages(watcher, "a");
}

/* An opening left a session for ever, though it wrote nothing. Its number may be used again: who knows it looks
 * again. */
static void test_nothing_written(void **state)
{
    const char *path = unit_path("nothing"), *volume = unit_path("volume");
    struct rank rank[2], like = {.path = path, .flags = O_RDWR, .written_by = 9, .between = between_watched};

    (void)state;
    CHECK_IS(mkdir(volume, 0777), 0);
    for (int i = 0; i < 2; i++) {
        deltafs_logical *f = open_it(path, O_RDWR | O_CREAT | O_EXCL);
        write_page(f, 0, 'a');
        close_it(f);
        like.volumes = i == 0 ? "" : volume;
        run_job(rank, 2, &like);
        CHECK(rank[0].closed == DELTAFS_OK && rank[1].closed == DELTAFS_OK);
        CHECK(is_session("nothing", 0) && !is_session("nothing", 1));
        CHECK_IS(rmdir(volume), 0);
        CHECK_IS(mkdir(volume, 0777), 0);
        f = open_it(path, O_RDWR);
        write_page(f, 0, 'b');
        close_it(f);
        CHECK(is_session("nothing", 1));
        sync_it(watcher);
        check_pages(watcher, "b");
        close_it(watcher);
        CHECK_IS(deltafs_logical_remove(path), DELTAFS_OK);
    }
}

/* What is made of a session is not synced before its first sync. A power loss could take its folder and leave what it
 * had on a volume, which was in the way of the next session of that number, and so of all. It stays, and its number is
 * passed over. */
static void test_left_on_volume(void **state)
{
    const char *path = unit_path("left"), *volume = unit_path("left_volume");
    deltafs_options *o = unit_options("volumes", volume, NULL);
    struct deltafs_logical_stat stat = {.struct_size = sizeof stat};
    char root[600], part[700];
    deltafs_logical *f = open_it(path, O_RDWR | O_CREAT);

    (void)state;
    CHECK_IS(mkdir(volume, 0777), 0);
    CHECK_FILE(f, deltafs_logical_stat(f, &stat), DELTAFS_OK);
    snprintf(root, sizeof root, "%s/deltafs.%s", volume, stat.uuid);
    close_it(f);
    CHECK_IS(mkdir(root, 0777), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(part, sizeof part, "%s/s%08x", root, i);
        CHECK_IS(mkdir(part, 0777), 0);
        snprintf(part, sizeof part, "%s/s%08x/00", root, i);
        CHECK_IS(mkdir(part, 0777), 0);
    }
    snprintf(part, sizeof part, "%s/s00000001/00/w00000000.data", root);
    unit_save(part, "x", 1);
    CHECK_IS(deltafs_logical_open(path, O_RDWR, o, &f), DELTAFS_OK);
    write_page(f, 0, 'a');
    close_it(f);
    check_fresh(path, "a");
    CHECK(unit_exists(unit_path("left/s00000002/00/w00000000.data")) && unit_exists(part));
    CHECK(!unit_exists(unit_path("left/s00000000")) && !unit_exists(unit_path("left/s00000001")));
    deltafs_options_destroy(o);
    CHECK_IS(deltafs_logical_remove(path), DELTAFS_OK);
}

/* An opening that fails after it has created a session leaves none, and the file as it was. */
static void test_failed_opening(void **state)
{
    static const struct {
        enum unit_op op;
        uint64_t skip;
    } cases[] = {{OP_OPEN, 1}, {OP_WRITE, 0}, {OP_WRITE, 1}}; /* making its log, the log's header, the truncation */
    const char *path = unit_path("failed");
    struct rank rank[2], like = {.path = path, .flags = O_RDWR, .written_by = 9};
    deltafs_logical *f = open_it(path, O_RDWR | O_CREAT);

    (void)state;
    write_page(f, 0, 'a');
    close_it(f);
    /* Rank 1 cannot take in what rank 0 says of the session, which is the second that it says. */
    like.words_max = 1;
    run_job(rank, 2, &like);
    CHECK(rank[0].opened == DELTAFS_ERR_MEMORY && rank[1].opened == DELTAFS_ERR_MEMORY);
    CHECK(is_session("failed", 0) && !is_session("failed", 1));
    like.words_max = 0;
    like.flags = O_RDWR | O_TRUNC;
    unit_io_begin();
    for (size_t i = 0; i < 3; i++) {
        unit_io_fail(cases[i].op, ".extents", cases[i].skip, 1, ENOSPC);
        CHECK_IS(deltafs_logical_open(path, like.flags, NULL, &f), DELTAFS_ERR_NO_SPACE);
        CHECK(is_session("failed", 0) && !is_session("failed", 1));
        unit_io_fail(cases[i].op, ".extents", cases[i].skip, 1, ENOSPC);
        run_job(rank, 2, &like);
        CHECK(rank[0].opened == DELTAFS_ERR_NO_SPACE && rank[1].opened == DELTAFS_ERR_NO_SPACE);
        CHECK(is_session("failed", 0) && !is_session("failed", 1));
        CHECK_IS(unit_io_failures(), 1);
    }
    unit_io_end();
    check_fresh(path, "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated_by_older),    cmocka_unit_test(test_truncated_while_read),
        cmocka_unit_test(test_asked_after_removal),   cmocka_unit_test(test_written_after_truncation),
        cmocka_unit_test(test_deleted_after_writing), cmocka_unit_test(test_deleted_before_writing),
        cmocka_unit_test(test_deleted_under_ranks),   cmocka_unit_test(test_deleted_before_sync),
        cmocka_unit_test(test_deleted_under_readers), cmocka_unit_test(test_nothing_written),
        cmocka_unit_test(test_failed_opening),        cmocka_unit_test(test_left_on_volume),
    };

    return cmocka_run_group_tests_name("jobs of a logical file", tests, unit_setup, unit_teardown) == 0 ? 0 : 1;
}
