#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "io/io.h"
#include "torture_io.h"
#include "torture_rng.h"

#define FDS_MAX           1024
#define TORTURE_PATH_ROOM 512
#define SECTOR            512u
#define MANIFEST_OPS      64
#define PAGE              4096u

/* A file that was written to, by any descriptor. */
struct file {
    struct file *next;
    char path[TORTURE_PATH_ROOM];
    int is_gone;               /* it has no name any more */
    uint8_t *durable;          /* its bytes as the disk has them for certain */
    uint64_t size;             /* of these */
    uint64_t dirty, dirty_end; /* what the next sync makes durable; all between */
};

/* A change of a folder that was not synced since. */
enum change_kind { CHANGE_CREATE, CHANGE_MKDIR, CHANGE_RENAME, CHANGE_UNLINK, CHANGE_RMDIR };
struct change {
    struct change *older;
    enum change_kind kind;
    char path[TORTURE_PATH_ROOM], to[TORTURE_PATH_ROOM];
    struct file *lost; /* the file that was removed, or replaced by the renamed one; NULL: none */
};

static struct {
    pthread_mutex_t lock;
    const struct io_ops *real;
    enum torture_fault fault;
    uint64_t at, count;
    uint64_t dies_at;
    uint64_t manifest[MANIFEST_OPS]; /* operations on it, the last ones */
    uint64_t manifest_count;
    int has_failed, is_dead, open_files;
    struct torture_rng rng;
    struct file *files;
    struct change *changes; /* the newest first */
    struct file *by_fd[FDS_MAX];
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *need(void *p)
{
    if (!p) {
        fputs("torture: no memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return p;
}

static void copy_path(char to[TORTURE_PATH_ROOM], const char *from)
{
    if (snprintf(to, TORTURE_PATH_ROOM, "%s", from) >= TORTURE_PATH_ROOM) {
        fprintf(stderr, "torture: %s: too long\n", from);
        exit(EXIT_FAILURE);
    }
}

/* ---- What is durable ---- */

static int is_in(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && path[n] == '/' && !strchr(path + n + 1, '/');
}

static struct file *file_at(const char *path)
{
    for (struct file *f = disk.files; f; f = f->next)
        if (!f->is_gone && strcmp(f->path, path) == 0)
            return f;
    return NULL;
}

static uint8_t *load(const char *path, uint64_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) != 0) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    uint8_t *bytes = need(malloc((size_t)st.st_size + 1));
    ssize_t got = pread(fd, bytes, (size_t)st.st_size, 0);
    close(fd);
    *size = got < 0 ? 0 : (uint64_t)got;
    return bytes;
}

/* Nothing is done if the folder is gone. */
static void save(const char *path, const uint8_t *bytes, uint64_t size)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0 && errno == ENOENT)
        return;
    if (fd < 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size) {
        fprintf(stderr, "torture: %s: cannot write what is left after the power loss: %s\n", path, strerror(errno));
        exit(EXIT_FAILURE);
    }
    close(fd);
}

static void note_change(enum change_kind kind, const char *path, const char *to, struct file *lost)
{
    struct change *c = need(calloc(1, sizeof *c));

    c->kind = kind;
    copy_path(c->path, path);
    copy_path(c->to, to);
    c->lost = lost;
    c->older = disk.changes;
    disk.changes = c;
}

/* A file about which nothing is known: all that it has is durable, but nothing of a new one. */
static struct file *note_file(const char *path, int is_new)
{
    struct file *f = file_at(path);
    if (f)
        return f;
    f = need(calloc(1, sizeof *f));
    copy_path(f->path, path);
    f->dirty = UINT64_MAX;
    if (!is_new)
        f->durable = load(path, &f->size);
    f->next = disk.files;
    disk.files = f;
    return f;
}

