/* The columns of an export, for all formats. */
#include <stdlib.h>
#include <string.h>
#include "tools/export.h"

/* The name of a column of values that is not the name of one of ours. */
static const char *column_name(const char *name)
{
    return strcmp(name, "key") == 0 ? "value.key" : strcmp(name, "epoch") == 0 ? "value.epoch" : name;
}

static void columns_take(struct export *x)
{
    x->column[EXPORT_KEY] = (struct export_column){"key", x->has_bytes_keys ? 'V' : 'u', x->has_bytes_keys ? 0 : 8, 0};
    x->column[EXPORT_EPOCH] = (struct export_column){"epoch", 'u', 8, 0};
    if (!x->fields)
        x->column[EXPORT_VALUES] = (struct export_column){"value", 'V', x->value_size, 0};
    for (size_t i = 0; i + EXPORT_VALUES < x->columns && x->fields; i++) {
        const struct deltafs_field *f = deltafs_schema_field(x->fields, i);
        x->column[EXPORT_VALUES + i] = (struct export_column){column_name(f->name), f->kind, f->size, f->offset};
    }
}

int export_columns_make(struct export *x, const char *schema)
{
    x->schema = strdup(schema);
    if (!x->schema)
        return text_fail(EXIT_TROUBLE, "%s: no memory for a schema", x->command);
    int code = *schema != '\0' ? text_of_call(deltafs_schema_parse(schema, &x->fields)) : EXIT_OK;
    if (code != EXIT_OK)
        return code;
    x->columns = EXPORT_VALUES + (x->fields ? deltafs_schema_count(x->fields) : 1);
    x->column = calloc(x->columns, sizeof *x->column);
    if (!x->column)
        return text_fail(EXIT_TROUBLE, "%s: no memory for %zu columns", x->command, x->columns);
    columns_take(x);
    return EXIT_OK;
}

void export_columns_free(struct export *x)
{
    deltafs_schema_destroy(x->fields);
    free(x->column);
    free(x->schema);
}

const void *export_cell(const struct export *x, size_t c, const struct deltafs_record *row, uint8_t number[8],
                        size_t *size)
{
    const struct export_column *column = &x->column[c];
    uint64_t n = c == EXPORT_KEY ? row->key : row->label;

    *size = column->size;
    if (c == EXPORT_KEY && x->has_bytes_keys) {
        *size = row->key_size;
        return row->key_bytes;
    }
    if (c >= EXPORT_VALUES) {
        *size = column->size > 0 ? column->size : row->size;
        return (const uint8_t *)row->value + column->offset;
    }
    for (int i = 0; i < 8; i++)
        number[i] = (uint8_t)(n >> 8 * i);
    return number;
}

void export_gather(const struct export *x, size_t c, const struct deltafs_record *row, size_t count, void *out)
{
    uint8_t number[8], *to = out;
    size_t size;

    for (size_t i = 0; i < count; i++, to += size) {
        const void *from = export_cell(x, c, &row[i], number, &size);
        memcpy(to, from, size);
    }
}

double export_number(const struct export_column *c, const uint8_t *cell)
{
    unsigned unused = 64 - 8 * c->size;
    uint64_t u = 0;
    float f;
    double d;

    for (size_t i = c->size; i > 0; i--)
        u = u << 8 | cell[i - 1];
    if (c->kind == 'u')
        return (double)u;
    if (c->kind == 'i')
        return (double)((int64_t)(u << unused) >> unused);
    uint32_t half = (uint32_t)u;
    memcpy(&f, &half, sizeof f);
    memcpy(&d, &u, sizeof d);
    return c->size == sizeof f ? (double)f : d;
}
