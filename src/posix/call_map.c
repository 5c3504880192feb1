/* Mappings. The kernel maps the memfd of an open file, once that has all bytes of the file. What is written to a shared
 * mapping is not seen here, so all that is mapped so counts as written whenever the file is published, until it is
 * unmapped. The mapping has a descriptor of its own until then: programs close theirs before.
 *
 * Allocators of memory map, too, also before this library is ready: what is no file goes straight to the kernel. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "posix/begin.h"
#include "posix/next.h"
#include "posix/posix_tree.h"

#define MAP_MAX ((off_t)1 << 30) /* all bytes of a file that is mapped are in memory */

/* A shared mapping that can be written to. */
struct mapping {
    char *from;
    size_t size;
    int fd;
    struct mapping *next;
};

static struct {
    pthread_mutex_t lock;
    _Atomic(struct mapping *) first;
} mappings = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *kernel_map(void *at, size_t size, int access, int flags, int fd, off_t offset)
{
    return (void *)next.syscall(SYS_mmap, at, size, access, flags, fd, offset);
}

/* Whether a file can be mapped so. */
static int check_access(const struct file *f, int access, int is_shared)
{
    int mode = f->flags & O_ACCMODE;

    if (f->kind == FILE_FOLDER)
        return ENODEV;
    if (f->flags & O_PATH)
        return EBADF;
    return mode == O_WRONLY || (is_shared && (access & PROT_WRITE) && mode != O_RDWR) ? EACCES : 0;
}

static int is_too_large(const struct file *f, int fd)
{
    struct stat now;

    return !f->has_all && next.fstat(fd, &now) == 0 && now.st_size > MAP_MAX;
}

/* Memory of its own for a part of a file, with the bytes that this has now. */
static void *map_copy(void *at, size_t size, int access, int flags, struct file *f, int fd, off_t offset)
{
    int is_bad = offset < 0 || offset % sysconf(_SC_PAGESIZE) != 0;
    char *memory =
        is_bad ? MAP_FAILED
               : kernel_map(at, size, PROT_READ | PROT_WRITE, (flags & ~MAP_TYPE) | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ssize_t got = 1;

    errno = is_bad ? EINVAL : errno;
    if (memory == MAP_FAILED)
        return memory;
    for (size_t done = 0; got > 0 && done < size; done += (size_t)got)
        got = file_read_at(f, fd, memory + done, size - done, (uint64_t)offset + done);
    if (got >= 0 && mprotect(memory, size, access) == 0)
        return memory;
    int error = errno;
    next.syscall(SYS_munmap, memory, size);
    errno = error;
    return MAP_FAILED;
}

/* Have all bytes in the memfd, as long as the file is open. */
static int load(struct file *f, int fd)
{
    if (is_too_large(f, fd)) {
        posix_say("%s%s: a file of more than 1 GiB cannot be mapped to write to it", f->mount->point, f->path);
        return ENODEV;
    }
    int error = file_load(f, fd);
    f->is_mapped |= error == 0;
    return error;
}

/* Note a shared mapping that can be written to. */
static int note_mapping(struct file *f, int fd, char *from, size_t size, off_t offset)
{
    struct mapping *m = malloc(sizeof *m);
    uint64_t first = (uint64_t)offset, end = first + size;

    if (!m)
        return ENOMEM;
    *m = (struct mapping){.from = from, .size = size, .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)};
    if (m->fd < 0) {
        free(m);
        return errno;
    }
    int is_other = f->mapped.from < f->mapped.to;
    f->mapped.from = is_other && f->mapped.from < first ? f->mapped.from : first;
    f->mapped.to = is_other && f->mapped.to > end ? f->mapped.to : end;
    f->mappings++;
    pthread_mutex_lock(&mappings.lock);
    m->next = mappings.first;
    mappings.first = m;
    pthread_mutex_unlock(&mappings.lock);
    return 0;
}

static void *map(struct file *f, int fd, void *at, size_t size, int access, int flags, off_t offset)
{
    int is_shared = (flags & MAP_TYPE) != MAP_PRIVATE;
    int error = check_access(f, access, is_shared);

    if (error == 0 && f->kind == FILE_TREE && !(is_shared && (access & PROT_WRITE)) && is_too_large(f, fd))
        return map_copy(at, size, access, flags, f, fd, offset);
    if (error == 0 && f->kind == FILE_TREE)
        error = load(f, fd);
    void *mapped = error == 0 ? kernel_map(at, size, access, flags, fd, offset) : MAP_FAILED;
    if (mapped != MAP_FAILED && f->kind == FILE_TREE && is_shared && (f->flags & O_ACCMODE) == O_RDWR)
        error = note_mapping(f, fd, mapped, size, offset);
    if (error == 0)
        return mapped;
    if (mapped != MAP_FAILED)
        munmap(mapped, size);
    errno = error;
    return MAP_FAILED;
}

