/* All file operations of the library go through one table, so that tests can make any of them fail, and are counted.
 *
 * struct io is the table with its counters, one for each open container; struct io_file is an open file that knows its
 * path for messages. The helpers retry interrupted and short operations, and turn failures into messages. */
#ifndef DELTAFS_IO_IO_H
#define DELTAFS_IO_IO_H

#include <limits.h>
#include <stdatomic.h>
#include <sys/types.h>
#include "base/error.h"

/* A flag of an opening beside those of open(2): do not refresh what this host knows of the file (client_cached.c). The
 * caller knows what must be in it and waits for that, or syncs the file and must see the error. */
#define IO_AWAITED 0x40000000

struct bytes; /* base/collective.h */

struct io_attributes {
    uint64_t size;
    uint64_t stored; /* bytes of its blocks */
    uint64_t mtime;  /* nanoseconds */
    int is_regular;
    int is_removed;       /* it has no name any more */
    uint64_t names;       /* hard links */
    uint64_t inode, born; /* of this file system; nanoseconds, 0: not known */
};

enum io_lock { IO_UNLOCK, IO_LOCK_SHARED, IO_LOCK, IO_LOCK_TRY, IO_LOCK_QUERY };

/* Each returns 0 or a count, or a negative errno. `ctx` is the table's own. */
struct io_ops {
    int (*open)(void *ctx, const char *path, int flags, mode_t mode);
    ssize_t (*pread)(void *ctx, int fd, void *bytes, size_t n, uint64_t offset);
    ssize_t (*pwrite)(void *ctx, int fd, const void *bytes, size_t n, uint64_t offset);
    int (*sync)(void *ctx, int fd);
    int (*attributes)(void *ctx, int fd, struct io_attributes *out);
    /* Of what has a name in an open folder. NULL: it has to be opened. */
    int (*attributes_in)(void *ctx, int folder, const char *name, struct io_attributes *out);
    /* Refresh what this host knows of an open file; 1: it may be seen late all the same; 0: it never is. NULL: never.
     */
    int (*refresh)(void *ctx, int fd);
    int (*truncate)(void *ctx, int fd, uint64_t size);
    /* Allocate storage for bytes that are going to be written, without making the file longer; an error also where that
     * brings nothing. NULL: never. */
    int (*allocate)(void *ctx, int fd, uint64_t offset, uint64_t n);
    /* Begin to read bytes that are going to be read. NULL: that brings nothing. */
    void (*advise)(void *ctx, int fd, uint64_t offset, uint64_t n);
    int (*close)(void *ctx, int fd);
    int (*mkdir)(void *ctx, const char *path, mode_t mode);
    int (*rename)(void *ctx, const char *from, const char *to);
    /* Two names that are there exchange what they name, at once. */
    int (*exchange)(void *ctx, const char *a, const char *b);
    int (*unlink)(void *ctx, const char *path);
    int (*rmdir)(void *ctx, const char *path);
    int (*sync_folder)(void *ctx, const char *path);
    /* `n` bytes from `from` on, 0: to the end. IO_LOCK_TRY, which does not wait, and IO_LOCK_QUERY, which locks
     * nothing, return -EAGAIN if another process has a lock. */
    int (*lock)(void *ctx, int fd, uint64_t from, uint64_t n, enum io_lock how);
    int (*link)(void *ctx, const char *from, const char *to);
    int (*symlink)(void *ctx, const char *target, const char *path);
    ssize_t (*readlink)(void *ctx, const char *path, char *target, size_t room); /* no NUL */
    /* Each name but "." and "..", until `fn` returns other than 0; that is passed on. */
    int (*list)(void *ctx, const char *path, int (*fn)(void *arg, const char *name), void *arg);
};

struct io {
    const struct io_ops *ops;
    void *ctx;
    char *here; /* where relative paths begin; NULL: where the process is */
    _Atomic uint64_t reads, bytes_read, writes, bytes_written; /* by any thread */
    _Atomic unsigned vain_waits;                               /* files that were waited for in vain */
};

