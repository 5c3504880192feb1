/* Making a directory that all ranks of a job write. All that can fail differently on different ranks is agreed upon
 * step by step, so that all return the same status; and if it fails, nothing is left. */
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>
#include "base/path.h"
#include "directory/format/partition.h"
#include "mpi/job/job.h"
#include "mpi/shuffle/ring.h"
#include "query/value_index.h"

#define MEMORY_PERCENT  3 /* of the node, for the option memory at auto */
#define MEMORY_AUTO_MIN (16u << 20)

/* What rank 0 broadcasts of its options; pivots if there are any, the path and the schema follow it. */
struct job_plan {
    struct writer_config config; /* the pointers mean nothing elsewhere */
    struct plan_options wanted;
    int has_thread, has_stats, has_indexes;
};

struct job_opening {
    const char *path;
    const deltafs_options *options;
    int is_reopening;
    deltafs_options *shared; /* rank 0: the options of the directory, if indexes by value leave it less memory */
};

static size_t job_pivots_size(const struct writer_config *c)
{
    return (c->partitions - 1) * sizeof *c->pivots;
}

/* The option partitions=auto. */
static uint32_t job_partitions(const struct writer_config *c, uint32_t ranks)
{
    return c->partitioner == PARTITIONER_RANGE && ranks > PARTITIONS_RANGE_MAX ? PARTITIONS_RANGE_MAX : ranks;
}

/* Rank 0: options into a plan. */
static int job_make_plan(struct job *j, const struct job_opening *opening, const deltafs_options *o, struct bytes *out,
                         struct error *e)
{
    const char *index_by = deltafs_private_options_text(o, OPTION_INDEX_BY);
    uint64_t partitions = deltafs_private_options_number(o, OPTION_PARTITIONS);
    uint32_t ranks = (uint32_t)j->group.ranks;
    struct job_plan plan = {.has_thread = deltafs_private_options_number(o, OPTION_PROGRESS) == PROGRESS_THREAD,
                            .has_stats = deltafs_private_options_number(o, OPTION_STATS) != 0,
                            .has_indexes = *index_by != '\0'};
    struct writer_facts facts = {0};
    int status = opening->is_reopening ? deltafs_private_writer_inspect(&plan.config, opening->path, o, &facts, e)
                                       : deltafs_private_writer_configure(&plan.config, opening->path, o, e);

    if (status == DELTAFS_OK && !opening->is_reopening)
        plan.config.partitions = partitions == OPTION_AUTO ? job_partitions(&plan.config, ranks) : (uint32_t)partitions;
    plan.wanted = (struct plan_options){.kind = (enum router_kind)deltafs_private_options_number(o, OPTION_ROUTE),
                                        .partitions = plan.config.partitions};
    if (status == DELTAFS_OK)
        status = deltafs_private_writer_share(&plan.config, ranks, e);
    if (status == DELTAFS_OK && plan.has_stats)
        status = stats_open(deltafs_private_options_text(o, OPTION_STATS), &j->stats_fd, e);
    if (status == DELTAFS_OK)
        status = bytes_append(out, &plan, sizeof plan, e);
    if (status == DELTAFS_OK && plan.config.pivots)
        status = bytes_append(out, plan.config.pivots, job_pivots_size(&plan.config), e);
    if (status == DELTAFS_OK)
        status = bytes_append(out, opening->path, strlen(opening->path) + 1, e);
    if (status == DELTAFS_OK)
        status = bytes_append(out, plan.config.schema, strlen(plan.config.schema) + 1, e);
    if (status == DELTAFS_OK)
        status = bytes_append(out, index_by, strlen(index_by) + 1, e);
    deltafs_private_writer_facts_fini(&facts);
    return status;
}

/* Rank 0: the same, with the memory that indexes by value leave. */
static int job_share_memory(struct job *j, struct job_opening *opening, struct bytes *out, struct error *e)
{
    int status =
        opening->is_reopening ? deltafs_private_value_index_prune(opening->path, opening->options, e) : DELTAFS_OK;

    if (status == DELTAFS_OK)
        status = deltafs_private_value_index_share(opening->options, &opening->shared, e);
    return status == DELTAFS_OK
               ? job_make_plan(j, opening, opening->shared ? opening->shared : opening->options, out, e)
               : status;
}

static int job_open_index(void *ctx, int is_made, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    MPI_Comm comm = ((struct job *)ctx)->group.comm;

    return is_made ? deltafs_mpi_reopen(comm, path, options, out) : deltafs_mpi_create(comm, path, options, out);
}

