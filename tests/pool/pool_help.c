#include "tests/pool/pool_help.h"

#include <stdio.h>
#include <stdlib.h>

void must(int status)
{
    if (status == DELTAFS_OK)
        return;
    fprintf(stderr, "%s\n", deltafs_errmsg(NULL));
    exit(1);
}

struct used used_of(deltafs_pool *pool)
{
    static uint64_t own;
    struct used all = {.bytes = 0};

    for (uint32_t i = 0; i < deltafs_pool_servers(pool); i++) {
        struct deltafs_pool_status s = {.struct_size = sizeof s};
        must(deltafs_pool_status(pool, i, &s));
        all.bytes += s.bytes;
        all.requests += s.operations;
        own++;
    }
    all.requests -= own;
    return all;
}
