/* Records as text: a table for people, csv and json for programs, raw bytes. */
#ifndef DELTAFS_TOOLS_PRINT_H
#define DELTAFS_TOOLS_PRINT_H

#include <stdio.h>
#include <deltafs/deltafs_query.h>

#define PRINT_AT_ONCE 1024 /* records */
#define PRINT_HELD    (32u << 10)
#define PRINT_LINE    4096 /* characters, more than any number has */

enum print_format {
    PRINT_TABLE,
    PRINT_CSV,
    PRINT_JSON,
    PRINT_RAW,
    PRINT_JSON_LINES /* an object in each line; for export only */
};

struct printed_field {
    const struct deltafs_field *field;
    const char *prefix; /* of its name */
};

struct printer {
    enum print_format format;
    FILE *out;
    deltafs_schema *schema; /* NULL: none; the value is then shown in hexadecimal */
    char *schema_text;
    const char *fields; /* the names of the fields that are printed; NULL: all */
    struct printed_field *chosen;
    size_t chosen_count;
    char line[PRINT_LINE]; /* what is not written yet */
    size_t line_size;
    uint64_t count; /* records printed */
    /* If records have computed columns: those that are to be printed next, and the status of printing. */
    deltafs_columns *columns;
    size_t pendings, held_size;
    int status;
    struct deltafs_record pending[PRINT_AT_ONCE];
    uint8_t held[PRINT_HELD]; /* copies of their bytes */
};

/* Parse a format's name into an enum print_format, for a struct command_option. */
const char *print_parse_format(const char *text, void *out);

/* The option --fields. EXIT_OK if the format can have fields; otherwise a message, and the exit code. */
int print_check_fields(const char *command, enum print_format format, const char *fields);
/* Whether a schema, as text, has the field that is printed under this name of `size` bytes. */
int print_has_field(const char *schema, const char *name, size_t size);

/* Print what comes before all records, each record, and what comes after them: to standard output, or to `out`.
 * `schema` is its text. Only those of `fields` are printed that the schema has, in this order; NULL: all. `fields` must
 * stay. */
int print_begin(struct printer *p, enum print_format format, const char *schema, const char *fields);
int print_begin_in(struct printer *p, enum print_format format, const char *schema, const char *fields, FILE *out);
/* The same for records of a directory, which get their computed columns, too. `fields` as in deltafs_columns_open. */
int print_begin_records(struct printer *p, enum print_format format, deltafs_dir *dir, const char *schema,
                        const char *fields);
/* Say why it failed; returns the exit code. */
int print_begin_failed(const char *command, const char *fields, int status);
/* Go on with values of another schema, below a heading of its own; the same schema changes nothing. */
int print_schema(struct printer *p, const char *schema);
/* The records must stay until print_flush or print_end, which print what is not printed yet. They return the status, of
 * all records so far: an expression of a computed column may not fit to an epoch. */
void print_record(struct printer *p, const struct deltafs_record *record);
void print_records(struct printer *p, const struct deltafs_record *record, size_t n);
int print_flush(struct printer *p);
/* The same for a record that does not stay. */
int print_copied(struct printer *p, const struct deltafs_record *record);
int print_end(struct printer *p);

#endif
