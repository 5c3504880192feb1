/* A file of a pool with a block in each of many chunks is made shorter, and removed: nothing of it stays.
 *
 *     pool_large POINT CHUNKS REQUESTS     removing it takes no more requests than this */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <deltafs/deltafs_pool.h>

#define CHUNK (UINT64_C(512) << 10)

static deltafs_pool *pool;

static void must(int status)
{
    if (status == DELTAFS_OK)
        return;
    fprintf(stderr, "%s\n", deltafs_errmsg(NULL));
    exit(1);
}

/* Bytes of files, and requests, without those of this function. */
static uint64_t stored(uint64_t *requests)
{
    static uint64_t own;
    uint64_t bytes = 0;

    *requests = 0;
    for (uint32_t i = 0; i < deltafs_pool_servers(pool); i++) {
        struct deltafs_pool_status s = {.struct_size = sizeof s};
        must(deltafs_pool_status(pool, i, &s));
        bytes += s.bytes;
        *requests += s.operations;
        own++;
    }
    *requests -= own;
    return bytes;
}

int main(int argc, char **argv)
{
    deltafs_pool_file *f = NULL;
    uint64_t before, after;

    if (argc != 4)
        return 2;
    uint64_t chunks = strtoull(argv[2], NULL, 10), most = strtoull(argv[3], NULL, 10);
    must(deltafs_pool_open(argv[1], &pool));
    must(deltafs_pool_file_open(pool, "/large", O_RDWR | O_CREAT, 0600, &f));
    for (uint64_t i = 0; i < chunks; i++)
        must(deltafs_pool_file_write(f, i * CHUNK, "x", 1));
    must(deltafs_pool_file_truncate(f, CHUNK));
    uint64_t left = stored(&before);
    for (uint64_t i = 0; i < chunks; i++)
        must(deltafs_pool_file_write(f, i * CHUNK, "x", 1));
    deltafs_pool_file_close(f);
    stored(&before);
    must(deltafs_pool_unlink(pool, "/large"));
    uint64_t none = stored(&after);
    deltafs_pool_close(pool);
    printf("%" PRIu64 " and %" PRIu64 " bytes, %" PRIu64 " requests\n", left, none, after - before);
    return left == 4096 && none == 0 && after - before <= most ? 0 : 1;
}
