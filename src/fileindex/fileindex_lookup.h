/* An index that is open for reading, as its parts see it: opening and looking up (fileindex_lookup.c), and verifying
 * (fileindex_verify.c). */
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

#endif
