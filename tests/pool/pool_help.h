/* What programs of the tests do with a pool. */
#ifndef TESTS_POOL_HELP_H
#define TESTS_POOL_HELP_H

#include <deltafs/deltafs_pool.h>

/* End the program with the library's message if a call has failed. */
void must(int status);
/* What all servers say together: bytes of files; and requests, without those that have asked for it. */
struct used {
    uint64_t bytes, requests;
};
struct used used_of(deltafs_pool *pool);

#endif
