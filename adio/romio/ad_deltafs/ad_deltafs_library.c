/* The library, which is loaded when a `deltafs:` name is first used: its statuses as MPI error codes, and one thread at
 * a time in a file's handle. */
#include "ad_deltafs.h"
#include "error_class.h"

#include <dlfcn.h>

#define AD_DELTAFS_SONAME "libdeltafs_mpi.so.0"

struct ad_deltafs_library ad_deltafs_library;
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
    if (!symbol)                                                                                                       \
        snprintf(reason, sizeof reason, "%s lacks deltafs_%s: another version?", AD_DELTAFS_SONAME, #name);            \
    memcpy(&ad_deltafs_library.name, &symbol, sizeof symbol)
    AD_DELTAFS_FUNCTIONS(AD_DELTAFS_FIND);
#undef AD_DELTAFS_FIND
}

const char *ad_deltafs_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return reason[0] ? reason : NULL;
}

int ad_deltafs_error(const char *where, int status, const char *message)
{
    if (status == DELTAFS_OK)
        return MPI_SUCCESS;
    return MPIO_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, where, __LINE__, error_class_of(status, message),
                                "**io", "**io %s", message);
}

int ad_deltafs_last_error(const char *where, int status)
{
    return ad_deltafs_error(where, status, ad_deltafs_library.errmsg(NULL));
}

deltafs_mpi_file *ad_deltafs_enter(ADIO_File fd)
{
    struct ad_deltafs_file *file = fd->fs_ptr;

    pthread_mutex_lock(&file->lock);
    return file->handle;
}

/* After the barrier all ranks are in the call. A thread that holds the lock is in a local call, which ends. */
deltafs_mpi_file *ad_deltafs_enter_all(ADIO_File fd)
{
    const struct ad_deltafs_file *file = fd->fs_ptr;

    if (file->has_threads)
        MPI_Barrier(fd->comm);
    return ad_deltafs_enter(fd);
}

void ad_deltafs_leave(ADIO_File fd)
{
    struct ad_deltafs_file *file = fd->fs_ptr;

    pthread_mutex_unlock(&file->lock);
}
