/* See threads_pthreads_mutex.h. */
#ifndef DELTAFS_OPENMPI5_TSD_H
#define DELTAFS_OPENMPI5_TSD_H

#include <pthread.h>

typedef pthread_key_t opal_tsd_key_t;

#endif
