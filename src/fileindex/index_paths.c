#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fileindex/fileindex_format.h"
#include "fileindex/index_paths.h"
#include "logical/format/session.h"

void index_paths_fini(struct index_paths *c)
{
    free(c->path);
    free(c->sources);
    free(c->parent);
    free(c->real_parent);
    *c = (struct index_paths){0};
}

/* A new text: the path without slashes at its end, and `more` behind it. */
static char *path_with(const char *path, const char *more)
{
    size_t n = strlen(path), room = n + strlen(more) + 1;
    char *out = malloc(room);

    while (n > 1 && path[n - 1] == '/')
        n--;
    if (out)
        snprintf(out, room, "%.*s%s", (int)n, path, more);
    return out;
}

static char *path_parent(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return path_with(path, "/..");
    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* If a link leads to it: the folder that it really is in. Else NULL. */
static char *index_paths_real_parent(const char *path)
{
    char real[PATH_MAX];
    struct stat st;

    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, real) ? path_parent(real) : NULL;
}

int index_paths_init(struct index_paths *c, const char *path, struct error *e)
{
    *c = (struct index_paths){.path = path_with(path, "")};
    if (c->path) {
        c->sources = path_with(path, "/" SOURCES_NAME);
        c->parent = path_parent(c->path);
        c->real_parent = index_paths_real_parent(c->path);
    }
    if (c->sources && c->parent)
        return DELTAFS_OK;
    index_paths_fini(c);
    return error_no_memory(e, strlen(path), "a path");
}

/* Whether any of the sources that have a name from there is in this folder. */
static int has_any(const char *parent, const struct io *io, const struct sources *s)
{
    struct index_paths there = {.parent = (char *)(uintptr_t)parent};
    int is_any = 0;

    for (size_t i = 0; i < s->count && !is_any; i++) {
        char *path = s->source[i].path[0] == '/' ? NULL : index_paths_path_out(&there, s->source[i].path);
        char *whole = path ? io_whole(io, path) : NULL;
        is_any = whole && access(whole, F_OK) == 0;
        free(path);
        free(whole);
    }
    return is_any;
}

void index_paths_settle(struct index_paths *c, const struct io *io, const struct sources *s)
{
    if (c->real_parent && (has_any(c->real_parent, io, s) || !has_any(c->parent, io, s))) {
        free(c->parent);
        c->parent = c->real_parent;
        c->real_parent = NULL;
    }
    free(c->real_parent);
    c->real_parent = NULL;
}

int index_paths_beside(const char *path, char kind, char **out, struct error *e)
{
    *out = path_with(path, kind == 'f' ? "/" FILEINDEX_FOLDER : FILEINDEX_BESIDE);
    return *out ? DELTAFS_OK : error_no_memory(e, strlen(path), "a path");
}

static int has_sources(struct io *io, const char *path, struct error *e)
{
    struct io_file file;
    struct error ignored;
    int status = io_file_open(io, path, O_RDONLY, &file, e);

    if (status == DELTAFS_OK)
        io_file_close(&file, &ignored);
    return status;
}

int index_paths_find(struct io *io, const char *path, struct index_paths *c, struct error *e)
{
    static const char *const places[] = {"", "/" FILEINDEX_FOLDER, FILEINDEX_BESIDE};
    int status = DELTAFS_ERR_NOT_FOUND;

    for (size_t i = 0; i < sizeof places / sizeof places[0] && status == DELTAFS_ERR_NOT_FOUND; i++) {
        char kind;
        /* A directory has its keys itself: what is beside it is another's. */
        if (i > 0 && container_kind(io, path, &kind, e) == DELTAFS_OK && kind == 'd')
            break;
        char *place = path_with(path, places[i]);
        status = place ? index_paths_init(c, place, e) : error_no_memory(e, strlen(path), "a path");
        free(place);
        if (status != DELTAFS_OK)
            return status;
        status = has_sources(io, c->sources, e);
        if (status != DELTAFS_OK)
            index_paths_fini(c);
    }
    if (status == DELTAFS_ERR_NOT_FOUND)
        error_set(e, status, "%s: has no index of its keys, neither in it nor beside it (deltafs-mpi index makes one)",
                  path);
    return status;
}

