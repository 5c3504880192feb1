#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "namespace/shared.h"

#define LINKS_MAX 40

void walk_fini(struct walk *w)
{
    free(w->folder);
    free(w->level);
    free(w->path);
}

void ns_forget_walks(deltafs_namespace *ns)
{
    ns->walk.is_known = ns->other.is_known = 0;
}

/* ---- Levels ---- */

static int add_folder(deltafs_namespace *ns, struct walk *w, const struct entry_id *id)
{
    size_t first = w->level[w->levels - 1].first;

    for (size_t i = first; i < w->folders; i++)
        if (id_is_same(&w->folder[i].id, id))
            return DELTAFS_OK;
    int status = memory_extend(NULL, &w->folder, w->folders, &w->folder_room, sizeof *w->folder, "a path", &ns->error);
    if (status != DELTAFS_OK)
        return status;
    struct folder f = folder_of(id);
    if (w->folders > first && id_is_less(id, &w->folder[first].id)) {
        w->folder[w->folders++] = w->folder[first];
        w->folder[first] = f;
    } else {
        w->folder[w->folders++] = f;
    }
    return DELTAFS_OK;
}

/* A level without ids; `text` stays as long as the walk is known. */
static int add_level(deltafs_namespace *ns, struct walk *w, const char *text, size_t size)
{
    int status = memory_extend(NULL, &w->level, w->levels, &w->level_room, sizeof *w->level, "a path", &ns->error);

    if (status == DELTAFS_OK)
        w->level[w->levels++] = (struct walk_level){w->folders, text, size};
    return status;
}

static int walk_to_root(deltafs_namespace *ns, struct walk *w)
{
    w->folders = w->levels = 0;
    int status = add_level(ns, w, "", 0);
    return status == DELTAFS_OK ? add_folder(ns, w, &ns->root.id) : status;
}

/* Go up from the last level, which is not the root's. */
static void walk_up(struct walk *w)
{
    w->folders = w->level[--w->levels].first;
}

int walk_enter(deltafs_namespace *ns, struct walk *w, const struct found *f)
{
    size_t first = w->level[w->levels - 1].first, end = w->folders;

    if (f->last.size == 0)
        return DELTAFS_OK; /* the root, which is where the walk is */
    w->is_known = 0;
    int status = add_level(ns, w, f->node->name, f->node->name_size);
    for (size_t i = first; i < end && status == DELTAFS_OK; i++) {
        struct entry_name name = name_in(&w->folder[i], f->hash, f->last.text, f->last.size);
        const struct name_node *node = name_table_find(&ns->names, &name);
        const struct name_item *item = name_item_at(&ns->names, node->items);
        for (; item && status == DELTAFS_OK; item = name_item_at(&ns->names, item->next))
            if (item->inode.type == ENTRY_FOLDER)
                status = add_folder(ns, w, &item->inode.id);
    }
    return status;
}

/* ---- Names ---- */

/* Whether nothing that is committed can have the name: this writer, or its job, has created its folder since it began,
 * or since a refresh that could not tell which names are new. */
static int is_new(const deltafs_namespace *ns, const struct entry_name *name)
{
    const struct entry_id *folder = &name->parent;

    return ns->own.number != 0 && folder->number > ns->first_stamp &&
           (ns->job ? shared_has_table(ns->job, folder->table) : folder->table == ns->own.number) &&
           !name_filter_has(&ns->committed, name->key);
}

int ns_load_node(deltafs_namespace *ns, const struct entry_name *name, int is_way, struct name_node **out)
{
    if (ns->shared)
        return shared_load(ns, name, is_way, out);
    struct name_node *n = name_table_get(&ns->names, name);

    if (!n)
        return error_no_memory(&ns->error, name->size, "names; give the option memory more");
    *out = n;
    if (!n->is_loaded && is_new(ns, name))
        n->is_loaded = 1;
    if (!n->is_loaded && list_load(ns, name, n))
        n->is_loaded = 1;
    return n->is_loaded ? DELTAFS_OK : tables_load(&ns->tables, &ns->names, n, &ns->error);
}

/* Put what the resolver has chosen into the nodes. */
static int put_states(deltafs_namespace *ns, const struct folder *folder, size_t count, struct entry_name *name)
{
    const struct resolver *r = &ns->resolver;
    struct name_node *node;

    for (size_t i = 0; i < count; i++) {
        *name = name_in(&folder[i], (uint32_t)name->key, name->text, name->size);
        node = name_table_find(&ns->names, name);
        for (const struct state *s = r->state; s < r->state + r->states; s++)
            if (s->is_chosen && id_is_same(&s->parent, &name->parent) &&
                !name_table_put(&ns->names, node, &s->inode, (const char *)r->targets.bytes + s->target,
                                s->target_size))
                return error_no_memory(&ns->error, s->target_size, "names; give the option memory more");
        node->is_loaded = 1;
        node->is_conflict = (uint8_t)r->is_conflict;
    }
    return DELTAFS_OK;
}

