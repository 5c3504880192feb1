/* Statistics of a job: one line of JSON, with the least, the mean and the most over all ranks of every number. */
#ifndef DELTAFS_MPI_STATS_H
#define DELTAFS_MPI_STATS_H

#include "mpi/agree.h"
#include "mpi/shuffle/shuffle.h"

struct stats {
    const char *path;        /* of the directory */
    const struct plan *plan; /* NULL: one rank */
    struct shuffle_stat shuffle;
    struct deltafs_memory_stat memory;
    struct deltafs_io_stat io;
    uint64_t records; /* appended here */
    uint64_t epochs;  /* committed */
};

/* Open the file that lines are added to; on the rank that writes them. */
int stats_open(const char *file, int *fd, struct error *e);
/* Collective: add a line by rank 0, where `fd` is that of the file. */
int stats_write(const struct agree *a, int fd, const struct stats *s, struct error *e);

#endif
