/* Locks of files. */
#ifndef DELTAFS_POSIX_FILE_LOCK_H
#define DELTAFS_POSIX_FILE_LOCK_H

#include "posix/file.h"

/* As flock(2). Returns an error number. The lock is one of a byte of RUN, see posix_tree.h, so it is between processes,
 * and between hosts if the file system has such locks. It ends with this
 * process, so a descriptor that was inherited by exec, and that its parent wants to hold the lock by, is refused. What
 * was written is published before the file is unlocked, and seen by whoever locks it next. */
int file_lock(struct file *f, int fd, int operation);
/* The error number of locks of parts of a file, which are refused: each open file has bytes of its own, so two programs
 * that change parts of a file, and have it open all the time, would not see each other's. */
int file_refuse_lock(const struct file *f);

#endif
