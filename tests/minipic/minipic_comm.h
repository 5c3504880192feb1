/* Where the particles of minipic live: the bottle is cut along z into one slab a rank.
 *
 * comm_balance places the cuts so that all slabs hold about the same number of particles (from a histogram of z over
 * all ranks); comm_migrate sends every particle that is outside its rank's slab to the rank of its slab, whichever that
 * is: after new cuts, or a new life in the middle of the bottle, it need not be a neighbour. Both are collective, and
 * right for every number of ranks.
 *
 * Counts are those of MPI, so the job's particles must be fewer than 2^31.
 */
#ifndef MINIPIC_COMM_H
#define MINIPIC_COMM_H

#include <mpi.h>
#include "minipic_push.h"

struct swarm {
    struct particle *p;
    size_t n;
    size_t capacity;
};

struct comm {
    MPI_Comm mpi;
    int rank;
    int size;
    MPI_Datatype type; /* a struct particle */
    double *cut;       /* slab k is cut[k] <= z < cut[k + 1]; size + 1 of them, the outer ones infinite */
    int *send_count;   /* these four: one for each rank, and one block of memory */
    int *send_at;
    int *recv_count;
    int *recv_at;
    struct swarm send;
};

void comm_init(struct comm *c, MPI_Comm mpi);
void comm_fini(struct comm *c);

/* Say why, and end the job on all ranks: for what has no way on, such as no memory. */
void comm_die(const char *fmt, ...);

/* `array` made large enough for `n` elements of `size` bytes, as realloc does; never NULL, even for none. */
void *comm_grow(void *array, size_t *capacity, size_t n, size_t size);

void comm_balance(struct comm *c, const struct swarm *s);
/* Returns how many particles this rank sent away. */
size_t comm_migrate(struct comm *c, struct swarm *s);

#endif
