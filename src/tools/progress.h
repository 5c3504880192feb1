/* A progress bar on standard error, if a person looks at it: if it is a terminal, or if it is a pipe to an MPI launcher
 * whose own standard error is one. */
#ifndef DELTAFS_TOOLS_PROGRESS_H
#define DELTAFS_TOOLS_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <deltafs/deltafs.h>

struct progress {
    int is_shown, is_bytes;
    uint64_t total, done;
    double started, drawn; /* seconds */
    /* Of progress_watch: */
    const deltafs_dir *dir;
    uint64_t before; /* bytes */
    pthread_t thread;
    atomic_int is_watching;
};

/* Seconds on a clock that only moves forward. */
double progress_now(void);

/* `is_wanted`: 0 shows nothing in any case. */
void progress_begin(struct progress *p, uint64_t total, int is_wanted);
void progress_add(struct progress *p, uint64_t n);
/* Remove the bar before a message; it comes again. */
void progress_wipe(struct progress *p);
/* Show how many bytes the handle has read of `total`, from a thread of its own, while another call works on it; until
 * progress_unwatch. The bar must not be used otherwise. */
void progress_watch(struct progress *p, const deltafs_dir *d, uint64_t total);
void progress_unwatch(struct progress *p);
/* Remove the bar. */
void progress_end(struct progress *p);

#endif
