/* Value indexes: which records have certain values of an expression. The index NAME of a directory is a directory of
 * its own, at DIR/by/NAME. For each record of an epoch it has a record in the epoch of the same label: its key is the
 * code of the expression's value, in the order of values; its value is the key of the record, and any columns that the
 * index carries.
 *
 * An index never changes an answer. It says for each epoch, in an attribute, what was computed, so that it is not used
 * after the expression has become another; and an epoch in which it has another number of records is not used. Codes
 * are rounded, so the records that it finds are tested again. */
#ifndef DELTAFS_QUERY_VALUE_INDEX_H
#define DELTAFS_QUERY_VALUE_INDEX_H

#include "base/collective.h"
#include "directory/format/manifest.h"
#include "query/columns.h"

#define VALUE_INDEX_KEY   "source_key"  /* the first column of an index's records, */
#define VALUE_INDEX_MADE  "made_of"     /* and its attributes: the UUID of the directory, */
#define VALUE_INDEX_VALUE "expression"  /* the text of the expression, */
#define VALUE_INDEX_PRINT "fingerprint" /* and its fingerprint, from each epoch on that has been indexed */

/* The code of a value: the float32 below it, such that codes have the order of values. NaN
 * is the largest. */
uint64_t value_index_code(double value);

/* The fingerprint of an expression for a label. */
int value_index_fingerprint(const struct manifest *m, const deltafs_schema *schema, const struct expr *x,
                            uint64_t label, uint64_t *out, struct error *e);

/* What is made, by the ranks of `group`. */
struct value_index_maker {
    const struct collective *group;
    /* Open the index for writing with all ranks: a new one, unless it is made. */
    int (*open)(void *ctx, int is_made, const char *path, const deltafs_options *options, deltafs_dir **out);
    void *ctx;
    const deltafs_options *options;
    uint64_t epochs, records; /* of this rank: what was indexed */
};

/* Collective: bring the index "NAME:EXPRESSION +COLUMN..." of the directory at `path` up to date; it becomes a computed
 * column, too. */
DELTAFS_PRIVATE int deltafs_private_value_index_make(struct value_index_maker *m, const char *path, const char *text,
                                                     struct error *e);

#endif
