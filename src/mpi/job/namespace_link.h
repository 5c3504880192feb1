/* Requests between the ranks that share a namespace (src/namespace/shared.h), as MPI messages. */
#ifndef DELTAFS_MPI_NAMESPACE_LINK_H
#define DELTAFS_MPI_NAMESPACE_LINK_H

#include "mpi/job/job.h"
#include "namespace/shared.h"

struct namespace_link {
    struct rank_group group;
    struct job_other other;
    deltafs_namespace *client;
    struct job_thread thread;
    struct bytes incoming; /* a request of another rank */
    struct reply {
        MPI_Request request; /* MPI_REQUEST_NULL: free */
        struct bytes bytes;
    } * reply;
    size_t replies;
};

extern const struct shared_transport namespace_link_transport;

/* Prepare a link that is in a new group; from namespace_link_start on, it serves other ranks. */
int namespace_link_init(struct namespace_link *l, struct error *e);
void namespace_link_start(struct namespace_link *l, deltafs_namespace *client);
/* Collective unless the ranks are lost. */
void namespace_link_destroy(struct namespace_link *l);

/* What a rank that waits does again and again; `link` may be NULL. */
void namespace_link_wait(void *link);
#endif
