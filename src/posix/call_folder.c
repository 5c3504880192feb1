/* Streams of folders, and what is built on them: scandir and glob.
 *
 * The stream of a folder of a mount is a struct stream. Its first member is a number that no stream of the C library
 * begins with, as there it is the descriptor. */
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include "posix/begin.h"
#include "posix/follow.h"
#include "posix/folder_names.h"
#include "posix/locks.h"
#include "posix/logical_view.h"
#include "posix/next.h"
#include "posix/particles.h"

#define STREAM_MARK (-0x6466)

struct stream {
    int mark; /* STREAM_MARK */
    int fd;
    pthread_mutex_t lock;
    int has_names; /* they were read: at the first readdir, and at that behind a rewinddir */
    int was_read;
    struct names names;
    struct dirent entry; /* what readdir gives */
};

/* It; NULL: one of the C library. */
static struct stream *stream_of(DIR *d)
{
    struct stream *s = (struct stream *)(void *)d;

    return s && s->mark == STREAM_MARK ? s : NULL;
}

/* ---- Opening and closing ---- */

CALL DIR *fdopendir(int fd)
{
    posix_begin();
    struct file *f = file_get(fd);
    if (!f)
        return next.fdopendir(fd);
    int error = f->kind != FILE_FOLDER ? ENOTDIR : f->flags & O_PATH ? EBADF : 0;
    file_put(f);
    struct stream *s = error == 0 ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        errno = error != 0 ? error : ENOMEM;
        return NULL;
    }
    s->mark = STREAM_MARK;
    s->fd = fd;
    pthread_mutex_init(&s->lock, NULL);
    return (DIR *)(void *)s;
}

static DIR *open_stream(int folder, const char *path)
{
    int fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    int error = errno;

    if (fd >= 0 && !d) {
        close(fd);
        errno = error;
    }
    return d;
}

CALL DIR *opendir(const char *path)
{
    struct route r;

    posix_begin();
    DIR *d = route_find(&r, AT_FDCWD, path) ? open_stream(AT_FDCWD, path) : next.opendir(r.path);
    if (d && logical_find(&r, 1, CALLER)) {
        next.closedir(d);
        errno = ENOTDIR;
        return NULL;
    }
    return !d && !r.mount && follow_route(&r, 1) ? open_stream(AT_FDCWD, path) : d;
}

/* Closing a folder of particles that was not read ends the epoch. */
static int end_epoch(const struct stream *s)
{
    struct file *f = s->was_read ? NULL : file_get(s->fd);
    int error =
        f && f->kind == FILE_FOLDER && f->mount->kind == MOUNT_PARTICLES ? particles_end_epoch(f->mount, f->path) : 0;

    file_put(f);
    return error;
}

CALL int closedir(DIR *d)
{
    posix_begin();
    struct stream *s = stream_of(d);
    if (!s)
        return next.closedir(d);
    int error = end_epoch(s), closed = close(s->fd) != 0 ? errno : 0;
    pthread_mutex_destroy(&s->lock);
    names_fini(&s->names);
    free(s);
    return posix_result(error != 0 ? error : closed);
}

CALL int dirfd(DIR *d)
{
    posix_begin();
    const struct stream *s = stream_of(d);
    return s ? s->fd : next.dirfd(d);
}

/* ---- Reading ---- */

static int list_folder(struct file *f, struct names *out)
{
    lock_take(&f->lock);
    int error = names_read(f, out);
    lock_give(&f->lock);
    return error;
}

static int stream_list(struct stream *s)
{
    struct file *f = s->has_names ? NULL : file_get(s->fd);
    int error = s->has_names ? 0 : f ? list_folder(f, &s->names) : EBADF;

    file_put(f);
    s->was_read = 1;
    s->has_names = error == 0;
    return error;
}

/* The next entry, in a room of its own; *out is NULL at the end. */
static int stream_next(struct stream *s, struct dirent *room, struct dirent **out)
{
    const struct dirent *e = NULL;

    lock_take(&s->lock);
    int error = stream_list(s);
    if (error == 0)
        e = names_next(&s->names);
    if (e)
        memcpy(room, e, e->d_reclen);
    lock_give(&s->lock);
    *out = e ? room : NULL;
    return error;
}

/* An entry of a folder of the system may be a logical file: then a program has to ask what it is. */
static void hide_type(struct dirent *e, const void *from)
{
    if (e && e->d_type == DT_DIR && logical_may_be(from))
        e->d_type = DT_UNKNOWN;
}

