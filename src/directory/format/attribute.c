#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "directory/format/attribute.h"

#define DIGITS_LEAST 15 /* of a double, */
#define DIGITS_MOST  17 /* which are always enough to read the same number back */
#define NUMBER_ROOM  40

static const char *const type_names[] = {
    [DELTAFS_ATTRIBUTE_F8] = "f8",     [DELTAFS_ATTRIBUTE_I8] = "i8",           [DELTAFS_ATTRIBUTE_U8] = "u8",
    [DELTAFS_ATTRIBUTE_TEXT] = "text", [DELTAFS_ATTRIBUTE_EXPRESSION] = "expr", [DELTAFS_ATTRIBUTE_COLUMN] = "column",
    [DELTAFS_ATTRIBUTE_NONE] = "none"};

static int has_value(int type)
{
    return type < DELTAFS_ATTRIBUTE_COLUMN;
}

/* Numbers have a point in every locale of the program. */
static locale_t locale_begin(locale_t *plain)
{
    *plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return uselocale(*plain);
}

static void locale_end(locale_t plain, locale_t former)
{
    uselocale(former);
    if (plain)
        freelocale(plain);
}

/* ---- Writing ---- */

static void put_double(struct textlog_line *l, double v)
{
    char text[NUMBER_ROOM];
    int digits = DIGITS_LEAST;

    do
        snprintf(text, sizeof text, "%.*g", digits, v);
    while (digits++ < DIGITS_MOST && v == v && strtod(text, NULL) != v);
    textlog_line_put(l, text, strlen(text));
}

static void put_doubles(struct textlog_line *l, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        textlog_line_put(l, ",", i > 0);
        put_double(l, v[i]);
    }
}

/* Integers with a sign, or without. */
static void put_integers(struct textlog_line *l, const int64_t *v, const uint64_t *u, size_t n)
{
    char text[NUMBER_ROOM];

    for (size_t i = 0; i < n; i++) {
        textlog_line_put(l, ",", i > 0);
        int size = v ? snprintf(text, sizeof text, "%" PRId64, v[i]) : snprintf(text, sizeof text, "%" PRIu64, u[i]);
        textlog_line_put(l, text, (size_t)size);
    }
}

/* Blanks and control characters would end a field or a line. */
static void put_text(struct textlog_line *l, const char *text)
{
    char code[4];

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c > ' ' && c != '%' && c != 0x7f) {
            textlog_line_put(l, text, 1);
        } else {
            snprintf(code, sizeof code, "%%%02X", c);
            textlog_line_put(l, code, 3);
        }
    }
}

static void put_value(struct textlog_line *l, const struct deltafs_attribute *a)
{
    if (!has_value(a->type))
        return;
    textlog_line_put(l, " value=", 7);
    if (a->type == DELTAFS_ATTRIBUTE_F8)
        put_doubles(l, a->value, a->count);
    else if (a->type == DELTAFS_ATTRIBUTE_I8)
        put_integers(l, a->value, NULL, a->count);
    else if (a->type == DELTAFS_ATTRIBUTE_U8)
        put_integers(l, NULL, a->value, a->count);
    else
        put_text(l, a->value);
}

int attribute_append(struct io_file *file, uint64_t *size, const struct deltafs_attribute *a, int sync, struct error *e)
{
    struct textlog_line l;
    char head[ATTRIBUTE_NAME_MAX + 128];
    locale_t plain, former = locale_begin(&plain);

    textlog_line_begin(&l, file, *size, e);
    int n = snprintf(head, sizeof head, ATTRIBUTE_WORD " name=%s from=%" PRIu64 " type=%s", a->name, a->from,
                     type_names[a->type]);
    textlog_line_put(&l, head, (size_t)n);
    if (a->unit_si != 0) {
        textlog_line_put(&l, " unitSI=", 8);
        put_double(&l, a->unit_si);
        textlog_line_put(&l, " unitDimension=", 15);
        put_doubles(&l, a->unit_dimension, ATTRIBUTE_DIMENSIONS);
    }
    put_value(&l, a);
    locale_end(plain, former);
    return textlog_line_end(&l, size, sync);
}

/* ---- Reading ---- */

/* One number up to a comma, or the end. Returns what is behind it, or NULL. */
static const char *take_number(const char *text, int type, void *out)
{
    char *end;

    if (*text == ',' || *text == ' ' || *text == '\0')
        return NULL;
    if (type == DELTAFS_ATTRIBUTE_F8)
        *(double *)out = strtod(text, &end);
    else if (type == DELTAFS_ATTRIBUTE_I8)
        *(int64_t *)out = strtoll(text, &end, 10);
    else
        *(uint64_t *)out = strtoull(text, &end, 10);
    return *end == ',' || *end == ' ' || *end == '\0' ? end : NULL;
}

/* `n` numbers of 8 bytes. Returns 0, or -1. */
static int take_numbers(const char *text, int type, void *out, size_t n)
{
    uint8_t *at = out;

    for (size_t i = 0; i < n && text; i++) {
        text = take_number(text, type, at + 8 * i);
        if (text && i + 1 < n)
            text = *text == ',' ? text + 1 : NULL;
    }
    return text && *text != ',' ? 0 : -1;
}