/* Collective: the indexes by value of the directory that has just been opened. If they fail, it is closed. */
static int job_follow(struct job *j, const struct job_opening *opening, deltafs_dir **dir, struct error *e)
{
    const struct collective group = mpi_group_collective(&j->group);
    const struct value_index_ranks ranks = {.group = &group, .open = job_open_index, .ctx = j};
    struct error own = {.status = DELTAFS_OK};
    char *path = j->group.rank == 0 ? strdup(j->path) : NULL;
    int status =
        deltafs_private_value_index_follow(*dir, path ? path : "", j->index_by, &ranks, opening->options, &own);

    if (status != DELTAFS_OK) {
        deltafs_close(*dir);
        if (path && !opening->is_reopening)
            deltafs_remove(path);
        *dir = NULL;
        *e = own;
    }
    free(path);
    return status;
}

/* Collective: each rank has the partitioner that rank 0 has. */
static int job_take_partitioner(struct job *j, const struct job_opening *opening, struct writer_config *c,
                                struct error *e)
{
    c->caller = opening->options ? deltafs_private_options_partitioner(opening->options, c->partitioner_name)
                                 : (struct caller_partitioner){NULL, NULL};
    if (!c->caller.fn)
        error_set(e, DELTAFS_ERR_OPTION, "the partitioner '%s' is not given; each rank must give it",
                  c->partitioner_name);
    return mpi_agree(&j->group, e);
}

/* Collective: rank 0's plan to all, which refers to *bytes. */
static int job_share_plan(struct job *j, struct job_opening *opening, struct job_plan *plan, struct bytes *bytes,
                          struct error *e)
{
    e->status = j->group.rank == 0 ? job_share_memory(j, opening, bytes, e) : DELTAFS_OK;
    mpi_broadcast_bytes(&j->group, bytes, e);
    if (mpi_agree(&j->group, e) != DELTAFS_OK)
        return e->status;
    memcpy(plan, bytes->buffer.bytes, sizeof *plan);
    const uint8_t *at = bytes->buffer.bytes + sizeof *plan;
    if (plan->config.pivots) {
        plan->config.pivots = (const uint64_t *)(const void *)at;
        at += job_pivots_size(&plan->config);
    }
    plan->config.path = (const char *)at;
    plan->config.schema = plan->config.path + strlen(plan->config.path) + 1;
    if (j->group.rank != 0)
        plan->config.volumes = ""; /* rank 0 makes them */
    return plan->config.partitioner == PARTITIONER_CALLER ? job_take_partitioner(j, opening, &plan->config, e)
                                                          : DELTAFS_OK;
}

/* A rank's share of its node's memory, where that is the least. */
static uint64_t job_auto_memory(const struct topology *t)
{
    uint64_t memory = t->memory / 100 * MEMORY_PERCENT;

    return memory < MEMORY_AUTO_MIN ? MEMORY_AUTO_MIN : memory > PLAN_MEMORY_AUTO_MAX ? PLAN_MEMORY_AUTO_MAX : memory;
}

static size_t job_store(void *arg, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                        size_t value_stride, size_t size)
{
    return deltafs_private_writer_put(((struct job *)arg)->writer, 0, n, keys, key_stride, values, value_stride, size);
}

static void job_lose(void *arg, const struct error *e)
{
    mpi_group_lose(&((struct job *)arg)->group, e);
}

/* Collective: the shuffle, by the plan. */
static int job_try_shuffle(struct job *j, const struct job_plan *plan, struct error *e)
{
    struct plan sizes;
    struct shuffle_config c = {.plan = &sizes,
                               .rank = (uint32_t)j->group.rank,
                               .ranks = (uint32_t)j->group.ranks,
                               .comm = j->group.comm,
                               .cache = rings_cache(),
                               .value_size = plan->config.value_size,
                               .store = job_store,
                               .wait = job_wait,
                               .lose = job_lose,
                               .arg = j};

    e->status = plan_make(&sizes, &j->topology.layout, &plan->wanted, e);
    if (e->status == DELTAFS_OK)
        e->status = shuffle_create(&c, &j->shuffle, e);
    if (mpi_agree(&j->group, e) == DELTAFS_OK) {
        e->status = shuffle_share(j->shuffle, j->topology.node, e);
        mpi_agree(&j->group, e);
    }
    if (e->status != DELTAFS_OK)
        job_close_shuffle(j);
    return e->status;
}

