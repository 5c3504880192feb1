/* The names that an expression about the records of a directory can use: the fields of the schema, key, epoch, and the
 * attributes as they are valid for one label. A field that is called key or epoch has the name value.key or
 * value.epoch. */
#ifndef DELTAFS_QUERY_COLUMNS_H
#define DELTAFS_QUERY_COLUMNS_H

#include "directory/format/manifest.h"
#include "query/expr.h"

/* Numbers of columns; the others are those of fields. */
#define COLUMN_KEY   UINT32_MAX
#define COLUMN_EPOCH (UINT32_MAX - 1)

struct columns {
    const struct manifest *manifest;
    const deltafs_schema *schema; /* NULL: none */
    uint64_t label;
    uint64_t first, last; /* the labels for which all names that were looked up are what they are for `label` */
};

/* How many fields there are, and the number of the one that has this name; their count if there is none. */
size_t columns_fields(const struct columns *c);
size_t columns_field(const struct columns *c, const char *name);

/* The names for expr_bind; *c must stay as long as the scope is used. */
struct expr_scope columns_scope(struct columns *c);

#endif
