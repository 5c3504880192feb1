/* The shuffle alone, side by side with MPI_Alltoallv: how many records a second go from where they are to where they
 * belong, with nothing stored. scripts/bench-shuffle builds this program and runs it on several numbers of ranks.
 *
 *     deltafs-mpi-bench [--runs N] [--records N] [--value BYTES] [--nodes N] [--message BYTES] [--rows FILE]
 *                       [--only CONTENDER] [--over TEXT]      TEXT: of the network, for the rows' names
 *     deltafs-mpi-bench --put BYTES [--runs N] [--rows FILE]     on two ranks: sends against MPI_Put (bench_put.h)
 *     deltafs-mpi-bench --cores     one process: how far its processors are from one another
 *
 * Contenders take turns, run by run, on the same records; all ranks begin together, and the slowest counts.
 *
 *     direct, 3hop, grid   our routes
 *     alltoallv            one MPI_Alltoallv of the same bytes, which stand in order already: the bound with unlimited
 *                          memory, and with nothing to be done for each record
 *     pack+alltoallv       the same with what belongs to it: find each record's rank, say how many come, put each into
 * its place, and look at each that arrives */
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mpi.h>
#include "base/options.h"
#include "bench_cores.h"
#include "bench_help.h"
#include "bench_put.h"
#include "bench_run.h"
#include "directory/format/partition.h"
#include "mpi/shuffle/ring.h"
#include "mpi/shuffle/shuffle.h"
#include "mpi/shuffle/topology.h"
#include "test_mpi_nodes.h"

#define MEMORY     (12u << 20) /* bytes for a shuffle */
#define RUNS_MOST  99
#define CONTENDERS 5

enum contender { ALLTOALLV, PACK_ALLTOALLV, DIRECT, THREE_HOP, GRID };

static const char *const names[CONTENDERS] = {"alltoallv", "pack+alltoallv", "direct", "3hop", "grid"};

struct setting {
    int runs;
    size_t records; /* of a rank */
    size_t value;
    uint64_t message; /* bytes, of one between nodes; 0: as the library has it */
    const char *rows, *only, *over;
};

/* What arrived: enough to see that it is all. */
struct sum {
    uint64_t records, keys;
};

struct course {
    const struct setting *set;
    struct rank_group *group;
    struct topology topology;
    int rank, ranks;
    uint64_t *keys;
    uint8_t *values;
    uint16_t *owners; /* of each record */
    int *send_bytes, *send_at, *receive_bytes, *receive_at;
    uint8_t *packed, *received;
    struct sum sum;
    struct shuffle *shuffle[CONTENDERS];
    enum contender running;
};

static struct course course;

static size_t sink(void *arg, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                   size_t value_stride, size_t size)
{
    struct sum *sum = arg;

    (void)value_stride;
    for (size_t i = 0; i < n; i++) {
        uint64_t key;
        memcpy(&key, keys + i * key_stride, sizeof key);
        sum->keys += key;
    }
    sum->keys += size > 0 ? values[0] & 0u : 0u;
    sum->records += n;
    return n;
}

static void give_way(void *arg)
{
    struct course *c = arg;
    struct shuffle *s = c->shuffle[c->running];

    if (!s || !shuffle_progress(s))
        sched_yield();
}

static void yield_only(void *arg)
{
    (void)arg;
    sched_yield();
}

/* The store's argument is the sum, that of wait the course: the sum is the course's. */
static size_t course_sink(void *arg, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                          size_t value_stride, size_t size)
{
    return sink(&((struct course *)arg)->sum, n, keys, key_stride, values, value_stride, size);
}

static int owner_of(const struct course *c, uint64_t key)
{
    return (int)partition_by_hash(key, (uint32_t)c->ranks);
}

static void course_fill(struct course *c)
{
    uint64_t seed = 77 + (uint64_t)c->rank;
    size_t n = c->set->records;

    c->keys = bench_alloc(n * sizeof *c->keys);
    c->values = bench_alloc(n * c->set->value + 1);
    for (size_t i = 0; i < n; i++)
        c->keys[i] = random_next(&seed);
    for (size_t i = 0; i + 8 <= n * c->set->value; i += 8) {
        uint64_t v = random_next(&seed);
        memcpy(c->values + i, &v, 8);
    }
}