struct io_file {
    struct io *io;
    char *path;
    int fd;                 /* -1: not open */
    int access;             /* open(2)'s, such as O_RDONLY */
    int is_released;        /* each call opens it for itself */
    int is_synced;          /* if so, each write syncs it, too */
    int direct;             /* opened once more, to write around the page cache; -1: not so */
    _Atomic int is_refused; /* it could be opened so, but not written to */
    _Atomic int is_waited;  /* what is missing has been waited for in vain, or is this process's own */
};

/* Whether a file is the same, and has the same bytes, as far as its attributes say. */
static inline int io_is_unchanged(const struct io_attributes *a, const struct io_attributes *b)
{
    return a->inode == b->inode && a->born == b->born && a->size == b->size && a->mtime == b->mtime;
}

/* The operating system's operations, or what a test has put in their place for containers opened from now on. */
struct io io_default(void);
void io_replace_default(const struct io_ops *ops, void *ctx); /* NULL: the operating system's again */

/* The program may change its folder: what this io opens, lists, or syncs as a folder is found from where the process is
 * now, by which it has `path`. Messages name it as the caller does. End with io_leave. */
int io_stay(struct io *io, const char *path, struct error *e);
void io_leave(struct io *io);
/* The path as it is found wherever the process is; `room` may be used for it. */
#define PATH_ROOM (PATH_MAX + 1)
const char *io_find(const struct io *io, const char *path, char room[PATH_ROOM]);

void io_stat(const struct io *io, struct deltafs_io_stat *out);

/* Open `path` with open(2)'s flags. The caller closes; a file whose open failed is unset. */
int io_file_open(struct io *io, const char *path, int flags, struct io_file *out, struct error *e);
/* From now on write around the page cache what is long and aligned enough; does nothing where the file system cannot,
 * or is client-cached. */
void io_file_use_direct(struct io_file *f);
/* Close the descriptor of a file: from now on each call opens the file, for what it was open, and closes it again.
 * Only for reading, writing, truncating, syncing and attributes. `is_synced`: writes also sync. The system reports a
 * failed write-back of cached bytes to descriptors that are open; once all are closed, it may forget the failure, and
 * then no later sync reports it. */
int io_file_release(struct io_file *f, int is_synced, struct error *e);
/* The descriptor for one operation on a file, released or not; io_end takes it back. */
int io_begin(struct io_file *f, int *fd, struct error *e);
int io_end(struct io_file *f, int fd, int status, struct error *e);
/* Close and unset; an unset file is fine. Returns the first error. */
int io_file_close(struct io_file *f, struct error *e);
/* Close after steps that ended with `status` and *e. Returns the first error. */
static inline int io_file_finish(struct io_file *f, int status, struct error *e)
{
    return error_first(status, io_file_close(f, error_after(status, e)));
}

/* Exactly `n` bytes at `offset`. Reading beyond the end of the file is DELTAFS_ERR_DAMAGED. */
int io_file_read(struct io_file *f, uint64_t offset, void *bytes, size_t n, struct error *e);
/* Let the system begin to read bytes that are going to be read, without waiting for them; returns whether it can. */
int io_file_advise(struct io_file *f, uint64_t offset, uint64_t n);
int io_file_write(struct io_file *f, uint64_t offset, const void *bytes, size_t n, struct error *e);
int io_file_sync(struct io_file *f, struct error *e);
int io_file_attributes(struct io_file *f, struct io_attributes *out, struct error *e);
int io_file_size(struct io_file *f, uint64_t *out, struct error *e);
int io_file_mtime(struct io_file *f, uint64_t *out, struct error *e); /* _NOT_DELTAFS: no regular file */
/* Of what has a name in an open folder. If nothing has, which is no error, all is zero but is_removed. `is_late`: as
 * io_file_is_late says of the folder. */
int io_attributes_in(struct io_file *folder, int is_late, const char *name, struct io_attributes *out, struct error *e);
int io_file_truncate(struct io_file *f, uint64_t size, struct error *e);
/* Allocate storage for `n` bytes at `offset`, which makes writing there faster on some file systems; returns whether
 * that was done. Truncating the file to the size it has frees what was not written. */
int io_file_allocate(struct io_file *f, uint64_t offset, uint64_t n);

/* A file with several names (hard links) is not opened for writing, for another container may have it, or a backup.
 * DELTAFS_ERR_IO if this open file has several. */
