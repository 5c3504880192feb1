/* Making a directory that all ranks of a job write. All that can fail differently on different ranks is agreed upon
 * step by step, so that all return the same status; and if it fails, nothing is left. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <deltafs/deltafs_mpi.h>
#include "base/path.h"
#include "directory/format/partition.h"
#include "mpi/job/job.h"
#include "mpi/shuffle/ring.h"
#include "mpi/job/stats.h"

#define MEMORY_PERCENT  3 /* of the node, for the option memory at auto */
#define MEMORY_AUTO_MIN (16u << 20)

/* What rank 0 broadcasts of its options; two texts follow it. */
struct job_plan {
    struct writer_config config; /* the pointers mean nothing elsewhere */
    struct plan_options wanted;
    int has_thread, has_stats;
    uint32_t path_size, schema_size; /* with their NULs */
};

/* What the caller asks for. */
struct job_call {
    const char *path;
    const deltafs_options *options;
    int is_reopening;
};

/* Rank 0: options into a plan; *schema is to be freed, if it is set. */
static int job_make_plan(struct job_plan *plan, const struct job_call *call, int ranks, char **schema, int *stats_fd,
                         struct error *e)
{
    const deltafs_options *o = call->options;
    int status = call->is_reopening ? deltafs_private_writer_inspect(&plan->config, call->path, o, schema, e)
                                    : deltafs_private_writer_configure(&plan->config, call->path, o, e);

    if (status != DELTAFS_OK)
        return status;
    uint64_t partitions = deltafs_private_options_number(o, OPTION_PARTITIONS);
    if (!call->is_reopening)
        plan->config.partitions = partitions == OPTION_AUTO ? (uint32_t)ranks : (uint32_t)partitions;
    if (deltafs_private_writer_share(&plan->config, (uint32_t)ranks, e) != DELTAFS_OK)
        return e->status;
    plan->has_thread = deltafs_private_options_number(o, OPTION_PROGRESS) == PROGRESS_THREAD;
    plan->has_stats = deltafs_private_options_number(o, OPTION_STATS) != 0;
    if (plan->has_stats && stats_open(deltafs_private_options_text(o, OPTION_STATS), stats_fd, e) != DELTAFS_OK)
        return e->status;
    plan->wanted = (struct plan_options){.kind = (enum router_kind)deltafs_private_options_number(o, OPTION_ROUTE),
                                         .partitions = plan->config.partitions};
    plan->path_size = (uint32_t)strlen(call->path) + 1;
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
    if (a->rank != 0)
        plan->config.volumes = ""; /* rank 0 makes them */
    plan->config.schema = *texts + plan->path_size;
    return status;
}

/* A rank's share of its node's memory, where that is the least. */
static uint64_t job_auto_memory(const struct topology *t)
{
    uint64_t memory = t->memory / 100 * MEMORY_PERCENT;

    return memory < MEMORY_AUTO_MIN ? MEMORY_AUTO_MIN : memory > PLAN_MEMORY_AUTO_MAX ? PLAN_MEMORY_AUTO_MAX : memory;
}

/* Local: the shuffle, but for what the ranks of a node share. */
static int job_create_shuffle(struct job *j, const struct job_plan *plan, struct error *e)
{
    struct plan sizes;
    struct shuffle_config c = {.plan = &sizes,
                               .rank = j->topology.rank,
                               .ranks = (uint32_t)j->agree.ranks,
                               .comm = j->agree.comm,
                               .cache = rings_cache(),
                               .value_size = plan->config.value_size,
                               .store = job_store,
                               .wait = job_wait,
                               .lose = job_die,
                               .arg = j};
    int status = plan_make(&sizes, &j->topology.layout, &plan->wanted, e);

    return status == DELTAFS_OK ? shuffle_create(&c, &j->shuffle, e) : status;
}

/* Collective: the shuffle, by the plan. */
static int job_try_shuffle(struct job *j, const struct job_plan *plan, struct error *e)
{
    struct error own = {0};

    own.status = job_create_shuffle(j, plan, &own);
    int status = agree_status(&j->agree, &own);
    if (status == DELTAFS_OK) {
        own.status = shuffle_share(j->shuffle, j->topology.node, &own);
        status = agree_status(&j->agree, &own);
    }
    if (status != DELTAFS_OK) {
        *e = own;
        shuffle_destroy(j->shuffle);
        j->shuffle = NULL;
    }
    return status;
}

