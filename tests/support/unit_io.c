#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include "unit_help.h"
#include "unit_io.h"

static struct {
    struct fake_io fake;
    pthread_mutex_t lock;
    pthread_cond_t released;
    unsigned slow[OP_COUNT];
    uint64_t count[OP_COUNT];
    unsigned now[OP_COUNT], most[OP_COUNT];
    const char *held; /* NULL: none */
    uint64_t held_count;
    struct {
        enum unit_op op;
        const char *name;
        uint64_t skip, count;
        int errnum;
    } rule;
    uint64_t failures;
    struct {
        enum unit_op op;
        const char *name; /* NULL: none */
        void (*fn)(void *arg);
        void *arg;
    } call;
    int is_fake, direct_errnum, is_short;
    const char *shrunk; /* NULL: none */
    uint64_t shrunk_size;
} io = {.lock = PTHREAD_MUTEX_INITIALIZER, .released = PTHREAD_COND_INITIALIZER};

/* Come in, wait, and say whether it fails; the operation itself follows, and unit_leave. */
static int unit_enter(enum unit_op op, const char *path)
{
    int rc = 0, is_called;

    pthread_mutex_lock(&io.lock);
    is_called = io.call.name && io.call.op == op && strstr(path, io.call.name);
    if (is_called)
        io.call.name = NULL;
    pthread_mutex_unlock(&io.lock);
    if (is_called)
        io.call.fn(io.call.arg);
    pthread_mutex_lock(&io.lock);
    io.count[op]++;
    if (++io.now[op] > io.most[op])
        io.most[op] = io.now[op];
    if (op == OP_WRITE && io.held && strstr(path, io.held)) {
        io.held_count++;
        while (io.held && strstr(path, io.held))
            pthread_cond_wait(&io.released, &io.lock);
    }
    if (io.rule.count > 0 && io.rule.op == op && strstr(path, io.rule.name)) {
        if (io.rule.skip > 0) {
            io.rule.skip--;
        } else {
            io.rule.count--;
            io.failures++;
            rc = -io.rule.errnum;
        }
    }
    unsigned slow = io.slow[op];
    pthread_mutex_unlock(&io.lock);
    if (slow > 0)
        usleep(slow);
    return rc;
}

static void unit_leave(enum unit_op op)
{
    pthread_mutex_lock(&io.lock);
    io.now[op]--;
    pthread_mutex_unlock(&io.lock);
}

static ssize_t unit_write_direct(struct fake_call *c)
{
    ssize_t rc = unit_enter(OP_DIRECT, c->path);

    if (rc == 0 && io.is_fake) {
        if ((uintptr_t)c->data % 512 != 0 || c->n % 512 != 0 || c->offset % 512 != 0 || io.direct_errnum)
            rc = -(io.direct_errnum ? io.direct_errnum : EINVAL);
        c->n = io.is_short ? c->n / 2 + 100 : c->n;
    }
    rc = rc ? rc : fake_do(c);
    unit_leave(OP_DIRECT);
    return rc;
}

static ssize_t unit_attributes(struct fake_call *c)
{
    ssize_t rc = fake_do(c);

    if (io.shrunk && strstr(c->path, io.shrunk)) {
        io.shrunk = NULL;
        CHECK(truncate(c->path, (off_t)io.shrunk_size) == 0);
    }
    return rc;
}

/* Nothing here is about power: syncing for real would only take time. */
static ssize_t unit_really(struct fake_call *c)
{
    switch (c->op) {
    case FAKE_OPEN:
        c->flags &= io.is_fake ? ~O_DIRECT : ~0;
        return fake_do(c);
    case FAKE_WRITE:
        return c->flags & O_DIRECT ? unit_write_direct(c) : fake_do(c);
    case FAKE_SYNC:
    case FAKE_SYNC_FOLDER:
        return 0;
    case FAKE_ATTRIBUTES:
        return unit_attributes(c);
    default:
        return fake_do(c);
    }
}

static ssize_t unit_do(struct fake_call *c)
{
    if (c->op == FAKE_LOCK && c->flags != IO_LOCK && c->flags != IO_LOCK_SHARED)
        return fake_do(c);
    ssize_t rc = unit_enter((enum unit_op)c->op, c->path);
    rc = rc ? rc : unit_really(c);
    unit_leave((enum unit_op)c->op);
    return rc;
}

void unit_io_begin(void)
{
    memset(io.slow, 0, sizeof io.slow);
    memset(io.count, 0, sizeof io.count);
    memset(io.now, 0, sizeof io.now);
    memset(io.most, 0, sizeof io.most);
    memset(&io.rule, 0, sizeof io.rule);
    memset(&io.call, 0, sizeof io.call);
    io.held = io.shrunk = NULL;
    io.held_count = io.failures = 0;
    io.is_fake = io.direct_errnum = io.is_short = 0;
    io_replace_default(NULL, NULL);
    fake_io_begin(&io.fake, unit_do);
}

void unit_io_end(void)
{
    CHECK_IS(fake_io_end(&io.fake), 0);
}

void unit_io_slow(enum unit_op op, unsigned microseconds)
{
    pthread_mutex_lock(&io.lock);
    io.slow[op] = microseconds;
    pthread_mutex_unlock(&io.lock);
}

void unit_io_hold(const char *name)
{
    pthread_mutex_lock(&io.lock);
    io.held = name;
    io.held_count = 0;
    pthread_mutex_unlock(&io.lock);
}

void unit_io_release(void)
{
    pthread_mutex_lock(&io.lock);
    io.held = NULL;
    pthread_cond_broadcast(&io.released);
    pthread_mutex_unlock(&io.lock);
}

uint64_t unit_io_held(void)
{
    pthread_mutex_lock(&io.lock);
    uint64_t n = io.held_count;
    pthread_mutex_unlock(&io.lock);
    return n;
}

void unit_io_fail(enum unit_op op, const char *name, uint64_t skip, uint64_t count, int errnum)
{
    pthread_mutex_lock(&io.lock);
    io.rule.op = op;
    io.rule.name = name;
    io.rule.skip = skip;
    io.rule.count = count;
    io.rule.errnum = errnum;
    io.failures = 0;
    pthread_mutex_unlock(&io.lock);
}

void unit_io_call(enum unit_op op, const char *name, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&io.lock);
    io.call.op = op;
    io.call.name = name;
    io.call.fn = fn;
    io.call.arg = arg;
    pthread_mutex_unlock(&io.lock);
}

uint64_t unit_io_failures(void)
{
    pthread_mutex_lock(&io.lock);
    uint64_t n = io.failures;
    pthread_mutex_unlock(&io.lock);
    return n;
}

uint64_t unit_io_count(enum unit_op op)
{
    pthread_mutex_lock(&io.lock);
    uint64_t n = io.count[op];
    pthread_mutex_unlock(&io.lock);
    return n;
}

unsigned unit_io_most(enum unit_op op)
{
    pthread_mutex_lock(&io.lock);
    unsigned n = io.most[op];
    pthread_mutex_unlock(&io.lock);
    return n;
}

void unit_io_shrink(const char *name, uint64_t size)
{
    io.shrunk = name;
    io.shrunk_size = size;
}

void unit_io_fake_direct(int errnum, int is_short)
{
    pthread_mutex_lock(&io.lock);
    io.is_fake = 1;
    io.direct_errnum = errnum;
    io.is_short = is_short;
    pthread_mutex_unlock(&io.lock);
}

struct unit_cached unit_cached;

int unit_cached_refresh(void)
{
    unit_cached.left -= unit_cached.left > 0;
    unit_cached.asked++;
    return unit_cached.is_client_cached;
}
