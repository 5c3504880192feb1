#include "namespace/name_table.h"
#include <string.h>
#include "base/memory.h"

#define SLOT_SHARE    128 /* bytes for each slot, itself included; a node with an item takes a little more */
#define SLOT_BITS_MIN 10
#define SPARE_SLOTS   8192 /* nodes that one call may add */

static size_t slots_size(const struct name_table *t)
{
    return sizeof *t->slot << t->bits;
}

int name_table_init(struct name_table *t, size_t bytes, struct error *e)
{
    *t = (struct name_table){.bits = SLOT_BITS_MIN, .used = 8};
    while ((size_t)SLOT_SHARE << (t->bits + 1) <= bytes && t->bits < 32)
        t->bits++;
    t->slot = memory_map(bytes);
    if (!t->slot)
        return error_no_memory(e, bytes, "names");
    t->arena = (uint8_t *)(t->slot + ((size_t)1 << t->bits));
    t->room = bytes - slots_size(t);
    return DELTAFS_OK;
}

void name_table_fini(struct name_table *t)
{
    memory_unmap(t->slot, slots_size(t) + t->room);
}

void name_table_clear(struct name_table *t)
{
    memset(t->slot, 0, slots_size(t));
    t->count = 0;
    t->used = 8;
    t->folder = 0;
}

/* ---- Nodes ---- */

static uint32_t place_of(const struct name_table *t, const void *p)
{
    return (uint32_t)(((const uint8_t *)p - t->arena) / 8);
}

/* NULL: no room. */
static void *arena_take(struct name_table *t, size_t n)
{
    n = (n + 7) & ~(size_t)7;
    if (n > t->room - t->used || (t->used + n) / 8 > UINT32_MAX)
        return NULL;
    void *p = t->arena + t->used;
    t->used += n;
    return p;
}

/* At least a quarter of the slots is free. */
static uint32_t most_nodes(const struct name_table *t)
{
    return (uint32_t)(UINT64_C(3) << t->bits >> 2);
}

size_t name_table_left(const struct name_table *t)
{
    return t->count + SPARE_SLOTS <= most_nodes(t) ? t->room - t->used : 0;
}

static uint64_t slot_hash(const struct entry_name *name)
{
    return name->key * UINT64_C(0x9e3779b97f4a7c15);
}

void name_table_prefetch(const struct name_table *t, const struct entry_name *name)
{
    __builtin_prefetch(&t->slot[slot_hash(name) >> (64 - t->bits)], 1);
}

/* The slot of a name: where its node is, or would be. */
static struct name_slot *slot_of(const struct name_table *t, const struct entry_name *name)
{
    uint64_t hash = slot_hash(name);
    size_t mask = ((size_t)1 << t->bits) - 1, i = (size_t)(hash >> (64 - t->bits));

    for (;; i = (i + 1) & mask) {
        struct name_slot *s = &t->slot[i];
        if (s->place == 0)
            return s;
        if (s->tag != (uint32_t)hash)
            continue;
        const struct name_node *n = name_node_at(t, s->place);
        if (n->key == name->key && n->name_size == name->size && id_is_same(&n->parent, &name->parent) &&
            memcmp(n->name, name->text, name->size) == 0)
            return s;
    }
}

struct name_node *name_table_find(const struct name_table *t, const struct entry_name *name)
{
    return name_node_at(t, slot_of(t, name)->place);
}

/* Add a node at the slot that is free for it. */
static struct name_node *node_add(struct name_table *t, struct name_slot *slot, const struct entry_name *name)
{
    struct name_node *n = t->count < most_nodes(t) ? arena_take(t, sizeof *n + name->size) : NULL;

    if (!n)
        return NULL;
    *n = (struct name_node){.parent = name->parent, .key = name->key, .name_size = (uint8_t)name->size};
    memcpy(n->name, name->text, name->size);
    *slot = (struct name_slot){place_of(t, n), (uint32_t)slot_hash(name)};
    t->count++;
    return n;
}

/* A folder's own node has the least key of the folder, and no name. */
static struct entry_name folder_name(const struct entry_id *id, uint64_t key)
{
    return (struct entry_name){*id, key & ~(uint64_t)UINT32_MAX, "", 0};
}

/* The node of the folder that a name is in. */
static struct name_node *folder_get(struct name_table *t, const struct entry_name *name)
{
    struct name_node *n = name_node_at(t, t->folder);

    if (n && id_is_same(&n->parent, &name->parent))
        return n;
    struct entry_name own = folder_name(&name->parent, name->key);
    struct name_slot *slot = slot_of(t, &own);
    n = slot->place == 0 ? node_add(t, slot, &own) : name_node_at(t, slot->place);
    if (n)
        t->folder = place_of(t, n);
    return n;
}

