/* deltafs verify --continuity: whether particles move as far as they can, and no farther. */
#ifndef DELTAFS_TOOLS_CONTINUITY_H
#define DELTAFS_TOOLS_CONTINUITY_H

#include <deltafs/deltafs.h>

/* Check all tracks of an open directory: print the first jumps, or all of them, and a summary. Returns an exit code.
 * `path` is for messages. Takes no more memory than the library does (the option memory). */
int continuity_check(deltafs_dir *d, const char *path, int is_all);

#endif
