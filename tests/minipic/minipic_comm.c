/* See minipic_comm.h. Migration counts the leavers of each destination, lays them out by destination, tells every rank
 * its count, and sends them in one MPI_Alltoallv, which sends nothing where the count is 0. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "minipic_comm.h"
#include "minipic_field.h"

/* Slabs of fewer than a bin are cut by interpolation, so this bounds the balance only, not the number of ranks. */
enum { BINS = 4096 };

void comm_die(const char *fmt, ...)
{
    va_list ap;

    fputs("minipic: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

void *comm_grow(void *array, size_t *capacity, size_t n, size_t size)
{
    if (array != NULL && n <= *capacity)
        return array;

    size_t wanted = n + n / 4 + 1; /* some room, so that a slowly growing swarm does not move at each step */
    void *grown = realloc(array, wanted * size);
    if (grown == NULL)
        comm_die("no memory for %zu elements of %zu bytes", wanted, size);
    *capacity = wanted;
    return grown;
}

void comm_init(struct comm *c, MPI_Comm mpi)
{
    size_t cuts = 0, counts = 0;

    *c = (struct comm){.mpi = mpi};
    MPI_Comm_rank(mpi, &c->rank);
    MPI_Comm_size(mpi, &c->size);
    MPI_Type_contiguous((int)sizeof(struct particle), MPI_BYTE, &c->type);
    MPI_Type_commit(&c->type);
    c->cut = comm_grow(NULL, &cuts, (size_t)c->size + 1, sizeof *c->cut);
    c->send_count = comm_grow(NULL, &counts, 4 * (size_t)c->size, sizeof *c->send_count);
    c->send_at = c->send_count + c->size;
    c->recv_count = c->send_at + c->size;
    c->recv_at = c->recv_count + c->size;
}

void comm_fini(struct comm *c)
{
    MPI_Type_free(&c->type);
    free(c->cut);
    free(c->send_count);
    free(c->send.p);
}

void comm_balance(struct comm *c, const struct swarm *s)
{
    const double width = 2.0 * FIELD_END / BINS;
    uint64_t bin[BINS] = {0}, total = 0, below = 0;
    int k = 1;

    for (size_t i = 0; i < s->n; i++) {
        size_t at = (size_t)((s->p[i].x[2] + FIELD_END) / width);
        bin[at < BINS ? at : BINS - 1]++;
    }
    MPI_Allreduce(MPI_IN_PLACE, bin, BINS, MPI_UINT64_T, MPI_SUM, c->mpi);
    for (int i = 0; i < BINS; i++)
        total += bin[i];

    c->cut[0] = -INFINITY;
    c->cut[c->size] = INFINITY;
    for (int i = 0; i < BINS; i++) {
        for (; k < c->size; k++) {
            double wanted = (double)total * k / c->size - (double)below;
            if (wanted >= (double)bin[i])
                break;
            c->cut[k] = -FIELD_END + width * (i + wanted / (double)bin[i]);
        }
        below += bin[i];
    }
}

static int owner_of(const struct comm *c, double z)
{
    int low = 0, high = c->size; /* cut[low] <= z < cut[high] */

    if (c->cut[c->rank] <= z && z < c->cut[c->rank + 1])
        return c->rank;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (c->cut[middle] <= z)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The running sums of `count` before each rank; returns that of all. */
static size_t lay_out(const int *count, int *at, int size)
{
    int sum = 0;

    for (int k = 0; k < size; k++) {
        at[k] = sum;
        sum += count[k];
    }
    return (size_t)sum;
}

size_t comm_migrate(struct comm *c, struct swarm *s)
{
    size_t kept = 0;

    for (int k = 0; k < c->size; k++)
        c->send_count[k] = 0;
    for (size_t i = 0; i < s->n; i++)
        c->send_count[owner_of(c, s->p[i].x[2])]++;
    c->send_count[c->rank] = 0;

    size_t leaving = lay_out(c->send_count, c->send_at, c->size);
    c->send.p = comm_grow(c->send.p, &c->send.capacity, leaving, sizeof *c->send.p);
    for (size_t i = 0; i < s->n; i++) {
        int owner = owner_of(c, s->p[i].x[2]);
        if (owner == c->rank)
            s->p[kept++] = s->p[i];
        else
            c->send.p[c->send_at[owner]++] = s->p[i];
    }
    lay_out(c->send_count, c->send_at, c->size); /* the loop has moved them on */

    MPI_Alltoall(c->send_count, 1, MPI_INT, c->recv_count, 1, MPI_INT, c->mpi);
    size_t coming = lay_out(c->recv_count, c->recv_at, c->size);
    s->p = comm_grow(s->p, &s->capacity, kept + coming, sizeof *s->p);
    MPI_Alltoallv(c->send.p, c->send_count, c->send_at, c->type, s->p + kept, c->recv_count, c->recv_at, c->type,
                  c->mpi);
    s->n = kept + coming;
    return leaving;
}
