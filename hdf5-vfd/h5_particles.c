#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "h5_computed.h"
#include "h5_particles.h"

#define GROUPS_MAX 4096 /* of epochs: HDF5 looks through compact links one by one */
#define KEY_MAX    255  /* bytes of a key */

/* A table: the records of one key, or of one epoch. All of them are visited to measure them, and again for the rows, so
 * that no copies are needed. */
struct table {
    deltafs_dir *dir;
    const struct deltafs_stat *stat;
    const deltafs_records *records; /* of a key, with the labels as the first column */
    struct deltafs_range epoch;     /* of an epoch, with the keys as the first column, if there are no `records` */
    deltafs_schema *schema;         /* NULL: rows have no fields */
    uint64_t count, bytes;          /* of values */
    uint64_t value_size;
    int is_various;    /* values have different sizes */
    uint32_t key_size; /* of the first column */
    struct h5_bytes *image;
    uint64_t offset; /* of the next value */
    struct h5_computed *computed;
    int failed; /* the status of computing them */
};

static int table_visit(struct table *t, deltafs_record_fn fn)
{
    if (!t->records)
        return deltafs_scan(t->dir, &t->epoch, fn, t, NULL);
    for (size_t i = 0; i < t->records->count; i++)
        fn(&t->records->record[i], t);
    return DELTAFS_OK;
}

static int measure(const struct deltafs_record *r, void *arg)
{
    struct table *t = arg;

    if (t->count == 0 && t->stat->value_size < 0)
        t->value_size = r->size;
    t->is_various |= r->size != t->value_size;
    t->bytes += r->size;
    t->count++;
    if (!t->records && r->key_bytes && r->key_size > t->key_size && r->key_size <= KEY_MAX)
        t->key_size = (uint32_t)r->key_size;
    return 0;
}

static int table_measure(struct table *t)
{
    int is_bytes = !t->records && strcmp(t->stat->keys, "bytes") == 0;

    t->key_size = is_bytes ? 1 : 8;
    t->value_size = t->stat->value_size >= 0 ? (uint64_t)t->stat->value_size : 0;
    int status = table_visit(t, measure);
    if (is_bytes && t->key_size == 8)
        t->key_size = 9; /* eight bytes are a number */
    t->is_various |= t->value_size > UINT32_MAX - KEY_MAX;
    if (status == DELTAFS_OK && t->stat->schema[0])
        status = deltafs_schema_parse(t->stat->schema, &t->schema);
    if (t->schema && (t->is_various || deltafs_schema_size(t->schema) != t->value_size)) {
        deltafs_schema_destroy(t->schema);
        t->schema = NULL;
    }
    return status;
}

static uint32_t table_row_size(const struct table *t)
{
    return t->key_size + (t->is_various ? 16 : (uint32_t)t->value_size);
}

/* The name of the first column must be none of the schema's. */
static void table_label(const struct table *t, char name[64])
{
    snprintf(name, 64, "%s", t->records ? "epoch" : "key");
    for (size_t i = 0; t->schema && i < deltafs_schema_count(t->schema); i++)
        if (strcmp(deltafs_schema_field(t->schema, i)->name, name) == 0 && strlen(name) < 62) {
            memcpy(name + strlen(name), "_", 2);
            i = SIZE_MAX;
        }
}

static void table_type(const struct table *t, struct h5_bytes *type)
{
    size_t fields = t->schema ? deltafs_schema_count(t->schema) : 0;
    int has_value = !t->schema && !t->is_various && t->value_size > 0;
    uint32_t key = t->key_size, size = table_row_size(t);
    char name[64];

    table_label(t, name);
    h5_put_compound(type, 1 + (t->is_various ? 2 : fields + (size_t)has_value), size);
    h5_put_member(type, size, name, 0, (struct h5_type){key == 8 ? 'u' : 'S', key});
    for (size_t i = 0; i < fields; i++) {
        const struct deltafs_field *f = deltafs_schema_field(t->schema, i);
        h5_put_member(type, size, f->name, key + f->offset, (struct h5_type){f->kind, f->size});
    }
    if (t->is_various) {
        h5_put_member(type, size, "offset", key, (struct h5_type){'u', 8});
        h5_put_member(type, size, "size", key + 8, (struct h5_type){'u', 8});
    } else if (has_value) {
        h5_put_member(type, size, "value", key, (struct h5_type){'V', (uint32_t)t->value_size});
    }
}

