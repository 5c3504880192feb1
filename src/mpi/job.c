/* The directory that all ranks of a job write together: shuffle, agreement, commit.
 *
 * An epoch's end, on all ranks: agree that all call it, with one label; flush the links and drain them, so that every
 * record is with its partition's owner; end it in the own partitions; agree on the outcome; rank 0 commits; all learn
 * its verdict. Four collective calls. No rank leaves before all have drained, so rounds of messages never mix. With
 * commit=async the last three steps are taken by the next collective call.
 *
 * A rank that waits for others in one directory must serve the links of all: its peers may be waiting in another (a
 * simulation has a directory for each species). Only while it waits for its own storage it serves none. So open
 * directories stand in a list, and each has a lock that its calls hold: whoever waits serves all those that nobody is
 * in, besides its own. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <deltafs/deltafs_mpi.h>
#include "core/dir.h"
#include "core/partition.h"
#include "core/writer.h"
#include "mpi/link.h"
#include "mpi/router.h"

#define MEMORY_PERCENT  3 /* of the node, for the option memory at auto */
#define MEMORY_AUTO_MIN (16u << 20)
#define MEMORY_AUTO_MAX (1u << 30)
#define LINK_SHARE      8   /* the links get at most 1/8 of the memory */
#define PROGRESS_EVERY  512 /* records appended between two looks at what has come */

enum job_call { JOB_EPOCH_END = 1, JOB_CLOSE = 2, JOB_EPOCH_WAIT = 3 };

struct job {
    pthread_mutex_t lock; /* held by the call under way; the list has a lock of its own */
    struct job *next;     /* in the list */
    struct agree agree;   /* serves all links while it waits */
    struct agree quiet; /* not its own: between the drain and the verdict, records of the next epoch must not come in */
    struct layout layout;
    struct router router;
    struct writer *writer;
    struct link *link;               /* NULL with one rank */
    uint32_t partitions, first, end; /* own are first to end - 1 */
    uint64_t pending;                /* records appended here in this epoch */
    uint32_t since_progress;         /* records since the last look at what has come */
    int is_async;                    /* an epoch is committed by the next call */
    int is_dead;                     /* the ranks have lost each other: no collective call can follow */
};

/* ---- Open directories ---- */

static struct job *open_jobs;
static pthread_mutex_t open_jobs_lock = PTHREAD_MUTEX_INITIALIZER;

static void job_register(struct job *j)
{
    pthread_mutex_lock(&open_jobs_lock);
    j->next = open_jobs;
    open_jobs = j;
    pthread_mutex_unlock(&open_jobs_lock);
}

static void job_unregister(struct job *j)
{
    pthread_mutex_lock(&open_jobs_lock);
    for (struct job **at = &open_jobs; *at; at = &(*at)->next)
        if (*at == j) {
            *at = j->next;
            break;
        }
    pthread_mutex_unlock(&open_jobs_lock);
}

/* Serve the links of the directories that no call is in. */
static void job_serve_others(void *arg)
{
    (void)arg;
    if (pthread_mutex_trylock(&open_jobs_lock) != 0)
        return; /* another thread does it */
    for (struct job *j = open_jobs; j; j = j->next)
        if (pthread_mutex_trylock(&j->lock) == 0) {
            if (j->link)
                link_progress(j->link);
            pthread_mutex_unlock(&j->lock);
        }
    pthread_mutex_unlock(&open_jobs_lock);
}

static void job_serve_all(void *arg)
{
    struct job *j = arg;

    if (j->link)
        link_progress(j->link);
    job_serve_others(NULL);
}

/* The ranks have lost each other. */
static void job_die(struct job *j)
{
    j->is_dead = 1;
    if (j->link)
        link_kill(j->link);
}

/* ---- Shuffle ---- */

static void job_deliver(void *arg, uint64_t key, const void *value, size_t size)
{
    struct job *j = arg;
    uint32_t partition = partition_of(key, j->partitions);
    struct error e;

    if (partition >= j->first && partition < j->end) {
        deltafs_writer_put(j->writer, key, value, size);
    } else {
        error_set(&e, DELTAFS_ERR_MPI, "a record of partition %u came to rank %d, which does not own it", partition,
                  j->agree.rank);
        deltafs_writer_fail(j->writer, &e);
    }
}

static int job_is_lost(struct error *e)
{
    return error_set(e, DELTAFS_ERR_COLLECTIVE,
                     "the ranks of this directory have lost each other; see the first error");
}

