#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fnmatch.h>
#include "base/memory.h"
#include "hdf5/h5match.h"
#include "hdf5/h5place.h"
#include "hdf5/h5rows.h"

#define LINKS_MAX    (1 << 20) /* that are looked at: groups may be in one another without end */
#define CONSTANT_MAX 16        /* bytes of a value that all rows have */
#define BELOW_MAX    4         /* groups below a key's that its columns may be in */

struct walk {
    const struct h5lib *lib;
    const char *path;
    struct h5pattern pattern;
    const uint64_t *label; /* or NULL */
    uint64_t user_block, links, matches;
    struct h5path at;
    size_t capacity;
    struct h5rows *out;
    struct error *e;
};

static void walk_where(const struct walk *w, char *text, size_t size)
{
    size_t at = 0;

    *text = '\0';
    for (size_t i = 0; i < w->at.depth && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "/%s", w->at.name[i]);
}

static int walk_fail(const struct walk *w, int status, const char *what)
{
    char where[512], why[256];

    walk_where(w, where, sizeof where);
    h5lib_why(w->lib, why, sizeof why);
    return error_set(w->e, status, "%s: %s: %s%s%s", w->path, *where ? where : "/", what, *why ? ": HDF5: " : "", why);
}

static int walk_refuse(const struct walk *w, const char *what)
{
    char where[512];

    walk_where(w, where, sizeof where);
    return error_set(w->e, DELTAFS_ERR_INVALID, "%s: %s %s", w->path, where, what);
}

/* ---- The links of a group ---- */

struct build {
    uint64_t rows;
    const char *key; /* the dataset in the group that has its columns already */
    struct h5columns columns;
};

/* A group that is gone through. */
struct visit {
    struct walk *w;
    int (*each)(struct visit *v, h5_id group, const char *name);
    int status;
    int keys; /* datasets of keys in it */
    /* Where columns are collected: */
    const char *prefix; /* of their names */
    int below;          /* groups below the key's */
    struct build *b;
};

static int visit_link(h5_id group, const char *name, const void *info, void *arg)
{
    struct visit *v = arg;
    int type;

    memcpy(&type, info, sizeof type);
    v->w->at.name[v->w->at.depth - 1] = name;
    if (++v->w->links > LINKS_MAX)
        v->status = error_set(v->w->e, DELTAFS_ERR_IO, "%s: there are too many groups and datasets", v->w->path);
    else if (type == H5_HARD_LINK)
        v->status = v->each(v, group, name);
    return v->status == DELTAFS_OK ? 0 : -1;
}

/* Call v->each for all hard links of the group. */
static int visit_group(struct visit *v, h5_id group)
{
    uint64_t at = 0;

    v->w->at.depth++;
    int rc = v->w->lib->links(group, 0, 0, &at, visit_link, v);
    v->w->at.depth--;
    if (v->status == DELTAFS_OK && rc < 0)
        v->status = walk_fail(v->w, DELTAFS_ERR_IO, "its names cannot be read");
    return v->status;
}

/* ---- Columns ---- */

/* Those of one dataset, which has as many rows as the key. */
static int columns_of(struct walk *w, struct h5dataset *d, h5_id type, const char *name, struct h5columns *columns)
{
    size_t first = columns->count, room = strlen(name) + 32;
    char *full = malloc(room);
    int rc = full ? 0 : -1;

    d->size = w->lib->size(type);
    for (uint64_t i = 0; i < d->width && rc == 0; i++) {
        snprintf(full, room, d->width == 1 ? "%s" : "%s.%ju", name, (uintmax_t)i);
        rc = h5types_add(w->lib, type, full, i * d->size, columns);
    }
    free(full);
    if (rc != 0)
        return walk_fail(w, DELTAFS_ERR_MEMORY, "there is no memory for its columns, or there are more than 1000");
    if (columns->count == first)
        return DELTAFS_OK;
    int status = h5place_set(d, columns, first, w->e);
    if (status == DELTAFS_ERR_NOT_FOUND)
        h5types_drop(columns, first);
    return status;
}

static int columns_below(struct walk *w, h5_id group, const char *prefix, int below, struct build *b);

