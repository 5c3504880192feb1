#include <endian.h>
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

static struct printed_field print_field_of(const deltafs_schema *schema, size_t i)
{
    const struct deltafs_field *f = deltafs_schema_field(schema, i);

    return (struct printed_field){f, print_prefix(f)};
}

/* Choose the fields that are to be printed. Returns how many there are. */
static size_t print_choose(const struct printer *p, const deltafs_schema *schema, struct printed_field *chosen)
{
    size_t all = schema ? deltafs_schema_count(schema) : 0, n = 0;

    for (size_t i = 0; !p->fields && i < all; i++)
        chosen[n++] = print_field_of(schema, i);
    for (const char *name = p->fields; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL) {
        size_t i = print_find(schema, name, strcspn(name, ","));
        if (i < all)
            chosen[n++] = print_field_of(schema, i);
    }
    return n;
}

/* Room for what print_choose chooses. */
static struct printed_field *print_make_room(const struct printer *p, const deltafs_schema *schema)
{
    size_t n = 1 + (schema ? deltafs_schema_count(schema) : 0);

    for (const char *c = p->fields; c && *c != '\0'; c++)
        n += *c == ',';
    return calloc(n, sizeof(struct printed_field));
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
    struct printed_field *chosen = print_make_room(p, schema);

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
        const struct printed_field *f = &p->chosen[i];
        if (is_csv)
            fprintf(p->out, ",%s%s", f->prefix, f->field->name);
        else
            fprintf(p->out, " %*s", FIELD_WIDTH, f->field->name);
    }
    fputs(p->schema ? "\n" : is_csv ? ",size,value\n" : "           size value\n", p->out);
}

int print_begin(struct printer *p, enum print_format format, const char *schema, const char *fields)
{
    return print_begin_in(p, format, schema, fields, stdout);
}

