#include "posix/posix_tree.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include "posix/internal.h"
#include "posix/mark.h"
#include "posix/next.h"
#include "posix/span.h"

#define ALL_MAX        ((uint64_t)4 << 20)  /* a file of so many bytes is in its memfd when it is opened */
#define DIRTY_MAX      ((uint64_t)16 << 20) /* so many that are not in the namespace yet */
#define MEMFD_NAME_MAX 200                  /* the kernel takes 249 bytes */
#define COPY_SIZE      ((size_t)256 << 10)
#define DEVICE         0xdf /* of all that is in mounts, with the number of the mount */

struct tree {
    pthread_mutex_t lock;
    char *target;
    int is_snapshot;
    deltafs_namespace *ns; /* NULL: it is not open */
    int is_writer;         /* of it */
    int is_broken;         /* a commit has failed: the handle is of no use any more */
    int is_synced;         /* commits are durable */
    int is_change;         /* of the call that has begun */
    int run;               /* the descriptor of RUN; -1 */
    uint64_t changes;      /* the number in it, when the handle was last refreshed */
    uint8_t *copy;         /* COPY_SIZE bytes */
};

int tree_create(const char *target, struct tree **out)
{
    struct tree *t = calloc(1, sizeof *t);
    const char *base = strrchr(target, '/');

    if (!t)
        return ENOMEM;
    pthread_mutex_init(&t->lock, NULL);
    t->target = strdup(target);
    t->copy = malloc(COPY_SIZE);
    t->is_snapshot = strchr(base ? base : target, '@') != NULL;
    t->run = -1;
    t->is_synced = getenv("DELTAFS_POSIX_SYNC") != NULL;
    *out = t;
    return t->target && t->copy ? 0 : ENOMEM;
}

int tree_is_snapshot(const struct tree *t)
{
    return t->is_snapshot;
}

/* ---- The handle ---- */

/* The readers of files are of a handle that is closed. */
static int forget_reader(struct file *f, int fd, void *tree)
{
    (void)fd;
    if (f->mount->tree != tree)
        return 0;
    if (f->reader)
        deltafs_namespace_file_close(f->reader);
    f->reader = NULL;
    return 0;
}

static int tree_close(struct tree *t)
{
    file_each(forget_reader, t);
    int status = deltafs_namespace_close(t->ns);
    t->ns = NULL;
    t->is_broken = 0;
    return status;
}

static int open_handle(struct tree *t, int is_writer)
{
    deltafs_options *o = NULL;
    int status = deltafs_options_create(&o);

    if (status == DELTAFS_OK && !t->is_synced)
        status = deltafs_options_set(o, "sync", "none");
    if (status == DELTAFS_OK)
        status = deltafs_namespace_open(t->target, is_writer ? O_RDWR : O_RDONLY, o, &t->ns);
    deltafs_options_destroy(o);
    t->is_writer = is_writer;
    return status;
}

/* RUN, and the number in it. A file system without locks is good for one process at a time. */
static int run_open(struct tree *t)
{
    char path[PATH_MAX];

    if (t->run >= 0 || t->is_snapshot)
        return 0;
    if ((size_t)snprintf(path, sizeof path, "%s/" RUN_NAME, t->target) >= sizeof path)
        return ENAMETOOLONG;
    t->run = next.openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (t->run < 0)
        t->run = next.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    t->run = internal_keep(t->run);
    return 0; /* without it, others change nothing */
}

static int run_lock(struct tree *t, short type)
{
    struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_len = sizeof t->changes};
    int error;

    do
        error = t->run >= 0 && next.fcntl(t->run, F_OFD_SETLKW, &l) != 0 ? errno : 0;
    while (error == EINTR);
    if (error != 0 && type != F_UNLCK)
        posix_say("%s/" RUN_NAME ": %s: several processes must not change files of this namespace at the same time",
                  t->target, strerror(error));
    return error;
}

static uint64_t run_changes(const struct tree *t)
{
    uint64_t n = 0;

    return t->run >= 0 && next.pread(t->run, &n, sizeof n, 0) == sizeof n ? n : 0;
}

