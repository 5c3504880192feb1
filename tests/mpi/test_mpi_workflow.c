/* Jobs that meet only in a registry of snapshots.
 *
 *     test_mpi_workflow produce NAMESPACE OFFSET      each rank writes the dump of its part of a run, for itself
 *     test_mpi_workflow add NAMESPACE PARTS           the ranks share a namespace on top of the dumps: they add what is
 *                                                     derived of each, replace a dump, and remove another
 *     test_mpi_workflow analyse SNAPSHOT PARTS ADDED  each rank reads all that a snapshot must have, before `add` (0)
 *                                                     or after it (1)
 *
 * The dump of part p has numbers: p * VALUES, and those that follow; that of part 0 is replaced by zeros, and that of
 * part 1 removed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "test_mpi_check.h"

#define VALUES         50000 /* of a dump */
#define IS(call, want) CHECK_STATUS((want), (call), NULL)

static deltafs_namespace *ns;
static uint64_t value[VALUES];

static void open_ns(const char *path, int flags, enum deltafs_namespace_mode mode)
{
    deltafs_options *o = check_options("memory=40M threads=1");

    check_about("%s", path);
    IS(deltafs_mpi_namespace_open(MPI_COMM_WORLD, path, flags, o, mode, &ns), DELTAFS_OK);
    deltafs_options_destroy(o);
    check_require();
}

static const char *name_of(const char *format, int part)
{
    static char text[64];

    snprintf(text, sizeof text, format, part);
    return text;
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    deltafs_namespace_file *f = NULL;

    IS(deltafs_namespace_file_open(ns, path, O_WRONLY | O_CREAT | O_TRUNC, 0644, &f), DELTAFS_OK);
    IS(deltafs_namespace_file_write(f, 0, bytes, size), DELTAFS_OK);
    IS(deltafs_namespace_file_close(f), DELTAFS_OK);
}

/* Returns the bytes read. */
static size_t read_file(const char *path, void *bytes, size_t size)
{
    deltafs_namespace_file *f = NULL;
    size_t got = 0;

    if (!IS(deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f), DELTAFS_OK))
        return 0;
    IS(deltafs_namespace_file_read(f, 0, bytes, size, &got), DELTAFS_OK);
    IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    return got;
}

static uint64_t sum_of_dump(int part)
{
    uint64_t sum = 0;

    memset(value, 0xff, sizeof value);
    CHECK(read_file(name_of("/dumps/%d", part), value, sizeof value) == sizeof value);
    for (size_t i = 0; i < VALUES; i++)
        sum += value[i];
    return sum;
}

static uint64_t sum_expected(int part)
{
    return (uint64_t)part * VALUES * VALUES + (uint64_t)VALUES * (VALUES - 1) / 2;
}

static void produce(const char *path, int offset)
{
    int part = offset + check_rank;

    open_ns(path, O_RDWR | O_CREAT, DELTAFS_NAMESPACE_PRIVATE);
    int status = deltafs_namespace_mkdir(ns, "/dumps", 0755);
    CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_EXISTS); /* by a former job */
    for (uint64_t i = 0; i < VALUES; i++)
        value[i] = (uint64_t)part * VALUES + i;
    write_file(name_of("/dumps/%d", part), value, sizeof value);
    IS(deltafs_namespace_close(ns), DELTAFS_OK);
}

static void add(const char *path, int parts)
{
    open_ns(path, O_RDWR, DELTAFS_NAMESPACE_SHARED);
    if (check_rank == 0)
        IS(deltafs_namespace_mkdir(ns, "/sums", 0755), DELTAFS_OK);
    IS(deltafs_mpi_namespace_barrier(ns), DELTAFS_OK);
    for (int part = check_rank; part < parts; part += check_ranks) {
        uint64_t sum = sum_of_dump(part);
        CHECK(sum == sum_expected(part));
        write_file(name_of("/sums/%d", part), &sum, sizeof sum);
    }
    IS(deltafs_mpi_namespace_barrier(ns), DELTAFS_OK);
    memset(value, 0, sizeof value);
    if (check_rank == 0)
        write_file("/dumps/0", value, sizeof value);
    if (check_rank == check_ranks - 1)
        IS(deltafs_namespace_unlink(ns, "/dumps/1"), DELTAFS_OK);
    IS(deltafs_namespace_close(ns), DELTAFS_OK);
}

static int entries_of(const char *path)
{
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace_list *l = NULL;
    int count = 0;

    IS(deltafs_namespace_list_open(ns, path, &l), DELTAFS_OK);
    for (; l && deltafs_namespace_list_next(l, &entry) == DELTAFS_OK && entry; count++)
        ;
    IS(deltafs_namespace_list_close(l), DELTAFS_OK);
    return count;
}

static void analyse(const char *snapshot, int parts, int is_added)
{
    struct deltafs_namespace_stat st = {.struct_size = sizeof st};
    uint64_t sum;

    open_ns(snapshot, O_RDONLY, DELTAFS_NAMESPACE_PRIVATE);
    CHECK(entries_of("/") == 1 + is_added);
    CHECK(entries_of("/dumps") == parts - is_added);
    for (int part = 0; part < parts; part++)
        if (!is_added || part != 1)
            CHECK(sum_of_dump(part) == (is_added && part == 0 ? 0 : sum_expected(part)));
    if (is_added)
        IS(deltafs_namespace_stat(ns, "/dumps/1", 0, &st), DELTAFS_ERR_NOT_FOUND);
    for (int part = 0; part < parts && is_added; part++)
        CHECK(read_file(name_of("/sums/%d", part), &sum, sizeof sum) == sizeof sum && sum == sum_expected(part));
    IS(deltafs_namespace_close(ns), DELTAFS_OK);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (strcmp(argv[1], "produce") == 0)
        produce(argv[2], atoi(argv[3]));
    else if (strcmp(argv[1], "add") == 0)
        add(argv[2], atoi(argv[3]));
    else
        analyse(argv[2], atoi(argv[3]), atoi(argv[4]));
    return check_end();
}