/* Collective: the same; where memory cannot be shared, every rank is taken for a node. */
static int job_open_shuffle(struct job *j, struct job_plan *plan, struct error *e)
{
    plan->wanted.memory = plan_budget(plan->config.memory);
    int status = job_try_shuffle(j, plan, e);

    if (status != DELTAFS_OK && !mpi_group_is_lost(&j->group) && status != DELTAFS_ERR_MEMORY &&
        j->topology.layout.nodes < j->topology.layout.ranks) {
        topology_split(&j->topology);
        status = job_try_shuffle(j, plan, e);
    }
    return status;
}

/* Local: the writer, by the plan. */
static int job_open(struct job *j, struct job_plan *plan, struct lease *lease, struct error *e)
{
    struct writer_config *c = &plan->config;
    int rank = j->group.rank, ranks = j->group.ranks;
    uint32_t first = partition_first(rank, c->partitions, ranks);
    uint32_t end = partition_first(rank + 1, c->partitions, ranks);

    j->is_async = c->is_async;
    c->writer = (uint32_t)rank;
    if (j->shuffle)
        c->reserved += shuffle_memory(j->shuffle);
    int status = deltafs_private_writer_open(c, first, end - first, rank == 0 ? lease : NULL, &j->writer, e);
    if (status == DELTAFS_OK && j->shuffle)
        shuffle_place(j->shuffle, deltafs_private_writer_partitioner(j->writer));
    return status;
}

/* Collective: all have found a container that is reopened in order: go on with it. Only then is anything of it changed.
 */
static int job_resume(struct job *j, const struct writer_config *c, struct error *e)
{
    if (j->group.rank == 0)
        e->status = deltafs_private_writer_note_open(j->writer, c, e);
    if (mpi_agree(&j->group, e) == DELTAFS_OK) {
        e->status = deltafs_private_writer_truncate(j->writer, e);
        mpi_agree(&j->group, e);
    }
    return e->status;
}

/* Collective: open the container on all ranks. */
static int job_open_all(struct job *j, struct job_plan *plan, struct lease *lease, deltafs_dir **d, struct error *e)
{
    if (mpi_broadcast(&j->group, plan->config.uuid, sizeof plan->config.uuid, e) != DELTAFS_OK)
        return e->status;
    e->status = job_open(j, plan, lease, e);
    if (e->status == DELTAFS_OK)
        e->status = deltafs_private_dir_attach(&job_transport, j, j->writer, &plan->config, d, e);
    int status = mpi_agree(&j->group, e);
    return status == DELTAFS_OK && plan->config.is_reopened ? job_resume(j, &plan->config, e) : status;
}

/* Collective: make the container or take it over, and open it on all ranks. If it fails, nothing of it is left when any
 * rank returns, unless they have lost each other: others may be writing still, so it stays, and so does the lease, as
 * long as this process does. */
static int job_make(struct job *j, struct job_plan *plan, deltafs_dir **out, struct error *e)
{
    struct writer_config *c = &plan->config;
    struct lease lease = {0};
    struct error *ignored = error_ignored();

    e->status = DELTAFS_OK;
    if (j->group.rank == 0)
        e->status = c->is_reopened ? deltafs_private_writer_take(c, &lease, e)
                                   : deltafs_private_writer_create_container(c, &lease, e);
    int has_made = j->group.rank == 0 && e->status == DELTAFS_OK;
    if (mpi_agree(&j->group, e) != DELTAFS_OK) {
        if (has_made) /* MPI has failed, and nobody knows of it yet */
            deltafs_private_writer_remove_container(c, &lease);
        return e->status;
    }
    deltafs_dir *d = NULL;
    if (job_open_all(j, plan, &lease, &d, e) == DELTAFS_OK) {
        *out = d;
        return DELTAFS_OK;
    }
    /* Files must be closed on all ranks before they are removed: some network file systems keep open ones. */
    job_stop_thread(&j->thread);
    deltafs_private_dir_free(d);
    deltafs_private_writer_return_lease(j->writer, &lease);
    job_close_own(j, ignored);
    ignored->status = DELTAFS_OK;
    mpi_agree(&j->group, ignored);
    if (j->group.rank == 0 && !mpi_group_is_lost(&j->group))
        deltafs_private_writer_remove_container(c, &lease);
    ignored->status = DELTAFS_OK;
    mpi_agree(&j->group, ignored);
    return e->status;
}

