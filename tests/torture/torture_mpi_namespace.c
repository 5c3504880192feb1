/* A shared namespace to which something happens on one of its ranks: a file operation fails, or the process has no more
 * files from there on, and then the power goes for what it had not synced. All ranks get the same status from what they
 * do together, and none waits for ever; nothing that was committed is lost, whoever owns it, and no file has bytes that
 * nobody wrote to it. Then a job with all of them goes on.
 *
 *     torture_mpi_namespace --count N --seed S --folder DIR     DIR: one that all ranks see
 *
 * Each rank writes files of its own, in folders that belong to all, and knows what they had at the last commit. Cases
 * in which nothing happened are not counted. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>
#include "torture_case.h"
#include "torture_faults.h"
#include "torture_job.h"

#define FOLDERS   4
#define NAMES     8 /* of each rank */
#define COMMITS   3 /* of a job, at most, and its close */
#define CHANGES   6 /* by each rank before each of them, at most */
#define LITTLE    3000
#define LARGE     (300u << 10)
#define RANKS_MAX 64

/* What a file has follows from a number; 0: there is none. */
struct file {
    uint64_t committed, now;
    int is_open; /* a call failed: it may have anything, or not be there */
};

static int rank, ranks;
static char path[300];
static struct file file[NAMES];
static struct torture_verdict verdict;
static struct torture_rng own;           /* of this rank */
static int is_uncertain;                 /* a commit failed: a file may have what it would have brought */
static int statuses[COMMITS + 2], calls; /* of what all ranks did together */
static char failure[300];                /* the first of a call; "": none failed */

/* ---- Files ---- */

static const char *name_of(char text[40], size_t i)
{
    snprintf(text, 40, "/folder%zu/rank%d.%zu", i % FOLDERS, rank, i);
    return text;
}

static size_t fill(uint64_t number, uint8_t *bytes)
{
    struct torture_rng r = {number};
    size_t size = 1 + (size_t)torture_below(&r, torture_below(&r, 8) == 0 ? LARGE : LITTLE);

    torture_fill(&r, bytes, size);
    return size;
}

/* Returns whether the call succeeded. */
static int ok(const char *call, int status)
{
    if (status != DELTAFS_OK && !*failure)
        snprintf(failure, sizeof failure, "%s returns %d: %s", call, status, deltafs_errmsg(NULL));
    return status == DELTAFS_OK;
}

static int write_file(deltafs_namespace *ns, const char *name, uint64_t number)
{
    static uint8_t bytes[LARGE];
    size_t size = fill(number, bytes);
    deltafs_namespace_file *f = NULL;
    int done = ok("deltafs_namespace_file_open",
                  deltafs_namespace_file_open(ns, name, O_WRONLY | O_CREAT | O_TRUNC, 0644, &f));

    if (!done)
        return 0;
    done = ok("deltafs_namespace_file_write", deltafs_namespace_file_write(f, 0, bytes, size));
    return ok("deltafs_namespace_file_close", deltafs_namespace_file_close(f)) && done;
}

/* Returns whether no call failed; after one that did, nothing is known of the file. */
static int change(deltafs_namespace *ns)
{
    size_t i = (size_t)torture_below(&own, NAMES);
    uint64_t number = file[i].now != 0 && torture_below(&own, 4) == 0 ? 0 : torture_next(&own) | 1;
    char name[40];

    name_of(name, i);
    file[i].now = number;
    file[i].is_open = number == 0 ? !ok("deltafs_namespace_unlink", deltafs_namespace_unlink(ns, name))
                                  : !write_file(ns, name, number);
    return !file[i].is_open;
}

/* Files of which nothing is known. */
static void remove_open(deltafs_namespace *ns)
{
    char name[40];

    for (size_t i = 0; i < NAMES; i++) {
        int status = file[i].is_open ? deltafs_namespace_unlink(ns, name_of(name, i)) : DELTAFS_OK;
        if (file[i].is_open && (status == DELTAFS_ERR_NOT_FOUND || ok("deltafs_namespace_unlink", status)))
            file[i] = (struct file){.now = 0};
    }
}

/* ---- A job ---- */

/* What all ranks have done together. */
static int together(const char *call, int status)
{
    statuses[calls++] = status;
    return ok(call, status);
}

/* A commit, or the close. */
static int commit(const char *call, int status)
{
    int done = together(call, status);

    is_uncertain |= !done;
    for (size_t i = 0; i < NAMES && done && !is_uncertain; i++)
        file[i].committed = file[i].now;
    return done;
}

