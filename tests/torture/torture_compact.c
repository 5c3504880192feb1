/* Compactions to which something happens: the power goes or the process ends at some file operation, or an operation
 * fails; in the compaction, in a job that appends epochs to what was compacted, or in a reader of it. The source is as
 * it was; the new directory is complete, or nobody can open it; and the compaction can be done again.
 *
 *     torture-compact [--count N] [--seed S] [--case I] [--folder DIR]
 *
 * Case I depends on the seed and I alone. Cases in which nothing happened are not counted. The last line is "torture:
 * compact N tried, L lost, W wrong"; the exit code is 1 if L or W is above 0. A case whose process ends by a signal, or
 * hangs, is wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "files.h"
#include "torture_cases.h"
#include "torture_faults.h"
#include "torture_job.h"

struct compact_case {
    struct torture_rng rng;
    struct torture_verdict *v;
    struct torture_job job;
    char from[240], to[240], again[240], text[300]; /* `text`: what happens, for messages */
    struct torture_outcome source, part;            /* `part`: what the new directory has */
    struct deltafs_range range;
    int has_range;
    uint64_t sum; /* of the source */
};

/* ---- Calls ---- */

static int compact(struct compact_case *c, const char *from, const char *to, const struct deltafs_range *range,
                   int expected)
{
    const char *memory = strcmp(c->job.shape.keys, "bytes") == 0 ? "16M" : "8M";
    deltafs_options *o = NULL;

    if (deltafs_options_create(&o) != DELTAFS_OK || deltafs_options_set(o, "memory", memory) != DELTAFS_OK ||
        deltafs_options_set(o, "threads", c->job.shape.threads) != DELTAFS_OK)
        files_die("options: %s", deltafs_errmsg(NULL));
    const struct deltafs_compact_options options = {.struct_size = sizeof options, .range = range, .options = o};
    int status = deltafs_compact(from, to, &options);
    deltafs_options_destroy(o);
    if (status != DELTAFS_OK && expected == DELTAFS_OK)
        torture_lost(c->v, "deltafs_compact returns %d: %s", status, deltafs_errmsg(NULL));
    else if (status != DELTAFS_OK && status != expected)
        torture_wrong(c->v, "deltafs_compact returns %d instead of %d: %s", status, expected, deltafs_errmsg(NULL));
    return status;
}

static int compact_all(struct compact_case *c, int expected)
{
    return compact(c, c->from, c->to, c->has_range ? &c->range : NULL, expected);
}

/* The new directory is complete, or cannot be opened. */
static void check_new(struct compact_case *c, int status)
{
    deltafs_dir *d;
    int opened = deltafs_open(c->to, NULL, &d);

    if (opened == DELTAFS_OK)
        deltafs_close(d);
    if (opened == DELTAFS_OK || status == DELTAFS_OK)
        torture_job_check(&c->job, c->to, &c->part, c->v);
    else if (opened != DELTAFS_ERR_NOT_FOUND && opened != DELTAFS_ERR_NOT_DELTAFS && opened != DELTAFS_ERR_DAMAGED)
        torture_wrong(c->v, "an unfinished compaction: deltafs_open returns %d: %s", opened, deltafs_errmsg(NULL));
    if (files_sum(c->from) != c->sum)
        torture_wrong(c->v, "the source was changed");
}

/* What is left of a compaction can be removed, by hand if not even its manifest was made; and done again. */
static void compact_again(struct compact_case *c)
{
    deltafs_dir *d;

    if (deltafs_open(c->to, NULL, &d) == DELTAFS_OK) {
        deltafs_close(d);
        return;
    }
    int status = deltafs_remove(c->to);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND && status != DELTAFS_ERR_NOT_DELTAFS)
        torture_lost(c->v, "deltafs_remove returns %d: %s", status, deltafs_errmsg(NULL));
    torture_remove(c->to);
    check_new(c, compact_all(c, DELTAFS_OK));
}

/* ---- What happens ---- */

/* Choose an operation of the `n` that there are. */
static uint64_t choose(struct torture_rng *r, uint64_t n)
{
    return torture_below(r, 3) == 0 ? torture_io_manifest(torture_next(r)) : torture_below(r, n);
}

static void fault_note(struct compact_case *c, const struct torture_happening *h, uint64_t at, const char *of)
{
    size_t n = strlen(c->text);

    snprintf(c->text + n, sizeof c->text - n, "; operation %ju of %s: %s", (uintmax_t)at, of, h->text);
}

static int fail_compaction(struct compact_case *c)
{
    const struct torture_happening *h = torture_choose(&c->rng);

    torture_io_begin(TORTURE_NONE, 0, 0);
    check_new(c, compact_all(c, DELTAFS_OK));
    uint64_t at = choose(&c->rng, torture_io_count());
    torture_io_end();
    torture_remove(c->to);
    fault_note(c, h, at, "the compaction");
    torture_io_begin(h->fault, at, torture_next(&c->rng));
    int status = compact_all(c, h->expected);
    int has_failed = torture_happening_end(h, c->v);
    check_new(c, status);
    compact_again(c);
    return has_failed;
}

