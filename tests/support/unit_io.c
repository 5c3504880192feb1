#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include "unit_help.h"
#include "unit_io.h"

#define FILES_MAX 1024 /* by descriptor */

static struct {
    const struct io_ops *real;
    pthread_mutex_t lock;
    pthread_cond_t released;
    struct unit_file {
        char path[512];
        int is_open, is_direct;
    } file[FILES_MAX];
    unsigned slow[OP_COUNT];
    uint64_t count[OP_COUNT];
    unsigned now[OP_COUNT], most[OP_COUNT];
    const char *held; /* NULL: none */
    uint64_t held_count;
    struct {
        enum unit_op op;
        const char *name;
        uint64_t skip, count;
        int errnum;
    } rule;
    uint64_t failures;
    struct {
        enum unit_op op;
        const char *name; /* NULL: none */
        void (*fn)(void *arg);
        void *arg;
    } call;
    int is_fake, direct_errnum, is_short;
    const char *shrunk; /* NULL: none */
    uint64_t shrunk_size;
} io = {.lock = PTHREAD_MUTEX_INITIALIZER, .released = PTHREAD_COND_INITIALIZER};

/* Come in, wait, and say whether it fails; the operation itself follows, and unit_leave. */
static int unit_enter(enum unit_op op, const char *path)
{
    int rc = 0, is_called;

    pthread_mutex_lock(&io.lock);
    is_called = io.call.name && io.call.op == op && strstr(path, io.call.name);
    if (is_called)
        io.call.name = NULL;
    pthread_mutex_unlock(&io.lock);
    if (is_called)
        io.call.fn(io.call.arg);
    pthread_mutex_lock(&io.lock);
    io.count[op]++;
    if (++io.now[op] > io.most[op])
        io.most[op] = io.now[op];
    if (op == OP_WRITE && io.held && strstr(path, io.held)) {
        io.held_count++;
        while (io.held && strstr(path, io.held))
            pthread_cond_wait(&io.released, &io.lock);
    }
    if (io.rule.count > 0 && io.rule.op == op && strstr(path, io.rule.name)) {
        if (io.rule.skip > 0) {
            io.rule.skip--;
        } else {
            io.rule.count--;
            io.failures++;
            rc = -io.rule.errnum;
        }
    }
    unsigned slow = io.slow[op];
    pthread_mutex_unlock(&io.lock);
    if (slow > 0)
        usleep(slow);
    return rc;
}

static void unit_leave(enum unit_op op)
{
    pthread_mutex_lock(&io.lock);
    io.now[op]--;
    pthread_mutex_unlock(&io.lock);
}

/* What is known of an open file. */
static struct unit_file unit_file_of(int fd)
{
    struct unit_file f = {0};

    pthread_mutex_lock(&io.lock);
    if (fd >= 0 && fd < FILES_MAX)
        f = io.file[fd];
    pthread_mutex_unlock(&io.lock);
    return f;
}

static int unit_open_file(void *ctx, const char *path, int flags, mode_t mode)
{
    int is_direct = (flags & O_DIRECT) != 0, rc = unit_enter(OP_OPEN, path);

    if (rc == 0)
        rc = io.real->open(ctx, path, io.is_fake ? flags & ~O_DIRECT : flags, mode);
    pthread_mutex_lock(&io.lock);
    if (rc >= 0 && rc < FILES_MAX) {
        io.file[rc] = (struct unit_file){.is_open = 1, .is_direct = is_direct};
        snprintf(io.file[rc].path, sizeof io.file[rc].path, "%s", path);
    }
    io.now[OP_OPEN]--;
    pthread_mutex_unlock(&io.lock);
    return rc;
}

static ssize_t unit_pread(void *ctx, int fd, void *bytes, size_t n, uint64_t offset)
{
    struct unit_file f = unit_file_of(fd);
    ssize_t rc = unit_enter(OP_READ, f.path);

    rc = rc ? rc : io.real->pread(ctx, fd, bytes, n, offset);
    unit_leave(OP_READ);
    return rc;
}