int print_begin_in(struct printer *p, enum print_format format, const char *schema, const char *fields, FILE *out)
{
    memset(p, 0, offsetof(struct printer, pending)); /* not the memory that few printers need */
    p->format = format;
    p->out = out;
    p->fields = fields;
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

/* ---- The line ---- */

/* Numbers are collected in p->line, so that some rows of them are one write to the stream. */
static void line_flush(struct printer *p)
{
    if (p->line_size > 0)
        fwrite(p->line, 1, p->line_size, p->out);
    p->line_size = 0;
}

/* Room for `n` characters, at most sizeof p->line. Without a call to line_add, they are not part of the line. */
static char *line_room(struct printer *p, size_t n)
{
    if (n > sizeof p->line - p->line_size)
        line_flush(p);
    return p->line + p->line_size;
}

static void line_add(struct printer *p, size_t n)
{
    p->line_size += n;
}

static void line_text(struct printer *p, const char *text, size_t n)
{
    if (n > sizeof p->line) {
        line_flush(p);
        fwrite(text, 1, n, p->out);
        return;
    }
    memcpy(line_room(p, n), text, n);
    line_add(p, n);
}

static void line_string(struct printer *p, const char *text)
{
    line_text(p, text, strlen(text));
}

static void line_character(struct printer *p, char c)
{
    *line_room(p, 1) = c;
    line_add(p, 1);
}

/* `n` characters that are in the line's room, at the right of their column in a table. */
static void line_right(struct printer *p, char *text, size_t n, size_t width)
{
    if (p->format == PRINT_TABLE && n < width) {
        memmove(text + (width - n), text, n);
        memset(text, ' ', width - n);
        n = width;
    }
    line_add(p, n);
}

static void line_blanks(struct printer *p, size_t n)
{
    memset(line_room(p, n), ' ', n);
    line_add(p, n);
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

static void print_text(struct printer *p, const char *text, size_t n, size_t width)
{
    line_flush(p);
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

static void print_hex(struct printer *p, const void *bytes, size_t n)
{
    const char *quote = print_is_json(p) ? "\"" : "";

    line_string(p, quote);
    line_flush(p);
    report_hex(p->out, bytes, n);
    line_string(p, quote);
}

static void print_unsigned(struct printer *p, uint64_t v, size_t width)
{
    char *text = line_room(p, NUMBER_TEXT_ROOM);

    line_right(p, text, number_text_unsigned(v, text), width);
}

static void print_signed(struct printer *p, int64_t v, size_t width)
{
    char *text = line_room(p, NUMBER_TEXT_ROOM);

    line_right(p, text, number_text_signed(v, text), width);
}

static void print_float(struct printer *p, double v)
{
    char *text = line_room(p, NUMBER_TEXT_ROOM + 2);

    if (p->format == PRINT_TABLE && isfinite(v)) {
        line_add(p, (size_t)snprintf(text, NUMBER_TEXT_ROOM, "%*.7g", FIELD_WIDTH, v));
    } else if (print_is_json(p) && !isfinite(v)) {
        /* nan and inf: JSON has no numbers for them */
        line_character(p, '"');
        line_add(p, number_text_float(v, text + 1));
        line_character(p, '"');
    } else {
        line_right(p, text, number_text_float(v, text), FIELD_WIDTH);
    }
}

static void print_missing(struct printer *p)
{
    if (print_is_json(p))
        line_string(p, "null");
    else if (p->format == PRINT_TABLE)
        line_blanks(p, FIELD_WIDTH);
}

/* The bits of a number of at most 8 bytes; 0 for larger fields. */
static uint64_t print_bits(const uint8_t *bytes, size_t size)
{
    uint64_t bits = 0;
    uint32_t four;

    if (size == sizeof four) {
        memcpy(&four, bytes, sizeof four);
        return le32toh(four);
    }
    for (size_t i = size <= 8 ? size : 0; i-- > 0;)
        bits = bits << 8 | bytes[i];
    return bits;
}

static void print_field(struct printer *p, const struct deltafs_field *f, const uint8_t *value)
{
    const uint8_t *bytes = value + f->offset;
    const uint64_t bits = print_bits(bytes, f->size);
    const uint32_t bits4 = (uint32_t)bits;
    unsigned unused = f->size <= 8 ? 64 - 8 * f->size : 0;
    float f4;
    double f8;

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

static void print_name(struct printer *p, const char *prefix, const char *name)
{
    line_string(p, ", \"");
    line_string(p, prefix);
    line_string(p, name);
    line_string(p, "\": ");
}

/* What comes before a value of a record that is not the first. */
static inline void print_next(struct printer *p, const char *prefix, const char *name)
{
    if (print_is_json(p))
        print_name(p, prefix, name);
    else
        line_character(p, p->format == PRINT_CSV ? ',' : ' ');
}

/* Print a record whose columns are those of the schema. */
static void print_row(struct printer *p, const struct deltafs_record *r)
{
    if (p->format == PRINT_RAW) {
        fwrite(r->value, 1, r->size, p->out);
        return;
    }
    if (p->format == PRINT_JSON)
        line_string(p, p->count > 0 ? ",\n " : "\n ");
    if (print_is_json(p))
        line_string(p, "{\"key\": ");
    if (r->key_bytes)
        print_text(p, r->key_bytes, r->key_size, KEY_WIDTH);
    else
        print_unsigned(p, r->key, KEY_WIDTH);
    print_next(p, "", "epoch");
    print_unsigned(p, r->label, FIELD_WIDTH);
    for (size_t i = 0; i < p->chosen_count; i++) {
        print_next(p, p->chosen[i].prefix, p->chosen[i].field->name);
        print_field(p, p->chosen[i].field, r->value);
    }
    if (!p->schema) {
        print_next(p, "", "size");
        print_unsigned(p, r->size, FIELD_WIDTH);
        print_next(p, "", "value");
        print_hex(p, r->value, r->size);
    }
    if (print_is_json(p))
        line_character(p, '}');
    if (p->format != PRINT_JSON)
        line_character(p, '\n');
    p->count++;
}

int print_flush(struct printer *p)
{
    const struct deltafs_record *row;

    if (p->pendings > 0 && p->status == DELTAFS_OK)
        p->status = deltafs_columns_rows(p->columns, p->pendings, p->pending, &row);
    for (size_t i = 0; i < p->pendings && p->status == DELTAFS_OK; i++)
        print_row(p, &row[i]);
    line_flush(p);
    p->pendings = p->held_size = 0;
    return p->status;
}

void print_record(struct printer *p, const struct deltafs_record *r)
{
    print_records(p, r, 1);
}

void print_records(struct printer *p, const struct deltafs_record *r, size_t n)
{
    for (size_t i = 0; !p->columns && i < n; i++)
        print_row(p, &r[i]);
    line_flush(p);
    for (size_t i = 0; p->columns && i < n; i++) {
        p->pending[p->pendings++] = r[i];
        if (p->pendings == PRINT_AT_ONCE)
            print_flush(p);
    }
}

static const void *print_hold(struct printer *p, const void *bytes, size_t n)
{
    uint8_t *to = p->held + p->held_size;

    if (n > 0)
        memcpy(to, bytes, n);
    p->held_size += n;
    return to;
}

int print_copied(struct printer *p, const struct deltafs_record *r)
{
    const size_t size = r->size + r->key_size;
    struct deltafs_record copy = *r;

    if (!p->columns || size > sizeof p->held) {
        print_record(p, r);
        return print_flush(p);
    }
    if (size > sizeof p->held - p->held_size)
        print_flush(p);
    copy.value = print_hold(p, r->value, r->size);
    if (r->key_bytes)
        copy.key_bytes = print_hold(p, r->key_bytes, r->key_size);
    print_record(p, &copy);
    return p->status;
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
