/* A namespace that several ranks have open: what each of them sees, and what they can do at once.
 *
 *     test_mpi_namespace FOLDER calls|thread
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "test_mpi_check.h"

#define IS(call, want) CHECK_STATUS((want), (call), NULL)

static const char *folder;
static deltafs_namespace *ns;

static void open_ns(const char *name, int flags, enum deltafs_namespace_mode mode)
{
    deltafs_options *o = check_options("memory=40M threads=1");

    ns = NULL;
    IS(deltafs_mpi_namespace_open(MPI_COMM_WORLD, check_path(folder, name), flags, o, mode, &ns), DELTAFS_OK);
    deltafs_options_destroy(o);
    check_require();
}

static void open_shared(const char *name)
{
    check_about("%s", name);
    open_ns(name, O_RDWR | O_CREAT, DELTAFS_NAMESPACE_SHARED);
}

static void close_ns(void)
{
    IS(deltafs_namespace_close(ns), DELTAFS_OK);
    check_require();
}

static void barrier(void)
{
    IS(deltafs_mpi_namespace_barrier(ns), DELTAFS_OK);
}

/* A path with numbers; valid until the fourth call after it. */
static const char *path_of(const char *format, int a, int b)
{
    static char text[4][64];
    static int next;
    char *p = text[next++ % 4];

    snprintf(p, sizeof text[0], format, a, b);
    return p;
}

/* The ranks for which the call succeeded, of which the others must have got `otherwise`. */
static int successes(int status, int otherwise)
{
    int mine = status == DELTAFS_OK, all;

    CHECK(status == DELTAFS_OK || status == otherwise);
    barrier();
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static int stat_of(const char *path)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};

    return deltafs_namespace_stat(ns, path, AT_SYMLINK_NOFOLLOW, &s);
}

static int entries_of(const char *path)
{
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace_list *l;
    int count = 0;

    IS(deltafs_namespace_list_open(ns, path, &l), DELTAFS_OK);
    for (; deltafs_namespace_list_next(l, &entry) == DELTAFS_OK && entry; count++)
        ;
    IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    return count;
}

#define MANY 3000

static void create_many(const char *path, int first, int n)
{
    static char text[MANY][16];
    static const char *names[MANY];

    for (int i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "%d.%d", check_rank, first + i);
        names[i] = text[i];
    }
    IS(deltafs_namespace_create_many(ns, path, names, (size_t)n, 0644), DELTAFS_OK);
}

/* ---- What each sees of the others ---- */

static void test_names(void)
{
    open_shared("names");
    CHECK(successes(deltafs_namespace_mkdir(ns, "/out", 0755), DELTAFS_ERR_EXISTS) == 1);
    for (int i = 0; i < 50; i++)
        IS(deltafs_namespace_create(ns, path_of("/out/%d.%d", check_rank, i), 0644, i % 2 ? O_EXCL : 0), DELTAFS_OK);
    barrier();
    CHECK(entries_of("/out") == 50 * check_ranks);
    for (int i = 0; i < 50; i++)
        IS(stat_of(path_of("/out/%d.%d", (check_rank + 1) % check_ranks, i)), DELTAFS_OK);
    barrier();
    for (int i = 0; i < 50; i += 2)
        IS(deltafs_namespace_unlink(ns, path_of("/out/%d.%d", (check_rank + 1) % check_ranks, i)), DELTAFS_OK);
    barrier();
    CHECK(entries_of("/out") == 25 * check_ranks);
    IS(stat_of(path_of("/out/%d.%d", check_rank, 2)), DELTAFS_ERR_NOT_FOUND);
    IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    IS(deltafs_namespace_refresh(ns), DELTAFS_ERR_MODE);
    CHECK(entries_of("/out") == 25 * check_ranks);
    close_ns();
    open_ns("names", O_RDONLY, DELTAFS_NAMESPACE_SHARED);
    CHECK(entries_of("/out") == 25 * check_ranks);
    IS(deltafs_mpi_namespace_barrier(ns), DELTAFS_ERR_MODE);
    IS(deltafs_namespace_mkdir(ns, "/x", 0755), DELTAFS_ERR_MODE);
    close_ns();
}

