/* Walks through trees of folders: ftw and nftw, by the functions of this library, as the C library's own would not see
 * mounts; and fts, which is refused there. */
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <ftw.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include "posix/begin.h"
#include "posix/follow.h"
#include "posix/next.h"

struct walk {
    __ftw_func_t ftw; /* one of both */
    __nftw_func_t nftw;
    int flags;
    dev_t device;
    void *seen; /* a tree of struct folder_id: without FTW_PHYS a folder is visited once */
    struct FTW at;
    char path[PATH_MAX];
};

struct folder_id {
    dev_t device;
    ino_t inode;
};

static int compare_folders(const void *a, const void *b)
{
    const struct folder_id *x = a, *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

/* Whether a folder is visited for the first time; -1: no memory. */
static int is_first_visit(struct walk *w, const struct stat *st)
{
    struct folder_id *id = w->flags & FTW_PHYS ? NULL : malloc(sizeof *id);

    if (!id)
        return w->flags & FTW_PHYS ? 1 : -1;
    *id = (struct folder_id){st->st_dev, st->st_ino};
    struct folder_id **place = tsearch(id, &w->seen, compare_folders);
    int is_new = place && *place == id;
    if (!is_new)
        free(id);
    return place ? is_new : -1;
}

static int call(struct walk *w, const struct stat *st, int kind)
{
    if (w->ftw)
        return w->ftw(w->path, st, kind == FTW_SL ? FTW_F : kind == FTW_SLN ? FTW_NS : kind);
    return w->nftw(w->path, st, kind, &w->at);
}

/* The path of the entry for calls. */
static const char *here(const struct walk *w)
{
    return w->flags & FTW_CHDIR ? w->path + w->at.base : w->path;
}

/* What an entry is. -1 with errno: the walk ends. */
static int look(const struct walk *w, struct stat *st)
{
    if (fstatat(AT_FDCWD, here(w), st, w->flags & FTW_PHYS ? AT_SYMLINK_NOFOLLOW : 0) == 0)
        return S_ISDIR(st->st_mode) ? FTW_D : S_ISLNK(st->st_mode) ? FTW_SL : FTW_F;
    if (errno != ENOENT && errno != EACCES && errno != ELOOP)
        return -1;
    if (lstat(here(w), st) == 0 && S_ISLNK(st->st_mode))
        return FTW_SLN;
    return w->at.level == 0 ? -1 : FTW_NS;
}

static int walk_entry(struct walk *w);

static int walk_name(struct walk *w, const char *name, size_t end)
{
    int base = w->at.base;
    size_t slash = end > 0 && w->path[end - 1] == '/' ? 0 : 1;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    if (end + slash + strlen(name) >= sizeof w->path)
        return posix_result(ENAMETOOLONG);
    if (slash)
        w->path[end] = '/';
    strcpy(w->path + end + slash, name);
    w->at.base = (int)(end + slash);
    w->at.level++;
    int result = walk_entry(w);
    w->at.level--;
    w->at.base = base;
    w->path[end] = '\0';
    return result;
}

/* The entries of a folder. They are listed before, so no descriptor is open meanwhile. */
static int walk_names(struct walk *w, struct dirent **entry, int n)
{
    size_t end = strlen(w->path);
    int result = 0;

    for (int i = 0; i < n && result == 0; i++)
        result = walk_name(w, entry[i]->d_name, end);
    return (w->flags & FTW_ACTIONRETVAL) && result == FTW_SKIP_SIBLINGS ? 0 : result;
}

/* With FTW_CHDIR: the working directory is the folder meanwhile. ".." may be another than that before, as the walk may
 * have followed a link. */
static int walk_within(struct walk *w, struct dirent **entry, int n)
{
    int back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = back < 0 || chdir(here(w)) != 0 ? -1 : walk_names(w, entry, n);

    if (back >= 0 && fchdir(back) != 0)
        result = -1;
    if (back >= 0)
        close(back);
    return result;
}

static int walk_folder(struct walk *w, const struct stat *st)
{
    struct dirent **entry;
    int result = 0, is_deep = w->flags & FTW_DEPTH, is_first = is_first_visit(w, st);

    if (is_first <= 0)
        return is_first;
    int n = scandir(here(w), &entry, NULL, NULL);
    if (n < 0)
        return errno == EACCES ? call(w, st, FTW_DNR) : -1;
    if (!is_deep)
        result = call(w, st, FTW_D);
    if (result == 0)
        result = w->flags & FTW_CHDIR ? walk_within(w, entry, n) : walk_names(w, entry, n);
    for (int i = 0; i < n; i++)
        free(entry[i]);
    free(entry);
    return result == 0 && is_deep ? call(w, st, FTW_DP) : result;
}

static int walk_entry(struct walk *w)
{
    struct stat st;
    int kind = look(w, &st);

    if (kind < 0)
        return -1;
    if (w->at.level == 0)
        w->device = st.st_dev;
    if ((w->flags & FTW_MOUNT) && kind != FTW_NS && st.st_dev != w->device)
        return 0;
    int result = kind == FTW_D ? walk_folder(w, &st) : call(w, &st, kind);
    return (w->flags & FTW_ACTIONRETVAL) && result == FTW_SKIP_SUBTREE ? 0 : result;
}

/* Go to the folder above the root of the walk; *back is the working directory. */
static int enter_folder_above(struct walk *w, int *back)
{
    char above[PATH_MAX];

    *back = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*back < 0)
        return -1;
    memcpy(above, w->path, (size_t)w->at.base);
    above[w->at.base] = '\0';
    return w->at.base == 0 ? 0 : chdir(above);
}

