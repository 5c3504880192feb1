/* Open files of a namespace, and logical ones, and changes of their names by this process. */
#ifndef DELTAFS_POSIX_NAMES_OPEN_H
#define DELTAFS_POSIX_NAMES_OPEN_H

#include <limits.h>
#include <sys/stat.h>
#include "posix/mount.h"

struct renaming {
    struct mount *mount;
    const char *old, *new; /* paths; `new` is NULL if the name is removed */
    struct stat from, to;  /* what has them; st_ino 0: nothing */
    char room[2][PATH_MAX];
};

/* Before names are changed: nobody publishes or reads an open file until names_end. */
void names_hold(struct renaming *n);
/* Afterwards; if they were changed, open files have new paths, or none. Returns an error number. */
int names_end(struct renaming *n, int is_done);

#endif
