#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/place.h"
#include "tools/text.h"

/* ---- Names ---- */

static int set_open(struct place_set *s, const char *name, size_t n, struct place *out)
{
    size_t i = 0;

    while (i < s->count && (strncmp(s->open[i].name, name, n) != 0 || s->open[i].name[n] != '\0'))
        i++;
    if (i == PLACE_NAMESPACES)
        return text_fail(EXIT_USAGE, "more than %d namespaces in one command", PLACE_NAMESPACES);
    if (i == s->count) {
        s->open[i].name = strndup(name, n);
        if (!s->open[i].name)
            return text_fail(EXIT_TROUBLE, "no memory");
        int code = text_of_call(deltafs_namespace_open(s->open[i].name, s->flags, NULL, &s->open[i].ns));
        if (code != EXIT_OK) {
            free(s->open[i].name);
            return code;
        }
        s->count++;
    }
    out->ns = s->open[i].ns;
    out->name = s->open[i].name;
    return EXIT_OK;
}

int place_find(struct place_set *s, const char *name, struct place *out)
{
    const char *path = text_path(name), *colon = strstr(path, ":/");

    *out = (struct place){.ns = NULL};
    if (colon == path || *path == '\0' || strlen(path) >= PATH_MAX)
        return text_fail(EXIT_USAGE, "'%s': no name; give FILE, or NS:/PATH", name);
    strcpy(out->path, colon ? colon + 1 : path);
    return colon ? set_open(s, path, (size_t)(colon - path), out) : EXIT_OK;
}

int place_must_find(struct place_set *s, const char *name, struct place *out)
{
    if (!text_is_in_namespace(name))
        return text_fail(EXIT_USAGE, "'%s': not in a namespace; give NS:/PATH", name);
    return place_find(s, name, out);
}

/* The mount point is the longest beginning of the path that is one. */
static int set_open_pool(struct place_set *s, const char *path)
{
    size_t n = strlen(path);
    int status = DELTAFS_ERR_NOT_FOUND;

    while (n > 1 && path[n - 1] == '/')
        n--;
    while (status == DELTAFS_ERR_NOT_FOUND && n > 0) {
        free(s->point);
        if (!(s->point = strndup(path, n)))
            return text_fail(EXIT_TROUBLE, "no memory");
        status = deltafs_pool_open(s->point, &s->pool);
        while (--n > 0 && path[n] != '/')
            ;
    }
    if (status == DELTAFS_ERR_NOT_FOUND)
        return text_fail(EXIT_NOT_FOUND, "%s: no pool is mounted here, or above it, on this machine", path);
    return text_of_call(status);
}

int place_find_in_pool(struct place_set *s, const char *name, struct place *out)
{
    const char *path = text_path(name);

    *out = (struct place){.ns = NULL};
    if (*path == '\0' || strlen(path) >= PATH_MAX)
        return text_fail(EXIT_USAGE, "'%s': no name; give a path in a pool", name);
    int code = s->pool ? EXIT_OK : set_open_pool(s, path);
    if (code != EXIT_OK)
        return code;
    out->pool = s->pool;
    out->name = s->point;
    path += strlen(s->point);
    strcpy(out->path, *path == '/' ? path : "/");
    return EXIT_OK;
}

int place_close(struct place_set *s, int code)
{
    deltafs_pool_close(s->pool);
    free(s->point);
    s->pool = NULL;
    s->point = NULL;
    for (size_t i = 0; i < s->count; i++) {
        int one = text_of_call(deltafs_namespace_close(s->open[i].ns));
        code = code == EXIT_OK ? one : code;
        free(s->open[i].name);
    }
    s->count = 0;
    return code;
}

int place_is_plain(const struct place *p)
{
    return !p->ns && !p->pool;
}

int place_is_beside(const struct place *a, const struct place *b)
{
    return a->ns == b->ns && a->pool == b->pool;
}

void place_base(const char *path, char base[NAME_MAX + 1])
{
    size_t end = strlen(path), begin;

    while (end > 0 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/'; begin--)
        ;
    snprintf(base, NAME_MAX + 1, "%.*s", (int)(end - begin), path + begin);
}

int place_enter(struct place *p, const char *name, size_t *before)
{
    size_t n = strlen(p->path);
    const char *slash = n > 0 && p->path[n - 1] == '/' ? "" : "/";
    int length = snprintf(p->path + n, sizeof p->path - n, "%s%s", slash, name);

    *before = n;
    if (length >= 0 && n + (size_t)length < sizeof p->path)
        return EXIT_OK;
    p->path[n] = '\0';
    return place_refuse(p, strerror(ENAMETOOLONG));
}

void place_leave(struct place *p, size_t before)
{
    p->path[before] = '\0';
}

int place_fail(const struct place *p, int status)
{
    if (p->pool)
        return text_fail(EXIT_TROUBLE, "%s: %s", p->name, deltafs_errmsg(NULL));
    return p->ns ? text_of_call(status) : place_refuse(p, strerror(errno));
}

int place_refuse(const struct place *p, const char *wrong)
{
    return text_fail(EXIT_TROUBLE, "%s%s%s: %s", p->name ? p->name : "", p->ns ? ":" : "", p->path, wrong);
}

/* ---- What is there ---- */

/* Nanoseconds since 1970, before that negative; those of a second never are. */
static struct timespec time_of(int64_t t)
{
    int64_t part = t % 1000000000;

    part += part < 0 ? 1000000000 : 0;
    return (struct timespec){(t - part) / 1000000000, part};
}

static void stat_of_namespace(const struct deltafs_namespace_stat *s, struct stat *st)
{
    *st = (struct stat){.st_ino = s->inode,
                        .st_mode = s->mode,
                        .st_uid = s->uid,
                        .st_gid = s->gid,
                        .st_size = (off_t)s->size,
                        .st_mtim = time_of(s->mtime),
                        .st_atim = time_of(s->atime)};
}

static void stat_of_pool(const struct deltafs_pool_stat *s, struct stat *st)
{
    *st = (struct stat){.st_ino = s->inode,
                        .st_mode = s->mode,
                        .st_uid = s->uid,
                        .st_gid = s->gid,
                        .st_size = (off_t)s->size,
                        .st_mtim = time_of(s->mtime),
                        .st_atim = time_of(s->atime)};
}

int place_stat(const struct place *p, int follows, int may_lack, struct stat *st)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    struct deltafs_pool_stat pooled = {.struct_size = sizeof pooled};
    int status, is_missing;

    if (p->pool) {
        status = deltafs_pool_stat(p->pool, p->path, follows ? 0 : AT_SYMLINK_NOFOLLOW, &pooled);
        is_missing = status == DELTAFS_ERR_NOT_FOUND;
        stat_of_pool(&pooled, st);
    } else if (p->ns) {
        status = deltafs_namespace_stat(p->ns, p->path, follows ? 0 : AT_SYMLINK_NOFOLLOW, &s);
        is_missing = status == DELTAFS_ERR_NOT_FOUND;
        stat_of_namespace(&s, st);
    } else {
        status = follows ? stat(p->path, st) : lstat(p->path, st);
        is_missing = status != 0 && errno == ENOENT;
    }
    if (status == 0 || !may_lack || !is_missing)
        return status == 0 ? EXIT_OK : place_fail(p, status);
    st->st_mode = 0;
    return EXIT_OK;
}