struct name_node *name_table_get(struct name_table *t, const struct entry_name *name)
{
    struct name_node *folder = folder_get(t, name);
    struct name_slot *slot = slot_of(t, name);

    if (!folder || slot->place != 0)
        return folder ? name_node_at(t, slot->place) : NULL;
    struct name_node *n = node_add(t, slot, name);
    if (!n)
        return NULL;
    n->in_folder = folder->in_folder;
    folder->in_folder = place_of(t, n);
    return n;
}

struct name_node *name_table_folder(const struct name_table *t, const struct folder *folder)
{
    struct entry_name own = folder_name(&folder->id, (uint64_t)folder->hash << 32);
    const struct name_node *n = name_table_find(t, &own);

    return n ? name_node_at(t, n->in_folder) : NULL;
}

/* ---- Forgetting ---- */

/* Let only items that are not committed be left of a node. */
static void drop_clean_items(const struct name_table *t, struct name_node *n)
{
    uint32_t *link = &n->items;

    for (struct name_item *i = name_item_at(t, *link); i; i = name_item_at(t, *link))
        if (i->is_dirty)
            link = &i->next;
        else
            *link = i->next;
}

/* Put a node that stays where it is back among those that are found, behind its folder's. */
static void put_back(struct name_table *t, struct name_node *n, struct name_node *folder)
{
    const struct entry_name name = {n->parent, n->key, n->name, n->name_size};

    *slot_of(t, &name) = (struct name_slot){place_of(t, n), (uint32_t)slot_hash(&name)};
    t->count++;
    if (!folder)
        return;
    n->in_folder = folder->in_folder;
    folder->in_folder = place_of(t, n);
}

void name_table_forget(struct name_table *t)
{
    struct name_node *first = name_node_at(t, t->first_dirty);
    size_t used = t->used;

    for (struct name_node *n = first; n; n = name_node_at(t, n->dirty)) {
        const struct entry_name own = folder_name(&n->parent, n->key);
        n->in_folder = slot_of(t, &own)->place;
    }
    name_table_clear(t);
    if (first) /* the nodes stay where they are */
        t->used = used;
    for (struct name_node *n = first; n; n = name_node_at(t, n->dirty)) {
        const struct entry_name own = folder_name(&n->parent, n->key);
        struct name_node *folder = name_node_at(t, n->in_folder);
        if (slot_of(t, &own)->place == 0) {
            folder->in_folder = 0;
            put_back(t, folder, NULL);
        }
        drop_clean_items(t, n);
        n->is_loaded = n->is_conflict = 0;
        put_back(t, n, folder);
    }
}

/* ---- Items ---- */

/* An item at *link, which goes on with the items behind it; its inode is yet to be set. */
static struct name_item *item_add(struct name_table *t, uint32_t *link, uint32_t next, size_t target_size)
{
    struct name_item *item = arena_take(t, sizeof *item + target_size);

    if (!item)
        return NULL;
    item->next = next;
    item->target_size = (uint16_t)target_size;
    item->is_dirty = 0;
    *link = place_of(t, item);
    return item;
}

struct name_item *name_table_put(struct name_table *t, struct name_node *node, const struct inode *inode,
                                 const char *target, size_t target_size)
{
    uint32_t *link = &node->items;
    struct name_item *item = name_item_at(t, *link);

    while (item && !id_is_same(&item->inode.id, &inode->id)) {
        link = &item->next;
        item = name_item_at(t, *link);
    }
    if (item && inode->stamp < item->inode.stamp)
        return item;
    /* The item of a link that was removed when it came here has no room for the target. */
    if (!item || target_size > item->target_size)
        item = item_add(t, link, item ? item->next : 0, target_size);
    if (!item)
        return NULL;
    item->inode = *inode;
    if (target_size > 0)
        memcpy(item->target, target, target_size);
    return item;
}

void name_table_mark(struct name_table *t, struct name_node *node, struct name_item *item)
{
    item->is_dirty = 1;
    if (node->is_dirty)
        return;
    node->is_dirty = 1;
    if (t->first_dirty == 0)
        t->first_dirty = place_of(t, node);
    else
        name_node_at(t, t->last_dirty)->dirty = place_of(t, node);
    t->last_dirty = place_of(t, node);
}

struct name_node *name_table_clean(const struct name_table *t, struct name_node *node)
{
    struct name_node *next = name_node_at(t, node->dirty);

    node->dirty = 0;
    node->is_dirty = 0;
    for (struct name_item *i = name_item_at(t, node->items); i; i = name_item_at(t, i->next))
        i->is_dirty = 0;
    return next;
}

void name_table_mark_clean(struct name_table *t)
{
    for (struct name_node *n = name_node_at(t, t->first_dirty); n; n = name_table_clean(t, n))
        ;
    t->first_dirty = t->last_dirty = 0;
}
