/* The bytes of files, in the data of tables. */
#ifndef DELTAFS_NAMESPACE_TABLE_DATA_H
#define DELTAFS_NAMESPACE_TABLE_DATA_H

#include "namespace/tables.h"

/* Read a chunk of a file's bytes, *got of them, at most `room`. */
int tables_read_chunk(struct tables *t, const struct entry_id *place, size_t room, void *bytes, size_t *got,
                      struct error *e);
/* Pass the places of all records that have bytes of a file to `fn`: those of chunks, and those of the list of them. */
typedef int tables_place_fn(void *arg, const struct entry_id *place, struct error *e);
int tables_each_place(struct tables *t, const struct inode *file, tables_place_fn *fn, void *arg, struct error *e);

#endif
