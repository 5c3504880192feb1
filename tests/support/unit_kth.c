#include <errno.h>
#include "unit_help.h"
#include "unit_kth.h"

static struct {
    const struct io_ops *real;
    uint64_t k;
    _Atomic uint64_t count;
    int errnum, is_by_thread;
    _Atomic int open_files;
} kth;
static _Thread_local int is_counted;

static int kth_is_now(void)
{
    return (!kth.is_by_thread || is_counted) && kth.count++ == kth.k;
}

static int kth_open(void *ctx, const char *path, int flags, mode_t mode)
{
    int rc = kth_is_now() ? -kth.errnum : kth.real->open(ctx, path, flags, mode);

    kth.open_files += rc >= 0;
    return rc;
}

static ssize_t kth_pwrite(void *ctx, int fd, const void *bytes, size_t n, uint64_t offset)
{
    if (!kth_is_now())
        return kth.real->pwrite(ctx, fd, bytes, n, offset);
    CHECK(kth.real->pwrite(ctx, fd, bytes, n / 2, offset) >= 0);
    return -kth.errnum;
}

/* Nothing here is about power: syncing for real would only take time. */
static int kth_sync(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    return kth_is_now() ? -kth.errnum : 0;
}

static int kth_sync_folder(void *ctx, const char *path)
{
    (void)ctx;
    (void)path;
    return kth_is_now() ? -kth.errnum : 0;
}

/* A close that fails has closed nevertheless. */
static int kth_close(void *ctx, int fd)
{
    int rc = kth.real->close(ctx, fd);

    kth.open_files--;
    return kth_is_now() ? -kth.errnum : rc;
}

static ssize_t kth_pread(void *ctx, int fd, void *bytes, size_t n, uint64_t offset)
{
    return kth_is_now() ? -kth.errnum : kth.real->pread(ctx, fd, bytes, n, offset);
}

static int kth_attributes(void *ctx, int fd, struct io_attributes *out)
{
    return kth_is_now() ? -kth.errnum : kth.real->attributes(ctx, fd, out);
}

static int kth_truncate(void *ctx, int fd, uint64_t size)
{
    return kth_is_now() ? -kth.errnum : kth.real->truncate(ctx, fd, size);
}

static int kth_mkdir(void *ctx, const char *path, mode_t mode)
{
    return kth_is_now() ? -kth.errnum : kth.real->mkdir(ctx, path, mode);
}

static int kth_rename(void *ctx, const char *from, const char *to)
{
    return kth_is_now() ? -kth.errnum : kth.real->rename(ctx, from, to);
}

static int kth_unlink(void *ctx, const char *path)
{
    return kth_is_now() ? -kth.errnum : kth.real->unlink(ctx, path);
}

static int kth_rmdir(void *ctx, const char *path)
{
    return kth_is_now() ? -kth.errnum : kth.real->rmdir(ctx, path);
}

static int kth_lock(void *ctx, int fd, uint64_t from, uint64_t n, enum io_lock how)
{
    return kth_is_now() ? -kth.errnum : kth.real->lock(ctx, fd, from, n, how);
}

static int kth_link(void *ctx, const char *from, const char *to)
{
    return kth_is_now() ? -kth.errnum : kth.real->link(ctx, from, to);
}

static int kth_symlink(void *ctx, const char *target, const char *path)
{
    return kth_is_now() ? -kth.errnum : kth.real->symlink(ctx, target, path);
}

static ssize_t kth_readlink(void *ctx, const char *path, char *target, size_t room)
{
    return kth_is_now() ? -kth.errnum : kth.real->readlink(ctx, path, target, room);
}

static int kth_list(void *ctx, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
    return kth_is_now() ? -kth.errnum : kth.real->list(ctx, path, fn, arg);
}

static const struct io_ops kth_ops = {
    .open = kth_open,
    .pread = kth_pread,
    .pwrite = kth_pwrite,
    .sync = kth_sync,
    .attributes = kth_attributes,
    .truncate = kth_truncate,
    .close = kth_close,
    .mkdir = kth_mkdir,
    .rename = kth_rename,
    .unlink = kth_unlink,
    .rmdir = kth_rmdir,
    .sync_folder = kth_sync_folder,
    .lock = kth_lock,
    .link = kth_link,
    .symlink = kth_symlink,
    .readlink = kth_readlink,
    .list = kth_list,
};

void unit_kth_begin(struct io *out, uint64_t k, int errnum)
{
    struct io io = io_default();

    kth.real = io.ops;
    kth.k = k;
    kth.count = 0;
    kth.errnum = errnum;
    kth.open_files = 0;
    kth.is_by_thread = 0;
    *out = (struct io){.ops = &kth_ops};
}

void unit_kth_begin_default(uint64_t k, int errnum)
{
    struct io io;

    unit_kth_begin(&io, k, errnum);
    kth.is_by_thread = 1;
    io_replace_default(io.ops, io.ctx);
}

void unit_kth_count(int is_on)
{
    is_counted = is_on;
}

int unit_kth_has_failed(void)
{
    return kth.count > kth.k;
}

int unit_kth_end(void)
{
    if (kth.is_by_thread)
        io_replace_default(NULL, NULL);
    CHECK_IS(kth.open_files, 0);
    return unit_kth_has_failed();
}
