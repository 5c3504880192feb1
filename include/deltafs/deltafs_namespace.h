/* DeltaFS in C: namespaces. A namespace is a file system that a job keeps for itself, without any server: folders,
 * files and symbolic links with their attributes, stored in an ordinary folder.
 *
 * Any number of processes can have a namespace open, and any number of them can change it at the same time. They do not
 * communicate. Each writer has a table of its own, which gets all that it changes. A process sees what was committed
 * when it opened the namespace, or called deltafs_namespace_refresh, and its own changes. It never sees a part of a
 * commit.
 *
 * The conventions of deltafs.h apply. A handle, and the files and lists that were opened with it, may be used by only
 * one thread at a time. No call is collective. With deltafs_mpi_namespace_open (deltafs_mpi.h), the ranks of a job can
 * share a namespace; that has rules of its own.
 *
 * Paths
 *  - A path is a path within the namespace. It begins at its root, with or without a '/'.
 *  - "." and ".." are what they are in any file system; ".." of the root is the root.
 *  - A name has 1 to 255 bytes, a path at most 4095. A path passes through at most 40 symbolic links. If the target of
 *    a link begins with '/', it begins at the root of the namespace.
 *
 * Commits
 *  - Changes are in memory until deltafs_namespace_commit or deltafs_namespace_close. When half of the option memory is
 *    used up, the library commits by itself. The bytes of a file are stored when it is closed, and while it is written
 *    if it is large.
 *  - After a commit that failed, nothing can be changed, committed or listed by this handle (its calls return that
 *    error). What was committed before is safe.
 *  - With the option sync=commit (the default), what was committed survives a power failure.
 *
 * Writers
 *  - If several writers create the same folder, it is one folder, with all that any of them has put into it.
 *  - If several change the same file, the newest change counts: the one with the later time, if neither writer could
 *    see the other's change. A change by a writer that saw the other's is always newer.
 *  - If one name is a folder for one writer and something else for another, it is the folder. If it is two files, it is
 *    the one that was changed last. Removing or renaming the name removes all files that have it.
 *  - If one writer removes a folder, and another puts something into it, the folder is removed with what is in it.
 *  - If one writer moves a folder A into B, and another moves B into A, and neither could see the other's change, no
 *    path leads to A and B any more.
 *
 * Differences
 *  - This differs from POSIX: the mode is stored and shown, but not enforced. The mode of a call is stored as it is,
 *    without the umask.
 *  - Creating or removing an entry does not change the times of its folder. Reading does not change the access time.
 *  - There are no hard links and no special files. A file has at most 1 TiB.
 *  - Deleted bytes keep their storage until deltafs_namespace_collect.
 *
 * Statuses
 *  - deltafs_namespace_errno returns the error number of POSIX for a status; deltafs_errmsg(NULL) returns the message.
 *  - Any call with a path may return DELTAFS_ERR_NOT_FOUND (ENOENT), DELTAFS_ERR_NOT_FOLDER (ENOTDIR),
 *    DELTAFS_ERR_LOOP (ELOOP), DELTAFS_ERR_NAME (ENAMETOOLONG), and DELTAFS_ERR_DAMAGED or DELTAFS_ERR_IO (EIO) if a
 *    table cannot be read.
 *  - Any call may have to commit, to make room in memory, and then returns the errors of that. If a call returns
 *    DELTAFS_ERR_MEMORY (ENOMEM), give the option memory more.
 *  - Any call that changes something returns DELTAFS_ERR_MODE (EROFS) if the namespace is open for reading.
 */
#ifndef DELTAFS_NAMESPACE_H
#define DELTAFS_NAMESPACE_H

#include <deltafs/deltafs.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deltafs_namespace deltafs_namespace;

