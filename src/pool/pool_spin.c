#include <sched.h>
#include "base/thread.h"
#include "pool/pool_spin.h"

#define SPIN_MAX   200000   /* nanoseconds; then sleeping costs little more */
#define SPIN_SHORT 10000    /* about what it takes to sleep and be woken */
#define LONG       1000000  /* nanoseconds in which all that servers and clients do in a moment is done */
#define AGAIN      50000000 /* nanoseconds in which it happens twice where others compute, and not by chance */
#define RARELY     30       /* for how many times as long they get nothing if they took that long */

int pool_spin(struct pool_spin *s, uint64_t start)
{
    uint64_t before = thread_clock();

    if (before - start > (before < s->until ? SPIN_SHORT : SPIN_MAX))
        return 0;
    if (before < s->until)
        return 1;
    sched_yield();
    uint64_t took = thread_clock() - before;
    if (took > LONG) {
        s->until = before - s->lost < AGAIN ? before + RARELY * took : 0;
        s->lost = before;
    }
    return 1;
}
