#include "posix/locks.h"
#include "posix/posix_tree.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "posix/logical_view.h"
#include "posix/mark.h"
#include "posix/next.h"
#include "posix/pooled.h"
#include "posix/tree_parts.h"

#define SUM_SIZE  ((size_t)16 << 10)
#define DIRTY_MAX ((uint64_t)16 << 20) /* so many bytes that are not in the namespace yet, */
#define SPANS_MAX 4096                 /* or in so many places: each uses a page of memory at least */

/* Put bytes that are in the memfd into the file. */
static int put_span(struct tree *t, int fd, deltafs_namespace_file *to, struct span s)
{
    int status = DELTAFS_OK;

    while (s.from < s.to && status == DELTAFS_OK) {
        size_t want = s.to - s.from < COPY_SIZE ? (size_t)(s.to - s.from) : COPY_SIZE;
        ssize_t got = next.pread(fd, t->copy, want, (off_t)s.from);
        if (got <= 0)
            return got < 0 ? DELTAFS_ERR_MEMORY : DELTAFS_OK; /* it was truncated meanwhile */
        status = deltafs_namespace_file_write(to, s.from, t->copy, (size_t)got);
        s.from += (uint64_t)got;
    }
    return status;
}

int file_each_data(const struct file *f, int fd, struct span s, int (*put)(void *arg, int fd, struct span s), void *arg)
{
    int error = 0, own = f->is_shared ? file_reopen(fd, O_RDONLY | O_NOATIME) : -1;

    if (own < 0)
        return put(arg, fd, s);
    while (error == 0 && s.from < s.to) {
        off_t from = next.lseek(own, (off_t)s.from, SEEK_DATA);
        off_t end = from < 0 ? -1 : next.lseek(own, from, SEEK_HOLE);
        if (end < 0 || (uint64_t)from >= s.to)
            break;
        s.from = (uint64_t)end;
        error = put(arg, own, (struct span){(uint64_t)from, s.from < s.to ? s.from : s.to});
    }
    next.close(own);
    return error;
}

struct putting {
    struct tree *tree;
    deltafs_namespace_file *to;
};

static int put_data(void *arg, int fd, struct span s)
{
    const struct putting *p = arg;

    return put_span(p->tree, fd, p->to, s);
}

/* Bring the file to the state of the memfd, where this process has changed it. */
static int put_changes(struct file *f, int fd, deltafs_namespace_file *to)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    struct stat now;
    int status = deltafs_namespace_file_stat(to, &s);

    if (status == DELTAFS_OK && next.fstat(fd, &now) != 0)
        status = DELTAFS_ERR_MEMORY;
    if (status == DELTAFS_OK && f->cut < s.size) {
        status = deltafs_namespace_file_truncate(to, f->cut);
        s.size = f->cut;
    }
    if (status == DELTAFS_OK && f->is_unbounded)
        status = put_span(f->mount->tree, fd, to, (struct span){0, (uint64_t)now.st_size});
    struct putting p = {f->mount->tree, to};
    for (size_t i = 0; i < f->dirty.count && status == DELTAFS_OK; i++)
        status = file_each_data(f, fd, f->dirty.span[i], put_data, &p);
    if (status == DELTAFS_OK && f->cut != UINT64_MAX && (uint64_t)now.st_size > s.size)
        status = deltafs_namespace_file_truncate(to, (uint64_t)now.st_size);
    if (status == DELTAFS_OK)
        status = deltafs_namespace_file_stat(to, &s);
    if (status == DELTAFS_OK)
        tree_fill_stat(f->mount, &s, &f->st);
    return status;
}

int file_has_changes(struct file *f, int fd)
{
    struct span unseen;

    if (f->kind != FILE_TREE || f->is_removed)
        return 0;
    if (f->is_unbounded || f->cut != UINT64_MAX ||
        (f->dirty.count > 0 && (f->is_placed || !(f->is_shared && f->flags & O_APPEND))))
        return 1;
    return mark_find(f, fd, &unseen) != 0 || unseen.from < unseen.to;
}

