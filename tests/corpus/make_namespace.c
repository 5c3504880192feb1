/* Made the golden namespaces, by two writers at once: files of one chunk and of several, sparse and empty ones, a chunk
 * that the other writer replaced, links, names that were removed and renamed, a folder that both made, attributes.
 *
 *     make_namespace FOLDER [dies]
 *
 * With "dies" the writers commit, and leave journals. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <deltafs/deltafs_namespace.h>

#define LARGE 600000

static uint8_t bytes[LARGE];

static void must(int status)
{
    if (status == DELTAFS_OK)
        return;
    fprintf(stderr, "make_namespace: %s\n", deltafs_errmsg(NULL));
    exit(1);
}

static deltafs_namespace *begin(const char *path)
{
    deltafs_options *o;
    deltafs_namespace *ns;

    must(deltafs_options_create(&o));
    must(deltafs_options_set(o, "memory", "32M"));
    must(deltafs_namespace_open(path, O_RDWR | O_CREAT, o, &ns));
    deltafs_options_destroy(o);
    return ns;
}

static void put(deltafs_namespace *ns, const char *path, uint64_t offset, const void *from, size_t n)
{
    deltafs_namespace_file *f;

    must(deltafs_namespace_file_open(ns, path, O_RDWR | O_CREAT, 0640, &f));
    must(deltafs_namespace_file_write(f, offset, from, n));
    must(deltafs_namespace_file_close(f));
}

static void set(deltafs_namespace *ns, const char *path, uint32_t mode, int64_t mtime)
{
    const struct deltafs_namespace_attributes a = {
        .struct_size = sizeof a, .set = DELTAFS_NAMESPACE_MODE | DELTAFS_NAMESPACE_MTIME, .mode = mode, .mtime = mtime};

    must(deltafs_namespace_set_attributes(ns, path, 0, &a));
}

int main(int argc, char **argv)
{
    int dies = argc == 3 && strcmp(argv[2], "dies") == 0;
    if (argc != 2 && !dies)
        return 2;
    deltafs_namespace *a = begin(argv[1]), *b;

    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = (uint8_t)(i / 1000);
    must(deltafs_namespace_mkdir(a, "/a", 0755));
    must(deltafs_namespace_mkdir(a, "/a/b", 0755));
    put(a, "/a/small", 0, "first bytes\n", 12);
    put(a, "/a/large", 0, bytes, LARGE);
    put(a, "/a/sparse", 800000, "x", 1);
    must(deltafs_namespace_create(a, "/a/empty", 0600, O_EXCL));
    must(deltafs_namespace_symlink(a, "../a/small", "/a/link"));
    put(a, "/gone", 0, "gone", 4);
    must(deltafs_namespace_commit(a));

    b = begin(argv[1]);
    must(deltafs_namespace_mkdir(a, "/both", 0711));
    put(a, "/both/of a", 0, "a", 1);
    must(deltafs_namespace_mkdir(b, "/both", 0750));
    put(b, "/both/of b", 0, "b", 1);
    put(b, "/a/large", 300000, "the other writer", 16);
    must(deltafs_namespace_unlink(b, "/gone"));
    must(deltafs_namespace_rename(b, "/a/small", "/a/b/renamed"));
    set(b, "/a/b", 01700, -5);
    set(b, "/", 0700, INT64_C(1700000000123456789));
    must(dies ? deltafs_namespace_commit(b) : deltafs_namespace_close(b));
    put(a, "/a/small", 0, "again", 5);
    must(dies ? deltafs_namespace_commit(a) : deltafs_namespace_close(a));
    if (dies)
        _exit(0);
    return 0;
}