static int tree_look(struct tree *t, int is_change)
{
    int status = DELTAFS_OK;

    if (t->ns && (t->is_broken || (is_change && !t->is_writer)))
        tree_close(t);
    uint64_t changes = run_changes(t);
    if (!t->ns)
        status = open_handle(t, is_change);
    else if (changes != t->changes) {
        file_each(forget_reader, t); /* what is open keeps the state that it was opened with */
        status = deltafs_namespace_refresh(t->ns);
    }
    t->changes = changes;
    return status;
}

/* The error number of a status; what that does not say is said. */
static int fail(int status)
{
    int error = status == DELTAFS_OK ? 0 : deltafs_namespace_errno(status);

    if (error == EIO)
        posix_say("%s", deltafs_errmsg(NULL));
    return error;
}

int tree_begin(struct tree *t, int is_change, deltafs_namespace **out)
{
    if (is_change && t->is_snapshot)
        return EROFS;
    pthread_mutex_lock(&t->lock);
    int error = run_open(t);
    if (error == 0 && is_change)
        run_lock(t, F_WRLCK);
    t->is_change = is_change;
    if (error == 0)
        error = fail(tree_look(t, is_change));
    if (error != 0) {
        run_lock(t, F_UNLCK);
        pthread_mutex_unlock(&t->lock);
    }
    *out = t->ns;
    return error;
}

int tree_end(struct tree *t, int status)
{
    if (t->is_change) {
        int committed = deltafs_namespace_commit(t->ns);
        t->is_broken |= committed != DELTAFS_OK;
        status = status == DELTAFS_OK ? committed : status;
        t->changes++;
        if (t->run >= 0 && next.pwrite(t->run, &t->changes, sizeof t->changes, 0) != sizeof t->changes)
            status = status == DELTAFS_OK ? DELTAFS_ERR_IO : status;
        run_lock(t, F_UNLCK);
    }
    t->is_change = 0;
    pthread_mutex_unlock(&t->lock);
    return fail(status);
}

/* ---- Attributes ---- */

static struct timespec time_of(int64_t ns)
{
    int64_t seconds = ns / 1000000000 - (ns % 1000000000 < 0);

    return (struct timespec){.tv_sec = seconds, .tv_nsec = (long)(ns - seconds * 1000000000)};
}

static void fill_stat(const struct mount *m, const struct deltafs_namespace_stat *s, struct stat *out)
{
    *out = (struct stat){.st_dev = makedev(DEVICE, (unsigned)(m - mounts.mount) + 1),
                         .st_ino = s->inode,
                         .st_mode = s->mode,
                         .st_nlink = 1, /* of a folder: the number of its folders is not known */
                         .st_uid = s->uid,
                         .st_gid = s->gid,
                         .st_size = (off_t)s->size,
                         .st_blksize = COPY_SIZE,
                         .st_blocks = (blkcnt_t)((s->size + 511) / 512),
                         .st_mtim = time_of(s->mtime),
                         .st_atim = time_of(s->atime),
                         .st_ctim = time_of(s->ctime)};
}

/* The attributes of an open file. */
int file_stat(struct file *f, int fd, struct stat *out)
{
    struct stat now;

    *out = f->st;
    out->st_nlink = f->is_removed ? 0 : out->st_nlink;
    if (f->kind != FILE_TREE || (f->flags & O_PATH))
        return 0;
    if (next.fstat(fd, &now) != 0)
        return errno;
    out->st_size = now.st_size;
    out->st_blocks = (out->st_size + 511) / 512;
    if (f->dirty.count > 0 || f->cut != UINT64_MAX)
        out->st_mtim = out->st_ctim = now.st_mtim;
    return 0;
}

/* What was written to an open file counts for its size, too. */
static int note_size(struct file *f, int fd, void *stat)
{
    struct stat *out = stat;
    int is_same = f->kind == FILE_TREE && f->st.st_ino == out->st_ino && f->st.st_dev == out->st_dev;

    return is_same && (f->dirty.count > 0 || f->cut != UINT64_MAX) ? file_stat(f, fd, out) : 0;
}

int tree_stat(struct mount *m, const char *path, int flags, struct stat *out)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    deltafs_namespace *ns;
    int error = tree_begin(m->tree, 0, &ns);

    if (error == 0)
        error = tree_end(m->tree, deltafs_namespace_stat(ns, path, flags & AT_SYMLINK_NOFOLLOW, &s));
    if (error != 0)
        return error;
    fill_stat(m, &s, out);
    return S_ISREG(s.mode) ? file_each(note_size, out) : 0;
}

