/* A progress bar on standard error, if a person looks at it: if it is a terminal, or if it is a pipe to an MPI launcher
 * whose own standard error is one. */
#ifndef DELTAFS_TOOLS_PROGRESS_H
#define DELTAFS_TOOLS_PROGRESS_H

#include <pthread.h>
#include <stdint.h>

/* How much is done. */
typedef uint64_t progress_done(void *arg);

struct progress {
    int is_shown, is_bytes;
    uint64_t total, done;
    double started, drawn; /* seconds */
    /* Of progress_watch: */
    progress_done *watched;
    void *arg;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t end;
    int is_watching;
};

/* Seconds on a clock that only moves forward. */
double progress_now(void);

/* Whether somebody would see a bar. */
int progress_is_seen(void);

/* `is_wanted`: 0 shows nothing in any case. */
void progress_begin(struct progress *p, uint64_t total, int is_wanted);
void progress_add(struct progress *p, uint64_t n);
/* Remove the bar before a message; it comes again. */
void progress_wipe(struct progress *p);
/* Show how much is done by `watched`, which a thread of its own calls while another call works; until progress_unwatch
 * or progress_end. The bar must not be used otherwise. */
void progress_watch(struct progress *p, progress_done *watched, void *arg);
void progress_unwatch(struct progress *p);
/* Remove the bar. Can be called again. */
void progress_end(struct progress *p);

#endif
