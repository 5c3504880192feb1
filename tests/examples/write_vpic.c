/* A VPIC of a few lines, to try vpic_deltafs.h: each rank has a box of 4 * 4 * 1 cells, one beside the other in x, and
 * one particle in each cell. In step N, rank R writes the particles of its box with IDs from 16 * ((N + R) % ranks) on.
 *
 *     mpirun -np 2 ./write_vpic electrons FIRST LAST */
#include "vpic_deltafs.h"

struct particle {
    float dx, dy, dz;
    int32_t i;
    float ux, uy, uz, w;
};

int main(int argc, char **argv)
{
    static struct vpic_deltafs electrons;
    struct particle p[16];
    size_t id[16];
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const struct vpic_deltafs_grid g = {.nx = 4,
                                        .ny = 4,
                                        .nz = 1,
                                        .hx = 0.5,
                                        .hy = 0.25,
                                        .hz = 2,
                                        .x0 = 2.0 * rank,
                                        .dt = 0.125,
                                        .cvac = 16,
                                        .eps0 = 1,
                                        .q_m = -1};
    for (uint64_t step = strtoull(argv[2], NULL, 10); step <= strtoull(argv[3], NULL, 10); step++) {
        for (int k = 0; k < 16; k++) {
            p[k] = (struct particle){
                .dx = -0.5f, .dz = 1, .i = 1 + k % 4 + 6 * (1 + k / 4) + 36, .ux = (float)step, .w = 1};
            id[k] = 16 * ((step + (uint64_t)rank) % (uint64_t)ranks) + (size_t)k;
        }
        if (!vpic_deltafs_begin(&electrons, argv[1], step, &g))
            continue;
        vpic_deltafs_write(&electrons, 16, p, id);
        vpic_deltafs_end(&electrons, step);
    }
    vpic_deltafs_close(&electrons);
    MPI_Finalize();
    return 0;
}
