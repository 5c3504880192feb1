/* A file of a pool with a block in each of many chunks is made shorter, and removed: nothing of it stays.
 *
 *     pool_large POINT CHUNKS REQUESTS     removing it takes no more requests than this */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/pool/pool_help.h"

#define CHUNK (UINT64_C(512) << 10)

int main(int argc, char **argv)
{
    deltafs_pool_file *f = NULL;
    deltafs_pool *pool = NULL;
    struct used left, before, after;

    if (argc != 4)
        return 2;
    uint64_t chunks = strtoull(argv[2], NULL, 10), most = strtoull(argv[3], NULL, 10);
    must(deltafs_pool_open(argv[1], &pool));
    must(deltafs_pool_file_open(pool, "/large", O_RDWR | O_CREAT, 0600, &f));
    for (uint64_t i = 0; i < chunks; i++)
        must(deltafs_pool_file_write(f, i * CHUNK, "x", 1));
    must(deltafs_pool_file_truncate(f, CHUNK));
    left = used_of(pool);
    for (uint64_t i = 0; i < chunks; i++)
        must(deltafs_pool_file_write(f, i * CHUNK, "x", 1));
    deltafs_pool_file_close(f);
    before = used_of(pool);
    must(deltafs_pool_unlink(pool, "/large"));
    after = used_of(pool);
    uint64_t requests = after.requests - before.requests;
    deltafs_pool_close(pool);
    printf("%" PRIu64 " and %" PRIu64 " bytes, %" PRIu64 " requests\n", left.bytes, after.bytes, requests);
    return left.bytes == 4096 && after.bytes == 0 && requests <= most ? 0 : 1;
}
