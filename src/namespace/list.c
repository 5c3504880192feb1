/* The entries of a folder: a merge of what all tables have of it, and of what was changed here before the list was
 * opened, or is in journals, by the hash of the name. A folder may have several ids, and a name several records; those
 * of one hash are collected, and then each name among them is shown as a lookup would show it. What was changed since
 * then is asked for name by name. */
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "directory/read/iter.h"
#include "namespace/list_parts.h"
#include "namespace/shared.h"

#define OPENED_MIN                                                                                                     \
    16 /* so many files are opened as they are listed, before they are listed in the order of their bytes */
#define BATCH_SHARE 2 /* of the memory for names: those that are ordered at a time */

/* ---- Names ---- */

/* Move the records of the group's hash from a source to the group. */
static int collect_source(deltafs_namespace_list *l, struct source *s)
{
    int status = DELTAFS_OK;

    while (status == DELTAFS_OK && s->bytes && s->hash == l->group.hash) {
        status = group_copy(&l->group, s->bytes, s->size, &s->entry, &l->ns->error);
        if (status == DELTAFS_OK)
            status = list_next_record(l, s);
    }
    return status;
}

/* The source with the least hash that is left, or NULL; *is_only: it has one record of that, and the others none. */
static struct source *find_least(const deltafs_namespace_list *l, int *is_only)
{
    struct source *least = NULL;

    for (struct source *s = l->source; s < l->source + l->sources; s++) {
        if (!s->bytes || (least && s->hash > least->hash))
            continue;
        *is_only = !least || s->hash < least->hash;
        least = s;
    }
    *is_only = least && *is_only && least->iter && iter_is_last_of_key(least->iter);
    return least;
}

/* Collect the records of the least hash that is left, into an empty group; after an error with a source, those of the
 * others. */
static int collect_group(deltafs_namespace_list *l)
{
    struct group *g = &l->group;
    int is_only = 0, status = l->taken ? list_next_record(l, l->taken) : DELTAFS_OK;

    l->taken = NULL;
    if (status != DELTAFS_OK) {
        l->is_incomplete = 1;
        return status;
    }
    struct source *least = find_least(l, &is_only);
    if (!least)
        return DELTAFS_OK;
    group_clear(g, least->hash);
    if (is_only) {
        l->taken = least;
        return group_add(g, least->bytes, least->size, &least->entry, &l->ns->error);
    }
    for (struct source *s = l->source; s < l->source + l->sources; s++) {
        int one = collect_source(l, s);
        status = one == DELTAFS_OK ? status : one;
    }
    l->is_incomplete |= status != DELTAFS_OK;
    group_settle(g);
    return status;
}

/* Order the groups that follow by the places of the files' bytes, as many as there is memory for. What goes wrong
 * behind them is said when they have been shown. */
static int fill_batch(deltafs_namespace_list *l)
{
    const size_t most = l->ns->names.room / BATCH_SHARE;
    int status = list_batch_begin(&l->batch, most, &l->ns->error), failed = DELTAFS_OK;

    while (status == DELTAFS_OK && failed == DELTAFS_OK && list_batch_size(&l->batch) < most) {
        group_clear(&l->group, 0);
        failed = collect_group(l);
        if (l->group.count == 0)
            break;
        status = list_batch_add(&l->batch, &l->group, &l->ns->error);
    }
    if (failed != DELTAFS_OK)
        l->batch.error = l->ns->error;
    list_batch_sort(&l->batch);
    return status;
}

/* Have the next group, with no records at the end. */
static int next_group(deltafs_namespace_list *l)
{
    struct error *e = &l->ns->error;
    int status, has_failed = l->batch.error.status != DELTAFS_OK;

    status = list_batch_take(&l->batch, &l->group, e);
    l->group_at = 0;
    if (status == DELTAFS_OK && l->group.count == 0 && !has_failed) {
        if (l->opened < OPENED_MIN)
            return collect_group(l);
        status = fill_batch(l);
        if (status == DELTAFS_OK)
            status = list_batch_take(&l->batch, &l->group, e);
    }
    if (status != DELTAFS_OK || l->group.count > 0 || l->batch.error.status == DELTAFS_OK)
        return status;
    *e = l->batch.error;
    l->batch.error.status = DELTAFS_OK;
    return e->status;
}

/* One more state of an entry with the name; of the same entry the newest counts. */
static int add_version(deltafs_namespace_list *l, const struct entry_id *parent, const struct inode *inode)
{
    struct version *v = l->version, *end = v + l->versions;

    while (v < end && !(id_is_same(&v->parent, parent) && id_is_same(&v->inode.id, &inode->id)))
        v++;
    if (v < end) {
        if (inode->stamp >= v->inode.stamp)
            v->inode = *inode;
        return DELTAFS_OK;
    }
    int status = memory_extend(NULL, &l->version, l->versions, &l->version_room, sizeof *l->version,
                               "a list of a folder", &l->ns->error);
    if (status == DELTAFS_OK)
        l->version[l->versions++] = (struct version){*parent, *inode};
    return status;
}

