/* Counting cases, each of which takes a minute at most: more is a hang, and the end of the program. */
#ifndef DELTAFS_TORTURE_CASE_H
#define DELTAFS_TORTURE_CASE_H

#include "torture_model.h"

struct torture_tally {
    uint64_t tried, lost, wrong;
};

/* "--count N --seed S --folder DIR" from argv[first] on, in any order; what is not there stays as it was in *out.
 * Returns whether there is nothing else. */
struct torture_options {
    uint64_t count, seed;
    const char *folder;
};
int torture_options_parse(int argc, char **argv, int first, struct torture_options *out);

void torture_case_begin(struct torture_verdict *v, uint64_t seed, const char *about, uint64_t detail);
void torture_case_end(const struct torture_verdict *v, struct torture_tally *tally);

/* The last line. Returns the exit code for main. */
int torture_case_report(const char *kind, const struct torture_tally *tally);

#endif
