/* Errors of DeltaFS as MPI sees them: a class that programs can ask for, and DeltaFS's message as its text. */
#include <errno.h>
#include <pthread.h>
#include "ompio_deltafs.h"

#define CLASSES_MAX 32 /* more than there are */

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
    {DELTAFS_ERR_MPI, MPI_ERR_OTHER},
};

/* The MPI error class of a system error, found in the message, because the status does not have it. */
static const struct {
    int number;
    int class;
} refusals[] = {
    {EACCES, MPI_ERR_ACCESS},         {EPERM, MPI_ERR_ACCESS},     {EROFS, MPI_ERR_READ_ONLY},
    {ENOENT, MPI_ERR_NO_SUCH_FILE},   {ENOTDIR, MPI_ERR_BAD_FILE}, {ELOOP, MPI_ERR_BAD_FILE},
    {ENAMETOOLONG, MPI_ERR_BAD_FILE}, {EDQUOT, MPI_ERR_QUOTA},
};

static int is_about(const char *message, int number)
{
    const char *words = strerror(number);
    size_t size = strlen(words), length = strlen(message);

    return length >= size && strcmp(message + length - size, words) == 0;
}

static int class_of(int status, const char *message)
{
    int class = MPI_ERR_IO;

    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (classes[i].status == status)
            class = classes[i].class;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if ((status == DELTAFS_ERR_IO || status == DELTAFS_ERR_NO_SPACE) && is_about(message, refusals[i].number))
            class = refusals[i].class;
    return class;
}

/* The code of a class: MPI never frees one, so there is one for each class, whose text is the last message's. */
static int code_of(int class)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int codes[CLASSES_MAX], of[CLASSES_MAX];
    static size_t n;
    size_t i = 0;
    int code = class;

    pthread_mutex_lock(&lock);
    while (i < n && of[i] != class)
        i++;
    if (i == n && n < CLASSES_MAX && PMPI_Add_error_code(class, &code) == MPI_SUCCESS) {
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
    int class = class_of(status, message), code = code_of(class);

    /* Of a long one the end says what happened. */
    if (strlen(message) < sizeof text)
        snprintf(text, sizeof text, "%s", message);
    else
        snprintf(text, sizeof text, "...%s", message + strlen(message) - (sizeof text - 4));
    if (code != class)
        PMPI_Add_error_string(code, text);
    return code;
}
