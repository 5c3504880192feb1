/* A namespace behind a mount point.
 *
 * Each process of a run has a handle of its own, and with it a table. The processes agree by a file in the folder of
 * the namespace, RUN: a process locks it to change something, and commits before it unlocks it; the number in it counts
 * these changes. So a process knows whether others have changed something since it looked last, and only then refreshes
 * its handle. A process that dies leaves the lock, and perhaps an odd number, which says that it may have committed. */
#ifndef DELTAFS_POSIX_POSIX_TREE_H
#define DELTAFS_POSIX_POSIX_TREE_H

#include "posix/file.h"

#define RUN_NAME "RUN"

struct tree;
int tree_create(const char *target, struct tree **out);
int tree_is_snapshot(const struct tree *t);

/* Begin to read, or to change something: no other thread uses the handle until tree_end, and no other process changes
 * the namespace until then if `is_change`. After an error there is nothing to end. */
int tree_begin(struct tree *t, int is_change, deltafs_namespace **out);
/* End it, with the status of the call; what was changed is committed. Returns an error number. */
int tree_end(struct tree *t, int status);

/* Open a file or a folder; *fd gets its descriptor. */
int tree_open(struct mount *m, const char *path, int flags, mode_t mode, int *fd);
/* The attributes of a path, and of an open file. */
int tree_stat(struct mount *m, const char *path, int flags, struct stat *out);
int file_stat(struct file *f, int fd, struct stat *out);

/* Make a file that was handed over, and has its attributes, one of a namespace. */
void tree_take_over(struct file *f);

/* Note that bytes were written, or that the file has another size. With its lock. */
int file_note_written(struct file *f, int fd, uint64_t from, uint64_t to);
int file_note_truncated(struct file *f, int fd, uint64_t size);
/* Read bytes of a file whose memfd has not all. Returns their number, or -1 with errno. With its lock. */
ssize_t file_read_at(struct file *f, int fd, void *bytes, size_t size, uint64_t at);
/* Have all bytes in the memfd. With its lock. */
int file_load(struct file *f, int fd);
/* Put what was written into the namespace. With its lock. */
int file_publish(struct file *f, int fd);
/* The same when a shared mapping ends: `left` is what the others can write to, and belongs to the file then. */
int file_publish_left(struct file *f, int fd, struct spans *left);
/* The same, and make it durable; from now on each commit of this process is. */
int file_sync(struct file *f, int fd);

/* If nothing is to be published: have the bytes that others have published since it was opened; not of a file that is
 * mapped. With its lock. */
int file_refresh(struct file *f, int fd);

/* Before something is done by a path, publish what was written here to the file at that path; after a change by it,
 * have the new state in all descriptors that are this file. `flags`: 0 or AT_SYMLINK_NOFOLLOW. */
int tree_publish_path(struct mount *m, const char *path, int flags);
int tree_refresh_path(struct mount *m, const char *path, int flags);

/* Before a fork: commit all, and hold all locks; after it: release them, and in the child forget the handles. */
void trees_before_fork(void);
void trees_after_fork(int is_child);
/* Commit all, before exec; and close all, at the end of the process. */
int trees_commit(void);
int trees_end(void);

#endif
