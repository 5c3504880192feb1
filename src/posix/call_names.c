/* Names: what creates, removes and renames them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posix/begin.h"
#include "posix/follow.h"
#include "posix/logical_view.h"
#include "posix/names_open.h"
#include "posix/next.h"
#include "posix/particles.h"
#include "posix/pooled.h"
#include "posix/posix_tree.h"
#include "posix/route.h"
#include "posix/umask.h"

static int names_begin(const struct mount *m, deltafs_namespace **ns)
{
    return m->tree ? tree_begin(m->tree, 1, ns) : EPERM;
}

/* ---- Creating ---- */

/* `from` is where the call returns to. The library of DeltaFS opens the files in its folders without this one. */
static int make_folder(const struct route *r, mode_t mode, const void *from)
{
    deltafs_namespace *ns;

    if (library() && library_is_caller(from)) {
        posix_say("%s%s: logical files and DeltaFS directories cannot be in a mount", r->mount->point, r->path);
        return EOPNOTSUPP;
    }
    if (r->mount->kind == MOUNT_PARTICLES)
        return particles_make_folder(r->mount, r->path);
    if (r->mount->kind == MOUNT_POOL)
        return pooled_make_folder(r->mount, r->path, mode);
    int error = names_begin(r->mount, &ns);
    mode &= 07777 & ~current_umask();
    return error == 0 ? tree_end(r->mount->tree, deltafs_namespace_mkdir(ns, r->path, mode)) : error;
}

static inline int folder_call(int folder, const char *path, mode_t mode, const void *from)
{
    struct route r;
    int result;

    posix_begin();
    route_find(&r, folder, path);
    do
        result = r.mount ? posix_result(make_folder(&r, mode, from)) : next.mkdirat(r.folder, r.path, mode);
    while (result != 0 && follow_route(&r, 0));
    return result;
}

CALL int mkdirat(int folder, const char *path, mode_t mode)
{
    return folder_call(folder, path, mode, CALLER);
}

CALL int mkdir(const char *path, mode_t mode)
{
    return folder_call(AT_FDCWD, path, mode, CALLER);
}

static int make_link(const char *target, const struct route *r)
{
    deltafs_namespace *ns;

    if (r->mount->kind == MOUNT_POOL)
        return pooled_symlink(r->mount, target, r->path);
    int error = names_begin(r->mount, &ns);

    return error == 0 ? tree_end(r->mount->tree, deltafs_namespace_symlink(ns, target, r->path)) : error;
}

CALL int symlinkat(const char *target, int folder, const char *path)
{
    struct route r;
    int result;

    posix_begin();
    route_find(&r, folder, path);
    do
        result = r.mount ? posix_result(make_link(target, &r)) : next.symlinkat(target, r.folder, r.path);
    while (result != 0 && follow_route(&r, 0));
    return result;
}

CALL int symlink(const char *target, const char *path)
{
    return symlinkat(target, AT_FDCWD, path);
}

/* There are no hard links: programs then copy. */
CALL int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    struct route a, b;

    posix_begin();
    int is_in = route_find(&a, from_folder, from), is_to = route_find(&b, to_folder, to);
    if (is_in || is_to)
        return posix_result(is_in && is_to && a.mount == b.mount ? EPERM : EXDEV);
    return next.linkat(a.folder, a.path, b.folder, b.path, flags);
}

CALL int link(const char *from, const char *to)
{
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* ---- Removing ---- */

static int remove_folder(const struct route *r)
{
    deltafs_namespace *ns;
    int error = names_begin(r->mount, &ns);

    return error == 0 ? tree_end(r->mount->tree, deltafs_namespace_rmdir(ns, r->path)) : error;
}

static int remove_name(const struct route *r)
{
    struct renaming n = {.mount = r->mount, .old = r->path};
    deltafs_namespace *ns;

    int error = r->mount->kind == MOUNT_PARTICLES ? EPERM : tree_stat(r->mount, r->path, AT_SYMLINK_NOFOLLOW, &n.from);
    if (error != 0)
        return error;
    names_hold(&n);
    error = names_begin(r->mount, &ns);
    if (error == 0)
        error = tree_end(r->mount->tree, deltafs_namespace_unlink(ns, r->path));
    names_end(&n, error == 0);
    return error;
}

static int remove_logical(const struct route *r)
{
    struct renaming n = {.mount = r->mount, .old = r->path};

    if (next.fstatat(AT_FDCWD, r->path, &n.from, 0) != 0)
        return errno;
    names_hold(&n);
    int error = logical_remove(r->path);
    names_end(&n, error == 0);
    return error;
}

static int remove_inside(const struct route *r, int is_folder)
{
    if (r->mount->kind == MOUNT_LOGICAL)
        return is_folder ? ENOTDIR : remove_logical(r);
    if (r->mount->kind == MOUNT_POOL)
        return pooled_remove(r->mount, r->path, is_folder);
    return is_folder ? remove_folder(r) : remove_name(r);
}

/* Whether a path ends in "." (1) or ".." (2). */
static int ends_in_dots(const char *path)
{
    size_t n = path_is_empty(path) ? 0 : strlen(path), dots = 0;

    while (n > 0 && path[n - 1] == '/')
        n--;
    for (; n > 0 && path[n - 1] == '.' && dots < 3; n--)
        dots++;
    return (n == 0 || path[n - 1] == '/') && dots <= 2 ? (int)dots : 0;
}

static int unlink_call(int folder, const char *path, int flags, const void *from)
{
    struct route r;
    int result;

    posix_begin();
    route_find(&r, folder, path);
    if (r.mount && (flags & AT_REMOVEDIR) && ends_in_dots(path))
        return posix_result(ends_in_dots(path) == 1 ? EINVAL : ENOTEMPTY);
    do
        result =
            r.mount ? posix_result(remove_inside(&r, flags & AT_REMOVEDIR)) : next.unlinkat(r.folder, r.path, flags);
    while (result != 0 && (follow_route(&r, 0) || logical_route(&r, 0, from)));
    return result;
}

CALL int unlinkat(int folder, const char *path, int flags)
{
    return unlink_call(folder, path, flags, CALLER);
}

CALL int unlink(const char *path)
{
    return unlink_call(AT_FDCWD, path, 0, CALLER);
}

CALL int rmdir(const char *path)
{
    return unlink_call(AT_FDCWD, path, AT_REMOVEDIR, CALLER);
}

CALL int remove(const char *path)
{
    struct stat st;

    if (fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return -1;
    return unlink_call(AT_FDCWD, path, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0, CALLER);
}

/* ---- Renaming ---- */

/* With the lock of the tree, so that no other process creates the name in between. */
static int rename_entry(deltafs_namespace *ns, const char *from, const char *to, unsigned flags)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};

    if ((flags & RENAME_NOREPLACE) && deltafs_namespace_stat(ns, to, AT_SYMLINK_NOFOLLOW, &s) == DELTAFS_OK)
        return DELTAFS_ERR_EXISTS;
    return deltafs_namespace_rename(ns, from, to);
}

