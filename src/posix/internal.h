/* The descriptors that DeltaFS itself has open: those of libdeltafs, and RUN of each namespace.
 *
 * A program does not know of them. It may close all descriptors that are open, or give a file a number of its own
 * choice ("exec 3>file" of a shell), and libdeltafs would go on to write to what is there then. So these descriptors
 * have high numbers, and programs can neither close nor replace them. */
#ifndef DELTAFS_POSIX_INTERNAL_H
#define DELTAFS_POSIX_INTERNAL_H

/* Descriptors; the kernel's own limit of a process, unless the administrator has raised it. */
#define FILES_MAX (1 << 20)

/* Make a descriptor one of these; returns its new number. Negative ones stay as they are. */
int internal_keep(int fd);
int internal_is(int fd);
/* Close one. */
int internal_close(int fd);
/* As close_range(2), without these. */
int internal_close_others(unsigned first, unsigned last, int flags);

#endif
