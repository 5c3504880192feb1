/* The library's statuses as MPI error codes. */
#include "ad_deltafs.h"

/* Whether the message ends with the system's text for `errnum`. */
static int is_about(const char *message, int errnum)
{
    const char *text = strerror(errnum);
    size_t size = strlen(text);
    size_t length = strlen(message);

    return length >= size && strcmp(message + length - size, text) == 0;
}

/* What the system refused, as far as MPI has a class for it. */
static int system_class(const char *message)
{
    static const struct {
        int errnum;
        int error_class;
    } known[] = {
        {EACCES, MPI_ERR_ACCESS},         {EPERM, MPI_ERR_ACCESS},     {EROFS, MPI_ERR_READ_ONLY},
        {ENOENT, MPI_ERR_NO_SUCH_FILE},   {ENOTDIR, MPI_ERR_BAD_FILE}, {ELOOP, MPI_ERR_BAD_FILE},
        {ENAMETOOLONG, MPI_ERR_BAD_FILE}, {EDQUOT, MPI_ERR_QUOTA},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (is_about(message, known[i].errnum))
            return known[i].error_class;
    return MPI_ERR_IO;
}

static int error_class(int status, const char *message)
{
    switch (status) {
    case DELTAFS_ERR_INVALID:
        return MPI_ERR_ARG;
    case DELTAFS_ERR_OPTION:
    case DELTAFS_ERR_SCHEMA:
        return MPI_ERR_INFO_VALUE;
    case DELTAFS_ERR_MODE:
        return MPI_ERR_ACCESS;
    case DELTAFS_ERR_COLLECTIVE:
        return MPI_ERR_NOT_SAME;
    case DELTAFS_ERR_NOT_FOUND:
        return MPI_ERR_NO_SUCH_FILE;
    case DELTAFS_ERR_EXISTS:
        return MPI_ERR_FILE_EXISTS;
    case DELTAFS_ERR_NOT_DELTAFS:
        return MPI_ERR_BAD_FILE;
    case DELTAFS_ERR_BUSY:
        return MPI_ERR_FILE_IN_USE;
    case DELTAFS_ERR_MEMORY:
        return MPI_ERR_NO_MEM;
    case DELTAFS_ERR_NO_SPACE:
        return is_about(message, EDQUOT) ? MPI_ERR_QUOTA : MPI_ERR_NO_SPACE;
    case DELTAFS_ERR_IO:
        return system_class(message);
    case DELTAFS_ERR_MPI:
        return MPI_ERR_OTHER;
    default:
        return MPI_ERR_IO;
    }
}

int ad_deltafs_error(const char *where, int status, const char *message)
{
    if (status == DELTAFS_OK)
        return MPI_SUCCESS;
    return MPIO_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, where, __LINE__, error_class(status, message),
                                "**io", "**io %s", message);
}

int ad_deltafs_last_error(const char *where, int status)
{
    return ad_deltafs_error(where, status, ad_deltafs_loaded()->errmsg(NULL));
}
