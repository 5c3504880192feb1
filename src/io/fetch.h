/* Reads at many places. As long as each is quick (the page cache has it), they are made one after the other. Once one
 * was slow, the system is asked to begin the others; if it cannot, or they are slow all the same, they go out in
 * parallel by the threads of a team. */
#ifndef DELTAFS_IO_FETCH_H
#define DELTAFS_IO_FETCH_H

#include "base/team.h"
#include "io/io.h"

#define FETCH_SLOW_NS 50000 /* a read that took longer came from storage */

struct fetch {
    struct io_file *file;
    uint64_t offset;
    size_t length;
    uint8_t *bytes; /* room for `length`; the caller's */
    int is_bad;     /* it could not be read; reading it again tells why */
};

enum fetch_pace {
    FETCH_UNKNOWN, /* nothing was read yet */
    FETCH_QUICK,
    FETCH_SLOW
};
/* Returns whether a read was slow. `last` is what the last ones were: if they were slow, all are begun at once; and
 * only if they were quick, little is spent on finding out whether a read was slow or only late. */
enum fetch_pace fetch_all(struct team *team, struct fetch *fetches, size_t n, enum fetch_pace last);

#endif
