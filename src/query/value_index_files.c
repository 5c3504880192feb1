/* Making value indexes of indexes of files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/hash.h"
#include "base/options.h"
#include "directory/dir.h"
#include "query/select_eval.h"
#include "query/value_index.h"

/* One index that is being made. */
struct making {
    struct value_index_maker *maker;
    deltafs_fileindex *files;
    const char *path; /* of it */
    struct value_request request;
    struct value_index_state state; /* of the index that there is */
    struct expr *value;
    char *schema; /* of the carried columns; NULL: no table is known that can be indexed */
    char *own;    /* of the index */
    deltafs_dir *index;
    /* The table at hand: */
    size_t table;
    uint64_t sequence, records, rows, print;
    int is_usable; /* it has all columns */
    struct manifest manifest;
    struct select_plan plan; /* of its rows: the columns to carry, by the value */
    struct eval eval;
    uint64_t row[BATCH]; /* of the batch */
    struct buffer values;
    struct error error; /* of a row */
};

/* ---- A table ---- */

static void table_end(struct making *m)
{
    eval_fini(&m->eval);
    select_plan_fini(&m->plan);
    m->eval = (struct eval){0};
    m->plan = (struct select_plan){0};
    m->is_usable = 0;
}

/* Find the columns. DELTAFS_ERR_INVALID: it lacks some. */
static int table_bind(struct making *m, const struct deltafs_table_stat *t, struct error *e)
{
    const struct deltafs_select_options o = {.fields = m->request.fields, .by = m->request.value, .top = 1};

    m->manifest = (struct manifest){.schema = (char *)t->schema, .keys = KEYS_U64, .partitioner = PARTITIONER_HASH};
    int status = select_plan_make(&m->plan, &m->manifest, &o, e);
    if (status == DELTAFS_OK && !m->plan.schema)
        status = error_set(e, DELTAFS_ERR_INVALID, "%s: its rows have no columns besides the key", t->path);
    if (status != DELTAFS_OK)
        return status;
    m->manifest.value_size = (int64_t)deltafs_schema_size(m->plan.schema);
    status = eval_init(&m->eval, &m->plan, e);
    return status == DELTAFS_OK ? eval_bind(&m->eval, t->label, e) : status;
}

/* Table number `i` in the order in which they were indexed. One that has not all columns is not indexed; *why gets what
 * it lacks. To be ended with table_end, also after an error. */
static int table_begin(struct making *m, size_t i, struct error *why, struct error *e)
{
    struct deltafs_table_stat t = {.struct_size = sizeof t};

    m->table = fileindex_table_indexed(m->files, i);
    int status = error_of_call(deltafs_fileindex_table(m->files, m->table, &t), e);
    if (status != DELTAFS_OK)
        return status;
    m->rows = t.rows;
    status = fileindex_table_epoch(m->files, m->table, &m->sequence, &m->records) ? table_bind(m, &t, why)
                                                                                  : DELTAFS_ERR_NOT_FOUND;
    if (status == DELTAFS_ERR_MEMORY) {
        *e = *why;
        return status;
    }
    const char *schema = status == DELTAFS_OK ? (const char *)m->plan.text.bytes : NULL;
    if (schema && !m->schema && !(m->schema = strdup(schema)))
        return error_no_memory(e, strlen(schema), "a schema");
    m->is_usable = schema && strcmp(schema, m->schema) == 0;
    if (m->is_usable)
        m->print = fileindex_table_print(m->files, m->table, expr_fingerprint(m->eval.by.expr));
    return DELTAFS_OK;
}

/* Bytes of the values of the index. */
static size_t table_size(const struct making *m)
{
    return 2 * sizeof(uint64_t) + select_plan_row_size(&m->plan);
}

/* ---- Rows ---- */

/* Append the records of the batch. */
static int rows_flush(struct making *m, struct error *e)
{
    struct batch *b = &m->eval.batch;
    const size_t n = b->n, size = table_size(m);
    double value[BATCH];
    uint64_t code[BATCH];
    int status = buffer_reserve(&m->values, n * size + 1, "an index", e);

    if (status != DELTAFS_OK || n == 0)
        return status;
    eval_by(&m->eval, value);
    value_index_codes(value, n, code);
    uint8_t *to = m->values.bytes;
    for (size_t i = 0; i < n; i++, to += size) {
        put_u64(to, m->row[i]);
        memcpy(to + sizeof(uint64_t), b->key + i * sizeof(uint64_t), sizeof(uint64_t));
        eval_put_row(&m->eval, i, to + 2 * sizeof(uint64_t));
    }
    b->n = 0;
    m->maker->records += n;
    return error_of_call(deltafs_append_many(m->index, n, code, sizeof *code, m->values.bytes, size, size), e);
}

