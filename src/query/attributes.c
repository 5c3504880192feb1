/* Attributes of directories: the calls of deltafs_query.h. */
#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include "base/sized.h"
#include "base/thread.h"
#include "directory/dir.h"
#include "directory/read/reader.h"
#include "io/io_format.h"
#include "io/lease.h"
#include "query/columns.h"
#include "query/expr_node.h"

/* ---- What can be set ---- */

static int name_is_possible(const char *name)
{
    size_t n = 0;

    while (isalnum((unsigned char)name[n]) || name[n] == '_')
        n++;
    return n > 0 && n <= ATTRIBUTE_NAME_MAX && name[n] == '\0' && !isdigit((unsigned char)name[0]);
}

static int name_is_taken(const char *name)
{
    static const char *const words[] = {"key", "epoch", "and", "or", "not"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(name, words[i]) == 0)
            return 1;
    return 0;
}

static int schema_has(const char *text, const char *name, int *has, struct error *e)
{
    deltafs_schema *schema;

    *has = 0;
    if (*text == '\0')
        return DELTAFS_OK;
    int status = deltafs_schema_parse(text, &schema);
    if (status != DELTAFS_OK)
        return error_set(e, status, "%s", deltafs_errmsg(NULL));
    for (size_t i = 0; i < deltafs_schema_count(schema); i++)
        *has |= strcmp(deltafs_schema_field(schema, i)->name, name) == 0;
    deltafs_schema_destroy(schema);
    return DELTAFS_OK;
}

static int name_check(const struct deltafs_attribute *a, const char *schema, const char *where, struct error *e)
{
    int is_column, status;

    if (!a->name || !name_is_possible(a->name))
        return error_set(e, DELTAFS_ERR_INVALID,
                         "%s: '%s' is no name of an attribute: give letters, digits and '_', and no digit at its begin",
                         where, a->name ? a->name : "");
    status = schema_has(schema, a->name, &is_column, e);
    if (status != DELTAFS_OK)
        return status;
    if (a->type == DELTAFS_ATTRIBUTE_NONE)
        return DELTAFS_OK;
    if (a->type == DELTAFS_ATTRIBUTE_COLUMN)
        return is_column ? DELTAFS_OK
                         : error_set(e, DELTAFS_ERR_INVALID, "%s: the directory has no column '%s'; its schema is '%s'",
                                     where, a->name, schema);
    if (is_column || name_is_taken(a->name))
        return error_set(e, DELTAFS_ERR_INVALID,
                         "%s: '%s' is the name of a column or a word of expressions; "
                         "give the attribute another name",
                         where, a->name);
    return DELTAFS_OK;
}

static int unit_check(const struct deltafs_attribute *a, const char *where, struct error *e)
{
    int is_good = isfinite(a->unit_si) && a->unit_si >= 0;

    for (size_t i = 0; i < ATTRIBUTE_DIMENSIONS; i++)
        is_good &= isfinite(a->unit_dimension[i]) != 0;
    return is_good ? DELTAFS_OK
                   : error_set(e, DELTAFS_ERR_INVALID, "%s: the unit of '%s' has a number that is infinite or below 0",
                               where, a->name);
}

static int value_check(const struct deltafs_attribute *a, const char *where, struct error *e)
{
    struct expr *x = NULL;

    if (a->type < DELTAFS_ATTRIBUTE_COLUMN && !a->value)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: '%s' has no value", where, a->name);
    if (a->type <= DELTAFS_ATTRIBUTE_U8 && a->count == 0)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: '%s' has no numbers", where, a->name);
    int status = a->type == DELTAFS_ATTRIBUTE_EXPRESSION ? expr_parse(a->value, &x, e) : DELTAFS_OK;
    if (status != DELTAFS_OK)
        return error_set(e, status, "%s: '%s': %s", where, a->name, e->text);
    expr_destroy(x);
    return DELTAFS_OK;
}

/* ---- The names in an expression ---- */

/* Those of a directory, and that of the computed column that is being set. */
struct new_names {
    struct columns columns;
    const struct deltafs_attribute *added;
};

static int new_find(void *context, const char *name, struct expr_meaning *out)
{
    struct new_names *n = context;
    const struct expr_scope old = columns_scope(&n->columns);

    if (strcmp(name, n->added->name) != 0)
        return old.find(old.context, name, out);
    *out = (struct expr_meaning){.kind = EXPR_COMPUTED, .text = n->added->value};
    return 1;
}

static const char *new_name(void *context, size_t i)
{
    struct new_names *n = context;
    const struct expr_scope old = columns_scope(&n->columns);

    return old.name(old.context, i);
}

