#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fake_io.h"
#include "torture_io.h"
#include "torture_rng.h"

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
enum change_kind { CHANGE_CREATE, CHANGE_MKDIR, CHANGE_RENAME, CHANGE_EXCHANGE, CHANGE_UNLINK, CHANGE_RMDIR };
struct change {
    struct change *older;
    enum change_kind kind;
    char path[TORTURE_PATH_ROOM], to[TORTURE_PATH_ROOM];
    struct file *lost; /* the file that was removed, or replaced by the renamed one; NULL: none */
};

static struct {
    pthread_mutex_t lock;
    struct fake_io fake;
    enum torture_fault fault;
    uint64_t at, count;
    uint64_t dies_at;
    uint64_t manifest[MANIFEST_OPS]; /* operations on it, the last ones */
    uint64_t manifest_count;
    int has_failed, is_dead;
    struct torture_rng rng;
    struct file *files;
    struct change *changes; /* the newest first */
    struct file *by_fd[FAKE_FILES];
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

/* The path of what was in folder `from` and is in `to` now. Returns whether it was there. */
static int move_path(char path[TORTURE_PATH_ROOM], const char *from, const char *to)
{
    char moved[TORTURE_PATH_ROOM + 1];
    size_t n = strlen(from);

    if (strncmp(path, from, n) != 0 || path[n] != '/')
        return 0;
    snprintf(moved, sizeof moved, "%s%s", to, path + n);
    copy_path(path, moved);
    return 1;
}

/* A folder got another name: so did what is in it, and what was changed there before. If two were exchanged, the same
 * of the other. */
static void move_all(const char *from, const char *to, int are_exchanged, struct change *changes)
{
    for (struct file *f = disk.files; f; f = f->next)
        if (!f->is_gone && !move_path(f->path, from, to) && are_exchanged)
            move_path(f->path, to, from);
    for (struct change *c = changes; c; c = c->older) {
        if (!move_path(c->path, from, to) && are_exchanged)
            move_path(c->path, to, from);
        if (!move_path(c->to, from, to) && are_exchanged)
            move_path(c->to, to, from);
    }
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
        /* What was truncated, but is there, is as it was. */
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
        if (rename(c->to, c->path) != 0)
            break;
        move_all(c->to, c->path, 0, c->older);
        if (c->lost)
            save(c->to, c->lost->durable, c->lost->size);
        break;
    case CHANGE_EXCHANGE:
        if (renameat2(AT_FDCWD, c->path, AT_FDCWD, c->to, RENAME_EXCHANGE) == 0)
            move_all(c->path, c->to, 1, c->older);
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
    return fd >= 0 && fd < FAKE_FILES ? disk.by_fd[fd] : NULL;
}

static ssize_t torture_open(struct fake_call *c)
{
    int rc;
    enum verdict v = enter(0, 1, &rc);
    int is_new = access(c->path, F_OK) != 0;

    c->flags &= ~O_DIRECT;
    if (v != FAIL)
        rc = (int)fake_do(c);
    if (rc >= FAKE_FILES) {
        c->io->real->close(c->io->ctx, rc);
        rc = -EMFILE;
    }
    if (rc >= 0) {
        struct file *f = (c->flags & O_ACCMODE) == O_RDONLY ? NULL : note_file(c->path, is_new);
        if (is_new)
            note_change(CHANGE_CREATE, c->path, "", NULL);
        if (v == LAST)
            c->io->real->close(c->io->ctx, rc);
        else
            disk.by_fd[rc] = f;
    }
    return leave(v, rc);
}

/* Changes nothing. */
static ssize_t torture_read(struct fake_call *c)
{
    int rc, is_read = c->op == FAKE_READ;
    enum verdict v = enter(is_read ? c->n : 0, is_read, &rc);

    leave(v, 0);
    if (v == HALF && disk.fault == TORTURE_SHORT)
        c->n /= 2;
    else if (is_read ? v != GO : v == FAIL)
        return rc;
    return fake_do(c);
}

static ssize_t torture_write(struct fake_call *c)
{
    int rc;
    enum verdict v = enter(c->n, 1, &rc);
    ssize_t put = rc;

    if (v == HALF)
        c->n = disk.fault == TORTURE_SHORT ? c->n / 2 : 1 + (size_t)torture_below(&disk.rng, c->n - 1);
    if (v != FAIL)
        put = fake_do(c);
    struct file *f = note_operation(by_fd(c->fd));
    if (put > 0)
        note_dirty(f, c->offset, c->offset + (uint64_t)put);
    if (disk.is_dead)
        put = rc;
    pthread_mutex_unlock(&disk.lock);
    return put;
}

/* Nothing is synced for real: it is known here what is durable. */
static ssize_t torture_sync(struct fake_call *c)
{
    int rc;
    enum verdict v = enter(0, 1, &rc);
    struct file *f = c->op == FAKE_SYNC ? note_operation(by_fd(c->fd)) : NULL;

    if (v != FAIL)
        rc = 0;
    if (v != FAIL && c->op == FAKE_SYNC)
        note_sync(f);
    else if (v != FAIL)
        forget_changes(c->path);
    if (rc != -EINTR)
        forget_dirty(f);
    return leave(v, rc);
}

/* A close that fails has closed nevertheless. */
static ssize_t torture_close(struct fake_call *c)
{
    int rc;
    enum verdict v = enter(0, 0, &rc);

    if (c->fd < FAKE_FILES)
        disk.by_fd[c->fd] = NULL;
    int closed = (int)fake_do(c);
    return leave(v, v == FAIL ? rc : closed);
}

/* An operation was done; `lost` is the file that it has removed or replaced. */
static void note_done(const struct fake_call *c, struct file *lost)
{
    struct file *f = c->op == FAKE_RENAME || c->op == FAKE_LINK ? file_at(c->from) : NULL;

    if (lost)
        lost->is_gone = 1;
    /* A file with two names is known by the new one: the other goes next. */
    if (f)
        copy_path(f->path, c->path);
    switch (c->op) {
    case FAKE_TRUNCATE:
        note_dirty(note_operation(by_fd(c->fd)), c->offset, UINT64_MAX);
        break;
    case FAKE_MKDIR:
        note_change(CHANGE_MKDIR, c->path, "", NULL);
        break;
    case FAKE_RENAME:
        move_all(c->from, c->path, 0, disk.changes);
        note_change(CHANGE_RENAME, c->from, c->path, lost);
        break;
    case FAKE_EXCHANGE:
        move_all(c->from, c->path, 1, disk.changes);
        note_change(CHANGE_EXCHANGE, c->from, c->path, NULL);
        break;
    case FAKE_UNLINK:
        if (lost)
            note_change(CHANGE_UNLINK, c->path, "", lost);
        break;
    case FAKE_RMDIR:
        note_change(CHANGE_RMDIR, c->path, "", NULL);
        break;
    case FAKE_LINK:
    case FAKE_SYMLINK:
        note_change(CHANGE_CREATE, c->path, "", NULL);
        break;
    default:
        break;
    }
}

static ssize_t torture_other(struct fake_call *c)
{
    int rc;
    enum verdict v = enter(0, c->op == FAKE_TRUNCATE || c->op == FAKE_LOCK, &rc);
    int loses = v != FAIL && (c->op == FAKE_RENAME || c->op == FAKE_UNLINK) && access(c->path, F_OK) == 0;
    struct file *lost = loses ? note_file(c->path, 0) : NULL;

    if (v != FAIL)
        rc = (int)fake_do(c);
    if (v != FAIL && rc == 0)
        note_done(c, lost);
    return leave(v, rc);
}

static ssize_t torture_do(struct fake_call *c)
{
    switch (c->op) {
    case FAKE_OPEN:
        return torture_open(c);
    case FAKE_READ:
    case FAKE_READLINK:
    case FAKE_LIST:
        return torture_read(c);
    case FAKE_WRITE:
        return torture_write(c);
    case FAKE_SYNC:
    case FAKE_SYNC_FOLDER:
        return torture_sync(c);
    case FAKE_CLOSE:
        return torture_close(c);
    case FAKE_LOCK:
        return c->flags == IO_LOCK_TRY ? torture_other(c) : fake_do(c);
    default:
        return torture_other(c);
    }
}

void torture_io_begin(enum torture_fault fault, uint64_t at, uint64_t seed)
{
    io_replace_default(NULL, NULL);
    disk.fault = fault;
    disk.at = at;
    disk.count = disk.manifest_count = 0;
    disk.dies_at = UINT64_MAX;
    disk.has_failed = disk.is_dead = 0;
    disk.rng = (struct torture_rng){seed};
    forget_all();
    fake_io_begin(&disk.fake, torture_do);
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
    return disk.fake.open_files;
}
