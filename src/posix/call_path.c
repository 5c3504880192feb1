/* Paths: where links lead, and the working directory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "posix/begin.h"
#include "posix/file.h"
#include "posix/follow.h"
#include "posix/logical_view.h"
#include "posix/next.h"
#include "posix/undeclared.h"

/* ---- Links ---- */

static ssize_t read_link(const struct route *r, char *target, size_t room)
{
    size_t size = 0;
    int error = inside_readlink(r->mount, r->path, target, room, &size);

    return error == 0 ? (ssize_t)(size < room ? size : room) : posix_result(error);
}

CALL ssize_t readlinkat(int folder, const char *path, char *target, size_t room)
{
    struct route r;
    ssize_t size;

    posix_begin();
    route_find(&r, folder, path);
    do
        size = r.mount ? read_link(&r, target, room) : next.readlinkat(r.folder, r.path, target, room);
    while (size < 0 && follow_route(&r, 0));
    return size;
}

CALL ssize_t readlink(const char *path, char *target, size_t room)
{
    return readlinkat(AT_FDCWD, path, target, room);
}

CALL ssize_t __readlinkat_chk(int folder, const char *path, char *target, size_t size, size_t room)
{
    if (size > room)
        abort();
    return readlinkat(folder, path, target, size);
}

CALL ssize_t __readlink_chk(const char *path, char *target, size_t size, size_t room)
{
    return __readlinkat_chk(AT_FDCWD, path, target, size, room);
}

/* The same path without links: in `room`, or on the heap. */
static char *resolve(const char *path, char *room)
{
    char out[PATH_MAX];
    int error = follow_path(AT_FDCWD, path, out);

    if (error != 0) {
        errno = error;
        return NULL;
    }
    return room ? memcpy(room, out, strlen(out) + 1) : strdup(out);
}

/* The C library does this by itself, and finds nothing in mounts. */
CALL char *realpath(const char *path, char *room)
{
    posix_begin();
    if (route_is_outside(AT_FDCWD, path)) {
        char *real = next.realpath(path, room);
        if (real || mounts.count == 0 || errno != ENOENT)
            return real;
    }
    return resolve(path, room);
}

CALL char *canonicalize_file_name(const char *path)
{
    return realpath(path, NULL);
}

CALL char *__realpath_chk(const char *path, char *resolved, size_t room)
{
    if (room < PATH_MAX)
        abort();
    return realpath(path, resolved);
}

/* ---- The working directory ---- */

/* Go to a path that has no links. */
static int go_to(const char *path)
{
    struct mount *m = mount_of(path);
    const char *inside = m && path[m->point_size] ? path + m->point_size : "/";
    struct stat st;
    int error = m ? inside_stat(m, inside, 0, &st) : next.chdir(path) == 0 ? 0 : errno;

    if (error == 0 && m && !S_ISDIR(st.st_mode))
        error = ENOTDIR;
    return error == 0 ? working_folder_set(m, inside) : error;
}

static int follow_and_go(int folder, const char *path)
{
    char out[PATH_MAX];
    int error = follow_path(folder, path, out);

    return posix_result(error == 0 ? go_to(out) : error);
}

CALL int chdir(const char *path)
{
    struct route r;

    posix_begin();
    if (route_find(&r, AT_FDCWD, path))
        return follow_and_go(AT_FDCWD, path);
    int result = logical_find(&r, 1, CALLER) ? posix_result(ENOTDIR) : next.chdir(r.path);
    if (result == 0)
        working_folder_set(NULL, NULL);
    else if (mounts.count > 0 && errno == ENOENT)
        result = follow_and_go(AT_FDCWD, path);
    return result;
}

CALL int fchdir(int fd)
{
    posix_begin();
    logical_take(fd, CALLER);
    struct file *f = file_get(fd);
    int is_ours = f != NULL, is_logical = f && f->mount->kind == MOUNT_LOGICAL;
    file_put(f);
    if (is_ours)
        return is_logical ? posix_result(ENOTDIR) : follow_and_go(fd, ".");
    int result = next.fchdir(fd);
    if (result == 0)
        working_folder_set(NULL, NULL);
    return result;
}

/* The path of the working directory in a mount, as getcwd gives it: in `path`, or on the heap. */
static char *give_working_folder(const struct mount *m, const char *within, char *path, size_t room)
{
    size_t size = strlen(within), n = size == 1 ? 0 : size; /* "/" is the mount point */

    n -= n > 0 && within[n - 1] == '/';
    size_t need = m->point_size + n + 1;
    if (path && room < need) {
        errno = room == 0 ? EINVAL : ERANGE;
        return NULL;
    }
    path = path ? path : malloc(room > need ? room : need);
    if (!path)
        return NULL;
    memcpy(path, m->point, m->point_size);
    memcpy(path + m->point_size, within, n);
    path[need - 1] = '\0';
    return path;
}

CALL char *getcwd(char *path, size_t room)
{
    const char *within;

    posix_begin();
    const struct mount *m = working_folder(&within);
    return m ? give_working_folder(m, within, path, room) : next.getcwd(path, room);
}

CALL char *getwd(char *path)
{
    return getcwd(path, PATH_MAX);
}

CALL char *__getwd_chk(char *path, size_t room)
{
    return getcwd(path, room);
}

CALL char *get_current_dir_name(void)
{
    return getcwd(NULL, 0);
}

CALL char *__getcwd_chk(char *path, size_t size, size_t room)
{
    if (size > room)
        abort();
    return getcwd(path, size);
}
