#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "tools/report.h"
#include "tools/text.h"

#define SHOWN_MAX 4096

/* What comes before a value. Returns 0 if the fact is left out. */
static int report_begin(struct report *r, const char *word, const char *name)
{
    if (r->is_json ? !name : !word)
        return 0;
    if (r->is_json)
        printf("%s\n \"%s\": ", r->count++ > 0 ? "," : "", name);
    else
        printf("%-15s ", word);
    return 1;
}

void report(struct report *r, const char *word, const char *name, const char *fmt, ...)
{
    va_list ap;

    if (!report_begin(r, word, name))
        return;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    if (!r->is_json)
        putchar('\n');
}

void report_number(struct report *r, const char *word, const char *name, uint64_t value)
{
    report(r, word, name, "%" PRIu64, value);
}

void report_text(struct report *r, const char *word, const char *name, const char *value)
{
    char shown[SHOWN_MAX];

    if (!r->is_json) {
        text_show(value, strlen(value), shown, sizeof shown);
        report(r, word, NULL, "%s", shown);
    } else if (report_begin(r, NULL, name)) {
        report_json_text(stdout, value, strlen(value));
    }
}

void report_hex(FILE *out, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%02x", ((const uint8_t *)bytes)[i]);
}

static int is_utf8(const char *text, size_t n)
{
    size_t length = 1;

    for (size_t at = 0; at < n && length > 0; at += length)
        length = text_utf8_length(text + at, n - at);
    return length > 0;
}

void report_json_text(FILE *out, const char *text, size_t n)
{
    if (!is_utf8(text, n)) {
        fputs("{\"hex\": \"", out);
        report_hex(out, text, n);
        fputs("\"}", out);
        return;
    }
    putc('"', out);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == 0xc2 && (unsigned char)text[i + 1] < 0xa0)
            fprintf(out, "\\u%04x", (unsigned char)text[++i]);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            fprintf(out, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    putc('"', out);
}