static ssize_t unit_pwrite_direct(void *ctx, int fd, const void *bytes, size_t n, uint64_t offset)
{
    if (!io.is_fake)
        return io.real->pwrite(ctx, fd, bytes, n, offset);
    if ((uintptr_t)bytes % 512 != 0 || n % 512 != 0 || offset % 512 != 0 || io.direct_errnum)
        return -(io.direct_errnum ? io.direct_errnum : EINVAL);
    return io.real->pwrite(ctx, fd, bytes, io.is_short ? n / 2 + 100 : n, offset);
}

static ssize_t unit_pwrite(void *ctx, int fd, const void *bytes, size_t n, uint64_t offset)
{
    struct unit_file f = unit_file_of(fd);
    ssize_t rc = f.is_open ? unit_enter(OP_WRITE, f.path) : -EBADF;

    if (rc == 0 && f.is_direct) {
        rc = unit_enter(OP_DIRECT, f.path);
        rc = rc ? rc : unit_pwrite_direct(ctx, fd, bytes, n, offset);
        unit_leave(OP_DIRECT);
    } else if (rc == 0) {
        rc = io.real->pwrite(ctx, fd, bytes, n, offset);
    }
    if (f.is_open)
        unit_leave(OP_WRITE);
    return rc;
}

static int unit_sync(void *ctx, int fd)
{
    int rc = unit_enter(OP_SYNC, unit_file_of(fd).path);

    (void)ctx;
    unit_leave(OP_SYNC);
    return rc;
}

static int unit_attributes(void *ctx, int fd, struct io_attributes *out)
{
    int rc = io.real->attributes(ctx, fd, out);

    if (io.shrunk && strstr(io.file[fd].path, io.shrunk)) {
        io.shrunk = NULL;
        CHECK(truncate(io.file[fd].path, (off_t)io.shrunk_size) == 0);
    }
    return rc;
}

static int unit_truncate(void *ctx, int fd, uint64_t size)
{
    int rc = unit_enter(OP_TRUNCATE, unit_file_of(fd).path);

    rc = rc ? rc : io.real->truncate(ctx, fd, size);
    unit_leave(OP_TRUNCATE);
    return rc;
}

static int unit_close(void *ctx, int fd)
{
    pthread_mutex_lock(&io.lock);
    int is_open = fd >= 0 && fd < FILES_MAX && io.file[fd].is_open;
    if (is_open)
        io.file[fd] = (struct unit_file){0};
    pthread_mutex_unlock(&io.lock);
    if (!is_open)
        io.failures += 1u << 20; /* closed twice: some other file's descriptor, next time */
    return is_open ? io.real->close(ctx, fd) : -EBADF;
}

static int unit_mkdir(void *ctx, const char *path, mode_t mode)
{
    return io.real->mkdir(ctx, path, mode);
}

static int unit_rename(void *ctx, const char *from, const char *to)
{
    return io.real->rename(ctx, from, to);
}

static int unit_unlink(void *ctx, const char *path)
{
    return io.real->unlink(ctx, path);
}

static int unit_rmdir(void *ctx, const char *path)
{
    return io.real->rmdir(ctx, path);
}

static int unit_sync_folder(void *ctx, const char *path)
{
    (void)ctx;
    (void)path;
    return 0;
}

static int unit_lock(void *ctx, int fd, uint64_t from, uint64_t n, enum io_lock how)
{
    int is_waiting = how == IO_LOCK || how == IO_LOCK_SHARED,
        rc = is_waiting ? unit_enter(OP_LOCK, unit_file_of(fd).path) : 0;

    rc = rc ? rc : io.real->lock(ctx, fd, from, n, how);
    if (is_waiting)
        unit_leave(OP_LOCK);
    return rc;
}

static int unit_link(void *ctx, const char *from, const char *to)
{
    int rc = unit_enter(OP_LINK, to);

    rc = rc ? rc : io.real->link(ctx, from, to);
    unit_leave(OP_LINK);
    return rc;
}

static int unit_symlink(void *ctx, const char *target, const char *path)
{
    return io.real->symlink(ctx, target, path);
}

static ssize_t unit_readlink(void *ctx, const char *path, char *target, size_t room)
{
    return io.real->readlink(ctx, path, target, room);
}

static int unit_list(void *ctx, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
    return io.real->list(ctx, path, fn, arg);
}

