/* Reads at many places. As long as each is quick (the page cache has it), they are made one after the other; once one
 * was slow, the others go out in parallel, by the threads of a team. */
#ifndef DELTAFS_IO_FETCH_H
#define DELTAFS_IO_FETCH_H

#include "base/team.h"
#include "io/io.h"

struct fetch {
    struct io_file *file;
    uint64_t offset;
    size_t length;
    uint8_t *bytes; /* room for `length`; the caller's */
    int is_bad;     /* it could not be read; reading it again tells why */
};

/* Returns whether a read was slow. */
int fetch_all(struct team *team, struct fetch *fetches, size_t n);

#endif
