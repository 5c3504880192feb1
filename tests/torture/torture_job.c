#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "torture_job.h"

/* ---- Choosing ---- */

static void choose_shape(struct torture_shape *s, enum torture_size size, struct torture_rng *r)
{
    *s = (struct torture_shape){
        .partitions = TORTURE_PICK(r, "1", "2", "3", "5"),
        .keys = TORTURE_PICK(r, "u64", "u64", "bytes"),
        .value_size = TORTURE_PICK(r, "0", "8", "40", "any", "any"),
        .codec = TORTURE_PICK(r, "snappy", "none"),
        .threads = TORTURE_PICK(r, "0", "0", "1", "2"),
        .commit = TORTURE_PICK(r, "wait", "async"),
        .sync = "commit",
        .memory = "8M",
        .key_kind = torture_below(r, 3),
        .place = TORTURE_PICK(r, "partitioned", "partitioned", "local"),
        .partitioner = TORTURE_PICK(r, "hash", "hash", "range"),
    };
    if (size == TORTURE_RUNS) {
        s->threads = TORTURE_PICK(r, "0", "2", "2", "3");
        /* Of values of any size and in little memory there would be no threads. */
        s->value_size = strcmp(s->threads, "0") == 0 ? TORTURE_PICK(r, "4000", "any") : "4000";
        s->memory = strcmp(s->threads, "0") == 0 ? "8M" : "32M";
    }
    if (size == TORTURE_SEGMENTS) {
        s->value_size = "8";
        s->key_kind = 2;
    }
    if (strcmp(s->keys, "bytes") == 0)
        s->partitioner = "hash";
    /* Several ranks with keys of bytes need room for the longest record and its pieces, twice. */
    if (strcmp(s->keys, "bytes") == 0 && strcmp(s->memory, "8M") == 0)
        s->memory = "16M";
    s->size_max = strcmp(s->value_size, "any") == 0 ? 200 : (uint32_t)strtoul(s->value_size, NULL, 10);
    if (size == TORTURE_RUNS && s->size_max == 200)
        s->size_max = TORTURE_VALUE_MAX;
}

static uint32_t choose_records(enum torture_size size, struct torture_rng *r)
{
    switch (size) {
    case TORTURE_RUNS:
        return 1200 + (uint32_t)torture_below(r, 1000);
    case TORTURE_SEGMENTS:
        return 150000 + (uint32_t)torture_below(r, 50000);
    case TORTURE_FULL:
        return (uint32_t)torture_below(r, 6000);
    default:
        return torture_below(r, 8) == 0 ? 0 : (uint32_t)torture_below(r, 300);
    }
}

void torture_job_make(struct torture_job *job, uint64_t seed, enum torture_size size)
{
    struct torture_rng r = {seed};
    uint64_t label = torture_below(&r, 3);

    *job = (struct torture_job){.seed = seed};
    choose_shape(&job->shape, size, &r);
    job->steps = size == TORTURE_SMALL || size == TORTURE_FULL ? 2 + torture_below(&r, TORTURE_STEPS - 1) : 2;
    for (size_t i = 0; i < job->steps; i++) {
        struct torture_step *s = &job->step[i];
        s->epoch =
            (struct torture_epoch){.label = label, .seed = torture_next(&r), .records = choose_records(size, &r)};
        s->is_cancelled = torture_below(&r, 8) == 0;
        s->then_waits = torture_below(&r, 3) == 0;
        s->then_reopens = torture_below(&r, 4) == 0;
        label += 1 + torture_below(&r, 20);
    }
}

/* ---- Running ---- */

struct run {
    const struct torture_job *job;
    const struct torture_ranks *ranks; /* NULL: one process */
    int expected;
    deltafs_dir *dir;
    struct torture_outcome *o;
    struct torture_verdict *v;
    int has_pending;
    struct torture_epoch pending; /* it ended, but need not be committed */
};

/* A call returned `status`; if that is a failure, look at which. */
static int noted(struct run *r, const char *call, int status, const deltafs_dir *dir)
{
    if (r->ranks)
        r->ranks->agree(call, status);
    if (status == DELTAFS_OK)
        return status;
    r->o->failures++;
    if (r->expected == DELTAFS_OK)
        torture_lost(r->v, "%s returns %d: %s", call, status, deltafs_errmsg(dir));
    else if (status != r->expected)
        torture_wrong(r->v, "%s returns %d instead of %d: %s", call, status, r->expected, deltafs_errmsg(dir));
    return status;
}

