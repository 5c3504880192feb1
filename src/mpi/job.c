/* The directory that all ranks of a job write together: shuffle, agreement, commit.
 *
 * An epoch's end, on all ranks: agree that all call it, with one label; flush the links and drain them, so that every
 * record is with its partition's owner; seal the own partitions; agree on the outcome; rank 0 commits; all learn its
 * verdict. Four collective calls. No rank leaves before all have drained, so rounds of messages never mix. */
#include <stdio.h>
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

enum job_call { JOB_EPOCH_END = 1, JOB_CLOSE = 2 };

struct job {
    struct agree agree; /* serves the links while it waits */
    struct agree quiet; /* does not: between the drain and the verdict, records of the next epoch must not come in */
    struct router router;
    struct writer *writer;
    struct link *link;               /* NULL with one rank */
    uint32_t partitions, first, end; /* own are first to end - 1 */
    uint64_t pending;                /* records appended here in this epoch */
    int is_dead;                     /* the ranks have lost each other: no collective call can follow */
};

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

static int job_append(void *ctx, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                      size_t value_stride, size_t size, struct error *e)
{
    struct job *j = ctx;

    (void)e;
    for (size_t i = 0; i < n; i++) {
        uint64_t key;
        memcpy(&key, keys + i * key_stride, sizeof key);
        const uint8_t *value = size > 0 ? values + i * value_stride : NULL;
        uint32_t partition = partition_of(key, j->partitions);
        if (partition >= j->first && partition < j->end) {
            deltafs_writer_put(j->writer, key, value, size);
        } else {
            int owner = partition_owner(partition, j->partitions, j->agree.ranks);
            link_send(j->link, router_next_hop(&j->router, j->agree.rank, owner), key, value, size);
        }
        if (j->link && i % PROGRESS_EVERY == 0)
            link_progress(j->link);
    }
    j->pending += n;
    return DELTAFS_OK;
}

static void job_fail(void *ctx, const struct error *e)
{
    deltafs_writer_fail(((struct job *)ctx)->writer, e);
}

/* Bring every record to its owner. */
static void job_deliver_all(struct job *j)
{
    if (!j->link)
        return;
    link_flush(j->link);
    link_drain(j->link, &j->agree);
    if (link_error(j->link)->status != DELTAFS_OK)
        deltafs_writer_fail(j->writer, link_error(j->link));
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
        return error_set(e, DELTAFS_ERR_COLLECTIVE,
                         "the ranks of this directory have lost each other; see the first error");
    int status = agree_reduce(&j->agree, v, sizeof v / sizeof v[0], MPI_MIN, e);
    if (status == DELTAFS_OK && v[0] != job_opposite(v[3]))
        status = error_set(e, DELTAFS_ERR_COLLECTIVE,
                           "some ranks called deltafs_epoch_end while others called deltafs_close");
    if (status != DELTAFS_OK) {
        j->is_dead = 1;
        return status;
    }
    if (v[1] != job_opposite(v[4]) || v[2] != job_opposite(v[5]))
        return error_set(e, DELTAFS_ERR_LABEL, "the ranks ended the epoch with different labels");
    *pending = job_opposite(v[6]);
    return DELTAFS_OK;
}

/* Collective: rank 0's verdict to all. */
static int job_verdict(struct job *j, int *in_doubt, struct error *e)
{
    struct {
        struct error error;
        int in_doubt;
    } verdict = {*e, *in_doubt};
    int status = agree_broadcast(&j->quiet, &verdict, sizeof verdict, e);

    if (status != DELTAFS_OK) {
        j->is_dead = 1;
        return status;
    }
    *e = verdict.error;
    *in_doubt = verdict.in_doubt;
    return e->status;
}

static int job_commit(struct job *j, uint64_t label, const struct writer_totals *totals, int *in_doubt, struct error *e)
{
    *e = (struct error){0};
    if (j->agree.rank == 0)
        deltafs_writer_commit(j->writer, label, totals, in_doubt, e);
    return job_verdict(j, in_doubt, e);
}

/* Seal on all ranks; *totals gets the sums. */
static int job_seal(struct job *j, struct writer_totals *totals, struct error *e)
{
    struct error own = {0};
    int failed = deltafs_writer_seal(j->writer, totals, &own) != DELTAFS_OK;
    uint64_t v[4] = {totals->records, totals->bytes_raw, totals->bytes_stored, (uint64_t)failed};
    int status = agree_reduce(&j->quiet, v, 4, MPI_SUM, e);

    if (status != DELTAFS_OK) {
        j->is_dead = 1;
        return status;
    }
    *totals = (struct writer_totals){v[0], v[1], v[2]};
    if (v[3] == 0)
        return DELTAFS_OK;
    *e = own;
    return agree_status(&j->quiet, e);
}

static int job_epoch_end(void *ctx, uint64_t label, struct error *e)
{
    struct job *j = ctx;
    struct writer_totals totals;
    uint64_t pending;
    int in_doubt = 0, status = job_meet(j, JOB_EPOCH_END, label, &pending, e);

    if (status == DELTAFS_OK)
        status = deltafs_writer_check_label(j->writer, label, e);
    if (status != DELTAFS_OK)
        return status;
    job_deliver_all(j);
    status = job_seal(j, &totals, e);
    if (status == DELTAFS_OK)
        status = job_commit(j, label, &totals, &in_doubt, e);
    if (status == DELTAFS_OK)
        deltafs_writer_keep(j->writer, label);
    else
        deltafs_writer_give_up(j->writer, in_doubt || j->is_dead, e);
    j->pending = 0;
    return status;
}

/* ---- Closing ---- */

