#include "posix/route.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "posix/file.h"
#include "posix/next.h"

static struct {
    struct mount *mount; /* NULL: the kernel's */
    char path[PATH_MAX]; /* within the mount */
    int is_above;        /* a mount point is below the kernel's, so a path without ".." can lead there */
} working;

/* ---- Paths ---- */

/* Whether a path has "." or ".." in it: then where it leads takes a closer look. A "." that it begins with does no
 * harm. Most paths have few dots, so they are what is looked for. */
static int has_dots(const char *path)
{
    for (const char *p = path; (p = strchr(p, '.')); p++) {
        size_t n = p[1] == '.' ? 2 : 1;
        if ((p > path ? p[-1] == '/' : n == 2) && (p[n] == '/' || !p[n]))
            return 1;
    }
    return 0;
}

/* Whether an absolute path without dots begins with a mount point; it may have empty names. */
static int begins_with(const char *path, const char *point)
{
    for (; *point && *path == *point; path++, point++)
        while (*path == '/' && path[1] == '/')
            path++;
    return !*point && (*path == '/' || !*path);
}

static int may_be_inside(const char *path)
{
    while (path[1] == '/')
        path++;
    for (const struct mount *m = mounts.mount, *end = m + mounts.count; m < end; m++)
        if (m->point[1] == path[1] && begins_with(path, m->point))
            return 1;
    return has_dots(path);
}

/* Whether a name in a path is the last one of a mount point: a path that begins at a folder of the system, such as "/",
 * leads into a mount only then. */
static int names_mount(const char *path)
{
    for (const struct mount *m = mounts.mount; m < mounts.mount + mounts.count; m++) {
        const char *name = strrchr(m->point, '/') + 1;
        size_t n = strlen(name);
        for (const char *p = path; (p = strstr(p, name)); p++)
            if ((p == path || p[-1] == '/') && (p[n] == '/' || !p[n]))
                return 1;
    }
    return 0;
}

int path_is_empty(const char *path)
{
    return !path || !*path;
}

int route_is_outside(int folder, const char *path)
{
    if (mounts.count == 0 || !path)
        return 1;
    if (*path == '/')
        return !may_be_inside(path);
    if (folder == AT_FDCWD)
        return !working.mount && !working.is_above && !has_dots(path);
    return !file_is_ours(folder) && !names_mount(path);
}

/* A path that is being made, one name after the other. */
struct making {
    struct route *r;
    size_t size;
    struct mount *mount; /* it is in */
    int has_entered;     /* it is in one, or was */
    int depth;           /* names below the mount point, less those that ".." takes back */
};

static int making_put(struct making *k, const char *name, size_t size)
{
    if (k->size + 1 + size >= sizeof k->r->room)
        return ENAMETOOLONG;
    k->r->room[k->size++] = '/';
    memcpy(k->r->room + k->size, name, size);
    k->size += size;
    k->r->room[k->size] = '\0';
    return 0;
}

/* Remove the last name. */
static void making_drop(struct making *k)
{
    while (k->size > 0 && k->r->room[--k->size] != '/')
        ;
    k->r->room[k->size] = '\0';
}

/* ".." in a mount: its links are followed first there, so it is kept; at the mount point it leads out. */
static int making_go_up(struct making *k)
{
    if (k->mount && k->depth > 0) {
        k->depth--;
        return making_put(k, "..", 2);
    }
    if (k->mount) {
        memcpy(k->r->room, k->mount->point, k->mount->point_size + 1);
        k->size = k->mount->point_size;
        k->mount = NULL;
    }
    making_drop(k);
    return 0;
}

static int making_go(struct making *k, const char *name, size_t size)
{
    if (size == 0 || (size == 1 && *name == '.'))
        return 0;
    if (size == 2 && name[0] == '.' && name[1] == '.')
        return making_go_up(k);
    int error = making_put(k, name, size);
    if (error != 0 || k->mount) {
        k->depth++;
        return error;
    }
    struct mount *m = mount_of(k->r->room);
    if (m && m->point_size == k->size) {
        k->mount = m;
        k->has_entered = 1;
        k->size = 0;
        k->depth = 0;
    }
    return 0;
}

