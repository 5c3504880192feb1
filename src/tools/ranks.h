/* The ranks of deltafs-mpi: one message, one exit code. */
#ifndef DELTAFS_TOOLS_RANKS_H
#define DELTAFS_TOOLS_RANKS_H

/* Agree on an exit code: EXIT_OK, or that of the first rank that has another, which prints the message that it has kept
 * (text_keep; or text_fail, if it is silent). Collective. */
int ranks_agree(int code);

#endif
