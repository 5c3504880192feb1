/* Maps files, and changes them after a fork, in the folder FOLDER, and prints what they have then. It knows nothing of
 * DeltaFS: what it prints in a mount must be what it prints in an ordinary folder.
 *
 *     posix_maps FOLDER PART
 *
 * PART is maps, forks, appends, zeros, beside, resizes, or closes, which closes all descriptors. */
#include "tests/posix/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

/* Bytes of a file; a zero is a dot. */
static void show(const char *what, const char *path)
{
    char bytes[64];
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, bytes, sizeof bytes);

    for (ssize_t i = 0; i < n; i++)
        bytes[i] = bytes[i] ? bytes[i] : '.';
    printf("%s: %.*s\n", what, (int)n, bytes);
    fflush(stdout);
    CHECK(close(fd));
}

/* Put bytes into a file by a descriptor of its own. */
static void put(const char *path, const char *bytes, off_t at)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0644);

    CHECK(pwrite(fd, bytes, strlen(bytes), at));
    CHECK(close(fd));
}

static void *map(int fd, void *at, int access, int flags)
{
    void *mapped = mmap(at, 10, access, flags, fd, 0);

    check("mmap", mapped == MAP_FAILED ? -1 : 0);
    return mapped;
}

static int open_new(const char *path, int flags)
{
    put(path, "0123456789", 0);
    int fd = open(path, flags);
    check(path, fd);
    return fd;
}

/* A child that writes to a descriptor; NULL: it does nothing. */
static void child_writes(int fd, const char *bytes)
{
    pid_t child = fork();

    check("fork", child);
    if (child == 0)
        _exit(bytes ? write(fd, bytes, strlen(bytes)) < 0 : 0);
    CHECK(waitpid(child, NULL, 0));
}

/* ---- Maps ---- */

static void map_to_read(void)
{
    int fd = open_new("to_read", O_RDWR);
    char *bytes = map(fd, NULL, PROT_READ, MAP_SHARED);

    put("to_read", "other", 0);
    CHECK(close(fd));
    show("written by others while it is mapped to read it", "to_read");
    CHECK(munmap(bytes, 10));

    fd = open_new("to_write", O_RDWR);
    bytes = map(fd, NULL, PROT_READ, MAP_SHARED);
    CHECK(pwrite(fd, "A", 1, 0));
    CHECK(close(fd));
    show("closed while it is mapped to read it", "to_write");
    CHECK(mprotect(bytes, 10, PROT_READ | PROT_WRITE));
    bytes[1] = 'B';
    CHECK(munmap(bytes, 10));
    show("written to later", "to_write");
}

/* A file that is open only to be read cannot be written to by a mapping. */
static void map_read_only(void)
{
    int fd = open_new("read_only", O_RDONLY);
    char *bytes = map(fd, NULL, PROT_READ, MAP_SHARED);

    printf("a mapping to read: %d", mprotect(bytes, 10, PROT_READ | PROT_WRITE));
    printf(", %s\n", strerror(errno));
    CHECK(munmap(bytes, 10));
    CHECK(close(fd));
}

/* Unmap the middle, and then the ends, while the program goes on. */
static void unmap_in_parts(void)
{
    int fd = open("parts", O_RDWR | O_CREAT, 0644);
    char got[4] = "";

    CHECK(ftruncate(fd, (off_t)(3 * PAGE)));
    char *bytes = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check("mmap", bytes == MAP_FAILED ? -1 : 0);
    CHECK(close(fd));
    bytes[PAGE] = 'B';
    CHECK(munmap(bytes + PAGE, PAGE));
    bytes[0] = 'A';
    bytes[2 * PAGE] = 'C';
    CHECK(munmap(bytes, PAGE));
    CHECK(munmap(bytes + 2 * PAGE, PAGE));
    fd = open("parts", O_RDONLY);
    for (size_t i = 0; i < 3; i++)
        CHECK(pread(fd, got + i, 1, (off_t)(i * PAGE)));
    CHECK(close(fd));
    printf("unmapped in parts: %s\n", got);
}

