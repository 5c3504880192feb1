/* Commits: the bytes of files first, then the names that lead to them. */
#include "namespace/shared.h"

#define NODES_AHEAD 8 /* whose lines of the filter a processor fetches */

int ns_break(deltafs_namespace *ns, int status)
{
    if (status != DELTAFS_OK && ns->broken.status == DELTAFS_OK)
        ns->broken = ns->error;
    return status;
}

int ns_check_sound(deltafs_namespace *ns)
{
    if (ns->broken.status != DELTAFS_OK)
        ns->error = ns->broken;
    return ns->broken.status;
}

int ns_commit_data(deltafs_namespace *ns)
{
    if (!ns->own.has_data)
        return DELTAFS_OK;
    int status = own_table_commit_data(&ns->own, ns_stamps(ns, 1), &ns->error);
    if (status == DELTAFS_OK)
        tables_note_data(&ns->tables, ns->own.number);
    recent_clear(&ns->recent);
    return ns_break(ns, status);
}

static int commit_node(deltafs_namespace *ns, const struct name_node *node, enum commit_part part, int *has_some)
{
    struct entry entry = {.parent = node->parent, .name = node->name, .name_size = node->name_size};
    int status = DELTAFS_OK;

    name_filter_add(&ns->committed, node->key);
    for (const struct name_item *i = name_item_at(&ns->names, node->items); i && status == DELTAFS_OK;
         i = name_item_at(&ns->names, i->next)) {
        entry.inode = i->inode;
        entry.target = i->target;
        entry.target_size = i->target_size;
        if (!i->is_dirty || (part == COMMIT_ADDED && i->inode.type == ENTRY_REMOVED) ||
            (part == COMMIT_REMOVED && i->inode.type != ENTRY_REMOVED))
            continue;
        status = own_table_put(&ns->own, node->key, &entry, &ns->error);
        *has_some = 1;
    }
    return status;
}

/* What the own table has is in epochs now, the bytes of files, too. */
static void note_epochs(deltafs_namespace *ns)
{
    tables_note_commit(&ns->tables, ns->own.number);
    tables_note_data(&ns->tables, ns->own.number);
    recent_clear(&ns->recent);
}

int ns_end_journal(deltafs_namespace *ns, struct error *e)
{
    int status = own_table_end_journal(&ns->own, e);

    note_epochs(ns);
    return status;
}

/* Put the changes of this part into the own table. Afterwards no name is changed, but for those of COMMIT_ADDED, which
 * COMMIT_REMOVED goes through again. */
static int commit_names(deltafs_namespace *ns, enum commit_part part)
{
    struct name_table *names = &ns->names;
    struct name_node *node = name_node_at(names, names->first_dirty);
    const struct name_node *ahead = node;
    int status = DELTAFS_OK, has_some = 0, is_epoch = 0;

    for (int i = 0; i < NODES_AHEAD && ahead; i++)
        ahead = name_node_at(names, ahead->dirty);
    while (node && status == DELTAFS_OK) {
        if (ahead) {
            name_filter_prefetch(&ns->committed, ahead->key);
            ahead = name_node_at(names, ahead->dirty);
        }
        status = commit_node(ns, node, part, &has_some);
        node = part == COMMIT_ADDED ? name_node_at(names, node->dirty) : name_table_clean(names, node);
    }
    if (part != COMMIT_ADDED)
        names->first_dirty = names->last_dirty = 0;
    if (status == DELTAFS_OK && has_some)
        status = own_table_commit(&ns->own, ns_stamps(ns, 1), &is_epoch, &ns->error);
    if (status == DELTAFS_OK && is_epoch) {
        own_table_merge(&ns->own, ns_stamps(ns, 1));
        note_epochs(ns);
    }
    return status;
}

int ns_commit_names(deltafs_namespace *ns, enum commit_part part)
{
    if (ns->names.first_dirty == 0)
        return DELTAFS_OK;
    int status = ns_check_sound(ns);
    return status == DELTAFS_OK ? ns_break(ns, commit_names(ns, part)) : status;
}

int ns_commit(deltafs_namespace *ns)
{
    int status = ns_flush_files(ns);

    if (status == DELTAFS_OK && !own_table_is_little(&ns->own))
        status = ns_commit_data(ns);
    return status == DELTAFS_OK ? ns_commit_names(ns, COMMIT_ALL) : status;
}

int deltafs_namespace_commit(deltafs_namespace *ns)
{
    int is_shared = ns && ns->shared; /* then all ranks must know what is wrong with one */
    int status = ns_begin(ns, "deltafs_namespace_commit", !is_shared);

    if (status != DELTAFS_OK)
        return status;
    return ns_end(ns, is_shared ? shared_commit(ns) : ns_commit(ns));
}
