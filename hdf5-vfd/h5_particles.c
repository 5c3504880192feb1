#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "h5_particles.h"

#define GROUPS_MAX 4096 /* of epochs: HDF5 looks through compact links one by one */
#define KEY_MAX    255  /* bytes of a key */

/* How the records of a table become rows. */
struct table {
    const char *label; /* of the first column, which distinguishes the rows */
    int is_by_key;     /* it is the key, not the epoch */
    uint32_t key_size; /* of a key of bytes; else 8 */
    const deltafs_schema *schema;
    uint32_t value_size; /* of all values */
    int is_various;      /* values have different sizes */
    const struct deltafs_record *record;
    size_t count;
};

/* A name for the first column that is none of the schema's. */
static const char *table_label(const struct table *t, char name[64])
{
    snprintf(name, 64, "%s", t->label);
    for (size_t i = 0; t->schema && i < deltafs_schema_count(t->schema); i++)
        if (strcmp(deltafs_schema_field(t->schema, i)->name, name) == 0 && strlen(name) < 62) {
            memcpy(name + strlen(name), "_", 2);
            i = SIZE_MAX;
        }
    return name;
}

static uint32_t table_row_size(const struct table *t)
{
    return t->is_various ? t->key_size + 16 : t->key_size + t->value_size;
}

static int table_type(const struct table *t, struct h5_bytes *type)
{
    size_t fields = t->schema && !t->is_various ? deltafs_schema_count(t->schema) : 0;
    size_t n = 1 + (t->is_various ? 2 : fields > 0 ? fields : t->value_size > 0);
    struct h5_member *member = calloc(n + 1, sizeof *member);
    char name[64];

    if (!member) {
        type->is_lacking = 1;
        return 0;
    }
    member[0] = (struct h5_member){table_label(t, name), {t->key_size == 8 ? 'u' : 'S', t->key_size}, 0};
    for (size_t i = 0; i < fields; i++) {
        const struct deltafs_field *f = deltafs_schema_field(t->schema, i);
        member[i + 1] = (struct h5_member){f->name, {f->kind, f->size}, t->key_size + f->offset};
    }
    if (t->is_various) {
        member[1] = (struct h5_member){"offset", {'u', 8}, t->key_size};
        member[2] = (struct h5_member){"size", {'u', 8}, t->key_size + 8};
    } else if (fields == 0 && n == 2) {
        member[1] = (struct h5_member){"value", {'V', t->value_size}, t->key_size};
    }
    int rc = h5_put_compound(type, table_row_size(t), n, member);
    free(member);
    return rc;
}

static void table_row(const struct table *t, const struct deltafs_record *r, uint64_t offset, struct h5_bytes *image)
{
    if (!t->is_by_key) {
        h5_put_number(image, r->label, 8);
    } else if (!r->key_bytes) {
        h5_put_number(image, r->key, 8);
    } else {
        h5_put(image, r->key_bytes, r->key_size);
        h5_put_zeros(image, t->key_size - r->key_size);
    }
    if (t->is_various) {
        h5_put_number(image, offset, 8);
        h5_put_number(image, r->size, 8);
    } else {
        h5_put(image, r->value, r->size);
    }
}

/* Put the table's data and objects into the image, and link them to `parent`. */
static void table_put(struct table *t, const char *name, struct h5_bytes *image, struct h5_object *parent)
{
    struct h5_bytes type = {0}, byte = {0};
    struct h5_object dataset;
    uint64_t offset = 0, at;

    /* A type that is too long for HDF5 has no columns. */
    if (table_type(t, &type) != 0) {
        t->schema = NULL;
        table_type(t, &type);
    }
    h5_put_zeros(image, (8 - image->used % 8) % 8);
    at = image->used;
    for (size_t i = 0; i < t->count; i++) {
        table_row(t, &t->record[i], offset, image);
        offset += t->record[i].size;
    }
    h5_dataset_begin(&dataset, &type, t->count, at, image->used - at);
    h5_link(parent, name, h5_object_end(image, &dataset));
    if (t->is_various) {
        at = image->used;
        for (size_t i = 0; i < t->count; i++)
            h5_put(image, t->record[i].value, t->record[i].size);
        h5_put_type(&byte, (struct h5_type){'u', 1});
        h5_dataset_begin(&dataset, &byte, offset, at, offset);
        h5_link(parent, "values", h5_object_end(image, &dataset));
    }
    h5_bytes_fini(&type);
    h5_bytes_fini(&byte);
}

