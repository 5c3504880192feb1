/* fbtl component: bytes of one rank to and from a logical file.
 *
 * OMPIO hands over pairs of a piece of memory and a place in the file. Pieces that follow each other in memory, which
 * is the usual case, go to the library as they are, with the list of their places; others are gathered first. There are
 * no nonblocking functions: OMPIO then calls the blocking ones, whose writes only copy, and completes the request. */
#include <stdlib.h>
#include "ompio_deltafs.h"

/* So much scattered memory is gathered for a call, except in atomic mode, where all is one call. */
#define GATHER_BYTES ((size_t)16 << 20)

extern mca_fbtl_base_component_2_0_0_t mca_fbtl_deltafs_component;

/* Pieces i .. of at most `limit` bytes, one at least; *size gets their bytes, *scattered whether they must be gathered.
 */
static int run_of(const ompio_file_t *fh, int i, size_t limit, size_t *size, int *scattered)
{
    const mca_common_ompio_io_array_t *io = fh->f_io_array;
    int end = i;

    *size = 0;
    *scattered = 0;
    while (end < fh->f_num_of_io_entries && (end == i || *size + io[end].length <= limit)) {
        if (end > i && (char *)io[end - 1].memory_address + io[end - 1].length != io[end].memory_address)
            *scattered = 1;
        *size += io[end++].length;
    }
    return end;
}

/* One run, through `gathered` if it is not NULL. *moved gets the bytes that were written, or were there to be read. */
static int move_run(ompio_file_t *fh, int i, int end, size_t size, struct deltafs_extent *extent, char *gathered,
                    int is_write, size_t *moved)
{
    struct ompio_deltafs *file = fh->f_fs_ptr;
    const mca_common_ompio_io_array_t *io = fh->f_io_array;
    char *bytes = gathered != NULL ? gathered : io[i].memory_address;
    size_t at = 0;
    int status;

    for (int k = i; k < end; k++) {
        extent[k - i] = (struct deltafs_extent){(uint64_t)(uintptr_t)io[k].offset, io[k].length};
        if (is_write && gathered != NULL)
            memcpy(gathered + at, io[k].memory_address, io[k].length);
        at += io[k].length;
    }
    *moved = size;
    if (is_write)
        return deltafs_logical_write_list(file->logical, (size_t)(end - i), extent, bytes);
    status = deltafs_logical_read_list(file->logical, (size_t)(end - i), extent, bytes, moved);
    at = 0;
    for (int k = i; k < end && gathered != NULL && status == DELTAFS_OK && at < *moved; k++) {
        size_t part = *moved - at < io[k].length ? *moved - at : io[k].length;
        memcpy(io[k].memory_address, gathered + at, part);
        at += part;
    }
    return status;
}

/* All pieces. Returns the bytes moved, or -1 with the status noted, as OMPIO's own do. */
static ssize_t move(ompio_file_t *fh, int is_write)
{
    struct ompio_deltafs *file = fh->f_fs_ptr;
    struct deltafs_extent *extent = malloc((size_t)fh->f_num_of_io_entries * sizeof *extent);
    const char *message = "no memory for the pieces of a transfer"; /* until the library has been called */
    size_t total = 0, limit = SIZE_MAX, all;
    int status = extent != NULL ? DELTAFS_OK : DELTAFS_ERR_MEMORY, is_any_scattered;

    run_of(fh, 0, SIZE_MAX, &all, &is_any_scattered);
    if (is_any_scattered && !file->is_atomic)
        limit = GATHER_BYTES;
    for (int i = 0, end; status == DELTAFS_OK && i < fh->f_num_of_io_entries; i = end) {
        size_t size, moved = 0;
        int scattered;
        char *gathered = NULL;

        end = run_of(fh, i, limit, &size, &scattered);
        if (scattered && (gathered = malloc(size)) == NULL)
            status = DELTAFS_ERR_MEMORY;
        if (status == DELTAFS_OK) {
            status = move_run(fh, i, end, size, extent, gathered, is_write, &moved);
            message = status == DELTAFS_OK ? message : deltafs_errmsg(NULL);
        }
        free(gathered);
        total += moved;
        if (moved < size)
            break; /* the end of the file */
    }
    free(extent);
    if (status == DELTAFS_OK)
        return (ssize_t)total;
    if (file->status == DELTAFS_OK) {
        file->status = status;
        snprintf(file->message, sizeof file->message, "%s", message);
    }
    return -1;
}

static ssize_t fbtl_preadv(ompio_file_t *fh)
{
    return move(fh, 0);
}

static ssize_t fbtl_pwritev(ompio_file_t *fh)
{
    return move(fh, 1);
}

static int fbtl_module_init(ompio_file_t *fh)
{
    (void)fh;
    return OMPI_SUCCESS;
}

static mca_fbtl_base_module_1_0_0_t module = {
    .fbtl_module_init = fbtl_module_init,
    .fbtl_module_finalize = fbtl_module_init,
    .fbtl_preadv = fbtl_preadv,
    .fbtl_pwritev = fbtl_pwritev,
};

static int fbtl_init_query(bool progress_threads, bool mpi_threads)
{
    (void)progress_threads;
    (void)mpi_threads;
    return ompio_is_same_release() ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

static mca_fbtl_base_module_1_0_0_t *fbtl_file_query(ompio_file_t *fh, int *priority)
{
    *priority = OMPIO_DELTAFS_PRIORITY;
    return ompio_is_deltafs(fh->f_filename) ? &module : NULL;
}

static int fbtl_file_unquery(ompio_file_t *fh)
{
    (void)fh;
    return OMPI_SUCCESS;
}

OMPI_MODULE_DECLSPEC mca_fbtl_base_component_2_0_0_t mca_fbtl_deltafs_component = {
    .fbtlm_version =
        {
            MCA_FBTL_BASE_VERSION_2_0_0,
            .mca_component_name = OMPIO_DELTAFS_NAME,
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
        },
    .fbtlm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .fbtlm_init_query = fbtl_init_query,
    .fbtlm_file_query = fbtl_file_query,
    .fbtlm_file_unquery = fbtl_file_unquery,
};
