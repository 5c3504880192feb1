#include "posix/follow.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#ifdef SYS_openat2
#include <linux/openat2.h>
#endif
#include "posix/file.h"
#include "posix/next.h"
#include "posix/particles.h"
#include "posix/pooled.h"
#include "posix/posix_tree.h"

#define LINKS_MAX 40 /* as Linux has it */

/* ---- In mounts ---- */

int inside_stat(struct mount *m, const char *path, int flags, struct stat *out)
{
    if (m->stat)
        return m->stat(path, out);
    if (m->kind == MOUNT_POOL)
        return pooled_stat(m, path, flags, out);
    return m->kind == MOUNT_PARTICLES ? particles_stat(m, path, out) : tree_stat(m, path, flags, out);
}

int inside_readlink(const struct mount *m, const char *path, char *target, size_t room, size_t *size)
{
    deltafs_namespace *ns;

    if (m->kind == MOUNT_POOL)
        return pooled_readlink(m, path, target, room, size);
    if (!m->tree)
        return EINVAL;
    int error = tree_begin(m->tree, 0, &ns);
    return error == 0 ? tree_end(m->tree, deltafs_namespace_readlink(ns, path, target, room, size)) : error;
}

/* ---- Anywhere ---- */

/* Folders above a mount point: they need not be there, and are none of the links that they may be. */
static int is_above_mount(const char *path)
{
    size_t n = strlen(path);

    for (size_t i = 0; i < mounts.count; i++)
        if (strncmp(mounts.mount[i].point, path, n) == 0 && mounts.mount[i].point[n] == '/')
            return 1;
    return 0;
}

static const char *within(const struct mount *m, const char *path)
{
    return path[m->point_size] ? path + m->point_size : "/";
}

/* lstat of an absolute path that has no links but the last name. */
static int stat_at(const char *path, struct stat *out)
{
    struct mount *m = mount_of(path);

    if (m)
        return inside_stat(m, within(m, path), AT_SYMLINK_NOFOLLOW, out);
    if (!is_above_mount(path))
        return next.fstatat(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
    *out = (struct stat){.st_mode = S_IFDIR};
    return 0;
}

/* The target of the link that such a path is. EINVAL: it is none. */
static int readlink_at(const char *path, char target[static PATH_MAX], size_t *size)
{
    const struct mount *m = mount_of(path);
    struct stat st;

    if (m && (m->kind == MOUNT_NAMESPACE || m->kind == MOUNT_POOL))
        return inside_readlink(m, within(m, path), target, PATH_MAX, size);
    if (m || is_above_mount(path)) {
        int error = stat_at(path, &st);
        return error != 0 ? error : EINVAL;
    }
    ssize_t n = next.readlinkat(AT_FDCWD, path, target, PATH_MAX);
    *size = n < 0 ? 0 : (size_t)n;
    return n < 0 ? errno : 0;
}

/* ---- Walking ---- */

enum walk_how {
    WALK_LAST = 1,   /* follow a link that the path ends in */
    WALK_MISSING = 2 /* the last name need not be there */
};

struct walk {
    char *out; /* where it has come to; "" is the root */
    size_t size;
    int links;
    const char *at; /* what is still to go, in: */
    char rest[2 * PATH_MAX];
};

/* What is to go: `text`, and then `rest`, which may be a part of the room. */
static int walk_put(struct walk *w, const char *text, size_t n, const char *rest)
{
    size_t size = strlen(rest) + 1;

    if (n + size > sizeof w->rest)
        return ENAMETOOLONG;
    memmove(w->rest + n, rest, size);
    memcpy(w->rest, text, n);
    w->at = w->rest;
    return 0;
}

/* Begin where a relative path does. */
static int walk_from(struct walk *w, int folder, const char *path)
{
    char here[2 * PATH_MAX], name[64];
    struct file *f = folder == AT_FDCWD ? NULL : file_get(folder);
    ssize_t n = 0;

    if (f) {
        n = file_path(f, here, sizeof here);
    } else if (folder == AT_FDCWD) {
        n = getcwd(here, PATH_MAX) ? (ssize_t)strlen(here) : -1;
    } else {
        snprintf(name, sizeof name, "/proc/self/fd/%d", folder);
        n = next.readlinkat(AT_FDCWD, name, here, PATH_MAX);
    }
    file_put(f);
    if (n < 0 || (size_t)n >= sizeof here)
        return n < 0 ? errno : ENAMETOOLONG;
    here[n++] = '/';
    return walk_put(w, here, (size_t)n, path);
}

static int walk_append(struct walk *w, const char *name, size_t n)
{
    if (w->size + n + 2 > PATH_MAX)
        return ENAMETOOLONG;
    w->out[w->size++] = '/';
    memcpy(w->out + w->size, name, n);
    w->size += n;
    w->out[w->size] = '\0';
    return 0;
}

static void walk_up(struct walk *w)
{
    while (w->size > 0 && w->out[--w->size] != '/')
        ;
    w->out[w->size] = '\0';
}

static int check_folder(const struct walk *w)
{
    struct stat st;
    int error = w->size > 0 ? stat_at(w->out, &st) : 0;

    return error != 0 ? error : w->size > 0 && !S_ISDIR(st.st_mode) ? ENOTDIR : 0;
}

static int walk_link(struct walk *w, const char *target, size_t size)
{
    if (size == 0 || ++w->links > LINKS_MAX)
        return size == 0 ? ENOENT : ELOOP;
    if (*target == '/') {
        w->size = 0;
        w->out[0] = '\0';
    } else {
        walk_up(w);
    }
    return walk_put(w, target, size, w->at);
}

static int walk_name(struct walk *w, const char *name, size_t n, int how)
{
    int is_last = w->at[strspn(w->at, "/")] == '\0', is_end = *w->at == '\0';
    char target[PATH_MAX];
    size_t size = 0;
    int error = walk_append(w, name, n);

    if (error == 0)
        error = readlink_at(w->out, target, &size);
    if (error == 0 && (!is_end || (how & WALK_LAST)))
        return walk_link(w, target, size);
    if (error == EINVAL)
        return is_last && !is_end ? check_folder(w) : 0;
    return error == ENOENT && is_last && (how & WALK_MISSING) ? 0 : error;
}

static int walk_step(struct walk *w, int how)
{
    const char *name = w->at;
    size_t n = strcspn(name, "/");
    int is_dot = n == 1 && name[0] == '.', is_up = n == 2 && name[0] == '.' && name[1] == '.';
    int error = is_dot || is_up ? check_folder(w) : 0;

    w->at += n;
    if (is_up)
        walk_up(w);
    return is_dot || is_up ? error : walk_name(w, name, n, how);
}

static int walk_path(int folder, const char *path, int how, char out[static PATH_MAX])
{
    struct walk w;

    w.out = out;
    w.out[0] = '\0';
    w.size = 0;
    w.links = 0;
    int error = *path == '/' ? walk_put(&w, "", 0, path) : walk_from(&w, folder, path);
    while (error == 0 && *(w.at += strspn(w.at, "/")))
        error = walk_step(&w, how);
    if (!*out)
        memcpy(out, "/", 2);
    return error;
}

int follow_path(int folder, const char *path, char out[static PATH_MAX])
{
    return path_is_empty(path) ? ENOENT : walk_path(folder, path, WALK_LAST, out);
}

int follow_name(int folder, const char *path, char out[static PATH_MAX])
{
    return path_is_empty(path) ? ENOENT : walk_path(folder, path, WALK_MISSING, out);
}

/* ---- Calls that have failed ---- */

/* Most calls that fail do so because there is nothing, and programs look at many places. So two quick looks come before
 * the walk: whether a namespace has the folder that the name would be in, and does not have the name as a link, */
static int inside_is_missing(const struct route *r, int has_last)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    const char *slash = strrchr(r->path, '/');
    size_t n = (size_t)(slash - r->path) + 1, size;
    char above[PATH_MAX], byte;
    deltafs_namespace *ns;

    if (!r->mount->tree) /* a pool says ELOOP if a link leads out of it; others have no links */
        return 1;
    if (!slash[1] || strcmp(slash, "/.") == 0 || strcmp(slash, "/..") == 0)
        return 0;
    memcpy(above, r->path, n);
    above[n] = '\0';
    if (tree_begin(r->mount->tree, 0, &ns) != 0)
        return 0;
    int is_missing = deltafs_namespace_stat(ns, above, 0, &s) == DELTAFS_OK && S_ISDIR(s.mode) &&
                     (!has_last || deltafs_namespace_readlink(ns, r->path, &byte, 1, &size) == DELTAFS_ERR_NOT_FOUND);
    return tree_end(r->mount->tree, DELTAFS_OK) == 0 && is_missing;
}