static struct dirent *read_kernel(DIR *d, const void *from)
{
    struct dirent *e = next.readdir(d);

    hide_type(e, from);
    return e;
}

static struct dirent *read_entry(DIR *d, const void *from)
{
    struct dirent *out;

    posix_begin();
    struct stream *s = stream_of(d);
    if (!s)
        return read_kernel(d, from);
    int error = stream_next(s, &s->entry, &out);
    if (error != 0)
        errno = error;
    return out;
}

CALL struct dirent *readdir(DIR *d)
{
    return read_entry(d, CALLER);
}

static int read_into(DIR *d, struct dirent *room, struct dirent **out, const void *from)
{
    posix_begin();
    struct stream *s = stream_of(d);
    if (s)
        return stream_next(s, room, out);
    int error = next.readdir_r(d, room, out);
    if (error == 0)
        hide_type(*out, from);
    return error;
}

CALL int readdir_r(DIR *d, struct dirent *room, struct dirent **out)
{
    return read_into(d, room, out, CALLER);
}

/* struct dirent64 is struct dirent here. */
CALL struct dirent64 *readdir64(DIR *d)
{
    return (struct dirent64 *)(void *)read_entry(d, CALLER);
}

CALL int readdir64_r(DIR *d, struct dirent64 *room, struct dirent64 **out)
{
    return read_into(d, (struct dirent *)(void *)room, (struct dirent **)(void *)out, CALLER);
}

CALL void rewinddir(DIR *d)
{
    posix_begin();
    struct stream *s = stream_of(d);
    if (!s) {
        next.rewinddir(d);
        return;
    }
    lock_take(&s->lock);
    names_fini(&s->names);
    s->has_names = 0;
    lock_give(&s->lock);
}

CALL long telldir(DIR *d)
{
    posix_begin();
    struct stream *s = stream_of(d);
    return s ? (long)s->names.at : next.telldir(d);
}

CALL void seekdir(DIR *d, long at)
{
    posix_begin();
    struct stream *s = stream_of(d);
    if (!s) {
        next.seekdir(d, at);
        return;
    }
    lock_take(&s->lock);
    if (stream_list(s) == 0)
        s->names.at = at >= 0 && (size_t)at <= s->names.size ? (size_t)at : s->names.size;
    lock_give(&s->lock);
}

/* The entries are listed at the beginning, and the offset of the descriptor is that in them. */
static int list_entries(struct file *f)
{
    struct names n;
    int error = names_read(f, &n);

    if (error != 0)
        return error;
    free(f->entries);
    f->entries = n.entry;
    f->entries_size = n.size;
    return 0;
}

static ssize_t read_entries(struct file *f, int fd, char *bytes, size_t room)
{
    off_t at = next.lseek(fd, 0, SEEK_CUR);
    int error = f->kind != FILE_FOLDER ? ENOTDIR : at < 0 ? errno : 0;
    const struct dirent *e;
    size_t size = 0;

    if (error == 0 && (at == 0 || !f->entries))
        error = list_entries(f);
    if (error != 0)
        return posix_result(error);
    struct names n = {.entry = f->entries, .size = f->entries_size, .at = (size_t)at};
    while ((e = names_next(&n)) && size + e->d_reclen <= room) {
        memcpy(bytes + size, e, e->d_reclen);
        size += e->d_reclen;
    }
    if (e && size == 0)
        return posix_result(EINVAL);
    return next.lseek(fd, (off_t)size, SEEK_CUR) < 0 ? -1 : (ssize_t)size;
}

static ssize_t get_kernel(int fd, char *bytes, size_t room, const void *from)
{
    ssize_t size = next.getdents64(fd, bytes, room);
    int may_be = size > 0 && logical_may_be(from);

    for (ssize_t at = 0; may_be && at < size;) {
        struct dirent *e = (struct dirent *)(void *)(bytes + at);
        e->d_type = e->d_type == DT_DIR ? DT_UNKNOWN : e->d_type;
        at += e->d_reclen;
    }
    return size;
}

CALL ssize_t getdents64(int fd, void *bytes, size_t room)
{
    posix_begin();
    struct file *f = file_get(fd);
    if (!f)
        return get_kernel(fd, bytes, room, CALLER);
    lock_take(&f->lock);
    ssize_t size = read_entries(f, fd, bytes, room);
    lock_give(&f->lock);
    file_put(f);
    return size;
}