static void course_open_shuffle(struct course *c, enum contender which, enum router_kind kind)
{
    struct plan plan;
    struct error e;
    struct plan_options wanted = {
        .kind = kind, .memory = MEMORY, .message = c->set->message, .partitions = (uint32_t)c->ranks};
    struct shuffle_config config = {.plan = &plan,
                                    .rank = (uint32_t)c->group->rank,
                                    .ranks = (uint32_t)c->ranks,
                                    .cache = rings_cache(),
                                    .value_size = (int64_t)c->set->value,
                                    .store = course_sink,
                                    .wait = give_way,
                                    .arg = c};

    if (kind != ROUTER_DIRECT &&
        (c->topology.layout.nodes == 1 || c->topology.layout.nodes == c->topology.layout.ranks))
        if (kind == ROUTER_3HOP || c->topology.layout.nodes < 4)
            return; /* the same as direct */
    MPI_Comm_dup(c->group->comm, &config.comm);
    if (plan_make(&plan, &c->topology.layout, &wanted, &e) != DELTAFS_OK ||
        shuffle_create(&config, &c->shuffle[which], &e) != DELTAFS_OK ||
        shuffle_share(c->shuffle[which], c->topology.node, &e) != DELTAFS_OK)
        bench_die("%s", e.text);
    MPI_Barrier(c->group->comm);
}

/* Compute how much each rank gets. Returns the bytes that come to this one. */
static size_t course_count(struct course *c)
{
    size_t n = (size_t)c->ranks, item = 8 + c->set->value, total = 0;

    memset(c->send_bytes, 0, n * sizeof(int));
    for (size_t i = 0; i < c->set->records; i++) {
        c->owners[i] = (uint16_t)owner_of(c, c->keys[i]);
        c->send_bytes[c->owners[i]] += (int)item;
    }
    MPI_Alltoall(c->send_bytes, 1, MPI_INT, c->receive_bytes, 1, MPI_INT, c->group->comm);
    for (size_t i = 0; i < n; i++) {
        c->receive_at[i] = (int)total;
        total += (size_t)c->receive_bytes[i];
        if (i > 0)
            c->send_at[i] = c->send_at[i - 1] + c->send_bytes[i - 1];
    }
    return total;
}

/* The memory is taken once: all runs need the same. */
static void course_open_alltoallv(struct course *c)
{
    size_t n = (size_t)c->ranks;

    c->send_bytes = calloc(n, sizeof(int));
    c->send_at = calloc(n, sizeof(int));
    c->receive_bytes = calloc(n, sizeof(int));
    c->receive_at = calloc(n, sizeof(int));
    c->owners = bench_alloc(c->set->records * sizeof *c->owners);
    c->packed = bench_alloc(c->set->records * (8 + c->set->value) + 1);
    c->received = bench_alloc(course_count(c) + 1);
}

static void course_pack(struct course *c)
{
    size_t item = 8 + c->set->value;
    int *at = malloc((size_t)c->ranks * sizeof *at);

    memcpy(at, c->send_at, (size_t)c->ranks * sizeof *at);
    for (size_t i = 0; i < c->set->records; i++) {
        uint16_t owner = c->owners[i];
        uint8_t *to = c->packed + at[owner];
        memcpy(to, &c->keys[i], 8);
        memcpy(to + 8, c->values + i * c->set->value, c->set->value);
        at[owner] += (int)item;
    }
    free(at);
}

static void course_alltoallv(struct course *c, int is_packing)
{
    size_t item = 8 + c->set->value;
    int last = c->ranks - 1;

    if (is_packing) {
        course_count(c);
        course_pack(c);
    }
    MPI_Alltoallv(c->packed, c->send_bytes, c->send_at, MPI_BYTE, c->received, c->receive_bytes, c->receive_at,
                  MPI_BYTE, c->group->comm);
    size_t n = (size_t)(c->receive_at[last] + c->receive_bytes[last]) / item;
    if (is_packing)
        sink(&c->sum, n, c->received, item, c->received + 8, item, c->set->value);
    else
        c->sum.records += n;
}

