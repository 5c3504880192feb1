/* Making value indexes of directories. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/options.h"
#include "directory/dir.h"
#include "directory/read/reader.h"
#include "query/value_index.h"

/* One index that is being made. */
struct making {
    struct value_index_maker *maker;
    const char *path;
    struct value_request request;
    struct value_index_state state; /* of the index that there is */
    deltafs_dir *source, *index;
    struct reader *reader; /* of `source` */
    struct expr *value;
    deltafs_schema *schema; /* of the source */
    char *own;              /* the schema of the index */
    struct buffer keys, values;
};

/* ---- The computed column ---- */

/* By one rank: the expression has the name of the index. */
static int making_define(const struct making *m, struct error *e)
{
    const struct value_request *r = &m->request;
    struct deltafs_attribute a = {.struct_size = sizeof a};
    deltafs_dir *d;
    int status = error_of_call(deltafs_open(m->path, m->maker->options, &d), e);

    if (status != DELTAFS_OK)
        return status;
    int has = deltafs_attribute_get(d, r->name, UINT64_MAX, &a) == DELTAFS_OK;
    if (has && (a.type != DELTAFS_ATTRIBUTE_EXPRESSION || strcmp(a.value, r->value) != 0))
        status =
            error_set(e, DELTAFS_ERR_INVALID,
                      "%s: '%s' is an attribute already, with another value; choose another name for the index, or "
                      "remove it: deltafs attr %s %s=",
                      m->path, r->name, m->path, r->name);
    deltafs_close(d);
    if (status != DELTAFS_OK || has)
        return status;
    a = (struct deltafs_attribute){
        .struct_size = sizeof a, .name = r->name, .type = DELTAFS_ATTRIBUTE_EXPRESSION, .value = r->value};
    return error_of_call(deltafs_attribute_set_closed(m->path, &a), e);
}

/* ---- Opening ---- */

static int making_open_source(struct making *m, struct error *e)
{
    static const char call[] = "deltafs_mpi_index_by";
    int status = error_of_call(deltafs_open(m->path, m->maker->options, &m->source), e);

    if (status == DELTAFS_OK)
        status = error_of_call(dir_reader(m->source, call, NULL, &m->reader, &(struct error *){NULL}), e);
    if (status != DELTAFS_OK)
        return status;
    const struct manifest *of = &m->reader->manifest;
    memcpy(m->state.made_of, of->uuid_text, sizeof of->uuid_text);
    if (of->keys == KEYS_BYTES)
        return error_set(e, DELTAFS_ERR_MODE, "%s: its keys are bytes; an index by value needs numbers", m->path);
    if (of->schema[0] == '\0')
        return error_set(e, DELTAFS_ERR_MODE, "%s: has no schema, so there are no columns to index", m->path);
    if (error_of_call(deltafs_schema_parse(of->schema, &m->schema), e) != DELTAFS_OK)
        return e->status;
    return expr_parse(m->request.value, &m->value, e);
}

static int making_schema(struct making *m, struct error *e)
{
    deltafs_columns *columns = NULL;
    int status = DELTAFS_OK;

    if (m->request.fields[0] != '\0')
        status = error_of_call(deltafs_columns_open(m->source, m->request.fields, &columns), e);
    if (status == DELTAFS_OK)
        status = value_index_schema(0, columns ? deltafs_columns_schema(columns) : "", &m->own, e);
    deltafs_columns_close(columns);
    return status;
}

/* Collective. */
static int making_open_index(struct making *m, struct error *e)
{
    const struct value_index_maker *maker = m->maker;
    deltafs_options *o = NULL;
    int status = value_index_options(maker->options, &o, e);

    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_options_set(o, "schema", m->own), e);
    e->status = status;
    status = collective_agree(maker->ranks->group, e);
    if (status == DELTAFS_OK)
        status = value_index_open(maker->ranks, m->path, &m->request, &m->state, o, &m->index, e);
    deltafs_options_destroy(o);
    return status;
}

/* ---- Epochs ---- */

/* Bytes of the values of the index, of rows that begin with the value. */
static size_t making_size(const struct deltafs_record *row)
{
    return sizeof(uint64_t) + row->size - sizeof(double);
}