/* Whether the expression can be used for this label, or could be if all names that it uses were set for it. */
static int names_check_at(struct new_names *n, uint64_t label, const struct expr *x, struct error *e)
{
    const struct expr_scope scope = {.context = n, .find = new_find, .name = new_name};
    struct expr_bound *bound = NULL;

    n->columns.label = label;
    int status = expr_bind(x, &scope, EXPR_ANY, &bound, e);
    expr_bound_destroy(bound);
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

/* Whether there are the columns and attributes that a computed column names, at its first label and at the last. */
static int names_check(const struct manifest *m, const struct deltafs_attribute *a, const char *where, struct error *e)
{
    struct new_names names = {.columns.manifest = m, .added = a};
    deltafs_schema *schema = NULL;
    struct expr *x = NULL;

    if (a->type != DELTAFS_ATTRIBUTE_EXPRESSION)
        return DELTAFS_OK;
    if (m->schema[0] != '\0' && error_of_call(deltafs_schema_parse(m->schema, &schema), e) != DELTAFS_OK)
        return e->status;
    names.columns.schema = schema;
    int status = expr_parse(a->value, &x, e);
    if (status == DELTAFS_OK)
        status = names_check_at(&names, a->from, x, e);
    if (status == DELTAFS_OK)
        status = names_check_at(&names, UINT64_MAX, x, e);
    expr_destroy(x);
    deltafs_schema_destroy(schema);
    return status == DELTAFS_ERR_INVALID ? error_set(e, status, "%s: '%s': %s", where, a->name, e->text) : status;
}

static int is_array(const struct deltafs_attribute *a)
{
    return a->type <= DELTAFS_ATTRIBUTE_U8 && a->count > 1;
}

/* Whether the expression uses the name, or, if the attribute is an array, uses it without an index. */
static int expr_needs(const struct expr *x, const struct deltafs_attribute *a)
{
    for (size_t i = 0; i < x->count; i++)
        if ((x->node[i].kind == NODE_NAME || (x->node[i].kind == NODE_INDEX && !is_array(a))) &&
            strcmp(x->node[i].name, a->name) == 0)
            return 1;
    return 0;
}

/* A value does not replace an expression, which would be lost. */
static int expression_keep(const struct manifest *m, const struct deltafs_attribute *a, const char *path,
                           struct error *e)
{
    const struct attributes *all = &m->attributes;

    if (a->type == DELTAFS_ATTRIBUTE_EXPRESSION || a->type == DELTAFS_ATTRIBUTE_NONE)
        return DELTAFS_OK;
    for (size_t i = 0; i < all->count; i++)
        if (all->item[i].type == DELTAFS_ATTRIBUTE_EXPRESSION && strcmp(all->item[i].name, a->name) == 0)
            return error_set(e, DELTAFS_ERR_INVALID,
                             "%s: '%s' is a computed column, whose expression would be lost; "
                             "remove it before: deltafs attr %s %s=",
                             path, a->name, path, a->name);
    return DELTAFS_OK;
}

/* A computed column must keep the numbers that it names: they are not removed for all epochs, no text, and no array
 * where the column wants one number. */
static int names_keep(const struct manifest *m, const struct deltafs_attribute *a, const char *where, struct error *e)
{
    const struct attributes *all = &m->attributes;
    int is_column, status = schema_has(m->schema, a->name, &is_column, e); /* whose unit is removed */

    if (is_column ||
        (a->type != DELTAFS_ATTRIBUTE_TEXT && !is_array(a) && (a->type != DELTAFS_ATTRIBUTE_NONE || a->from > 0)))
        return status;
    for (size_t i = 0; i < all->count && status == DELTAFS_OK; i++) {
        const struct deltafs_attribute *column = &all->item[i];
        if (column->type != DELTAFS_ATTRIBUTE_EXPRESSION || strcmp(column->name, a->name) == 0)
            continue;
        struct expr *x = NULL;
        status = expr_parse(column->value, &x, e);
        if (status == DELTAFS_OK && expr_needs(x, a))
            status = error_set(e, DELTAFS_ERR_INVALID,
                               "%s: '%s' is a %s that the computed column '%s' needs; change or remove that before",
                               where, a->name, is_array(a) ? "single number" : "number", column->name);
        expr_destroy(x);
    }
    return status;
}

/* ---- Setting ---- */

/* Copy the caller's attribute, if it is a possible one for a directory of this schema. `where` is for messages: the
 * path of the directory, or the call. */
static int attribute_take(struct deltafs_attribute *a, const struct deltafs_attribute *given, const char *schema,
                          const char *where, struct error *e)
{
    if (!given)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: attribute must be given", where);
    int status = sized_take(a, given, sizeof *a, where, e);
    if (status == DELTAFS_OK && (a->type < DELTAFS_ATTRIBUTE_F8 || a->type > DELTAFS_ATTRIBUTE_NONE))
        status = error_set(e, DELTAFS_ERR_INVALID, "%s: no type has the number %d", where, a->type);
    if (status == DELTAFS_OK)
        status = name_check(a, schema, where, e);
    if (status == DELTAFS_OK)
        status = value_check(a, where, e);
    return status == DELTAFS_OK ? unit_check(a, where, e) : status;
}

int deltafs_attribute_set(deltafs_dir *dir, const struct deltafs_attribute *attribute)
{
    struct deltafs_attribute a = {0};
    int status = dir_must_write(dir, "deltafs_attribute_set");

    if (status != DELTAFS_OK)
        return status;
    int refused = attribute_take(&a, attribute, dir_schema(dir), "deltafs_attribute_set", dir_error(dir));
    return dir_set_attribute(dir, &a, refused);
}

/* ---- Closed directories ---- */

/* Append the line, where the manifest has nothing behind its last one, and copy all. `path` is the directory's. */
static int closed_append(struct io_file *file, const struct manifest *m, const struct deltafs_attribute *a,
                         const char *path, struct error *e)
{
    uint64_t size = m->size, end, copied = 0;
    int status = io_file_size(file, &end, e);

    if (status == DELTAFS_OK && end != size)
        status =
            error_set(e, DELTAFS_ERR_MODE,
                      "%s: an incomplete last line was left; run 'deltafs repair --apply %s' before", file->path, path);
    if (status != DELTAFS_OK)
        return status;
    status = attribute_append(file, &size, a, 1, e);
    if (status == DELTAFS_OK)
        return manifest_copy(file, &copied, size, 1, e);
    if (io_file_truncate(file, m->size, error_ignored()) != DELTAFS_OK)
        error_set(e, status, "%s; what was written of the line is still there: run 'deltafs repair --apply %s'",
                  e->text, path);
    return status;
}

/* Whether there is nothing that could be removed. */
static int has_none(const struct attributes *all, const struct deltafs_attribute *a)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->item[i].from >= a->from && strcmp(all->item[i].name, a->name) == 0)
            return 0;
    return 1;
}

