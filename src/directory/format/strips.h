/* Values of one size in strips: columns that lie side by side, whose bit planes are packed by themselves, so that a
 * reader unpacks only those that it needs. */
#ifndef DELTAFS_DIRECTORY_STRIPS_H
#define DELTAFS_DIRECTORY_STRIPS_H

#include <stdint.h>
#include "base/options.h"

#define STRIPS_COUNT_MAX 64
#define STRIPS_BYTES_MIN 4 /* smaller columns share a strip */

/* `count` 0: values are not in strips. */
struct strips {
    uint32_t count;
    uint32_t bytes[STRIPS_COUNT_MAX]; /* of a value; together its size */
};

/* The strips of a schema's values: none if there would be only one. */
int strips_make(struct strips *p, const char *schema, struct error *e);
/* From a text of numbers with commas between them. Returns 0, or -1 if it is none, or not of values of that size. */
int strips_parse(struct strips *p, const char *text, int64_t value_size);
/* The text, in `room` of STRIPS_TEXT bytes. */
#define STRIPS_TEXT (STRIPS_COUNT_MAX * 8)
void strips_print(const struct strips *p, char *room);

#endif
