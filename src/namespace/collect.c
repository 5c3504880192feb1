/* Collection: the bytes of files that neither the namespace as it is now, nor a pin needs, are removed.
 *
 * Nobody writes meanwhile, and journals that writers have left become epochs first: the collector takes the lease
 * of the namespace's folder, and then finds every table free; a writer takes its table first, and then finds the
 * folder's lease free. In the same way it keeps out who publishes. It begins only if no view is open (view.h). One that
 * is opened meanwhile finds what the namespace has now.
 *
 * All records of all tables are read, in the order of their keys, so that those of one name come together. A record of
 * a file is needed if it is the newest of its entry now, or in a layer of a pin. What is needed then was needed at each
 * collection before, so its bytes are there: a layer has all records that its namespace had at an earlier collection,
 * or newer ones. Of the records that are needed the places of chunks are collected. Then the data of each table loses
 * the chunks that have no such place: if that are all, it is removed; if it is a quarter or more, the others are copied
 * to new data beside it, and the two exchange their names. Tables of which all entries were compacted, and which no pin
 * needs, are removed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/collective.h"
#include "base/number.h"
#include "directory/dir.h"
#include "io/lease.h"
#include "namespace/all_records.h"
#include "namespace/compacted.h"
#include "namespace/head.h"
#include "namespace/own_table.h"
#include "namespace/pin.h"
#include "namespace/snapshot.h"
#include "namespace/table_data.h"

#define COPY_LEAST 4 /* data is copied if at least this part of its chunks is not needed */
#define COPY_NAME  ".new"
#define RENEWALS   8 /* of the lease, while it would last */

#define NANOSECONDS UINT64_C(1000000000)

struct collection {
    struct snapshot_call *call;
    const char *path;
    struct lease lease; /* of the folder */
    uint64_t seconds;   /* that it counts for */
    struct tables tables;
    struct pins pins;
    uint64_t *pin_epoch; /* of each table of a pin, the label of the last epoch with something of it */
    struct all_records records;
    struct entry_id *place; /* that are needed */
    size_t places, place_room;
    struct deltafs_namespace_collected *result;
};

/* While others may not see its lock, the lease must not become old. DELTAFS_ERR_BUSY if somebody else has it now. */
static int keep_lease(struct collection *c)
{
    if (snapshot_time() / NANOSECONDS - c->lease.own.renewed < c->seconds / RENEWALS)
        return DELTAFS_OK;
    return lease_renew(&c->lease, NULL, &c->call->error);
}

/* After an error with the bytes of a file. Returns the status. */
static int explain_lost(struct collection *c, int status)
{
    struct error *e = &c->call->error;

    if (status != DELTAFS_ERR_DAMAGED)
        return status;
    return error_set(e, status,
                     "%s; 'deltafs verify %s' names the file: remove it, or withdraw the snapshot that has it", e->text,
                     c->path);
}

/* ---- Places ---- */

static int add_place(void *arg, const struct entry_id *place, struct error *e)
{
    struct collection *c = arg;
    int status = memory_extend(NULL, &c->place, c->places, &c->place_room, sizeof *c->place, "places of files", e);

    if (status == DELTAFS_OK)
        c->place[c->places++] = *place;
    return status;
}

static int compare_places(const void *a, const void *b)
{
    const struct entry_id *x = a, *y = b;

    return compare_two(x->table, y->table, x->number, y->number);
}

static void sort_places(struct collection *c)
{
    size_t n = 0;

    if (c->places > 0)
        qsort(c->place, c->places, sizeof *c->place, compare_places);
    for (size_t i = 0; i < c->places; i++)
        if (n == 0 || !id_is_same(&c->place[i], &c->place[n - 1]))
            c->place[n++] = c->place[i];
    c->places = n;
}

/* ---- What is needed ---- */

/* Whether a layer has a version. */
static int layer_has(const struct collection *c, const struct pin_layer *layer, const struct version *v)
{
    const struct layer_table *p = pin_layer_table(&c->pins, layer, c->tables.table[v->table].number);

    if (!p)
        return 0;
    const struct table limits = {.epochs = {p->from + 1, c->pin_epoch[p - c->pins.table]}, .limit = p->limit};
    return table_has(&limits, v->label, v->entry.inode.stamp);
}

struct pinned {
    const struct collection *c;
    const struct pin_layer *layer;
};

static int is_pinned_version(const struct version *v, const void *arg)
{
    const struct pinned *p = arg;

    return layer_has(p->c, p->layer, v);
}

