/* Namespaces: opening, paths, attributes, open files. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include "namespace/entry.h"
#include "unit_namespace.h"

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
    assert_string_equal(list_names(ns, "/"), "");
    close_ns(ns);
    CHECK_IS(deltafs_namespace_close(NULL), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(NULL, "/a", 0700), DELTAFS_ERR_INVALID);
}

static void verify_and_repair(void **state)
{
    struct deltafs_verify_counts n = {.struct_size = sizeof n};
    struct deltafs_namespace_info info = {.struct_size = sizeof info};
    struct deltafs_repair_options o = {.struct_size = sizeof o, .has_label = 1};
    const char *path = unit_path("verified"), *none = unit_path("none");
    deltafs_namespace *ns = new_ns("verified");

    (void)state;
    put_file(ns, "/a", "text");
    CHECK_IS(deltafs_namespace_mkdir(ns, "/b", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_verify(path, NULL, NULL, &n), DELTAFS_OK);
    CHECK(n.records == 3 && n.damages == 0);
    CHECK_IS(deltafs_namespace_info(path, &info), DELTAFS_OK);
    CHECK(info.tables == 1 && info.records == 2 && info.pins == 0 && info.layers == 0 && !info.is_compacted);
    CHECK(info.bytes_stored > 0 && info.data_stored > 0 && strlen(info.uuid) == 36);
    CHECK_IS(deltafs_namespace_repair(path, NULL, NULL, NULL), DELTAFS_ERR_BUSY);
    close_ns(ns);
    CHECK_IS(deltafs_namespace_repair(path, NULL, NULL, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_repair(path, &o, NULL, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_verify(none, NULL, NULL, &n), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_namespace_repair(none, NULL, NULL, NULL), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_namespace_info(none, &info), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_namespace_verify(unit_path("."), NULL, NULL, &n), DELTAFS_ERR_NOT_DELTAFS);
    CHECK_IS(deltafs_namespace_verify("", NULL, NULL, &n), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_repair(NULL, NULL, NULL, NULL), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_namespace_info(path, NULL), DELTAFS_ERR_INVALID);
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

/* What leads to nothing is a name that something has. (With a slash behind it, a folder was created where it led to.)
 */
