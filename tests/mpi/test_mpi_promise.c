/* That the shuffle takes the memory that its plan says, on every rank and by every route: as it counts itself, byte for
 * byte; and as the operating system sees it once all buffers have been used.
 *
 *     test_mpi_promise [ROUTE NODES MEMORY]
 *
 * MEMORY is the option: the shuffle gets a part of it. Without arguments, a list of cases.
 *
 * The tables of deltafs-performance(7) for jobs that nobody here can run come from the plan: this is why they can be
 * believed. */
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/options.h"
#include "mpi/shuffle/shuffle.h"
#include "mpi/shuffle/topology.h"
#include "test_mpi_check.h"
#include "test_mpi_message.h"
#include "test_mpi_nodes.h"

#define MEMORY   "96M"        /* the shuffle gets 12 */
#define VALUE    1000         /* bytes */
#define SLACK    (256u << 10) /* of a rank: what MPI takes for messages, the C library for their like */
#define PER_CENT 10

struct promise {
    const char *route;
    uint32_t nodes;      /* 0: one rank on each */
    uint64_t message;    /* 0: as the library has it */
    uint32_t partitions; /* 0: as many as ranks */
    const char *memory;
};

static struct rank_group *group;
static struct topology topology;
static struct shuffle *shuffle;
static uint64_t stored;

static size_t store(void *arg, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                    size_t value_stride, size_t size)
{
    (void)arg;
    (void)keys;
    (void)key_stride;
    (void)values;
    (void)value_stride;
    (void)size;
    stored += n;
    return n;
}

static void give_way(void *arg)
{
    (void)arg;
    if (!shuffle_progress(shuffle))
        sched_yield();
}

/* The memory that all ranks have together, each page that several see once. Collective. -1: the system does not say. */
static double all_bytes(void)
{
    char line[256];
    double own = 0, all;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    int is_reported = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "Pss_Anon:", 9) == 0 || strncmp(line, "Pss_Shmem:", 10) == 0) {
            own += strtod(strchr(line, ':') + 1, NULL) * 1024;
            is_reported = 1;
        }
    if (f)
        fclose(f);
    MPI_Allreduce(MPI_IN_PLACE, &is_reported, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return is_reported ? all : -1;
}

/* Fill every buffer of every channel: on a way of several hops, a rank's channels share what it has for all others. */
static void use_all(const struct plan *p)
{
    static uint8_t value[VALUE];
    uint32_t ranks = p->router.layout.ranks, longest = p->message > p->chunk ? p->message : p->chunk, peers = 0;

    for (int i = 0; i < STAGES; i++)
        peers += router_peers(&p->router, (uint32_t)group->rank, (enum router_stage)i);
    uint64_t each = p->buffers > PLAN_CHUNKS ? p->buffers : PLAN_CHUNKS + 1;
    uint64_t n = (peers + 1) * each * longest / VALUE, all = n;

    stored = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t key = i * ranks + (uint32_t)group->rank;
        shuffle_put(shuffle, 1, (const uint8_t *)&key, 8, value, VALUE, VALUE);
    }
    shuffle_end(shuffle);
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &stored, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(stored == all);
    shuffle_begin(shuffle);
}

/* That a number of this rank's is the plan's; returns the sum of all ranks. */
static double check_counted(const struct plan *p)
{
    uint64_t planned = plan_bytes(p, (uint32_t)group->rank), most = plan_most_bytes(p), all;
    struct shuffle_stat stat;

    shuffle_get_stat(shuffle, &stat);
    if (!CHECK(stat.memory == planned))
        fprintf(stderr, "%llu bytes, and %llu planned\n", (unsigned long long)stat.memory, (unsigned long long)planned);
    CHECK(planned <= most);
    MPI_Allreduce(&planned, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return (double)all;
}

/* By rows and columns, some channels are there for grids whose last row is short, and lie idle in others. */
static void check_grown(const struct plan *p, double grown, double planned)
{
    int may_idle = p->router.kind == ROUTER_GRID;
    /* Many ranks make many connections. */
    double own = check_ranks > 16 ? 2.0 * SLACK : SLACK, slack = planned * PER_CENT / 100 + own * check_ranks;

    if (check_rank == 0)
        printf("%.2f MiB grown, %.2f MiB planned\n", grown / (1 << 20), planned / (1 << 20));
    CHECK(grown < planned + slack);
    CHECK(may_idle || grown > planned - slack);
}

/* Options of a case; *wanted gets what deltafs_mpi_create makes of them. */
static deltafs_options *make_options(const struct promise *promise, struct plan_options *wanted)
{
    char text[200];

    snprintf(text, sizeof text, "route=%s memory=%s partitions=%u", promise->route, promise->memory,
             promise->partitions ? promise->partitions : (unsigned)check_ranks);
    check_about("%s, %u nodes, messages of %llu", text, promise->nodes, (unsigned long long)promise->message);
    limit_message(promise->message);
    deltafs_options *o = check_options(text);
    *wanted = (struct plan_options){.kind = (enum router_kind)deltafs_private_options_number(o, OPTION_ROUTE),
                                    .memory = plan_budget(deltafs_private_options_number(o, OPTION_MEMORY)),
                                    .partitions = (uint32_t)deltafs_private_options_number(o, OPTION_PARTITIONS)};
    return o;
}

/* That deltafs-mpi route says the same, where it can: of nodes that are alike. */
static void check_reported(const struct plan *p, const deltafs_options *o)
{
    const struct layout *l = &p->router.layout;
    struct deltafs_route told = {.struct_size = sizeof told};

    if (l->ranks % l->nodes != 0)
        return;
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_route(l->ranks, l->ranks / l->nodes, o, &told), NULL);
    CHECK(strcmp(told.name, plan_route_name(p->router.kind)) == 0 && told.nodes == l->nodes);
    CHECK(told.message_bytes == p->message && told.chunk_bytes == p->chunk);
    CHECK(told.bytes_per_rank == plan_most_bytes(p));
    if (check_rank == 0)
        printf("%s, %u ranks on %u nodes: %llu bytes at most on a rank\n", told.name, l->ranks, l->nodes,
               (unsigned long long)told.bytes_per_rank);
}

