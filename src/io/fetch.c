#include "base/thread.h"
#include "io/fetch.h"

#define FETCH_SLOW_NS   50000 /* a read that took longer came from storage, */
#define FETCH_CHECK_MIN 3     /* or of so many, the thread had to wait for it: others may have had the processor */

static void fetch_one(void *ctx, size_t i)
{
    struct fetch *f = (struct fetch *)ctx + i;

    f->is_bad = io_file_read(f->file, f->offset, f->bytes, f->length, error_ignored()) != DELTAFS_OK;
}

int fetch_all(struct team *team, struct fetch *fetches, size_t n)
{
    int can_share = team_threads(team) > 0, is_slow = 0;
    int is_checked = n >= FETCH_CHECK_MIN;
    uint64_t before = thread_clock(), waits = is_checked ? thread_waits() : 0;

    for (size_t i = 0; i < n; i++) {
        fetch_one(fetches, i);
        uint64_t now = thread_clock();
        if (now - before > FETCH_SLOW_NS)
            is_slow |= !is_checked || thread_waits() > waits;
        if (is_slow && can_share && i + 2 < n) {
            team_run(team, fetch_one, fetches + i + 1, n - i - 1);
            break;
        }
        before = now;
    }
    return is_slow;
}