/* What is known of the values. */
static int table_init(struct table *t, const struct deltafs_stat *stat, const struct deltafs_record *record,
                      size_t count, deltafs_schema **schema)
{
    t->record = record;
    t->count = count;
    t->key_size = 8;
    if (t->is_by_key && strcmp(stat->keys, "bytes") == 0) {
        t->key_size = 1;
        for (size_t i = 0; i < count; i++)
            if (record[i].key_size > t->key_size && record[i].key_size <= KEY_MAX)
                t->key_size = (uint32_t)record[i].key_size;
        t->key_size += t->key_size == 8; /* eight bytes are a number */
    }
    uint64_t size = stat->value_size >= 0 ? (uint64_t)stat->value_size : count > 0 ? record[0].size : 0;
    t->is_various = size > UINT32_MAX - KEY_MAX;
    for (size_t i = 0; i < count; i++)
        t->is_various |= record[i].size != size;
    t->value_size = t->is_various ? 0 : (uint32_t)size;
    *schema = NULL;
    if (!stat->schema[0])
        return DELTAFS_OK;
    int status = deltafs_schema_parse(stat->schema, schema);
    t->schema = status == DELTAFS_OK && deltafs_schema_size(*schema) == t->value_size ? *schema : NULL;
    return status;
}

/* Where it comes from. */
static void put_provenance(struct h5_object *o, const struct deltafs_stat *stat, const char *path)
{
    h5_attribute_text(o, "container", path);
    h5_attribute_text(o, "uuid", stat->uuid);
    h5_attribute_text(o, "schema", stat->schema);
    h5_attribute_text(o, "deltafs_version", deltafs_version());
}

static int is_text(const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)bytes[i] < 0x20 || (unsigned char)bytes[i] > 0x7e)
            return 0;
    return 1;
}

static void put_key(struct h5_object *o, const struct deltafs_record *r)
{
    char text[KEY_MAX + 1];

    if (!r->key_bytes) {
        h5_attribute_number(o, "key", r->key);
    } else if (r->key_size <= KEY_MAX && is_text(r->key_bytes, r->key_size)) {
        memcpy(text, r->key_bytes, r->key_size);
        text[r->key_size] = '\0';
        h5_attribute_text(o, "key", text);
    } else {
        h5_attribute_bytes(o, "key", r->key_bytes, r->key_size);
    }
}

int h5_trajectory(deltafs_dir *dir, const char *path, const deltafs_records *records, struct h5_bytes *image)
{
    struct table t = {.label = "epoch"};
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct h5_object root;
    deltafs_schema *schema = NULL;
    int status = deltafs_stat(dir, &stat);

    if (status == DELTAFS_OK)
        status = table_init(&t, &stat, records->record, records->count, &schema);
    if (status != DELTAFS_OK)
        return status;
    h5_image_init(image);
    h5_group_begin(&root);
    if (records->count > 0)
        put_key(&root, &records->record[0]);
    put_provenance(&root, &stat, path);
    table_put(&t, "trajectory", image, &root);
    deltafs_schema_destroy(schema);
    return h5_image_end(image, h5_object_end(image, &root)) == 0 ? DELTAFS_OK : H5_PARTICLES_MEMORY;
}

/* ---- A directory ---- */

/* Copies of an epoch's records, which a scan lends only. */
struct copies {
    struct h5_bytes records, bytes;
    uint64_t left; /* bytes of memory that may still be taken */
    int is_over;
};

/* Memory grows to twice of what is needed. */
static int copies_take(uint64_t *left, uint64_t size)
{
    if (size > *left / 2)
        return -1;
    *left -= 2 * size;
    return 0;
}

/* Its bytes move until all are there: so far, a pointer is an offset. */
static int copies_add(const struct deltafs_record *r, void *arg)
{
    struct copies *c = arg;
    struct deltafs_record copy = *r;

    if (copies_take(&c->left, sizeof copy + r->size + (r->key_bytes ? r->key_size : 0)) != 0) {
        c->is_over = 1;
        return 1;
    }
    copy.value = (void *)(uintptr_t)c->bytes.used;
    h5_put(&c->bytes, r->value, r->size);
    copy.key_bytes = r->key_bytes ? (void *)(uintptr_t)(c->bytes.used + 1) : NULL;
    h5_put(&c->bytes, r->key_bytes, r->key_bytes ? r->key_size : 0);
    h5_put(&c->records, &copy, sizeof copy);
    return c->records.is_lacking || c->bytes.is_lacking;
}

static struct deltafs_record *copies_end(struct copies *c, size_t *count)
{
    struct deltafs_record *record = (struct deltafs_record *)(void *)c->records.bytes;

    *count = c->records.used / sizeof *record;
    for (size_t i = 0; i < *count; i++) {
        record[i].value = c->bytes.bytes + (uintptr_t)record[i].value;
        if (record[i].key_bytes)
            record[i].key_bytes = c->bytes.bytes + (uintptr_t)record[i].key_bytes - 1;
    }
    return record;
}

