#ifndef DELTAFS_BASE_PATH_H
#define DELTAFS_BASE_PATH_H

#include "base/error.h"

/* The folder from which a relative path begins (to be freed). A program may change its folder while it has something
 * open whose files are opened by name later. NULL if the path is used unchanged: it is absolute, or there is no such
 * folder. Returns -1 without memory. */
int path_here(const char *path, char **here);
/* The two together (to be freed; NULL without memory). */
char *path_from(const char *here, const char *path);
/* The folder that the path is an entry of; "." if it names none (to be freed; NULL without memory). */
char *path_parent(const char *path);
/* The first of the folders above it that does not exist (to be freed; NULL: all exist, or there is no memory). */
char *path_missing(const char *path);
/* After an error of creating `path`: if a folder above it does not exist, the message names that. Returns the status.
 */
int path_explain_missing(const char *path, struct error *e);
/* The path from the root, or unchanged (to be freed; NULL without memory). */
char *path_absolute(const char *path);
/* The path from the root without links. Parts at its end that do not exist stay as they are (to be freed; NULL: see
 * errno). */
char *path_resolve(const char *path);

#endif
