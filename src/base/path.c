#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include "base/path.h"

#define NAMES_ROOM 256 /* bytes of a path that are kept for the names of files below it */

char *path_from(const char *here, const char *path)
{
    size_t room = strlen(here) + strlen(path) + 2;
    char *out = malloc(room);

    if (out)
        snprintf(out, room, "%s/%s", strcmp(here, "/") == 0 ? "" : here, path);
    return out;
}

char *path_parent(const char *path)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    if (n == 0)
        return strdup(".");
    /* All of the root's name is its slash. */
    return strndup(path, n > 1 ? n - 1 : 1);
}

char *path_missing(const char *path)
{
    char *missing = NULL, *above = path_parent(path);

    while (above && access(above, F_OK) != 0) {
        free(missing);
        missing = above;
        above = path_parent(missing);
    }
    free(above);
    return missing;
}

int path_explain_missing(const char *path, struct error *e)
{
    char *missing = e->status == DELTAFS_ERR_NOT_FOUND ? path_missing(path) : NULL;

    if (missing)
        error_set(e, e->status, "%s: cannot be created: the folder %s does not exist; create it first", path, missing);
    free(missing);
    return e->status;
}

/* Whether the path is found from the root, too. A folder above may not be searched by this user, and the whole be
 * longer than paths can be: it is found only from the folder that the process is in then. Returns -1 without memory. */
static int path_is_found(const char *here, const char *path)
{
    char *whole = path_from(here, path), *given_folder = path_parent(path);
    char *folder = whole ? path_parent(whole) : NULL;
    struct stat a, b;
    int is_found = -1;

    if (folder && given_folder)
        is_found =
            strlen(whole) + NAMES_ROOM <= PATH_MAX &&
            (stat(given_folder, &a) != 0 || (stat(folder, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino));
    free(given_folder);
    free(folder);
    free(whole);
    return is_found;
}

int path_here(const char *path, char **here)
{
    *here = path[0] == '/' ? NULL : get_current_dir_name();
    /* A folder that has no name any more: what is in it cannot be found otherwise. */
    if (!*here)
        return 0;
    int is_found = path_is_found(*here, path);
    if (is_found == 1)
        return 0;
    free(*here);
    *here = NULL;
    return is_found;
}

char *path_absolute(const char *path)
{
    char *here;

    if (path_here(path, &here) != 0)
        return NULL;
    char *out = here ? path_from(here, path) : strdup(path);
    free(here);
    return out;
}

char *path_resolve(const char *path)
{
    char *real = realpath(path, NULL), *parent;
    size_t n = strlen(path);

    if (real || (errno != ENOENT && errno != ENOTDIR))
        return real;
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t name = n;
    while (name > 0 && path[name - 1] != '/')
        name--;
    int is_dot = n - name == 1 && path[name] == '.';
    /* The folder "." itself may have no name any more. */
    if (name == n || (is_dot && name == 0) || !(parent = path_parent(path)))
        return NULL;
    char *folder = path_resolve(parent), *last = strndup(path + name, n - name);
    if (folder && last)
        real = is_dot ? strdup(folder) : path_from(folder, last);
    free(parent);
    free(folder);
    free(last);
    return real;
}
