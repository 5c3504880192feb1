/* Indexing with all processes of a group: what libdeltafs_mpi gives the core for that, and what finds a file's tables
 * (index_file.c) needs of the indexer. */
#ifndef DELTAFS_FILEINDEX_INDEXER_H
#define DELTAFS_FILEINDEX_INDEXER_H

#include <limits.h>
#include "fileindex/index_paths.h"
#include "fileindex/source_file.h"
#include "hdf5/h5rows.h"
#include "logical/logical.h"

/* How the index and its sources are opened; each is collective. */
struct indexer_calls {
    /* For writing; `is_made`: it exists already. */
    int (*open)(void *ctx, int is_made, const char *path, const deltafs_options *options, deltafs_dir **out);
    key_file_open_fn open_logical;
};

struct deltafs_indexer {
    struct io io;
    struct collective group;
    struct indexer_calls calls;
    struct index_paths place; /* from the root, because the program may change its folder; on rank 0 */
    deltafs_options *options;
    int sync;
    deltafs_dir *dir; /* open from the first file that is added on */
    int is_made;      /* on rank 0: the index was there */
    struct sources sources;
    struct manifest manifest; /* of the index, as it was when it was last read */
    uint64_t next;            /* sequence of the next epoch */
    uint64_t first_own;       /* of the first that this job has made */
    char expected[PATH_MAX];  /* on rank 0: the file that deltafs_indexer_has looked at, and its state; "": none */
    struct source_identity is;
    /* Rows of the file at hand, this rank's share: all, and those that are read. */
    _Atomic uint64_t rows, rows_read;
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
/* Collective: open the index for writing, or make it. It is this job's from then on, until it is closed. */
int indexer_open_dir(deltafs_indexer *ix, struct error *e);
/* Rank 0: what the index has now: nothing, if there is none. */
int indexer_read(deltafs_indexer *ix, struct error *e);
/* Rank 0: these lines of `n` sources into SOURCES, none after an error. */
int indexer_write(deltafs_indexer *ix, const struct source_entry *s, size_t n, unsigned lines, struct error *e);
/* Collective: rank 0's `n` bytes to all. An error in *e becomes that of all. */
int indexer_share(const struct collective *group, void *bytes, size_t n, struct error *e);

#endif
