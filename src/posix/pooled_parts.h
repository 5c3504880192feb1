/* What the parts of a pool behind a mount point share. */
#ifndef DELTAFS_POSIX_POOLED_PARTS_H
#define DELTAFS_POSIX_POOLED_PARTS_H

#include "posix/pooled.h"

struct pooled {
    pthread_mutex_t lock;
    deltafs_pool *pool; /* NULL: it is not open */
    int has_locks;      /* this process has locked a part of a file */
};

/* The open file. pooled_file_end says that a file that was removed is lost. */
int pooled_file_begin(struct file *f, deltafs_pool_file **out);
int pooled_file_end(struct file *f, int status);

/* Begin to use the handle, and end it with the status of the call. Return error numbers. */
int pooled_begin(const struct mount *m, deltafs_pool **out);
int pooled_end(const struct mount *m, int status);
/* The error number of a status; what that does not say is said. */
int pooled_error(int status);
void pooled_fill_stat(const struct mount *m, const struct deltafs_pool_stat *s, struct stat *out);

#endif
