/* Mappings. The kernel maps the memfd of an open file, once that has all bytes of the file. What is written to a shared
 * mapping is not seen here, so all of one that can be written to, or could be, counts as written whenever the file is
 * published, until it is unmapped. The mapping has a descriptor of its own until then: programs close theirs before.
 *
 * Allocators of memory map, too, also before this library is ready: what is no file goes straight to the kernel. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "posix/internal.h"
#include "posix/kernel_calls.h"
#include "posix/locks.h"
#include "posix/logical_view.h"
#include "posix/next.h"
#include "posix/posix_tree.h"

#define MAP_MAX ((off_t)1 << 30) /* all bytes of a file that is mapped are in memory */

/* A shared mapping of a file that can be written to. */
struct mapping {
    char *from;
    size_t size;
    uint64_t at;    /* in the file */
    int is_written; /* it can be written to, or could be */
    int fd;
    struct mapping *next;
};

static struct {
    pthread_mutex_t lock;
    _Atomic(struct mapping *) first;
} mappings = {.lock = LOCK_INITIALIZER};
pthread_mutex_t *const lock_of_mappings = &mappings.lock;

static int has_mappings(void)
{
    return atomic_load_explicit(&mappings.first, memory_order_relaxed) != NULL;
}

/* The function that calls the kernel. */
static long (*kernel(void))(long, ...)
{
    if (!next.syscall)
        *(void **)&next.syscall = dlsym(RTLD_NEXT, "syscall");
    return next.syscall;
}

