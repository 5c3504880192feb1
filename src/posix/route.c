#include "posix/route.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "posix/file.h"
#include "posix/locks.h"
#include "posix/next.h"

static struct {
    struct mount *mount;           /* NULL: the kernel's */
    int is_above;                  /* mount points are below the kernel's: */
    const char *below[MOUNTS_MAX]; /* the rest of each; else NULL */
    char path[PATH_MAX];           /* within the mount */
} working;

/* ---- Paths ---- */

/* Bytes that are looked at together. */
typedef uint8_t some_bytes __attribute__((vector_size(16)));

/* Which of these bytes are a '/' before a '.' or another '/'; the latter two differ in the lowest bit. */
static inline some_bytes odd_slashes(const char *p)
{
    some_bytes here, behind;

    memcpy(&here, p, sizeof here);
    memcpy(&behind, p + 1, sizeof behind);
    return (some_bytes)(here == '/') & (some_bytes)((behind | 1) == '/');
}

static int is_any(some_bytes bytes)
{
    uint64_t half[2];

    memcpy(half, &bytes, sizeof bytes);
    return (half[0] | half[1]) != 0;
}

/* Whether no name in a path of `n` bytes is empty or begins with a dot, but for one dot in front. Most paths are such,
 * so this comes before closer looks at where they lead. */
static int is_plain(const char *path, size_t n)
{
    const size_t step = sizeof(some_bytes);

    if (path[0] == '.' && path[1] == '.')
        return 0;
    if (n >= step) {
        some_bytes odd = odd_slashes(path + n - step);
        for (size_t i = 0; i + step < n; i += step)
            odd |= odd_slashes(path + i);
        return !is_any(odd);
    }
    for (size_t i = 0; i < n; i++)
        if (path[i] == '/' && (path[i + 1] | 1) == '/')
            return 0;
    return 1;
}

/* Whether a path has "." or ".." in it: then where it leads takes a closer look. A "." that it begins with does no
 * harm. */
static int has_dots(const char *path)
{
    for (const char *p = path; (p = strchr(p, '.')); p++) {
        size_t n = p[1] == '.' ? 2 : 1;
        if ((p > path ? p[-1] == '/' : n == 2) && (p[n] == '/' || !p[n]))
            return 1;
    }
    return 0;
}

/* Whether a path without dots begins with that of a mount point, or the rest of one; it may have empty names. */
static int begins_with(const char *path, const char *point)
{
    for (; *point && *path == *point; path++, point++)
        while (*path == '/' && path[1] == '/')
            path++;
    return !*point && (*path == '/' || !*path);
}

/* Whether a plain path begins with one. */
static inline int begins_plainly(const char *path, size_t n, const char *point, size_t size)
{
    return n >= size && path[size - 1] == point[size - 1] && memcmp(path, point, size) == 0 &&
           (path[size] == '/' || !path[size]);
}

static int absolute_may_be_inside(const char *path)
{
    size_t n = strlen(path);
    int plain = is_plain(path, n);

    while (path[1] == '/')
        path++;
    for (const struct mount *m = mounts.mount, *end = m + mounts.count; m < end; m++)
        if (plain ? begins_plainly(path, n, m->point, m->point_size) : begins_with(path, m->point))
            return 1;
    return !plain && has_dots(path);
}

/* Whether a path that begins at the working directory leads to a mount point below it. */
static int leads_below(const char *path)
{
    while (path[0] == '.' && path[1] == '/')
        path += 1 + strspn(path + 1, "/");
    for (size_t i = 0; i < mounts.count; i++)
        if (working.below[i] && begins_with(path, working.below[i]))
            return 1;
    return 0;
}

static int relative_may_be_inside(const char *path)
{
    if (working.mount || (!is_plain(path, strlen(path)) && has_dots(path)))
        return 1;
    return working.is_above && leads_below(path);
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
        return !absolute_may_be_inside(path);
    if (folder == AT_FDCWD)
        return !relative_may_be_inside(path);
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
            lock_take(&f->lock);
        if (error == 0)
            error = making_go_all(k, f ? f->path : working.path);
        if (f)
            lock_give(&f->lock);
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

struct file *route_find_descriptor(const char *path)
{
    static const char *const standard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
    char *end;

    for (int i = 0; i < 3 && strncmp(path, "/dev/std", 8) == 0; i++)
        if (strcmp(path, standard[i]) == 0)
            return file_get(i);
    size_t n = strncmp(path, "/dev/fd/", 8) == 0 ? 8 : strncmp(path, "/proc/self/fd/", 14) == 0 ? 14 : 0;
    if (n == 0)
        return NULL;
    long fd = strtol(path + n, &end, 10);
    return end > path + n && !*end && fd < FILES_MAX ? file_get((int)fd) : NULL;
}

/* ---- The working directory ---- */

struct mount *working_folder(const char **within)
{
    *within = working.path;
    return working.mount;
}

/* Find the mount points that lie below the kernel's working directory. */
static void find_below(void)
{
    char here[PATH_MAX];
    size_t n = next.getcwd(here, sizeof here) ? strlen(here) : sizeof here;

    n = n == 1 ? 0 : n; /* "/" */
    working.is_above = 0;
    for (size_t i = 0; i < mounts.count; i++) {
        const struct mount *m = &mounts.mount[i];
        int is_below = n < m->point_size && memcmp(m->point, here, n) == 0 && m->point[n] == '/';
        working.below[i] = is_below ? m->point + n + 1 : NULL;
        working.is_above |= is_below;
    }
}

int working_folder_set(struct mount *m, const char *within)
{
    if (m && strlen(within) >= sizeof working.path)
        return ENAMETOOLONG;
    working.mount = m;
    if (m)
        memmove(working.path, within, strlen(within) + 1);
    else
        find_below();
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
