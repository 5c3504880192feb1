/* Threads that use one descriptor, signals, and processes that begin or end in unusual ways, in the folder FOLDER.
 *
 *     posix_threads FOLDER PART
 *
 * It prints in a mount what it prints in an ordinary folder. */
#include "tests/posix/say.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESS_SECONDS 20 /* then it is ended by a signal */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- A descriptor that another thread closes ---- */

#define SHARED_FD      100
#define TOGGLE_SECONDS 0.4

static atomic_int is_over;

static void use_bytes(void)
{
    char byte = 'x';
    struct iovec piece[2] = {{&byte, 1}, {&byte, 1}};

    for (int i = 0; i < 100; i++) {
        (void)!read(SHARED_FD, &byte, 1);
        (void)!pread(SHARED_FD, &byte, 1, 0);
        (void)!readv(SHARED_FD, piece, 2);
        (void)!write(SHARED_FD, "y", 1);
        (void)!pwrite(SHARED_FD, "y", 1, 0);
        (void)!pwritev(SHARED_FD, piece, 2, 0);
        (void)!lseek(SHARED_FD, 0, SEEK_SET);
    }
}

static void use_rest(void)
{
    struct stat st;

    (void)!ftruncate(SHARED_FD, 2);
    (void)!posix_fallocate(SHARED_FD, 0, 1);
    (void)!fstat(SHARED_FD, &st);
    (void)!fcntl(SHARED_FD, F_GETFL);
    (void)!fchmod(SHARED_FD, 0644);
    (void)!fdatasync(SHARED_FD);
    (void)!fdopendir(SHARED_FD); /* it is none */
}

static void *use(void *unused)
{
    while (!is_over) {
        use_bytes();
        use_rest();
    }
    return unused;
}

static void close_while_used(void)
{
    int fd = open("closed", O_RDWR | O_CREAT, 0644);
    double end = now() + TOGGLE_SECONDS;
    pthread_t thread;

    pthread_create(&thread, NULL, use, NULL);
    while (now() < end)
        for (int i = 0; i < 100; i++)
            if (dup2(fd, SHARED_FD) < 0 || close(SHARED_FD) != 0)
                say("dup2 and close", -1);
    is_over = 1;
    pthread_join(thread, NULL);
    say("close", close(fd));
}

static const struct part {
    const char *name;
    void (*fn)(void);
} parts[] = {{"close", close_while_used}};

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(PROCESS_SECONDS);
    if (argc != 3 || chdir(argv[1]) != 0) {
        fprintf(stderr, "usage: %s FOLDER PART\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(argv[2], parts[i].name) == 0)
            parts[i].fn();
    return 0;
}
