#include <stdlib.h>
#include <string.h>
#include "base/short_copy.h"
#include "query/carried.h"
#include "query/select_eval.h"

/* Whether the index's own columns are there. */
static int has_own(const deltafs_schema *all, size_t own)
{
    for (size_t i = 0; i < own; i++) {
        const struct deltafs_field *f = i < deltafs_schema_count(all) ? deltafs_schema_field(all, i) : NULL;
        if (!f || f->kind != 'u' || f->size != sizeof(uint64_t))
            return 0;
    }
    return 1;
}

/* The field of the same name and type; NULL if there is none. */
static const struct deltafs_field *field_like(const deltafs_schema *schema, const struct deltafs_field *like)
{
    for (size_t i = 0; i < deltafs_schema_count(schema); i++) {
        const struct deltafs_field *f = deltafs_schema_field(schema, i);
        if (f->kind == like->kind && f->size == like->size && strcmp(f->name, like->name) == 0)
            return f;
    }
    return NULL;
}

int carried_take(struct carried *c, const struct select_plan *p, const char *schema, size_t own, struct error *e)
{
    const size_t size = deltafs_schema_size(p->schema), before = own * sizeof(uint64_t);
    deltafs_schema *all = NULL;

    *c = (struct carried){0};
    if (error_of_call(deltafs_schema_parse(schema, &all), e) != DELTAFS_OK)
        return e->status;
    if (!has_own(all, own)) {
        deltafs_schema_destroy(all);
        return error_set(e, DELTAFS_ERR_DAMAGED, "%s: this is no schema of an index by value", schema);
    }
    c->has = calloc(size + 1, 1);
    c->column = calloc(deltafs_schema_count(all), sizeof *c->column);
    c->size = deltafs_schema_size(all) - before;
    for (size_t i = own; c->has && c->column && i < deltafs_schema_count(all); i++) {
        const struct deltafs_field *f = deltafs_schema_field(all, i), *of = field_like(p->schema, f);
        if (!of)
            continue;
        c->column[c->count++] = (struct carried_column){f->offset - before, of->offset, f->size};
        memset(c->has + of->offset, 1, of->size);
    }
    deltafs_schema_destroy(all);
    return c->has && c->column ? DELTAFS_OK : error_no_memory(e, size, "columns");
}

void carried_fini(struct carried *c)
{
    free(c->column);
    free(c->has);
    *c = (struct carried){0};
}

int carried_suffices(const struct carried *c, const struct select_plan *p, uint64_t label, int has_where, int *is_none)
{
    struct select_plan plan = *p;
    struct eval eval;
    struct error e;
    size_t size = deltafs_schema_size(p->schema);

    if (!has_where)
        plan.where = NULL;
    int suffices = eval_init(&eval, &plan, &e) == DELTAFS_OK && eval_bind(&eval, label, &e) == DELTAFS_OK;
    *is_none = 1;
    for (size_t i = 0; i < size && suffices; i++) {
        int is_wanted = !eval.row.bytes || eval.row.bytes[i];
        suffices = c->has[i] || !is_wanted;
        *is_none &= !is_wanted;
    }
    eval_fini(&eval);
    return suffices;
}

void carried_put(const struct carried *c, const uint8_t *record, uint8_t *value)
{
    for (size_t i = 0; i < c->count; i++)
        copy_short(value + c->column[i].to, record + c->column[i].from, c->column[i].size);
}
