/* An ordinary file, as HDF5's default driver treats it: so that HDF5_DRIVER can stay set in a shell. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "h5fd.h"

static int plain_move(struct vfd_file *f, int is_write, size_t n, const struct deltafs_extent *piece, void *bytes)
{
    uint8_t *place = bytes;

    for (size_t i = 0; i < n; i++) {
        size_t size = (size_t)piece[i].size, done = 0;
        while (done < size) {
            off_t at = (off_t)(piece[i].offset + done);
            ssize_t moved =
                is_write ? pwrite(f->fd, place + done, size - done, at) : pread(f->fd, place + done, size - done, at);
            if (moved < 0 && errno == EINTR)
                continue;
            if (moved < 0 || (moved == 0 && is_write))
                return vfd_fail(f->calls, is_write ? VFD_CANNOT_WRITE : VFD_CANNOT_READ,
                                "%s: offset %ju: %m (errno = %d)", f->path, (uintmax_t)at, errno);
            if (moved == 0)
                break;
            done += (size_t)moved;
        }
        if (!is_write)
            memset(place + done, 0, size - done);
        place += size;
    }
    return 0;
}

static int plain_size(struct vfd_file *f, uint64_t *out)
{
    struct stat s;

    if (fstat(f->fd, &s) != 0)
        return vfd_fail(f->calls, VFD_CANNOT_READ, "%s: its size: %m", f->path);
    *out = (uint64_t)s.st_size;
    return 0;
}

static int plain_truncate(struct vfd_file *f, uint64_t size)
{
    if (ftruncate(f->fd, (off_t)size) != 0)
        return vfd_fail(f->calls, VFD_CANNOT_TRUNCATE, "%s: to %ju bytes: %m", f->path, (uintmax_t)size);
    return 0;
}

static int plain_close(struct vfd_file *f)
{
    int rc = close(f->fd);

    f->fd = -1;
    return rc == 0 ? 0 : vfd_fail(f->calls, VFD_CANNOT_CLOSE, "%s: %m (errno = %d)", f->path, errno);
}

static const struct vfd_kind plain_kind = {
    .features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
                H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_POSIX_COMPAT_HANDLE | H5FD_FEAT_SUPPORTS_SWMR_IO |
                H5FD_FEAT_DEFAULT_VFD_COMPATIBLE,
    .move = plain_move,
    .size = plain_size,
    .truncate = plain_truncate,
    .close = plain_close,
};

int vfd_plain_open(struct vfd_file *f, unsigned flags)
{
    f->fd = open(f->path, vfd_open_flags(flags) | O_CLOEXEC, 0666);
    if (f->fd < 0)
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "%s: %m (errno = %d)", f->path, errno);
    f->kind = &plain_kind;
    return vfd_identify(f, f->path, "");
}
