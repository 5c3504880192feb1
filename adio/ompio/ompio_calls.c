/* MPI_File_* calls of a logical file, before OMPIO's.
 *
 * Each open file of Open MPI has its own table of functions, a copy of its io component's. fs puts these functions into
 * the table of a logical file; the calls of other files do not change. They do what OMPIO cannot do or does wrong:
 *   - Reads and writes return the error that fbtl noted, where OMPIO reports success. A nonblocking call has ended by
 *     then; it returns the error at once, without a request.
 *   - Collective reads report how many bytes there were. OMPIO reports the full count, also beyond the end.
 *   - A collective read of a file that is open for reading and writing sees what all ranks wrote before it. What
 * follows a collective write sees what that wrote. MPI asks for syncs in between, but on ordinary files a barrier is
 * enough, and programs such as parallel HDF5 rely on that. (Nonblocking calls may not wait for each other.)
 *   - Atomic mode, which OMPIO only notes.
 *   - Preallocate, which OMPIO does by writing the whole file again, from rank 0.
 *   - set_size with different sizes is an error on all ranks. OMPIO leaves some ranks waiting.
 *   - sync works for a file that is open for reading: it then sees what others have written. */
#include "ompi/request/request.h"
#include "opal/threads/mutex.h"
#include "ompio_deltafs.h"

static ompio_file_t *ompio_of(ompi_file_t *fh)
{
    return &((mca_common_ompio_data_t *)fh->f_io_selected_data)->ompio_fh;
}

static struct ompio_deltafs *file_of(ompi_file_t *fh)
{
    return ompio_of(fh)->f_fs_ptr;
}

/* What an operation returns: what OMPIO says, or the error that fbtl has noted. */
static int finish(ompi_file_t *fh, int code)
{
    struct ompio_deltafs *file = file_of(fh);

    OPAL_THREAD_LOCK(&fh->f_lock);
    if (file->status != DELTAFS_OK)
        code = ompio_error(file->status, file->message);
    file->status = DELTAFS_OK;
    OPAL_THREAD_UNLOCK(&fh->f_lock);
    return code;
}

static int finish_request(ompi_file_t *fh, int code, ompi_request_t **request)
{
    int mine = finish(fh, code);

    if (code == OMPI_SUCCESS && mine != OMPI_SUCCESS)
        ompi_request_free(request);
    return mine;
}

/* Whether all ranks have given the same number. Collective. */
static int is_same(ompi_file_t *fh, MPI_Offset number)
{
    int64_t mine[2] = {number, -number}, least[2];

    return PMPI_Allreduce(mine, least, 2, MPI_INT64_T, MPI_MIN, ompio_of(fh)->f_comm) == MPI_SUCCESS &&
           least[0] == number && least[1] == -number;
}

/* The end of a collective call on the logical file. */
static int ended(int status)
{
    return status == DELTAFS_OK ? OMPI_SUCCESS : ompio_error(status, deltafs_errmsg(NULL));
}

static int differs(const char *call)
{
    char message[128];

    snprintf(message, sizeof message, "%s: the ranks gave different values", call);
    return ompio_error(DELTAFS_ERR_COLLECTIVE, message);
}

/* Before a collective read, behind a collective write, and at the seek of the shared file pointer, after which programs
 * read. Collective. */
static int share(ompi_file_t *fh)
{
    OPAL_THREAD_LOCK(&fh->f_lock);
    int code = ended(deltafs_logical_exchange(file_of(fh)->logical));
    OPAL_THREAD_UNLOCK(&fh->f_lock);
    return code;
}