/* and whether the kernel says the same of the path if it must not follow a link. */
static int outside_is_missing(const struct route *r, int has_last)
{
#ifdef SYS_openat2
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | (has_last ? 0u : O_NOFOLLOW), .resolve = RESOLVE_NO_SYMLINKS};
    long fd = next.syscall(SYS_openat2, r->folder, r->path, &how, sizeof how);

    if (fd >= 0)
        next.close((int)fd);
    return fd < 0 && errno == ENOENT;
#else
    (void)r;
    (void)has_last;
    return 0;
#endif
}

/* Change a route to a path that was followed. Returns whether it leads elsewhere. */
static int change_route(struct route *r, char path[static PATH_MAX], int is_folder)
{
    size_t n = strlen(path);
    struct mount *m = mount_of(path);

    if (is_folder && n + 1 < PATH_MAX)
        memcpy(path + n, "/", 2);
    if (!m ? !r->mount : m == r->mount && strcmp(within(m, path), r->path) == 0)
        return 0;
    memcpy(r->room, m ? within(m, path) : path, strlen(m ? within(m, path) : path) + 1);
    r->mount = m;
    r->folder = AT_FDCWD;
    r->path = r->room;
    return 1;
}

int follow_route(struct route *r, int has_last)
{
    char from[2 * PATH_MAX], out[PATH_MAX];
    int error = errno, is_again = 0, may_be = error == ENOENT || (r->mount && (error == ELOOP || error == ENOTDIR));

    if (mounts.count == 0 || r->is_followed || (r->mount && r->mount->kind == MOUNT_LOGICAL) || !may_be ||
        path_is_empty(r->path))
        return 0;
    r->is_followed = 1;
    int is_missing = error == ENOENT && (r->mount ? inside_is_missing(r, has_last) : outside_is_missing(r, has_last));
    errno = error;
    if (is_missing)
        return 0;
    if (r->mount)
        snprintf(from, sizeof from, "%s%s", r->mount->point, r->path);
    const char *path = r->mount ? from : r->path;
    int walked = walk_path(r->folder, path, WALK_MISSING | (has_last ? WALK_LAST : 0), out);
    if (walked == 0)
        is_again = change_route(r, out, path[strlen(path) - 1] == '/');
    errno = r->mount && walked != 0 ? walked : error;
    return is_again;
}

int follow_find(struct route *r, int folder, const char *path)
{
    struct stat st;
    int result;

    route_find(r, folder, path);
    do
        result =
            r->mount ? posix_result(inside_stat(r->mount, r->path, 0, &st)) : next.fstatat(r->folder, r->path, &st, 0);
    while (result != 0 && follow_route(r, 1));
    return result == 0 ? 0 : errno;
}