/* A name that was a folder for all is one that they have not seen yet. */
static void test_folders(void)
{
    open_shared("folders");
    if (check_rank == 0) {
        IS(deltafs_namespace_mkdir(ns, "/a", 0755), DELTAFS_OK);
        IS(deltafs_namespace_mkdir(ns, "/a/b", 0755), DELTAFS_OK);
        IS(deltafs_namespace_symlink(ns, "a/b", "/way"), DELTAFS_OK);
    }
    barrier();
    IS(deltafs_namespace_create(ns, path_of("/way/%d", check_rank, 0), 0644, O_EXCL), DELTAFS_OK);
    IS(deltafs_namespace_mkdir(ns, path_of("/a/%d", check_rank, 0), 0755), DELTAFS_OK);
    barrier();
    if (check_rank == check_ranks - 1) {
        IS(deltafs_namespace_rename(ns, "/a/b", "/c"), DELTAFS_OK);
        IS(deltafs_namespace_rename(ns, "/c", "/a/b/c"), DELTAFS_ERR_NOT_FOUND);
        IS(deltafs_namespace_rename(ns, "/a", "/a/0/a"), DELTAFS_ERR_INVALID);
    }
    barrier();
    IS(deltafs_namespace_create(ns, path_of("/way/%d", check_rank, 0), 0644, O_EXCL), DELTAFS_ERR_NOT_FOUND);
    IS(deltafs_namespace_create(ns, path_of("/a/b/%d", check_rank, 0), 0644, 0), DELTAFS_ERR_NOT_FOUND);
    IS(stat_of(path_of("/c/%d", check_rank, 0)), DELTAFS_OK);
    CHECK(entries_of("/c") == check_ranks);
    barrier();
    CHECK(successes(deltafs_namespace_rename(ns, "/c", path_of("/d%d", check_rank, 0)), DELTAFS_ERR_NOT_FOUND) == 1);
    CHECK(entries_of("/") == 3);
    CHECK(successes(deltafs_namespace_rmdir(ns, "/a/0"), DELTAFS_ERR_NOT_FOUND) == 1);
    CHECK(successes(deltafs_namespace_unlink(ns, "/way"), DELTAFS_ERR_NOT_FOUND) == 1);
    IS(deltafs_namespace_create(ns, "/a/0/x", 0644, 0), DELTAFS_ERR_NOT_FOUND);
    IS(deltafs_namespace_rmdir(ns, "/a"), check_ranks > 1 ? DELTAFS_ERR_NOT_EMPTY : DELTAFS_OK);
    close_ns();
}

#define EACH 300

/* A folder of which any owner has something is not empty; then all can go on filling it. A list is not disturbed by the
 * removal of what it has returned. What was removed since a commit is nowhere. */
static void test_owners(void)
{
    const struct deltafs_namespace_entry *entry = NULL;
    deltafs_namespace_list *l = NULL;
    int removed = 0;

    open_shared("owners");
    for (int i = check_rank; i < 16; i += check_ranks) {
        IS(deltafs_namespace_mkdir(ns, path_of("/%d", i, 0), 0755), DELTAFS_OK);
        IS(deltafs_namespace_create(ns, path_of("/%d/%d", i, i), 0644, 0), DELTAFS_OK);
        IS(deltafs_namespace_rmdir(ns, path_of("/%d", i, 0)), DELTAFS_ERR_NOT_EMPTY);
    }
    barrier();
    for (int i = 0; i < 16; i++)
        IS(deltafs_namespace_create(ns, path_of("/%d/r%d", i, check_rank), 0644, O_EXCL), DELTAFS_OK);
    barrier();
    create_many("/0", 0, EACH);
    barrier();
    if (check_rank == check_ranks - 1) {
        IS(deltafs_namespace_list_open(ns, "/0", &l), DELTAFS_OK);
        for (; deltafs_namespace_list_next(l, &entry) == DELTAFS_OK && entry; removed++) {
            char path[300];
            snprintf(path, sizeof path, "/0/%s", entry->name);
            IS(deltafs_namespace_unlink(ns, path), DELTAFS_OK);
        }
        IS(deltafs_namespace_list_close(l), DELTAFS_OK);
        CHECK(removed == (EACH + 1) * check_ranks + 1);
        IS(deltafs_namespace_rmdir(ns, "/0"), DELTAFS_OK);
    }
    barrier();
    IS(deltafs_namespace_create(ns, path_of("/0/r%d", check_rank, 0), 0644, 0), DELTAFS_ERR_NOT_FOUND);
    CHECK(entries_of("/") == 15);
    close_ns();
    open_shared("owners");
    CHECK(entries_of("/1") == check_ranks + 1);
    barrier();
    IS(deltafs_namespace_unlink(ns, path_of("/1/r%d", check_rank, 0)), DELTAFS_OK);
    barrier();
    CHECK(entries_of("/1") == 1);
    close_ns();
}

