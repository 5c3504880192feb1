/* Ordered scans with the iterators of the public functions, in another order. */
#ifndef DELTAFS_DIRECTORY_READ_ITER_H
#define DELTAFS_DIRECTORY_READ_ITER_H

#include <deltafs/deltafs.h>
#include "base/error.h"

/* As deltafs_iter_open, but in the order of keys: the records of a key in the order of epochs. All epochs are read at
 * the same time. */
int iter_open_by_key(deltafs_dir *dir, uint64_t low, uint64_t high, const struct deltafs_range *epochs,
                     deltafs_iter **out);
/* deltafs_iter_next for a caller that has checked the directory, whose keys are numbers. */
int iter_next_number(deltafs_iter *iter, const struct deltafs_record **record, struct error *e);
/* Whether no more records of the last one's key follow, as far as is known without reading on. Only of
 * iter_open_by_key.
 */
int iter_is_last_of_key(const deltafs_iter *iter);
/* Hold about `bytes` of records at a time; of an iterator that was just opened. */
void iter_limit(deltafs_iter *iter, size_t bytes);
/* Whether it has met damage so far, which deltafs_iter_next reports at the end. */
int iter_has_damage(const deltafs_iter *iter);

#endif
