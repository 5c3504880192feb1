/* A file or folder that is made under a hidden name beside its own, and renamed when it is complete. */
#ifndef DELTAFS_TOOLS_ASIDE_H
#define DELTAFS_TOOLS_ASIDE_H

#include <limits.h>

#define ASIDE_ROOM (PATH_MAX + 64) /* bytes of a hidden name */

/* Make up a hidden name for `to`, which is shorter than PATH_MAX, in its folder; `command` is a part of it. */
void aside_name(const char *command, const char *to, char folder[PATH_MAX], char out[ASIDE_ROOM]);

/* These return 0, or -1 with errno set. */

/* Rename to a new name; fails if something is there. */
int aside_put_new(const char *aside, const char *to, int is_folder);
/* Exchange the two; fails with EINVAL or ENOSYS if the file system cannot do this. */
int aside_exchange(const char *aside, const char *to);
/* Make the renames in a folder permanent. */
int aside_sync(const char *folder);

#endif
