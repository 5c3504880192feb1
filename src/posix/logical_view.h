/* Logical files of the system: "deltafs run --mpiio" and "--hdf5" show them as files, wherever they are.
 *
 * On disk a logical file is a folder. The kernel's answer is looked at again only where it says so: stat gives a
 * folder, or a call fails since its path is one. The path of a file of this kind is absolute, and its mount has no
 * point.
 *
 * A path that is opened to be read only is looked at later, when its descriptor is used as that of a file: then the
 * descriptor becomes that of a memfd (file.h). So opening costs nothing, and programs inherit such descriptors.
 *
 * A path that ends in '/' is that of the folder. DeltaFS's own libraries, drivers and commands see folders: `from` is
 * where a call returns to. */
#ifndef DELTAFS_POSIX_LOGICAL_VIEW_H
#define DELTAFS_POSIX_LOGICAL_VIEW_H

#include "posix/follow.h"
#include "posix/names_open.h"
#include "posix/span.h"

/* Where the function that has this returns to. */
#define CALLER __builtin_return_address(0)

/* The mount of logical files; NULL: they are shown as they are. */
struct mount *logical_mount(void);

/* Whether a path of the system is a logical file for the caller: then *r is its route. */
int logical_find(struct route *r, int has_last, const void *from);
/* Whether a folder in a list may be one for the caller. */
int logical_may_be(const void *from);
/* The same after a call that has failed, with errno, which stays. */
int logical_route(struct route *r, int has_last, const void *from);
/* The same of a descriptor of the kernel: then it becomes one of a file. */
int logical_take(int fd, const void *from);
/* Standard input, which the C library reads by itself, at the beginning of a program. */
void logical_take_input(void);
/* The error number of a status; what that does not say is said. */
int logical_error(int status);
/* All of these return error numbers. */
int logical_open(const char *path, int flags, int *fd);
int logical_stat(const char *path, struct stat *out);
int logical_stat_open(const char *path, deltafs_logical *h, struct stat *out);
/* Publish what this process has written to a file and not closed. */
int logical_publish_open(const char *path);
int logical_remove(const char *path);
/* Rename after the kernel has refused to, with errno: which is returned if this is not about logical files. */
int logical_rename(const struct route *a, const struct route *b, unsigned flags, const void *from);
/* Around a renaming in the system, which may be that of a folder: open files have new paths. The first returns whether
 * there are any, and then the second must be called. */
int logical_names_hold(struct renaming *n, const struct route *a, const struct route *b, const void *from);
void logical_names_end(struct renaming *n, const struct route *b, int is_done);
int logical_truncate(const char *path, uint64_t size);
int logical_set(const char *path, const struct deltafs_namespace_attributes *a);

/* Read from an open file, and put into it what is only in its memfd. With its lock. */
int logical_read(struct file *f, void *bytes, size_t size, uint64_t at, size_t *got);
int logical_publish(struct file *f, int fd, struct span *unseen);
/* Have its bytes and its size as they are by now, unless there is something to publish. With its lock. */
int logical_refresh(struct file *f, int fd);
/* Make an open file durable that has been published. */
int logical_sync(const char *path);
/* The last descriptor is being closed. */
int logical_close(struct file *f, int fd);
/* Instead of freeing it. */
void logical_release(struct file *f);
/* In the child of a fork: the handles are the parent's. */
void logical_forget(void);

#endif
