/* Looking up: the directory says in which groups of rows of which tables a key is; they are read from their files,
 * and as many rows of them must have the key. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/number.h"
#include "base/sized.h"
#include "directory/dir.h"
#include "directory/read/reader.h"
#include "fileindex/fileindex_format.h"
#include "fileindex/fileindex_lookup.h"
#include "io/lease.h"

#define GROUP_BYTES (64u << 10) /* a group of rows that has more is not read as a whole, but first its keys */

/* ---- Opening ---- */

static void keys_close_files(deltafs_fileindex *k)
{
    for (size_t i = 0; k->source && i < k->sources.count; i++)
        if (k->source[i].is_open) {
            key_file_io_stat(&k->source[i].file, &k->closed);
            key_file_close(&k->source[i].file);
            k->source[i].is_open = 0;
        }
    k->open_count = 0;
}

int deltafs_fileindex_close(deltafs_fileindex *k)
{
    if (!k)
        return DELTAFS_OK;
    keys_close_files(k);
    for (size_t i = 0; k->source && i < k->sources.count; i++)
        free(k->source[i].path);
    free(k->source);
    free(k->entry);
    free(k->by_sequence);
    sources_fini(&k->sources);
    index_paths_fini(&k->place);
    buffer_fini(&k->slices);
    buffer_fini(&k->value);
    buffer_fini(&k->group);
    buffer_fini(&k->missing);
    buffer_fini(&k->elements);
    free(k->hdf5);
    int status = deltafs_close(k->dir);
    io_leave(&k->io);
    free(k);
    return status;
}

static int compare_entries(const void *a, const void *b)
{
    const struct keys_entry *x = a, *y = b;
    const struct source_table *s = x->table, *t = y->table;

    return compare_two(s->table.label, t->table.label, s->sequence, t->sequence);
}

static int compare_sequences(const void *a, const void *b)
{
    const struct keys_entry *const *x = a, *const *y = b;

    return compare((*x)->table->sequence, (*y)->table->sequence);
}

static int keys_list(deltafs_fileindex *k, const struct manifest *m, struct error *e)
{
    size_t n = 0, at = 0;

    for (size_t i = 0; i < k->sources.count; i++)
        n += k->sources.source[i].table_count;
    k->source = calloc(k->sources.count + 1, sizeof *k->source);
    k->entry = calloc(n + 1, sizeof *k->entry);
    k->by_sequence = calloc(n + 1, sizeof *k->by_sequence);
    if (!k->source || !k->entry || !k->by_sequence)
        return error_no_memory(e, n * sizeof *k->entry, "the tables");
    for (size_t i = 0; i < k->sources.count; i++) {
        const struct source_entry *s = &k->sources.source[i];
        k->source[i].path = index_paths_path_out(&k->place, s->path);
        if (!k->source[i].path)
            return error_no_memory(e, strlen(s->path), "a path");
        for (size_t t = 0; t < s->table_count; t++)
            k->entry[at++] = (struct keys_entry){i, &s->table[t], source_table_is_lost(&s->table[t], m), 0};
    }
    qsort(k->entry, n, sizeof *k->entry, compare_entries);
    for (size_t i = 0; i < n; i++)
        k->by_sequence[i] = &k->entry[i];
    qsort(k->by_sequence, n, sizeof *k->by_sequence, compare_sequences);
    k->entry_count = n;
    return DELTAFS_OK;
}

int keys_entry_lost(const deltafs_fileindex *k, const struct keys_entry *entry, struct error *e)
{
    return error_set(e, DELTAFS_ERR_DAMAGED,
                     "%s: what it had of %s, labelled %" PRIu64 ", is lost (epoch %" PRIu64 " is missing or another); "
                     "index that file again",
                     k->place.path, k->source[entry->source].path, entry->table->table.label, entry->table->sequence);
}

int keys_check_any(const deltafs_fileindex *k, struct error *e)
{
    if (k->sources.last_whole > 0)
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_CHANGED,
                     "%s: no file is indexed here, or its indexing did not end; index it (deltafs-mpi index)",
                     k->place.path);
}

