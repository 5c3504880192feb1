#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/coding.h"
#include "base/number.h"
#include "directory/dir.h"
#include "directory/read/reader.h"
#include "namespace/compacted.h"
#include "namespace/tables.h"

/* A list holds about half of this for each table. */
#define READER_MEMORY "8M"

char *table_path(char path[PATH_ROOM], const char *folder, uint64_t number, const char *suffix)
{
    return io_path_in(path, folder, TABLE_NAME "%s", (unsigned long long)number, suffix);
}

/* ---- Which there are ---- */

struct listing {
    uint64_t *number;
    size_t count, capacity;
};

/* Of a table that was compacted, only the data may be left. */
static int list_take(void *arg, const char *name, struct error *e)
{
    static const char digits[] = "0123456789abcdef";
    struct listing *l = arg;

    if (name[0] != 't' || strspn(name + 1, digits) != 16 || (name[17] != '\0' && strcmp(name + 17, TABLE_DATA) != 0))
        return DELTAFS_OK;
    int status = memory_extend(NULL, &l->number, l->count, &l->capacity, sizeof *l->number, "tables", e);
    if (status == DELTAFS_OK)
        l->number[l->count++] = strtoull(name + 1, NULL, 16);
    return status;
}

int tables_list(struct io *io, const char *path, uint64_t **number, size_t *count, struct error *e)
{
    struct listing l = {0};
    int status = io_list(io, path, list_take, &l, e);

    if (status != DELTAFS_OK) {
        free(l.number);
        return status;
    }
    if (l.count > 0)
        qsort(l.number, l.count, sizeof *l.number, compare_u64);
    *count = 0;
    for (size_t i = 0; i < l.count; i++)
        if (*count == 0 || l.number[i] != l.number[*count - 1])
            l.number[(*count)++] = l.number[i];
    *number = l.number;
    return DELTAFS_OK;
}

/* ---- Readers ---- */

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

static int table_is_limited(const struct table *table)
{
    return table->limit != UINT64_MAX;
}

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

int table_is_empty(const char *directory, int status)
{
    char copy[PATH_ROOM];

    if (status != DELTAFS_ERR_NOT_DELTAFS)
        return status == DELTAFS_ERR_NOT_FOUND;
    /* Otherwise something was committed, and MANIFEST is lost. */
    return access(io_path_in(copy, directory, MANIFEST_COPY_NAME), F_OK) != 0;
}

static struct manifest *manifest_of(deltafs_dir *dir)
{
    struct reader *reader;
    struct error *e;

    return dir_reader(dir, "manifest_of", NULL, &reader, &e) == DELTAFS_OK ? &reader->manifest : NULL;
}

