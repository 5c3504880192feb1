/* ROMIO's driver for `deltafs:` names. A file that many ranks write together is stored the PLFS way, as one log per
 * rank (deltafs_logical.h); or it is a file of a pool (deltafs_mpi_file_open).
 *
 * How it works
 *  - All ranks of a file's communicator open it together. fd->fs_ptr points to the library's handle.
 *  - A handle of the library may be used by one thread at a time, so each access takes the file's lock. A thread in a
 *    collective call waits for other ranks, and these may wait for another thread here. So where there can be several
 *    threads, all ranks enter the call before any takes its lock.
 *  - A rank appends its own extents to its own log, collectively or not. ROMIO's data sieving and two-phase writing
 * would read bytes that others have not published, and then overwrite them.
 *  - Blocking collective accesses let all ranks see what any rank wrote before them, or in them; of a file that is open
 *    for writing only, the last write wins. MPI asks for syncs and barriers here; ordinary files need none, and
 * parallel HDF5 relies on that.
 *  - With the hint romio_cb_read=enable, a collective read of a file that is open for reading only is ROMIO's two-phase
 *    read. Other collective accesses do not wait for each other: where ROMIO relies on that, scripts/add-romio-driver
 *    puts a barrier.
 *  - Nonblocking calls do their work at once, and return a completed request.
 *  - The library is loaded when the first `deltafs:` name is opened. So an MPI with this driver can be built before the
 *    library, which needs an MPI.
 *
 * Only DeltaFS's public headers and ROMIO's own are used. */
#ifndef AD_DELTAFS_H
#define AD_DELTAFS_H

#include "adio.h"
#include "adio_extern.h"

#include <pthread.h>
#include <deltafs/deltafs_mpi.h>

/* What is used of the library: deltafs_NAME. */
#define AD_DELTAFS_FUNCTIONS(use)                                                                                      \
    use(errmsg);                                                                                                       \
    use(options_create);                                                                                               \
    use(options_destroy);                                                                                              \
    use(options_get);                                                                                                  \
    use(options_set);                                                                                                  \
    use(mpi_options_from_info);                                                                                        \
    use(mpi_file_open);                                                                                                \
    use(mpi_file_close);                                                                                               \
    use(mpi_file_extend);                                                                                              \
    use(mpi_file_is_pooled);                                                                                           \
    use(mpi_file_read_list);                                                                                           \
    use(mpi_file_remove);                                                                                              \
    use(mpi_file_set_atomic);                                                                                          \
    use(mpi_file_exchange);                                                                                            \
    use(mpi_file_size);                                                                                                \
    use(mpi_file_sync);                                                                                                \
    use(mpi_file_truncate);                                                                                            \
    use(mpi_file_write_list)

struct ad_deltafs_library {
#define AD_DELTAFS_POINTER(name) __typeof__(deltafs_##name) *name
    AD_DELTAFS_FUNCTIONS(AD_DELTAFS_POINTER);
#undef AD_DELTAFS_POINTER
};
extern struct ad_deltafs_library ad_deltafs_library;

/* Loads the library, once. NULL, or the reason why it cannot be loaded. */
const char *ad_deltafs_load(void);

/* An MPI error code for a status of the library, with its message; MPI_SUCCESS for DELTAFS_OK. `where` is the name of
 * the operation in ROMIO's messages. */
int ad_deltafs_error(const char *where, int status, const char *message);

/* The same for the last call of the library on this thread. */
int ad_deltafs_last_error(const char *where, int status);

/* An open file, at fd->fs_ptr. */
struct ad_deltafs_file {
    deltafs_mpi_file *handle;
    pthread_mutex_t lock; /* of the handle, and of the individual file pointer */
    int has_threads;      /* in any rank several threads may make MPI calls at once */
};

/* The handle, which is this thread's until ad_deltafs_leave: for a local call of the library, or for a collective one,
 * which all ranks make. */
deltafs_mpi_file *ad_deltafs_enter(ADIO_File fd);
deltafs_mpi_file *ad_deltafs_enter_all(ADIO_File fd);
void ad_deltafs_leave(ADIO_File fd);

/* ---- Reads and writes (ad_deltafs_read_write.c), in the order of ROMIO's table ---- */

#define AD_DELTAFS_WHAT ADIO_DELTAFS_COUNT count, MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset

void ad_deltafs_read_contig(ADIO_File fd, void *buf, AD_DELTAFS_WHAT, ADIO_Status *status, int *error_code);
void ad_deltafs_read_strided(ADIO_File fd, void *buf, AD_DELTAFS_WHAT, ADIO_Status *status, int *error_code);
void ad_deltafs_read_coll(ADIO_File fd, void *buf, AD_DELTAFS_WHAT, ADIO_Status *status, int *error_code);
void ad_deltafs_write_contig(ADIO_File fd, const void *buf, AD_DELTAFS_WHAT, ADIO_Status *status, int *error_code);
void ad_deltafs_write_strided(ADIO_File fd, const void *buf, AD_DELTAFS_WHAT, ADIO_Status *status, int *error_code);
void ad_deltafs_write_coll(ADIO_File fd, const void *buf, AD_DELTAFS_WHAT, ADIO_Status *status, int *error_code);
void ad_deltafs_iread_contig(ADIO_File fd, void *buf, AD_DELTAFS_WHAT, ADIO_Request *request, int *error_code);
void ad_deltafs_iread_strided(ADIO_File fd, void *buf, AD_DELTAFS_WHAT, ADIO_Request *request, int *error_code);
void ad_deltafs_iwrite_contig(ADIO_File fd, const void *buf, AD_DELTAFS_WHAT, ADIO_Request *request, int *error_code);
void ad_deltafs_iwrite_strided(ADIO_File fd, const void *buf, AD_DELTAFS_WHAT, ADIO_Request *request, int *error_code);

#endif
