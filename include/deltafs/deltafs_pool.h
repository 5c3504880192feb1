/* DeltaFS in C: the pool. The local storage of a job's nodes is one file system, for as long as its servers run
 * (`deltafs-mpi pool`, or deltafs_mpi_pool_serve of deltafs_mpi.h). It is scratch space: when the servers end, or one
 * of them is killed, what was in the pool is lost.
 *
 * The conventions of deltafs.h apply, but a handle of a pool may be used by several threads, together with the files
 * that were opened with it; a list by one at a time. After a fork the child can use the handle, too. No call is
 * collective. All calls are synchronous: when a call returns, all processes of all nodes see what it has done.
 *
 * Paths
 *  - A path is a path within the pool. It begins at its root, with or without a '/'.
 *  - "." and ".." are what they are in any file system; ".." of the root is the root.
 *  - A name has 1 to 255 bytes, a path at most 4095. A path passes through at most 40 symbolic links. If the target of
 *    a link begins with '/', it is a path of the system: what is below the mount point is in the pool. A link that
 *    leads out of the pool is not followed (DELTAFS_ERR_LOOP). Paths through links, and those with ".." behind a name,
 *    take a request for each of their names; all others are found by one.
 *  - There are no hard links and no special files.
 *
 * Differences from POSIX
 *  - The mode is stored and shown, but not enforced: only the user who has started the servers can connect. The mode of
 *    a call is stored as it is, without the umask.
 *  - A folder is not renamed at once: deltafs_pool_rename.
 *  - Creating or removing an entry does not change the times of its folder. Reading does not change the access time.
 *  - A file that is removed is gone, even if it is open: calls return DELTAFS_ERR_NOT_FOUND.
 *  - If one process writes to a file while another truncates it, what was written may be lost, or be behind the end:
 *    then it is there again if the file grows, or stays in the pool if the file is removed. If two processes write the
 *    same bytes at once, each block of 4 KiB has those of one of them, or of both.
 *  - A process that reads what another one is just writing behind the end of the file may get zeros. When the write has
 *    returned, the bytes are there.
 *  - A process that is killed while it writes to, truncates or removes a file may have done a part of it. What is
 *    left of a file that is removed is freed with the pool.
 *  - A list has the entries that are there all the time while it is read. Others may or may not be in it.
 *
 * Statuses
 *  - deltafs_namespace_errno (deltafs_namespace.h) has the error number of POSIX for each status, deltafs_errmsg(NULL)
 *    the message.
 *  - Any call with a path may return DELTAFS_ERR_NOT_FOUND (ENOENT), DELTAFS_ERR_NOT_FOLDER (ENOTDIR),
 *    DELTAFS_ERR_LOOP (ELOOP) or DELTAFS_ERR_NAME (ENAMETOOLONG).
 *  - Any call may return DELTAFS_ERR_IO (EIO): a server has ended, or has not answered in time; the message names its
 *    node. If that server answers again, it still does what it was asked, also after later calls: a call that has
 *    failed so may remove a file that was written since. DELTAFS_ERR_DAMAGED (EIO): stored bytes do not match their
 *    checksum. DELTAFS_ERR_NO_SPACE (ENOSPC): the local storage of a node is full.
 */
#ifndef DELTAFS_POOL_H
#define DELTAFS_POOL_H

#include <deltafs/deltafs.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deltafs_pool deltafs_pool;

/* Connect to the pool at the mount point `point`, by its server on this node. DELTAFS_ERR_NOT_FOUND: there is no pool.
 * Close with deltafs_pool_close. */
DELTAFS_API int deltafs_pool_open(const char *point, deltafs_pool **out);

#define DELTAFS_POOL_PATH_ROOM 4096 /* bytes of a path with its end */

/* The same for the pool whose mount point is `path`, a path of the system, or a folder above it. `inside` gets the path
 * in the pool: DELTAFS_POOL_PATH_ROOM bytes. All that a process opens so in one pool is one connection. "." and ".."
 * are removed from the text of the path; links of the system are not followed. DELTAFS_ERR_NOT_FOUND: the path is in no
 * pool that runs. */
DELTAFS_API int deltafs_pool_open_path(const char *path, deltafs_pool **out, char *inside);

/* Close and free the handle. Close files and lists first. NULL is fine. */
DELTAFS_API int deltafs_pool_close(deltafs_pool *pool);

/* ---- Servers ---- */

/* The number of servers. */
DELTAFS_API uint32_t deltafs_pool_servers(const deltafs_pool *pool);

struct deltafs_pool_status {
    size_t struct_size;      /* see convention 7 of deltafs.h */
    const char *node;        /* where the server runs; valid until the handle is closed */
    uint64_t files, folders; /* whose attributes this server has */
    uint64_t bytes;          /* of files, in blocks of 4 KiB, on this server */
    uint64_t room;           /* bytes that are free in its local folder */
    uint64_t operations;     /* so far */
    uint64_t clients;        /* connections of processes of its node: one for each handle that has used it */
};