/* Open the namespace at `path`. To read a snapshot, give REGISTRY@NAME as `path`. `flags` is O_RDONLY or O_RDWR. With
 * O_CREAT, the namespace is created if it does not exist; the parent of `path` must exist. With O_CREAT | O_EXCL, the
 * namespace must not exist (DELTAFS_ERR_EXISTS). An empty folder at `path` is replaced. Several processes can create
 * the same namespace at the same time; all open the same one.
 *
 * The options memory (at least 32M for O_RDWR), block, codec, lease, read_cache, sync and threads have the effect that
 * they have for a directory. The others have none. `options` may be NULL.
 *
 * With O_RDWR, the call takes over a table that no process is writing, or creates one. DELTAFS_ERR_NOT_FOUND: there is
 * no namespace. DELTAFS_ERR_NOT_DELTAFS: something else is at `path`. DELTAFS_ERR_VERSION: a newer version of DeltaFS
 * wrote it. Close with deltafs_namespace_close. */
DELTAFS_API int deltafs_namespace_open(const char *path, int flags, const deltafs_options *options,
                                       deltafs_namespace **out);

/* Commit all changes so far, also what was written to files that are open. Readers that open or refresh the namespace
 * afterwards see them. If nothing was changed, the call does nothing. */
DELTAFS_API int deltafs_namespace_commit(deltafs_namespace *ns);

/* Refresh the handle: it then sees what a handle sees that is opened now, and its own changes, also those that are not
 * committed. Its later changes are newer than all that it sees. A file that is open keeps the bytes that it had; opened
 * again, it has the new ones. A list that is open may or may not have what is new. If this handle has changed an entry,
 * and another process has changed it, too, the newest change counts (see Writers).
 *
 * If there is nothing new, the call makes one or two system calls for each table of another process, and two more.
 * Otherwise it reads what is new, and nothing again that is in memory. For a snapshot, which never changes, the call
 * does nothing.
 *
 * DELTAFS_ERR_MODE: ranks share the namespace. DELTAFS_ERR_DAMAGED, DELTAFS_ERR_IO: a table cannot be read. After an
 * error the handle sees all, some or nothing of what is new; you can call it again. */
DELTAFS_API int deltafs_namespace_refresh(deltafs_namespace *ns);

/* Commit, close and free the handle. The handle is freed even if the call returns an error. Close files and lists
 * first. NULL is fine. */
DELTAFS_API int deltafs_namespace_close(deltafs_namespace *ns);

/* The error number of POSIX for a status, such as ENOENT for DELTAFS_ERR_NOT_FOUND; 0 for DELTAFS_OK. Thread-safe. */
DELTAFS_API int deltafs_namespace_errno(int status);

/* ---- Attributes ---- */

struct deltafs_namespace_stat {
    size_t struct_size;                 /* see convention 7 of deltafs.h */
    uint64_t inode;                     /* a number for the entry, as st_ino; it stays when the entry is renamed */
    uint32_t mode;                      /* as st_mode: S_IFREG, S_IFDIR or S_IFLNK, and the permissions */
    uint32_t uid, gid;                  /* of the owner */
    uint64_t size;                      /* of a file, or of a link's target; 0 for a folder */
    int64_t mtime, atime, ctime, btime; /* nanoseconds since 1970; btime is when it was created */
};

/* Get the attributes of what is at `path`. `flags` is 0, or AT_SYMLINK_NOFOLLOW: of the link itself. */
DELTAFS_API int deltafs_namespace_stat(deltafs_namespace *ns, const char *path, int flags,
                                       struct deltafs_namespace_stat *out);

/* Which attributes are set. */
enum deltafs_namespace_set {
    DELTAFS_NAMESPACE_MODE = 1,
    DELTAFS_NAMESPACE_UID = 2,
    DELTAFS_NAMESPACE_GID = 4,
    DELTAFS_NAMESPACE_MTIME = 8,
    DELTAFS_NAMESPACE_ATIME = 16
};

struct deltafs_namespace_attributes {
    size_t struct_size; /* see convention 7 of deltafs.h */
    uint32_t set;       /* enum deltafs_namespace_set, ored */
    uint32_t mode;      /* only the permissions are used: the lower 12 bits */
    uint32_t uid, gid;
    int64_t mtime, atime; /* nanoseconds since 1970 */
};

/* Set attributes of what is at `path`. `flags`: as for deltafs_namespace_stat. */
DELTAFS_API int deltafs_namespace_set_attributes(deltafs_namespace *ns, const char *path, int flags,
                                                 const struct deltafs_namespace_attributes *attributes);

