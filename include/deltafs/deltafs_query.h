/* DeltaFS: attributes of directories, units of columns, computed columns, selecting records. A directory can carry
 * facts about its data: the grid of the simulation, physical constants, the physical time of each epoch, the units of
 * its columns. Such a fact is an attribute. It has a name, and a number, an array of numbers or a text as its value. An
 * attribute can also be an expression: it defines a computed column, which can be used as a stored column.
 *
 * The conventions of deltafs.h apply. Names of attributes consist of letters, digits and '_', and do not begin with a
 * digit. An attribute cannot have the name of a stored column, nor one of these: key, epoch, and, or, not.
 *
 * A value is valid from a label on, because facts such as a grid may change in the course of a simulation. The value
 * for a label is the one that was set last, of all those that are valid from this label or a smaller one on. So
 * a value that is set again for the same label, or a smaller one, replaces the former. Setting an attribute of the type
 * NONE removes values in the same way: with `from` 0 all of them. The physical time of an epoch is
 * the attribute "time": set it for each epoch, with the label of the epoch as `from`.
 *
 * Attributes are stored in the manifest of the directory. Older versions of DeltaFS ignore them.
 */
#ifndef DELTAFS_QUERY_H
#define DELTAFS_QUERY_H

#include <deltafs/deltafs_fileindex.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an attribute is, and what its `value` points to. */
enum deltafs_attribute_type {
    DELTAFS_ATTRIBUTE_F8 = 1,         /* const double *, of `count` numbers */
    DELTAFS_ATTRIBUTE_I8 = 2,         /* const int64_t * */
    DELTAFS_ATTRIBUTE_U8 = 3,         /* const uint64_t * */
    DELTAFS_ATTRIBUTE_TEXT = 4,       /* const char *, up to a zero */
    DELTAFS_ATTRIBUTE_EXPRESSION = 5, /* the same: the expression of a computed column */
    DELTAFS_ATTRIBUTE_COLUMN = 6,     /* no value: the attribute gives the unit of the stored column of this name */
    DELTAFS_ATTRIBUTE_NONE = 7        /* no value: remove those that were set for label `from` and larger ones */
};

struct deltafs_attribute {
    size_t struct_size; /* see convention 7 of deltafs.h */
    const char *name;
    uint64_t from;     /* the label from which on it is valid; 0: for all epochs */
    int type;          /* enum deltafs_attribute_type */
    size_t count;      /* numbers; 1 for a single number. Of a text: its bytes (not used when it is set) */
    const void *value; /* see the type */
    double unit_si;    /* by how much a value is multiplied to be in SI units; 0: the unit is not known */
    /* The powers of length, mass, time, electric current, temperature, amount of substance and luminous intensity in
     * the unit, in this order, as openPMD has them. A velocity: 1, 0, -1, 0, 0, 0, 0. */
    double unit_dimension[7];
};

/* Set an attribute of a directory that is open for writing. The attribute is stored at once, whatever happens to the
 * current epoch. It can be set at any time: before the first epoch, and between or within epochs. Readers that are open
 * see it after deltafs_refresh.
 *
 * In a job, the call is collective: all ranks call it, and all get the same status. The attribute of rank 0 is stored;
 * on the other ranks `attribute` is ignored and may be NULL.
 *
 * DELTAFS_ERR_INVALID: the name is not possible, the attribute is longer than 16 MiB as a text, or an expression has a
 * mistake: the message is then "...: 'NAME': offset N: ...". Whether the names in an expression exist is found out when
 * it is used, so that a writer can set attributes in any order. If storing fails, the directory is as before, or the
 * call says that no epoch can be committed any more. */
DELTAFS_API int deltafs_attribute_set(deltafs_dir *dir, const struct deltafs_attribute *attribute);

/* Set an attribute of a directory that no program has open for writing, and whose last writer closed it. No epoch is
 * read or changed. DELTAFS_ERR_MODE: its writer did not close it; run deltafs_repair first. DELTAFS_ERR_BUSY: another
 * process is writing the directory, or may be (see the option lease). DELTAFS_ERR_NOT_FOUND: there is no such
 * directory, or nothing to be removed by the type NONE. The other errors are those of deltafs_open and
 * deltafs_attribute_set, and DELTAFS_ERR_INVALID if an expression has a name that is no column and no attribute (set
 * the attribute first), if a value would replace a computed column (remove it first), or if a computed column could no
 * longer use the attribute. Not collective. */
DELTAFS_API int deltafs_attribute_set_closed(const char *path, const struct deltafs_attribute *attribute);

/* Get the attribute `name` as it is valid for `label`. The directory must be open for reading. The name and value in
 * *out belong to the handle, until it is refreshed or closed. DELTAFS_ERR_NOT_FOUND if there is no such attribute, or
 * if it is valid from a later label on. */
