/* Files of records to be indexed by their keys, and an oracle of what is found then. */
#ifndef DELTAFS_UNIT_ROWS_H
#define DELTAFS_UNIT_ROWS_H

#include <deltafs/deltafs_fileindex.h>
#include "unit_help.h"

#define RECORD 24 /* bytes: "x:f4,id:u8,n:u4,y:f8" */
#define SCHEMA "x:f4,id:u8,n:u4,y:f8"

struct oracle {
    char path[300];
    uint64_t label, rows, skip;
    uint64_t *key; /* of each row */
    uint32_t seed; /* of the values */
};

/* A file of random keys, which oracle_write() writes; the caller frees its keys. */
struct oracle oracle_make(struct rng *r, const char *path, uint64_t label, uint64_t rows, uint64_t skip);
void oracles_free(struct oracle *file, size_t n);
void oracle_record(const struct oracle *o, uint64_t row, uint8_t record[RECORD]);
void oracle_write(const struct oracle *o);
void oracle_write_logical(const struct oracle *o);

/* Index it: by an open handle, or in an index. */
int oracle_index(const struct oracle *o, deltafs_indexer *ix);
int index_one(const char *index, const struct oracle *o);
void write_and_index(const char *index, const struct oracle *o);
/* *is_added: whether that succeeded, whatever the close said. */
int index_and_tell(const char *index, const struct oracle *o, int *is_added);

/* What a look-up should hand out: the rows of all files, in order. */
struct answer {
    const struct oracle *file;
    size_t files, at;
    uint64_t row, key;
};

/* A deltafs_row_fn of such an answer. */
int answer_check(const struct deltafs_row *row, void *arg);
/* All rows of one key. */
void check_key(deltafs_fileindex *k, const struct oracle *file, size_t files, uint64_t key);
/* Some keys, and what verifying says. has_ended 0: it may say that an indexing did not end. */
void check_some(const char *path, const struct oracle *file, size_t files, int has_ended);
void check_all(const char *path, const struct oracle *file, size_t files);

#endif
