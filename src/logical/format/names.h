/* The names in a logical file's folders. A name that is not in the table is not ours. */
#ifndef DELTAFS_LOGICAL_NAMES_H
#define DELTAFS_LOGICAL_NAMES_H

#include "io/io.h"

enum name {
    NAME_FOREIGN,
    /* Folders: */
    NAME_CONTAINER, /* not in the table: its name is the user's */
    NAME_SESSION,
    NAME_BUCKET,
    NAME_INDEX, /* the index over the file's rows */
    NAME_INDEX_BUCKET,
    /* Files: */
    NAME_MANIFEST,
    NAME_ASIDE, /* a manifest that is being created */
    NAME_LOCK,
    NAME_REMOVED, /* marks a session that is being removed */
    NAME_OWNER,   /* whose bucket it is */
    NAME_FRAMES,
    NAME_EXTENTS,
    NAME_FILE /* any other file of ours */
};

/* What `text` is in a folder of the kind `in`; *number: of a session, a bucket or a writer. */
enum name name_of(enum name in, const char *text, uint32_t *number);
/* Set the bit 1 << NAME for each name in a folder. */
int names_in(struct io *io, const char *folder, enum name in, unsigned *seen, struct error *e);

#endif
