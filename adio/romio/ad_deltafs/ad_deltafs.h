/* ROMIO's driver for `deltafs:` names. A file that many ranks write together is stored the PLFS way, as one log per
 * rank (deltafs_logical.h).
 *
 * How it works
 *  - All ranks of a file's communicator open it together (ad_deltafs_open_coll). fd->fs_ptr points to the library's
 * handle.
 *  - Several threads of a process may use one file, but a handle of the library may be used by one thread at a time. So
 *    each access takes the file's lock. A thread in a collective call waits for other ranks, and these may wait for
 *    another thread here. So where there can be several threads, all ranks enter the call before any takes its lock.
 *  - Writing needs no communication and no reading. What a rank writes, collectively or not, are its own extents, which
 * it appends to its own log. ROMIO's data sieving and two-phase writing would read bytes that others have not
 * published, and then overwrite them.
 *  - Blocking collective accesses of a file that is open for reading and writing let all ranks see what any rank wrote
 *    before them, or in them. Of a file that is open for writing only, the last write wins. MPI asks for syncs and
 *    barriers here; ordinary files need none, and parallel HDF5 relies on that.
 *  - Reads take lists of extents, too. With the hint romio_cb_read=enable, a collective read of a file that is open for
 *    reading only is ROMIO's two-phase read.
 *  - Other collective accesses do not wait for each other. Where ROMIO relies on such a wait, scripts/add-romio-driver
 * puts a barrier.
 *  - ROMIO's file for a shared file pointer is a plain one; ROMIO's ufs driver handles it.
 *  - The library is loaded when the first `deltafs:` name is opened. So an MPI with this driver can be built before the
 *    library, which needs an MPI.
 *
 * Only DeltaFS's public headers and ROMIO's own are used. */
#ifndef AD_DELTAFS_H
#define AD_DELTAFS_H

#include "adio.h"
#include "adio_extern.h"

#include <pthread.h>
#include <stdint.h>
#include <deltafs/deltafs_mpi.h>

/* What is used of the library: deltafs_NAME. */
#define AD_DELTAFS_FUNCTIONS(use)                                                                                      \
    use(errmsg);                                                                                                       \
    use(options_create);                                                                                               \
    use(options_destroy);                                                                                              \
    use(options_get);                                                                                                  \
    use(options_set);                                                                                                  \
    use(mpi_options_from_info);                                                                                        \
    use(mpi_logical_open);                                                                                             \
    use(logical_close);                                                                                                \
    use(logical_extend);                                                                                               \
    use(logical_read);                                                                                                 \
    use(logical_read_list);                                                                                            \
    use(logical_remove);                                                                                               \
    use(logical_set_atomic);                                                                                           \
    use(logical_exchange);                                                                                             \
    use(logical_size);                                                                                                 \
    use(logical_sync);                                                                                                 \
    use(logical_truncate);                                                                                             \
    use(logical_write);                                                                                                \
    use(logical_write_list)

struct ad_deltafs_library {
#define AD_DELTAFS_POINTER(name) __typeof__(deltafs_##name) *name
    AD_DELTAFS_FUNCTIONS(AD_DELTAFS_POINTER);
#undef AD_DELTAFS_POINTER
};

/* The library, loaded by the first call; NULL if it cannot be, then *why says so. */
const struct ad_deltafs_library *ad_deltafs_library(const char **why);

/* For what works on an open file: then it is loaded. */
const struct ad_deltafs_library *ad_deltafs_loaded(void);

/* An MPI error code for a status of the library, with its message; MPI_SUCCESS for DELTAFS_OK. `where` is the name of
 * the operation, as ROMIO's messages have it. */
int ad_deltafs_error(const char *where, int status, const char *message);

/* The same for the last call of the library on this thread. */
int ad_deltafs_last_error(const char *where, int status);

/* An open file, at fd->fs_ptr. */
struct ad_deltafs_file {
    deltafs_logical *handle;
    pthread_mutex_t lock; /* of the handle, and of the individual file pointer */
    int has_threads;      /* in any rank several threads may make MPI calls at once */
};

/* The handle, which is this thread's until ad_deltafs_leave: for a local call of the library, or for a collective one,
 * which all ranks make. */
deltafs_logical *ad_deltafs_enter(ADIO_File fd);
deltafs_logical *ad_deltafs_enter_all(ADIO_File fd);
void ad_deltafs_leave(ADIO_File fd);

/* A data type that is laid one after another from a base on: a file view, or the memory that is read or written. */
struct ad_deltafs_tiles {
    ADIO_Offset base;   /* where tile 0 begins */
    ADIO_Offset extent; /* from one tile to the next */
    ADIO_Offset size;   /* bytes of data in one */
    const ADIO_Offset *index;
    const ADIO_Offset *length;
    MPI_Count blocks;
    ADIO_Offset tile; /* the place in it: tile, block, and bytes of the block that are done */
    MPI_Count block;
    ADIO_Offset done;
    ADIO_Offset whole[2]; /* index and length of a contiguous one, which is one endless block */
};