DELTAFS_API int deltafs_attribute_get(deltafs_dir *dir, const char *name, uint64_t label,
                                      struct deltafs_attribute *out);

/* Get attribute number `i`, from 0 on (deltafs_stat has their number), in the order in which they were set. A name has
 * one attribute for each label from which on it has another value; those that were replaced are left out.
 * DELTAFS_ERR_NOT_FOUND if there are fewer. */
DELTAFS_API int deltafs_attribute_at(deltafs_dir *dir, size_t i, struct deltafs_attribute *out);

/* ---- Selecting records ---- */

/* Expressions have Python's operators and their precedence, from those that bind last: or, and, not, comparisons,
 * + -, * / // %, a sign, and ** for powers. The functions are sqrt, abs, floor, log, exp, sin, cos, atan2, min, max. A
 * name is a field of the schema, a computed column, an attribute with one number, `key` or `epoch` (the label).
 * `name[x]` is value number x, from 0 on, of an attribute that is an array. A field that is called key or epoch has the
 * name value.key or value.epoch. Any name can be written between backquotes.
 *
 * Arithmetic is in double precision. Comparisons, // and % are exact for integers, also with 64 bits; // and % round
 * down. Comparisons with NaN are false, except !=. */

/* Keys: `number` if the keys of the directory are numbers, otherwise `bytes` and `size`. */
struct deltafs_key_list {
    size_t count;
    const uint64_t *number;
    const void *const *bytes;
    const size_t *size;
};

struct deltafs_select_options {
    size_t struct_size;                /* see convention 7 of deltafs.h */
    const char *where;                 /* a condition, such as "ux**2 + uy**2 > 1"; NULL: all records */
    const char *by;                    /* with `top`: the value to order by */
    uint64_t top;                      /* only so many rows: those with the largest values; 0: all rows */
    const char *fields;                /* the columns of the rows, separated by commas; NULL: all; "": none */
    const struct deltafs_range *range; /* of epochs; NULL: all */
    /* Sets of keys; NULL: not given. Only records whose key is in `keys` and in `and_keys`, but not in `not_keys`. */
    const struct deltafs_key_list *keys, *and_keys, *not_keys;
    /* To divide the work among processes: the partitions of the first epoch of `range` are numbered from 0 on, those
     * of the next epoch follow, and so on. Only those whose number modulo `parts` is `part`; `parts` 0 or 1: all. With
     * `top`, the rows of all parts together have the first ones, of which each part returns `top` of its own; or, if
     * an index is used (deltafs_select_index), only its own of the first ones of all parts. */
    uint32_t part, parts;
};

typedef struct deltafs_select deltafs_select;

/* A computed column, or an attribute in `fields`, is missing in the epochs for which it is not set, or for which an
 * attribute that its expression names is not set. In rows, a missing value is the NaN with these bits. A NaN that is
 * the result of a computation has other bits, unless a stored value has these. (R takes a NaN with these bits for its
 * NA.) */
#define DELTAFS_MISSING_BITS UINT64_C(0x7ff80000000007a2)

/* Select records of a directory that is open for reading. Several threads read and evaluate, each with files of its
 * own: as many as the option read_threads allows, but not more than processors or partitions. Only the columns that
 * are used are taken out of the blocks. With `keys` or `and_keys`, only these keys are looked up.
 *
 * `dir` must not be refreshed or closed before the select is closed. DELTAFS_ERR_INVALID: an expression or a field is
 * wrong. The message is then "NAME: offset N: ...", where NAME is where, by or fields, and N the place in this text, in
 * bytes. Close with deltafs_select_close. Not collective. */
DELTAFS_API int deltafs_select_open(deltafs_dir *dir, const struct deltafs_select_options *options,
                                    deltafs_select **out);

/* Select rows of the files of an index. The calls and the options are the same, with these differences.
 *  - The columns are those that all selected tables have, with the same type; the key's column is called `key`. Without
 *    `fields`, all these tables must have the same columns: DELTAFS_ERR_INVALID.
 *  - There are no attributes and no computed columns.
 *  - If the rows of an epoch are too many to be ordered by key, they are ordered by table and row, as
 *    deltafs_fileindex_scan has them. Rows of the same key in the same epoch always are.
 *  - `part` and `parts`: pieces of tables are numbered instead of partitions.
 *  - With `keys` or `and_keys`, keys are looked up only if they are few: less than one for 4096 rows of an epoch.
 *  - Files that were changed or cannot be read are left out, as damage is: at the end, deltafs_select_next returns the
 *    first error of deltafs_fileindex_scan, such as DELTAFS_ERR_CHANGED.
 * Each thread opens the index and its files; DELTAFS_ERR_CHANGED if files were indexed since `index` was opened, which
 * must not be closed before the select is. */