/* Who waits for the others leaves them the processors: there may be fewer of these than ranks. */
static void course_meet(int code, MPI_Request *request)
{
    int is_done = 0;

    while (code == MPI_SUCCESS && !is_done) {
        sched_yield();
        code = MPI_Test(request, &is_done, MPI_STATUS_IGNORE);
    }
    if (code != MPI_SUCCESS)
        bench_die("ranks cannot wait for each other: error %d of MPI", code);
}

/* Seconds of one run, those of the slowest rank. */
static double course_run(struct course *c, enum contender which)
{
    double start, seconds, slowest;
    MPI_Request request;

    c->sum = (struct sum){0};
    c->running = which;
    course_meet(MPI_Ibarrier(c->group->comm, &request), &request);
    start = bench_now();
    if (which <= PACK_ALLTOALLV) {
        course_alltoallv(c, which == PACK_ALLTOALLV);
    } else {
        shuffle_put(c->shuffle[which], c->set->records, (const uint8_t *)c->keys, 8, c->values, c->set->value,
                    c->set->value);
        shuffle_end(c->shuffle[which]);
    }
    seconds = bench_now() - start;
    course_meet(MPI_Iallreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, c->group->comm, &request), &request);
    if (which > PACK_ALLTOALLV)
        shuffle_begin(c->shuffle[which]);
    return slowest;
}

/* That everything has arrived. */
static void course_check(struct course *c, enum contender which)
{
    uint64_t v[2] = {c->sum.records, c->sum.keys}, wanted[2] = {c->set->records, 0}, got[2], all[2];

    for (size_t i = 0; i < c->set->records; i++)
        wanted[1] += c->keys[i];
    MPI_Allreduce(v, got, 2, MPI_UINT64_T, MPI_SUM, c->group->comm);
    MPI_Allreduce(wanted, all, 2, MPI_UINT64_T, MPI_SUM, c->group->comm);
    if (got[0] != all[0] || (which != ALLTOALLV && got[1] != all[1]))
        bench_die("%s: other records have arrived than were sent", names[which]);
}

static void report(const struct course *c, double seconds[CONTENDERS][RUNS_MOST])
{
    const struct setting *set = c->set;
    double records = (double)set->records * c->ranks;
    struct spread rate[CONTENDERS];
    FILE *f = set->rows ? fopen(set->rows, "a") : NULL;

    for (int i = 0; i < CONTENDERS; i++) {
        double v[RUNS_MOST];
        for (int k = 0; k < set->runs; k++)
            v[k] = seconds[i][k] > 0 ? records / seconds[i][k] / 1e6 : 0;
        rate[i] = spread_of(v, (unsigned)set->runs);
    }
    for (int i = DIRECT; i <= GRID; i++)
        for (int peer = ALLTOALLV; peer <= DIRECT && c->shuffle[i]; peer++) {
            if (peer == i)
                continue;
            double ratio = rate[i].median / rate[peer].median;
            printf("%2d ranks, %2u nodes%s, %3zu B  %-6s %7.2f [%.2f-%.2f]  %-14s %7.2f [%.2f-%.2f]  %.2f\n", c->ranks,
                   c->topology.layout.nodes, set->over, 8 + set->value, names[i], rate[i].median, rate[i].low,
                   rate[i].high, names[peer], rate[peer].median, rate[peer].low, rate[peer].high, ratio);
            if (f)
                fprintf(f,
                        "{\"name\": \"shuffle, %d ranks on %u nodes%s, %zu B: %s\", \"ours\": %.4g, \"peer\": %.4g, "
                        "\"peer_name\": \"%s\", \"unit\": \"million records/s\", \"ratio\": %.4g}\n",
                        c->ranks, c->topology.layout.nodes, set->over, 8 + set->value, names[i], rate[i].median,
                        rate[peer].median, names[peer], ratio);
        }
    if (f && fclose(f) != 0)
        bench_die("cannot write %s", set->rows);
}