/* Whether SOURCES tells of all epochs; a writer may have gone on since it was read. */
static int keys_name_all(deltafs_fileindex *k, const struct manifest *m, uint64_t *lost)
{
    struct sources now;
    struct io_file file;
    unsigned waited = 0;
    int has_all = sources_name_all(&k->sources, m, lost);

    if (has_all || io_file_open(&k->io, k->place.sources, O_RDONLY, &file, error_ignored()) != DELTAFS_OK)
        return has_all;
    do {
        if (sources_read(&k->io, k->place.sources, &now, error_ignored()) != DELTAFS_OK)
            break;
        has_all = sources_name_all(&now, m, lost);
        sources_fini(&now);
    } while (!has_all && io_file_wait(&file, &waited));
    io_file_close(&file, error_ignored());
    return has_all;
}

/* A file whose indexing did not end, or NULL. Before version 3 it has no name: "". */
static const char *keys_unfinished(const deltafs_fileindex *k, const struct manifest *m)
{
    for (size_t i = 0; i < k->sources.count; i++)
        if (k->sources.source[i].is_begun)
            return k->source[i].path;
    return k->sources.version < 3 && m->epoch_count > 0 && k->sources.last_whole > 0 &&
                   m->epoch[m->epoch_count - 1].label > k->sources.last_whole
               ? ""
               : NULL;
}

int keys_check_finished(const deltafs_fileindex *k, const struct manifest *m, struct error *e)
{
    const char *unfinished = keys_unfinished(k, m);

    if (!unfinished)
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_CHANGED, "%s: the indexing of %s did not end; index it again (deltafs-mpi index)%s",
                     k->place.path, *unfinished ? unfinished : "a file that 'deltafs info' does not list",
                     *unfinished ? ", or have it forgotten (deltafs-mpi index --forget)" : "");
}

/* What is indexed and not found, into k->lines; a job that is indexing just now is no fault. `lease`: seconds. */
static void keys_check_lines(deltafs_fileindex *k, const struct manifest *m, uint64_t lease)
{
    struct error e;
    uint64_t lost;

    if (!keys_name_all(k, m, &lost))
        error_damaged(&k->lines, k->place.sources, k->sources.size,
                      "no line tells of epoch %" PRIu64 ": lines are lost, and rows of a file with them; remove the "
                      "index, and index its files again (deltafs-mpi index)",
                      lost);
    else if (keys_check_finished(k, m, &e) != DELTAFS_OK && !lease_may_be_held(&k->io, k->place.path, lease))
        k->lines = e;
}

/* First what is indexed, then the directory, which has all of that. */
static int keys_read(deltafs_fileindex *k, const deltafs_options *options, struct reader **reader, struct error *e)
{
    struct error *why;

    sources_fini(&k->sources);
    deltafs_close(k->dir);
    k->dir = NULL;
    int status = sources_read(&k->io, k->place.sources, &k->sources, e);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_open(k->place.path, options, &k->dir), e);
    if (status == DELTAFS_OK)
        status = dir_reader(k->dir, "deltafs_fileindex_open", NULL, reader, &why);
    return status == DELTAFS_OK ? sources_check_uuid(&k->sources, k->place.sources, (*reader)->manifest.uuid_text, e)
                                : status;
}

static int keys_open(deltafs_fileindex *k, const char *path, const deltafs_options *options, struct error *e)
{
    char uuid[UUID_TEXT_SIZE] = "";
    struct reader *reader;
    int status = io_stay(&k->io, path, e);

    k->hdf5 = strdup(deltafs_private_options_text(options, OPTION_HDF5));
    if (status == DELTAFS_OK && !k->hdf5)
        status = error_no_memory(e, 1, "an option");
    if (status == DELTAFS_OK)
        status = index_paths_find(&k->io, path, &k->place, e);
    if (status != DELTAFS_OK)
        return status;
    /* SOURCES and MANIFEST may be of two indexes, if a compaction replaces the first between the two readings. */
    while ((status = keys_read(k, options, &reader, e)) == DELTAFS_ERR_DAMAGED &&
           strcmp(uuid, k->sources.uuid_text) != 0)
        strcpy(uuid, k->sources.uuid_text);
    if (status != DELTAFS_OK)
        return status;
    const struct manifest *m = &reader->manifest;
    if (m->keys != KEYS_U64 || m->value_size != FILEINDEX_VALUE)
        status = error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: is a directory of records, not an index of files",
                           k->place.path);
    if (status == DELTAFS_OK)
        status = keys_list(k, m, e);
    if (status == DELTAFS_OK)
        keys_check_lines(k, m, deltafs_private_options_number(options, OPTION_LEASE));
    return status;
}

