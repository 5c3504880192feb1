/* Changes of names and attributes. Each is a new state of an entry under its
 * name, or says that the entry has the name no more. */
#include "base/sized.h"
#include "namespace/shared.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PERMISSIONS 07777
#define CREATE_SOME 1024 /* names of one step of deltafs_namespace_create_many */

/* ---- States ---- */

/* The same; `node` NULL: there is no room for it. */
static int put_at(deltafs_namespace *ns, struct name_node *node, const struct inode *inode, const char *target,
                  size_t target_size)
{
    struct name_item *item = node ? name_table_put(&ns->names, node, inode, target, target_size) : NULL;

    if (!item)
        return error_no_memory(&ns->error, sizeof *node + target_size, "names; give the option memory more");
    name_table_mark(&ns->names, node, item);
    return DELTAFS_OK;
}

int ns_put(deltafs_namespace *ns, const struct entry_name *name, const struct inode *inode, const char *target,
           size_t target_size)
{
    return put_at(ns, name_table_get(&ns->names, name), inode, target, target_size);
}

struct inode ns_new_inode(deltafs_namespace *ns, uint8_t type, uint32_t mode)
{
    return ns_new_inodes(ns, type, mode, 1);
}

struct inode ns_new_inodes(deltafs_namespace *ns, uint8_t type, uint32_t mode, size_t n)
{
    uint64_t stamp = ns_stamps(ns, n);

    return (struct inode){.id = {ns->own.number, stamp},
                          .stamp = stamp,
                          .mtime = (int64_t)stamp,
                          .atime = (int64_t)stamp,
                          .uid = ns->uid,
                          .gid = ns->gid,
                          .mode = (uint16_t)(mode & PERMISSIONS),
                          .type = type};
}

void ns_leave(deltafs_namespace *ns, struct name_node *node, struct name_item *item)
{
    if (item->inode.type != ENTRY_FILE) { /* a path may have led through it */
        ns_forget_walks(ns);
        if (ns->shared)
            ns->shared->must_forget = 1;
    }
    item->inode = (struct inode){.id = item->inode.id, .stamp = ns_stamps(ns, 1), .type = ENTRY_REMOVED};
    name_table_mark(&ns->names, node, item);
}

void ns_remove_items(deltafs_namespace *ns, const struct walk *w, const struct found *f, const struct entry_id *kept)
{
    size_t count;

    walk_folders(w, &count);
    for (size_t i = 0; i < count; i++) {
        struct entry_name name = walk_name(w, f, i);
        struct name_node *node = name_table_find(&ns->names, &name);
        for (struct name_item *k = node ? name_item_at(&ns->names, node->items) : NULL; k;
             k = name_item_at(&ns->names, k->next))
            if (k->inode.type != ENTRY_REMOVED && (!kept || !id_is_same(&k->inode.id, kept))) {
                ns_note_removed(ns, &k->inode.id);
                ns_leave(ns, node, k);
            }
    }
}

/* ---- Creating ---- */

/* Create an entry at a name that nothing has. */
static int try_create_new(deltafs_namespace *ns, const char *path, uint8_t type, uint32_t mode, const char *target)
{
    struct found f;
    int status = walk_to_name(ns, &ns->walk, path, &f);

    if (status != DELTAFS_OK)
        return status;
    if (f.inode.type != ENTRY_REMOVED)
        return ns_fail(ns, DELTAFS_ERR_EXISTS, path);
    if (f.last.is_folder && type != ENTRY_FOLDER)
        return ns_fail(ns, DELTAFS_ERR_NOT_FOUND, path);
    struct entry_name name = walk_name(&ns->walk, &f, 0);
    struct inode inode = ns_new_inode(ns, type, mode);
    inode.size = strlen(target);
    return ns_put(ns, &name, &inode, target, inode.size);
}

