/* Compaction: the newest record of each entry goes into one new table, in one epoch; then COMPACTED says so, see
 * compacted.h. Records of removed entries are copied, too: another writer may commit an older state later, which they
 * must outdo.
 *
 * This includes the entries that the layers below have, so that a lookup asks one table however many layers there are.
 * The newest record of an entry counts, in whatever layer it is, so the view stays the same. If a merge below has the
 * policy first or last, this is not so, and names go on to be looked up in all layers.
 *
 * The new table is this process's own until COMPACTED is written, so nobody collects meanwhile. Of two compactions at
 * the same time each is complete, and the last one's file is in effect. */
#include <stdlib.h>
#include <string.h>
#include "namespace/all_records.h"
#include "namespace/compacted.h"
#include "namespace/head.h"
#include "namespace/own_table.h"
#include "namespace/snapshot.h"

#define MEMORY (32u << 20) /* of the table that is written */

struct compaction {
    struct snapshot_call *call;
    const char *path;
    struct head head;
    struct layers below; /* whose entries are copied, too: those of the head, or none */
    struct tables tables;
    struct own_table own;
    struct all_records records;
    struct compacted compacted;
    struct deltafs_namespace_compacted *result;
};

/* How many tables have entries that are read, of which *epochs is the number of commits; all in a journal count as one.
 */
static size_t count_tables(const struct tables *t, uint64_t *epochs)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    size_t n = 0;

    *epochs = 0;
    for (const struct table *table = t->table; table < t->table + t->count; table++) {
        if (table->reader && deltafs_stat(table->reader->dir, &stat) == DELTAFS_OK)
            *epochs += stat.epochs;
        int is_journaled =
            table->journal && table->journal->last_label > 0 && table->journal->last_label >= table->epochs.first;
        *epochs += (uint64_t)is_journaled;
        n += table->reader || is_journaled;
    }
    return n;
}

/* ---- Writing ---- */

static int write_newest(struct compaction *c)
{
    c->result->records += c->records.versions;
    return all_records_put(&c->records, c->own.dir, &c->result->entries, &c->call->error);
}

/* Write all in one epoch, with a label above all others. */
static int write_entries(struct compaction *c)
{
    struct error *e = &c->call->error;
    uint64_t now = snapshot_time(), last = c->tables.last_label;
    int is_epoch, status = all_records_open(&c->records, &c->tables, e);

    while (status == DELTAFS_OK && (status = all_records_next(&c->records, e)) == DELTAFS_OK && c->records.versions > 0)
        status = write_newest(c);
    all_records_close(&c->records);
    c->compacted.into = (struct layer_table){.number = c->own.number, .limit = now > last ? now : last + 1};
    return status == DELTAFS_OK ? own_table_commit(&c->own, c->compacted.into.limit, &is_epoch, e) : status;
}

/* ---- What is replaced ---- */

/* The namespace's tables that were read, and those that were replaced before and got nothing since. */
static int note_tables(struct compaction *c)
{
    struct error *e = &c->call->error;
    int status = DELTAFS_OK;

    for (const struct table *t = c->tables.table; t < c->tables.table + c->tables.count && status == DELTAFS_OK; t++) {
        uint64_t limit = t->epochs.first > 0 ? t->epochs.first - 1 : 0, last = table_last_label(t);
        if (last > limit)
            limit = last;
        if (limit > 0 && t->path == c->path)
            status = compacted_add(&c->compacted, t->number, limit, e);
    }
    return status;
}

static int compact_tables(struct compaction *c)
{
    struct error *e = &c->call->error;
    uint64_t epochs;
    int status = tables_init(&c->tables, &c->call->io, c->path, 0, &c->below, c->call->options, e);

    if (status == DELTAFS_OK)
        c->result->tables = count_tables(&c->tables, &epochs);
    if (status == DELTAFS_OK)
        status = note_tables(c);
    if (status == DELTAFS_OK)
        status = write_entries(c);
    tables_fini(&c->tables);
    if (status == DELTAFS_OK)
        status = uuid_create(c->compacted.uuid, e);
    return status == DELTAFS_OK ? compacted_write(&c->call->io, c->path, &c->compacted, c->call->sync, e) : status;
}

/* Whether there is something to do; found out before a table is created for it. */
static int look(struct compaction *c, int *is_needed)
{
    uint64_t epochs = 0;
    int status = head_read(&c->call->io, c->path, &c->head, &c->call->error);

    if (status != DELTAFS_OK)
        return status;
    if (!resolver_is_needed(&c->head.below))
        c->below = c->head.below;
    c->compacted.is_complete = c->below.count > 0;
    status = head_check_layers(&c->call->io, c->path, &c->below, NULL, &c->call->error);
    if (status != DELTAFS_OK)
        return status;
    status = tables_init(&c->tables, &c->call->io, c->path, 0, &c->below, c->call->options, &c->call->error);
    size_t tables = count_tables(&c->tables, &epochs);
    *is_needed = tables > 1 || epochs > 1 || (tables > 0 && c->tables.is_complete != c->compacted.is_complete);
    tables_fini(&c->tables);
    return status;
}

static int compact(struct compaction *c)
{
    struct error *e = &c->call->error;
    int is_needed = 0, status = look(c, &is_needed);

    if (status != DELTAFS_OK || !is_needed)
        return status;
    /* COMPACTED is synced, so what it says must be there before. */
    if (c->call->sync)
        status = error_of_call(deltafs_options_set(c->call->options, "sync", "commit"), e);
    if (status == DELTAFS_OK)
        status = own_table_create(&c->own, &c->call->io, c->path, c->call->options, MEMORY, e);
    if (status == DELTAFS_OK)
        status = compact_tables(c);
    compacted_fini(&c->compacted);
    return error_first(status, own_table_close(&c->own, error_after(status, e)));
}

/* ---- Public function ---- */

static int compact_path(struct snapshot_call *call, const char *path, void *result)
{
    struct compaction c = {.call = call, .path = path, .result = result};
    int status = compact(&c);

    layers_fini(&c.head.below);
    return status;
}

int deltafs_namespace_compact(const char *path, struct deltafs_namespace_compacted *out)
{
    struct deltafs_namespace_compacted result = {.struct_size = sizeof result};

    return snapshot_call_on("deltafs_namespace_compact", path, compact_path, &result, sizeof result, out);
}
