/* Copies of files and folders to and from namespaces and pools. `deltafs` copies alone (ns_copy_alone.c); in
 * `deltafs-mpi`, each rank copies a part of the files (ns_copy_ranks.c). */
#ifndef DELTAFS_TOOLS_NS_COPY_H
#define DELTAFS_TOOLS_NS_COPY_H

#include <stddef.h>

/* Staging: there is one source; a folder that is the target becomes its copy, instead of getting one in it; files that
 * are there with the same size and time are not copied again; and what was written is compared. */
enum ns_copy_stage { NS_COPY_UNSTAGED, NS_COPY_INTO_POOL, NS_COPY_FROM_POOL };

struct ns_copy_options {
    int is_recursive, is_preserving, is_quiet;
    enum ns_copy_stage stage;
};

/* Copy the sources to operand[sources]. Prints messages, and returns an exit code. Collective. */
int ns_copy(const struct ns_copy_options *o, char **operand, int sources);

/* What ns_copy asks of the processes: */

void ns_copy_ranks(int *rank, int *ranks);
/* An exit code for all ranks. Collective. */
int ns_copy_agree(int code);
/* Give all ranks what rank 0 has. Collective. */
void ns_copy_broadcast(void *bytes, size_t size);

#endif
