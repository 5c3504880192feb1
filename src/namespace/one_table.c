#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "directory/dir.h"
#include "directory/read/reader.h"
#include "namespace/one_table.h"

char *table_path(char path[PATH_ROOM], const char *folder, uint64_t number, const char *suffix)
{
    return io_path_in(path, folder, TABLE_NAME "%s", (unsigned long long)number, suffix);
}

static int table_is_limited(const struct table *table)
{
    return table->limit != UINT64_MAX;
}

int table_is_watched(const struct tables *t, const struct table *table)
{
    return table->path == t->path && table->limit == UINT64_MAX && !table->is_own;
}

int table_is_empty(const char *directory, int status)
{
    char copy[PATH_ROOM];

    if (status != DELTAFS_ERR_NOT_DELTAFS)
        return status == DELTAFS_ERR_NOT_FOUND;
    /* Otherwise something was committed, and MANIFEST is lost. */
    return access(io_path_in(copy, directory, MANIFEST_COPY_NAME), F_OK) != 0;
}

/* ---- Epochs ---- */

void table_reader_release(struct table_reader *r)
{
    if (!r || --r->users > 0)
        return;
    deltafs_close(r->dir);
    free(r);
}

static int reader_create(const struct tables *t, const struct table *table, struct table_reader **out, struct error *e)
{
    char path[PATH_ROOM];
    struct table_reader *r = calloc(1, sizeof *r);

    if (!r)
        return error_no_memory(e, sizeof *r, "a table");
    r->users = 1;
    int status = error_of_call(deltafs_open(table_path(path, table->path, table->number, ""), t->options, &r->dir), e);
    if (status == DELTAFS_OK && !t->is_all && !table->is_layered)
        dir_skip_covered(r->dir);
    if (status == DELTAFS_OK)
        *out = r;
    else
        free(r);
    return status;
}

static struct manifest *manifest_of(deltafs_dir *dir)
{
    struct reader *reader;
    struct error *e;

    return dir_reader(dir, "manifest_of", NULL, &reader, &e) == DELTAFS_OK ? &reader->manifest : NULL;
}

/* The label of the last one; 0: there is none. */
static uint64_t last_epoch(deltafs_dir *dir)
{
    const struct manifest *m = manifest_of(dir);

    return m && m->epoch_count > 0 ? m->epoch[m->epoch_count - 1].label : 0;
}

/* The epochs of a table were read. Commits that are in them are left out of its journal. */
static uint64_t note_epochs(struct table *table, deltafs_dir *dir)
{
    uint64_t label = last_epoch(dir);

    table->manifest_size = manifest_of(dir)->size;
    if (table->journal && !table->is_own)
        journal_drop(table->journal, label);
    return label;
}

/* Open the epochs of a table. One that was just made, or whose writer died before its first commit, has none. */
static int open_epochs(struct tables *t, struct table *table, struct error *e)
{
    char path[PATH_ROOM];
    struct table_reader *r = NULL;
    int status = reader_create(t, table, &r, e);

    if (!table_is_limited(table) && table_is_empty(table_path(path, table->path, table->number, ""), status))
        return DELTAFS_OK;
    if (status == DELTAFS_ERR_NOT_DELTAFS)
        e->status = DELTAFS_ERR_DAMAGED;
    if (status != DELTAFS_OK)
        return e->status;
    uint64_t label = note_epochs(table, r->dir);
    if (label == 0 || label < table->epochs.first) {
        table_reader_release(r);
        r = NULL;
    }
    if (r || !table->reader) {
        table_reader_release(table->reader);
        table->reader = r;
    }
    return DELTAFS_OK;
}

/* Bring the epochs that are open up to date; lists keep those that they have begun with. */
static int refresh_epochs(struct tables *t, struct table *table, struct error *e)
{
    if (!table->reader || table->reader->users > 1)
        return open_epochs(t, table, e);
    int status = error_of_call(deltafs_refresh(table->reader->dir), e);
    if (status == DELTAFS_OK)
        note_epochs(table, table->reader->dir);
    return status;
}

int table_reader(struct tables *t, struct table *table, struct table_reader **out, struct error *e)
{
    int status = table->is_stale ? refresh_epochs(t, table, e) : DELTAFS_OK;

    if (status == DELTAFS_OK) {
        table->is_stale = 0;
        *out = table->reader;
    }
    return status;
}

int table_has_since(const struct table *table, uint64_t label)
{
    const struct manifest *m = table->reader ? manifest_of(table->reader->dir) : NULL;

    for (uint64_t i = m ? m->epoch_count : 0; i > 0 && m->epoch[i - 1].label > label; i--)
        if (m->epoch[i - 1].covers == 0)
            return 1;
    return 0;
}

/* ---- Journals ---- */

static void release_journal(struct journal *j)
{
    if (j)
        journal_close(j, error_ignored());
    free(j);
}

int table_open_journal(const struct tables *t, struct table *table, struct error *e)
{
    char path[PATH_ROOM];
    struct journal *j = calloc(1, sizeof *j);

    if (!j)
        return error_no_memory(e, sizeof *j, "a journal");
    int status = journal_read(j, t->io, table_path(path, table->path, table->number, TABLE_JOURNAL), table->number, e);
    if (status == DELTAFS_OK) {
        table->journal = j;
        return status;
    }
    release_journal(j);
    return status;
}