/* Collective: the same; where memory cannot be shared, every rank is taken for a node. */
static int job_open_shuffle(struct job *j, struct job_plan *plan, struct error *e)
{
    plan->wanted.memory = plan_budget(plan->config.memory);
    int status = job_try_shuffle(j, plan, e);

    if (status != DELTAFS_OK && !j->is_dead && status != DELTAFS_ERR_MEMORY &&
        j->topology.layout.nodes < j->topology.layout.ranks) {
        topology_split(&j->topology);
        status = job_try_shuffle(j, plan, e);
    }
    return status;
}

/* Local: the writer, by the plan. */
static int job_open(struct job *j, struct job_plan *plan, struct lease *lease, struct error *e)
{
    const struct agree *a = &j->agree;
    struct writer_config *c = &plan->config;

    uint32_t first = partition_first(a->rank, c->partitions, a->ranks);
    uint32_t end = partition_first(a->rank + 1, c->partitions, a->ranks);

    j->is_async = c->is_async;
    c->writer = (uint32_t)a->rank;
    if (j->shuffle)
        c->reserved += shuffle_memory(j->shuffle);
    return deltafs_private_writer_open(c, first, end - first, a->rank == 0 ? lease : NULL, &j->writer, e);
}

/* Collective: all have found a container that is reopened in order: go on with it. Only then is anything of it changed.
 */
static int job_resume(struct job *j, const struct writer_config *c, struct error *own)
{
    if (j->agree.rank == 0)
        own->status = deltafs_private_writer_note_open(j->writer, c, own);
    if (agree_status(&j->agree, own) != DELTAFS_OK)
        return own->status;
    own->status = deltafs_private_writer_truncate(j->writer, own);
    return agree_status(&j->agree, own);
}

/* Rank 0: take away what could not be opened. Where the ranks have lost each other it stays, and so does the lease, as
 * long as this process does: others may be writing still. */
static void job_unmake(const struct job *j, const struct writer_config *c, struct lease *lease)
{
    if (!j->is_dead)
        deltafs_private_writer_remove_container(c, lease);
}

/* Collective: make the container or take it over, and open it on all ranks. If it fails, nothing of it is left when any
 * rank returns, unless they have lost each other. */
static int job_make(struct job *j, struct job_plan *plan, deltafs_dir **out, struct error *e)
{
    const struct agree *a = &j->agree;
    struct lease lease = {0};
    struct error own = {0}, second;

    /* A call that succeeds may leave a text in `own`; only the status counts. */
    if (a->rank == 0)
        own.status = plan->config.is_reopened ? deltafs_private_writer_take(&plan->config, &lease, &own)
                                              : deltafs_private_writer_create_container(&plan->config, &lease, &own);
    int has_made = a->rank == 0 && own.status == DELTAFS_OK;
    if (agree_status(a, &own) != DELTAFS_OK) {
        *e = own;
        if (has_made)
            deltafs_private_writer_remove_container(&plan->config,
                                                    &lease); /* MPI has failed, and nobody knows of it yet */
        return own.status;
    }
    int status = agree_broadcast(a, plan->config.uuid, sizeof plan->config.uuid, e);
    if (status != DELTAFS_OK) {
        if (a->rank == 0)
            job_unmake(j, &plan->config, &lease);
        return status;
    }
    deltafs_dir *d = NULL;
    own.status = job_open(j, plan, &lease, &own);
    if (own.status == DELTAFS_OK)
        own.status = deltafs_private_dir_attach(&job_transport, j, &plan->config, &d, &own);
    status = agree_status(a, &own);
    if (status == DELTAFS_OK && plan->config.is_reopened)
        status = job_resume(j, &plan->config, &own);
    if (status == DELTAFS_OK) {
        *out = d;
        return DELTAFS_OK;
    }
    /* Files must be closed on all ranks before they are removed: some network file systems keep open ones. */
    *e = own;
    job_stop_thread(j);
    deltafs_private_dir_free(d);
    deltafs_private_writer_return_lease(j->writer, &lease);
    job_close_own(j, &second);
    second = (struct error){0};
    if (!j->is_dead)
        agree_status(a, &second);
    if (a->rank == 0)
        job_unmake(j, &plan->config, &lease);
    if (!j->is_dead)
        agree_status(a, &second);
    return e->status;
}

/* Collective: find the nodes; all agreement is in the order of the layout from there on. */
static int job_find_nodes(struct job *j, struct error *e)
{
    int status = topology_init(&j->topology, &j->agree, e);

    j->agree.comm = j->topology.comm;
    if (status == DELTAFS_OK)
        j->agree.rank = (int)j->topology.rank;
    return status;
}