static int job_append(void *ctx, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                      size_t value_stride, size_t size, struct error *e)
{
    struct job *j = ctx;

    if (j->is_dead)
        return job_is_lost(e);
    pthread_mutex_lock(&j->lock);
    for (size_t i = 0; i < n; i++) {
        uint64_t key;
        memcpy(&key, keys + i * key_stride, sizeof key);
        const uint8_t *value = size > 0 ? values + i * value_stride : NULL;
        uint32_t partition = partition_of(key, j->partitions);
        if (partition >= j->first && partition < j->end) {
            deltafs_writer_put(j->writer, key, value, size);
        } else {
            int owner = partition_owner(partition, j->partitions, j->agree.ranks);
            uint32_t next = router_next(&j->router, (uint32_t)j->agree.rank, STAGE_OUT, (uint32_t)owner).rank;
            link_send(j->link, (int)next, key, value, size);
        }
        if (j->link && ++j->since_progress >= PROGRESS_EVERY) {
            j->since_progress = 0;
            link_progress(j->link);
        }
    }
    j->pending += n;
    pthread_mutex_unlock(&j->lock);
    return DELTAFS_OK;
}

static void job_fail(void *ctx, const struct error *e)
{
    deltafs_writer_fail(((struct job *)ctx)->writer, e);
}

/* Bring every record to its owner. */
static void job_deliver_all(struct job *j)
{
    struct error e;

    if (!j->link)
        return;
    link_flush(j->link);
    link_drain(j->link, &j->agree);
    if (link_take_error(j->link, &e) != DELTAFS_OK)
        deltafs_writer_fail(j->writer, &e);
}

/* ---- Agreement ---- */

/* The maximum of a number is this of the minimum of the numbers' opposites. */
static uint64_t job_opposite(uint64_t v)
{
    return (UINT64_C(1) << 62) - v;
}

/* Collective: whether all ranks make the same call, with the same number. *pending gets the most records of a rank. */
static int job_meet(struct job *j, enum job_call call, uint64_t number, uint64_t *pending, struct error *e)
{
    uint64_t high = number >> 32, low = number & UINT32_MAX;
    uint64_t v[] = {
        (uint64_t)call,          high, low, job_opposite((uint64_t)call), job_opposite(high), job_opposite(low),
        job_opposite(j->pending)};

    if (j->is_dead)
        return job_is_lost(e);
    int status = agree_reduce(&j->agree, v, sizeof v / sizeof v[0], MPI_MIN, e);
    if (status == DELTAFS_OK && v[0] != job_opposite(v[3]))
        status = error_set(e, DELTAFS_ERR_COLLECTIVE,
                           "some ranks called another of deltafs_epoch_end, deltafs_epoch_wait and deltafs_close "
                           "than others");
    if (status != DELTAFS_OK) {
        job_die(j);
        return status;
    }
    if (v[1] != job_opposite(v[4]) || v[2] != job_opposite(v[5]))
        return error_set(e, DELTAFS_ERR_LABEL, "the ranks ended the epoch with different labels");
    *pending = job_opposite(v[6]);
    return DELTAFS_OK;
}

/* Collective: rank 0's verdict, *own there, to all. */
static int job_verdict(struct job *j, const struct error *own, int *in_doubt, struct error *e)
{
    struct {
        struct error error;
        int in_doubt;
    } verdict = {*own, *in_doubt};
    int status = agree_broadcast(&j->quiet, &verdict, sizeof verdict, e);

    if (status != DELTAFS_OK) {
        job_die(j);
        return status;
    }
    *in_doubt = verdict.in_doubt;
    if (verdict.error.status != DELTAFS_OK)
        *e = verdict.error;
    return verdict.error.status;
}

static int job_commit(struct job *j, const struct writer_totals *totals, int *in_doubt, struct error *e)
{
    struct error own = {0};

    if (j->agree.rank == 0)
        deltafs_writer_commit(j->writer, totals, in_doubt, &own);
    return job_verdict(j, &own, in_doubt, e);
}

/* Wait until the epoch that is ending is with storage on all ranks; *totals gets the sums. */
static int job_wait_end(struct job *j, struct writer_totals *totals, struct error *e)
{
    struct error own = {0};
    int failed = deltafs_writer_wait_end(j->writer, totals, &own) != DELTAFS_OK;
    uint64_t v[4] = {totals->records, totals->bytes_raw, totals->bytes_stored, (uint64_t)failed};
    int status = agree_reduce(&j->quiet, v, 4, MPI_SUM, e);

    if (status != DELTAFS_OK) {
        job_die(j);
        return status;
    }
    *totals = (struct writer_totals){v[0], v[1], v[2]};
    if (v[3] == 0)
        return DELTAFS_OK;
    *e = own;
    return agree_status(&j->quiet, e);
}