/* `st` NULL: not known yet. */
static int call_each(struct place *p, const char *name, const struct stat *st, place_fn *fn, void *arg)
{
    struct stat own;
    size_t before;
    int code = place_enter(p, name, &before);

    if (code != EXIT_OK)
        return code;
    if (!st)
        code = place_stat(p, 0, 0, &own);
    if (code == EXIT_OK)
        code = fn(p, st ? st : &own, arg);
    place_leave(p, before);
    return code;
}

static int each_in_namespace(struct place *p, place_wants *wants, place_fn *fn, void *arg)
{
    const struct deltafs_namespace_entry *entry = NULL;
    deltafs_namespace_list *l = NULL;
    struct stat st;
    int code = EXIT_OK, status = deltafs_namespace_list_open(p->ns, p->path, &l);

    while (status == DELTAFS_OK && (status = deltafs_namespace_list_next(l, &entry)) == DELTAFS_OK && entry) {
        stat_of_namespace(&entry->stat, &st);
        if (wants && !S_ISDIR(st.st_mode) && !wants(entry->name, arg))
            continue;
        int one = call_each(p, entry->name, &st, fn, arg);
        code = one != EXIT_OK ? one : code;
    }
    if (status != DELTAFS_OK)
        code = place_fail(p, status);
    deltafs_namespace_list_close(l);
    return code;
}

/* Call `fn` for an entry whose attributes are not known, only whether it is a folder. */
static int call_wanted(struct place *p, const char *name, int may_be_folder, place_wants *wants, place_fn *fn,
                       void *arg)
{
    return wants && !may_be_folder && !wants(name, arg) ? EXIT_OK : call_each(p, name, NULL, fn, arg);
}

static int each_in_pool(struct place *p, place_wants *wants, place_fn *fn, void *arg)
{
    const struct deltafs_pool_entry *entry = NULL;
    deltafs_pool_list *l = NULL;
    int code = EXIT_OK, status = deltafs_pool_list_open(p->pool, p->path, &l);

    while (status == DELTAFS_OK && (status = deltafs_pool_list_next(l, &entry)) == DELTAFS_OK && entry) {
        int one = call_wanted(p, entry->name, S_ISDIR(entry->mode), wants, fn, arg);
        code = one != EXIT_OK ? one : code;
    }
    if (status != DELTAFS_OK)
        code = place_fail(p, status);
    deltafs_pool_list_close(l);
    return code;
}

static int is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

int place_each_wanted(struct place *p, place_wants *wants, place_fn *fn, void *arg)
{
    const struct dirent *entry;
    int code = EXIT_OK;

    if (!place_is_plain(p))
        return (p->ns ? each_in_namespace : each_in_pool)(p, wants, fn, arg);
    DIR *d = opendir(p->path);
    if (!d)
        return place_fail(p, -1);
    while ((errno = 0, entry = readdir(d))) {
        int may_be_folder = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
        if (is_dots(entry->d_name))
            continue;
        int one = call_wanted(p, entry->d_name, may_be_folder, wants, fn, arg);
        code = one != EXIT_OK ? one : code;
    }
    if (errno != 0)
        code = place_fail(p, -1);
    closedir(d);
    return code;
}

int place_each(struct place *p, place_fn *fn, void *arg)
{
    return place_each_wanted(p, NULL, fn, arg);
}

int place_readlink(const struct place *p, char target[PATH_MAX])
{
    size_t size = 0;
    int status;

    if (p->ns) {
        status = deltafs_namespace_readlink(p->ns, p->path, target, PATH_MAX - 1, &size);
    } else if (p->pool) {
        status = deltafs_pool_readlink(p->pool, p->path, target, PATH_MAX - 1, &size);
    } else {
        ssize_t n = readlink(p->path, target, PATH_MAX - 1);
        status = n < 0 ? -1 : 0;
        size = n < 0 ? 0 : (size_t)n;
    }
    target[size] = '\0';
    return status == 0 ? EXIT_OK : place_fail(p, status);
}