/* Ask server `server`, from 0. DELTAFS_ERR_INVALID: there is none of this number. */
DELTAFS_API int deltafs_pool_status(deltafs_pool *pool, uint32_t server, struct deltafs_pool_status *out);

/* End all servers; all that is in the pool is deleted. Returns when the servers of this node have ended, or
 * DELTAFS_ERR_IO after half a minute. Later calls with any handle return DELTAFS_ERR_IO, also if there is another pool
 * at this mount point. */
DELTAFS_API int deltafs_pool_stop(deltafs_pool *pool);

/* ---- Attributes ---- */

struct deltafs_pool_stat {
    size_t struct_size;          /* see convention 7 of deltafs.h */
    uint64_t inode;              /* a number for the entry, as st_ino; that of a file stays when it is renamed */
    uint32_t mode;               /* as st_mode: S_IFREG, S_IFDIR or S_IFLNK, and the permissions */
    uint32_t uid, gid;           /* of the owner */
    uint64_t size;               /* of a file, or of a link's target; 0 for a folder */
    int64_t mtime, atime, ctime; /* nanoseconds since 1970 */
};

/* Get the attributes of what is at `path`. `flags` is 0, or AT_SYMLINK_NOFOLLOW: of the link itself. */
DELTAFS_API int deltafs_pool_stat(deltafs_pool *pool, const char *path, int flags, struct deltafs_pool_stat *out);

/* Which attributes are set. */
enum deltafs_pool_set {
    DELTAFS_POOL_MODE = 1,
    DELTAFS_POOL_UID = 2,
    DELTAFS_POOL_GID = 4,
    DELTAFS_POOL_MTIME = 8,
    DELTAFS_POOL_ATIME = 16
};

struct deltafs_pool_attributes {
    size_t struct_size; /* see convention 7 of deltafs.h */
    uint32_t set;       /* enum deltafs_pool_set, ored */
    uint32_t mode;      /* only the permissions are used: the lower 12 bits */
    uint32_t uid, gid;
    int64_t mtime, atime; /* nanoseconds since 1970 */
};

/* Set attributes of what is at `path`. `flags`: as for deltafs_pool_stat. */
DELTAFS_API int deltafs_pool_set_attributes(deltafs_pool *pool, const char *path, int flags,
                                            const struct deltafs_pool_attributes *attributes);

/* ---- Names ---- */

/* Create a folder. DELTAFS_ERR_EXISTS: the name exists. */
DELTAFS_API int deltafs_pool_mkdir(deltafs_pool *pool, const char *path, uint32_t mode);

/* Create a symbolic link. The target has 1 to 4095 bytes, and need not exist. DELTAFS_ERR_EXISTS: the name exists. */
DELTAFS_API int deltafs_pool_symlink(deltafs_pool *pool, const char *target, const char *path);

/* Get the target of a symbolic link: up to `room` bytes of it, without a zero; *size is the number of bytes that it
 * has. DELTAFS_ERR_INVALID (EINVAL): it is no symbolic link. */
DELTAFS_API int deltafs_pool_readlink(deltafs_pool *pool, const char *path, char *target, size_t room, size_t *size);

/* Remove a file or a symbolic link. DELTAFS_ERR_FOLDER: it is a folder. */
DELTAFS_API int deltafs_pool_unlink(deltafs_pool *pool, const char *path);

/* Remove a folder. DELTAFS_ERR_NOT_EMPTY: something is in it. DELTAFS_ERR_BUSY (EBUSY): it is the root. */
DELTAFS_API int deltafs_pool_rmdir(deltafs_pool *pool, const char *path);

/* Rename a file, a symbolic link, or a folder with all that is in it. As rename(2): `to` is replaced if both are
 * folders and `to` is empty, or if neither is a folder. DELTAFS_ERR_NOT_EMPTY; DELTAFS_ERR_FOLDER: only `to` is a
 * folder; DELTAFS_ERR_NOT_FOLDER: only `from` is one; DELTAFS_ERR_INVALID (EINVAL): `to` is within `from`;
 * DELTAFS_ERR_BUSY (EBUSY): one is the root. DELTAFS_ERR_NOT_FOUND: also if another process has renamed or removed the
 * file meanwhile. If the process is killed while it renames a file, this may have both names; then call it again.
 *
 * A folder is not renamed at once: entry after entry gets its new name, which takes two requests for each, and no bytes
 * are copied. If the process is killed meanwhile, or there is an error, each entry has its old name, its new one, or
 * both, and nothing is lost. The same call goes on then, although `to` is not empty. Make it before anything is
 * removed: a file that has both names is gone if one is removed. For the same reason, processes must not rename one
 * thing to several names, or there and back, at the same time. */
DELTAFS_API int deltafs_pool_rename(deltafs_pool *pool, const char *from, const char *to);

/* ---- Folders ---- */

/* An entry of a folder. */
struct deltafs_pool_entry {
    const char *name; /* valid until the next call with the list */
    uint64_t inode;
    uint32_t mode; /* S_IFREG, S_IFDIR or S_IFLNK, without the permissions */
};

typedef struct deltafs_pool_list deltafs_pool_list;

