#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "mem_io.h"

static void mem_must(int is_right, const char *what)
{
    if (is_right)
        return;
    fprintf(stderr, "mem_io: %s\n", what);
    abort();
}

struct mem_file *mem_find(struct mem_io *m, const char *name)
{
    for (int i = 0; i < MEM_FILES_MAX; i++)
        if (m->file[i].name[0] && strcmp(m->file[i].name, name) == 0)
            return &m->file[i];
    return NULL;
}

static struct mem_file *mem_new(struct mem_io *m, const char *name)
{
    for (int i = 0; i < MEM_FILES_MAX; i++) {
        if (m->file[i].name[0] || m->is_open[i] > 0)
            continue;
        mem_must(strlen(name) < MEM_NAME_MAX, "a name is too long");
        strcpy(m->file[i].name, name);
        return &m->file[i];
    }
    mem_must(0, "too many files");
    return NULL;
}

static void mem_resize(struct mem_file *f, size_t n)
{
    if (n > f->capacity) {
        f->capacity = 2 * n;
        f->bytes = realloc(f->bytes, f->capacity);
        mem_must(f->bytes != NULL, "no memory");
    }
    if (n > f->n)
        memset(f->bytes + f->n, 0, n - f->n);
    f->n = n;
}

struct mem_file *mem_put(struct mem_io *m, const char *name, const void *bytes, size_t n)
{
    struct mem_file *f = mem_find(m, name);

    f = f ? f : mem_new(m, name);
    mem_resize(f, n);
    if (n > 0)
        memcpy(f->bytes, bytes, n);
    f->hole = 0;
    return f;
}

void mem_remove(struct mem_io *m, const char *name)
{
    struct mem_file *f = mem_find(m, name);

    if (!f)
        return;
    free(f->bytes);
    *f = (struct mem_file){0};
}

static int mem_has_folder(const struct mem_io *m, const char *path)
{
    size_t n = strlen(path);

    for (int i = 0; i < MEM_FILES_MAX; i++)
        if (strncmp(m->file[i].name, path, n) == 0 && m->file[i].name[n] == '/')
            return 1;
    return 0;
}

static int mem_open(void *ctx, const char *path, int flags, mode_t mode)
{
    struct mem_io *m = ctx;
    int rc = -ENOENT;

    (void)mode;
    if (flags & O_DIRECT)
        return -EINVAL;
    pthread_mutex_lock(&m->lock);
    struct mem_file *f = mem_find(m, path);
    if (f && (flags & O_CREAT) && (flags & O_EXCL))
        rc = -EEXIST;
    else if (f || (flags & O_CREAT))
        rc = (int)((f ? f : mem_new(m, path)) - m->file);
    else if (mem_has_folder(m, path))
        rc = MEM_FILES_MAX;
    if (rc >= 0)
        m->is_open[rc]++;
    pthread_mutex_unlock(&m->lock);
    return rc;
}

static ssize_t mem_pread(void *ctx, int fd, void *bytes, size_t n, uint64_t offset)
{
    struct mem_io *m = ctx;
    const struct mem_file *f = &m->file[fd];

    if (fd == MEM_FILES_MAX)
        return -EISDIR;
    pthread_mutex_lock(&m->lock);
    uint64_t size = f->n + f->hole, left = offset < size ? size - offset : 0;
    n = n < left ? n : (size_t)left;
    size_t there = offset < f->n ? f->n - (size_t)offset : 0, here = n < there ? n : there;
    if (here > 0)
        memcpy(bytes, f->bytes + offset, here);
    memset((uint8_t *)bytes + here, 0, n - here);
    pthread_mutex_unlock(&m->lock);
    return offset > INT64_MAX ? -EINVAL : (ssize_t)n;
}

static ssize_t mem_pwrite(void *ctx, int fd, const void *bytes, size_t n, uint64_t offset)
{
    struct mem_io *m = ctx;
    struct mem_file *f = &m->file[fd];

    pthread_mutex_lock(&m->lock);
    if (offset + n > f->n)
        mem_resize(f, (size_t)offset + n);
    memcpy(f->bytes + offset, bytes, n);
    pthread_mutex_unlock(&m->lock);
    return (ssize_t)n;
}

static int mem_sync(void *ctx, int fd)
{
    (void)ctx;
    (void)fd;
    return 0;
}

static int mem_attributes(void *ctx, int fd, struct io_attributes *out)
{
    struct mem_io *m = ctx;

    *out = (struct io_attributes){.size = m->file[fd].n + m->file[fd].hole, .is_regular = 1};
    out->stored = out->size;
    return 0;
}

