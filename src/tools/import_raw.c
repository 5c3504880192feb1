/* Files of fixed-size records, described by a schema of which one field is the key. The values are the records without
 * that field. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/import.h"

struct raw {
    deltafs_schema *schema;
    struct deltafs_field key;
    size_t record; /* bytes */
    uint64_t skip, label;
    char *value_schema;
    uint8_t *records; /* a chunk as read, then without the keys */
    uint64_t *keys;
};

static void raw_end(void *state)
{
    struct raw *r = state;

    if (!r)
        return;
    deltafs_schema_destroy(r->schema);
    free(r->value_schema);
    free(r->records);
    free(r->keys);
    free(r);
}

static int raw_find_key(struct raw *r, const char *name, char message[INPUT_MESSAGE_MAX])
{
    for (size_t i = 0; i < deltafs_schema_count(r->schema); i++) {
        const struct deltafs_field *f = deltafs_schema_field(r->schema, i);
        if (strcmp(f->name, name) != 0)
            continue;
        if (f->kind != 'u' && f->kind != 'i') {
            snprintf(message, INPUT_MESSAGE_MAX, "--key: the field '%s' is no integer (u1 to u8, i1 to i8)", name);
            return -1;
        }
        r->key = *f;
        return 0;
    }
    snprintf(message, INPUT_MESSAGE_MAX, "--key: the schema has no field '%s'", name);
    return -1;
}

/* The schema's text without the key's field. */
static int raw_make_value_schema(struct raw *r, const char *text, char message[INPUT_MESSAGE_MAX])
{
    r->value_schema = calloc(1, strlen(text) + 1);
    if (!r->value_schema) {
        snprintf(message, INPUT_MESSAGE_MAX, "no memory for a schema");
        return -1;
    }
    for (size_t i = 0; i < deltafs_schema_count(r->schema); i++) {
        const struct deltafs_field *f = deltafs_schema_field(r->schema, i);
        size_t at = strlen(r->value_schema);
        if (strcmp(f->name, r->key.name) != 0)
            snprintf(r->value_schema + at, strlen(text) + 1 - at, "%s%s:%c%" PRIu32, at > 0 ? "," : "", f->name,
                     f->kind, f->size);
    }
    if (r->value_schema[0] == '\0') {
        snprintf(message, INPUT_MESSAGE_MAX, "--schema: there must be a field besides the key");
        return -1;
    }
    return 0;
}

static int raw_begin(const struct import_options *o, void **state, char message[INPUT_MESSAGE_MAX])
{
    if (!o->schema || !o->key) {
        snprintf(message, INPUT_MESSAGE_MAX, "--format raw needs --schema NAME:TYPE,... and --key FIELD");
        return -1;
    }
    struct raw *r = calloc(1, sizeof *r);
    if (!r) {
        snprintf(message, INPUT_MESSAGE_MAX, "no memory");
        return -1;
    }
    *state = r;
    r->skip = o->skip;
    r->label = o->epoch;
    if (deltafs_schema_parse(o->schema, &r->schema) != DELTAFS_OK) {
        snprintf(message, INPUT_MESSAGE_MAX, "--schema: %s", deltafs_errmsg(NULL));
        return -1;
    }
    r->record = deltafs_schema_size(r->schema);
    if (raw_find_key(r, o->key, message) != 0 || raw_make_value_schema(r, o->schema, message) != 0)
        return -1;
    r->records = malloc(import_chunk(r->record) * r->record);
    r->keys = malloc(import_chunk(r->record) * sizeof *r->keys);
    if (!r->records || !r->keys) {
        snprintf(message, INPUT_MESSAGE_MAX, "no memory to read records of %zu bytes", r->record);
        return -1;
    }
    return 0;
}

static const char *raw_schema(const void *state)
{
    return ((const struct raw *)state)->value_schema;
}

static int raw_inspect(void *state, const struct input *in, struct import_file *out, char message[INPUT_MESSAGE_MAX])
{
    const struct raw *r = state;

    if (in->size < r->skip || (in->size - r->skip) % r->record != 0) {
        snprintf(message, INPUT_MESSAGE_MAX,
                 "%s: has %" PRIu64 " bytes: after %" PRIu64 " bytes to skip, this is no multiple of a record's %zu "
                 "bytes (the file is truncated, or --schema or --skip is wrong)",
                 in->path, in->size, r->skip, r->record);
        return -1;
    }
    *out = (struct import_file){.label = r->label, .records = (in->size - r->skip) / r->record};
    return 0;
}

static uint64_t raw_key(const struct raw *r, const uint8_t *record)
{
    uint64_t v = 0;

    for (uint32_t i = r->key.size; i-- > 0;)
        v = v << 8 | record[r->key.offset + i];
    return v;
}

static size_t raw_record(const void *state)
{
    return ((const struct raw *)state)->record;
}

static int raw_append(void *state, const struct input *in, uint64_t first, size_t n, deltafs_dir *d,
                      char message[INPUT_MESSAGE_MAX])
{
    struct raw *r = state;
    size_t size = r->record - r->key.size, behind = r->record - r->key.offset - r->key.size;

    if (input_read(in, r->skip + first * r->record, r->records, n * r->record, message) != 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *record = r->records + i * r->record;
        r->keys[i] = raw_key(r, record);
        if (r->key.kind == 'i' && r->keys[i] >> (8 * r->key.size - 1) != 0) {
            snprintf(message, INPUT_MESSAGE_MAX, "%s: at offset %" PRIu64 ": the key of record %" PRIu64 " is negative",
                     in->path, r->skip + (first + i) * r->record + r->key.offset, first + i);
            return -1;
        }
        /* In place: a value never begins behind its record. */
        uint8_t *value = r->records + i * size;
        memmove(value, record, r->key.offset);
        memmove(value + r->key.offset, record + r->key.offset + r->key.size, behind);
    }
    deltafs_append_many(d, n, r->keys, sizeof *r->keys, r->records, size, size);
    return 0;
}

const struct import_format import_raw = {.name = "raw",
                                         .begin = raw_begin,
                                         .schema = raw_schema,
                                         .inspect = raw_inspect,
                                         .record = raw_record,
                                         .append = raw_append,
                                         .end = raw_end};
