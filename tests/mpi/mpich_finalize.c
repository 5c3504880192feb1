/* Loaded before MPICH's libraries, this keeps MPI_Finalize of MPICH below 4.2 from hanging over TCP.
 *
 * There each rank disconnects from its peers, and then waits in a barrier of the process manager, in which it does not
 * look at the network. But UCX's way to disconnect over TCP asks the peer for an acknowledgement. So a rank that comes
 * to disconnect when its peer is in the barrier already waits for ever, and all others for it: of jobs with a few small
 * messages one in six to one in three. (MPICH's pull request 6596 removes the barrier.) Nothing is lost by not
 * disconnecting: no rank waits for a message any more, and the barrier comes before the connections are closed. */
#include <mpi.h>
#include <stddef.h>

#if defined MPICH_NUMVERSION && MPICH_NUMVERSION < 40200000
void *ucp_disconnect_nb(void *endpoint);

void *ucp_disconnect_nb(void *endpoint)
{
    (void)endpoint;
    return NULL; /* UCS_OK: done */
}
#endif