/* ---- Writing ---- */

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Put bytes that are in the memfd into the file. */
static int put_span(struct tree *t, int fd, deltafs_namespace_file *to, struct span s)
{
    int status = DELTAFS_OK;

    while (s.from < s.to && status == DELTAFS_OK) {
        size_t want = s.to - s.from < COPY_SIZE ? (size_t)(s.to - s.from) : COPY_SIZE;
        ssize_t got = next.pread(fd, t->copy, want, (off_t)s.from);
        if (got <= 0)
            return got < 0 ? DELTAFS_ERR_IO : DELTAFS_OK; /* it was truncated meanwhile */
        status = deltafs_namespace_file_write(to, s.from, t->copy, (size_t)got);
        s.from += (uint64_t)got;
    }
    return status;
}

/* The same of a memfd that other processes write to, too. Holes are what one of them has published and freed. The memfd
 * is opened again, to have an offset of its own. */
static int put_data(struct tree *t, int fd, deltafs_namespace_file *to, struct span s)
{
    char path[64];
    int status = DELTAFS_OK;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = next.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOATIME);
    if (own < 0)
        return put_span(t, fd, to, s);
    while (status == DELTAFS_OK && s.from < s.to) {
        off_t from = next.lseek(own, (off_t)s.from, SEEK_DATA);
        off_t end = from < 0 ? -1 : next.lseek(own, from, SEEK_HOLE);
        if (end < 0 || (uint64_t)from >= s.to)
            break;
        s.from = (uint64_t)end;
        status = put_span(t, own, to, (struct span){(uint64_t)from, s.from < s.to ? s.from : s.to});
    }
    next.close(own);
    return status;
}

/* Bring the file to the state of the memfd, where this process has changed it. */
static int put_changes(struct file *f, int fd, deltafs_namespace_file *to)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    struct stat now;
    int status = deltafs_namespace_file_stat(to, &s);

    if (status == DELTAFS_OK && next.fstat(fd, &now) != 0)
        status = DELTAFS_ERR_IO;
    if (status == DELTAFS_OK && f->cut < s.size) {
        status = deltafs_namespace_file_truncate(to, f->cut);
        s.size = f->cut;
    }
    if (status == DELTAFS_OK && f->is_unbounded)
        status = put_span(f->mount->tree, fd, to, (struct span){0, (uint64_t)now.st_size});
    for (size_t i = 0; i < f->dirty.count && status == DELTAFS_OK; i++)
        status = (f->is_shared ? put_data : put_span)(f->mount->tree, fd, to, f->dirty.span[i]);
    if (status == DELTAFS_OK && f->cut != UINT64_MAX && (uint64_t)now.st_size > s.size)
        status = deltafs_namespace_file_truncate(to, (uint64_t)now.st_size);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_stat(to, &s);
    if (status == DELTAFS_OK)
        fill_stat(f->mount, &s, &f->st);
    return status;
}

/* Open the file as it is now. *out stays NULL if it was removed meanwhile, by another process. */
static int open_again(struct file *f, deltafs_namespace *ns, deltafs_namespace_file **out)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    int flags = O_WRONLY | (f->flags & O_APPEND && f->cut == UINT64_MAX && f->mappings == 0 ? O_APPEND : 0);
    int status = deltafs_namespace_file_open(ns, f->path, flags, 0, out);

    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_stat(*out, &s);
    if (status == DELTAFS_ERR_NOT_FOUND || (status == DELTAFS_OK && s.inode != f->st.st_ino)) {
        deltafs_namespace_file_close(*out);
        *out = NULL;
        return DELTAFS_OK;
    }
    return status;
}

static int has_changes(struct file *f, int fd)
{
    struct span unseen;

    if (f->kind != FILE_TREE || f->is_removed)
        return 0;
    if (f->is_unbounded || f->cut != UINT64_MAX || (f->dirty.count > 0 && !(f->is_shared && f->flags & O_APPEND)))
        return 1;
    return mark_find(f, fd, &unseen) != 0 || unseen.from < unseen.to;
}

