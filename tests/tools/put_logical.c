/* For the tests of the commands: writes the same bytes to a logical file and to a plain one, without MPI.
 *
 *     put_logical FILE PLAIN SEED SESSIONS WRITES SIZE [--abandon] [OPTION=VALUE...]
 *
 * In each session come WRITES operations of chance, within SIZE bytes: writes of small, large and strided pieces, over
 * what is there or not; truncations, extensions, syncs; and reads, which must give the plain file's bytes. In every
 * third session two handles write, in turn, each in blocks of its own. With --abandon the last session ends after a
 * sync and further writes, without a close, as a process that dies does; the plain file does not get these. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <deltafs/deltafs_logical.h>
#include "put_options.h"

#define LARGE   ((size_t)1 << 20)
#define BLOCK   ((uint64_t)1 << 16) /* of one of two handles */
#define STRIDES 100

static uint64_t state, top;
static uint8_t bytes[LARGE], seen[LARGE];
static int plain;

static uint64_t chance(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state * 0x2545f4914f6cdd1d >> 11) % below;
}

static int check(const char *what, int status)
{
    return status == DELTAFS_OK ? 0 : complain(what, deltafs_errmsg(NULL));
}

static void fill(size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(chance(255) + 1);
}

static int put(deltafs_logical *f, uint64_t offset, size_t size)
{
    fill(size);
    if (pwrite(plain, bytes, size, (off_t)offset) != (ssize_t)size)
        return complain("pwrite", "failed");
    return check("write", deltafs_logical_write(f, offset, bytes, size));
}

static int put_strided(deltafs_logical *f)
{
    struct deltafs_extent extent[STRIDES];
    uint64_t size = 1 + chance(2000), stride = size + chance(3000), offset = chance(top);
    size_t n = 1 + (size_t)chance(STRIDES);

    fill(n * size);
    for (size_t i = 0; i < n; i++) {
        extent[i] = (struct deltafs_extent){offset + i * stride, size};
        if (pwrite(plain, bytes + i * size, size, (off_t)extent[i].offset) != (ssize_t)size)
            return complain("pwrite", "failed");
    }
    return check("write_list", deltafs_logical_write_list(f, n, extent, bytes));
}

static int compare(deltafs_logical *f)
{
    uint64_t offset = chance(top), size, plain_size = (uint64_t)lseek(plain, 0, SEEK_END);
    size_t want = 1 + (size_t)chance(LARGE), got;

    if (check("size", deltafs_logical_size(f, &size)) != 0)
        return -1;
    if (size != plain_size)
        return complain("size", "not the plain file's");
    if (check("read", deltafs_logical_read(f, offset, seen, want, &got)) != 0)
        return -1;
    ssize_t n = pread(plain, bytes, want, (off_t)offset);
    return n == (ssize_t)got && memcmp(bytes, seen, got) == 0 ? 0 : complain("read", "not the plain file's bytes");
}

/* One operation; `can_read`: the handle is open for reading, too. */
static int operate(deltafs_logical *f, int can_read)
{
    uint64_t to;

    switch (chance(20)) {
    case 0:
    case 1:
        return put(f, chance(top), 1 + (size_t)chance(LARGE));
    case 2:
    case 3:
    case 4:
        return put_strided(f);
    case 5:
        to = chance(top);
        if (chance(4) != 0)
            return 0;
        if (ftruncate(plain, (off_t)to) != 0)
            return complain("ftruncate", "failed");
        return check("truncate", deltafs_logical_truncate(f, to));
    case 6:
        to = chance(top);
        if ((off_t)to > lseek(plain, 0, SEEK_END) && ftruncate(plain, (off_t)to) != 0)
            return complain("ftruncate", "failed");
        return check("extend", deltafs_logical_extend(f, to));
    case 7:
        return check("sync", deltafs_logical_sync(f));
    case 8:
    case 9:
    case 10:
        return can_read ? compare(f) : 0;
    default:
        return put(f, chance(top), 1 + (size_t)chance(chance(4) == 0 ? 20000 : 200));
    }
}

static int session(const char *path, const deltafs_options *options, int number, uint64_t writes)
{
    deltafs_logical *f, *g = NULL;
    int mode = number % 2 == 0 ? O_RDWR : O_WRONLY, failed = 0;

    if (check("open", deltafs_logical_open(path, mode | O_CREAT, options, &f)) != 0)
        return -1;
    if (number % 3 == 2)
        failed = check("open", deltafs_logical_open(path, O_WRONLY, options, &g)) != 0;
    for (uint64_t i = 0; i < writes && !failed; i++) {
        if (g)
            failed = put(i % 2 == 0 ? f : g, (2 * chance(top / (2 * BLOCK) + 1) + i % 2) * BLOCK + chance(BLOCK / 2),
                         1 + (size_t)chance(BLOCK / 2)) != 0;
        else
            failed = operate(f, mode == O_RDWR) != 0;
    }
    failed |= g && check("close", deltafs_logical_close(g)) != 0;
    return check("close", deltafs_logical_close(f)) != 0 || failed ? -1 : 0;
}

/* What is written after the sync is lost. */
static int abandon(const char *path, const deltafs_options *options, uint64_t writes)
{
    deltafs_logical *f;

    if (check("open", deltafs_logical_open(path, O_RDWR | O_CREAT, options, &f)) != 0)
        return -1;
    for (uint64_t i = 0; i < writes; i++)
        if (operate(f, 1) != 0)
            return -1;
    if (check("sync", deltafs_logical_sync(f)) != 0)
        return -1;
    for (int i = 0; i < 10; i++) {
        fill(100);
        if (check("write", deltafs_logical_write(f, chance(top), bytes, 100)) != 0)
            return -1;
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    deltafs_options *options;
    int is_abandoned, failed = 0;

    if (argc < 7 || !(options = put_options(argc, argv, 7, &is_abandoned)))
        return 2;
    state = strtoull(argv[3], NULL, 10) * 0x9e3779b97f4a7c15 + 1;
    top = strtoull(argv[6], NULL, 10);
    plain = open(argv[2], O_RDWR | O_CREAT, 0666);
    if (plain < 0 || top == 0)
        return 2;
    int sessions = atoi(argv[4]);
    uint64_t writes = strtoull(argv[5], NULL, 10);
    for (int i = 0; i < sessions && !failed; i++)
        failed = is_abandoned && i == sessions - 1 ? abandon(argv[1], options, writes) != 0
                                                   : session(argv[1], options, i, writes) != 0;
    deltafs_options_destroy(options);
    close(plain);
    return failed ? 3 : 0;
}