/* Two files that are mapped one behind the other. */
static void sync_both(void)
{
    int pipe_of[2];

    fflush(stdout);
    CHECK(pipe(pipe_of));
    pid_t child = fork(); /* now, since fork itself publishes */
    check("fork", child);
    if (child == 0) {
        CHECK(close(pipe_of[1]));
        CHECK(read(pipe_of[0], &(char){0}, 1));
        show("synced", "first");
        show("synced", "second");
        _exit(0);
    }
    int first = open_new("first", O_RDWR), second = open_new("second", O_RDWR);
    char *bytes = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    check("mmap", bytes == MAP_FAILED ? -1 : 0);
    CHECK(mmap(bytes, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, first, 0) == MAP_FAILED ? -1 : 0);
    CHECK(mmap(bytes + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, second, 0) == MAP_FAILED ? -1 : 0);
    bytes[0] = 'A';
    bytes[PAGE] = 'B';
    CHECK(msync(bytes, 2 * PAGE, MS_SYNC));
    CHECK(close(pipe_of[1]));
    CHECK(waitpid(child, NULL, 0));
    CHECK(munmap(bytes, 2 * PAGE));
    CHECK(close(first));
    CHECK(close(second));
}

/* Another mapping at the same place ends the first one. */
static void map_over(void)
{
    int fd = open_new("over", O_RDWR);
    char *bytes = map(fd, NULL, PROT_READ | PROT_WRITE, MAP_SHARED);

    bytes[0] = 'A';
    map(-1, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
    CHECK(close(fd));
    show("another mapping at its place", "over");
    put("over", "B", 0); /* the caller looks at this file when the program has ended */
    fd = open_new("moved", O_RDWR);
    char *from = map(-1, NULL, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
    bytes = map(fd, NULL, PROT_READ | PROT_WRITE, MAP_SHARED);
    bytes[0] = 'A';
    check("mremap", mremap(from, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, bytes) == MAP_FAILED ? -1 : 0);
    CHECK(close(fd));
    put("moved", "B", 0);
}

static void map_locked(void)
{
    int fd = open_new("locked", O_RDWR), other = open("locked", O_RDWR);

    CHECK(flock(fd, LOCK_EX));
    char *bytes = map(fd, NULL, PROT_READ | PROT_WRITE, MAP_SHARED);
    CHECK(close(dup(fd)));
    printf("the lock behind closing a copy: %d", flock(other, LOCK_EX | LOCK_NB));
    CHECK(munmap(bytes, 10));
    CHECK(close(fd));
    printf(", closed: %d\n", flock(other, LOCK_EX | LOCK_NB));
    CHECK(close(other));
}

/* Map the first and the third page of a new file of three. Returns its descriptor. */
static int map_ends(const char *path, char **first, char **third)
{
    int fd = open_new(path, O_RDWR);

    CHECK(ftruncate(fd, (off_t)(3 * PAGE)));
    CHECK(fsync(fd));
    *first = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *third = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(2 * PAGE));
    check("mmap", *first == MAP_FAILED || *third == MAP_FAILED ? -1 : 0);
    return fd;
}

/* What is between two mappings of a file, others may change. */
static void map_two(void)
{
    char got[4] = "", *a, *b;
    int fd = map_ends("two", &a, &b);

    *a = 'A';
    *b = 'C';
    put("two", "B", (off_t)PAGE);
    CHECK(munmap(a, PAGE));
    put("two", "D", 0);
    *b = 'E';
    CHECK(munmap(b, PAGE));
    CHECK(close(fd));
    fd = open("two", O_RDONLY);
    for (size_t i = 0; i < 3; i++)
        CHECK(pread(fd, got + i, 1, (off_t)(i * PAGE)));
    CHECK(close(fd));
    printf("two mappings: %s\n", got);
}

/* What is mapped and has not changed since it was last put stays as others have written it. */
static void map_unchanged(void)
{
    char got = ' ', *a, *b;
    int fd = map_ends("unchanged", &a, &b);

    *a = 'A';
    *b = 'B';
    CHECK(munmap(a, PAGE));
    put("unchanged", "C", (off_t)(2 * PAGE));
    CHECK(chmod("unchanged", 0600));
    CHECK(munmap(b, PAGE));
    CHECK(close(fd));
    fd = open("unchanged", O_RDONLY);
    CHECK(pread(fd, &got, 1, (off_t)(2 * PAGE)));
    CHECK(close(fd));
    printf("written by another process: %c\n", got);
}

/* The same bytes once more, in a file that was empty meanwhile. */
static void map_truncated(const char *path, int is_by_path)
{
    int fd = open_new(path, O_RDWR);
    char *bytes = map(fd, NULL, PROT_READ | PROT_WRITE, MAP_SHARED);

    memcpy(bytes, "mapped", 6);
    CHECK(msync(bytes, 10, MS_SYNC));
    CHECK(is_by_path ? truncate(path, 0) : ftruncate(fd, 0));
    CHECK(ftruncate(fd, 10));
    memcpy(bytes, "mapped6789", 10);
    CHECK(munmap(bytes, 10));
    CHECK(close(fd));
    show("truncated while it is mapped", path);
}

static void map_without_input(void)
{
    int fd = open_new("input", O_RDWR);

    CHECK(close(STDIN_FILENO));
    char *bytes = map(fd, NULL, PROT_READ | PROT_WRITE, MAP_SHARED);
    bytes[0] = 'A';
    CHECK(munmap(bytes, 10));
    CHECK(close(fd));
    show("mapped without standard input", "input");
}

/* Allocators of memory map before this program has begun. */
static char *early;
static void map_early(void)
{
    early = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
__attribute__((section(".preinit_array"), used)) static void (*const before_all)(void) = map_early;

static void maps(void)
{
    printf("early: %d\n", munmap(early, PAGE));
    map_to_read();
    map_read_only();
    unmap_in_parts();
    sync_both();
    map_over();
    map_locked();
    map_two();
    map_unchanged();
    map_truncated("truncated", 0);
    map_truncated("truncated by its path", 1);
    map_without_input();
}

static void closes(void)
{
    int fd = open_new("closes", O_RDWR);
    char *bytes = map(fd, NULL, PROT_READ | PROT_WRITE, MAP_SHARED);

    for (fd = 3; fd < 5000; fd++)
        close(fd);
    bytes[0] = 'A';
    CHECK(close_range(3, ~0U, 0));
    bytes[1] = 'B';
    CHECK(munmap(bytes, 10));
    show("mapped, and all descriptors closed", "closes");
}

/* A child that does nothing with a mapping leaves what others write to the file later; what it writes is kept. */
static void forks(void)
{
    int fd = open_new("forked", O_RDWR), pipe_of[2];
    char *bytes = map(fd, NULL, PROT_READ | PROT_WRITE, MAP_SHARED);

    CHECK(close(fd));
    bytes[0] = 'A';
    CHECK(pipe(pipe_of));
    pid_t child = fork();
    CHECK(child);
    if (child == 0) {
        CHECK(close(pipe_of[1]));
        _exit(read(pipe_of[0], &(char){0}, 1) != 0);
    }
    bytes[1] = 'B';
    CHECK(munmap(bytes, 10));
    put("forked", "newer", 0);
    CHECK(close(pipe_of[1]));
    CHECK(waitpid(child, NULL, 0));
    show("mapped by a child that does nothing", "forked");

    fd = open_new("child", O_RDWR);
    bytes = map(fd, NULL, PROT_READ | PROT_WRITE, MAP_SHARED);
    CHECK(close(fd));
    child = fork();
    CHECK(child);
    if (child == 0) {
        bytes[0] = 'A';
        _exit(0);
    }
    CHECK(waitpid(child, NULL, 0));
    show("mapped by a child that writes", "child");
    CHECK(munmap(bytes, 10));
}

/* A part of a mapping cannot be changed. */
static void resizes(void)
{
    int fd = open("resized", O_RDWR | O_CREAT, 0644);

    CHECK(ftruncate(fd, (off_t)(2 * PAGE)));
    char *bytes = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    check("mmap", bytes == MAP_FAILED ? -1 : 0);
    for (size_t i = 0; i < 2; i++)
        printf("part: %d\n", mremap(bytes + i * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED ? errno : 0);
    CHECK(mremap(bytes, 2 * PAGE, PAGE, 0) == MAP_FAILED ? -1 : 0);
    CHECK(munmap(bytes, PAGE));
    CHECK(close(fd));
}

/* ---- Added bytes ---- */

static void appends(void)
{
    int fd = open_new("appends", O_RDWR);

    child_writes(fd, NULL);
    CHECK(fcntl(fd, F_SETFL, O_APPEND));
    CHECK(write(fd, "A", 1));
    CHECK(fcntl(fd, F_SETFL, 0));
    CHECK(pwrite(fd, "B", 1, 0));
    CHECK(close(fd));
    show("O_APPEND for one byte", "appends");

    fd = open_new("mapped", O_RDWR | O_APPEND);
    child_writes(fd, NULL);
    char *bytes = map(fd, NULL, PROT_READ | PROT_WRITE, MAP_SHARED);
    memcpy(bytes, "mapped", 6);
    CHECK(write(fd, " and added", 10));
    CHECK(munmap(bytes, 10));
    CHECK(close(fd));
    show("mapped, with O_APPEND", "mapped");

    fd = open_new("flags", O_RDWR | O_APPEND);
    child_writes(fd, NULL);
    CHECK(fcntl(fd, F_SETFL, O_APPEND));
    child_writes(fd, "A");
    CHECK(pread(fd, &(char){0}, 1, 0));
    CHECK(close(fd));
    show("flags set, and read, after a fork", "flags");
}

/* ---- Zeros ---- */

static void make_zeros(const char *path, int flags, int is_forked)
{
    int fd = open_new(path, flags);

    if (is_forked)
        child_writes(fd, NULL);
    CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3));
    if (flags & O_APPEND)
        CHECK(write(fd, "A", 1));
    CHECK(close(fd));
    show(path, path);
}

static void zeros(void)
{
    char bytes[3] = "?";

    make_zeros("after a fork", O_RDWR, 1);
    make_zeros("after a fork, to write only", O_WRONLY, 1);
    make_zeros("in a file that is added to", O_WRONLY | O_APPEND, 0);
    make_zeros("in one after a fork", O_RDWR | O_APPEND, 1);

    int fd = open("large", O_RDWR | O_CREAT, 0644);
    child_writes(fd, NULL);
    for (off_t at = 0; at < 20 << 20; at += 1 << 20)
        CHECK(pwrite(fd, "x", 1, at));
    CHECK(fsync(fd));
    CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 19 << 20));
    CHECK(close(fd));
    fd = open("large", O_RDONLY);
    for (int i = 0; i < 3; i++)
        CHECK(pread(fd, bytes + i, 1, (9 * i + (i == 2)) << 20));
    CHECK(close(fd));
    printf("many: %d %d %d\n", bytes[0], bytes[1], bytes[2]);
}

