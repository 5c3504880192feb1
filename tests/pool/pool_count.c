/* How many requests the calls of a client are, as the servers count them: the most of each, over some files.
 *
 *     pool_count POINT
 *
 * Prints a JSON object with the names of 'deltafs-mpi pool report'. Nobody else may use the pool. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/pool/pool_help.h"

#define FILES 20

static deltafs_pool *pool;
static char bytes[1 << 20];

static void create(deltafs_pool_file **f, const char *path)
{
    must(deltafs_pool_file_open(pool, path, O_RDWR | O_CREAT, 0600, f));
}

static void file_write(deltafs_pool_file **f, const char *path)
{
    (void)path;
    must(deltafs_pool_file_write(*f, 0, bytes, sizeof bytes));
}

static void file_read(deltafs_pool_file **f, const char *path)
{
    size_t got;

    (void)path;
    must(deltafs_pool_file_read(*f, 0, bytes, sizeof bytes, &got));
}

static void look(deltafs_pool_file **f, const char *path)
{
    struct deltafs_pool_stat st = {.struct_size = sizeof st};

    (void)f;
    must(deltafs_pool_stat(pool, path, 0, &st));
}

static void file_remove(deltafs_pool_file **f, const char *path)
{
    deltafs_pool_file_close(*f);
    must(deltafs_pool_unlink(pool, path));
}

static void list(deltafs_pool_file **f, const char *path)
{
    const struct deltafs_pool_entry *entry = NULL;
    deltafs_pool_list *l = NULL;
    int n = 0;

    (void)f;
    (void)path;
    must(deltafs_pool_list_open(pool, "/d", &l));
    do
        must(deltafs_pool_list_next(l, &entry));
    while (entry && ++n);
    deltafs_pool_list_close(l);
    if (n != FILES)
        exit(1);
}

/* Do it for all files, and print the most requests. */
static void count(const char *name, void (*run)(deltafs_pool_file **f, const char *path), deltafs_pool_file **f,
                  const char *prefix)
{
    uint64_t most = 0;

    for (int i = 0; i < FILES; i++) {
        char path[32];
        snprintf(path, sizeof path, "/d/%s.%d", prefix, i);
        uint64_t before = used_of(pool).requests;
        run(&f[i], path);
        uint64_t n = used_of(pool).requests - before;
        most = n > most ? n : most;
    }
    printf("\"%s\": %" PRIu64 "%s", name, most, run == list ? "}\n" : ", ");
}

int main(int argc, char **argv)
{
    deltafs_pool_file *f[FILES] = {NULL}, *g[FILES] = {NULL};

    if (argc != 2)
        return 2;
    must(deltafs_pool_open(argv[1], &pool));
    must(deltafs_pool_mkdir(pool, "/d", 0700));
    printf("{");
    count("first_create", create, f, "f");
    count("create", create, g, "g");
    count("stat", look, f, "f");
    count("write", file_write, f, "f");
    count("read", file_read, f, "f");
    count("remove", file_remove, f, "f");
    for (int i = 0; i < FILES; i++) {
        char from[32], to[32];
        snprintf(from, sizeof from, "/d/g.%d", i);
        snprintf(to, sizeof to, "/d/h.%d", i);
        deltafs_pool_file_close(g[i]);
        must(deltafs_pool_rename(pool, from, to));
    }
    count("renamed_stat", look, f, "h");
    count("list", list, f, "h");
    return deltafs_pool_close(pool) == DELTAFS_OK ? 0 : 1;
}
