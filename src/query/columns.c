#include <string.h>
#include "query/columns.h"

#define PREFIX "value."

static int is_own(const char *name)
{
    return strcmp(name, "key") == 0 || strcmp(name, "epoch") == 0;
}

static const char *field_name(const struct columns *c, size_t i)
{
    const char *name = deltafs_schema_field(c->schema, i)->name;

    return strcmp(name, "key") == 0 ? PREFIX "key" : strcmp(name, "epoch") == 0 ? PREFIX "epoch" : name;
}

size_t columns_fields(const struct columns *c)
{
    return c->schema ? deltafs_schema_count(c->schema) : 0;
}

size_t columns_field(const struct columns *c, const char *name)
{
    size_t i = 0;

    while (i < columns_fields(c) && strcmp(field_name(c, i), name) != 0)
        i++;
    return i;
}

/* ---- What a name means ---- */

static struct expr_meaning own_meaning(const struct columns *c, const char *name)
{
    struct expr_meaning m = {.kind = EXPR_COLUMN, .letter = 'u', .size = 8};

    m.column = strcmp(name, "key") == 0 ? COLUMN_KEY : COLUMN_EPOCH;
    if (m.column == COLUMN_KEY && c->manifest->keys == KEYS_BYTES) {
        m.letter = 'S';
        m.size = 255;
    }
    return m;
}

static struct expr_meaning attribute_meaning(const struct deltafs_attribute *a)
{
    struct expr_meaning m = {.kind = a->count == 1 ? EXPR_SINGLE : EXPR_ARRAY, .size = 8, .values = a->value};

    m.count = a->count;
    m.text = a->value;
    switch (a->type) {
    case DELTAFS_ATTRIBUTE_F8:
        m.letter = 'f';
        break;
    case DELTAFS_ATTRIBUTE_I8:
        m.letter = 'i';
        break;
    case DELTAFS_ATTRIBUTE_U8:
        m.letter = 'u';
        break;
    case DELTAFS_ATTRIBUTE_EXPRESSION:
        m.kind = EXPR_COMPUTED;
        break;
    default:
        m.kind = EXPR_TEXT;
    }
    return m;
}

/* The attribute, valid for the label, if there is one. */
static const struct deltafs_attribute *columns_attribute(struct columns *c, const char *name)
{
    const struct attributes *all = &c->manifest->attributes;

    for (size_t i = all->count; i > 0; i--) {
        const struct deltafs_attribute *a = &all->item[i - 1];
        if (strcmp(a->name, name) != 0)
            continue;
        if (a->from <= c->label) {
            c->first = a->from > c->first ? a->from : c->first;
            return a;
        }
        c->last = a->from - 1 < c->last ? a->from - 1 : c->last;
    }
    return NULL;
}

static int columns_find(void *context, const char *name, struct expr_meaning *out)
{
    struct columns *c = context;
    size_t i = columns_field(c, name);

    if (is_own(name)) {
        *out = own_meaning(c, name);
        return 1;
    }
    if (i < columns_fields(c)) {
        const struct deltafs_field *f = deltafs_schema_field(c->schema, i);
        *out = (struct expr_meaning){.kind = EXPR_COLUMN, .letter = f->kind, .size = f->size, .column = (uint32_t)i};
        return 1;
    }
    const struct deltafs_attribute *a = columns_attribute(c, name);
    if (!a || a->type == DELTAFS_ATTRIBUTE_COLUMN)
        return 0;
    *out = attribute_meaning(a);
    return 1;
}

/* ---- All names ---- */

/* Whether item `i` is the first of a name that an expression can use. */
static int is_first(const struct attributes *all, size_t i)
{
    size_t k = 0;

    while (strcmp(all->item[k].name, all->item[i].name) != 0)
        k++;
    return k == i && all->item[i].type != DELTAFS_ATTRIBUTE_COLUMN;
}

static const char *columns_name(void *context, size_t i)
{
    static const char *const own[] = {"key", "epoch"};
    const struct columns *c = context;
    const struct attributes *all = &c->manifest->attributes;
    size_t fields = columns_fields(c);

    if (i < fields)
        return field_name(c, i);
    i -= fields;
    if (i < 2)
        return own[i];
    i -= 2;
    for (size_t k = 0; k < all->count; k++)
        if (is_first(all, k) && i-- == 0)
            return all->item[k].name;
    return NULL;
}

struct expr_scope columns_scope(struct columns *c)
{
    return (struct expr_scope){.context = c, .find = columns_find, .name = columns_name};
}