int deltafs_fileindex_open(const char *path, const deltafs_options *options, deltafs_fileindex **out)
{
    struct error own = {0};
    deltafs_options *defaults = NULL;

    if (!path || !*path || !out)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_fileindex_open: path and out must be given");
    deltafs_fileindex *k = calloc(1, sizeof *k);
    if (!k)
        return error_no_memory(deltafs_private_thread_error(), sizeof *k, "a handle");
    k->io = io_default();
    int status = options ? DELTAFS_OK : error_of_call(deltafs_options_create(&defaults), &own);
    if (status == DELTAFS_OK)
        status = keys_open(k, path, options ? options : defaults, &own);
    deltafs_options_destroy(defaults);
    if (status == DELTAFS_OK) {
        *out = k;
        return DELTAFS_OK;
    }
    deltafs_fileindex_close(k);
    return error_of_thread(status, &own);
}

/* ---- Sources ---- */

static int source_changed(const struct keys_source *s, const char *what, struct error *e)
{
    return error_set(e, DELTAFS_ERR_CHANGED, "%s: %s since its keys were indexed; index it again", s->path, what);
}

/* Whether the open file is as it was indexed. */
static int source_check(struct keys_source *s, const struct source_identity *was, struct error *e)
{
    struct source_identity is;
    int status = key_file_identity(&s->file, 0, &is, e);

    if (status != DELTAFS_OK)
        return status;
    return source_identity_is_same(&is, was) ? DELTAFS_OK : source_changed(s, "was written to", e);
}

