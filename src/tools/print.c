#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/caret.h"
#include "tools/number_text.h"
#include "tools/print.h"
#include "tools/report.h"
#include "tools/text.h"

#define KEY_WIDTH   20
#define FIELD_WIDTH 14

const char *print_parse_format(const char *text, void *out)
{
    static const char *const names[] = {"table", "csv", "json", "raw"};

    for (int i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0) {
            *(enum print_format *)out = (enum print_format)i;
            return NULL;
        }
    return "is no format; give table, csv, json or raw";
}

static int print_is_json(const struct printer *p)
{
    return p->format == PRINT_JSON || p->format == PRINT_JSON_LINES;
}

/* The prefix of a field's name that is also the name of one of our columns. */
static const char *print_prefix(const struct deltafs_field *f)
{
    return strcmp(f->name, "key") == 0 || strcmp(f->name, "epoch") == 0 ? "value." : "";
}

static int print_is_named(const struct deltafs_field *f, const char *name, size_t size)
{
    const char *prefix = print_prefix(f);
    size_t n = strlen(prefix);

    return size == n + strlen(f->name) && strncmp(name, prefix, n) == 0 && memcmp(name + n, f->name, size - n) == 0;
}

/* The number of the field that has the name at the beginning of `text`, of `size` bytes; the number of all if there is
 * none. */
static size_t print_find(const deltafs_schema *schema, const char *text, size_t size)
{
    size_t i = 0, n = schema ? deltafs_schema_count(schema) : 0;

    while (i < n && !print_is_named(deltafs_schema_field(schema, i), text, size))
        i++;
    return i;
}

int print_has_field(const char *schema, const char *name, size_t size)
{
    deltafs_schema *s = NULL;

    if (schema[0] == '\0' || deltafs_schema_parse(schema, &s) != DELTAFS_OK)
        return 0;
    int has = print_find(s, name, size) < deltafs_schema_count(s);
    deltafs_schema_destroy(s);
    return has;
}

/* Choose the fields that are to be printed. Returns how many there are. */
static size_t print_choose(const struct printer *p, const deltafs_schema *schema, size_t *chosen)
{
    size_t all = schema ? deltafs_schema_count(schema) : 0, n = 0;

    for (size_t i = 0; !p->fields && i < all; i++)
        chosen[n++] = i;
    for (const char *name = p->fields; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL) {
        chosen[n] = print_find(schema, name, strcspn(name, ","));
        n += chosen[n] < all;
    }
    return n;
}

/* Room for what print_choose chooses. */
static size_t *print_make_room(const struct printer *p, const deltafs_schema *schema)
{
    size_t n = 1 + (schema ? deltafs_schema_count(schema) : 0);

    for (const char *c = p->fields; c && *c != '\0'; c++)
        n += *c == ',';
    return calloc(n, sizeof(size_t));
}

static void print_drop_schema(struct printer *p)
{
    deltafs_schema_destroy(p->schema);
    free(p->schema_text);
    free(p->chosen);
}

static int print_take_schema(struct printer *p, const char *text)
{
    deltafs_schema *schema = NULL;
    int status = text[0] != '\0' ? deltafs_schema_parse(text, &schema) : DELTAFS_OK;
    char *copy = strdup(text);
    size_t *chosen = print_make_room(p, schema);

    if (status == DELTAFS_OK && (!copy || !chosen))
        status = DELTAFS_ERR_MEMORY;
    if (status != DELTAFS_OK) {
        deltafs_schema_destroy(schema);
        free(copy);
        free(chosen);
        return status;
    }
    print_drop_schema(p);
    p->chosen_count = print_choose(p, schema, chosen);
    p->chosen = chosen;
    p->schema = schema;
    p->schema_text = copy;
    return DELTAFS_OK;
}

static void print_heading(const struct printer *p)
{
    int is_csv = p->format == PRINT_CSV;

    if (!is_csv && p->format != PRINT_TABLE)
        return;
    fprintf(p->out, is_csv ? "%*s,%*s" : "%*s %*s", is_csv ? 0 : KEY_WIDTH, "key", is_csv ? 0 : FIELD_WIDTH, "epoch");
    for (size_t i = 0; i < p->chosen_count; i++) {
        const struct deltafs_field *f = deltafs_schema_field(p->schema, p->chosen[i]);
        if (is_csv)
            fprintf(p->out, ",%s%s", print_prefix(f), f->name);
        else
            fprintf(p->out, " %*s", FIELD_WIDTH, f->name);
    }
    fputs(p->schema ? "\n" : is_csv ? ",size,value\n" : "           size value\n", p->out);
}

