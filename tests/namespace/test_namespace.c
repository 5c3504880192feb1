/* Namespaces: errors, open files, lists, several writers, commits that fail, crashes, damage. */
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "namespace/entry.h"
#include "namespace/name_filter.h"
#include "unit_help.h"
#include "unit_io.h"
#include "unit_kth.h"

/* ---- Help ---- */

static int try_open(const char *path, int flags, const char *memory, deltafs_namespace **out)
{
    deltafs_options *o = unit_options("memory", memory, "threads", "0", NULL);
    int status = deltafs_namespace_open(path, flags, o, out);

    deltafs_options_destroy(o);
    return status;
}

static deltafs_namespace *open_ns(const char *path, int flags)
{
    deltafs_namespace *ns = NULL;

    CHECK_IS(try_open(path, flags, "32M", &ns), DELTAFS_OK);
    return ns;
}

static deltafs_namespace *new_ns(const char *name)
{
    return open_ns(unit_path("%s", name), O_RDWR | O_CREAT | O_EXCL);
}

static void close_ns(deltafs_namespace *ns)
{
    CHECK_IS(deltafs_namespace_close(ns), DELTAFS_OK);
}

static struct deltafs_namespace_stat stat_of(deltafs_namespace *ns, const char *path)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};

    CHECK_IS(deltafs_namespace_stat(ns, path, AT_SYMLINK_NOFOLLOW, &s), DELTAFS_OK);
    return s;
}

static int has(deltafs_namespace *ns, const char *path)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    int status = deltafs_namespace_stat(ns, path, 0, &s);

    CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND);
    return status == DELTAFS_OK;
}

