/* The names in memory: those that were changed and are not committed yet, and,
 * as long as there is room, those that were looked up, also if nothing has the
 * name.
 *
 * A node is a name in a folder. Its items are the states of the entries that
 * have, or had, that name: mostly one; more if several writers have created it,
 * or if it was removed and created again. Nodes and items are in one arena, and
 * stay where they are until name_table_clear. */
#ifndef DELTAFS_NAMESPACE_NAME_TABLE_H
#define DELTAFS_NAMESPACE_NAME_TABLE_H

#include "base/error.h"
#include "namespace/entry.h"

struct name_item {
    struct inode inode;
    uint32_t next; /* of the node */
    uint16_t target_size;
    uint8_t is_dirty; /* it is not committed */
    char target[];    /* of a link; no zero at its end */
};

struct name_node {
    struct entry_id parent;
    uint64_t key;
    uint32_t items;     /* the first */
    uint32_t in_folder; /* the next node of the folder; of a folder's own node,
                           which has no name, the first */
    uint32_t dirty;     /* the next with an item that is not committed */
    uint8_t name_size;
    uint8_t is_loaded;   /* its items are all that there are; else only what was
                            changed here */
    uint8_t is_dirty;    /* it is in that list */
    uint8_t is_conflict; /* of the inputs of a merge */
    char name[];
};

/* A node's place, and a part of its key that says of most other nodes that they
 * are not the one. */
struct name_slot {
    uint32_t place, tag; /* place 0: free */
};

struct name_table {
    uint8_t *arena;
    size_t used, room;
    struct name_slot *slot; /* by the hash of the key */
    unsigned bits;
    uint32_t count;  /* of slots that are not free */
    uint32_t folder; /* the folder's node that was used last */
    uint32_t first_dirty, last_dirty;
};

/* With about `bytes` of memory. */
int name_table_init(struct name_table *t, size_t bytes, struct error *e);
void name_table_fini(struct name_table *t);
/* Forget all nodes; none may be dirty. */
void name_table_clear(struct name_table *t);

/* Forget all but what was changed: the nodes with items that are not committed,
 * and these items. None of the nodes is loaded then. */
void name_table_forget(struct name_table *t);

/* Bytes that are left for certain; 0 if there is no room for many more nodes.
 */
size_t name_table_left(const struct name_table *t);

/* A name is looked up soon: have the processor fetch its slot. */
void name_table_prefetch(const struct name_table *t, const struct entry_name *name);
struct name_node *name_table_find(const struct name_table *t, const struct entry_name *name);
/* The same; one that is not there is added, without items. NULL: no room. */
struct name_node *name_table_get(struct name_table *t, const struct entry_name *name);

static inline struct name_item *name_item_at(const struct name_table *t, uint32_t place)
{
    return place == 0 ? NULL : (struct name_item *)(void *)(t->arena + (size_t)place * 8);
}

static inline struct name_node *name_node_at(const struct name_table *t, uint32_t place)
{
    return place == 0 ? NULL : (struct name_node *)(void *)(t->arena + (size_t)place * 8);
}

/* The first node of a folder, of which name_node_at gives the next ones by
 * `in_folder`. */
struct name_node *name_table_folder(const struct name_table *t, const struct folder *folder);

/* Give the node this state of an entry, unless it has a newer one. NULL: no
 * room. */
struct name_item *name_table_put(struct name_table *t, struct name_node *node, const struct inode *inode,
                                 const char *target, size_t target_size);
/* The item was changed. */
void name_table_mark(struct name_table *t, struct name_node *node, struct name_item *item);
/* All items of a node are committed; the node that was changed after it, or NULL. For all nodes in their order, and
 * then the list of changed ones is to be made empty. */
struct name_node *name_table_clean(const struct name_table *t, struct name_node *node);
/* All items are committed. */
void name_table_mark_clean(struct name_table *t);

#endif
