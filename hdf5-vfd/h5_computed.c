#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "h5_computed.h"

int h5_computed_open(struct h5_computed *c, deltafs_dir *dir, const char *schema)
{
    deltafs_schema *stored;

    *c = (struct h5_computed){.dir = dir};
    if (schema[0] == '\0')
        return DELTAFS_OK;
    int status = deltafs_schema_parse(schema, &stored);
    if (status != DELTAFS_OK)
        return status;
    c->first = deltafs_schema_count(stored);
    deltafs_schema_destroy(stored);
    status = deltafs_columns_open(dir, NULL, &c->columns);
    if (status == DELTAFS_OK)
        status = deltafs_schema_parse(deltafs_columns_schema(c->columns), &c->schema);
    if (status != DELTAFS_OK)
        return status;
    c->count = deltafs_schema_count(c->schema) - c->first;
    c->value = calloc(c->count + 1, sizeof *c->value);
    return c->value ? DELTAFS_OK : DELTAFS_ERR_MEMORY;
}

void h5_computed_close(struct h5_computed *c)
{
    for (size_t k = 0; c->value && k < c->count; k++)
        h5_bytes_fini(&c->value[k]);
    free(c->value);
    deltafs_schema_destroy(c->schema);
    deltafs_columns_close(c->columns);
}

int h5_computed_add(struct h5_computed *c, size_t n, const struct deltafs_record *records)
{
    const struct deltafs_record *row;
    int status = c->count > 0 ? deltafs_columns_rows(c->columns, n, records, &row) : DELTAFS_OK;

    for (size_t k = 0; k < c->count && status == DELTAFS_OK; k++) {
        const struct deltafs_field *f = deltafs_schema_field(c->schema, c->first + k);
        for (size_t i = 0; i < n; i++)
            h5_put(&c->value[k], (const uint8_t *)row[i].value + f->offset, f->size);
    }
    return status;
}

void h5_unit(struct h5_bytes *o, const char *prefix, const struct deltafs_attribute *a)
{
    char name[300];
    uint64_t bits[7];

    if (a->unit_si == 0)
        return;
    snprintf(name, sizeof name, "%sunitSI", prefix);
    memcpy(bits, &a->unit_si, sizeof a->unit_si);
    h5_attribute_numbers(o, name, 'f', bits, 1);
    snprintf(name, sizeof name, "%sunitDimension", prefix);
    memcpy(bits, a->unit_dimension, sizeof bits);
    h5_attribute_numbers(o, name, 'f', bits, 7);
}

/* The datasets that there are beside those of computed columns. */
static int is_own_dataset(const char *name)
{
    static const char *const own[] = {"trajectory", "records", "values"};

    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (strncmp(name, own[i], strlen(own[i])) == 0 &&
            strspn(name + strlen(own[i]), "_") == strlen(name + strlen(own[i])))
            return 1;
    return 0;
}

static void put_column(struct h5_computed *c, size_t k, uint64_t label, struct h5_bytes *image, struct h5_bytes *parent)
{
    const struct deltafs_field *f = deltafs_schema_field(c->schema, c->first + k);
    struct deltafs_attribute a = {.struct_size = sizeof a};
    struct h5_bytes *value = &c->value[k], type = {0}, dataset;
    char name[300];

    h5_put_zeros(image, (8 - image->used % 8) % 8);
    uint64_t at = image->used;
    h5_put(image, value->bytes, value->used);
    image->is_lacking |= value->is_lacking;
    h5_put_type(&type, (struct h5_type){'f', 8});
    h5_dataset_begin(&dataset, &type, value->used / 8, at, value->used);
    if (deltafs_attribute_get(c->dir, f->name, label, &a) == DELTAFS_OK)
        h5_unit(&dataset, "", &a);
    snprintf(name, sizeof name, "%s%s", f->name, is_own_dataset(f->name) ? "_" : "");
    h5_link(parent, name, h5_object_end(image, &dataset));
    h5_bytes_fini(&type);
}

void h5_computed_put(struct h5_computed *c, int status, uint64_t label, struct h5_bytes *image, struct h5_bytes *parent)
{
    if (status != DELTAFS_OK)
        h5_attribute_text(parent, "computed_left_out", deltafs_errmsg(NULL));
    for (size_t k = 0; k < c->count; k++) {
        if (status == DELTAFS_OK)
            put_column(c, k, label, image, parent);
        h5_bytes_fini(&c->value[k]);
    }
}
