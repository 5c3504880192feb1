#include "posix/library.h"
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "posix/next.h"
#include "posix/posix.h"

#define LIBRARY_NAME "libdeltafs.so.0" /* beside this library */

static struct library functions;
static struct {
    uintptr_t from, to; /* its addresses */
} range;

int library_is_caller(const void *from)
{
    return (uintptr_t)from >= range.from && (uintptr_t)from < range.to;
}

static int find_range(struct dl_phdr_info *o, size_t size, void *address)
{
    uintptr_t end = 0;

    (void)size;
    for (size_t i = 0; i < o->dlpi_phnum; i++)
        if (o->dlpi_phdr[i].p_type == PT_LOAD)
            end = o->dlpi_addr + o->dlpi_phdr[i].p_vaddr + o->dlpi_phdr[i].p_memsz;
    if ((uintptr_t)address < o->dlpi_addr || (uintptr_t)address >= end)
        return 0;
    range.from = o->dlpi_addr;
    range.to = end;
    return 1;
}

static void fail(void)
{
    posix_say("%s; install DeltaFS again", dlerror());
    next._exit(127);
}

int library_path(const char *name, char out[static PATH_MAX])
{
    Dl_info here = {.dli_fname = ""};

    dladdr((void *)&functions, &here);
    const char *slash = strrchr(here.dli_fname, '/');
    int n = slash ? (int)(slash - here.dli_fname) + 1 : 0;
    return snprintf(out, PATH_MAX, "%.*s%s", n, here.dli_fname, name) < PATH_MAX;
}

static void load(void)
{
    char path[PATH_MAX];

    library_path(LIBRARY_NAME, path);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        fail();
#define LIBRARY_FIND(name)                                                                                             \
    if (!(*(void **)&functions.name = dlsym(object, #name)))                                                           \
        fail();
    LIBRARY_FUNCTIONS(LIBRARY_FIND)
#undef LIBRARY_FIND
    dl_iterate_phdr(find_range, (void *)functions.deltafs_errmsg);
}

const struct library *library(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return &functions;
}
