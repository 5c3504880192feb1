#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/collection.h"
#include "store/session.h"
#include "store/store_format.h"

void collection_fini(struct collection *c)
{
    free(c->path);
    free(c->sources);
    free(c->parent);
    *c = (struct collection){0};
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

int collection_init(struct collection *c, const char *path, struct error *e)
{
    *c = (struct collection){.path = path_with(path, "")};
    if (c->path) {
        c->sources = path_with(path, "/" SOURCES_NAME);
        c->parent = path_parent(c->path);
    }
    if (c->sources && c->parent)
        return DELTAFS_OK;
    collection_fini(c);
    return error_no_memory(e, strlen(path), "a path");
}

int collection_beside(const char *path, char kind, char **out, struct error *e)
{
    *out = path_with(path, kind == 'f' ? "/" COLLECTION_FOLDER : COLLECTION_BESIDE);
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

int collection_find(struct io *io, const char *path, struct collection *c, struct error *e)
{
    static const char *const places[] = {"", "/" COLLECTION_FOLDER, COLLECTION_BESIDE};
    int status = DELTAFS_ERR_NOT_FOUND;

    for (size_t i = 0; i < sizeof places / sizeof places[0] && status == DELTAFS_ERR_NOT_FOUND; i++) {
        char kind;
        /* A directory has its keys itself: what is beside it is another's. */
        if (i > 0 && container_kind(io, path, &kind, e) == DELTAFS_OK && kind == 'd')
            break;
        char *place = path_with(path, places[i]);
        status = place ? collection_init(c, place, e) : error_no_memory(e, strlen(path), "a path");
        free(place);
        if (status != DELTAFS_OK)
            return status;
        status = has_sources(io, c->sources, e);
        if (status != DELTAFS_OK)
            collection_fini(c);
    }
    if (status == DELTAFS_ERR_NOT_FOUND)
        error_set(e, status, "%s: has no index of its keys, neither in it nor beside it (deltafs-mpi index makes one)",
                  path);
    return status;
}

int collection_path_in(const struct collection *c, const struct io *io, const char *path, char **out, struct error *e)
{
    char file[PATH_MAX], parent[PATH_MAX];

    if (!realpath(path, file)) {
        error_system(e, errno, "find", path);
        return errno == ENOENT || errno == ENOTDIR ? (e->status = DELTAFS_ERR_NOT_FOUND) : e->status;
    }
    char *whole = io_whole(io, c->parent);
    int is_found = whole && realpath(whole, parent);
    free(whole);
    if (!is_found)
        return error_system(e, errno, "find the folder of the collection", c->parent);
    size_t n = strlen(parent);
    if (strcmp(file, parent) == 0)
        *out = strdup(".");
    else if (strncmp(file, parent, n) == 0 && (file[n] == '/' || n == 1))
        *out = strdup(file + n + (n > 1));
    else
        *out = strdup(file);
    return *out ? DELTAFS_OK : error_no_memory(e, strlen(file), "a path");
}

int collection_path_gone(const struct collection *c, const struct io *io, const char *path, char **out, struct error *e)
{
    int status = collection_path_in(c, io, path, out, e);
    char *clean = status == DELTAFS_ERR_NOT_FOUND ? path_with(path, "") : NULL;
    char *parent = clean ? path_parent(clean) : NULL, *folder = NULL;

    if (!parent) {
        free(clean);
        return status == DELTAFS_ERR_NOT_FOUND ? error_no_memory(e, strlen(path), "a path") : status;
    }
    const char *slash = strrchr(clean, '/'), *name = slash ? slash + 1 : clean;
    /* What has no name of its own in a folder can only be looked for. */
    if (*name != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
        status = collection_path_gone(c, io, parent, &folder, e);
    if (status == DELTAFS_OK) {
        size_t room = strlen(folder) + strlen(name) + 2;
        int is_top = strcmp(folder, ".") == 0, ends = strcmp(folder, "/") == 0;
        if ((*out = malloc(room)))
            snprintf(*out, room, "%s%s%s", is_top ? "" : folder, is_top || ends ? "" : "/", name);
        else
            status = error_no_memory(e, room, "a path");
    }
    free(folder);
    free(parent);
    free(clean);
    return status;
}

char *collection_path_out(const struct collection *c, const char *path)
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
