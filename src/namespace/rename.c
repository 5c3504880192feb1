/* Renaming: each entry that has the name leaves it, and gets the other. What is in a folder does not change. */
#include "namespace/shared.h"

/* Whether the walk has come through a folder with this id. */
static int walk_has(const struct walk *w, const struct entry_id *id)
{
    for (size_t i = 0; i < w->folders; i++)
        if (id_is_same(&w->folder[i].id, id))
            return 1;
    return 0;
}

/* What `from` has can get the name of `to`. */
static int check_target(deltafs_namespace *ns, const struct found *from, const struct found *to, const char *path)
{
    int is_folder = from->inode.type == ENTRY_FOLDER;

    if (is_folder && walk_has(&ns->other, &from->inode.id))
        return error_set(&ns->error, DELTAFS_ERR_INVALID, "%s:/%s: a folder cannot be moved into itself", ns->path,
                         path[0] == '/' ? path + 1 : path);
    if (to->inode.type == ENTRY_REMOVED)
        return to->last.is_folder && !is_folder ? ns_fail(ns, DELTAFS_ERR_NOT_FOLDER, path) : DELTAFS_OK;
    if (is_folder != (to->inode.type == ENTRY_FOLDER))
        return ns_fail(ns, is_folder ? DELTAFS_ERR_NOT_FOLDER : DELTAFS_ERR_FOLDER, path);
    return is_folder ? ns_check_empty(ns, &ns->other, to, path) : DELTAFS_OK;
}

/* Give the entry the name `to`, and not the one that it has. */
static int move_item(deltafs_namespace *ns, struct name_node *node, struct name_item *item, const struct entry_name *to)
{
    struct inode inode = item->inode;

    inode.stamp = ns_stamps(ns, 1);
    int status = ns_put(ns, to, &inode, item->target, item->inode.type == ENTRY_LINK ? item->target_size : 0);
    if (status != DELTAFS_OK)
        return status;
    ns_note_moved(ns, &inode, to);
    if (ns->shared)
        shared_note_moved(ns, &inode, to);
    ns_leave(ns, node, item);
    return DELTAFS_OK;
}

/* Move all folders that have the name, or the item that was found; of others that have it, none is left. */
static int move_items(deltafs_namespace *ns, const struct found *from, const struct entry_name *to)
{
    size_t count;
    int status = DELTAFS_OK, is_folder = from->inode.type == ENTRY_FOLDER;

    walk_folders(&ns->walk, &count);
    for (size_t i = 0; i < count; i++) {
        struct entry_name name = walk_name(&ns->walk, from, i);
        struct name_node *node = name_table_find(&ns->names, &name);
        for (struct name_item *k = name_item_at(&ns->names, node->items); k && status == DELTAFS_OK;
             k = name_item_at(&ns->names, k->next))
            if (k == from->item || (is_folder && k->inode.type == ENTRY_FOLDER))
                status = move_item(ns, node, k, to);
    }
    if (status == DELTAFS_OK)
        ns_remove_items(ns, &ns->walk, from, NULL);
    return status;
}

static int try_rename(deltafs_namespace *ns, const char *from, const char *to)
{
    struct found a, b;
    int status = walk_to_existing(ns, &ns->walk, from, 0, &a);

    if (status == DELTAFS_OK)
        status = ns_check_movable(ns, &a, from);
    if (status == DELTAFS_OK)
        status = walk_to(ns, &ns->other, to, 0, &b);
    if (status == DELTAFS_OK)
        status = ns_check_movable(ns, &b, to);
    if (status != DELTAFS_OK || (b.inode.type != ENTRY_REMOVED && id_is_same(&a.inode.id, &b.inode.id)))
        return status;
    status = check_target(ns, &a, &b, to);
    if (status != DELTAFS_OK)
        return status;
    struct entry_name name = walk_name(&ns->other, &b, 0);
    ns_remove_items(ns, &ns->other, &b, &a.inode.id);
    return move_items(ns, &a, &name);
}

static int rename_paths(deltafs_namespace *ns, const char *from, const char *to)
{
    int status = shared_lock(ns);

    if (status != DELTAFS_OK)
        return status;
    do
        status = try_rename(ns, from, to);
    while (shared_again(ns, &status));
    shared_unlock(ns);
    return status;
}

int deltafs_namespace_rename(deltafs_namespace *ns, const char *from, const char *to)
{
    static const char call[] = "deltafs_namespace_rename";
    int status = ns_begin(ns, call, 1);

    if (status != DELTAFS_OK)
        return status;
    return ns_end(ns, from && to ? rename_paths(ns, from, to) : ns_no_argument(ns, call, "from and to"));
}