int table_has_since(const struct table *table, uint64_t label)
{
    const struct manifest *m = table->reader ? manifest_of(table->reader->dir) : NULL;

    for (uint64_t i = m ? m->epoch_count : 0; i > 0 && m->epoch[i - 1].label > label; i--)
        if (m->epoch[i - 1].covers == 0)
            return 1;
    return 0;
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

static void release_journal(struct journal *j)
{
    if (j)
        journal_close(j, error_ignored());
    free(j);
}

/* Read the journal of a table before its epochs: see journal.h. */
static int open_journal(const struct tables *t, struct table *table, struct error *e)
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

/* Open what is committed by now. Of a layer's there must be what the layer has of it. */
static int table_open(struct tables *t, struct table *table, struct error *e)
{
    char path[PATH_ROOM];

    if (table->epochs.last == 0 || table->epochs.first > table->epochs.last)
        return DELTAFS_OK; /* only bytes of files are read, when they are needed */
    int status = open_journal(t, table, e);
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

int table_refresh(struct tables *t, struct table *table, struct error *e)
{
    struct journal *was = table->journal;

    table->journal = NULL;
    int status = open_journal(t, table, e);
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

int table_is_watched(const struct tables *t, const struct table *table)
{
    return table->path == t->path && table->limit == UINT64_MAX && !table->is_own;
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

/* ---- All of them ---- */

/* Tables that were compacted share no memory: mostly nothing is read of them. */
static size_t count_read(const struct tables *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->count; i++)
        n += t->table[i].epochs.first == 0;
    return n;
}

static int tables_options(struct tables *t, const deltafs_options *given, struct error *e)
{
    char cache[32];
    int status = error_of_call(deltafs_options_create(&t->options), e);

    if (status == DELTAFS_OK && given)
        status = deltafs_private_options_copy(t->options, given, e);
    if (status != DELTAFS_OK)
        return status;
    if (t->shares == 0) {
        t->read_cache = deltafs_private_options_number(t->options, OPTION_READ_CACHE);
        t->shares = count_read(t) + 1;
    }
    snprintf(cache, sizeof cache, "%llu", (unsigned long long)(t->read_cache / t->shares));
    status = error_of_call(deltafs_options_set(t->options, "read_cache", cache), e);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_options_set(t->options, "read_threads", "0"), e);
    return status == DELTAFS_OK ? error_of_call(deltafs_options_set(t->options, "memory", READER_MEMORY), e) : status;
}

/* The place of a table: itself, or where it belongs. */
static size_t place_of(const struct tables *t, uint64_t number)
{
    return t->count > 0 ? number_position(&t->table->number, t->count, sizeof *t->table, number) : 0;
}

struct table *tables_find(struct tables *t, uint64_t number)
{
    size_t i = place_of(t, number);

    return i < t->count && t->table[i].number == number ? &t->table[i] : NULL;
}

/* Add a table of which these epochs are read. */
static int tables_add(struct tables *t, const char *path, uint64_t number, struct deltafs_range epochs, struct error *e)
{
    size_t place = place_of(t, number);
    struct table *table = tables_find(t, number);

    if (table && table->epochs.first <= table->limit && epochs.first <= epochs.last)
        table->is_layered |= table->epochs.first != epochs.first || table->limit != epochs.last;
    if (table && epochs.last > table->limit)
        table->limit = table->epochs.last = epochs.last;
    if (table && epochs.first < table->epochs.first)
        table->epochs.first = epochs.first;
    if (table)
        return DELTAFS_OK;
    int status = memory_extend(NULL, &t->table, t->count, &t->capacity, sizeof *t->table, "tables", e);
    if (status != DELTAFS_OK)
        return status;
    memmove(t->table + place + 1, t->table + place, (t->count - place) * sizeof *t->table);
    t->table[place] = (struct table){.number = number, .path = path, .epochs = epochs, .limit = epochs.last};
    snprintf(t->table[place].journal_name, sizeof t->table[place].journal_name, TABLE_NAME TABLE_JOURNAL,
             (unsigned long long)number);
    t->count++;
    return DELTAFS_OK;
}

int tables_add_own(struct tables *t, uint64_t number, int *has_room, struct error *e)
{
    int status = tables_add(t, t->path, number, (struct deltafs_range){0, UINT64_MAX}, e);

    *has_room = count_read(t) <= t->shares;
    return status;
}

/* The epochs behind those that were compacted. */
static struct deltafs_range epochs_from(uint64_t from, uint64_t limit)
{
    return (struct deltafs_range){from > 0 ? from + 1 : 0, limit};
}

static int add_own(struct tables *t, struct io *io, const char *path, uint64_t own, const struct compacted *c,
                   struct error *e)
{
    uint64_t *number = NULL;
    size_t count = 0;
    int status = tables_list(io, path, &number, &count, e);

    for (size_t i = 0; i < count && status == DELTAFS_OK; i++)
        status = tables_add(t, path, number[i], epochs_from(compacted_limit(c, number[i]), UINT64_MAX), e);
    if (status == DELTAFS_OK && own != 0)
        status = tables_add(t, path, own, epochs_from(compacted_limit(c, own), UINT64_MAX), e);
    free(number);
    return status;
}

/* Of a layer in which no names are looked up, only bytes of files are read. */
static int add_layers(struct tables *t, const struct layers *layers, struct error *e)
{
    static const struct deltafs_range none = {UINT64_MAX, 0};
    uint8_t *is_asked = malloc(layers->count + 1);
    int status = is_asked ? DELTAFS_OK : error_no_memory(e, layers->count, "layers");

    if (is_asked)
        layers_note_asked(layers, t->is_complete, is_asked);
    for (size_t i = 0; i < layers->count && status == DELTAFS_OK; i++) {
        const struct layer *l = &layers->layer[i];
        for (const struct layer_table *k = l->table; k < l->table + l->tables && status == DELTAFS_OK; k++)
            status = tables_add(t, l->path, k->number, is_asked[i] ? epochs_from(k->from, k->limit) : none, e);
    }
    free(is_asked);
    return status;
}

/* What is to be opened. */
struct opening {
    struct io *io;
    const char *path;
    uint64_t own;
    const struct layers *layers;
    const deltafs_options *options;
    int is_all;                 /* also what was compacted */
    const struct tables *again; /* that were opened before; NULL: none */
};

/* The table that has what was compacted must be there. */
static int check_compacted(struct tables *t, const char *path, const struct compacted *c, struct error *e)
{
    char name[PATH_ROOM];
    const struct table *table = tables_find(t, c->into.number);

    if (c->into.number == 0 || (table && table_last_label(table) >= c->into.limit))
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_DAMAGED, "%s: has lost what a compaction has written; bring it back",
                     table_path(name, path, c->into.number, ""));
}

static int open_once(struct tables *t, const struct opening *o, struct compacted *c, struct error *e)
{
    *t = (struct tables){.io = o->io, .path = o->is_all ? NULL : o->path, .is_all = o->is_all};
    if (o->again)
        t->read_cache = o->again->read_cache;
    *c = (struct compacted){.table = NULL};
    int status = t->path ? compacted_read(o->io, o->path, c, e) : DELTAFS_OK;

    memcpy(t->compacted, c->uuid, sizeof t->compacted);
    t->is_complete = c->is_complete;
    if (status == DELTAFS_OK && o->path)
        status = add_own(t, o->io, o->path, o->own, c, e);
    if (status == DELTAFS_OK)
        status = add_layers(t, o->layers, e);
    if (o->again) /* more may come */
        t->shares = 2 * count_read(t) + 1;
    if (status == DELTAFS_OK)
        status = tables_options(t, o->options, e);
    for (size_t i = 0; i < t->count && status == DELTAFS_OK; i++)
        status = table_open(t, &t->table[i], e);
    return status == DELTAFS_OK ? check_compacted(t, o->path, c, e) : status;
}

/* If the namespace is compacted meanwhile, and then collected, the list of tables may have neither the old ones nor the
 * new one: then once more. */
static int open_all(struct tables *t, const struct opening *o, struct error *e)
{
    struct compacted c;
    int status, has_changed;

    do {
        status = open_once(t, o, &c, e);
        has_changed = t->path && compacted_has_changed(t->io, t->path, t->compacted);
        compacted_fini(&c);
        if (has_changed)
            tables_fini(t);
    } while (has_changed);
    return status;
}

int tables_init(struct tables *t, struct io *io, const char *path, uint64_t own, const struct layers *layers,
                const deltafs_options *given, struct error *e)
{
    const struct opening o = {.io = io, .path = path, .own = own, .layers = layers, .options = given};

    return open_all(t, &o, e);
}

int tables_init_all(struct tables *t, struct io *io, const char *path, const deltafs_options *given, struct error *e)
{
    static const struct layers none = {0};
    const struct opening o = {.io = io, .path = path, .layers = &none, .options = given, .is_all = 1};

    return open_all(t, &o, e);
}

static void table_close_data(struct table *table)
{
    chunk_stream_close(&table->stream);
    deltafs_close(table->data);
    table->data = NULL;
}

void tables_fini(struct tables *t)
{
    for (size_t i = 0; i < t->count; i++) {
        table_reader_release(t->table[i].reader);
        table_close_data(&t->table[i]);
        if (!t->table[i].is_own)
            release_journal(t->table[i].journal);
    }
    io_file_close(&t->folder, error_ignored());
    free(t->table);
    deltafs_options_destroy(t->options);
}

int tables_init_again(const struct tables *t, uint64_t own, const struct layers *layers, struct tables *out,
                      struct error *e)
{
    const struct opening o = {
        .io = t->io, .path = t->path, .own = own, .layers = layers, .options = t->options, .again = t};

    return open_all(out, &o, e);
}

void tables_use_journal(struct tables *t, uint64_t number, struct journal *journal)
{
    struct table *table = tables_find(t, number);

    release_journal(table->journal);
    table->journal = journal;
    table->is_own = 1;
}

void tables_note_commit(struct tables *t, uint64_t number)
{
    tables_find(t, number)->is_stale = 1;
}

void tables_note_data(struct tables *t, uint64_t number)
{
    tables_find(t, number)->is_data_stale = 1;
}

/* ---- Names ---- */

int table_decode(const struct table *table, const struct deltafs_record *record, struct entry *out, struct error *e)
{
    char path[PATH_ROOM];

    if (entry_decode(record->value, record->size, out) == 0)
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_DAMAGED, "%s: the record of key %016llx is no entry of a namespace",
                     table_path(path, table->path, table->number, ""), (unsigned long long)record->key);
}

