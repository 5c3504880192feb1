/* Schemas: the text is parsed into fields that point into one copy of it. */
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "base/options.h"
#include "base/schema_text.h"

#define SCHEMA_SIZE_MAX (1u << 20) /* bytes of a record, as the option value_size */

struct deltafs_schema {
    size_t count;
    size_t size;
    char *text;
    struct deltafs_field *field;
};

static int schema_field_is_valid(const struct deltafs_field *f)
{
    switch (f->kind) {
    case 'f':
        return f->size == 4 || f->size == 8;
    case 'i':
    case 'u':
        return f->size == 1 || f->size == 2 || f->size == 4 || f->size == 8;
    case 'S':
    case 'V':
        return f->size >= 1 && f->size <= SCHEMA_SIZE_MAX;
    default:
        return 0;
    }
}

/* Take the error bound that may follow a type. */
static int schema_bound_parse(const char *name, char *type, struct deltafs_field *f, struct error *e)
{
    char *bound = strchr(type, '~');

    if (!bound)
        return DELTAFS_OK;
    *bound++ = '\0';
    if (number_parse_real(bound, &f->bound) != 0 || f->bound <= 0)
        return error_set(
            e, DELTAFS_ERR_SCHEMA,
            "schema: field '%s' has the error bound '%s', which is not a number above 0, such as 0.5 or 1e-4", name,
            bound);
    return DELTAFS_OK;
}

/* Take one "name:type" apart in place. */
static int schema_field_parse(char *text, struct deltafs_field *f, struct error *e)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
    char *type = strchr(text, ':');
    uint64_t size = 0;

    if (!type)
        return error_set(e, DELTAFS_ERR_SCHEMA, "schema: field '%s' is not NAME:TYPE", text);
    *type++ = '\0';
    if (*text == '\0' || text[strspn(text, allowed)] != '\0')
        return error_set(e, DELTAFS_ERR_SCHEMA, "schema: field name '%s' is not made of letters, digits, '_' and '.'",
                         text);
    f->name = text;
    if (schema_bound_parse(text, type, f, e) != DELTAFS_OK)
        return DELTAFS_ERR_SCHEMA;
    const char *letter = *type == '<' ? type + 1 : type;
    f->kind = *letter;
    /* A number as people write it: no 0x, no leading zero. */
    if (*letter != '\0' && letter[1] != '0' && number_parse(letter + 1, &size) == 0 && size <= SCHEMA_SIZE_MAX)
        f->size = (uint32_t)size;
    if (!schema_field_is_valid(f))
        return error_set(e, DELTAFS_ERR_SCHEMA,
                         "schema: field '%s' has the type '%s'; the types are f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 Sn Vn, "
                         "little-endian",
                         text, type);
    if (f->bound > 0 && f->kind != 'f')
        return error_set(e, DELTAFS_ERR_SCHEMA, "schema: field '%s' has an error bound, which only f4 and f8 can have",
                         text);
    return DELTAFS_OK;
}

static int schema_fill(deltafs_schema *s, struct error *e)
{
    char *next = s->text;

    while (next) {
        struct deltafs_field *f = &s->field[s->count];
        char *text = next;
        next = strchr(text, ',');
        if (next)
            *next++ = '\0';
        int status = schema_field_parse(text, f, e);
        if (status != DELTAFS_OK)
            return status;
        for (size_t i = 0; i < s->count; i++)
            if (strcmp(s->field[i].name, f->name) == 0)
                return error_set(e, DELTAFS_ERR_SCHEMA, "schema: two fields are named '%s'", f->name);
        f->offset = (uint32_t)s->size;
        s->size += f->size;
        s->count++;
        if (s->size > SCHEMA_SIZE_MAX)
            return error_set(e, DELTAFS_ERR_SCHEMA, "schema: a record of more than %u bytes", SCHEMA_SIZE_MAX);
    }
    return DELTAFS_OK;
}

int deltafs_schema_parse(const char *text, deltafs_schema **out)
{
    struct error *e = deltafs_private_thread_error();
    size_t commas = 0;

    if (!text || !out)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_schema_parse: text and out must be given");
    deltafs_schema *s = calloc(1, sizeof *s);
    if (!s)
        return error_no_memory(e, sizeof *s, "a schema");
    int status = schema_text_plain(text, &s->text, e);
    for (const char *p = s->text; p && *p; p++)
        commas += *p == ',';
    if (status == DELTAFS_OK) {
        s->field = calloc(commas + 1, sizeof *s->field);
        status = s->field ? schema_fill(s, e) : error_no_memory(e, commas + 1, "a schema");
    }
    if (status != DELTAFS_OK) {
        deltafs_schema_destroy(s);
        return status;
    }
    *out = s;
    return DELTAFS_OK;
}

void deltafs_schema_destroy(deltafs_schema *s)
{
    if (!s)
        return;
    free(s->text);
    free(s->field);
    free(s);
}

size_t deltafs_schema_size(const deltafs_schema *s)
{
    return s->size;
}

size_t deltafs_schema_count(const deltafs_schema *s)
{
    return s->count;
}

const struct deltafs_field *deltafs_schema_field(const deltafs_schema *s, size_t i)
{
    return i < s->count ? &s->field[i] : NULL;
}
