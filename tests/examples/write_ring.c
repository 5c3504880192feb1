/* Example: particles on a ring, written by all ranks of a job. One dump is one epoch.
 *
 *     mpicc -o write_ring write_ring.c $(pkg-config --cflags --libs deltafs-mpi) -lm
 *     mpirun -np 4 ./write_ring ring 20        # creates the directory `ring`; 20 steps
 *     mpirun -np 4 ./write_ring ring 40        # goes on behind the last step that is committed
 *     deltafs get ring 123
 *
 * Any rank may write any particle: here each rank writes the particles that are in its sector of the ring. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <deltafs/deltafs_mpi.h>
#include <deltafs/deltafs_query.h>

#define PARTICLES 1000
#define DT        0.05
#define TWO_PI    6.283185307179586

/* A value as the schema says: little-endian, without padding. */
struct value {
    float x, y;
};

/* All ranks get the same status from a collective call, so all of them end here. */
static void check(int status, const char *what)
{
    int rank;

    if (status == DELTAFS_OK)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "write_ring: %s: %s\n", what, deltafs_errmsg(NULL));
    MPI_Finalize();
    exit(1);
}

/* Open the directory, or create it. *step gets the last step that it has, 0 if none. */
static deltafs_dir *ring_open(const char *path, uint64_t *step)
{
    struct deltafs_attribute dt = {.struct_size = sizeof dt, .name = "dt", .type = DELTAFS_ATTRIBUTE_F8, .count = 1};
    struct deltafs_attribute radius = {.struct_size = sizeof radius, .name = "r", .type = DELTAFS_ATTRIBUTE_EXPRESSION};
    deltafs_options *options;
    deltafs_dir *dir;
    int status = deltafs_mpi_reopen(MPI_COMM_WORLD, path, NULL, &dir);

    *step = 0;
    if (status != DELTAFS_ERR_NOT_FOUND) {
        check(status, "deltafs_mpi_reopen");
        status = deltafs_last_label(dir, step);
        if (status != DELTAFS_ERR_NOT_FOUND)
            check(status, "deltafs_last_label");
        return dir;
    }
    check(deltafs_options_create(&options), "deltafs_options_create");
    check(deltafs_options_set(options, "schema", "x:f4,y:f4"), "deltafs_options_set");
    check(deltafs_mpi_create(MPI_COMM_WORLD, path, options, &dir), "deltafs_mpi_create");
    deltafs_options_destroy(options);
    dt.value = &(double){DT};
    radius.value = "sqrt(x**2 + y**2)"; /* a computed column */
    check(deltafs_attribute_set(dir, &dt), "deltafs_attribute_set");
    check(deltafs_attribute_set(dir, &radius), "deltafs_attribute_set");
    return dir;
}

/* Write the particles of this rank's sector. */
static int ring_dump(deltafs_dir *dir, uint64_t step, int rank, int ranks)
{
    static uint64_t id[PARTICLES];
    static struct value value[PARTICLES];
    size_t n = 0;

    for (uint64_t i = 0; i < PARTICLES; i++) {
        double turns = (double)i / PARTICLES + DT * (double)step * (1 + (double)(i % 7)) / 7;
        turns -= floor(turns);
        if ((int)(turns * ranks) != rank)
            continue;
        id[n] = i;
        value[n] = (struct value){(float)cos(TWO_PI * turns), (float)sin(TWO_PI * turns)};
        n++;
    }
    /* deltafs_epoch_end returns the error of an append, on all ranks. */
    deltafs_append_many(dir, n, id, sizeof *id, value, sizeof *value, sizeof *value);
    return deltafs_epoch_end(dir, step);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    uint64_t step;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3) {
        if (rank == 0)
            fprintf(stderr, "usage: write_ring DIR STEPS\n");
        MPI_Finalize();
        return 2;
    }
    uint64_t steps = strtoull(argv[2], NULL, 10);
    deltafs_dir *dir = ring_open(argv[1], &step);
    if (rank == 0)
        printf("steps %llu to %llu\n", (unsigned long long)step + 1, (unsigned long long)steps);
    while (step < steps) {
        step++;
        check(ring_dump(dir, step, rank, ranks), "deltafs_epoch_end");
    }
    check(deltafs_close(dir), "deltafs_close");
    MPI_Finalize();
    return 0;
}
