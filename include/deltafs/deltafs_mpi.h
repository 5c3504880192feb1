/* DeltaFS in C, in an MPI job: all ranks write one directory together.
 *
 * A program calls deltafs_mpi_create or deltafs_mpi_reopen. With the handle that it gets, it calls the functions of
 * deltafs.h: deltafs_append, deltafs_append_many, deltafs_epoch_end and deltafs_close. The library sends each record to
 * the rank that owns the partition of its key. It uses a communicator of its own for that.
 *
 * Every MPI thread level is enough. The library calls MPI only inside its functions, in the thread that called them. So
 * MPI's rules for the thread level are also valid for calls of DeltaFS. There are two exceptions. The option
 * progress=thread needs MPI_THREAD_MULTIPLE, and a thread of the library calls MPI to take records of other ranks while
 * the program computes. With that level, a thread also calls MPI for a namespace that ranks share. deltafs(7) has more
 * rules for MPI programs.
 *
 * The library is built for one MPI. In a program that was compiled with another MPI, every function that takes a handle
 * of MPI returns DELTAFS_ERR_MPI. (MPICH and the MPIs that are made from it count as one, and so do those of Open MPI.)
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
#include <deltafs/deltafs_namespace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Create a directory at `path`, on a file system that all ranks of `comm` share, and open it for writing. Collective
 * over `comm`, which is duplicated. `path` and `options` of rank 0 are used; those of the other ranks are ignored. If
 * `options` is NULL on rank 0, the environment of rank 0 is used.
 *
 * There is one partition per rank, unless the option partitions is set. If the call fails, all ranks get the same
 * status, and nothing is left at `path`. (If MPI itself fails, the statuses may differ, and files may be left.)
 * DELTAFS_ERR_EXISTS if there is anything at `path`. Close with deltafs_close, before MPI_Finalize.
 *
 * deltafs_options_create is local and may fail on one rank only. Make sure that it succeeded on all ranks before this
 * call, for example with MPI_Allreduce. */
DELTAFS_API int deltafs_mpi_create(MPI_Comm comm, const char *path, const deltafs_options *options, deltafs_dir **out);

/* Open an existing directory for writing, with all ranks. Any job may have created it, with any number of ranks: the
 * ranks of this job share its partitions. Like deltafs_reopen, this call deletes all data that was not committed. */
DELTAFS_API int deltafs_mpi_reopen(MPI_Comm comm, const char *path, const deltafs_options *options, deltafs_dir **out);

/* Set options from the hints deltafs_NAME of an MPI_Info. Other hints are ignored. MPI_INFO_NULL has no hints. Local.
 * DELTAFS_ERR_OPTION as for deltafs_options_set. */
DELTAFS_API int deltafs_mpi_options_from_info(MPI_Info info, deltafs_options *options);

/* How the records of a job would travel, and what that costs. Each number is that of the rank that has the most. */
struct deltafs_route {
    size_t struct_size; /* see convention 7 of deltafs.h */
    const char *name;   /* direct, 3hop or grid; a constant */
    uint64_t nodes;
    uint64_t hops;           /* steps of a record on its way, at most */
    uint64_t remote_peers;   /* ranks on other nodes that a rank exchanges messages with */
    uint64_t local_peers;    /* ranks of its own node */
    uint64_t message_bytes;  /* of a message between nodes */
    uint64_t chunk_bytes;    /* of a chunk of a ring within a node */
    uint64_t bytes_per_rank; /* of all buffers and tables for this, on one rank */
};

/* Compute the route that deltafs_mpi_create would choose for `ranks` ranks with `per_node` ranks on each node.
 * `options` may be NULL. The numbers come from the code that deltafs_mpi_create uses. With memory=auto the result is
 * that of large nodes. Local; allocates nothing and does not need MPI_Init. DELTAFS_ERR_INVALID if a number is 0 or
 * above 2^31 - 1, DELTAFS_ERR_MEMORY if the job would not fit. */
