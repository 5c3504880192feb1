#include "posix/library.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "posix/next.h"
#include "posix/posix.h"

#define LIBRARY_NAME "libdeltafs.so.0" /* beside this library */

static struct library functions;

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
}

const struct library *library(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return &functions;
}
