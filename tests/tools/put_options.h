/* The options behind the other arguments of a program that makes something for the tests of the commands. */
#ifndef DELTAFS_PUT_OPTIONS_H
#define DELTAFS_PUT_OPTIONS_H

#include <deltafs/deltafs.h>

/* Write PROGRAM: WHAT: WHY to standard error; returns -1. */
int complain(const char *what, const char *why);

/* Take argv[from] and those behind it, OPTION=VALUE or --abandon. NULL, after a complaint, if one is neither. The
 * caller destroys the options. */
deltafs_options *put_options(int argc, char **argv, int from, int *is_abandoned);

#endif
