/* Commits: the bytes of files first, then the names that lead to them. */
#include "namespace/namespace.h"

int ns_break(deltafs_namespace *ns, int status)
{
    if (status != DELTAFS_OK && ns->broken.status == DELTAFS_OK)
        ns->broken = ns->error;
    return status;
}

int ns_commit_data(deltafs_namespace *ns)
{
    if (!ns->own.has_data)
        return DELTAFS_OK;
    int status = own_table_commit_data(&ns->own, ns_stamps(ns, 1), &ns->error);
    if (status == DELTAFS_OK)
        tables_note_data(&ns->tables, ns->own.number);
    return ns_break(ns, status);
}

static int commit_node(deltafs_namespace *ns, const struct name_node *node)
{
    struct entry entry = {.parent = node->parent, .name = node->name, .name_size = node->name_size};
    int status = DELTAFS_OK;

    name_filter_add(&ns->committed, node->key);
    for (const struct name_item *i = name_item_at(&ns->names, node->items); i && status == DELTAFS_OK;
         i = name_item_at(&ns->names, i->next)) {
        entry.inode = i->inode;
        entry.target = i->target;
        entry.target_size = i->target_size;
        if (i->is_dirty)
            status = own_table_put(&ns->own, node->key, &entry, &ns->error);
    }
    return status;
}

static int commit_names(deltafs_namespace *ns)
{
    const struct name_node *node = name_node_at(&ns->names, ns->names.first_dirty);
    int status = DELTAFS_OK;

    for (; node && status == DELTAFS_OK; node = name_node_at(&ns->names, node->dirty))
        status = commit_node(ns, node);
    return status == DELTAFS_OK ? own_table_commit(&ns->own, ns_stamps(ns, 1), &ns->error) : status;
}

int ns_commit(deltafs_namespace *ns)
{
    int status = ns_flush_files(ns);

    if (status == DELTAFS_OK)
        status = ns_commit_data(ns);
    if (status != DELTAFS_OK || ns->names.first_dirty == 0)
        return status;
    status = ns_break(ns, commit_names(ns));
    if (status == DELTAFS_OK) {
        name_table_mark_clean(&ns->names);
        tables_note_commit(&ns->tables, ns->own.number);
    }
    return status;
}

int deltafs_namespace_commit(deltafs_namespace *ns)
{
    int status = ns_begin(ns, "deltafs_namespace_commit", 1);

    return status == DELTAFS_OK ? ns_end(ns, ns_commit(ns)) : status;
}
