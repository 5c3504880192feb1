/* An index that is open for reading, as its parts see it: opening and looking up (fileindex_lookup.c), scanning
 * (fileindex_scan.c), and verifying (fileindex_verify.c). */
#ifndef DELTAFS_FILEINDEX_FILEINDEX_LOOKUP_H
#define DELTAFS_FILEINDEX_FILEINDEX_LOOKUP_H

#include "fileindex/index_paths.h"
#include "fileindex/source_file.h"

#define KEYS_OPEN_FILES 16 /* sources that are kept open */

/* One table; in the order in which rows are handed out. */
struct keys_entry {
    size_t source; /* number of it */
    const struct source_table *table;
    int is_lost;   /* the directory has not what SOURCES says */
    int is_absent; /* a row of it could not be read in the look-up under way */
};

/* A source, beside what SOURCES says. */
struct keys_source {
    char *path;
    struct error error; /* of the first look at it: it cannot be used */
    int is_checked;
    int is_reported; /* the error, by the verify under way */
    struct key_file file;
    int is_open;
};

struct deltafs_fileindex {
    struct index_paths place;
    struct io io;
    deltafs_dir *dir;
    struct sources sources;
    struct keys_source *source; /* of each */
    size_t open_count;
    struct keys_entry *entry;
    struct keys_entry **by_sequence;
    size_t entry_count;
    struct error lines; /* SOURCES does not account for all epochs, or has a file whose indexing did not end */
    struct deltafs_io_stat closed; /* operations of logical files that are closed */
    struct buffer slices;          /* extents of rows that were read into `group`: */
    size_t slice_count;
    struct buffer group, value, missing;
    struct buffer elements; /* of a dataset */
    char *hdf5;             /* the option */
    size_t missing_count;   /* labels that the last get could not read */
};

/* The source, open and unchanged; DELTAFS_ERR_CHANGED if it is not. */
int keys_source_open(deltafs_fileindex *k, size_t source, struct key_file **out, struct error *e);
/* Whether any file was ever indexed here, even if it was forgotten later. Otherwise no key can be said to be missing.
 */
int keys_check_any(const deltafs_fileindex *k, struct error *e);
/* DELTAFS_ERR_CHANGED: the indexing of a file did not end. */
int keys_check_finished(const deltafs_fileindex *k, const struct manifest *m, struct error *e);
int keys_entry_lost(const deltafs_fileindex *k, const struct keys_entry *entry, struct error *e);
/* Whether its label is in the range; NULL: all are. */
int keys_entry_is_in(const struct keys_entry *entry, const struct deltafs_range *range);

/* The first error of a query, and whether there are others. A file that several tables are in has the same one for
 * each. */
struct keys_faults {
    struct error first;
    int has_more;
};

/* Keep an error, if it is one. That something of a file is not found does not mean that there is no such row. */
void keys_keep_fault(struct keys_faults *f, const struct error *e);
/* The status of the query, whose message becomes that of the thread. */
int keys_end(struct keys_faults *f);
/* The labels that are missing from the answer: none at first; then those of tables, in their order. */
int keys_miss_none(deltafs_fileindex *k, struct error *e);
void keys_miss(deltafs_fileindex *k, const struct keys_entry *entry);

/* ---- Rows of a source file (fileindex_rows.c) ---- */

/* Find where the values of `n` columns are in rows `from` to end - 1: extents in k->slices, *bytes in all. `wanted`:
 * for each column whether it is; NULL: all are. */
int rows_find(deltafs_fileindex *k, const struct deltafs_column *column, size_t n, const uint8_t *wanted, uint64_t from,
              uint64_t end, uint64_t *bytes, struct error *e);
/* Read what rows_find has found. */
int rows_read(deltafs_fileindex *k, struct key_file *file, uint64_t bytes, struct error *e);
/* The value at this place of the file, which was read; behind it are those of the column's run (column_run). */
const uint8_t *rows_value(const deltafs_fileindex *k, uint64_t place);
/* Read `rows` elements of a column's dataset into k->elements; *value is the first value. */
int rows_elements(deltafs_fileindex *k, const struct keys_entry *entry, struct key_file *file,
                  const struct deltafs_column *c, uint64_t first, uint64_t rows, const uint8_t **value,
                  struct error *e);

#endif
