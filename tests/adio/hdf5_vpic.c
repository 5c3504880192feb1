/* A parallel HDF5 program like any other, with the layout of h5bench's VPIC kernel: a file of steps, each a group
 * Timestep_N of eight datasets of one dimension, of which each rank writes a part. It knows nothing of DeltaFS.
 *
 *     hdf5_vpic write FILE STEPS ROWS collective|independent [CHUNK]    ROWS of each rank
 *     hdf5_vpic read FILE STEPS ROWS collective|independent             checks every value
 *     hdf5_vpic add FILE STEPS ROWS collective|independent              one more step behind STEPS of them
 *
 * A row's values follow from its ID and the step, and IDs are dealt out differently in each step. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "hdf5_must.h"

#define VARIABLES  8
#define MULTIPLIER 48271 /* a prime that divides no number of rows used here */

static const char *const names[VARIABLES] = {"id1", "id2", "px", "py", "pz", "x", "y", "z"};

static void fill(int variable, int step, uint64_t first, uint64_t rows, uint64_t all, uint32_t *out)
{
    for (uint64_t i = 0; i < rows; i++) {
        uint32_t id = (uint32_t)(((first + i) * MULTIPLIER + (uint64_t)step * 977) % all);
        float value = (float)(id % 4096) + (float)variable / 8 + (float)(step * 8192);
        if (variable == 0)
            out[i] = id;
        else if (variable == 1)
            out[i] = 2 * id;
        else
            memcpy(&out[i], &value, sizeof value);
    }
}

static void access_step(hid_t file, int step, uint64_t rows, hsize_t chunk, hid_t transfer, int is_written)
{
    hsize_t all = rows * (uint64_t)ranks, first = rows * (uint64_t)rank, count = rows;
    uint32_t *right = malloc(rows * sizeof *right), *own = malloc(rows * sizeof *own);
    hid_t space = must_id(H5Screate_simple(1, &all, NULL), "H5Screate_simple");
    hid_t memory = must_id(H5Screate_simple(1, &count, NULL), "H5Screate_simple");
    hid_t create = must_id(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
    char name[32];

    if (chunk)
        MUST(H5Pset_chunk(create, 1, &chunk));
    MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &count, NULL));
    snprintf(name, sizeof name, "Timestep_%d", step);
    hid_t group = must_id(is_written ? H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                                     : H5Gopen2(file, name, H5P_DEFAULT),
                          "the group");
    for (int i = 0; i < VARIABLES; i++) {
        hid_t type = i < 2 ? H5T_NATIVE_INT : H5T_NATIVE_FLOAT;
        fill(i, step, first, rows, all, right);
        hid_t data = must_id(is_written ? H5Dcreate2(group, names[i], type, space, H5P_DEFAULT, create, H5P_DEFAULT)
                                        : H5Dopen2(group, names[i], H5P_DEFAULT),
                             "the dataset");
        if (is_written) {
            MUST(H5Dwrite(data, type, memory, space, transfer, right));
        } else {
            MUST(H5Dread(data, type, memory, space, transfer, own));
            if (memcmp(own, right, rows * sizeof *own) != 0) {
                fprintf(stderr, "rank %d: step %d, %s: wrong values\n", rank, step, names[i]);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        MUST(H5Dclose(data));
    }
    MUST(H5Gclose(group));
    MUST(H5Pclose(create));
    MUST(H5Sclose(memory));
    MUST(H5Sclose(space));
    free(right);
    free(own);
}

int main(int argc, char **argv)
{
    must_begin(&argc, &argv);
    if (argc != 6 && argc != 7) {
        fprintf(stderr, "usage: hdf5_vpic write|read|add FILE STEPS ROWS collective|independent [CHUNK]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int is_new = strcmp(argv[1], "write") == 0, is_added = strcmp(argv[1], "add") == 0, steps = atoi(argv[3]);
    uint64_t rows = strtoull(argv[4], NULL, 10);
    hsize_t chunk = argc == 7 ? strtoull(argv[6], NULL, 10) : 0;
    hid_t fapl = must_id(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
    hid_t transfer = must_id(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");

    MUST(H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, MPI_INFO_NULL));
    MUST(H5Pset_dxpl_mpio(transfer, strcmp(argv[5], "collective") == 0 ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT));
    hid_t file = must_id(is_new ? H5Fcreate(argv[2], H5F_ACC_TRUNC, H5P_DEFAULT, fapl)
                                : H5Fopen(argv[2], is_added ? H5F_ACC_RDWR : H5F_ACC_RDONLY, fapl),
                         "the file");
    for (int step = is_added ? steps : 0; step < steps + is_added; step++)
        access_step(file, step, rows, chunk, transfer, is_new || is_added);
    MUST(H5Pclose(transfer));
    MUST(H5Pclose(fapl));
    /* All ranks say why before one of them ends the job. */
    int is_closed = H5Fclose(file) >= 0, all_closed = 0;
    MPI_Allreduce(&is_closed, &all_closed, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MUST(all_closed - 1);
    MPI_Finalize();
    return 0;
}