/* ---- scandir ---- */

typedef int selecting(const struct dirent *);
typedef int comparing(const struct dirent **, const struct dirent **);
typedef int comparing_void(const void *, const void *);

struct found {
    struct dirent **entry;
    size_t count, room;
};

static int found_add(struct found *l, const struct dirent *e)
{
    if (l->count == l->room) {
        size_t room = l->room > 0 ? 2 * l->room : 32;
        struct dirent **more = realloc(l->entry, room * sizeof *more);
        if (!more)
            return ENOMEM;
        l->entry = more;
        l->room = room;
    }
    l->entry[l->count] = malloc(e->d_reclen);
    if (!l->entry[l->count])
        return ENOMEM;
    memcpy(l->entry[l->count++], e, e->d_reclen);
    return 0;
}

static int scan_stream(DIR *d, struct found *l, selecting *select)
{
    const struct dirent *e;
    int error = 0;

    errno = 0;
    while (error == 0 && (e = readdir(d))) {
        if (!select || select(e))
            error = found_add(l, e);
        errno = 0;
    }
    return error != 0 ? error : errno;
}

static int scan(int folder, const char *path, struct dirent ***out, selecting *select, comparing *compare)
{
    struct found l = {.count = 0};
    DIR *d = open_stream(folder, path);

    if (!d)
        return -1;
    int error = scan_stream(d, &l, select);
    closedir(d);
    for (size_t i = 0; error != 0 && i < l.count; i++)
        free(l.entry[i]);
    if (error != 0) {
        free(l.entry);
        return posix_result(error);
    }
    if (compare && l.count > 0)
        qsort(l.entry, l.count, sizeof *l.entry, (comparing_void *)(void (*)(void))compare);
    *out = l.entry ? l.entry : malloc(sizeof **out);
    return (int)l.count;
}

static int scan_call(int folder, const char *path, struct dirent ***out, selecting *select, comparing *compare,
                     const void *from)
{
    struct route r;

    posix_begin();
    if (route_find(&r, folder, path) || logical_may_be(from))
        return scan(folder, path, out, select, compare);
    int n = next.scandirat(r.folder, r.path, out, select, compare);
    return n < 0 && follow_route(&r, 1) ? scan(folder, path, out, select, compare) : n;
}

CALL int scandirat(int folder, const char *path, struct dirent ***out, selecting *select, comparing *compare)
{
    return scan_call(folder, path, out, select, compare, CALLER);
}

CALL int scandir(const char *path, struct dirent ***out, selecting *select, comparing *compare)
{
    return scan_call(AT_FDCWD, path, out, select, compare, CALLER);
}

CALL int scandirat64(int folder, const char *path, struct dirent64 ***out, int (*select)(const struct dirent64 *),
                     int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
    return scan_call(folder, path, (struct dirent ***)(void *)out, (selecting *)(void (*)(void))select,
                     (comparing *)(void (*)(void))compare, CALLER);
}

CALL int scandir64(const char *path, struct dirent64 ***out, int (*select)(const struct dirent64 *),
                   int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
    return scan_call(AT_FDCWD, path, (struct dirent ***)(void *)out, (selecting *)(void (*)(void))select,
                     (comparing *)(void (*)(void))compare, CALLER);
}

/* ---- glob ---- */

static void close_stream(void *d)
{
    closedir(d);
}

static struct dirent *read_stream(void *d)
{
    return readdir(d);
}

static void *open_path(const char *path)
{
    return opendir(path);
}

/* The C library's own, with the functions of this library. */
CALL int glob(const char *pattern, int flags, int (*on_error)(const char *, int), glob_t *out)
{
    posix_begin();
    if ((mounts.count == 0 && !logical_may_be(CALLER)) || (flags & GLOB_ALTDIRFUNC))
        return next.glob(pattern, flags, on_error, out);
    out->gl_closedir = close_stream;
    out->gl_readdir = read_stream;
    out->gl_opendir = open_path;
    out->gl_lstat = lstat;
    out->gl_stat = stat;
    int result = next.glob(pattern, flags | GLOB_ALTDIRFUNC, on_error, out);
    out->gl_flags &= ~GLOB_ALTDIRFUNC;
    return result;
}

CALL int glob64(const char *pattern, int flags, int (*on_error)(const char *, int), glob64_t *out)
{
    return glob(pattern, flags, on_error, (glob_t *)(void *)out);
}