/* Collective: commit the epoch that is ending, or give it up. */
static int job_conclude(struct job *j, struct error *e)
{
    struct writer_totals totals;
    int in_doubt = 0, status = job_wait_end(j, &totals, e);

    if (status == DELTAFS_OK)
        status = job_commit(j, &totals, &in_doubt, e);
    if (status == DELTAFS_OK)
        deltafs_writer_keep(j->writer);
    else
        deltafs_writer_give_up(j->writer, in_doubt || j->is_dead, e);
    return status;
}

/* Collective: the same, if there is one, once all that was appended since is with its owner. On failure that is given
 * up as well. */
static int job_conclude_late(struct job *j, struct error *e)
{
    uint64_t label;

    if (!deltafs_writer_is_ending(j->writer, &label))
        return DELTAFS_OK;
    int status = job_conclude(j, e);
    if (status != DELTAFS_OK) {
        j->pending = 0;
        deltafs_dir_explain_late(label, e);
    }
    return status;
}

static int job_end_epoch(struct job *j, uint64_t label, struct error *e)
{
    uint64_t pending;
    struct error none = {0};
    int status = job_meet(j, JOB_EPOCH_END, label, &pending, e);

    if (status == DELTAFS_OK)
        status = deltafs_writer_check_label(j->writer, label, e);
    if (status != DELTAFS_OK)
        return status;
    job_deliver_all(j);
    status = job_conclude_late(j, e);
    if (status != DELTAFS_OK)
        return status;
    deltafs_writer_end(j->writer, label);
    j->pending = 0;
    if (!j->is_async)
        return job_conclude(j, e);
    status = agree_status(&j->quiet, &none); /* nobody goes on before all have drained */
    if (status != DELTAFS_OK) {
        *e = none;
        job_die(j);
    }
    return status;
}

static int job_wait_epoch(struct job *j, struct error *e)
{
    uint64_t pending, label;
    int status = job_meet(j, JOB_EPOCH_WAIT, 0, &pending, e);

    if (status != DELTAFS_OK || !deltafs_writer_is_ending(j->writer, &label))
        return status;
    if (pending > 0)
        job_deliver_all(j);
    return job_conclude_late(j, e);
}

static int job_epoch_wait(void *ctx, struct error *e)
{
    struct job *j = ctx;

    pthread_mutex_lock(&j->lock);
    int status = job_wait_epoch(j, e);
    pthread_mutex_unlock(&j->lock);
    return status;
}

static int job_epoch_end(void *ctx, uint64_t label, struct error *e)
{
    struct job *j = ctx;

    pthread_mutex_lock(&j->lock);
    int status = job_end_epoch(j, label, e);
    pthread_mutex_unlock(&j->lock);
    return status;
}

/* ---- Closing ---- */

/* Close what is this rank's own, files and links. */
static int job_close_own(struct job *j, struct error *e)
{
    link_destroy(j->link);
    j->link = NULL;
    int status = deltafs_writer_destroy(j->writer, e);
    j->writer = NULL;
    return status;
}