/* The records of rows that begin with the value. */
static int making_append(struct making *m, const struct deltafs_record *row, size_t n, struct error *e)
{
    size_t size = making_size(row), carried = size - sizeof(uint64_t);
    int status = buffer_reserve(&m->keys, n * sizeof(uint64_t), "an index", e);

    if (status == DELTAFS_OK)
        status = buffer_reserve(&m->values, n * size, "an index", e);
    if (status != DELTAFS_OK)
        return status;
    uint64_t *key = (uint64_t *)(void *)m->keys.bytes;
    uint8_t *to = m->values.bytes;
    for (size_t i = 0; i < n; i++, to += size) {
        uint64_t bits = get_u64(row[i].value);
        double value;
        memcpy(&value, &bits, sizeof value);
        key[i] = value_index_code(value);
        put_u64(to, row[i].key);
        memcpy(to + sizeof(uint64_t), (const uint8_t *)row[i].value + sizeof value, carried);
    }
    m->maker->records += n;
    return error_of_call(deltafs_append_many(m->index, n, key, sizeof *key, m->values.bytes, size, size), e);
}

/* This rank's part of an epoch. */
static int making_open_part(const struct making *m, uint64_t label, deltafs_select **rows, struct error *e)
{
    const struct collective *group = m->maker->ranks->group;
    const struct deltafs_range range = {label, label};
    char *fields = malloc(strlen(m->request.name) + strlen(m->request.fields) + 2);
    struct deltafs_select_options o = {
        .struct_size = sizeof o, .fields = fields, .range = &range, .part = group->rank, .parts = group->ranks};

    if (!fields)
        return error_no_memory(e, strlen(m->request.fields), "an index");
    sprintf(fields, "%s%s%s", m->request.name, m->request.fields[0] ? "," : "", m->request.fields);
    int status = error_of_call(deltafs_select_open(m->source, &o, rows), e);
    free(fields);
    return status;
}

/* Collective: the records of an epoch, each rank its part. The first epoch is placed by the first records. */
static int making_records(struct making *m, uint64_t label, struct error *e)
{
    const struct deltafs_record *row = NULL;
    deltafs_select *rows = NULL;
    size_t n = 0, at = 0, some = 1;

    e->status = making_open_part(m, label, &rows, e);
    while (e->status == DELTAFS_OK && at == n && some > 0) {
        e->status = error_of_call(deltafs_select_next(rows, &row, &n), e);
        some = e->status == DELTAFS_OK && n > 0 ? dir_hold_room(m->index, making_size(row)) : 0;
        at = some < n ? some : n;
        if (at > 0)
            e->status = making_append(m, row, at, e);
    }
    int status = collective_agree(m->maker->ranks->group, e);
    if (status == DELTAFS_OK)
        status = dir_place(m->index, e);
    for (; status == DELTAFS_OK && n > 0; at = 0) {
        if (at < n)
            status = making_append(m, row + at, n - at, e);
        if (status == DELTAFS_OK)
            status = error_of_call(deltafs_select_next(rows, &row, &n), e);
    }
    deltafs_select_close(rows);
    e->status = status;
    return collective_agree(m->maker->ranks->group, e);
}

/* What this rank sees of an epoch: the fingerprint, if its column NAME computes what the request says. Where it does
 * not, or the expression cannot be used, there is nothing to index. */
static int making_see(struct making *m, uint64_t label, uint64_t *print, uint64_t *is_usable, struct error *e)
{
    char text[NAME_MAX + 3];
    const struct manifest *of = &m->reader->manifest;
    struct expr *column = NULL;
    uint64_t computed = 0;

    *print = *is_usable = 0;
    snprintf(text, sizeof text, "`%s`", m->request.name);
    int status = expr_parse(text, &column, e);
    if (status == DELTAFS_OK)
        status = value_index_fingerprint(of, m->schema, m->value, label, print, e);
    if (status == DELTAFS_OK)
        status = value_index_fingerprint(of, m->schema, column, label, &computed, e);
    expr_destroy(column);
    *is_usable = status == DELTAFS_OK && computed == *print;
    return status == DELTAFS_ERR_MEMORY ? status : DELTAFS_OK;
}

/* By rank 0: an epoch that is missing before the last one of the index, since a job did not write it, cannot be added:
 * then the whole index is rebuilt. So it is if an attribute that the expression names has changed since. */