#define CALL(name, parameters, arguments)                                                                              \
    static int calls_##name parameters                                                                                 \
    {                                                                                                                  \
        return finish(fh, file_of(fh)->ompio.io_module_file_##name arguments);                                         \
    }
#define CALL_READ(name, as, parameters, arguments)                                                                     \
    static int calls_##name parameters                                                                                 \
    {                                                                                                                  \
        int code = share(fh);                                                                                          \
        return code != OMPI_SUCCESS ? code : finish(fh, file_of(fh)->ompio.io_module_file_##as arguments);             \
    }
#define CALL_WRITE(name, as, parameters, arguments)                                                                    \
    static int calls_##name parameters                                                                                 \
    {                                                                                                                  \
        int code = finish(fh, file_of(fh)->ompio.io_module_file_##as arguments), shared = share(fh);                   \
        return code != OMPI_SUCCESS ? code : shared;                                                                   \
    }
#define CALL_REQUEST(name, parameters, arguments)                                                                      \
    static int calls_##name parameters                                                                                 \
    {                                                                                                                  \
        return finish_request(fh, file_of(fh)->ompio.io_module_file_##name arguments, request);                        \
    }

#define BUFFER    struct ompi_file_t *fh, void *buf, int count, struct ompi_datatype_t *type
#define BYTES     struct ompi_file_t *fh, const void *buf, int count, struct ompi_datatype_t *type
#define BUFFER_AT struct ompi_file_t *fh, MPI_Offset offset, void *buf, int count, struct ompi_datatype_t *type
#define BYTES_AT  struct ompi_file_t *fh, MPI_Offset offset, const void *buf, int count, struct ompi_datatype_t *type
#define STATUS    struct ompi_status_public_t *status
#define REQUEST   struct ompi_request_t **request

CALL(read, (BUFFER, STATUS), (fh, buf, count, type, status))
CALL_READ(read_all, read, (BUFFER, STATUS), (fh, buf, count, type, status))
CALL(read_at, (BUFFER_AT, STATUS), (fh, offset, buf, count, type, status))
CALL_READ(read_at_all, read_at, (BUFFER_AT, STATUS), (fh, offset, buf, count, type, status))
CALL(read_shared, (BUFFER, STATUS), (fh, buf, count, type, status))
CALL_READ(read_ordered, read_ordered, (BUFFER, STATUS), (fh, buf, count, type, status))
CALL(write, (BYTES, STATUS), (fh, buf, count, type, status))
CALL_WRITE(write_all, write, (BYTES, STATUS), (fh, buf, count, type, status))
CALL(write_at, (BYTES_AT, STATUS), (fh, offset, buf, count, type, status))
CALL_WRITE(write_at_all, write_at, (BYTES_AT, STATUS), (fh, offset, buf, count, type, status))
CALL(write_shared, (BYTES, STATUS), (fh, buf, count, type, status))
CALL_WRITE(write_ordered, write_ordered, (BYTES, STATUS), (fh, buf, count, type, status))

CALL_REQUEST(iread, (BUFFER, REQUEST), (fh, buf, count, type, request))
CALL_REQUEST(iread_all, (BUFFER, REQUEST), (fh, buf, count, type, request))
CALL_REQUEST(iread_at, (BUFFER_AT, REQUEST), (fh, offset, buf, count, type, request))
CALL_REQUEST(iread_at_all, (BUFFER_AT, REQUEST), (fh, offset, buf, count, type, request))
CALL_REQUEST(iread_shared, (BUFFER, REQUEST), (fh, buf, count, type, request))
CALL_REQUEST(iwrite, (BYTES, REQUEST), (fh, buf, count, type, request))
CALL_REQUEST(iwrite_all, (BYTES, REQUEST), (fh, buf, count, type, request))
CALL_REQUEST(iwrite_at, (BYTES_AT, REQUEST), (fh, offset, buf, count, type, request))
CALL_REQUEST(iwrite_at_all, (BYTES_AT, REQUEST), (fh, offset, buf, count, type, request))
CALL_REQUEST(iwrite_shared, (BYTES, REQUEST), (fh, buf, count, type, request))

/* The second call of a pair returns the error that fbtl noted. If the first call returned it, OMPIO would refuse the
 * next pair. */
#define CALL_BEGIN(name, parameters, arguments)                                                                        \
    static int calls_##name parameters                                                                                 \
    {                                                                                                                  \
        int code = share(fh);                                                                                          \
        return code != OMPI_SUCCESS ? code : file_of(fh)->ompio.io_module_file_##name arguments;                       \
    }
CALL_BEGIN(read_all_begin, (BUFFER), (fh, buf, count, type))
CALL_BEGIN(read_at_all_begin, (BUFFER_AT), (fh, offset, buf, count, type))
CALL_BEGIN(read_ordered_begin, (BUFFER), (fh, buf, count, type))
CALL_BEGIN(seek_shared, (struct ompi_file_t * fh, MPI_Offset offset, int whence), (fh, offset, whence))
CALL(read_all_end, (struct ompi_file_t * fh, void *buf, STATUS), (fh, buf, status))
CALL(read_at_all_end, (struct ompi_file_t * fh, void *buf, STATUS), (fh, buf, status))
CALL(read_ordered_end, (struct ompi_file_t * fh, void *buf, STATUS), (fh, buf, status))
CALL_WRITE(write_all_end, write_all_end, (struct ompi_file_t * fh, const void *buf, STATUS), (fh, buf, status))
CALL_WRITE(write_at_all_end, write_at_all_end, (struct ompi_file_t * fh, const void *buf, STATUS), (fh, buf, status))
CALL_WRITE(write_ordered_end, write_ordered_end, (struct ompi_file_t * fh, const void *buf, STATUS), (fh, buf, status))

static int calls_set_size(ompi_file_t *fh, MPI_Offset size)
{
    int code;

    OPAL_THREAD_LOCK(&fh->f_lock);
    if (is_same(fh, size))
        code = ended(deltafs_logical_truncate(file_of(fh)->logical, (uint64_t)size));
    else
        code = differs("MPI_File_set_size");
    OPAL_THREAD_UNLOCK(&fh->f_lock);
    return code;
}

static int calls_preallocate(ompi_file_t *fh, MPI_Offset size)
{
    int code;

    OPAL_THREAD_LOCK(&fh->f_lock);
    if (is_same(fh, size))
        code = ended(deltafs_logical_extend(file_of(fh)->logical, (uint64_t)size));
    else
        code = differs("MPI_File_preallocate");
    OPAL_THREAD_UNLOCK(&fh->f_lock);
    return code;
}

static int calls_set_atomicity(ompi_file_t *fh, int flag)
{
    int code;

    OPAL_THREAD_LOCK(&fh->f_lock);
    if (is_same(fh, flag != 0))
        code = ended(deltafs_logical_set_atomic(file_of(fh)->logical, flag != 0));
    else
        code = differs("MPI_File_set_atomicity");
    if (code == OMPI_SUCCESS)
        file_of(fh)->is_atomic = ompio_of(fh)->f_atomicity = flag != 0;
    OPAL_THREAD_UNLOCK(&fh->f_lock);
    return code;
}

static int calls_sync(ompi_file_t *fh)
{
    int code;

    OPAL_THREAD_LOCK(&fh->f_lock);
    code = ended(deltafs_logical_sync(file_of(fh)->logical));
    OPAL_THREAD_UNLOCK(&fh->f_lock);
    return code;
}

static int calls_get_amode(ompi_file_t *fh, int *amode)
{
    *amode = ompio_of(fh)->f_amode | (file_of(fh)->is_deleted_on_close ? MPI_MODE_DELETE_ON_CLOSE : 0);
    return OMPI_SUCCESS;
}

void ompio_calls_hook(ompi_file_t *fh, struct ompio_deltafs *file)
{
    struct mca_io_base_module_2_0_0_t *table = &fh->f_io_selected_module.v2_0_0;

    file->ompio = *table;
#define HOOK(name) table->io_module_file_##name = calls_##name
    HOOK(read);
    HOOK(read_all);
    HOOK(read_at);
    HOOK(read_at_all);
    HOOK(read_shared);
    HOOK(read_ordered);
    HOOK(write);
    HOOK(write_all);
    HOOK(write_at);
    HOOK(write_at_all);
    HOOK(write_shared);
    HOOK(write_ordered);
    HOOK(iread);
    HOOK(iread_all);
    HOOK(iread_at);
    HOOK(iread_at_all);
    HOOK(iread_shared);
    HOOK(iwrite);
    HOOK(iwrite_all);
    HOOK(iwrite_at);
    HOOK(iwrite_at_all);
    HOOK(iwrite_shared);
    HOOK(read_all_begin);
    HOOK(read_at_all_begin);
    HOOK(read_ordered_begin);
    HOOK(seek_shared);
    HOOK(read_all_end);
    HOOK(read_at_all_end);
    HOOK(read_ordered_end);
    HOOK(write_all_end);
    HOOK(write_at_all_end);
    HOOK(write_ordered_end);
    HOOK(set_size);
    HOOK(preallocate);
    HOOK(set_atomicity);
    HOOK(sync);
    HOOK(get_amode);
}
