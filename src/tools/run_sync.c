/* Making durable what a program has committed without waiting for storage: to a namespace, or to a directory of
 * particles. Links in the latter lead to its volumes. */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/run_parts.h"
#include "tools/text.h"

/* Clocks of other hosts, and of file servers, differ by less than this. */
#define CLOCKS_DIFFER 3600

/* Have the system write all at once, which takes a tenth of the time that one file after the other does. Not all file
 * systems and kernels then have it on storage, or return errors: fsync does that. */
static void write_all(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_CLOEXEC);

    if (fd >= 0) {
        syncfs(fd);
        close(fd);
    }
}

/* Something may be removed at any time, by processes that go on. */
static int fail(const char *path, int error)
{
    return error == ENOENT ? EXIT_OK
                           : text_fail(EXIT_TROUBLE, "run: %s: may not be safe on storage: %s", path, strerror(error));
}

static int sync_one(const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int code = fd < 0 || fsync(fd) != 0 ? fail(path, errno) : EXIT_OK;

    if (fd >= 0)
        close(fd);
    return code;
}

/* A file or folder; the latter comes twice, and counts when all that is in it was done. */
static int sync_entry(const FTSENT *e, time_t since)
{
    switch (e->fts_info) {
    case FTS_F:
    case FTS_DP:
        return e->fts_statp->st_mtime < since ? EXIT_OK : sync_one(e->fts_path);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        return fail(e->fts_path, e->fts_errno);
    default:
        return EXIT_OK;
    }
}

int run_sync_folder(const char *folder, time_t since)
{
    char path[PATH_MAX], *paths[] = {path, NULL};
    int code = EXIT_OK;

    if (!realpath(folder, path))
        return text_fail(EXIT_TROUBLE, "run: %s: cannot be found: %s", folder, strerror(errno));
    write_all(path);
    FTS *walk = fts_open(paths, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    if (!walk)
        return text_fail(EXIT_TROUBLE, "run: %s: cannot be read: %s", path, strerror(errno));
    for (FTSENT *e; (errno = 0, e = fts_read(walk));) {
        int one = sync_entry(e, since - CLOCKS_DIFFER);
        code = code == EXIT_OK ? one : code;
    }
    if (errno != 0)
        code = text_fail(EXIT_TROUBLE, "run: %s: cannot be read: %s", path, strerror(errno));
    fts_close(walk);
    return code;
}
