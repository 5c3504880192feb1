/* What a program hands to the next one: to a child, or to the program that takes its process over by execve.
 *
 * It goes by the environment, and the library of the next program removes it from there before that begins:
 *     DELTAFS_POSIX_FD<n>    descriptor n is an open file of a mount
 *     DELTAFS_POSIX_FOLDER   the working directory is in a mount
 * LD_PRELOAD and the variables that "deltafs run" has set are put back if they are missing, since programs often give
 * a child a small environment of its own, and then expect its files where they are. A program that gives an empty
 * DELTAFS_POSIX has its child run without mounts. */
#ifndef DELTAFS_POSIX_HANDOVER_H
#define DELTAFS_POSIX_HANDOVER_H

#include "posix/file.h"

/* Take what was handed to this program. Once the mounts are there. */
void handover_take(void);

/* The environment for the next program, made of the one that this program gives it; its descriptors are those of this
 * process. *out is freed with handover_free. Returns an error number. */
int handover_create(char *const environment[], char ***out);
void handover_free(char **environment);

/* Have all bytes of a file in its memfd if it is to be standard input, which the C library of the next program reads by
 * itself. With its lock. */
int handover_load_input(struct file *f, int fd, off_t size);

/* Whether there is something to hand over that only the environment can say. */
int handover_has_any(void);

#endif