static int take_version(void *arg, size_t table, const struct entry *entry, struct error *e)
{
    deltafs_namespace_list *l = arg;
    int status = add_version(l, &entry->parent, &entry->inode);

    (void)table;
    if (status != DELTAFS_OK)
        *e = l->ns->error;
    return status;
}

/* Whether what is in memory of a name is all that there is. */
static int is_loaded(const deltafs_namespace_list *l, uint32_t hash, const struct entry *e)
{
    for (size_t i = 0; i < l->folders; i++) {
        struct entry_name name = name_in(&l->folder[i], hash, e->name, e->name_size);
        const struct name_node *node = name_table_find(&l->ns->names, &name);
        if (!node || !node->is_loaded)
            return 0;
    }
    return 1;
}

/* What the tables have of a name. It does not go into memory: there may be any number of names to skip. */
static int add_stored(deltafs_namespace_list *l, uint32_t hash, const struct entry *e)
{
    deltafs_namespace *ns = l->ns;
    struct resolver *r = ns->has_resolver ? &ns->resolver : NULL;
    int status = DELTAFS_OK;

    if (r)
        resolver_clear(r);
    for (size_t i = 0; i < l->folders && status == DELTAFS_OK; i++) {
        struct entry_name name = name_in(&l->folder[i], hash, e->name, e->name_size);
        status = r ? tables_get(&ns->tables, &name, resolver_take, r, &ns->error)
                   : tables_get(&ns->tables, &name, take_version, l, &ns->error);
    }
    if (!r || status != DELTAFS_OK)
        return status;
    status = resolver_choose(r, &ns->error);
    l->is_conflict = r->is_conflict;
    for (const struct state *s = r->state; s < r->state + r->states && status == DELTAFS_OK; s++)
        if (s->is_chosen)
            status = add_version(l, &s->parent, &s->inode);
    return status;
}

/* Whether nothing was committed since the list was opened that is not in memory. */
static int is_current(const deltafs_namespace_list *l)
{
    const deltafs_namespace *ns = l->ns;

    return ns->refreshes == l->refreshes && (ns->own.number == 0 || ns->clears == l->clears);
}

/* What is known now of a name: what is in memory, and if that may not be all, what is in the tables. Of `records` in
 * tables a resolver chooses, if there is one and something to choose from. */
static int add_known(deltafs_namespace_list *l, uint32_t hash, const struct entry *e, size_t records)
{
    const struct name_table *t = &l->ns->names;
    int is_resolved = l->ns->has_resolver && records > 1;
    int may_lack = is_resolved || (!l->ns->shared && !is_current(l));
    int status = DELTAFS_OK;

    l->is_conflict = 0;
    if (is_resolved)
        l->versions = 0;
    if (may_lack && !is_loaded(l, hash, e))
        status = add_stored(l, hash, e);
    for (size_t i = 0; i < l->folders && !l->ns->shared && status == DELTAFS_OK; i++) {
        struct entry_name name = name_in(&l->folder[i], hash, e->name, e->name_size);
        const struct name_node *node = name_table_find(t, &name);
        l->is_conflict |= node && node->is_conflict;
        for (const struct name_item *k = node ? name_item_at(t, node->items) : NULL; k && status == DELTAFS_OK;
             k = name_item_at(t, k->next))
            status = add_version(l, &name.parent, &k->inode);
    }
    return status;
}

static int has_name(const struct member *m, const char *name, size_t size)
{
    return m->entry.name_size == size && memcmp(m->entry.name, name, size) == 0;
}

/* Whether a name was not changed or looked up here, so that what was collected is all that is known. */
static int is_untouched(deltafs_namespace_list *l, uint32_t hash, const char *text, size_t size)
{
    int has_node = 0;
    const deltafs_namespace *ns = l->ns;
    const struct name_table *t = &ns->names;

    if (ns->shared)
        return 1;
    if (!is_current(l))
        return 0;
    if (t->count != l->nodes || ns->clears != l->nodes_clears) {
        l->nodes = t->count;
        l->nodes_clears = ns->clears;
        l->has_nodes = 0;
        for (size_t i = 0; i < l->folders; i++)
            l->has_nodes |= name_table_folder(t, &l->folder[i]) != NULL;
    }
    for (size_t i = 0; i < l->folders && l->has_nodes && !has_node; i++) {
        struct entry_name name = name_in(&l->folder[i], hash, text, size);
        has_node = name_table_find(t, &name) != NULL;
    }
    return !has_node;
}

