/* Attributes as text, as the command attr takes and prints them. */
#ifndef DELTAFS_TOOLS_ATTRIBUTE_TEXT_H
#define DELTAFS_TOOLS_ATTRIBUTE_TEXT_H

#include <deltafs/deltafs_query.h>
#include "tools/report.h"

#define ATTRIBUTE_SHOWN 8 /* numbers of an array that lists show */

/* Parse a value into *a: numbers with commas between them, "TEXT", =EXPRESSION, or nothing for the unit of a column.
 * a->value is to be freed. Returns NULL, or what is wrong with it. */
const char *attribute_parse_value(const char *text, struct deltafs_attribute *a);

/* Parse a unit such as "m/s", "1e-6 s" or "kg m s^-2", for a command's option, into a struct attribute_unit. */
struct attribute_unit {
    int is_given;
    double si, dimension[7];
};
const char *attribute_parse_unit(const char *text, void *out);

#define ATTRIBUTE_DIMENSION_ROOM 256 /* for any dimension */

/* The dimension of a unit, in symbols: "kg m s^-2", or "" if it has none. */
void attribute_dimension_text(const struct deltafs_attribute *a, char *out, size_t room);

/* Print an attribute in a line, as attr takes it; of an array at most the first `most` numbers. */
void attribute_print(const struct deltafs_attribute *a, size_t most);
/* Print all attributes of a directory that is open for reading; as an array of JSON. */
void attributes_report(struct report *r, deltafs_dir *dir);
void attributes_json(FILE *out, deltafs_dir *dir);

#endif
