/* Loading the library by the first use of a `deltafs:` name. */
#include "ad_deltafs.h"

#include <dlfcn.h>
#include <pthread.h>

#define AD_DELTAFS_SONAME "libdeltafs_mpi.so.0"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct ad_deltafs_library library;
static int is_loaded;
static char reason[512];

static void load(void)
{
    void *handle = dlopen(AD_DELTAFS_SONAME, RTLD_NOW | RTLD_LOCAL);
    void *symbol;

    if (!handle) {
        snprintf(reason, sizeof reason, "%s", dlerror());
        return;
    }
    if (dlsym(handle, "ompi_mpi_comm_world")) {
        snprintf(
            reason, sizeof reason,
            "%s, as it is found, is built for Open MPI, and this is the MPI-IO of MPICH: build DeltaFS with MPICH's "
            "compiler wrapper (configure MPICC=...), in a folder of its own",
            AD_DELTAFS_SONAME);
        return;
    }
    /* POSIX lets a pointer to an object become one to a function here; ISO C has no words for that. */
#define AD_DELTAFS_FIND(name)                                                                                          \
    symbol = dlsym(handle, "deltafs_" #name);                                                                          \
    if (!symbol) {                                                                                                     \
        snprintf(reason, sizeof reason, "%s lacks deltafs_%s: another version?", AD_DELTAFS_SONAME, #name);            \
        return;                                                                                                        \
    }                                                                                                                  \
    memcpy(&library.name, &symbol, sizeof symbol)
    AD_DELTAFS_FUNCTIONS(AD_DELTAFS_FIND);
#undef AD_DELTAFS_FIND
    is_loaded = 1;
}

const struct ad_deltafs_library *ad_deltafs_library(const char **why)
{
    pthread_once(&once, load);
    *why = reason;
    return is_loaded ? &library : NULL;
}

const struct ad_deltafs_library *ad_deltafs_loaded(void)
{
    return &library;
}
