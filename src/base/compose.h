/* Text that is put together piece by piece. open_memstream(3) of glibc is not used for this: where memory is short, it
 * leaves a piece out, and no call says so. */
#ifndef DELTAFS_BASE_COMPOSE_H
#define DELTAFS_BASE_COMPOSE_H

#include "base/error.h"

struct compose {
    char *text;
    size_t used, room;
    int is_lacking; /* a piece is missing: there was no memory for it */
};

/* Append a piece. */
__attribute__((format(printf, 2, 3))) void compose(struct compose *c, const char *fmt, ...);
/* The text, to be freed, and its length; or, if a piece is missing, DELTAFS_ERR_MEMORY for `what`. */
int compose_end(struct compose *c, const char *what, char **text, size_t *n, struct error *e);

#endif