/* ---- Files ---- */

#define BYTES 300000

static void write_file(const char *path, int flags, int seed, size_t size)
{
    deltafs_namespace_file *f;
    uint8_t *bytes = malloc(size);

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)((size_t)seed * 31 + i * i);
    IS(deltafs_namespace_file_open(ns, path, flags, 0600, &f), DELTAFS_OK);
    IS(deltafs_namespace_file_write(f, 0, bytes, size), DELTAFS_OK);
    IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    free(bytes);
}

static void check_file(const char *path, int seed, size_t size)
{
    deltafs_namespace_file *f = NULL;
    uint8_t *bytes = malloc(size + 1);
    size_t got = 0, wrong = 0;

    IS(deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f), DELTAFS_OK);
    IS(deltafs_namespace_file_read(f, 0, bytes, size + 1, &got), DELTAFS_OK);
    CHECK(got == size);
    for (size_t i = 0; i < got; i++)
        wrong += bytes[i] != (uint8_t)((size_t)seed * 31 + i * i);
    CHECK(wrong == 0);
    IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    free(bytes);
}

static void test_files(void)
{
    struct deltafs_namespace_attributes a = {
        .struct_size = sizeof a, .set = DELTAFS_NAMESPACE_MODE | DELTAFS_NAMESPACE_MTIME, .mode = 0640, .mtime = 7};
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    int next = (check_rank + 1) % check_ranks, before = (check_rank + check_ranks - 1) % check_ranks;
    deltafs_namespace_file *f = NULL;

    open_shared("files");
    write_file(path_of("/f%d", check_rank, 0), O_RDWR | O_CREAT | O_EXCL, check_rank, BYTES);
    barrier();
    check_file(path_of("/f%d", next, 0), next, BYTES);
    barrier();
    write_file(path_of("/f%d", next, 0), O_RDWR | O_TRUNC, next + 100, 1000);
    IS(deltafs_namespace_set_attributes(ns, path_of("/f%d", next, 0), 0, &a), DELTAFS_OK);
    barrier();
    check_file(path_of("/f%d", check_rank, 0), check_rank + 100, 1000);
    IS(deltafs_namespace_stat(ns, path_of("/f%d", check_rank, 0), 0, &s), DELTAFS_OK);
    CHECK((s.mode & 07777) == 0640 && s.mtime == 7 && s.size == 1000);
    barrier();
    /* A file that is open here is renamed, or removed, by another rank: what is written stays with it. */
    IS(deltafs_namespace_file_open(ns, path_of("/f%d", check_rank, 0), O_RDWR, 0, &f), DELTAFS_OK);
    IS(deltafs_namespace_file_write(f, 0, "new", 3), DELTAFS_OK);
    barrier();
    if (before % 2 == 0)
        IS(deltafs_namespace_rename(ns, path_of("/f%d", next, 0), path_of("/g%d", next, 0)), DELTAFS_OK);
    else
        IS(deltafs_namespace_unlink(ns, path_of("/f%d", next, 0)), DELTAFS_OK);
    barrier();
    IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    barrier();
    for (int k = 0; k < check_ranks; k++) {
        int is_moved = (k + check_ranks - 2) % check_ranks % 2 == 0;
        IS(stat_of(path_of("/f%d", k, 0)), DELTAFS_ERR_NOT_FOUND);
        IS(stat_of(path_of("/g%d", k, 0)), is_moved ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND);
        if (!is_moved)
            continue;
        char bytes[4] = "";
        size_t got;
        IS(deltafs_namespace_file_open(ns, path_of("/g%d", k, 0), O_RDONLY, 0, &f), DELTAFS_OK);
        IS(deltafs_namespace_file_read(f, 0, bytes, 3, &got), DELTAFS_OK);
        CHECK(strcmp(bytes, "new") == 0);
        IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    }
    write_file("/last", O_RDWR | O_CREAT, check_rank, BYTES);
    close_ns();
    open_shared("files");
    IS(deltafs_namespace_stat(ns, "/last", 0, &s), DELTAFS_OK);
    CHECK(s.size == BYTES);
    CHECK(entries_of("/") == (check_ranks + 1) / 2 + 1);
    close_ns();
}