static void job_free(struct job *j)
{
    if (!j->is_dead)
        MPI_Comm_free(&j->agree.comm);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

/* All ranks have come to close. */
static int job_close_together(struct job *j, uint64_t pending, struct error *e)
{
    uint64_t tail_length = 0;
    int in_doubt = 0;
    struct error own = {0}, second;

    if (pending > 0)
        job_deliver_all(j);
    int late = job_conclude_late(j, e);
    if (late != DELTAFS_OK) {
        pending = 0;
        e = &second;
    }
    deltafs_writer_finish(j->writer, &tail_length, &own);
    if (agree_status(&j->agree, &own) != DELTAFS_OK) {
        *e = own;
        return late != DELTAFS_OK ? late : own.status;
    }
    int status = agree_reduce(&j->agree, &tail_length, 1, MPI_MAX, e);
    if (status != DELTAFS_OK)
        return late != DELTAFS_OK ? late : status;
    if (j->agree.rank == 0)
        deltafs_writer_commit_close(j->writer, tail_length, &own);
    status = job_verdict(j, &own, &in_doubt, e);
    if (late != DELTAFS_OK)
        return late;
    if (status == DELTAFS_OK && pending > 0)
        status = error_set(e, DELTAFS_ERR_UNCOMMITTED,
                           "records were appended after the last epoch end; they are not kept (up to %llu on a rank)",
                           (unsigned long long)pending);
    return status;
}

static int job_close(void *ctx, struct error *e)
{
    struct job *j = ctx;
    struct error second;
    uint64_t pending;

    pthread_mutex_lock(&j->lock);
    int status = job_meet(j, JOB_CLOSE, 0, &pending, e);
    if (status == DELTAFS_OK)
        status = job_close_together(j, pending, e);
    pthread_mutex_unlock(&j->lock);
    job_unregister(j);
    int closed = job_close_own(j, status == DELTAFS_OK ? e : &second);
    job_free(j);
    return status != DELTAFS_OK ? status : closed;
}

static void job_io(void *ctx, struct deltafs_io_stat *out)
{
    deltafs_writer_io(((struct job *)ctx)->writer, out);
}

static void job_memory(void *ctx, struct deltafs_memory_stat *out)
{
    deltafs_writer_memory(((struct job *)ctx)->writer, out);
}

static const struct dir_transport job_transport = {.append = job_append,
                                                   .fail = job_fail,
                                                   .epoch_end = job_epoch_end,
                                                   .epoch_wait = job_epoch_wait,
                                                   .close = job_close,
                                                   .io = job_io,
                                                   .memory = job_memory};

/* ---- Creating ---- */

/* What rank 0 tells the others of its options; two texts follow it. */
struct job_plan {
    struct writer_config config; /* the pointers mean nothing elsewhere */
    uint64_t message;
    uint32_t path_size, schema_size; /* with their NULs */
};

/* Rank 0: options into a plan. */
static int job_make_plan(struct job_plan *plan, const char *path, const deltafs_options *o, int ranks, struct error *e)
{
    int status = deltafs_writer_configure(&plan->config, path, o, e);

    if (status != DELTAFS_OK)
        return status;
    uint64_t partitions = deltafs_options_number(o, OPTION_PARTITIONS);
    plan->config.partitions = partitions == OPTION_AUTO ? (uint32_t)ranks : (uint32_t)partitions;
    plan->message = deltafs_options_number(o, OPTION_LINK_BUFFER);
    plan->path_size = (uint32_t)strlen(path) + 1;
    plan->schema_size = (uint32_t)strlen(plan->config.schema) + 1;
    return DELTAFS_OK;
}

/* Collective: rank 0's plan, with its texts in *texts, to all. */
static int job_share_plan(const struct agree *a, struct job_plan *plan, char **texts, struct error *e)
{
    int status = agree_broadcast(a, plan, sizeof *plan, e);
    size_t n = (size_t)plan->path_size + plan->schema_size;

    if (status != DELTAFS_OK)
        return status;
    *texts = malloc(n);
    *e = (struct error){0};
    if (!*texts)
        error_no_memory(e, n, "a path");
    status = agree_status(a, e);
    if (status != DELTAFS_OK)
        return status;
    if (a->rank == 0) {
        memcpy(*texts, plan->config.path, plan->path_size);
        memcpy(*texts + plan->path_size, plan->config.schema, plan->schema_size);
    }
    status = agree_broadcast(a, *texts, (int)n, e);
    plan->config.path = *texts;
    plan->config.schema = *texts + plan->path_size;
    return status;
}

/* Collective: this rank's share of the node's memory. */
static uint64_t job_auto_memory(MPI_Comm comm)
{
    MPI_Comm node;
    int ranks = 1;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) == MPI_SUCCESS) {
        MPI_Comm_size(node, &ranks);
        MPI_Comm_free(&node);
    }
    if (pages <= 0 || page <= 0)
        return MEMORY_AUTO_MIN;
    uint64_t memory = (uint64_t)pages / 100 * MEMORY_PERCENT * (uint64_t)page / (uint64_t)ranks;
    return memory < MEMORY_AUTO_MIN ? MEMORY_AUTO_MIN : memory > MEMORY_AUTO_MAX ? MEMORY_AUTO_MAX : memory;
}

/* Local: links and writer by the plan. */
static int job_open(struct job *j, struct job_plan *plan, struct error *e)
{
    const struct agree *a = &j->agree;
    struct writer_config *c = &plan->config;
    int status = DELTAFS_OK;

    j->layout = layout_even((uint32_t)a->ranks, 1);
    j->router = router_make(ROUTER_DIRECT, &j->layout);
    j->partitions = c->partitions;
    j->is_async = c->is_async;
    j->first = partition_first(a->rank, c->partitions, a->ranks);
    j->end = partition_first(a->rank + 1, c->partitions, a->ranks);
    if (a->ranks > 1) {
        struct link_config l = {.comm = a->comm,
                                .message = plan->message,
                                .memory = c->memory / LINK_SHARE,
                                .peers = (int)router_peers(&j->router, (uint32_t)a->rank, STAGE_NET),
                                .value_size = c->value_size,
                                .deliver = job_deliver,
                                .wait = job_serve_all,
                                .arg = j};
        status = link_create(&l, &j->link, e);
        if (status != DELTAFS_OK)
            return status;
        c->reserved += link_memory(j->link);
    }
    return deltafs_writer_open(c, j->first, j->end - j->first, a->rank == 0, &j->writer, e);
}

