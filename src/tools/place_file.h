/* Files, links and attributes of places (place.h). */
#ifndef DELTAFS_TOOLS_PLACE_FILE_H
#define DELTAFS_TOOLS_PLACE_FILE_H

#include <stdint.h>
#include "tools/place.h"

/* An open file, which is read or written from its beginning on. */
struct place_file {
    deltafs_namespace_file *file;
    deltafs_pool_file *pooled; /* both NULL: `fd` */
    int fd;
    uint64_t at;
};

/* The functions print a message, and return an exit code. */

/* `flags` and `mode` are those of open(2). If it fails, place_file_close is allowed, too. */
int place_file_open(const struct place *p, int flags, mode_t mode, struct place_file *out);
/* *got is 0 at the end. */
int place_file_read(const struct place *p, struct place_file *f, void *bytes, size_t room, size_t *got);
int place_file_write(const struct place *p, struct place_file *f, const char *bytes, size_t size);
/* Read the last `size` bytes that were written, into `room`, and compare them. */
int place_file_check(const struct place *p, const struct place_file *f, const char *bytes, size_t size, char *room);
int place_file_close(const struct place *p, struct place_file *f);

/* Remove the part of a file that was copied before something failed. A link to the file stays, and so does the part. */
void place_remove_part(const struct place *p);
/* Create a symbolic link; with `is_there` it replaces what is at the place. */
int place_link(const struct place *p, const char *target, int is_there);
int place_mkdir(const struct place *p, mode_t mode);
/* Set the mode and the times to those of `st`. */
int place_preserve(const struct place *p, const struct stat *st);

#endif
