/* What a list of a folder is a merge of: what each table has of each id of the folder, what the owners of its parts
 * have if ranks share the namespace, what was changed here, and what is in journals. */
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "directory/read/iter.h"
#include "namespace/list_parts.h"
#include "namespace/shared.h"

#define READ_SHARE 4                 /* of the memory for names: records that are read ahead of all tables, */
#define READ_MIN   ((size_t)4 << 20) /* of each at least so many bytes */

/* ---- Records that are kept ---- */

static int keep(deltafs_namespace *ns, struct kept_list *l, uint32_t hash, const void *bytes, size_t size)
{
    int status =
        memory_extend(NULL, &l->record, l->count, &l->capacity, sizeof *l->record, "a list of a folder", &ns->error);

    if (status == DELTAFS_OK)
        status = buffer_reserve(&l->bytes, l->used + size, "a list of a folder", &ns->error);
    if (status != DELTAFS_OK)
        return status;
    memcpy(l->bytes.bytes + l->used, bytes, size);
    l->record[l->count++] = (struct kept){hash, (uint32_t)size, l->used};
    l->used += size;
    return DELTAFS_OK;
}

static void kept_fini(struct kept_list *l)
{
    buffer_fini(&l->bytes);
    free(l->record);
}

static int compare_kept(const void *a, const void *b)
{
    return compare_u32(&((const struct kept *)a)->hash, &((const struct kept *)b)->hash);
}

/* ---- Sources ---- */

/* Keep what was changed here in a folder. */
static int keep_changed(deltafs_namespace_list *l, const struct folder *folder)
{
    const struct name_table *t = &l->ns->names;
    uint8_t bytes[ENTRY_SIZE_MAX];
    int status = DELTAFS_OK;

    for (const struct name_node *n = name_table_folder(t, folder); n; n = name_node_at(t, n->in_folder))
        for (const struct name_item *i = n->is_dirty ? name_item_at(t, n->items) : NULL; i && status == DELTAFS_OK;
             i = name_item_at(t, i->next)) {
            const struct entry entry = {.parent = n->parent,
                                        .name = n->name,
                                        .name_size = n->name_size,
                                        .target = i->target,
                                        .target_size = i->target_size,
                                        .inode = i->inode};
            status = keep(l->ns, &l->changed, (uint32_t)n->key, bytes, entry_encode(&entry, bytes));
        }
    return status;
}

/* Keep what a table's journal has of a folder. */
static int keep_journaled(deltafs_namespace_list *l, const struct table *table, const struct folder *folder)
{
    uint64_t key = (uint64_t)folder->hash << 32;
    size_t count;
    const struct journal_record *r = table_journaled(table, JOURNAL_ENTRY, key | l->low, key | l->high, &count);
    int status = DELTAFS_OK;

    for (const struct journal_record *end = r + count; r < end && status == DELTAFS_OK; r++) {
        const struct deltafs_record record = table_journal_record(table, r);
        struct entry entry;
        status = table_decode(table, &record, &entry, &l->ns->error);
        if (status == DELTAFS_OK && id_is_same(&entry.parent, &folder->id) &&
            table_has(table, r->label, entry.inode.stamp))
            status = keep(l->ns, &l->changed, (uint32_t)r->key, record.value, record.size);
    }
    return status;
}

/* Decode a record that comes from no table. */
static int decode_record(deltafs_namespace_list *l, struct source *s)
{
    if (entry_decode(s->bytes, s->size, &s->entry) == 0)
        return DELTAFS_OK;
    s->bytes = NULL;
    return error_set(&l->ns->error, DELTAFS_ERR_DAMAGED, "%s: a record is no entry of a namespace", l->ns->path);
}

static int next_changed(deltafs_namespace_list *l, struct source *s)
{
    s->bytes = NULL;
    if (l->changed_at == l->changed.count)
        return DELTAFS_OK;
    const struct kept *k = &l->changed.record[l->changed_at++];
    s->bytes = l->changed.bytes.bytes + k->at;
    s->size = k->size;
    s->hash = k->hash;
    return decode_record(l, s);
}

static int next_shared(deltafs_namespace_list *l, struct source *s)
{
    int status = shared_list_next(l->ns, s->shared, &s->bytes, &s->size);

    if (status == DELTAFS_OK && s->bytes)
        status = decode_record(l, s);
    if (status == DELTAFS_OK && s->bytes)
        s->hash = name_hash(s->entry.name, s->entry.name_size);
    return status;
}

int list_next_record(deltafs_namespace_list *l, struct source *s)
{
    const struct deltafs_record *record;
    int status;

    if (s->shared)
        return next_shared(l, s);
    if (s->table.number == 0)
        return next_changed(l, s);
    s->bytes = NULL;
    do {
        status = iter_next_number(s->iter, &record, &l->ns->error);
        if (status != DELTAFS_OK)
            return tables_explain(&l->ns->tables, &s->table, status, &l->ns->error);
        if (!record)
            return DELTAFS_OK;
        status = table_decode(&s->table, record, &s->entry, &l->ns->error);
        /* Another folder may have the same hash, and a layer have less than the table has by now. */
    } while (status == DELTAFS_OK &&
             (!id_is_same(&s->entry.parent, &s->parent) || !table_has(&s->table, record->label, s->entry.inode.stamp)));
    if (status != DELTAFS_OK)
        return status;
    s->bytes = record->value;
    s->size = record->size;
    s->hash = (uint32_t)record->key;
    return DELTAFS_OK;
}

