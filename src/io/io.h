/* All file operations of the library go through one table, so that tests can make any of them fail, and are counted.
 *
 * struct io is the table with its counters, one for each open directory; struct io_file is an open file that knows its
 * path for messages. The helpers retry interrupted and short operations, and turn failures into messages. */
#ifndef DELTAFS_IO_H
#define DELTAFS_IO_H

#include <limits.h>
#include <stdatomic.h>
#include <sys/types.h>
#include "base/error.h"

/* A flag of an opening beside those of open(2): the caller knows what must be in the file, and waits for that, so that
 * it does not matter how late a file system shows it; and need not wait until all of a large file is on storage. */
#define IO_AWAITED 0x40000000

/* Each returns 0 or a count, or a negative errno. `ctx` is the table's own. */
struct io_ops {
    int (*open)(void *ctx, const char *path, int flags, mode_t mode);
    ssize_t (*pread)(void *ctx, int fd, void *bytes, size_t n, uint64_t offset);
    ssize_t (*pwrite)(void *ctx, int fd, const void *bytes, size_t n, uint64_t offset);
    int (*sync)(void *ctx, int fd);
    /* Have what other hosts have done to an open file be seen; 1 if that may be late all the same, 0 where it never is.
     * An open does this, too. NULL: never. */
    int (*catch_up)(void *ctx, int fd);
    int (*size)(void *ctx, int fd, uint64_t *out);
    int (*stored)(void *ctx, int fd, uint64_t *out); /* bytes of its blocks; NULL: not known */
    /* When the file was written last, in nanoseconds; -EINVAL: it is no regular file. */
    int (*mtime)(void *ctx, int fd, uint64_t *out);
    int (*truncate)(void *ctx, int fd, uint64_t size);
    /* Set room aside for bytes that are going to be written, without making the file longer; an error also where that
     * brings nothing. NULL: never. */
    int (*allocate)(void *ctx, int fd, uint64_t offset, uint64_t n);
    int (*close)(void *ctx, int fd);
    int (*mkdir)(void *ctx, const char *path, mode_t mode);
    int (*rename)(void *ctx, const char *from, const char *to);
    int (*unlink)(void *ctx, const char *path);
    int (*rmdir)(void *ctx, const char *path);
    int (*sync_folder)(void *ctx, const char *path);
    int (*lock)(void *ctx, int fd); /* -EAGAIN: somebody else has it; -ESTALE: the file has no name any more */
    int (*lock_wait)(void *ctx, int fd, uint64_t from, uint64_t n, int is_shared);
    int (*unlock)(void *ctx, int fd, uint64_t from, uint64_t n);
    int (*link)(void *ctx, const char *from, const char *to);
    int (*symlink)(void *ctx, const char *target, const char *path);
    ssize_t (*readlink)(void *ctx, const char *path, char *target, size_t room); /* no NUL */
    /* Each name but "." and "..", until `fn` returns other than 0; that is passed on. */
    int (*list)(void *ctx, const char *path, int (*fn)(void *arg, const char *name), void *arg);
};

struct io {
    const struct io_ops *ops;
    void *ctx;
    char *here; /* where paths begin that are not from the root on; NULL: where the process is */
    _Atomic uint64_t reads, bytes_read, writes, bytes_written; /* by any thread */
    _Atomic unsigned waited;                                   /* for files, in vain */
};

struct io_file {
    struct io *io;
    char *path;
    int fd;                 /* -1: not open */
    int direct;             /* opened once more, to write around the page cache; -1: not so */
    _Atomic int is_refused; /* it could be opened so, but not written to */
    _Atomic int is_waited;  /* what is missing has been waited for in vain, or is this process's own */
};

/* The operating system's operations, or what a test has put in their place for directories opened from now on. */
struct io io_default(void);
void io_replace_default(const struct io_ops *ops, void *ctx); /* NULL: the operating system's again */

/* What is opened, listed, or synced as a folder by this io is found from where the process is now, by which it has
 * `path`, wherever it goes; messages name it as the caller does. End with io_leave. */
int io_stay(struct io *io, const char *path, struct error *e);
void io_leave(struct io *io);
/* The path as it is found wherever the process is; freed by the caller, NULL without memory. */
char *io_whole(const struct io *io, const char *path);

void io_stat(const struct io *io, struct deltafs_io_stat *out);

/* Open `path` with open(2)'s flags. The caller closes; a file whose open failed is unset. */
int io_file_open(struct io *io, const char *path, int flags, struct io_file *out, struct error *e);
/* From now on write around the page cache what is long and aligned enough; where the file system cannot, or shows other
 * hosts' work late, this does nothing. */
