/* The campaigns of the program torture. Each tries cases, at `path`, until the tally has `count` of them. */
#ifndef DELTAFS_TORTURE_KINDS_H
#define DELTAFS_TORTURE_KINDS_H

#include "torture_case.h"

void torture_crash(const char *path, uint64_t count, uint64_t seed, struct torture_tally *tally);
void torture_fault(const char *path, uint64_t count, uint64_t seed, struct torture_tally *tally);
void torture_full(const char *path, uint64_t count, uint64_t seed, struct torture_tally *tally);

#endif
