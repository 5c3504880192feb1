/* MPI_File handles of the ROMIO in libdeltafs_romio. This file takes the place of ROMIO's
 * mpi-io/glue/mpich/mpio_file.c. */
#include "adio.h"
#include "adio_extern.h"
#include "overlay.h"

#include <pthread.h>

static _Thread_local MPI_File freed = MPI_FILE_NULL;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int overlay_is_freed(MPI_File fh)
{
    return fh == freed;
}

MPI_File MPIO_File_create(int size)
{
    MPI_File fh = ADIOI_Calloc((size_t)size, 1);

    /* The handler that the program has set for MPI_FILE_NULL, which libmpich keeps, is what files begin with. */
    PMPI_File_get_errhandler(MPI_FILE_NULL, &ADIOI_DFLT_ERR_HANDLER);
    if (fh == freed)
        freed = MPI_FILE_NULL;
    return fh;
}

ADIO_File MPIO_File_resolve(MPI_File fh)
{
    return fh;
}

void MPIO_File_free(MPI_File *fh)
{
    freed = *fh;
    ADIOI_Free(*fh);
    *fh = MPI_FILE_NULL;
}

/* Fortran's handles are places in a table, that of MPI_FILE_NULL is 0; a place is used again when its file is closed.
 */
MPI_File MPIO_File_f2c(MPI_Fint fh)
{
    MPI_File found = MPI_FILE_NULL;

    pthread_mutex_lock(&lock);
    if (fh > 0 && fh < ADIOI_Ftable_max)
        found = ADIOI_Ftable[fh];
    pthread_mutex_unlock(&lock);
    return found;
}

MPI_Fint MPIO_File_c2f(MPI_File fh)
{
    if (fh == MPI_FILE_NULL || fh->cookie != ADIOI_FILE_COOKIE)
        return 0;
    pthread_mutex_lock(&lock);
    if (fh->fortran_handle == -1) {
        int place = 1;
        while (place < ADIOI_Ftable_max && ADIOI_Ftable[place] != MPI_FILE_NULL)
            place++;
        if (place >= ADIOI_Ftable_max) {
            int places = ADIOI_Ftable_max > 0 ? 2 * ADIOI_Ftable_max : 64;
            ADIOI_Ftable = ADIOI_Realloc(ADIOI_Ftable, (size_t)places * sizeof *ADIOI_Ftable);
            for (int i = ADIOI_Ftable_max; i < places; i++)
                ADIOI_Ftable[i] = MPI_FILE_NULL;
            ADIOI_Ftable_max = places;
        }
        ADIOI_Ftable[place] = fh;
        fh->fortran_handle = place;
    }
    pthread_mutex_unlock(&lock);
    return fh->fortran_handle;
}