/* The ranks rewrite parts of one file of several chunks, one after the other: each finds what those before have
 * written, and a snapshot keeps it while the file is overwritten, cut and collected. */
#define PARTS_SIZE (4 * 262144 + 1000)

static void check_parts(deltafs_namespace *of, int turns, size_t size)
{
    deltafs_namespace_file *f = NULL;
    uint8_t *bytes = malloc(PARTS_SIZE);
    size_t got = 0, wrong = 0;

    IS(deltafs_namespace_file_open(of, "/parts", O_RDONLY, 0, &f), DELTAFS_OK);
    IS(deltafs_namespace_file_read(f, 0, bytes, PARTS_SIZE, &got), DELTAFS_OK);
    CHECK(got == size);
    for (size_t i = 0; i < got; i++) {
        int turn = (int)((i + 100) / 262144); /* the last that wrote there */
        int is_part = turn > 0 && turn <= turns && (i + 100) % 262144 < 200;
        wrong += bytes[i] != (is_part ? turn : 77);
    }
    CHECK(wrong == 0);
    IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    free(bytes);
}

static void write_parts(int byte, uint64_t at, size_t size)
{
    deltafs_namespace_file *f = NULL;
    uint8_t *bytes = malloc(size);

    memset(bytes, byte, size);
    IS(deltafs_namespace_file_open(ns, "/parts", O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
    IS(deltafs_namespace_file_write(f, at, bytes, size), DELTAFS_OK);
    IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    free(bytes);
}

static void check_snapshot_of_parts(const char *path, const char *name)
{
    deltafs_namespace *one = NULL;

    IS(deltafs_namespace_open(path, O_RDWR, NULL, &ns), DELTAFS_OK);
    write_parts(77, 0, PARTS_SIZE);
    IS(deltafs_namespace_truncate(ns, "/parts", 2 * 262144 + 5), DELTAFS_OK);
    IS(deltafs_namespace_close(ns), DELTAFS_OK);
    IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
    IS(deltafs_namespace_open(name, O_RDONLY, NULL, &one), DELTAFS_OK);
    check_parts(one, 4, PARTS_SIZE);
    IS(deltafs_namespace_close(one), DELTAFS_OK);
    IS(deltafs_namespace_open(path, O_RDONLY, NULL, &one), DELTAFS_OK);
    check_parts(one, 0, 2 * 262144 + 5);
    IS(deltafs_namespace_close(one), DELTAFS_OK);
}

static void test_parts(void)
{
    char name[4200];

    open_shared("parts");
    if (check_rank == 0)
        write_parts(77, 0, PARTS_SIZE);
    for (int turn = 1; turn <= 4; turn++) {
        barrier();
        check_parts(ns, turn - 1, PARTS_SIZE);
        barrier();
        if (turn % check_ranks == check_rank)
            write_parts(turn, (uint64_t)turn * 262144 - 100, 200);
    }
    barrier();
    check_parts(ns, 4, PARTS_SIZE);
    close_ns();
    snprintf(name, sizeof name, "%s@parts", check_path(folder, "registry"));
    if (check_rank == 0) {
        IS(deltafs_snapshot_publish(check_path(folder, "parts"), name), DELTAFS_OK);
        check_snapshot_of_parts(check_path(folder, "parts"), name);
    }
    check_require();
}

/* ---- What they do at once ---- */

#define ROUNDS 40

/* A folder that some remove and others fill: what was put into it is there, because it cannot be removed then. */
static void test_remove_and_fill(void)
{
    open_shared("fill");
    for (int i = 0; i < ROUNDS; i++) {
        const char *path = path_of("/d/%d", check_rank, 0);
        int status;
        if (check_rank % 2 == 0) {
            status = deltafs_namespace_mkdir(ns, "/d", 0755);
            CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_EXISTS);
            status = deltafs_namespace_rmdir(ns, "/d");
            CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND || status == DELTAFS_ERR_NOT_EMPTY);
        } else {
            status = deltafs_namespace_create(ns, path, 0644, i % 2 ? O_EXCL : 0);
            CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND);
            if (status != DELTAFS_OK)
                continue;
            IS(stat_of(path), DELTAFS_OK);
            IS(deltafs_namespace_unlink(ns, path), DELTAFS_OK);
        }
    }
    barrier();
    close_ns();
}