/* Take the next name of the group, with all records of it; *shown is what has it now. */
static int next_name(deltafs_namespace_list *l, struct inode *shown)
{
    struct member *first = &l->group.member[l->group_at++], *end = l->group.member + l->group.count;
    const struct entry *name = &first->entry;
    size_t records = 1;

    shown->type = ENTRY_REMOVED;
    if (first->is_done)
        return DELTAFS_OK;
    memcpy(l->name, name->name, name->name_size);
    l->name[name->name_size] = '\0';
    if (l->group.count == 1 && is_untouched(l, l->group.hash, name->name, name->name_size)) {
        l->is_conflict = 0;
        *shown = name->inode;
        return DELTAFS_OK;
    }
    l->versions = 0;
    int status = add_version(l, &name->parent, &name->inode);
    for (struct member *m = first + 1; m < end && status == DELTAFS_OK; m++) {
        if (m->is_done || !has_name(m, name->name, name->name_size))
            continue;
        m->is_done = 1;
        records++;
        status = add_version(l, &m->entry.parent, &m->entry.inode);
    }
    if (status == DELTAFS_OK)
        status = add_known(l, l->group.hash, name, records);
    for (size_t i = 0; i < l->versions; i++)
        inode_show(shown, &l->version[i].inode);
    return status;
}

int list_next_name(deltafs_namespace_list *l, struct inode *shown, int *has)
{
    int status = DELTAFS_OK;

    shown->type = ENTRY_REMOVED;
    *has = 0;
    while (status == DELTAFS_OK && !*has) {
        if (l->group_at == l->group.count) {
            status = next_group(l);
            if (status != DELTAFS_OK || l->group.count == 0)
                break;
        }
        *has = !l->group.member[l->group_at].is_done;
        status = next_name(l, shown);
    }
    return status;
}

int list_next(deltafs_namespace_list *l, struct inode *shown)
{
    int status, has;

    do
        status = list_next_name(l, shown, &has);
    while (status == DELTAFS_OK && has && shown->type == ENTRY_REMOVED);
    return status;
}

/* ---- The name that was returned last ---- */

/* Whether the list says all that the tables have of a name: it was returned last, nothing is damaged so far, and what
 * was committed since the list was opened is in memory. */
static int list_knows(const deltafs_namespace_list *l, const struct entry_name *name)
{
    int is_folder = 0;

    if (!l->has_name || l->is_incomplete || l->ns->has_resolver || !is_current(l) ||
        (uint32_t)name->key != l->group.hash || !has_name(&l->group.member[l->group_at - 1], name->text, name->size))
        return 0;
    for (const struct source *s = l->source; s < l->source + l->sources; s++)
        if (s->iter && iter_has_damage(s->iter))
            return 0;
    for (size_t i = 0; i < l->folders; i++)
        is_folder |= id_is_same(&l->folder[i].id, &name->parent);
    return is_folder;
}

int list_load(deltafs_namespace *ns, const struct entry_name *name, struct name_node *node)
{
    const deltafs_namespace_list *l = ns->listed;
    int is_known = l && list_knows(l, name);

    for (size_t i = is_known ? l->group_at - 1 : 0; is_known && i < l->group.count; i++) {
        const struct entry *e = &l->group.member[i].entry;
        if (has_name(&l->group.member[i], name->text, name->size) && id_is_same(&e->parent, &name->parent))
            is_known = name_table_put(&ns->names, node, &e->inode, e->target, e->target_size) != NULL;
    }
    return is_known;
}

int list_shows(const deltafs_namespace *ns, size_t count, const struct entry_name *name, struct inode *out)
{
    deltafs_namespace_list *l = ns->listed;

    if (!l || ns->shared || count != 1 || l->folders != 1 || l->shown.type != ENTRY_FILE || !list_knows(l, name) ||
        !is_untouched(l, l->group.hash, name->text, name->size))
        return 0;
    *out = l->shown;
    return 1;
}

void list_note_opened(deltafs_namespace *ns, const struct entry_name *name)
{
    deltafs_namespace_list *l = ns->listed;

    if (l && l->has_name && strncmp(l->name, name->text, name->size) == 0 && l->name[name->size] == '\0')
        l->opened++;
}

/* ---- Lists ---- */

const char *list_name(const deltafs_namespace_list *l)
{
    return l->name;
}

int list_is_conflict(const deltafs_namespace_list *l)
{
    return l->is_conflict;
}

void list_destroy(deltafs_namespace_list *l)
{
    if (!l)
        return;
    list_close_sources(l);
    if (l->ns->listed == l)
        l->ns->listed = NULL;
    group_fini(&l->group);
    list_batch_fini(&l->batch);
    free(l->folder);
    free(l->version);
    free(l);
}

static int compare_folders(const void *a, const void *b)
{
    return compare_u32(&((const struct folder *)a)->hash, &((const struct folder *)b)->hash);
}

