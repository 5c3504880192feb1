/* A directory of particles behind a mount point: each particle is a file, whose name is its key.
 *
 * What is written to a file from open to close is one record. Records are kept in this process until their epoch ends,
 * so writing one never waits for another process. An epoch ends when a program closes the directory that it has opened
 * (opendir, closedir, with no readdir between), when it syncs the directory, and at its end. In a job of MPI that is
 * collective: all ranks then put their records into the directory together. */
#ifndef DELTAFS_POSIX_PARTICLES_H
#define DELTAFS_POSIX_PARTICLES_H

#include "posix/file.h"

struct particles;
int particles_create(const char *target, struct particles **out);

/* Open a particle to add a record or to read all that it has, or the directory. *fd gets a descriptor. */
int particles_open(struct mount *m, const char *path, int flags, int *fd);
/* Add bytes to the record of a file. Returns their number, or -1 with errno. */
ssize_t particles_write(struct file *f, const void *bytes, size_t size);
int particles_stat(struct mount *m, const char *path, struct stat *out);
/* End the epoch: `f` is the directory. For a particle this does nothing. */
int particles_sync(struct file *f);

#endif
