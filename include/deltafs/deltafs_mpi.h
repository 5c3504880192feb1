/* DeltaFS in C, in an MPI job: all ranks write one directory together.
 *
 * deltafs_mpi_create and deltafs_mpi_reopen are the only calls that differ from the serial API of deltafs.h; the handle
 * they return is used with deltafs_append, deltafs_append_many, deltafs_epoch_end and deltafs_close from there. Records
 * travel to the rank that owns their key's partition over a communicator of the library's own.
 *
 * Works at every MPI thread level: MPI is called only from the thread that calls DeltaFS, inside the calls; but with
 * the option progress=thread, which needs MPI_THREAD_MULTIPLE, also from a thread of the library's own, which serves
 * other ranks while the program is elsewhere.
 *
 * Where MPI itself fails on a rank, the call that this rank is in, or its next one, returns DELTAFS_ERR_MPI, and each
 * later one that or DELTAFS_ERR_COLLECTIVE, at once. The other ranks cannot be told, as MPI is all they are told by:
 * they wait for that rank until it ends the job, as by MPI_Abort. Committed epochs stay, and a new job can go on.
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

/* Make a new directory at `path`, on a file system that all ranks of `comm` share, and open it for writing. Collective
 * over `comm`, which is duplicated; rank 0's `path` and `options` (or environment, with NULL) count. Fails with the
 * same status on all ranks, and then leaves nothing behind but the file of the option `stats`, which it adds nothing
 * to; where MPI fails, statuses may differ, and what was made may stay. As for deltafs_create, DELTAFS_ERR_EXISTS if
 * there is anything at `path`. The directory has as many partitions as `comm` has ranks unless the option `partitions`
 * says otherwise. End with deltafs_close, before MPI_Finalize. Mind that deltafs_options_create is local and may fail
 * on one rank only: agree on it before this call. */
DELTAFS_API int deltafs_mpi_create(MPI_Comm comm, const char *path, const deltafs_options *options, deltafs_dir **out);

/* The same for a directory that is there, as deltafs_reopen; with any number of ranks, whatever made it. */
DELTAFS_API int deltafs_mpi_reopen(MPI_Comm comm, const char *path, const deltafs_options *options, deltafs_dir **out);

/* Take the hints named deltafs_NAME of an MPI_Info as options. Other hints are left alone. MPI_INFO_NULL is fine.
 * Local. DELTAFS_ERR_OPTION as deltafs_options_set. */
DELTAFS_API int deltafs_mpi_options_from_info(MPI_Info info, deltafs_options *options);

/* How the records of a job would travel, and what that takes. Numbers are those of the ranks that have the most. */
struct deltafs_route {
    const char *name; /* direct, 3hop or grid; lives for ever */
    uint64_t nodes;
    uint64_t hops;           /* of a record, at most */
    uint64_t remote_peers;   /* ranks on other nodes that a rank exchanges messages with */
    uint64_t local_peers;    /* ranks of its own node */
    uint64_t message_bytes;  /* of a message between nodes */
    uint64_t chunk_bytes;    /* of a chunk of a ring within a node */
    uint64_t bytes_per_rank; /* of all the library's buffers and tables for this, on one rank */
};

/* What deltafs_mpi_create with these options (or NULL) would choose for `ranks` ranks, `per_node` on each node; the
 * numbers come from the code that it uses. Local: takes no memory, and MPI need not have begun. With the option memory
 * at auto, the shuffle gets what it would on large nodes. DELTAFS_ERR_INVALID if a number is 0 or above 2^31 - 1,
 * DELTAFS_ERR_MEMORY if the job would not fit. The message is that of deltafs_errmsg(NULL). */
DELTAFS_API int deltafs_mpi_route(uint64_t ranks, uint64_t per_node, const deltafs_options *options,
                                  struct deltafs_route *out);

/* Open a logical file (deltafs_logical.h) with all ranks of `comm`, which is duplicated. Rank 0's `path`, `flags` and
 * `options` count. The option extents says how the ranks read the writers' extents. parallel: each rank reads a share,
 * and all exchange what they read. broadcast: rank 0 reads all of them. flatten: as parallel, and the close writes the
 * extents of the session into one file. Collective; fails with the same status on all ranks. End with
 * deltafs_logical_close, before MPI_Finalize. */
DELTAFS_API int deltafs_mpi_logical_open(MPI_Comm comm, const char *path, int flags, const deltafs_options *options,
                                         deltafs_logical **out);

/* deltafs_logical_close of a file that was opened by deltafs_mpi_logical_open; and if any rank has written to it, and
 * its options (or a deltafs.conf beside it, see deltafs-index(7)) name a key, its rows are indexed then, in the index
 * that they name. A failure of that is returned, with a message that says so; the file is closed and whole in that
 * case. A key that names an HDF5 dataset (it has a '/') needs an HDF5 library in the process. Collective. */
DELTAFS_API int deltafs_mpi_logical_close(deltafs_logical *file);

/* deltafs_indexer_open (deltafs_fileindex.h) for all ranks of `comm`, which is duplicated, on a file system that they
 * share. Rank 0's `index`, `path` and `options` count. Collective; fails with the same status on all ranks. End
 * with deltafs_indexer_close, before MPI_Finalize. */
DELTAFS_API int deltafs_mpi_indexer_open(MPI_Comm comm, const char *index, const char *path,
                                         const deltafs_options *options, deltafs_indexer **out);

#ifdef __cplusplus
}
#endif
#endif
