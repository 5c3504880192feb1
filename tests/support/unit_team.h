/* Ranks that are threads: a logical file's group without MPI, whose collective calls meet at a barrier. */
#ifndef DELTAFS_UNIT_TEAM_H
#define DELTAFS_UNIT_TEAM_H

#include <pthread.h>
#include "logical/logical.h"

#define TEAM_MAX 4

struct unit_team {
    pthread_barrier_t barrier;
    uint32_t ranks;
    const void *bytes[TEAM_MAX];
    size_t size[TEAM_MAX];
};

struct unit_member {
    struct unit_team *team;
    uint32_t rank;
};

void unit_team_init(struct unit_team *t, uint32_t ranks);
void unit_team_fini(struct unit_team *t);
void unit_team_wait(struct unit_member *m);
extern const struct collective_calls unit_team_calls;
struct collective unit_team_group(struct unit_member *m);

/* A thread cannot fail a test: it keeps the first condition that does not hold, in *p, for who joins it. */
#define PART_CHECK(p, condition)                                                                                       \
    do {                                                                                                               \
        if (!(condition) && !(p)->wrong[0]) {                                                                          \
            snprintf((p)->wrong, sizeof(p)->wrong, "%s: %s", #condition, deltafs_errmsg(NULL));                        \
            (p)->line = __LINE__;                                                                                      \
        }                                                                                                              \
    } while (0)

#endif