/* With the lock of the tree. */
static int put_file(struct file *f, int fd, deltafs_namespace *ns, struct span *unseen)
{
    int flags = O_WRONLY | (f->flags & O_APPEND && f->cut == UINT64_MAX && !f->is_placed ? O_APPEND : 0);
    deltafs_namespace_file *to = NULL;
    struct stat now;

    if (mark_collect(f, fd, unseen) != 0)
        return DELTAFS_ERR_MEMORY;
    int status = tree_open_same(f, ns, flags, &now, &to);
    f->is_removed = status == DELTAFS_OK && !to;
    if (status == DELTAFS_OK && to)
        status = put_changes(f, fd, to);
    if (status != DELTAFS_OK && to && (flags & O_APPEND)) /* all of it will be put again */
        deltafs_namespace_file_truncate(to, (uint64_t)now.st_size);
    if (to) /* the reader may be of a state before */
        tree_close_reader(f);
    int closed = deltafs_namespace_file_close(to);
    status = status == DELTAFS_OK ? closed : status;
    if (status == DELTAFS_OK && unseen->from < unseen->to && mark_set(f, fd, unseen->to) != 0)
        status = DELTAFS_ERR_MEMORY;
    return status;
}

static int free_span(int fd, struct span s)
{
    const uint64_t page = 4096;
    uint64_t from = (s.from + page - 1) / page * page, to = s.to / page * page;

    if (from >= to)
        return 0;
    return next.fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from)) ? errno : 0;
}

/* What is in the namespace need not be in memory, unless all of it will be put again. But if others have the
 * descriptor, they must not read it from there, and what they have written since must stay. */
static int free_memory(struct file *f, int fd, const struct spans *published)
{
    struct stat now;
    int error = 0;

    if (!f->is_shared)
        error = next.fstat(fd, &now) == 0 ? free_span(fd, (struct span){0, (uint64_t)now.st_size}) : errno;
    for (size_t i = 0; f->is_shared && i < published->count && error == 0; i++)
        error = free_span(fd, published->span[i]);
    f->has_all = f->has_all && error != 0;
    return error;
}

static int is_much(const struct spans *s)
{
    return s->bytes >= DIRTY_MAX || s->count >= SPANS_MAX;
}

/* After a file was published. A pool gets each write at once, so that much comes together only over many of them; the
 * others who have the descriptor do so, too. */
static int free_published(struct file *f, int fd)
{
    int error = 0, is_kept = f->is_unbounded || f->is_mapped || f->is_removed ||
                             (f->is_shared && ((f->flags & O_ACCMODE) != O_WRONLY || f->mount->kind == MOUNT_LOGICAL));

    if (is_kept)
        return 0;
    if (f->mount->kind != MOUNT_POOL)
        return is_much(&f->dirty) ? free_memory(f, fd, &f->dirty) : 0;
    for (size_t i = 0; i < f->dirty.count && error == 0; i++)
        error = spans_add(&f->published, f->dirty.span[i].from, f->dirty.span[i].to);
    if (error == 0 && is_much(&f->published)) {
        error = free_memory(f, fd, &f->published);
        spans_clear(&f->published);
    }
    return error;
}

static int publish_tree(struct file *f, int fd, struct span *unseen)
{
    deltafs_namespace *ns;
    int error = tree_begin(f->mount->tree, 1, &ns);

    return error == 0 ? tree_end(f->mount->tree, put_file(f, fd, ns, unseen)) : error;
}

static int publish_noted(struct file *f, int fd)
{
    struct span unseen = {0, 0};
    int error = 0;

    if (file_has_changes(f, fd)) {
        error = f->mount->kind == MOUNT_LOGICAL ? logical_publish(f, fd, &unseen)
                : f->mount->kind == MOUNT_POOL  ? pooled_publish(f, fd, &unseen)
                                                : publish_tree(f, fd, &unseen);
        if (error == 0 && f->is_removed) {
            posix_say("%s%s: another process has removed the file while it was open, or moved it to another folder; "
                      "what was written to it since then is lost",
                      f->mount->point, f->path);
            error = ESTALE;
        }
        if (error != 0 && unseen.from < unseen.to)
            mark_set(f, fd, unseen.from);
    }
    if (error == 0)
        error = free_published(f, fd);
    if (error == 0 && !f->is_removed) {
        spans_clear(&f->dirty);
        f->is_placed = 0;
        f->cut = UINT64_MAX;
    }
    return error;
}

