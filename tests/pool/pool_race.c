/* Processes that create, write and remove the same folders and files at once: nothing is lost, and nothing is left.
 *
 *     pool_race POINT PROCESSES ROUNDS */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <deltafs/deltafs_pool.h>

#define FOLDER "/shared"

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, deltafs_errmsg(NULL));
    return EXIT_FAILURE;
}

/* A file that was created can be read, and removed once, whatever others do. */
static int one_round(deltafs_pool *pool, int me, int round)
{
    char path[64], moved[64], text[64], back[64];
    deltafs_pool_file *f = NULL;
    size_t got = 0;

    int status = deltafs_pool_mkdir(pool, FOLDER, 0700);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_EXISTS)
        return fail("mkdir");
    snprintf(path, sizeof path, FOLDER "/%d.%d", me, round);
    snprintf(moved, sizeof moved, FOLDER "/%d.%d.moved", me, round);
    snprintf(text, sizeof text, "bytes of %d.%d", me, round);
    status = deltafs_pool_file_open(pool, path, O_RDWR | O_CREAT | O_EXCL, 0600, &f);
    if (status == DELTAFS_ERR_NOT_FOUND) /* another process has removed the folder */
        return EXIT_SUCCESS;
    if (status != DELTAFS_OK)
        return fail("create");
    if (deltafs_pool_file_write(f, 0, text, strlen(text)) != DELTAFS_OK)
        return fail("write");
    if (deltafs_pool_rename(pool, path, moved) != DELTAFS_OK)
        return fail("rename");
    if (deltafs_pool_file_read(f, 0, back, sizeof back, &got) != DELTAFS_OK)
        return fail("read");
    if (got != strlen(text) || memcmp(back, text, got) != 0) {
        fprintf(stderr, "%s: has other bytes\n", path);
        return EXIT_FAILURE;
    }
    deltafs_pool_file_close(f);
    if (deltafs_pool_unlink(pool, moved) != DELTAFS_OK)
        return fail("unlink");
    status = deltafs_pool_rmdir(pool, FOLDER);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND && status != DELTAFS_ERR_NOT_EMPTY)
        return fail("rmdir");
    return EXIT_SUCCESS;
}

/* A file is written while others remove it. */
static int write_and_remove(deltafs_pool *pool)
{
    static char bytes[1 << 20];
    deltafs_pool_file *f = NULL;
    int status = deltafs_pool_file_open(pool, "/both", O_RDWR | O_CREAT, 0600, &f);

    if (status == DELTAFS_OK)
        status = deltafs_pool_file_write(f, 0, bytes, sizeof bytes);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND)
        return fail("write a file that is removed");
    deltafs_pool_file_close(f);
    status = deltafs_pool_unlink(pool, "/both");
    return status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND ? EXIT_SUCCESS : fail("remove a file again");
}

static int process(const char *point, int me, int rounds)
{
    deltafs_pool *pool = NULL;
    int code = EXIT_SUCCESS;

    if (deltafs_pool_open(point, &pool) != DELTAFS_OK)
        return fail("open");
    for (int i = 0; i < rounds && code == EXIT_SUCCESS; i++)
        code = one_round(pool, me, i) == EXIT_SUCCESS ? write_and_remove(pool) : EXIT_FAILURE;
    deltafs_pool_close(pool);
    return code;
}

static int check(const char *point)
{
    struct deltafs_pool_status s = {.struct_size = sizeof s};
    unsigned long long files = 0, folders = 0, bytes = 0;
    deltafs_pool *pool = NULL;

    if (deltafs_pool_open(point, &pool) != DELTAFS_OK)
        return fail("open");
    int status = deltafs_pool_rmdir(pool, FOLDER);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND)
        return fail("rmdir at the end");
    for (uint32_t i = 0; i < deltafs_pool_servers(pool); i++) {
        if (deltafs_pool_status(pool, i, &s) != DELTAFS_OK)
            return fail("status");
        files += s.files;
        folders += s.folders;
        bytes += s.bytes;
    }
    deltafs_pool_close(pool);
    if (files == 0 && folders == 1 && bytes == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "at the end: %llu files, %llu folders, %llu bytes\n", files, folders, bytes);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    int processes = argc > 3 ? atoi(argv[2]) : 0, failed = 0, status;

    for (int i = 0; i < processes; i++) {
        pid_t pid = fork();
        if (pid == 0)
            exit(process(argv[1], i, atoi(argv[3])));
        failed |= pid == -1;
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed || processes == 0 ? EXIT_FAILURE : check(argv[1]);
}
