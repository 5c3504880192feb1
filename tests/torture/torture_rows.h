/* Records with columns, whose values are of all kinds, and the brute-force answer to what a select may ask of them. */
#ifndef DELTAFS_TORTURE_ROWS_H
#define DELTAFS_TORTURE_ROWS_H

#include "torture_model.h"

#define ROWS_SCHEMA "v:f4,w:f8,n:i4"
#define ROWS_SIZE   16   /* bytes of a value */
#define ROWS_MOST   3000 /* records of an epoch that jobs of ranks write, at most */

/* Append the records of an epoch, of rank `rank` of `ranks` those whose keys are its own, so that all of a key keep
 * their order. Returns the first status that is not DELTAFS_OK. */
int rows_append(const struct torture_epoch *epoch, uint32_t rank, uint32_t ranks, deltafs_dir *dir);

/* Some indexes by value, as the option index_by takes them: one, or two with a ';' between them. */
const char *rows_indexes(struct torture_rng *r, char text[128]);
#define ROWS_INDEXES 4
extern const char *const rows_index[ROWS_INDEXES];

/* Epoch `label` of a directory that follows from its seed, with fewer than `most` records. */
struct torture_epoch rows_epoch(uint64_t seed, uint64_t label, uint32_t most);

/* The records of some epochs, which must stay. */
struct rows;
struct rows *rows_create(const struct torture_epoch *epochs, size_t n);
void rows_destroy(struct rows *m);

/* Whether an open directory has these epochs: by deltafs_stat. */
int rows_fit(const struct rows *m, deltafs_dir *dir);

/* Ask the directory at `path` for all records, and some random questions. No call may fail, whatever has become of its
 * indexes. Returns how many were answered by an index. */
unsigned rows_check(const struct rows *m, const char *path, unsigned questions, struct torture_rng *r,
                    struct torture_verdict *v);
/* Ask one question about each epoch of which the index number `i` says which records there are. Returns how many of
 * them were answered by an index. */
unsigned rows_check_epochs(const struct rows *m, const char *path, size_t i, struct torture_verdict *v);

#endif
