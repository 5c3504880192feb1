#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mpi.h>
#include <deltafs/deltafs_logical.h>
#include "mpi/job/hdf5_tables.h"

#define PREFIX "deltafs:"

/* HDF5's signature stands at the beginning, or, behind a user block, at a power of two from 512 on. */
int hdf5_tables_is(const char *path)
{
    static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    deltafs_logical *file;
    uint64_t size = 0;
    int is = 0;

    if (deltafs_logical_open(path, O_RDONLY, NULL, &file) != DELTAFS_OK)
        return 0;
    deltafs_logical_size(file, &size);
    for (uint64_t at = 0; at < size && !is; at = at ? 2 * at : 512) {
        uint8_t bytes[8];
        size_t got = 0;
        is = deltafs_logical_read(file, at, bytes, sizeof bytes, &got) == DELTAFS_OK && got == sizeof bytes &&
             memcmp(bytes, signature, sizeof bytes) == 0;
    }
    deltafs_logical_close(file);
    return is;
}

static int hdf5_read(const struct h5lib *lib, h5_id fapl, const char *path, const char *pattern, const uint64_t *label,
                     struct h5rows *out, struct error *e)
{
    int (*use_mpi)(h5_id, MPI_Comm, MPI_Info);
    char message[H5LIB_MESSAGE_MAX];
    void *symbol = dlsym(lib->object, "H5Pset_fapl_mpio");
    size_t room = strlen(path) + sizeof PREFIX;

    memcpy(&use_mpi, &symbol, sizeof symbol);
    if (!use_mpi)
        return error_set(e, DELTAFS_ERR_INVALID, "the HDF5 library in this process is not parallel");
    if (fapl < 0 || use_mpi(fapl, MPI_COMM_SELF, MPI_INFO_NULL) < 0)
        return error_set(e, DELTAFS_ERR_IO, "HDF5 does not take MPI-IO for a file");
    char *name = malloc(room);
    if (!name)
        return error_no_memory(e, room, "a file's name");
    snprintf(name, room, PREFIX "%s", path);
    int status = h5rows_of_file(lib, name, fapl, path, pattern, label, out, message);
    free(name);
    return status == DELTAFS_OK ? DELTAFS_OK : error_set(e, status, "%s", message);
}

int hdf5_tables_read(const char *path, const char *pattern, const uint64_t *label, struct h5rows *out, struct error *e)
{
    char message[H5LIB_MESSAGE_MAX];
    struct h5lib lib;

    if (h5lib_here(&lib, message) != 0)
        return error_set(e, DELTAFS_ERR_INVALID, "%s", message);
    h5_id fapl = lib.plist_create(*lib.file_access);
    int status = hdf5_read(&lib, fapl, path, pattern, label, out, e);
    if (fapl >= 0)
        lib.plist_close(fapl);
    return status;
}