static int resolve_names(deltafs_namespace *ns, const struct folder *folder, size_t count, struct entry_name *name)
{
    struct name_node *node;
    int status = DELTAFS_OK, is_loaded = 1;

    resolver_clear(&ns->resolver);
    for (size_t i = 0; i < count; i++) {
        *name = name_in(&folder[i], (uint32_t)name->key, name->text, name->size);
        node = name_table_get(&ns->names, name);
        if (!node)
            return error_no_memory(&ns->error, name->size, "names; give the option memory more");
        is_loaded &= node->is_loaded;
    }
    for (size_t i = 0; i < count && !is_loaded && status == DELTAFS_OK; i++) {
        *name = name_in(&folder[i], (uint32_t)name->key, name->text, name->size);
        if (!is_new(ns, name))
            status = tables_get(&ns->tables, name, resolver_take, &ns->resolver, &ns->error);
    }
    if (status != DELTAFS_OK || is_loaded)
        return status;
    status = resolver_choose(&ns->resolver, &ns->error);
    return status == DELTAFS_OK ? put_states(ns, folder, count, name) : status;
}

int ns_load_names(deltafs_namespace *ns, const struct folder *folder, size_t count, uint32_t hash, const char *text,
                  size_t size, int is_way)
{
    struct name_node *node;
    int status = DELTAFS_OK;

    if (ns->has_resolver) {
        struct entry_name name = name_in(folder, hash, text, size);
        return resolve_names(ns, folder, count, &name);
    }
    for (size_t i = 0; i < count && status == DELTAFS_OK; i++) {
        struct entry_name name = name_in(&folder[i], hash, text, size);
        status = ns_load_node(ns, &name, is_way, &node);
    }
    return status;
}

static void show_items(const deltafs_namespace *ns, struct name_node *node, struct found *out)
{
    for (struct name_item *i = name_item_at(&ns->names, node->items); i; i = name_item_at(&ns->names, i->next))
        if (inode_show(&out->inode, &i->inode)) {
            out->node = node;
            out->item = i;
        }
}

static int look_at_root(deltafs_namespace *ns, struct found *out)
{
    struct entry_name name = root_name();
    struct name_node *node;
    int status = ns_load_node(ns, &name, 0, &node);

    out->inode = ns->root;
    if (status == DELTAFS_OK && node->items != 0)
        out->inode = name_item_at(&ns->names, node->items)->inode;
    return status;
}

/* Look up a name in the last level's folder; is_way: as for ns_load_node. */
static int walk_look(deltafs_namespace *ns, const struct walk *w, const struct last *last, const char *path, int is_way,
                     unsigned how, struct found *out)
{
    size_t count;

    *out = (struct found){.last = *last};
    if (last->size == 0)
        return look_at_root(ns, out);
    if (last->size > ENTRY_NAME_MAX)
        return ns_fail(ns, DELTAFS_ERR_NAME, path);
    out->hash = name_hash(last->text, last->size);
    const struct folder *folder = walk_folders(w, &count);
    if (how & WALK_INODE) {
        struct entry_name name = name_in(folder, out->hash, last->text, last->size);
        if (list_shows(ns, count, &name, &out->inode))
            return DELTAFS_OK;
    }
    int status = ns_load_names(ns, folder, count, out->hash, last->text, last->size, is_way);
    for (size_t i = 0; i < count && status == DELTAFS_OK; i++) {
        struct entry_name name = walk_name(w, out, i);
        show_items(ns, name_table_find(&ns->names, &name), out);
    }
    return status;
}

/* ---- Paths ---- */

static int walk_text(deltafs_namespace *ns, struct walk *w, const char *text, size_t n, const char *path);

/* Begin to follow a link that is in the last level's folder. */
static int begin_link(deltafs_namespace *ns, struct walk *w, const struct found *f, const char *path)
{
    w->is_known = 0;
    if (++w->links > LINKS_MAX)
        return ns_fail(ns, DELTAFS_ERR_LOOP, path);
    return f->item->target[0] == '/' ? walk_to_root(ns, w) : DELTAFS_OK;
}

/* Go down into the folder of this name, through a link if it is one. */
static int walk_down(deltafs_namespace *ns, struct walk *w, const struct last *last, const char *path)
{
    struct found f;
    int status = walk_look(ns, w, last, path, 1, 0, &f);

    if (status != DELTAFS_OK)
        return status;
    if (f.inode.type == ENTRY_FOLDER)
        return walk_enter(ns, w, &f);
    if (f.inode.type != ENTRY_LINK)
        return ns_fail(ns, f.inode.type == ENTRY_FILE ? DELTAFS_ERR_NOT_FOLDER : DELTAFS_ERR_NOT_FOUND, path);
    status = begin_link(ns, w, &f, path);
    return status == DELTAFS_OK ? walk_text(ns, w, f.item->target, f.item->target_size, path) : status;
}

