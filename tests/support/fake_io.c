#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "fake_io.h"

ssize_t fake_do(struct fake_call *c)
{
    const struct io_ops *real = c->io->real;
    void *ctx = c->io->ctx;

    switch (c->op) {
    case FAKE_OPEN:
        return real->open(ctx, c->path, c->flags, c->mode);
    case FAKE_READ:
        return real->pread(ctx, c->fd, c->to, c->n, c->offset);
    case FAKE_WRITE:
        return real->pwrite(ctx, c->fd, c->data, c->n, c->offset);
    case FAKE_SYNC:
        return real->sync(ctx, c->fd);
    case FAKE_ATTRIBUTES:
        return real->attributes(ctx, c->fd, c->attributes);
    case FAKE_ATTRIBUTES_IN:
        return real->attributes_in(ctx, c->fd, c->from, c->attributes);
    case FAKE_REFRESH:
        return real->refresh ? real->refresh(ctx, c->fd) : 0;
    case FAKE_TRUNCATE:
        return real->truncate(ctx, c->fd, c->offset);
    case FAKE_ALLOCATE:
        return real->allocate ? real->allocate(ctx, c->fd, c->offset, c->length) : -EOPNOTSUPP;
    case FAKE_ADVISE:
        if (real->advise)
            real->advise(ctx, c->fd, c->offset, c->length);
        return 0;
    case FAKE_CLOSE:
        return real->close(ctx, c->fd);
    case FAKE_MKDIR:
        return real->mkdir(ctx, c->path, c->mode);
    case FAKE_RENAME:
        return real->rename(ctx, c->from, c->path);
    case FAKE_EXCHANGE:
        return real->exchange(ctx, c->from, c->path);
    case FAKE_UNLINK:
        return real->unlink(ctx, c->path);
    case FAKE_RMDIR:
        return real->rmdir(ctx, c->path);
    case FAKE_SYNC_FOLDER:
        return real->sync_folder(ctx, c->path);
    case FAKE_LOCK:
        return real->lock(ctx, c->fd, c->offset, c->length, (enum io_lock)c->flags);
    case FAKE_LINK:
        return real->link(ctx, c->from, c->path);
    case FAKE_SYMLINK:
        return real->symlink(ctx, c->from, c->path);
    case FAKE_READLINK:
        return real->readlink(ctx, c->path, c->to, c->n);
    default:
        return real->list(ctx, c->path, c->each, c->arg);
    }
}

/* An operation on names. */
static ssize_t fake_named(void *ctx, struct fake_call c)
{
    c.io = ctx;
    return c.io->fn(&c);
}

/* One on an open file. */
static ssize_t fake_open_file(void *ctx, struct fake_call c)
{
    struct fake_io *f = ctx;
    struct fake_file file = {.is_open = 0};

    pthread_mutex_lock(&f->lock);
    if (c.fd >= 0 && c.fd < FAKE_FILES)
        file = f->file[c.fd];
    if (c.op == FAKE_CLOSE && file.is_open) {
        f->file[c.fd].is_open = 0;
        f->file[c.fd].is_closed = 1;
        f->open_files--;
    }
    int is_misuse = c.op == FAKE_CLOSE && file.is_closed;
    f->misuses += is_misuse;
    pthread_mutex_unlock(&f->lock);
    c.io = f;
    c.path = file.path;
    if (c.op != FAKE_LOCK)
        c.flags = file.flags;
    return is_misuse ? -EBADF : f->fn(&c);
}

static int fake_open(void *ctx, const char *path, int flags, mode_t mode)
{
    struct fake_io *f = ctx;
    int fd = (int)fake_named(ctx, (struct fake_call){.op = FAKE_OPEN, .path = path, .flags = flags, .mode = mode});

    if (fd < 0)
        return fd;
    pthread_mutex_lock(&f->lock);
    int is_known = fd < FAKE_FILES;
    if (is_known) {
        f->file[fd] = (struct fake_file){.is_open = 1, .flags = flags};
        snprintf(f->file[fd].path, sizeof f->file[fd].path, "%s", path);
        f->open_files++;
    }
    pthread_mutex_unlock(&f->lock);
    if (!is_known)
        f->real->close(f->ctx, fd);
    return is_known ? fd : -EMFILE;
}

static ssize_t fake_pread(void *ctx, int fd, void *bytes, size_t n, uint64_t offset)
{
    return fake_open_file(ctx, (struct fake_call){.op = FAKE_READ, .fd = fd, .to = bytes, .n = n, .offset = offset});
}

static ssize_t fake_pwrite(void *ctx, int fd, const void *bytes, size_t n, uint64_t offset)
{
    return fake_open_file(ctx, (struct fake_call){.op = FAKE_WRITE, .fd = fd, .data = bytes, .n = n, .offset = offset});
}

static int fake_sync(void *ctx, int fd)
{
    return (int)fake_open_file(ctx, (struct fake_call){.op = FAKE_SYNC, .fd = fd});
}

static int fake_attributes(void *ctx, int fd, struct io_attributes *out)
{
    return (int)fake_open_file(ctx, (struct fake_call){.op = FAKE_ATTRIBUTES, .fd = fd, .attributes = out});
}

