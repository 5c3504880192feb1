/* DeltaFS in C: logical files, many writers' one file as an application sees it, stored as logs of each writer's own.
 *
 * A logical file is written at any offsets by any processes and read back by any number of others. What is stored is a
 * folder: each writer appends its bytes to a data log and notes where they belong (extents) in another; the last writer
 * of a byte wins; what nobody wrote reads as zeros. This is the way of PLFS (Bent et al., SC'09).
 *
 * The conventions of deltafs.h hold. On a handle of deltafs_mpi_logical_open the calls marked "collective" are to be
 * made by all ranks of its communicator, and return the same status on all; the others are local. A handle is used by
 * one thread at a time.
 *
 * Who sees what: a process sees what it has written itself at once. It sees what others wrote once they have called
 * deltafs_logical_sync or _close, and it has opened the file or called deltafs_logical_sync afterwards (MPI's
 * "sync-barrier-sync"). What a job writes comes behind all that others had published so before it opened the file or
 * synced; what a process alone writes, behind all that they had published before its first write. Writes of the same
 * bytes by two processes between two such points are both whole writes to storage, and which one wins is not defined,
 * but it is the same for all readers and for ever. In atomic mode each write is seen by each read that begins after it
 * has returned, and by none without all writes that came before it; a change of the size is as a write.
 *
 * Memory: what the option memory says is a handle's for its cache (half of it), buffers, and index; where the index
 * does not fit, DELTAFS_ERR_MEMORY says so, and closing still publishes what was written. With auto the index takes
 * what it needs: about 200 bytes for each run of what was written. Beside that a handle has some 300 bytes for each
 * writer's log, and at the close, with the option extents=flatten, what this process has published once more (rank 0:
 * what all have). */
#ifndef DELTAFS_LOGICAL_H
#define DELTAFS_LOGICAL_H

#include <deltafs/deltafs.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deltafs_logical deltafs_logical;

/* `size` bytes of a logical file from `offset` on. */
struct deltafs_extent {
    uint64_t offset;
    uint64_t size;
};

/* Open a logical file from this process alone. `flags`: O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL, O_TRUNC as
 * open(2) has them. `options` may be NULL. A file open for writing may be open elsewhere too, also for writing.
 * DELTAFS_ERR_NOT_FOUND, DELTAFS_ERR_EXISTS (with O_EXCL), DELTAFS_ERR_NOT_DELTAFS (there is something else at `path`),
 * _VERSION, _DAMAGED. End with deltafs_logical_close. */
DELTAFS_API int deltafs_logical_open(const char *path, int flags, const deltafs_options *options,
                                     deltafs_logical **out);

/* Close and free, whatever is returned. What was written is published then, and durable if the option sync is close:
 * else, as with any file, what matters is synced before. A crash of the machine soon after takes what was not: what it
 * leaves of that is read, or DELTAFS_ERR_DAMAGED; and all that was synced is there. Collective. */
DELTAFS_API int deltafs_logical_close(deltafs_logical *file);

/* The message of the handle's last failed call; with NULL the calling thread's last without a handle. */
DELTAFS_API const char *deltafs_logical_errmsg(const deltafs_logical *file);

/* Write `size` bytes at `offset`; all of them are taken over, or the status is an error. They may be in a buffer still:
 * an error of storage may come with a later call, at the latest with deltafs_logical_sync or _close. Local. */
DELTAFS_API int deltafs_logical_write(deltafs_logical *file, uint64_t offset, const void *bytes, size_t size);

/* Write `n` extents, whose bytes stand one after another in `bytes`. One call is cheaper than many. Local. */
DELTAFS_API int deltafs_logical_write_list(deltafs_logical *file, size_t n, const struct deltafs_extent *extent,
                                           const void *bytes);

/* Read up to `size` bytes at `offset`; *got is less only at the end of the file. Holes are zeros. Bytes that do not
 * match their checksum: DELTAFS_ERR_DAMAGED. Local. */
DELTAFS_API int deltafs_logical_read(deltafs_logical *file, uint64_t offset, void *bytes, size_t size, size_t *got);

/* Read `n` extents, one after another into `bytes`; what is beyond the end of the file becomes zeros, and *got is the
 * number of bytes up to the last one in the file. Local. */
DELTAFS_API int deltafs_logical_read_list(deltafs_logical *file, size_t n, const struct deltafs_extent *extent,
                                          void *bytes, size_t *got);

/* Where the next bytes are that somebody has written, from `offset` on: [*start, *end), of which there may be more
 * behind; between `offset` and *start is a hole. Both are the file's size if there are none. Local. */
DELTAFS_API int deltafs_logical_next(deltafs_logical *file, uint64_t offset, uint64_t *start, uint64_t *end);

