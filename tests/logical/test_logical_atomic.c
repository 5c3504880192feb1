/* Atomic mode of a logical file. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "logical/format/logical_format.h"
#include "logical/logical.h"
#include "unit_help.h"
#include "unit_io.h"
#include "unit_team.h"

/* ---- Writes in between ---- */

/* Two processes write while a third looks: the second one, at LATER, begins when the first one, at FIRST, has ended. */
#define FIRST 100
#define LATER 50

struct writers {
    deltafs_logical *first, *later;
    int is_client_cached; /* they turn to atomic mode only then */
    pthread_t thread;
    atomic_int have_written;
    int failures;
};

static void *write_both(void *arg)
{
    struct writers *w = arg;

    if (w->is_client_cached) {
        w->failures += FAILED(deltafs_logical_set_atomic(w->first, 1));
        w->failures += FAILED(deltafs_logical_set_atomic(w->later, 1));
    }
    w->failures += FAILED(deltafs_logical_write(w->first, FIRST, "a", 1));
    w->failures += FAILED(deltafs_logical_write(w->later, LATER, "b", 1));
    atomic_store(&w->have_written, 1);
    return NULL;
}

/* The reader waits for them no longer than they need, or 0.3 s if it is they who wait. */
static void write_meanwhile(void *arg)
{
    struct writers *w = arg;

    CHECK_IS(pthread_create(&w->thread, NULL, write_both, w), 0);
    for (int i = 0; i < 300 && !atomic_load(&w->have_written); i++)
        usleep(1000);
}

static deltafs_logical *open_writer(const char *path)
{
    deltafs_logical *f;

    CHECK_IS(deltafs_logical_open(path, O_RDWR | O_CREAT, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_write(f, 0, "o", 1), DELTAFS_OK);
    CHECK_IS(deltafs_logical_sync(f), DELTAFS_OK);
    return f;
}

/* What the reader finds. */
struct found {
    uint64_t size, start, end;
    size_t got;
    char bytes[200];
};

enum way { BY_READ, BY_SIZE, BY_NEXT, WAYS };

static void look(deltafs_logical *f, enum way way, struct found *x)
{
    *x = (struct found){0};
    if (way == BY_READ)
        CHECK_IS(deltafs_logical_read(f, 0, x->bytes, sizeof x->bytes, &x->got), DELTAFS_OK);
    else if (way == BY_SIZE)
        CHECK_IS(deltafs_logical_size(f, &x->size), DELTAFS_OK);
    else
        CHECK_IS(deltafs_logical_next(f, LATER + 1, &x->start, &x->end), DELTAFS_OK);
}

/* With the later write alone the file would end behind that. */
static void check_order(const struct found *x, enum way way)
{
    if (way == BY_READ)
        CHECK(x->got == 1 || x->got == FIRST + 1);
    else if (way == BY_SIZE)
        CHECK(x->size == 1 || x->size == FIRST + 1);
    else
        CHECK(x->start == 1 || x->start == FIRST);
}

static void run_between(enum way way, int mode, int is_client_cached)
{
    const char *path = unit_path("between.%d.%d.%d", way, mode, is_client_cached);
    struct writers w = {.is_client_cached = is_client_cached};
    deltafs_logical *f;
    struct found x;

    unit_io_begin();
    w.first = open_writer(path);
    w.later = open_writer(path);
    CHECK_IS(deltafs_logical_open(path, mode, NULL, &f), DELTAFS_OK);
    for (int i = 0; i < 2 && !is_client_cached; i++)
        CHECK_IS(deltafs_logical_set_atomic(i == 0 ? w.first : w.later, 1), DELTAFS_OK);
    CHECK_IS(deltafs_logical_set_atomic(f, 1), DELTAFS_OK);
    /* The first one's log has been read. */
    unit_io_call(OP_OPEN, "s00000001/w00000000.extents", write_meanwhile, &w);
    look(f, way, &x);
    CHECK_IS(pthread_join(w.thread, NULL), 0);
    CHECK_IS(w.failures, 0);
    check_order(&x, way);
    look(f, BY_READ, &x);
    CHECK(x.got == FIRST + 1 && x.bytes[FIRST] == 'a' && x.bytes[LATER] == 'b');
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(w.first), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(w.later), DELTAFS_OK);
    unit_io_end();
}