static void put_file(deltafs_namespace *ns, const char *path, const char *text)
{
    deltafs_namespace_file *f;

    CHECK_IS(deltafs_namespace_file_open(ns, path, O_WRONLY | O_CREAT | O_TRUNC, 0644, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(f, 0, text, strlen(text)), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
}

static void check_file(deltafs_namespace *ns, const char *path, const char *text)
{
    char bytes[256] = "";
    deltafs_namespace_file *f;
    size_t got;

    CHECK_IS(deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, sizeof bytes - 1, &got), DELTAFS_OK);
    assert_string_equal(bytes, text);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
}

/* The names in a folder, sorted. */
static const char *names_in(deltafs_namespace *ns, const char *path)
{
    static char text[512];
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace_list *l;
    char name[64][16];
    size_t n = 0;

    CHECK_IS(deltafs_namespace_list_open(ns, path, &l), DELTAFS_OK);
    for (;;) {
        CHECK_IS(deltafs_namespace_list_next(l, &entry), DELTAFS_OK);
        if (!entry)
            break;
        CHECK(n < 64 && strlen(entry->name) < 16);
        strcpy(name[n++], entry->name);
    }
    CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    qsort(name, n, sizeof name[0], (int (*)(const void *, const void *))strcmp);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        strcat(strcat(text, i > 0 ? " " : ""), name[i]);
    return text;
}

/* The tables that a namespace has; the name of one of them. */
static unsigned count_tables(const char *path, char name[32])
{
    DIR *d = opendir(path);
    const struct dirent *e;
    unsigned n = 0;

    assert_non_null(d);
    while ((e = readdir(d)))
        if (strlen(e->d_name) == 17) {
            snprintf(name, 32, "%.31s", e->d_name);
            n++;
        }
    closedir(d);
    return n;
}

/* ---- Opening ---- */

static void opening(void **state)
{
    const char *path = unit_path("open"), *folder = unit_path("folder"), *full = unit_path("full");
    deltafs_namespace *ns = NULL;
    char name[32];

    (void)state;
    CHECK_IS(try_open(path, O_RDONLY, "32M", &ns), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(try_open(path, O_RDWR, "32M", &ns), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(try_open(path, O_WRONLY, "32M", &ns), DELTAFS_ERR_INVALID);
    CHECK_IS(try_open(path, O_RDONLY | O_CREAT, "32M", &ns), DELTAFS_ERR_INVALID);
    CHECK_IS(try_open("", O_RDONLY, "32M", &ns), DELTAFS_ERR_INVALID);
    CHECK_IS(try_open(unit_path("no/such"), O_RDWR | O_CREAT, "32M", &ns), DELTAFS_ERR_NOT_FOUND);
    mkdir(folder, 0700);
    CHECK_IS(try_open(folder, O_RDONLY, "32M", &ns), DELTAFS_ERR_NOT_DELTAFS);
    close_ns(open_ns(folder, O_RDWR | O_CREAT | O_EXCL));
    mkdir(full, 0700);
    unit_save(unit_path("full/file"), "x", 1);
    CHECK_IS(try_open(full, O_RDWR | O_CREAT, "32M", &ns), DELTAFS_ERR_NOT_DELTAFS);
    CHECK_IS(try_open(full, O_RDWR | O_CREAT | O_EXCL, "32M", &ns), DELTAFS_ERR_NOT_DELTAFS);
    close_ns(open_ns(path, O_RDWR | O_CREAT));
    CHECK_IS(try_open(path, O_RDWR | O_CREAT | O_EXCL, "32M", &ns), DELTAFS_ERR_EXISTS);
    close_ns(open_ns(unit_path("open//"), O_RDWR | O_CREAT));
    CHECK_IS(try_open(path, O_RDWR, "31M", &ns), DELTAFS_ERR_MEMORY);
    CHECK_IS(count_tables(path, name), 1); /* each writer has taken over the table of the one before */
    CHECK_IS(deltafs_namespace_open(path, O_RDONLY, NULL, &ns), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(ns, "/a", 0700), DELTAFS_ERR_MODE);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_ERR_MODE);
    CHECK(strstr(deltafs_errmsg(NULL), "O_RDWR"));
    CHECK(!has(ns, "/a"));
    assert_string_equal(names_in(ns, "/"), "");
    close_ns(ns);
    CHECK_IS(deltafs_namespace_close(NULL), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(NULL, "/a", 0700), DELTAFS_ERR_INVALID);
}

/* What the environment says of directories does not make a table another than all others. */
static void options_of_directories(void **state)
{
    static const char *const set[][2] = {{"DELTAFS_COMMIT", "async"},      {"DELTAFS_KEYS", "bytes"},
                                         {"DELTAFS_LAYOUT", "local"},      {"DELTAFS_OLD_LABEL", "skip"},
                                         {"DELTAFS_PARTITIONER", "range"}, {"DELTAFS_PARTITIONS", "7"},
                                         {"DELTAFS_SCHEMA", "x:f4"},       {"DELTAFS_INDEX_BY", "x:x"}};
    deltafs_namespace *ns = new_ns("options");
    char name[32];

    (void)state;
    put_file(ns, "/a", "a");
    close_ns(ns);
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        setenv(set[i][0], set[i][1], 1);
    ns = open_ns(unit_path("options"), O_RDWR);
    put_file(ns, "/b", "b");
    close_ns(ns);
    CHECK_IS(count_tables(unit_path("options"), name), 1);
    close_ns(new_ns("options2"));
    ns = open_ns(unit_path("options2"), O_RDWR);
    put_file(ns, "/c", "c");
    close_ns(ns);
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        unsetenv(set[i][0]);
    ns = open_ns(unit_path("options"), O_RDWR);
    check_file(ns, "/a", "a");
    check_file(ns, "/b", "b");
    close_ns(ns);
    ns = open_ns(unit_path("options2"), O_RDWR);
    put_file(ns, "/d", "d");
    check_file(ns, "/c", "c");
    close_ns(ns);
    CHECK_IS(count_tables(unit_path("options2"), name), 1);
}

static void damaged_head(void **state)
{
    const char *head = unit_path("head/NAMESPACE");
    deltafs_namespace *ns = new_ns("head");
    uint8_t *bytes;
    size_t n;

    (void)state;
    close_ns(ns);
    bytes = unit_load(head, &n);
    for (size_t cut = 0; cut < n; cut++) {
        unit_save(head, bytes, cut);
        CHECK_IS(try_open(unit_path("head"), O_RDONLY, "32M", &ns), DELTAFS_ERR_DAMAGED);
    }
    unit_save(head, bytes, n);
    for (size_t at = 0; at < n - 1; at++) {
        unit_poke(head, at, bytes[at] ^ 1);
        CHECK_IS(try_open(unit_path("head"), O_RDWR, "32M", &ns), DELTAFS_ERR_DAMAGED);
        unit_poke(head, at, bytes[at]);
    }
    close_ns(open_ns(unit_path("head"), O_RDONLY));
    free(bytes);
}

static void error_numbers(void **state)
{
    (void)state;
    CHECK_IS(deltafs_namespace_errno(DELTAFS_OK), 0);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_NOT_FOUND), ENOENT);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_EXISTS), EEXIST);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_NOT_FOLDER), ENOTDIR);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_FOLDER), EISDIR);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_NOT_EMPTY), ENOTEMPTY);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_LOOP), ELOOP);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_NAME), ENAMETOOLONG);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_TOO_LARGE), EFBIG);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_MODE), EROFS);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_BUSY), EBUSY);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_INVALID), EINVAL);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_MEMORY), ENOMEM);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_NO_SPACE), ENOSPC);
    CHECK_IS(deltafs_namespace_errno(DELTAFS_ERR_DAMAGED), EIO);
}

/* ---- Paths ---- */

