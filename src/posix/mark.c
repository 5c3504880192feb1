#include "posix/mark.h"
#include <errno.h>
#include <fcntl.h>
#include "posix/next.h"

#define MARK_NS 223 /* nanoseconds of a time that is a mark */

static int can_write(const struct file *f)
{
    return f->kind == FILE_TREE && (f->flags & O_ACCMODE) != O_RDONLY && !(f->flags & O_PATH);
}

int mark_set(struct file *f, int fd, uint64_t at)
{
    const struct timespec times[2] = {{.tv_sec = (time_t)at, .tv_nsec = MARK_NS}, {.tv_nsec = UTIME_OMIT}};

    f->mark = at;
    return next.futimens(fd, times) == 0 ? 0 : errno;
}

/* Where the bytes end. */
static int find_end(const struct file *f, int fd, uint64_t *out)
{
    struct stat now;
    off_t at = 0;

    if (f->flags & O_APPEND)
        at = next.fstat(fd, &now) == 0 ? now.st_size : -1;
    else
        at = next.lseek(fd, 0, SEEK_CUR);
    *out = at < 0 ? 0 : (uint64_t)at;
    return at < 0 ? errno : 0;
}

int mark_find(struct file *f, int fd, struct span *out)
{
    struct stat now;
    int error = f->is_shared ? find_end(f, fd, &out->to) : 0;

    if (!f->is_shared || error != 0) {
        *out = (struct span){0, 0};
        return error;
    }
    if (next.fstat(fd, &now) != 0)
        return errno;
    out->from = now.st_atim.tv_nsec == MARK_NS ? (uint64_t)now.st_atim.tv_sec : f->mark;
    out->to = out->to < (uint64_t)now.st_size ? out->to : (uint64_t)now.st_size;
    out->from = out->from < out->to ? out->from : out->to;
    return 0;
}

/* What was added to a file is published from the mark on, so that is where the first of it begins. */
int mark_begin(struct file *f, int fd)
{
    uint64_t at = 0;

    if (f->is_shared || !can_write(f))
        return 0;
    int error = file_open_by_path(f, fd), flags = next.fcntl(fd, F_GETFL);
    error = error == 0 ? find_end(f, fd, &at) : error;
    if (flags < 0 || (error == 0 && next.fcntl(fd, F_SETFL, flags | O_NOATIME) != 0))
        return errno;
    if ((f->flags & O_APPEND) && f->dirty.count > 0)
        at = f->dirty.span[0].from;
    error = error == 0 ? mark_set(f, fd, at) : error;
    f->is_shared = error == 0;
    return error;
}

int mark_collect(struct file *f, int fd, struct span *out)
{
    int error = mark_find(f, fd, out);

    if (f->is_shared && (f->flags & O_APPEND) && !f->is_placed)
        spans_clear(&f->dirty);
    return error == 0 ? spans_add(&f->dirty, out->from, out->to) : error;
}

int mark_set_at_end(struct file *f, int fd)
{
    uint64_t at = 0;

    if (!f->is_shared)
        return 0;
    int error = find_end(f, fd, &at);
    return error == 0 ? mark_set(f, fd, at) : error;
}

int mark_before_seek(struct file *f, int fd)
{
    struct span s;

    if (!f->is_shared || (f->flags & O_APPEND))
        return 0;
    int error = mark_find(f, fd, &s);
    return error == 0 && s.from < s.to ? spans_add(&f->dirty, s.from, s.to) : error;
}

int mark_after_seek(struct file *f, int fd)
{
    return f->flags & O_APPEND ? 0 : mark_set_at_end(f, fd);
}
