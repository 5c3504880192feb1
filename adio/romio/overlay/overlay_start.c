/* Wrappers around some of ROMIO's functions in libdeltafs_romio (the linker's --wrap).
 *
 * Within MPICH, ROMIO relies on MPICH's own lock when several threads call it. That lock is not available here, and a
 * lock around whole calls would make collective calls of two threads wait for each other across ranks. ROMIO shares
 * little between files: its initialisation and the datatypes that it has flattened. Both are locked here. */
#include "adio.h"

#include <deltafs/deltafs.h>
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t flatten_lock = PTHREAD_MUTEX_INITIALIZER;

/* For deltafs doctor. */
DELTAFS_API const char deltafs_driver_version[] = DELTAFS_VERSION;
DELTAFS_API const char deltafs_driver_mpi[] = MPICH_VERSION;

void __real_MPIR_MPIOInit(int *error_code);
void __wrap_MPIR_MPIOInit(int *error_code);
ADIOI_Flatlist_node *__real_ADIOI_Flatten_and_find(MPI_Datatype datatype);
ADIOI_Flatlist_node *__wrap_ADIOI_Flatten_and_find(MPI_Datatype datatype);
int MPIR_Get_node_id(MPI_Comm comm, int rank, int *id);

/* Whether the MPI that runs is of the version whose ROMIO this is. */
static int is_right_version(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING], version[32];
    int size;

    return PMPI_Get_library_version(text, &size) == MPI_SUCCESS && sscanf(text, "MPICH Version: %31s", version) == 1 &&
           strcmp(version, MPICH_VERSION) == 0;
}

/* Handles are of other types in Open MPI: a program of it crashes in the first function of this library that it calls.
 */
__attribute__((constructor)) static void warn_of_open_mpi(void)
{
    static const char text[] = "libdeltafs_romio is for MPICH " MPICH_VERSION
                               ", and this program runs with Open MPI, where its MPI-IO will crash: take the library "
                               "out of LD_PRELOAD (for Open MPI there are components: see deltafs-mpiio(7))\n";

    if (dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") && write(STDERR_FILENO, text, sizeof text - 1) < 0)
        return; /* there is nowhere to say it */
}

/* Called by whatever opens or deletes a file. */
void __wrap_MPIR_MPIOInit(int *error_code)
{
    static int is_checked;

    pthread_mutex_lock(&start_lock);
    if (!is_checked && !is_right_version()) {
        *error_code =
            MPIO_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, "libdeltafs_romio", __LINE__, MPI_ERR_OTHER, "**io",
                                 "libdeltafs_romio is for MPICH %s, and this is another MPI", MPICH_VERSION);
    } else {
        is_checked = 1;
        __real_MPIR_MPIOInit(error_code);
    }
    pthread_mutex_unlock(&start_lock);
}

ADIOI_Flatlist_node *__wrap_ADIOI_Flatten_and_find(MPI_Datatype datatype)
{
    pthread_mutex_lock(&flatten_lock);
    ADIOI_Flatlist_node *flat = __real_ADIOI_Flatten_and_find(datatype);
    pthread_mutex_unlock(&flatten_lock);
    return flat;
}

/* For MPIR_Comm_split_filesystem, which only libmpich calls, and its own. */
int MPIR_Get_node_id(MPI_Comm comm, int rank, int *id)
{
    (void)comm, (void)rank;
    *id = 0;
    return MPI_SUCCESS;
}
