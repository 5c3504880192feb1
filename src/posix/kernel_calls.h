/* Calls of the kernel by syscall(), which do what the functions of the same names do. `a` has their arguments, `from`
 * is where syscall() returns to. */
#ifndef DELTAFS_POSIX_KERNEL_CALLS_H
#define DELTAFS_POSIX_KERNEL_CALLS_H

/* Whether a call is one about mappings: then it is done, also before this library is ready. */
int map_kernel(long number, const long a[], const void *from, long *result);

#endif
