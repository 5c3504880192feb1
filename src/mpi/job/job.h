/* A directory that all ranks of a job write: what makes it (job_create.c) and what its calls do (job.c) share. */
#ifndef DELTAFS_MPI_JOB_H
#define DELTAFS_MPI_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include "directory/dir.h"
#include "directory/write/writer.h"
#include "mpi/rank_group.h"
#include "mpi/shuffle/shuffle.h"
#include "mpi/shuffle/topology.h"

/* A thread that serves other ranks while the program is elsewhere. */
struct job_thread {
    int is_running;
    pthread_t thread;
    atomic_int is_closing; /* it is to end */
};

struct job {
    struct rank_group group; /* its ranks are numbered as the layout has them */
    pthread_mutex_t lock;    /* held by the call under way; the list has a lock of its own */
    struct job *next;        /* in the list */
    struct topology topology;
    struct writer *writer;
    struct shuffle *shuffle; /* NULL with one rank */
    uint64_t pending;        /* records appended here in this epoch */
    int is_held;             /* all ranks hold all of them, when they last met */
    int is_async;            /* an epoch is committed by the next call */
    struct job_thread thread;
    int has_stats, stats_fd; /* on rank 0; -1 elsewhere */
    char *path;              /* on rank 0 */
    char *index_by;          /* the option; NULL: there are none */
    uint64_t appended, epochs;
};

/* Something else that serves other ranks. */
struct job_other {
    pthread_mutex_t lock;              /* held by the call under way */
    int (*serve)(struct job_other *o); /* returns whether there was anything to do */
    struct job_other *next;
};

/* Its calls; the context is the job. */
extern const struct dir_transport job_transport;

/* What a rank that waits does again and again; `job` may be NULL. */
void job_wait(void *job);
/* The part of it that is not for the job: serve what no call is in. Returns whether there was anything to do. */
int job_serve_others(void);
/* Let a job, or something else, be served by whoever waits. The latter may not be registered. */
void job_register(struct job *j);
void job_register_other(struct job_other *o);
void job_unregister_other(struct job_other *o);

/* The thread of progress=thread. */
int job_start_thread(struct job_thread *t, struct error *e);
void job_stop_thread(struct job_thread *t);

/* Close what is this rank's own, files and shuffle; then the job itself. */
void job_close_shuffle(struct job *j);
int job_close_own(struct job *j, struct error *e);
void job_free(struct job *j);

/* Statistics: one line of JSON, with the least, the mean and the most over all ranks of every number. The file that
 * lines are added to is opened on rank 0; stats_write is collective. */
int stats_open(const char *file, int *fd, struct error *e);
int stats_write(struct job *j, struct error *e);

#endif
