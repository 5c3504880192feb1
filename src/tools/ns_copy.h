/* How processes share a copy to or from a namespace. `deltafs ns cp` copies alone (ns_copy_alone.c); in `deltafs-mpi ns
 * cp`, each rank copies a part of the files (ns_copy_ranks.c). */
#ifndef DELTAFS_TOOLS_NS_COPY_H
#define DELTAFS_TOOLS_NS_COPY_H

#include <stddef.h>

void ns_copy_ranks(int *rank, int *ranks);
/* An exit code for all ranks. Collective. */
int ns_copy_agree(int code);
/* Give all ranks what rank 0 has. Collective. */
void ns_copy_broadcast(void *bytes, size_t size);

#endif
