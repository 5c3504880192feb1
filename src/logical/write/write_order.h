/* The order of writes through several handles of this process on one file: what the process writes later wins,
 * whichever handle it uses. An MPI program may have a handle of all ranks and one of its own.
 *
 * The handles that may write share one struct, found by the file's UUID. */
#ifndef DELTAFS_LOGICAL_WRITE_ORDER_H
#define DELTAFS_LOGICAL_WRITE_ORDER_H

#include "base/error.h"

#define WRITE_ORDER_NONE UINT64_MAX /* no session's number */

struct write_order {
    struct write_order *next;
    uint8_t uuid[16];
    unsigned handles;
    uint64_t session; /* that has written last */
    uint64_t order;   /* the highest */
    uint64_t before;  /* the highest when that session began to write, after another */
};

int write_order_create(struct write_order **out, struct error *e);
/* Exchange *w for the one that all handles on this file share. */
void write_order_join(struct write_order **w, const uint8_t uuid[16]);
void write_order_leave(struct write_order *w); /* also one that has not joined, or NULL */
/* Between these calls no other handle writes. */
void write_order_lock(void);
void write_order_unlock(void);

#endif