/* Add bytes of the memfd to a sum; it is another one if one word of them is. */
static int sum_span(int fd, struct span s, uint64_t *out)
{
    uint64_t sum = *out + s.from * 31 + s.to, words[SUM_SIZE / sizeof sum];
    ssize_t got = 1;

    for (; s.from < s.to && got > 0; s.from += (uint64_t)got) {
        got =
            next.pread(fd, words, s.to - s.from < sizeof words ? (size_t)(s.to - s.from) : sizeof words, (off_t)s.from);
        size_t n = got <= 0 ? 0 : (size_t)got;
        memset((uint8_t *)words + n, 0, -n % sizeof sum);
        for (size_t i = 0; i < (n + sizeof sum - 1) / sizeof sum; i++) {
            sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15;
            sum ^= sum >> 32;
        }
    }
    *out = sum;
    return got < 0 ? errno : 0;
}

/* One of these, up to the end of the file. */
static struct span mapped_span(const struct spans *mapped, size_t i, uint64_t size)
{
    struct span s = mapped->span[i];

    s.to = s.to < size ? s.to : size;
    return s;
}

/* The sum of what is mapped, which is not 0, and the size of the file; 0 if nothing is mapped. */
static int sum_mapped(const struct spans *mapped, int fd, uint64_t *sum, uint64_t *size)
{
    struct stat now;
    int error = mapped->count > 0 && next.fstat(fd, &now) != 0 ? errno : 0;

    *sum = 0;
    if (error != 0 || mapped->count == 0)
        return error;
    *size = (uint64_t)now.st_size;
    for (size_t i = 0; i < mapped->count && error == 0; i++)
        error = sum_span(fd, mapped_span(mapped, i, *size), sum);
    *sum = *sum ? *sum : 1;
    return error;
}

/* Note what may have been changed by shared mappings, and its sum, as *sum, which is not 0. Nothing is noted if it is
 * as it was when this process, or one that shares the mappings since a fork, published it: others may have written to
 * the file since. */
static int note_mapped(struct file *f, int fd, uint64_t *sum)
{
    uint64_t size = 0;
    int error = sum_mapped(&f->mapped, fd, sum, &size);

    if (error != 0 || *sum == 0 || (f->mapped_sum && atomic_load(f->mapped_sum) == *sum))
        return error;
    if ((f->flags & O_APPEND) && !f->is_placed) /* what was added, and is not put where it is */
        error = publish_noted(f, fd);
    f->is_placed = 1;
    for (size_t i = 0; i < f->mapped.count && error == 0; i++) {
        struct span s = mapped_span(&f->mapped, i, size);
        error = spans_add(&f->dirty, s.from, s.to);
    }
    return error;
}

int file_publish(struct file *f, int fd)
{
    uint64_t sum = 0;
    int error = f->is_removed ? 0 : note_mapped(f, fd, &sum);

    if (error == 0)
        error = publish_noted(f, fd);
    if (sum != 0 && error == 0 && f->mapped_sum)
        atomic_store(f->mapped_sum, sum);
    return error;
}

int file_publish_left(struct file *f, int fd, struct spans *left)
{
    uint64_t sum = 0, size;
    int summed = sum_mapped(left, fd, &sum, &size); /* before: what changes while it is published is not in the sum */
    int error = file_publish(f, fd);

    spans_fini(&f->mapped);
    f->mapped = *left;
    if (f->mapped_sum && left->count > 0) /* else it is that of a process that shares all of them since a fork */
        atomic_store(f->mapped_sum, error == 0 && summed == 0 ? sum : 0);
    return error;
}

int file_note_written(struct file *f, int fd, uint64_t from, uint64_t to)
{
    int error = spans_add(&f->dirty, from, to);

    return error == 0 && is_much(&f->dirty) ? file_publish(f, fd) : error;
}

int file_note_truncated(struct file *f, int fd, uint64_t size)
{
    struct span unseen;
    int error = mark_find(f, fd, &unseen);

    spans_cut(&f->dirty, size);
    f->cut = size < f->cut ? size : f->cut;
    file_forget_sum(f);
    return error == 0 && f->is_shared && unseen.from >= size ? mark_set(f, fd, size) : error;
}

int file_publish_locked(struct file *f, int fd, void *arg)
{
    (void)arg;
    if (lock_try(&f->lock) != 0)
        return EDEADLK;
    int error = file_is_at(f, fd) ? file_publish(f, fd) : 0;
    lock_give(&f->lock);
    return error;
}
