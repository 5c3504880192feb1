#include "posix/folder_names.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posix/follow.h"
#include "posix/particles.h"
#include "posix/pooled.h"
#include "posix/posix_tree.h"

static int names_add(struct names *n, const char *name, ino_t inode, mode_t mode)
{
    size_t length = strlen(name), size = offsetof(struct dirent, d_name) + length + 1;
    size_t align = _Alignof(struct dirent);

    size = (size + align - 1) / align * align;
    if (length >= sizeof n->entry->d_name)
        return ENAMETOOLONG;
    if (n->size + size > n->room) {
        size_t room = n->room > 0 ? 2 * n->room : 4096;
        void *more = realloc(n->entry, room);
        if (!more)
            return ENOMEM;
        n->entry = more;
        n->room = room;
    }
    struct dirent *e = (void *)((char *)n->entry + n->size);
    n->size += size;
    memset(e, 0, size);
    e->d_ino = inode;
    e->d_off = (off_t)n->size;
    e->d_reclen = (unsigned short)size;
    e->d_type = (unsigned char)IFTODT(mode);
    memcpy(e->d_name, name, length + 1);
    return 0;
}

static int read_particles(const struct file *folder, struct names *n)
{
    struct particles_list *list;
    const char *name;
    ino_t inode;
    int error = particles_list_open(folder->mount, folder->path, &list);

    if (error != 0)
        return error;
    while (error == 0 && (name = particles_list_next(list, &inode)))
        error = names_add(n, name, inode, S_IFREG);
    particles_list_close(list);
    return error;
}

static int add_entry(void *names, const char *name, ino_t inode, mode_t mode)
{
    return names_add(names, name, inode, mode);
}

static int read_entries(deltafs_namespace *ns, const char *path, struct names *n)
{
    const struct deltafs_namespace_entry *e = NULL;
    deltafs_namespace_list *list = NULL;
    int status = deltafs_namespace_list_open(ns, path, &list);

    while (status == DELTAFS_OK && (status = deltafs_namespace_list_next(list, &e)) == DELTAFS_OK && e)
        if (names_add(n, e->name, e->stat.inode, e->stat.mode) != 0) {
            deltafs_namespace_list_close(list);
            return DELTAFS_ERR_MEMORY;
        }
    int closed = deltafs_namespace_list_close(list);
    return status == DELTAFS_OK ? closed : status;
}

/* Another folder may have its name by now, if it was removed. */
static int read_same(deltafs_namespace *ns, const struct file *folder, struct names *n)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    int status = deltafs_namespace_stat(ns, folder->path, 0, &s);

    if (status == DELTAFS_OK && s.inode != folder->st.st_ino)
        status = DELTAFS_ERR_NOT_FOUND;
    return status == DELTAFS_OK ? read_entries(ns, folder->path, n) : status;
}

static int read_tree(const struct file *folder, struct names *n)
{
    deltafs_namespace *ns;
    int error = tree_begin(folder->mount->tree, 0, &ns);

    return error == 0 ? tree_end(folder->mount->tree, read_same(ns, folder, n)) : error;
}

/* The inode of the folder above; that of the mount point is above itself. */
static ino_t inode_above(const struct file *folder)
{
    char path[PATH_MAX + 8];
    struct stat st;

    if (folder->mount->kind == MOUNT_PARTICLES || strcmp(folder->path, "/") == 0)
        return folder->st.st_ino;
    snprintf(path, sizeof path, "%s/..", folder->path);
    return inside_stat(folder->mount, path, 0, &st) == 0 ? st.st_ino : folder->st.st_ino;
}

int names_read(const struct file *folder, struct names *out)
{
    struct names n = {.size = 0};
    int error = names_add(&n, ".", folder->st.st_ino, S_IFDIR);

    if (error == 0)
        error = names_add(&n, "..", inode_above(folder), S_IFDIR);
    if (error == 0)
        error = folder->mount->kind == MOUNT_PARTICLES ? read_particles(folder, &n)
                : folder->mount->kind == MOUNT_POOL    ? pooled_list(folder->mount, folder->path, add_entry, &n)
                                                       : read_tree(folder, &n);
    if (error != 0)
        names_fini(&n);
    *out = n;
    return error == ENOENT ? 0 : error;
}

/* Programs seek to what they like, so this looks whether an entry can begin there. */
const struct dirent *names_next(struct names *n)
{
    const size_t head = offsetof(struct dirent, d_name);
    const struct dirent *e = (const void *)((const char *)n->entry + n->at);

    if (n->size < head || n->at > n->size - head || n->at % _Alignof(struct dirent) != 0)
        return NULL;
    if (e->d_reclen == 0 || e->d_reclen > sizeof *e || (size_t)e->d_off != n->at + e->d_reclen ||
        e->d_off > (off_t)n->size)
        return NULL;
    n->at += e->d_reclen;
    return e;
}

void names_fini(struct names *n)
{
    free(n->entry);
    *n = (struct names){.size = 0};
}