/* Mark the newest versions of the entries: of all, or of those that a layer has. */
static void mark_needed(struct collection *c, const struct pin_layer *layer)
{
    struct all_records *a = &c->records;
    const struct pinned pinned = {c, layer};

    all_records_find_newest(a, layer ? is_pinned_version : NULL, &pinned);
    for (struct version *v = a->version; v < a->version + a->versions; v++)
        v->is_needed |= (!layer || layer_has(c, layer, v)) && all_records_is_newest(a, v);
}

/* Find out up to which epoch each table is pinned. */
static int find_pinned(struct collection *c)
{
    c->pin_epoch = calloc(c->pins.count + 1, sizeof *c->pin_epoch);
    if (!c->pin_epoch)
        return error_no_memory(&c->call->error, c->pins.count * sizeof *c->pin_epoch, "pins");
    for (size_t i = 0; i < c->pins.count; i++) {
        const struct layer_table *p = &c->pins.table[i];
        c->pin_epoch[i] = p->limit;
        for (const struct table *t = c->tables.table; t < c->tables.table + c->tables.count; t++)
            if (t->number == p->number)
                c->pin_epoch[i] = table_epoch_of(t, p->limit);
    }
    return DELTAFS_OK;
}

/* Whether it is a table here, not of what is below the namespace. */
static int is_own(const struct collection *c, uint64_t table)
{
    for (size_t i = 0; i < c->tables.count; i++)
        if (c->tables.table[i].number == table)
            return 1;
    return 0;
}

static int note_versions(struct collection *c)
{
    int status = DELTAFS_OK;

    mark_needed(c, NULL);
    for (const struct pin_layer *l = c->pins.layer; c->records.versions > 1 && l < c->pins.layer + c->pins.layers; l++)
        mark_needed(c, l);
    for (const struct version *v = c->records.version;
         v < c->records.version + c->records.versions && status == DELTAFS_OK; v++) {
        const struct inode *i = &v->entry.inode;
        if (i->type != ENTRY_FILE || i->size == 0 || !is_own(c, i->data.table) || !v->is_needed)
            continue;
        status = explain_lost(c, tables_each_place(&c->tables, i, add_place, c, &c->call->error));
    }
    return status;
}

static int find_needed(struct collection *c)
{
    struct error *e = &c->call->error;
    int status = all_records_open(&c->records, &c->tables, e);

    while (status == DELTAFS_OK && (status = all_records_next(&c->records, e)) == DELTAFS_OK &&
           c->records.versions > 0) {
        status = note_versions(c);
        if (status == DELTAFS_OK)
            status = keep_lease(c);
    }
    all_records_close(&c->records);
    sort_places(c);
    return status;
}

/* ---- Removing ---- */

static int copy_chunk(struct collection *c, deltafs_dir *from, uint64_t key, deltafs_dir *to)
{
    struct error *e = &c->call->error;
    deltafs_records *records = NULL;
    int status = error_of_call(deltafs_get(from, key, NULL, &records), e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = error_set(e, DELTAFS_ERR_DAMAGED, "%s: the bytes of a file, with the key %llu, are missing", c->path,
                           (unsigned long long)key);
    status = explain_lost(c, status);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_append(to, key, records->record[0].value, records->record[0].size), e);
    deltafs_records_destroy(records);
    return status == DELTAFS_OK ? keep_lease(c) : status;
}

/* Copy chunks with these places to new data, in one epoch. */
static int copy_chunks(struct collection *c, deltafs_dir *from, const struct entry_id *place, size_t count,
                       const char *path)
{
    struct error *e = &c->call->error;
    deltafs_dir *to = NULL;
    uint64_t label = 0;
    int status = error_of_call(deltafs_last_label(from, &label), e);

    if (status == DELTAFS_OK)
        status = own_table_create_data(path, c->call->options, &to, e);
    for (size_t i = 0; i < count && status == DELTAFS_OK; i++)
        status = copy_chunk(c, from, place[i].number, to);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_epoch_end(to, label), e);
    int closed = error_of_call(deltafs_close(to), error_after(status, e));
    return error_first(status, closed);
}

/* Put smaller data in the place of the old. */
static int replace_data(struct collection *c, deltafs_dir *from, const char *path, const struct entry_id *place,
                        size_t count)
{
    char beside[PATH_ROOM];
    struct stat st;

    if (snprintf(beside, sizeof beside, "%s" COPY_NAME, path) >= (int)sizeof beside)
        return error_set(&c->call->error, DELTAFS_ERR_NAME, "%s: the path is too long", path);
    int status = copy_chunks(c, from, place, count, beside);
    if (status == DELTAFS_OK)
        status = io_exchange(&c->call->io, beside, path, &c->call->error);
    if (status == DELTAFS_OK && c->call->sync)
        status = io_sync_parent(&c->call->io, path, &c->call->error);
    int removed = lstat(beside, &st) == 0
                      ? dir_remove_own(beside, c->call->options, error_after(status, &c->call->error))
                      : DELTAFS_OK;
    return error_first(status, removed);
}