static int put_row(const struct deltafs_record *r, void *arg)
{
    struct table *t = arg;

    if (t->records) {
        h5_put_number(t->image, r->label, 8);
    } else if (!r->key_bytes) {
        h5_put_number(t->image, r->key, 8);
    } else {
        h5_put(t->image, r->key_bytes, r->key_size);
        h5_put_zeros(t->image, t->key_size - r->key_size);
    }
    if (t->is_various) {
        h5_put_number(t->image, t->offset, 8);
        h5_put_number(t->image, r->size, 8);
    } else {
        h5_put(t->image, r->value, r->size);
    }
    t->offset += r->size;
    return t->image->is_lacking;
}

static int put_value(const struct deltafs_record *r, void *arg)
{
    const struct table *t = arg;

    h5_put(t->image, r->value, r->size);
    return t->image->is_lacking;
}

/* The label whose units the columns have. */
static uint64_t table_last(const struct table *t)
{
    return t->records && t->count > 0 ? t->records->record[t->count - 1].label : t->epoch.last;
}

/* The units of stored columns. */
static void put_units(const struct table *t, struct h5_bytes *dataset)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};
    char prefix[300];

    for (size_t i = 0; t->schema && i < deltafs_schema_count(t->schema); i++) {
        const char *name = deltafs_schema_field(t->schema, i)->name;
        if (deltafs_attribute_get(t->dir, name, table_last(t), &a) != DELTAFS_OK)
            continue;
        snprintf(prefix, sizeof prefix, "%s.", name);
        h5_unit(dataset, prefix, &a);
    }
}

/* Put a dataset of what `fn` puts for each record into the image, and link it to `parent`. */
static int table_dataset(struct table *t, deltafs_record_fn fn, const char *name, const struct h5_bytes *type,
                         uint64_t n, struct h5_bytes *parent)
{
    struct h5_bytes dataset;

    h5_put_zeros(t->image, (8 - t->image->used % 8) % 8);
    uint64_t at = t->image->used;
    int status = table_visit(t, fn);
    h5_dataset_begin(&dataset, type, n, at, t->image->used - at);
    if (fn == put_row && status == DELTAFS_OK)
        put_units(t, &dataset);
    h5_link(parent, name, h5_object_end(t->image, &dataset));
    return status;
}

static int compute(const struct deltafs_record *r, void *arg)
{
    struct table *t = arg;

    t->failed = h5_computed_add(t->computed, 1, r);
    return t->failed;
}

/* A dataset of each computed column. */
static int table_computed(struct table *t, struct h5_bytes *parent)
{
    int status = DELTAFS_OK;

    if (!t->schema || t->computed->count == 0)
        return DELTAFS_OK;
    if (t->records)
        t->failed = h5_computed_add(t->computed, t->records->count, t->records->record);
    else
        status = table_visit(t, compute);
    h5_computed_put(t->computed, t->failed, table_last(t), t->image, parent);
    return status;
}

static int table_put(struct table *t, const char *name, struct h5_bytes *parent)
{
    struct h5_bytes type = {0}, byte = {0};
    int status = table_computed(t, parent);

    if (status != DELTAFS_OK)
        return status;
    table_type(t, &type);
    if (type.used > H5_MESSAGE_MAX) { /* without columns */
        deltafs_schema_destroy(t->schema);
        t->schema = NULL;
        type.used = 0;
        table_type(t, &type);
    }
    status = table_dataset(t, put_row, name, &type, t->count, parent);
    h5_put_type(&byte, (struct h5_type){'u', 1});
    if (t->is_various && status == DELTAFS_OK)
        status = table_dataset(t, put_value, "values", &byte, t->bytes, parent);
    h5_bytes_fini(&type);
    h5_bytes_fini(&byte);
    return status;
}

/* Where it comes from. */
static void put_provenance(struct h5_bytes *o, const struct deltafs_stat *stat, const char *path)
{
    h5_attribute_text(o, "container", path);
    h5_attribute_text(o, "uuid", stat->uuid);
    h5_attribute_text(o, "schema", stat->schema);
    h5_attribute_text(o, "deltafs_version", deltafs_version());
}

/* The driver's own attributes: a directory's attribute of such a name, with any number of '_' behind it, gets one '_'
 * more. */
static int is_own_name(const char *name)
{
    static const char *const own[] = {"container", "uuid",         "schema",           "deltafs_version",
                                      "keys",      "partitions",   "epochs",           "records",
                                      "bytes_raw", "value_size",   "is_closed",        "groups_left_out",
                                      "label",     "bytes_stored", "records_left_out", "computed_left_out"};
    size_t n = strlen(name);

    while (n > 0 && name[n - 1] == '_')
        n--;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strlen(own[i]) == n && memcmp(name, own[i], n) == 0)
            return 1;
    return 0;
}

