/* Network file systems that keep for seconds, on each client, what they know of a file: FUSE (GlusterFS is behind it),
 * NFS, CIFS. What another host has written or removed is seen late. The library meets that in two places. Opening and
 * listing refresh what this host knows. A reader that takes bytes for damaged refreshes and reads again, as long as
 * the caches may keep old bytes (io_file_wait). On all other file systems none of this does anything. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include "base/path.h"
#include "io/io.h"

#define CACHE_MS_MAX   4000u /* GlusterFS's caches of a second each can be one behind the other */
#define PAUSE_MS       100u
#define VAIN_WAITS_MAX 8u /* files of an io that are waited for in vain; then damage is taken for damage at once */

/* The last device of either kind is remembered: asking costs a millisecond on GlusterFS, and on Lustre a message to
 * each server. Two threads that remember at the same time cost one more question. */
static int is_client_cached(int fd)
{
    static const unsigned magics[] = {0x65735546 /* FUSE */, 0x6969 /* NFS */, 0xff534d42 /* CIFS */,
                                      0xfe534d42 /* SMB */};
    static _Atomic uint64_t known[2]; /* 0: none; which is also that of no device */
    struct statx st;
    struct statfs system;
    uint64_t device = 0;
    int is_cached = 0;

    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) == 0)
        device = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
    for (int i = 0; i < 2 && device != 0; i++)
        if (known[i] == device)
            return i;
    if (fstatfs(fd, &system) != 0)
        return 0;
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
        is_cached |= (unsigned)system.f_type == magics[i];
    known[is_cached] = device;
    return is_cached;
}

/* GlusterFS has a cache in a process of its own, which only a sync, as it goes to the server, brings up to date. NFS
 * sends nothing if there is nothing to sync, but AT_STATX_FORCE_SYNC makes it ask. Pages of the file are as old as what
 * was known of it, and are dropped. */
int client_cached_refresh(void *ctx, int fd)
{
    struct statx now;
    int rc;

    (void)ctx;
    if (!is_client_cached(fd))
        return 0;
    do
        rc = fdatasync(fd) != 0 ? -errno : 0;
    while (rc == -EINTR);
    if (rc < 0 && rc != -EINVAL && rc != -EROFS)
        return rc;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &now) != 0 &&
        (errno == ENOENT || errno == ESTALE))
        return -errno;
    return 1;
}

int client_cached_pause(unsigned *waited)
{
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};

    if (*waited >= CACHE_MS_MAX)
        return 0;
    nanosleep(&pause, NULL);
    *waited += PAUSE_MS;
    return 1;
}

/* 1: refreshed, and may be seen late all the same. */
static int file_refresh(struct io_file *f)
{
    int fd;

    if (!f->io->ops->refresh || io_begin(f, &fd, error_ignored()) != DELTAFS_OK)
        return 0;
    int rc = f->io->ops->refresh(f->io->ctx, fd);
    io_end(f, fd, DELTAFS_OK, error_ignored());
    return rc;
}

int io_file_open_name(struct io *io, const char *path, int flags, struct io_file *out, struct error *e)
{
    int status = io_file_open(io, path, flags, out, e);
    char *parent = status == DELTAFS_ERR_NOT_FOUND ? path_parent(path) : NULL;
    struct io_file folder;

    if (parent &&
        io_file_open(io, parent, O_RDONLY | O_DIRECTORY | IO_AWAITED, &folder, error_ignored()) == DELTAFS_OK) {
        if (file_refresh(&folder) != 0) /* also if the folder was replaced */
            status = io_file_open(io, path, flags, out, e);
        io_file_close(&folder, error_ignored());
    }
    free(parent);
    return status;
}

int io_file_refresh(struct io_file *f, struct error *e)
{
    int rc = file_refresh(f);

    return rc < 0 ? error_system(e, -rc, "refresh", f->path) : DELTAFS_OK;
}

int io_file_is_late(struct io_file *f)
{
    return file_refresh(f) != 0;
}

int io_file_wait(struct io_file *f, unsigned *waited)
{
    if (f->is_waited || f->io->vain_waits >= VAIN_WAITS_MAX || file_refresh(f) <= 0)
        return 0;
    /* The first time without a pause: the bytes may have been read a while ago, together with others. */
    if (*waited == 0) {
        *waited = 1;
        return 1;
    }
    if (client_cached_pause(waited))
        return file_refresh(f) > 0;
    if (!atomic_exchange(&f->is_waited, 1)) /* by no other thread */
        f->io->vain_waits++;
    return 0;
}
