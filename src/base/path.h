#ifndef DELTAFS_BASE_PATH_H
#define DELTAFS_BASE_PATH_H

/* The path from the root on (to be freed; NULL without memory): a program may change its folder while it has something
 * open of which files are opened by their names later. */
char *path_absolute(const char *path);

#endif