static int create_new(deltafs_namespace *ns, const char *path, uint8_t type, uint32_t mode, const char *target)
{
    int status;

    if (ns->shared)
        ns->shared->assumes_new = 1;
    do
        status = try_create_new(ns, path, type, mode, target);
    while (shared_again(ns, &status));
    return status;
}

int deltafs_namespace_mkdir(deltafs_namespace *ns, const char *path, uint32_t mode)
{
    static const char call[] = "deltafs_namespace_mkdir";
    int status = ns_begin(ns, call, 1);

    if (status != DELTAFS_OK)
        return status;
    return ns_end(ns, path ? create_new(ns, path, ENTRY_FOLDER, mode, "") : ns_no_argument(ns, call, "path"));
}

int deltafs_namespace_symlink(deltafs_namespace *ns, const char *target, const char *path)
{
    static const char call[] = "deltafs_namespace_symlink";
    int status = ns_begin(ns, call, 1);

    if (status != DELTAFS_OK)
        return status;
    if (!path || !target)
        return ns_end(ns, ns_no_argument(ns, call, "target and path"));
    if (target[0] == '\0' || strlen(target) > ENTRY_TARGET_MAX)
        return ns_end(ns, ns_fail(ns, target[0] == '\0' ? DELTAFS_ERR_NOT_FOUND : DELTAFS_ERR_NAME, path));
    return ns_end(ns, create_new(ns, path, ENTRY_LINK, 0777, target));
}

/* Have the owner of the folder create the file. */
static int create_shared(deltafs_namespace *ns, const struct last *last, uint32_t mode)
{
    char name[ENTRY_NAME_MAX + 1];
    const char *const names[] = {name};
    const struct inode inode = ns_new_inode(ns, ENTRY_FILE, mode);
    size_t count;

    memcpy(name, last->text, last->size);
    name[last->size] = '\0';
    return shared_create(ns, walk_folders(&ns->walk, &count), names, 1, &inode);
}

/* Remove what has a name in the walk's folder, of which there is an entry like `shown`. */
static int replace_file(deltafs_namespace *ns, const struct last *last, uint32_t hash, const struct inode *shown,
                        const char *path)
{
    const struct found f = {.inode = *shown, .last = *last, .hash = hash};

    if (shown->type == ENTRY_FOLDER)
        return ns_fail(ns, DELTAFS_ERR_FOLDER, path);
    ns_remove_items(ns, &ns->walk, &f, NULL);
    return DELTAFS_OK;
}

static void show_items(deltafs_namespace *ns, const struct name_node *node, struct inode *shown)
{
    for (const struct name_item *i = node ? name_item_at(&ns->names, node->items) : NULL; i;
         i = name_item_at(&ns->names, i->next))
        inode_show(shown, &i->inode);
}

/* Give a name in the walk's folder a new file, without reading what is committed under it. But a file that is open, and
 * whose name is not in memory any more, must learn that it has it no longer. */
static int create_here(deltafs_namespace *ns, const struct last *last, const char *path, uint32_t mode)
{
    size_t count;
    const struct folder *folder = walk_folders(&ns->walk, &count);
    uint32_t hash = name_hash(last->text, last->size);
    struct entry_name name = name_in(folder, hash, last->text, last->size);
    int status = DELTAFS_OK;

    name_table_prefetch(&ns->names, &name);
    struct inode inode = ns_new_inode(ns, ENTRY_FILE, mode), shown = {.type = ENTRY_REMOVED};
    struct name_node *node = name_table_get(&ns->names, &name);
    if (ns->opens > 0 && ns->clears > 0)
        status = ns_load_names(ns, folder, count, hash, last->text, last->size, 0);
    show_items(ns, node, &shown);
    for (size_t i = 1; i < count; i++) {
        struct entry_name other = name_in(&folder[i], hash, last->text, last->size);
        show_items(ns, name_table_find(&ns->names, &other), &shown);
    }
    if (status == DELTAFS_OK && shown.type != ENTRY_REMOVED) {
        status = replace_file(ns, last, hash, &shown, path);
        inode = ns_new_inode(ns, ENTRY_FILE, mode);
    }
    return status == DELTAFS_OK ? put_at(ns, node, &inode, "", 0) : status;
}

