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

static void crash_at(const struct torture_job *job, const char *path, uint64_t k, struct torture_verdict *v)
{
    struct torture_outcome o = {0};

    torture_remove(path);
    torture_io_begin(TORTURE_CRASH, k, job->seed);
    torture_job_run(job, path, NULL, DELTAFS_ERR_IO, 1, &o, v);
    if (torture_io_open_files() != 0)
        torture_wrong(v, "%d files are left open", torture_io_open_files());
    torture_io_lose_power();
    torture_io_end();
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
        torture_case_begin(&v, seed, "crash at operation", 0);
        v.detail = torture_below(&r, dry_run(&job, path, &v));
        crash_at(&job, path, v.detail, &v);
        torture_case_end(&v, tally);
    }
    torture_remove(path);
}