static void *kernel_map(void *at, size_t size, int access, int flags, int fd, off_t offset)
{
    return (void *)kernel()(SYS_mmap, at, size, access, flags, fd, offset);
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
    if (got >= 0 && kernel()(SYS_mprotect, memory, size, access) == 0)
        return memory;
    int error = errno;
    kernel()(SYS_munmap, memory, size);
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

/* A mapping of a file can be written to. With the lock of the file. Returns an error number. */
static int note_written(struct file *f, uint64_t from, size_t size)
{
    file_forget_sum(f);
    return spans_add(&f->mapped, from, from + size);
}

/* What the mappings of a file have that are left. With its lock. */
static int find_left(const struct file *f, struct spans *left)
{
    int error = 0;

    lock_take(&mappings.lock);
    for (const struct mapping *m = mappings.first; m; m = m->next)
        if (m->is_written && error == 0 && file_is_at(f, m->fd))
            error = spans_add(left, m->at, m->at + m->size);
    lock_give(&mappings.lock);
    return error;
}

/* A copy of a descriptor that the program cannot close. */
static int copy_descriptor(struct file *f, int fd, int *out)
{
    *out = internal_keep(next.fcntl(fd, F_DUPFD_CLOEXEC, 0));
    int error = *out < 0 ? errno : file_set(f, *out);
    if (error != 0 && *out >= 0)
        internal_close(*out);
    return error;
}

/* Zero, in memory that children share; NULL: there is none. */
static _Atomic(uint64_t) *make_sum(void)
{
    void *at = kernel_map(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* Note a shared mapping. */
static int note_mapping(struct file *f, int fd, struct mapping mapping)
{
    struct mapping *m = malloc(sizeof *m);
    int error = m ? copy_descriptor(f, fd, &mapping.fd) : ENOMEM;

    if (error != 0) {
        free(m);
        return error;
    }
    *m = mapping;
    lock_take(&f->lock);
    f->mappings++;
    if (!f->mapped_sum)
        f->mapped_sum = make_sum();
    if (m->is_written)
        error = note_written(f, m->at, m->size);
    lock_give(&f->lock);
    lock_take(&mappings.lock);
    m->next = mappings.first;
    mappings.first = m;
    lock_give(&mappings.lock);
    return error;
}

static int is_shared(int flags)
{
    return (flags & MAP_TYPE) != MAP_PRIVATE;
}

/* A mapping that could be written to later, by mprotect, only if the file can be: the memfd itself can. */
static void *map_memfd(const struct file *f, int fd, void *at, size_t size, int access, int flags, off_t offset)
{
    int own = is_shared(flags) && (f->flags & O_ACCMODE) == O_RDONLY ? file_reopen(fd, O_RDONLY) : -1;
    void *mapped = kernel_map(at, size, access, flags, own >= 0 ? own : fd, offset);
    int error = errno;

    if (own >= 0)
        next.close(own);
    errno = error;
    return mapped;
}

static void *map(struct file *f, int fd, void *at, size_t size, int access, int flags, off_t offset)
{
    int is_write = is_shared(flags) && (access & PROT_WRITE), error = check_access(f, access, is_shared(flags));

    if (error == 0 && f->kind == FILE_TREE && !is_write && is_too_large(f, fd))
        return map_copy(at, size, access, flags, f, fd, offset);
    if (error == 0 && f->kind == FILE_TREE)
        error = load(f, fd);
    if (error == 0)
        return map_memfd(f, fd, at, size, access, flags, offset);
    errno = error;
    return MAP_FAILED;
}

static void *map_inside(struct file *f, int fd, void *at, size_t size, int access, int flags, off_t offset)
{
    lock_take(&f->lock);
    void *mapped = map(f, fd, at, size, access, flags, offset);
    lock_give(&f->lock);
    return mapped;
}

static int end_within(char *from, size_t size);

static void *map_call(void *at, size_t size, int access, int flags, int fd, off_t offset, const void *from)
{
    int is_file = fd >= 0 && !(flags & MAP_ANONYMOUS) && (logical_take(fd, from) || file_is_ours(fd));
    struct file *f = is_file ? file_get(fd) : NULL;
    void *mapped =
        f ? map_inside(f, fd, at, size, access, flags, offset) : kernel_map(at, size, access, flags, fd, offset);
    int error = mapped != MAP_FAILED && (flags & MAP_FIXED) ? end_within(mapped, size) : 0;

    if (f && mapped != MAP_FAILED && error == 0 && f->kind == FILE_TREE && is_shared(flags) &&
        (f->flags & O_ACCMODE) == O_RDWR)
        error = note_mapping(
            f, fd,
            (struct mapping){
                .from = mapped, .size = size, .at = (uint64_t)offset, .is_written = (access & PROT_WRITE) != 0});
    file_put(f);
    if (error == 0)
        return mapped;
    end_within(mapped, size);
    kernel()(SYS_munmap, mapped, size);
    errno = error;
    return MAP_FAILED;
}

CALL void *mmap(void *at, size_t size, int access, int flags, int fd, off_t offset)
{
    return map_call(at, size, access, flags, fd, offset, CALLER);
}
CALL_ALIAS(mmap64, mmap);

/* Take note of one that lies in a range, at least with a part, and that could only be read from. */
static struct file *note_access(const char *from, size_t size, struct mapping *out)
{
    struct file *f = NULL;

    lock_take(&mappings.lock);
    for (struct mapping *m = mappings.first; m && !f; m = m->next) {
        if (m->is_written || m->from >= from + size || from >= m->from + m->size)
            continue;
        m->is_written = 1;
        *out = *m;
        f = file_get(m->fd);
    }
    lock_give(&mappings.lock);
    return f;
}

CALL int mprotect(void *from, size_t size, int access)
{
    int result = (int)kernel()(SYS_mprotect, from, size, access);
    struct mapping m;

    for (struct file *f; result == 0 && (access & PROT_WRITE) && has_mappings() && (f = note_access(from, size, &m));) {
        lock_take(&f->lock);
        result = posix_result(note_written(f, m.at, m.size));
        lock_give(&f->lock);
        file_put(f);
    }
    return result;
}

/* ---- Unmapping ---- */

/* Take one that lies in a range from the list. */
static struct mapping *take_within(const char *from, size_t size)
{
    struct mapping *m = NULL, *before = NULL;

    lock_take(&mappings.lock);
    for (m = mappings.first;
         m && !(m->from >= from && m->size <= size && m->from - from <= (ptrdiff_t)(size - m->size)); m = m->next)
        before = m;
    if (m && before)
        before->next = m->next;
    else if (m)
        mappings.first = m->next;
    lock_give(&mappings.lock);
    return m;
}

/* If a range is in the middle of a mapping, note what is behind it as another one. Returns an error number. */
static int split(const char *from, size_t size)
{
    const char *until = from + size;
    struct mapping rest = {.fd = -1};

    lock_take(&mappings.lock);
    for (const struct mapping *m = mappings.first; m && rest.fd < 0; m = m->next)
        if (m->from < from && until < m->from + m->size)
            rest = *m;
    struct file *f = file_get(rest.fd);
    lock_give(&mappings.lock);
    if (!f)
        return 0;
    size_t before = (size_t)(until - rest.from);
    rest.from += before;
    rest.at += before;
    rest.size -= before;
    int error = note_mapping(f, rest.fd, rest);
    file_put(f);
    return error;
}

/* Mappings that lie in a range only in part: they end before it, or begin behind it. */
static void trim(char *from, size_t size)
{
    lock_take(&mappings.lock);
    for (struct mapping *m = mappings.first; m; m = m->next) {
        char *end = m->from + m->size, *until = from + size;
        if (from <= m->from && m->from < until) {
            m->at += (uint64_t)(until - m->from);
            m->from = until;
            m->size = (size_t)(end - until);
        } else if (m->from < from && from < end) {
            m->size = (size_t)(from - m->from);
        }
    }
    lock_give(&mappings.lock);
}

/* What it has is published, and its descriptor is closed. */
static int end_mapping(const struct mapping *m)
{
    struct file *f = file_get(m->fd);
    struct spans left = {0};
    int error = 0;

    if (f) {
        lock_take(&f->lock);
        error = find_left(f, &left);
        if (error != 0) /* then all of it stays noted */
            spans_fini(&left);
        int published = error == 0 ? file_publish_left(f, m->fd, &left) : file_publish(f, m->fd);
        error = error == 0 ? published : error;
        f->mappings--;
        lock_give(&f->lock);
    }
    file_put(f);
    int closed = file_forget(m->fd);
    internal_close(m->fd);
    return error == 0 ? closed : error;
}

static size_t in_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (size + page - 1) / page * page;
}

/* What is mapped in a range is not mapped there any more. Returns an error number. */
static int end_within(char *from, size_t size)
{
    size_t whole = in_pages(size);
    struct mapping *m;
    int error = 0;

    if (!has_mappings())
        return 0;
    while ((m = take_within(from, whole))) {
        int ended = end_mapping(m);
        error = error == 0 ? ended : error;
        free(m);
    }
    int noted = split(from, whole);
    if (noted == 0) /* or all of it stays noted */
        trim(from, whole);
    return error == 0 ? noted : error;
}

static int unmap_call(void *from, size_t size)
{
    int error = end_within(from, size), result = (int)kernel()(SYS_munmap, from, size);

    return error == 0 ? result : posix_result(error);
}

CALL int munmap(void *from, size_t size)
{
    return unmap_call(from, size);
}

/* A mapping is at another place now, with another size. Returns an error number. */
static int note_moved(const char *from, char *to, size_t size)
{
    lock_take(&mappings.lock);
    struct mapping *m = mappings.first;
    while (m && m->from != from)
        m = m->next;
    struct file *f = m && m->is_written ? file_get(m->fd) : NULL;
    uint64_t at = m ? m->at : 0;
    int error = 0;
    if (m) {
        m->from = to;
        m->size = size;
    }
    lock_give(&mappings.lock);
    if (f) {
        lock_take(&f->lock);
        error = note_written(f, at, size);
        lock_give(&f->lock);
    }
    file_put(f);
    return error;
}

/* Whether a range is only a part of a mapping, or, with size 0, becomes a copy of it: such changes are not noted. */
static int is_part(const char *from, size_t size)
{
    int is = 0;

    lock_take(&mappings.lock);
    for (const struct mapping *m = mappings.first; m && !is; m = m->next)
        is = from >= m->from && from < m->from + m->size && (from != m->from || in_pages(size) != in_pages(m->size));
    lock_give(&mappings.lock);
    return is;
}

static void *move_call(void *from, size_t old_size, size_t size, int flags, void *wanted)
{
    if (has_mappings() && is_part(from, old_size)) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    void *moved = (void *)kernel()(SYS_mremap, from, old_size, size, flags, wanted);
    int error = moved != MAP_FAILED && (flags & MREMAP_FIXED) ? end_within(moved, size) : 0;

    if (moved != MAP_FAILED && has_mappings()) {
        int noted = note_moved(from, moved, size);
        error = error == 0 ? noted : error;
    }
    if (error == 0)
        return moved;
    errno = error;
    return MAP_FAILED;
}

CALL void *mremap(void *from, size_t old_size, size_t size, int flags, ...)
{
    va_list list;

    va_start(list, flags);
    void *wanted = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
    va_end(list);
    return move_call(from, old_size, size, flags, wanted);
}

/* The descriptor of the first mapping in the range from *at to `until`, and its end as *at; -1: there is none. */
static int descriptor_at(const char **at, const char *until)
{
    const struct mapping *first = NULL;

    lock_take(&mappings.lock);
    for (const struct mapping *m = mappings.first; m; m = m->next)
        if (m->from < until && *at < m->from + m->size && (!first || m->from < first->from))
            first = m;
    int fd = first ? first->fd : -1;
    *at = first ? first->from + first->size : until;
    lock_give(&mappings.lock);
    return fd;
}

/* Publish an open file, or make it durable. */
static int sync_mapped(int fd, int flags)
{
    struct file *f = file_get(fd);

    if (!f)
        return 0;
    lock_take(&f->lock);
    int error = flags & MS_SYNC ? file_sync(f, fd) : file_publish(f, fd);
    lock_give(&f->lock);
    file_put(f);
    return error;
}

CALL int msync(void *from, size_t size, int flags)
{
    const char *at = from, *until = at + size;
    int result = (int)kernel()(SYS_msync, from, size, flags), error = 0;

    while (has_mappings() && at < until) {
        int synced = sync_mapped(descriptor_at(&at, until), flags);
        error = error == 0 ? synced : error;
    }
    return error == 0 ? result : posix_result(error);
}

/* UCX, which MPICH uses, writes a jump to a function of its own over the first bytes of mmap, munmap and mremap; that
 * calls the kernel by syscall(). So these must not be called here. */
int map_kernel(long number, const long a[], const void *from, long *result)
{
    switch (number) {
    case SYS_mmap:
        *result = (long)map_call((void *)a[0], (size_t)a[1], (int)a[2], (int)a[3], (int)a[4], a[5], from);
        return 1;
    case SYS_munmap:
        *result = unmap_call((void *)a[0], (size_t)a[1]);
        return 1;
    case SYS_mremap:
        *result = (long)move_call((void *)a[0], (size_t)a[1], (size_t)a[2], (int)a[3], (void *)a[4]);
        return 1;
    case SYS_mprotect:
        *result = mprotect((void *)a[0], (size_t)a[1], (int)a[2]);
        return 1;
    case SYS_msync:
        *result = msync((void *)a[0], (size_t)a[1], (int)a[2]);
        return 1;
    default:
        return 0;
    }
}