static int bytes_of(struct collection *c, const char *path, uint64_t *bytes)
{
    deltafs_dir *dir = NULL;
    int status = error_of_call(deltafs_open(path, c->call->options, &dir), &c->call->error);

    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_bytes_stored(dir, bytes), &c->call->error);
    deltafs_close(dir);
    return status;
}

/* Remove what is not needed of the data of a table. */
static int collect_data(struct collection *c, const char *path, uint64_t table)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    size_t first = c->places > 0 ? number_position(&c->place->table, c->places, sizeof *c->place, table) : 0, count = 0;
    uint64_t before = 0, after = 0;
    deltafs_dir *dir = NULL;
    int status = error_of_call(deltafs_open(path, c->call->options, &dir), &c->call->error);

    if (status == DELTAFS_ERR_NOT_FOUND)
        return DELTAFS_OK;
    while (first + count < c->places && c->place[first + count].table == table)
        count++;
    if (status == DELTAFS_ERR_NOT_DELTAFS && count == 0) /* its creation was interrupted */
        return dir_remove_own(path, c->call->options, &c->call->error);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_stat(dir, &stat), &c->call->error);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_bytes_stored(dir, &before), &c->call->error);
    int is_kept = count > 0 &&
                  (stat.records < count || stat.records - count < stat.records / COPY_LEAST || stat.records == count);
    if (status == DELTAFS_OK && count > 0 && !is_kept)
        status = replace_data(c, dir, path, c->place + first, count);
    deltafs_close(dir);
    if (status == DELTAFS_OK && count == 0)
        status = error_of_call(deltafs_remove(path), &c->call->error);
    if (status == DELTAFS_OK && count > 0)
        status = bytes_of(c, path, &after);
    c->result->bytes_before += before;
    c->result->bytes_after += after;
    return status;
}

static int collect_tables(struct collection *c)
{
    char path[PATH_ROOM];
    int status = DELTAFS_OK;

    for (size_t i = 0; i < c->tables.count && status == DELTAFS_OK; i++) {
        status = collect_data(c, table_path(path, c->path, c->tables.table[i].number, TABLE_DATA),
                              c->tables.table[i].number);
        if (status == DELTAFS_OK)
            status = keep_lease(c);
    }
    return status;
}

/* Copies and removals that were interrupted, and what a compaction had not put into effect: its table is that of a
 * writer, so none is at work. */
static int remove_rest(struct collection *c)
{
    static const char copy[] = TABLE_DATA COPY_NAME;
    const size_t digits = strlen("t0123456789abcdef");
    struct bytes names = {.used = 0};
    char path[PATH_ROOM];
    int status = io_names(&c->call->io, c->path, &names, &c->call->error);

    for (size_t at = 0; at < names.used && status == DELTAFS_OK;) {
        const char *name = (const char *)names.buffer.bytes + at;
        size_t n = strlen(name);
        int is_copy = name[0] == 't' && n == digits + strlen(copy) && strcmp(name + digits, copy) == 0;
        io_path_in(path, c->path, "%s", name);
        if (is_copy || dir_is_being_removed(name))
            status = dir_remove_own(path, c->call->options, &c->call->error);
        else if (compacted_is_aside(name))
            status = io_unlink(&c->call->io, path, &c->call->error);
        at += n + 1;
    }
    buffer_fini(&names.buffer);
    return status;
}

/* ---- Tables that were compacted ---- */

static int is_pinned(const struct collection *c, uint64_t table)
{
    for (const struct layer_table *p = c->pins.table; p < c->pins.table + c->pins.count; p++)
        if (p->number == table && p->limit > p->from)
            return 1;
    return 0;
}

/* Remove a table's entries, if it got none since. A writer that takes it over again may have died before that. */
static int remove_table(struct collection *c, const char *path, uint64_t limit)
{
    struct error *e = &c->call->error;
    deltafs_dir *dir = NULL;
    uint64_t label = 0, stored = 0;
    int status = error_of_call(deltafs_open(path, c->call->options, &dir), e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        return DELTAFS_OK;
    if (status == DELTAFS_ERR_NOT_DELTAFS) /* its creation was interrupted */
        return dir_remove_own(path, c->call->options, e);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_last_label(dir, &label), e);
    if (dir && status == DELTAFS_ERR_NOT_FOUND)
        status = DELTAFS_OK;
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_bytes_stored(dir, &stored), e);
    deltafs_close(dir);
    if (status != DELTAFS_OK || label > limit)
        return status;
    c->result->bytes_before += stored;
    return dir_remove_own(path, c->call->options, e);
}