/* ---- Names ---- */

/* Create a folder. DELTAFS_ERR_EXISTS: the name exists. */
DELTAFS_API int deltafs_namespace_mkdir(deltafs_namespace *ns, const char *path, uint32_t mode);

/* Create an empty file, which need not be opened. A file or a symbolic link that has the name is replaced. `flags` is
 * 0, or O_EXCL: then the name must not exist (DELTAFS_ERR_EXISTS). DELTAFS_ERR_FOLDER: a folder has the name.
 *
 * Without O_EXCL the call is faster: it does not read what is committed under the name. If a folder has the name, the
 * call succeeds, but the folder keeps the name and the file is not seen. */
DELTAFS_API int deltafs_namespace_create(deltafs_namespace *ns, const char *path, uint32_t mode, int flags);

/* Create many empty files in a folder: as deltafs_namespace_create with `flags` 0 for each of the `n` names, which must
 * differ, but faster, above all if the namespace is shared. After an error, some of the names may be created.
 * DELTAFS_ERR_INVALID: a name is empty, ".", "..", or has a '/'. DELTAFS_ERR_NAME: a name is too long. After these two
 * errors, no file was created. */
DELTAFS_API int deltafs_namespace_create_many(deltafs_namespace *ns, const char *folder, const char *const *names,
                                              size_t n, uint32_t mode);

/* Create a symbolic link. The target has 1 to 4095 bytes, and need not exist. DELTAFS_ERR_EXISTS: the name exists. */
DELTAFS_API int deltafs_namespace_symlink(deltafs_namespace *ns, const char *target, const char *path);

/* Get the target of a symbolic link: up to `room` bytes of it, without a zero; *size is the number of bytes that it
 * has. DELTAFS_ERR_INVALID (EINVAL): it is no symbolic link. */
DELTAFS_API int deltafs_namespace_readlink(deltafs_namespace *ns, const char *path, char *target, size_t room,
                                           size_t *size);

/* Remove a file or a symbolic link. If the file is open, its bytes stay until it is closed. DELTAFS_ERR_FOLDER: it is a
 * folder. */
DELTAFS_API int deltafs_namespace_unlink(deltafs_namespace *ns, const char *path);

/* Remove a folder. DELTAFS_ERR_NOT_EMPTY: something is in it. DELTAFS_ERR_BUSY (EBUSY): it is the root. */
DELTAFS_API int deltafs_namespace_rmdir(deltafs_namespace *ns, const char *path);

/* Rename a file, a symbolic link, or a folder with all that is in it. That takes no longer for a large folder than for
 * a file. As rename(2): `to` is replaced if both are folders and `to` is empty, or if neither is a folder.
 * DELTAFS_ERR_NOT_EMPTY; DELTAFS_ERR_FOLDER: only `to` is a folder; DELTAFS_ERR_NOT_FOLDER: only `from` is one;
 * DELTAFS_ERR_INVALID (EINVAL): `to` is within `from`, or a path ends in "." or ".."; DELTAFS_ERR_BUSY (EBUSY): one is
 * the root. */
DELTAFS_API int deltafs_namespace_rename(deltafs_namespace *ns, const char *from, const char *to);

/* ---- Folders ---- */

/* An entry of a folder. */
struct deltafs_namespace_entry {
    const char *name; /* valid until the next call with the list */
    struct deltafs_namespace_stat stat;
};

typedef struct deltafs_namespace_list deltafs_namespace_list;

/* List a folder, in no order. Each entry that is in the folder now, and is still there when its turn comes, is listed
 * once. Entries that this handle creates later are not in it. Between the calls anything can be done with the handle,
 * also removing what was listed. Memory does not depend on the number of entries, except of those that this handle has
 * changed and not committed. Close with deltafs_namespace_list_close.
 *
 * A program that reads the files of a folder should open each when it is listed: its name is not looked up again, and
 * after some such files the others are listed in the order of their bytes, as many at a time as a quarter of the option
 * memory has room for. Then many small files are read at once. */