/* One value that stands for a number of rows, as openPMD's constant components are: a group with the attributes value
 * and shape. */
struct constant {
    uint64_t rows;
    h5_id type;
    uint8_t value[CONSTANT_MAX];
};

/* Read an attribute that has one element, as `type` or (0) as it is stored; *own gets the type then. Returns 0, or -1.
 */
static int attribute_get(const struct h5lib *lib, h5_id object, const char *name, h5_id type, h5_id *own, void *out)
{
    h5_id attribute = lib->attribute_exists(object, name) > 0 ? lib->attribute_open(object, name, 0) : -1;
    h5_id stored = attribute >= 0 ? lib->attribute_type(attribute) : -1;
    h5_id space = attribute >= 0 ? lib->attribute_space(attribute) : -1;
    int is_number = stored >= 0 && (lib->class(stored) == H5_INTEGER || lib->class(stored) == H5_FLOAT);
    int rc = space >= 0 && is_number && lib->points(space) == 1 && lib->size(stored) <= CONSTANT_MAX
                 ? lib->attribute_read(attribute, type ? type : stored, out)
                 : -1;

    if (space >= 0)
        lib->space_close(space);
    if (stored >= 0 && own && rc >= 0)
        *own = stored;
    else if (stored >= 0)
        lib->type_close(stored);
    if (attribute >= 0)
        lib->attribute_close(attribute);
    return rc >= 0 ? 0 : -1;
}

static int constant_read(const struct h5lib *lib, h5_id group, struct constant *c)
{
    if (attribute_get(lib, group, "shape", *lib->u64, NULL, &c->rows) != 0)
        return -1;
    return attribute_get(lib, group, "value", 0, &c->type, c->value);
}

static int columns_constant(struct walk *w, const char *name, const struct constant *c, struct h5columns *columns)
{
    size_t first = columns->count;

    if (h5types_add(w->lib, c->type, name, 0, columns) != 0)
        return walk_fail(w, DELTAFS_ERR_MEMORY, "there is no memory for its columns, or there are more than 1000");
    for (size_t i = first; i < columns->count; i++) {
        struct deltafs_column *column = &columns->column[i];
        void *value = malloc(column->size);
        if (!value)
            return error_no_memory(w->e, column->size, "a constant");
        memcpy(value, c->value + column->offset, column->size);
        column->constant = value;
        column->offset = 0;
    }
    return DELTAFS_OK;
}