static int try_create_file(deltafs_namespace *ns, const char *path, uint32_t mode)
{
    struct last last;
    int status = walk_to_parent(ns, &ns->walk, path, &last);

    if (status != DELTAFS_OK)
        return status;
    if (last.size == 0 || last.is_folder || last.size > ENTRY_NAME_MAX)
        return ns_fail(ns, last.size > ENTRY_NAME_MAX ? DELTAFS_ERR_NAME : DELTAFS_ERR_FOLDER, path);
    return ns->shared ? create_shared(ns, &last, mode) : create_here(ns, &last, path, mode);
}

static int create_file(deltafs_namespace *ns, const char *path, uint32_t mode)
{
    int status;

    do
        status = try_create_file(ns, path, mode);
    while (shared_again(ns, &status));
    return status;
}

int deltafs_namespace_create(deltafs_namespace *ns, const char *path, uint32_t mode, int flags)
{
    static const char call[] = "deltafs_namespace_create";
    int status = ns_begin(ns, call, 1);

    if (status != DELTAFS_OK)
        return status;
    if (!path || (flags & ~O_EXCL) != 0)
        return ns_end(ns, ns_no_argument(ns, call, "path, and flags that are 0 or O_EXCL,"));
    return ns_end(ns, flags & O_EXCL ? create_new(ns, path, ENTRY_FILE, mode, "") : create_file(ns, path, mode));
}

/* Some of many names in a folder, for which there is room. */
static int create_some(deltafs_namespace *ns, const char *below, const char *const *names, size_t n, uint32_t mode)
{
    struct last last;
    size_t count;
    int status = walk_to_parent(ns, &ns->walk, below, &last);

    if (status == DELTAFS_OK && ns->shared) {
        const struct inode first = ns_new_inodes(ns, ENTRY_FILE, mode, n);
        return shared_create(ns, walk_folders(&ns->walk, &count), names, n, &first);
    }
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        last = (struct last){.text = names[i], .size = strlen(names[i])};
        status = create_here(ns, &last, names[i], mode);
    }
    return status;
}

static int check_names(deltafs_namespace *ns, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t size = names[i] ? strlen(names[i]) : 0;
        if (size == 0 || strchr(names[i], '/') || strcmp(names[i], ".") == 0 || strcmp(names[i], "..") == 0)
            return ns_fail(ns, DELTAFS_ERR_INVALID, size > 0 ? names[i] : "");
        if (size > ENTRY_NAME_MAX)
            return ns_fail(ns, DELTAFS_ERR_NAME, names[i]);
    }
    return DELTAFS_OK;
}

/* The path of a name in the folder is enough to go there, and stays known. */
static int create_many(deltafs_namespace *ns, const char *folder, const char *const *names, size_t n, uint32_t mode)
{
    char below[PATH_MAX];
    int status = check_names(ns, names, n);

    if (status != DELTAFS_OK)
        return status;
    if ((size_t)snprintf(below, sizeof below, "%s/-", folder) >= sizeof below)
        return ns_fail(ns, DELTAFS_ERR_NAME, folder);
    const size_t most = ns->shared ? SHARED_CREATE_MOST : CREATE_SOME;
    for (size_t some; n > 0 && status == DELTAFS_OK; names += some, n -= some) {
        some = n < most ? n : most;
        status = ns->shared ? DELTAFS_OK : ns_make_room(ns);
        if (status != DELTAFS_OK)
            break;
        do
            status = create_some(ns, below, names, some, mode);
        while (shared_again(ns, &status));
    }
    return status;
}

int deltafs_namespace_create_many(deltafs_namespace *ns, const char *folder, const char *const *names, size_t n,
                                  uint32_t mode)
{
    static const char call[] = "deltafs_namespace_create_many";
    int status = ns_begin(ns, call, 1);

    if (status != DELTAFS_OK)
        return status;
    if (!folder || !*folder || (!names && n > 0))
        return ns_end(ns, ns_no_argument(ns, call, "folder and names"));
    return ns_end(ns, create_many(ns, folder, names, n, mode));
}

