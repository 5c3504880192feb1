/* fs component: opens, closes and deletes files, and knows their size.
 *
 * MPI_MODE_DELETE_ON_CLOSE is removed from OMPIO's mode. OMPIO would let each rank delete the file, under a name that
 * it takes for a relative path, even if the open failed because the file exists already.
 *
 * Open MPI's MPI_File_close always returns success. An error of the close goes to the file's error handler and is
 * printed once. */
#include <fcntl.h>
#include <stdlib.h>
#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/fcoll/base/base.h"
#include "ompi/mca/fs/base/base.h"
#include "opal/util/output.h"
#include "ompio_deltafs.h"

extern mca_fs_base_component_2_0_0_t mca_fs_deltafs_component;

/* What must have been chosen for the file to be handled right, or NULL. */
static const char *missing(const ompio_file_t *fh)
{
    if (fh->f_fbtl_component == NULL || strcmp(fh->f_fbtl_component->mca_component_name, OMPIO_DELTAFS_NAME) != 0)
        return "fbtl";
    return mca_fcoll_base_component_lookup(OMPIO_DELTAFS_NAME) == NULL ? "fcoll" : NULL;
}

/* Options from the environment and the hints; a rank's failure becomes all ranks'. Collective. Returns an MPI code. */
static int options_from(ompi_communicator_t *comm, opal_info_t *hints, int is_deleted_on_close,
                        deltafs_options **options)
{
    int status = deltafs_options_create(options), least;
    MPI_Info info = MPI_INFO_NULL;
    opal_info_t *copy;

    if (status == DELTAFS_OK && hints != NULL && PMPI_Info_create(&info) == MPI_SUCCESS) {
        copy = &info->super;
        opal_info_dup(hints, &copy);
        status = deltafs_mpi_options_from_info(info, *options);
        PMPI_Info_free(&info);
    }
    /* The rows of a file that the close deletes are not indexed. */
    if (status == DELTAFS_OK && is_deleted_on_close)
        status = deltafs_options_set(*options, "key", "");
    if (PMPI_Allreduce(&status, &least, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS)
        least = DELTAFS_ERR_MPI;
    return ompio_error(least, status != DELTAFS_OK ? deltafs_errmsg(NULL) : "a hint is wrong on another rank");
}

static int flags_of(int amode)
{
    int flags = amode & MPI_MODE_RDONLY ? O_RDONLY : amode & MPI_MODE_WRONLY ? O_WRONLY : O_RDWR;

    return flags | (amode & MPI_MODE_CREATE ? O_CREAT : 0) | (amode & MPI_MODE_EXCL ? O_EXCL : 0);
}

static void show_options(opal_info_t *info, const deltafs_options *options)
{
    static const char *const shown[] = {"epoch",   "extents", "index", "key",  "memory",
                                        "padding", "schema",  "skip",  "sync", "volumes"};

    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char key[64];
        const char *value;
        snprintf(key, sizeof key, "deltafs_%s", shown[i]);
        if (deltafs_options_get(options, shown[i], &value) == DELTAFS_OK && value[0] != '\0')
            opal_info_set(info, key, value);
    }
}

static int open_on(ompi_communicator_t *comm, const char *path, ompio_file_t *fh, opal_info_t *info,
                   struct ompio_deltafs *file)
{
    deltafs_options *options = NULL;
    int code = options_from(comm, info, file->is_deleted_on_close, &options);

    if (code == OMPI_SUCCESS) {
        int status = deltafs_mpi_file_open(comm, path, flags_of(fh->f_amode), options, &file->handle);
        if (status == DELTAFS_ERR_NOT_DELTAFS && fh->f_amode & MPI_MODE_EXCL)
            status = DELTAFS_ERR_EXISTS;
        code = ompio_last_error(status);
    }
    /* A file of sharedfp's own has no MPI_File. */
    if (code == OMPI_SUCCESS && !(fh->f_flags & OMPIO_SHAREDFP_IS_SET)) {
        show_options(info, options);
        ompio_calls_hook(fh->f_fh, file);
        ompio_sharedfp_choose(fh);
    }
    deltafs_options_destroy(options);
    return code;
}

