/* Where a collection is, and the paths of its sources. */
#ifndef DELTAFS_CORE_COLLECTION_H
#define DELTAFS_CORE_COLLECTION_H

#include "store/sources.h"

struct collection {
    char *path;
    char *sources; /* the path of its file SOURCES */
    char *parent;  /* the folder that it is in */
};

/* The collection at `path`. */
int collection_init(struct collection *c, const char *path, struct error *e);
void collection_fini(struct collection *c);
/* The path of the collection that belongs to the file at `path`, of that kind; freed by the caller. */
int collection_beside(const char *path, char kind, char **out, struct error *e);
/* The collection at `path`, or that of the file there; DELTAFS_ERR_NOT_FOUND. */
int collection_find(struct io *io, const char *path, struct collection *c, struct error *e);

/* The path of a file as SOURCES has it, and from where the caller is; freed by the caller. The collection is found by
 * `io`. */
int collection_path_in(const struct collection *c, const struct io *io, const char *path, char **out, struct error *e);
/* The same of a file that may be gone, and its folders, too. */
int collection_path_gone(const struct collection *c, const struct io *io, const char *path, char **out,
                         struct error *e);
char *collection_path_out(const struct collection *c, const char *path);

#endif
