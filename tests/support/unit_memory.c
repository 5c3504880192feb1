#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "unit_memory.h"

static struct {
    _Atomic int is_armed, has_failed;
    _Atomic uint64_t count;
    uint64_t at;
    size_t least; /* 0: that of number `at` fails */
} memory;

static void arm(uint64_t at, size_t least)
{
    memory.count = 0;
    memory.has_failed = 0;
    memory.at = at;
    memory.least = least;
    memory.is_armed = 1;
}

void unit_memory_fail_at(uint64_t k)
{
    arm(k, 0);
}

void unit_memory_fail_large(size_t least)
{
    arm(0, least);
}

int unit_memory_end(void)
{
    memory.is_armed = 0;
    return memory.has_failed;
}

#if UNIT_MEMORY_FAILS
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t n);
void *__libc_memalign(size_t alignment, size_t n);

static int is_refused(size_t n)
{
    if (!memory.is_armed)
        return 0;
    uint64_t i = memory.count++;
    if (memory.least > 0 ? n < memory.least : i != memory.at)
        return 0;
    memory.has_failed = 1;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t n)
{
    return is_refused(n) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return is_refused(n * size) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t n)
{
    return is_refused(n) ? NULL : __libc_realloc(old, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    void *bytes = is_refused(n) ? NULL : __libc_memalign(alignment, n);

    if (bytes)
        *out = bytes;
    return bytes ? 0 : ENOMEM;
}
#endif
