/* Arrays and NumPy's types in the text of a schema become plain fields: "pos:3f4" and [('pos', '<f4', (3,))] are
 * "pos_0:f4,pos_1:f4,pos_2:f4". Other mistakes than those in this notation are left for deltafs_schema_parse. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/compose.h"
#include "base/number.h"
#include "base/schema_text.h"

struct plain {
    struct compose text;
    uint64_t fields, paddings;
};

/* A part of the text. */
struct piece {
    const char *at;
    size_t size;
};

/* Add a field, or `count` fields of an array; 0: it is no array. */
static int plain_add(struct plain *p, struct piece name, uint64_t count, struct piece type, struct error *e)
{
    uint64_t fields = count > 0 ? count : 1;

    if (fields > SCHEMA_FIELDS_MAX - p->fields)
        return error_set(e, DELTAFS_ERR_SCHEMA, "schema: more than %d fields, where each element of an array is one",
                         SCHEMA_FIELDS_MAX);
    p->fields += fields;
    for (uint64_t i = 0; i == 0 || i < count; i++) {
        compose(&p->text, "%s%.*s", p->text.used > 0 ? "," : "", (int)name.size, name.at);
        if (count > 0)
            compose(&p->text, "_%" PRIu64, i);
        compose(&p->text, ":%.*s", (int)type.size, type.at);
    }
    return DELTAFS_OK;
}

/* ---- NAME:TYPE,... ---- */

/* The number of elements before a type, which is then behind it; 0 if there is none. */
static uint64_t pairs_take_count(struct piece *type)
{
    char digits[8] = "";
    uint64_t count;
    size_t n = strspn(type->at, "0123456789");

    if (n == 0 || n >= sizeof digits || *type->at == '0')
        return 0;
    memcpy(digits, type->at, n);
    if (number_parse(digits, &count) != 0)
        return 0;
    type->at += n;
    type->size -= n;
    return count;
}

static int pairs_add(struct plain *p, const char *text, struct error *e)
{
    int status = DELTAFS_OK;

    for (const char *next = text; next && status == DELTAFS_OK;) {
        const char *end = strchrnul(next, ','), *colon = memchr(next, ':', (size_t)(end - next));
        if (!colon)
            return error_set(e, DELTAFS_ERR_SCHEMA, "schema: field '%.*s' is not NAME:TYPE", (int)(end - next), next);
        struct piece name = {next, (size_t)(colon - next)}, type = {colon + 1, (size_t)(end - colon) - 1};
        uint64_t count = pairs_take_count(&type);
        status = plain_add(p, name, count, type, e);
        next = *end == ',' ? end + 1 : NULL;
    }
    return status;
}

/* ---- NumPy's dtype.descr: [(NAME, TYPE), (NAME, TYPE, SHAPE), ...] ---- */

static void skip_blanks(const char **at)
{
    while (isspace((unsigned char)**at))
        ++*at;
}

/* Take a character that is at *at, behind blanks; returns whether it was. */
static int take(const char **at, char c)
{
    skip_blanks(at);
    if (**at != c)
        return 0;
    ++*at;
    return 1;
}

static int take_string(const char **at, struct piece *out)
{
    skip_blanks(at);
    char quote = **at;
    const char *end = quote == '\'' || quote == '"' ? strchr(*at + 1, quote) : NULL;
    if (!end)
        return 0;
    *out = (struct piece){*at + 1, (size_t)(end - *at) - 1};
    *at = end + 1;
    return 1;
}

/* A shape of one dimension: 3, or (3,). */
static int take_shape(const char **at, uint64_t *count)
{
    int is_tuple = take(at, '(');
    char *end;

    skip_blanks(at);
    if (!isdigit((unsigned char)**at))
        return 0;
    *count = strtoull(*at, &end, 10);
    *at = end;
    if (is_tuple)
        take(at, ',');
    return *count > 0 && (!is_tuple || take(at, ')'));
}

/* NumPy has a sign for the order of bytes, also where it has no meaning, and letters of its own for truth values. A
 * name that is empty is padding. */
