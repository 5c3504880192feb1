/* Symbolic links between the system and mounts.
 *
 * A link in a namespace may have a target that is a path of the system, such as /mounted/a or /usr/bin/python3, and a
 * link of the system may lead into a mount. A namespace takes such a target as a path of its own, and the kernel knows
 * no mount, so both say that there is nothing. Only then is the path followed here, name by name, and the call is made
 * again where it leads. */
#ifndef DELTAFS_POSIX_FOLLOW_H
#define DELTAFS_POSIX_FOLLOW_H

#include <sys/stat.h>
#include "posix/route.h"

/* The attributes, and the target of a link, of a path in a mount: as stat or lstat, and readlink. They return error
 * numbers. */
int inside_stat(struct mount *m, const char *path, int flags, struct stat *out);
int inside_readlink(const struct mount *m, const char *path, char *target, size_t room, size_t *size);

/* Find what a path leads to: an absolute path without links, "." and "..", which may lead into a mount. It has to be
 * there. Returns an error number. */
int follow_path(int folder, const char *path, char out[static PATH_MAX]);
/* The same of its folder; the last name need not be there, and may be a link. */
int follow_name(int folder, const char *path, char out[static PATH_MAX]);

/* As route_find, and through such links, for calls that are rare: it looks whether something is there. Returns an error
 * number. */
int follow_find(struct route *r, int folder, const char *path);

/* Whether a call that has failed, with errno, is to be made again, since its path leads elsewhere: *r is changed then.
 * `has_last`: it follows a link that the path ends in, too. errno stays, or says what a namespace cannot know. */
int follow_route(struct route *r, int has_last);

#endif