static int fs_file_open(ompi_communicator_t *comm, const char *name, int amode, opal_info_t *info, ompio_file_t *fh)
{
    const char *path = ompio_deltafs_path(name), *left_out = missing(fh);
    struct ompio_deltafs *file;
    char message[256];
    int code;

    (void)amode; /* WRONLY has become RDWR there, for Open MPI's collective calls, which we do not use */
    fh->f_filename = name;
    fh->fd = -1;
    fh->f_fs_ptr = file = calloc(1, sizeof *file);
    if (file == NULL)
        return OMPI_ERR_OUT_OF_RESOURCE;
    file->is_deleted_on_close = (fh->f_amode & MPI_MODE_DELETE_ON_CLOSE) != 0;
    fh->f_amode &= ~MPI_MODE_DELETE_ON_CLOSE;
    if (left_out != NULL) {
        snprintf(message, sizeof message,
                 "%s: Open MPI is set not to use the %s component deltafs; add it to the others (--mca %s "
                 "deltafs,...), or name none",
                 name, left_out, left_out);
        code = ompio_error(DELTAFS_ERR_IO, message);
    } else {
        code = open_on(comm, path, fh, info, file);
    }
    if (code != OMPI_SUCCESS) {
        fh->f_fs_ptr = NULL;
        free(file);
    }
    return code;
}

/* Report an error of close. */
static int complain(ompio_file_t *fh, int status)
{
    int code = ompio_last_error(status);

    if (code == OMPI_SUCCESS)
        return code;
    if (fh->f_rank == 0)
        opal_output(0, "MPI_File_close: %s", deltafs_errmsg(NULL));
    if (!(fh->f_flags & OMPIO_SHAREDFP_IS_SET))
        ompi_errhandler_invoke(fh->f_fh->error_handler, fh->f_fh, OMPI_ERRHANDLER_TYPE_FILE, code, "MPI_File_close");
    return code;
}

static int fs_file_close(ompio_file_t *fh)
{
    struct ompio_deltafs *file = fh->f_fs_ptr;
    int code, removed = OMPI_SUCCESS;

    if (file == NULL)
        return OMPI_SUCCESS;                                   /* it could not be opened */
    code = complain(fh, deltafs_mpi_file_close(file->handle)); /* indexes what was written, if the options say so */
    if (file->is_deleted_on_close) {
        if (fh->f_rank == 0)
            removed = complain(fh, deltafs_mpi_file_remove(ompio_deltafs_path(fh->f_filename)));
        PMPI_Barrier(fh->f_comm); /* the file is gone before any rank continues */
    }
    fh->f_fs_ptr = NULL;
    free(file);
    return code != OMPI_SUCCESS ? code : removed;
}

static int fs_file_delete(char *name, opal_info_t *info)
{
    (void)info;
    return ompio_last_error(deltafs_mpi_file_remove(ompio_deltafs_path(name)));
}

/* Sizes are set and files are synced by our own functions (ompio_calls.c). */
static int fs_file_get_size(ompio_file_t *fh, OMPI_MPI_OFFSET_TYPE *size)
{
    const struct ompio_deltafs *file = fh->f_fs_ptr;
    uint64_t bytes = 0;
    int code = ompio_last_error(deltafs_mpi_file_size(file->handle, &bytes));

    *size = (OMPI_MPI_OFFSET_TYPE)bytes;
    return code;
}

/* Until the file is opened it has a short name: Open MPI asks all sharedfp components whether they would serve it, and
 * lockedfile copies the name into 256 bytes. */
static int fs_module_init(ompio_file_t *fh)
{
    fh->f_fstype = NONE;
    fh->f_filename = OMPIO_DELTAFS_PREFIX;
    return OMPI_SUCCESS;
}

static mca_fs_base_module_1_0_0_t module = {
    .fs_module_init = fs_module_init,
    .fs_module_finalize = ompio_nothing,
    .fs_file_open = fs_file_open,
    .fs_file_close = fs_file_close,
    .fs_file_delete = fs_file_delete,
    .fs_file_get_size = fs_file_get_size,
};

static int fs_init_query(bool progress_threads, bool mpi_threads)
{
    int rank, code = ompio_init_query(progress_threads, mpi_threads);

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (code != OMPI_SUCCESS && rank == 0)
        opal_output(0, "DeltaFS was built for Open MPI " OMPIO_BUILT_FOR
                       ", which this is not: no file with the prefix deltafs:");
    return code;
}

static mca_fs_base_module_1_0_0_t *fs_file_query(ompio_file_t *fh, int *priority)
{
    return ompio_file_query(fh, priority) ? &module : NULL;
}

/* For deltafs doctor. */
DELTAFS_API const char deltafs_driver_version[] = DELTAFS_VERSION;
DELTAFS_API const char deltafs_driver_mpi[] = OMPIO_BUILT_FOR;

DELTAFS_API mca_fs_base_component_2_0_0_t mca_fs_deltafs_component = {
    .fsm_version = {MCA_FS_BASE_VERSION_2_0_0, OMPIO_DELTAFS_VERSION},
    .fsm_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .fsm_init_query = fs_init_query,
    .fsm_file_query = fs_file_query,
    .fsm_file_unquery = ompio_nothing,
};
