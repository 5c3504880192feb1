#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "tools/print.h"
#include "tools/text.h"

#define MISSING_NAMED     8 /* epochs that are missing from an answer */
#define TABLE_KEY_WIDTH   20
#define TABLE_FIELD_WIDTH 14

int print_format_parse(const char *text, enum print_format *out)
{
    static const char *const names[] = {"table", "csv", "json", "raw"};

    for (int i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum print_format)i;
            return 0;
        }
    return -1;
}

static size_t print_field_count(const struct printer *p)
{
    return p->schema ? deltafs_schema_count(p->schema) : 0;
}

/* The prefix of a field's name that is also the name of one of our columns. */
static const char *print_prefix(const struct deltafs_field *f)
{
    return strcmp(f->name, "key") == 0 || strcmp(f->name, "epoch") == 0 ? "value." : "";
}

static int print_take_schema(struct printer *p, const char *text)
{
    deltafs_schema *schema = NULL;
    char *copy = strdup(text);
    int status = copy ? DELTAFS_OK : DELTAFS_ERR_MEMORY;

    if (status == DELTAFS_OK && text[0] != '\0')
        status = deltafs_schema_parse(text, &schema);
    if (status != DELTAFS_OK) {
        free(copy);
        return status;
    }
    deltafs_schema_destroy(p->schema);
    free(p->schema_text);
    p->schema = schema;
    p->schema_text = copy;
    return DELTAFS_OK;
}

static void print_heading(const struct printer *p)
{
    if (p->format == PRINT_CSV) {
        printf("key,epoch");
        for (size_t i = 0; i < print_field_count(p); i++)
            printf(",%s%s", print_prefix(deltafs_schema_field(p->schema, i)), deltafs_schema_field(p->schema, i)->name);
        puts(p->schema ? "" : ",size,value");
    } else if (p->format == PRINT_TABLE) {
        printf("%*s %*s", TABLE_KEY_WIDTH, "key", TABLE_FIELD_WIDTH, "epoch");
        for (size_t i = 0; i < print_field_count(p); i++)
            printf(" %*s", TABLE_FIELD_WIDTH, deltafs_schema_field(p->schema, i)->name);
        puts(p->schema ? "" : "           size  value");
    }
}

int print_begin(struct printer *p, enum print_format format, const char *schema)
{
    *p = (struct printer){.format = format};
    int status = print_take_schema(p, schema);
    if (status != DELTAFS_OK)
        return status;
    print_heading(p);
    if (format == PRINT_JSON)
        putchar('[');
    return DELTAFS_OK;
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

static void print_hex(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        printf("%02x", bytes[i]);
}

/* Bytes of the UTF-8 sequence at `s`, of which `n` are there: 1 to 4, or 0 if it is none (cut short, longer than need
 * be, a surrogate, or beyond U+10FFFF). */
static size_t utf8_length(const uint8_t *s, size_t n)
{
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

    if (length == 0 || length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

static int is_utf8(const char *text, size_t n)
{
    size_t length = 1;

    for (size_t at = 0; at < n && length > 0; at += length)
        length = utf8_length((const uint8_t *)text + at, n - at);
    return length > 0;
}

void print_json_text(const char *text, size_t n)
{
    if (!is_utf8(text, n)) {
        printf("{\"hex\": \"");
        print_hex((const uint8_t *)text, n);
        printf("\"}");
        return;
    }
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f)
            printf("\\u%04x", c);
        else if (c == '"' || c == '\\')
            printf("\\%c", c);
        else
            putchar(c);
    }
    putchar('"');
}

static void print_csv_text(const char *text, size_t n)
{
    int quoted = 0;

    for (size_t i = 0; i < n; i++)
        quoted |= memchr(",\"\r\n", text[i], 4) != NULL;
    if (quoted)
        putchar('"');
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"')
            putchar('"');
        putchar(text[i]);
    }
    if (quoted)
        putchar('"');
}

/* Text, or what is taken for it. */
static void print_text(const struct printer *p, const char *text, size_t n, size_t width)
{
    if (p->format == PRINT_TABLE) {
        for (size_t pad = n; pad < width; pad++)
            putchar(' ');
        /* What a terminal would take as a command is not for it. */
        for (size_t i = 0; i < n; i++)
            putchar((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i]);
        return;
    }
    if (p->format == PRINT_JSON)
        print_json_text(text, n);
    else
        print_csv_text(text, n);
}

