#include <stdlib.h>
#include <string.h>
#include "directory/read/iter.h"
#include "namespace/all_records.h"

/* What a table has in epochs, or in its journal. */
struct record_source {
    size_t table;
    deltafs_iter *iter;              /* NULL: the journal */
    const struct journal_record *at; /* in the journal */
    size_t left;
    struct deltafs_record journaled;
    const struct deltafs_record *record; /* NULL: no more */
};

static int source_step(const struct table *table, struct record_source *s, struct error *e)
{
    if (s->iter)
        return error_of_call(deltafs_iter_next(s->iter, &s->record), e);
    s->record = NULL;
    if (s->left == 0)
        return DELTAFS_OK;
    s->journaled = table_journal_record(table, s->at);
    s->record = &s->journaled;
    s->at++;
    s->left--;
    return DELTAFS_OK;
}

/* Go on to the next record; of a layer, or of a table that was compacted, not all are read. */
static int source_next(const struct tables *t, struct record_source *s, struct error *e)
{
    const struct table *table = &t->table[s->table];
    struct entry entry;
    int status;

    do {
        status = source_step(table, s, e);
        if (status != DELTAFS_OK || !s->record)
            return status;
        status = table_decode(table, s->record, &entry, e);
    } while (status == DELTAFS_OK && !table_has(table, s->record->label, entry.inode.stamp));
    return status;
}

static int open_sources(struct all_records *a, size_t table, struct error *e)
{
    const struct table *t = &a->tables->table[table];
    struct record_source *s = a->source + a->sources++;
    int status = DELTAFS_OK;

    *s = (struct record_source){.table = table};
    s->at = table_journaled(t, JOURNAL_ENTRY, 0, UINT64_MAX, &s->left);
    status = source_next(a->tables, s, e);
    if (!t->reader || status != DELTAFS_OK)
        return status;
    s = a->source + a->sources++;
    *s = (struct record_source){.table = table};
    status = error_of_call(iter_open_by_key(t->reader->dir, 0, UINT64_MAX, table_epochs(t), &s->iter), e);
    return status == DELTAFS_OK ? source_next(a->tables, s, e) : status;
}

int all_records_open(struct all_records *a, const struct tables *t, struct error *e)
{
    int status = DELTAFS_OK;

    *a = (struct all_records){.tables = t, .source = calloc(2 * t->count + 1, sizeof *a->source)};
    if (!a->source)
        return error_no_memory(e, t->count * sizeof *a->source, "tables");
    for (size_t i = 0; i < t->count && status == DELTAFS_OK; i++)
        status = open_sources(a, i, e);
    return status;
}

void all_records_close(struct all_records *a)
{
    for (size_t i = 0; i < a->sources; i++)
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

int version_is_same_entry(const struct version *a, const struct version *b)
{
    const struct entry *x = &a->entry, *y = &b->entry;

    return id_is_same(&x->inode.id, &y->inode.id) && id_is_same(&x->parent, &y->parent) &&
           x->name_size == y->name_size && memcmp(x->name, y->name, x->name_size) == 0;
}

/* A name may have very many versions: this takes one pass. */
void all_records_find_newest(struct all_records *a, int (*is_in)(const struct version *v, const void *arg),
                             const void *arg)
{
    a->newest = NULL;
    for (struct version *v = a->version; v < a->version + a->versions; v++) {
        struct version **w = &a->newest;
        if (is_in && !is_in(v, arg))
            continue;
        while (*w && !version_is_same_entry(v, *w))
            w = &(*w)->other;
        if (*w && v->entry.inode.stamp < (*w)->entry.inode.stamp)
            continue;
        v->other = *w ? (*w)->other : NULL;
        *w = v;
    }
}

int all_records_next(struct all_records *a, struct error *e)
{
    struct record_source *least = NULL, *end = a->source + a->sources;
    int status = DELTAFS_OK;

    a->versions = a->used = 0;
    for (struct record_source *s = a->source; s < end; s++)
        if (s->record && (!least || s->record->key < least->record->key))
            least = s;
    a->key = least ? least->record->key : 0;
    for (struct record_source *s = a->source; least && s < end; s++)
        while (status == DELTAFS_OK && s->record && s->record->key == a->key) {
            status = add_version(a, s->table, s->record, e);
            if (status == DELTAFS_OK)
                status = source_next(a->tables, s, e);
        }
    if (status == DELTAFS_OK)
        status = decode_versions(a, e);
    if (status == DELTAFS_OK)
        all_records_find_newest(a, NULL, NULL);
    return status;
}

int all_records_is_newest(const struct all_records *a, const struct version *v)
{
    const struct version *w = a->newest;

    while (w && !version_is_same_entry(v, w))
        w = w->other;
    return w && w->entry.inode.stamp == v->entry.inode.stamp;
}

int all_records_put(const struct all_records *a, deltafs_dir *to, uint64_t *count, struct error *e)
{
    int status = DELTAFS_OK;

    for (const struct version *v = a->newest; v && status == DELTAFS_OK; v = v->other) {
        status = error_of_call(deltafs_append(to, a->key, a->bytes.bytes + v->at, v->size), e);
        ++*count;
    }
    return status;
}