static int dtype_add_field(struct plain *p, struct piece name, struct piece type, uint64_t count, struct error *e)
{
    char padding[32];

    if (type.size > 0 && strchr("<|=", *type.at))
        type = (struct piece){type.at + 1, type.size - 1};
    if ((type.size == 2 && memcmp(type.at, "b1", 2) == 0) || (type.size == 1 && *type.at == '?'))
        type = (struct piece){"u1", 2};
    if (name.size == 0)
        name = (struct piece){padding, (size_t)snprintf(padding, sizeof padding, "padding_%" PRIu64, p->paddings++)};
    return plain_add(p, name, count, type, e);
}

/* Take a field; returns what was expected instead, or NULL. */
static const char *dtype_take(const char **at, struct piece *name, struct piece *type, uint64_t *count)
{
    if (!take(at, '('))
        return "a field such as ('x', '<f4')";
    if (!take_string(at, name))
        return "a name in quotes";
    if (!take(at, ','))
        return "','";
    if (!take_string(at, type))
        return "a type in quotes, such as '<f4'";
    if (take(at, ',') && !take_shape(at, count))
        return "a shape of one dimension, such as (3,)";
    return take(at, ')') ? NULL : "')'";
}

static int dtype_add(struct plain *p, const char *text, struct error *e)
{
    const char *at = text, *expected = NULL;
    int status = DELTAFS_OK;

    take(&at, '[');
    do {
        struct piece name, type;
        uint64_t count = 0;
        expected = dtype_take(&at, &name, &type, &count);
        status = expected ? status : dtype_add_field(p, name, type, count, e);
    } while (!expected && status == DELTAFS_OK && take(&at, ','));
    if (status == DELTAFS_OK && !expected && !take(&at, ']'))
        expected = "',' or ']'";
    skip_blanks(&at);
    if (status == DELTAFS_OK && !expected && *at != '\0')
        expected = "the end";
    return expected ? error_set(e, DELTAFS_ERR_SCHEMA,
                                "schema: offset %zu: %s was expected; NumPy prints what is taken here by "
                                "dtype.descr",
                                (size_t)(at - text), expected)
                    : status;
}

int schema_text_plain(const char *text, char **out, struct error *e)
{
    struct plain p = {0};
    size_t n;
    int status = *text == '[' ? dtype_add(&p, text, e) : pairs_add(&p, text, e);

    if (status == DELTAFS_OK)
        return compose_end(&p.text, "a schema", out, &n, e);
    free(p.text.text);
    return status;
}

int schema_text_split(const char *text, char **plain, char **bounds, struct error *e)
{
    struct compose fields = {0}, numbers = {0};
    size_t n;

    *plain = *bounds = NULL;
    for (const char *next = text; next;) {
        const char *end = strchrnul(next, ','), *bound = memchr(next, '~', (size_t)(end - next)),
                   *comma = next > text ? "," : "";
        compose(&fields, "%s%.*s", comma, (int)((bound ? bound : end) - next), next);
        compose(&numbers, "%s%.*s", comma, bound ? (int)(end - bound) - 1 : 1, bound ? bound + 1 : "0");
        next = *end == ',' ? end + 1 : NULL;
    }
    int status = compose_end(&fields, "a schema", plain, &n, e);
    if (status == DELTAFS_OK && strchr(text, '~'))
        status = compose_end(&numbers, "a schema", bounds, &n, e);
    else
        free(numbers.text);
    if (status == DELTAFS_OK)
        return DELTAFS_OK;
    free(*plain);
    *plain = NULL;
    return status;
}

int schema_text_join(const char *plain, const char *bounds, char **out, struct error *e)
{
    struct compose text = {0};
    const char *field = plain, *bound = bounds;
    size_t n;

    while (field && bound) {
        size_t own = strcspn(field, ","), number = strcspn(bound, ",");
        int has_none = number == 1 && *bound == '0';
        compose(&text, "%s%.*s%s%.*s", field > plain ? "," : "", (int)own, field, has_none ? "" : "~",
                has_none ? 0 : (int)number, bound);
        field = field[own] == ',' ? field + own + 1 : NULL;
        bound = bound[number] == ',' ? bound + number + 1 : NULL;
    }
    int status = compose_end(&text, "a schema", out, &n, e);
    if (status != DELTAFS_OK || (!field && !bound))
        return status;
    free(*out);
    *out = NULL;
    return DELTAFS_ERR_SCHEMA;
}
