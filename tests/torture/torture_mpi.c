/* The same as torture fault for a job of several ranks, on one of which an operation fails: all ranks get the same
 * status, none waits for ever, and what was committed stays.
 *
 *     torture_mpi --count N --seed S --folder DIR     DIR: one that all ranks see
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>
#include "torture_case.h"
#include "torture_io.h"
#include "torture_job.h"

#define TRIES     3
#define CASES     40 /* of each job */
#define RANKS_MAX 64

static int create(const char *path, const deltafs_options *options, deltafs_dir **out)
{
    return deltafs_mpi_create(MPI_COMM_WORLD, path, options, out);
}

static int reopen(const char *path, const deltafs_options *options, deltafs_dir **out)
{
    return deltafs_mpi_reopen(MPI_COMM_WORLD, path, options, out);
}

static void agree(const char *call, int status)
{
    int mine[2] = {status, -status}, least[2];

    MPI_Allreduce(mine, least, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (least[0] == -least[1])
        return;
    fprintf(stderr, "torture: wrong: %s returns %d here, and from %d to %d elsewhere\n", call, status, least[0],
            -least[1]);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static struct torture_ranks ranks = {.create = create, .reopen = reopen, .agree = agree};

static const struct {
    enum torture_fault fault;
    int expected; /* status */
} kinds[] = {{TORTURE_EIO, DELTAFS_ERR_IO},
             {TORTURE_ENOSPC, DELTAFS_ERR_NO_SPACE},
             {TORTURE_SHORT, DELTAFS_OK},
             {TORTURE_EINTR, DELTAFS_OK},
             {TORTURE_NONE, DELTAFS_OK}};
enum { KINDS = 4, NONE = 4 };

/* The operation k of rank `bad` fails. Returns whether it came to that. Collective. */
static int fail_one(const struct torture_job *job, const char *path, size_t kind, uint64_t k, int bad,
                    struct torture_verdict *v)
{
    struct torture_outcome o = {0};
    int flags[3], all[3];

    if (ranks.rank == 0)
        torture_remove(path);
    MPI_Barrier(MPI_COMM_WORLD);
    torture_io_begin(ranks.rank == bad ? kinds[kind].fault : TORTURE_NONE, k, job->seed ^ k);
    torture_job_run(job, path, &ranks, kinds[kind].expected, TRIES, &o, v);
    flags[0] = torture_io_has_failed();
    if (torture_io_open_files() != 0)
        torture_wrong(v, "%d files are left open by rank %d", torture_io_open_files(), ranks.rank);
    torture_io_end();
    MPI_Barrier(MPI_COMM_WORLD);
    if (ranks.rank == 0)
        torture_job_check(job, path, &o, v);
    flags[1] = v->is_lost;
    flags[2] = v->is_wrong;
    MPI_Allreduce(flags, all, 3, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    v->is_lost = all[1];
    v->is_wrong = all[2];
    return all[0];
}

static void torture_one(const char *path, uint64_t seed, uint64_t count, struct torture_tally *tally)
{
    struct torture_rng r = {seed};
    struct torture_job job;
    struct torture_verdict v;
    unsigned long long mine, n[RANKS_MAX];

    torture_job_make(&job, seed, TORTURE_SMALL);
    job.shape.key_kind = 2; /* each once: those of several ranks come in any order */
    torture_case_begin(&v, seed, "no operation", 0);
    fail_one(&job, path, NONE, 0, 0, &v);
    mine = torture_io_count();
    MPI_Allgather(&mine, 1, MPI_UNSIGNED_LONG_LONG, n, 1, MPI_UNSIGNED_LONG_LONG, MPI_COMM_WORLD);
    torture_case_end(&v, tally);
    for (int i = 0; i < CASES && tally->tried < count; i++) {
        int bad = (int)torture_below(&r, (uint64_t)ranks.ranks);
        torture_case_begin(&v, seed, "on some rank, operation", torture_below(&r, n[bad]));
        if (fail_one(&job, path, torture_below(&r, KINDS), v.detail, bad, &v) || v.is_lost || v.is_wrong)
            torture_case_end(&v, tally);
    }
}

int main(int argc, char **argv)
{
    struct torture_tally tally = {0};
    struct torture_options o = {.count = 0};
    char path[300];
    int code = EXIT_FAILURE;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks.ranks);
    if (!torture_options_parse(argc, argv, 1, &o) || o.count == 0 || !o.folder || ranks.ranks > RANKS_MAX) {
        fputs("usage: torture_mpi --count N --seed S --folder DIR\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    snprintf(path, sizeof path, "%s/mpi", o.folder);
    while (tally.tried < o.count)
        torture_one(path, o.seed++, o.count, &tally);
    if (ranks.rank == 0) {
        torture_remove(path);
        code = torture_case_report("fault", &tally);
    }
    MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return code;
}