/* ---- Removing ---- */

int deltafs_namespace_unlink(deltafs_namespace *ns, const char *path)
{
    static const char call[] = "deltafs_namespace_unlink";
    struct found f;
    int status = ns_begin(ns, call, 1);

    if (status != DELTAFS_OK)
        return status;
    if (!path)
        return ns_end(ns, ns_no_argument(ns, call, "path"));
    do {
        status = walk_to_existing(ns, &ns->walk, path, 0, &f);
        if (status == DELTAFS_OK && f.inode.type == ENTRY_FOLDER)
            status = ns_fail(ns, DELTAFS_ERR_FOLDER, path);
        if (status == DELTAFS_OK)
            ns_remove_items(ns, &ns->walk, &f, NULL);
    } while (shared_again(ns, &status));
    return ns_end(ns, status);
}

int ns_check_movable(deltafs_namespace *ns, const struct found *f, const char *path)
{
    if (f->last.is_dots)
        return ns_fail(ns, DELTAFS_ERR_INVALID, path);
    return f->last.size == 0 ? ns_fail(ns, DELTAFS_ERR_BUSY, path) : DELTAFS_OK;
}

static int try_remove_folder(deltafs_namespace *ns, const char *path)
{
    struct found f;
    int status = walk_to_existing(ns, &ns->walk, path, 0, &f);

    if (status == DELTAFS_OK)
        status = ns_check_movable(ns, &f, path);
    if (status == DELTAFS_OK && f.inode.type != ENTRY_FOLDER)
        status = ns_fail(ns, DELTAFS_ERR_NOT_FOLDER, path);
    if (status == DELTAFS_OK)
        status = ns_check_empty(ns, &ns->walk, &f, path);
    if (status == DELTAFS_OK)
        ns_remove_items(ns, &ns->walk, &f, NULL);
    return status;
}

static int remove_folder(deltafs_namespace *ns, const char *path)
{
    int status = shared_lock(ns);

    if (status != DELTAFS_OK)
        return status;
    do
        status = try_remove_folder(ns, path);
    while (shared_again(ns, &status));
    shared_unlock(ns);
    return status;
}

int deltafs_namespace_rmdir(deltafs_namespace *ns, const char *path)
{
    static const char call[] = "deltafs_namespace_rmdir";
    int status = ns_begin(ns, call, 1);

    if (status != DELTAFS_OK)
        return status;
    return ns_end(ns, path ? remove_folder(ns, path) : ns_no_argument(ns, call, "path"));
}

/* ---- Attributes ---- */

static void set_attributes(deltafs_namespace *ns, struct inode *i, const struct deltafs_namespace_attributes *a)
{
    i->stamp = ns_stamps(ns, 1);
    if (a->set & DELTAFS_NAMESPACE_MODE)
        i->mode = (uint16_t)(a->mode & PERMISSIONS);
    if (a->set & DELTAFS_NAMESPACE_UID)
        i->uid = a->uid;
    if (a->set & DELTAFS_NAMESPACE_GID)
        i->gid = a->gid;
    if (a->set & DELTAFS_NAMESPACE_MTIME)
        i->mtime = a->mtime;
    if (a->set & DELTAFS_NAMESPACE_ATIME)
        i->atime = a->atime;
}