static void paths(void **state)
{
    deltafs_namespace *ns = new_ns("paths");
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    char name[4200];

    (void)state;
    memset(name, 'n', sizeof name);
    name[0] = '/';
    name[256] = '\0';
    CHECK_IS(deltafs_namespace_mkdir(ns, name, 0700), DELTAFS_OK);
    CHECK(has(ns, name));
    name[256] = 'n';
    name[257] = '\0';
    CHECK_IS(deltafs_namespace_mkdir(ns, name, 0700), DELTAFS_ERR_NAME);
    CHECK_IS(deltafs_namespace_create(ns, name, 0700, 0), DELTAFS_ERR_NAME);
    memset(name, '/', sizeof name);
    name[4096] = '\0';
    CHECK_IS(deltafs_namespace_stat(ns, name, 0, &s), DELTAFS_ERR_NAME);
    name[4095] = '\0';
    CHECK_IS(deltafs_namespace_stat(ns, name, 0, &s), DELTAFS_OK);
    CHECK_IS(s.inode, 1);
    CHECK_IS(deltafs_namespace_stat(ns, "", 0, &s), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_namespace_symlink(ns, "two", "/one"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_symlink(ns, "one", "/two"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_stat(ns, "/one", 0, &s), DELTAFS_ERR_LOOP);
    CHECK_IS(deltafs_namespace_stat(ns, "/one/x", 0, &s), DELTAFS_ERR_LOOP);
    CHECK_IS(deltafs_namespace_symlink(ns, "", "/none"), DELTAFS_ERR_NOT_FOUND);
    memset(name, 't', sizeof name);
    name[4096] = '\0';
    CHECK_IS(deltafs_namespace_symlink(ns, name, "/none"), DELTAFS_ERR_NAME);
    name[4095] = '\0';
    CHECK_IS(deltafs_namespace_symlink(ns, name, "/long"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_stat(ns, "/one/", AT_SYMLINK_FOLLOW, &s), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_rmdir(ns, "/"), DELTAFS_ERR_BUSY);
    CHECK_IS(deltafs_namespace_rename(ns, "/", "/x"), DELTAFS_ERR_BUSY);
    CHECK_IS(deltafs_namespace_unlink(ns, "/"), DELTAFS_ERR_FOLDER);
    CHECK_IS(deltafs_namespace_create(ns, "/", 0, 0), DELTAFS_ERR_FOLDER);
    close_ns(ns);
}

/* A link in the folder that the last call was in: its dots are names of that path, whose text is gone. */
static void links_after_paths(void **state)
{
    deltafs_namespace *ns = new_ns("dots");
    char path[] = "/one/two/x";

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/one", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(ns, "/one/two", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_symlink(ns, "..", "/one/two/up"), DELTAFS_OK);
    CHECK(!has(ns, path));
    memset(path, 'x', strlen(path));
    CHECK(has(ns, "/one/two/up"));
    close_ns(ns);
}

static void root_attributes(void **state)
{
    struct deltafs_namespace_attributes a = {.struct_size = sizeof a,
                                             .set = DELTAFS_NAMESPACE_MODE | DELTAFS_NAMESPACE_UID |
                                                    DELTAFS_NAMESPACE_GID | DELTAFS_NAMESPACE_MTIME |
                                                    DELTAFS_NAMESPACE_ATIME,
                                             .mode = 07123,
                                             .uid = 4000000000u,
                                             .gid = 5,
                                             .mtime = INT64_MIN,
                                             .atime = INT64_MAX};
    deltafs_namespace *ns = new_ns("root");

    (void)state;
    CHECK_IS(stat_of(ns, "/").mode, S_IFDIR | 0755);
    for (int round = 0; round < 2; round++) {
        CHECK_IS(deltafs_namespace_set_attributes(ns, "/", 0, &a), DELTAFS_OK);
        close_ns(ns);
        ns = open_ns(unit_path("root"), O_RDWR);
        struct deltafs_namespace_stat s = stat_of(ns, "/");
        CHECK_IS(s.mode, S_IFDIR | a.mode);
        CHECK_IS(s.uid, a.uid);
        CHECK_IS(s.gid, a.gid);
        CHECK_IS(s.mtime, a.mtime);
        CHECK_IS(s.atime, a.atime);
        CHECK_IS(s.inode, 1);
        a.mode = 0600;
        a.set = DELTAFS_NAMESPACE_MODE;
    }
    assert_string_equal(names_in(ns, "/"), "");
    close_ns(ns);
}

/* ---- Files ---- */

static void open_files(void **state)
{
    deltafs_namespace *ns = new_ns("files");
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    deltafs_namespace_file *f, *g, *h;
    char bytes[16];
    size_t got;

    (void)state;
    put_file(ns, "/a", "hello");
    CHECK_IS(deltafs_namespace_file_open(ns, "/a", O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_open(ns, "/a", O_RDWR | O_APPEND, 0, &g), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_open(ns, "/a", O_WRONLY, 0, &h), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(f, 0, "x", 1), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_file_truncate(f, 0), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_file_read(h, 0, bytes, 1, &got), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_file_write(g, 0, " world", 6), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(h, 0, "J", 1), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, sizeof bytes, &got), DELTAFS_OK);
    CHECK(got == 11 && memcmp(bytes, "Jello world", 11) == 0);
    CHECK_IS(stat_of(ns, "/a").size, 11);
    /* It moves, is committed, is removed, and stays open. */
    int64_t ctime = stat_of(ns, "/a").ctime;
    CHECK_IS(deltafs_namespace_rename(ns, "/a", "/b"), DELTAFS_OK);
    CHECK(stat_of(ns, "/b").ctime > ctime);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    check_file(ns, "/b", "Jello world");
    CHECK_IS(deltafs_namespace_file_truncate(h, 4), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(ns, "/b"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(g, 0, "!", 1), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, sizeof bytes, &got), DELTAFS_OK);
    CHECK(got == 5 && memcmp(bytes, "Jell!", 5) == 0);
    CHECK_IS(deltafs_namespace_file_stat(f, &s), DELTAFS_OK);
    CHECK_IS(s.size, 5);
    put_file(ns, "/b", "other");
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(g), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(h), DELTAFS_OK);
    check_file(ns, "/b", "other");
    CHECK(!has(ns, "/a"));
    close_ns(ns);
    ns = open_ns(unit_path("files"), O_RDONLY);
    assert_string_equal(names_in(ns, "/"), "b");
    check_file(ns, "/b", "other");
    CHECK_IS(deltafs_namespace_file_open(ns, "/b", O_RDWR, 0, &f), DELTAFS_ERR_MODE);
    CHECK_IS(deltafs_namespace_file_open(ns, "/", O_RDONLY, 0, &f), DELTAFS_ERR_FOLDER);
    CHECK_IS(deltafs_namespace_file_close(NULL), DELTAFS_OK);
    close_ns(ns);
}

/* The largest file, and what is too large. */
/* Reading what is committed does not commit the bytes of other files. */
static void commits_of_data(void **state)
{
    const char *path = unit_path("data");
    deltafs_namespace *ns = new_ns("data");
    char table[32];
    struct deltafs_stat s = {.struct_size = sizeof s};
    deltafs_dir *dir;

    (void)state;
    put_file(ns, "/a", "a");
    check_file(ns, "/a", "a");
    put_file(ns, "/b", "b");
    check_file(ns, "/a", "a");
    put_file(ns, "/c", "c");
    close_ns(ns);
    CHECK_IS(count_tables(path, table), 1);
    CHECK_IS(deltafs_open(unit_path("data/%s.data", table), NULL, &dir), DELTAFS_OK);
    CHECK_IS(deltafs_stat(dir, &s), DELTAFS_OK);
    CHECK_IS(s.epochs, 2);
    deltafs_close(dir);
}

static void large_files(void **state)
{
    deltafs_namespace *ns = new_ns("large");
    uint8_t *bytes = malloc(FILE_MAX), *read = malloc(FILE_MAX);
    struct rng r = rng_of(5);
    deltafs_namespace_file *f;
    size_t got;

    (void)state;
    rng_fill(&r, bytes, FILE_MAX);
    CHECK_IS(deltafs_namespace_file_open(ns, "/f", O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(f, 0, bytes, FILE_MAX), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(f, FILE_MAX, bytes, 1), DELTAFS_ERR_TOO_LARGE);
    CHECK_IS(deltafs_namespace_file_write(f, UINT64_MAX, bytes, 1), DELTAFS_ERR_TOO_LARGE);
    CHECK_IS(deltafs_namespace_file_truncate(f, FILE_MAX + 1), DELTAFS_ERR_TOO_LARGE);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    close_ns(ns);
    ns = open_ns(unit_path("large"), O_RDONLY);
    CHECK_IS(deltafs_namespace_file_open(ns, "/f", O_RDONLY, 0, &f), DELTAFS_OK);
    for (int i = 0; i < 50; i++) {
        size_t at = (size_t)rng_below(&r, FILE_MAX), n = (size_t)rng_below(&r, 600000), left = FILE_MAX - at;
        CHECK_IS(deltafs_namespace_file_read(f, at, read, n, &got), DELTAFS_OK);
        CHECK_IS(got, n < left ? n : left);
        CHECK(memcmp(read, bytes + at, got) == 0);
    }
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    close_ns(ns);
    free(bytes);
    free(read);
}

/* ---- Lists ---- */

/* A folder of many entries is removed while it is listed, and others come. */
static void list_and_change(void **state)
{
    enum { COUNT = 3000 };
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace *ns = new_ns("list");
    deltafs_namespace_list *l;
    unsigned count = 0;
    char path[64];

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/d", 0700), DELTAFS_OK);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(path, sizeof path, "/d/%u", i);
        CHECK_IS(deltafs_namespace_create(ns, path, 0600, 0), DELTAFS_OK);
        if (i % 1000 == 0)
            CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    }
    CHECK_IS(deltafs_namespace_rmdir(ns, "/d"), DELTAFS_ERR_NOT_EMPTY);
    CHECK_IS(deltafs_namespace_list_open(ns, "/d", &l), DELTAFS_OK);
    for (;;) {
        CHECK_IS(deltafs_namespace_list_next(l, &entry), DELTAFS_OK);
        if (!entry)
            break;
        CHECK(entry->name[0] != 'n');
        snprintf(path, sizeof path, "/d/%.20s", entry->name);
        CHECK_IS(deltafs_namespace_unlink(ns, path), DELTAFS_OK);
        snprintf(path, sizeof path, "/d/new%u", count);
        if (count++ % 2 == 0)
            CHECK_IS(deltafs_namespace_create(ns, path, 0600, O_EXCL), DELTAFS_OK);
        if (count == COUNT / 2) /* what is left is removed by another name: it does not come any more */
            CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    }
    CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    CHECK_IS(count, COUNT);
    for (unsigned i = 0; i < COUNT; i += 2) {
        snprintf(path, sizeof path, "/d/new%u", i);
        CHECK_IS(deltafs_namespace_unlink(ns, path), DELTAFS_OK);
    }
    CHECK_IS(deltafs_namespace_rmdir(ns, "/d"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_list_open(ns, "/d", &l), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_namespace_list_close(NULL), DELTAFS_OK);
    close_ns(ns);
}

/* More names than memory has room for: they are committed on the way. */
static void more_than_memory(void **state)
{
    enum { COUNT = 150000 };
    deltafs_namespace *ns = new_ns("memory"), *reader;
    char path[64];

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/d", 0700), DELTAFS_OK);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(path, sizeof path, "/d/%u", i);
        CHECK_IS(deltafs_namespace_create(ns, path, 0600, 0), DELTAFS_OK);
    }
    reader = open_ns(unit_path("memory"), O_RDONLY);
    CHECK(has(reader, "/d/0") && !has(reader, "/d/149999"));
    CHECK(has(ns, "/d/0") && has(ns, "/d/149999") && !has(ns, "/d/150000"));
    CHECK_IS(deltafs_namespace_create(ns, "/d/0", 0600, O_EXCL), DELTAFS_ERR_EXISTS);
    close_ns(reader);
    close_ns(ns);
}

static void create_long(deltafs_namespace *ns, const char *folder, unsigned count)
{
    char path[256];

    for (unsigned i = 0; i < count; i++) {
        snprintf(path, sizeof path, "/%s/%0200u", folder, i);
        CHECK_IS(deltafs_namespace_create(ns, path, 0600, 0), DELTAFS_OK);
    }
}

/* The same, with lists and changed files that are open. */
static void open_beyond_memory(void **state)
{
    enum { OPEN = 4000, COUNT = 40000 };
    static deltafs_namespace_file *f[OPEN];
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace *ns = new_ns("beyond");
    deltafs_namespace_list *l;
    char path[256];

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(ns, "/d", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(ns, "/e", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(ns, "/removed", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_create(ns, "/removed/x", 0600, 0), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_list_open(ns, "/removed", &l), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(ns, "/removed/x"), DELTAFS_OK);
    for (unsigned i = 0; i < OPEN; i++) {
        snprintf(path, sizeof path, "/d/f%0200u", i);
        CHECK_IS(deltafs_namespace_file_open(ns, path, O_WRONLY | O_CREAT, 0600, &f[i]), DELTAFS_OK);
    }
    create_long(ns, "d", COUNT);
    for (unsigned i = 0; i < OPEN; i++)
        CHECK_IS(deltafs_namespace_file_write(f[i], 0, "x", 1), DELTAFS_OK);
    create_long(ns, "e", COUNT);
    for (unsigned i = 0; i < OPEN; i++)
        CHECK_IS(deltafs_namespace_file_close(f[i]), DELTAFS_OK);
    check_file(ns, path, "x");
    CHECK_IS(deltafs_namespace_list_next(l, &entry), DELTAFS_OK);
    CHECK(!entry);
    CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    close_ns(ns);
}

/* What was added is found, and little else. */
static void filter_of_names(void **state)
{
    enum { COUNT = 50000 };
    struct name_filter f = {0};
    struct error e;
    unsigned wrong = 0;

    (void)state;
    CHECK_IS(name_filter_has(&f, 1), 0);
    CHECK_IS(name_filter_init(&f, COUNT * 10 / 8, &e), DELTAFS_OK);
    for (uint64_t i = 0; i < COUNT; i++)
        name_filter_add(&f, i << 32 | i);
    for (uint64_t i = 0; i < COUNT; i++) {
        CHECK(name_filter_has(&f, i << 32 | i));
        wrong += name_filter_has(&f, i << 32 | (i + 1)) != 0;
    }
    CHECK(wrong < COUNT / 40);
    name_filter_fini(&f);
}

/* ---- Several writers ---- */

static void conflicts(void **state)
{
    const char *path = unit_path("conflicts");
    deltafs_namespace *a = new_ns("conflicts"), *b = open_ns(path, O_RDWR), *c;
    char name[32];

    (void)state;
    /* The same folder from both is one. */
    CHECK_IS(deltafs_namespace_mkdir(a, "/out", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(b, "/out", 0750), DELTAFS_OK);
    put_file(a, "/out/a", "a");
    put_file(b, "/out/b", "b");
    put_file(a, "/out/both", "first");
    put_file(b, "/out/both", "second");
    /* A name that is a folder and a file, whichever came last. */
    put_file(a, "/one", "file");
    CHECK_IS(deltafs_namespace_mkdir(b, "/one", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(b, "/two", 0700), DELTAFS_OK);
    put_file(a, "/two", "file");
    CHECK(!has(b, "/out/a"));
    close_ns(b);
    close_ns(a);
    CHECK_IS(count_tables(path, name), 2);

    c = open_ns(path, O_RDWR);
    assert_string_equal(names_in(c, "/"), "one out two");
    assert_string_equal(names_in(c, "/out"), "a b both");
    check_file(c, "/out/both", "second");
    CHECK_IS(stat_of(c, "/out").mode, S_IFDIR | 0750);
    CHECK(S_ISDIR(stat_of(c, "/one").mode) && S_ISDIR(stat_of(c, "/two").mode));
    CHECK_IS(deltafs_namespace_rmdir(c, "/out"), DELTAFS_ERR_NOT_EMPTY);
    CHECK_IS(deltafs_namespace_rename(c, "/out", "/in"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(c, "/in/both"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_rmdir(c, "/one"), DELTAFS_OK);
    put_file(c, "/in/b", "new");
    put_file(c, "/in/c", "c");
    close_ns(c);
    CHECK_IS(count_tables(path, name), 2); /* the writer has taken over one that was there */

    c = open_ns(path, O_RDWR);
    assert_string_equal(names_in(c, "/"), "in two");
    assert_string_equal(names_in(c, "/in"), "a b c");
    check_file(c, "/in/b", "new");
    CHECK_IS(deltafs_namespace_unlink(c, "/in/a"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(c, "/in/b"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(c, "/in/c"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_rmdir(c, "/in"), DELTAFS_OK);
    close_ns(c);
    c = open_ns(path, O_RDONLY);
    assert_string_equal(names_in(c, "/"), "two");
    close_ns(c);
}

/* Several processes create the same namespace and the same folder, and fill it. */
static void created_together(void **state)
{
    enum { WRITERS = 4, FILES = 3 };
    const char *path = unit_path("together");
    deltafs_namespace *ns;
    char name[64];
    int ended, rc;

    (void)state;
    for (int k = 0; k < WRITERS; k++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid > 0)
            continue;
        ns = open_ns(path, O_RDWR | O_CREAT);
        rc = deltafs_namespace_mkdir(ns, "/out", 0700); /* another may have committed it by now */
        CHECK(rc == DELTAFS_OK || rc == DELTAFS_ERR_EXISTS);
        for (int i = 0; i < FILES; i++) {
            snprintf(name, sizeof name, "/out/%d.%d", k, i);
            put_file(ns, name, name);
        }
        close_ns(ns);
        _exit(0);
    }
    for (int k = 0; k < WRITERS; k++) {
        assert_true(wait(&ended) > 0);
        CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    }
    ns = open_ns(path, O_RDONLY);
    assert_string_equal(names_in(ns, "/"), "out");
    for (int k = 0; k < WRITERS; k++)
        for (int i = 0; i < FILES; i++) {
            snprintf(name, sizeof name, "/out/%d.%d", k, i);
            check_file(ns, name, name);
        }
    assert_string_equal(names_in(ns, "/out"), "0.0 0.1 0.2 1.0 1.1 1.2 2.0 2.1 2.2 3.0 3.1 3.2");
    close_ns(ns);
}

/* ---- Failures ---- */

/* A commit that fails leaves what was committed, and nothing else can be changed. */
static void commits_that_fail(void **state)
{
    static const char *const where[] = {"MANIFEST", ".index", ".data"};
    deltafs_namespace *ns = new_ns("fail");
    deltafs_namespace_file *f;
    char name[16];

    (void)state;
    put_file(ns, "/kept", "kept");
    close_ns(ns);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "/%u", i);
        unit_io_begin();
        ns = open_ns(unit_path("fail"), O_RDWR);
        put_file(ns, name, "lost");
        CHECK_IS(deltafs_namespace_file_open(ns, "/open", O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_write(f, 0, "x", 1), DELTAFS_OK);
        unit_io_fail(OP_WRITE, where[i], 0, 1, EIO);
        CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_ERR_IO);
        unit_io_fail(OP_WRITE, where[i], 0, 0, EIO);
        CHECK_IS(deltafs_namespace_mkdir(ns, "/x", 0700), DELTAFS_ERR_IO);
        CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_ERR_IO);
        check_file(ns, "/kept", "kept");
        CHECK_IS(deltafs_namespace_file_write(f, 0, "y", 1), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_ERR_IO);
        CHECK_IS(deltafs_namespace_close(ns), DELTAFS_ERR_IO);
        unit_io_end();
        ns = open_ns(unit_path("fail"), O_RDWR);
        assert_string_equal(names_in(ns, "/"), "kept");
        check_file(ns, "/kept", "kept");
        close_ns(ns);
    }
}

/* Changes in two commits; returns the status of the first call that failed. */
static int change_all(const char *path)
{
    deltafs_namespace *ns = NULL;
    deltafs_namespace_file *f = NULL;
    deltafs_namespace_list *l = NULL;
    const struct deltafs_namespace_entry *entry;
    int status = try_open(path, O_RDWR, "32M", &ns), rc;

    if (status != DELTAFS_OK)
        return status;
    status = deltafs_namespace_mkdir(ns, "/new", 0700);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_rename(ns, "/old", "/new/old");
    if (status == DELTAFS_OK)
        status = deltafs_namespace_commit(ns);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_open(ns, "/new/old", O_RDWR, 0, &f);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_write(f, 4, "er", 2);
    rc = deltafs_namespace_file_close(f);
    status = status == DELTAFS_OK ? rc : status;
    if (status == DELTAFS_OK)
        status = deltafs_namespace_list_open(ns, "/new", &l);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_list_next(l, &entry);
    deltafs_namespace_list_close(l);
    rc = deltafs_namespace_close(ns);
    return status == DELTAFS_OK ? rc : status;
}

/* Whatever fails is reported, and what is there then is one of the states that were committed. */
static void every_operation_fails(void **state)
{
    const char *path = unit_path("kth"), *copy = unit_path("copy");
    deltafs_namespace *ns = new_ns("kth");
    int has_failed = 1;

    (void)state;
    put_file(ns, "/old", "text");
    close_ns(ns);
    for (uint64_t k = 0; has_failed; k++) {
        unit_copy(path, copy);
        unit_kth_begin_default(k, EIO);
        unit_kth_count(1);
        int status = change_all(copy);
        unit_kth_count(0);
        has_failed = unit_kth_end();
        CHECK(has_failed || status == DELTAFS_OK);
        ns = open_ns(copy, O_RDWR);
        if (has(ns, "/old")) {
            CHECK(status != DELTAFS_OK && !has(ns, "/new"));
            check_file(ns, "/old", "text");
        } else if (stat_of(ns, "/new/old").size == 4) {
            CHECK(status != DELTAFS_OK);
            check_file(ns, "/new/old", "text");
        } else {
            check_file(ns, "/new/old", "texter");
        }
        close_ns(ns);
        unit_remove(copy);
    }
}

/* A writer that dies leaves what it has committed, and its table to the next. */
static void killed_writer(void **state)
{
    const char *path = unit_path("killed");
    deltafs_namespace *ns = new_ns("killed");
    char name[32];
    int ended;

    (void)state;
    close_ns(ns);
    for (int round = 0; round < 3; round++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            ns = open_ns(path, O_RDWR);
            put_file(ns, "/committed", "bytes");
            CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
            put_file(ns, "/lost", "bytes");
            put_file(ns, "/committed", "other");
            check_file(ns, "/lost", "bytes"); /* which commits the bytes, and not the name */
            _exit(0);
        }
        assert_true(waitpid(pid, &ended, 0) == pid);
        CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
        CHECK_IS(count_tables(path, name), 1);
        ns = open_ns(path, round == 1 ? O_RDWR : O_RDONLY);
        assert_string_equal(names_in(ns, "/"), "committed");
        check_file(ns, "/committed", "bytes");
        close_ns(ns);
    }
}

/* A writer was killed while it created its table, or its data: both are left alone. */
static void interrupted_creation(void **state)
{
    const char *path = unit_path("half");
    deltafs_namespace *ns = new_ns("half");
    char name[32];

    (void)state;
    put_file(ns, "/a", "first");
    close_ns(ns);
    CHECK_IS(count_tables(path, name), 1);
    unit_remove(unit_path("half/%s.data", name));
    mkdir(unit_path("half/%s.data", name), 0700);
    mkdir(unit_path("half/t0000000000000001"), 0700);
    for (int round = 0; round < 2; round++) {
        ns = open_ns(path, O_RDWR);
        put_file(ns, "/b", "second");
        check_file(ns, "/b", "second");
        close_ns(ns);
        CHECK_IS(count_tables(path, name), 3);
    }
    ns = open_ns(path, O_RDONLY);
    assert_string_equal(names_in(ns, "/"), "a b");
    check_file(ns, "/b", "second");
    close_ns(ns);
}

/* ---- Damage ---- */

static void check_damaged(const char *path)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace *ns = open_ns(path, O_RDONLY);
    deltafs_namespace_list *l;
    int status = deltafs_namespace_list_open(ns, "/", &l);

    CHECK_IS(deltafs_namespace_stat(ns, "/f", 0, &s), DELTAFS_ERR_DAMAGED);
    if (status == DELTAFS_OK) {
        while ((status = deltafs_namespace_list_next(l, &entry)) == DELTAFS_OK && entry)
            ;
        deltafs_namespace_list_close(l);
    }
    CHECK_IS(status, DELTAFS_ERR_DAMAGED);
    close_ns(ns);
}

static void damaged_tables(void **state)
{
    const char *path = unit_path("damage");
    deltafs_namespace *ns = new_ns("damage");
    deltafs_namespace_file *f;
    char name[32], bytes[8];
    size_t n, got;

    (void)state;
    put_file(ns, "/f", "bytes");
    close_ns(ns);
    CHECK_IS(count_tables(path, name), 1);
    const char *table = unit_path("damage/%s/00/p00000000.data", name);
    const char *data = unit_path("damage/%s.data/00/p00000000.data", name);
    uint8_t *was = unit_load(table, &n);
    unit_poke(table, n - 1, (uint8_t)(was[n - 1] ^ 1));
    check_damaged(path);
    unit_poke(table, n - 1, was[n - 1]);
    free(was);

    was = unit_load(data, &n);
    unit_poke(data, n - 1, (uint8_t)(was[n - 1] ^ 1));
    ns = open_ns(path, O_RDONLY);
    CHECK_IS(deltafs_namespace_file_open(ns, "/f", O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, 5, &got), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    free(was);
    unit_remove(unit_path("damage/%s.data", name));
    CHECK_IS(deltafs_namespace_file_open(ns, "/f", O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, 5, &got), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    close_ns(ns);
}

/* Records that no writer makes, under the key of a name that is asked for. */
static void hostile_records(void **state)
{
    const struct entry good = {.parent = {0, 1},
                               .name = "f",
                               .name_size = 1,
                               .target = "target",
                               .target_size = 6,
                               .inode = {.id = {7, 8}, .stamp = 9, .size = 6, .type = ENTRY_LINK}};
    const struct folder root = folder_of(&good.parent);
    const struct entry_name key = name_in(&root, name_hash("f", 1), "f", 1);
    uint8_t bytes[ENTRY_SIZE_MAX];
    struct entry got;
    size_t n = entry_encode(&good, bytes);
    struct rng r = rng_of(3);

    (void)state;
    CHECK_IS(entry_decode(bytes, n, &got), 0);
    CHECK(got.target_size == 6 && memcmp(got.target, "target", 6) == 0 && got.inode.stamp == 9);
    for (size_t cut = 0; cut < n; cut++)
        CHECK_IS(entry_decode(bytes, cut, &got), -1);
    for (int i = 0; i < 20000; i++) { /* whatever it says, it reads what is there */
        uint8_t *noise = malloc(n);
        memcpy(noise, bytes, n);
        noise[rng_below(&r, n)] = (uint8_t)rng_next(&r);
        noise[rng_below(&r, n)] = (uint8_t)rng_next(&r);
        if (entry_decode(noise, n, &got) == 0)
            CHECK((const uint8_t *)got.name + got.name_size <= noise + n && got.target_size <= n);
        free(noise);
    }
    static const char *const bad[] = {"", "x", "a/b", "..", "."};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *path = unit_path("hostile%zu", i);
        deltafs_namespace *ns = open_ns(path, O_RDWR | O_CREAT);
        struct entry e = good;
        deltafs_dir *d;
        char name[32];
        CHECK_IS(deltafs_namespace_create(ns, "/g", 0600, 0), DELTAFS_OK);
        close_ns(ns);
        CHECK_IS(count_tables(path, name), 1);
        CHECK_IS(deltafs_reopen(unit_path("hostile%zu/%s", i, name), NULL, &d), DELTAFS_OK);
        e.name = bad[i];
        e.name_size = strlen(bad[i]);
        n = i == 1 ? 1 : entry_encode(&e, bytes);
        CHECK_IS(deltafs_append(d, key.key, bytes, n), DELTAFS_OK);
        CHECK_IS(deltafs_epoch_end(d, UINT64_MAX / 2), DELTAFS_OK);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        check_damaged(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(opening),
                                       cmocka_unit_test(options_of_directories),
                                       cmocka_unit_test(damaged_head),
                                       cmocka_unit_test(error_numbers),
                                       cmocka_unit_test(paths),
                                       cmocka_unit_test(links_after_paths),
                                       cmocka_unit_test(root_attributes),
                                       cmocka_unit_test(open_files),
                                       cmocka_unit_test(commits_of_data),
                                       cmocka_unit_test(large_files),
                                       cmocka_unit_test(list_and_change),
                                       cmocka_unit_test(more_than_memory),
                                       cmocka_unit_test(open_beyond_memory),
                                       cmocka_unit_test(filter_of_names),
                                       cmocka_unit_test(conflicts),
                                       cmocka_unit_test(created_together),
                                       cmocka_unit_test(commits_that_fail),
                                       cmocka_unit_test(every_operation_fails),
                                       cmocka_unit_test(killed_writer),
                                       cmocka_unit_test(interrupted_creation),
                                       cmocka_unit_test(damaged_tables),
                                       cmocka_unit_test(hostile_records)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
