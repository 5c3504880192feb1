/* Where on its node a process runs. */
#ifndef DELTAFS_MPI_LOCALITY_H
#define DELTAFS_MPI_LOCALITY_H

#define LOCALITY_DOMAINS 65536

/* The NUMA domain of this process, and above it the package, as one number below LOCALITY_DOMAINS that is the same for
 * those that share them; 0 if it is not known: the process is not bound to one, or was not started under PMIx.
 * PMIx is asked once. */
int locality_domain(void);

/* The third-level cache of the processors that the calling thread may run on, as a number that is the same for those of
 * the node that share it; 0: they have several, or the system does not tell. */
int locality_cache(void);

#endif
