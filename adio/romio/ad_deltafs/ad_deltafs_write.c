/* Writing: each rank appends its own extents to its own log. */
#include "ad_deltafs.h"

void ad_deltafs_write_contig(ADIO_File fd, const void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                             int file_ptr_type, ADIO_Offset offset, ADIO_Status *status, int *error_code)
{
    static const char where[] = "ADIOI_DELTAFS_WRITECONTIG";
    MPI_Count size;

    MPI_Type_size_x(datatype, &size);
    ADIO_Offset bytes = count * size;
    deltafs_logical *handle = ad_deltafs_enter(fd);
    ADIO_Offset at = file_ptr_type == ADIO_INDIVIDUAL ? fd->fp_ind : offset;
    int done = ad_deltafs_loaded()->logical_write(handle, (uint64_t)at, buf, (size_t)bytes);
    fd->dirty_write = 1;
    *error_code = ad_deltafs_last_error(where, done);
    if (done != DELTAFS_OK)
        bytes = 0;
    if (file_ptr_type == ADIO_INDIVIDUAL)
        fd->fp_ind += bytes;
    ad_deltafs_leave(fd);
    MPIR_Status_set_bytes(status, datatype, bytes);
}

void ad_deltafs_write_strided(ADIO_File fd, const void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                              int file_ptr_type, ADIO_Offset offset, ADIO_Status *status, int *error_code)
{
    struct ad_deltafs_access a;

    ad_deltafs_enter(fd);
    ad_deltafs_access_init(&a, fd, buf, count, datatype, file_ptr_type, offset);
    fd->dirty_write = 1;
    *error_code = ad_deltafs_access_write(&a, "ADIOI_DELTAFS_WRITESTRIDED");
    if (file_ptr_type == ADIO_INDIVIDUAL && *error_code == MPI_SUCCESS && a.bytes > 0)
        fd->fp_ind = ad_deltafs_tiles_where(&a.view);
    ad_deltafs_leave(fd);
    MPIR_Status_set_bytes(status, datatype, *error_code == MPI_SUCCESS ? a.bytes : 0);
}

/* Each rank writes its own extents. Then the ranks that may read see them, and later writes win over them. */
void ad_deltafs_write_coll(ADIO_File fd, const void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                           int file_ptr_type, ADIO_Offset offset, ADIO_Status *status, int *error_code)
{
    ad_deltafs_write_strided(fd, buf, count, datatype, file_ptr_type, offset, status, error_code);
    int shared = ad_deltafs_loaded()->logical_exchange(ad_deltafs_enter_all(fd));
    if (*error_code == MPI_SUCCESS)
        *error_code = ad_deltafs_last_error("ADIOI_DELTAFS_WRITECOLL", shared);
    ad_deltafs_leave(fd);
}