DELTAFS_API int deltafs_select_open_fileindex(deltafs_fileindex *index, const struct deltafs_select_options *options,
                                              deltafs_select **out);

/* The schema of the rows, owned by the select: the columns in the order of `fields`. Without `fields`: all stored
 * columns, then all computed ones. Stored columns have their stored type, all others are f8. "": rows have no columns;
 * or, without `fields`, the directory has no schema, and a row is a value as it was stored. It has no error bounds. */
DELTAFS_API const char *deltafs_select_schema(const deltafs_select *select);

/* Get the next rows; *count is 0 at the end. rows[i].value has the columns of a row, packed as the schema says, and the
 * values of all *count rows lie one after the other. The rows are valid until the next call.
 *
 * Order: with `top`, the largest value comes first; NaN comes last; equal values are ordered by key, then by epoch.
 * All `top` rows are held in memory, some 100 bytes and the row for each. Without it, rows are ordered by epoch, then
 * by key. But if the rows of an epoch take more than half of the option memory (auto: of 64 MiB), the rows of this
 * epoch are ordered as deltafs_scan_partition has them: by partition, then by key. So memory is bounded. The order does
 * not depend on the number of threads.
 *
 * Damage does not end the select: the call returns all rows that can be read, and then, instead of *count = 0, the
 * first DELTAFS_ERR_DAMAGED or DELTAFS_ERR_IO. DELTAFS_ERR_INVALID: an expression cannot be used for one of the later
 * epochs, because an attribute is another one there, or `where` or `by` names one that is not set there. The message
 * names the epoch. */
DELTAFS_API int deltafs_select_next(deltafs_select *select, const struct deltafs_record **rows, size_t *count);

/* With `top`: the values by which the rows that deltafs_select_next returned last are ordered, one for each row. They
 * are valid as long as the rows are. NULL without `top`. */
DELTAFS_API const double *deltafs_select_values(const deltafs_select *select);

/* Get the share of the work that is done, from 0 to 1: of the partitions of all epochs. Also while another thread is in
 * deltafs_select_next. */
DELTAFS_API int deltafs_select_progress(deltafs_select *select, double *share);

/* The name of the value index (deltafs_mpi_index_by) that the select uses, owned by the select; NULL: none. An index is
 * used in the epochs (of files: for the tables) that it has, if `where` has a comparison of its expression with a
 * constant, alone or joined to others by `and`, or if `by` is its expression and there is no `where`; and if it leaves
 * out most records. The rows are the same without it (but see `parts`). Those for which the index has all that is
 * needed (the key, and the columns that it carries) are made of the index alone. */
DELTAFS_API const char *deltafs_select_index(const deltafs_select *select);

/* End the threads and free everything. Can be called at any time. */
DELTAFS_API int deltafs_select_close(deltafs_select *select);

/* ---- Columns of records that were read ---- */

typedef struct deltafs_columns deltafs_columns;

/* Make rows with other columns, such as computed ones, of records of `dir`, which is open for reading. `fields` is as
 * in deltafs_select_options, but not ""; NULL: all stored columns, then all computed ones.
 *
 * `dir` must not be refreshed or closed before. DELTAFS_ERR_INVALID: `fields` is wrong; the message is then
 * "fields: offset N: ...". Close with deltafs_columns_close. */
DELTAFS_API int deltafs_columns_open(deltafs_dir *dir, const char *fields, deltafs_columns **out);

/* The schema of the rows, as of deltafs_select_schema. Without `fields`, it is the schema of the directory, but
 * for error bounds, if there are no computed columns. */
DELTAFS_API const char *deltafs_columns_schema(const deltafs_columns *columns);

/* Make rows of `n` records that a get or a scan of `dir` returned; also within the function that a scan calls. Many
 * records in one call are faster, and their labels may differ. (*rows)[i] is row i: it has the key and the label of
 * record i, and as its value the columns, packed as the schema says. The values of all rows lie one after the other. If
 * the columns are all stored ones in their order, *rows is `records` itself. The rows are valid until the next call,
 * and as long as the keys of the records are. Values may be missing: see DELTAFS_MISSING_BITS.
 *
 * DELTAFS_ERR_INVALID: an expression cannot be used for one of the epochs, because an attribute is another one there.
 * The message, by deltafs_errmsg(NULL), names the epoch. DELTAFS_ERR_SIZE: a record does not have the value size of the
 * directory. */
DELTAFS_API int deltafs_columns_rows(deltafs_columns *columns, size_t n, const struct deltafs_record *records,
                                     const struct deltafs_record **rows);

DELTAFS_API int deltafs_columns_close(deltafs_columns *columns);

#ifdef __cplusplus
}
#endif
#endif
