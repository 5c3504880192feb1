#include "posix/posix_tree.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "posix/mark.h"
#include "posix/next.h"
#include "posix/tree_parts.h"

static int read_namespace(struct file *f, void *bytes, size_t size, uint64_t at, size_t *got)
{
    struct tree *t = f->mount->tree;
    deltafs_namespace *ns;
    int status = DELTAFS_OK, error = tree_begin(t, 0, &ns);

    if (error != 0)
        return error;
    if (!f->reader)
        status = deltafs_namespace_file_open(ns, f->path, O_RDONLY, 0, &f->reader);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_read(f->reader, at, bytes, size, got);
    return tree_end(t, status);
}

/* Bytes that are not in the memfd; what was truncated is zero. */
static int read_rest(struct file *f, uint8_t *bytes, size_t size, uint64_t at)
{
    uint64_t end = f->cut < at ? at : f->cut;
    size_t got = 0, there = end - at < size ? (size_t)(end - at) : size;
    int error = there > 0 ? read_namespace(f, bytes, there, at, &got) : 0;

    memset(bytes + got, 0, size - got);
    return error;
}

ssize_t file_read_at(struct file *f, int fd, void *bytes, size_t size, uint64_t at)
{
    struct stat now;
    size_t done = 0;

    if (next.fstat(fd, &now) != 0 || posix_result(mark_before_seek(f, fd)) != 0)
        return -1;
    uint64_t left = (uint64_t)now.st_size > at ? (uint64_t)now.st_size - at : 0;
    size = size < left ? size : (size_t)left;
    while (done < size) {
        const struct span *s = spans_find(&f->dirty, at + done);
        uint64_t from = at + done, until = s && s->from > from ? s->from : s ? s->to : at + size;
        size_t n = until - from < size - done ? (size_t)(until - from) : size - done;
        if (s && s->from <= from) {
            if (next.pread(fd, (uint8_t *)bytes + done, n, (off_t)from) != (ssize_t)n)
                return -1;
        } else {
            int error = read_rest(f, (uint8_t *)bytes + done, n, from);
            if (error != 0)
                return posix_result(error);
        }
        done += n;
    }
    return (ssize_t)done;
}

/* With O_APPEND, the kernel would put all bytes at the end. */
static int load_bytes(struct file *f, int fd, void *bytes)
{
    int flags = next.fcntl(fd, F_GETFL);
    ssize_t got = flags < 0 || next.fcntl(fd, F_SETFL, flags & ~O_APPEND) != 0 ? -1 : 1;

    for (uint64_t at = 0; got > 0; at += (uint64_t)got) {
        got = file_read_at(f, fd, bytes, COPY_SIZE, at);
        if (got > 0 && next.pwrite(fd, bytes, (size_t)got, (off_t)at) != got)
            got = -1;
    }
    int error = got < 0 ? errno : 0;
    if (flags >= 0)
        next.fcntl(fd, F_SETFL, flags);
    return error;
}

int file_load(struct file *f, int fd)
{
    void *bytes = f->has_all || f->kind != FILE_TREE ? NULL : malloc(COPY_SIZE);

    if (f->has_all || f->kind != FILE_TREE)
        return 0;
    int error = bytes ? load_bytes(f, fd, bytes) : ENOMEM;
    free(bytes);
    f->has_all = error == 0;
    return error;
}