/* What is in shared mappings may have been changed. */
static int note_mapped(struct file *f, int fd)
{
    struct stat now;

    if (f->mappings == 0 || f->is_removed)
        return 0;
    if (next.fstat(fd, &now) != 0)
        return errno;
    uint64_t end = (uint64_t)now.st_size < f->mapped.to ? (uint64_t)now.st_size : f->mapped.to;
    return f->mapped.from < end ? spans_add(&f->dirty, f->mapped.from, end) : 0;
}

/* With the lock of the tree. */
static int put_file(struct file *f, int fd, deltafs_namespace *ns, struct span *unseen)
{
    deltafs_namespace_file *to = NULL;

    if (mark_collect(f, fd, unseen) != 0)
        return DELTAFS_ERR_IO;
    int status = open_again(f, ns, &to);
    f->is_removed = status == DELTAFS_OK && !to;
    if (status == DELTAFS_OK && to)
        status = put_changes(f, fd, to);
    int closed = deltafs_namespace_file_close(to);
    status = status == DELTAFS_OK ? closed : status;
    if (status == DELTAFS_OK && unseen->from < unseen->to && mark_set(f, fd, unseen->to) != 0)
        status = DELTAFS_ERR_IO;
    return status;
}

static int free_span(int fd, struct span s)
{
    const uint64_t page = 4096;
    uint64_t from = (s.from + page - 1) / page * page, to = s.to / page * page;

    if (from >= to)
        return 0;
    return next.fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from)) ? errno : 0;
}

/* What is in the namespace need not be in memory. But if others have the descriptor, they must not read it from there,
 * and what they have written since must stay. */
static int free_memory(struct file *f, int fd)
{
    struct stat now;
    int error = 0;

    if (f->is_mapped || (f->is_shared && (f->flags & O_ACCMODE) != O_WRONLY))
        return 0;
    if (!f->is_shared)
        error = next.fstat(fd, &now) == 0 ? free_span(fd, (struct span){0, (uint64_t)now.st_size}) : errno;
    for (size_t i = 0; f->is_shared && i < f->dirty.count && error == 0; i++)
        error = free_span(fd, f->dirty.span[i]);
    f->has_all = f->has_all && error != 0;
    return error;
}

int file_publish(struct file *f, int fd)
{
    struct tree *t = f->mount->tree;
    struct span unseen = {0, 0};
    deltafs_namespace *ns;
    int error = note_mapped(f, fd);

    if (error == 0 && has_changes(f, fd)) {
        error = tree_begin(t, 1, &ns);
        if (error != 0)
            return error;
        error = tree_end(t, put_file(f, fd, ns, &unseen));
        if (error == 0 && f->is_removed) {
            posix_say("%s%s: another process has removed or renamed the file while it was open; what was written to it "
                      "since then is lost",
                      f->mount->point, f->path);
            error = ESTALE;
        }
        if (error != 0 && unseen.from < unseen.to)
            mark_set(f, fd, unseen.from);
    }
    if (error == 0 && f->dirty.bytes >= DIRTY_MAX && !f->is_removed)
        error = free_memory(f, fd);
    if (error == 0 && !f->is_removed) {
        spans_clear(&f->dirty);
        f->cut = UINT64_MAX;
    }
    return error;
}

int file_note_written(struct file *f, int fd, uint64_t from, uint64_t to)
{
    int error = spans_add(&f->dirty, from, to);

    return error == 0 && f->dirty.bytes >= DIRTY_MAX ? file_publish(f, fd) : error;
}

int file_note_truncated(struct file *f, int fd, uint64_t size)
{
    struct span unseen;
    int error = mark_find(f, fd, &unseen);

    spans_cut(&f->dirty, size);
    f->cut = size < f->cut ? size : f->cut;
    return error == 0 && f->is_shared && unseen.from >= size ? mark_set(f, fd, size) : error;
}

/* ---- Reading ---- */

static int read_namespace(struct file *f, void *bytes, size_t size, uint64_t at, size_t *got)
{
    struct tree *t = f->mount->tree;
    deltafs_namespace *ns;
    int status = DELTAFS_OK, error = tree_begin(t, 0, &ns);

    if (error != 0)
        return error;
    if (!f->reader)
        status = deltafs_namespace_file_open(ns, f->path, O_RDONLY, 0, &f->reader);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_read(f->reader, at, bytes, size, got);
    return tree_end(t, status);
}