int print_begin(struct printer *p, enum print_format format, const char *schema, const char *fields)
{
    return print_begin_in(p, format, schema, fields, stdout);
}

int print_begin_in(struct printer *p, enum print_format format, const char *schema, const char *fields, FILE *out)
{
    *p = (struct printer){.format = format, .out = out, .fields = fields};
    int status = print_take_schema(p, schema);
    if (status != DELTAFS_OK)
        return status;
    print_heading(p);
    if (format == PRINT_JSON)
        putc('[', out);
    return DELTAFS_OK;
}

int print_check_fields(const char *command, enum print_format format, const char *fields)
{
    return fields && format == PRINT_RAW
               ? text_fail(EXIT_USAGE, "%s: --fields: raw has the values as they are stored; choose another format",
                           command)
               : EXIT_OK;
}

int print_begin_failed(const char *command, const char *fields, int status)
{
    const char *message = deltafs_errmsg(NULL);
    int code = text_fail(fields ? text_exit_code(status) : EXIT_TROUBLE, "%s: %s", command, message);

    caret_show("fields", fields, message);
    return code;
}

int print_begin_records(struct printer *p, enum print_format format, deltafs_dir *dir, const char *schema,
                        const char *fields)
{
    deltafs_columns *columns = NULL;
    int status = format == PRINT_RAW ? DELTAFS_OK : deltafs_columns_open(dir, fields, &columns);

    if (status == DELTAFS_OK && columns && strcmp(deltafs_columns_schema(columns), schema) == 0) {
        deltafs_columns_close(columns);
        columns = NULL;
    }
    if (status == DELTAFS_OK)
        status = print_begin(p, format, columns ? deltafs_columns_schema(columns) : schema, NULL);
    if (status != DELTAFS_OK)
        deltafs_columns_close(columns);
    else
        p->columns = columns;
    return status;
}

int print_schema(struct printer *p, const char *schema)
{
    if (strcmp(schema, p->schema_text) == 0)
        return DELTAFS_OK;
    int status = print_take_schema(p, schema);
    if (status == DELTAFS_OK)
        print_heading(p);
    return status;
}

/* ---- Values ---- */

static void print_csv_text(const struct printer *p, const char *text, size_t n)
{
    int quoted = 0;

    for (size_t i = 0; i < n; i++)
        quoted |= memchr(",\"\r\n", text[i], 4) != NULL;
    if (quoted)
        putc('"', p->out);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"')
            putc('"', p->out);
        putc(text[i], p->out);
    }
    if (quoted)
        putc('"', p->out);
}

static void print_text(const struct printer *p, const char *text, size_t n, size_t width)
{
    if (print_is_json(p))
        report_json_text(p->out, text, n);
    else if (p->format == PRINT_CSV)
        print_csv_text(p, text, n);
    if (p->format != PRINT_TABLE)
        return;
    for (size_t pad = n; pad < width; pad++)
        putc(' ', p->out);
    /* A terminal might take control characters as commands. */
    for (size_t i = 0, length; i < n; i += length) {
        length = text_character(text + i, n - i);
        if (length > 0) {
            fwrite(text + i, 1, length, p->out);
        } else {
            putc('?', p->out);
            length = 1;
        }
    }
}

static void print_hex(const struct printer *p, const void *bytes, size_t n)
{
    const char *quote = print_is_json(p) ? "\"" : "";

    fputs(quote, p->out);
    report_hex(p->out, bytes, n);
    fputs(quote, p->out);
}

/* Text of `n` characters, at the right of its column in a table. */
static void print_right(const struct printer *p, const char *text, size_t n, size_t width)
{
    for (; p->format == PRINT_TABLE && n < width; width--)
        putc(' ', p->out);
    fwrite(text, 1, n, p->out);
}

static void print_unsigned(const struct printer *p, uint64_t v, size_t width)
{
    char text[NUMBER_TEXT_ROOM];

    print_right(p, text, number_text_unsigned(v, text), width);
}

static void print_signed(const struct printer *p, int64_t v, size_t width)
{
    char text[NUMBER_TEXT_ROOM];

    print_right(p, text, number_text_signed(v, text), width);
}

