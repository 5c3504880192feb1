/* The columns of a directory that an index by value carries: rows that need no others come from the index alone. */
#ifndef DELTAFS_QUERY_CARRIED_H
#define DELTAFS_QUERY_CARRIED_H

#include "base/buffer.h"
#include "query/select_plan.h"

struct carried_column {
    size_t from, to, size; /* its place in a record of the index, behind its own, and in a value of the directory */
};

struct carried {
    struct carried_column *column;
    size_t count;
    size_t size;  /* of a record of the index, without its own */
    uint8_t *has; /* for each byte of a value of the directory whether there is a column that has it */
};

/* The columns of the directory, by its plan, that an index with this schema has. `own`: how many columns come before
 * them, of 8 bytes each. Free it also after an error. */
int carried_take(struct carried *c, const struct select_plan *p, const char *schema, size_t own, struct error *e);
void carried_fini(struct carried *c);

/* Whether rows of the plan can be made of these columns in the epoch with this label. `has_where`: also their condition
 * is tested. *is_none: of the key alone. */
int carried_suffices(const struct carried *c, const struct select_plan *p, uint64_t label, int has_where, int *is_none);
/* Put the columns of a record of the index into a value of the directory. */
void carried_put(const struct carried *c, const uint8_t *record, uint8_t *value);

#endif