DELTAFS_API int deltafs_mpi_route(uint64_t ranks, uint64_t per_node, const deltafs_options *options,
                                  struct deltafs_route *out);

/* Open a logical file (deltafs_logical.h) with all ranks of `comm`, which is duplicated. `path`, `flags` and `options`
 * of rank 0 are used. The option extents (see deltafs(7)) says how the ranks read the writers' extents. Collective;
 * after an error all ranks get the same status. Close with deltafs_logical_close, before MPI_Finalize. */
DELTAFS_API int deltafs_mpi_logical_open(MPI_Comm comm, const char *path, int flags, const deltafs_options *options,
                                         deltafs_logical **out);

/* ---- Files for MPI-IO: a logical file, or a file of a pool ---- */

/* If rank 0 finds a pool that runs at a mount point above the path (deltafs_pool_open_path), it is a file of that, and
 * otherwise a logical file. A file of a pool has no options, and no atomic mode (DELTAFS_ERR_INVALID). What is written
 * to it is visible to all processes when the call returns. The functions are those of logical files of the same name,
 * and collective as these are. */
typedef struct deltafs_mpi_file deltafs_mpi_file;

DELTAFS_API int deltafs_mpi_file_open(MPI_Comm comm, const char *path, int flags, const deltafs_options *options,
                                      deltafs_mpi_file **out);
/* Close and free the handle. */
DELTAFS_API int deltafs_mpi_file_close(deltafs_mpi_file *file);
/* Remove a file; one process calls this. */
DELTAFS_API int deltafs_mpi_file_remove(const char *path);
/* 1: it is a file of a pool. 0: it is a logical file. */
DELTAFS_API int deltafs_mpi_file_is_pooled(const deltafs_mpi_file *file);

DELTAFS_API int deltafs_mpi_file_write_list(deltafs_mpi_file *file, size_t n, const struct deltafs_extent *extent,
                                            const void *bytes);
DELTAFS_API int deltafs_mpi_file_read_list(deltafs_mpi_file *file, size_t n, const struct deltafs_extent *extent,
                                           void *bytes, size_t *got);
DELTAFS_API int deltafs_mpi_file_size(deltafs_mpi_file *file, uint64_t *size);
DELTAFS_API int deltafs_mpi_file_sync(deltafs_mpi_file *file);
DELTAFS_API int deltafs_mpi_file_exchange(deltafs_mpi_file *file);
DELTAFS_API int deltafs_mpi_file_truncate(deltafs_mpi_file *file, uint64_t size);
DELTAFS_API int deltafs_mpi_file_extend(deltafs_mpi_file *file, uint64_t size);
DELTAFS_API int deltafs_mpi_file_set_atomic(deltafs_mpi_file *file, int is_atomic);

/* deltafs_compact (deltafs.h) by all ranks of `comm`, which share the partitions of `from`, each with about the option
 * memory. All ranks give the same paths and options, and share the file system. `progress` is called for the records of
 * its own rank; one rank is enough to cancel. Collective; after an error all ranks get the same status. */
DELTAFS_API int deltafs_mpi_compact(MPI_Comm comm, const char *from, const char *to,
                                    const struct deltafs_compact_options *options);

/* Open an index to add to it, like deltafs_indexer_open (deltafs_fileindex.h), with all ranks of `comm`, which is
 * duplicated. The ranks must share the file system. `index`, `path` and `options` of rank 0 are used. Collective; after
 * an error all ranks get the same status. Close with deltafs_indexer_close, before MPI_Finalize. */
DELTAFS_API int deltafs_mpi_indexer_open(MPI_Comm comm, const char *index, const char *path,
                                         const deltafs_options *options, deltafs_indexer **out);