static int is_dots(const char *text, size_t n)
{
    return (n == 1 && text[0] == '.') || (n == 2 && text[0] == '.' && text[1] == '.');
}

/* Go down `n` bytes of names of folders. */
static int walk_text(deltafs_namespace *ns, struct walk *w, const char *text, size_t n, const char *path)
{
    const char *end = text + n, *next;
    int status = DELTAFS_OK;

    for (; text < end && status == DELTAFS_OK; text = next + 1) {
        next = memchr(text, '/', (size_t)(end - text));
        if (!next)
            next = end;
        struct last one = {.text = text, .size = (size_t)(next - text)};
        if (one.size == 2 && is_dots(text, 2) && w->levels > 1)
            walk_up(w);
        if (one.size > 0 && !is_dots(text, one.size))
            status = walk_down(ns, w, &one, path);
    }
    return status;
}

/* The last name of a text, and how many bytes are before it. */
static size_t split(const char *text, size_t n, struct last *last)
{
    size_t end = n;

    while (end > 0 && text[end - 1] == '/')
        end--;
    const char *slash = memrchr(text, '/', end);
    size_t begin = slash ? (size_t)(slash - text) + 1 : 0;
    *last = (struct last){.text = text + begin, .size = end - begin, .is_folder = end < n};
    last->is_dots = is_dots(last->text, last->size);
    return last->is_dots ? n : begin;
}

/* A text that ends in dots leads to the last level: its last name is the one that led there. */
static void undo_dots(struct walk *w, struct last *last)
{
    const struct walk_level *level = &w->level[w->levels - 1];

    *last = (struct last){.text = level->text, .size = level->size, .is_folder = 1, .is_dots = 1};
    if (level->size > 0)
        walk_up(w);
}

static int remember(deltafs_namespace *ns, struct walk *w, const char *path, size_t n)
{
    if (n > w->path_room) {
        char *room = realloc(w->path, n);
        if (!room)
            return error_no_memory(&ns->error, n, "a path");
        w->path = room;
        w->path_room = n;
    }
    if (n > 0)
        memcpy(w->path, path, n);
    w->path_size = n;
    w->is_known = 1;
    return DELTAFS_OK;
}

int walk_to_parent(deltafs_namespace *ns, struct walk *w, const char *path, struct last *last)
{
    size_t n = strlen(path), before = split(path, n, last);
    int status;

    w->links = 0;
    if (n == 0 || n >= PATH_MAX)
        return ns_fail(ns, n == 0 ? DELTAFS_ERR_NOT_FOUND : DELTAFS_ERR_NAME, path);
    if (w->is_known && !last->is_dots && before == w->path_size && (before == 0 || memcmp(path, w->path, before) == 0))
        return DELTAFS_OK;
    w->is_known = 0;
    status = walk_to_root(ns, w);
    if (status == DELTAFS_OK)
        status = walk_text(ns, w, path, before, path);
    if (status != DELTAFS_OK)
        return status;
    if (!last->is_dots)
        return remember(ns, w, path, before);
    w->is_known = 0;
    undo_dots(w, last);
    return DELTAFS_OK;
}

int walk_to_name(deltafs_namespace *ns, struct walk *w, const char *path, struct found *out)
{
    struct last last;
    int status = walk_to_parent(ns, w, path, &last);

    return status == DELTAFS_OK ? walk_look(ns, w, &last, path, 0, 0, out) : status;
}

int walk_to(deltafs_namespace *ns, struct walk *w, const char *path, unsigned how, struct found *out)
{
    struct last last, next;
    int status = walk_to_parent(ns, w, path, &last);

    while (status == DELTAFS_OK) {
        status = walk_look(ns, w, &last, path, 0, how, out);
        if (status != DELTAFS_OK || out->inode.type != ENTRY_LINK || (!(how & WALK_FOLLOWS) && !last.is_folder))
            break;
        const struct name_item *link = out->item;
        status = begin_link(ns, w, out, path);
        size_t before = split(link->target, link->target_size, &next);
        if (status == DELTAFS_OK)
            status = walk_text(ns, w, link->target, before, path);
        if (status == DELTAFS_OK && next.is_dots)
            undo_dots(w, &next);
        next.is_folder |= last.is_folder;
        last = next;
    }
    if (status == DELTAFS_OK && last.is_folder && out->inode.type != ENTRY_FOLDER && out->inode.type != ENTRY_REMOVED)
        status = ns_fail(ns, DELTAFS_ERR_NOT_FOLDER, path);
    return status;
}

int walk_to_existing(deltafs_namespace *ns, struct walk *w, const char *path, unsigned how, struct found *out)
{
    int status = walk_to(ns, w, path, how, out);

    return status == DELTAFS_OK && out->inode.type == ENTRY_REMOVED ? ns_fail(ns, DELTAFS_ERR_NOT_FOUND, path) : status;
}