int tables_explain(const struct tables *t, const struct table *table, int status, struct error *e)
{
    if (status != DELTAFS_ERR_DAMAGED || !t->path || table->path != t->path ||
        !compacted_has_changed(t->io, t->path, t->compacted))
        return status;
    return error_set(e, DELTAFS_ERR_CHANGED, "%s: was compacted, and then tables were removed; open it again", t->path);
}

/* A name that is looked up, and who gets what the tables have of it. */
struct getting {
    struct tables *tables;
    const struct entry_name *name;
    tables_fn *fn;
    void *arg;
};

/* Pass a record on, if it is of the name, and is read. */
static int get_record(const struct getting *g, size_t i, const struct deltafs_record *record, struct error *e)
{
    const struct entry_name *name = g->name;
    const struct table *table = &g->tables->table[i];
    struct entry entry;
    int status = table_decode(table, record, &entry, e);

    if (status != DELTAFS_OK || entry.name_size != name->size || !id_is_same(&entry.parent, &name->parent) ||
        memcmp(entry.name, name->text, name->size) != 0 || !table_has(table, record->label, entry.inode.stamp))
        return status;
    return g->fn(g->arg, i, &entry, e);
}

static int get_journaled(const struct getting *g, size_t i, struct error *e)
{
    const struct table *table = &g->tables->table[i];
    const struct journal_record *r = NULL;
    int status = DELTAFS_OK;

    while (status == DELTAFS_OK && (r = table_journaled_one(table, JOURNAL_ENTRY, g->name->key, r)) != NULL) {
        const struct deltafs_record record = table_journal_record(table, r);
        status = get_record(g, i, &record, e);
    }
    return status;
}

