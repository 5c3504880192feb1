/* For LD_PRELOAD: kills the process by SIGKILL at a call that changes something in the folder KILL_IN: the call number
 * KILL_AT, counted from 1. KILL_HOW is "before" it, "after" it, or "half": after half of the bytes were written. */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* Whether this is the call. */
static int is_it(const char *path)
{
    const char *in = getenv("KILL_IN"), *at = getenv("KILL_AT");

    return in && at && strncmp(path, in, strlen(in)) == 0 && atomic_fetch_add(&calls, 1) + 1 == atol(at);
}

static int is_it_of(int fd)
{
    char link[64], path[PATH_MAX];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return is_it(path);
}

static int is_how(const char *how)
{
    return strcmp(getenv("KILL_HOW"), how) == 0;
}

static void *next_of(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* A call that is not writing, by `result`, and the test whether it is the one. */
#define CALL(type, name, parameters, arguments, test)                                                                  \
    type name parameters;                                                                                              \
    type name parameters                                                                                               \
    {                                                                                                                  \
        static type(*real) parameters;                                                                                 \
        int is_this = test;                                                                                            \
        if (!real)                                                                                                     \
            *(void **)&real = next_of(#name);                                                                          \
        if (is_this && !is_how("after"))                                                                               \
            die();                                                                                                     \
        type result = real arguments;                                                                                  \
        if (is_this)                                                                                                   \
            die();                                                                                                     \
        return result;                                                                                                 \
    }

/* One that writes `size` bytes. */
#define WRITE(name, parameters, arguments)                                                                             \
    ssize_t name parameters;                                                                                           \
    ssize_t name parameters                                                                                            \
    {                                                                                                                  \
        static ssize_t(*real) parameters;                                                                              \
        int is_this = is_it_of(fd);                                                                                    \
        if (!real)                                                                                                     \
            *(void **)&real = next_of(#name);                                                                          \
        if (is_this && is_how("before"))                                                                               \
            die();                                                                                                     \
        size = is_this && is_how("half") ? size / 2 : size;                                                            \
        ssize_t result = real arguments;                                                                               \
        if (is_this)                                                                                                   \
            die();                                                                                                     \
        return result;                                                                                                 \
    }

/* One that opens a file counts if it creates it. */
#define OPEN(name, parameters, arguments)                                                                              \
    int name parameters;                                                                                               \
    int name parameters                                                                                                \
    {                                                                                                                  \
        static int(*real) parameters;                                                                                  \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;                                                      \
        va_end(list);                                                                                                  \
        int is_this = flags & O_CREAT && is_it(path);                                                                  \
        if (!real)                                                                                                     \
            *(void **)&real = next_of(#name);                                                                          \
        if (is_this && !is_how("after"))                                                                               \
            die();                                                                                                     \
        int result = real arguments;                                                                                   \
        if (is_this)                                                                                                   \
            die();                                                                                                     \
        return result;                                                                                                 \
    }

OPEN(open, (const char *path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode))
OPEN(openat, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
OPEN(openat64, (int folder, const char *path, int flags, ...), (folder, path, flags, mode))
WRITE(write, (int fd, const void *bytes, size_t size), (fd, bytes, size))
WRITE(pwrite, (int fd, const void *bytes, size_t size, off_t at), (fd, bytes, size, at))
WRITE(pwrite64, (int fd, const void *bytes, size_t size, off64_t at), (fd, bytes, size, at))
CALL(int, fsync, (int fd), (fd), is_it_of(fd))
CALL(int, fdatasync, (int fd), (fd), is_it_of(fd))
CALL(int, ftruncate, (int fd, off_t size), (fd, size), is_it_of(fd))
CALL(int, ftruncate64, (int fd, off64_t size), (fd, size), is_it_of(fd))
CALL(int, mkdir, (const char *path, mode_t mode), (path, mode), is_it(path))
CALL(int, rename, (const char *path, const char *to), (path, to), is_it(path))
CALL(int, renameat2, (int from, const char *path, int to, const char *new_path, unsigned flags),
     (from, path, to, new_path, flags), is_it(path))
CALL(int, unlink, (const char *path), (path), is_it(path))
CALL(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), is_it(path))
CALL(int, rmdir, (const char *path), (path), is_it(path))
CALL(int, link, (const char *path, const char *to), (path, to), is_it(path))
