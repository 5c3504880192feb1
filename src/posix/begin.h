#ifndef DELTAFS_POSIX_BEGIN_H
#define DELTAFS_POSIX_BEGIN_H

#include "posix/mount.h"

void posix_begin_now(void);

/* Find the C library's functions, and read the environment; every call begins with this, as libraries call functions
 * before they are all loaded. Ends the process if the environment is malformed, rather than let its files go elsewhere.
 */
static inline void posix_begin(void)
{
    if (!atomic_load_explicit(&mounts.has_begun, memory_order_acquire))
        posix_begin_now();
}

#endif