/* Units of columns are those of their datasets. */
static void put_attribute(struct h5_bytes *o, const struct deltafs_attribute *a)
{
    static const char kinds[] = {
        [DELTAFS_ATTRIBUTE_F8] = 'f', [DELTAFS_ATTRIBUTE_I8] = 'i', [DELTAFS_ATTRIBUTE_U8] = 'u'};
    char name[300], prefix[304];

    snprintf(name, sizeof name, "%s%s", a->name, is_own_name(a->name) ? "_" : "");
    snprintf(prefix, sizeof prefix, "%s.", name);
    if (a->type <= DELTAFS_ATTRIBUTE_U8) {
        h5_attribute_numbers(o, name, kinds[a->type], a->value, a->count);
        h5_unit(o, prefix, a);
    } else if (a->type != DELTAFS_ATTRIBUTE_COLUMN) {
        h5_attribute_text(o, name, a->value);
    }
}

/* The directory's attributes that are valid from labels `first` to `last` on. */
static void put_attributes(struct h5_bytes *o, deltafs_dir *dir, const struct deltafs_stat *stat, uint64_t first,
                           uint64_t last)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};

    for (size_t i = 0; i < stat->attributes && deltafs_attribute_at(dir, i, &a) == DELTAFS_OK; i++)
        if (a.from >= first && a.from <= last)
            put_attribute(o, &a);
}

static int is_text(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)bytes[i] < 0x20 || (unsigned char)bytes[i] > 0x7e)
            return 0;
    return 1;
}

static void put_key(struct h5_bytes *o, const struct deltafs_record *r)
{
    if (r->key_bytes)
        h5_attribute_bytes(o, "key", is_text(r->key_bytes, r->key_size) ? 'S' : 'V', r->key_bytes, r->key_size);
    else
        h5_attribute_number(o, "key", r->key);
}

/* A tool that is given DIR/480 looks for a file of that name before it looks for the object /480 of the file DIR. Where
 * there are both, say which this is. */
static void put_meaning(struct h5_bytes *o, deltafs_dir *dir, const struct deltafs_stat *stat, const char *path,
                        const struct deltafs_record *r)
{
    struct deltafs_epoch_stat e = {.struct_size = sizeof e};
    char label[24], text[512];

    for (uint64_t i = 0; i < stat->epochs && deltafs_epoch_stat(dir, i, &e) == DELTAFS_OK; i++) {
        int n = snprintf(label, sizeof label, "%" PRIu64, e.label);
        if (r->key_bytes ? r->key_size != (size_t)n || memcmp(r->key_bytes, label, r->key_size) != 0
                         : r->key != e.label)
            continue;
        snprintf(text, sizeof text,
                 "this is the trajectory of the key %s; epoch %s is the group /%s of the file %.300s (h5dump -g /%s)",
                 label, label, label, path, label);
        h5_attribute_text(o, "not_the_epoch", text);
    }
}

int h5_trajectory(deltafs_dir *dir, const char *path, const deltafs_records *records, struct h5_bytes *image)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct h5_computed computed = {0};
    struct table t = {.dir = dir, .stat = &stat, .records = records, .image = image, .computed = &computed};
    struct h5_bytes root;
    int status = deltafs_stat(dir, &stat);

    if (status == DELTAFS_OK)
        status = table_measure(&t);
    if (status == DELTAFS_OK)
        status = h5_computed_open(&computed, dir, stat.schema);
    if (status != DELTAFS_OK) {
        deltafs_schema_destroy(t.schema);
        h5_computed_close(&computed);
        return status;
    }
    h5_image_begin(image);
    h5_group_begin(&root);
    if (records->count > 0) {
        put_key(&root, &records->record[0]);
        put_meaning(&root, dir, &stat, path, &records->record[0]);
    }
    put_provenance(&root, &stat, path);
    put_attributes(&root, dir, &stat, 0, 0);
    status = table_put(&t, "trajectory", &root);
    deltafs_schema_destroy(t.schema);
    h5_computed_close(&computed);
    h5_image_end(image, h5_object_end(image, &root));
    return status;
}

/* ---- A directory ---- */

/* The epoch's records as datasets, if they fit into *left bytes. Memory grows to twice of what is needed; computed
 * columns are there twice for a while. */
static int put_records(struct table *t, uint64_t *left, struct h5_bytes *group)
{
    int status = table_measure(t);
    uint64_t size = t->count * (table_row_size(t) + 16 * t->computed->count) + (t->is_various ? t->bytes : 0);

    if (status == DELTAFS_OK && size <= *left / 2) {
        *left -= 2 * size;
        status = table_put(t, "records", group);
    } else if (status == DELTAFS_OK) {
        h5_attribute_text(group, "records_left_out", "they take more memory than the driver's option records allows");
    }
    deltafs_schema_destroy(t->schema);
    return status;
}

