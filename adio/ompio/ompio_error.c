/* Errors of DeltaFS as MPI sees them: a class that programs can ask for, and DeltaFS's message as its text. */
#include <pthread.h>
#include "ompio_deltafs.h"

static const struct {
    int status;
    int class;
} classes[] = {
    {DELTAFS_ERR_INVALID, MPI_ERR_ARG},
    {DELTAFS_ERR_OPTION, MPI_ERR_INFO_VALUE},
    {DELTAFS_ERR_MODE, MPI_ERR_ACCESS},
    {DELTAFS_ERR_COLLECTIVE, MPI_ERR_NOT_SAME},
    {DELTAFS_ERR_NOT_FOUND, MPI_ERR_NO_SUCH_FILE},
    {DELTAFS_ERR_EXISTS, MPI_ERR_FILE_EXISTS},
    {DELTAFS_ERR_NOT_DELTAFS, MPI_ERR_BAD_FILE},
    {DELTAFS_ERR_BUSY, MPI_ERR_FILE_IN_USE},
    {DELTAFS_ERR_MEMORY, MPI_ERR_NO_MEM},
    {DELTAFS_ERR_NO_SPACE, MPI_ERR_NO_SPACE},
    {DELTAFS_ERR_VERSION, MPI_ERR_UNSUPPORTED_OPERATION},
    {DELTAFS_ERR_MPI, MPI_ERR_OTHER},
};

/* The code of a class: MPI never frees one, so there is one for each class, whose text is the last message's. */
static int code_of(int class)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int codes[sizeof classes / sizeof *classes + 1], of[sizeof classes / sizeof *classes + 1];
    static size_t n;
    size_t i = 0;
    int code = class;

    pthread_mutex_lock(&lock);
    while (i < n && of[i] != class)
        i++;
    if (i == n && PMPI_Add_error_code(class, &code) == MPI_SUCCESS) {
        of[i] = class;
        codes[i] = code;
        n++;
    }
    if (i < n)
        code = codes[i];
    pthread_mutex_unlock(&lock);
    return code;
}

int ompio_error(int status, const char *message)
{
    char text[MPI_MAX_ERROR_STRING];
    int class = MPI_ERR_IO, code;

    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (classes[i].status == status)
            class = classes[i].class;
    code = code_of(class);
    snprintf(text, sizeof text, "%s", message != NULL ? message : deltafs_strerror(status));
    if (code != class)
        PMPI_Add_error_string(code, text);
    return code;
}
