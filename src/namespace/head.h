/* The text log NAMESPACE, which makes a folder a namespace:
 *     Deltafs version=1 uuid=UUID
 *     Namespace mode=M uid=U gid=G time=T
 * with the attributes of the root, as long as no table has others. */
#ifndef DELTAFS_NAMESPACE_HEAD_H
#define DELTAFS_NAMESPACE_HEAD_H

#include "io/io.h"
#include "namespace/entry.h"

/* Create a namespace. DELTAFS_ERR_EXISTS if there is one by now; or what else is in the way. */
int head_create(struct io *io, const char *path, int sync, struct error *e);
/* Read the root's attributes. DELTAFS_ERR_NOT_FOUND: nothing is at `path`; DELTAFS_ERR_NOT_DELTAFS: no namespace. */
int head_read(struct io *io, const char *path, struct inode *root, struct error *e);

#endif
