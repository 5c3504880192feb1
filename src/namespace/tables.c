#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "namespace/compacted.h"
#include "namespace/tables.h"

/* A list holds about half of this for each table. */
#define READER_MEMORY "8M"

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
    uint64_t number = strtoull(name + 1, NULL, 16);
    if (number == 0) /* no table has it */
        return DELTAFS_OK;
    int status = memory_extend(NULL, &l->number, l->count, &l->capacity, sizeof *l->number, "tables", e);
    if (status == DELTAFS_OK)
        l->number[l->count++] = number;
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

void tables_fini(struct tables *t)
{
    for (size_t i = 0; i < t->count; i++)
        table_close(&t->table[i]);
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
    table_use_journal(tables_find(t, number), journal);
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