/* A deltafs_row_fn. */
static int rows_add(const struct deltafs_row *row, void *making)
{
    struct making *m = making;
    const struct deltafs_record record = {.key = row->key, .label = row->label, .value = row->value, .size = row->size};

    m->row[m->eval.batch.n] = row->row;
    int status = batch_add(&m->eval.batch, &record, &m->error);
    if (status == DELTAFS_OK && batch_is_full(&m->eval.batch))
        status = rows_flush(m, &m->error);
    return status != DELTAFS_OK;
}

/* Index rows `from` to end - 1. */
static int rows_index(struct making *m, uint64_t from, uint64_t end, struct error *e)
{
    const size_t fields = deltafs_schema_count(m->plan.schema);
    struct table_part part = {.table = m->table, .from = from, .end = end, .count = fields};
    uint8_t *wanted = malloc(fields);
    int stopped = 0;

    if (!wanted)
        return error_no_memory(e, fields, "columns");
    for (size_t i = 0; i < fields; i++)
        wanted[i] = !m->eval.row.bytes || m->eval.row.bytes[deltafs_schema_field(m->plan.schema, i)->offset];
    part.wanted = wanted;
    m->eval.batch.n = 0;
    int status = fileindex_scan_part(m->files, &part, rows_add, m, &stopped, e);
    free(wanted);
    if (stopped) {
        *e = m->error;
        return e->status;
    }
    return status == DELTAFS_OK ? rows_flush(m, e) : status;
}

/* Collective: the rows of the table, each rank its part. The first epoch is placed by the first rows. */
static int rows_index_all(struct making *m, struct error *e)
{
    const struct collective *group = m->maker->ranks->group;
    const uint64_t end = m->rows * (group->rank + 1) / group->ranks;
    uint64_t at = m->rows * group->rank / group->ranks, room = 1, n;

    for (e->status = DELTAFS_OK; e->status == DELTAFS_OK && at < end && room > 0; at += n) {
        room = dir_hold_room(m->index, table_size(m));
        n = room < end - at ? room : end - at;
        if (n > 0)
            rows_index(m, at, at + n, e);
    }
    int status = collective_agree(group, e);
    if (status == DELTAFS_OK)
        status = dir_place(m->index, e);
    if (status == DELTAFS_OK && at < end)
        status = rows_index(m, at, end, e);
    e->status = status;
    return collective_agree(group, e);
}

/* Whether the table at hand is not to be indexed. */
static int making_passes(const struct making *m)
{
    return !m->is_usable || (m->state.has_epochs && m->sequence <= m->state.last);
}

/* Collective. */
static int making_table(struct making *m, size_t i, struct error *e)
{
    const struct collective *group = m->maker->ranks->group;
    struct error why = {.status = DELTAFS_OK};

    e->status = table_begin(m, i, &why, e);
    int status = collective_agree(group, e);
    if (status == DELTAFS_OK && !making_passes(m)) {
        status = rows_index_all(m, e);
        if (status == DELTAFS_OK)
            status = value_index_print(m->index, m->sequence, m->print, e);
        if (status == DELTAFS_OK)
            status = error_of_call(deltafs_epoch_end(m->index, m->sequence), e);
        m->maker->epochs += status == DELTAFS_OK;
    }
    table_end(m);
    return status;
}

/* ---- The index ---- */

/* Find the columns to carry: those of the first table that has them. */
static int making_find(struct making *m, struct error *e)
{
    struct error why = {.status = DELTAFS_OK};
    int status = DELTAFS_OK;

    for (size_t i = 0; i < fileindex_tables(m->files) && !m->schema && status == DELTAFS_OK; i++) {
        status = table_begin(m, i, why.status == DELTAFS_OK ? &why : error_ignored(), e);
        table_end(m);
    }
    if (status == DELTAFS_OK && !m->schema && why.status != DELTAFS_OK) {
        *e = why;
        status = e->status;
    } else if (status == DELTAFS_OK && !m->schema) {
        status = error_set(e, DELTAFS_ERR_CHANGED, "%s: no file is indexed here that can be indexed by value", m->path);
    }
    return status == DELTAFS_OK ? value_index_schema(1, m->schema, &m->own, e) : status;
}

/* By rank 0: the index is to be rebuilt if it lacks a table that is before its last one, which cannot be added, or if
 * it has more rows of tables that are replaced than of others. */
static int making_compare(struct making *m, const char *path, int *is_useless, struct error *e)
{
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    struct error why;
    uint64_t used = 0, replaced = 0, number = 0;
    int is_missing = 0, status = DELTAFS_OK;
    deltafs_dir *d;

    if (!m->state.has_epochs || deltafs_open(path, NULL, &d) != DELTAFS_OK)
        return DELTAFS_OK;
    for (size_t i = 0; i < fileindex_tables(m->files) && status == DELTAFS_OK; i++) {
        status = table_begin(m, i, &why, e);
        for (; deltafs_epoch_stat(d, number, &epoch) == DELTAFS_OK && epoch.label < m->sequence; number++)
            replaced += epoch.records;
        int is_there = m->is_usable && value_index_has(d, &epoch, m->sequence, m->records, m->print);
        is_missing |= m->is_usable && m->sequence <= m->state.last && !is_there;
        used += is_there ? epoch.records : 0;
        number += epoch.label == m->sequence;
        table_end(m);
    }
    for (; deltafs_epoch_stat(d, number, &epoch) == DELTAFS_OK; number++)
        replaced += epoch.records;
    deltafs_close(d);
    *is_useless = is_missing || replaced > used;
    return status;
}