/* With the lease. */
static int closed_set(struct io *io, const char *path, const struct deltafs_attribute *given, struct error *e)
{
    struct deltafs_attribute a;
    struct manifest m;
    struct io_file file;
    int status = manifest_read(io, path, &m, e);

    if (status != DELTAFS_OK)
        return status;
    if (!m.is_closed)
        status = error_set(e, DELTAFS_ERR_MODE,
                           "%s: its writer did not close it; run 'deltafs repair --apply %s' before", path, path);
    if (status == DELTAFS_OK)
        status = manifest_check_buckets(io, path, &m, e);
    if (status == DELTAFS_OK)
        status = attribute_take(&a, given, m.schema, path, e);
    if (status == DELTAFS_OK)
        status = names_check(&m, &a, path, e);
    if (status == DELTAFS_OK)
        status = expression_keep(&m, &a, path, e);
    if (status == DELTAFS_OK)
        status = names_keep(&m, &a, path, e);
    if (status == DELTAFS_OK && a.type == DELTAFS_ATTRIBUTE_NONE && has_none(&m.attributes, &a))
        status = error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: has no attribute '%s' for the label %llu or larger ones",
                           path, a.name, (unsigned long long)a.from);
    if (status == DELTAFS_OK)
        status = manifest_open(io, path, O_RDWR, &file, e);
    if (status == DELTAFS_OK)
        status = io_file_finish(&file, closed_append(&file, &m, &a, path, e), e);
    manifest_fini(&m);
    return status;
}

int deltafs_attribute_set_closed(const char *path, const struct deltafs_attribute *attribute)
{
    struct error *e = deltafs_private_thread_error();
    struct io io = io_default();
    struct manifest m;
    struct lease lease;
    deltafs_options *o = NULL;

    if (!path || !*path)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_attribute_set_closed: path must be given");
    int status = deltafs_options_create(&o);
    uint64_t seconds = status == DELTAFS_OK ? deltafs_private_options_number(o, OPTION_LEASE) : 0;
    deltafs_options_destroy(o);
    /* Before a lease is put into a folder that is something else. */
    if (status == DELTAFS_OK)
        status = manifest_read(&io, path, &m, e);
    if (status != DELTAFS_OK)
        return status;
    manifest_fini(&m);
    status = lease_take(&lease, &io, path, seconds, 1, e);
    if (status != DELTAFS_OK)
        return status;
    status = closed_set(&io, path, attribute, e);
    return error_first(status, lease_drop(&lease, error_after(status, e)));
}

/* ---- Reading ---- */

int deltafs_attribute_get(deltafs_dir *dir, const char *name, uint64_t label, struct deltafs_attribute *out)
{
    static const char call[] = "deltafs_attribute_get";
    struct reader *r;
    struct error *e;
    int status = dir_reader(dir, call, !name ? "name" : !out ? "out" : NULL, &r, &e);

    if (status != DELTAFS_OK)
        return status;
    const struct deltafs_attribute *a = attributes_find(&r->manifest.attributes, name, label);
    if (!a)
        return dir_end(dir, error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: has no attribute '%s' for the label %llu", r->path,
                                      name, (unsigned long long)label));
    return dir_end(dir, sized_fill(out, a, sizeof *a, call, e));
}

int deltafs_attribute_at(deltafs_dir *dir, size_t i, struct deltafs_attribute *out)
{
    static const char call[] = "deltafs_attribute_at";
    struct reader *r;
    struct error *e;
    int status = dir_reader(dir, call, out ? NULL : "out", &r, &e);

    if (status != DELTAFS_OK)
        return status;
    const struct attributes *all = &r->manifest.attributes;
    if (i >= all->count)
        return dir_end(dir, error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: no attribute number %zu; there are %zu", call, i,
                                      all->count));
    return dir_end(dir, sized_fill(out, &all->item[i], sizeof all->item[i], call, e));
}
