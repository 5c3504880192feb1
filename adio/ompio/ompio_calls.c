/* MPI_File_* calls of a file, before OMPIO's.
 *
 * Each open file of Open MPI has its own table of functions. fs puts these into the table of a file of ours. They do
 * what OMPIO cannot do or does wrong:
 *   - Reads and writes return the error that fbtl noted, nonblocking ones at once and without a request.
 *   - Collective reads report how many bytes there were. OMPIO reports the full count, also beyond the end.
 *   - A collective read sees what all ranks wrote before it, and what follows a collective write sees what that wrote.
 *     MPI asks for syncs in between, but on ordinary files a barrier is enough, and parallel HDF5 relies on that.
 *   - Atomic mode, which OMPIO only notes, and preallocate, which it does by writing the whole file again.
 *   - set_size with different sizes is an error on all ranks. OMPIO leaves some ranks waiting.
 *   - sync works for a file that is open for reading: it then sees what others have written. */
#include "ompi/request/request.h"
#if OMPI_MAJOR_VERSION < 5
#include "opal/threads/mutex.h"
#else
#include "opal/mca/threads/mutex.h"
#endif
#include "ompio_deltafs.h"

static ompio_file_t *ompio_of(ompi_file_t *fh)
{
    return &((mca_common_ompio_data_t *)fh->f_io_selected_data)->ompio_fh;
}

static struct ompio_deltafs *file_of(ompi_file_t *fh)
{
    return ompio_of(fh)->f_fs_ptr;
}

static int end(ompi_file_t *fh, int code)
{
    OPAL_THREAD_UNLOCK(&fh->f_lock);
    return code;
}

/* What an operation returns: what OMPIO says, or the error that fbtl has noted. */
static int finish(ompi_file_t *fh, int code)
{
    struct ompio_deltafs *file = file_of(fh);

    OPAL_THREAD_LOCK(&fh->f_lock);
    if (file->status != DELTAFS_OK)
        code = ompio_error(file->status, file->message);
    file->status = DELTAFS_OK;
    return end(fh, code);
}

static int finish_request(ompi_file_t *fh, int code, ompi_request_t **request)
{
    int mine = finish(fh, code);

    if (code == OMPI_SUCCESS && mine != OMPI_SUCCESS)
        ompi_request_free(request);
    return mine;
}

/* Before a collective read, behind a collective write, and at the seek of the shared file pointer, after which programs
 * read. Collective. */
static int share(ompi_file_t *fh)
{
    OPAL_THREAD_LOCK(&fh->f_lock);
    return end(fh, ompio_last_error(deltafs_mpi_file_exchange(file_of(fh)->handle)));
}

/* What is done around OMPIO's function. */
#define ALONE(call)     return finish(fh, call)
#define REQUESTED(call) return finish_request(fh, call, request)
#define SEEN(call)                                                                                                     \
    int code = share(fh);                                                                                              \
    return code != OMPI_SUCCESS ? code : finish(fh, call)
#define SHOWN(call)                                                                                                    \
    int code = finish(fh, call), shared = share(fh);                                                                   \
    return code != OMPI_SUCCESS ? code : shared
/* The second call of a pair returns the error that fbtl noted. If the first call returned it, OMPIO would refuse the
 * next pair. */
#define BEGUN(call)                                                                                                    \
    int code = share(fh);                                                                                              \
    return code != OMPI_SUCCESS ? code : (call)

#define BUFFER     struct ompi_file_t *fh, void *buf, int count, struct ompi_datatype_t *type
#define BYTES      struct ompi_file_t *fh, const void *buf, int count, struct ompi_datatype_t *type
#define BUFFER_AT  struct ompi_file_t *fh, MPI_Offset offset, void *buf, int count, struct ompi_datatype_t *type
#define BYTES_AT   struct ompi_file_t *fh, MPI_Offset offset, const void *buf, int count, struct ompi_datatype_t *type
#define STATUS     struct ompi_status_public_t *status
#define REQUEST    struct ompi_request_t **request
#define BUFFER_END struct ompi_file_t *fh, void *buf, STATUS
#define BYTES_END  struct ompi_file_t *fh, const void *buf, STATUS
#define SEEK       struct ompi_file_t *fh, MPI_Offset offset, int whence