/* By the path that the name has. */
static int fake_attributes_in(void *ctx, int fd, const char *name, struct io_attributes *out)
{
    struct fake_io *f = ctx;
    char path[FAKE_PATH_MAX] = "";

    pthread_mutex_lock(&f->lock);
    if (fd >= 0 && fd < FAKE_FILES)
        snprintf(path, sizeof path, "%.*s/%s", FAKE_PATH_MAX / 2, f->file[fd].path, name);
    pthread_mutex_unlock(&f->lock);
    return (int)fake_named(
        ctx, (struct fake_call){.op = FAKE_ATTRIBUTES_IN, .path = path, .from = name, .fd = fd, .attributes = out});
}

static int fake_refresh(void *ctx, int fd)
{
    return (int)fake_open_file(ctx, (struct fake_call){.op = FAKE_REFRESH, .fd = fd});
}

static int fake_truncate(void *ctx, int fd, uint64_t size)
{
    return (int)fake_open_file(ctx, (struct fake_call){.op = FAKE_TRUNCATE, .fd = fd, .offset = size});
}

static int fake_allocate(void *ctx, int fd, uint64_t offset, uint64_t n)
{
    return (int)fake_open_file(ctx, (struct fake_call){.op = FAKE_ALLOCATE, .fd = fd, .offset = offset, .length = n});
}

static void fake_advise(void *ctx, int fd, uint64_t offset, uint64_t n)
{
    fake_open_file(ctx, (struct fake_call){.op = FAKE_ADVISE, .fd = fd, .offset = offset, .length = n});
}

static int fake_close(void *ctx, int fd)
{
    return (int)fake_open_file(ctx, (struct fake_call){.op = FAKE_CLOSE, .fd = fd});
}

static int fake_mkdir(void *ctx, const char *path, mode_t mode)
{
    return (int)fake_named(ctx, (struct fake_call){.op = FAKE_MKDIR, .path = path, .mode = mode});
}

static int fake_rename(void *ctx, const char *from, const char *to)
{
    return (int)fake_named(ctx, (struct fake_call){.op = FAKE_RENAME, .from = from, .path = to});
}

static int fake_exchange(void *ctx, const char *a, const char *b)
{
    return (int)fake_named(ctx, (struct fake_call){.op = FAKE_EXCHANGE, .from = a, .path = b});
}

static int fake_unlink(void *ctx, const char *path)
{
    return (int)fake_named(ctx, (struct fake_call){.op = FAKE_UNLINK, .path = path});
}

static int fake_rmdir(void *ctx, const char *path)
{
    return (int)fake_named(ctx, (struct fake_call){.op = FAKE_RMDIR, .path = path});
}

static int fake_sync_folder(void *ctx, const char *path)
{
    return (int)fake_named(ctx, (struct fake_call){.op = FAKE_SYNC_FOLDER, .path = path});
}

static int fake_lock(void *ctx, int fd, uint64_t from, uint64_t n, enum io_lock how)
{
    return (int)fake_open_file(
        ctx, (struct fake_call){.op = FAKE_LOCK, .fd = fd, .offset = from, .length = n, .flags = (int)how});
}

static int fake_link(void *ctx, const char *from, const char *to)
{
    return (int)fake_named(ctx, (struct fake_call){.op = FAKE_LINK, .from = from, .path = to});
}

static int fake_symlink(void *ctx, const char *target, const char *path)
{
    return (int)fake_named(ctx, (struct fake_call){.op = FAKE_SYMLINK, .from = target, .path = path});
}

static ssize_t fake_readlink(void *ctx, const char *path, char *target, size_t room)
{
    return fake_named(ctx, (struct fake_call){.op = FAKE_READLINK, .path = path, .to = target, .n = room});
}

static int fake_list(void *ctx, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
    return (int)fake_named(ctx, (struct fake_call){.op = FAKE_LIST, .path = path, .each = fn, .arg = arg});
}

void fake_io_init(struct fake_io *f, fake_fn fn)
{
    struct io below = io_default();

    memset(f, 0, sizeof *f);
    pthread_mutex_init(&f->lock, NULL);
    f->ops = (struct io_ops){.open = fake_open,
                             .pread = fake_pread,
                             .pwrite = fake_pwrite,
                             .sync = fake_sync,
                             .attributes = fake_attributes,
                             .truncate = fake_truncate,
                             .close = fake_close,
                             .mkdir = fake_mkdir,
                             .rename = fake_rename,
                             .exchange = fake_exchange,
                             .unlink = fake_unlink,
                             .rmdir = fake_rmdir,
                             .sync_folder = fake_sync_folder,
                             .lock = fake_lock,
                             .link = fake_link,
                             .symlink = fake_symlink,
                             .readlink = fake_readlink,
                             .list = fake_list};
    f->ops.attributes_in = below.ops->attributes_in ? fake_attributes_in : NULL;
    f->real = below.ops;
    f->ctx = below.ctx;
    f->fn = fn;
}

void fake_io_has_all(struct fake_io *f)
{
    f->ops.refresh = fake_refresh;
    f->ops.allocate = fake_allocate;
    f->ops.advise = fake_advise;
}

void fake_io_begin(struct fake_io *f, fake_fn fn)
{
    fake_io_init(f, fn);
    io_replace_default(&f->ops, f);
}

int fake_io_end(struct fake_io *f)
{
    io_replace_default(NULL, NULL);
    return f->open_files + f->misuses;
}

static uint64_t operations_left;

static ssize_t die_later(struct fake_call *c)
{
    if (operations_left-- == 0)
        raise(SIGKILL);
    return c->op == FAKE_SYNC || c->op == FAKE_SYNC_FOLDER ? 0 : fake_do(c);
}

void fake_io_begin_killed(struct fake_io *f, uint64_t operations)
{
    operations_left = operations;
    fake_io_begin(f, die_later);
}
