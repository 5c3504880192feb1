#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "query/select_files.h"
#include "query/value_index.h"

#define UNIT_ROWS (UINT64_C(1) << 20) /* that a thread reads in one go; more, if there were more shares than */
#define UNITS_MAX (1 << 16)

/* ---- Columns ---- */

static int table_stat(const struct select_files *f, size_t i, struct deltafs_table_stat *out, struct error *e)
{
    *out = (struct deltafs_table_stat){.struct_size = sizeof *out};
    return error_of_call(deltafs_fileindex_table(f->index, i, out), e);
}

static int table_schema(const struct deltafs_table_stat *t, deltafs_schema **out, struct error *e)
{
    return error_of_call(deltafs_schema_parse(t->schema, out), e);
}

static const struct deltafs_field *find_field(const deltafs_schema *schema, const char *name, size_t *number)
{
    for (size_t i = 0; i < deltafs_schema_count(schema); i++)
        if (strcmp(deltafs_schema_field(schema, i)->name, name) == 0) {
            *number = i;
            return deltafs_schema_field(schema, i);
        }
    return NULL;
}

/* The fields of `text` that the schema has, too, as a text that the caller frees. */
static int common_fields(const char *text, const deltafs_schema *schema, char **out, struct error *e)
{
    deltafs_schema *all = NULL;
    size_t number, at = 0;
    char *common = calloc(strlen(text) + 1, 1);
    int status = common ? DELTAFS_OK : error_no_memory(e, strlen(text), "a schema");

    if (status == DELTAFS_OK && *text)
        status = error_of_call(deltafs_schema_parse(text, &all), e);
    for (size_t i = 0; status == DELTAFS_OK && *text && i < deltafs_schema_count(all); i++) {
        const struct deltafs_field *x = deltafs_schema_field(all, i), *y = find_field(schema, x->name, &number);
        if (y && y->kind == x->kind && y->size == x->size)
            at += (size_t)sprintf(common + at, "%s%s:%c%u", at > 0 ? "," : "", x->name, x->kind, x->size);
    }
    deltafs_schema_destroy(all);
    *out = common;
    return status;
}

/* Of the tables `from` to end - 1: the columns that all have. *other: one that has not the same as the first. */
static int files_columns(struct select_files *f, size_t from, size_t end, size_t *other, struct error *e)
{
    struct deltafs_table_stat first, t;
    deltafs_schema *schema;
    char *common;
    int status = table_stat(f, from, &first, e);

    f->manifest.schema = status == DELTAFS_OK ? strdup(first.schema) : NULL;
    if (status == DELTAFS_OK && !f->manifest.schema)
        status = error_no_memory(e, strlen(first.schema), "a schema");
    for (size_t i = from + 1; i < end && status == DELTAFS_OK; i++) {
        status = table_stat(f, i, &t, e);
        if (status != DELTAFS_OK || strcmp(t.schema, first.schema) == 0)
            continue;
        *other = i;
        status = table_schema(&t, &schema, e);
        if (status != DELTAFS_OK)
            return status;
        status = common_fields(f->manifest.schema, schema, &common, e);
        deltafs_schema_destroy(schema);
        free(status == DELTAFS_OK ? f->manifest.schema : common);
        f->manifest.schema = status == DELTAFS_OK ? common : f->manifest.schema;
    }
    return status;
}

static int files_differ(const struct select_files *f, size_t a, size_t b, struct error *e)
{
    struct deltafs_table_stat x, y;
    int status = table_stat(f, a, &x, e);

    if (status == DELTAFS_OK)
        status = table_stat(f, b, &y, e);
    if (status != DELTAFS_OK)
        return status;
    return error_set(e, DELTAFS_ERR_INVALID,
                     "fields: must be given ('--fields' of a command), since %s%s%s (epoch %" PRIu64
                     ") has the columns "
                     "%s, and %s%s%s (epoch %" PRIu64 ") has %s",
                     x.path, *x.table ? " " : "", x.table, x.label, x.schema, y.path, *y.table ? " " : "", y.table,
                     y.label, y.schema);
}

/* Where the tables `from` to end - 1 have these columns. */
static int files_find(struct select_files *f, size_t from, size_t end, struct error *e)
{
    struct deltafs_table_stat t;
    deltafs_schema *common = NULL, *schema;
    int status = *f->manifest.schema ? error_of_call(deltafs_schema_parse(f->manifest.schema, &common), e) : DELTAFS_OK;

    f->fields = common ? deltafs_schema_count(common) : 0;
    f->manifest.value_size = common ? (int64_t)deltafs_schema_size(common) : 0;
    for (size_t i = from; i < end && status == DELTAFS_OK; i++) {
        f->table[i].field = calloc(f->fields + 1, sizeof(size_t));
        if (!f->table[i].field) {
            status = error_no_memory(e, f->fields * sizeof(size_t), "columns");
            break;
        }
        status = table_stat(f, i, &t, e);
        if (status == DELTAFS_OK)
            status = table_schema(&t, &schema, e);
        if (status != DELTAFS_OK)
            break;
        for (size_t k = 0; k < f->fields; k++)
            find_field(schema, deltafs_schema_field(common, k)->name, &f->table[i].field[k]);
        deltafs_schema_destroy(schema);
    }
    deltafs_schema_destroy(common);
    return status;
}

/* ---- Epochs ---- */

/* How many shares a table has: one, if it has no rows, since its file may have changed. */
static uint64_t table_units(const struct select_files *f, size_t i)
{
    return f->table[i].rows > 0 ? (f->table[i].rows - 1) / f->unit_rows + 1 : 1;
}

