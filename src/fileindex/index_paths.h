/* Where an index is, and the paths of its sources. */
#ifndef DELTAFS_FILEINDEX_INDEX_PATHS_H
#define DELTAFS_FILEINDEX_INDEX_PATHS_H

#include "fileindex/sources.h"

struct index_paths {
    char *path;
    char *sources; /* the path of its file SOURCES */
    char *parent;  /* the folder that it really is in, from which names of files begin */
};

/* The index at `path`. */
int index_paths_init(struct index_paths *c, const char *path, struct error *e);
void index_paths_fini(struct index_paths *c);
/* The path of the index that belongs to the file at `path`, of that kind; freed by the caller. */
int index_paths_beside(const char *path, char kind, char **out, struct error *e);
/* The index at `path`, or that of the file there; DELTAFS_ERR_NOT_FOUND. */
int index_paths_find(struct io *io, const char *path, struct index_paths *c, struct error *e);

/* *real: where the file at `path` really is, that is, without links (path_resolve). *name: what SOURCES calls that
 * file, or is to call it: by its path from the real folder of the index if it is below that, otherwise by *real. The
 * file may have gone. Both freed by the caller, also after an error. */
int index_paths_name(const struct index_paths *c, const struct sources *s, const char *path, char **real, char **name,
                     struct error *e);
/* The path of that from where the caller is; freed by the caller. */
char *index_paths_path_out(const struct index_paths *c, const char *path);

#endif