DELTAFS_API int deltafs_namespace_list_open(deltafs_namespace *ns, const char *path, deltafs_namespace_list **out);
/* Get the next entry, without "." and ".."; NULL at the end. */
DELTAFS_API int deltafs_namespace_list_next(deltafs_namespace_list *list, const struct deltafs_namespace_entry **entry);
/* Free the list; NULL is fine. Can be called at any time. */
DELTAFS_API int deltafs_namespace_list_close(deltafs_namespace_list *list);

/* ---- Files ---- */

typedef struct deltafs_namespace_file deltafs_namespace_file;

/* Open a file. `flags` is O_RDONLY, O_WRONLY or O_RDWR, with O_CREAT, O_EXCL, O_TRUNC, O_APPEND and O_NOFOLLOW as in
 * open(2); `mode` is that of a file that is created. If a handle opens one name several times, that is one file: what
 * is written by one of them can be read by the others. An open file takes up to 4 MiB of memory, and 64 bytes more for
 * each MiB that the file has. DELTAFS_ERR_FOLDER: it is a folder. Close with deltafs_namespace_file_close. */
DELTAFS_API int deltafs_namespace_file_open(deltafs_namespace *ns, const char *path, int flags, uint32_t mode,
                                            deltafs_namespace_file **out);

/* Read up to `size` bytes from `offset` on; *got is less only at the end of the file. DELTAFS_ERR_INVALID (EINVAL): the
 * file is not open for reading. If the bytes were written by this handle since the last commit, and are not in memory
 * any more, the call stores them as a commit does, but no reader sees them yet. */
DELTAFS_API int deltafs_namespace_file_read(deltafs_namespace_file *file, uint64_t offset, void *bytes, size_t size,
                                            size_t *got);

/* Write all `size` bytes at `offset`; with O_APPEND at the end, whatever `offset` is. If `offset` is behind the end of
 * the file, the bytes between are zero. DELTAFS_ERR_TOO_LARGE (EFBIG): the file would have more than 1 TiB; nothing is
 * written. DELTAFS_ERR_INVALID: the file is not open for writing. After another error a part may have been written. */
DELTAFS_API int deltafs_namespace_file_write(deltafs_namespace_file *file, uint64_t offset, const void *bytes,
                                             size_t size);

/* Set the size. The errors are those of a write. */
DELTAFS_API int deltafs_namespace_file_truncate(deltafs_namespace_file *file, uint64_t size);
/* The same for the file at `path`. */
DELTAFS_API int deltafs_namespace_truncate(deltafs_namespace *ns, const char *path, uint64_t size);

/* As fsync(2): commit what was written to the file. The call commits all other changes, too. If several ranks share the
 * namespace, it only stores the bytes; they are in the file after the next commit. */
DELTAFS_API int deltafs_namespace_file_sync(deltafs_namespace_file *file);

/* Get the attributes of the open file, also of one that was removed. */
DELTAFS_API int deltafs_namespace_file_stat(deltafs_namespace_file *file, struct deltafs_namespace_stat *out);

/* Close and free the file. The last handle of a file that was written writes its bytes. The file is freed even if the
 * call returns an error; then no later commit succeeds. NULL is fine. */
DELTAFS_API int deltafs_namespace_file_close(deltafs_namespace_file *file);

/* ---- Snapshots ----
 *
 * A snapshot is what a namespace has when it is published, and all that is below it. It never changes, whatever is done
 * to the namespace later. Publishing copies nothing, and takes as long for a large namespace as for a small one.
 *
 * A snapshot has a name in a registry, which is an ordinary folder. In the calls it is REGISTRY@NAME. REGISTRY may be
 * several folders, joined by ':', which are searched in this order; without any ("@NAME"), they are those of the
 * environment variable DELTAFS_REGISTRY. NAME has 1 to 200 bytes without '/', ':', '@' and blanks, and does not begin
 * with '.'. Any number of processes can use a registry at the same time.
 *
 * The namespaces of a snapshot must stay where they are. As long as a snapshot, or a namespace on top of it, needs
 * something of a namespace, a pin is stored there, so that deltafs_namespace_collect keeps what is needed. Publishing
 * and withdrawing need permission to write in the namespace.
 *
 * These calls take the options sync and lease from the environment. They are thread-safe. */

