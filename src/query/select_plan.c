#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "query/expr_names.h"
#include "query/select_plan.h"

#define NAME_MAX_SIZE 255

/* ---- Messages ---- */

int select_plan_blame(const char *name, int status, struct error *e)
{
    return status == DELTAFS_ERR_INVALID || status == DELTAFS_ERR_NOT_FOUND
               ? error_set(e, status, "%s: %s", name, e->text)
               : status;
}

/* The expression is the name alone: the message gets the place of the name in the list of fields, or the name. */
int select_plan_blame_output(const struct output *out, int status, struct error *e)
{
    static const char offset[] = "offset ";

    if (status != DELTAFS_ERR_INVALID)
        return status;
    const char *rest = strncmp(e->text, offset, sizeof offset - 1) == 0 ? strstr(e->text, ": ") : NULL;
    if (out->name && !rest)
        return status;
    if (out->name)
        return error_set(e, status, "computed column '%s': %s", out->name, rest + 2);
    return rest ? error_set(e, status, "fields: offset %zu: %s", out->at, rest + 2)
                : select_plan_blame("fields", status, e);
}

/* ---- Rows ---- */

static int select_plan_add_text(struct select_plan *p, const char *name, char letter, uint32_t size, struct error *e)
{
    size_t room = strlen(name) + 16;
    int status = buffer_reserve(&p->text, p->text_size + room, "a schema", e);

    if (status == DELTAFS_OK)
        p->text_size += (size_t)snprintf((char *)p->text.bytes + p->text_size, room, "%s%s:%c%u",
                                         p->text_size > 0 ? "," : "", name, letter, size);
    return status;
}

static int select_plan_add_stored(struct select_plan *p, const struct deltafs_field *f, struct error *e)
{
    struct output *last = p->outputs > 0 ? &p->output[p->outputs - 1] : NULL;
    int status = select_plan_add_text(p, f->name, f->kind, f->size, e);

    if (status == DELTAFS_OK && last && !last->computed && last->from + last->size == f->offset) {
        last->size += f->size;
    } else if (status == DELTAFS_OK) {
        status = memory_extend(NULL, &p->output, p->outputs, &p->capacity, sizeof *p->output, "fields", e);
        if (status == DELTAFS_OK)
            p->output[p->outputs++] = (struct output){.to = p->row_size, .size = f->size, .from = f->offset};
    }
    if (status == DELTAFS_OK)
        p->row_size += f->size;
    return status;
}

/* `out` says where the caller named it. */
static int select_plan_add_computed(struct select_plan *p, const char *name, struct output out, struct error *e)
{
    char text[NAME_MAX_SIZE + 3];

    out.to = p->row_size;
    out.size = sizeof(double);
    snprintf(text, sizeof text, "`%s`", name);
    int status = memory_extend(NULL, &p->output, p->outputs, &p->capacity, sizeof *p->output, "fields", e);
    if (status == DELTAFS_OK)
        status = select_plan_add_text(p, name, 'f', sizeof(double), e);
    if (status == DELTAFS_OK)
        status = select_plan_blame_output(&out, expr_parse(text, &out.computed, e), e);
    if (status != DELTAFS_OK)
        return status;
    p->output[p->outputs++] = out;
    p->row_size += sizeof(double);
    return DELTAFS_OK;
}

static int select_plan_add_name(struct select_plan *p, const char *name, size_t size, size_t at, struct error *e)
{
    struct columns c = {.manifest = p->manifest, .schema = p->schema};
    char copy[NAME_MAX_SIZE + 1];

    if (size == 0 || size > NAME_MAX_SIZE)
        return error_set(e, DELTAFS_ERR_INVALID, "fields: offset %zu: expected the name of a column", at);
    memcpy(copy, name, size);
    copy[size] = '\0';
    if (strcmp(copy, "key") == 0 || strcmp(copy, "epoch") == 0)
        return error_set(e, DELTAFS_ERR_INVALID,
                         "fields: offset %zu: each row has its key and epoch anyway; name other columns", at);
    size_t i = columns_field(&c, copy);
    const struct expr_scope scope = columns_scope(&c);
    if (!expr_is_named(&scope, copy))
        return select_plan_blame("fields", expr_unknown(&scope, (uint32_t)at, copy, e), e);
    return i < columns_fields(&c) ? select_plan_add_stored(p, deltafs_schema_field(p->schema, i), e)
                                  : select_plan_add_computed(p, copy, (struct output){.at = at}, e);
}

