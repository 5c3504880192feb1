/* The file COMPACTED of a namespace: of which tables the entries are in another table, too. A compaction writes all
 * entries into a new table, commits it, and then replaces this file by one rename(2). From then on readers leave out
 * what is replaced; before that they read both, which is the same: of two records of an entry the newer counts, and the
 * new table has the newest of those that it replaces, also of what was removed.
 *
 * With complete=1 the new table has the entries of all layers below the namespace, too. Layers never change, so names
 * are not looked up there any more; they are still asked for the bytes of files.
 *
 *     Deltafs version=1 uuid=UUID
 *     Compacted table=N limit=LABEL [complete=1]     the new table, and its epoch
 *     Table number=N limit=LABEL                     one that is replaced, up to this epoch */
#ifndef DELTAFS_NAMESPACE_COMPACTED_H
#define DELTAFS_NAMESPACE_COMPACTED_H

#include "namespace/layers.h"

struct compacted {
    uint8_t uuid[16];          /* of this compaction; zero: there was none */
    struct layer_table into;   /* number 0: there was none */
    int is_complete;           /* it has the entries of the layers below the namespace, too */
    struct layer_table *table; /* by number */
    size_t count, room;
};

void compacted_fini(struct compacted *c);
/* Read the file; that there is none is no error. */
int compacted_read(struct io *io, const char *path, struct compacted *out, struct error *e);
/* Whether the file is of another compaction by now. */
int compacted_has_changed(struct io *io, const char *path, const uint8_t uuid[16]);
/* The label up to which a table is replaced, or 0. */
uint64_t compacted_limit(const struct compacted *c, uint64_t number);
/* Add a table, before writing; in any order. */
int compacted_add(struct compacted *c, uint64_t number, uint64_t limit, struct error *e);
/* Whether a file has the name under which COMPACTED is written first. */
int compacted_is_aside(const char *name);
int compacted_write(struct io *io, const char *path, const struct compacted *c, int sync, struct error *e);

#endif