static int remove_compacted(struct collection *c)
{
    char path[PATH_ROOM];
    struct compacted compacted;
    int status = compacted_read(&c->call->io, c->path, &compacted, &c->call->error);

    for (size_t i = 0; i < compacted.count && status == DELTAFS_OK; i++) {
        const struct layer_table *t = &compacted.table[i];
        if (!is_pinned(c, t->number))
            status = remove_table(c, table_path(path, c->path, t->number, ""), t->limit);
    }
    compacted_fini(&compacted);
    return status;
}

/* ---- Public function ---- */

/* With the lease of the folder: whether a table is being written. */
static int check_writers(struct collection *c)
{
    char path[PATH_ROOM];
    uint64_t *number = NULL;
    size_t count = 0;
    int status = tables_list(&c->call->io, c->path, &number, &count, &c->call->error);

    for (size_t i = 0; i < count && status == DELTAFS_OK; i++)
        if (lease_may_be_held(&c->call->io, table_path(path, c->path, number[i], ""), c->seconds))
            status = error_set(&c->call->error, DELTAFS_ERR_BUSY,
                               "%s: a process writes to the namespace; collect when that has ended", path);
    free(number);
    return status;
}

/* Journals that writers have left. */
static int recover_tables(struct collection *c)
{
    struct io *io = &c->call->io;
    char path[PATH_ROOM];
    uint64_t *number = NULL;
    size_t count = 0;
    int status = tables_list(io, c->path, &number, &count, &c->call->error);

    for (size_t i = 0; i < count && status == DELTAFS_OK; i++)
        if (access(table_path(path, c->path, number[i], TABLE_JOURNAL), F_OK) == 0)
            status = own_table_recover(io, c->path, number[i], c->call->options, &c->call->error);
    free(number);
    return status;
}

/* Pins come before views: one that is not seen takes its lease later, and confirms then that its snapshot has its name.
 */
static int read_pins(struct collection *c)
{
    int status = pins_read(&c->call->io, c->path, &c->pins, &c->call->error);

    return status == DELTAFS_OK ? views_check(&c->call->io, c->path, c->seconds, &c->call->error) : status;
}

/* Who has begun a pin and holds no view any more was killed; who begins one now finds the lease of the folder. */
static int read_living_pins(struct collection *c)
{
    int status = read_pins(c);

    if (status != DELTAFS_OK || !c->pins.begun)
        return status;
    pins_fini(&c->pins);
    status = pins_remove_begun(&c->call->io, c->path, &c->call->error);
    return status == DELTAFS_OK ? read_pins(c) : status;
}

/* With the lease of the folder. */
static int collect(struct collection *c)
{
    int status = check_writers(c);

    if (status == DELTAFS_OK)
        status = read_living_pins(c);
    if (status == DELTAFS_OK)
        status = remove_rest(c);
    c->result->pins = c->pins.pins;
    c->result->is_kept = c->pins.keep_all;
    if (status != DELTAFS_OK || c->pins.keep_all)
        return status;
    status = recover_tables(c);
    if (status != DELTAFS_OK)
        return status;
    status = tables_init_all(&c->tables, &c->call->io, c->path, c->call->options, &c->call->error);
    if (status == DELTAFS_OK)
        status = find_pinned(c);
    if (status == DELTAFS_OK)
        status = find_needed(c);
    if (status == DELTAFS_OK)
        status = collect_tables(c);
    tables_fini(&c->tables);
    if (status == DELTAFS_OK)
        status = remove_compacted(c);
    return status;
}

static int collect_alone(struct collection *c)
{
    struct head head;
    struct error *e = &c->call->error;
    int status = head_read(&c->call->io, c->path, &head, e);

    layers_fini(&head.below);
    if (status == DELTAFS_OK)
        status = lease_take(&c->lease, &c->call->io, c->path, c->seconds, 0, e);
    if (status != DELTAFS_OK)
        return status;
    status = collect(c);
    return error_first(status, lease_drop(&c->lease, error_after(status, e)));
}

static int collect_path(struct snapshot_call *call, const char *path, void *result)
{
    struct collection c = {.call = call,
                           .path = path,
                           .lease.file.fd = -1,
                           .seconds = deltafs_private_options_number(call->options, OPTION_LEASE),
                           .result = result};
    int status = collect_alone(&c);

    pins_fini(&c.pins);
    free(c.pin_epoch);
    free(c.place);
    return status;
}

int deltafs_namespace_collect(const char *path, struct deltafs_namespace_collected *out)
{
    struct deltafs_namespace_collected result = {.struct_size = sizeof result};

    return snapshot_call_on("deltafs_namespace_collect", path, collect_path, &result, sizeof result, out);
}
