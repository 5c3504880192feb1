/* Reading. */
#include "ad_deltafs.h"

/* In ROMIO's two-phase reading one rank reads for others, into a buffer of ROMIO's; what is beyond the file's end goes
 * to them, too, and shall not be what the buffer held before. */
static void clear_tail(ADIO_File fd, void *buf, ADIO_Offset got, ADIO_Offset bytes)
{
    char *begin = fd->io_buf;
    char *at = buf;

    if (got < bytes && begin && at >= begin && at < begin + fd->hints->cb_buffer_size)
        memset(at + got, 0, (size_t)(bytes - got));
}

/* As in ROMIO's own drivers, the individual pointer goes behind what was read; in other accesses, what was asked for.
 */
void ad_deltafs_read_contig(ADIO_File fd, void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype, int file_ptr_type,
                            ADIO_Offset offset, ADIO_Status *status, int *error_code)
{
    static const char where[] = "ADIOI_DELTAFS_READCONTIG";
    MPI_Count size;
    size_t got = 0;

    MPI_Type_size_x(datatype, &size);
    ADIO_Offset bytes = count * size;
    deltafs_logical *handle = ad_deltafs_enter(fd);
    ADIO_Offset at = file_ptr_type == ADIO_INDIVIDUAL ? fd->fp_ind : offset;
    int done = ad_deltafs_loaded()->logical_read(handle, (uint64_t)at, buf, (size_t)bytes, &got);
    *error_code = ad_deltafs_last_error(where, done);
    if (done != DELTAFS_OK)
        got = 0;
    else
        clear_tail(fd, buf, (ADIO_Offset)got, bytes);
    if (file_ptr_type == ADIO_INDIVIDUAL)
        fd->fp_ind += (ADIO_Offset)got;
    ad_deltafs_leave(fd);
    MPIR_Status_set_bytes(status, datatype, (MPI_Count)got);
}

void ad_deltafs_read_strided(ADIO_File fd, void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                             int file_ptr_type, ADIO_Offset offset, ADIO_Status *status, int *error_code)
{
    struct ad_deltafs_access a;
    ADIO_Offset moved;

    ad_deltafs_enter(fd);
    ad_deltafs_access_init(&a, fd, buf, count, datatype, file_ptr_type, offset);
    *error_code = ad_deltafs_access_read(&a, "ADIOI_DELTAFS_READSTRIDED", &moved);
    if (file_ptr_type == ADIO_INDIVIDUAL && *error_code == MPI_SUCCESS && a.bytes > 0)
        fd->fp_ind = ad_deltafs_tiles_where(&a.view);
    ad_deltafs_leave(fd);
    MPIR_Status_set_bytes(status, datatype, *error_code == MPI_SUCCESS ? moved : 0);
}

/* A rank that reads back what it wrote finds it in one log, whatever the pattern in the file: nothing is gained by
 * reading for each other, unless somebody knows better. It is wrong where a file is written, too: a rank shall read
 * what it has just written itself, and another that reads for it cannot see that yet. */
void ad_deltafs_read_coll(ADIO_File fd, void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype, int file_ptr_type,
                          ADIO_Offset offset, ADIO_Status *status, int *error_code)
{
    int shared = ad_deltafs_loaded()->logical_exchange(ad_deltafs_enter_all(fd));

    *error_code = ad_deltafs_last_error("ADIOI_DELTAFS_READCOLL", shared);
    ad_deltafs_leave(fd);
    if (*error_code != MPI_SUCCESS) {
        MPIR_Status_set_bytes(status, datatype, 0);
        return;
    }
    if (fd->hints->cb_read == ADIOI_HINT_ENABLE && fd->access_mode & ADIO_RDONLY)
        ADIOI_GEN_ReadStridedColl(fd, buf, count, datatype, file_ptr_type, offset, status, error_code);
    else
        ad_deltafs_read_strided(fd, buf, count, datatype, file_ptr_type, offset, status, error_code);
}
