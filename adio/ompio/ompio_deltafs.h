/* DeltaFS in Open MPI's MPI-IO: what its three components share.
 *
 * For each file OMPIO chooses one component per layer: fs opens the file, fbtl moves bytes, fcoll does collective
 * calls, sharedfp holds the shared file pointer. Ours take every name that begins with `deltafs:`, and every name if
 * ROMIO_FSTYPE_FORCE=deltafs: is in the environment, which says the same to MPICH.
 *
 * OMPIO ignores an error that fbtl returns: the program gets MPI_SUCCESS and a short count. So fbtl notes the status in
 * the handle, at f_fs_ptr. fs puts functions of its own before OMPIO's (ompio_calls.c), which return that status.
 *
 * Open MPI's internal structs change between releases. In one of another release than the headers', no name is ours. */
#ifndef OMPIO_DELTAFS_H
#define OMPIO_DELTAFS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>
#include "ompi_config.h"
#include "ompi/constants.h"
#include "ompi/file/file.h"
#include "ompi/mca/mca.h"
#include "ompi/mca/common/ompio/common_ompio.h"

#define OMPIO_DELTAFS_PREFIX   "deltafs:"
#define OMPIO_DELTAFS_NAME     "deltafs" /* of all three components */
#define OMPIO_DELTAFS_PRIORITY 1000      /* Open MPI's own have 100 at most */

/* One open of a file: a logical file, or one of a pool. */
struct ompio_deltafs {
    deltafs_mpi_file *handle;
    int status;                              /* of the first failed operation of fbtl, until it is reported */
    char message[1024];                      /* of that operation */
    int is_atomic;                           /* each call of fbtl is one operation then */
    int is_deleted_on_close;                 /* hidden from OMPIO, see fs */
    struct mca_io_base_module_2_0_0_t ompio; /* the file's functions without ours */
};

static inline int ompio_has_prefix(const char *name)
{
    return strncmp(name, OMPIO_DELTAFS_PREFIX, sizeof OMPIO_DELTAFS_PREFIX - 1) == 0;
}

static inline const char *ompio_deltafs_path(const char *name)
{
    return ompio_has_prefix(name) ? name + sizeof OMPIO_DELTAFS_PREFIX - 1 : name;
}

/* ---- What each component has in its table ---- */

#define OMPIO_TEXT(x)          #x
#define OMPIO_RELEASE(a, b, c) OMPIO_TEXT(a) "." OMPIO_TEXT(b) "." OMPIO_TEXT(c)
#define OMPIO_BUILT_FOR        OMPIO_RELEASE(OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION)

#define OMPIO_DELTAFS_VERSION                                                                                          \
    .mca_component_name = OMPIO_DELTAFS_NAME,                                                                          \
    MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION)

/* Available if the Open MPI that runs is of the release of the headers. */
static inline int ompio_init_query(bool progress_threads, bool mpi_threads)
{
    static const char ours[] = "Open MPI v" OMPIO_BUILT_FOR ",";
    char running[MPI_MAX_LIBRARY_VERSION_STRING];
    int size;

    (void)progress_threads;
    (void)mpi_threads;
    PMPI_Get_library_version(running, &size);
    return strncmp(running, ours, sizeof ours - 1) == 0 ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

static inline int ompio_file_query(const ompio_file_t *fh, int *priority)
{
    const char *forced = getenv("ROMIO_FSTYPE_FORCE");

    *priority = OMPIO_DELTAFS_PRIORITY;
    return fh->f_filename != NULL &&
           (ompio_has_prefix(fh->f_filename) || (forced != NULL && strcmp(forced, OMPIO_DELTAFS_PREFIX) == 0));
}

static inline int ompio_nothing(ompio_file_t *fh)
{
    (void)fh;
    return OMPI_SUCCESS;
}

/* ---- Between the files of fs ---- */

/* An MPI error code of the class that fits the status, with the message for its text; OMPI_SUCCESS for DELTAFS_OK. */
int ompio_error(int status, const char *message);

/* The same for the last call of the library on this thread. */
int ompio_last_error(int status);
/* Puts our functions before OMPIO's for this open file. */
void ompio_calls_hook(ompi_file_t *fh, struct ompio_deltafs *file);

/* Chooses where the shared file pointer lives, if Open MPI's choice does not work with a name that has a prefix. */
void ompio_sharedfp_choose(ompio_file_t *fh);

#endif
