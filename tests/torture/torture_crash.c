#include <string.h>
#include "torture_io.h"
#include "torture_job.h"
#include "torture_kinds.h"

/* Operations of the job when nothing befalls it. */
static uint64_t dry_run(const struct torture_job *job, const char *path, struct torture_verdict *v)
{
    struct torture_outcome o = {0};

    torture_remove(path);
    torture_io_begin(TORTURE_NONE, 0, job->seed);
    torture_job_run(job, path, NULL, DELTAFS_OK, 1, &o, v);
    uint64_t n = torture_io_count();
    torture_io_end();
    torture_job_check(job, path, &o, v);
    return n;
}

/* Whether a job crashes for the first time, or the one that goes on behind it. */
static int crash_at(const struct torture_job *job, const char *path, int is_second, uint64_t k,
                    struct torture_outcome *o, struct torture_verdict *v)
{
    torture_io_begin(TORTURE_CRASH, k, job->seed);
    if (is_second)
        torture_job_go_on(job, path, NULL, DELTAFS_ERR_IO, o, v);
    else
        torture_job_run(job, path, NULL, DELTAFS_ERR_IO, 1, o, v);
    if (torture_io_open_files() != 0)
        torture_wrong(v, "%d files are left open", torture_io_open_files());
    torture_io_lose_power();
    torture_io_end();
    return torture_job_check(job, path, o, v);
}

static void crash(const struct torture_job *job, const char *path, struct torture_rng *r, struct torture_verdict *v)
{
    struct torture_outcome o = {0};
    int is_client_cached = strcmp(job->shape.sync, "close") == 0; /* nothing is promised before */
    uint64_t n = dry_run(job, path, v);

    v->detail = is_client_cached           ? n
                : torture_below(r, 3) == 0 ? torture_io_manifest(torture_next(r))
                                           : torture_below(r, n);
    torture_remove(path);
    if (!crash_at(job, path, 0, v->detail, &o, v))
        return;
    if (!is_client_cached && torture_below(r, 2) && !crash_at(job, path, 1, torture_below(r, 80), &o, v))
        return;
    torture_job_go_on(job, path, NULL, DELTAFS_OK, &o, v);
    torture_job_check(job, path, &o, v);
}

void torture_crash(const char *path, uint64_t count, uint64_t seed, struct torture_tally *tally)
{
    struct torture_verdict v;
    struct torture_job job;

    for (; tally->tried < count; seed++) {
        struct torture_rng r = {seed ^ 0xc4a5};
        uint64_t dice = torture_below(&r, 64);
        torture_job_make(&job, seed, dice < 1 ? TORTURE_SEGMENTS : dice < 8 ? TORTURE_RUNS : TORTURE_SMALL);
        if (torture_below(&r, 8) == 0)
            job.shape.sync = "close";
        torture_case_begin(&v, seed, "crash at operation", 0);
        crash(&job, path, &r, &v);
        torture_case_end(&v, tally);
    }
    torture_remove(path);
}