static int rename_inside(const struct route *a, const struct route *b, unsigned flags)
{
    struct renaming n = {.mount = a->mount, .old = a->path, .new = b->path};
    deltafs_namespace *ns;

    int error = tree_stat(a->mount, a->path, AT_SYMLINK_NOFOLLOW, &n.from);
    if (error != 0)
        return error;
    int has_to = tree_stat(b->mount, b->path, AT_SYMLINK_NOFOLLOW, &n.to) == 0;
    n.to.st_ino = has_to ? n.to.st_ino : 0;
    if (has_to && n.to.st_ino == n.from.st_ino)
        return flags & RENAME_NOREPLACE ? EEXIST : 0;
    names_hold(&n);
    error = names_begin(a->mount, &ns);
    if (error == 0)
        error = tree_end(a->mount->tree, rename_entry(ns, a->path, b->path, flags));
    if (error == 0)
        working_folder_renamed(a->mount, a->path, b->path);
    int noted = names_end(&n, error == 0);
    return error == 0 ? noted : error;
}

static int rename_system(const struct route *a, const struct route *b, unsigned flags, const void *caller)
{
    struct renaming n;
    int is_held = logical_names_hold(&n, a, b, caller), error = 0;

    if (next.renameat2(a->folder, a->path, b->folder, b->path, flags) != 0)
        error = mounts.has_logical ? logical_rename(a, b, flags, caller) : errno;
    if (is_held)
        logical_names_end(&n, b, error == 0);
    return posix_result(error);
}

static int rename_routes(const struct route *a, const struct route *b, unsigned flags, const void *caller)
{
    if (!a->mount && !b->mount)
        return rename_system(a, b, flags, caller);
    if (a->mount != b->mount)
        return posix_result(EXDEV);
    if (flags & ~(unsigned)RENAME_NOREPLACE)
        return posix_result(EINVAL);
    if (a->mount->kind == MOUNT_POOL)
        return posix_result(pooled_rename(a->mount, a->path, b->path, flags));
    return posix_result(a->mount->kind == MOUNT_PARTICLES ? EPERM : rename_inside(a, b, flags));
}

static int rename_call(int from_folder, const char *from, int to_folder, const char *to, unsigned flags,
                       const void *caller)
{
    struct route a, b;
    int result;

    posix_begin();
    route_find(&a, from_folder, from);
    route_find(&b, to_folder, to);
    if ((a.mount && ends_in_dots(from)) || (b.mount && ends_in_dots(to)))
        return posix_result(EBUSY);
    do
        result = rename_routes(&a, &b, flags, caller);
    while (result != 0 && (follow_route(&a, 0) || follow_route(&b, 0)));
    return result;
}

CALL int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    return rename_call(from_folder, from, to_folder, to, flags, CALLER);
}

CALL int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return rename_call(from_folder, from, to_folder, to, 0, CALLER);
}

CALL int rename(const char *from, const char *to)
{
    return rename_call(AT_FDCWD, from, AT_FDCWD, to, 0, CALLER);
}

/* ---- Size ---- */

static int truncate_path(const struct route *r, off_t size)
{
    deltafs_namespace *ns;

    if (size < 0)
        return EINVAL;
    if (r->mount->kind == MOUNT_LOGICAL)
        return logical_truncate(r->path, (uint64_t)size);
    if (r->mount->kind == MOUNT_POOL)
        return pooled_truncate(r->mount, r->path, (uint64_t)size);
    int error = r->mount->kind == MOUNT_NAMESPACE ? tree_publish_path(r->mount, r->path, 0) : 0;
    if (error == 0)
        error = names_begin(r->mount, &ns);
    if (error == 0)
        error = tree_end(r->mount->tree, deltafs_namespace_truncate(ns, r->path, (uint64_t)size));
    return error == 0 ? tree_refresh_path(r->mount, r->path, 0) : error;
}

CALL int truncate(const char *path, off_t size)
{
    struct route r;
    int result;

    posix_begin();
    route_find(&r, AT_FDCWD, path);
    do
        result = r.mount ? posix_result(truncate_path(&r, size)) : next.truncate(r.path, size);
    while (result != 0 && (follow_route(&r, 1) || logical_route(&r, 1, CALLER)));
    return result;
}
CALL_ALIAS(truncate64, truncate);