static int fail_appending(struct compact_case *c)
{
    const struct torture_happening *h = torture_choose(&c->rng);
    struct torture_outcome before = c->part;

    check_new(c, compact_all(c, DELTAFS_OK));
    files_copy(c->to, c->again);
    torture_io_begin(TORTURE_NONE, 0, 0);
    torture_job_go_on(&c->job, c->to, NULL, DELTAFS_OK, &c->part, c->v);
    uint64_t at = choose(&c->rng, torture_io_count());
    torture_io_end();
    torture_remove(c->to);
    if (rename(c->again, c->to) != 0)
        files_die("%s: %m", c->to);
    c->part = before;
    fault_note(c, h, at, "a job that appends");
    torture_io_begin(h->fault, at, torture_next(&c->rng));
    torture_job_go_on(&c->job, c->to, NULL, h->expected, &c->part, c->v);
    int has_failed = torture_happening_end(h, c->v);
    torture_job_check(&c->job, c->to, &c->part, c->v);
    return has_failed;
}

static int fail_reading(struct compact_case *c)
{
    const struct torture_happening *h = torture_choose_reading(&c->rng);
    uint64_t at = torture_below(&c->rng, UINT64_C(1) << torture_below(&c->rng, 9));
    struct torture_model *m = torture_model_create(&c->job.shape, c->part.committed, c->part.commits);
    deltafs_dir *d;

    check_new(c, compact_all(c, DELTAFS_OK));
    fault_note(c, h, at, "a reader");
    torture_io_begin(h->fault, at, torture_next(&c->rng));
    int status = deltafs_open(c->to, NULL, &d);
    if (status == DELTAFS_OK) {
        torture_model_check(m, d, h->expected, c->v);
        deltafs_close(d);
    } else if (status != h->expected) {
        torture_lost(c->v, "deltafs_open returns %d: %s", status, deltafs_errmsg(NULL));
    }
    torture_model_destroy(m);
    return torture_happening_end(h, c->v);
}

/* ---- One case ---- */

/* Some of the source's epochs, or all. */
static void choose_range(struct compact_case *c)
{
    size_t first = 0, last = c->source.commits - 1;

    c->has_range = torture_below(&c->rng, 3) == 0;
    if (c->has_range) {
        first = (size_t)torture_below(&c->rng, c->source.commits);
        last = first + (size_t)torture_below(&c->rng, c->source.commits - first);
    }
    c->range = (struct deltafs_range){c->source.committed[first].label, c->source.committed[last].label};
    c->part.is_made = 1;
    for (size_t i = first; i <= last; i++)
        c->part.committed[c->part.commits++] = c->source.committed[i];
}

/* The source: a directory, or one that was compacted before, with later epochs. */
static void make_source(struct compact_case *c)
{
    uint64_t dice = torture_below(&c->rng, 48);

    torture_job_make(&c->job, torture_next(&c->rng),
                     dice == 0  ? TORTURE_SEGMENTS
                     : dice < 5 ? TORTURE_RUNS
                                : TORTURE_SMALL);
    torture_job_run(&c->job, c->from, NULL, DELTAFS_OK, 1, &c->source, c->v);
    c->job.shape.place = "partitioned"; /* of what is compacted */
    if (c->source.commits == 0 || torture_below(&c->rng, 3) > 0)
        return;
    compact(c, c->from, c->again, NULL, DELTAFS_OK);
    torture_remove(c->from);
    if (rename(c->again, c->from) != 0)
        files_die("%s: %m", c->from);
    torture_job_go_on(&c->job, c->from, NULL, DELTAFS_OK, &c->source, c->v);
    strcat(c->text, "; compacted before");
}

static int run(const char *folder, uint64_t seed, uint64_t i, struct torture_verdict *v)
{
    static int (*const ways[])(struct compact_case * c) = {fail_compaction, fail_compaction, fail_appending,
                                                           fail_reading};
    static struct compact_case c;
    struct torture_rng mix = {seed ^ i * 0xd1342543de82ef95u};

    c = (struct compact_case){.rng.state = torture_next(&mix), .v = v, .text = "compact"};
    snprintf(c.from, sizeof c.from, "%s/from", folder);
    snprintf(c.to, sizeof c.to, "%s/to", folder);
    snprintf(c.again, sizeof c.again, "%s/again", folder);
    v->about = c.text;
    make_source(&c);
    if (c.source.commits == 0)
        return 0;
    choose_range(&c);
    c.sum = files_sum(c.from);
    int happened = ways[torture_below(&c.rng, 4)](&c);
    snprintf(c.text + strlen(c.text), sizeof c.text - strlen(c.text), "; afterwards");
    torture_job_go_on(&c.job, c.to, NULL, DELTAFS_OK, &c.part, v);
    torture_job_check(&c.job, c.to, &c.part, v);
    compact(&c, c.to, c.again, NULL, DELTAFS_OK);
    torture_job_check(&c.job, c.again, &c.part, v);
    torture_job_check(&c.job, c.from, &c.source, v);
    return happened;
}

int main(int argc, char **argv)
{
    return torture_cases("compact", run, argc, argv);
}
