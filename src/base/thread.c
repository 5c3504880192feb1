#include <signal.h>
#include "base/thread.h"

int thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg, struct error *e)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errnum == 0)
        return DELTAFS_OK;
    error_system(e, errnum, "start one", "a thread");
    e->status = DELTAFS_ERR_MEMORY;
    return e->status;
}
