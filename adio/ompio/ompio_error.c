/* Errors of DeltaFS as MPI sees them: a class that programs can ask for, and DeltaFS's message as its text. */
#include <pthread.h>
#include "error_class.h"
#include "ompio_deltafs.h"

#define CLASSES_MAX 32 /* more than there are */

/* The code of a class: MPI never frees one, so there is one for each class, whose text is the last message's. */
static int code_of(int class)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int codes[CLASSES_MAX], of[CLASSES_MAX];
    static size_t n;
    size_t i = 0;

    pthread_mutex_lock(&lock);
    while (i < n && of[i] != class)
        i++;
    if (i == n && n < CLASSES_MAX && PMPI_Add_error_code(class, &codes[n]) == MPI_SUCCESS)
        of[n++] = class;
    int code = i < n ? codes[i] : class;
    pthread_mutex_unlock(&lock);
    return code;
}

int ompio_error(int status, const char *message)
{
    char text[MPI_MAX_ERROR_STRING];
    size_t length = strlen(message);

    if (status == DELTAFS_OK)
        return OMPI_SUCCESS;
    int class = error_class_of(status, message), code = code_of(class);
    /* Of a long one the end says what happened. */
    if (length < sizeof text)
        snprintf(text, sizeof text, "%s", message);
    else
        snprintf(text, sizeof text, "...%s", message + length - (sizeof text - 4));
    if (code != class)
        PMPI_Add_error_string(code, text);
    return code;
}

int ompio_last_error(int status)
{
    return ompio_error(status, deltafs_errmsg(NULL));
}