/* The kernel writes whole pages. */
static void note_dirty(struct file *f, uint64_t from, uint64_t end)
{
    if (!f)
        return;
    from -= from % PAGE;
    end = end > UINT64_MAX - PAGE ? end : end + PAGE - 1 - (end + PAGE - 1) % PAGE;
    f->dirty = from < f->dirty ? from : f->dirty;
    f->dirty_end = end > f->dirty_end ? end : f->dirty_end;
}

static void note_sync(struct file *f)
{
    uint64_t size = 0;
    uint8_t *now = f && f->dirty < f->dirty_end ? load(f->path, &size) : NULL;

    if (now) {
        f->durable = need(realloc(f->durable, size + 1));
        if (size > f->size)
            memset(f->durable + f->size, 0, size - f->size);
        uint64_t end = f->dirty_end < size ? f->dirty_end : size;
        if (f->dirty < end)
            memcpy(f->durable + f->dirty, now + f->dirty, end - f->dirty);
        f->size = size;
    }
    free(now);
}

static void forget_dirty(struct file *f)
{
    if (f) {
        f->dirty = UINT64_MAX;
        f->dirty_end = 0;
    }
}

static void forget_changes(const char *folder)
{
    for (struct change **at = &disk.changes; *at;) {
        struct change *c = *at;
        if (!folder || is_in(c->path, folder)) {
            *at = c->older;
            free(c);
        } else {
            at = &c->older;
        }
    }
}

static void forget_all(void)
{
    forget_changes(NULL);
    while (disk.files) {
        struct file *f = disk.files;
        disk.files = f->next;
        free(f->durable);
        free(f);
    }
    memset(disk.by_fd, 0, sizeof disk.by_fd);
}

/* ---- The power goes ---- */

/* How much of what is not durable gets lost: of 8. */
static uint64_t choose_share(void)
{
    static const uint64_t shares[] = {0, 1, 4, 7, 8};

    return shares[torture_below(&disk.rng, 5)];
}

static int chance(uint64_t of_8)
{
    return torture_below(&disk.rng, 8) < of_8;
}

static uint64_t choose_size(uint64_t durable, uint64_t now, uint64_t share)
{
    uint64_t low = durable < now ? durable : now, high = durable < now ? now : durable;

    if (share == 0 || share == 8 || low == high || chance(4))
        return chance(share) ? durable : now;
    uint64_t size = low + torture_below(&disk.rng, high - low + 1);
    size -= size % SECTOR;
    return size < low ? low : size;
}

