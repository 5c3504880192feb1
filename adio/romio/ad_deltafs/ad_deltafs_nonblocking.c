/* Nonblocking calls do their work at once, and hand out a request that is complete. */
#include "ad_deltafs.h"
#include "mpiu_greq.h"

/* The request of an access that moved `bytes`; none if it failed, which the call itself returns. */
static void request_create(ADIO_File fd, ADIO_Status *status, ADIO_Request *request, int *error_code)
{
    MPI_Count bytes = 0;

    if (*error_code != MPI_SUCCESS) {
        *request = MPI_REQUEST_NULL;
        return;
    }
    MPI_Get_elements_x(status, MPI_BYTE, &bytes);
    MPIO_Completed_request_create(&fd, bytes, error_code, request);
}

void ad_deltafs_iread_contig(ADIO_File fd, void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                             int file_ptr_type, ADIO_Offset offset, ADIO_Request *request, int *error_code)
{
    ADIO_Status status;

    ad_deltafs_read_contig(fd, buf, count, datatype, file_ptr_type, offset, &status, error_code);
    request_create(fd, &status, request, error_code);
}

void ad_deltafs_iread_strided(ADIO_File fd, void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                              int file_ptr_type, ADIO_Offset offset, ADIO_Request *request, int *error_code)
{
    ADIO_Status status;

    ad_deltafs_read_strided(fd, buf, count, datatype, file_ptr_type, offset, &status, error_code);
    request_create(fd, &status, request, error_code);
}

void ad_deltafs_iwrite_contig(ADIO_File fd, const void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                              int file_ptr_type, ADIO_Offset offset, ADIO_Request *request, int *error_code)
{
    ADIO_Status status;

    ad_deltafs_write_contig(fd, buf, count, datatype, file_ptr_type, offset, &status, error_code);
    request_create(fd, &status, request, error_code);
}

void ad_deltafs_iwrite_strided(ADIO_File fd, const void *buf, ADIO_DELTAFS_COUNT count, MPI_Datatype datatype,
                               int file_ptr_type, ADIO_Offset offset, ADIO_Request *request, int *error_code)
{
    ADIO_Status status;

    ad_deltafs_write_strided(fd, buf, count, datatype, file_ptr_type, offset, &status, error_code);
    request_create(fd, &status, request, error_code);
}