static int source_try(deltafs_fileindex *k, struct keys_source *s, const struct source_identity *was, struct error *e)
{
    char kind;
    int status = key_file_kind(&k->io, s->path, &kind, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        return error_set(
            e, DELTAFS_ERR_CHANGED,
            "%s: has gone or been renamed since its keys were indexed, or the index was moved away from it; "
            "if that is so for good, have it forgotten (deltafs-mpi index --forget -o %s)",
            s->path, k->place.path);
    if (status == DELTAFS_ERR_NOT_DELTAFS || (status == DELTAFS_OK && kind != was->kind))
        return source_changed(s, "has become something else", e);
    if (status == DELTAFS_OK)
        status = key_file_open(&s->file, &k->io, s->path, kind, NULL, NULL, e);
    if (status != DELTAFS_OK)
        return status;
    s->file.hdf5 = k->hdf5;
    s->is_open = 1;
    k->open_count++;
    status = source_check(s, was, e);
    if (status == DELTAFS_OK && key_file_is_incomplete(&s->file))
        return error_set(e, DELTAFS_ERR_DAMAGED,
                         "%s: bytes of it are lost, so its rows are not read by key; 'deltafs verify' names the logs",
                         s->path);
    return status;
}

int keys_source_open(deltafs_fileindex *k, size_t source, struct key_file **out, struct error *e)
{
    struct keys_source *s = &k->source[source];
    const struct source_identity *was = &k->sources.source[source].identity;
    int status;

    if (s->error.status != DELTAFS_OK) {
        *e = s->error;
        return e->status;
    }
    if (s->is_open) {
        status = source_check(s, was, e);
    } else {
        if (k->open_count >= KEYS_OPEN_FILES)
            keys_close_files(k);
        status = source_try(k, s, was, e);
    }
    s->is_checked = 1;
    if (status == DELTAFS_OK)
        *out = &s->file;
    else
        s->error = *e;
    return status;
}

/* ---- Groups of rows ---- */

/* A group that is looked into. */
struct group {
    const struct keys_entry *entry;
    struct key_file *file;
    uint64_t from, end; /* rows */
    int is_whole;       /* all columns were read at once */
    uint64_t key[FILEINDEX_GROUP];
};

static int group_read(deltafs_fileindex *k, struct group *g, struct error *e)
{
    const uint8_t *value;
    const struct deltafs_table *t = &g->entry->table->table;
    const struct deltafs_column *c = &t->column[t->key];
    uint64_t bytes = 0;
    int status = rows_find(k, t->column, t->column_count, NULL, g->from, g->end, &bytes, e);

    g->is_whole = bytes <= GROUP_BYTES;
    if (status == DELTAFS_OK && !g->is_whole)
        status = rows_find(k, c, 1, NULL, g->from, g->end, &bytes, e);
    if (status == DELTAFS_OK)
        status = rows_read(k, g->file, bytes, e);
    if (status == DELTAFS_OK && c->dataset)
        status = rows_elements(k, g->entry, g->file, c, g->from, g->end - g->from, &value, e);
    for (uint64_t row = g->from, run; row < g->end && status == DELTAFS_OK; row += run) {
        uint64_t place = column_place(c, row);
        run = column_run(c, row, g->end);
        status = key_column_decode(c, c->dataset ? value : rows_value(k, place), (size_t)run, place,
                                   k->source[g->entry->source].path, g->key + (row - g->from), e);
    }
    return status;
}

/* The packed value of a row into k->value. */
static int group_value(deltafs_fileindex *k, const struct group *g, uint64_t row, struct error *e)
{
    const struct deltafs_table *t = &g->entry->table->table;
    uint64_t bytes;
    int status = buffer_reserve(&k->value, g->entry->table->size, "a row", e);

    if (status == DELTAFS_OK && !g->is_whole)
        status = rows_find(k, t->column, t->column_count, NULL, row, row + 1, &bytes, e);
    if (status == DELTAFS_OK && !g->is_whole)
        status = rows_read(k, g->file, bytes, e);
    uint8_t *out = k->value.bytes;
    for (size_t i = 0; i < t->column_count && status == DELTAFS_OK; i++) {
        if (i == t->key)
            continue;
        const struct deltafs_column *c = &t->column[i];
        const uint8_t *value = c->constant;
        if (c->dataset)
            status = rows_elements(k, g->entry, g->file, c, row, 1, &value, e);
        else if (!c->constant)
            value = rows_value(k, column_place(c, row));
        if (status == DELTAFS_OK)
            column_value(c, value, out);
        out += c->size;
    }
    return status;
}

/* Rows of the group number `number` that have the key, of which there must be `count`. */
static int group_hand_out(deltafs_fileindex *k, struct keys_entry *entry, uint64_t number, uint64_t count, uint64_t key,
                          deltafs_row_fn fn, void *arg, int *stop, struct error *e)
{
    const struct keys_source *s = &k->source[entry->source];
    const struct source_table *t = entry->table;
    uint64_t rows = t->table.rows, size = source_table_group(t), found = 0;
    struct group g = {.entry = entry, .from = number * size};

    if (g.from >= rows)
        return error_set(e, DELTAFS_ERR_DAMAGED, "%s: group %" PRIu64 " of the rows of %s, which has %" PRIu64 " rows",
                         k->place.path, number, s->path, rows);
    g.end = rows - g.from < size ? rows : g.from + size;
    int status = keys_source_open(k, entry->source, &g.file, e);
    if (status == DELTAFS_OK)
        status = group_read(k, &g, e);
    for (uint64_t row = g.from; row < g.end && status == DELTAFS_OK && *stop == 0; row++) {
        if (g.key[row - g.from] != key)
            continue;
        found++;
        status = group_value(k, &g, row, e);
        const struct deltafs_row r = {.key = key,
                                      .label = t->table.label,
                                      .row = row,
                                      .path = s->path,
                                      .table = t->table.name,
                                      .schema = t->schema,
                                      .value = k->value.bytes,
                                      .size = t->size};
        if (status == DELTAFS_OK)
            *stop = fn(&r, arg);
    }
    entry->is_absent |= status != DELTAFS_OK || (*stop == 0 && found < count);
    if (status == DELTAFS_OK && *stop == 0 && found != count)
        return error_damaged(e, s->path, column_place(&t->table.column[t->table.key], g.from),
                             "%" PRIu64 " rows follow, %" PRIu64 " have the key %" PRIu64
                             ", the index in %s says %" PRIu64 "; run deltafs-mpi index --again on this file",
                             g.end - g.from, found, key, k->place.path, count);
    return status;
}

/* ---- All rows of a key ---- */

struct hit {
    struct keys_entry *entry;
    uint64_t group;
};

static int compare_hits(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;

    if (x->entry != y->entry)
        return x->entry < y->entry ? -1 : 1;
    return x->group < y->group ? -1 : x->group > y->group;
}

static struct keys_entry *keys_entry_of(const deltafs_fileindex *k, uint64_t sequence)
{
    const struct source_table table = {.sequence = sequence};
    const struct keys_entry wanted = {.table = &table}, *p = &wanted;
    struct keys_entry **found = bsearch(&p, k->by_sequence, k->entry_count, sizeof *k->by_sequence, compare_sequences);

    return found ? *found : NULL;
}

int keys_entry_is_in(const struct keys_entry *entry, const struct deltafs_range *range)
{
    uint64_t label = entry->table->table.label;

    return !range || (label >= range->first && label <= range->last);
}

void keys_keep_fault(struct keys_faults *f, const struct error *e)
{
    if (e->status == DELTAFS_OK)
        return;
    if (f->first.status != DELTAFS_OK) {
        f->has_more |= strcmp(f->first.text, e->text) != 0;
        return;
    }
    f->first = *e;
    if (f->first.status == DELTAFS_ERR_NOT_FOUND)
        f->first.status = DELTAFS_ERR_IO;
}

int keys_end(struct keys_faults *f)
{
    if (f->has_more)
        error_set(&f->first, f->first.status, "%s; there are more faults, which verify lists", f->first.text);
    return error_of_thread(f->first.status, &f->first);
}

/* The sequences of the tables in the range; 0: there is none. */
static int keys_sequences(const deltafs_fileindex *k, const struct deltafs_range *range, struct deltafs_range *out)
{
    int has = 0;

    for (size_t i = 0; i < k->entry_count; i++) {
        uint64_t s = k->entry[i].table->sequence;
        if (!keys_entry_is_in(&k->entry[i], range) || k->entry[i].is_lost)
            continue;
        if (!has || s < out->first)
            out->first = s;
        if (!has || s > out->last)
            out->last = s;
        has = 1;
    }
    return has;
}

int keys_miss_none(deltafs_fileindex *k, struct error *e)
{
    k->missing_count = 0;
    return buffer_reserve(&k->missing, k->entry_count * sizeof(uint64_t), "labels", e);
}

void keys_miss(deltafs_fileindex *k, const struct keys_entry *entry)
{
    uint64_t *label = (uint64_t *)(void *)k->missing.bytes, here = entry->table->table.label;

    if (k->missing_count == 0 || here != label[k->missing_count - 1])
        label[k->missing_count++] = here;
}

/* Check all tables in the range: a source that has changed may have the key now, though its index has not. The labels
 * of tables that are missing from the answer are noted. */
static void keys_check(deltafs_fileindex *k, const struct deltafs_range *range, struct keys_faults *faults)
{
    struct key_file *file;
    struct error e = {0};
    int status = keys_miss_none(k, &e);

    keys_keep_fault(faults, &e);
    keys_keep_fault(faults, &k->lines);
    for (size_t i = 0; i < k->entry_count && status == DELTAFS_OK; i++) {
        const struct keys_entry *entry = &k->entry[i];
        const struct keys_source *s = &k->source[entry->source];
        if (!keys_entry_is_in(entry, range))
            continue;
        e.status = DELTAFS_OK;
        if (entry->is_lost)
            keys_entry_lost(k, entry, &e);
        else if (s->is_checked)
            e = s->error;
        else
            keys_source_open(k, entry->source, &file, &e);
        keys_keep_fault(faults, &e);
        if (e.status != DELTAFS_OK || entry->is_absent)
            keys_miss(k, entry);
    }
}

/* What the directory has of the key, as hits in order; freed by the caller. There may be some although *e is an error:
 * then tables whose part of it cannot be read are absent. */
static void keys_look_up(deltafs_fileindex *k, uint64_t key, const struct deltafs_range *range,
                         const struct deltafs_range *sequences, struct hit **hits, size_t *count, struct error *e)
{
    deltafs_records *records = NULL;
    int status = deltafs_get(k->dir, key, sequences, &records);

    if (status != DELTAFS_ERR_NOT_FOUND)
        error_of_call(status, e);
    for (size_t i = 0; !records && e->status != DELTAFS_OK && i < k->entry_count; i++)
        k->entry[i].is_absent = 1;
    if (!records)
        return;
    for (size_t i = 0; i < records->missing_count; i++) {
        struct keys_entry *entry = keys_entry_of(k, records->missing[i]);
        if (entry)
            entry->is_absent = 1;
    }
    *hits = malloc((records->count + 1) * sizeof **hits);
    if (!*hits)
        error_no_memory(e, records->count * sizeof **hits, "rows");
    for (size_t i = 0; i < records->count && *hits; i++) {
        const struct deltafs_record *r = &records->record[i];
        struct keys_entry *entry = keys_entry_of(k, r->label);
        if (entry && keys_entry_is_in(entry, range) && !entry->is_lost)
            (*hits)[(*count)++] = (struct hit){entry, get_u32(r->value)};
    }
    deltafs_records_destroy(records);
    if (*hits)
        qsort(*hits, *count, sizeof **hits, compare_hits);
}

int deltafs_fileindex_get(deltafs_fileindex *k, uint64_t key, const struct deltafs_range *range, deltafs_row_fn fn,
                          void *arg, int *stopped)
{
    struct deltafs_range sequences = {0, 0};
    struct keys_faults faults = {{0}, 0};
    struct error e = {0};
    struct hit *hit = NULL;
    size_t n = 0;
    int stop = 0;

    if (!k || !fn)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_fileindex_get: the handle and fn must be given");
    keys_check_any(k, &faults.first);
    k->missing_count = 0;
    for (size_t i = 0; i < k->entry_count; i++)
        k->entry[i].is_absent = 0;
    if (keys_sequences(k, range, &sequences))
        keys_look_up(k, key, range, &sequences, &hit, &n, &e);
    keys_keep_fault(&faults, &e);
    for (size_t i = 0, end; i < n && stop == 0; i = end) {
        for (end = i + 1; end < n && compare_hits(&hit[i], &hit[end]) == 0;)
            end++;
        if (group_hand_out(k, hit[i].entry, hit[i].group, end - i, key, fn, arg, &stop, &e) != DELTAFS_OK)
            keys_keep_fault(&faults, &e);
    }
    free(hit);
    if (stopped)
        *stopped = stop;
    if (stop != 0)
        return DELTAFS_OK;
    keys_check(k, range, &faults);
    struct error *first = &faults.first;
    if (first->status == DELTAFS_OK && n == 0)
        error_set(first, DELTAFS_ERR_NOT_FOUND, "%s: no row has the key %" PRIu64, k->place.path, key);
    return keys_end(&faults);
}

int deltafs_fileindex_missing(const deltafs_fileindex *k, const uint64_t **label, size_t *count)
{
    if (!k || !label || !count)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_fileindex_missing: the handle, label and count must be given");
    *label = (const uint64_t *)(const void *)k->missing.bytes;
    *count = k->missing_count;
    return DELTAFS_OK;
}

/* ---- What there is ---- */

int deltafs_fileindex_io_stat(const deltafs_fileindex *k, struct deltafs_io_stat *out)
{
    struct deltafs_io_stat all = {.struct_size = sizeof all}, own;

    if (!k || !out)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_fileindex_io_stat: the handle and out must be given");
    deltafs_io_stat(k->dir, &all);
    io_stat(&k->io, &own);
    all.reads += own.reads + k->closed.reads;
    all.bytes_read += own.bytes_read + k->closed.bytes_read;
    for (size_t i = 0; i < k->sources.count; i++)
        if (k->source[i].is_open)
            key_file_io_stat(&k->source[i].file, &all);
    return sized_fill(out, &all, sizeof all, "deltafs_fileindex_io_stat", deltafs_private_thread_error());
}

int deltafs_fileindex_table(deltafs_fileindex *k, size_t i, struct deltafs_table_stat *out)
{
    struct error *e = deltafs_private_thread_error();

    if (!k || !out)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_fileindex_table: the handle and out must be given");
    if (i >= k->entry_count)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_fileindex_table: no table number %zu; there are %zu", i,
                         k->entry_count);
    const struct keys_entry *entry = &k->entry[i];
    const struct deltafs_table *t = &entry->table->table;
    const struct deltafs_table_stat s = {.path = k->source[entry->source].path,
                                         .kind = k->sources.source[entry->source].identity.kind,
                                         .table = t->name,
                                         .label = t->label,
                                         .rows = t->rows,
                                         .key = t->column[t->key].name,
                                         .schema = entry->table->schema};
    return sized_fill(out, &s, sizeof s, "deltafs_fileindex_table", e);
}
