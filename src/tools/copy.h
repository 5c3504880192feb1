/* Bytes from one file to another, where at least one of them is a logical one. */
#ifndef DELTAFS_TOOLS_COPY_H
#define DELTAFS_TOOLS_COPY_H

#include <deltafs/deltafs_logical.h>
#include "tools/progress.h"

/* One end of a copy. */
struct copy_end {
    deltafs_logical *logical; /* NULL: `fd` counts */
    int fd;
    const char *name; /* for messages */
    int has_holes;    /* `fd` is a plain file: read and written by position, and it may have holes */
    int is_pipe;      /* `fd` is to be read from a pipe with a name, opened with O_NONBLOCK */
};

struct copy {
    struct copy_end from, to;
    struct progress bar;
    int is_target_failed; /* writing failed, and would again */
};

/* Hold SIGHUP, SIGINT and SIGTERM back, so that the caller can take away what is half done: a copy ends when one has
 * come. With copy_release_signals it takes effect. */
void copy_hold_signals(void);
int copy_is_interrupted(void);
void copy_release_signals(void);

/* Copy `size` bytes (UINT64_MAX: to the end) from `offset` of the source on to the target's beginning; a target that is
 * a file is empty before. `offset` is 0 but of a logical file. On failure the message is out, and the exit code
 * returned. */
int copy_bytes(struct copy *c, uint64_t offset, uint64_t size);

#endif
