/* See minipic_dump.h. */
#include <stdlib.h>
#include "minipic_dump.h"

_Static_assert(sizeof(struct dump_value) == 32, "the struct is laid out as the schema says");

void dump_pack(const struct particle *p, struct dump_value *out)
{
    out->x = (float)p->x[0];
    out->y = (float)p->x[1];
    out->z = (float)p->x[2];
    out->ux = (float)p->u[0];
    out->uy = (float)p->u[1];
    out->uz = (float)p->u[2];
    out->mu = (float)push_mu(p);
    out->life = (uint32_t)p->life;
}

int dump_options(deltafs_options **out)
{
    deltafs_options *options;
    int status = deltafs_options_create(&options);

    if (status != DELTAFS_OK)
        return status;
    status = deltafs_options_set(options, "schema", DUMP_SCHEMA);
    if (status == DELTAFS_OK)
        *out = options;
    else
        deltafs_options_destroy(options);
    return status;
}

int dump_create(struct dump *d, MPI_Comm comm, const char *path, const deltafs_options *options)
{
    *d = (struct dump){0};
    return deltafs_mpi_create(comm, path, options, &d->dir);
}

int dump_write(struct dump *d, const struct swarm *s, uint64_t step)
{
    d->value = comm_grow(d->value, &d->capacity, s->n, sizeof *d->value);
    for (size_t i = 0; i < s->n; i++)
        dump_pack(&s->p[i], &d->value[i]);

    /* If an append fails, deltafs_epoch_end returns its error, on all ranks. */
    deltafs_append_many(d->dir, s->n, &s->p->id, sizeof *s->p, d->value, sizeof *d->value, sizeof *d->value);
    return deltafs_epoch_end(d->dir, step);
}

int dump_close(struct dump *d)
{
    free(d->value);
    return deltafs_close(d->dir);
}