CALL void *mmap(void *at, size_t size, int access, int flags, int fd, off_t offset)
{
    struct file *f = fd < 0 || (flags & MAP_ANONYMOUS) ? NULL : file_get(fd);

    if (!f)
        return kernel_map(at, size, access, flags, fd, offset);
    pthread_mutex_lock(&f->lock);
    void *mapped = map(f, fd, at, size, access, flags, offset);
    pthread_mutex_unlock(&f->lock);
    file_put(f);
    return mapped;
}
CALL_ALIAS(mmap64, mmap);

/* ---- Unmapping ---- */

/* Take one that lies in a range from the list. */
static struct mapping *take_within(const char *from, size_t size)
{
    struct mapping *m = NULL, *before = NULL;

    if (!atomic_load_explicit(&mappings.first, memory_order_relaxed))
        return NULL;
    pthread_mutex_lock(&mappings.lock);
    for (m = mappings.first;
         m && !(m->from >= from && m->size <= size && m->from - from <= (ptrdiff_t)(size - m->size)); m = m->next)
        before = m;
    if (m && before)
        before->next = m->next;
    else if (m)
        mappings.first = m->next;
    pthread_mutex_unlock(&mappings.lock);
    return m;
}

/* Mappings of which only the begin or the end lies in a range. */
static void trim(char *from, size_t size)
{
    if (!atomic_load_explicit(&mappings.first, memory_order_relaxed))
        return;
    pthread_mutex_lock(&mappings.lock);
    for (struct mapping *m = mappings.first; m; m = m->next) {
        char *end = m->from + m->size, *until = from + size;
        if (from <= m->from && m->from < until) {
            m->from = until;
            m->size = (size_t)(end - until);
        } else if (from < end && end <= until) {
            m->size = (size_t)(from - m->from);
        }
    }
    pthread_mutex_unlock(&mappings.lock);
}

/* What it has is published, and its descriptor is closed. */
static int end_mapping(const struct mapping *m)
{
    struct file *f = file_get(m->fd);
    int error = 0;

    if (f) {
        pthread_mutex_lock(&f->lock);
        error = file_publish(f, m->fd);
        f->mappings--;
        if (f->mappings == 0)
            f->mapped = (struct span){0, 0};
        pthread_mutex_unlock(&f->lock);
    }
    file_put(f);
    return close(m->fd) != 0 && error == 0 ? errno : error;
}

CALL int munmap(void *from, size_t size)
{
    struct mapping *m;
    int error = 0;

    while ((m = take_within(from, size))) {
        int ended = end_mapping(m);
        error = error == 0 ? ended : error;
        free(m);
    }
    trim(from, size);
    int result = (int)next.syscall(SYS_munmap, from, size);
    return error == 0 ? result : posix_result(error);
}

/* A mapping is at another place now, with another size. */
static void note_moved(const char *from, char *to, size_t size)
{
    pthread_mutex_lock(&mappings.lock);
    struct mapping *m = mappings.first;
    while (m && m->from != from)
        m = m->next;
    struct file *f = m ? file_get(m->fd) : NULL;
    size_t grown = m && size > m->size ? size - m->size : 0;
    if (m) {
        m->from = to;
        m->size = size;
    }
    pthread_mutex_unlock(&mappings.lock);
    if (f) {
        pthread_mutex_lock(&f->lock);
        f->mapped.to += grown;
        pthread_mutex_unlock(&f->lock);
    }
    file_put(f);
}

CALL void *mremap(void *from, size_t old_size, size_t size, int flags, ...)
{
    va_list list;

    va_start(list, flags);
    void *wanted = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
    va_end(list);
    void *moved = (void *)next.syscall(SYS_mremap, from, old_size, size, flags, wanted);
    if (moved != MAP_FAILED && atomic_load_explicit(&mappings.first, memory_order_relaxed))
        note_moved(from, moved, size);
    return moved;
}

/* The descriptor of the mapping that an address is in; -1: none. */
static int descriptor_at(const char *at)
{
    int fd = -1;

    pthread_mutex_lock(&mappings.lock);
    for (const struct mapping *m = mappings.first; m && fd < 0; m = m->next)
        fd = at >= m->from && at < m->from + m->size ? m->fd : -1;
    pthread_mutex_unlock(&mappings.lock);
    return fd;
}

CALL int msync(void *from, size_t size, int flags)
{
    int fd = atomic_load_explicit(&mappings.first, memory_order_relaxed) ? descriptor_at(from) : -1;
    struct file *f = file_get(fd);

    if (!f)
        return (int)next.syscall(SYS_msync, from, size, flags);
    pthread_mutex_lock(&f->lock);
    int error = flags & MS_SYNC ? file_sync(f, fd) : file_publish(f, fd);
    pthread_mutex_unlock(&f->lock);
    file_put(f);
    return posix_result(error);
}