/* The memory of a buffer of `datatype`. */
void ad_deltafs_tiles_memory(struct ad_deltafs_tiles *t, MPI_Datatype datatype);

/* The file's view from `offset` on, in etypes, or from the individual file pointer on. */
void ad_deltafs_tiles_view(struct ad_deltafs_tiles *t, ADIO_File fd, int file_ptr_type, ADIO_Offset offset);

/* The next piece of at most `most` bytes, which is passed over: its size and where it begins. 0 if there is no data in
 * the data type. */
ADIO_Offset ad_deltafs_tiles_next(struct ad_deltafs_tiles *t, ADIO_Offset most, ADIO_Offset *offset);

/* Pass over `bytes` of data. */
void ad_deltafs_tiles_pass(struct ad_deltafs_tiles *t, ADIO_Offset bytes);

/* Where the next piece would begin. */
ADIO_Offset ad_deltafs_tiles_where(const struct ad_deltafs_tiles *t);

/* What an access is about. */
struct ad_deltafs_access {
    ADIO_File fd;
    char *buffer;
    ADIO_Offset bytes; /* in all */
    struct ad_deltafs_tiles memory;
    struct ad_deltafs_tiles view;
    int is_contiguous; /* in memory */
};

/* How one access of count x datatype at the view's `offset` is cut up. `buffer` is not written to if it is written
 * from. */
void ad_deltafs_access_init(struct ad_deltafs_access *a, ADIO_File fd, const void *buffer, MPI_Count count,
                            MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset);

/* Write it, or read it; *moved is set to the bytes that were. The view is passed over as far as was asked for, also
 * where that is beyond the file's end. MPI error codes. The file's handle is this thread's. */
int ad_deltafs_access_write(struct ad_deltafs_access *a, const char *where);
int ad_deltafs_access_read(struct ad_deltafs_access *a, const char *where, ADIO_Offset *moved);

/* ---- The driver's operations, as ROMIO's table has them ---- */

void ad_deltafs_open(ADIO_File fd, int *error_code);
void ad_deltafs_open_coll(ADIO_File fd, int rank, int access_mode, int *error_code);
void ad_deltafs_close(ADIO_File fd, int *error_code);
void ad_deltafs_delete(const char *filename, int *error_code);
void ad_deltafs_fcntl(ADIO_File fd, int flag, ADIO_Fcntl_t *fcntl_struct, int *error_code);
int ad_deltafs_feature(ADIO_File fd, int feature);
void ad_deltafs_flush(ADIO_File fd, int *error_code);
void ad_deltafs_resize(ADIO_File fd, ADIO_Offset size, int *error_code);
void ad_deltafs_set_info(ADIO_File fd, MPI_Info users_info, int *error_code);
int ad_deltafs_set_lock(ADIO_File fd, int cmd, int type, ADIO_Offset offset, int whence, ADIO_Offset len);

void ad_deltafs_read_contig(ADIO_File fd, void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype, int file_ptr_type,
                            ADIO_Offset offset, ADIO_Status *status, int *error_code);
void ad_deltafs_read_strided(ADIO_File fd, void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                             int file_ptr_type, ADIO_Offset offset, ADIO_Status *status, int *error_code);
void ad_deltafs_read_coll(ADIO_File fd, void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype, int file_ptr_type,
                          ADIO_Offset offset, ADIO_Status *status, int *error_code);
void ad_deltafs_write_contig(ADIO_File fd, const void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                             int file_ptr_type, ADIO_Offset offset, ADIO_Status *status, int *error_code);
void ad_deltafs_write_strided(ADIO_File fd, const void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                              int file_ptr_type, ADIO_Offset offset, ADIO_Status *status, int *error_code);
void ad_deltafs_write_coll(ADIO_File fd, const void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                           int file_ptr_type, ADIO_Offset offset, ADIO_Status *status, int *error_code);

void ad_deltafs_iread_contig(ADIO_File fd, void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                             int file_ptr_type, ADIO_Offset offset, ADIO_Request *request, int *error_code);
void ad_deltafs_iread_strided(ADIO_File fd, void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                              int file_ptr_type, ADIO_Offset offset, ADIO_Request *request, int *error_code);
void ad_deltafs_iwrite_contig(ADIO_File fd, const void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                              int file_ptr_type, ADIO_Offset offset, ADIO_Request *request, int *error_code);
void ad_deltafs_iwrite_strided(ADIO_File fd, const void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                               int file_ptr_type, ADIO_Offset offset, ADIO_Request *request, int *error_code);

#endif
