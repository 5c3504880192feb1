/* Extended attributes, which files of mounts do not have; access control lists are such attributes, too. */
#include <errno.h>
#include <sys/xattr.h>
#include "posix/begin.h"
#include "posix/file.h"
#include "posix/follow.h"
#include "posix/next.h"

/* What a call says that needs attributes of a path in a mount. */
static int refuse(const struct route *r, int flags)
{
    struct stat st;
    int error = inside_stat(r->mount, r->path, flags, &st);

    return posix_result(error != 0 ? error : ENOTSUP);
}

/* Their list is empty. */
static int list_none(const struct route *r, int flags)
{
    return refuse(r, flags) != 0 && errno == ENOTSUP ? 0 : -1;
}

static int is_descriptor_inside(int fd)
{
    posix_begin();
    return file_is_ours(fd);
}

CALL ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
    struct route r;
    ssize_t result;

    posix_begin();
    route_find(&r, AT_FDCWD, path);
    do
        result = r.mount ? refuse(&r, 0) : next.getxattr(r.path, name, value, size);
    while (result < 0 && follow_route(&r, 1));
    return result;
}

CALL ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    struct route r;
    ssize_t result;

    posix_begin();
    route_find(&r, AT_FDCWD, path);
    do
        result = r.mount ? refuse(&r, AT_SYMLINK_NOFOLLOW) : next.lgetxattr(r.path, name, value, size);
    while (result < 0 && follow_route(&r, 0));
    return result;
}

CALL ssize_t fgetxattr(int fd, const char *name, void *value, size_t size)
{
    return is_descriptor_inside(fd) ? posix_result(ENOTSUP) : next.fgetxattr(fd, name, value, size);
}

CALL int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    struct route r;
    int result;

    posix_begin();
    route_find(&r, AT_FDCWD, path);
    do
        result = r.mount ? refuse(&r, 0) : next.setxattr(r.path, name, value, size, flags);
    while (result < 0 && follow_route(&r, 1));
    return result;
}

CALL int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    struct route r;
    int result;

    posix_begin();
    route_find(&r, AT_FDCWD, path);
    do
        result = r.mount ? refuse(&r, AT_SYMLINK_NOFOLLOW) : next.lsetxattr(r.path, name, value, size, flags);
    while (result < 0 && follow_route(&r, 0));
    return result;
}

CALL int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    return is_descriptor_inside(fd) ? posix_result(ENOTSUP) : next.fsetxattr(fd, name, value, size, flags);
}

CALL int removexattr(const char *path, const char *name)
{
    struct route r;
    int result;

    posix_begin();
    route_find(&r, AT_FDCWD, path);
    do
        result = r.mount ? refuse(&r, 0) : next.removexattr(r.path, name);
    while (result < 0 && follow_route(&r, 1));
    return result;
}

CALL int lremovexattr(const char *path, const char *name)
{
    struct route r;
    int result;

    posix_begin();
    route_find(&r, AT_FDCWD, path);
    do
        result = r.mount ? refuse(&r, AT_SYMLINK_NOFOLLOW) : next.lremovexattr(r.path, name);
    while (result < 0 && follow_route(&r, 0));
    return result;
}

CALL int fremovexattr(int fd, const char *name)
{
    return is_descriptor_inside(fd) ? posix_result(ENOTSUP) : next.fremovexattr(fd, name);
}

CALL ssize_t listxattr(const char *path, char *list, size_t size)
{
    struct route r;
    ssize_t result;

    posix_begin();
    route_find(&r, AT_FDCWD, path);
    do
        result = r.mount ? list_none(&r, 0) : next.listxattr(r.path, list, size);
    while (result < 0 && follow_route(&r, 1));
    return result;
}

CALL ssize_t llistxattr(const char *path, char *list, size_t size)
{
    struct route r;
    ssize_t result;

    posix_begin();
    route_find(&r, AT_FDCWD, path);
    do
        result = r.mount ? list_none(&r, AT_SYMLINK_NOFOLLOW) : next.llistxattr(r.path, list, size);
    while (result < 0 && follow_route(&r, 0));
    return result;
}

CALL ssize_t flistxattr(int fd, char *list, size_t size)
{
    return is_descriptor_inside(fd) ? 0 : next.flistxattr(fd, list, size);
}
