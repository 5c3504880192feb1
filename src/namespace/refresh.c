/* What others have committed since the namespace was opened. Nothing here depends on how many names there are, and what
 * has not changed costs a look at its attributes:
 *  - The folder of the namespace has one more hard link for each table of a new writer. Not so on all file systems;
 *    there the folder is read each time.
 *  - COMPACTED is replaced by a compaction: then all tables are opened again.
 *  - The journal of a table grows with each commit: then what is new of it is read. If it does not, there is no new
 *    epoch either, as a writer that has made one removes the journal before its commit ends. A journal that has grown
 *    once stays open: that takes a third of the time.
 *  - If there is no journal, or it may be another one, MANIFEST says whether there is a new epoch. It is looked at
 * after the journal: a writer makes an epoch before it removes a journal and begins another.
 *
 * The names of what is new in a journal get their new states in memory. Of a new epoch the names are not read; then all
 * names are forgotten but those that were changed here. That is rare: an epoch has a full journal, or more. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include "namespace/compacted.h"
#include "namespace/shared.h"

#define NAME_ROOM 64
#define KEPT_MOST 64 /* tables whose journals stay open */

struct refresh {
    deltafs_namespace *ns;
    int is_new;     /* something is, */
    int is_unknown; /* and of some of it not which names it has */
};

/* ---- Names ---- */

/* Something new of a name. */
static int take_record(struct refresh *r, const struct table *table, const struct journal_record *record)
{
    deltafs_namespace *ns = r->ns;
    const struct deltafs_record plain = table_journal_record(table, record);
    struct entry entry;
    int status = record->kind == JOURNAL_ENTRY ? table_decode(table, &plain, &entry, &ns->error) : DELTAFS_OK;

    r->is_new = 1;
    r->is_unknown |= status != DELTAFS_OK || ns->has_resolver;
    if (status != DELTAFS_OK || record->kind != JOURNAL_ENTRY || !table_has(table, record->label, entry.inode.stamp))
        return status;
    if (ns->own.number != 0)
        name_filter_add(&ns->committed, record->key);
    const struct entry_name name = {entry.parent, record->key, entry.name, entry.name_size};
    struct name_node *node = name_table_find(&ns->names, &name);
    if (node && (!ns_has_room(ns) || !name_table_put(&ns->names, node, &entry.inode, entry.target, entry.target_size)))
        r->is_unknown = 1;
    return DELTAFS_OK;
}

/* The records of a journal from number `first` on that are above a label. */
static int take_records(struct refresh *r, const struct table *table, size_t first, uint64_t label)
{
    const struct journal *j = table->journal;
    int status = DELTAFS_OK;

    for (size_t i = first; i < j->committed && status == DELTAFS_OK; i++)
        if (j->record[i].label > label)
            status = take_record(r, table, &j->record[i]);
    return status;
}

/* ---- Tables ---- */

static int look(struct refresh *r, const char *name, struct io_attributes *out)
{
    struct tables *t = &r->ns->tables;

    return io_attributes_in(&t->folder, t->is_late, name, out, &r->ns->error);
}

/* Read all that a table has, of which everything up to a label was known. */
static int read_table(struct refresh *r, struct table *table, uint64_t known)
{
    int status = table_refresh(&r->ns->tables, table, &r->ns->error);

    /* A commit that could not be synced is taken back, after it may have been seen. */
    if (status == DELTAFS_OK && (table_has_since(table, known) || table_last_label(table) < known))
        r->is_unknown = 1;
    return status == DELTAFS_OK ? take_records(r, table, 0, known) : status;
}

/* Read what was appended to the journal of a table, which must have one; returns whether that was all. */
static int read_journal(struct refresh *r, struct table *table)
{
    struct tables *t = &r->ns->tables;
    char path[PATH_ROOM];

    if (!table->journal ||
        !journal_extend(table->journal, t->io, table_path(path, t->path, table->number, TABLE_JOURNAL),
                        !t->is_late && table < t->table + KEPT_MOST))
        return 0;
    table->is_data_stale = 1;
    if (table->journal->last_label > t->last_label)
        t->last_label = table->journal->last_label;
    return 1;
}

/* Look at the journal of a table, which may be open; `now` is all zero but is_removed if there is none. */
static int look_at_journal(struct refresh *r, const struct table *table, int is_open, struct io_attributes *now)
{
    return is_open ? io_file_attributes(&table->journal->file, now, &r->ns->error) : look(r, table->journal_name, now);
}

static int refresh_table(struct refresh *r, struct table *table)
{
    static const struct io_attributes none = {0};
    const struct journal *j = table->journal;
    const struct io_attributes *seen = j ? &j->seen : &none;
    uint64_t known = table_last_label(table);
    size_t first = j ? j->committed : 0;
    struct io_attributes now;
    char name[NAME_ROOM];

    int is_open = j && j->file.path, status = look_at_journal(r, table, is_open, &now);
    int is_same = io_is_unchanged(&now, seen) && !(is_open && now.is_removed);
    if (status != DELTAFS_OK || (is_same && !now.is_removed))
        return status;
    int is_longer = !is_same && read_journal(r, table);
    if (is_open && is_longer)
        return take_records(r, table, first, known);
    snprintf(name, sizeof name, TABLE_NAME "/" MANIFEST_NAME, (unsigned long long)table->number);
    status = look(r, name, &now);
    if (status == DELTAFS_OK && (now.size != table->manifest_size || (!is_same && !is_longer)))
        status = read_table(r, table, known);
    else if (status == DELTAFS_OK && is_longer)
        status = take_records(r, table, first, known);
    if (status != DELTAFS_OK) /* names of what was read may not be taken */
        r->is_unknown = 1;
    return status;
}