static int making_discard(struct making *m, struct error *e)
{
    const struct manifest *of = &m->reader->manifest;
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    char path[PATH_ROOM];
    uint64_t print, is_usable, number = 0;
    int is_missing = 0, status = DELTAFS_OK;
    deltafs_dir *d;

    io_path_in(path, m->path, "%s/%s", VALUE_INDEX_FOLDER, m->request.name);
    if (!m->state.has_epochs || deltafs_open(path, NULL, &d) != DELTAFS_OK)
        return DELTAFS_OK;
    for (size_t i = 0; i < of->epoch_count && of->epoch[i].label <= m->state.last && status == DELTAFS_OK; i++) {
        while (deltafs_epoch_stat(d, number, &epoch) == DELTAFS_OK && epoch.label < of->epoch[i].label)
            number++;
        status = making_see(m, of->epoch[i].label, &print, &is_usable, e);
        is_missing |= is_usable && !value_index_has(d, &epoch, of->epoch[i].label, of->epoch[i].records, print);
    }
    deltafs_close(d);
    if (status != DELTAFS_OK || !is_missing)
        return status;
    m->state.is_made = m->state.has_epochs = 0;
    return dir_remove_own(path, m->state.options, e);
}

/* Collective. */
static int making_epoch(struct making *m, uint64_t label, struct error *e)
{
    const struct collective *group = m->maker->ranks->group;
    uint64_t print, is_usable;

    e->status = making_see(m, label, &print, &is_usable, e);
    int status = collective_agree(group, e);
    if (status == DELTAFS_OK)
        status = value_index_agree_on(group, m->path, is_usable ? print : 0, e);
    if (status != DELTAFS_OK || !is_usable)
        return status;
    status = making_records(m, label, e);
    if (status == DELTAFS_OK)
        status = value_index_print(m->index, label, print, e);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_epoch_end(m->index, label), e);
    m->maker->epochs += status == DELTAFS_OK;
    return status;
}

/* ---- All ---- */

/* Collective. */
static int making_begin(struct making *m, const char *text, struct error *e)
{
    const struct collective *group = m->maker->ranks->group;
    int status = value_request_take(&m->request, text, strlen(text), e);

    if (status == DELTAFS_OK && group->rank == 0)
        status = making_define(m, e);
    e->status = status;
    status = collective_agree(group, e);
    if (status == DELTAFS_OK) {
        e->status = making_open_source(m, e);
        if (e->status == DELTAFS_OK)
            e->status = making_schema(m, e);
        if (e->status == DELTAFS_OK && group->rank == 0)
            e->status = value_index_look(m->path, &m->request, m->own, &m->state, e);
        if (e->status == DELTAFS_OK && group->rank == 0)
            e->status = making_discard(m, e);
        status = collective_agree(group, e);
    }
    if (status == DELTAFS_OK)
        status = value_index_agree(group, &m->state, e);
    return status == DELTAFS_OK ? making_open_index(m, e) : status;
}

static int making_epochs(struct making *m, struct error *e)
{
    const struct manifest *of = &m->reader->manifest;
    int status = value_index_agree_on(m->maker->ranks->group, m->path, of->epoch_count, e);

    for (size_t i = 0; i < of->epoch_count && status == DELTAFS_OK; i++)
        if (!m->state.has_epochs || of->epoch[i].label > m->state.last)
            status = making_epoch(m, of->epoch[i].label, e);
    return status;
}

static int make_of_directory(struct value_index_maker *maker, const char *path, const char *text, struct error *e)
{
    struct making m = {.maker = maker, .path = path, .state.options = maker->options};
    int status = making_begin(&m, text, e);

    if (status == DELTAFS_OK)
        status = making_epochs(&m, e);
    if (m.index) {
        struct error closing = {.status = DELTAFS_OK};
        int closed = error_of_call(deltafs_close(m.index), &closing);
        if (status == DELTAFS_OK && closed != DELTAFS_OK)
            *e = closing;
        status = error_first(status, closed);
    }
    deltafs_close(m.source);
    expr_destroy(m.value);
    deltafs_schema_destroy(m.schema);
    free(m.own);
    value_request_fini(&m.request);
    buffer_fini(&m.keys);
    buffer_fini(&m.values);
    return status;
}

int deltafs_private_value_index_make(struct value_index_maker *maker, const char *path, const char *text,
                                     struct error *e)
{
    const struct collective *group = maker->ranks->group;
    deltafs_fileindex *files = NULL;
    int opened = deltafs_fileindex_open(path, maker->options, &files);
    uint64_t has_files = opened != DELTAFS_ERR_NOT_FOUND;
    int status = value_index_agree_on(group, path, has_files, e);

    if (status == DELTAFS_OK)
        status = has_files ? value_index_make_of_files(maker, files, opened, text, e)
                           : make_of_directory(maker, path, text, e);
    deltafs_fileindex_close(files);
    return status;
}
