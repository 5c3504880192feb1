/* Indexing with all processes of a group: what libdeltafs_mpi gives the core for that. */
#ifndef DELTAFS_FILEINDEX_INDEXER_H
#define DELTAFS_FILEINDEX_INDEXER_H

#include "fileindex/source_file.h"
#include "logical/logical.h"

/* How the index and its sources are opened; each is collective. */
struct indexer_calls {
    int (*create)(void *ctx, const char *path, const deltafs_options *options, deltafs_dir **out);
    int (*reopen)(void *ctx, const char *path, const deltafs_options *options, deltafs_dir **out);
    key_file_open_fn open_logical;
};

/* As deltafs_indexer_open; `ctx` of the group is that of the calls, too. Takes the group over on success. */
DELTAFS_PRIVATE int deltafs_private_indexer_open_group(const char *index, const char *path,
                                                       const deltafs_options *options, const struct collective *group,
                                                       const struct indexer_calls *calls, deltafs_indexer **out,
                                                       struct error *e);

/* What the file at `path` is, before its tables are looked for; and what it must be still when it is added. Both are of
 * rank 0 alone. */
DELTAFS_PRIVATE int deltafs_private_indexer_identify(const char *path, struct source_identity *out, struct error *e);
DELTAFS_PRIVATE void deltafs_private_indexer_expect(deltafs_indexer *indexer, const char *path,
                                                    const struct source_identity *is);
/* The logical file that is added next, and no other one, was written by the processes of the indexer's group, in one
 * session. All ranks call it, each with what it wrote. */
DELTAFS_PRIVATE void deltafs_private_indexer_written(deltafs_indexer *indexer, const struct key_writer *w);

#endif
