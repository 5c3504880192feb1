/* A directory of particles behind a mount point: each particle is a file, whose name is its key.
 *
 * What is written to a file from open to close is one record. Records are kept in this process until their epoch ends,
 * so writing one never waits for another process. An epoch ends when a program closes the directory that it has opened
 * (opendir, closedir, with no readdir between), when it syncs the directory, and at its end. In a job of MPI that is
 * collective: all ranks then put their records into the directory together (posix_job.h). Records are seen from then
 * on.
 *
 * Labels count up. If DELTAFS_POSIX_LABEL is "$NAME", the environment variable NAME has the label when the epoch ends.
 * If it is a pattern such as "dump.%d", the mount point has folders with all names that match it. What is written to
 * files in one of them gets the number in its name as label, and what is read from there is of the epoch of that label.
 *
 *     particles.c       creation, fork, the end           particles_place.c   what paths mean
 *     particles_write.c opening, writing and closing      particles_read.c    reading, attributes
 *     particles_epoch.c the end of an epoch               particles_list.c    lists
 *     spool.c           the records until then            placeholder.c       descriptors, without system calls */
#ifndef DELTAFS_POSIX_PARTICLES_H
#define DELTAFS_POSIX_PARTICLES_H

#include "posix/file.h"

struct particles;
int particles_create(const char *target, struct particles **out);

/* Open a particle to add a record or to read all that it has, or the directory. *fd gets a descriptor. */
int particles_open(struct mount *m, const char *path, int flags, int *fd);
/* Add bytes to the record of a file; `at` is where they are written, or -1: at the file's offset. Returns their number,
 * or -1 with errno. With the file's lock. */
ssize_t particles_write(struct file *f, int fd, const void *bytes, size_t size, off_t at);
/* lseek and ftruncate of a file that is being written. With its lock. */
off_t particles_seek(struct file *f, int fd, off_t offset, int whence);
int particles_truncate(const struct file *f, off_t size);
/* A descriptor was copied. */
int particles_note_copy(struct file *f, int from, int to);
/* The process that stores what is written to copies of a descriptor; 0: there are none, or the file is read. */
pid_t particles_owner(const struct file *f);
/* Take a descriptor that another program has handed over. */
int particles_take_over(struct mount *m, const char *path, int flags, pid_t owner, int fd);
int particles_stat(struct mount *m, const char *path, struct stat *out);
/* Create a folder: those whose names match the pattern of labels are there. */
int particles_make_folder(struct mount *m, const char *path);
/* End the epoch, and make it durable: `f` is the directory. For a particle this does nothing. */
int particles_sync(struct file *f);
/* End the epoch: the directory that was opened with this path is being closed, and was not read. */
int particles_end_epoch(struct mount *m, const char *path);

/* The particles of a directory, or of an epoch's folder, without "." and "..", in no order. */
struct particles_list;
int particles_list_open(struct mount *m, const char *path, struct particles_list **out);
/* The next one; NULL: there is none. The name is valid until the next call. */
const char *particles_list_next(struct particles_list *l, ino_t *ino);
void particles_list_close(struct particles_list *l);

/* Around a fork: the records that the parent has written are the parent's. */
void particles_before_fork(void);
void particles_after_fork(int is_child);
/* At the end of the process, and before exec: end the epochs that have records, with what is in files that are open.
 * Returns the first error number, which was said. */
int particles_finish(void);

#endif
