/* Volumes: where the buckets of sessions and directories are, and that those of a copy, or of another container, stay.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fake_io.h"
#include "io/volume.h"
#include "logical/format/logical_format.h"
#include "logical/format/session.h"
#include "unit_container.h"

static struct io io;

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
        unit_container_make("spread", &c);
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
            CHECK_IS(unit_count_entries(unit_path("vol%u", v)), 1);
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
    unit_container_make("raced", &c);
    removals = 3;
    CHECK_IS(session_create(&c, &racing, 4, 5, unit_path("vrace"), 0, &s, &e), DELTAFS_OK);
    CHECK_IS(removals, 0);
    CHECK_IS(session_remove(&c, &io, s.number, 0, &e), DELTAFS_OK);
    CHECK_IS(unit_count_entries(unit_path("vrace")), 1);
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
    unit_container_make("badly", &c);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_IS(session_create(&c, &io, 1, 5, bad[i], 0, &s, &e), DELTAFS_ERR_OPTION);
        CHECK(strstr(e.text, "volumes"));
    }
    CHECK_IS(session_create(&c, &io, 1, 5, unit_path("no/such"), 0, &s, &e), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(unit_session_list(&c, &s, &n, &e), DELTAFS_OK);
    CHECK_IS(n, 0);
    CHECK_IS(unit_count_entries(unit_path("badly")), 2);
    /* A volume that is gone does not keep a file from being removed. */
    CHECK(mkdir(unit_path("vgone"), 0777) == 0);
    unit_session_make(&c, 3, unit_path("vgone"), &s);
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
    unit_container_make("copied", &c);
    unit_session_make(&c, 1, volume, &s);
    CHECK(mkdir(unit_path("copy"), 0777) == 0 && mkdir(unit_path("copy/s00000000"), 0777) == 0);
    unit_copy(unit_path("copied/MANIFEST"), unit_path("copy/MANIFEST"));
    unit_copy(unit_path("copied/s00000000/SESSION"), unit_path("copy/s00000000/SESSION"));
    CHECK(readlink(unit_path("copied/s00000000/00"), target, sizeof target - 1) > 0);
    CHECK(symlink(target, unit_path("copy/s00000000/00")) == 0);
    unsigned before = unit_count_entries(volume);
    CHECK_IS(unit_container_open(&copy, "copy", O_RDONLY, &e), DELTAFS_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_IS(i == 0 ? container_remove(&io, unit_path("copy"), &e) : session_remove(&copy, &io, 0, 0, &e),
                 DELTAFS_ERR_NOT_DELTAFS);
        CHECK(strstr(e.text, unit_path("copy")) && strstr(e.text, unit_path("copied")) && strstr(e.text, "OWNER"));
        CHECK_IS(unit_count_entries(volume), before);
    }
    CHECK_IS(container_remove(&io, unit_path("copied"), &e), DELTAFS_OK);
    CHECK_IS(unit_count_entries(volume), 1);
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
    unit_container_make("last", &c);
    unit_session_make(&c, 1, unit_path("vlast"), &s);
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
    CHECK_IS(unit_count_entries(unit_path("vlast")), 1);
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
    unit_container_make("own", &c);
    unit_session_make(&c, 1, unit_path("vown"), &s);
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
    unit_container_make("leading", &c);
    unit_container_make("led to", &other);
    unit_session_make(&c, 1, volume, &s);
    unit_session_make(&other, 1, volume, &s);
    snprintf(folder, sizeof folder, "%s/deltafs.%s", volume, c.uuid_text);
    snprintf(target, sizeof target, "%s/deltafs.%s", volume, other.uuid_text);
    unit_remove(folder);
    CHECK(symlink(target, folder) == 0);
    CHECK(mkdir(unit_path("vlink/deltafs.%s/s00000001", other.uuid_text), 0777) == 0);
    unsigned before = unit_count_entries(volume);
    CHECK_IS(session_create(&c, &io, 1, 9, volume, 0, &s, &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK(strstr(e.text, folder) && strstr(e.text, "symbolic link"));
    CHECK_IS(session_remove(&c, &io, 0, 0, &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK_IS(container_remove(&io, unit_path("leading"), &e), DELTAFS_ERR_NOT_DELTAFS);
    CHECK(strstr(e.text, folder));
    CHECK_IS(unit_count_entries(volume), before);
    CHECK(!unit_exists(unit_path("leading/s00000001")));
    container_fini(&other);
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
    CHECK_IS(unit_count_entries(unit_path("d1")) + unit_count_entries(unit_path("d2")), 2 * 2 + 5 * 4);
    CHECK(unit_count_entries(unit_path("d1")) >= 2 + 2 * 4 && unit_count_entries(unit_path("d2")) >= 2 + 2 * 4);
    d = unit_open(unit_path("wide"));
    model_check_all(&m, d, &r);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    unit_remove(unit_path("d2"));
    CHECK(mkdir(unit_path("d2"), 0500) == 0);
    deltafs_options *o = unit_options("volumes", volumes, "partitions", "5", NULL);
    unsigned before = unit_count_entries(unit_path("d1"));
    if (geteuid() != 0) {
        CHECK_IS(deltafs_create(unit_path("narrow"), o, &d), DELTAFS_ERR_IO);
        CHECK(!unit_exists(unit_path("narrow")));
    }
    unit_remove(unit_path("d2"));
    CHECK_IS(deltafs_create(unit_path("narrow"), o, &d), DELTAFS_ERR_NOT_FOUND);
    CHECK(!unit_exists(unit_path("narrow")));
    CHECK_IS(unit_count_entries(unit_path("d1")), before);
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
        cmocka_unit_test(test_volumes),
        cmocka_unit_test(test_volumes_are_even),
        cmocka_unit_test(test_volumes_race),
        cmocka_unit_test(test_volumes_bad),
        cmocka_unit_test(test_volumes_of_copy),
        cmocka_unit_test(test_volume_link),
        cmocka_unit_test(test_owner_goes_last),
        cmocka_unit_test(test_bucket_is_a_copy),
        cmocka_unit_test(test_volumes_of_directory),
    };

    return cmocka_run_group_tests(tests, setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
