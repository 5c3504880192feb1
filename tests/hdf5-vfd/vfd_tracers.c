/* A program that dumps particles as VPIC does its tracers, and knows nothing of DeltaFS: it makes its folders itself,
 * asks whether the file is there, writes it through MPI-IO, one species after another, and opens it once more by one
 * process.
 *
 *     vfd_tracers FOLDER STEP PARTICLES      FOLDER/T.STEP/tracers.h5p, with PARTICLES of each rank in each species
 *
 * A third of a species' rows is padding: all their values are 0. Particle ID has dX = ID + STEP and timestep = STEP. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "hdf5_must.h"

static hid_t group_in(hid_t place, const char *name)
{
    return must_id(H5Lexists(place, name, H5P_DEFAULT) > 0
                       ? H5Gopen2(place, name, H5P_DEFAULT)
                       : H5Gcreate2(place, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                   name);
}

/* A dataset of this name, in place of one that an earlier dump of the step has left. */
static hid_t dataset_in(hid_t place, const char *name, hid_t type, hid_t space)
{
    if (H5Lexists(place, name, H5P_DEFAULT) > 0)
        MUST(H5Ldelete(place, name, H5P_DEFAULT));
    return must_id(H5Dcreate2(place, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), name);
}

static hid_t file_on_all(const char *path)
{
    hid_t fapl = must_id(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");

    MUST(H5Pset_fapl_mpio(fapl, MPI_COMM_WORLD, MPI_INFO_NULL));
    MPI_Barrier(MPI_COMM_WORLD);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    htri_t is_there = H5Fis_hdf5(path);
    H5Eset_auto2(H5E_DEFAULT, (H5E_auto2_t)H5Eprint2, stderr);
    MPI_Barrier(MPI_COMM_WORLD);
    hid_t file = must_id(
        is_there > 0 ? H5Fopen(path, H5F_ACC_RDWR, fapl) : H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), path);
    MUST(H5Pclose(fapl));
    return file;
}

static void write_column(hid_t species, const char *name, hid_t type, hsize_t rows, const void *values)
{
    hsize_t all = rows * (hsize_t)ranks, first = rows * (hsize_t)rank;
    hid_t space = must_id(H5Screate_simple(1, &all, NULL), "H5Screate_simple");
    hid_t memory = must_id(H5Screate_simple(1, &rows, NULL), "H5Screate_simple");
    hid_t transfer = must_id(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");
    hid_t data = dataset_in(species, name, type, space);

    MUST(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE));
    MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &rows, NULL));
    MUST(H5Dwrite(data, type, memory, space, transfer, values));
    MUST(H5Dclose(data));
    MUST(H5Pclose(transfer));
    MUST(H5Sclose(memory));
    MUST(H5Sclose(space));
}

static void write_species(const char *path, long step, const char *name, uint64_t first, hsize_t particles)
{
    hsize_t rows = particles + particles / 2;
    float *dx = calloc(rows, sizeof *dx);
    int64_t *timestep = calloc(rows, sizeof *timestep);
    uint64_t *id = calloc(rows, sizeof *id);
    char of_step[32];

    for (hsize_t i = 0; i < particles; i++) {
        id[i] = first + (uint64_t)rank * particles + i;
        dx[i] = (float)(id[i] + (uint64_t)step);
        timestep[i] = step;
    }
    snprintf(of_step, sizeof of_step, "Step#%ld", step);
    hid_t file = file_on_all(path), group = group_in(file, of_step), species = group_in(group, name);
    write_column(species, "dX", H5T_NATIVE_FLOAT, rows, dx);
    write_column(species, "q", H5T_NATIVE_HSIZE, rows, id);
    write_column(species, "timestep", H5T_NATIVE_INT64, rows, timestep);
    MUST(H5Gclose(species));
    MUST(H5Gclose(group_in(group, "grid_meta_data")));
    MUST(H5Gclose(group));
    MUST(H5Fclose(file));
    free(dx);
    free(timestep);
    free(id);
}

/* By one process, without MPI. */
static void add_grid(const char *path, long step)
{
    const int cells[3] = {16, 1, 16};
    hsize_t n = 3;
    char place[64];

    snprintf(place, sizeof place, "Step#%ld/grid_meta_data", step);
    hid_t file = must_id(H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT), path);
    hid_t group = must_id(H5Gopen2(file, place, H5P_DEFAULT), place);
    hid_t space = must_id(H5Screate_simple(1, &n, NULL), "H5Screate_simple");
    hid_t data = dataset_in(group, "cells", H5T_NATIVE_INT, space);
    MUST(H5Dwrite(data, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, cells));
    MUST(H5Dclose(data));
    MUST(H5Sclose(space));
    MUST(H5Gclose(group));
    MUST(H5Fclose(file));
}

int main(int argc, char **argv)
{
    static const char *const species[] = {"electron", "ion"};
    char path[4096];

    must_begin(&argc, &argv);
    if (argc != 4) {
        fprintf(stderr, "usage: vfd_tracers FOLDER STEP PARTICLES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    long step = atol(argv[2]);
    hsize_t particles = strtoull(argv[3], NULL, 10);
    for (uint64_t i = 0; i < 2; i++) {
        mkdir(argv[1], 0777);
        snprintf(path, sizeof path, "%s/T.%ld", argv[1], step);
        mkdir(path, 0777);
        snprintf(path, sizeof path, "%s/T.%ld/tracers.h5p", argv[1], step);
        write_species(path, step, species[i], 1 + i * 1000000, particles);
        if (rank == 0)
            add_grid(path, step);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
