/* How minipic dumps its particles through DeltaFS: the model of what a simulation such as VPIC adds to its own code.
 *
 *     once        dump_options, dump_create: one DeltaFS directory for the whole run
 *     each dump   dump_write: all particles in one call, then the end of the epoch, labelled with the step
 *     once        dump_close
 *
 * All return a DeltaFS status. dump_create, dump_write and dump_close are collective and return the same on all ranks.
 */
#ifndef MINIPIC_DUMP_H
#define MINIPIC_DUMP_H

#include <deltafs/deltafs_mpi.h>
#include "minipic_comm.h"

/* What DeltaFS keeps of a particle at each dump; its ID is the key, and not stored in the value. */
struct dump_value {
    float x, y, z;
    float ux, uy, uz;
    float mu;
    uint32_t life;
};

#define DUMP_SCHEMA "x:f4,y:f4,z:f4,ux:f4,uy:f4,uz:f4,mu:f4,life:u4"

struct dump {
    deltafs_dir *dir;
    struct dump_value *value; /* room for the values of one dump */
    size_t capacity;
};

void dump_pack(const struct particle *p, struct dump_value *out);

/* Options with minipic's schema in them; the caller may set more. Free with deltafs_options_destroy. Local. */
int dump_options(deltafs_options **out);
int dump_create(struct dump *d, MPI_Comm comm, const char *path, const deltafs_options *options);
int dump_write(struct dump *d, const struct swarm *s, uint64_t step);
int dump_close(struct dump *d);

#endif
