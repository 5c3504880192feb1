/* deltafs cp of a directory: its epochs, or some of them, into a new one. */
#ifndef DELTAFS_TOOLS_CP_DIRECTORY_H
#define DELTAFS_TOOLS_CP_DIRECTORY_H

#include <deltafs/deltafs.h>

/* Copy the directory `from` to `to`, which must not exist, or is a folder that gets the copy under the name of `from`.
 * All records are read and written again, so that their checksums are checked, and space that nothing uses is not
 * copied. `range`: NULL for all epochs. Returns an exit code. */
int cp_directory(const char *from, const char *to, const struct deltafs_range *range, int is_quiet);

#endif
