/* A directory that all ranks of a job write: what makes it (job_create.c) and what its calls do (job.c) share. */
#ifndef DELTAFS_MPI_JOB_H
#define DELTAFS_MPI_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include "directory/dir.h"
#include "directory/write/writer.h"
#include "mpi/agree.h"
#include "mpi/shuffle/shuffle.h"
#include "mpi/shuffle/topology.h"

struct job {
    pthread_mutex_t lock; /* held by the call under way; the list has a lock of its own */
    struct job *next;     /* in the list */
    struct agree agree;
    struct agree_room room;
    struct topology topology;
    struct writer *writer;
    struct shuffle *shuffle; /* NULL with one rank */
    uint64_t pending;        /* records appended here in this epoch */
    int is_async;            /* an epoch is committed by the next call */
    int is_dead;             /* the ranks have lost each other: no collective call can follow */
    int has_thread;          /* that serves others while the program is elsewhere */
    pthread_t thread;
    atomic_int is_closing;   /* the thread is to end */
    int has_stats, stats_fd; /* on rank 0; -1 elsewhere */
    char *path;              /* for the statistics */
    uint64_t appended, epochs;
};

/* Its calls; the context is the job. */
extern const struct dir_transport job_transport;

/* The ranks have lost each other: what their agreement and their shuffle call where MPI fails. */
void job_die(void *job);
/* Whether they have: the shuffle's error, if it has one, or another that says so. */
int job_check_dead(void *job, struct error *e);
/* What a rank that waits does again and again; `job` may be NULL. */
void job_wait(void *job);
/* What this thread has waited for has come. */
void job_met(void *job);
/* Let a job be served by whoever waits. */
void job_register(struct job *j);
/* The shuffle's `store`. */
size_t job_store(void *job, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                 size_t value_stride, size_t size);

/* The thread of progress=thread. */
int job_start_thread(struct job *j, struct error *e);
void job_stop_thread(struct job *j);

/* Close what is this rank's own, files and shuffle; then the job itself. */
int job_close_own(struct job *j, struct error *e);
void job_free(struct job *j);

#endif