/* Nobody sees a write without those that had ended before it began. */
static void test_between(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        run_between((enum way)way, O_RDWR, 0);
        run_between((enum way)way, O_RDONLY, 0);
        run_between((enum way)way, O_RDONLY, 1);
    }
}

/* ---- The gate ---- */

/* What comes while a reader has the lock: a writer, and then another reader. */
struct queue {
    const char *path;
    deltafs_logical *writer, *reader;
    int (*change)(deltafs_logical *f); /* what the writer does */
    pthread_t thread[2];
    int is_shut; /* the gate, once the writer waits */
    int status;
    struct found found; /* by the later reader */
};

static void *queue_change(void *arg)
{
    struct queue *q = arg;

    q->status = q->change(q->writer);
    return NULL;
}

static void *queue_read(void *arg)
{
    struct queue *q = arg;
    struct found *x = &q->found;

    if (deltafs_logical_read(q->reader, 0, x->bytes, sizeof x->bytes, &x->got) != DELTAFS_OK)
        x->got = sizeof x->bytes;
    return NULL;
}

/* Who waits to write has shut the gate. */
static int queue_wait(const struct queue *q)
{
    char path[512];
    int is_shut = 0;

    snprintf(path, sizeof path, "%s/LOCK", q->path);
    int fd = open(path, O_RDONLY);
    for (int i = 0; i < 10000 && !is_shut; i++) {
        struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = LOCK_GATE, .l_len = 1};
        CHECK_IS(fcntl(fd, F_OFD_GETLK, &lock), 0);
        is_shut = lock.l_type != F_UNLCK;
        if (!is_shut)
            usleep(1000);
    }
    close(fd);
    return is_shut;
}

static void queue_up(void *arg)
{
    struct queue *q = arg;

    CHECK_IS(pthread_create(&q->thread[0], NULL, queue_change, q), 0);
    q->is_shut = queue_wait(q);
    uint64_t locks = unit_io_count(OP_LOCK);
    CHECK_IS(pthread_create(&q->thread[1], NULL, queue_read, q), 0);
    while (unit_io_count(OP_LOCK) == locks)
        usleep(100);
}

static void run_queue(const char *name, int (*change)(deltafs_logical *f), size_t size)
{
    struct queue q = {.path = unit_path("%s", name), .change = change};
    deltafs_logical *f;
    struct found x;

    unit_io_begin();
    q.writer = open_writer(q.path);
    CHECK_IS(deltafs_logical_set_atomic(q.writer, 1), DELTAFS_OK);
    CHECK_IS(deltafs_logical_open(q.path, O_RDONLY, NULL, &q.reader), DELTAFS_OK);
    CHECK_IS(deltafs_logical_set_atomic(q.reader, 1), DELTAFS_OK);
    CHECK_IS(deltafs_logical_open(q.path, O_RDWR, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_set_atomic(f, 1), DELTAFS_OK);
    unit_io_call(OP_OPEN, "w00000000.extents", queue_up, &q);
    look(f, BY_READ, &x);
    for (int i = 0; i < 2; i++)
        CHECK_IS(pthread_join(q.thread[i], NULL), 0);
    CHECK_IS(q.status, DELTAFS_OK);
    CHECK(q.is_shut);
    CHECK_IS(x.got, 1);
    CHECK_IS(q.found.got, size);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(q.reader), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(q.writer), DELTAFS_OK);
    unit_io_end();
}

static int change_by_write(deltafs_logical *f)
{
    return deltafs_logical_write(f, FIRST, "a", 1);
}

static int change_by_truncate(deltafs_logical *f)
{
    return deltafs_logical_truncate(f, LATER);
}

static int change_by_extend(deltafs_logical *f)
{
    return deltafs_logical_extend(f, LATER);
}

/* Readers share the lock, but who comes when a writer waits comes after it: else a few of them, one after another, made
 * it wait for seconds. */
static void test_queue(void **state)
{
    (void)state;
    run_queue("queue", change_by_write, FIRST + 1);
}

/* The file's size is changed as its bytes are: not while somebody looks. */
static void test_queue_size(void **state)
{
    (void)state;
    run_queue("cut", change_by_truncate, LATER);
    run_queue("longer", change_by_extend, LATER);
}

