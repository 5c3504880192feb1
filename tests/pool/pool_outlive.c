/* A client of a pool that outlives it.
 *
 *     pool_outlive POINT
 *
 * Opens a file and prints a line. After a line on its input it writes to the file, twice. Exits with 0 if both times
 * the message says that the pool has ended. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_pool.h>

int main(int argc, char **argv)
{
    deltafs_pool *pool = NULL;
    deltafs_pool_file *f = NULL;

    if (argc < 2 || deltafs_pool_open(argv[1], &pool) != DELTAFS_OK ||
        deltafs_pool_file_open(pool, "/old", O_RDWR | O_CREAT, 0600, &f) != DELTAFS_OK)
        return EXIT_FAILURE;
    puts("ready");
    fflush(stdout);
    getchar();
    for (int i = 0; i < 2; i++) {
        int status = deltafs_pool_file_write(f, 0, "old", 3);
        if (status == DELTAFS_ERR_IO && strstr(deltafs_errmsg(NULL), "ended"))
            continue;
        fprintf(stderr, "write %d: status %d, %s\n", i, status, deltafs_errmsg(NULL));
        return EXIT_FAILURE;
    }
    deltafs_pool_file_close(f);
    deltafs_pool_close(pool);
    return EXIT_SUCCESS;
}