/* Collective: all that can fail differently on different ranks is agreed upon step by step. */
static int job_create(struct job *j, struct job_opening *opening, int *has_indexes, deltafs_dir **out, struct error *e)
{
    struct bytes bytes = {{0}, 0};
    struct job_plan plan;
    int status = job_share_plan(j, opening, &plan, &bytes, e);

    if (status == DELTAFS_OK)
        status = topology_init(&j->topology, &j->group, e);
    if (status == DELTAFS_OK && plan.config.memory == OPTION_AUTO)
        plan.config.memory = job_auto_memory(&j->topology);
    if (status == DELTAFS_OK && j->group.ranks > 1)
        status = job_open_shuffle(j, &plan, e);
    j->has_stats = status == DELTAFS_OK && plan.has_stats;
    if (status == DELTAFS_OK && plan.has_thread && j->shuffle) {
        job_start_thread(&j->thread, e);
        status = mpi_agree(&j->group, e);
    }
    if (status == DELTAFS_OK)
        status = job_make(j, &plan, out, e);
    /* What is missing here for lack of memory is found missing when the indexes are opened. */
    if (status == DELTAFS_OK && plan.has_indexes)
        j->index_by = strdup(plan.config.schema + strlen(plan.config.schema) + 1);
    *has_indexes = plan.has_indexes;
    buffer_fini(&bytes.buffer);
    return status;
}

/* Processes of another MPI's launcher are each alone, and take the directory from each other: then the message says so.
 */
static void job_blame_launcher(struct error *e)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && ranks == 1; i++) {
        const char *size = getenv(sizes[i]);
        if (!size || atoi(size) < 2)
            continue;
        error_set(e, e->status,
                  "%s (%s=%s, but this program's MPI has started 1 process: if the launcher is that of another MPI, "
                  "each process works alone)",
                  e->text, sizes[i], size);
        return;
    }
}

/* `name` is the public function, for messages. */
static int job_open_to_write(const char *name, MPI_Comm comm, struct job_opening opening, deltafs_dir **out)
{
    struct error *e = deltafs_private_thread_error(), own = {0};
    deltafs_options *defaults = NULL;
    struct rank_group *group;
    int has_indexes = 0;

    if (mpi_group_create(comm, sizeof(struct job), job_wait, &group, e) != DELTAFS_OK)
        return e->status;
    struct job *j = (struct job *)(void *)group;
    j->group.arg = j;
    j->topology.node = MPI_COMM_NULL;
    j->stats_fd = -1;
    pthread_mutex_init(&j->lock, NULL);
    pthread_mutex_lock(&j->lock); /* a thread for progress begins when all is made */
    if (!out || (group->rank == 0 && (!opening.path || !*opening.path)))
        error_set(&own, DELTAFS_ERR_INVALID, "%s: path and out must be given", name);
    else if (group->rank == 0 && !opening.options && deltafs_options_create(&defaults) != DELTAFS_OK)
        own = *e;
    else if (group->rank == 0 && !(j->path = path_absolute(opening.path)))
        error_no_memory(&own, strlen(opening.path), "a path");
    opening.path = j->path;
    if (!opening.options)
        opening.options = defaults;
    int status = mpi_agree(group, &own);
    if (status == DELTAFS_OK)
        status = job_create(j, &opening, &has_indexes, out, &own);
    pthread_mutex_unlock(&j->lock);
    int is_open = status == DELTAFS_OK;
    if (is_open) {
        job_register(j);
        status = has_indexes ? job_follow(j, &opening, out, e) : DELTAFS_OK;
    }
    deltafs_options_destroy(opening.shared);
    deltafs_options_destroy(defaults);
    if (is_open)
        return status;
    if (status == DELTAFS_ERR_EXISTS || status == DELTAFS_ERR_BUSY)
        job_blame_launcher(&own);
    job_stop_thread(&j->thread);
    job_close_shuffle(j);
    job_free(j);
    *e = own;
    return status;
}

int deltafs_mpi_create(MPI_Comm comm, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    return job_open_to_write("deltafs_mpi_create", comm, (struct job_opening){.path = path, .options = options}, out);
}

int deltafs_mpi_reopen(MPI_Comm comm, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    return job_open_to_write("deltafs_mpi_reopen", comm,
                             (struct job_opening){.path = path, .options = options, .is_reopening = 1}, out);
}

int deltafs_mpi_options_from_info(MPI_Info info, deltafs_options *options)
{
    static const char prefix[] = "deltafs_";
    int n = 0, status = mpi_check_kind(deltafs_private_thread_error());

    if (status == DELTAFS_OK && info != MPI_INFO_NULL)
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
