#include "torture_io.h"
#include "torture_job.h"
#include "torture_kinds.h"

#define TRIES      3
#define JOBS_LEAST 16 /* that the cases are shared out to */

static const struct {
    enum torture_fault fault;
    int expected; /* status */
    const char *about;
} kinds[] = {{TORTURE_EIO, DELTAFS_ERR_IO, "EIO at operation"},
             {TORTURE_ENOSPC, DELTAFS_ERR_NO_SPACE, "ENOSPC at operation"},
             {TORTURE_SHORT, DELTAFS_OK, "a short count at operation"},
             {TORTURE_EINTR, DELTAFS_OK, "EINTR at operation"},
             {TORTURE_NONE, DELTAFS_OK, "no operation"}};

enum { KINDS = 4, NONE = 4 };

/* The writer's operation k fails; every second time the power goes afterwards, or soon. Returns whether it came to
 * that.
 */
static int fail_write(const struct torture_job *job, const char *path, size_t kind, uint64_t k,
                      struct torture_outcome *o, struct torture_verdict *v)
{
    *o = (struct torture_outcome){0};
    torture_remove(path);
    torture_io_begin(kinds[kind].fault, k, job->seed ^ k);
    if (kinds[kind].fault == TORTURE_EIO && k % 4 == 1)
        torture_io_die(k + 2 + job->seed * k % 50);
    torture_job_run(job, path, NULL, kinds[kind].expected, TRIES, o, v);
    int has_failed = torture_io_has_failed();
    if (torture_io_open_files() != 0)
        torture_wrong(v, "%d files are left open", torture_io_open_files());
    if (k % 2)
        torture_io_lose_power();
    torture_io_end();
    if (torture_job_check(job, path, o, v)) {
        torture_job_go_on(job, path, NULL, DELTAFS_OK, o, v);
        torture_job_check(job, path, o, v);
    }
    return has_failed;
}

/* The reader's operation k fails. */
static int fail_read(const char *path, struct torture_model *m, size_t kind, uint64_t k, struct torture_verdict *v)
{
    deltafs_dir *dir;

    torture_io_begin(kinds[kind].fault, k, k);
    int status = deltafs_open(path, NULL, &dir);
    if (status == DELTAFS_OK) {
        torture_model_check(m, dir, kinds[kind].expected, v);
        status = deltafs_refresh(dir);
        if (status != DELTAFS_OK && status != kinds[kind].expected)
            torture_lost(v, "deltafs_refresh returns %d: %s", status, deltafs_errmsg(dir));
        torture_io_disarm();
        /* What could not be read at the opening is what deltafs_verify reports of this handle. */
        torture_model_check(m, dir, kinds[kind].expected, v);
        deltafs_close(dir);
    } else if (status != kinds[kind].expected) {
        torture_lost(v, "deltafs_open returns %d: %s", status, deltafs_errmsg(NULL));
    }
    if (torture_io_open_files() != 0)
        torture_wrong(v, "%d files are left open", torture_io_open_files());
    int has_failed = torture_io_has_failed();
    torture_io_end();
    return has_failed;
}

/* The turn-th of the numbers 0 .. n - 1: each comes once in n turns, and few turns are spread over all. */
static uint64_t spread(uint64_t turn, uint64_t n)
{
    uint64_t step = n * 5 / 8, a, b;

    do
        for (a = n, b = ++step; b > 0;) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
    while (a != 1);
    return turn * step % n;
}

/* Operations of the job when nothing befalls it, and of reading what it wrote, which is left at `path`. */
static void dry_run(const struct torture_job *job, const char *path, struct torture_outcome *o, uint64_t *writes,
                    uint64_t *reads, struct torture_tally *tally)
{
    struct torture_verdict v;

    torture_case_begin(&v, job->seed, "dry run", 0);
    fail_write(job, path, NONE, 0, o, &v);
    *writes = torture_io_count();
    struct torture_model *m = torture_model_create(&job->shape, o->committed, o->commits);
    fail_read(path, m, NONE, 0, &v);
    *reads = torture_io_count();
    torture_model_destroy(m);
    torture_case_end(&v, tally);
}

/* At most `most` of the cases that a job has. */
static void sweep(const struct torture_job *job, const char *path, int is_reader, uint64_t n, uint64_t most,
                  const struct torture_outcome *written, struct torture_tally *tally)
{
    struct torture_model *m = torture_model_create(&job->shape, written->committed, written->commits);
    struct torture_outcome o;
    struct torture_verdict v;

    for (uint64_t turn = 0, tried = 0; turn < n * KINDS && tried < most; turn++) {
        uint64_t which = spread(turn, n * KINDS), k = which / KINDS;
        size_t kind = which % KINDS;
        torture_case_begin(&v, job->seed, kinds[kind].about, k);
        int has_failed = is_reader ? fail_read(path, m, kind, k, &v) : fail_write(job, path, kind, k, &o, &v);
        /* A short count befalls nothing but reads and writes. */
        if (has_failed || v.is_lost || v.is_wrong) {
            torture_case_end(&v, tally);
            tried++;
        }
    }
    torture_model_destroy(m);
}

void torture_fault(const char *path, uint64_t count, uint64_t seed, struct torture_tally *tally)
{
    struct torture_outcome o;
    struct torture_job job;
    uint64_t writes, reads;

    for (; tally->tried < count; seed++) {
        /* Every fourth is a large one, of which a few. */
        int is_large = seed % 4 == 1;
        uint64_t most = count / JOBS_LEAST / (is_large ? 2 : 1) + 1;
        torture_job_make(&job, seed, is_large ? TORTURE_RUNS : TORTURE_SMALL);
        dry_run(&job, path, &o, &writes, &reads, tally);
        for (int is_reader = 1; is_reader >= 0; is_reader--) {
            uint64_t left = tally->tried < count ? count - tally->tried : 0, some = is_reader ? most / 4 : most;
            sweep(&job, path, is_reader, is_reader ? reads : writes, left < some ? left : some, &o, tally);
        }
    }
    torture_remove(path);
}