static int table_get(const struct getting *g, size_t i, struct error *e)
{
    struct table *table = &g->tables->table[i];
    struct table_reader *reader;
    deltafs_records *records = NULL;
    int status = table_reader(g->tables, table, &reader, e);

    if (status == DELTAFS_OK)
        status = get_journaled(g, i, e);
    if (status != DELTAFS_OK || !reader)
        return status;
    status = error_of_call(deltafs_get(reader->dir, g->name->key, table_epochs(table), &records), e);
    status = tables_explain(g->tables, table, status, e);
    if (status == DELTAFS_ERR_NOT_FOUND)
        status = DELTAFS_OK;
    for (size_t k = 0; status == DELTAFS_OK && records && k < records->count; k++)
        status = get_record(g, i, &records->record[k], e);
    deltafs_records_destroy(records);
    return status;
}

int tables_get(struct tables *t, const struct entry_name *name, tables_fn *fn, void *arg, struct error *e)
{
    const struct getting g = {t, name, fn, arg};
    int status = DELTAFS_OK;

    for (size_t i = 0; i < t->count && status == DELTAFS_OK; i++)
        status = table_get(&g, i, e);
    return status;
}

struct loading {
    struct name_table *names;
    struct name_node *node;
};

static int load_entry(void *arg, size_t table, const struct entry *entry, struct error *e)
{
    struct loading *l = arg;

    (void)table;
    return name_table_put(l->names, l->node, &entry->inode, entry->target, entry->target_size)
               ? DELTAFS_OK
               : error_no_memory(e, entry->target_size, "names; give the option memory more");
}

int tables_load(struct tables *t, struct name_table *names, struct name_node *node, struct error *e)
{
    struct loading l = {names, node};
    const struct entry_name name = {node->parent, node->key, node->name, node->name_size};
    int status = tables_get(t, &name, load_entry, &l, e);

    node->is_loaded = status == DELTAFS_OK;
    return status;
}

/* ---- Data ---- */

/* Open the data of a table up to the chunk with this key: it is in the first epoch with a higher label. */
static int table_open_data(const struct tables *t, struct table *table, uint64_t key, struct error *e)
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

static int get_chunk(const struct tables *t, struct table *table, uint64_t key, deltafs_records **records,
                     struct error *e)
{
    int status = table_open_data(t, table, key, e);