/* Bytes of all rows, and of values stored outside them. */
static uint64_t table_size(const struct table *t)
{
    uint64_t size = (uint64_t)t->count * table_row_size(t);

    for (size_t i = 0; t->is_various && i < t->count; i++)
        size += t->record[i].size;
    return size;
}

/* The epoch's records as a dataset, if there is room for them twice: for copies, while it is made, and as rows. */
static int put_records(deltafs_dir *dir, const struct deltafs_stat *stat, uint64_t label, uint64_t *left,
                       struct h5_bytes *image, struct h5_object *group)
{
    const struct deltafs_range range = {label, label};
    struct copies c = {.left = *left};
    struct table t = {.label = "key", .is_by_key = 1};
    deltafs_schema *schema = NULL;
    size_t count;
    int stopped = 0, status = deltafs_scan(dir, &range, copies_add, &c, &stopped);

    if (status == DELTAFS_OK && stopped == 0) {
        struct deltafs_record *record = copies_end(&c, &count);
        status = table_init(&t, stat, record, count, &schema);
        c.is_over = status == DELTAFS_OK && copies_take(&c.left, table_size(&t)) != 0;
        if (status == DELTAFS_OK && !c.is_over && copies_take(left, table_size(&t)) == 0)
            table_put(&t, "records", image, group);
        deltafs_schema_destroy(schema);
    }
    if (c.is_over)
        h5_attribute_text(group, "records_left_out", "they take more memory than the driver's option records allows");
    else if (stopped != 0)
        status = H5_PARTICLES_MEMORY;
    h5_bytes_fini(&c.records);
    h5_bytes_fini(&c.bytes);
    return status;
}

static int put_epoch(deltafs_dir *dir, const struct deltafs_stat *stat, uint64_t i, uint64_t bytes_max, uint64_t *left,
                     struct h5_bytes *image, struct h5_object *root)
{
    struct deltafs_epoch_stat e = {.struct_size = sizeof e};
    struct h5_object group;
    char name[24];
    int status = deltafs_epoch_stat(dir, i, &e);

    if (status != DELTAFS_OK)
        return status;
    h5_group_begin(&group);
    h5_attribute_number(&group, "label", e.label);
    h5_attribute_number(&group, "records", e.records);
    h5_attribute_number(&group, "bytes_raw", e.bytes_raw);
    h5_attribute_number(&group, "bytes_stored", e.bytes_stored);
    if (bytes_max > 0)
        status = put_records(dir, stat, e.label, left, image, &group);
    snprintf(name, sizeof name, "%" PRIu64, e.label);
    h5_link(root, name, h5_object_end(image, &group));
    return status;
}

/* All epochs in one table. */
static int put_epochs(deltafs_dir *dir, uint64_t n, struct h5_bytes *image, struct h5_object *root)
{
    static const struct h5_member member[] = {
        {"label", {'u', 8}, 0}, {"records", {'u', 8}, 8}, {"bytes_raw", {'u', 8}, 16}, {"bytes_stored", {'u', 8}, 24}};
    struct h5_bytes type = {0};
    struct h5_object dataset;
    struct deltafs_epoch_stat e = {.struct_size = sizeof e};
    uint64_t at = image->used;
    int status = DELTAFS_OK;

    h5_put_compound(&type, 32, 4, member);
    for (uint64_t i = 0; i < n && status == DELTAFS_OK; i++) {
        status = deltafs_epoch_stat(dir, i, &e);
        if (status != DELTAFS_OK)
            break;
        h5_put_number(image, e.label, 8);
        h5_put_number(image, e.records, 8);
        h5_put_number(image, e.bytes_raw, 8);
        h5_put_number(image, e.bytes_stored, 8);
    }
    h5_dataset_begin(&dataset, &type, n, at, image->used - at);
    h5_link(root, "epochs", h5_object_end(image, &dataset));
    h5_bytes_fini(&type);
    return status;
}

int h5_description(deltafs_dir *dir, const char *path, uint64_t bytes_max, struct h5_bytes *image)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct h5_object root;
    uint64_t left = bytes_max;
    int status = deltafs_stat(dir, &stat);

    if (status != DELTAFS_OK)
        return status;
    h5_image_init(image);
    h5_group_begin(&root);
    put_provenance(&root, &stat, path);
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
        status = put_epoch(dir, &stat, i, bytes_max, &left, image, &root);
    int is_short = h5_image_end(image, h5_object_end(image, &root));
    return status == DELTAFS_OK && is_short ? H5_PARTICLES_MEMORY : status;
}
