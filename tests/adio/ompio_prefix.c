/* For programs that have names of their own for files: to be preloaded, puts deltafs: before all of them. Open MPI's
 * Fortran calls come by the names with P. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static const char *prefixed(const char *name, char *out, size_t size)
{
    if (strncmp(name, "deltafs:", 8) == 0)
        return name;
    snprintf(out, size, "deltafs:%s", name);
    return out;
}

int PMPI_File_open(MPI_Comm comm, const char *name, int amode, MPI_Info info, MPI_File *file)
{
    int (*next)(MPI_Comm, const char *, int, MPI_Info, MPI_File *);
    char out[4096];

    *(void **)&next = dlsym(RTLD_NEXT, "PMPI_File_open");
    return next(comm, prefixed(name, out, sizeof out), amode, info, file);
}

int PMPI_File_delete(const char *name, MPI_Info info)
{
    int (*next)(const char *, MPI_Info);
    char out[4096];

    *(void **)&next = dlsym(RTLD_NEXT, "PMPI_File_delete");
    return next(prefixed(name, out, sizeof out), info);
}

int MPI_File_open(MPI_Comm comm, const char *name, int amode, MPI_Info info, MPI_File *file)
{
    return PMPI_File_open(comm, name, amode, info, file);
}

int MPI_File_delete(const char *name, MPI_Info info)
{
    return PMPI_File_delete(name, info);
}