/* The size of the file, as far as this process sees it. Local, without communication. */
DELTAFS_API int deltafs_logical_size(deltafs_logical *file, uint64_t *size);

/* Publish what was written, see what others have published, and, unless the option sync is none, have it durable.
 * DELTAFS_ERR_NOT_FOUND if the file was deleted meanwhile: what was written to it is gone. Collective. */
DELTAFS_API int deltafs_logical_sync(deltafs_logical *file);

/* Have the ranks of the communicator see what each of them has written so far, as if they had synced; but nothing is
 * made durable by it, and others who have the file open may not see it. What they write afterwards wins over what any
 * of them wrote before, also where the file is open for writing only. Cheap if nobody has written since they did. Of a
 * file that is open for reading only it does nothing. Collective. */
DELTAFS_API int deltafs_logical_exchange(deltafs_logical *file);

/* Make the file `size` bytes long: what is beyond is gone, what is missing becomes zeros. Comes behind all that any of
 * the communicator's ranks wrote before. Collective, with the same size. */
DELTAFS_API int deltafs_logical_truncate(deltafs_logical *file, uint64_t size);

/* Make the file at least `size` bytes long. Collective, with the same size. */
DELTAFS_API int deltafs_logical_extend(deltafs_logical *file, uint64_t size);

/* Atomic mode on or off. It needs a file system with locks (DELTAFS_ERR_IO, says so), and costs a lock and a look at
 * all writers' logs for each call. Collective. */
DELTAFS_API int deltafs_logical_set_atomic(deltafs_logical *file, int is_atomic);

/* Remove a logical file and all its logs. DELTAFS_ERR_NOT_FOUND, _NOT_DELTAFS (then nothing is touched). Not
 * collective: one process calls it. Who has the file open for writing gets DELTAFS_ERR_NOT_FOUND from each
 * deltafs_logical_sync, _truncate and _extend after that, from deltafs_logical_write if it has not written before, and
 * from deltafs_logical_close if it has; a write after others is taken over, and lost. A new file of the same name is
 * left alone. The message is that of deltafs_logical_errmsg(NULL). */
DELTAFS_API int deltafs_logical_remove(const char *path);

struct deltafs_logical_stat {
    uint64_t size;
    uint64_t sessions;     /* collective opens that wrote */
    uint64_t writers;      /* logs in all */
    uint64_t extents;      /* entries of the index; a strided run is one */
    uint64_t is_flat;      /* sessions that have their index in one file */
    uint64_t bytes_stored; /* of the files, without the hole that a data log may have before its last checksums */
    const char *uuid;      /* owned by the handle */
    int is_closed;         /* whether all sessions were closed */
    int is_cut;            /* whether a crash has taken something of sessions that were closed, but not synced before */
};
DELTAFS_API int deltafs_logical_stat(deltafs_logical *file, struct deltafs_logical_stat *out);

/* File operations that this handle has made so far. Local. */
DELTAFS_API int deltafs_logical_io_stat(const deltafs_logical *file, struct deltafs_io_stat *out);

/* Put the index of each closed session into one file, so that opening reads one file instead of one for each writer.
 * Not collective. The message is that of deltafs_logical_errmsg(NULL). */
DELTAFS_API int deltafs_logical_flatten(const char *path);

/* Read all that was published, used or not, and check it; all damages go to `fn` as deltafs_verify's do. *bytes (may be
 * NULL) gets what was read. Local. */
DELTAFS_API int deltafs_logical_verify(deltafs_logical *file, deltafs_damage_fn fn, void *arg, uint64_t *bytes);

/* The same of a file that need not be open, and may be too damaged for that. Not collective. The message is that of
 * deltafs_logical_errmsg(NULL). */
DELTAFS_API int deltafs_logical_verify_path(const char *path, deltafs_damage_fn fn, void *arg, uint64_t *bytes);

/* Repair the texts MANIFEST and SESSION of a logical file: one wrong byte is found by its line's checksum; a text that
 * is missing or has more damage is rebuilt from the logs. No process may have the file open for writing. A text that is
 * replaced is kept as FILE.damaged, FILE.damaged.2, ... With `dry_run` nothing is changed. `fn` (may be NULL) gets a
 * report of each step, as from deltafs_repair. Not collective. The message is that of deltafs_logical_errmsg(NULL). */
DELTAFS_API int deltafs_logical_repair(const char *path, int dry_run, deltafs_repair_fn fn, void *arg);

/* What is at `path`: *kind is 'd' for a directory (deltafs_open), 'f' for a logical file, also one whose manifest is
 * damaged or lost, '-' for anything else that is there. DELTAFS_ERR_NOT_FOUND. Not collective. */
DELTAFS_API int deltafs_kind(const char *path, char *kind);

#ifdef __cplusplus
}
#endif
#endif
