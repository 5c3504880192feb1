/* Small jobs, of all sorts, from a seed: a directory is made, gets some epochs, and is closed. What calls returned says
 * what must be on disk then, whatever befell the job. */
#ifndef DELTAFS_TORTURE_JOB_H
#define DELTAFS_TORTURE_JOB_H

#include "torture_model.h"

#define TORTURE_STEPS 6

struct torture_job {
    uint64_t seed;
    struct torture_shape shape;
    struct torture_step {
        struct torture_epoch epoch;
        int is_cancelled; /* by the program */
        int then_waits;   /* for its commit */
        int then_reopens; /* the directory */
    } step[TORTURE_STEPS];
    size_t steps;
};

/* What is known of a directory. */
struct torture_outcome {
    int is_made; /* by a call that said so */
    struct torture_epoch committed[TORTURE_EPOCHS];
    size_t commits;
    struct torture_epoch maybe[TORTURE_EPOCHS]; /* of these one is committed, too, or none */
    size_t maybes;
    unsigned failures; /* of calls */
};

/* How much a job writes: few records; enough for several runs of an epoch; for several segments; for a file system of
 * 1 MiB. */
enum torture_size { TORTURE_SMALL, TORTURE_RUNS, TORTURE_SEGMENTS, TORTURE_FULL };
void torture_job_make(struct torture_job *job, uint64_t seed, enum torture_size size);

/* A job of several ranks: how it differs on one of them. */
struct torture_ranks {
    int rank, ranks;
    int (*create)(const char *path, const deltafs_options *options, deltafs_dir **out);
    int (*reopen)(const char *path, const deltafs_options *options, deltafs_dir **out);
    void (*agree)(const char *call, int status); /* that all got the same; ends the job if not */
};

/* Do it all. Calls may fail with the status `expected` (DELTAFS_OK: with none); an epoch that did is tried `tries`
 * times in all, with other records each time, then the directory is closed. `ranks` is NULL for one process. */
void torture_job_run(const struct torture_job *job, const char *path, const struct torture_ranks *ranks, int expected,
                     unsigned tries, struct torture_outcome *o, struct torture_verdict *v);

/* Reopen the directory, write one more epoch, and close it. What is committed must be known. */
void torture_job_go_on(const struct torture_job *job, const char *path, const struct torture_ranks *ranks, int expected,
                       struct torture_outcome *o, struct torture_verdict *v);

/* Compare what is on disk, by the operating system's operations. Resolves what may be committed. Returns 0 if there is
 * no directory, and need not be. */
int torture_job_check(const struct torture_job *job, const char *path, struct torture_outcome *o,
                      struct torture_verdict *v);

void torture_remove(const char *path); /* with all in it */

#endif
