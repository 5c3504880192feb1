/* DeltaFS in C: logical files. A program sees one file; each writer's bytes are stored in a log of its own.
 *
 * Any number of processes may write a logical file at any offsets, and any number of others may read it. On disk it is
 * a folder. Each writer appends its bytes to a data log, and their places in the file (extents) to an extent log. Of
 * several writes to one byte, the last one counts. Bytes that nobody wrote are read as zeros. The method is that of
 * PLFS (Bent et al., SC'09).
 *
 * To publish writes is to make them visible to other processes. deltafs_logical_sync and deltafs_logical_close do that.
 * Each opening by which something is written adds a folder of logs, a session.
 *
 * The conventions of deltafs.h hold. On a handle of deltafs_mpi_logical_open, all ranks must make the calls marked
 * "collective", and get the same status. All other calls are local. A handle may be used by one thread at a time.
 *
 * Visibility
 *  - A process sees its own writes at once.
 *  - A process sees the writes of another process if the other process published them, and this process after that
 *    opened the file or called deltafs_logical_sync itself (MPI's "sync-barrier-sync").
 *  - The writes of a job replace all writes that others published before the job opened the file or synced. The writes
 *    of a single process replace all writes that others published before its first write.
 *  - If two processes write the same bytes between two such points, it is not defined which write counts. But it is the
 *    same one for all readers, always.
 *  - In atomic mode, a read sees each write that returned before the read began, and never a write without all earlier
 *    ones. A change of the size counts as a write.
 *
 * The option memory limits the cache of a handle (half of the limit), its buffers and its index. If the index does not
 * fit, DELTAFS_ERR_MEMORY is returned; closing the file still publishes what was written. With memory=auto the index
 * takes what it needs: about 200 bytes for each run of written bytes. In addition a handle needs about 300 bytes for
 * each writer's log. At the close with extents=flatten each process needs the size of the extents of all of them. */
#ifndef DELTAFS_LOGICAL_H
#define DELTAFS_LOGICAL_H

#include <deltafs/deltafs.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deltafs_logical deltafs_logical;

/* Open a logical file from this process alone. `flags` is O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL and
 * O_TRUNC as in open(2). `options` may be NULL. Other processes may have the file open, also for writing.
 * DELTAFS_ERR_NOT_FOUND, DELTAFS_ERR_EXISTS (with O_EXCL), DELTAFS_ERR_NOT_DELTAFS (something else is at `path`),
 * _VERSION, _DAMAGED. Close with deltafs_logical_close. */
DELTAFS_API int deltafs_logical_open(const char *path, int flags, const deltafs_options *options,
                                     deltafs_logical **out);

/* Close and free the handle. The handle is freed even if the call returns an error. The close publishes what was
 * written. It waits for storage only with the option sync=close. If data must survive a power failure, use this option,
 * or call deltafs_logical_sync before the close. After a power failure, data that was not synced may be lost in part,
 * or reading it may return DELTAFS_ERR_DAMAGED. Synced data is safe.
 *
 * If the file was opened by deltafs_mpi_logical_open, some rank wrote to it, and the options (or a deltafs.conf beside
 * the file, see deltafs-index(7)) name a key, the close also indexes the file's rows, in the index that they name. If
 * only the indexing fails, the close returns its error; the message says so, and the file is complete. A key with a '/'
 * names an HDF5 dataset and needs an HDF5 library in the process. Collective. */
DELTAFS_API int deltafs_logical_close(deltafs_logical *file);

/* Write `size` bytes at `offset`: all of them, or the call returns an error. The bytes may stay in a buffer. So a later
 * call may return an error of the storage, at the latest deltafs_logical_sync or _close. Local. */
DELTAFS_API int deltafs_logical_write(deltafs_logical *file, uint64_t offset, const void *bytes, size_t size);

/* Write `n` extents, whose bytes follow one another in `bytes`. One call costs less than many. Local. */
DELTAFS_API int deltafs_logical_write_list(deltafs_logical *file, size_t n, const struct deltafs_extent *extent,
                                           const void *bytes);

/* Read up to `size` bytes at `offset`. *got is less than `size` only at the end of the file. Holes read as zeros.
 * DELTAFS_ERR_DAMAGED if bytes do not match their checksum. Local. */
DELTAFS_API int deltafs_logical_read(deltafs_logical *file, uint64_t offset, void *bytes, size_t size, size_t *got);

/* Read `n` extents into `bytes`, one after another. Bytes beyond the end of the file become zeros. *got is the number
 * of bytes up to the last one inside the file. Local. */
DELTAFS_API int deltafs_logical_read_list(deltafs_logical *file, size_t n, const struct deltafs_extent *extent,
                                          void *bytes, size_t *got);

/* Find the first written bytes at or after `offset`: [*start, *end). More written bytes may follow *end directly. The
 * bytes from `offset` to *start are a hole. Both are the file's size if nothing more is written. Local. */
DELTAFS_API int deltafs_logical_next(deltafs_logical *file, uint64_t offset, uint64_t *start, uint64_t *end);

