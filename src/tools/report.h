/* Facts on standard output: lines of a word and a value, or members of a JSON object. */
#ifndef DELTAFS_TOOLS_REPORT_H
#define DELTAFS_TOOLS_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct report {
    int is_json;
    int count; /* members so far */
};

/* One fact: `word` in a line, `name` in JSON. If that is NULL, nothing is printed. */
__attribute__((format(printf, 4, 5))) void report(struct report *r, const char *word, const char *name, const char *fmt,
                                                  ...);
void report_number(struct report *r, const char *word, const char *name, uint64_t value);
void report_text(struct report *r, const char *word, const char *name, const char *value);

/* Print a text as JSON; one that is not UTF-8 as {"hex": "..."}, which no text can be mistaken for. */
void report_json_text(FILE *out, const char *text, size_t n);

/* Print bytes as pairs of hexadecimal digits. */
void report_hex(FILE *out, const void *bytes, size_t n);

#endif