/* Files that all ranks move between folders, each to a name of its own: none is lost, and none becomes two. */
static void test_moves(void)
{
    int files = 8, here = 0, all;

    open_shared("moves");
    if (check_rank == 0)
        for (int i = 0; i < files; i++) {
            IS(deltafs_namespace_mkdir(ns, path_of("/%d", i, 0), 0755), DELTAFS_OK);
            IS(deltafs_namespace_create(ns, path_of("/%d/%d", i, i), 0644, O_EXCL), DELTAFS_OK);
        }
    barrier();
    for (int i = 0; i < ROUNDS; i++) {
        int from = (i * 7 + check_rank * 3) % files, to = (i * 5 + check_rank + 1) % files,
            file = (i + check_rank) % files;
        int status = deltafs_namespace_rename(ns, path_of("/%d/%d", from, file), path_of("/%d/%d", to, file));
        CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND);
        here += status == DELTAFS_OK && from != to;
    }
    barrier();
    MPI_Allreduce(&here, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all > 0);
    all = 0;
    for (int i = 0; i < files; i++)
        all += entries_of(path_of("/%d", i, 0));
    CHECK(all == files);
    close_ns();
    open_ns("moves", O_RDONLY, DELTAFS_NAMESPACE_PRIVATE);
    for (int i = 0; i < files; i++)
        all -= entries_of(path_of("/%d", i, 0));
    CHECK(all == 0);
    close_ns();
}

/* ---- Many ---- */

/* Each rank's table has its part of what is in large folders. */
static void check_tables(const char *name)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    char path[4300];
    int tables = 0;
    DIR *d = opendir(check_path(folder, name));

    for (const struct dirent *entry; (entry = readdir(d)) != NULL;) {
        deltafs_dir *table = NULL;
        if (entry->d_name[0] != 't' || strlen(entry->d_name) != 17)
            continue;
        snprintf(path, sizeof path, "%s/%s", check_path(folder, name), entry->d_name);
        IS(deltafs_open(path, NULL, &table), DELTAFS_OK);
        IS(deltafs_stat(table, &stat), DELTAFS_OK);
        CHECK(stat.records > MANY && stat.records < 3 * MANY); /* of 2 * MANY names for each rank */
        IS(deltafs_close(table), DELTAFS_OK);
        tables++;
    }
    closedir(d);
    CHECK(tables == check_ranks);
}

#define COMMITS 20

/* A rank's file gets a name, and perhaps another rank, in one commit; others are created and removed in others. */
static void change_and_commit(int i)
{
    IS(deltafs_namespace_create(ns, path_of("/%d.%d", check_rank, i), 0644, O_EXCL), DELTAFS_OK);
    if (i == 10)
        IS(deltafs_namespace_rename(ns, path_of("/%d.5", check_rank, 0), path_of("/moved.%d", check_rank, 0)),
           DELTAFS_OK);
    if (i > 12)
        IS(deltafs_namespace_unlink(ns, path_of("/%d.%d", check_rank, i - 7)), DELTAFS_OK);
    IS(deltafs_namespace_commit(ns), DELTAFS_OK);
}

static void check_commits(const char *name)
{
    open_ns(name, O_RDONLY, DELTAFS_NAMESPACE_PRIVATE);
    CHECK(entries_of("/") == (COMMITS - 7) * check_ranks);
    for (int i = 0; i < check_ranks; i++) {
        IS(stat_of(path_of("/moved.%d", i, 0)), DELTAFS_OK);
        IS(stat_of(path_of("/%d.5", i, 0)), DELTAFS_ERR_NOT_FOUND);
        IS(stat_of(path_of("/%d.8", i, 0)), DELTAFS_ERR_NOT_FOUND);
    }
    close_ns();
}

