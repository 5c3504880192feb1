/* The ranks of deltafs-mpi: one message, one exit code. */
#ifndef DELTAFS_TOOLS_RANKS_H
#define DELTAFS_TOOLS_RANKS_H

/* EXIT_OK, or an error if this is a job of one rank because another MPI's launcher has started it. */
int ranks_check_launcher(void);

/* Agree on an exit code: EXIT_OK, or that of the first rank that has another, which prints the message that it has kept
 * (text_keep; or text_fail, if it is silent). Collective. */
int ranks_agree(int code);

#endif