/* Index the records of the directory at `path` by the values of an expression, with all ranks of `comm`, which share
 * the file system. deltafs_select_open then finds records by these values without reading all. `index` is
 * "NAME:EXPRESSION", such as "energy:ux*ux+uy*uy+uz*uz"; " +COLUMN" behind it, once or several times, stores columns in
 * the index, too. The expression becomes the computed column NAME, too. The index is a directory at `path`/by/NAME.
 * Epochs that are in it already stay; call again after epochs were added.
 *
 * `path` may be an index of files, or a file that has one: then their rows are indexed, each table as one epoch, and
 * tables that were not indexed since their file was (deltafs_indexer_add) are added. There is no computed column.
 * Tables that lack a column, or have it with another type than the first that has all, are left out.
 *
 * The directory must be closed, have a schema, and keys that are numbers. `options`: those of deltafs_mpi_create for
 * the index (memory, partitions, ...); NULL: defaults. *epochs gets the number of epochs that were indexed, and
 * *records how many of their records this rank has read. All ranks pass the same `path` and `index`. Collective; after
 * an error all ranks get the same status. DELTAFS_ERR_INVALID: `index` is wrong, or there is another index or attribute
 * of this name; an index with other columns is another one. DELTAFS_ERR_BUSY: the directory is being changed.
 * DELTAFS_ERR_CHANGED: a file that is to be read was changed since it was indexed; nothing is changed then. An
 * interrupted call leaves whole epochs: call again. */
DELTAFS_API int deltafs_mpi_index_by(MPI_Comm comm, const char *path, const char *index, const deltafs_options *options,
                                     uint64_t *epochs, uint64_t *records);

/* How the ranks of a job use a namespace together. */
enum deltafs_namespace_mode {
    DELTAFS_NAMESPACE_PRIVATE = 1, /* each rank for itself */
    DELTAFS_NAMESPACE_SHARED = 2   /* every rank sees at once what all do */
};

/* Open a namespace (deltafs_namespace.h) with all ranks of `comm`, which is duplicated. The ranks must share the file
 * system. `path`, `flags` and `options` of rank 0 are used; the same rank creates the namespace if `flags` asks for
 * that. All ranks pass the same `mode`. Collective; after an error all ranks get the same status. Close with
 * deltafs_namespace_close, before MPI_Finalize.
 *
 * Private: each rank gets a handle as from deltafs_namespace_open. No call with it is collective, and the ranks do not
 * communicate. A rank sees what was committed when it opened or refreshed the namespace, and its own changes.
 *
 * Shared: the ranks are owners of the entries; those of one folder have several owners. Every call asks the owners, and
 * what it has changed, all ranks see when it returns. Two ranks can create the same name at once: one of them gets
 * DELTAFS_ERR_EXISTS. deltafs_namespace_create_many creates many names with few messages. These rules apply:
 *  - deltafs_namespace_commit and deltafs_namespace_close are collective over `comm`. After an error all ranks get the
 *    same status. DELTAFS_ERR_COLLECTIVE: another rank called another of these, or deltafs_mpi_namespace_barrier;
 *    nothing was done. A close does not return this, but waits until all ranks have called it. If the job dies during
 *    a commit, some ranks' part of it may be committed.
 *  - A call waits until the owner answers. If MPI_Init_thread gave MPI_THREAD_MULTIPLE, a thread of the library answers
 *    while the rank computes. Otherwise a rank answers only while it is in a function of DeltaFS. Then, while other
 *    ranks use the namespace, do not wait for them in a call of MPI; use deltafs_mpi_namespace_barrier.
 *  - What a rank writes to a file, others read once it is closed. They ask the rank that wrote it, until the namespace
 *    is opened the next time. If several ranks write one file at once, it has the bytes of the one that closed it last.
 *  - Attributes of an open file (deltafs_namespace_file_stat) are those when it was opened, or set by the rank itself.
 *  - A list may have entries that were removed after it was opened.
 *  - The option memory (at least 40M) is for each rank. A commit because memory is used up is one of all ranks.
 * With O_RDONLY, nothing changes, and the namespace is private. */
DELTAFS_API int deltafs_mpi_namespace_open(MPI_Comm comm, const char *path, int flags, const deltafs_options *options,
                                           enum deltafs_namespace_mode mode, deltafs_namespace **out);

