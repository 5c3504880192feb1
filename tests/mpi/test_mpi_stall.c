/* Storage that stops on one rank: nobody's memory grows, whatever is under way to it, and all ends well.
 *
 *     test_mpi_stall FOLDER
 *
 * By every route: an epoch, then one like it amid which a rank's storage stops for two seconds. What the ranks hold
 * meanwhile must fit what they held in the first. Messages are short: MPI takes such in, as many as come, where nobody
 * waits for them, so that without credits they would heap up in it.
 *
 * By the route 3hop, with a rank that stands for its node: its storage stops until the others have appended records for
 * one another, far more than fits on the way, all of which it must hand on; test_mpi_relay looks closer. The same where
 * it ends an epoch meanwhile, and the others go on in another directory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "directory/format/partition.h"
#include "test_mpi_check.h"
#include "test_mpi_message.h"
#include "test_mpi_nodes.h"
#include "test_mpi_slow.h"

#define STALL_MS  2000
#define SLACK_MIB 2 /* that the peak may grow by: the C library's, MPI's */

#define MESSAGE      2048    /* bytes */
#define VALUE        200     /* bytes */
#define VALUE_MOST   240     /* where a test asks for others */
#define ALL_RECORDS  400000u /* 80 MB: ten times what a rank may use */
#define MEMORY_LIMIT "8M"

/* The peak of the resident memory, in MiB. */
static double peak_mib(void)
{
    char line[256];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtod(line + 6, NULL);
    if (f)
        fclose(f);
    return kib / 1024;
}

/* Record `i` of a rank: its key is its number in the job, so that each comes back once. */
static void record_make(uint64_t number, uint8_t *value)
{
    for (size_t at = 0; at < VALUE; at += 8) {
        uint64_t v = (number + at) * UINT64_C(0x9e3779b97f4a7c15);
        memcpy(value + at, &v, 8);
    }
}

static void write_epoch(deltafs_dir *dir, uint64_t label, int is_stalled)
{
    uint8_t value[VALUE];
    uint64_t n = ALL_RECORDS / (uint64_t)check_ranks;
    struct deltafs_memory_stat memory = {.struct_size = sizeof memory};

    if (is_stalled)
        slow_stall(STALL_MS);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t number = (uint64_t)check_rank * n + i;
        record_make(number, value);
        CHECK_STATUS(DELTAFS_OK, deltafs_append(dir, number, value, VALUE), dir);
    }
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, label), dir);
    CHECK_STATUS(DELTAFS_OK, deltafs_memory_stat(dir, &memory), dir);
    CHECK(memory.peak <= memory.limit);
    CHECK(!is_stalled || slow_has_stalled());
}

struct seen {
    uint8_t *bits;
    uint64_t n;
};

static int see(const struct deltafs_record *r, void *arg)
{
    struct seen *s = arg;
    uint8_t value[VALUE];
    uint64_t at = (r->label - 1) * ALL_RECORDS + r->key;

    record_make(r->key, value);
    if (!CHECK(r->key < ALL_RECORDS && r->size == VALUE && memcmp(value, r->value, VALUE) == 0) ||
        !CHECK(!(s->bits[at / 8] >> at % 8 & 1)))
        return 1;
    s->bits[at / 8] |= (uint8_t)(1u << at % 8);
    s->n++;
    return 0;
}

static void compare(const char *path, uint64_t epochs)
{
    struct seen s = {.bits = calloc(epochs, ALL_RECORDS / 8 + 1)};
    uint64_t wanted = epochs * (ALL_RECORDS / (uint64_t)check_ranks * (uint64_t)check_ranks);
    deltafs_dir *dir;
    int stopped = 0;

    if (CHECK_STATUS(DELTAFS_OK, deltafs_open(path, NULL, &dir), NULL)) {
        CHECK_STATUS(DELTAFS_OK, deltafs_scan(dir, NULL, see, &s, &stopped), dir);
        CHECK(stopped == 0);
        CHECK(s.n == wanted);
        CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    }
    free(s.bits);
}

/* The rank that stalls is not the first, whose own thread writes the manifest. */
static void test_directory(const char *folder, const char *route, int nodes, int stalled)
{
    deltafs_dir *dir = NULL;
    char text[256], name[32];

    check_about("route=%s, %d nodes, rank %d stalls", route, nodes, stalled);
    snprintf(text, sizeof text, "route=%s memory=" MEMORY_LIMIT " sync=none codec=none value_size=%d", route, VALUE);
    pretend_nodes(nodes);
    snprintf(name, sizeof name, "%s-%d", route, nodes);
    deltafs_options *o = check_options(text);
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, check_path(folder, name), o, &dir), NULL);
    deltafs_options_destroy(o);
    check_require();
    write_epoch(dir, 1, 0);
    double before = peak_mib();
    write_epoch(dir, 2, check_rank == stalled);
    double grown = peak_mib() - before;
    if (!CHECK(grown < SLACK_MIB))
        fprintf(stderr, "rank %d: the peak grew from %.1f by %.1f MiB\n", check_rank, before, grown);
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    if (check_rank == 0)
        compare(check_path(folder, name), 2);
    check_require();
}

/* ---- A gate that the others open ---- */

#define GATE_SECONDS  40
#define GATE_RECORDS  30000u  /* of one rank for another: 6 MB; places alone are 0.5 MB */
#define FIRST_RECORDS 2000u   /* of the rank that stalls before it does: they make its log of values */
#define LAST_RECORDS  100u    /* of a rank before it ends an epoch: they fit what its log has in memory */
#define OWN_RECORDS   120000u /* of the rank that stalls for itself: three times its memory */