/* The size of the file as this process sees it. Local; no communication. */
DELTAFS_API int deltafs_logical_size(deltafs_logical *file, uint64_t *size);

/* Publish what was written, wait until it is on storage (unless the option sync is none), and see what others have
 * published. DELTAFS_ERR_NOT_FOUND if the file was removed meanwhile: what was written to it is lost. Collective. */
DELTAFS_API int deltafs_logical_sync(deltafs_logical *file);

/* Let the ranks of the communicator see each other's writes, as after a sync. But do not wait for storage; and
 * processes outside the communicator may not see the writes. Later writes of any rank replace all earlier writes of any
 * rank. Costs little if nobody has written since the last call. Does nothing if the file is open for reading only.
 * Collective.
 */
DELTAFS_API int deltafs_logical_exchange(deltafs_logical *file);

/* Set the file's size to `size` bytes. Bytes beyond it are removed; missing bytes are read as zeros. This applies to
 * all earlier writes of the communicator's ranks. Collective, with the same size. */
DELTAFS_API int deltafs_logical_truncate(deltafs_logical *file, uint64_t size);

/* Make the file at least `size` bytes long. Collective, with the same size. */
DELTAFS_API int deltafs_logical_extend(deltafs_logical *file, uint64_t size);

/* Turn atomic mode on or off. It needs a file system with locks (DELTAFS_ERR_IO otherwise). Each call then takes a lock
 * and reads what all writers have published. Collective. */
DELTAFS_API int deltafs_logical_set_atomic(deltafs_logical *file, int is_atomic);

/* Remove a logical file with all its logs. DELTAFS_ERR_NOT_FOUND, _NOT_DELTAFS: nothing is removed. Not collective: one
 * process calls it.
 *
 * Other processes may have the file open for writing. They get DELTAFS_ERR_NOT_FOUND from every later
 * deltafs_logical_sync, _truncate and _extend, from their first deltafs_logical_write, and from deltafs_logical_close
 * if they wrote before. Their other writes succeed, but are lost. A new file of the same name is not affected. */
DELTAFS_API int deltafs_logical_remove(const char *path);

struct deltafs_logical_stat {
    size_t struct_size; /* see convention 7 of deltafs.h */
    uint64_t size;
    uint64_t sessions;      /* collective opens that wrote */
    uint64_t writers;       /* logs in all */
    uint64_t extents;       /* entries of the index; a strided run is one entry */
    uint64_t flat_sessions; /* sessions whose extents are in one file */
    uint64_t bytes_stored;  /* of the files, without the hole that a data log may have before its last checksums */
    const char *uuid;       /* owned by the handle */
    int is_closed;          /* whether all sessions were closed */
    int is_incomplete;      /* whether a power failure removed bytes of sessions that were not synced, or a repair
                             * recorded that a session is lost */
};
DELTAFS_API int deltafs_logical_stat(deltafs_logical *file, struct deltafs_logical_stat *out);

/* File operations of this handle so far. Local. */
DELTAFS_API int deltafs_logical_io_stat(const deltafs_logical *file, struct deltafs_io_stat *out);

/* Write the extents of each closed session into one file. Opening then reads one file instead of one per writer. Not
 * collective. */
DELTAFS_API int deltafs_logical_flatten(const char *path);

/* Read and check all that was published, also what later writes replaced. `fn` is called for each damaged place, as by
 * deltafs_verify; it may be NULL. `out` may be NULL. Local. */
DELTAFS_API int deltafs_logical_verify(deltafs_logical *file, deltafs_damage_fn fn, void *arg,
                                       struct deltafs_verify_counts *out);

/* The same for a file that is not open; it may be too damaged to be opened. Not collective. */
DELTAFS_API int deltafs_logical_verify_path(const char *path, deltafs_damage_fn fn, void *arg,
                                            struct deltafs_verify_counts *out);

/* Repair the text files MANIFEST and SESSION of a logical file. A file that is damaged or missing is rebuilt from the
 * logs. A session whose SESSION is rebuilt counts as not closed: if its logs are incomplete, that is not reported. No
 * process may have the file open for writing. A text file that is replaced is kept as FILE.damaged, FILE.damaged.2, ...
 * Of `options` (may be NULL) only dry_run applies; DELTAFS_ERR_INVALID if it has a label or drop_from. `fn` (may be
 * NULL) gets a report of each step, as from deltafs_repair. Not collective. */
DELTAFS_API int deltafs_logical_repair(const char *path, const struct deltafs_repair_options *options,
                                       deltafs_repair_fn fn, void *arg);

/* Find out what is at `path`. *kind gets 'd' for a directory (deltafs_open), 'f' for a logical file, both even if
 * their manifest is damaged, and '-' for anything else. DELTAFS_ERR_NOT_FOUND if there is nothing. Not collective. */
DELTAFS_API int deltafs_kind(const char *path, char *kind);

#ifdef __cplusplus
}
#endif
#endif
