/* Records as text: a table for people, csv and json for programs, raw bytes. */
#ifndef DELTAFS_TOOLS_PRINT_H
#define DELTAFS_TOOLS_PRINT_H

#include <stdio.h>
#include <deltafs/deltafs.h>

enum print_format {
    PRINT_TABLE,
    PRINT_CSV,
    PRINT_JSON,
    PRINT_RAW,
    PRINT_JSON_LINES /* an object in each line; for export only */
};

struct printer {
    enum print_format format;
    FILE *out;
    deltafs_schema *schema; /* NULL: none; the value is then shown in hexadecimal */
    char *schema_text;
    uint64_t count; /* records printed */
};

/* Parse a format's name into an enum print_format, for a struct command_option. */
const char *print_parse_format(const char *text, void *out);

/* Print what comes before all records, each record, and what comes after them: to standard output, or to `out`.
 * `schema` is its text. */
int print_begin(struct printer *p, enum print_format format, const char *schema);
int print_begin_in(struct printer *p, enum print_format format, const char *schema, FILE *out);
/* Go on with values of another schema, below a heading of its own; the same schema changes nothing. */
int print_schema(struct printer *p, const char *schema);
void print_record(struct printer *p, const struct deltafs_record *record);
void print_end(struct printer *p);

#endif
