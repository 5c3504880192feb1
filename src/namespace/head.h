/* The text log NAMESPACE, which makes a folder a namespace:
 *     Deltafs version=1 uuid=UUID
 *     Journals
 *     Namespace mode=M uid=U gid=G time=T [lines=N]
 * with the attributes of the root, as long as no table has others, and the layers below it (layers.h), if it has any,
 * which take N lines. */
#ifndef DELTAFS_NAMESPACE_HEAD_H
#define DELTAFS_NAMESPACE_HEAD_H

#include "namespace/entry.h"
#include "namespace/layers.h"

struct head {
    uint8_t uuid[16];
    struct inode root;
    int has_journals;    /* tables may have them; not so in namespaces of earlier versions, which do not read them */
    struct layers below; /* to be freed, also after an error */
};

/* Create a namespace. DELTAFS_ERR_EXISTS if there is one by now; or what else is in the way. */
int head_create(struct io *io, const char *path, const uint8_t uuid[16], const struct layers *below, int sync,
                struct error *e);
/* DELTAFS_ERR_NOT_FOUND: nothing is at `path`; DELTAFS_ERR_NOT_DELTAFS: no namespace. */
int head_read(struct io *io, const char *path, struct head *out, struct error *e);
/* Check that at the paths of all layers are the namespaces that they say; *root gets the root of the first one, unless
 * it has one, or is NULL. `path` is what is on top of them. */
int head_check_layers(struct io *io, const char *path, const struct layers *layers, struct inode *root,
                      struct error *e);

#endif
