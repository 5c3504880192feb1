/* deltafs-mpi compact: a new directory in which each trajectory lies in one place. It is made beside its place, and
 * gets its name when it is complete. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <deltafs/deltafs_mpi.h>
#include "tools/aside.h"
#include "tools/cmd.h"
#include "tools/progress.h"
#include "tools/ranks.h"
#include "tools/target.h"

struct compact {
    /* Options. */
    int is_quiet;
    const char *to;
    struct command_range epochs;
    /* The job. */
    int rank, ranks;
    const char *from;
    char name[PATH_MAX], folder[PATH_MAX], aside[ASIDE_ROOM];
    struct progress bar;
    uint64_t records; /* of this rank */
};

/* ---- Signals ---- */

static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
static volatile sig_atomic_t interrupted; /* the signal that has come */

static void note_signal(int number)
{
    interrupted = number;
}

/* From now on a signal ends the compaction, which then removes what it has written. MPI may have threads, so it is not
 * enough to block signals in this one. */
static void hold_signals(void)
{
    const struct sigaction hold = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    struct sigaction was;

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigaction(signals[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            sigaction(signals[i], &hold, NULL);
}

/* One that has come takes effect. */
static void release_signals(void)
{
    const struct sigaction end = {.sa_handler = SIG_DFL};
    struct sigaction now;

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == note_signal)
            sigaction(signals[i], &end, NULL);
    if (interrupted)
        raise(interrupted);
}

/* ---- The work ---- */

/* Rank 0: find the names. */
static int compact_find_names(struct compact *c)
{
    struct stat st;
    int n = snprintf(c->name, sizeof c->name, "%s", c->to);

    if (n < 0 || (size_t)n >= sizeof c->name)
        return text_fail(EXIT_TROUBLE, "%s: %s", c->to, strerror(ENAMETOOLONG));
    while (n > 1 && c->name[n - 1] == '/')
        c->name[--n] = '\0';
    if (lstat(c->name, &st) == 0)
        return text_fail(EXIT_TROUBLE, "%s: exists already; remove it (deltafs rm), or give another name", c->name);
    aside_name("compact", c->name, c->folder, c->aside);
    return target_check_new(c->name);
}

/* The records that there are, for the bar; there must be an epoch. */
static int compact_count(const struct compact *c, uint64_t *records)
{
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
    const struct deltafs_range *range = c->epochs.is_given ? &c->epochs.range : NULL;
    int has_epoch = 0;
    deltafs_dir *dir;
    int code = target_open_records(c->from, &dir);

    *records = 0;
    if (code != EXIT_OK)
        return code;
    for (uint64_t i = 0; deltafs_epoch_stat(dir, i, &epoch) == DELTAFS_OK; i++) {
        if (range && (epoch.label < range->first || epoch.label > range->last))
            continue;
        *records += epoch.records;
        has_epoch = 1;
    }
    deltafs_close(dir);
    return has_epoch
               ? EXIT_OK
               : text_fail(EXIT_NOT_FOUND, "compact: %s has no epoch%s", c->from, range ? " with such a label" : "");
}

/* Rank 0's bar shows its own share as if it were that of all. */
static int compact_progress(uint64_t records, void *arg)
{
    struct compact *c = arg;

    c->records += records;
    progress_add(&c->bar, records * (uint64_t)c->ranks);
    return interrupted != 0;
}

/* Rank 0: give the complete directory its name. */
static int compact_put(const struct compact *c)
{
    if (aside_put_new(c->aside, c->name, 1) == 0)
        return aside_sync(c->folder) == 0
                   ? EXIT_OK
                   : text_fail(EXIT_TROUBLE, "%s: cannot be synced: %s", c->folder, strerror(errno));
    int code = text_fail(EXIT_TROUBLE, "%s: cannot be renamed: %s", c->name, strerror(errno));
    if (deltafs_remove(c->aside) != DELTAFS_OK)
        text_fail(0, "%s: cannot be removed: %s", c->aside, deltafs_errmsg(NULL));
    return code;
}

/* Collective. */
static int compact_work(struct compact *c, const deltafs_options *options)
{
    const struct deltafs_compact_options o = {.struct_size = sizeof o,
                                              .range = c->epochs.is_given ? &c->epochs.range : NULL,
                                              .options = options,
                                              .progress = compact_progress,
                                              .arg = c};
    int status = deltafs_mpi_compact(MPI_COMM_WORLD, c->from, c->aside, &o);

    progress_end(&c->bar);
    if (status == DELTAFS_ERR_CANCELLED)
        return text_fail(EXIT_TROUBLE, "compact: interrupted; %s was not made, and %s is as it was", c->to, c->from);
    if (status != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "compact: %s", deltafs_errmsg(NULL));
    return ranks_agree(c->rank == 0 ? compact_put(c) : EXIT_OK);
}

static int compact_run(const struct command_call *call)
{
    struct compact *c = call->values;
    double start = progress_now();
    uint64_t records = 0, all = 0;
    int code;

    c->from = text_path(call->operand[0]);
    if (!c->to)
        return text_fail(EXIT_USAGE, "compact: -o NEW is missing");
    MPI_Comm_rank(MPI_COMM_WORLD, &c->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &c->ranks);
    code = compact_count(c, &records);
    if (code == EXIT_OK && c->rank == 0)
        code = compact_find_names(c);
    code = ranks_agree(code);
    if (code != EXIT_OK)
        return code;
    MPI_Bcast(c->aside, sizeof c->aside, MPI_CHAR, 0, MPI_COMM_WORLD);
    hold_signals();
    progress_begin(&c->bar, records, c->rank == 0 && !c->is_quiet);
    code = compact_work(c, call->options);
    MPI_Allreduce(&c->records, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD); /* no rank ends before the others */
    if (code == EXIT_OK && c->rank == 0 && !c->is_quiet)
        text_say("%s: %" PRIu64 " record%s compacted by %d rank%s, %.1f s", c->name, all, text_plural(all), c->ranks,
                 text_plural((uint64_t)c->ranks), progress_now() - start);
    release_signals();
    return code;
}

static const struct command_option options[] = {
    {"output", 'o', "NEW", "the directory to create; it must not exist", cmd_parse_path, offsetof(struct compact, to)},
    {"epochs", 0, "A[:B]", "only epochs with labels from A to B; A: and :B have one end", cmd_parse_range,
     offsetof(struct compact, epochs)},
    {"quiet", 'q', NULL, "no progress bar, and no message at the end", NULL, offsetof(struct compact, is_quiet)},
    {0}};

static const char *const refused[] = {
    "commit",  "epoch",       "extents",    "hdf5",     "index", "index_by", "key",  "keys",  "layout",     "old_label",
    "padding", "partitioner", "partitions", "progress", "route", "schema",   "skip", "stats", "value_size", NULL};

const struct command cmd_compact = {
    .name = "compact",
    .usage = "DIR -o NEW [OPTION...]",
    .text = "Create the directory NEW with the epochs of DIR, so that each trajectory lies in one place: then it\n"
            "    is read as fast as one record. Ranks share the work: mpirun -np 4 deltafs-mpi compact ...\n"
            "    DIR stays. OPTION: some of 'deltafs help options' too, such as --memory 1G or --volumes PATHS",
    .missing = "DIR must be given, and no more",
    .least = 1,
    .most = 1,
    .size = sizeof(struct compact),
    .option = options,
    .refused = refused,
    .run = compact_run};
