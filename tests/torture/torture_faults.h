/* What can happen at an operation of a campaign that goes by torture_io_begin. */
#ifndef DELTAFS_TORTURE_FAULTS_H
#define DELTAFS_TORTURE_FAULTS_H

#include "torture_io.h"
#include "torture_rng.h"
#include "torture_verdict.h"

struct torture_happening {
    enum torture_fault fault;
    int loses_power;
    int expected; /* status of a call to which it happens, unless that succeeds */
    const char *text;
};

/* One of all; or one of those that can happen to a reader. */
const struct torture_happening *torture_choose(struct torture_rng *r);
const struct torture_happening *torture_choose_reading(struct torture_rng *r);

/* The end of what was done with it: no file is open, and the power goes if that is due. Returns whether it came to
 * pass. */
int torture_happening_end(const struct torture_happening *h, struct torture_verdict *v);

#endif
