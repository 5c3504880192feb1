#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/path.h"
#include "fileindex/fileindex_format.h"
#include "fileindex/index_paths.h"
#include "logical/format/session.h"

void index_paths_fini(struct index_paths *c)
{
    free(c->path);
    free(c->sources);
    free(c->parent);
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

/* If a link leads to the index, the folder that it really is in. A new text. */
static char *index_parent(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct stat st;
    char *real = lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? realpath(path, NULL) : NULL;

    if (!real && (strcmp(name, ".") == 0 || strcmp(name, "..") == 0))
        return path_with(path, "/..");
    char *parent = path_parent(real ? real : path);
    free(real);
    return parent;
}

int index_paths_init(struct index_paths *c, const char *path, struct error *e)
{
    *c = (struct index_paths){.path = path_with(path, "")};
    if (c->path) {
        c->sources = path_with(path, "/" SOURCES_NAME);
        c->parent = index_parent(c->path);
    }
    if (c->sources && c->parent)
        return DELTAFS_OK;
    index_paths_fini(c);
    return error_no_memory(e, strlen(path), "a path");
}

int index_paths_beside(const char *path, char kind, char **out, struct error *e)
{
    *out = path_with(path, kind == 'f' ? "/" FILEINDEX_FOLDER : FILEINDEX_BESIDE);
    return *out ? DELTAFS_OK : error_no_memory(e, strlen(path), "a path");
}

/* There is no SOURCES: DELTAFS_ERR_NOT_FOUND, unless there is an index that lacks it. */
static int index_paths_lost(struct io *io, const struct index_paths *c, struct error *e)
{
    struct manifest m = {0};
    int status = DELTAFS_ERR_NOT_FOUND;

    manifest_read_head(io, c->path, &m);
    if (m.is_index) {
        status = manifest_check_sources(io, c->path, &m, e);
        if (status == DELTAFS_OK)
            status = error_set(e, DELTAFS_ERR_CHANGED,
                               "%s: no file is indexed here: its first indexing did not end; index it (deltafs-mpi "
                               "index)",
                               c->path);
    }
    manifest_fini(&m);
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
        struct io_file file;
        status = io_file_open(io, c->sources, O_RDONLY, &file, e);
        if (status == DELTAFS_OK)
            io_file_close(&file, error_ignored());
        else if (status == DELTAFS_ERR_NOT_FOUND)
            status = index_paths_lost(io, c, e);
        if (status != DELTAFS_OK)
            index_paths_fini(c);
    }
    if (status == DELTAFS_ERR_NOT_FOUND)
        error_set(e, status, "%s: has no index of its keys, neither in it nor beside it (deltafs-mpi index makes one)",
                  path);
    return status;
}

/* What SOURCES calls the file that is really at `real`, if the index is in the real folder `parent`. */
static const char *name_below(const char *parent, const char *real)
{
    size_t n = strcmp(parent, "/") == 0 ? 0 : strlen(parent);

    if (strcmp(real, parent) == 0)
        return ".";
    return strncmp(real, parent, n) == 0 && real[n] == '/' ? real + n + 1 : real;
}

int index_paths_name(const struct index_paths *c, const struct sources *s, const char *path, char **real, char **name,
                     struct error *e)
{
    char *parent = realpath(c->parent, NULL);
    int status = parent ? DELTAFS_OK : error_system(e, errno, "find the folder of the index", c->parent);

    *real = *name = NULL;
    if (status == DELTAFS_OK && *path == '\0')
        status = error_set(e, DELTAFS_ERR_NOT_FOUND, "a file's name is missing: there is an empty one");
    if (status == DELTAFS_OK && !(*real = path_resolve(path)))
        status = error_system(e, errno, "find", path);
    if (status == DELTAFS_OK) {
        /* It may have come to be below the folder after it was indexed. */
        *name = strdup(sources_find(s, *real) ? *real : name_below(parent, *real));
        status = *name ? DELTAFS_OK : error_no_memory(e, strlen(*real), "a path");
    }
    free(parent);
    return status;
}

char *index_paths_path_out(const struct index_paths *c, const char *path)
{
    if (path[0] == '/')
        return strdup(path);
    if (strcmp(path, ".") == 0)
        return strdup(c->parent);
    return strcmp(c->parent, ".") == 0 ? strdup(path) : path_from(c->parent, path);
}