static void lose_data(struct file *f)
{
    uint64_t now_size, share = choose_share();
    uint8_t *now = load(f->path, &now_size);

    if (!now)
        return;
    uint64_t size = choose_size(f->size, now_size, share);
    uint8_t *left = need(calloc(1, size + 1));
    for (uint64_t at = 0; at < size; at += SECTOR) {
        /* What was cut off, but is there, is as it was. */
        int is_old = at >= now_size || chance(share);
        uint64_t end = is_old ? f->size : now_size;
        end = end < size ? end : size;
        if (at < end)
            memcpy(left + at, (is_old ? f->durable : now) + at, end - at < SECTOR ? end - at : SECTOR);
    }
    save(f->path, left, size);
    free(left);
    free(now);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void undo(const struct change *c)
{
    switch (c->kind) {
    case CHANGE_CREATE:
        unlink(c->path);
        break;
    case CHANGE_MKDIR:
        nftw(c->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        break;
    case CHANGE_RENAME:
        if (rename(c->to, c->path) == 0 && c->lost)
            save(c->to, c->lost->durable, c->lost->size);
        break;
    case CHANGE_UNLINK:
        save(c->path, c->lost->durable, c->lost->size);
        break;
    case CHANGE_RMDIR:
        mkdir(c->path, 0777);
        break;
    }
}

void torture_io_lose_power(void)
{
    pthread_mutex_lock(&disk.lock);
    for (struct file *f = disk.files; f; f = f->next)
        if (!f->is_gone)
            lose_data(f);
    uint64_t share = choose_share();
    for (const struct change *c = disk.changes; c; c = c->older)
        if (chance(share))
            undo(c);
    forget_all();
    disk.is_dead = 0;
    pthread_mutex_unlock(&disk.lock);
}

/* ---- Operations ---- */

enum verdict { GO, FAIL, HALF, LAST };

/* What becomes of the next operation, of `n` bytes, or 0. With FAIL, *rc is what it returns. LAST: it is done, but
 * nobody hears of it. `can_wait`: so that a signal can interrupt it. The lock is held until leave. */
static enum verdict enter(size_t n, int can_wait, int *rc)
{
    pthread_mutex_lock(&disk.lock);
    uint64_t k = disk.count++;

    *rc = -EIO;
    disk.is_dead |= k >= disk.dies_at;
    if (disk.is_dead)
        return FAIL;
    if (k != disk.at || disk.fault == TORTURE_NONE || (disk.fault == TORTURE_SHORT && n < 2) ||
        (disk.fault == TORTURE_EINTR && !can_wait))
        return GO;
    disk.has_failed = 1;
    switch (disk.fault) {
    case TORTURE_ENOSPC:
        *rc = -ENOSPC;
        return FAIL;
    case TORTURE_EINTR:
        *rc = -EINTR;
        return FAIL;
    case TORTURE_SHORT:
        return HALF;
    case TORTURE_CRASH:
        disk.is_dead = 1;
        return n >= 2 && chance(4) ? HALF : chance(4) ? LAST : FAIL;
    default:
        return FAIL;
    }
}

static int leave(enum verdict v, int rc)
{
    pthread_mutex_unlock(&disk.lock);
    return v == LAST ? -EIO : rc;
}

/* The operation at hand changes this file. */
static struct file *note_operation(struct file *f)
{
    size_t n = f ? strlen(f->path) : 0;

    if (n > 9 && strcmp(f->path + n - 9, "/MANIFEST") == 0)
        disk.manifest[disk.manifest_count++ % MANIFEST_OPS] = disk.count - 1;
    return f;
}

static struct file *by_fd(int fd)
{
    return fd >= 0 && fd < FDS_MAX ? disk.by_fd[fd] : NULL;
}

static int torture_open(void *ctx, const char *path, int flags, mode_t mode)
{
    int rc;
    enum verdict v = enter(0, 1, &rc);
    int is_new = access(path, F_OK) != 0;

    if (v != FAIL)
        rc = disk.real->open(ctx, path, flags & ~O_DIRECT, mode);
    if (rc >= FDS_MAX) {
        disk.real->close(ctx, rc);
        rc = -EMFILE;
    }
    if (rc >= 0) {
        struct file *f = (flags & O_ACCMODE) == O_RDONLY ? NULL : note_file(path, is_new);
        if (is_new)
            note_change(CHANGE_CREATE, path, "", NULL);
        if (v == LAST) {
            disk.real->close(ctx, rc);
        } else {
            disk.by_fd[rc] = f;
            disk.open_files++;
        }
    }
    return leave(v, rc);
}

static ssize_t torture_pread(void *ctx, int fd, void *bytes, size_t n, uint64_t offset)
{
    int rc;
    enum verdict v = enter(n, 1, &rc);

    leave(v, 0);
    return v == GO                                    ? disk.real->pread(ctx, fd, bytes, n, offset)
           : v == HALF && disk.fault == TORTURE_SHORT ? disk.real->pread(ctx, fd, bytes, n / 2, offset)
                                                      : (ssize_t)rc;
}

static ssize_t torture_pwrite(void *ctx, int fd, const void *bytes, size_t n, uint64_t offset)
{
    int rc;
    enum verdict v = enter(n, 1, &rc);
    ssize_t put = rc;

    if (v == HALF)
        n = disk.fault == TORTURE_SHORT ? n / 2 : 1 + (size_t)torture_below(&disk.rng, n - 1);
    if (v != FAIL)
        put = disk.real->pwrite(ctx, fd, bytes, n, offset);
    struct file *f = note_operation(by_fd(fd));
    if (put > 0)
        note_dirty(f, offset, offset + (uint64_t)put);
    if (disk.is_dead)
        put = rc;
    pthread_mutex_unlock(&disk.lock);
    return put;
}

static int torture_sync(void *ctx, int fd)
{
    int rc;
    enum verdict v = enter(0, 1, &rc);

    struct file *f = note_operation(by_fd(fd));
    (void)ctx;
    if (v != FAIL) {
        rc = 0;
        note_sync(f);
    }
    if (rc != -EINTR)
        forget_dirty(f);
    return leave(v, rc);
}

static int torture_attributes(void *ctx, int fd, struct io_attributes *out)
{
    int rc;
    enum verdict v = enter(0, 0, &rc);

    if (v != FAIL)
        rc = disk.real->attributes(ctx, fd, out);
    return leave(v, rc);
}

static int torture_truncate(void *ctx, int fd, uint64_t size)
{
    int rc;
    enum verdict v = enter(0, 1, &rc);

    if (v != FAIL)
        rc = disk.real->truncate(ctx, fd, size);
    if (v != FAIL && rc == 0)
        note_dirty(note_operation(by_fd(fd)), size, UINT64_MAX);
    return leave(v, rc);
}

/* A close that fails has closed nevertheless. */
static int torture_close(void *ctx, int fd)
{
    int rc, real;
    enum verdict v = enter(0, 0, &rc);

    if (fd >= 0 && fd < FDS_MAX)
        disk.by_fd[fd] = NULL;
    disk.open_files--;
    real = disk.real->close(ctx, fd);
    return leave(v, v == FAIL ? rc : real);
}

static int torture_mkdir(void *ctx, const char *path, mode_t mode)
{
    int rc;
    enum verdict v = enter(0, 0, &rc);

    if (v != FAIL)
        rc = disk.real->mkdir(ctx, path, mode);
    if (v != FAIL && rc == 0)
        note_change(CHANGE_MKDIR, path, "", NULL);
    return leave(v, rc);
}

static int torture_rename(void *ctx, const char *from, const char *to)
{
    int rc;
    enum verdict v = enter(0, 0, &rc);
    struct file *replaced = v != FAIL && access(to, F_OK) == 0 ? note_file(to, 0) : NULL;

    if (v != FAIL)
        rc = disk.real->rename(ctx, from, to);
    if (v != FAIL && rc == 0) {
        struct file *f = file_at(from);
        if (replaced)
            replaced->is_gone = 1;
        if (f)
            copy_path(f->path, to);
        note_change(CHANGE_RENAME, from, to, replaced);
    }
    return leave(v, rc);
}

static int torture_unlink(void *ctx, const char *path)
{
    int rc;
    enum verdict v = enter(0, 0, &rc);
    struct file *f = v != FAIL && access(path, F_OK) == 0 ? note_file(path, 0) : NULL;

    if (v != FAIL)
        rc = disk.real->unlink(ctx, path);
    if (f && rc == 0) {
        f->is_gone = 1;
        note_change(CHANGE_UNLINK, path, "", f);
    }
    return leave(v, rc);
}

static int torture_rmdir(void *ctx, const char *path)
{
    int rc;
    enum verdict v = enter(0, 0, &rc);

    if (v != FAIL)
        rc = disk.real->rmdir(ctx, path);
    if (v != FAIL && rc == 0)
        note_change(CHANGE_RMDIR, path, "", NULL);
    return leave(v, rc);
}

static int torture_sync_folder(void *ctx, const char *path)
{
    int rc;
    enum verdict v = enter(0, 1, &rc);

    (void)ctx;
    if (v != FAIL) {
        rc = 0;
        forget_changes(path);
    }
    return leave(v, rc);
}

static int torture_lock(void *ctx, int fd, uint64_t from, uint64_t n, enum io_lock how)
{
    int rc;

    if (how != IO_LOCK_TRY)
        return disk.real->lock(ctx, fd, from, n, how);
    enum verdict v = enter(0, 1, &rc);

    if (v != FAIL)
        rc = disk.real->lock(ctx, fd, from, n, how);
    return leave(v, rc);
}

/* The file is known by its new name from now on; the other goes next. */
static int torture_link(void *ctx, const char *from, const char *to)
{
    int rc;
    enum verdict v = enter(0, 0, &rc);

    if (v != FAIL)
        rc = disk.real->link(ctx, from, to);
    if (v != FAIL && rc == 0) {
        struct file *f = file_at(from);
        if (f)
            copy_path(f->path, to);
        note_change(CHANGE_CREATE, to, "", NULL);
    }
    return leave(v, rc);
}

static int torture_symlink(void *ctx, const char *target, const char *path)
{
    int rc;
    enum verdict v = enter(0, 0, &rc);

    if (v != FAIL)
        rc = disk.real->symlink(ctx, target, path);
    if (v != FAIL && rc == 0)
        note_change(CHANGE_CREATE, path, "", NULL);
    return leave(v, rc);
}

static ssize_t torture_readlink(void *ctx, const char *path, char *target, size_t room)
{
    int rc;
    enum verdict v = enter(0, 0, &rc);
    ssize_t n = v == FAIL ? rc : disk.real->readlink(ctx, path, target, room);

    leave(v, 0);
    return n;
}

static int torture_list(void *ctx, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
    int rc;
    enum verdict v = enter(0, 0, &rc);

    leave(v, 0);
    return v == FAIL ? rc : disk.real->list(ctx, path, fn, arg);
}

static const struct io_ops torture_ops = {
    .open = torture_open,
    .pread = torture_pread,
    .pwrite = torture_pwrite,
    .sync = torture_sync,
    .attributes = torture_attributes,
    .truncate = torture_truncate,
    .close = torture_close,
    .mkdir = torture_mkdir,
    .rename = torture_rename,
    .unlink = torture_unlink,
    .rmdir = torture_rmdir,
    .sync_folder = torture_sync_folder,
    .lock = torture_lock,
    .link = torture_link,
    .symlink = torture_symlink,
    .readlink = torture_readlink,
    .list = torture_list,
};

void torture_io_begin(enum torture_fault fault, uint64_t at, uint64_t seed)
{
    io_replace_default(NULL, NULL);
    disk.real = io_default().ops;
    disk.fault = fault;
    disk.at = at;
    disk.count = disk.manifest_count = 0;
    disk.dies_at = UINT64_MAX;
    disk.has_failed = disk.is_dead = disk.open_files = 0;
    disk.rng = (struct torture_rng){seed};
    forget_all();
    io_replace_default(&torture_ops, NULL);
}

void torture_io_end(void)
{
    io_replace_default(NULL, NULL);
    forget_all();
}

void torture_io_die(uint64_t at)
{
    disk.dies_at = at;
}

uint64_t torture_io_manifest(uint64_t random)
{
    uint64_t n = disk.manifest_count < MANIFEST_OPS ? disk.manifest_count : MANIFEST_OPS;

    return n > 0 ? disk.manifest[random % n] : 0;
}

void torture_io_disarm(void)
{
    pthread_mutex_lock(&disk.lock);
    disk.dies_at = UINT64_MAX;
    disk.fault = TORTURE_NONE;
    pthread_mutex_unlock(&disk.lock);
}

uint64_t torture_io_count(void)
{
    return disk.count;
}

int torture_io_has_failed(void)
{
    return disk.has_failed;
}

int torture_io_open_files(void)
{
    return disk.open_files;
}
