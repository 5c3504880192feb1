/* What verifying and repairing a namespace have in common. */
#ifndef DELTAFS_REPAIR_NAMESPACE_H
#define DELTAFS_REPAIR_NAMESPACE_H

#include "namespace/tables.h"
#include "repair/repair_parts.h"

/* Read NAMESPACE, COMPACTED and the pins; adds what is damaged. DELTAFS_ERR_NOT_FOUND, DELTAFS_ERR_NOT_DELTAFS: there
 * is no namespace. */
int namespace_check_texts(struct io *io, const char *path, struct damages *d, struct error *e);
/* Call `fn` with the directory of each table, and with that of its data, whether it has one or not. */
int namespace_each_directory(struct io *io, const char *path, void (*fn)(void *arg, const char *directory), void *arg,
                             struct error *e);
/* List all folders, and find the bytes of all files, of a namespace or a snapshot; adds which of them has lost
 * something. `out` (may be NULL) gets the number of names, as records, and the bytes of files. The status is that of
 * opening. */
int namespace_check_names(const char *path, struct damages *d, struct deltafs_verify_counts *out, struct error *e);

#endif
