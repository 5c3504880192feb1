/* For programs of parallel HDF5: this process's rank, and calls that end the job if they fail. */
#ifndef DELTAFS_HDF5_MUST_H
#define DELTAFS_HDF5_MUST_H

#include <stdio.h>
#include <hdf5.h>
#include <mpi.h>

static int rank, ranks;

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) < 0) {                                                                                              \
            fprintf(stderr, "rank %d: %s failed\n", rank, #call);                                                      \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

static hid_t must_id(hid_t id, const char *what)
{
    if (id < 0) {
        fprintf(stderr, "rank %d: %s failed\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return id;
}

static void must_begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

#endif