/* Open everything again. */
static int open_again(struct refresh *r)
{
    deltafs_namespace *ns = r->ns;
    struct tables t;
    struct resolver resolver = {0};
    int status = tables_init_again(&ns->tables, ns->own.number, &ns->layers, &t, &ns->error);

    if (status == DELTAFS_OK && ns->own.number != 0)
        tables_use_journal(&t, ns->own.number, &ns->own.journal);
    if (status == DELTAFS_OK && ns->has_resolver)
        status = resolver_init(&resolver, &ns->layers, &t, &ns->error);
    if (status != DELTAFS_OK) {
        resolver_fini(&resolver);
        tables_fini(&t);
        return status;
    }
    tables_fini(&ns->tables);
    resolver_fini(&ns->resolver);
    ns->tables = t;
    ns->resolver = resolver;
    r->is_unknown = 1;
    return DELTAFS_OK;
}

/* Add those of `count` tables that are new, and are not read yet. *is_all: all has to be opened again, as there is no
 * memory for their caches, or the resolver does not know them. */
static int add_tables(struct refresh *r, const uint64_t *number, size_t count, int *is_all)
{
    struct tables *t = &r->ns->tables;
    int status = DELTAFS_OK, has_room = 1;

    for (size_t i = 0; i < count && status == DELTAFS_OK && !*is_all; i++) {
        if (tables_find(t, number[i]))
            continue;
        *is_all = r->ns->has_resolver;
        if (!*is_all)
            status = tables_add_own(t, number[i], &has_room, &r->ns->error);
        *is_all |= !has_room;
    }
    return status;
}

/* Find new tables; *is_all: all was opened again. */
static int find_tables(struct refresh *r, int *is_all)
{
    struct tables *t = &r->ns->tables;
    struct error *e = &r->ns->error;
    struct io_attributes folder;
    uint64_t *number = NULL;
    size_t count = 0;
    int status = io_file_attributes(&t->folder, &folder, e);

    if (status != DELTAFS_OK || (t->folder_names != 0 && folder.names == t->folder_names))
        return status;
    status = tables_list(t->io, t->path, &number, &count, e);
    if (status == DELTAFS_OK)
        status = add_tables(r, number, count, is_all);
    free(number);
    if (*is_all)
        return open_again(r);
    /* Each table is a folder, which has a link to this one, where folders have that. */
    if (status == DELTAFS_OK)
        t->folder_names = !t->is_late && count > 0 && folder.names >= count + 2 ? folder.names : 0;
    return status;
}

static int refresh_folder(struct refresh *r, int *is_all)
{
    struct tables *t = &r->ns->tables;
    struct io_attributes now;
    int status = DELTAFS_OK, is_open = t->folder.path != NULL;

    if (!is_open)
        status = io_file_open(t->io, t->path, O_RDONLY | O_DIRECTORY, &t->folder, &r->ns->error);
    if (status == DELTAFS_OK && (!is_open || t->is_late))
        t->is_late = io_file_is_late(&t->folder);
    if (status == DELTAFS_OK)
        status = look(r, COMPACTED_NAME, &now);
    if (status != DELTAFS_OK)
        return status;
    if (!io_is_unchanged(&now, &t->compacted_seen)) {
        *is_all = compacted_has_changed(t->io, t->path, t->compacted);
        if (*is_all)
            return open_again(r);
        t->compacted_seen = now;
    }
    return find_tables(r, is_all);
}

static int refresh_tables(struct refresh *r)
{
    struct tables *t = &r->ns->tables;
    int is_all = 0, status = refresh_folder(r, &is_all);

    for (size_t i = 0; i < t->count && status == DELTAFS_OK && !is_all; i++)
        if (table_is_watched(t, &t->table[i]))
            status = refresh_table(r, &t->table[i]);
    /* A table may have been removed that was compacted meanwhile. */
    return status != DELTAFS_OK && !is_all && compacted_has_changed(t->io, t->path, t->compacted) ? open_again(r)
                                                                                                  : status;
}

static int refresh(deltafs_namespace *ns)
{
    struct refresh r = {.ns = ns};
    int status = ns_check_sound(ns); /* if not, it is not known which names are not committed */

    if (status != DELTAFS_OK)
        return status;
    status = refresh_tables(&r);
    if (ns->tables.last_label > ns->last_stamp)
        ns->last_stamp = ns->tables.last_label;
    if (r.is_unknown) {
        name_table_forget(&ns->names);
        ns->clears++;
        ns->first_stamp = ns->last_stamp;
    }
    if (r.is_new || r.is_unknown) {
        ns->refreshes++;
        ns_forget_walks(ns);
    }
    return status;
}

int deltafs_namespace_refresh(deltafs_namespace *ns)
{
    static const char call[] = "deltafs_namespace_refresh";
    int status = ns_begin(ns, call, 0);

    if (status != DELTAFS_OK)
        return status;
    if (ns->shared)
        return ns_end(ns, error_set(&ns->error, DELTAFS_ERR_MODE,
                                    "%s: the ranks of a job share %s, and see only their own changes", call, ns->path));
    return ns_end(ns, ns->is_snapshot ? DELTAFS_OK : refresh(ns));
}