/* Publish what is committed in the namespace at `path` as `snapshot`. The registry is created if it does not exist; its
 * parent must exist. If `snapshot` has several registries, the first one gets it. The snapshot may or may not have what
 * others commit while this call runs. DELTAFS_ERR_EXISTS: the name is used. DELTAFS_ERR_BUSY: the namespace is being
 * collected just now. After DELTAFS_ERR_IO the snapshot may exist. */
DELTAFS_API int deltafs_snapshot_publish(const char *path, const char *snapshot);

/* Remove a snapshot. Snapshots and namespaces that were made of it stay. deltafs_namespace_collect then frees what only
 * this snapshot needed. DELTAFS_ERR_NOT_FOUND: there is no such snapshot. */
DELTAFS_API int deltafs_snapshot_withdraw(const char *snapshot);

typedef struct deltafs_snapshot deltafs_snapshot;

/* Look up what a snapshot consists of. DELTAFS_ERR_NOT_FOUND: there is no such snapshot. Close with
 * deltafs_snapshot_close. */
DELTAFS_API int deltafs_snapshot_open(const char *snapshot, deltafs_snapshot **out);
/* Free the handle; NULL is fine. */
DELTAFS_API int deltafs_snapshot_close(deltafs_snapshot *snapshot);

struct deltafs_snapshot_stat {
    size_t struct_size; /* see convention 7 of deltafs.h */
    char uuid[40];
    int64_t time;     /* when it was published: nanoseconds since 1970 */
    const char *path; /* its folder in the registry; valid until the handle is closed */
    size_t layers;
};
DELTAFS_API int deltafs_snapshot_stat(const deltafs_snapshot *snapshot, struct deltafs_snapshot_stat *out);

/* Which input of a merge counts for a path that they have changed differently. */
enum deltafs_snapshot_policy {
    DELTAFS_SNAPSHOT_NEWEST = 0, /* the one with the newest change */
    DELTAFS_SNAPSHOT_FIRST = 1,  /* the first */
    DELTAFS_SNAPSHOT_LAST = 2,   /* the last */
    DELTAFS_SNAPSHOT_ERROR = 3   /* none: the call fails */
};

/* A layer: a namespace as it was, on top of at most one layer, or a merge of layers. */
struct deltafs_snapshot_layer {
    size_t struct_size; /* see convention 7 of deltafs.h */
    const char *path;   /* of the namespace; NULL: a merge. Valid until the handle is closed */
    int policy;         /* of a merge: enum deltafs_snapshot_policy */
    int is_complete;    /* the tables of the namespace have the names of all layers below, too */
    size_t tables;      /* of the namespace */
    size_t inputs;
    const size_t *input; /* the numbers of the layers below; valid as long */
};
/* Layer `i`, from 0; each comes after its inputs, and the last is the top. DELTAFS_ERR_NOT_FOUND: there is none. */
DELTAFS_API int deltafs_snapshot_layer(const deltafs_snapshot *snapshot, size_t i, struct deltafs_snapshot_layer *out);

typedef struct deltafs_snapshot_list deltafs_snapshot_list;

/* List the snapshots of a registry, or of several, joined by ':'; NULL: those of the environment variable
 * DELTAFS_REGISTRY. DELTAFS_ERR_NOT_FOUND, DELTAFS_ERR_NOT_DELTAFS: one of them is no registry. Close with
 * deltafs_snapshot_list_close. */
DELTAFS_API int deltafs_snapshot_list_open(const char *registry, deltafs_snapshot_list **out);
/* Get the next snapshot as REGISTRY@NAME, in the order of the registries, sorted by name in each; NULL at the end. The
 * text is valid until the list is closed. */
DELTAFS_API int deltafs_snapshot_list_next(deltafs_snapshot_list *list, const char **snapshot);
/* Free the list; NULL is fine. */
DELTAFS_API int deltafs_snapshot_list_close(deltafs_snapshot_list *list);

