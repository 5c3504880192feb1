/* Making durable what a program has committed to a namespace without waiting for storage. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/run_parts.h"
#include "tools/text.h"

/* Clocks of other hosts, and of file servers, differ by less than this. */
#define CLOCKS_DIFFER 3600

#define OPEN_FOLDERS 32

static struct {
    time_t since;
    int code;
} walk;

/* Files and folders only: what a link leads to is in the same folder. */
static int sync_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)at;
    if ((type != FTW_F && type != FTW_DP) || st->st_mtime < walk.since)
        return 0;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) /* removed meanwhile, by a process that merges tables */
        return 0;
    if (fd < 0 || fsync(fd) != 0)
        walk.code = text_fail(EXIT_TROUBLE, "run: %s: not safe on storage: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return 0;
}

int run_sync_folder(const char *folder, time_t since)
{
    char real[PATH_MAX];

    walk.since = since - CLOCKS_DIFFER;
    walk.code = EXIT_OK;
    if (!realpath(folder, real) || nftw(real, sync_one, OPEN_FOLDERS, FTW_PHYS | FTW_DEPTH) != 0)
        walk.code = text_fail(EXIT_TROUBLE, "run: %s: cannot be read: %s", folder, strerror(errno));
    return walk.code;
}