/* The largest number of shares of an epoch. */
static uint64_t files_units(const struct select_files *f)
{
    uint64_t most = 1;

    for (uint64_t k = 0; k < f->manifest.epoch_count; k++) {
        uint64_t units = 0;
        for (size_t i = f->first[k]; i < f->first[k + 1]; i++)
            units += table_units(f, i);
        most = units > most ? units : most;
    }
    return most;
}

static int files_list(struct select_files *f, struct error *e)
{
    struct manifest *m = &f->manifest;
    struct deltafs_table_stat t = {.struct_size = sizeof t};

    while (deltafs_fileindex_table(f->index, f->count, &t) == DELTAFS_OK)
        f->count++;
    f->table = calloc(f->count + 1, sizeof *f->table);
    f->first = calloc(f->count + 1, sizeof *f->first);
    m->epoch = calloc(f->count + 1, sizeof *m->epoch);
    if (!f->table || !f->first || !m->epoch)
        return error_no_memory(e, f->count * sizeof *m->epoch, "epochs");
    for (size_t i = 0; i < f->count && deltafs_fileindex_table(f->index, i, &t) == DELTAFS_OK; i++) {
        f->table[i].rows = t.rows;
        if (m->epoch_count == 0 || m->epoch[m->epoch_count - 1].label != t.label) {
            f->first[m->epoch_count] = i;
            m->epoch[m->epoch_count++].label = t.label;
        }
        m->epoch[m->epoch_count - 1].records += t.rows;
    }
    f->first[m->epoch_count] = f->count;
    for (f->unit_rows = UNIT_ROWS; files_units(f) > UNITS_MAX && f->unit_rows < UINT64_MAX / 2;)
        f->unit_rows *= 2;
    m->partitions = (uint32_t)files_units(f);
    return DELTAFS_OK;
}

void select_files_epochs(const struct select_files *f, const struct deltafs_range *range, uint32_t *first,
                         uint32_t *end)
{
    const struct manifest *m = &f->manifest;

    for (*first = 0; range && *first < m->epoch_count && m->epoch[*first].label < range->first;)
        ++*first;
    for (*end = *first; *end < m->epoch_count && (!range || m->epoch[*end].label <= range->last);)
        ++*end;
}

int select_files_part(const struct select_files *f, uint32_t epoch, uint32_t partition, struct table_part *out)
{
    uint64_t unit = partition;

    for (size_t i = f->first[epoch]; i < f->first[epoch + 1]; i++) {
        uint64_t units = table_units(f, i), rows = f->table[i].rows, from = unit * f->unit_rows;
        if (unit < units) {
            *out = (struct table_part){.table = i, .from = from, .count = f->fields, .field = f->table[i].field};
            out->end = rows - from < f->unit_rows ? rows : from + f->unit_rows;
            return 1;
        }
        unit -= units;
    }
    return 0;
}

/* ---- Indexes by value ---- */

int select_files_subject(const struct select_files *f, uint32_t epoch, size_t i, uint64_t *label, uint64_t *indexed,
                         uint64_t *records)
{
    struct deltafs_table_stat t;
    size_t table = f->first[epoch] + i;

    if (table_stat(f, table, &t, error_ignored()) != DELTAFS_OK)
        return 0;
    *label = t.label;
    return fileindex_table_epoch(f->index, table, indexed, records);
}

int select_files_print(const struct select_files *f, uint32_t epoch, size_t i, const struct expr *value, uint64_t *out)
{
    struct deltafs_table_stat t;
    deltafs_schema *schema = NULL;
    int status = table_stat(f, f->first[epoch] + i, &t, error_ignored());

    if (status == DELTAFS_OK)
        status = table_schema(&t, &schema, error_ignored());
    if (status == DELTAFS_OK)
        status = value_index_fingerprint(&f->manifest, schema, value, t.label, out, error_ignored());
    if (status == DELTAFS_OK)
        *out = fileindex_table_print(f->index, f->first[epoch] + i, *out);
    deltafs_schema_destroy(schema);
    return status == DELTAFS_OK;
}

/* ---- All ---- */

static int files_make(struct select_files *f, const struct deltafs_range *range, int all_fields, struct error *e)
{
    size_t from, end, other = 0;
    uint32_t first, last;
    int status = files_list(f, e);

    if (status != DELTAFS_OK)
        return status;
    select_files_epochs(f, range, &first, &last);
    /* If there is nothing to select from, the columns are those of all. */
    from = first < last ? f->first[first] : 0;
    end = first < last ? f->first[last] : f->count;
    if (from == end)
        f->manifest.schema = strdup("");
    else
        status = files_columns(f, from, end, &other, e);
    if (status == DELTAFS_OK && !f->manifest.schema)
        return error_no_memory(e, 1, "a schema");
    if (status == DELTAFS_OK && all_fields && other > 0)
        return files_differ(f, from, other, e);
    return status == DELTAFS_OK ? files_find(f, from, end, e) : status;
}

int select_files_create(deltafs_fileindex *index, const struct deltafs_range *range, int all_fields,
                        struct select_files **out, struct error *e)
{
    struct select_files *f = calloc(1, sizeof *f);

    if (!f)
        return error_no_memory(e, sizeof *f, "a select");
    f->index = index;
    f->manifest.keys = KEYS_U64;
    f->manifest.partitioner = PARTITIONER_HASH;
    int status = files_make(f, range, all_fields, e);
    if (status == DELTAFS_OK)
        *out = f;
    else
        select_files_destroy(f);
    return status;
}

void select_files_destroy(struct select_files *f)
{
    if (!f)
        return;
    for (size_t i = 0; f->table && i < f->count; i++)
        free(f->table[i].field);
    free(f->table);
    free(f->first);
    free(f->manifest.epoch);
    free(f->manifest.schema);
    free(f);
}