/* ---- Several snapshots as one ----
 *
 * Snapshots that are merged are one tree: it has each path that one of them has. Nothing is copied. A folder that
 * several have contains what any of them has put into it. If a snapshot is on top of another, what it has changed or
 * removed counts, in whatever order the two are given.
 *
 * A path is in conflict if it is not a folder in all snapshots, and two of them have created, changed, removed or
 * renamed it without knowing of each other. The policy decides for each such path. If it chooses a folder, what others
 * have put into it below that path is not there. If one snapshot has removed a folder, and no other has changed the
 * folder itself, it is removed, also with what others have changed in it or put into it. That is no conflict. */

/* Publish a merge of snapshots. With DELTAFS_SNAPSHOT_ERROR all paths are compared, which takes longer for larger
 * snapshots; DELTAFS_ERR_CONFLICT: the message names the first conflict. DELTAFS_ERR_INVALID: a namespace is a copy of
 * another that was made without DeltaFS. Needs permission to write in all namespaces of the inputs. The errors are
 * those of deltafs_snapshot_publish. */
DELTAFS_API int deltafs_snapshot_merge(size_t count, const char *const *inputs, int policy, const char *snapshot);

/* Create a namespace on top of snapshots, or open it if it exists and is on the same. It begins with what they have.
 * Changes go to the namespace alone. Later, deltafs_namespace_open opens it as any other. `flags` is O_RDWR | O_CREAT,
 * and perhaps O_EXCL. With `path` NULL and O_RDONLY, the snapshots are opened for reading, and nothing is written
 * anywhere.
 *
 * `policy` is that of the merge, if there are several snapshots. The errors are those of deltafs_namespace_open and
 * deltafs_snapshot_merge. DELTAFS_ERR_EXISTS: there is a namespace on other snapshots. Close with
 * deltafs_namespace_close. */
DELTAFS_API int deltafs_namespace_open_view(const char *path, int flags, size_t count, const char *const *snapshots,
                                            int policy, const deltafs_options *options, deltafs_namespace **out);

typedef struct deltafs_snapshot_paths deltafs_snapshot_paths;

/* List the paths that differ between two snapshots, or namespaces: those that only one has, and those with other
 * contents or attributes. Access times do not count. Two files that were written separately differ even if their bytes
 * are equal. In no order, but a folder comes before what is in it. Close with deltafs_snapshot_paths_close. */
DELTAFS_API int deltafs_snapshot_diff_open(const char *a, const char *b, deltafs_snapshot_paths **out);

/* List the conflicts of a merge. Close with deltafs_snapshot_paths_close. */
DELTAFS_API int deltafs_snapshot_conflicts_open(size_t count, const char *const *snapshots,
                                                deltafs_snapshot_paths **out);

/* Get the next path, from the root; NULL at the end. Valid until the next call. */
DELTAFS_API int deltafs_snapshot_paths_next(deltafs_snapshot_paths *paths, const char **path);
/* Free the list; NULL is fine. Can be called at any time. */
DELTAFS_API int deltafs_snapshot_paths_close(deltafs_snapshot_paths *paths);

/* ---- Verifying and repairing ---- */

/* Verify each table of the namespace at `path`, and the bytes of files, as deltafs_verify does a directory; that all
 * folders can be listed; and that the bytes of all files are there. A message about a name begins with "PATH:/NAME: ".
 * What only snapshots need is verified as far as it is in the tables. `path` may be a snapshot, REG@NAME: then what it
 * has is verified by its names, also bytes of files that only this snapshot has. `out` gets the sums of all tables, or
 * of a snapshot the number of names, as records, and the bytes of files. `fn` and `out` may be NULL.
 * DELTAFS_ERR_DAMAGED if there is damage, or the first other error; *out is set then too, but not if there is no
 * namespace: DELTAFS_ERR_NOT_FOUND, DELTAFS_ERR_NOT_DELTAFS. Not collective; thread-safe. */
DELTAFS_API int deltafs_namespace_verify(const char *path, deltafs_damage_fn fn, void *arg,
                                         struct deltafs_verify_counts *out);

