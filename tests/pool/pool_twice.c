/* Two processes rename one file at once, to two names, or to the same one: one of them does it, and the other finds
 * that the file is not there any more. What had the other new name keeps it.
 *
 *     pool_twice POINT ROUNDS */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <deltafs/deltafs_pool.h>

#define OLD "/twice"
static const char *const names[2] = {"/twice.0", "/twice.1"};

/* What a round is. */
enum { TO_TWO, TO_ONE, TO_OLD_TWO, KINDS };

static deltafs_pool *pool;

static int fail(int round, const char *what)
{
    fprintf(stderr, "round %d: %s: %s\n", round, what, deltafs_errmsg(NULL));
    return EXIT_FAILURE;
}

/* Rename when a byte comes, and answer with the status. */
static int child(const char *point, int me, int from, int to)
{
    char round = 0;

    if (deltafs_pool_open(point, &pool) != DELTAFS_OK)
        return fail(-1, "open");
    while (read(from, &round, 1) == 1) {
        int status = deltafs_pool_rename(pool, OLD, round % KINDS == TO_ONE ? names[0] : names[me]);
        if (write(to, &status, sizeof status) != sizeof status)
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static int put(const char *path)
{
    deltafs_pool_file *f = NULL;
    int status = deltafs_pool_file_open(pool, path, O_WRONLY | O_CREAT | O_EXCL, 0600, &f);

    if (status == DELTAFS_OK)
        status = deltafs_pool_file_write(f, 0, path, strlen(path));
    deltafs_pool_file_close(f);
    return status;
}

/* Whether a file is there, and has these bytes. */
static int has(const char *path, const char *bytes)
{
    deltafs_pool_file *f = NULL;
    char back[64];
    size_t got = 0;

    if (deltafs_pool_file_open(pool, path, O_RDONLY, 0, &f) != DELTAFS_OK ||
        deltafs_pool_file_read(f, 0, back, sizeof back, &got) != DELTAFS_OK)
        got = 0;
    deltafs_pool_file_close(f);
    return got > 0 && got == strlen(bytes) && memcmp(back, bytes, got) == 0;
}

static int round_check(int round, int kind, const int status[2])
{
    int winner = status[1] == DELTAFS_OK, to = kind == TO_ONE ? 0 : winner;
    struct deltafs_pool_stat s = {.struct_size = sizeof s};

    if (status[winner] != DELTAFS_OK || status[1 - winner] != DELTAFS_ERR_NOT_FOUND) {
        fprintf(stderr, "round %d: statuses %d and %d\n", round, status[0], status[1]);
        return EXIT_FAILURE;
    }
    if (!has(names[to], OLD))
        return fail(round, "the new name");
    if (kind == TO_OLD_TWO && !has(names[1 - to], names[1 - to]))
        return fail(round, "the file that had the other name");
    if (kind != TO_OLD_TWO && deltafs_pool_stat(pool, names[1 - to], 0, &s) != DELTAFS_ERR_NOT_FOUND)
        return fail(round, "there are two names");
    if (deltafs_pool_stat(pool, OLD, 0, &s) != DELTAFS_ERR_NOT_FOUND)
        return fail(round, "the old name is there");
    return EXIT_SUCCESS;
}

static int one_round(int round, const int to[2], const int from[2])
{
    char byte = (char)(round % KINDS);
    int kind = byte, status[2];

    if (put(OLD) != DELTAFS_OK || (kind == TO_OLD_TWO && (put(names[0]) != DELTAFS_OK || put(names[1]) != DELTAFS_OK)))
        return fail(round, "create");
    for (int i = 0; i < 2; i++)
        if (write(to[i], &byte, 1) != 1)
            return fail(round, "write");
    for (int i = 0; i < 2; i++)
        if (read(from[i], &status[i], sizeof status[i]) != sizeof status[i])
            return fail(round, "read");
    int code = round_check(round, kind, status);
    for (int i = 0; i < 2; i++)
        deltafs_pool_unlink(pool, names[i]);
    return code;
}

/* Nothing is left of the files. */
static int check_end(void)
{
    struct deltafs_pool_status s = {.struct_size = sizeof s};
    unsigned long long files = 0, bytes = 0;

    for (uint32_t i = 0; i < deltafs_pool_servers(pool); i++) {
        if (deltafs_pool_status(pool, i, &s) != DELTAFS_OK)
            return fail(-1, "status");
        files += s.files;
        bytes += s.bytes;
    }
    if (files == 0 && bytes == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "at the end: %llu files, %llu bytes\n", files, bytes);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 0, there[2][2], back[2][2], code = EXIT_SUCCESS, status;

    for (int i = 0; i < 2; i++) {
        if (pipe(there[i]) != 0 || pipe(back[i]) != 0)
            return EXIT_FAILURE;
        pid_t pid = fork();
        if (pid == -1)
            return EXIT_FAILURE;
        if (pid == 0) {
            for (int k = 0; k <= i; k++)
                close(there[k][1]);
            exit(child(argv[1], i, there[i][0], back[i][1]));
        }
        close(there[i][0]);
        close(back[i][1]);
    }
    if (deltafs_pool_open(argv[1], &pool) != DELTAFS_OK)
        return fail(-1, "open");
    const int to[2] = {there[0][1], there[1][1]}, from[2] = {back[0][0], back[1][0]};
    for (int i = 0; i < rounds && code == EXIT_SUCCESS; i++)
        code = one_round(i, to, from);
    for (int i = 0; i < 2; i++)
        close(to[i]);
    while (wait(&status) > 0)
        code |= status != 0;
    return code == EXIT_SUCCESS && rounds > 0 ? check_end() : EXIT_FAILURE;
}
