#ifndef DELTAFS_POSIX_BEGIN_H
#define DELTAFS_POSIX_BEGIN_H

/* Find the C library's functions, and read the environment; every call begins with this, as libraries call functions
 * before they are all loaded. Ends the process if the environment is malformed, rather than let its files go elsewhere.
 */
void posix_begin(void);

#endif