static void print_float(const struct printer *p, double v)
{
    char text[NUMBER_TEXT_ROOM];

    if (p->format == PRINT_TABLE && isfinite(v)) {
        fprintf(p->out, "%*.7g", FIELD_WIDTH, v);
        return;
    }
    size_t n = number_text_float(v, text);
    if (print_is_json(p) && !isfinite(v))
        fprintf(p->out, "\"%s\"", text); /* nan and inf: JSON has no numbers for them */
    else
        print_right(p, text, n, FIELD_WIDTH);
}

static void print_missing(const struct printer *p)
{
    if (print_is_json(p))
        fputs("null", p->out);
    else if (p->format == PRINT_TABLE)
        fprintf(p->out, "%*s", FIELD_WIDTH, "");
}

static void print_field(const struct printer *p, const struct deltafs_field *f, const uint8_t *value)
{
    const uint8_t *bytes = value + f->offset;
    uint64_t bits = 0;
    unsigned unused = f->size <= 8 ? 64 - 8 * f->size : 0;
    float f4;
    double f8;

    for (size_t i = f->size <= 8 ? f->size : 0; i-- > 0;)
        bits = bits << 8 | bytes[i];
    uint32_t bits4 = (uint32_t)bits;
    switch (f->kind) {
    case 'f':
        memcpy(&f4, &bits4, sizeof f4);
        memcpy(&f8, &bits, sizeof f8);
        if (bits == DELTAFS_MISSING_BITS)
            print_missing(p);
        else
            print_float(p, f->size == 4 ? (double)f4 : f8);
        break;
    case 'i':
        print_signed(p, (int64_t)(bits << unused) >> unused, FIELD_WIDTH);
        break;
    case 'u':
        print_unsigned(p, bits, FIELD_WIDTH);
        break;
    case 'S':
        print_text(p, (const char *)bytes, strnlen((const char *)bytes, f->size), FIELD_WIDTH);
        break;
    default:
        print_hex(p, bytes, f->size);
    }
}

/* What comes before a value of a record that is not the first. */
static void print_next(const struct printer *p, const char *prefix, const char *name)
{
    if (print_is_json(p))
        fprintf(p->out, ", \"%s%s\": ", prefix, name);
    else
        putc(p->format == PRINT_CSV ? ',' : ' ', p->out);
}

/* Print a record whose columns are those of the schema. */
static void print_row(struct printer *p, const struct deltafs_record *r)
{
    if (p->format == PRINT_RAW) {
        fwrite(r->value, 1, r->size, p->out);
        return;
    }
    if (p->format == PRINT_JSON)
        fputs(p->count > 0 ? ",\n " : "\n ", p->out);
    if (print_is_json(p))
        fputs("{\"key\": ", p->out);
    if (r->key_bytes)
        print_text(p, r->key_bytes, r->key_size, KEY_WIDTH);
    else
        print_unsigned(p, r->key, KEY_WIDTH);
    print_next(p, "", "epoch");
    print_unsigned(p, r->label, FIELD_WIDTH);
    for (size_t i = 0; i < p->chosen_count; i++) {
        const struct deltafs_field *f = deltafs_schema_field(p->schema, p->chosen[i]);
        print_next(p, print_prefix(f), f->name);
        print_field(p, f, r->value);
    }
    if (!p->schema) {
        print_next(p, "", "size");
        print_unsigned(p, r->size, FIELD_WIDTH);
        print_next(p, "", "value");
        print_hex(p, r->value, r->size);
    }
    fputs(p->format == PRINT_JSON ? "}" : p->format == PRINT_JSON_LINES ? "}\n" : "\n", p->out);
    p->count++;
}

int print_flush(struct printer *p)
{
    const struct deltafs_record *row;

    if (p->pendings > 0 && p->status == DELTAFS_OK)
        p->status = deltafs_columns_rows(p->columns, p->pendings, p->pending, &row);
    for (size_t i = 0; i < p->pendings && p->status == DELTAFS_OK; i++)
        print_row(p, &row[i]);
    p->pendings = 0;
    return p->status;
}

void print_record(struct printer *p, const struct deltafs_record *r)
{
    if (!p->columns) {
        print_row(p, r);
        return;
    }
    p->pending[p->pendings++] = *r;
    if (p->pendings == PRINT_AT_ONCE)
        print_flush(p);
}

int print_end(struct printer *p)
{
    print_flush(p);
    if (p->format == PRINT_JSON)
        fputs(p->count > 0 ? "\n]\n" : "]\n", p->out);
    print_drop_schema(p);
    deltafs_columns_close(p->columns);
    return p->status;
}
