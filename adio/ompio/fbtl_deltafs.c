/* fbtl component: bytes of one rank to and from a file.
 *
 * OMPIO hands over pairs of a piece of memory and a place in the file. Pieces that follow each other in memory, which
 * is the usual case, go to the library as they are, with the list of their places; others are gathered first. There are
 * no nonblocking functions: OMPIO then calls the blocking ones, whose writes only copy, and completes the request. */
#include <stdlib.h>
#include "ompio_deltafs.h"

/* So much scattered memory is gathered for a call, except in atomic mode, where all is one call. */
#define GATHER_BYTES ((size_t)16 << 20)

extern mca_fbtl_base_component_2_0_0_t mca_fbtl_deltafs_component;

/* Copy the first `bytes` of `n` pieces together, or out again. */
static void gather(const mca_common_ompio_io_array_t *io, int n, char *gathered, size_t bytes, int is_write)
{
    for (int k = 0; k < n && bytes > 0; k++) {
        size_t part = io[k].length < bytes ? io[k].length : bytes;
        memcpy(is_write ? gathered : io[k].memory_address, is_write ? io[k].memory_address : gathered, part);
        gathered += part;
        bytes -= part;
    }
}

static int is_next(const mca_common_ompio_io_array_t *io)
{
    return (char *)io[-1].memory_address + io[-1].length == io->memory_address;
}

/* Move pieces from `io` on with one call of the library: `extents` and `gathered` have room for them. *moved is set to
 * the bytes that were written, or were there to be read. */
static int move_part(struct ompio_deltafs *file, int is_write, const mca_common_ompio_io_array_t *io, int n,
                     struct deltafs_extent *extent, char *gathered, size_t *moved)
{
    size_t size = 0;
    int is_scattered = 0;

    for (int k = 0; k < n; k++) {
        extent[k] = (struct deltafs_extent){(uint64_t)(uintptr_t)io[k].offset, io[k].length};
        size += io[k].length;
        is_scattered |= k > 0 && !is_next(io + k);
    }
    char *bytes = is_scattered ? gathered : io->memory_address;
    if (is_write && is_scattered)
        gather(io, n, gathered, size, is_write);
    *moved = size;
    if (is_write)
        return deltafs_mpi_file_write_list(file->handle, (size_t)n, extent, bytes);
    int status = deltafs_mpi_file_read_list(file->handle, (size_t)n, extent, bytes, moved);
    if (status == DELTAFS_OK && is_scattered)
        gather(io, n, gathered, *moved, is_write);
    return status;
}

/* All pieces. Returns the bytes moved, or -1 with the status noted, as OMPIO's own do. */
static ssize_t move(ompio_file_t *fh, int is_write)
{
    struct ompio_deltafs *file = fh->f_fs_ptr;
    const mca_common_ompio_io_array_t *io = fh->f_io_array;
    int n = fh->f_num_of_io_entries, end, status = DELTAFS_OK;
    struct deltafs_extent *extent = malloc((size_t)n * sizeof *extent);
    size_t total = 0, moved = 0, size = 0, part = 0;
    int is_scattered = 0;

    for (int i = 0; i < n; i++) {
        size += io[i].length;
        is_scattered |= i > 0 && !is_next(io + i);
    }
    size_t limit = is_scattered && !file->is_atomic && size > GATHER_BYTES ? GATHER_BYTES : size;
    char *gathered = is_scattered ? malloc(limit) : NULL;
    const char *message = "no memory for the pieces of a transfer";
    if (extent == NULL || (is_scattered && gathered == NULL))
        status = DELTAFS_ERR_MEMORY;
    for (int i = 0; i < n && status == DELTAFS_OK && moved == part; i = end) { /* less is moved at the file's end */
        part = 0;
        for (end = i; end < n && (end == i || part + io[end].length <= limit); end++)
            part += io[end].length;
        status = move_part(file, is_write, io + i, end - i, extent, gathered, &moved);
        message = deltafs_errmsg(NULL);
        total += moved;
    }
    free(extent);
    free(gathered);
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

static mca_fbtl_base_module_1_0_0_t module = {
    .fbtl_module_init = ompio_nothing,
    .fbtl_module_finalize = ompio_nothing,
    .fbtl_preadv = fbtl_preadv,
    .fbtl_pwritev = fbtl_pwritev,
};

static mca_fbtl_base_module_1_0_0_t *fbtl_file_query(ompio_file_t *fh, int *priority)
{
    return ompio_file_query(fh, priority) ? &module : NULL;
}

/* For deltafs doctor. */
DELTAFS_API const char deltafs_driver_version[] = DELTAFS_VERSION;
DELTAFS_API const char deltafs_driver_mpi[] = OMPIO_BUILT_FOR;

DELTAFS_API mca_fbtl_base_component_2_0_0_t mca_fbtl_deltafs_component = {
    .fbtlm_version = {MCA_FBTL_BASE_VERSION_2_0_0, OMPIO_DELTAFS_VERSION},
    .fbtlm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .fbtlm_init_query = ompio_init_query,
    .fbtlm_file_query = fbtl_file_query,
    .fbtlm_file_unquery = ompio_nothing,
};
