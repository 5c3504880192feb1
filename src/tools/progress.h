/* A progress bar on standard error, if a person looks at it: if it is a terminal, or if it is a pipe to an MPI launcher
 * whose own standard error is one. */
#ifndef DELTAFS_TOOLS_PROGRESS_H
#define DELTAFS_TOOLS_PROGRESS_H

#include <stdint.h>

struct progress {
    int is_shown;
    uint64_t total, done;
    double started, drawn; /* seconds */
};

/* Seconds on a clock that only moves forward. */
double progress_now(void);

/* `is_wanted`: 0 shows nothing in any case. */
void progress_begin(struct progress *p, uint64_t total, int is_wanted);
void progress_add(struct progress *p, uint64_t n);
/* Remove the bar before a message; it comes again. */
void progress_wipe(struct progress *p);
/* Remove the bar. */
void progress_end(struct progress *p);

#endif
