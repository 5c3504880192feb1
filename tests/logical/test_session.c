/* Sessions of a logical file: their lives, their numbers, their lines, and whose they are. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <deltafs/deltafs_logical.h>
#include "base/crc32c.h"
#include "fake_io.h"
#include "logical/format/logical_format.h"
#include "logical/format/session.h"
#include "unit_container.h"

static struct io io;

static void test_life(void **state)
{
    struct container c;
    struct session s, *list;
    struct error e;
    size_t n;
    char kind;

    (void)state;
    CHECK_IS(unit_container_open(&c, "life", O_RDONLY, &e), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(unit_container_open(&c, "life", O_CREAT | O_EXCL, &e), DELTAFS_OK);
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

/* What others do when the folder of session 1 is about to be made: they create it and two more. The second has logs and
 * is removed; the third has none yet. */
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
            unit_session_make(rivals.c, 4, "", &s[i]);
        CHECK_IS(session_create(rivals.c, &io, 4, 5, "", 0, &third, &e), DELTAFS_OK);
        CHECK_IS(session_close(rivals.c, &io, &s[0], 2, 6, 7, 0, &e), DELTAFS_OK);
        CHECK_IS(session_remove(rivals.c, &io, s[0].number, 0, &e), DELTAFS_OK);
    }
    return fake_do(c);
}

/* A number that others have used and discarded meanwhile is not used again: they may know what had it. */
static void test_create_late(void **state)
{
    static struct fake_io fake;
    struct io late = {.ops = &fake.ops, .ctx = &fake};
    struct container c;
    struct session s;
    struct error e;

    (void)state;
    fake_io_init(&fake, mkdir_behind_others);
    CHECK(mkdir(unit_path("vlate"), 0777) == 0);
    unit_container_make("late", &c);
    unit_session_make(&c, 4, "", &s);
    rivals.c = &c;
    rivals.is_due = 1;
    CHECK_IS(session_create(&c, &late, 4, 5, unit_path("vlate"), 0, &s, &e), DELTAFS_OK);
    CHECK_IS(rivals.is_due, 0);
    CHECK_IS(s.number, 4);
    CHECK(!unit_exists(unit_path("late/s00000001")));
    CHECK(!unit_exists(unit_path("vlate/deltafs.%s/s00000001", c.uuid_text)));
    container_fini(&c);
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
    unit_container_make("lines", &c);
    unit_session_make(&c, 4, "", &s);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        n = put_line(text, cases[i].first);
        if (cases[i].second)
            n += put_line(text + n, cases[i].second);
        unit_save(unit_path("lines/s00000000/SESSION"), text, n);
        CHECK_IS(unit_session_list(&c, &s, &n, &e), cases[i].status);
    }
    memset(text, 'a', sizeof text);
    unit_save(unit_path("lines/s00000000/SESSION"), text, sizeof text);
    CHECK_IS(unit_session_list(&c, &s, &n, &e), DELTAFS_ERR_DAMAGED);
    /* The last number there is: no other is used, and none is overrun. */
    CHECK(mkdir(unit_path("lines/sffffffff"), 0777) == 0);
    CHECK_IS(session_create(&c, &io, 1, 0, "", 0, &s, &e), DELTAFS_ERR_DAMAGED);
    CHECK_IS(session_create(&c, &io, 0, 0, "", 0, &s, &e), DELTAFS_ERR_INVALID);
    container_fini(&c);
}

