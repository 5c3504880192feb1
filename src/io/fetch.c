#include "base/thread.h"
#include "io/fetch.h"

#define FETCH_WAIT_NS    20000 /* or one that took longer, if the thread waited: others may have had the processor, */
#define FETCH_WAIT_BYTES 4     /* not counting what copying takes, of so many bytes in each nanosecond */
#define FETCH_CHECK_MIN  3     /* reads that are worth finding out whether the thread waits */
#define FETCH_PATIENCE   2     /* reads that were begun may take as long as the first one did */

static void fetch_one(void *ctx, size_t i)
{
    struct fetch *f = (struct fetch *)ctx + i;

    f->is_bad = io_file_read(f->file, f->offset, f->bytes, f->length, error_ignored()) != DELTAFS_OK;
}

/* Let the system begin these reads. Returns whether it can. */
static int fetch_advise(const struct fetch *fetches, size_t n)
{
    int can_advise = n > 0;

    for (size_t i = 0; i < n && can_advise; i++)
        can_advise = io_file_advise(fetches[i].file, fetches[i].offset, fetches[i].length);
    return can_advise;
}

/* Whether the thread has waited for anything since this was asked last. */
static int fetch_has_waited(void)
{
    static _Thread_local uint64_t seen;
    uint64_t waits = thread_waits(), before = seen;

    seen = waits;
    return waits != before;
}

enum fetch_pace fetch_all(struct team *team, struct fetch *fetches, size_t n, enum fetch_pace last)
{
    int can_share = team_threads(team) > 0, is_checked = n >= FETCH_CHECK_MIN;
    int is_begun = last == FETCH_SLOW && n > 1 && fetch_advise(fetches, n), patience = FETCH_PATIENCE;
    uint64_t before = thread_clock(), first_wait = 0;

    /* After quick reads, what the thread has waited for since the last slow one is taken for this one's at worst. */
    if (is_checked && last != FETCH_QUICK)
        fetch_has_waited();
    for (size_t i = 0; i < n; i++) {
        fetch_one(fetches, i);
        uint64_t now = thread_clock(), took = now - before;
        before = now;
        if (took <= (is_checked ? FETCH_WAIT_NS + fetches[i].length / FETCH_WAIT_BYTES : FETCH_SLOW_NS))
            continue;
        if (is_checked && !fetch_has_waited())
            continue;
        int is_nearer; /* while one of those that the system has begun is waited for, the next come nearer */
        if (first_wait == 0) {
            first_wait = took;
            is_nearer = is_begun = is_begun || fetch_advise(fetches + i + 1, n - i - 1);
        } else {
            is_nearer = is_begun && (took < first_wait - first_wait / 4 || patience-- > 0);
        }
        if (!is_nearer && can_share && i + 2 < n) {
            team_run(team, fetch_one, fetches + i + 1, n - i - 1);
            break;
        }
    }
    return first_wait > 0 ? FETCH_SLOW : FETCH_QUICK;
}
