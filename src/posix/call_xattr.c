/* Extended attributes, which files of mounts do not have; access control lists are such attributes, too. */
#include <errno.h>
#include <sys/xattr.h>
#include "posix/begin.h"
#include "posix/file.h"
#include "posix/next.h"
#include "posix/route.h"

/* Whether a path leads into a mount. Then *result is that of a call that needs attributes. */
static int is_inside(const char *path, int flags, int *result)
{
    struct route r;
    struct stat st;

    posix_begin();
    if (!route_find(&r, AT_FDCWD, path))
        return 0;
    *result = fstatat(AT_FDCWD, path, &st, flags) == 0 ? posix_result(ENOTSUP) : -1;
    return 1;
}

static int is_descriptor_inside(int fd)
{
    posix_begin();
    return file_is_ours(fd);
}

CALL ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
    int result;

    return is_inside(path, 0, &result) ? result : next.getxattr(path, name, value, size);
}

CALL ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
    int result;

    return is_inside(path, AT_SYMLINK_NOFOLLOW, &result) ? result : next.lgetxattr(path, name, value, size);
}

CALL ssize_t fgetxattr(int fd, const char *name, void *value, size_t size)
{
    return is_descriptor_inside(fd) ? posix_result(ENOTSUP) : next.fgetxattr(fd, name, value, size);
}

CALL int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    int result;

    return is_inside(path, 0, &result) ? result : next.setxattr(path, name, value, size, flags);
}

CALL int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    int result;

    return is_inside(path, AT_SYMLINK_NOFOLLOW, &result) ? result : next.lsetxattr(path, name, value, size, flags);
}

CALL int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    return is_descriptor_inside(fd) ? posix_result(ENOTSUP) : next.fsetxattr(fd, name, value, size, flags);
}

CALL int removexattr(const char *path, const char *name)
{
    int result;

    return is_inside(path, 0, &result) ? result : next.removexattr(path, name);
}

CALL int lremovexattr(const char *path, const char *name)
{
    int result;

    return is_inside(path, AT_SYMLINK_NOFOLLOW, &result) ? result : next.lremovexattr(path, name);
}

CALL int fremovexattr(int fd, const char *name)
{
    return is_descriptor_inside(fd) ? posix_result(ENOTSUP) : next.fremovexattr(fd, name);
}

/* The list of them is empty. */
static ssize_t none(int result)
{
    return result != 0 && errno == ENOTSUP ? 0 : result;
}

CALL ssize_t listxattr(const char *path, char *list, size_t size)
{
    int result;

    return is_inside(path, 0, &result) ? none(result) : next.listxattr(path, list, size);
}

CALL ssize_t llistxattr(const char *path, char *list, size_t size)
{
    int result;

    return is_inside(path, AT_SYMLINK_NOFOLLOW, &result) ? none(result) : next.llistxattr(path, list, size);
}

CALL ssize_t flistxattr(int fd, char *list, size_t size)
{
    return is_descriptor_inside(fd) ? 0 : next.flistxattr(fd, list, size);
}
