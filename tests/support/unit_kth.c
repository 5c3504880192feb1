#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "fake_io.h"
#include "unit_help.h"
#include "unit_kth.h"

static struct {
    struct fake_io fake;
    uint64_t k;
    _Atomic uint64_t count;
    int errnum, is_by_thread;
} kth;
static _Thread_local int is_counted;

/* Stands in for libc's. A lease that could not be locked waits for a second for others, and here are none. */
__attribute__((visibility("default"))) int nanosleep(const struct timespec *t, struct timespec *rest)
{
    return t->tv_sec > 0 && kth.fake.fn ? 0 : (int)syscall(SYS_nanosleep, t, rest);
}

static ssize_t kth_do(struct fake_call *c)
{
    int is_now = (!kth.is_by_thread || is_counted) && kth.count++ == kth.k;
    ssize_t rc = 0;

    switch (c->op) {
    case FAKE_SYNC: /* nothing here is about power: syncing for real would only take time */
    case FAKE_SYNC_FOLDER:
        break;
    case FAKE_CLOSE: /* one that fails has closed nevertheless */
        rc = fake_do(c);
        break;
    case FAKE_WRITE:
        c->n = is_now ? c->n / 2 : c->n;
        rc = fake_do(c);
        CHECK(!is_now || rc >= 0);
        break;
    default:
        rc = is_now ? 0 : fake_do(c);
    }
    return is_now ? -kth.errnum : rc;
}

void unit_kth_begin(struct io *out, uint64_t k, int errnum)
{
    kth.k = k;
    kth.count = 0;
    kth.errnum = errnum;
    kth.is_by_thread = 0;
    fake_io_init(&kth.fake, kth_do);
    *out = (struct io){.ops = &kth.fake.ops, .ctx = &kth.fake};
}

void unit_kth_begin_default(uint64_t k, int errnum)
{
    struct io io;

    unit_kth_begin(&io, k, errnum);
    kth.is_by_thread = 1;
    io_replace_default(io.ops, io.ctx);
}

void unit_kth_count(int is_on)
{
    is_counted = is_on;
}

int unit_kth_has_failed(void)
{
    return kth.count > kth.k;
}

int unit_kth_end(void)
{
    CHECK_IS(fake_io_end(&kth.fake), 0);
    return unit_kth_has_failed();
}