int io_file_check_names(struct io_file *f, struct error *e);

/* What is at `path` if that cannot be used as a file: "a FIFO", say; NULL if it can, or nothing is there. A symbolic
 * link to a regular file can be read, but not written. */
const char *io_misfit(const char *path, int is_written);
/* After an error with `path`: if what is there cannot be used, the message says so, and `advice`. Returns the status.
 */
int io_explain(const char *path, int is_written, const char *advice, struct error *e);

/* Lock the file until it is closed. *is_sure: the system knows locks, and this one is held; else nobody is known to
 * have it. DELTAFS_ERR_BUSY if another process does, DELTAFS_ERR_NOT_FOUND if the file has been removed. */
int io_file_lock(struct io_file *f, int *is_sure, struct error *e);
/* Whether another process has locked it so; if not, *is_free: nobody has, as far as the system knows. */
int io_file_is_locked(struct io_file *f, int *is_free);
/* Lock `n` bytes of the file, which need not be there, when nobody else has any of them locked, or with `is_shared`
 * (for which it need be open for reading only) nobody who does not share the lock. Waits. DELTAFS_ERR_IO also where the
 * file system has no locks. */
int io_file_lock_wait(struct io_file *f, uint64_t from, uint64_t n, int is_shared, struct error *e);
int io_file_unlock(struct io_file *f, uint64_t from, uint64_t n, struct error *e);

/* These return DELTAFS_ERR_NOT_FOUND or _EXISTS where the system says so. */
int io_mkdir(struct io *io, const char *path, struct error *e);
int io_unlink(struct io *io, const char *path, struct error *e);
int io_rename(struct io *io, const char *from, const char *to, struct error *e);
/* Two names, on one file system, exchange what they name, at once. Many network file systems cannot: DELTAFS_ERR_IO. */
int io_exchange(struct io *io, const char *a, const char *b, struct error *e);
int io_rmdir(struct io *io, const char *path, struct error *e);
int io_sync_folder(struct io *io, const char *path, struct error *e);
/* Make the entry `path` of its folder durable. */
int io_sync_parent(struct io *io, const char *path, struct error *e);
/* Give a file a second name, which must be free. It may lose the first. */
int io_link(struct io *io, const char *from, const char *to, struct error *e);
int io_symlink(struct io *io, const char *target, const char *path, struct error *e);
/* Where a symbolic link leads; DELTAFS_ERR_NOT_FOUND if it is none. */
int io_readlink(struct io *io, const char *path, char *target, size_t room, struct error *e);
/* Pass each name in a folder to `fn`, in any order; its first status that is not DELTAFS_OK ends that. _NOT_DELTAFS if
 * it is no folder. */
int io_list(struct io *io, const char *folder, int (*fn)(void *arg, const char *name, struct error *e), void *arg,
            struct error *e);
/* Append all of them, each with its NUL. */
int io_names(struct io *io, const char *folder, struct bytes *names, struct error *e);

/* The path "FOLDER/NAME", NAME as printf has it, in `path`. If it is too long for the system, each call refuses what is
 * left of it (ENAMETOOLONG). */
__attribute__((format(printf, 3, 4))) char *io_path_in(char path[PATH_ROOM], const char *folder, const char *fmt, ...);

/* ---- client_cached.c ---- */

/* As io_file_open. If the name is missing, refresh the folder and look again: NFS remembers for half a minute that a
 * name was missing. */
int io_file_open_name(struct io *io, const char *path, int flags, struct io_file *out, struct error *e);
/* Refresh what this host knows of a file that has been open for a while. */
int io_file_refresh(struct io_file *f, struct error *e);
/* The same; whether it may be seen late: it is on a client-cached file system. */
int io_file_is_late(struct io_file *f);
/* What the file contains is not what it must: on a client-cached file system refresh, from the second time on after a
 * pause, unless that was done for long enough. Returns whether reading again is worth it. *waited is 0 at first. */
int io_file_wait(struct io_file *f, unsigned *waited);
/* The operation `refresh` of the operating system. */
int client_cached_refresh(void *ctx, int fd);
/* Pause, and count that in *waited; returns 0 if that was done for long enough. */
int client_cached_pause(unsigned *waited);

#endif
