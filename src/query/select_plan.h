/* What a select is to compute: its expressions, parsed, and the layout of its rows. It does not change while threads
 * use it. */
#ifndef DELTAFS_QUERY_SELECT_PLAN_H
#define DELTAFS_QUERY_SELECT_PLAN_H

#include <deltafs/deltafs_query.h>
#include "base/buffer.h"
#include "query/columns.h"

/* A part of a row: stored fields that lie side by side, or a computed one. */
struct output {
    size_t to, size;
    size_t from;           /* of stored fields: their place in the value */
    struct expr *computed; /* NULL: stored */
    const char *name;      /* of a computed one that the caller did not name, */
    size_t at;             /* or the place of its name in the caller's text */
};

struct select_plan {
    const struct manifest *manifest;
    deltafs_schema *schema;   /* of the records; NULL: none */
    struct expr *where, *by;  /* NULL: not given */
    int is_whole;             /* a row is the value as it is */
    struct output *output;    /* otherwise, */
    size_t outputs, capacity; /* so many */
    size_t row_size;
    struct buffer text; /* the schema of the rows */
    size_t text_size;
};

/* The manifest must stay. Free with select_plan_fini, also after an error. */
int select_plan_make(struct select_plan *p, const struct manifest *m, const struct deltafs_select_options *o,
                     struct error *e);
void select_plan_fini(struct select_plan *p);

/* Bytes of a row, where all have the same. */
static inline size_t select_plan_row_size(const struct select_plan *p)
{
    return p->is_whole ? (size_t)p->manifest->value_size : p->row_size;
}

/* Put the name of the option in front of the message about an expression that is wrong, or names what is not set for an
 * epoch. Returns `status`. */
int select_plan_blame(const char *name, int status, struct error *e);
/* The same for a computed output. */
int select_plan_blame_output(const struct output *out, int status, struct error *e);

#endif
