/* The shuffle against its oracle: a range of random cases, each a directory written by all ranks and read back by rank
 * 0.
 *
 *     test_mpi_shuffle FOLDER FIRST COUNT [SCALE [THREAD-LEVEL [any]]]
 *
 * Case numbers go through value sizes and skews in turn, and choose the rest at random. SCALE is the records in per
 * cent of what makes several runs per partition; at 0 a rank is slow instead. With `any`, they go through routes as
 * well, on a random number of nodes; and some values are far longer than any buffer of the way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test_mpi_check.h"
#include "test_mpi_message.h"
#include "test_mpi_nodes.h"
#include "test_mpi_plan.h"

/* Of all ranks in an epoch: */
#define BYTES_MOST   16000000u
#define RECORDS_MOST 150000u
#define ONE_KEY_MOST 20000u
#define MESSAGES_MOST                                                                                                  \
    4000u         /* where long values go in short ones, each costs a turn of other ranks on a busy machine            \
                   */
#define SMALL 150 /* records */
#define SLOW  4000

/* The layout: as MPI has it, or any, with any route; then more values are long. */
static int is_any_layout;

static uint32_t case_records(uint64_t number, const struct plan *p, unsigned scale)
{
    /* Sizes that differ have their long ones: about this much together. */
    uint64_t each = 24 + (p->value_size >= 0 ? (uint64_t)p->value_size : p->has_long ? 200000 : 3000);
    uint64_t bytes = is_any_layout && MESSAGES_MOST * p->message < BYTES_MOST ? MESSAGES_MOST * p->message : BYTES_MOST;
    uint64_t all = bytes / each, most = p->skew == PLAN_ONE_KEY ? ONE_KEY_MOST : RECORDS_MOST;

    if (scale == 0)
        return all / (uint64_t)check_ranks < SLOW ? (uint32_t)(all / (uint64_t)check_ranks) : SLOW;
    if (all > most)
        all = most;
    all = number % 5 == 3 && all > SMALL ? SMALL : all * scale / 100;
    return 1 + (uint32_t)(all / (uint64_t)check_ranks);
}

/* Nodes and route, with the options as text; where messages end by them. */
static void case_make_layout(uint64_t number, struct plan *p, const char *memory, char *options, size_t n)
{
    static const char *const routes[] = {"direct", "3hop", "grid"};
    const char *route = plan_random(p->seed, 9) % 8 ? routes[number % 3] : "auto";
    unsigned nodes = 1 + (unsigned)(plan_random(p->seed, 10) % (uint64_t)check_ranks);
    unsigned per_node = ((unsigned)check_ranks + nodes - 1) / nodes;
    struct deltafs_route r = {.struct_size = sizeof r};
    char text[128];

    pretend_nodes((int)nodes);
    snprintf(options, n, " route=%s", route);
    /* About, where the shares are uneven. */
    snprintf(text, sizeof text, "route=%s %s", route, memory);
    deltafs_options *o = check_options(text);
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_route((uint64_t)check_ranks, per_node, o, &r), NULL);
    deltafs_options_destroy(o);
    p->message = r.message_bytes;
    p->chunk = r.chunk_bytes;
}

static int64_t case_value_size(uint64_t number)
{
    static const int64_t sizes[] = {-1, 0, 1, 8, 40, 1000}, any_layout[] = {-1, 0, 1, 8, -1, 40, 1000, 70000};

    return is_any_layout ? any_layout[number % 8] : sizes[number % 6];
}

static void case_make(uint64_t number, unsigned scale, struct plan *p, char *options, size_t n)
{
    static const char *const partitions[] = {"auto", "1", "2", "5", "64"};
    static const size_t messages[] = {1500, 4096, 32768};
    uint64_t seed = plan_random(number, (uint64_t)check_ranks), message = plan_random(seed, 4) % 5;
    char value_size[24] = "any", memory[24], layout[64] = "";

    message = message < 2 ? 0 : message < 4 ? 1 : 2;
    snprintf(memory, sizeof memory, "memory=%uM", 8 + (unsigned)(plan_random(seed, 5) % 3 * 4));
    *p = (struct plan){.seed = seed,
                       .ranks = check_ranks,
                       .value_size = case_value_size(number),
                       .message = messages[message],
                       .has_long = is_any_layout && number % 8 == 4,
                       .skew = (enum plan_skew)((is_any_layout ? plan_random(seed, 11) : number / 6) % PLAN_SKEWS),
                       .keys = (enum plan_keys)(plan_random(seed, 6) % PLAN_KEYS),
                       .epochs = 2 + (uint32_t)(plan_random(seed, 7) % 2),
                       .slow_rank = scale == 0 ? (int)(seed % (uint64_t)check_ranks) : -1};
    limit_message(p->message);
    if (is_any_layout)
        case_make_layout(number, p, memory, layout, sizeof layout);
    p->records = case_records(number, p, scale);
    p->subfiles = 1 + p->records * (uint32_t)check_ranks / (1 + (uint32_t)(plan_random(seed, 8) % 6));
    if (p->value_size >= 0)
        snprintf(value_size, sizeof value_size, "%lld", (long long)p->value_size);
    snprintf(options, n, "value_size=%s partitions=%s partitioner=%s %s sync=%s codec=%s layout=%s%s", value_size,
             partitions[(number + number / 5) % 5], number % 3 == 1 ? "range" : "hash", memory,
             number % 8 == 0 ? "commit" : "none", number % 7 == 0 ? "none" : "snappy",
             plan_random(seed, 12) % 3 ? "partitioned" : "local", layout);
}

static void case_run(uint64_t number, unsigned scale, const char *folder)
{
    struct plan p;
    char options[256], name[32];
    deltafs_dir *dir = NULL;

    case_make(number, scale, &p, options, sizeof options);
    check_about("case %llu (%s; messages of %zu, skew %d, keys %d, %u records, %u subfiles)",
                (unsigned long long)number, options, p.message, p.skew, p.keys, p.records, p.subfiles);
    snprintf(name, sizeof name, "case%llu", (unsigned long long)number);
    deltafs_options *o = check_options(options);
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, check_path(folder, name), o, &dir), NULL);
    deltafs_options_destroy(o);
    check_require();
    for (uint32_t epoch = 0; epoch < p.epochs; epoch++) {
        CHECK_STATUS(DELTAFS_OK, plan_append(&p, dir, epoch, check_rank), dir);
        CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, plan_label(epoch)), dir);
    }
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    if (check_rank == 0)
        plan_compare(&p, check_path(folder, name), p.epochs, 1);
}

static int level_of(const char *name)
{
    const char *const names[] = {"single", "funneled", "serialized", "multiple"};
    const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    int i = 0;

    while (i < 3 && strcmp(name, names[i]) != 0)
        i++;
    return levels[i];
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, level_of(argc > 5 ? argv[5] : "single"));
    if (!CHECK(argc >= 4))
        return check_end();
    uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    unsigned scale = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 100;
    is_any_layout = argc > 6 && strcmp(argv[6], "any") == 0;

    for (uint64_t i = first; i < first + count; i++)
        case_run(i, scale, argv[1]);
    check_about("at the end");
    return check_end();
}