static const struct io_ops unit_ops = {
    .open = unit_open_file,
    .pread = unit_pread,
    .pwrite = unit_pwrite,
    .sync = unit_sync,
    .attributes = unit_attributes,
    .truncate = unit_truncate,
    .close = unit_close,
    .mkdir = unit_mkdir,
    .rename = unit_rename,
    .unlink = unit_unlink,
    .rmdir = unit_rmdir,
    .sync_folder = unit_sync_folder,
    .lock = unit_lock,
    .link = unit_link,
    .symlink = unit_symlink,
    .readlink = unit_readlink,
    .list = unit_list,
};

void unit_io_begin(void)
{
    memset(io.file, 0, sizeof io.file);
    memset(io.slow, 0, sizeof io.slow);
    memset(io.count, 0, sizeof io.count);
    memset(io.now, 0, sizeof io.now);
    memset(io.most, 0, sizeof io.most);
    memset(&io.rule, 0, sizeof io.rule);
    memset(&io.call, 0, sizeof io.call);
    io.held = io.shrunk = NULL;
    io.held_count = io.failures = 0;
    io.is_fake = io.direct_errnum = io.is_short = 0;
    io_replace_default(NULL, NULL);
    io.real = io_default().ops;
    io_replace_default(&unit_ops, NULL);
}

void unit_io_end(void)
{
    int open_files = 0;

    for (int i = 0; i < FILES_MAX; i++)
        open_files += io.file[i].is_open;
    io_replace_default(NULL, NULL);
    CHECK_IS(open_files, 0);
}

void unit_io_slow(enum unit_op op, unsigned microseconds)
{
    pthread_mutex_lock(&io.lock);
    io.slow[op] = microseconds;
    pthread_mutex_unlock(&io.lock);
}

void unit_io_hold(const char *name)
{
    pthread_mutex_lock(&io.lock);
    io.held = name;
    io.held_count = 0;
    pthread_mutex_unlock(&io.lock);
}

void unit_io_release(void)
{
    pthread_mutex_lock(&io.lock);
    io.held = NULL;
    pthread_cond_broadcast(&io.released);
    pthread_mutex_unlock(&io.lock);
}

uint64_t unit_io_held(void)
{
    pthread_mutex_lock(&io.lock);
    uint64_t n = io.held_count;
    pthread_mutex_unlock(&io.lock);
    return n;
}

void unit_io_fail(enum unit_op op, const char *name, uint64_t skip, uint64_t count, int errnum)
{
    pthread_mutex_lock(&io.lock);
    io.rule.op = op;
    io.rule.name = name;
    io.rule.skip = skip;
    io.rule.count = count;
    io.rule.errnum = errnum;
    io.failures = 0;
    pthread_mutex_unlock(&io.lock);
}

void unit_io_call(enum unit_op op, const char *name, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&io.lock);
    io.call.op = op;
    io.call.name = name;
    io.call.fn = fn;
    io.call.arg = arg;
    pthread_mutex_unlock(&io.lock);
}

uint64_t unit_io_failures(void)
{
    pthread_mutex_lock(&io.lock);
    uint64_t n = io.failures;
    pthread_mutex_unlock(&io.lock);
    return n;
}

uint64_t unit_io_count(enum unit_op op)
{
    pthread_mutex_lock(&io.lock);
    uint64_t n = io.count[op];
    pthread_mutex_unlock(&io.lock);
    return n;
}

unsigned unit_io_most(enum unit_op op)
{
    pthread_mutex_lock(&io.lock);
    unsigned n = io.most[op];
    pthread_mutex_unlock(&io.lock);
    return n;
}

void unit_io_shrink(const char *name, uint64_t size)
{
    io.shrunk = name;
    io.shrunk_size = size;
}

void unit_io_fake_direct(int errnum, int is_short)
{
    pthread_mutex_lock(&io.lock);
    io.is_fake = 1;
    io.direct_errnum = errnum;
    io.is_short = is_short;
    pthread_mutex_unlock(&io.lock);
}

struct unit_cached unit_cached;

int unit_cached_refresh(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    unit_cached.left -= unit_cached.left > 0;
    unit_cached.asked++;
    return unit_cached.is_client_cached;
}
