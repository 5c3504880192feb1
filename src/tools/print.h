/* Records as text: a table for people, csv and json for programs, raw bytes. */
#ifndef DELTAFS_TOOLS_PRINT_H
#define DELTAFS_TOOLS_PRINT_H

#include <deltafs/deltafs.h>

enum print_format { PRINT_TABLE, PRINT_CSV, PRINT_JSON, PRINT_RAW };

struct printer {
    enum print_format format;
    deltafs_schema *schema; /* NULL: none; the value is then shown in hexadecimal */
    char *schema_text;
    uint64_t count; /* records printed */
};

/* Parse a format's name. Returns 0, or -1. */
int print_format_parse(const char *text, enum print_format *out);

/* Print a text as JSON; one that is not UTF-8 as {"hex": "..."}, which no text can be mistaken for. */
void print_json_text(const char *text, size_t n);

/* Print to standard output what comes before all records, each record, and what comes after them. `schema` is its text.
 */
int print_begin(struct printer *p, enum print_format format, const char *schema);
/* Go on with values of another schema; the same one changes nothing. Where there are headings, there is a new one. */
int print_schema(struct printer *p, const char *schema);
void print_record(struct printer *p, const struct deltafs_record *record);
void print_end(struct printer *p);

/* Say on standard error which epochs are missing from an answer: the first few labels, and how many more. */
void print_missing(const uint64_t *label, size_t count);

#endif