static void make_folders(deltafs_namespace *ns)
{
    char name[40];

    for (size_t i = 0; i < FOLDERS; i++) {
        snprintf(name, sizeof name, "/folder%zu", i);
        int status = deltafs_namespace_mkdir(ns, name, 0755);
        if (status != DELTAFS_ERR_EXISTS)
            ok("deltafs_namespace_mkdir", status);
    }
}

static int open_ns(enum deltafs_namespace_mode mode, deltafs_namespace **ns)
{
    deltafs_options *o = NULL;

    *ns = NULL;
    if (deltafs_options_create(&o) != DELTAFS_OK || deltafs_options_set(o, "memory", "40M") != DELTAFS_OK ||
        deltafs_options_set(o, "threads", "0") != DELTAFS_OK || deltafs_options_set(o, "sync", "commit") != DELTAFS_OK)
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    int status = deltafs_mpi_namespace_open(MPI_COMM_WORLD, path, O_RDWR | O_CREAT, o, mode, ns);
    deltafs_options_destroy(o);
    return status;
}

/* Several commits. Collective; `seed` is the same everywhere. */
static void job(enum deltafs_namespace_mode mode, uint64_t seed)
{
    struct torture_rng r = {seed};
    deltafs_namespace *ns;
    uint64_t commits = torture_below(&r, COMMITS + 1);
    int done;

    own.state = seed ^ (uint64_t)(rank + 1) * 0xd1342543de82ef95u;
    calls = 0;
    is_uncertain = 0;
    *failure = '\0';
    if (!together("deltafs_mpi_namespace_open", open_ns(mode, &ns)))
        return;
    make_folders(ns);
    remove_open(ns);
    do {
        done = !*failure;
        for (uint64_t n = torture_below(&own, CHANGES + 1); n > 0 && done; n--)
            done = change(ns);
        done = commits == 0 || commit("deltafs_namespace_commit", deltafs_namespace_commit(ns));
    } while (commits-- > 0 && done);
    commit("deltafs_namespace_close", deltafs_namespace_close(ns));
}

/* ---- What must be there ---- */

/* Whether a file has what follows from a number; *why gets what is there otherwise. */
static int has(deltafs_namespace *ns, const char *name, uint64_t number, const char **why)
{
    static uint8_t want[LARGE], bytes[LARGE + 1];
    deltafs_namespace_file *f = NULL;
    size_t got = 0, size = number != 0 ? fill(number, want) : 0;
    int status = deltafs_namespace_file_open(ns, name, O_RDONLY, 0, &f);

    *why = number == 0 ? "is there" : "has other bytes";
    if (status == DELTAFS_ERR_NOT_FOUND && number == 0)
        return 1;
    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_read(f, 0, bytes, sizeof bytes, &got);
    if (status != DELTAFS_OK)
        *why = deltafs_errmsg(NULL);
    deltafs_namespace_file_close(f);
    return status == DELTAFS_OK && number != 0 && got == size && memcmp(bytes, want, size) == 0;
}

/* A deltafs_damage_fn. The copy of a manifest is not needed to read, and may be damaged by the loss of power. */
static void report(int status, const char *message, void *arg)
{
    (void)arg;
    if (!strstr(message, "/MANIFEST.copy: "))
        torture_wrong(&verdict, "deltafs_namespace_verify: %d, %s", status, message);
}

/* Compare this rank's files, and take what is there for what is known from now on. */
static void check(void)
{
    deltafs_namespace *ns = NULL;
    const char *why;
    char name[40];

    if (deltafs_namespace_open(path, O_RDONLY, NULL, &ns) != DELTAFS_OK) {
        torture_lost(&verdict, "rank %d: deltafs_namespace_open: %s", rank, deltafs_errmsg(NULL));
        return;
    }
    for (size_t i = 0; i < NAMES; i++) {
        struct file *f = &file[i];
        if (!f->is_open && is_uncertain && has(ns, name_of(name, i), f->now, &why))
            f->committed = f->now;
        else if (!f->is_open && !has(ns, name_of(name, i), f->committed, &why))
            torture_lost(&verdict, "rank %d: %s: %s", rank, name, why);
        f->now = f->committed;
    }
    deltafs_namespace_close(ns);
    int status = rank == 0 ? deltafs_namespace_verify(path, report, NULL, NULL) : DELTAFS_OK;
    if (status != DELTAFS_OK && status != DELTAFS_ERR_DAMAGED)
        torture_wrong(&verdict, "deltafs_namespace_verify returns %d: %s", status, deltafs_errmsg(NULL));
}