/* List a folder, in no order. Close with deltafs_pool_list_close. */
DELTAFS_API int deltafs_pool_list_open(deltafs_pool *pool, const char *path, deltafs_pool_list **out);
/* Get the next entry, without "." and ".."; NULL at the end. */
DELTAFS_API int deltafs_pool_list_next(deltafs_pool_list *list, const struct deltafs_pool_entry **entry);
/* Free the list; NULL is fine. */
DELTAFS_API int deltafs_pool_list_close(deltafs_pool_list *list);

/* ---- Files ---- */

typedef struct deltafs_pool_file deltafs_pool_file;

/* Open a file. `flags` is O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL, O_TRUNC, O_APPEND and O_NOFOLLOW as in
 * open(2); `mode` is that of a file that is created. DELTAFS_ERR_FOLDER: it is a folder. Close with
 * deltafs_pool_file_close. */
DELTAFS_API int deltafs_pool_file_open(deltafs_pool *pool, const char *path, int flags, uint32_t mode,
                                       deltafs_pool_file **out);

/* Read up to `size` bytes from `offset` on; *got is less only at the end of the file. DELTAFS_ERR_INVALID (EINVAL): the
 * file is not open for reading. */
DELTAFS_API int deltafs_pool_file_read(deltafs_pool_file *file, uint64_t offset, void *bytes, size_t size, size_t *got);

/* Write all `size` bytes at `offset`; with O_APPEND at the end, whatever `offset` is. What is skipped is zero.
 * DELTAFS_ERR_TOO_LARGE (EFBIG): the file would have more than 64 TiB. DELTAFS_ERR_INVALID: the file is not open for
 * writing. After another error a part may have been written. */
DELTAFS_API int deltafs_pool_file_write(deltafs_pool_file *file, uint64_t offset, const void *bytes, size_t size);

/* Write `n` extents, whose bytes follow one another in `bytes`. One call costs less than many. The errors are those of
 * a write; DELTAFS_ERR_INVALID also with O_APPEND. */
DELTAFS_API int deltafs_pool_file_write_list(deltafs_pool_file *file, size_t n, const struct deltafs_extent *extent,
                                             const void *bytes);

/* Write all `size` bytes at the end; *offset gets where they are. Several processes can append at once: each writes to
 * its own place. If one of them fails or is killed, this place may be zero. The errors are those of a write. */
DELTAFS_API int deltafs_pool_file_append(deltafs_pool_file *file, const void *bytes, size_t size, uint64_t *offset);

/* Set the size. The errors are those of a write. */
DELTAFS_API int deltafs_pool_file_truncate(deltafs_pool_file *file, uint64_t size);
/* The same for the file at `path`. */
DELTAFS_API int deltafs_pool_truncate(deltafs_pool *pool, const char *path, uint64_t size);

/* Let the file have at least this size. Other processes may write to it at the same time. The errors are those of a
 * write. */
DELTAFS_API int deltafs_pool_file_extend(deltafs_pool_file *file, uint64_t size);

/* Get the attributes of the open file. */
DELTAFS_API int deltafs_pool_file_stat(deltafs_pool_file *file, struct deltafs_pool_stat *out);
/* The same as they were when it was opened: that takes no request if they came with its name. */
DELTAFS_API int deltafs_pool_file_stat_opened(deltafs_pool_file *file, struct deltafs_pool_stat *out);

/* ---- Locks of parts of files ---- */

/* They are advisory, and those of the process: of all handles of files that were opened with the same handle of the
 * pool. They end when that is closed or the process ends, not when the file is closed; those that a server knows that
 * has not answered a call in time may end, too. After a fork the child has none. More than 10,000 locks that one server
 * has to know are refused with DELTAFS_ERR_NO_SPACE, also if unlocking the middle of one makes two of it. */
enum deltafs_pool_lock_type { DELTAFS_POOL_UNLOCKED, DELTAFS_POOL_SHARED, DELTAFS_POOL_EXCLUSIVE };

struct deltafs_pool_lock {
    size_t struct_size;  /* see convention 7 of deltafs.h */
    uint32_t type;       /* enum deltafs_pool_lock_type */
    uint32_t process;    /* on its node; of another's lock */
    uint64_t from, size; /* bytes; size 0: to the end, whatever is written there later */
};

/* The bytes become locked as it says, or unlocked, instead of as the process had them. DELTAFS_ERR_BUSY: another
 * process has a lock that does not allow it. It does not wait. */
DELTAFS_API int deltafs_pool_file_lock(deltafs_pool_file *file, const struct deltafs_pool_lock *lock);

/* Find what another process has that would refuse this lock: *lock becomes that, or its type DELTAFS_POOL_UNLOCKED. */
DELTAFS_API int deltafs_pool_file_find_lock(deltafs_pool_file *file, struct deltafs_pool_lock *lock);

/* Free the file; nothing has to be written. NULL is fine. */
DELTAFS_API int deltafs_pool_file_close(deltafs_pool_file *file);

#ifdef __cplusplus
}
#endif
#endif