/* A new text: the path from the root, without parts that are empty or "."; NULL: see errno. */
static char *path_clean(const char *path)
{
    char *here = path[0] == '/' ? strdup("") : getcwd(NULL, 0);
    size_t n = !here || strcmp(here, "/") == 0 ? 0 : strlen(here);
    char *out = here ? malloc(n + strlen(path) + 3) : NULL;

    if (out) {
        memcpy(out, here, n);
        for (const char *part = path; *part; part += strspn(part, "/")) {
            size_t length = strcspn(part, "/");
            if (length > 0 && !(length == 1 && part[0] == '.')) {
                out[n++] = '/';
                memcpy(out + n, part, length);
                n += length;
            }
            part += length;
        }
        if (n == 0)
            out[n++] = '/';
        out[n] = '\0';
    }
    free(here);
    return out;
}

/* A new text: the path of the file `rest` of the folder `folder`. */
static char *path_of(const char *folder, const char *rest)
{
    size_t room = strlen(folder) + strlen(rest) + 2;
    char *whole = malloc(room);

    if (whole)
        snprintf(whole, room, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, rest);
    return whole;
}

/* What SOURCES calls the file of this path from the root, in an index that is in the real folder `parent`. */
static const char *name_of(const char *parent, const char *whole)
{
    size_t n = strcmp(parent, "/") == 0 ? 0 : strlen(parent);

    if (strcmp(whole, parent) == 0)
        return ".";
    return strncmp(whole, parent, n) == 0 && whole[n] == '/' ? whole + n + 1 : whole;
}

/* The name of the source that this file is, or NULL. It may have come to be below the folder later. */
static const char *name_of_source(const struct sources *s, const char *parent, const char *whole)
{
    const char *name = name_of(parent, whole);

    return sources_find(s, whole) ? whole : sources_find(s, name) ? name : NULL;
}

/* The same of a path in which there are links. A new text; NULL: none, or no memory. */
static char *name_by_links(const struct sources *s, const char *parent, char *clean)
{
    char folder[PATH_MAX];

    for (char *rest = clean; rest; rest = strchr(rest + 1, '/')) {
        *rest = '\0';
        int is_there = realpath(rest == clean ? "/" : clean, folder) != NULL;
        *rest = '/';
        char *whole = is_there ? path_of(folder, rest + 1) : NULL;
        if (!whole)
            return NULL;
        const char *name = name_of_source(s, parent, whole);
        char *found = name ? strdup(name) : NULL;
        free(whole);
        if (name)
            return found;
    }
    return NULL;
}

/* index_paths_name() where the folder of the index is known. */
static int name_below(const char *parent, const struct sources *s, const char *path, char **out, struct error *e)
{
    char real[PATH_MAX], *clean = path_clean(path);

    if (!clean)
        return error_system(e, errno, "find", path);
    int is_there = realpath(path, real) != NULL, why = errno;
    *out = is_there && strcmp(real, clean) == 0 ? NULL : name_by_links(s, parent, clean);
    free(clean);
    if (*out)
        return DELTAFS_OK;
    if (is_there) {
        const char *name = name_of_source(s, parent, real);
        *out = strdup(name ? name : name_of(parent, real));
        return *out ? DELTAFS_OK : error_no_memory(e, strlen(real), "a path");
    }
    error_system(e, why, "find", path);
    return why == ENOENT || why == ENOTDIR ? (e->status = DELTAFS_ERR_NOT_FOUND) : e->status;
}

int index_paths_name(const struct index_paths *c, const struct io *io, const struct sources *s, const char *path,
                     char **out, struct error *e)
{
    char parent[PATH_MAX], *whole;

    if (*path == '\0')
        return error_set(e, DELTAFS_ERR_NOT_FOUND, "a file's name is missing: there is an empty one");
    whole = io_whole(io, c->parent);
    int is_found = whole && realpath(whole, parent);
    free(whole);
    return is_found ? name_below(parent, s, path, out, e)
                    : error_system(e, errno, "find the folder of the index", c->parent);
}

char *index_paths_path_out(const struct index_paths *c, const char *path)
{
    size_t room = strlen(c->parent) + strlen(path) + 2;

    if (path[0] == '/')
        return strdup(path);
    if (strcmp(path, ".") == 0)
        return strdup(c->parent);
    if (strcmp(c->parent, ".") == 0)
        return strdup(path);
    char *out = malloc(room);
    if (out)
        snprintf(out, room, "%s/%s", strcmp(c->parent, "/") == 0 ? "" : c->parent, path);
    return out;
}