static int job_destroy(struct job *j, struct error *e)
{
    int status;

    link_destroy(j->link);
    status = deltafs_writer_destroy(j->writer, e);
    if (!j->is_dead && j->agree.comm != MPI_COMM_NULL)
        MPI_Comm_free(&j->agree.comm);
    free(j);
    return status;
}

/* All ranks have come to close. */
static int job_close_together(struct job *j, uint64_t pending, struct error *e)
{
    uint64_t tail_length = 0;
    int in_doubt = 0;

    if (pending > 0)
        job_deliver_all(j);
    *e = (struct error){0};
    deltafs_writer_finish(j->writer, &tail_length, e);
    int status = agree_status(&j->agree, e);
    if (status == DELTAFS_OK)
        status = agree_reduce(&j->agree, &tail_length, 1, MPI_MAX, e);
    if (status != DELTAFS_OK)
        return status;
    if (j->agree.rank == 0)
        deltafs_writer_commit_close(j->writer, tail_length, e);
    status = job_verdict(j, &in_doubt, e);
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
    int status = job_meet(j, JOB_CLOSE, 0, &pending, e);

    if (status == DELTAFS_OK)
        status = job_close_together(j, pending, e);
    int destroyed = job_destroy(j, status == DELTAFS_OK ? e : &second);
    return status != DELTAFS_OK ? status : destroyed;
}

static const struct deltafs_io_stat *job_io(void *ctx)
{
    return deltafs_writer_io(((struct job *)ctx)->writer);
}

static void job_memory(void *ctx, struct deltafs_memory_stat *out)
{
    deltafs_writer_memory(((struct job *)ctx)->writer, out);
}

static const struct dir_transport job_transport = {.append = job_append,
                                                   .fail = job_fail,
                                                   .epoch_end = job_epoch_end,
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

    j->router = (struct router){.kind = ROUTER_DIRECT, .ranks = a->ranks};
    j->partitions = c->partitions;
    j->first = partition_first(a->rank, c->partitions, a->ranks);
    j->end = partition_first(a->rank + 1, c->partitions, a->ranks);
    if (a->ranks > 1) {
        struct link_config l = {.comm = a->comm,
                                .message = plan->message,
                                .memory = c->memory / LINK_SHARE,
                                .peers = router_peers(&j->router, a->rank),
                                .value_size = c->value_size,
                                .deliver = job_deliver,
                                .arg = j};
        status = link_create(&l, &j->link, e);
        if (status != DELTAFS_OK)
            return status;
        c->reserved = link_memory(j->link);
        j->agree.progress = link_progress;
        j->agree.arg = j->link;
    }
    return deltafs_writer_open(c, j->first, j->end - j->first, a->rank == 0, &j->writer, e);
}

/* Collective: all that can fail differently on different ranks, agreed upon step by step. */
static int job_create(struct job *j, const char *path, const deltafs_options *o, deltafs_dir **out, struct error *e)
{
    const struct agree *a = &j->agree;
    struct job_plan plan = {0};
    char *texts = NULL;

    *e = (struct error){0};
    if (a->rank == 0)
        job_make_plan(&plan, path, o, a->ranks, e);
    int status = agree_status(a, e);
    if (status == DELTAFS_OK)
        status = job_share_plan(a, &plan, &texts, e);
    if (status == DELTAFS_OK && plan.config.memory == OPTION_AUTO)
        plan.config.memory = job_auto_memory(a->comm);
    if (status == DELTAFS_OK && a->rank == 0)
        deltafs_writer_make(&plan.config, e);
    if (status == DELTAFS_OK)
        status = agree_status(a, e);
    if (status == DELTAFS_OK)
        status = agree_broadcast(a, plan.config.uuid, sizeof plan.config.uuid, e);
    if (status == DELTAFS_OK) {
        if (job_open(j, &plan, e) == DELTAFS_OK)
            deltafs_dir_attach(&job_transport, j, plan.config.value_size, out, e);
        status = agree_status(a, e);
        if (status != DELTAFS_OK) {
            struct error own = *e;
            if (a->rank == 0)
                deltafs_writer_unmake(&plan.config);
            /* No rank returns before it is gone. */
            agree_status(a, &own);
        }
    }
    free(texts);
    return status;
}

int deltafs_mpi_create(MPI_Comm comm, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    struct error *e = deltafs_thread_error(), second;
    deltafs_options *defaults = NULL;
    deltafs_dir *d = NULL;
    struct job *j = calloc(1, sizeof *j);
    struct agree a = {.comm = MPI_COMM_NULL};
    int code = MPI_Comm_dup(comm, &a.comm);

    if (code != MPI_SUCCESS) {
        free(j);
        return agree_mpi_error(e, code, "duplicate the communicator");
    }
    MPI_Comm_set_errhandler(a.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(a.comm, &a.rank);
    MPI_Comm_size(a.comm, &a.ranks);
    *e = (struct error){0};
    if (!j)
        error_no_memory(e, sizeof *j, "a directory");
    else if (!out || (a.rank == 0 && (!path || !*path)))
        error_set(e, DELTAFS_ERR_INVALID, "deltafs_mpi_create: path and out must be given");
    else if (a.rank == 0 && !options)
        deltafs_options_create(&defaults);
    int status = agree_status(&a, e);
    if (status == DELTAFS_OK) {
        j->agree = j->quiet = a;
        status = job_create(j, path, options ? options : defaults, &d, e);
    }
    deltafs_options_destroy(defaults);
    if (status == DELTAFS_OK) {
        *out = d;
        return DELTAFS_OK;
    }
    /* A handle that was attached here, while another rank failed, is not the caller's yet. */
    free(d);
    if (j && j->agree.ranks > 0) {
        job_destroy(j, &second);
    } else {
        free(j);
        MPI_Comm_free(&a.comm);
    }
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