    return status == DELTAFS_OK ? error_of_call(deltafs_get(table->data, key, NULL, records), e) : status;
}

/* The record of a place. DELTAFS_ERR_NOT_FOUND, without a message. */
static int find_chunk(struct tables *t, const struct entry_id *place, deltafs_records **records, struct error *e)
{
    struct table *table = tables_find(t, place->table);
    int status = table ? get_chunk(t, table, place->number, records, e) : DELTAFS_ERR_NOT_FOUND;

    if (status == DELTAFS_ERR_CHANGED) { /* by a collection */
        table_close_data(table);
        status = get_chunk(t, table, place->number, records, e);
    }
    return status;
}

/* Read a chunk by the stream of its table, if that has it. */
static int read_from_stream(const struct tables *t, struct table *table, uint64_t key, size_t room, void *bytes,
                            size_t *got)
{
    if (!table || table_open_data(t, table, key, error_ignored()) != DELTAFS_OK)
        return 0;
    const struct deltafs_record *record = chunk_stream_find(&table->stream, table->data, key, room);
    if (!record)
        return 0;
    *got = record->size;
    memcpy(bytes, record->value, *got);
    return 1;
}

int tables_read_chunk(struct tables *t, const struct entry_id *place, size_t room, void *bytes, size_t *got,
                      struct error *e)
{
    struct table *table = tables_find(t, place->table);
    deltafs_records *records = NULL;
    char path[PATH_ROOM];
    int status = table && !table->journal ? open_journal(t, table, e) : DELTAFS_OK;

    if (status != DELTAFS_OK)
        return status;
    const struct journal_record *r = table ? table_journaled_one(table, JOURNAL_CHUNK, place->number, NULL) : NULL;
    if (r && r->size <= room) {
        *got = r->size;
        memcpy(bytes, journal_bytes(table->journal, r), *got);
        return DELTAFS_OK;
    }
    if (read_from_stream(t, table, place->number, room, bytes, got))
        return DELTAFS_OK;
    status = find_chunk(t, place, &records, e);
    int is_sound = status == DELTAFS_OK && records->count == 1 && records->record[0].size <= room;
    if (is_sound) {
        *got = records->record[0].size;
        memcpy(bytes, records->record[0].value, *got);
    } else if (status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND) {
        status = error_set(e, DELTAFS_ERR_DAMAGED, "%s: the bytes of a file, with the key %llu, are missing",
                           table_path(path, table ? table->path : ".", place->table, TABLE_DATA),
                           (unsigned long long)place->number);
    }
    deltafs_records_destroy(records);
    return status;
}

/* Read a part of a list of places, and pass those of chunks that are stored. */
static int each_chunk(struct tables *t, const struct entry_id *part, size_t size, uint8_t *bytes, tables_place_fn *fn,
                      void *arg, struct error *e)
{
    size_t got = 0;
    int status = tables_read_chunk(t, part, size, bytes, &got, e);

    if (status == DELTAFS_OK && got != size)
        status = error_set(e, DELTAFS_ERR_DAMAGED, "the list of a file's chunks, with the key %llu, is incomplete",
                           (unsigned long long)part->number);
    for (size_t i = 0; i < size && status == DELTAFS_OK; i += PLACE_SIZE) {
        const struct entry_id chunk = {get_u64(bytes + i), get_u64(bytes + i + 8)};
        if (chunk.table != 0)
            status = fn(arg, &chunk, e);
    }
    return status;
}

int tables_each_place(struct tables *t, const struct inode *file, tables_place_fn *fn, void *arg, struct error *e)
{
    uint64_t left = (file->size + CHUNK_SIZE - 1) / CHUNK_SIZE * PLACE_SIZE;
    struct entry_id part = file->data;

    if (left <= PLACE_SIZE)
        return part.table != 0 ? fn(arg, &part, e) : DELTAFS_OK;
    uint8_t *bytes = malloc(CHUNK_SIZE);
    int status = bytes ? DELTAFS_OK : error_no_memory(e, CHUNK_SIZE, "places of a file");
    for (size_t size; left > 0 && status == DELTAFS_OK; left -= size, part.number++) {
        size = left < CHUNK_SIZE ? (size_t)left : CHUNK_SIZE;
        status = fn(arg, &part, e);
        if (status == DELTAFS_OK)
            status = each_chunk(t, &part, size, bytes, fn, arg, e);
    }
    free(bytes);
    return status;
}