static int walk(const char *path, __ftw_func_t ftw, __nftw_func_t nftw, int flags)
{
    struct walk w = {.ftw = ftw, .nftw = nftw, .flags = flags};
    int back = -1;
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    if (n >= sizeof w.path)
        return posix_result(ENAMETOOLONG);
    memcpy(w.path, path, n);
    const char *slash = memrchr(path, '/', n);
    w.at.base = slash && n > 1 ? (int)(slash - path) + 1 : 0;
    int result = flags & FTW_CHDIR ? enter_folder_above(&w, &back) : 0;
    result = result == 0 ? walk_entry(&w) : result;
    int error = errno;
    if (back >= 0 && fchdir(back) != 0)
        result = -1;
    if (back >= 0)
        close(back);
    tdestroy(w.seen, free);
    errno = error;
    return (flags & FTW_ACTIONRETVAL) && (result == FTW_SKIP_SIBLINGS) ? 0 : result;
}

/* Whether a walk is one of this library: its path leads into a mount, or, without FTW_PHYS, is a link that does. */
static int is_ours(struct route *r, const char *path, int flags)
{
    struct route end;

    posix_begin();
    if (route_find(r, AT_FDCWD, path) || mounts.has_logical)
        return 1;
    if (mounts.count == 0 || (flags & FTW_PHYS))
        return 0;
    follow_find(&end, AT_FDCWD, path);
    return end.mount != NULL;
}

CALL int ftw(const char *path, __ftw_func_t fn, int descriptors)
{
    struct route r;

    return is_ours(&r, path, 0) ? walk(path, fn, NULL, 0) : next.ftw(r.path, fn, descriptors);
}

CALL int nftw(const char *path, __nftw_func_t fn, int descriptors, int flags)
{
    struct route r;

    return is_ours(&r, path, flags) ? walk(path, NULL, fn, flags) : next.nftw(r.path, fn, descriptors, flags);
}

/* struct stat64 is struct stat here. */
CALL int ftw64(const char *path, __ftw64_func_t fn, int descriptors)
{
    return ftw(path, (__ftw_func_t)(void (*)(void))fn, descriptors);
}

CALL int nftw64(const char *path, __nftw64_func_t fn, int descriptors, int flags)
{
    return nftw(path, (__nftw_func_t)(void (*)(void))fn, descriptors, flags);
}

CALL FTS *fts_open(char *const *paths, int options, int (*compare)(const FTSENT **, const FTSENT **))
{
    struct route r;

    posix_begin();
    for (char *const *p = paths; mounts.count > 0 && *p; p++)
        if (route_find(&r, AT_FDCWD, *p)) {
            posix_say("%s: the program lists folders by fts_open, which does not work in a mount", *p);
            errno = EOPNOTSUPP;
            return NULL;
        }
    return next.fts_open(paths, options, compare);
}

CALL FTS64 *fts64_open(char *const *paths, int options, int (*compare)(const FTSENT64 **, const FTSENT64 **))
{
    return (FTS64 *)(void *)fts_open(paths, options,
                                     (int (*)(const FTSENT **, const FTSENT **))(void (*)(void))compare);
}