/* What became of an epoch. One that is committed says of those that failed before that they are not. */
static void settle(struct torture_outcome *o, const struct torture_epoch *epoch, int is_committed)
{
    if (is_committed) {
        o->committed[o->commits++] = *epoch;
        o->maybes = 0;
    } else {
        o->maybe[o->maybes++] = *epoch;
    }
}

static void settle_pending(struct run *r, int is_committed)
{
    if (r->has_pending)
        settle(r->o, &r->pending, is_committed);
    r->has_pending = 0;
}

/* The program gave the epoch up: it must not be committed. */
static int cancelled(struct run *r, const char *call, int status)
{
    if (status == DELTAFS_ERR_CANCELLED)
        return DELTAFS_OK;
    if (status == DELTAFS_OK)
        torture_wrong(r->v, "%s commits an epoch that was cancelled", call);
    return noted(r, call, status, r->dir);
}

static int wait_pending(struct run *r)
{
    int status = deltafs_epoch_wait(r->dir);

    settle_pending(r, status == DELTAFS_OK);
    return noted(r, "deltafs_epoch_wait", status, r->dir);
}

static int run_epoch(struct run *r, const struct torture_step *step, const struct torture_epoch *epoch)
{
    int is_async = strcmp(r->job->shape.commit, "async") == 0;

    torture_append(&r->job->shape, epoch, r->ranks ? (uint32_t)r->ranks->rank : 0,
                   r->ranks ? (uint32_t)r->ranks->ranks : 1, r->dir);
    if (step->is_cancelled)
        deltafs_epoch_cancel(r->dir, "enough of it");
    int status = deltafs_epoch_end(r->dir, epoch->label);
    if (!is_async && step->is_cancelled)
        return cancelled(r, "deltafs_epoch_end", status);
    if (!is_async) {
        settle(r->o, epoch, status == DELTAFS_OK);
        return noted(r, "deltafs_epoch_end", status, r->dir);
    }
    settle_pending(r, status == DELTAFS_OK);
    if (status != DELTAFS_OK)
        return noted(r, "deltafs_epoch_end", status, r->dir);
    if (step->is_cancelled)
        return cancelled(r, "deltafs_epoch_wait", deltafs_epoch_wait(r->dir));
    r->pending = *epoch;
    r->has_pending = 1;
    return step->then_waits ? wait_pending(r) : DELTAFS_OK;
}

static int run_step(struct run *r, size_t i, unsigned tries)
{
    const struct torture_step *step = &r->job->step[i];
    struct torture_epoch epoch = step->epoch;
    int status = DELTAFS_ERR_INVALID;

    for (unsigned t = 0; t < tries && status != DELTAFS_OK; t++) {
        /* The first try of an epoch that ends later may be settled by now. */
        if (r->o->maybes + r->o->commits + 2 > TORTURE_EPOCHS)
            break;
        status = run_epoch(r, step, &epoch);
        epoch.seed += 1000003;
        epoch.records += 1;
    }
    return status;
}

static deltafs_options *options(const struct torture_shape *s)
{
    const char *set[][2] = {
        {"memory", s->memory}, {"partitions", s->partitions},  {"keys", s->keys},     {"value_size", s->value_size},
        {"codec", s->codec},   {"threads", s->threads},        {"commit", s->commit}, {"sync", s->sync},
        {"layout", s->place},  {"partitioner", s->partitioner}};
    deltafs_options *o = NULL;
    int status = deltafs_options_create(&o);

    for (size_t i = 0; i < sizeof set / sizeof set[0] && status == DELTAFS_OK; i++)
        status = deltafs_options_set(o, set[i][0], set[i][1]);
    if (status != DELTAFS_OK) {
        fprintf(stderr, "torture: %s\n", deltafs_errmsg(NULL));
        exit(EXIT_FAILURE);
    }
    return o;
}

static int open_dir(struct run *r, const char *path, int is_reopening)
{
    static const struct torture_ranks one = {.create = deltafs_create, .reopen = deltafs_reopen};
    const struct torture_ranks *ranks = r->ranks ? r->ranks : &one;
    const char *call = is_reopening ? "deltafs_reopen" : "deltafs_create";
    deltafs_options *o = options(&r->job->shape);
    int status = (is_reopening ? ranks->reopen : ranks->create)(path, o, &r->dir);

    deltafs_options_destroy(o);
    /* After an interrupted creation the folders of logs may be gone. */
    return is_reopening && !r->o->is_made && status == DELTAFS_ERR_NOT_FOUND ? status : noted(r, call, status, NULL);
}