int list_create_part(deltafs_namespace *ns, const struct folder *folder, size_t count, uint32_t low, uint32_t high,
                     deltafs_namespace_list **out)
{
    deltafs_namespace_list *l = calloc(1, sizeof *l);
    struct folder *copy = malloc(count * sizeof *copy);

    if (!l || !copy) {
        free(l);
        free(copy);
        return error_no_memory(&ns->error, sizeof *l + count * sizeof *copy, "a list of a folder");
    }
    memcpy(copy, folder, count * sizeof *copy);
    qsort(copy, count, sizeof *copy, compare_folders);
    *l = (deltafs_namespace_list){.ns = ns,
                                  .clears = ns->clears,
                                  .refreshes = ns->refreshes,
                                  .folder = copy,
                                  .folders = count,
                                  .low = low,
                                  .high = high,
                                  .entry.name = l->name};
    int status = list_open_sources(l);
    if (status == DELTAFS_OK)
        *out = l;
    else
        list_destroy(l);
    return status;
}

int list_create(deltafs_namespace *ns, const struct folder *folder, size_t count, deltafs_namespace_list **out)
{
    return list_create_part(ns, folder, count, 0, UINT32_MAX, out);
}

/* Of the folder that the walk is in. */
static int list_walk(deltafs_namespace *ns, const struct walk *w, deltafs_namespace_list **out)
{
    size_t count;
    const struct folder *folder = walk_folders(w, &count);

    return list_create(ns, folder, count, out);
}

/* DELTAFS_ERR_NOT_EMPTY if something is in the walk's last folder. If it is empty, other ranks put nothing into it any
 * more. */
static int check_level(deltafs_namespace *ns, const struct walk *w, const char *path)
{
    deltafs_namespace_list *l = NULL;
    struct inode shown;
    size_t count;
    const struct folder *folder = walk_folders(w, &count);

    if (ns->shared)
        return shared_seal(ns, folder, count, path);
    int status = list_create(ns, folder, count, &l);
    if (status == DELTAFS_OK)
        status = list_next(l, &shown);
    if (status == DELTAFS_OK && shown.type != ENTRY_REMOVED)
        status = ns_fail(ns, DELTAFS_ERR_NOT_EMPTY, path);
    list_destroy(l);
    return status;
}

int ns_check_empty(deltafs_namespace *ns, struct walk *w, const struct found *f, const char *path)
{
    size_t folders = w->folders, levels = w->levels;
    int status = walk_enter(ns, w, f);

    if (status == DELTAFS_OK)
        status = check_level(ns, w, path);
    w->folders = folders;
    w->levels = levels;
    return status;
}

int deltafs_namespace_list_open(deltafs_namespace *ns, const char *path, deltafs_namespace_list **out)
{
    static const char call[] = "deltafs_namespace_list_open";
    struct found f;
    int status = ns_begin(ns, call, 0);

    if (status != DELTAFS_OK)
        return status;
    if (!path || !out)
        return ns_end(ns, ns_no_argument(ns, call, "path and out"));
    status = ns_check_sound(ns); /* if not, it is not known which names are not committed */
    if (status == DELTAFS_OK)
        status = walk_to_existing(ns, &ns->walk, path, WALK_FOLLOWS, &f);
    if (status == DELTAFS_OK && f.inode.type != ENTRY_FOLDER)
        status = ns_fail(ns, DELTAFS_ERR_NOT_FOLDER, path);
    if (status == DELTAFS_OK)
        status = walk_enter(ns, &ns->walk, &f);
    return ns_end(ns, status == DELTAFS_OK ? list_walk(ns, &ns->walk, out) : status);
}

int deltafs_namespace_list_next(deltafs_namespace_list *l, const struct deltafs_namespace_entry **entry)
{
    static const char call[] = "deltafs_namespace_list_next";

    if (!l)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID, "%s: no list", call);
    if (!entry)
        return ns_end(l->ns, ns_no_argument(l->ns, call, "entry"));
    int status = ns_begin(l->ns, call, 0);
    if (status != DELTAFS_OK)
        return status;
    l->has_name = 0;
    status = list_next(l, &l->shown);
    if (status != DELTAFS_OK)
        return ns_end(l->ns, status);
    l->has_name = l->shown.type != ENTRY_REMOVED;
    l->ns->listed = l;
    if (l->has_name)
        inode_to_stat(ns_current(l->ns, &l->shown), &l->entry.stat);
    *entry = l->has_name ? &l->entry : NULL;
    return ns_end(l->ns, DELTAFS_OK);
}

int deltafs_namespace_list_close(deltafs_namespace_list *l)
{
    if (!l)
        return DELTAFS_OK;
    deltafs_namespace *ns = l->ns;
    if (ns->shared)
        shared_begin(ns);
    list_destroy(l);
    if (ns->shared)
        shared_end(ns);
    return DELTAFS_OK;
}