/* Each of our functions: what it does, its name, the name of OMPIO's function that it calls, and how. */
#define CALLS(use)                                                                                                     \
    use(ALONE, read, read, (BUFFER, STATUS), (fh, buf, count, type, status));                                          \
    use(ALONE, read_at, read_at, (BUFFER_AT, STATUS), (fh, offset, buf, count, type, status));                         \
    use(ALONE, read_shared, read_shared, (BUFFER, STATUS), (fh, buf, count, type, status));                            \
    use(ALONE, write, write, (BYTES, STATUS), (fh, buf, count, type, status));                                         \
    use(ALONE, write_at, write_at, (BYTES_AT, STATUS), (fh, offset, buf, count, type, status));                        \
    use(ALONE, write_shared, write_shared, (BYTES, STATUS), (fh, buf, count, type, status));                           \
    use(ALONE, read_all_end, read_all_end, (BUFFER_END), (fh, buf, status));                                           \
    use(ALONE, read_at_all_end, read_at_all_end, (BUFFER_END), (fh, buf, status));                                     \
    use(ALONE, read_ordered_end, read_ordered_end, (BUFFER_END), (fh, buf, status));                                   \
    use(SEEN, read_all, read, (BUFFER, STATUS), (fh, buf, count, type, status));                                       \
    use(SEEN, read_at_all, read_at, (BUFFER_AT, STATUS), (fh, offset, buf, count, type, status));                      \
    use(SEEN, read_ordered, read_ordered, (BUFFER, STATUS), (fh, buf, count, type, status));                           \
    use(SHOWN, write_all, write, (BYTES, STATUS), (fh, buf, count, type, status));                                     \
    use(SHOWN, write_at_all, write_at, (BYTES_AT, STATUS), (fh, offset, buf, count, type, status));                    \
    use(SHOWN, write_ordered, write_ordered, (BYTES, STATUS), (fh, buf, count, type, status));                         \
    use(SHOWN, write_all_end, write_all_end, (BYTES_END), (fh, buf, status));                                          \
    use(SHOWN, write_at_all_end, write_at_all_end, (BYTES_END), (fh, buf, status));                                    \
    use(SHOWN, write_ordered_end, write_ordered_end, (BYTES_END), (fh, buf, status));                                  \
    use(REQUESTED, iread, iread, (BUFFER, REQUEST), (fh, buf, count, type, request));                                  \
    use(REQUESTED, iread_all, iread_all, (BUFFER, REQUEST), (fh, buf, count, type, request));                          \
    use(REQUESTED, iread_at, iread_at, (BUFFER_AT, REQUEST), (fh, offset, buf, count, type, request));                 \
    use(REQUESTED, iread_at_all, iread_at_all, (BUFFER_AT, REQUEST), (fh, offset, buf, count, type, request));         \
    use(REQUESTED, iread_shared, iread_shared, (BUFFER, REQUEST), (fh, buf, count, type, request));                    \
    use(REQUESTED, iwrite, iwrite, (BYTES, REQUEST), (fh, buf, count, type, request));                                 \
    use(REQUESTED, iwrite_all, iwrite_all, (BYTES, REQUEST), (fh, buf, count, type, request));                         \
    use(REQUESTED, iwrite_at, iwrite_at, (BYTES_AT, REQUEST), (fh, offset, buf, count, type, request));                \
    use(REQUESTED, iwrite_at_all, iwrite_at_all, (BYTES_AT, REQUEST), (fh, offset, buf, count, type, request));        \
    use(REQUESTED, iwrite_shared, iwrite_shared, (BYTES, REQUEST), (fh, buf, count, type, request));                   \
    use(BEGUN, read_all_begin, read_all_begin, (BUFFER), (fh, buf, count, type));                                      \
    use(BEGUN, read_at_all_begin, read_at_all_begin, (BUFFER_AT), (fh, offset, buf, count, type));                     \
    use(BEGUN, read_ordered_begin, read_ordered_begin, (BUFFER), (fh, buf, count, type));                              \
    use(BEGUN, seek_shared, seek_shared, (SEEK), (fh, offset, whence))

#define DEFINE(around, name, theirs, parameters, arguments)                                                            \
    static int calls_##name parameters                                                                                 \
    {                                                                                                                  \
        around(file_of(fh)->ompio.io_module_file_##theirs arguments);                                                  \
    }                                                                                                                  \
    static int calls_##name parameters /* once more, for the list's semicolon */
CALLS(DEFINE);

/* Lock the file for a collective call on the file, for which all ranks must have given the same number. */
static int begin(ompi_file_t *fh, MPI_Offset number, const char *call)
{
    int64_t mine[2] = {number, -number}, least[2];
    char message[128];

    OPAL_THREAD_LOCK(&fh->f_lock);
    if (PMPI_Allreduce(mine, least, 2, MPI_INT64_T, MPI_MIN, ompio_of(fh)->f_comm) == MPI_SUCCESS &&
        least[0] == number && least[1] == -number)
        return OMPI_SUCCESS;
    snprintf(message, sizeof message, "%s: the ranks gave different values", call);
    return ompio_error(DELTAFS_ERR_COLLECTIVE, message);
}

static int resize(ompi_file_t *fh, MPI_Offset size, const char *call, int (*ours)(deltafs_mpi_file *f, uint64_t size))
{
    int code = begin(fh, size, call);

    if (code == OMPI_SUCCESS)
        code = ompio_last_error(ours(file_of(fh)->handle, (uint64_t)size));
    return end(fh, code);
}

static int calls_set_size(ompi_file_t *fh, MPI_Offset size)
{
    return resize(fh, size, "MPI_File_set_size", deltafs_mpi_file_truncate);
}

static int calls_preallocate(ompi_file_t *fh, MPI_Offset size)
{
    return resize(fh, size, "MPI_File_preallocate", deltafs_mpi_file_extend);
}

static int calls_set_atomicity(ompi_file_t *fh, int flag)
{
    int code = begin(fh, flag != 0, "MPI_File_set_atomicity");

    if (code == OMPI_SUCCESS)
        code = ompio_last_error(deltafs_mpi_file_set_atomic(file_of(fh)->handle, flag != 0));
    if (code == OMPI_SUCCESS)
        file_of(fh)->is_atomic = ompio_of(fh)->f_atomicity = flag != 0;
    return end(fh, code);
}

static int calls_sync(ompi_file_t *fh)
{
    OPAL_THREAD_LOCK(&fh->f_lock);
    return end(fh, ompio_last_error(deltafs_mpi_file_sync(file_of(fh)->handle)));
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
#define HOOK(around, name, theirs, parameters, arguments) table->io_module_file_##name = calls_##name
    CALLS(HOOK);
    table->io_module_file_set_size = calls_set_size;
    table->io_module_file_preallocate = calls_preallocate;
    table->io_module_file_set_atomicity = calls_set_atomicity;
    table->io_module_file_sync = calls_sync;
    table->io_module_file_get_amode = calls_get_amode;
}
