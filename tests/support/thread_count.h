/* How many threads this process has; without CMocka, so that MPI tests can use it. */
#ifndef DELTAFS_THREAD_COUNT_H
#define DELTAFS_THREAD_COUNT_H

#include <dirent.h>
#include <stddef.h>
#include <time.h>

/* 0: not known. */
static inline size_t thread_count(void)
{
    DIR *d = opendir("/proc/self/task");
    size_t n = 0;

    if (!d)
        return 0;
    for (struct dirent *entry; (entry = readdir(d));)
        n += entry->d_name[0] != '.';
    closedir(d);
    return n;
}

/* The same, after waiting up to a second until there are no more than `most`: one that was joined may be seen for a
 * moment longer. */
static inline size_t thread_count_settled(size_t most)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    for (int i = 0; i < 1000 && thread_count() > most; i++)
        nanosleep(&moment, NULL);
    return thread_count();
}

#endif