static void open_shuffle(const struct plan *p)
{
    struct shuffle_config config = {.plan = p,
                                    .rank = (uint32_t)group->rank,
                                    .ranks = (uint32_t)check_ranks,
                                    .comm = group->comm,
                                    .cache = check_rank / 2, /* some share one, others do not */
                                    .value_size = VALUE,
                                    .store = store,
                                    .wait = give_way};
    struct error e;

    CHECK(shuffle_create(&config, &shuffle, &e) == DELTAFS_OK);
    CHECK(shuffle_share(shuffle, topology.node, &e) == DELTAFS_OK);
    check_require();
}

static void no_wait(void *arg)
{
    (void)arg;
}

static void test_promise(const struct promise *promise)
{
    struct plan_options wanted;
    struct plan plan;
    struct error e;

    deltafs_options *o = make_options(promise, &wanted);
    CHECK(mpi_group_create(MPI_COMM_WORLD, sizeof *group, no_wait, &group, &e) == DELTAFS_OK);
    pretend_nodes(promise->nodes ? (int)promise->nodes : check_ranks);
    CHECK(topology_init(&topology, group, &e) == DELTAFS_OK);
    CHECK(plan_make(&plan, &topology.layout, &wanted, &e) == DELTAFS_OK);
    check_require();
    check_reported(&plan, o);
    double before = all_bytes();
    open_shuffle(&plan);
    double planned = check_counted(&plan);
    use_all(&plan);
    double after = all_bytes();
    if (before >= 0)
        check_grown(&plan, after - before, planned);
    shuffle_wind_up(shuffle);
    MPI_Barrier(MPI_COMM_WORLD);
    shuffle_destroy(shuffle);
    topology_fini(&topology, 0);
    mpi_group_destroy(group);
    deltafs_options_destroy(o);
    check_require();
}

/* So that MPI has what it needs to move messages before memory is measured. */
static void warm_up(void)
{
    int bytes = check_ranks <= 16 ? 256 << 10 : (4 << 20) / check_ranks;
    char *send = calloc((size_t)check_ranks, (size_t)bytes), *receive = calloc((size_t)check_ranks, (size_t)bytes);

    for (int i = 0; i < 10; i++)
        MPI_Alltoall(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, MPI_COMM_WORLD);
    free(send);
    free(receive);
}

int main(int argc, char **argv)
{
    static const struct promise promises[] = {
        {"direct", 1, 32 << 10, 0, MEMORY},
        {"direct", 0, 256 << 10, 0, MEMORY},
        {"direct", 3, 32 << 10, 0, MEMORY},
        {"3hop", 2, 1 << 20, 0, MEMORY},
        {"3hop", 3, 256 << 10, 0, MEMORY},
        {"3hop", 0, 32 << 10, 0, MEMORY},
        {"grid", 4, 512 << 10, 0, MEMORY},
        {"grid", 5, 64 << 10, 0, MEMORY},
        {"grid", 0, 1 << 20, 0, MEMORY},
        {"3hop", 2, 256 << 10, 1 << 16, MEMORY},
        {"grid", 4, 256 << 10, 100000, MEMORY},
        {"auto", 2, 4 << 20, 0, MEMORY},
        {"auto", 2, 0, 0, MEMORY},
    };

    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc == 1 || argc == 4) || !CHECK(argc == 4 || check_ranks >= 6))
        return check_end();
    struct promise asked = {argv[1], argc == 4 ? (uint32_t)atoi(argv[2]) : 0, 32 << 10, 0, argc == 4 ? argv[3] : ""};
    /* What is freed goes back to the system, so that it is seen to be taken again. */
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
    warm_up();
    if (argc == 4)
        test_promise(&asked);
    for (size_t i = 0; argc == 1 && i < sizeof promises / sizeof promises[0]; i++)
        test_promise(&promises[i]);
    check_about("at the end");
    return check_end();
}
