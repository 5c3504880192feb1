/* Where an index is, and the paths of its sources. */
#ifndef DELTAFS_FILEINDEX_INDEX_PATHS_H
#define DELTAFS_FILEINDEX_INDEX_PATHS_H

#include "fileindex/sources.h"

struct index_paths {
    char *path;
    char *sources;     /* the path of its file SOURCES */
    char *parent;      /* the folder that it is in, from which names of files begin */
    char *real_parent; /* it may be this one, as a link leads to it; else NULL */
};

/* The index at `path`. */
int index_paths_init(struct index_paths *c, const char *path, struct error *e);
void index_paths_fini(struct index_paths *c);
/* Its folder, if a link leads to it: the one that it really is in; but that of the link, if files of these sources are
 * there, and none where it really is: then it was moved, and the link left. Once for an index. */
void index_paths_settle(struct index_paths *c, const struct io *io, const struct sources *s);
/* The path of the index that belongs to the file at `path`, of that kind; freed by the caller. */
int index_paths_beside(const char *path, char kind, char **out, struct error *e);
/* The index at `path`, or that of the file there; DELTAFS_ERR_NOT_FOUND. */
int index_paths_find(struct io *io, const char *path, struct index_paths *c, struct error *e);

/* What SOURCES calls the file at `path`, or is to call it: by its real path, that is, without links. But a file may
 * have gone since it was indexed, and it, or a folder, may have become a link: so names are tried first in which parts
 * of the path at its end stand as they are given, the longest of these first, and one that a source of `s` has is the
 * answer. DELTAFS_ERR_NOT_FOUND: no source is called so, and there is no such file. Freed by the caller; the index
 * is found by `io`. */
int index_paths_name(const struct index_paths *c, const struct io *io, const struct sources *s, const char *path,
                     char **out, struct error *e);
/* The path of that from where the caller is; freed by the caller. */
char *index_paths_path_out(const struct index_paths *c, const char *path);

#endif
