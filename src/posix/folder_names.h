/* The names in a folder of a mount. */
#ifndef DELTAFS_POSIX_FOLDER_NAMES_H
#define DELTAFS_POSIX_FOLDER_NAMES_H

#include <dirent.h>
#include "posix/file.h"

/* All that were there at one time, with "." and "..": what is removed or created later changes nothing here, and the
 * handle of the namespace is free for others between two of them. A name takes about 40 bytes of memory. */
struct names {
    struct dirent *entry; /* one behind the other, d_reclen bytes each */
    size_t size, room;
    size_t at; /* of the next one, in bytes */
};

/* List an open folder. Returns an error number; a folder that was removed has none. With its lock. */
int names_read(const struct file *folder, struct names *out);
/* The next one; NULL: there is none. */
const struct dirent *names_next(struct names *n);
void names_fini(struct names *n);

#endif