/* All ranks had the same statuses; and a call fails only if something has happened somewhere. Collective. */
static void compare_ranks(int may_fail)
{
    int mine[2 * (COMMITS + 2) + 2] = {0}, most[2 * (COMMITS + 2) + 2];

    mine[0] = calls;
    mine[1] = -calls;
    for (int i = 0; i < calls; i++) {
        mine[2 * i + 2] = statuses[i];
        mine[2 * i + 3] = -statuses[i];
    }
    MPI_Allreduce(mine, most, 2 * (COMMITS + 2) + 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < COMMITS + 3; i++)
        if (most[2 * i] != -most[2 * i + 1])
            torture_wrong(&verdict, "rank %d: call %d: from %d to %d", rank, i, -most[2 * i + 1], most[2 * i]);
    if (*failure && !may_fail)
        torture_lost(&verdict, "rank %d: %s", rank, failure);
}

/* Collective. */
static void judge(void)
{
    int mine[2], all[2];

    MPI_Barrier(MPI_COMM_WORLD);
    check();
    mine[0] = verdict.is_lost;
    mine[1] = verdict.is_wrong;
    MPI_Allreduce(mine, all, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    verdict.is_lost = all[0];
    verdict.is_wrong = all[1];
}

/* ---- Cases ---- */

/* A job to which something happens on one rank. Returns whether it came to pass. Collective. */
static int fail_job(struct torture_rng *r, uint64_t operations)
{
    static const struct torture_happening nothing = {.text = "nothing"};
    struct torture_happening h = *torture_choose(r);
    int bad = (int)torture_below(r, (uint64_t)ranks), happened;
    uint64_t at = torture_below(r, operations), seed = torture_next(r);

    h = rank == bad ? h : nothing;
    verdict.about = h.text;
    verdict.detail = at;
    torture_io_begin(h.fault, at, seed);
    job(DELTAFS_NAMESPACE_SHARED, seed);
    /* If they could not open it, another rank may have taken the table since, and written what this one does not know.
     */
    h.loses_power &= statuses[0] == DELTAFS_OK;
    int mine = torture_io_has_failed() && h.fault != TORTURE_SHORT && h.fault != TORTURE_EINTR, has_failed;
    int came = torture_happening_end(&h, &verdict) && rank == bad;
    MPI_Allreduce(&mine, &has_failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&came, &happened, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    compare_ranks(has_failed);
    return happened;
}

/* One that must end well. */
static void sound_job(enum deltafs_namespace_mode mode, uint64_t seed)
{
    job(mode, seed);
    if (mode == DELTAFS_NAMESPACE_SHARED)
        compare_ranks(0);
    else if (*failure)
        torture_lost(&verdict, "rank %d: %s", rank, failure);
    judge();
}

/* The first job is private: it leaves journals, which the shared ones take over. */
static int run(uint64_t seed, uint64_t *operations)
{
    struct torture_rng r = {seed};

    memset(file, 0, sizeof file);
    if (rank == 0)
        torture_remove(path);
    MPI_Barrier(MPI_COMM_WORLD);
    if (torture_below(&r, 2) == 0)
        sound_job(DELTAFS_NAMESPACE_PRIVATE, torture_next(&r));
    torture_io_begin(TORTURE_NONE, 0, 0);
    sound_job(DELTAFS_NAMESPACE_SHARED, torture_next(&r));
    uint64_t count = torture_io_count();
    torture_io_end();
    MPI_Allreduce(&count, operations, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    int happened = fail_job(&r, *operations);
    judge();
    verdict.about = "afterwards, operation";
    sound_job(DELTAFS_NAMESPACE_SHARED, torture_next(&r));
    return happened || verdict.is_lost || verdict.is_wrong;
}

int main(int argc, char **argv)
{
    struct torture_tally tally = {0};
    struct torture_options o = {.count = 0};
    uint64_t operations;
    int code = EXIT_FAILURE;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!torture_options_parse(argc, argv, 1, &o) || o.count == 0 || !o.folder || ranks > RANKS_MAX) {
        fputs("usage: torture_mpi_namespace --count N --seed S --folder DIR\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    snprintf(path, sizeof path, "%s/ns", o.folder);
    for (; tally.tried < o.count; o.seed++) {
        torture_case_begin(&verdict, o.seed, "before, operation", 0);
        if (run(o.seed, &operations))
            torture_case_end(&verdict, &tally);
    }
    if (rank == 0) {
        torture_remove(path);
        code = torture_case_report("namespace", &tally);
    }
    MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
    return code;
}
