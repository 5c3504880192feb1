#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tools/aside.h"
#include "tools/place_file.h"
#include "tools/text.h"

/* ---- Files ---- */

int place_file_open(const struct place *p, int flags, mode_t mode, struct place_file *out)
{
    int status;

    *out = (struct place_file){.fd = -1};
    if (p->ns)
        status = deltafs_namespace_file_open(p->ns, p->path, flags, mode, &out->file);
    else if (p->pool)
        status = deltafs_pool_file_open(p->pool, p->path, flags, mode, &out->pooled);
    else
        status = (out->fd = open(p->path, flags | O_CLOEXEC, mode)) < 0 ? -1 : 0;
    return status == 0 ? EXIT_OK : place_fail(p, status);
}

int place_file_read(const struct place *p, struct place_file *f, void *bytes, size_t room, size_t *got)
{
    int status = 0;

    *got = 0;
    if (f->file) {
        status = deltafs_namespace_file_read(f->file, f->at, bytes, room, got);
    } else if (f->pooled) {
        status = deltafs_pool_file_read(f->pooled, f->at, bytes, room, got);
    } else {
        ssize_t n = read(f->fd, bytes, room);
        status = n < 0 ? -1 : 0;
        *got = n < 0 ? 0 : (size_t)n;
    }
    f->at += *got;
    return status == 0 ? EXIT_OK : place_fail(p, status);
}

int place_file_write(const struct place *p, struct place_file *f, const char *bytes, size_t size)
{
    int status = 0;

    if (f->file)
        status = deltafs_namespace_file_write(f->file, f->at, bytes, size);
    else if (f->pooled)
        status = deltafs_pool_file_write(f->pooled, f->at, bytes, size);
    f->at += size;
    for (ssize_t n; f->fd >= 0 && status == 0 && size > 0; bytes += n, size -= (size_t)n) {
        n = write(f->fd, bytes, size);
        if (n < 0)
            return place_fail(p, -1);
    }
    return status == 0 ? EXIT_OK : place_fail(p, status);
}

int place_file_check(const struct place *p, const struct place_file *f, const char *bytes, size_t size, char *room)
{
    struct place_file again = *f;
    size_t got = 1;
    int code = EXIT_OK;

    again.at -= size;
    if (f->fd >= 0 && lseek(f->fd, (off_t)again.at, SEEK_SET) < 0)
        return place_fail(p, -1);
    for (size_t n = 0; n < size && code == EXIT_OK && got > 0; n += got)
        code = place_file_read(p, &again, room + n, size - n, &got);
    if (code == EXIT_OK && (again.at != f->at || memcmp(bytes, room, size) != 0))
        code = place_refuse(p, "has other bytes than were written to it");
    return code;
}

int place_file_close(const struct place *p, struct place_file *f)
{
    int status = 0;

    if (f->file)
        status = deltafs_namespace_file_close(f->file);
    else if (f->pooled)
        status = deltafs_pool_file_close(f->pooled);
    else if (f->fd >= 0)
        status = close(f->fd);
    return status == 0 ? EXIT_OK : place_fail(p, status);
}

static int remove_file(const struct place *p, const char *path)
{
    if (p->pool)
        return deltafs_pool_unlink(p->pool, path);
    return p->ns ? deltafs_namespace_unlink(p->ns, path) : unlink(path);
}

void place_remove_part(const struct place *p)
{
    struct stat st;

    if (place_stat(p, 0, 1, &st) != EXIT_OK || !S_ISREG(st.st_mode))
        return;
    int status = remove_file(p, p->path);
    if (status != 0)
        place_fail(p, status);
}

/* ---- What else there is ---- */

static int make_link(const struct place *p, const char *target, const char *path)
{
    if (p->pool)
        return deltafs_pool_symlink(p->pool, target, path);
    return p->ns ? deltafs_namespace_symlink(p->ns, target, path) : symlink(target, path);
}

/* The path of what is replaced may lead through it. So the link is made beside it. */
static int replace_by_link(const struct place *p, const char *target)
{
    char folder[PATH_MAX], aside[ASIDE_ROOM];

    aside_name("cp", p->path, folder, aside);
    int status = make_link(p, target, aside);
    if (status != 0)
        return place_fail(p, status);
    status = p->pool ? deltafs_pool_rename(p->pool, aside, p->path)
             : p->ns ? deltafs_namespace_rename(p->ns, aside, p->path)
                     : rename(aside, p->path);
    if (status == 0)
        return EXIT_OK;
    int code = place_fail(p, status);
    remove_file(p, aside);
    return code;
}

int place_link(const struct place *p, const char *target, int is_there)
{
    if (is_there)
        return replace_by_link(p, target);
    int status = make_link(p, target, p->path);
    return status == 0 ? EXIT_OK : place_fail(p, status);
}

int place_mkdir(const struct place *p, mode_t mode)
{
    int status;

    if (p->pool)
        status = deltafs_pool_mkdir(p->pool, p->path, mode);
    else
        status = p->ns ? deltafs_namespace_mkdir(p->ns, p->path, mode) : mkdir(p->path, mode);
    return status == 0 ? EXIT_OK : place_fail(p, status);
}

static int64_t nanoseconds(struct timespec t)
{
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int preserve_in_pool(const struct place *p, const struct stat *st)
{
    struct deltafs_pool_attributes a = {.struct_size = sizeof a,
                                        .set = DELTAFS_POOL_MODE | DELTAFS_POOL_MTIME | DELTAFS_POOL_ATIME,
                                        .mode = st->st_mode & 07777,
                                        .mtime = nanoseconds(st->st_mtim),
                                        .atime = nanoseconds(st->st_atim)};

    return deltafs_pool_set_attributes(p->pool, p->path, 0, &a);
}

static int preserve_in_namespace(const struct place *p, const struct stat *st)
{
    struct deltafs_namespace_attributes a = {.struct_size = sizeof a,
                                             .set = DELTAFS_NAMESPACE_MODE | DELTAFS_NAMESPACE_MTIME |
                                                    DELTAFS_NAMESPACE_ATIME,
                                             .mode = st->st_mode & 07777,
                                             .mtime = nanoseconds(st->st_mtim),
                                             .atime = nanoseconds(st->st_atim)};

    return deltafs_namespace_set_attributes(p->ns, p->path, 0, &a);
}

int place_preserve(const struct place *p, const struct stat *st)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    int status;

    if (p->pool)
        status = preserve_in_pool(p, st);
    else if (p->ns)
        status = preserve_in_namespace(p, st);
    else if ((status = chmod(p->path, st->st_mode & 07777)) == 0)
        status = utimensat(AT_FDCWD, p->path, times, 0);
    return status == 0 ? EXIT_OK : place_fail(p, status);
}