static int select_plan_add_names(struct select_plan *p, const char *fields, struct error *e)
{
    int status = DELTAFS_OK;

    for (size_t at = 0, size; status == DELTAFS_OK; at += size + 1) {
        size = strcspn(fields + at, ",");
        status = select_plan_add_name(p, fields + at, size, at, e);
        if (fields[at + size] == '\0')
            break;
    }
    return status;
}

/* Whether attribute `i` is the first of a computed column. */
static int is_computed(const struct attributes *all, size_t i)
{
    if (all->item[i].type != DELTAFS_ATTRIBUTE_EXPRESSION)
        return 0;
    for (size_t k = 0; k < i; k++)
        if (all->item[k].type == DELTAFS_ATTRIBUTE_EXPRESSION && strcmp(all->item[k].name, all->item[i].name) == 0)
            return 0;
    return 1;
}

/* All stored columns, then all computed ones. */
static int select_plan_add_all(struct select_plan *p, struct error *e)
{
    const struct attributes *all = &p->manifest->attributes;
    size_t fields = p->schema ? deltafs_schema_count(p->schema) : 0;
    int status = DELTAFS_OK;

    for (size_t i = 0; i < fields && status == DELTAFS_OK; i++)
        status = select_plan_add_stored(p, deltafs_schema_field(p->schema, i), e);
    for (size_t i = 0; fields > 0 && i < all->count && status == DELTAFS_OK; i++)
        if (is_computed(all, i))
            status = select_plan_add_computed(p, all->item[i].name, (struct output){.name = all->item[i].name}, e);
    return status;
}

/* Whether there can be such rows. */
static int select_plan_check_rows(const struct select_plan *p, struct error *e)
{
    deltafs_schema *schema = NULL;

    int status = p->text_size > 0 ? deltafs_schema_parse((const char *)p->text.bytes, &schema) : DELTAFS_OK;

    deltafs_schema_destroy(schema);
    if (status == DELTAFS_OK || status == DELTAFS_ERR_MEMORY)
        return error_of_call(status, e);
    return error_set(e, DELTAFS_ERR_INVALID, "fields: %s", deltafs_errmsg(NULL));
}

/* ---- All ---- */

static int select_plan_parse(const char *name, const char *text, struct expr **out, struct error *e)
{
    return text ? select_plan_blame(name, expr_parse(text, out, e), e) : DELTAFS_OK;
}

int select_plan_make(struct select_plan *p, const struct manifest *m, const struct deltafs_select_options *o,
                     struct error *e)
{
    int status = DELTAFS_OK;

    *p = (struct select_plan){.manifest = m};
    if (m->schema[0] != '\0' && error_of_call(deltafs_schema_parse(m->schema, &p->schema), e) != DELTAFS_OK)
        return e->status;
    if ((o->by != NULL) != (o->top > 0))
        status = error_set(e, DELTAFS_ERR_INVALID, "%s",
                           o->by ? "by needs top, a number of rows above 0 ('--top N' of a command)"
                                 : "top needs by, the value to order by ('--by EXPR' of a command)");
    if (status == DELTAFS_OK)
        status = select_plan_parse("where", o->where, &p->where, e);
    if (status == DELTAFS_OK)
        status = select_plan_parse("by", o->by, &p->by, e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&p->text, 1, "a schema", e);
    if (status != DELTAFS_OK)
        return status;
    p->text.bytes[0] = '\0';
    if (!o->fields)
        status = select_plan_add_all(p, e);
    else if (*o->fields != '\0')
        status = select_plan_add_names(p, o->fields, e);
    if (status == DELTAFS_OK)
        status = select_plan_check_rows(p, e);
    p->is_whole =
        (p->outputs == 0 && !o->fields) || (p->outputs == 1 && !p->output[0].computed && p->output[0].from == 0 &&
                                            p->output[0].size == (size_t)m->value_size);
    return status;
}

void select_plan_fini(struct select_plan *p)
{
    for (size_t i = 0; i < p->outputs; i++)
        expr_destroy(p->output[i].computed);
    free(p->output);
    expr_destroy(p->where);
    expr_destroy(p->by);
    deltafs_schema_destroy(p->schema);
    buffer_fini(&p->text);
}
