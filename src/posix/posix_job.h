/* The job of MPI that a program is a rank of. This library links no MPI: when the program calls MPI_Init, the companion
 * library of that MPI is loaded, libdeltafs_posix_mpi.so (posix_job_mpi.c). */
#ifndef DELTAFS_POSIX_POSIX_JOB_H
#define DELTAFS_POSIX_POSIX_JOB_H

#include <deltafs/deltafs.h>

/* There are directories of particles; MPI_Finalize calls this function, on all ranks. Before MPI_Init. */
void job_at_end(void (*finish)(void));
/* Whether this process is one of several ranks, between MPI_Init and MPI_Finalize. */
int job_is_on(void);
/* Of each of the numbers, the greatest of all ranks. Collective. Without a job they stay as they are. Returns NULL, or
 * why that cannot be. */
const char *job_most(uint64_t *numbers, int n);
/* Open a directory for writing, or create it. Collective; a status of libdeltafs, the same on all ranks. */
int job_open(const char *path, const deltafs_options *options, int is_new, deltafs_dir **out);
/* The process ends, or runs another program: if that is before MPI_Finalize, there is nothing collective any more. */
void job_leave(void);
/* After a fork, in the child: it is no rank. */
void job_forget(void);

/* The companion exports deltafs_posix_job. */
struct job_companion {
    /* Join the job, with all ranks. `finish` is called by MPI_Finalize, before MPI ends. Returns NULL, or what is
     * wrong.
     */
    const char *(*join)(void (*finish)(void), int *size);
    /* These two are collective. Of the first, -1 says that MPI has failed. */
    int (*most)(uint64_t *numbers, int n);
    int (*open)(const char *path, const deltafs_options *options, int is_new, deltafs_dir **out);
};
DELTAFS_API const struct job_companion *deltafs_posix_job(void);

#endif
