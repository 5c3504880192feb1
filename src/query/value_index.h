/* Value indexes: which records have certain values of an expression. The index NAME of a directory is a directory of
 * its own, at DIR/by/NAME. For each record of an epoch it has a record in the epoch of the same label: its key is the
 * code of the expression's value, in the order of values; its value is the key of the record, and any columns that the
 * index carries.
 *
 * That of an index of files is the same, at INDEX/by/NAME. It has an epoch for each table, whose label is that of the
 * table's epoch in the index of files. The value of a record is the number of the row, its key, and the columns. What
 * was computed says, too, in which state the file was: its table keeps the epoch if only values in it have changed.
 *
 * An index never changes an answer. It says for each epoch, in an attribute, what was computed, so that it is not used
 * after the expression has become another; and an epoch in which it has another number of records is not used. Codes
 * are rounded, so the records that it finds are tested again. */
#ifndef DELTAFS_QUERY_VALUE_INDEX_H
#define DELTAFS_QUERY_VALUE_INDEX_H

#include <limits.h>
#include "base/collective.h"
#include "directory/format/manifest.h"
#include "fileindex/fileindex_scan.h"
#include "io/io_format.h"
#include "query/columns.h"

#define VALUE_INDEX_KEY   "source_key"  /* the first column of an index's records, */
#define VALUE_INDEX_ROW   "source_row"  /* in front of that, if the records are rows of files, */
#define VALUE_INDEX_MADE  "made_of"     /* and its attributes: the UUID of the directory, */
#define VALUE_INDEX_VALUE "expression"  /* the text of the expression, */
#define VALUE_INDEX_PRINT "fingerprint" /* and its fingerprint, from each epoch on that has been indexed */

/* The code of a value: the float32 below it, such that codes have the order of values. NaN
 * is the largest. */
uint64_t value_index_code(double value);
void value_index_codes(const double *value, size_t n, uint64_t *code);

/* The fingerprint of an expression for a label. */
int value_index_fingerprint(const struct manifest *m, const deltafs_schema *schema, const struct expr *x,
                            uint64_t label, uint64_t *out, struct error *e);

/* "NAME:EXPRESSION +COLUMN...", taken apart. */
struct value_request {
    char name[NAME_MAX + 1];
    char *value;  /* the expression */
    char *fields; /* columns to carry, separated by commas; "": none */
};

/* From `length` bytes; free it also after an error. */
int value_request_take(struct value_request *r, const char *text, size_t length, struct error *e);
void value_request_fini(struct value_request *r);

/* The index that there is. */
struct value_index_state {
    int is_made, has_epochs;
    int has_column;                 /* the directory has an attribute of its name */
    uint64_t last;                  /* the label of its last epoch */
    char made_of[UUID_TEXT_SIZE];   /* of the directory; the caller's, */
    const deltafs_options *options; /* as these, whose lease counts; NULL: that of the environment */
};

/* The schema of an index that carries these columns ("": none); `has_rows`: of files. The caller frees it. */
int value_index_schema(int has_rows, const char *carried, char **out, struct error *e);
/* By one rank: look for the index of the directory at `of`, which is to have this schema. One that was made by halves,
 * or whose manifest is damaged, is removed; and another one that has no epoch. DELTAFS_ERR_INVALID: it is another. */
int value_index_look(const char *of, const struct value_request *r, const char *schema, struct value_index_state *s,
                     struct error *e);
/* Whether `epoch` of the index is that of this label, with so many records, and has what is computed of them now. */
int value_index_has(deltafs_dir *index, const struct deltafs_epoch_stat *epoch, uint64_t label, uint64_t records,
                    uint64_t print);
/* Collective: what that rank has found. */
int value_index_agree(const struct collective *group, struct value_index_state *s, struct error *e);

/* Who writes an index: the ranks of `group`. */
struct value_index_ranks {
    const struct collective *group;
    /* Open a directory for writing with all ranks: a new one, unless it is made. */
    int (*open)(void *ctx, int is_made, const char *path, const deltafs_options *options, deltafs_dir **out);
    void *ctx;
};

/* Collective: open it for writing, with the options of rank 0, which are changed. A damaged one is replaced. */
int value_index_open(const struct value_index_ranks *ranks, const char *of, const struct value_request *r,
                     struct value_index_state *s, deltafs_options *o, deltafs_dir **out, struct error *e);
/* By one rank: the options of an index: those of the directory (NULL: none) that are not the directory's own. To be
 * destroyed, also after an error. */
int value_index_options(const deltafs_options *of, deltafs_options **out, struct error *e);
/* By one process, before a directory is reopened: remove indexes that have later epochs than it, which are those of a
 * job that died, or of another copy of the directory; and what is left of a removal that was interrupted. */
DELTAFS_PRIVATE int deltafs_private_value_index_prune(const char *of, const deltafs_options *o, struct error *e);
/* Collective: what was computed of the epoch that ends next. */
int value_index_print(deltafs_dir *index, uint64_t label, uint64_t print, struct error *e);

/* Collective: write the indexes that the option index_by asks for, `text`, together with the directory that is open for
 * writing. `o`: rank 0's options of it. After an error the caller closes the directory. */
DELTAFS_PRIVATE int deltafs_private_value_index_follow(deltafs_dir *d, const char *path, const char *text,
                                                       const struct value_index_ranks *ranks, const deltafs_options *o,
                                                       struct error *e);
/* Leave a part of the option memory to the indexes: *out is a copy of `o` to be destroyed, or NULL if there is nothing
 * to change. */
DELTAFS_PRIVATE int deltafs_private_value_index_share(const deltafs_options *o, deltafs_options **out, struct error *e);

struct value_index_maker {
    const struct value_index_ranks *ranks;
    const deltafs_options *options;
    uint64_t epochs, records; /* of this rank: what was indexed; tables are epochs, too */
};

/* Collective: all ranks must see the same, though others may change what is at `path` meanwhile. */
int value_index_agree_on(const struct collective *group, const char *path, uint64_t value, struct error *e);
/* Collective: the same as below, for an index of files; `opened`: the status of opening it. */
int value_index_make_of_files(struct value_index_maker *m, deltafs_fileindex *files, int opened, const char *text,
                              struct error *e);

/* Collective: bring the index "NAME:EXPRESSION +COLUMN..." of the directory at `path` up to date; it becomes a computed
 * column, too. Or that of the index of files at `path`, or of the file there. */
DELTAFS_PRIVATE int deltafs_private_value_index_make(struct value_index_maker *m, const char *path, const char *text,
                                                     struct error *e);

#endif
