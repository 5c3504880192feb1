/* Which file of the namespace an open file is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posix/tree_parts.h"

/* Open the path. *out stays NULL if this file does not have it, or nothing does. */
static int open_path(const struct file *f, deltafs_namespace *ns, int flags, struct stat *now,
                     deltafs_namespace_file **out)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    deltafs_namespace_file *h = NULL;
    int status = deltafs_namespace_file_open(ns, f->path, flags, 0, &h);

    if (status == DELTAFS_ERR_NOT_FOUND || status == DELTAFS_ERR_NOT_FOLDER || status == DELTAFS_ERR_FOLDER)
        return DELTAFS_OK;
    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_stat(h, &s);
    if (status == DELTAFS_OK && s.inode == f->st.st_ino) {
        tree_fill_stat(f->mount, &s, now);
        *out = h;
        return DELTAFS_OK;
    }
    int closed = deltafs_namespace_file_close(h);
    return status == DELTAFS_OK ? closed : status;
}

/* The path that the file has by now if another process has renamed it within its folder; on the heap. *out stays
 * NULL if it has not. There is no other way from an inode to its name than to list the folder. */
static int find_renamed(const struct file *f, deltafs_namespace *ns, char **out)
{
    const struct deltafs_namespace_entry *e = NULL;
    deltafs_namespace_list *list = NULL;
    char *folder = strdup(f->path);

    if (!folder)
        return DELTAFS_ERR_MEMORY;
    strrchr(folder, '/')[1] = '\0';
    int status = deltafs_namespace_list_open(ns, folder, &list);
    do
        status = status == DELTAFS_OK ? deltafs_namespace_list_next(list, &e) : status;
    while (status == DELTAFS_OK && e && e->stat.inode != f->st.st_ino);
    if (status == DELTAFS_OK && e && asprintf(out, "%s%s", folder, e->name) < 0) {
        *out = NULL;
        status = DELTAFS_ERR_MEMORY;
    }
    deltafs_namespace_list_close(list);
    free(folder);
    return status == DELTAFS_ERR_NOT_FOUND || status == DELTAFS_ERR_NOT_FOLDER ? DELTAFS_OK : status;
}

int tree_open_same(struct file *f, deltafs_namespace *ns, int flags, struct stat *now, deltafs_namespace_file **out)
{
    *out = NULL;
    char *path = NULL;
    int status = open_path(f, ns, flags, now, out);
    if (status == DELTAFS_OK && !*out)
        status = find_renamed(f, ns, &path);
    if (!path)
        return status;
    free(f->path);
    f->path = path;
    return open_path(f, ns, flags, now, out);
}
