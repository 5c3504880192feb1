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

/* ---- The mask of new files, which is that of all threads ---- */

#define MASK_SECONDS 0.3

/* What the system has; -1 if that cannot be known. */
static int mask_of_process(void)
{
    char text[1000];
    int fd = open("/proc/self/status", O_RDONLY), mask = -1;
    ssize_t n = read(fd, text, sizeof text - 1);

    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *line = strstr(text, "Umask:");
    if (line)
        sscanf(line, "Umask: %o", (unsigned *)&mask);
    return mask;
}

static void *watch_mask(void *changes)
{
    int first = mask_of_process();

    while (!is_over)
        *(int *)changes += mask_of_process() != first;
    return NULL;
}

static void say_mode(const char *path)
{
    struct stat st;

    say(path, stat(path, &st) == 0 ? (long long)st.st_mode & 0777 : -1);
}

static void create_with_mask(void)
{
    double end = now() + MASK_SECONDS;
    int changes = 0;
    pthread_t thread;

    pthread_create(&thread, NULL, watch_mask, &changes);
    while (now() < end) {
        close(open("created", O_WRONLY | O_CREAT, 0666));
        mkdir("made", 0777);
        unlink("created");
        rmdir("made");
    }
    is_over = 1;
    pthread_join(thread, NULL);
    say("changes", changes);
    umask(077);
    make_file("private", "");
    mkdir("private folder", 0777);
    umask(02);
    make_file("of a group", "");
    say_mode("private");
    say_mode("private folder");
    say_mode("of a group");
}

static const struct part {
    const char *name;
    void (*fn)(void);
} parts[] = {{"close", close_while_used}, {"mask", create_with_mask}};

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
