/* What a case of a campaign has found. */
#ifndef DELTAFS_TORTURE_VERDICT_H
#define DELTAFS_TORTURE_VERDICT_H

#include <stdint.h>

/* A case counts once for each, whatever is wrong with it. */
struct torture_verdict {
    uint64_t seed; /* of the case, for messages */
    const char *about;
    uint64_t detail;
    int is_lost;  /* a record or a committed epoch is missing, or there is an error where there must be none */
    int is_wrong; /* a record that should not be there, or differs; or the wrong status */
};
__attribute__((format(printf, 2, 3))) void torture_lost(struct torture_verdict *v, const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void torture_wrong(struct torture_verdict *v, const char *fmt, ...);

#endif