static void dangling_link(void **state)
{
    deltafs_namespace *ns = new_ns("dangling");

    (void)state;
    CHECK_IS(deltafs_namespace_symlink(ns, "nowhere", "/link"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(ns, "/link", 0700), DELTAFS_ERR_EXISTS);
    CHECK_IS(deltafs_namespace_mkdir(ns, "/link/", 0700), DELTAFS_ERR_EXISTS);
    CHECK_IS(deltafs_namespace_symlink(ns, "target", "/link/"), DELTAFS_ERR_EXISTS);
    CHECK_IS(deltafs_namespace_symlink(ns, "target", "/new/"), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_namespace_mkdir(ns, "/new/", 0700), DELTAFS_OK);
    assert_string_equal(list_names(ns, "/"), "link new");
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
    assert_string_equal(list_names(ns, "/"), "");
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
    assert_string_equal(list_names(ns, "/"), "b");
    check_file(ns, "/b", "other");
    CHECK_IS(deltafs_namespace_file_open(ns, "/b", O_RDWR, 0, &f), DELTAFS_ERR_MODE);
    CHECK_IS(deltafs_namespace_file_open(ns, "/", O_RDONLY, 0, &f), DELTAFS_ERR_FOLDER);
    CHECK_IS(deltafs_namespace_file_close(NULL), DELTAFS_OK);
    close_ns(ns);
}

static uint64_t data_epochs(const char *name)
{
    struct deltafs_stat s = {.struct_size = sizeof s};
    char table[32];
    deltafs_dir *dir;

    CHECK_IS(count_tables(unit_path("%s", name), table), 1);
    if (deltafs_open(unit_path("%s/%s.data", name, table), NULL, &dir) == DELTAFS_ERR_NOT_DELTAFS)
        return 0;
    CHECK_IS(deltafs_stat(dir, &s), DELTAFS_OK);
    deltafs_close(dir);
    return s.epochs;
}

/* Each file is read right after it was written, which commits nothing as long as its bytes are in memory, and the
 * commit goes to the journal. Then they are not any more, and are committed once. */
static void commits_of_data(void **state)
{
    deltafs_namespace *ns = new_ns("data");
    static char text[201];
    char path[32];

    (void)state;
    for (int i = 0; i < 100; i++) {
        memset(text, 'a' + i % 26, sizeof text - 1);
        snprintf(path, sizeof path, "/%d", i);
        put_file(ns, path, text);
        check_file(ns, path, text);
    }
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    check_file(ns, path, text);
    memset(text, 'a', sizeof text - 1);
    CHECK_IS(data_epochs("data"), 0);
    put_file(ns, "/first", "first");
    for (int i = 0; i < 16; i++) {
        deltafs_namespace_file *f;
        static uint8_t chunk[CHUNK_SIZE];
        snprintf(path, sizeof path, "/large%d", i);
        CHECK_IS(deltafs_namespace_file_open(ns, path, O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_write(f, 0, chunk, sizeof chunk), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    }
    check_file(ns, "/first", "first");
    check_file(ns, "/0", text);
    close_ns(ns);
    CHECK_IS(data_epochs("data"), 1);
}

/* A file of many chunks, more than are kept in memory, and the same bytes in memory. */
#define LARGE_MOST (9u << 20)

struct large {
    struct rng rng;
    deltafs_namespace *ns;
    deltafs_namespace_file *file;
    uint8_t *bytes, *other;
    size_t size; /* what follows in `bytes` is zero */
};

static void write_large(struct large *l)
{
    size_t at = (size_t)rng_below(&l->rng, rng_below(&l->rng, 4) == 0 ? LARGE_MOST : l->size + 1);
    size_t n = 1 + (size_t)rng_below(&l->rng, rng_below(&l->rng, 4) == 0 ? 1500000 : 5000);

    n = n < LARGE_MOST - at ? n : LARGE_MOST - at;
    rng_fill(&l->rng, l->bytes + at, n);
    CHECK_IS(deltafs_namespace_file_write(l->file, at, l->bytes + at, n), DELTAFS_OK);
    l->size = at + n > l->size ? at + n : l->size;
}

static void truncate_large(struct large *l)
{
    size_t size = (size_t)rng_below(&l->rng, LARGE_MOST + 1);

    size -= rng_below(&l->rng, 3) == 0 ? size % CHUNK_SIZE : 0;
    if (rng_below(&l->rng, 2) == 0)
        CHECK_IS(deltafs_namespace_file_truncate(l->file, size), DELTAFS_OK);
    else
        CHECK_IS(deltafs_namespace_truncate(l->ns, "/f", size), DELTAFS_OK);
    if (size < l->size)
        memset(l->bytes + size, 0, l->size - size);
    l->size = size;
}

static void read_large(struct large *l, size_t most)
{
    size_t at = (size_t)rng_below(&l->rng, l->size + 1), n = (size_t)rng_below(&l->rng, most), left = l->size - at, got;

    CHECK_IS(deltafs_namespace_file_read(l->file, at, l->other, n, &got), DELTAFS_OK);
    CHECK_IS(got, n < left ? n : left);
    CHECK(memcmp(l->other, l->bytes + at, got) == 0);
}

static void check_large(const struct large *l, deltafs_namespace *ns)
{
    deltafs_namespace_file *f;
    size_t got;

    CHECK_IS(stat_of(ns, "/f").size, l->size);
    CHECK_IS(deltafs_namespace_file_open(ns, "/f", O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, l->other, LARGE_MOST, &got), DELTAFS_OK);
    CHECK_IS(got, l->size);
    CHECK(memcmp(l->other, l->bytes, got) == 0);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
}

static void open_large(struct large *l, int flags)
{
    CHECK_IS(deltafs_namespace_file_open(l->ns, "/f", O_RDWR | O_CREAT | flags, 0600, &l->file), DELTAFS_OK);
}

static void large_files(void **state)
{
    struct large l = {
        .rng = rng_of(5), .ns = new_ns("large"), .bytes = calloc(1, LARGE_MOST), .other = malloc(LARGE_MOST)};

    (void)state;
    open_large(&l, O_EXCL);
    for (int i = 0; i < 150; i++) {
        switch (rng_below(&l.rng, 12)) {
        case 0:
            truncate_large(&l);
            break;
        case 1: {
            CHECK_IS(deltafs_namespace_file_sync(l.file), DELTAFS_OK);
            deltafs_namespace *reader = open_ns(unit_path("large"), O_RDONLY);
            check_large(&l, reader);
            close_ns(reader);
            break;
        }
        case 2:
            CHECK_IS(deltafs_namespace_file_close(l.file), DELTAFS_OK);
            if (rng_below(&l.rng, 2) == 0) {
                close_ns(l.ns);
                l.ns = open_ns(unit_path("large"), O_RDWR);
            }
            open_large(&l, 0);
            break;
        case 3:
        case 4:
            read_large(&l, LARGE_MOST);
            break;
        case 5:
        case 6:
            read_large(&l, 5000);
            break;
        default:
            write_large(&l);
        }
    }
    check_large(&l, l.ns);
    CHECK_IS(deltafs_namespace_file_close(l.file), DELTAFS_OK);
    close_ns(l.ns);
    free(l.bytes);
    free(l.other);
}

/* The largest size, all of it zeros, and what is too large. */
static void largest_file(void **state)
{
    deltafs_namespace *ns = new_ns("largest");
    deltafs_namespace_file *f;
    uint8_t byte = 7, read[2];
    size_t got;

    (void)state;
    CHECK_IS(deltafs_namespace_file_open(ns, "/f", O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(f, FILE_MAX, &byte, 1), DELTAFS_ERR_TOO_LARGE);
    CHECK_IS(deltafs_namespace_file_write(f, UINT64_MAX, &byte, 1), DELTAFS_ERR_TOO_LARGE);
    CHECK_IS(deltafs_namespace_file_truncate(f, FILE_MAX + 1), DELTAFS_ERR_TOO_LARGE);
    CHECK_IS(stat_of(ns, "/f").size, 0);
    /* The list of the chunks has more than one part. */
    CHECK_IS(deltafs_namespace_file_write(f, UINT64_C(6) << 30, &byte, 1), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    close_ns(ns);
    ns = open_ns(unit_path("largest"), O_RDONLY);
    CHECK_IS(deltafs_namespace_file_open(ns, "/f", O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, (UINT64_C(6) << 30) - 1, read, 2, &got), DELTAFS_OK);
    CHECK(got == 2 && read[0] == 0 && read[1] == 7);
    CHECK_IS(deltafs_namespace_file_sync(f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_truncate(ns, "/f", 0), DELTAFS_ERR_MODE);
    close_ns(ns);
}

/* As open(2), O_TRUNC changes the time of the last change of an empty file, too. */
static void truncated_when_opened(void **state)
{
    const struct deltafs_namespace_attributes a = {.struct_size = sizeof a, .set = DELTAFS_NAMESPACE_MTIME, .mtime = 5};
    deltafs_namespace *ns = new_ns("trunc");

    (void)state;
    put_file(ns, "/f", "");
    CHECK_IS(deltafs_namespace_set_attributes(ns, "/f", 0, &a), DELTAFS_OK);
    CHECK_IS(stat_of(ns, "/f").mtime, 5);
    put_file(ns, "/f", "");
    CHECK(stat_of(ns, "/f").mtime > 5);
    close_ns(ns);
}

/* What was written to an open file changes its time, whatever attributes it gets then. */
static void written_when_set(void **state)
{
    const struct deltafs_namespace_attributes a = {.struct_size = sizeof a, .set = DELTAFS_NAMESPACE_MTIME, .mtime = 5};
    const struct deltafs_namespace_attributes b = {
        .struct_size = sizeof b, .set = DELTAFS_NAMESPACE_MODE, .mode = 0640};
    deltafs_namespace *ns = new_ns("written");
    deltafs_namespace_file *f;

    (void)state;
    put_file(ns, "/f", "text");
    CHECK_IS(deltafs_namespace_set_attributes(ns, "/f", 0, &a), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_open(ns, "/f", O_RDWR, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(f, 0, "new", 3), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_set_attributes(ns, "/f", 0, &b), DELTAFS_OK);
    CHECK(stat_of(ns, "/f").mtime > 5);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    CHECK(stat_of(ns, "/f").mtime > 5);
    CHECK_IS(stat_of(ns, "/f").mode & 07777, 0640);
    close_ns(ns);
}

/* A file that is open when another takes its name does not get the name back when it is closed, however many names were
 * changed in between. */
static void replaced_while_open(void **state)
{
    enum { MANY = 120000 };
    deltafs_namespace *ns = new_ns("replaced");
    deltafs_namespace_file *f;
    char path[32];

    (void)state;
    put_file(ns, "/file", "old");
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_open(ns, "/file", O_RDWR, 0, &f), DELTAFS_OK);
    for (int i = 0; i < MANY; i++) { /* more than are in memory at once */
        snprintf(path, sizeof path, "/%d", i);
        CHECK_IS(deltafs_namespace_create(ns, path, 0600, 0), DELTAFS_OK);
    }
    CHECK_IS(deltafs_namespace_file_write(f, 0, "older", 5), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_create(ns, "/file", 0640, 0), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    CHECK_IS(stat_of(ns, "/file").size, 0);
    close_ns(ns);
    ns = open_ns(unit_path("replaced"), O_RDONLY);
    CHECK_IS(stat_of(ns, "/file").size, 0);
    CHECK_IS(stat_of(ns, "/file").mode & 07777, 0640);
    close_ns(ns);
}

/* The same in a folder that two writers have made, in the part that is the other one's. */
static void replaced_in_two(void **state)
{
    deltafs_namespace *one = new_ns("two"), *two = open_ns(unit_path("two"), O_RDWR);
    deltafs_namespace_file *f;

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(one, "/d", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(two, "/d", 0700), DELTAFS_OK);
    put_file(one, "/d/one", "old");
    put_file(two, "/d/two", "old");
    close_ns(one);
    close_ns(two);
    one = open_ns(unit_path("two"), O_RDWR);
    for (int i = 0; i < 2; i++) {
        const char *path = i == 0 ? "/d/one" : "/d/two";
        CHECK_IS(deltafs_namespace_file_open(one, path, O_RDWR, 0, &f), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_write(f, 0, "older", 5), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_create(one, path, 0640, 0), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
        CHECK_IS(stat_of(one, path).size, 0);
    }
    close_ns(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(opening),
                                       cmocka_unit_test(options_of_directories),
                                       cmocka_unit_test(damaged_head),
                                       cmocka_unit_test(error_numbers),
                                       cmocka_unit_test(paths),
                                       cmocka_unit_test(links_after_paths),
                                       cmocka_unit_test(dangling_link),
                                       cmocka_unit_test(root_attributes),
                                       cmocka_unit_test(open_files),
                                       cmocka_unit_test(commits_of_data),
                                       cmocka_unit_test(large_files),
                                       cmocka_unit_test(largest_file),
                                       cmocka_unit_test(truncated_when_opened),
                                       cmocka_unit_test(verify_and_repair),
                                       cmocka_unit_test(replaced_while_open),
                                       cmocka_unit_test(replaced_in_two),
                                       cmocka_unit_test(written_when_set)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
