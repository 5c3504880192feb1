/* Locks of files. */
#ifndef DELTAFS_POSIX_FILE_LOCK_H
#define DELTAFS_POSIX_FILE_LOCK_H

#include "posix/file.h"

/* As flock(2). Returns an error number. The lock is one of a byte of RUN, see posix_tree.h, so it is between processes,
 * and between hosts if the file system has such locks. It is that of the open file, so it is held as long as one of the
 * processes that share this has it open. What was written is published before the file is unlocked, and seen by whoever
 * locks it next. */
int file_lock(struct file *f, int fd, int operation);

/* Before an exec, for a file with its lock, and before a fork, for all files: a child or a program that inherits the
 * descriptor may lock the file, also for this process, as the command flock does for a shell. */
void file_lock_share(struct file *f, int fd);
void file_locks_share(void);
/* If all descriptors are closed: release the lock. */
void file_lock_end(struct file *f);
/* The descriptor by which the lock is held is inherited, too; how the next program knows it. */
struct handed_lock {
    int32_t fd; /* -1: there is none */
    dev_t device;
    ino_t inode;
};
void file_lock_give(const struct file *f, struct handed_lock *out);
void file_lock_take(struct file *f, const struct handed_lock *h);

/* The error number of locks of parts of a file, which are refused: each open file has bytes of its own, so two programs
 * that change parts of a file, and have it open all the time, would not see each other's. */
int file_refuse_lock(const struct file *f);

#endif
