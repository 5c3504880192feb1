#include "base/thread.h"
#include "io/fetch.h"

#define FETCH_SLOW_NS 50000 /* a read that took longer came from storage */

static void fetch_one(void *ctx, size_t i)
{
    struct fetch *f = (struct fetch *)ctx + i;

    f->is_bad = io_file_read(f->file, f->offset, f->bytes, f->length, error_ignored()) != DELTAFS_OK;
}

int fetch_all(struct team *team, struct fetch *fetches, size_t n)
{
    int can_share = team_threads(team) > 0, is_slow = 0;
    uint64_t before = thread_clock();

    for (size_t i = 0; i < n; i++) {
        fetch_one(fetches, i);
        uint64_t now = thread_clock();
        is_slow |= now - before > FETCH_SLOW_NS;
        if (is_slow && can_share && i + 2 < n) {
            team_run(team, fetch_one, fetches + i + 1, n - i - 1);
            break;
        }
        before = now;
    }
    return is_slow;
}