void io_file_use_direct(struct io_file *f);
/* Close and unset; an unset file is fine. Returns the first error. */
int io_file_close(struct io_file *f, struct error *e);
/* Close after steps that ended with `status` and *e. Returns the first error. */
static inline int io_file_finish(struct io_file *f, int status, struct error *e)
{
    return error_first(status, io_file_close(f, error_after(status, e)));
}

/* Have a file that has been open for a while be seen as it is. */
int io_file_catch_up(struct io_file *f, struct error *e);
/* What is in the file is not what is known to be: if it may be seen late what another host has written, have it be seen
 * as it is; from the second time on wait a little, unless that was done for long enough. Returns whether it is worth
 * another look. *waited is 0 at first.
 * Where that was in vain for a few files, damage is taken for such at once. */
int io_file_wait(struct io_file *f, unsigned *waited);
/* Exactly `n` bytes at `offset`. Reading beyond the end of the file is DELTAFS_ERR_DAMAGED. */
int io_file_read(struct io_file *f, uint64_t offset, void *bytes, size_t n, struct error *e);
int io_file_write(struct io_file *f, uint64_t offset, const void *bytes, size_t n, struct error *e);
int io_file_sync(struct io_file *f, struct error *e);
int io_file_size(struct io_file *f, uint64_t *out, struct error *e);
/* Without the holes, as far as that is known. */
int io_file_stored(struct io_file *f, uint64_t *out, struct error *e);
/* What is at `path` if that cannot be used as a file: "a FIFO", say; NULL if it can, or nothing is there. A symbolic
 * link can to be read, if it leads to one that can, and not to be written. */
const char *io_misfit(const char *path, int is_written);
/* After an error with `path`: if what is there cannot be used, the message says so, and `advice`. Returns the status.
 */
int io_explain(const char *path, int is_written, const char *advice, struct error *e);
int io_file_mtime(struct io_file *f, uint64_t *out, struct error *e); /* _NOT_DELTAFS: no regular file */
int io_file_truncate(struct io_file *f, uint64_t size, struct error *e);
/* Have room for `n` bytes at `offset` set aside, which makes writing there faster on some file systems; returns whether
 * that was done. Truncating the file to the size it has gives back what was not written. */
int io_file_allocate(struct io_file *f, uint64_t offset, uint64_t n);

/* Lock the file until it is closed. *is_sure: the system knows locks, and this one is held; else nobody is known to
 * have it. DELTAFS_ERR_BUSY if another process does, DELTAFS_ERR_NOT_FOUND if the file has been removed. */
int io_file_lock(struct io_file *f, int *is_sure, struct error *e);

/* Lock `n` bytes of the file, which need not be there, all at once when nobody else has any of them locked, or with
 * `is_shared` (for which it need be open for reading only) nobody who does not share the lock. DELTAFS_ERR_IO also
 * where the file system has no locks. */
int io_file_lock_wait(struct io_file *f, uint64_t from, uint64_t n, int is_shared, struct error *e);
int io_file_unlock(struct io_file *f, uint64_t from, uint64_t n, struct error *e);

int io_mkdir(struct io *io, const char *path, struct error *e); /* DELTAFS_ERR_EXISTS if it is there */
int io_unlink(struct io *io, const char *path, struct error *e);
int io_rename(struct io *io, const char *from, const char *to, struct error *e);
int io_rmdir(struct io *io, const char *path, struct error *e);
int io_sync_folder(struct io *io, const char *path, struct error *e);
/* Make the entry `path` of its folder durable. */
int io_sync_parent(struct io *io, const char *path, struct error *e);
/* Give a file a second name, which must be free: DELTAFS_ERR_EXISTS. It may lose the first. DELTAFS_ERR_NOT_FOUND. */
int io_link(struct io *io, const char *from, const char *to, struct error *e);
int io_symlink(struct io *io, const char *target, const char *path, struct error *e); /* DELTAFS_ERR_EXISTS */
/* Where a symbolic link leads; DELTAFS_ERR_NOT_FOUND if it is none. */
int io_readlink(struct io *io, const char *path, char *target, size_t room, struct error *e);
/* Hand each name in a folder to `fn`, in any order; its first status that is not DELTAFS_OK ends that. _NOT_FOUND;
 * _NOT_DELTAFS if it is no folder. */
int io_list(struct io *io, const char *folder, int (*fn)(void *arg, const char *name, struct error *e), void *arg,
            struct error *e);

/* A new text, "FOLDER/NAME" as printf has it; NULL without memory. */
__attribute__((format(printf, 2, 3))) char *io_path(const char *folder, const char *fmt, ...);

/* The same in `path`. If it is too long for the system, each call refuses what is left of it (ENAMETOOLONG). */
#define PATH_ROOM (PATH_MAX + 1)
__attribute__((format(printf, 3, 4))) char *io_path_in(char path[PATH_ROOM], const char *folder, const char *fmt, ...);

#endif
