#include "posix/posix_tree.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "posix/logical_view.h"
#include "posix/mark.h"
#include "posix/next.h"
#include "posix/pooled.h"
#include "posix/tree_parts.h"

void tree_keep_reader(struct file *f, deltafs_namespace_file *from)
{
    struct tree *t = f->mount->tree;

    f->reader = from;
    f->next_reader = t->readers;
    t->readers = f;
}

int tree_keep_or_close(struct file *f, deltafs_namespace_file *from)
{
    if (f->has_all || (f->flags & O_ACCMODE) == O_WRONLY)
        return deltafs_namespace_file_close(from);
    tree_keep_reader(f, from);
    return DELTAFS_OK;
}

void tree_close_reader(struct file *f)
{
    struct file **link = &f->mount->tree->readers;

    if (!f->reader)
        return;
    while (*link != f)
        link = &(*link)->next_reader;
    *link = f->next_reader;
    deltafs_namespace_file_close(f->reader);
    f->reader = NULL;
}

void tree_close_readers(struct tree *t, int is_all)
{
    for (struct file *f = t->readers, *next_one; f; f = next_one) {
        next_one = f->next_reader;
        if (is_all || f->is_shared)
            tree_close_reader(f);
    }
}

/* Have a reader; there is none if the file is lost. */
static int open_reader(struct file *f, deltafs_namespace *ns)
{
    deltafs_namespace_file *from = NULL;
    struct stat now;
    int status = f->reader ? DELTAFS_OK : tree_open_same(f, ns, O_RDONLY, &now, &from);

    if (from)
        tree_keep_reader(f, from);
    return status;
}

static int read_namespace(struct file *f, void *bytes, size_t size, uint64_t at, size_t *got)
{
    struct tree *t = f->mount->tree;
    deltafs_namespace *ns;
    int error = tree_begin(t, 0, &ns);

    if (error != 0)
        return error;
    int status = open_reader(f, ns), is_lost = status == DELTAFS_OK && !f->reader;
    if (status == DELTAFS_OK && !is_lost)
        status = deltafs_namespace_file_read(f->reader, at, bytes, size, got);
    error = tree_end(t, status);
    if (error == 0 && is_lost) {
        posix_say("%s%s: another process has removed the file while it was open, or moved it to another folder; it "
                  "cannot be read any more",
                  f->mount->point, f->path);
        error = ESTALE;
    }
    return error;
}

/* Bytes that are not in the memfd; what was truncated is zero. */
static int read_rest(struct file *f, uint8_t *bytes, size_t size, uint64_t at)
{
    uint64_t end = f->cut < at ? at : f->cut;
    size_t got = 0, there = end - at < size ? (size_t)(end - at) : size;
    int error = there == 0                        ? 0
                : f->mount->kind == MOUNT_LOGICAL ? logical_read(f, bytes, there, at, &got)
                : f->mount->kind == MOUNT_POOL    ? pooled_read_bytes(f, bytes, there, at, &got)
                                                  : read_namespace(f, bytes, there, at, &got);

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
    int error = !bytes ? ENOMEM : f->mount->kind == MOUNT_POOL ? pooled_take_size(f, fd) : 0;
    if (error == 0)
        error = load_bytes(f, fd, bytes);
    free(bytes);
    f->has_all = error == 0;
    return error;
}
