#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/memory.h"

#define HUGE_PAGE ((size_t)2 << 20)

static int memory_count(struct memory *m, size_t n, const char *what, struct error *e)
{
    if (!m)
        return DELTAFS_OK;
    uint64_t used = m->used, peak = m->peak;
    do {
        if (n > m->limit - used)
            return error_set(e, DELTAFS_ERR_MEMORY,
                             "%zu bytes for %s exceed the option memory (%llu bytes, %llu in use); raise it", n, what,
                             (unsigned long long)m->limit, (unsigned long long)used);
    } while (!atomic_compare_exchange_weak(&m->used, &used, used + n));
    while (peak < used + n && !atomic_compare_exchange_weak(&m->peak, &peak, used + n))
        ;
    return DELTAFS_OK;
}

/* `out` is the address of a pointer of any type. */
int memory_take(struct memory *m, size_t n, const char *what, void *out, struct error *e)
{
    int status = memory_count(m, n, what, e);

    if (status != DELTAFS_OK)
        return status;
    void *p = NULL;
    if (n < MEMORY_PAGED_MIN)
        p = malloc(n > 0 ? n : 1);
    else if (posix_memalign(&p, n < HUGE_PAGE ? MEMORY_PAGE : HUGE_PAGE, n) != 0)
        p = NULL;
    if (p && n >= HUGE_PAGE)
        madvise(p, n - n % HUGE_PAGE, MADV_HUGEPAGE); /* whole ones, so that it takes no more than was asked for */
    if (!p) {
        if (m)
            m->used -= n;
        return error_no_memory(e, n, what);
    }
    memcpy(out, &p, sizeof p);
    return DELTAFS_OK;
}

void memory_give(struct memory *m, void *p, size_t n)
{
    if (m && p)
        m->used -= n;
    free(p);
}

static size_t whole_pages(size_t n)
{
    return (n + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE;
}

void *memory_map(size_t n)
{
    size_t used = whole_pages(n);
    uint8_t *p = mmap(NULL, used + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    size_t before = (size_t)(0 - (uintptr_t)p) % HUGE_PAGE;
    if (before > 0)
        munmap(p, before);
    p += before;
    munmap(p + used, HUGE_PAGE - before);
    madvise(p, used, MADV_HUGEPAGE);
    return p;
}

void memory_unmap(void *p, size_t n)
{
    if (p)
        munmap(p, whole_pages(n));
}

int memory_grow(struct memory *m, void *p, size_t old, size_t n, const char *what, struct error *e)
{
    void *before, *after;
    int status = DELTAFS_OK;

    memcpy(&before, p, sizeof before);
    if (m) {
        /* Both exist while the contents are moved. */
        status = memory_take(m, n, what, &after, e);
        if (status == DELTAFS_OK && old > 0)
            memcpy(after, before, old);
        if (status == DELTAFS_OK)
            memory_give(m, before, old);
    } else {
        after = realloc(before, n); /* which need not move it */
        status = after ? DELTAFS_OK : error_no_memory(e, n, what);
    }
    if (status == DELTAFS_OK)
        memcpy(p, &after, sizeof after);
    return status;
}