/* Commits of a few names go to journals, and a compaction finds all of them. */
static void test_commits(void)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    int journals = 0;

    open_shared("commits");
    for (int i = 0; i < COMMITS; i++)
        change_and_commit(i);
    close_ns();
    check_commits("commits");
    DIR *d = opendir(check_path(folder, "commits"));
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;) {
        char path[4300];
        deltafs_dir *table = NULL;
        journals += strstr(entry->d_name, ".journal") != NULL;
        snprintf(path, sizeof path, "%s/%s", check_path(folder, "commits"), entry->d_name);
        if (entry->d_name[0] != 't' || strlen(entry->d_name) != 17 || deltafs_open(path, NULL, &table) != DELTAFS_OK)
            continue;
        IS(deltafs_stat(table, &stat), DELTAFS_OK);
        CHECK(stat.epochs <= 3); /* before the rename, and of it */
        IS(deltafs_close(table), DELTAFS_OK);
    }
    closedir(d);
    CHECK(journals == check_ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0)
        IS(deltafs_namespace_compact(check_path(folder, "commits"), NULL), DELTAFS_OK);
    MPI_Barrier(MPI_COMM_WORLD);
    check_commits("commits");
}

static void test_many(enum deltafs_namespace_mode mode, const char *name)
{
    const char *const bad[] = {"x", "a/b"}, *const folders[] = {"y", "sub"};

    check_about("%s", name);
    open_ns(name, O_RDWR | O_CREAT, mode);
    for (int i = 0; i < 2; i++) {
        int status = deltafs_namespace_mkdir(ns, path_of("/%d", i, 0), 0755);
        CHECK(status == DELTAFS_OK || (status == DELTAFS_ERR_EXISTS && mode == DELTAFS_NAMESPACE_SHARED));
        create_many(path_of("/%d", i, 0), 0, MANY);
    }
    IS(deltafs_namespace_create_many(ns, "/0", bad, 2, 0644), DELTAFS_ERR_INVALID);
    IS(deltafs_namespace_create_many(ns, "/9", bad, 1, 0644), DELTAFS_ERR_NOT_FOUND);
    IS(deltafs_namespace_create_many(ns, "/0", bad, 0, 0644), DELTAFS_OK);
    int status = deltafs_namespace_mkdir(ns, "/1/sub", 0755);
    CHECK(status == DELTAFS_OK || (status == DELTAFS_ERR_EXISTS && mode == DELTAFS_NAMESPACE_SHARED));
    IS(deltafs_namespace_create_many(ns, "/1", folders, 2, 0644), DELTAFS_ERR_FOLDER);
    close_ns();
    open_ns(name, O_RDONLY, mode);
    CHECK(entries_of("/0") == MANY * check_ranks);
    int others = entries_of("/1") - MANY * check_ranks; /* "sub", and perhaps "y" */
    CHECK(others == 1 || others == 2);
    close_ns();
    check_tables(name);
}

/* More names than fit into the memory of their owner, with files in between: it is full again and again. */
static void test_full(void)
{
    open_shared("full");
    int status = deltafs_namespace_mkdir(ns, "/d", 0755), steps = 36 / check_ranks;
    CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_EXISTS);
    for (int i = 0; i < steps; i++) {
        create_many("/d", i * MANY, MANY);
        write_file(path_of("/%d.%d", check_rank, i), O_RDWR | O_CREAT, i, 100);
    }
    barrier();
    CHECK(entries_of("/d") == steps * MANY * check_ranks);
    for (int i = 0; i < steps; i++)
        check_file(path_of("/%d.%d", (check_rank + 1) % check_ranks, i), i, 100);
    close_ns();
    open_ns("full", O_RDONLY, DELTAFS_NAMESPACE_PRIVATE);
    CHECK(entries_of("/d") == steps * MANY * check_ranks);
    close_ns();
}

/* ---- Each for itself ---- */

