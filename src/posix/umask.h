/* The mask of new files. */
#ifndef DELTAFS_POSIX_UMASK_H
#define DELTAFS_POSIX_UMASK_H

#include <sys/types.h>

mode_t current_umask(void);

#endif