/* ---- Added bytes of two processes ---- */

/* Another process adds bytes to a file when the pipe is closed. */
static pid_t child_adds(const char *path, const char *bytes, int pipe_of[2])
{
    CHECK(pipe(pipe_of));
    pid_t child = fork();

    check("fork", child);
    if (child > 0)
        return child;
    CHECK(close(pipe_of[1]));
    CHECK(read(pipe_of[0], &(char){0}, 1));
    int fd = open(path, O_WRONLY | O_APPEND);
    CHECK(write(fd, bytes, strlen(bytes)));
    _exit(close(fd) != 0);
}

/* Bytes that were added, by this process before and by another one then, while others are put where they are. */
static void add_beside(const char *path, int is_mapped, int is_before)
{
    int pipe_of[2];
    pid_t child = child_adds(path, "(other)", pipe_of);
    int fd = open_new(path, O_RDWR | O_APPEND);
    char *bytes = is_mapped ? map(fd, NULL, PROT_READ | PROT_WRITE, MAP_SHARED) : NULL;

    if (is_before)
        CHECK(write(fd, "(this)", 6));
    if (!is_before && !is_mapped)
        CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3));
    CHECK(close(pipe_of[1]));
    CHECK(waitpid(child, NULL, 0));
    if (is_mapped)
        bytes[0] = 'A';
    else if (is_before)
        CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3));
    if (!is_before)
        CHECK(write(fd, "(this)", 6));
    CHECK(close(fd));
    if (is_mapped)
        CHECK(munmap(bytes, 10));
    show(path, path);
}

static void beside(void)
{
    add_beside("zeros behind added bytes", 0, 1);
    add_beside("zeros before added bytes", 0, 0);
    add_beside("a mapping behind added bytes", 1, 1);
    add_beside("a mapping before added bytes", 1, 0);
}

int main(int argc, char **argv)
{
    static const struct part {
        const char *name;
        void (*run)(void);
    } parts[] = {{"maps", maps},     {"forks", forks},     {"appends", appends}, {"zeros", zeros},
                 {"beside", beside}, {"resizes", resizes}, {"closes", closes}};

    if (argc != 3 || chdir(argv[1]) != 0) {
        fprintf(stderr, "usage: posix_maps FOLDER PART\n");
        return 2;
    }
    alarm(10); /* a deadlock is a failure */
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(argv[2], parts[i].name) == 0)
            parts[i].run();
    return 0;
}