const struct journal_record *table_journaled_one(const struct table *table, int kind, uint64_t key,
                                                 const struct journal_record *before)
{
    return table->journal ? journal_get(table->journal, kind, key, before) : NULL;
}

const struct journal_record *table_journaled(const struct table *table, int kind, uint64_t low, uint64_t high,
                                             size_t *count)
{
    *count = 0;
    return table->journal ? journal_find(table->journal, kind, low, high, count) : NULL;
}

int table_decode(const struct table *table, const struct deltafs_record *record, struct entry *out, struct error *e)
{
    char path[PATH_ROOM];

    if (entry_decode(record->value, record->size, out) == 0)
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_DAMAGED, "%s: the record of key %016llx is no entry of a namespace",
                     table_path(path, table->path, table->number, ""), (unsigned long long)record->key);
}

/* ---- Labels ---- */

uint64_t table_last_label(const struct table *table)
{
    uint64_t label = 0;

    if (table->journal && table->journal->last_label > 0)
        return table->journal->last_label;
    return table->reader && deltafs_last_label(table->reader->dir, &label) == DELTAFS_OK ? label : 0;
}

uint64_t table_epoch_of(const struct table *table, uint64_t label)
{
    struct deltafs_stat all = {.struct_size = sizeof all};
    struct deltafs_epoch_stat one = {.struct_size = sizeof one};
    uint64_t first = 0;

    if (label == UINT64_MAX || !table->reader || deltafs_stat(table->reader->dir, &all) != DELTAFS_OK)
        return label;
    for (uint64_t end = all.epochs; first < end;) {
        uint64_t middle = first + (end - first) / 2;
        if (deltafs_epoch_stat(table->reader->dir, middle, &one) == DELTAFS_OK && one.label < label)
            first = middle + 1;
        else
            end = middle;
    }
    return first < all.epochs && deltafs_epoch_stat(table->reader->dir, first, &one) == DELTAFS_OK ? one.label : label;
}

/* The first epoch that is read may have commits that were compacted. */
static void note_from(struct table *table)
{
    if (table->epochs.first > 0 && table_epoch_of(table, table->epochs.first - 1) >= table->epochs.first)
        table->from = table->epochs.first - 1;
}

static void note_label(struct tables *t, uint64_t label)
{
    if (label > t->last_label)
        t->last_label = label;
}

/* ---- Opening ---- */

int table_open(struct tables *t, struct table *table, struct error *e)
{
    char path[PATH_ROOM];

    if (table->epochs.last == 0 || table->epochs.first > table->epochs.last)
        return DELTAFS_OK; /* only bytes of files are read, when they are needed */
    int status = table_open_journal(t, table, e);
    if (status == DELTAFS_OK)
        status = open_epochs(t, table, e);
    if (status != DELTAFS_OK)
        return status;
    uint64_t label = table_last_label(table), limit = table->limit;
    if (table_is_limited(table) && label < limit)
        return error_set(e, DELTAFS_ERR_DAMAGED, "%s: has lost epochs that a snapshot has",
                         table_path(path, table->path, table->number, ""));
    note_from(table);
    table->epochs.last = table_epoch_of(table, limit);
    note_label(t, label < limit ? label : limit);
    return DELTAFS_OK;
}

int table_refresh(struct tables *t, struct table *table, struct error *e)
{
    struct journal *was = table->journal;

    table->journal = NULL;
    int status = table_open_journal(t, table, e);
    if (status == DELTAFS_OK)
        status = refresh_epochs(t, table, e);
    struct journal *left = status == DELTAFS_OK ? was : table->journal;
    if (status != DELTAFS_OK)
        table->journal = was;
    release_journal(left);
    if (status != DELTAFS_OK)
        return status;
    note_from(table);
    note_label(t, table_last_label(table));
    table->is_data_stale = 1;
    return DELTAFS_OK;
}

int table_open_data(const struct tables *t, struct table *table, uint64_t key, struct error *e)
{
    char path[PATH_ROOM];
    int status = DELTAFS_OK;

    if (table->data && (!table->is_data_stale || key < last_epoch(table->data)))
        return DELTAFS_OK;
    chunk_stream_close(&table->stream);
    if (!table->data)
        status = error_of_call(
            deltafs_open(table_path(path, table->path, table->number, TABLE_DATA), t->options, &table->data), e);
    else
        status = error_of_call(deltafs_refresh(table->data), e);
    if (status == DELTAFS_OK)
        table->is_data_stale = 0;
    return status;
}

void table_close_data(struct table *table)
{
    chunk_stream_close(&table->stream);
    deltafs_close(table->data);
    table->data = NULL;
}

void table_close(struct table *table)
{
    table_reader_release(table->reader);
    table_close_data(table);
    if (!table->is_own)
        release_journal(table->journal);
}

void table_use_journal(struct table *table, struct journal *journal)
{
    release_journal(table->journal);
    table->journal = journal;
    table->is_own = 1;
}