/* An epoch's numbers, in the order in which it has them here. */
static int epoch_numbers(deltafs_dir *dir, uint64_t i, uint64_t number[4])
{
    struct deltafs_epoch_stat e = {.struct_size = sizeof e};
    int status = deltafs_epoch_stat(dir, i, &e);

    memcpy(number, (const uint64_t[]){e.label, e.records, e.bytes_raw, e.bytes_stored}, 4 * sizeof *number);
    return status;
}
static const char *const epoch_names[] = {"label", "records", "bytes_raw", "bytes_stored"};

/* *first: the label behind that of the epoch before; of attributes this epoch has those that are valid from there on,
 * up to its own. */
static int put_epoch(struct h5_computed *computed, const struct deltafs_stat *stat, uint64_t i, uint64_t bytes_max,
                     uint64_t *left, uint64_t *first, struct h5_bytes *image, struct h5_bytes *root)
{
    deltafs_dir *dir = computed->dir;
    struct h5_bytes group;
    uint64_t number[4];
    char name[24];
    int status = epoch_numbers(dir, i, number);

    if (status != DELTAFS_OK)
        return status;
    struct table t = {.dir = dir, .stat = stat, .epoch = {number[0], number[0]}, .image = image, .computed = computed};
    h5_group_begin(&group);
    for (size_t k = 0; k < 4; k++)
        h5_attribute_number(&group, epoch_names[k], number[k]);
    put_attributes(&group, dir, stat, *first, number[0]);
    *first = number[0] + 1;
    if (bytes_max > 0)
        status = put_records(&t, left, &group);
    snprintf(name, sizeof name, "%" PRIu64, number[0]);
    h5_link(root, name, h5_object_end(image, &group));
    return status;
}

/* All epochs in one table. */
static int put_epochs(deltafs_dir *dir, uint64_t n, struct h5_bytes *image, struct h5_bytes *root)
{
    struct h5_bytes type = {0}, dataset;
    uint64_t at = image->used, number[4];
    int status = DELTAFS_OK;

    h5_put_compound(&type, 4, 32);
    for (uint32_t k = 0; k < 4; k++)
        h5_put_member(&type, 32, epoch_names[k], 8 * k, (struct h5_type){'u', 8});
    for (uint64_t i = 0; i < n && status == DELTAFS_OK; i++) {
        status = epoch_numbers(dir, i, number);
        for (size_t k = 0; k < 4; k++)
            h5_put_number(image, number[k], 8);
    }
    h5_dataset_begin(&dataset, &type, n, at, image->used - at);
    h5_link(root, "epochs", h5_object_end(image, &dataset));
    h5_bytes_fini(&type);
    return status;
}

int h5_description(deltafs_dir *dir, const char *path, uint64_t bytes_max, struct h5_bytes *image)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct h5_computed computed = {.dir = dir};
    struct h5_bytes root;
    uint64_t left = bytes_max, first = 1;
    int status = deltafs_stat(dir, &stat);

    if (status == DELTAFS_OK && bytes_max > 0)
        status = h5_computed_open(&computed, dir, stat.schema);
    if (status != DELTAFS_OK) {
        h5_computed_close(&computed);
        return status;
    }
    h5_image_begin(image);
    h5_group_begin(&root);
    put_provenance(&root, &stat, path);
    put_attributes(&root, dir, &stat, 0, 0);
    h5_attribute_text(&root, "keys", stat.keys);
    h5_attribute_number(&root, "partitions", stat.partitions);
    h5_attribute_number(&root, "epochs", stat.epochs);
    h5_attribute_number(&root, "records", stat.records);
    h5_attribute_number(&root, "bytes_raw", stat.bytes_raw);
    if (stat.value_size >= 0)
        h5_attribute_number(&root, "value_size", (uint64_t)stat.value_size);
    h5_attribute_text(&root, "is_closed", stat.is_closed ? "yes" : "no");
    status = put_epochs(dir, stat.epochs, image, &root);
    if (stat.epochs > GROUPS_MAX)
        h5_attribute_text(&root, "groups_left_out",
                          "there are too many epochs for a group each; see the dataset epochs");
    for (uint64_t i = 0; i < stat.epochs && stat.epochs <= GROUPS_MAX && status == DELTAFS_OK; i++)
        status = put_epoch(&computed, &stat, i, bytes_max, &left, &first, image, &root);
    h5_computed_close(&computed);
    h5_image_end(image, h5_object_end(image, &root));
    return status;
}