static void report_put(const struct setting *set, size_t bytes)
{
    struct spread sends, puts;
    FILE *f = set->rows ? fopen(set->rows, "a") : NULL;
    int rank;

    bench_put(MPI_COMM_WORLD, bytes, set->runs, &sends, &puts);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        printf("messages of %zu B  sends %.2f GB/s [%.2f-%.2f]  MPI_Put %.2f [%.2f-%.2f]  %.2f\n", bytes, sends.median,
               sends.low, sends.high, puts.median, puts.low, puts.high, sends.median / puts.median);
        if (f)
            fprintf(f,
                    "{\"name\": \"messages between nodes, %zu B: sends\", \"ours\": %.4g, \"peer\": %.4g, "
                    "\"peer_name\": \"MPI_Put\", \"unit\": \"GB/s\", \"ratio\": %.4g}\n",
                    bytes, sends.median, puts.median, sends.median / puts.median);
    }
    if (f && fclose(f) != 0)
        bench_die("cannot write %s", set->rows);
}

static double parse(int argc, char **argv, const char *name, double otherwise)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (strcmp(argv[i], name) == 0)
            return atof(argv[i + 1]);
    return otherwise;
}

int main(int argc, char **argv)
{
    static double seconds[CONTENDERS][RUNS_MOST];
    struct course *c = &course;
    struct error e;

    if (argc == 2 && strcmp(argv[1], "--cores") == 0) {
        printf("processors pass a cache line to and fro in %.0f ns\n", bench_cores());
        return 0;
    }
    MPI_Init(&argc, &argv);
    struct setting set = {.runs = (int)parse(argc, argv, "--runs", 5),
                          .records = (size_t)parse(argc, argv, "--records", 400000),
                          .value = (size_t)parse(argc, argv, "--value", 40),
                          .message = (uint64_t)parse(argc, argv, "--message", 0),
                          .over = ""};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--rows") == 0)
            set.rows = argv[i + 1];
        if (strcmp(argv[i], "--only") == 0)
            set.only = argv[i + 1];
        if (strcmp(argv[i], "--over") == 0)
            set.over = argv[i + 1];
    }
    c->set = &set;
    if (parse(argc, argv, "--put", 0) > 0) {
        report_put(&set, (size_t)parse(argc, argv, "--put", 0));
        MPI_Finalize();
        return 0;
    }
    if (mpi_group_create(MPI_COMM_WORLD, sizeof *c->group, yield_only, &c->group, &e) != DELTAFS_OK)
        bench_die("%s", e.text);
    c->ranks = c->group->ranks;
    pretend_nodes((int)parse(argc, argv, "--nodes", 0));
    if (topology_init(&c->topology, c->group, &e) != DELTAFS_OK)
        bench_die("%s", e.text);
    c->rank = c->group->rank;
    course_fill(c);
    course_open_shuffle(c, DIRECT, ROUTER_DIRECT);
    course_open_shuffle(c, THREE_HOP, ROUTER_3HOP);
    course_open_shuffle(c, GRID, ROUTER_GRID);
    course_open_alltoallv(c);
    course_pack(c);
    for (int run = -1; run < set.runs; run++) /* the first one does not count */
        for (int i = 0; i < CONTENDERS; i++) {
            if ((i >= DIRECT && !c->shuffle[i]) || (set.only && strcmp(set.only, names[i]) != 0))
                continue;
            double s = course_run(c, (enum contender)i);
            course_check(c, (enum contender)i);
            if (run >= 0)
                seconds[i][run] = s;
        }
    if (c->rank == 0)
        report(c, seconds);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = DIRECT; i <= GRID; i++) {
        c->running = (enum contender)i;
        if (c->shuffle[i])
            shuffle_wind_up(c->shuffle[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        shuffle_destroy(c->shuffle[i]);
        c->shuffle[i] = NULL;
    }
    MPI_Finalize();
    return 0;
}
