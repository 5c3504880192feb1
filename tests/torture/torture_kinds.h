/* The campaigns of the program torture. Each tries cases, at `path`, until the tally has `count` of them. */
#ifndef DELTAFS_TORTURE_KINDS_H
#define DELTAFS_TORTURE_KINDS_H

#include "torture_model.h"

struct torture_tally {
    uint64_t tried, lost, wrong;
};

/* A case may take a minute: more is a hang, and the end of the program. */
void torture_case_begin(struct torture_verdict *v, uint64_t seed, const char *about, uint64_t detail);
void torture_case_end(const struct torture_verdict *v);

void torture_crash(const char *path, uint64_t count, uint64_t seed, const struct torture_tally *tally);
void torture_fault(const char *path, uint64_t count, uint64_t seed, const struct torture_tally *tally);

#endif