static int making_go_all(struct making *k, const char *path)
{
    int error = 0;

    while (*path && error == 0) {
        size_t n = strcspn(path, "/");
        error = making_go(k, path, n);
        path += n + (path[n] == '/');
    }
    return error;
}

/* The path of a folder of the system that is open. */
static int folder_path(int folder, char path[static PATH_MAX])
{
    char link[64];

    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t n = next.readlinkat(AT_FDCWD, link, path, PATH_MAX);
    if (n == PATH_MAX)
        errno = ENAMETOOLONG;
    if (n < 0 || n == PATH_MAX)
        return 0;
    path[n] = '\0';
    return 1;
}

/* Go to where a relative path begins. Returns an error number. */
static int making_begin(struct making *k, int folder)
{
    char here[PATH_MAX];
    struct file *f = folder == AT_FDCWD ? NULL : file_get(folder);
    const struct mount *m = f ? f->mount : folder == AT_FDCWD ? working.mount : NULL;
    int error = 0;

    if (m) {
        error = making_go_all(k, m->point);
        if (f)
            pthread_mutex_lock(&f->lock);
        if (error == 0)
            error = making_go_all(k, f ? f->path : working.path);
        if (f)
            pthread_mutex_unlock(&f->lock);
    } else if (folder != AT_FDCWD ? folder_path(folder, here) : next.getcwd(here, sizeof here) != NULL) {
        error = making_go_all(k, here);
    } else {
        error = errno;
    }
    file_put(f);
    return error;
}

int route_find(struct route *r, int folder, const char *path)
{
    struct making k = {.r = r};

    r->mount = NULL;
    r->is_followed = 0;
    r->folder = folder;
    r->path = path;
    if (route_is_outside(folder, path) || !*path)
        return 0;
    if ((*path != '/' && making_begin(&k, folder) != 0) || making_go_all(&k, path) != 0)
        return 0; /* the kernel says the same of it */
    if (!k.has_entered)
        return 0;
    int is_folder = path[strlen(path) - 1] == '/' && k.size > 0;
    if (k.size == 0 || is_folder)
        making_put(&k, "", 0);
    r->mount = k.mount;
    r->folder = AT_FDCWD;
    r->path = r->room;
    return k.mount != NULL;
}

struct file *route_descriptor(const char *path)
{
    static const char *const standard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    char *end;

    if (!mounts.is_used || !path || (strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/proc/self/fd/", 14) != 0))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (strcmp(path, standard[i]) == 0)
            return file_get(i);
    const char *number = path + (path[1] == 'p' ? strlen("/proc/self/fd/") : strlen("/dev/fd/"));
    if (path[1] == 'd' && strncmp(path, "/dev/fd/", 8) != 0)
        return NULL;
    long fd = strtol(number, &end, 10);
    return end > number && !*end && fd < FILES_MAX ? file_get((int)fd) : NULL;
}

/* ---- The working directory ---- */

struct mount *working_folder(const char **within)
{
    *within = working.path;
    return working.mount;
}

/* Whether a mount point lies below the kernel's working directory. */
static int is_above_mounts(void)
{
    char here[PATH_MAX];
    int is = 0;

    if (!next.getcwd(here, sizeof here))
        return 0;
    size_t n = strcmp(here, "/") == 0 ? 0 : strlen(here);
    for (size_t i = 0; i < mounts.count; i++)
        is |= strncmp(mounts.mount[i].point, here, n) == 0 && mounts.mount[i].point[n] == '/';
    return is;
}

int working_folder_set(struct mount *m, const char *within)
{
    if (m && strlen(within) >= sizeof working.path)
        return ENAMETOOLONG;
    working.mount = m;
    if (m)
        memmove(working.path, within, strlen(within) + 1);
    else
        working.is_above = is_above_mounts();
    return 0;
}

void working_folder_renamed(const struct mount *m, const char *from, const char *to)
{
    size_t n = strlen(from), size = strlen(to);
    const char *rest = working.path + n;

    if (working.mount != m || strncmp(working.path, from, n) != 0 || (*rest && *rest != '/') ||
        size + strlen(rest) >= sizeof working.path)
        return;
    memmove(working.path + size, rest, strlen(rest) + 1);
    memcpy(working.path, to, size);
}