static int mem_truncate(void *ctx, int fd, uint64_t size)
{
    struct mem_io *m = ctx;

    mem_resize(&m->file[fd], (size_t)size);
    return 0;
}

static int mem_close(void *ctx, int fd)
{
    struct mem_io *m = ctx;

    pthread_mutex_lock(&m->lock);
    mem_must(m->is_open[fd] > 0, "a file was closed twice");
    m->is_open[fd]--;
    pthread_mutex_unlock(&m->lock);
    return 0;
}

static int mem_mkdir(void *ctx, const char *path, mode_t mode)
{
    (void)ctx;
    (void)path;
    (void)mode;
    return 0;
}

static int mem_rename(void *ctx, const char *from, const char *to)
{
    struct mem_file *f = mem_find(ctx, from);

    if (!f)
        return -ENOENT;
    mem_remove(ctx, to);
    strcpy(f->name, to);
    return 0;
}

static int mem_unlink(void *ctx, const char *path)
{
    if (!mem_find(ctx, path))
        return -ENOENT;
    mem_remove(ctx, path);
    return 0;
}

static int mem_rmdir(void *ctx, const char *path)
{
    (void)ctx;
    (void)path;
    return 0;
}

static int mem_sync_folder(void *ctx, const char *path)
{
    (void)ctx;
    (void)path;
    return 0;
}

/* One process, which does not lock itself out. */
static int mem_lock(void *ctx, int fd, uint64_t from, uint64_t n, enum io_lock how)
{
    (void)ctx, (void)fd, (void)from, (void)n, (void)how;
    return 0;
}

/* Files have one name each here: the old one goes. */
static int mem_link(void *ctx, const char *from, const char *to)
{
    return mem_find(ctx, to) ? -EEXIST : mem_rename(ctx, from, to);
}

static int mem_symlink(void *ctx, const char *target, const char *path)
{
    (void)ctx;
    (void)target;
    (void)path;
    return -EPERM;
}

static ssize_t mem_readlink(void *ctx, const char *path, char *target, size_t room)
{
    (void)ctx;
    (void)path;
    (void)target;
    (void)room;
    return -EINVAL;
}

/* Whether a file before the `i`-th is in the same entry of the folder, of whose name it has the first `n` bytes. */
static int mem_is_listed(const struct mem_io *m, int i, size_t n)
{
    const char *name = m->file[i].name;

    for (int k = 0; k < i; k++)
        if (strncmp(m->file[k].name, name, n) == 0 && (m->file[k].name[n] == '\0' || m->file[k].name[n] == '/'))
            return 1;
    return 0;
}

static int mem_list(void *ctx, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
    struct mem_io *m = ctx;
    size_t n = strlen(path);
    int rc = 0;

    if (mem_find(m, path))
        return -ENOTDIR;
    if (!mem_has_folder(m, path))
        return -ENOENT;
    for (int i = 0; i < MEM_FILES_MAX && rc == 0; i++) {
        char entry[MEM_NAME_MAX];
        if (strncmp(m->file[i].name, path, n) != 0 || m->file[i].name[n] != '/')
            continue;
        strcpy(entry, m->file[i].name + n + 1);
        entry[strcspn(entry, "/")] = '\0';
        if (!mem_is_listed(m, i, n + 1 + strlen(entry)))
            rc = fn(arg, entry);
    }
    return rc;
}

static const struct io_ops mem_ops = {
    .open = mem_open,
    .pread = mem_pread,
    .pwrite = mem_pwrite,
    .sync = mem_sync,
    .attributes = mem_attributes,
    .truncate = mem_truncate,
    .close = mem_close,
    .mkdir = mem_mkdir,
    .rename = mem_rename,
    .unlink = mem_unlink,
    .rmdir = mem_rmdir,
    .sync_folder = mem_sync_folder,
    .lock = mem_lock,
    .link = mem_link,
    .symlink = mem_symlink,
    .readlink = mem_readlink,
    .list = mem_list,
};

void mem_io_begin(struct mem_io *m)
{
    memset(m, 0, sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    io_replace_default(&mem_ops, m);
}

uint64_t mem_io_end(struct mem_io *m)
{
    uint64_t open = 0;

    io_replace_default(NULL, NULL);
    for (int i = 0; i <= MEM_FILES_MAX; i++)
        open += m->is_open[i];
    for (int i = 0; i < MEM_FILES_MAX; i++)
        free(m->file[i].bytes);
    pthread_mutex_destroy(&m->lock);
    memset(m, 0, sizeof *m);
    return open;
}