/* By rank 0: nothing is removed, and no table is indexed, before all files that will be read are as they were indexed.
 * Otherwise tables behind the first that cannot be read would be missing. */
static int making_check(struct making *m, struct error *e)
{
    struct error why;
    int status = DELTAFS_OK;

    for (size_t i = 0; i < fileindex_tables(m->files) && status == DELTAFS_OK; i++) {
        status = table_begin(m, i, &why, e);
        if (status == DELTAFS_OK && !making_passes(m))
            status = fileindex_check_table(m->files, m->table, e);
        table_end(m);
    }
    return status;
}

/* By rank 0: find the index that there is, and remove one that is to be rebuilt. */
static int making_begin(struct making *m, struct error *e)
{
    char path[PATH_ROOM];
    int is_useless = 0, status = value_index_look(m->path, &m->request, m->own, &m->state, e);

    io_path_in(path, m->path, "%s/%s", VALUE_INDEX_FOLDER, m->request.name);
    if (status == DELTAFS_OK)
        status = making_compare(m, path, &is_useless, e);
    if (is_useless)
        m->state.is_made = m->state.has_epochs = 0;
    if (status == DELTAFS_OK)
        status = making_check(m, e);
    return status == DELTAFS_OK && is_useless ? dir_remove_own(path, m->state.options, e) : status;
}

/* What must be the same on all ranks. */
static uint64_t making_tables(const struct making *m)
{
    uint64_t hash = fileindex_tables(m->files), sequence, records;

    for (size_t i = 0; i < fileindex_tables(m->files); i++) {
        fileindex_table_epoch(m->files, i, &sequence, &records);
        hash = hash_key(hash + fileindex_table_print(m->files, i, sequence));
    }
    return hash;
}

/* Find out what there is. */
static int making_look(struct making *m, struct error *e)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    int status = fileindex_check(m->files, e);

    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_stat(fileindex_dir(m->files), &stat), e);
    if (status == DELTAFS_OK)
        memcpy(m->state.made_of, stat.uuid, sizeof m->state.made_of);
    if (status == DELTAFS_OK)
        status = expr_parse(m->request.value, &m->value, e);
    if (status == DELTAFS_OK)
        status = making_find(m, e);
    return status == DELTAFS_OK && m->maker->ranks->group->rank == 0 ? making_begin(m, e) : status;
}

/* Collective. */
static int making_open(struct making *m, struct error *e)
{
    const struct value_index_ranks *ranks = m->maker->ranks;
    deltafs_options *o = NULL;
    int status = value_index_options(m->maker->options, &o, e);

    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_options_set(o, "schema", m->own), e);
    e->status = status;
    status = collective_agree(ranks->group, e);
    if (status == DELTAFS_OK)
        status = value_index_open(ranks, m->path, &m->request, &m->state, o, &m->index, e);
    deltafs_options_destroy(o);
    return status;
}

/* Collective. */
static int making_all(struct making *m, int opened, const char *text, struct error *e)
{
    const struct collective *group = m->maker->ranks->group;

    e->status =
        opened == DELTAFS_OK ? value_request_take(&m->request, text, strlen(text), e) : error_of_call(opened, e);
    if (e->status == DELTAFS_OK) {
        m->path = fileindex_path(m->files);
        e->status = making_look(m, e);
    }
    int status = collective_agree(group, e);
    if (status == DELTAFS_OK)
        status = value_index_agree_on(group, m->path, making_tables(m), e);
    if (status == DELTAFS_OK)
        status = value_index_agree(group, &m->state, e);
    if (status == DELTAFS_OK)
        status = making_open(m, e);
    for (size_t i = 0; status == DELTAFS_OK && i < fileindex_tables(m->files); i++)
        status = making_table(m, i, e);
    return status;
}

int value_index_make_of_files(struct value_index_maker *maker, deltafs_fileindex *files, int opened, const char *text,
                              struct error *e)
{
    struct making m = {.maker = maker, .files = files, .state.options = maker->options};
    int status = making_all(&m, opened, text, e);

    if (m.index) {
        struct error closing = {.status = DELTAFS_OK};
        int closed = error_of_call(deltafs_close(m.index), &closing);
        if (status == DELTAFS_OK && closed != DELTAFS_OK)
            *e = closing;
        status = error_first(status, closed);
    }
    expr_destroy(m.value);
    free(m.schema);
    free(m.own);
    value_request_fini(&m.request);
    buffer_fini(&m.values);
    return status;
}