/* Wait until all ranks have called this, and answer other ranks meanwhile. Collective. DELTAFS_ERR_MODE: the namespace
 * is not shared. DELTAFS_ERR_COLLECTIVE: another rank called another collective function of the namespace. */
DELTAFS_API int deltafs_mpi_namespace_barrier(deltafs_namespace *ns);

/* ---- Servers of a pool: see deltafs_pool.h ---- */

/* Where the bytes of files are. */
enum deltafs_pool_placement {
    DELTAFS_POOL_HASH = 0, /* each chunk of 512 KiB on any node, by hash */
    DELTAFS_POOL_LOCAL = 1 /* on the node where the file is created: if each rank writes files of its own */
};

struct deltafs_mpi_pool {
    size_t struct_size; /* see convention 7 of deltafs.h */
    const char *local;  /* the local folder of this rank; "%n" in it is the rank's number. It is created if it does not
                           exist; else it must be empty */
    const char *point;  /* the mount point, which need not exist: processes of this node find the server by its name */
    int placement;      /* enum deltafs_pool_placement */
    uint64_t memory;    /* bytes for connections of clients, about 2 MiB each; 0: 512 MiB */
    void (*started)(void *arg);    /* NULL, or called when all servers serve */
    int (*should_stop)(void *arg); /* NULL, or called all the time; 1: stop, as all other ranks will */
    void *arg;
};

/* Be a server of a pool, one rank on each node, until deltafs_pool_stop is called. All that is in the pool is then
 * deleted. Collective; all ranks pass the same `point` and `placement`. DELTAFS_ERR_EXISTS: a local folder is not
 * empty. DELTAFS_ERR_BUSY: there is a pool at the mount point on a node. After such an error all ranks get the same
 * status. DELTAFS_ERR_MPI: other servers have died. DELTAFS_ERR_VERSION: this DeltaFS is built without LMDB. */
DELTAFS_API int deltafs_mpi_pool_serve(MPI_Comm comm, const struct deltafs_mpi_pool *pool);

/* What a pool takes, and what calls of clients cost: at most so much, whatever the clients do. */
struct deltafs_pool_report {
    size_t struct_size; /* see convention 7 of deltafs.h */
    /* Bytes of memory of each server; what the MPI library allocates comes on top. */
    uint64_t message_bytes; /* messages to and from other servers */
    uint64_t lost_bytes;    /* more for each other server that does not answer any more */
    uint64_t table_bytes;   /* tables with an entry for each server */
    uint64_t clients;       /* processes that can be connected to a server at the same time */
    uint64_t client_bytes;  /* for all of them */
    uint64_t lock_bytes;    /* locks of parts of files */
    uint64_t process_bytes; /* of each client, besides what it shares with the server */
    /* Bytes of each local folder that are mapped, for names, attributes and places; the system keeps some in memory. */
    uint64_t map_bytes;
    uint64_t entry_bytes; /* of these for each file or folder */
    uint64_t chunk_bytes; /* of these for each 512 KiB of a file */
    /* Requests of a call. One to a server of another node is two messages of at most request_bytes. */
    uint64_t request_bytes;
    uint64_t create, first_create; /* of a file; of the first one of a folder on a server */
    uint64_t stat, renamed_stat;   /* of a file; of one that was renamed */
    uint64_t write, read;          /* of 1 MiB at the beginning of a file */
    uint64_t remove;               /* of a file of 1 MiB */
    uint64_t list;                 /* of a folder; and one for each 64 KiB of entries of a server */
};

/* Compute this for a pool of `servers` servers, each on a node of its own, with `memory` as in struct deltafs_mpi_pool.
 * The numbers come from the code that the servers use. Local; allocates nothing and does not need MPI_Init.
 * DELTAFS_ERR_INVALID: a pool cannot have so many servers. DELTAFS_ERR_VERSION: as for deltafs_mpi_pool_serve. */
DELTAFS_API int deltafs_mpi_pool_report(uint64_t servers, uint64_t memory, struct deltafs_pool_report *out);

#ifdef __cplusplus
}
#endif
#endif
