#include <stdlib.h>
#include <string.h>
#include "directory/read/iter.h"
#include "namespace/all_records.h"

struct record_source {
    deltafs_iter *iter;
    const struct deltafs_record *record; /* NULL: no more */
};

/* Go on to the next record; of a layer, or of a table that was compacted, not all epochs are read. */
static int source_next(const struct table *table, struct record_source *s, struct error *e)
{
    int status;

    do
        status = error_of_call(deltafs_iter_next(s->iter, &s->record), e);
    while (status == DELTAFS_OK && s->record && !table_has_epoch(table, s->record->label));
    return status;
}

int all_records_open(struct all_records *a, const struct tables *t, struct error *e)
{
    int status = DELTAFS_OK;

    *a = (struct all_records){.tables = t, .source = calloc(t->count + 1, sizeof *a->source)};
    if (!a->source)
        return error_no_memory(e, t->count * sizeof *a->source, "tables");
    for (size_t i = 0; i < t->count && status == DELTAFS_OK; i++) {
        const struct table_reader *r = t->table[i].reader;
        if (!r)
            continue;
        status = error_of_call(iter_open_by_key(r->dir, 0, UINT64_MAX, &a->source[i].iter), e);
        if (status == DELTAFS_OK)
            status = source_next(&t->table[i], &a->source[i], e);
    }
    return status;
}

void all_records_close(struct all_records *a)
{
    for (size_t i = 0; a->source && i < a->tables->count; i++)
        deltafs_iter_close(a->source[i].iter);
    free(a->source);
    free(a->version);
    buffer_fini(&a->bytes);
    *a = (struct all_records){0};
}

static int add_version(struct all_records *a, size_t table, const struct deltafs_record *record, struct error *e)
{
    int status =
        memory_extend(NULL, &a->version, a->versions, &a->version_room, sizeof *a->version, "versions of a name", e);

    if (status == DELTAFS_OK)
        status = buffer_reserve(&a->bytes, a->used + record->size, "versions of a name", e);
    if (status != DELTAFS_OK)
        return status;
    a->version[a->versions++] =
        (struct version){.table = table, .label = record->label, .at = a->used, .size = record->size};
    memcpy(a->bytes.bytes + a->used, record->value, record->size);
    a->used += record->size;
    return DELTAFS_OK;
}

/* Once the bytes do not move any more. */
static int decode_versions(struct all_records *a, struct error *e)
{
    int status = DELTAFS_OK;

    for (struct version *v = a->version; v < a->version + a->versions && status == DELTAFS_OK; v++) {
        const struct deltafs_record record = {.key = a->key, .value = a->bytes.bytes + v->at, .size = v->size};
        status = table_decode(&a->tables->table[v->table], &record, &v->entry, e);
    }
    return status;
}

int all_records_next(struct all_records *a, struct error *e)
{
    struct record_source *least = NULL, *end = a->source + a->tables->count;
    int status = DELTAFS_OK;

    a->versions = a->used = 0;
    for (struct record_source *s = a->source; s < end; s++)
        if (s->record && (!least || s->record->key < least->record->key))
            least = s;
    a->key = least ? least->record->key : 0;
    for (struct record_source *s = a->source; least && s < end; s++) {
        size_t table = (size_t)(s - a->source);
        while (status == DELTAFS_OK && s->record && s->record->key == a->key) {
            status = add_version(a, table, s->record, e);
            if (status == DELTAFS_OK)
                status = source_next(&a->tables->table[table], s, e);
        }
    }
    return status == DELTAFS_OK ? decode_versions(a, e) : status;
}

int version_is_same_entry(const struct version *a, const struct version *b)
{
    const struct entry *x = &a->entry, *y = &b->entry;

    return id_is_same(&x->inode.id, &y->inode.id) && id_is_same(&x->parent, &y->parent) &&
           x->name_size == y->name_size && memcmp(x->name, y->name, x->name_size) == 0;
}

int all_records_is_newest(const struct all_records *a, const struct version *v)
{
    for (const struct version *w = a->version; w < a->version + a->versions; w++)
        if (w->entry.inode.stamp > v->entry.inode.stamp && version_is_same_entry(v, w))
            return 0;
    return 1;
}

int all_records_is_last(const struct all_records *a, const struct version *v)
{
    for (const struct version *w = v + 1; w < a->version + a->versions; w++)
        if (w->entry.inode.stamp == v->entry.inode.stamp && version_is_same_entry(v, w))
            return 0;
    return all_records_is_newest(a, v);
}