/* A sibling of the key, or a group of such. */
static int columns_sibling(struct walk *w, h5_id object, const char *name, int below, struct build *b)
{
    char where[512];
    struct h5dataset d = {.lib = w->lib, .id = object, .path = w->path, .name = where, .user_block = w->user_block};
    struct constant constant;
    int kind = w->lib->id_type(object);

    if (kind == H5_GROUP && constant_read(w->lib, object, &constant) == 0) {
        int taken = constant.rows == b->rows ? columns_constant(w, name, &constant, &b->columns) : DELTAFS_OK;
        w->lib->type_close(constant.type);
        return taken;
    }
    if (kind == H5_GROUP && below < BELOW_MAX)
        return columns_below(w, object, name, below + 1, b);
    if (kind != H5_DATASET || h5place_shape(&d) != DELTAFS_OK || d.rows != b->rows)
        return DELTAFS_OK;
    walk_where(w, where, sizeof where);
    h5_id type = w->lib->dataset_type(object);
    if (type < 0)
        return walk_fail(w, DELTAFS_ERR_IO, "its type cannot be read");
    int status = columns_of(w, &d, type, name, &b->columns);
    w->lib->type_close(type);
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

static int columns_visit(struct visit *v, h5_id group, const char *link)
{
    struct walk *w = v->w;

    if (v->below == 0 && strcmp(link, v->b->key) == 0)
        return DELTAFS_OK;
    char *name = h5types_join(v->prefix, link);
    if (!name)
        return error_no_memory(w->e, strlen(link), "a column's name");
    h5_id object = w->lib->object_open(group, link, 0);
    int status = object < 0 ? walk_fail(w, DELTAFS_ERR_IO, "it cannot be opened")
                            : columns_sibling(w, object, name, v->below, v->b);
    if (object >= 0)
        w->lib->object_close(object);
    free(name);
    return status;
}

static int columns_below(struct walk *w, h5_id group, const char *prefix, int below, struct build *b)
{
    struct visit v = {.w = w, .each = columns_visit, .prefix = prefix, .below = below, .b = b};

    return visit_group(&v, group);
}

/* ---- Tables ---- */

static uint64_t walk_label(const struct walk *w, int is_compound)
{
    uint64_t label = 0;

    if (w->label)
        return *w->label;
    if (!h5match_label(&w->pattern, &w->at, is_compound, 0, &label) && !deltafs_label_from_name(w->path, &label))
        h5match_label(&w->pattern, &w->at, is_compound, 1, &label);
    return label;
}

/* The columns become a table's. */
static int table_add(struct walk *w, struct build *b, size_t key, int is_compound)
{
    struct h5rows *out = w->out;
    char where[512];

    if (memory_extend(NULL, &out->table, out->count, &w->capacity, sizeof *out->table, "tables", w->e) != DELTAFS_OK)
        return w->e->status;
    w->at.depth -= !is_compound;
    walk_where(w, where, sizeof where);
    w->at.depth += !is_compound;
    struct deltafs_table *t = calloc(1, sizeof *t);
    char *name = strdup(*where ? where : "/");
    if (!t || !name) {
        free(t);
        free(name);
        return error_no_memory(w->e, sizeof *t, "a table");
    }
    *t = (struct deltafs_table){
        .name = name, .rows = b->rows, .key = key, .column_count = b->columns.count, .column = b->columns.column};
    t->label = walk_label(w, is_compound);
    b->columns = (struct h5columns){0};
    out->table[out->count++] = t;
    return DELTAFS_OK;
}

static int table_key(struct walk *w, const struct h5columns *columns, const char *member, size_t *key)
{
    size_t found = 0;

    for (size_t i = 0; i < columns->count; i++)
        if (!member || fnmatch(member, columns->column[i].name, 0) == 0) {
            *key = i;
            found++;
        }
    if (found != 1)
        return walk_refuse(w, found == 0 ? "has no such member, or none that can be a key"
                                         : "has several values in a row that the key's name fits; name one");
    char kind = columns->column[*key].kind;
    return kind == 'i' || kind == 'u' ? DELTAFS_OK : walk_refuse(w, "is no key: keys are integers");
}

static int table_read(struct walk *w, h5_id group, struct h5dataset *d, h5_id type, const char *member)
{
    struct build b = {.rows = d->rows, .key = w->at.name[w->at.depth - 1]};
    size_t key = 0;
    int status = columns_of(w, d, type, member ? "" : b.key, &b.columns);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = walk_refuse(w, "was never written");
    if (status == DELTAFS_OK)
        status = table_key(w, &b.columns, member, &key);
    if (status == DELTAFS_OK && !member) {
        w->at.depth--;
        status = columns_below(w, group, "", 0, &b);
        w->at.name[w->at.depth++] = b.key;
    }
    if (status == DELTAFS_OK)
        status = table_add(w, &b, key, member != NULL);
    h5types_fini(&b.columns);
    return status;
}

/* ---- The walk ---- */

/* *is_key: whether this dataset is one of keys, which no other of its group can be. */
static int walk_dataset(struct walk *w, h5_id group, h5_id dataset, int *is_key)
{
    char where[512];
    struct h5dataset d = {.lib = w->lib, .id = dataset, .path = w->path, .name = where, .user_block = w->user_block};
    h5_id type = w->lib->dataset_type(dataset);
    const char *member;

    *is_key = 0;
    if (type < 0)
        return walk_fail(w, DELTAFS_ERR_IO, "its type cannot be read");
    walk_where(w, where, sizeof where);
    int is_compound = w->lib->class(type) == H5_COMPOUND, status = DELTAFS_OK;
    enum h5match match = h5match_dataset(&w->pattern, &w->at, is_compound, &member);
    if (match == H5MATCH_MEMBERLESS)
        status = walk_refuse(w, "is compound: name the member that is the key, behind a '.'");
    else if (match == H5MATCH_YES && h5place_shape(&d) != DELTAFS_OK)
        status = walk_refuse(w, "is no key: it is not of one dimension");
    else if (match == H5MATCH_YES && d.rows > 0)
        status = table_read(w, group, &d, type, member);
    *is_key = match == H5MATCH_YES && !is_compound;
    w->matches += match == H5MATCH_YES;
    w->lib->type_close(type);
    return status;
}

static int walk_visit(struct visit *v, h5_id group, const char *name)
{
    struct walk *w = v->w;
    const char *member;
    int may_enter = h5match_may_enter(&w->pattern, &w->at), is_key = 0, status = DELTAFS_OK;

    if (!may_enter && h5match_dataset(&w->pattern, &w->at, 0, &member) == H5MATCH_NO &&
        h5match_dataset(&w->pattern, &w->at, 1, &member) == H5MATCH_NO)
        return DELTAFS_OK;
    h5_id object = w->lib->object_open(group, name, 0);
    if (object < 0)
        return walk_fail(w, DELTAFS_ERR_IO, "it cannot be opened");
    int kind = w->lib->id_type(object);
    if (kind == H5_GROUP && may_enter) {
        struct visit below = {.w = w, .each = walk_visit};
        status = visit_group(&below, object);
    } else if (kind == H5_DATASET) {
        status = walk_dataset(w, group, object, &is_key);
    }
    w->lib->object_close(object);
    v->keys += is_key;
    return status == DELTAFS_OK && is_key && v->keys > 1
               ? walk_refuse(w, "is the second dataset of its group that the pattern fits: a row has one key")
               : status;
}

/* HDF5's places of chunks are those in the file since 1.14.4; before, they lacked the user block. */
static uint64_t rows_user_block(const struct h5lib *lib, h5_id file)
{
    unsigned major = 0, minor = 0, release = 0;
    uint64_t size = 0;
    h5_id plist = lib->file_plist(file);

    lib->version(&major, &minor, &release);
    if (plist < 0)
        return 0;
    if (major < 2 && (minor < 14 || (minor == 14 && release < 4)))
        lib->user_block(plist, &size);
    lib->plist_close(plist);
    return size;
}

static int rows_compare(const void *a, const void *b)
{
    const struct deltafs_table *x = *(struct deltafs_table *const *)a, *y = *(struct deltafs_table *const *)b;

    return x->label != y->label ? (x->label < y->label ? -1 : 1) : strcmp(x->name, y->name);
}

static int rows_walk(struct walk *w, const struct h5source *source)
{
    struct visit v = {.w = w, .each = walk_visit};
    struct h5lib_handler saved;
    struct h5file file;

    h5lib_hush(w->lib, &saved);
    int status = h5file_open(w->lib, source, &file, w->e);
    if (status == DELTAFS_OK) {
        w->user_block = rows_user_block(w->lib, file.file);
        status = visit_group(&v, file.file);
        h5file_close(w->lib, &file);
    }
    h5lib_unhush(w->lib, &saved);
    return status;
}

int h5rows_read(const struct h5lib *lib, const struct h5source *source, const char *pattern, const uint64_t *label,
                struct h5rows *out, struct error *e)
{
    struct walk w = {.lib = lib, .path = source->path, .label = label, .out = out, .e = e};

    *out = (struct h5rows){0};
    if (h5match_parse(pattern, &w.pattern) != 0)
        return error_set(e, DELTAFS_ERR_INVALID, "'%s' is no path of an HDF5 dataset of at most %d names", pattern,
                         H5MATCH_DEPTH);
    int status = rows_walk(&w, source);
    h5match_fini(&w.pattern);
    if (status == DELTAFS_OK && out->count == 0)
        status =
            error_set(e, DELTAFS_ERR_NOT_FOUND, w.matches == 0 ? "%s: it has no dataset %s" : "%s: %s has no elements",
                      source->path, pattern);
    if (status != DELTAFS_OK)
        h5rows_fini(out);
    else
        qsort(out->table, out->count, sizeof *out->table, rows_compare);
    return status;
}

void h5rows_fini(struct h5rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        deltafs_table_destroy(rows->table[i]);
    free(rows->table);
    *rows = (struct h5rows){0};
}
