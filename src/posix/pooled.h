/* A pool behind a mount point.
 *
 * Nothing of a file is held here: reading and writing ask the servers, so that every process sees at once what all have
 * done. The memfd of a descriptor has the offset and the size, and no bytes, but for those that are written without
 * this library (mark.h), and of a file that is mapped, or is standard input of a program: these are loaded. */
#ifndef DELTAFS_POSIX_POOLED_H
#define DELTAFS_POSIX_POOLED_H

#include <fcntl.h>
#include <sys/statfs.h>
#include "posix/file.h"

struct pooled;
int pooled_create(struct pooled **out);

/* All of these return error numbers. */

/* What ends with a slash must be a folder, or a link to one. */
int pooled_check_slash(const struct mount *m, const char *path);
int pooled_stat(const struct mount *m, const char *path, int flags, struct stat *out);
int pooled_make_folder(const struct mount *m, const char *path, mode_t mode);
int pooled_symlink(const struct mount *m, const char *target, const char *path);
int pooled_readlink(const struct mount *m, const char *path, char *target, size_t room, size_t *size);
int pooled_remove(struct mount *m, const char *path, int is_folder);
int pooled_rename(struct mount *m, const char *from, const char *to, unsigned flags);
int pooled_truncate(const struct mount *m, const char *path, uint64_t size);
int pooled_set(const struct mount *m, const char *path, int flags, const struct deltafs_namespace_attributes *a);
/* Call `fn` for each entry of a folder until it returns something other than 0. */
int pooled_list(const struct mount *m, const char *path,
                int (*fn)(void *arg, const char *name, ino_t inode, mode_t mode), void *arg);
void pooled_statfs(const struct mount *m, struct statfs *out);

/* ---- Open files, with their locks ---- */

int pooled_open(struct mount *m, const char *path, int flags, mode_t mode, int *fd);
int pooled_stat_open(struct file *f, struct stat *out);
/* Whether the servers are asked for what is read, and get what is written, and the memfd is not used. */
int pooled_is_direct(const struct file *f);
ssize_t pooled_read(struct file *f, int fd, void *bytes, size_t size, off_t at);
ssize_t pooled_write(struct file *f, int fd, const void *bytes, size_t size, off_t at);
/* Bytes of the file for the memfd. */
int pooled_read_bytes(struct file *f, void *bytes, size_t size, uint64_t at, size_t *got);
/* Give the memfd the size that the file has. */
int pooled_take_size(struct file *f, int fd);
int pooled_cut(struct file *f, int fd, uint64_t size);
/* Let the file have at least this size. */
int pooled_extend(struct file *f, int fd, uint64_t size);
/* After file_load(): the servers are asked again, unless something needs what the memfd has. */
void pooled_unload(struct file *f);
/* Put what is only in the memfd into the file. */
int pooled_publish(struct file *f, int fd, struct span *unseen);
int pooled_close(struct file *f, int fd);
void pooled_release(struct file *f);

/* Locks of parts of files, by the commands of fcntl(2) and of lockf(3). */
int pooled_lock(struct file *f, int fd, int command, struct flock *l);
int pooled_lockf(struct file *f, int fd, int command, off_t size);
/* A lock of the whole file: as on NFS it is one of the process, too. */
int pooled_flock(struct file *f, int fd, short type, int is_at_once);
/* A descriptor is closed: as POSIX has it, the process has no lock of the file any more. */
void pooled_unlock(struct file *f);

/* Before a fork: no other thread makes a call until it is over. */
void pooled_hold(struct pooled *p);
void pooled_let_go(struct pooled *p, int is_child);

#endif
