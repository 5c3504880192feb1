/* Processes that share a descriptor since a fork, while one of them has the state that others see. It knows nothing of
 * DeltaFS: what it prints in a mount must be what it prints in an ordinary folder.
 *
 *     posix_shared FILE
 *
 * FILE exists. It gets other bytes. */
#include "tests/posix/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 5000

static const char *file;

static void fill(void)
{
    char bytes[SIZE];
    int fd = open(file, O_WRONLY | O_TRUNC);

    memset(bytes, 'x', sizeof bytes);
    check("open", fd);
    CHECK(write(fd, bytes, sizeof bytes));
    CHECK(close(fd));
}

static void put(const char *bytes, off_t at)
{
    int fd = open(file, O_WRONLY);

    check("open", fd);
    CHECK(pwrite(fd, bytes, strlen(bytes), at));
    CHECK(close(fd));
}

static void show(const char *what)
{
    char bytes[16];
    int fd = open(file, O_RDONLY);
    ssize_t n = pread(fd, bytes, sizeof bytes, 0);

    printf("%s: %.*s\n", what, (int)n, bytes);
    fflush(stdout);
    CHECK(close(fd));
}

/* ---- What a child has written and not closed yet ---- */

static void write_in_child(int fd, int has_offset)
{
    if (has_offset)
        CHECK(pwrite(fd, "CHILD", 5, 0));
    else
        CHECK(write(fd, "CHILD", 5));
    CHECK(lseek(fd, 100, SEEK_SET));
}

static void lock_file(int fd)
{
    CHECK(flock(fd, LOCK_SH));
    CHECK(flock(fd, LOCK_UN));
}

static void change_mode(int fd)
{
    (void)fd;
    CHECK(chmod(file, 0640));
}

static void child_writes(const char *what, int has_offset, void (*change)(int fd))
{
    int wrote[2], end[2];

    fill();
    int fd = open(file, O_RDWR);
    check("open", fd);
    CHECK(pipe(wrote));
    CHECK(pipe(end));
    pid_t child = fork();
    check("fork", child);
    if (child == 0) {
        CHECK(close(end[1]));
        write_in_child(fd, has_offset);
        CHECK(write(wrote[1], "a", 1));
        CHECK(read(end[0], &(char){0}, 1));
        _exit(close(fd) != 0);
    }
    CHECK(read(wrote[0], &(char){0}, 1));
    put("Z", 9);
    change(fd);
    CHECK(close(end[1]));
    CHECK(waitpid(child, NULL, 0));
    CHECK(close(fd));
    show(what);
}

/* ---- What a child reads meanwhile ---- */

static void read_in_child(int fd)
{
    char bytes[5];
    int bad = 0;

    for (int i = 0; i < 20000; i++)
        bad += pread(fd, bytes, sizeof bytes, SIZE - 10) != sizeof bytes;
    _exit(bad != 0);
}

static void child_reads(void)
{
    int status = -1, locks = 0;

    fill();
    int fd = open(file, O_RDONLY);
    CHECK(pread(fd, &(char){0}, 1, 0));
    pid_t child = fork();
    check("fork", child);
    if (child == 0)
        read_in_child(fd);
    while (waitpid(child, &status, WNOHANG) == 0 && locks++ < 10000) {
        put("Z", 9);
        lock_file(fd);
    }
    if (locks > 10000)
        CHECK(waitpid(child, &status, 0));
    CHECK(close(fd));
    printf("read by a child: %d\n", status);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    file = argv[1];
    child_writes("pwrite, and a lock", 1, lock_file);
    child_writes("pwrite, and another mode", 1, change_mode);
    child_writes("write and lseek, and a lock", 0, lock_file);
    child_reads();
    return 0;
}
