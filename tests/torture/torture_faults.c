#include <deltafs/deltafs.h>
#include "torture_faults.h"

static const struct torture_happening happenings[] = {{TORTURE_CRASH, 1, DELTAFS_ERR_IO, "the power goes"},
                                                      {TORTURE_CRASH, 1, DELTAFS_ERR_IO, "the power goes"},
                                                      {TORTURE_CRASH, 0, DELTAFS_ERR_IO, "the process ends"},
                                                      {TORTURE_NONE, 1, DELTAFS_OK, "the power goes afterwards"},
                                                      {TORTURE_EIO, 0, DELTAFS_ERR_IO, "EIO"},
                                                      {TORTURE_ENOSPC, 0, DELTAFS_ERR_NO_SPACE, "ENOSPC"},
                                                      {TORTURE_SHORT, 0, DELTAFS_OK, "a short count"},
                                                      {TORTURE_EINTR, 0, DELTAFS_OK, "EINTR"}};
enum { HAPPENINGS = sizeof happenings / sizeof happenings[0], FIRST_READING = 4 };

const struct torture_happening *torture_choose(struct torture_rng *r)
{
    return &happenings[torture_below(r, HAPPENINGS)];
}

const struct torture_happening *torture_choose_reading(struct torture_rng *r)
{
    return &happenings[FIRST_READING + torture_below(r, HAPPENINGS - FIRST_READING)];
}

int torture_happening_end(const struct torture_happening *h, struct torture_verdict *v)
{
    int happened = torture_io_has_failed() || h->fault == TORTURE_NONE;

    if (torture_io_open_files() != 0)
        torture_wrong(v, "%d files are left open", torture_io_open_files());
    if (h->loses_power)
        torture_io_lose_power();
    torture_io_end();
    return happened;
}