/* Bytes that are not in the memfd; what was truncated is zero. */
static int read_rest(struct file *f, uint8_t *bytes, size_t size, uint64_t at)
{
    uint64_t end = f->cut < at ? at : f->cut;
    size_t got = 0, there = end - at < size ? (size_t)(end - at) : size;
    int error = there > 0 ? read_namespace(f, bytes, there, at, &got) : 0;

    memset(bytes + got, 0, size - got);
    return error;
}

ssize_t file_read_at(struct file *f, int fd, void *bytes, size_t size, uint64_t at)
{
    struct stat now;
    size_t done = 0;

    if (next.fstat(fd, &now) != 0 || posix_result(mark_before_seek(f, fd)) != 0)
        return -1;
    uint64_t left = (uint64_t)now.st_size > at ? (uint64_t)now.st_size - at : 0;
    size = size < left ? size : (size_t)left;
    while (done < size) {
        const struct span *s = spans_find(&f->dirty, at + done);
        uint64_t from = at + done, until = s && s->from > from ? s->from : s ? s->to : at + size;
        size_t n = until - from < size - done ? (size_t)(until - from) : size - done;
        if (s && s->from <= from) {
            if (next.pread(fd, (uint8_t *)bytes + done, n, (off_t)from) != (ssize_t)n)
                return -1;
        } else {
            int error = read_rest(f, (uint8_t *)bytes + done, n, from);
            if (error != 0)
                return posix_result(error);
        }
        done += n;
    }
    return (ssize_t)done;
}

/* With O_APPEND, the kernel would put all bytes at the end. */
static int load_bytes(struct file *f, int fd, void *bytes)
{
    int flags = next.fcntl(fd, F_GETFL);
    ssize_t got = flags < 0 || next.fcntl(fd, F_SETFL, flags & ~O_APPEND) != 0 ? -1 : 1;

    for (uint64_t at = 0; got > 0; at += (uint64_t)got) {
        got = file_read_at(f, fd, bytes, COPY_SIZE, at);
        if (got > 0 && next.pwrite(fd, bytes, (size_t)got, (off_t)at) != got)
            got = -1;
    }
    int error = got < 0 ? errno : 0;
    if (flags >= 0)
        next.fcntl(fd, F_SETFL, flags);
    return error;
}

int file_load(struct file *f, int fd)
{
    void *bytes = f->has_all || f->kind != FILE_TREE ? NULL : malloc(COPY_SIZE);

    if (f->has_all || f->kind != FILE_TREE)
        return 0;
    int error = bytes ? load_bytes(f, fd, bytes) : ENOMEM;
    free(bytes);
    f->has_all = error == 0;
    return error;
}

/* ---- Opening ---- */

/* Fill the memfd, as far as the file is small and is to be read. */
static int fill_memfd(struct file *f, int fd, deltafs_namespace_file *from)
{
    struct tree *t = f->mount->tree;
    uint64_t size = (uint64_t)f->st.st_size;
    int status = DELTAFS_OK;

    f->has_all = size == 0 || ((f->flags & O_ACCMODE) != O_WRONLY && size <= ALL_MAX);
    for (uint64_t at = 0; f->has_all && at < size && status == DELTAFS_OK;) {
        size_t got = 0;
        status = deltafs_namespace_file_read(from, at, t->copy, COPY_SIZE, &got);
        if (status == DELTAFS_OK && (got == 0 || next.pwrite(fd, t->copy, got, (off_t)at) != (ssize_t)got))
            status = DELTAFS_ERR_IO;
        at += got;
    }
    if (status == DELTAFS_OK && !f->has_all && next.ftruncate(fd, f->st.st_size) != 0)
        status = DELTAFS_ERR_IO;
    return status;
}

static int close_file(struct file *f, int fd)
{
    pthread_mutex_lock(&f->lock);
    int error = file_publish(f, fd);
    if (f->lock_fd >= 0)
        internal_close(f->lock_fd);
    f->lock_fd = -1;
    pthread_mutex_unlock(&f->lock);
    if (f->reader) {
        pthread_mutex_lock(&f->mount->tree->lock);
        forget_reader(f, fd, f->mount->tree);
        pthread_mutex_unlock(&f->mount->tree->lock);
    }
    return error;
}

void tree_take_over(struct file *f)
{
    f->close = close_file;
}

