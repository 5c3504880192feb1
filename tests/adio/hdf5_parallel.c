/* A parallel HDF5 program like any other: writes a file of groups, attributes and datasets, contiguous, chunked and
 * compressed, with collective and independent transfers, closes it, opens it again and adds to it; or reads such a file
 * and checks every value. It knows nothing of DeltaFS.
 *
 *     hdf5_parallel write|add|read FILE        ("read" also with one rank and without MPI-IO: "plain") */
#include <stdlib.h>
#include <string.h>
#include "hdf5_must.h"

#define ROWS    24 /* of all ranks, however many: divisible by 1, 2, 3 and 4 */
#define COLUMNS 700
#define STEPS   3

static float value(int step, int variable, int row, int column)
{
    return (float)(step * 1000000 + variable * 100000) + (float)(row * COLUMNS + column) / 8;
}

static hid_t open_file(const char *path, int is_new, int is_written, int is_plain)
{
    hid_t fapl = must_id(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
    unsigned flags = is_written ? H5F_ACC_RDWR : H5F_ACC_RDONLY;

    if (!is_plain)
        MUST(H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, MPI_INFO_NULL));
    hid_t file = must_id(is_new ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl) : H5Fopen(path, flags, fapl),
                         is_new ? "H5Fcreate" : "H5Fopen");
    MUST(H5Pclose(fapl));
    return file;
}

/* The variables of a step: contiguous and collective, contiguous and independent, chunked, chunked and compressed. */
static void access_variable(hid_t group, int step, int variable, int is_written, int is_plain)
{
    hsize_t all[2] = {ROWS, COLUMNS}, chunk[2] = {5, 130}, start[2] = {0, 0},
            count[2] = {ROWS / (hsize_t)ranks, COLUMNS};
    char name[16];
    float *own = malloc(count[0] * count[1] * sizeof *own);
    int wrong = 0;

    start[0] = (hsize_t)rank * count[0];
    snprintf(name, sizeof name, "v%d", variable);
    hid_t space = must_id(H5Screate_simple(2, all, NULL), "H5Screate_simple");
    hid_t memory = must_id(H5Screate_simple(2, count, NULL), "H5Screate_simple");
    hid_t create = must_id(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
    hid_t transfer = must_id(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");
    if (variable >= 2)
        MUST(H5Pset_chunk(create, 2, chunk));
    if (variable == 3)
        MUST(H5Pset_deflate(create, 4));
    if (!is_plain)
        MUST(H5Pset_dxpl_mpio(transfer, variable == 1 ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE));
    MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
    hid_t set = must_id(is_written ? H5Dcreate2(group, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, create, H5P_DEFAULT)
                                   : H5Dopen2(group, name, H5P_DEFAULT),
                        name);
    for (hsize_t i = 0; i < count[0] * count[1]; i++)
        own[i] = is_written ? value(step, variable, (int)(start[0] + i / COLUMNS), (int)(i % COLUMNS)) : -1;
    if (is_written)
        MUST(H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, transfer, own));
    else
        MUST(H5Dread(set, H5T_NATIVE_FLOAT, memory, space, transfer, own));
    for (hsize_t i = 0; i < count[0] * count[1]; i++)
        wrong += own[i] != value(step, variable, (int)(start[0] + i / COLUMNS), (int)(i % COLUMNS));
    if (wrong > 0) {
        fprintf(stderr, "rank %d: step %d, %s: %d values are wrong\n", rank, step, name, wrong);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MUST(H5Dclose(set));
    MUST(H5Pclose(transfer));
    MUST(H5Pclose(create));
    MUST(H5Sclose(memory));
    MUST(H5Sclose(space));
    free(own);
}

static void access_step(hid_t file, int step, int is_written, int is_plain)
{
    char name[32];
    int number = step;

    snprintf(name, sizeof name, "Timestep_%d", step);
    hid_t group = must_id(is_written ? H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                                     : H5Gopen2(file, name, H5P_DEFAULT),
                          name);
    hid_t space = must_id(H5Screate(H5S_SCALAR), "H5Screate");
    hid_t attribute = must_id(is_written ? H5Acreate2(group, "step", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT)
                                         : H5Aopen(group, "step", H5P_DEFAULT),
                              "the attribute");
    if (is_written)
        MUST(H5Awrite(attribute, H5T_NATIVE_INT, &number));
    else
        MUST(H5Aread(attribute, H5T_NATIVE_INT, &number));
    if (number != step)
        MUST(-1);
    for (int variable = 0; variable < 4; variable++)
        access_variable(group, step, variable, is_written, is_plain);
    MUST(H5Aclose(attribute));
    MUST(H5Sclose(space));
    MUST(H5Gclose(group));
}

int main(int argc, char **argv)
{
    must_begin(&argc, &argv);
    if (argc != 3 || ROWS % ranks != 0) {
        fprintf(stderr, "usage: hdf5_parallel write|add|read|plain FILE, on a number of ranks that divides %d\n", ROWS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int is_new = strcmp(argv[1], "write") == 0, is_added = strcmp(argv[1], "add") == 0;
    int is_plain = strcmp(argv[1], "plain") == 0;
    hid_t file = open_file(argv[2], is_new, is_new || is_added, is_plain);
    for (int step = is_added ? STEPS : 0; step < (is_new ? STEPS : STEPS + 1); step++) {
        access_step(file, step, is_new || is_added, is_plain);
        if (is_new)
            MUST(H5Fflush(file, H5F_SCOPE_GLOBAL));
    }
    MUST(H5Fclose(file));
    MPI_Finalize();
    return 0;
}