/* Repair each table of the namespace at `path` as deltafs_repair does a directory, with the same reports and errors,
 * and go on with the others if one cannot be repaired. Write a damaged journal again with the commits that can be read,
 * and report what is lost (DELTAFS_ERR_DAMAGED). Then report the folders and files that have lost something. With
 * `has_label` or `has_drop_from` the call returns DELTAFS_ERR_INVALID: repair that table by itself, with
 * deltafs_repair. Not collective. */
DELTAFS_API int deltafs_namespace_repair(const char *path, const struct deltafs_repair_options *options,
                                         deltafs_repair_fn fn, void *arg);

struct deltafs_namespace_info {
    size_t struct_size;    /* see convention 7 of deltafs.h */
    char uuid[37];         /* a text */
    int is_compacted;      /* whether it ever was, */
    int is_complete;       /* with the names of all layers below: these are not asked for names */
    uint64_t layers;       /* below it */
    uint64_t pins;         /* of snapshots, and of namespaces on top */
    uint64_t tables;       /* that have records, or bytes of files */
    uint64_t records;      /* of names, with copies and those that newer ones replace */
    uint64_t bytes_stored; /* of these records */
    uint64_t data_stored;  /* of the bytes of files, with those that are not needed any more */
};

/* What the namespace at `path` consists of. No names are read. The errors are those of opening it. Thread-safe. */
DELTAFS_API int deltafs_namespace_info(const char *path, struct deltafs_namespace_info *out);

/* ---- Collecting and compacting ---- */

struct deltafs_namespace_collected {
    size_t struct_size;    /* see convention 7 of deltafs.h */
    uint64_t pins;         /* that the namespace has */
    int is_kept;           /* whether a pin keeps all: of a snapshot that is being published, or was not finished */
    uint64_t bytes_before; /* stored, of the bytes of files */
    uint64_t bytes_after;
};

/* Remove the bytes of files that neither the namespace at `path` as it is now, nor a pin needs: those that were
 * overwritten, truncated or removed. Bytes that are left are copied if a quarter of those beside them, or more, is
 * removed; this needs storage for the copy, and a file system that can exchange two names. All names of the namespace
 * are read, and memory is needed for each chunk that is kept (16 bytes). `out` may be NULL.
 *
 * DELTAFS_ERR_BUSY: a process has the namespace open, or a snapshot of it, or publishes it; the message says which.
 * Meanwhile, processes can open the namespace for reading, but not for writing. A process that reads without permission
 * to write in the folder of the namespace is not known; later it may not be able to read the bytes of what was removed
 * (DELTAFS_ERR_DAMAGED). */
DELTAFS_API int deltafs_namespace_collect(const char *path, struct deltafs_namespace_collected *out);

struct deltafs_namespace_compacted {
    size_t struct_size; /* see convention 7 of deltafs.h */
    uint64_t tables;    /* that were read; 0: there was nothing to do */
    uint64_t records;   /* in them */
    uint64_t entries;   /* that were written, with those of names that were removed */
};

/* Write the newest record of each entry of the namespace at `path`, as it is committed now, into one new table. Finding
 * a name then takes reads of that table, and of those that were written later. The bytes of files stay where they are.
 * If the namespace is on top of snapshots, the entries of all layers below are written, too. Names are then no longer
 * looked up in the layers, also not through snapshots that are published later. The layers must stay, because they have
 * the bytes of files. This reads and writes all names. If a merge with the policy first or last is below, names are
 * still looked up in the layers. Any number of processes can use the namespace meanwhile, and change it. What they
 * commit is not lost, and stays in their tables until the next compaction. Those that open the namespace later read the
 * new table instead of the old ones. It takes effect at once, when all is written; if it fails or is killed, nothing
 * changes. deltafs_namespace_collect removes the old tables, unless a snapshot needs them. A process that it did not
 * know of (see there) may then get DELTAFS_ERR_CHANGED, and has to open the namespace again. A table that has only one
 * commit is left as it is. `out` may be NULL. Not collective; thread-safe. It takes its options from the environment.
 * DELTAFS_ERR_BUSY: the namespace is being collected just now. */
DELTAFS_API int deltafs_namespace_compact(const char *path, struct deltafs_namespace_compacted *out);

#ifdef __cplusplus
}
#endif
#endif
