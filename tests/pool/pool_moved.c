/* A folder is renamed by processes that are killed meanwhile, until one has done it: every file is there all the time.
 *
 *     pool_moved POINT FILES */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <deltafs/deltafs_pool.h>

#define OLD        "/old"
#define NEW        "/new"
#define BELOW      "/a/b"
#define FIRST_LIFE 200000 /* nanoseconds of a process; later ones live longer */

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, deltafs_errmsg(NULL));
    return EXIT_FAILURE;
}

/* The files are in the folder and in the lowest one, by turns. */
static void name(const char *folder, int i, char out[64])
{
    snprintf(out, 64, "%s%s/%d", folder, i % 2 ? BELOW : "", i);
}

static int create(deltafs_pool *pool, int files)
{
    deltafs_pool_file *f = NULL;
    char path[64];

    if (deltafs_pool_mkdir(pool, OLD, 0750) != DELTAFS_OK || deltafs_pool_mkdir(pool, OLD "/a", 0700) != DELTAFS_OK ||
        deltafs_pool_mkdir(pool, OLD BELOW, 0711) != DELTAFS_OK)
        return fail("mkdir");
    for (int i = 0; i < files; i++) {
        name(OLD, i, path);
        if (deltafs_pool_file_open(pool, path, O_RDWR | O_CREAT | O_EXCL, 0600, &f) != DELTAFS_OK ||
            deltafs_pool_file_write(f, 0, &i, sizeof i) != DELTAFS_OK)
            return fail(path);
        deltafs_pool_file_close(f);
    }
    return EXIT_SUCCESS;
}

static int has_file(deltafs_pool *pool, const char *folder, int i)
{
    deltafs_pool_file *f = NULL;
    char path[64];
    size_t got;
    int is = -1;

    name(folder, i, path);
    if (deltafs_pool_file_open(pool, path, O_RDONLY, 0, &f) == DELTAFS_OK)
        deltafs_pool_file_read(f, 0, &is, sizeof is, &got);
    deltafs_pool_file_close(f);
    return is == i;
}

static int check(deltafs_pool *pool, int files, int is_done)
{
    for (int i = 0; i < files; i++)
        if (!has_file(pool, NEW, i) && (is_done || !has_file(pool, OLD, i))) {
            fprintf(stderr, "file %d is lost\n", i);
            return EXIT_FAILURE;
        }
    return EXIT_SUCCESS;
}

/* The last one may have done it, and was killed before it could say so. */
static int rename_folder(const char *point)
{
    deltafs_pool *pool = NULL;

    if (deltafs_pool_open(point, &pool) != DELTAFS_OK)
        return fail("open");
    int status = deltafs_pool_rename(pool, OLD, NEW);
    return status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND ? EXIT_SUCCESS : fail("rename");
}

/* Returns whether the process has ended by itself; its status is *status. */
static int rename_for(const char *point, long life, int *status)
{
    const struct timespec nap = {.tv_sec = life / 1000000000, .tv_nsec = life % 1000000000};
    pid_t pid = fork();

    if (pid == 0)
        exit(rename_folder(point));
    nanosleep(&nap, NULL);
    kill(pid, SIGKILL);
    return waitpid(pid, status, 0) == pid && WIFEXITED(*status);
}

int main(int argc, char **argv)
{
    int files = argc > 2 ? atoi(argv[2]) : 0, status = 0, is_done = 0;
    struct deltafs_pool_stat s = {.struct_size = sizeof s};
    deltafs_pool *pool = NULL;

    if (deltafs_pool_open(argv[1], &pool) != DELTAFS_OK || create(pool, files) != EXIT_SUCCESS)
        return EXIT_FAILURE;
    for (long life = FIRST_LIFE; !is_done && status != EXIT_FAILURE; life += life / 2) {
        is_done = rename_for(argv[1], life, &status);
        if (check(pool, files, is_done) != EXIT_SUCCESS)
            return EXIT_FAILURE;
    }
    if (status != EXIT_SUCCESS)
        return EXIT_FAILURE;
    if (deltafs_pool_stat(pool, OLD, 0, &s) != DELTAFS_ERR_NOT_FOUND)
        return fail("the old folder is there");
    if (deltafs_pool_stat(pool, NEW, 0, &s) != DELTAFS_OK || (s.mode & 07777) != 0750 || s.size != 0)
        return fail("the new folder");
    for (int i = 0; i < files; i++) {
        char path[64];
        name(NEW, i, path);
        if (deltafs_pool_unlink(pool, path) != DELTAFS_OK)
            return fail("unlink");
    }
    if (deltafs_pool_rmdir(pool, NEW BELOW) != DELTAFS_OK || deltafs_pool_rmdir(pool, NEW "/a") != DELTAFS_OK ||
        deltafs_pool_rmdir(pool, NEW) != DELTAFS_OK)
        return fail("rmdir");
    return deltafs_pool_close(pool) == DELTAFS_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
