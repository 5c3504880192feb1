/* Containers that are written, read and repaired while memory runs out: an allocation fails, or all from one on, or the
 * process may have no more address space. A call does its work or returns DELTAFS_ERR_MEMORY; what it hands out is
 * right; afterwards the container has what was written, and can be gone on with.
 *
 *     torture-memory [--count N] [--seed S] [--case I] [--folder DIR]
 *
 * Case I depends on the seed and I alone. Cases in which nothing failed are not counted. The last line is "torture:
 * memory N tried, L lost, W wrong"; the exit code is 1 if L or W is above 0. A case whose process ends by a signal, or
 * hangs, is wrong.
 *
 * This program's own malloc stands in for the C library's, so that allocations of C++, as Snappy makes them, fail, too.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "files.h"
#include "torture_cases.h"

#define ADDRESS_ROOM (24u << 20) /* bytes of address space that are left, at most */

/* ---- Allocations ---- */

enum fault { FAULT_ONE, FAULT_ALL, FAULT_LARGE, FAULT_SOME, FAULT_SPACE, FAULT_KINDS };
static const char *const fault_names[FAULT_KINDS] = {"allocation", "all allocations from", "all large allocations from",
                                                     "every seventh allocation from", "address space beyond"};

static struct {
    _Atomic int is_armed;
    _Atomic uint64_t count, failed;
    enum fault fault;
    uint64_t at;
} memory;

/* Sanitizers have a malloc of their own: nothing fails then. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HAS_FAULTS 1
#define LARGE      4096

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t n);
void *__libc_memalign(size_t alignment, size_t n);

static int is_refused(size_t n)
{
    if (!memory.is_armed || memory.fault == FAULT_SPACE)
        return 0;
    uint64_t i = memory.count++;
    int is =
        i == memory.at || (i > memory.at && (memory.fault == FAULT_ALL || (memory.fault == FAULT_LARGE && n >= LARGE) ||
                                             (memory.fault == FAULT_SOME && (i - memory.at) % 7 == 0)));
    if (is) {
        memory.failed++;
        errno = ENOMEM;
    }
    return is;
}

void *malloc(size_t n)
{
    return is_refused(n) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return is_refused(n * size) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t n)
{
    return is_refused(n) ? NULL : __libc_realloc(old, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return is_refused(n) ? NULL : __libc_memalign(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    void *bytes = aligned_alloc(alignment, n);

    if (bytes)
        *out = bytes;
    return bytes ? 0 : ENOMEM;
}
#else
#define HAS_FAULTS 0
#endif

/* Bytes of address space that this process has. */
static uint64_t space_used(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%lu", &pages) != 1)
        files_die("/proc/self/statm cannot be read");
    fclose(f);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit_space(uint64_t n)
{
    struct rlimit limit;

    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        files_die("RLIMIT_AS: %m");
}

static void fault_begin(struct torture_rng *r)
{
    memory.fault = (enum fault)torture_below(r, FAULT_KINDS);
    memory.at = memory.fault == FAULT_SPACE ? torture_below(r, ADDRESS_ROOM)
                                            : torture_below(r, UINT64_C(1) << torture_below(r, 11));
    memory.count = memory.failed = 0;
    if (memory.fault == FAULT_SPACE && HAS_FAULTS)
        limit_space(space_used() + memory.at);
    memory.is_armed = 1;
}

static void fault_end(void)
{
    memory.is_armed = 0;
    limit_space(RLIM_INFINITY);
}

/* ---- One case ---- */

/* Bring the container to its next state. Returns whether a call failed. */
static int write_it(struct files *f, struct torture_verdict *v)
{
    char message[1024] = "";
    int status = files_next(f, 0, message);

    fault_end();
    if (status != DELTAFS_OK && status != DELTAFS_ERR_MEMORY)
        torture_wrong(v, "writing returns %d: %s", status, message);
    f->maybe = status != DELTAFS_OK ? f->state + 1 : 0;
    return status != DELTAFS_OK;
}

static int read_it(struct files *f, struct torture_verdict *v)
{
    struct files_reading reading;

    files_check(f, f->state, DELTAFS_ERR_MEMORY, &reading, v);
    fault_end();
    return reading.has_failed;
}

static int repair_it(struct files *f, struct torture_verdict *v)
{
    int is_logical = f->shape.kind == FILES_LOGICAL || f->shape.kind == FILES_INSIDE;
    int status = (is_logical ? deltafs_logical_repair : deltafs_repair)(f->path, NULL, NULL, NULL);

    fault_end();
    if (status != DELTAFS_OK && status != DELTAFS_ERR_MEMORY)
        torture_wrong(v, "repair returns %d: %s", status, deltafs_errmsg(NULL));
    return status != DELTAFS_OK;
}

/* What is there now; a call that failed may have done its work. */
static void check_it(struct files *f, struct torture_verdict *v)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct files_reading reading;
    deltafs_dir *d;
    char kind = '-';

    if (f->state == 0 && (deltafs_kind(f->path, &kind) != DELTAFS_OK || kind == '-'))
        return;
    if (f->state == 0 && f->shape.kind != FILES_DIRECTORY)
        return; /* an index without files, say */
    files_check(f, f->state, DELTAFS_OK, &reading, v);
    if (f->shape.kind == FILES_DIRECTORY && deltafs_open(f->path, NULL, &d) == DELTAFS_OK) {
        if (deltafs_stat(d, &stat) == DELTAFS_OK && stat.epochs > f->state)
            f->state = (size_t)stat.epochs;
        deltafs_close(d);
    }
}

static int run(const char *folder, uint64_t seed, uint64_t i, struct torture_verdict *v)
{
    static int (*const ways[])(struct files * f, struct torture_verdict * v) = {write_it, write_it, read_it, repair_it};
    static const char *const names[] = {"written", "written", "read", "repaired"};
    static struct files f;
    static char about[200];
    struct torture_rng mix = {seed ^ i * 0xd1342543de82ef95u}, r = {torture_next(&mix)};
    struct files_shape shape;
    char root[200], message[1024] = "";

    files_shape_make(&shape, torture_next(&r));
    shape.threads = (const char *const[]){"0", "0", "1", "2"}[torture_below(&r, 4)];
    snprintf(root, sizeof root, "%.180s/s", folder);
    files_init(&f, &shape, root);
    size_t way = (size_t)torture_below(&r, 4),
           states = way >= 2 ? shape.states : (size_t)torture_below(&r, shape.states);
    snprintf(about, sizeof about, "a %s is %s; case", files_kind_names[shape.kind], names[way]);
    *v = (struct torture_verdict){.seed = seed, .about = about, .detail = i};
    for (size_t k = 0; k < states; k++)
        if (files_next(&f, shape.is_killed && k + 1 == states, message) != DELTAFS_OK)
            files_die("seed %ju: %s", (uintmax_t)seed, message);
    fault_begin(&r);
    snprintf(about, sizeof about, "a %s (threads %s, %s) is %s, and fails: %s %ju; case", files_kind_names[shape.kind],
             shape.threads, shape.codec, names[way], fault_names[memory.fault], (uintmax_t)memory.at);
    int has_failed = ways[way](&f, v);
    check_it(&f, v);
    f.maybe = 0;
    if (files_next(&f, 0, message) != DELTAFS_OK)
        torture_lost(v, "it cannot be gone on with: %s", message);
    else
        check_it(&f, v);
    return !HAS_FAULTS || has_failed || memory.failed > 0;
}

int main(int argc, char **argv)
{
    return torture_cases("memory", run, argc, argv);
}
