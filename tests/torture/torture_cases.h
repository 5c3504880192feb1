/* A campaign whose cases run in processes of their own, so that one that ends by a signal is a finding like others. */
#ifndef DELTAFS_TORTURE_CASES_H
#define DELTAFS_TORTURE_CASES_H

#include "torture_model.h"

/* Case `i` of a seed, in an empty folder; fills *v. Returns whether it counts. */
typedef int (*torture_run_fn)(const char *folder, uint64_t seed, uint64_t i, struct torture_verdict *v);

/* A program's main: --count, --seed, --case and --folder. A case that hangs or ends by a signal is wrong. */
int torture_cases(const char *kind, torture_run_fn run, int argc, char **argv);

#endif