/* A closing line that is truncated is none; closing again replaces it. Any other byte that changes is found. */
static void test_torn(void **state)
{
    struct container c;
    struct session s, got;
    struct error e;
    size_t size, n;

    (void)state;
    unit_container_make("torn", &c);
    unit_session_make(&c, 4, "", &s);
    CHECK_IS(session_close(&c, &io, &s, 2, 99, 1234, 0, &e), DELTAFS_OK);
    CHECK(s.is_closed && s.logs == 2 && s.last_order == 99 && s.size == 1234);
    uint8_t *file = unit_load(unit_path("torn/s00000000/SESSION"), &size);
    size_t first = (size_t)((uint8_t *)memchr(file, '\n', size) + 1 - file);
    for (size_t cut = 0; cut < size; cut++) {
        unit_save(unit_path("torn/s00000000/SESSION"), file, cut);
        CHECK_IS(unit_session_list(&c, &got, &n, &e), cut < first ? DELTAFS_ERR_DAMAGED : DELTAFS_OK);
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
        CHECK_IS(unit_session_list(&c, &got, &n, &e), DELTAFS_ERR_DAMAGED);
        unit_poke(unit_path("torn/s00000000/SESSION"), i, file[i]);
    }
    unit_save(unit_path("torn/s00000000/INDEX"), "x", 1);
    CHECK_IS(unit_session_list(&c, &got, &n, &e), DELTAFS_OK);
    CHECK(got.is_closed && got.has_index);
    free(file);
    container_fini(&c);
}

/* A session of the same number, of a file that was created again, is not closed instead; nor by another's words. */
static void test_other_session(void **state)
{
    struct container old, new;
    struct session s, other;
    struct error e;
    size_t n;

    (void)state;
    unit_container_make("again", &old);
    CHECK_IS(session_create(&old, &io, 4, 5, "", 0, &s, &e), DELTAFS_OK);
    CHECK_IS(container_check(&old, &io, &e), DELTAFS_OK);
    CHECK_IS(container_remove(&io, unit_path("again"), &e), DELTAFS_OK);
    CHECK_IS(container_check(&old, &io, &e), DELTAFS_ERR_NOT_FOUND);
    unit_container_make("again", &new);
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
    CHECK_IS(unit_session_list(&new, &other, &n, &e), DELTAFS_OK);
    CHECK(n == 3 && !other.is_closed);
    container_fini(&old);
    container_fini(&new);
}

/* Nothing is written into a session's folder that is a link. */
static void test_session_link(void **state)
{
    struct container c;
    struct session s;
    struct error e;

    (void)state;
    unit_container_make("linked", &c);
    unit_session_make(&c, 1, "", &s);
    CHECK(rename(unit_path("linked/s00000000"), unit_path("away")) == 0);
    CHECK(symlink("../away", unit_path("linked/s00000000")) == 0);
    unsigned before = unit_count_entries(unit_path("away"));
    CHECK_IS(session_write_index(&c, &io, 0, "", 0, 0, &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK(strstr(e.text, "linked/s00000000: is a symbolic link"));
    CHECK_IS(unit_count_entries(unit_path("away")), before);
    CHECK_IS(container_remove(&io, unit_path("linked"), &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK_IS(unit_count_entries(unit_path("away")), before);
    container_fini(&c);
}

/* A file that is named as a bucket is none of the session's: the statistics can be had. */
static void test_session_stray(void **state)
{
    struct deltafs_logical_stat stat = {.struct_size = sizeof stat};
    deltafs_logical *f;

    (void)state;
    CHECK_IS(deltafs_logical_open(unit_path("stray"), O_RDWR | O_CREAT, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_write(f, 0, "abc", 3), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    unit_save(unit_path("stray/s00000000/00"), "x", 1);
    CHECK_IS(deltafs_logical_open(unit_path("stray"), O_RDONLY, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_stat(f, &stat), DELTAFS_OK);
    CHECK(stat.sessions == 1 && stat.bytes_stored > 0);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
}

static int setup(void **state)
{
    io = io_default();
    return unit_setup(state);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),          cmocka_unit_test(test_create_late),   cmocka_unit_test(test_lines),
        cmocka_unit_test(test_torn),          cmocka_unit_test(test_other_session), cmocka_unit_test(test_session_link),
        cmocka_unit_test(test_session_stray),
    };

    return cmocka_run_group_tests(tests, setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
