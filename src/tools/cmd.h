/* The subcommands of `deltafs`. Each takes its own arguments (argv[0] is its name) and returns the exit code. */
#ifndef DELTAFS_TOOLS_CMD_H
#define DELTAFS_TOOLS_CMD_H

#include <deltafs/deltafs.h>
#include "tools/text.h"

int cmd_get(int argc, char **argv);
int cmd_scan(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_repair(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_cat(int argc, char **argv);
int cmd_cp(int argc, char **argv);
int cmd_flatten(int argc, char **argv);
int cmd_rm(int argc, char **argv);

/* Open a directory, whose name may have the prefix, for a subcommand; on failure the message is out, and the exit code
 * returned. */
int cmd_open(const char *path, deltafs_dir **out);

/* "A", "A:B", "A:" or ":B" into a range; on failure the message is out, and the exit code returned. */
int cmd_range(const char *text, struct deltafs_range *range);

/* Standard output written completely, or a message; returns `code` or the trouble's. */
int cmd_finish(int code);

/* For getopt's '?' and ':': point to the help. */
int cmd_usage(const char *name);

#endif