static struct board {
    atomic_int done; /* ranks that have appended what the gate waits for */
    atomic_int gate;
} * board;

static void open_board(MPI_Win *window)
{
    MPI_Aint bytes = check_rank == 0 ? (MPI_Aint)sizeof *board : 0;
    int unit;

    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &board, window);
    MPI_Win_shared_query(*window, 0, &bytes, &unit, &board);
    if (check_rank == 0)
        *board = (struct board){0};
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Append records of number `first` and on for a rank; returns the number after them. */
static uint64_t append_for(deltafs_dir *dir, int to, uint64_t first, uint64_t n, size_t size)
{
    uint8_t value[VALUE_MOST] = {0};

    for (; n > 0; first++) {
        if (partition_by_hash(first, (uint32_t)check_ranks) != (uint32_t)to)
            continue;
        CHECK_STATUS(DELTAFS_OK, deltafs_append(dir, first, value, size), dir);
        n--;
    }
    return first;
}

/* Append records of the ranks that do not stall for one another, and open the gate once all have. */
static void pass_by(deltafs_dir *dir, int stalled, size_t size)
{
    uint64_t next = 0;

    for (uint64_t i = 0; i < GATE_RECORDS; i += 100)
        for (int to = 0; to < check_ranks; to++)
            if (to != stalled && to != check_rank)
                next = append_for(dir, to, next, 100, size);
    if (++board->done == check_ranks - 1)
        board->gate = 1;
}

static void append_gated(deltafs_dir *dir, int stalled, size_t size)
{
    if (check_rank != stalled) {
        pass_by(dir, stalled, size);
        return;
    }
    uint64_t next = append_for(dir, stalled, 0, FIRST_RECORDS, size);
    slow_hold(&board->gate, GATE_SECONDS);
    append_for(dir, stalled, next, OWN_RECORDS - FIRST_RECORDS, size);
}

static void test_gate(const char *folder, const char *place, size_t size)
{
    int stalled = check_ranks / 2; /* the first of the second node: it stands for the other */
    deltafs_dir *dir = NULL;
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    MPI_Win window;
    char text[256], name[64];
    uint64_t others = (uint64_t)check_ranks - 1;

    check_about("layout=%s, values of %zu: rank %d stalls until the others have passed it", place, size, stalled);
    open_board(&window);
    snprintf(text, sizeof text, "layout=%s route=3hop memory=" MEMORY_LIMIT " sync=none codec=none value_size=%zu",
             place, size);
    snprintf(name, sizeof name, "%s-%zu", place, size);
    deltafs_options *o = check_options(text);
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, check_path(folder, name), o, &dir), NULL);
    deltafs_options_destroy(o);
    check_require();
    append_gated(dir, stalled, size);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, 1), dir);
    CHECK(!slow_is_client_cached());
    slow_hold(NULL, 0);
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    if (check_rank == 0 && CHECK_STATUS(DELTAFS_OK, deltafs_open(check_path(folder, name), NULL, &dir), NULL)) {
        CHECK_STATUS(DELTAFS_OK, deltafs_stat(dir, &stat), dir);
        CHECK(stat.records == OWN_RECORDS + others * (others - 1) * GATE_RECORDS);
        CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
    }
    MPI_Win_free(&window);
    check_require();
}

/* The rank that stalls ends an epoch of values in one directory, and the others go on in another. */
static void test_two(const char *folder)
{
    int stalled = check_ranks / 2;
    deltafs_dir *local = NULL, *other = NULL;
    MPI_Win window;

    check_about("rank %d stalls at an epoch's end, until the others have passed it in another directory", stalled);
    open_board(&window);
    deltafs_options *o =
        check_options("route=3hop memory=" MEMORY_LIMIT " sync=none codec=none value_size=200 commit=async");
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, check_path(folder, "other"), o, &other), NULL);
    CHECK_STATUS(DELTAFS_OK, deltafs_options_set(o, "layout", "local"), NULL);
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, check_path(folder, "values"), o, &local), NULL);
    deltafs_options_destroy(o);
    check_require();
    uint64_t next = append_for(local, check_rank, 0, FIRST_RECORDS, VALUE);
    if (check_rank == stalled)
        slow_hold(&board->gate, GATE_SECONDS);
    append_for(local, check_rank, next, LAST_RECORDS, VALUE);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(local, 1), local);
    if (check_rank != stalled)
        pass_by(other, stalled, VALUE);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(other, 1), other);
    CHECK(!slow_is_client_cached());
    slow_hold(NULL, 0);
    CHECK_STATUS(DELTAFS_OK, deltafs_close(other), NULL);
    CHECK_STATUS(DELTAFS_OK, deltafs_close(local), NULL);
    MPI_Win_free(&window);
    check_require();
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (!CHECK(argc == 2 && check_ranks >= 4))
        return check_end();
    slow_install();
    limit_message(MESSAGE);
    pretend_nodes(2);
    test_gate(argv[1], "partitioned", VALUE);
    test_gate(argv[1], "local", VALUE);
    /* Of which a block is four times as long as it is asked to be. */
    test_gate(argv[1], "local", VALUE_MOST);
    test_two(argv[1]);
    test_directory(argv[1], "direct", 1, check_ranks - 1);
    test_directory(argv[1], "direct", check_ranks, 1);
    test_directory(argv[1], "3hop", 2, check_ranks / 2);
    test_directory(argv[1], "grid", check_ranks, 1);
    check_about("at the end");
    return check_end();
}
