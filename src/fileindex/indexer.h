/* Indexing with all processes of a group: what libdeltafs_mpi gives the core for that, and what finds a file's tables
 * (index_file.c) needs of the indexer. */
#ifndef DELTAFS_FILEINDEX_INDEXER_H
#define DELTAFS_FILEINDEX_INDEXER_H

#include "fileindex/source_file.h"
#include "hdf5/h5rows.h"
#include "logical/logical.h"

/* How the index and its sources are opened; each is collective. */
struct indexer_calls {
    /* For writing; `is_made`: it exists already. */
    int (*open)(void *ctx, int is_made, const char *path, const deltafs_options *options, deltafs_dir **out);
    key_file_open_fn open_logical;
};

/* By one process. */
extern const struct indexer_calls indexer_alone;

/* As deltafs_indexer_open; `ctx` of the group is that of the calls, too. Takes the group over on success. */
DELTAFS_PRIVATE int deltafs_private_indexer_open_group(const char *index, const char *path,
                                                       const deltafs_options *options, const struct collective *group,
                                                       const struct indexer_calls *calls, deltafs_indexer **out,
                                                       struct error *e);

/* Collective: index the file at `path`, which all ranks have just closed, if rank 0's options (which may change), or a
 * deltafs.conf beside it, say what its rows are. A file in which they name nothing gets no index: they may be in the
 * environment, for all files of a program. `own`: what this rank wrote to the logical file in this session; NULL on all
 * ranks if the keys are to be read back in equal shares. */
DELTAFS_PRIVATE int deltafs_private_index_closed(const char *path, deltafs_options *options,
                                                 const struct collective *group, const struct indexer_calls *calls,
                                                 const struct key_writer *own, struct error *e);

/* What is known of a file that is to be indexed. */
struct file_tables {
    struct h5rows rows;              /* its tables, on rank 0 */
    struct source_identity identity; /* the file's when they were looked for, on rank 0; of no kind: not known */
    uint64_t padding;                /* key of rows that are not indexed, or OPTION_AUTO; on rank 0 */
    const struct key_writer *writer; /* what this rank wrote, or NULL */
};

/* Collective: index it. The number of its rows that are indexed is added to *indexed. An error of rank 0 in *e becomes
 * that of all. */
int indexer_add(deltafs_indexer *ix, const char *path, const struct file_tables *t, uint64_t *indexed, struct error *e);
const struct collective *indexer_group(const deltafs_indexer *ix);
/* Collective: rank 0's `n` bytes to all. An error in *e becomes that of all. */
int indexer_share(const struct collective *group, void *bytes, size_t n, struct error *e);

#endif
