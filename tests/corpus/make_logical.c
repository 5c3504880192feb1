/* Made the golden logical file: its bytes are a function of offset and session, so that it packs well. In order:
 * strided and overlapping pieces, closed with a sync; an index in one file; truncation, extension and a hole, closed
 * without a sync; and a session that was not closed.
 *
 *     make_logical FOLDER */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <deltafs/deltafs_logical.h>

static uint8_t bytes[50000];

static void must(int status)
{
    if (status == DELTAFS_OK)
        return;
    fprintf(stderr, "make_logical: %s\n", deltafs_errmsg(NULL));
    exit(1);
}

static deltafs_logical *begin(const char *path, const char *sync, const char *index)
{
    deltafs_options *o;
    deltafs_logical *f;

    must(deltafs_options_create(&o));
    must(deltafs_options_set(o, "sync", sync));
    must(deltafs_options_set(o, "extents", index));
    must(deltafs_logical_open(path, O_RDWR | O_CREAT, o, &f));
    deltafs_options_destroy(o);
    return f;
}

static void put(deltafs_logical *f, uint64_t offset, size_t n, unsigned session)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)((offset + i) / 64 + session * 50);
    must(deltafs_logical_write(f, offset, bytes, n));
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    deltafs_logical *f = begin(argv[1], "close", "parallel");
    for (uint64_t i = 0; i < 1000; i++)
        put(f, i * 100, 37, 1);
    put(f, 5000, 4096, 1);
    must(deltafs_logical_sync(f));
    put(f, 7000, 50000, 1);
    must(deltafs_logical_close(f));

    f = begin(argv[1], "close", "flatten");
    for (uint64_t i = 200; i > 0; i--)
        put(f, i * 777, 300, 2);
    must(deltafs_logical_close(f));

    f = begin(argv[1], "commit", "parallel");
    must(deltafs_logical_truncate(f, 120000));
    put(f, 300000, 1000, 3);
    must(deltafs_logical_extend(f, 310001));
    must(deltafs_logical_close(f));

    f = begin(argv[1], "commit", "parallel");
    put(f, 100, 200, 4);
    must(deltafs_logical_sync(f));
    put(f, 50000, 200, 4);
    _exit(0);
}
