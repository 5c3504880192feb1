/* An ordinary file, as HDF5's default driver treats it: so that HDF5_DRIVER can stay set in a shell. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "h5fd.h"

static int plain_read(struct vfd_file *f, uint64_t at, void *bytes, size_t size)
{
    uint8_t *to = bytes;

    while (size > 0) {
        ssize_t n = pread(f->fd, to, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return vfd_fail(f->calls, VFD_CANNOT_READ, "%s: offset %ju: %m (errno = %d)", f->path, (uintmax_t)at,
                            errno);
        if (n == 0)
            break;
        to += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    memset(to, 0, size);
    return 0;
}

static int plain_write(struct vfd_file *f, uint64_t at, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;

    while (size > 0) {
        ssize_t n = pwrite(f->fd, from, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return vfd_fail(f->calls, VFD_CANNOT_WRITE, "%s: offset %ju: %m (errno = %d)", f->path, (uintmax_t)at,
                            errno);
        from += n;
        at += (uint64_t)n;
        size -= (size_t)n;
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
    .read = plain_read,
    .write = plain_write,
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
    return vfd_identify(f, f->path, NULL);
}