/* Without locks there is no atomic mode, for readers either; but no lock is needed where nobody has written in it. */
static void test_no_locks(void **state)
{
    const char *path = unit_path("locks");
    deltafs_logical *w, *f;
    uint64_t size;

    (void)state;
    unit_io_begin();
    w = open_writer(path);
    CHECK_IS(deltafs_logical_open(path, O_RDONLY, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_set_atomic(f, 1), DELTAFS_OK);
    CHECK_IS(deltafs_logical_size(f, &size), DELTAFS_OK);
    CHECK(!unit_exists(unit_path("locks/LOCK")));
    CHECK_IS(deltafs_logical_set_atomic(f, 0), DELTAFS_OK);
    unit_io_fail(OP_LOCK, "LOCK", 0, UINT64_MAX, ENOLCK);
    CHECK_IS(deltafs_logical_set_atomic(w, 1), DELTAFS_ERR_IO);
    CHECK(strstr(deltafs_errmsg(NULL), "must have locks"));
    CHECK_IS(deltafs_logical_set_atomic(f, 1), DELTAFS_ERR_IO);
    CHECK(strstr(deltafs_errmsg(NULL), "must have locks"));
    unit_io_fail(OP_LOCK, "LOCK", 0, 0, 0);
    CHECK_IS(deltafs_logical_set_atomic(f, 1), DELTAFS_OK);
    unit_io_fail(OP_LOCK, "LOCK", 0, UINT64_MAX, EIO);
    CHECK_IS(deltafs_logical_size(f, &size), DELTAFS_ERR_IO);
    unit_io_fail(OP_LOCK, "LOCK", 0, 0, 0);
    CHECK_IS(deltafs_logical_size(f, &size), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(w), DELTAFS_OK);
    unit_io_end();
}

/* ---- Memory ---- */

#define RANKS  2
#define WRITES 20000 /* of each rank: their extents would not fit the memory */
#define AHEAD  60000 /* of one rank, before another one writes LATE times */
#define LATE   10
#define PIECES 1000

struct part {
    struct unit_member member;
    const char *path;
    pthread_t thread;
    deltafs_logical *f;
    char wrong[1000];
    int line;
};

static void part_open(struct part *p)
{
    struct collective group = unit_team_group(&p->member);
    deltafs_options *o = unit_options("memory", "8M", NULL);
    struct error e = {0};

    if (deltafs_private_logical_open_group(p->path, O_RDWR | O_CREAT, o, &group, &p->f, &e) != DELTAFS_OK)
        abort();
    deltafs_options_destroy(o);
}

/* Runs it as two ranks. */
static const char *run_parts(const char *name, void *(*function)(void *))
{
    static char path[4096];
    struct part part[RANKS];
    struct unit_team team;

    snprintf(path, sizeof path, "%s", unit_path("%s", name));
    unit_team_init(&team, RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        part[i] = (struct part){.member = {&team, i}, .path = path};
        CHECK_IS(pthread_create(&part[i].thread, NULL, function, &part[i]), 0);
    }
    for (uint32_t i = 0; i < RANKS; i++)
        pthread_join(part[i].thread, NULL);
    unit_team_fini(&team);
    for (uint32_t i = 0; i < RANKS; i++)
        if (part[i].wrong[0])
            fail_msg("%s: rank %u, line %d: %s", name, i, part[i].line, part[i].wrong);
    return path;
}

static atomic_int is_ahead; /* the first rank has written all */

/* Rank 0 writes the numbers from 0 on, and the other those from `from` on, up to `n`. */
static void part_write_all(struct part *p, uint32_t from, uint32_t n)
{
    PART_CHECK(p, deltafs_logical_set_atomic(p->f, 1) == DELTAFS_OK);
    while (from > 0 && p->member.rank > 0 && !atomic_load(&is_ahead))
        usleep(1000);
    for (uint32_t i = p->member.rank > 0 ? from : 0; i < n; i++)
        PART_CHECK(p, deltafs_logical_write(p->f, sizeof i * p->member.rank, &i, sizeof i) == DELTAFS_OK);
    atomic_store(&is_ahead, 1);
    PART_CHECK(p, deltafs_logical_close(p->f) == DELTAFS_OK);
}

static void *part_write_much(void *arg)
{
    part_open(arg);
    part_write_all(arg, 0, WRITES);
    return NULL;
}

static void *part_write_ahead(void *arg)
{
    part_open(arg);
    part_write_all(arg, AHEAD - LATE, AHEAD);
    return NULL;
}

static void check_many(const char *path, uint32_t n)
{
    uint32_t last[RANKS] = {0};
    struct deltafs_logical_stat stat = {.struct_size = sizeof stat};
    deltafs_logical *f;
    size_t got;

    CHECK_IS(deltafs_logical_open(path, O_RDONLY, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_read(f, 0, last, sizeof last, &got), DELTAFS_OK);
    CHECK(got == sizeof last && last[0] == n - 1 && last[1] == n - 1);
    CHECK_IS(deltafs_logical_stat(f, &stat), DELTAFS_OK);
    CHECK(stat.is_closed);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
}

/* In atomic mode nothing is kept to be exchanged. */
static void test_many_writes(void **state)
{
    (void)state;
    check_many(run_parts("many", part_write_much), WRITES);
    /* The other reads all extents of the one that is far ahead. */
    atomic_store(&is_ahead, 0);
    check_many(run_parts("ahead", part_write_ahead), AHEAD);
}

static void part_write_pieces(struct part *p, uint64_t from)
{
    static const char bytes[PIECES];
    struct deltafs_extent x[PIECES];

    for (uint64_t i = 0; i < PIECES; i++)
        x[i] = (struct deltafs_extent){from + i * i * 7 + i, 1};
    PART_CHECK(p, deltafs_logical_write_list(p->f, PIECES, x, bytes) == DELTAFS_OK);
}

static void *part_lack_memory(void *arg)
{
    struct part *p = arg;
    uint64_t end, room;
    char byte;
    size_t got;

    part_open(p);
    part_write_pieces(p, 0);
    PART_CHECK(p, deltafs_logical_sync(p->f) == DELTAFS_OK);
    end = p->f->extents.end;
    room = p->f->unpublished.buffer.capacity;
    part_write_pieces(p, 100);
    PART_CHECK(p, deltafs_logical_read(p->f, 0, &byte, 1, &got) == DELTAFS_OK);
    PART_CHECK(p, p->f->unpublished.used > 0 && p->f->unpublished.used <= room);
    size_t n = p->f->unpublished.used;
    /* What the others shall be told has no room. */
    buffer_fini(&p->f->batches.buffer);
    p->f->batches.buffer.memory = &p->f->memory;
    p->f->memory.limit = p->f->memory.used;
    PART_CHECK(p, deltafs_logical_sync(p->f) == DELTAFS_ERR_MEMORY);
    p->f->memory.limit = 4 << 20;
    PART_CHECK(p, p->f->extents.end == end);
    PART_CHECK(p, deltafs_logical_sync(p->f) == DELTAFS_OK);
    PART_CHECK(p, p->f->extents.end == end + n);
    part_write_pieces(p, 200);
    PART_CHECK(p, deltafs_logical_read(p->f, 0, &byte, 1, &got) == DELTAFS_OK);
    p->f->memory.limit = p->f->memory.used;
    PART_CHECK(p, deltafs_logical_close(p->f) == DELTAFS_OK);
    return NULL;
}

/* What did not fit is published once, when there is room; and at the close there always is. */
static void test_lack_memory(void **state)
{
    (void)state;
    const char *path = run_parts("lack", part_lack_memory);
    deltafs_logical *f;
    uint64_t size;

    CHECK_IS(deltafs_logical_open(path, O_RDONLY, NULL, &f), DELTAFS_OK);
    CHECK_IS(deltafs_logical_size(f, &size), DELTAFS_OK);
    CHECK_IS(size, 200 + (uint64_t)(PIECES - 1) * (PIECES - 1) * 7 + PIECES);
    CHECK_IS(deltafs_logical_verify(f, NULL, NULL, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_logical_close(f), DELTAFS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_between),     cmocka_unit_test(test_queue),
                                       cmocka_unit_test(test_queue_size),  cmocka_unit_test(test_no_locks),
                                       cmocka_unit_test(test_many_writes), cmocka_unit_test(test_lack_memory)};

    return cmocka_run_group_tests_name("atomic mode of a logical file", tests, unit_setup, unit_teardown) == 0 ? 0 : 1;
}