static void test_private(void)
{
    check_about("private");
    open_ns("private", O_RDWR | O_CREAT | O_EXCL, DELTAFS_NAMESPACE_PRIVATE);
    IS(deltafs_namespace_mkdir(ns, "/out", 0755), DELTAFS_OK);
    IS(deltafs_namespace_create(ns, path_of("/out/%d", check_rank, 0), 0644, O_EXCL), DELTAFS_OK);
    CHECK(entries_of("/out") == 1);
    IS(deltafs_mpi_namespace_barrier(ns), DELTAFS_ERR_MODE);
    if (check_rank == 0) /* not collective */
        IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    close_ns();
    open_shared("private");
    CHECK(entries_of("/out") == check_ranks);
    barrier();
    IS(deltafs_namespace_create(ns, path_of("/out/n%d", check_rank, 0), 0644, O_EXCL), DELTAFS_OK);
    IS(deltafs_namespace_create(ns, path_of("/out/%d", check_rank, 0), 0644, O_EXCL), DELTAFS_ERR_EXISTS);
    barrier();
    CHECK(entries_of("/out") == 2 * check_ranks);
    barrier();
    CHECK(successes(deltafs_namespace_rename(ns, "/out", "/in"), DELTAFS_ERR_NOT_FOUND) == 1);
    CHECK(entries_of("/in") == 2 * check_ranks);
    barrier();
    for (int i = 0; i < check_ranks; i++)
        CHECK(successes(deltafs_namespace_unlink(ns, path_of("/in/%d", i, 0)), DELTAFS_ERR_NOT_FOUND) == 1);
    close_ns();
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes == 0 ? limit.rlim_max : bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* One rank cannot write: no rank commits, or changes anything any more. */
static void test_failed_commit(void)
{
    int is_limited = check_rank == check_ranks - 1;

    open_shared("failed");
    IS(deltafs_namespace_create(ns, path_of("/before%d", check_rank, 0), 0644, O_EXCL), DELTAFS_OK);
    IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    for (int i = 0; i < 50; i++)
        write_file(path_of("/%d.%d", check_rank, i), O_RDWR | O_CREAT | O_EXCL, i, 1000);
    barrier();
    if (is_limited)
        limit_files(100);
    int status = deltafs_namespace_commit(ns);
    CHECK(status == DELTAFS_ERR_NO_SPACE || status == DELTAFS_ERR_IO);
    IS(deltafs_namespace_mkdir(ns, path_of("/after%d", check_rank, 0), 0755), status);
    IS(deltafs_namespace_close(ns), status);
    if (is_limited)
        limit_files(0);
    open_shared("failed");
    for (int i = 0; i < check_ranks; i++)
        IS(stat_of(path_of("/before%d", i, 0)), DELTAFS_OK);
    IS(stat_of(path_of("/after%d", check_rank, 0)), DELTAFS_ERR_NOT_FOUND);
    CHECK(entries_of("/") == check_ranks);
    barrier();
    IS(deltafs_namespace_mkdir(ns, path_of("/after%d", check_rank, 0), 0755), DELTAFS_OK);
    close_ns();
}

/* What one rank could not write when it closed a file is an error of all ranks' commit. */
static void test_failed_file(void)
{
    int is_limited = check_rank == check_ranks - 1;
    deltafs_namespace_file *f;

    open_shared("failed.file");
    IS(deltafs_namespace_file_open(ns, path_of("/%d", check_rank, 0), O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
    IS(deltafs_namespace_file_write(f, 0, "text", 4), DELTAFS_OK);
    if (is_limited)
        limit_files(10);
    int status = deltafs_namespace_file_close(f);
    if (is_limited)
        limit_files(0);
    CHECK((status != DELTAFS_OK) == is_limited);
    status = deltafs_namespace_commit(ns);
    CHECK(status == DELTAFS_ERR_NO_SPACE || status == DELTAFS_ERR_IO);
    IS(deltafs_namespace_close(ns), status);
    check_require();
}

#define MOVED 16

/* One rank cannot write what was moved to it, when memory is full: what was moved is where it was, or there. */
static void test_failed_moves(void)
{
    int is_limited = check_rank == check_ranks - 1, status = DELTAFS_OK;
    static char text[MANY][16];
    static const char *names[MANY];

    open_shared("failed.moves");
    for (int i = 0; i < MOVED && check_rank == 0; i++) {
        IS(deltafs_namespace_mkdir(ns, path_of("/%d", i, 0), 0755), DELTAFS_OK);
        IS(deltafs_namespace_create(ns, path_of("/%d/f", i, 0), 0644, O_EXCL), DELTAFS_OK);
    }
    barrier();
    IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    if (is_limited)
        limit_files(100);
    for (int i = 0; i < MOVED && check_rank == 0; i++)
        IS(deltafs_namespace_rename(ns, path_of("/%d/f", i, 0), path_of("/%d/g", (i + 1) % MOVED, 0)), DELTAFS_OK);
    for (int i = 0; i < 60 && check_rank == 0 && status == DELTAFS_OK; i++) {
        for (int k = 0; k < MANY; k++) {
            snprintf(text[k], sizeof text[k], "%d", i * MANY + k);
            names[k] = text[k];
        }
        status = deltafs_namespace_create_many(ns, "/0", names, MANY, 0644);
    }
    CHECK((status != DELTAFS_OK) == (check_rank == 0));
    barrier();
    CHECK(deltafs_namespace_close(ns) != DELTAFS_OK);
    if (is_limited)
        limit_files(0);
    open_shared("failed.moves");
    for (int i = 0; i < MOVED; i++)
        CHECK(stat_of(path_of("/%d/f", i, 0)) == DELTAFS_OK ||
              stat_of(path_of("/%d/g", (i + 1) % MOVED, 0)) == DELTAFS_OK);
    close_ns();
}

/* Ranks that do not make the same collective call learn it, and nothing else happens. */
static void test_other_calls(void)
{
    open_shared("other");
    IS(deltafs_namespace_mkdir(ns, path_of("/%d", check_rank, 0), 0755), DELTAFS_OK);
    IS(check_rank == 0 ? deltafs_namespace_commit(ns) : deltafs_mpi_namespace_barrier(ns), DELTAFS_ERR_COLLECTIVE);
    if (check_rank > 0) {
        IS(deltafs_namespace_commit(ns), DELTAFS_ERR_COLLECTIVE);
        for (int i = 0; i < check_ranks; i++)
            IS(stat_of(path_of("/%d", i, 0)), DELTAFS_OK);
    }
    close_ns(); /* where rank 0 has waited */
    open_ns("other", O_RDONLY, DELTAFS_NAMESPACE_PRIVATE);
    CHECK(entries_of("/") == check_ranks);
    close_ns();
}

static void test_errors(void)
{
    deltafs_options *o = check_options("memory=33M");

    check_about("errors");
    ns = NULL;
    IS(deltafs_mpi_namespace_open(MPI_COMM_WORLD, check_path(folder, "none"), O_RDWR, NULL, DELTAFS_NAMESPACE_SHARED,
                                  &ns),
       DELTAFS_ERR_NOT_FOUND);
    IS(deltafs_mpi_namespace_open(MPI_COMM_WORLD, check_path(folder, "none"), O_RDWR, NULL, 0, &ns),
       DELTAFS_ERR_INVALID);
    IS(deltafs_mpi_namespace_open(MPI_COMM_WORLD, check_rank == 0 ? NULL : "x", O_RDWR | O_CREAT, NULL,
                                  DELTAFS_NAMESPACE_SHARED, &ns),
       DELTAFS_ERR_INVALID);
    IS(deltafs_mpi_namespace_open(MPI_COMM_WORLD, check_path(folder, "none"), O_RDWR | O_CREAT, o,
                                  DELTAFS_NAMESPACE_SHARED, &ns),
       DELTAFS_ERR_MEMORY);
    IS(deltafs_mpi_namespace_open(MPI_COMM_WORLD, check_path(folder, "names"), O_RDWR | O_CREAT | O_EXCL, NULL,
                                  DELTAFS_NAMESPACE_SHARED, &ns),
       DELTAFS_ERR_EXISTS);
    CHECK(!ns);
    deltafs_options_destroy(o);
    check_require();
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, argc > 2 && strcmp(argv[2], "thread") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    folder = argv[1];
    signal(SIGXFSZ, SIG_IGN);
    test_names();
    test_folders();
    test_owners();
    test_files();
    test_parts();
    test_remove_and_fill();
    test_moves();
    test_many(DELTAFS_NAMESPACE_SHARED, "many");
    test_many(DELTAFS_NAMESPACE_PRIVATE, "many.private");
    if (check_ranks > 3) { /* takes longer */
        test_full();
        test_failed_moves();
    }
    if (check_ranks > 1)
        test_other_calls();
    test_commits();
    test_private();
    test_failed_commit();
    test_failed_file();
    test_errors();
    return check_end();
}