/* Collective: make the container, and open it on all ranks. If it fails, nothing of it is left when any rank returns.
 */
static int job_make(struct job *j, struct job_plan *plan, deltafs_dir **out, struct error *e)
{
    const struct agree *a = &j->agree;
    struct error own = {0}, second;

    if (a->rank == 0)
        deltafs_writer_make(&plan->config, &own);
    if (agree_status(a, &own) != DELTAFS_OK) {
        *e = own;
        return own.status;
    }
    int status = agree_broadcast(a, plan->config.uuid, sizeof plan->config.uuid, e);
    if (status != DELTAFS_OK)
        return status;
    deltafs_dir *d = NULL;
    if (job_open(j, plan, &own) == DELTAFS_OK)
        deltafs_dir_attach(&job_transport, j, &plan->config, &d, &own);
    if (agree_status(a, &own) == DELTAFS_OK) {
        *out = d;
        return DELTAFS_OK;
    }
    /* Files must be closed on all ranks before they are removed: some network file systems keep open ones. */
    *e = own;
    deltafs_dir_free(d);
    job_close_own(j, &second);
    second = (struct error){0};
    agree_status(a, &second);
    if (a->rank == 0)
        deltafs_writer_unmake(&plan->config);
    agree_status(a, &second);
    return e->status;
}

/* Collective: all that can fail differently on different ranks is agreed upon step by step. */
static int job_create(struct job *j, const char *path, const deltafs_options *o, deltafs_dir **out, struct error *e)
{
    const struct agree *a = &j->agree;
    struct job_plan plan = {0};
    struct error own = {0};
    char *texts = NULL;

    if (a->rank == 0)
        job_make_plan(&plan, path, o, a->ranks, &own);
    if (agree_status(a, &own) != DELTAFS_OK) {
        *e = own;
        return own.status;
    }
    int status = job_share_plan(a, &plan, &texts, e);
    if (status == DELTAFS_OK) {
        if (plan.config.memory == OPTION_AUTO)
            plan.config.memory = job_auto_memory(a->comm);
        status = job_make(j, &plan, out, e);
    }
    free(texts);
    return status;
}

int deltafs_mpi_create(MPI_Comm comm, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    struct error *e = deltafs_thread_error(), own = {0};
    deltafs_options *defaults = NULL;
    struct job *j = calloc(1, sizeof *j);
    struct agree a = {.progress = job_serve_others};
    int code = MPI_Comm_dup(comm, &a.comm);

    if (code != MPI_SUCCESS) {
        free(j);
        return agree_mpi_error(e, code, "duplicate the communicator");
    }
    MPI_Comm_set_errhandler(a.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(a.comm, &a.rank);
    MPI_Comm_size(a.comm, &a.ranks);
    if (!j)
        error_no_memory(&own, sizeof *j, "a directory");
    else if (!out || (a.rank == 0 && (!path || !*path)))
        error_set(&own, DELTAFS_ERR_INVALID, "deltafs_mpi_create: path and out must be given");
    else if (a.rank == 0 && !options && deltafs_options_create(&defaults) != DELTAFS_OK)
        own = *e;
    if (agree_status(&a, &own) != DELTAFS_OK) {
        *e = own;
        deltafs_options_destroy(defaults);
        free(j);
        MPI_Comm_free(&a.comm);
        return own.status;
    }
    pthread_mutex_init(&j->lock, NULL);
    j->agree = j->quiet = a;
    j->agree.progress = job_serve_all;
    j->agree.arg = j;
    int status = job_create(j, path, options ? options : defaults, out, e);
    deltafs_options_destroy(defaults);
    if (status == DELTAFS_OK)
        job_register(j);
    else
        job_free(j);
    return status;
}

int deltafs_mpi_options_from_info(MPI_Info info, deltafs_options *options)
{
    static const char prefix[] = "deltafs_";
    int n = 0, status = DELTAFS_OK;

    if (info != MPI_INFO_NULL)
        MPI_Info_get_nkeys(info, &n);
    for (int i = 0; i < n && status == DELTAFS_OK; i++) {
        char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
        int found;
        MPI_Info_get_nthkey(info, i, key);
        if (strncmp(key, prefix, sizeof prefix - 1) != 0)
            continue;
        MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
        if (found)
            status = deltafs_options_set(options, key + sizeof prefix - 1, value);
    }
    return status;
}
