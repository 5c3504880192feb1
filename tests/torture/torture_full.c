#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "torture_job.h"
#include "torture_kinds.h"

#define ROOM        (1u << 20)
#define ROOM_NEEDED (100u << 10) /* for one epoch more */
#define TURNS_MOST  50           /* without a full file system: it is too large for this */

/* Leave a part of the room only. */
static void fill(const char *path, uint64_t n)
{
    static const char bytes[4096] = "filler";
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    for (uint64_t at = 0; fd >= 0 && at < n; at += sizeof bytes)
        if (write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes)
            break;
    close(fd);
}

/* Not every job comes to the end of the room: those that do not are not counted. */
void torture_full(const char *path, uint64_t count, uint64_t seed, struct torture_tally *tally)
{
    struct torture_job job;
    struct torture_verdict v;
    char filler[320];
    unsigned turns = 0;

    snprintf(filler, sizeof filler, "%s.filler", path);
    for (; tally->tried < count; seed++) {
        struct torture_outcome o = {0};
        struct torture_rng r = {seed ^ 0xf011};
        torture_job_make(&job, seed, TORTURE_FULL);
        torture_case_begin(&v, seed, "full, with bytes taken", torture_below(&r, ROOM + ROOM / 16));
        torture_remove(path);
        fill(filler, v.detail);
        torture_job_run(&job, path, NULL, DELTAFS_ERR_NO_SPACE, 2, &o, &v);
        int is_there = torture_job_check(&job, path, &o, &v);
        unlink(filler);
        if (is_there && v.detail > ROOM_NEEDED) {
            torture_job_go_on(&job, path, NULL, DELTAFS_OK, &o, &v);
            torture_job_check(&job, path, &o, &v);
        }
        if (o.failures > 0 || v.is_lost || v.is_wrong)
            torture_case_end(&v, tally);
        turns = o.failures > 0 ? 0 : turns + 1;
        if (turns == TURNS_MOST) {
            torture_lost(&v, "the file system of %s does not get full", path);
            torture_case_end(&v, tally);
            break;
        }
    }
    torture_remove(path);
}