/* All folders that have the name, or the item that was found. */
static void set_items(deltafs_namespace *ns, const struct walk *w, const struct found *f,
                      const struct deltafs_namespace_attributes *a)
{
    size_t count;

    walk_folders(w, &count);
    for (size_t i = 0; i < count; i++) {
        struct entry_name name = walk_name(w, f, i);
        struct name_node *node = name_table_find(&ns->names, &name);
        for (struct name_item *k = name_item_at(&ns->names, node->items); k; k = name_item_at(&ns->names, k->next)) {
            if (k != f->item && (f->inode.type != ENTRY_FOLDER || k->inode.type != ENTRY_FOLDER))
                continue;
            k->inode.mtime = ns_changed(ns, &k->inode)->mtime;
            set_attributes(ns, &k->inode, a);
            ns_note_attributes(ns, &k->inode);
            name_table_mark(&ns->names, node, k);
        }
    }
}

static int set_found(deltafs_namespace *ns, struct found *f, const struct deltafs_namespace_attributes *a)
{
    if (f->last.size > 0) {
        set_items(ns, &ns->walk, f, a);
        return DELTAFS_OK;
    }
    struct entry_name name = root_name();
    set_attributes(ns, &f->inode, a);
    return ns_put(ns, &name, &f->inode, "", 0);
}

int deltafs_namespace_set_attributes(deltafs_namespace *ns, const char *path, int flags,
                                     const struct deltafs_namespace_attributes *attributes)
{
    static const char call[] = "deltafs_namespace_set_attributes";
    struct deltafs_namespace_attributes a;
    struct found f;
    int status = ns_begin(ns, call, 1);

    if (status != DELTAFS_OK)
        return status;
    if (!path || !attributes || (flags & ~AT_SYMLINK_NOFOLLOW) != 0)
        return ns_end(ns, ns_no_argument(ns, call, "path, attributes, and flags that are 0 or AT_SYMLINK_NOFOLLOW,"));
    status = sized_take(&a, attributes, sizeof a, call, &ns->error);
    if (status != DELTAFS_OK)
        return ns_end(ns, status);
    do {
        status = walk_to_existing(ns, &ns->walk, path, flags == 0 ? WALK_FOLLOWS : 0, &f);
        if (status == DELTAFS_OK)
            status = set_found(ns, &f, &a);
    } while (shared_again(ns, &status));
    return ns_end(ns, status);
}

/* ---- Looking ---- */

int deltafs_namespace_stat(deltafs_namespace *ns, const char *path, int flags, struct deltafs_namespace_stat *out)
{
    static const char call[] = "deltafs_namespace_stat";
    struct deltafs_namespace_stat s;
    struct found f;
    int status = ns_begin(ns, call, 0);

    if (status != DELTAFS_OK)
        return status;
    if (!path || !out || (flags & ~AT_SYMLINK_NOFOLLOW) != 0)
        return ns_end(ns, ns_no_argument(ns, call, "path, out, and flags that are 0 or AT_SYMLINK_NOFOLLOW,"));
    status = walk_to_existing(ns, &ns->walk, path, WALK_INODE | (flags == 0 ? WALK_FOLLOWS : 0), &f);
    if (status != DELTAFS_OK)
        return ns_end(ns, status);
    inode_to_stat(ns_current(ns, &f.inode), &s);
    return ns_end(ns, sized_fill(out, &s, sizeof s, call, &ns->error));
}

int deltafs_namespace_readlink(deltafs_namespace *ns, const char *path, char *target, size_t room, size_t *size)
{
    static const char call[] = "deltafs_namespace_readlink";
    struct found f;
    int status = ns_begin(ns, call, 0);

    if (status != DELTAFS_OK)
        return status;
    if (!path || !target || !size)
        return ns_end(ns, ns_no_argument(ns, call, "path, target and size"));
    status = walk_to_existing(ns, &ns->walk, path, 0, &f);
    if (status == DELTAFS_OK && f.inode.type != ENTRY_LINK)
        status = error_set(&ns->error, DELTAFS_ERR_INVALID, "%s:/%s: is no symbolic link", ns->path,
                           path[0] == '/' ? path + 1 : path);
    if (status != DELTAFS_OK)
        return ns_end(ns, status);
    *size = f.item->target_size;
    memcpy(target, f.item->target, *size < room ? *size : room);
    return ns_end(ns, DELTAFS_OK);
}
