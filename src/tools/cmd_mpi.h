/* The subcommands of `deltafs-mpi`. Each takes its own arguments (argv[0] is its name) and returns the exit code. */
#ifndef DELTAFS_TOOLS_CMD_MPI_H
#define DELTAFS_TOOLS_CMD_MPI_H

int cmd_import(int argc, char **argv); /* collective over MPI_COMM_WORLD */
int cmd_index(int argc, char **argv);  /* collective over MPI_COMM_WORLD */
int cmd_route(int argc, char **argv);  /* without MPI */

#endif
