/* Verifying an index: its directory, that its sources are as they were indexed, and that each row of them stands in
 * the index under its key, once. The keys of a source are read in windows, each of which is one scan of its epoch. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "fileindex/fileindex_lookup.h"
#include "repair/repair_parts.h"

#define WINDOW_ROWS (UINT64_C(4) << 20)

struct keys_verify {
    deltafs_fileindex *keys;
    struct damages damages;
    uint64_t rows;
    /* Of the table at hand: */
    const struct keys_entry *entry;
    uint32_t group;
    uint64_t from, end; /* rows of the window, which are whole groups */
    uint64_t *key;
    uint8_t *is_seen;
    int is_wrong; /* and it has been said */
};

/* A damage of the directory. */
static void verify_passed_on(int status, const char *message, void *arg)
{
    struct error e;

    error_set(&e, status, "%s", message);
    damages_add(arg, &e);
}

static int verify_record(const struct deltafs_record *record, void *arg)
{
    struct keys_verify *v = arg;
    uint64_t rows = v->entry->table->table.rows, from = (uint64_t)get_u32(record->value) * v->group;
    struct error e;

    if (v->is_wrong || (from < rows && (from < v->from || from >= v->end)))
        return 0;
    uint64_t end = from < rows && rows - from < v->group ? rows : from + v->group;
    uint64_t row = from < rows ? from : end;
    /* A row of the group that has the key, and was not seen yet. */
    while (row < end && (v->is_seen[row - v->from] || v->key[row - v->from] != record->key))
        row++;
    if (row == end) {
        error_set(&e, DELTAFS_ERR_DAMAGED,
                  "%s: key %" PRIu64 " expected in one of %u rows from %" PRIu64
                  " of %s, but not found; run deltafs-mpi index --again on that file",
                  v->keys->place.path, record->key, v->group, from, v->keys->source[v->entry->source].path);
        damages_add(&v->damages, &e);
        v->is_wrong = 1;
        return 0;
    }
    v->is_seen[row - v->from] = 1;
    v->rows++;
    return 0;
}

static int verify_take(void *arg, uint64_t first, const uint64_t *key, size_t n, struct error *e)
{
    struct keys_verify *v = arg;

    (void)e;
    memcpy(v->key + (first - v->from), key, n * sizeof *key);
    return DELTAFS_OK;
}

static int verify_window(struct keys_verify *v, struct key_file *file, struct error *e)
{
    const struct deltafs_table *t = &v->entry->table->table;
    const struct deltafs_range sequence = {v->entry->table->sequence, v->entry->table->sequence};
    int status = key_column_scan(file, &t->column[t->key], v->from, v->end, v->keys->source[v->entry->source].path,
                                 verify_take, v, e);

    if (status != DELTAFS_OK)
        return status;
    memset(v->is_seen, 0, (size_t)(v->end - v->from));
    status = deltafs_scan(v->keys->dir, &sequence, verify_record, v, NULL);
    if (v->damages.count == 0 && error_of_call(status, e) != DELTAFS_OK)
        return status;
    v->is_wrong |= status != DELTAFS_OK; /* deltafs_verify has reported it */
    for (uint64_t i = v->from; i < v->end && !v->is_wrong; i++)
        if (!v->is_seen[i - v->from] && !source_table_is_padding(v->entry->table, v->key[i - v->from])) {
            v->is_wrong = 1;
            return error_set(e, DELTAFS_ERR_DAMAGED,
                             "%s: lacks the key %" PRIu64 " of row %" PRIu64
                             " of %s; run deltafs-mpi index --again on that file",
                             v->keys->place.path, v->key[i - v->from], i, v->keys->source[v->entry->source].path);
        }
    return DELTAFS_OK;
}

static int verify_table(struct keys_verify *v, struct error *e)
{
    struct key_file *file;
    uint64_t rows = v->entry->table->table.rows, room = rows < WINDOW_ROWS ? rows : WINDOW_ROWS;
    int status = v->entry->is_lost ? keys_entry_lost(v->keys, v->entry, e)
                                   : keys_source_open(v->keys, v->entry->source, &file, e);

    if (status != DELTAFS_OK)
        return status;
    v->key = malloc((size_t)(room + 1) * sizeof *v->key);
    v->is_seen = malloc((size_t)room + 1);
    if (!v->key || !v->is_seen)
        status = error_no_memory(e, (size_t)room * sizeof *v->key, "keys");
    v->is_wrong = 0;
    v->group = source_table_group(v->entry->table);
    for (v->from = 0; v->from < rows && status == DELTAFS_OK && !v->is_wrong; v->from = v->end) {
        v->end = rows - v->from < room ? rows : v->from + room;
        status = verify_window(v, file, e);
    }
    free(v->key);
    free(v->is_seen);
    return status;
}

/* A file that cannot be used is one fault, however many tables are in it. */
static void verify_entry(struct keys_verify *v, const struct keys_entry *entry)
{
    struct keys_source *s = &v->keys->source[entry->source];
    struct error e = {0};

    v->entry = entry;
    if (s->is_reported && !entry->is_lost)
        return;
    damages_of(&v->damages, verify_table(v, &e), &e);
    s->is_reported = s->error.status != DELTAFS_OK;
}

int deltafs_fileindex_verify(deltafs_fileindex *k, deltafs_damage_fn fn, void *arg, struct deltafs_verify_counts *out)
{
    struct keys_verify v = {.keys = k, .damages = {.fn = fn, .arg = arg}};
    struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
    struct error e = {0};

    if (!k)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_fileindex_verify: the handle must be given");
    int status = deltafs_verify(k->dir, verify_passed_on, &v.damages, &counts);
    if (status != DELTAFS_OK && v.damages.count == 0)
        verify_passed_on(status, deltafs_errmsg(NULL), &v.damages);
    for (size_t i = 0; i < k->sources.count; i++)
        k->source[i].is_reported = 0;
    for (size_t i = 0; i < k->entry_count; i++)
        verify_entry(&v, &k->entry[i]);
    damages_of(&v.damages, keys_check_any(k, &e), &e);
    damages_of(&v.damages, k->lines.status, &k->lines);
    counts.records = v.rows;
    return damages_end(&v.damages, &counts, out, "deltafs_fileindex_verify", deltafs_private_thread_error());
}
