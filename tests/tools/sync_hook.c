/* For LD_PRELOAD: fsync adds a line with the path to the file SYNC_HOOK_LOG, and fails for a path that ends in
 * SYNC_HOOK_FAIL. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = end ? strlen(end) : 0;

    return end && n >= m && strcmp(path + n - m, end) == 0;
}

int fsync(int fd)
{
    static int (*real)(int);
    const char *log = getenv("SYNC_HOOK_LOG");
    char link[64], path[PATH_MAX];

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    FILE *f = log ? fopen(log, "a") : NULL;
    if (f) {
        fprintf(f, "%s\n", path);
        fclose(f);
    }
    if (ends_in(path, getenv("SYNC_HOOK_FAIL"))) {
        errno = EIO;
        return -1;
    }
    return real(fd);
}