static void print_float(const struct printer *p, double v)
{
    char text[TEXT_FLOAT_MAX];

    text_float(v, text);
    if (p->format == PRINT_TABLE && strchr(text, 'n'))
        printf("%*s", TABLE_FIELD_WIDTH, text);
    else if (p->format == PRINT_TABLE)
        printf("%*.7g", TABLE_FIELD_WIDTH, v);
    else if (p->format == PRINT_JSON && strchr(text, 'n'))
        printf("\"%s\"", text); /* nan and inf: JSON has no numbers for them */
    else
        fputs(text, stdout);
}

/* A little-endian number of `size` bytes. */
static uint64_t print_bits(const uint8_t *bytes, size_t size)
{
    uint64_t v = 0;

    for (size_t i = size; i-- > 0;)
        v = v << 8 | bytes[i];
    return v;
}

static void print_field(const struct printer *p, const struct deltafs_field *f, const uint8_t *value)
{
    const uint8_t *bytes = value + f->offset;
    int width = p->format == PRINT_TABLE ? TABLE_FIELD_WIDTH : 0;
    uint64_t bits = f->size <= 8 ? print_bits(bytes, f->size) : 0;
    unsigned unused = f->size <= 8 ? 64 - 8 * f->size : 0;
    float f4;
    double f8;
    uint32_t bits4 = (uint32_t)bits;

    switch (f->kind) {
    case 'f':
        memcpy(&f4, &bits4, sizeof f4);
        memcpy(&f8, &bits, sizeof f8);
        print_float(p, f->size == 4 ? (double)f4 : f8);
        break;
    case 'i':
        printf("%*" PRId64, width, (int64_t)(bits << unused) >> unused);
        break;
    case 'u':
        printf("%*" PRIu64, width, bits);
        break;
    case 'S':
        print_text(p, (const char *)bytes, strnlen((const char *)bytes, f->size), TABLE_FIELD_WIDTH);
        break;
    default:
        if (p->format == PRINT_JSON)
            putchar('"');
        print_hex(bytes, f->size);
        if (p->format == PRINT_JSON)
            putchar('"');
    }
}

static void print_key(const struct printer *p, const struct deltafs_record *r)
{
    if (r->key_bytes)
        print_text(p, r->key_bytes, r->key_size, TABLE_KEY_WIDTH);
    else
        printf("%*" PRIu64, p->format == PRINT_TABLE ? TABLE_KEY_WIDTH : 0, r->key);
}

static void print_json(struct printer *p, const struct deltafs_record *r)
{
    printf("%s\n {\"key\": ", p->count > 0 ? "," : "");
    print_key(p, r);
    printf(", \"epoch\": %" PRIu64, r->label);
    for (size_t i = 0; i < print_field_count(p); i++) {
        const struct deltafs_field *f = deltafs_schema_field(p->schema, i);
        printf(", \"%s%s\": ", print_prefix(f), f->name);
        print_field(p, f, r->value);
    }
    if (!p->schema) {
        printf(", \"size\": %zu, \"value\": \"", r->size);
        print_hex(r->value, r->size);
        putchar('"');
    }
    putchar('}');
}

void print_record(struct printer *p, const struct deltafs_record *r)
{
    int is_table = p->format == PRINT_TABLE;

    if (p->format == PRINT_JSON) {
        print_json(p, r);
    } else if (p->format == PRINT_RAW) {
        fwrite(r->value, 1, r->size, stdout);
    } else {
        print_key(p, r);
        printf(is_table ? " %*" PRIu64 : ",%*" PRIu64, is_table ? TABLE_FIELD_WIDTH : 0, r->label);
        for (size_t i = 0; i < print_field_count(p); i++) {
            putchar(is_table ? ' ' : ',');
            print_field(p, deltafs_schema_field(p->schema, i), r->value);
        }
        if (!p->schema) {
            printf(is_table ? " %*zu  " : ",%*zu,", is_table ? TABLE_FIELD_WIDTH : 0, r->size);
            print_hex(r->value, r->size);
        }
        putchar('\n');
    }
    p->count++;
}

void print_end(struct printer *p)
{
    if (p->format == PRINT_JSON)
        puts(p->count > 0 ? "\n]" : "]");
    deltafs_schema_destroy(p->schema);
    free(p->schema_text);
}

void print_missing(const uint64_t *label, size_t count)
{
    char text[MISSING_NAMED * 24] = "";
    size_t used = 0, named = count < MISSING_NAMED ? count : MISSING_NAMED;

    if (count == 0)
        return;
    for (size_t i = 0; i < named; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64, i > 0 ? ", " : "", label[i]);
    if (count > named)
        text_fail(0, "missing from the answer: epochs %s and %zu more; verify lists the damage", text, count - named);
    else
        text_fail(0, "missing from the answer: epoch%s %s; verify lists the damage", text_plural(count), text);
}
