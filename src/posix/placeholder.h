/* The descriptors of particles that are being written. A program opens and closes very many of them, so they stay open
 * in the kernel, and are used again: then opening and closing a particle makes no system call. They cannot be written
 * to or read from (O_PATH), so what passes this library by fails with EBADF, and is not lost silently. */
#ifndef DELTAFS_POSIX_PLACEHOLDER_H
#define DELTAFS_POSIX_PLACEHOLDER_H

/* Get one; returns an error number. */
int placeholder_open(int *fd);
/* Whether a descriptor is one; it may be unused at the moment. */
int placeholder_is(int fd);
/* What close() does with one. Returns an error number: EBADF if it is unused. */
int placeholder_close(int fd);
/* A descriptor is closed in the kernel, or gets another meaning there: it is none any more. */
void placeholder_forget(int fd);
void placeholder_forget_range(unsigned first, unsigned last);

#endif