/* The offset of a memfd is not safe from processes that write to it at the same time, unless it was opened by a path.
 * The number stays the same: it is the least that is free. */
static int open_again_by_path(int fd, int flags)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int other = next.openat(AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (other < 0) /* without /proc, it stays as it is */
        return 0;
    int error = next.dup3(other, fd, flags & O_CLOEXEC) < 0 ? errno : 0;
    next.close(other);
    return error;
}

static int make_descriptor(struct file *f, int *fd)
{
    int error = 0;

    char name[MEMFD_NAME_MAX + 1];

    snprintf(name, sizeof name, "%s", last_name(f->path));
    *fd = memfd_create(name, f->flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
    if (*fd < 0)
        return errno;
    if ((f->flags & O_ACCMODE) != O_RDONLY && !(f->flags & O_PATH))
        error = open_again_by_path(*fd, f->flags);
    if (error != 0)
        return error;
    if ((f->flags & O_APPEND) && next.fcntl(*fd, F_SETFL, O_APPEND) != 0)
        return errno;
    return 0;
}

/* Open what is no file of bytes: a folder, or anything with O_PATH. */
static int open_other(struct file *f, deltafs_namespace *ns)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    int status = deltafs_namespace_stat(ns, f->path, f->flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0, &s);

    if (status != DELTAFS_OK)
        return status;
    fill_stat(f->mount, &s, &f->st);
    f->kind = S_ISDIR(s.mode) ? FILE_FOLDER : FILE_TREE;
    return DELTAFS_OK;
}

static int open_bytes(struct file *f, deltafs_namespace *ns, mode_t mode, int *fd)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    deltafs_namespace_file *h = NULL;
    int is_change = f->mount->tree->is_change, is_read = (f->flags & O_ACCMODE) == O_RDONLY;
    int flags = (f->flags & O_NOFOLLOW) | (is_change ? O_RDWR | (f->flags & (O_CREAT | O_EXCL | O_TRUNC)) : O_RDONLY);
    int status = deltafs_namespace_file_open(ns, f->path, flags, mode, &h);

    if (status == DELTAFS_ERR_FOLDER && is_read && !(f->flags & O_CREAT))
        return open_other(f, ns);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_stat(h, &s);
    if (status == DELTAFS_OK) {
        fill_stat(f->mount, &s, &f->st);
        status = fill_memfd(f, *fd, h);
    }
    int closed = deltafs_namespace_file_close(h);
    return status == DELTAFS_OK ? closed : status;
}

static mode_t current_umask(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return mask;
}

/* What a call of open changes: a file that is there is not created. */
static int open_changes(struct mount *m, const char *path, int flags)
{
    struct stat st;

    if (flags & O_PATH)
        return 0;
    if ((flags & O_TRUNC) || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
        return 1;
    return (flags & O_CREAT) && tree_stat(m, path, 0, &st) != 0;
}

static int open_once(struct file *f, mode_t mode, int is_change, int *fd)
{
    deltafs_namespace *ns;
    int error = tree_begin(f->mount->tree, is_change, &ns);

    if (error != 0)
        return error;
    return tree_end(f->mount->tree, f->flags & (O_PATH | O_DIRECTORY) ? open_other(f, ns)
                                                                      : open_bytes(f, ns, mode & ~current_umask(), fd));
}

static int count_changed(struct file *f, int fd, void *count)
{
    *(int *)count += has_changes(f, fd);
    return 0;
}

static int publish_locked(struct file *f, int fd, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&f->lock);
    int error = file_publish(f, fd);
    pthread_mutex_unlock(&f->lock);
    return error;
}

static int publish_same(struct file *f, int fd, void *stat)
{
    const struct stat *same = stat;
    int is_same = f->kind == FILE_TREE && f->st.st_ino == same->st_ino && f->st.st_dev == same->st_dev;

    return is_same ? publish_locked(f, fd, NULL) : 0;
}

/* A file that this process has open, and has written to, is opened with what was written. */
static int publish_open(struct mount *m, const char *path)
{
    struct stat st;
    int count = 0;

    file_each(count_changed, &count);
    return count > 0 && tree_stat(m, path, 0, &st) == 0 ? file_each(publish_same, &st) : 0;
}

