/* What other commands use of deltafs verify. */
#ifndef DELTAFS_TOOLS_VERIFY_H
#define DELTAFS_TOOLS_VERIFY_H

/* Do what `deltafs verify PATH` does, but leave out indexes by value; return its exit code. */
int verify_path(const char *path);

#endif