static void source_fini(deltafs_namespace_list *l, const struct source *s)
{
    deltafs_iter_close(s->iter);
    table_reader_release(s->reader);
    shared_list_close(l->ns, s->shared);
}

/* Keep a source, which is the list's then. One that has nothing, or has failed, is not kept. */
static int add_source(deltafs_namespace_list *l, const struct source *s, int status)
{
    if (status == DELTAFS_OK && s->bytes)
        status = memory_extend(NULL, &l->source, l->sources, &l->source_room, sizeof *l->source, "a list of a folder",
                               &l->ns->error);
    if (status == DELTAFS_OK && s->bytes)
        l->source[l->sources++] = *s;
    else
        source_fini(l, s);
    return status;
}

/* A source for what a table has of a folder. */
static int add_folder(deltafs_namespace_list *l, struct table *table, struct table_reader *reader,
                      const struct folder *folder)
{
    struct source s = {.table = {.number = table->number,
                                 .path = table->path,
                                 .epochs = table->epochs,
                                 .from = table->from,
                                 .limit = table->limit},
                       .reader = reader,
                       .parent = folder->id};
    uint64_t key = (uint64_t)folder->hash << 32;

    reader->users++;
    int status = error_of_call(iter_open_by_key(reader->dir, key | l->low, key | l->high, table_epochs(table), &s.iter),
                               &l->ns->error);
    status = tables_explain(&l->ns->tables, table, status, &l->ns->error);
    if (status == DELTAFS_OK) {
        size_t share = l->ns->names.room / READ_SHARE / l->ns->tables.count;
        iter_limit(s.iter, share < READ_MIN ? READ_MIN : share);
        status = list_next_record(l, &s);
    }
    return add_source(l, &s, status);
}

/* The hash of the first folder in a table from `hash` on; *has: whether there is one. `hash` stays if it is not known:
 * reading the folder of that hash then fails. */
static int next_folder(deltafs_namespace_list *l, const struct table *table, uint32_t *hash, int *has)
{
    const struct deltafs_record *record = NULL;
    deltafs_iter *iter = NULL;
    struct error *e = &l->ns->error;
    int status = error_of_call(
        iter_open_by_key(table->reader->dir, (uint64_t)*hash << 32, UINT64_MAX, table_epochs(table), &iter), e);

    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_iter_next(iter, &record), e);
    if (status == DELTAFS_OK && !iter_has_damage(iter)) {
        *has = record != NULL;
        *hash = record ? (uint32_t)(record->key >> 32) : *hash;
    } else if (status == DELTAFS_ERR_DAMAGED) {
        status = DELTAFS_OK;
    }
    deltafs_iter_close(iter);
    return status;
}

/* Sources for what a table has of all ids. If N writers have created the folder, it has N ids, and a table has
 * something of few of them: so the table is asked which folders it has, and not for each id. */
static int add_table(deltafs_namespace_list *l, struct table *table)
{
    struct table_reader *reader;
    int has, status = table_reader(&l->ns->tables, table, &reader, &l->ns->error);

    for (size_t i = 0; status == DELTAFS_OK && reader && i < l->folders;) {
        uint32_t hash = l->folder[i].hash;
        has = 1;
        if (l->folders > 1)
            status = next_folder(l, table, &hash, &has);
        if (status != DELTAFS_OK || !has)
            return status;
        while (i < l->folders && l->folder[i].hash < hash)
            i++;
        for (; i < l->folders && l->folder[i].hash == hash && status == DELTAFS_OK; i++)
            status = add_folder(l, table, reader, &l->folder[i]);
    }
    return status;
}

static int add_shared(deltafs_namespace_list *l, const struct folder *folder)
{
    int status = DELTAFS_OK;

    for (uint32_t part = 0; part < l->ns->shared->parts && status == DELTAFS_OK; part++) {
        struct source s = {.shared = NULL};
        status = shared_list_open(l->ns, folder, part, &s.shared);
        status = add_source(l, &s, status == DELTAFS_OK ? next_shared(l, &s) : status);
    }
    return status;
}

static int add_changed(deltafs_namespace_list *l)
{
    struct source s = {.shared = NULL};

    if (l->changed.count > 0)
        qsort(l->changed.record, l->changed.count, sizeof *l->changed.record, compare_kept);
    return add_source(l, &s, next_changed(l, &s));
}

int list_open_sources(deltafs_namespace_list *l)
{
    struct tables *t = &l->ns->tables;
    int status = DELTAFS_OK;

    for (size_t i = 0; i < l->folders && status == DELTAFS_OK; i++)
        status = l->ns->shared ? add_shared(l, &l->folder[i]) : keep_changed(l, &l->folder[i]);
    if (l->ns->shared)
        return status;
    for (size_t i = 0; i < t->count && status == DELTAFS_OK; i++) {
        status = add_table(l, &t->table[i]);
        for (size_t k = 0; k < l->folders && status == DELTAFS_OK; k++)
            status = keep_journaled(l, &t->table[i], &l->folder[k]);
    }
    return status == DELTAFS_OK ? add_changed(l) : status;
}

void list_close_sources(deltafs_namespace_list *l)
{
    for (size_t i = 0; i < l->sources; i++)
        source_fini(l, &l->source[i]);
    free(l->source);
    kept_fini(&l->changed);
}