static int close_dir(struct run *r)
{
    int status = deltafs_close(r->dir);

    r->dir = NULL;
    settle_pending(r, status == DELTAFS_OK);
    return noted(r, "deltafs_close", status, NULL);
}

/* A close that fails leaves a directory that can be opened, and so does an opening that fails. But of an epoch that it
 * was to commit it does not say whether that was what failed. */
static int reopen_dir(struct run *r, const char *path, unsigned tries)
{
    if (r->has_pending)
        wait_pending(r);
    int status = close_dir(r);

    if (status != DELTAFS_OK && tries == 1)
        return status;
    status = open_dir(r, path, 1);
    return status != DELTAFS_OK && tries > 1 ? open_dir(r, path, 1) : status;
}

void torture_job_run(const struct torture_job *job, const char *path, const struct torture_ranks *ranks, int expected,
                     unsigned tries, struct torture_outcome *o, struct torture_verdict *v)
{
    struct run r = {.job = job, .ranks = ranks, .expected = expected, .o = o, .v = v};
    int status = open_dir(&r, path, 0);

    if (status != DELTAFS_OK)
        return;
    o->is_made = 1;
    for (size_t i = 0; i < job->steps && status == DELTAFS_OK; i++) {
        status = run_step(&r, i, tries);
        if (status == DELTAFS_OK && job->step[i].then_reopens)
            status = reopen_dir(&r, path, tries);
    }
    if (r.dir)
        close_dir(&r);
}

void torture_job_go_on(const struct torture_job *job, const char *path, const struct torture_ranks *ranks, int expected,
                       struct torture_outcome *o, struct torture_verdict *v)
{
    struct run r = {.job = job, .ranks = ranks, .expected = expected, .o = o, .v = v};
    uint64_t last = 0, want = o->commits > 0 ? o->committed[o->commits - 1].label : 0;
    struct torture_step step = {
        .epoch = {.label = want + 1, .seed = job->seed + 77 * o->commits, .records = (uint32_t)(job->seed % 50)}};

    if (open_dir(&r, path, 1) != DELTAFS_OK)
        return;
    int status = deltafs_last_label(r.dir, &last);
    if (status != (o->commits > 0 ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND) || last != want)
        torture_wrong(v, "deltafs_last_label returns %d and %llu, not %llu", status, (unsigned long long)last,
                      (unsigned long long)want);
    run_epoch(&r, &step, &step.epoch);
    close_dir(&r);
}

/* ---- Checking ---- */

/* What the directory has: what is committed, and maybe one more. */
static struct torture_model *choose_model(const struct torture_shape *s, deltafs_dir *dir, struct torture_outcome *o)
{
    struct torture_model *m = torture_model_create(s, o->committed, o->commits);

    for (size_t i = 0; i < o->maybes && !torture_model_fits(m, dir); i++) {
        o->committed[o->commits] = o->maybe[i];
        struct torture_model *more = torture_model_create(s, o->committed, o->commits + 1);
        if (torture_model_fits(more, dir)) {
            torture_model_destroy(m);
            m = more;
            o->commits++;
            break;
        }
        torture_model_destroy(more);
    }
    o->maybes = 0;
    return m;
}

int torture_job_check(const struct torture_job *job, const char *path, struct torture_outcome *o,
                      struct torture_verdict *v)
{
    deltafs_dir *dir;
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    int status = deltafs_open(path, NULL, &dir);

    if (status != DELTAFS_OK) {
        if (o->is_made || (status != DELTAFS_ERR_NOT_FOUND && status != DELTAFS_ERR_NOT_DELTAFS))
            torture_lost(v, "deltafs_open returns %d: %s", status, deltafs_errmsg(NULL));
        return 0;
    }
    struct torture_model *m = choose_model(&job->shape, dir, o);
    if (torture_model_fits(m, dir))
        torture_model_check(m, dir, DELTAFS_OK, v);
    else if (deltafs_stat(dir, &stat) == DELTAFS_OK && stat.epochs < o->commits)
        torture_lost(v, "%llu epochs of %zu", (unsigned long long)stat.epochs, o->commits);
    else
        torture_wrong(v, "there are epochs that were not committed, or others than those that were");
    torture_model_destroy(m);
    if (deltafs_close(dir) != DELTAFS_OK)
        torture_lost(v, "deltafs_close: %s", deltafs_errmsg(NULL));
    return 1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void torture_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
