/* Part of posix_calls: files that are mapped into memory. */
#include "tests/posix/posix_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void map_small(void)
{
    int fd = open("small", O_RDWR | O_CREAT | O_TRUNC, 0644), reader = open("small", O_RDONLY);
    const size_t size = 5000;

    say("ftruncate", ftruncate(fd, (off_t)size));
    say("pwrite", pwrite(fd, "before", 6, 0));
    char *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    say("own", own[0]);
    strcpy(own, "own");
    say_bytes("an own mapping changes nothing", "small", 0, 6);
    munmap(own, size);
    char *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memcpy(shared, "shared", 6);
    say("msync", msync(shared, size, MS_ASYNC));
    say_bytes("behind msync", "small", 0, 6);
    memcpy(shared + 4990, "end", 3);
    say("close", close(fd));
    memcpy(shared + 100, "behind close", 12);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        memcpy(shared + 200, "child", 5);
        _exit(0);
    }
    say("child", waitpid(child, NULL, 0) == child);
    say("munmap", munmap(shared, size));
    say_bytes("the end", "small", 4990, 10);
    say_bytes("behind close", "small", 100, 12);
    say_bytes("by a child", "small", 200, 5);
    say("shared by a reader", mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, reader, 0) != MAP_FAILED);
    say("error", errno);
    say("own by a reader", mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, reader, 0) != MAP_FAILED);
    close(reader);
    fd = open("small", O_WRONLY);
    say("by a writer", mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
    close(fd);
    fd = open(".", O_RDONLY | O_DIRECTORY);
    say("a folder", mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
    say("error", errno);
    close(fd);
}

/* One that has not all bytes in memory when it is opened. */
static void map_large(void)
{
    const size_t size = 6000000;
    char *bytes = malloc(size);
    int fd = open("big", O_RDWR | O_CREAT | O_TRUNC, 0644);
    unsigned long sum = 0;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(i * 7 / 3);
    say("write", write(fd, bytes, size));
    close(fd);
    fd = open("big", O_RDONLY);
    const char *read_only = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    const char *part = mmap(NULL, 100, PROT_READ, MAP_PRIVATE, fd, 4096 * 1000);
    close(fd);
    say("all", memcmp(read_only, bytes, size) == 0);
    say("a part", memcmp(part, bytes + 4096000, 100) == 0);
    fd = open("big", O_RDWR | O_APPEND);
    char *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (size_t i = 0; i < size; i++)
        sum += (unsigned char)shared[i];
    memcpy(shared + 5000000, "written", 7);
    say("append", write(fd, "appended", 8));
    munmap(shared, size);
    close(fd);
    say("sum", (long long)sum);
    say_bytes("written", "big", 5000000, 7);
    say_bytes("appended", "big", (off_t)size, 20);
    munmap((void *)read_only, size);
    free(bytes);
    unlink("big");
}

void check_maps(void)
{
    map_small();
    map_large();
    int fd = open("mapped", O_RDWR | O_CREAT, 0644);
    say("ftruncate", ftruncate(fd, 27));
    char *left = mmap(NULL, 27, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    memcpy(left, "mapped when the program ends", 27); /* which the caller looks at */
}