/* Collective: what the options progress and stats ask for. */
static int job_set_up(struct job *j, const struct job_plan *plan, struct error *e)
{
    struct error own = {0};

    j->has_stats = plan->has_stats;
    if (!plan->has_stats && !plan->has_thread)
        return DELTAFS_OK;
    j->path = strdup(plan->config.path);
    if (!j->path)
        error_no_memory(&own, plan->path_size, "a path");
    else if (plan->has_thread && j->shuffle)
        job_start_thread(j, &own);
    if (agree_status(&j->agree, &own) != DELTAFS_OK)
        *e = own;
    return own.status;
}

/* Collective: all that can fail differently on different ranks is agreed upon step by step. */
static int job_create(struct job *j, const struct job_call *call, deltafs_dir **out, struct error *e)
{
    const struct agree *a = &j->agree;
    struct job_plan plan = {0};
    struct error own = {0};
    char *texts = NULL, *schema = NULL;

    if (a->rank == 0)
        own.status = job_make_plan(&plan, call, a->ranks, &schema, &j->stats_fd, &own);
    if (agree_status(a, &own) != DELTAFS_OK) {
        *e = own;
        free(schema);
        return own.status;
    }
    int status = job_share_plan(a, &plan, &texts, e);
    free(schema);
    if (status == DELTAFS_OK)
        status = job_find_nodes(j, e);
    if (status == DELTAFS_OK && plan.config.memory == OPTION_AUTO)
        plan.config.memory = job_auto_memory(&j->topology);
    if (status == DELTAFS_OK && a->ranks > 1)
        status = job_open_shuffle(j, &plan, e);
    if (status == DELTAFS_OK)
        status = job_set_up(j, &plan, e);
    if (status == DELTAFS_OK)
        status = job_make(j, &plan, out, e);
    free(texts);
    return status;
}

/* `name` is the public function, for messages. */
static int job_open_to_write(const char *name, MPI_Comm comm, struct job_call call, deltafs_dir **out)
{
    struct error *e = deltafs_private_thread_error(), own = {0};
    deltafs_options *defaults = NULL;
    char *whole = NULL;
    struct job *j = calloc(1, sizeof *j);
    struct agree a = {.wait = job_wait, .met = job_met};
    MPI_Request request;
    int code = MPI_Comm_idup(comm, &a.comm, &request);

    /* Others may come later: they may be waiting for this rank in another directory. */
    if (code != MPI_SUCCESS)
        agree_mpi_error(e, code, "duplicate the communicator");
    if (code != MPI_SUCCESS || agree_wait(&a, &request, "duplicate the communicator", e) != DELTAFS_OK) {
        free(j);
        return e->status;
    }
    MPI_Comm_set_errhandler(a.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(a.comm, &a.rank);
    MPI_Comm_size(a.comm, &a.ranks);
    a.name = a.rank;
    if (!j)
        error_no_memory(&own, sizeof *j, "a directory");
    else if (!out || (a.rank == 0 && (!call.path || !*call.path)))
        error_set(&own, DELTAFS_ERR_INVALID, "%s: path and out must be given", name);
    else if (a.rank == 0 && !call.options && deltafs_options_create(&defaults) != DELTAFS_OK)
        own = *e;
    else if (a.rank == 0 && !(whole = path_absolute(call.path)))
        error_no_memory(&own, strlen(call.path), "a path");
    call.path = whole;
    if (!call.options)
        call.options = defaults;
    if (agree_status(&a, &own) != DELTAFS_OK) {
        *e = own;
        deltafs_options_destroy(defaults);
        free(whole);
        free(j);
        MPI_Comm_free(&a.comm);
        return own.status;
    }
    pthread_mutex_init(&j->lock, NULL);
    pthread_mutex_lock(&j->lock); /* a thread for progress begins when all is made */
    j->agree = a;
    j->agree.lose = job_die;
    j->agree.check = job_check_dead;
    j->agree.room = &j->room;
    j->agree.arg = j;
    j->topology = (struct topology){.comm = a.comm, .node = MPI_COMM_NULL};
    j->stats_fd = -1;
    int status = job_create(j, &call, out, e);
    deltafs_options_destroy(defaults);
    free(whole);
    pthread_mutex_unlock(&j->lock);
    if (status == DELTAFS_OK) {
        job_register(j);
    } else {
        job_stop_thread(j);
        shuffle_destroy(j->shuffle);
        job_free(j);
    }
    return status;
}

int deltafs_mpi_create(MPI_Comm comm, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    return job_open_to_write("deltafs_mpi_create", comm, (struct job_call){path, options, 0}, out);
}

int deltafs_mpi_reopen(MPI_Comm comm, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    return job_open_to_write("deltafs_mpi_reopen", comm, (struct job_call){path, options, 1}, out);
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