/* A text of `n` bytes in the line, as it was. Returns its bytes, or -1. */
static int64_t take_text(const char *text, size_t n, char *out)
{
    char *to = out;
    unsigned c;

    for (size_t i = 0; i < n; i++) {
        if (text[i] != '%') {
            *to++ = text[i];
        } else {
            if (n - i < 3 || sscanf(text + i + 1, "%2X", &c) != 1 || c == 0)
                return -1;
            *to++ = (char)c;
            i += 2;
        }
    }
    *to = '\0';
    return to - out;
}

/* The value of `n` bytes in the line; returns 0, -1 if it is malformed, or 1 if memory is lacking. */
static int take_value(struct deltafs_attribute *a, const char *text, size_t n)
{
    int is_text = a->type == DELTAFS_ATTRIBUTE_TEXT || a->type == DELTAFS_ATTRIBUTE_EXPRESSION;
    size_t count = 1;

    for (size_t i = 0; i < n && !is_text; i++)
        count += text[i] == ',';
    void *value = malloc(is_text ? n + 1 : 8 * count);
    if (!value)
        return 1;
    a->value = value;
    a->count = count;
    if (!is_text)
        return take_numbers(text, a->type, value, count);
    int64_t size = take_text(text, n, value);
    a->count = size < 0 ? 0 : (size_t)size;
    return size < 0 ? -1 : 0;
}

/* The unit, if there is one. Returns 0, or -1. */
static int take_unit(struct deltafs_attribute *a, const char *fields)
{
    size_t n;
    const char *si = textlog_field(fields, "unitSI", &n), *dimension = textlog_field(fields, "unitDimension", &n);

    if (!si)
        return 0;
    return take_numbers(si, DELTAFS_ATTRIBUTE_F8, &a->unit_si, 1) == 0 && dimension &&
                   take_numbers(dimension, DELTAFS_ATTRIBUTE_F8, a->unit_dimension, ATTRIBUTE_DIMENSIONS) == 0
               ? 0
               : -1;
}

static void attribute_fini(struct deltafs_attribute *a)
{
    free((void *)(uintptr_t)a->name);
    free((void *)(uintptr_t)a->value);
}

/* As take_value; a type that is not known becomes 0. */
static int take_fields(struct deltafs_attribute *a, const char *fields)
{
    size_t name_size = 0, type_size = 0, size = 0;
    const char *name = textlog_field(fields, "name", &name_size), *type = textlog_field(fields, "type", &type_size);

    if (!name || name_size == 0 || name_size > ATTRIBUTE_NAME_MAX || !type ||
        textlog_number(fields, "from", &a->from) != 0)
        return -1;
    for (int i = DELTAFS_ATTRIBUTE_F8; i <= DELTAFS_ATTRIBUTE_NONE; i++)
        if (strlen(type_names[i]) == type_size && memcmp(type, type_names[i], type_size) == 0)
            a->type = i;
    if (a->type == 0)
        return 0;
    if (take_unit(a, fields) != 0)
        return -1;
    a->name = strndup(name, name_size);
    if (!a->name)
        return 1;
    if (!has_value(a->type))
        return 0;
    const char *value = textlog_field(fields, "value", &size);
    return value ? take_value(a, value, size) : -1;
}

/* Remove what `a` replaces. */
static void attributes_replace(struct attributes *all, const struct deltafs_attribute *a)
{
    for (size_t i = all->count; i > 0; i--) {
        struct deltafs_attribute *former = &all->item[i - 1];
        if (strcmp(former->name, a->name) != 0)
            continue;
        if (former->from < a->from)
            return;
        attribute_fini(former);
        memmove(former, former + 1, (all->count - i) * sizeof *former);
        all->count--;
    }
}

int attributes_parse(struct attributes *all, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};
    locale_t plain, former = locale_begin(&plain);
    int taken = take_fields(&a, fields);
    int status = DELTAFS_OK;

    locale_end(plain, former);
    if (taken < 0)
        status = error_damaged(e, path, offset, "an attribute's line is malformed");
    else if (taken > 0)
        status = error_no_memory(e, strlen(fields), "an attribute");
    int is_known = status == DELTAFS_OK && a.type != 0, is_kept = is_known && a.type != DELTAFS_ATTRIBUTE_NONE;
    if (is_known)
        attributes_replace(all, &a);
    if (is_kept)
        status = memory_extend(NULL, &all->item, all->count, &all->capacity, sizeof a, "the attributes", e);
    if (status == DELTAFS_OK && is_kept)
        all->item[all->count++] = a;
    else
        attribute_fini(&a);
    return status;
}

const struct deltafs_attribute *attributes_find(const struct attributes *all, const char *name, uint64_t label)
{
    for (size_t i = all->count; i > 0; i--)
        if (all->item[i - 1].from <= label && strcmp(all->item[i - 1].name, name) == 0)
            return &all->item[i - 1];
    return NULL;
}

void attributes_fini(struct attributes *all)
{
    for (size_t i = 0; i < all->count; i++)
        attribute_fini(&all->item[i]);
    free(all->item);
    *all = (struct attributes){0};
}
