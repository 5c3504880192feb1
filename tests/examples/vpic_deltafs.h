/* Example: VPIC's particles through DeltaFS. Copy this file beside an input deck that includes it, as vpic_harris.cxx
 * does. It is C and C++.
 *
 * Each species gets a directory. A particle's value is what VPIC dumps of it, and the rank. The grid is stored once, as
 * attributes, from which deltafs computes the columns x, y and z. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>
#include <deltafs/deltafs_query.h>

#define VPIC_DELTAFS_BATCH 4096

/* What a rank knows of its grid; VPIC's names, but hx, hy, hz for the size of a cell. And the species' charge / mass.
 */
struct vpic_deltafs_grid {
    double nx, ny, nz, hx, hy, hz, x0, y0, z0, dt, cvac, eps0, q_m;
};

/* The directory of a species; all zero before the first dump. */
struct vpic_deltafs {
    deltafs_dir *dir;
    int has_grid; /* it was stored by this run */
};

static void vpic_deltafs_check(int status, const char *what)
{
    if (status == DELTAFS_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, deltafs_errmsg(NULL));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void vpic_deltafs_set(deltafs_dir *dir, const char *name, uint64_t from, int type, size_t count,
                             const void *value)
{
    struct deltafs_attribute a;

    memset(&a, 0, sizeof a);
    a.struct_size = sizeof a;
    a.name = name;
    a.from = from;
    a.type = type;
    a.count = count;
    a.value = value;
    vpic_deltafs_check(deltafs_attribute_set(dir, &a), name);
}

/* Each number that may differ between ranks becomes an array with the numbers of all, valid from a step on: a run that
 * goes on with another may have other ranks. */
static void vpic_deltafs_set_grid(deltafs_dir *dir, uint64_t from, const struct vpic_deltafs_grid *g)
{
    static const char *const name[9] = {"nx", "ny", "nz", "hx", "hy", "hz", "x0", "y0", "z0"};
    static const char *const column[3][2] = {
        {"x", "x0[rank] + (i % (nx[rank]+2) - 1 + (dx+1)/2) * hx[rank]"},
        {"y", "y0[rank] + (i // (nx[rank]+2) % (ny[rank]+2) - 1 + (dy+1)/2) * hy[rank]"},
        {"z", "z0[rank] + (i // ((nx[rank]+2)*(ny[rank]+2)) - 1 + (dz+1)/2) * hz[rank]"}};
    static const char *const single[4] = {"dt", "cvac", "eps0", "q_m"};
    const double mine[9] = {g->nx, g->ny, g->nz, g->hx, g->hy, g->hz, g->x0, g->y0, g->z0};
    const double same[4] = {g->dt, g->cvac, g->eps0, g->q_m};
    int ranks;

    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double *all = (double *)malloc((size_t)ranks * sizeof *all);
    if (!all)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < 9; i++) {
        MPI_Gather(&mine[i], 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        vpic_deltafs_set(dir, name[i], from, DELTAFS_ATTRIBUTE_F8, (size_t)ranks, all);
    }
    free(all);
    for (int i = 0; i < 4; i++)
        vpic_deltafs_set(dir, single[i], from, DELTAFS_ATTRIBUTE_F8, 1, &same[i]);
    for (int i = 0; i < 3; i++)
        vpic_deltafs_set(dir, column[i][0], from, DELTAFS_ATTRIBUTE_EXPRESSION, 0, column[i][1]);
}

static void vpic_deltafs_open(struct vpic_deltafs *v, const char *path)
{
    deltafs_options *o = NULL;

    vpic_deltafs_check(deltafs_options_create(&o), path);
    vpic_deltafs_check(deltafs_options_set(o, "schema", "dx:f4,dy:f4,dz:f4,i:i4,ux:f4,uy:f4,uz:f4,w:f4,rank:u4"), path);
    int status = deltafs_mpi_create(MPI_COMM_WORLD, path, o, &v->dir);
    if (status == DELTAFS_ERR_EXISTS) /* a run that goes on */
        status = deltafs_mpi_reopen(MPI_COMM_WORLD, path, o, &v->dir);
    vpic_deltafs_check(status, path);
    deltafs_options_destroy(o);
}

/* Begin the dump of a step on all ranks. Returns 0 if the directory has this step already: a run that was restarted
 * repeats the steps since its last checkpoint. */
static int vpic_deltafs_begin(struct vpic_deltafs *v, const char *path, uint64_t step,
                              const struct vpic_deltafs_grid *g)
{
    const double time = (double)step * g->dt;
    uint64_t last;

    if (!v->dir)
        vpic_deltafs_open(v, path);
    if (deltafs_last_label(v->dir, &last) == DELTAFS_OK && step <= last)
        return 0;
    if (!v->has_grid)
        vpic_deltafs_set_grid(v->dir, step, g);
    v->has_grid = 1;
    vpic_deltafs_set(v->dir, "time", step, DELTAFS_ATTRIBUTE_F8, 1, &time);
    return 1;
}

/* Write `n` particles of 32 bytes each, and their IDs. Between begin and end, only this rank's. */
static void vpic_deltafs_write(struct vpic_deltafs *v, size_t n, const void *particle, const size_t *id)
{
    static unsigned char value[VPIC_DELTAFS_BATCH][36];
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const uint32_t number = (uint32_t)rank;
    for (size_t at = 0, part; at < n; at += part) {
        part = n - at < VPIC_DELTAFS_BATCH ? n - at : VPIC_DELTAFS_BATCH;
        for (size_t k = 0; k < part; k++) {
            memcpy(value[k], (const char *)particle + 32 * (at + k), 32);
            memcpy(value[k] + 32, &number, 4);
        }
        deltafs_append_many(v->dir, part, id + at, sizeof *id, value, sizeof *value, sizeof *value);
    }
}

/* End the dump on all ranks: when this returns, it is stored. An error of a write is reported here. */
static void vpic_deltafs_end(struct vpic_deltafs *v, uint64_t step)
{
    vpic_deltafs_check(deltafs_epoch_end(v->dir, step), "deltafs_epoch_end");
}

/* On all ranks, after the last step. */
static void vpic_deltafs_close(struct vpic_deltafs *v)
{
    if (v->dir)
        vpic_deltafs_check(deltafs_close(v->dir), "deltafs_close");
    v->dir = NULL;
}

#ifdef vpic_h /* VPIC's header is included: this is an input deck */

#ifndef VPIC_GLOBAL_PARTICLE_ID
#error "particles have no IDs: configure VPIC (branch devel) with -DGLOBAL_PARTICLE_ID=ON"
#endif

/* In place of dump_particles, on all ranks: store the particles of a species that has IDs. `fields` is the deck's
 * interpolator_array, by which center_p brings the momenta from half a step before to the time of the positions. */
static void vpic_deltafs_dump(struct vpic_deltafs *v, const char *path, const species_t *sp,
                              const interpolator_array_t *fields)
{
    alignas(128) static particle_t centered[VPIC_DELTAFS_BATCH];
    const grid_t *grid = sp->g;
    species_t part = *sp;
    struct vpic_deltafs_grid g;

    g.nx = grid->nx, g.ny = grid->ny, g.nz = grid->nz;
    g.hx = grid->dx, g.hy = grid->dy, g.hz = grid->dz;
    g.x0 = grid->x0, g.y0 = grid->y0, g.z0 = grid->z0;
    g.dt = grid->dt, g.cvac = grid->cvac, g.eps0 = grid->eps0;
    g.q_m = sp->q / sp->m;
    if (!vpic_deltafs_begin(v, path, (uint64_t)grid->step, &g))
        return;
    part.p = centered;
    for (int at = 0; at < sp->np; at += part.np) {
        part.np = sp->np - at < VPIC_DELTAFS_BATCH ? sp->np - at : VPIC_DELTAFS_BATCH;
        memcpy(centered, sp->p + at, (size_t)part.np * sizeof *centered);
        center_p(&part, fields);
        vpic_deltafs_write(v, (size_t)part.np, centered, sp->p_id + at);
    }
    vpic_deltafs_end(v, (uint64_t)grid->step);
}

#endif
