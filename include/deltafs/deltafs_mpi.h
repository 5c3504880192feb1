/* DeltaFS in C, in an MPI job: all ranks write one directory together.
 *
 * Only deltafs_mpi_create and deltafs_mpi_reopen differ from the serial API of deltafs.h. Their handle is used with
 * deltafs_append, deltafs_append_many, deltafs_epoch_end and deltafs_close. Each record travels to the rank that owns
 * its key's partition, over a communicator of the library's own.
 *
 * The library works at every MPI thread level. It calls MPI only from the thread that calls DeltaFS, inside the calls.
 * With the option progress=thread, which needs MPI_THREAD_MULTIPLE, a thread of the library also calls MPI, and serves
 * other ranks while the program computes.
 *
 * If MPI itself fails on a rank, the current or next call on that rank returns DELTAFS_ERR_MPI. Each later call returns
 * that or DELTAFS_ERR_COLLECTIVE at once. The other ranks wait for that rank until it ends the job, for example with
 * MPI_Abort. Committed epochs are safe, and a new job can continue.
 */
#ifndef DELTAFS_MPI_H
#define DELTAFS_MPI_H

#include <mpi.h>
#include <deltafs/deltafs.h>
#include <deltafs/deltafs_fileindex.h>
#include <deltafs/deltafs_logical.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Create a directory at `path`, on a file system that all ranks of `comm` share, and open it for writing. Collective
 * over `comm`, which is duplicated. Rank 0's `path` and `options` (with NULL: its environment) count.
 *
 * Unless the option partitions says otherwise, there is one partition per rank. After an error all ranks get the same
 * status, and nothing is left at `path`; only if MPI itself fails, the statuses may differ and files may stay.
 * DELTAFS_ERR_EXISTS if there is anything at `path`. Close with deltafs_close, before MPI_Finalize.
 *
 * deltafs_options_create is local and may fail on one rank only: agree on its status before this call. */
DELTAFS_API int deltafs_mpi_create(MPI_Comm comm, const char *path, const deltafs_options *options, deltafs_dir **out);

/* The same for an existing directory, as deltafs_reopen. Any job may have created it, with any number of ranks. */
DELTAFS_API int deltafs_mpi_reopen(MPI_Comm comm, const char *path, const deltafs_options *options, deltafs_dir **out);

/* Set options from the hints deltafs_NAME of an MPI_Info. Other hints are ignored. MPI_INFO_NULL has no hints. Local.
 * DELTAFS_ERR_OPTION as for deltafs_options_set. */
DELTAFS_API int deltafs_mpi_options_from_info(MPI_Info info, deltafs_options *options);

/* How the records of a job would travel, and what that costs the ranks that have the most. */
struct deltafs_route {
    size_t struct_size; /* see convention 7 of deltafs.h */
    const char *name;   /* direct, 3hop or grid; a constant */
    uint64_t nodes;
    uint64_t hops;           /* of a record, at most */
    uint64_t remote_peers;   /* ranks on other nodes that a rank exchanges messages with */
    uint64_t local_peers;    /* ranks of its own node */
    uint64_t message_bytes;  /* of a message between nodes */
    uint64_t chunk_bytes;    /* of a chunk of a ring within a node */
    uint64_t bytes_per_rank; /* of all buffers and tables for this, on one rank */
};

/* What deltafs_mpi_create with these options (or NULL) would choose for `ranks` ranks with `per_node` ranks on each
 * node. The numbers come from the code that it uses. Local; allocates nothing and does not need MPI_Init. With
 * memory=auto the result is that of large nodes. DELTAFS_ERR_INVALID if a number is 0 or above 2^31 - 1,
 * DELTAFS_ERR_MEMORY if the job would not fit. */
DELTAFS_API int deltafs_mpi_route(uint64_t ranks, uint64_t per_node, const deltafs_options *options,
                                  struct deltafs_route *out);

/* Open a logical file (deltafs_logical.h) with all ranks of `comm`, which is duplicated. Rank 0's `path`, `flags` and
 * `options` count. The option extents (see deltafs(7)) says how the ranks read the writers' extents. Collective;
 * after an error all ranks get the same status. Close with deltafs_logical_close, before MPI_Finalize. */
DELTAFS_API int deltafs_mpi_logical_open(MPI_Comm comm, const char *path, int flags, const deltafs_options *options,
                                         deltafs_logical **out);

/* deltafs_indexer_open (deltafs_fileindex.h) for all ranks of `comm`, which is duplicated, on a file system that they
 * share. Rank 0's `index`, `path` and `options` count. Collective; after an error all ranks get the same status. Close
 * with deltafs_indexer_close, before MPI_Finalize. */
DELTAFS_API int deltafs_mpi_indexer_open(MPI_Comm comm, const char *index, const char *path,
                                         const deltafs_options *options, deltafs_indexer **out);

#ifdef __cplusplus
}
#endif
#endif
