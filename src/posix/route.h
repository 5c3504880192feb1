/* Where paths lead. */
#ifndef DELTAFS_POSIX_ROUTE_H
#define DELTAFS_POSIX_ROUTE_H

#include "posix/file.h"
#include "posix/mount.h"

/* Where a call's path leads. */
struct route {
    struct mount *mount; /* NULL: out of all mounts; then `folder` and `path` are for the C library's function */
    int folder;
    const char *path; /* else the path within the mount, which begins with '/', "." and ".." being as they were given */
    int is_followed;  /* it was changed to where symbolic links lead: follow.h */
    char room[PATH_MAX];
};

/* A function with a route takes a page of the stack, which is not in the processor's cache: calls of what is outside of
 * mounts do without it, so it is in functions of its own. */
#define APART __attribute__((noinline))

/* Find where a path leads that begins at `folder` (AT_FDCWD, or a descriptor). Returns whether it is in a mount. */
int route_find(struct route *r, int folder, const char *path);
/* The file of a mount that a path of the system such as /dev/stdout or /proc/self/fd/3 stands for, with one user more;
 * NULL: it does not. The kernel would open the memfd, and nobody would know of what is written there. */
struct file *route_find_descriptor(const char *path);
static inline struct file *route_descriptor(const char *path)
{
    int may_be = mounts.is_used && path && path[0] == '/' && (path[1] == 'd' || path[1] == 'p');

    return may_be ? route_find_descriptor(path) : NULL;
}
/* Whether there is no path, or an empty one; headers say that calls are never given none, and they are. */
int path_is_empty(const char *path);
/* Whether a path surely leads out of all mounts; the usual case, and fast. */
int route_is_outside(int folder, const char *path);

/* The working directory: *within is the path within the mount, NULL: it is out of all mounts. */
struct mount *working_folder(const char **within);
/* Change it: to a folder of a mount, or, with NULL, to that of the kernel. */
int working_folder_set(struct mount *m, const char *within);
/* A folder of a mount has another path: the working directory may be in it. */
void working_folder_renamed(const struct mount *m, const char *from, const char *to);

#endif
