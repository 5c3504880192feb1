#ifndef DELTAFS_BASE_PATH_H
#define DELTAFS_BASE_PATH_H

/* The folder that a path not from the root on begins in (to be freed): a program may change its folder while it has
 * something open of which files are opened by their names later. NULL if the path is to be used as it is: it is from
 * the root on, or is not found from there. Returns -1 without memory. */
int path_here(const char *path, char **here);
/* The two together (to be freed; NULL without memory). */
char *path_from(const char *here, const char *path);
/* The folder that the path is an entry of; "." if it names none (to be freed; NULL without memory). */
char *path_parent(const char *path);
/* The path from the root, or unchanged (to be freed; NULL without memory). */
char *path_absolute(const char *path);

#endif