int tree_open(struct mount *m, const char *path, int flags, mode_t mode, int *fd)
{
    struct file *f;

    *fd = -1;
    if (m->tree->is_snapshot && (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH))
        return EROFS;
    int error = file_create(FILE_TREE, m, strdup(path), flags, &f);
    if (error != 0)
        return error;
    tree_take_over(f);
    error = make_descriptor(f, fd);
    if (error == 0 && !(flags & (O_PATH | O_DIRECTORY)))
        error = publish_open(m, path);
    int is_change = open_changes(m, path, flags);
    if (error == 0)
        error = open_once(f, mode, is_change, fd);
    if (error == ENOENT && (flags & O_CREAT) && !is_change) /* it was removed since */
        error = open_once(f, mode, 1, fd);
    if (error == 0 && (flags & O_DIRECTORY) && !S_ISDIR(f->st.st_mode))
        error = ENOTDIR;
    if (error == 0)
        error = file_set(f, *fd);
    if (error == 0 && *fd <= STDERR_FILENO)
        error = mark_begin(f, *fd);
    file_put(f);
    if (error != 0 && *fd >= 0)
        next.close(*fd);
    return error;
}

/* ---- Durability ---- */

/* Sync a file or a folder. */
static int sync_path(const char *path)
{
    int fd = next.openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 ? errno : next.fsync(fd) != 0 ? errno : 0;

    if (fd >= 0)
        next.close(fd);
    return error == ENOENT ? 0 : error; /* it was removed since it was listed */
}

static int sync_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)where;
    return kind == FTW_F || kind == FTW_DP ? sync_path(path) : 0;
}

/* The files of the namespace that were written without syncing; from now on the handle syncs. */
static int tree_sync(struct tree *t)
{
    pthread_mutex_lock(&t->lock);
    int error = 0;
    if (!t->is_synced && !t->is_snapshot) {
        if (t->ns)
            error = fail(tree_close(t));
        int result = nftw(t->target, sync_entry, 16, FTW_PHYS | FTW_DEPTH);
        error = error != 0 ? error : result < 0 ? errno : result;
        t->is_synced = error == 0;
    }
    pthread_mutex_unlock(&t->lock);
    return error;
}

int file_sync(struct file *f, int fd)
{
    int error = file_publish(f, fd);

    return error == 0 ? tree_sync(f->mount->tree) : error;
}

/* ---- The process ---- */

int trees_commit(void)
{
    return file_each(publish_locked, NULL);
}

static void each_tree(void (*fn)(struct tree *t))
{
    for (size_t i = 0; i < mounts.count; i++)
        if (mounts.mount[i].tree)
            fn(mounts.mount[i].tree);
}

static void tree_hold(struct tree *t)
{
    pthread_mutex_lock(&t->lock);
}

static void tree_release(struct tree *t)
{
    pthread_mutex_unlock(&t->lock);
}

static int drop_reader(struct file *f, int fd, void *arg)
{
    (void)fd;
    (void)arg;
    f->reader = NULL;
    return 0;
}

/* The threads of a handle are not in the child, so it stays as it is there, and the child opens one of its own. */
static void tree_forget(struct tree *t)
{
    t->ns = NULL;
    t->is_broken = 0;
    if (t->run >= 0)
        internal_close(t->run); /* its lock would be the parent's */
    t->run = -1;
    tree_release(t);
}

static pthread_mutex_t forking = PTHREAD_MUTEX_INITIALIZER; /* one thread at a time */

/* A child may write to what it inherits, or the program that it executes, also by another descriptor. */
static int share(struct file *f, int fd, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&f->lock);
    int error = mark_begin(f, fd);
    pthread_mutex_unlock(&f->lock);
    return error;
}

void trees_before_fork(void)
{
    pthread_mutex_lock(&forking);
    trees_commit();
    file_each(share, NULL);
    files_hold();
    each_tree(tree_hold);
}

void trees_after_fork(int is_child)
{
    if (is_child)
        file_each(drop_reader, NULL);
    each_tree(is_child ? tree_forget : tree_release);
    pthread_mutex_unlock(&forking);
}

static void tree_finish(struct tree *t)
{
    pthread_mutex_lock(&t->lock);
    if (t->ns)
        tree_close(t);
    pthread_mutex_unlock(&t->lock);
}

int trees_end(void)
{
    int error = trees_commit();

    each_tree(tree_finish);
    return error;
}
