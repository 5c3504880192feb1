/* The driver's table, and its operations on a whole file. */
#include "ad_deltafs.h"

#include <fcntl.h>

#define library (&ad_deltafs_library)

/* ---- Opening ---- */

static int open_flags(int access_mode)
{
    int flags = access_mode & ADIO_RDONLY ? O_RDONLY : access_mode & ADIO_WRONLY ? O_WRONLY : O_RDWR;

    return flags | (access_mode & ADIO_CREATE ? O_CREAT : 0) | (access_mode & ADIO_EXCL ? O_EXCL : 0);
}

#ifdef ROMIO_UFS
/* Whether this is the file that ROMIO keeps a shared file pointer in, .NAME.shfp.PROCESS.RANDOM: each rank opens it on
 * its own, in this mode, beside the file that the pointer is for. */
static int is_shared_pointer(ADIO_File fd, int access_mode)
{
    const char *slash = strrchr(fd->filename, '/');
    const char *name = slash ? slash + 1 : fd->filename;
    int ranks;

    MPI_Comm_size(fd->comm, &ranks);
    return ranks == 1 && access_mode == (ADIO_CREATE | ADIO_RDWR | ADIO_DELETE_ON_CLOSE) && name[0] == '.' &&
           strstr(name, ".shfp.");
}
#endif

/* The library, and the options and the memory of this rank. Returns a status; after an error *message has the reason.
 */
static int prepare(ADIO_File fd, int access_mode, struct ad_deltafs_file **file, deltafs_options **options,
                   const char **message)
{
    *message = ad_deltafs_load();
    if (*message)
        return DELTAFS_ERR_MPI;
    *message = "no memory for a file's handle";
    *file = calloc(1, sizeof **file);
    if (!*file || pthread_mutex_init(&(*file)->lock, NULL) != 0)
        return DELTAFS_ERR_MEMORY;
    int status = library->options_create(options);
    if (status == DELTAFS_OK)
        status = library->mpi_options_from_info(fd->info, *options);
    /* The rows of a file that the close deletes are not indexed. */
    if (status == DELTAFS_OK && access_mode & ADIO_DELETE_ON_CLOSE)
        status = library->options_set(*options, "key", "");
    *message = library->errmsg(NULL);
    return status;
}

/* MPI_File_get_info shows the options in use that apply to a logical file, if there is room for them: of one that is
 * longer, MPI_Info_set would end the program. */
static void show_options(ADIO_File fd, const deltafs_options *options)
{
    static const char *const shown[] = {"epoch",   "extents", "index", "key",  "memory",
                                        "padding", "schema",  "skip",  "sync", "volumes"};

    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char key[64];
        const char *value;
        snprintf(key, sizeof key, "deltafs_%s", shown[i]);
        if (library->options_get(options, shown[i], &value) == DELTAFS_OK && value[0] != '\0' &&
            strlen(value) < MPI_MAX_INFO_VAL)
            ADIOI_Info_set(fd->info, key, value);
    }
}

/* `file` stays the caller's if this fails. */
static int open_file(ADIO_File fd, int access_mode, struct ad_deltafs_file *file, const deltafs_options *options)
{
    uint64_t size = 0;
    int status = library->mpi_file_open(fd->comm, fd->filename, open_flags(access_mode), options, &file->handle);

    if (status == DELTAFS_ERR_NOT_DELTAFS && access_mode & ADIO_EXCL)
        return DELTAFS_ERR_EXISTS;
    if (status != DELTAFS_OK)
        return status;
    fd->fs_ptr = file;
    fd->is_open = 1;
    fd->dirty_write = 0;
    show_options(fd, options);
    if (access_mode & ADIO_APPEND) {
        status = library->mpi_file_size(file->handle, &size);
        fd->fp_ind = (ADIO_Offset)size;
    }
    return status;
}

/* Collective over fd->comm. */
static void open_on(ADIO_File fd, int access_mode, int *error_code)
{
    struct ad_deltafs_file *file = NULL;
    deltafs_options *options = NULL;
    const char *message;
    int threads, status = prepare(fd, access_mode, &file, &options, &message);

    MPI_Query_thread(&threads);
    int mine[2] = {status, threads != MPI_THREAD_MULTIPLE};
    int least[2] = {status, 0};
    MPI_Allreduce(mine, least, 2, MPI_INT, MPI_MIN, fd->comm);
    if (least[0] == DELTAFS_OK) {
        file->has_threads = !least[1];
        least[0] = open_file(fd, access_mode, file, options);
        message = library->errmsg(NULL);
    } else if (status == DELTAFS_OK) {
        message = "another rank could not open it";
    }
    *error_code = ad_deltafs_error("ADIOI_DELTAFS_OPEN", least[0], message);
    if (!fd->fs_ptr)
        free(file);
    if (options)
        library->options_destroy(options);
}

static void open_coll(ADIO_File fd, int rank, int access_mode, int *error_code)
{
#ifdef ROMIO_UFS
    if (is_shared_pointer(fd, access_mode)) {
        fd->fns = &ADIO_UFS_operations;
        fd->file_system = ADIO_UFS;
        fd->fns->ADIOI_xxx_OpenColl(fd, rank, access_mode, error_code);
        return;
    }
#endif
    (void)rank;
    fd->access_mode = access_mode;
    fd->fd_sys = -1;
    fd->fd_direct = -1;
    fd->blksize = 4096; /* ROMIO wants one above 0 */
    open_on(fd, access_mode, error_code);
}

/* Opening is not put off (ADIO_SCALABLE_OPEN); but ROMIO may call this where it forgets to ask. */
static void open_late(ADIO_File fd, int *error_code)
{
    open_on(fd, fd->access_mode, error_code);
}

/* Options (deltafs_NAME) are kept among the file's hints until the open checks them: an error here would be lost. */
static void set_info(ADIO_File fd, MPI_Info users_info, int *error_code)
{
    static const char prefix[] = "deltafs_";
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    int keys = 0, has_value;

    ADIOI_GEN_SetInfo(fd, users_info, error_code);
    if (*error_code != MPI_SUCCESS || users_info == MPI_INFO_NULL || fd->fs_ptr)
        return;
    MPI_Info_get_nkeys(users_info, &keys);
    for (int i = 0; i < keys; i++) {
        MPI_Info_get_nthkey(users_info, i, key);
        if (strncmp(key, prefix, sizeof prefix - 1) != 0)
            continue;
        ADIOI_Info_get(users_info, key, sizeof value - 1, value, &has_value);
        if (has_value)
            ADIOI_Info_set(fd->info, key, value);
    }
}

/* ---- The open file ---- */

static void close_file(ADIO_File fd, int *error_code)
{
    struct ad_deltafs_file *file = fd->fs_ptr;

    *error_code = MPI_SUCCESS;
    if (!file)
        return;
    fd->fs_ptr = NULL;
    *error_code = ad_deltafs_last_error("ADIOI_DELTAFS_CLOSE", library->mpi_file_close(file->handle));
    pthread_mutex_destroy(&file->lock);
    free(file);

    /* One rank deletes the file after this, when no other rank uses it any more. */
    if (fd->access_mode & ADIO_DELETE_ON_CLOSE)
        MPI_Barrier(fd->comm);
}

static void delete_file(const char *filename, int *error_code)
{
    const char *message = ad_deltafs_load();
    int status = message ? DELTAFS_ERR_MPI : library->mpi_file_remove(filename);

    *error_code = ad_deltafs_error("ADIOI_DELTAFS_DELETE", status, message ? message : library->errmsg(NULL));
}

static void file_control(ADIO_File fd, int flag, ADIO_Fcntl_t *fcntl_struct, int *error_code)
{
    static const char where[] = "ADIOI_DELTAFS_FCNTL";
    uint64_t size = 0;
    int status;

    switch (flag) {
    case ADIO_FCNTL_GET_FSIZE:
        status = library->mpi_file_size(ad_deltafs_enter(fd), &size);
        fcntl_struct->fsize = (ADIO_Offset)size;
        break;
    case ADIO_FCNTL_SET_DISKSPACE: /* by all ranks: ROMIO's source is changed to call it so */
        status = library->mpi_file_extend(ad_deltafs_enter_all(fd), (uint64_t)fcntl_struct->diskspace);
        break;
    case ADIO_FCNTL_SET_ATOMICITY:
        status = library->mpi_file_set_atomic(ad_deltafs_enter_all(fd), fcntl_struct->atomicity != 0);
        if (status == DELTAFS_OK)
            fd->atomicity = fcntl_struct->atomicity != 0;
        break;
    default:
        *error_code = MPIO_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, where, __LINE__, MPI_ERR_ARG, "**flag",
                                           "**flag %d", flag);
        return;
    }
    *error_code = ad_deltafs_last_error(where, status);
    ad_deltafs_leave(fd);
}

/* MPI_File_sync: publish what was written, and see what others have. */
static void flush(ADIO_File fd, int *error_code)
{
    int status = library->mpi_file_sync(ad_deltafs_enter_all(fd));

    if (status == DELTAFS_OK)
        fd->dirty_write = 0;
    *error_code = ad_deltafs_last_error("ADIOI_DELTAFS_FLUSH", status);
    ad_deltafs_leave(fd);
}

static void resize(ADIO_File fd, ADIO_Offset size, int *error_code)
{
    *error_code = ad_deltafs_last_error("ADIOI_DELTAFS_RESIZE",
                                        library->mpi_file_truncate(ad_deltafs_enter_all(fd), (uint64_t)size));
    ad_deltafs_leave(fd);
}

/* What ROMIO may rely on: all ranks open and resize a file together, and there is atomic mode. No locks, because atomic
 * mode is the library's; no data sieving and no two-phase writes, because a log is not read to be written. A shared
 * file pointer is in a plain file, for which ROMIO needs its ufs driver, and which cannot be beside a file of a pool.
 */
static int feature(ADIO_File fd, int asked)
{
    const struct ad_deltafs_file *file = fd->fs_ptr;

#ifdef ROMIO_UFS
    if (asked == ADIO_SHARED_FP)
        return !file || !library->mpi_file_is_pooled(file->handle);
#endif
    (void)file;
    return asked == ADIO_SCALABLE_OPEN || asked == ADIO_SCALABLE_RESIZE || asked == ADIO_ATOMIC_MODE;
}

/* ROMIO does not ask for locks where ADIO_LOCKS is 0. A caller that does must not believe that it has one. */
static int set_lock(ADIO_File fd, int cmd, int type, ADIO_Offset offset, int whence, ADIO_Offset len)
{
    (void)fd, (void)cmd, (void)type, (void)offset, (void)whence, (void)len;
    return MPIO_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, "ADIOI_DELTAFS_SETLOCK", __LINE__,
                                MPI_ERR_UNSUPPORTED_OPERATION, "**fileopunsupported", 0);
}

struct ADIOI_Fns_struct ADIO_DELTAFS_operations = {
    .ADIOI_xxx_Open = open_late,
    .ADIOI_xxx_OpenColl = open_coll,
    .ADIOI_xxx_ReadContig = ad_deltafs_read_contig,
    .ADIOI_xxx_WriteContig = ad_deltafs_write_contig,
    .ADIOI_xxx_ReadStridedColl = ad_deltafs_read_coll,
    .ADIOI_xxx_WriteStridedColl = ad_deltafs_write_coll,
    .ADIOI_xxx_SeekIndividual = ADIOI_GEN_SeekIndividual,
    .ADIOI_xxx_Fcntl = file_control,
    .ADIOI_xxx_SetInfo = set_info,
    .ADIOI_xxx_ReadStrided = ad_deltafs_read_strided,
    .ADIOI_xxx_WriteStrided = ad_deltafs_write_strided,
    .ADIOI_xxx_Close = close_file,
    .ADIOI_xxx_IreadContig = ad_deltafs_iread_contig,
    .ADIOI_xxx_IwriteContig = ad_deltafs_iwrite_contig,
    .ADIOI_xxx_ReadDone = ADIOI_FAKE_IODone,
    .ADIOI_xxx_WriteDone = ADIOI_FAKE_IODone,
    .ADIOI_xxx_ReadComplete = ADIOI_FAKE_IOComplete,
    .ADIOI_xxx_WriteComplete = ADIOI_FAKE_IOComplete,
    .ADIOI_xxx_IreadStrided = ad_deltafs_iread_strided,
    .ADIOI_xxx_IwriteStrided = ad_deltafs_iwrite_strided,
    .ADIOI_xxx_Flush = flush,
    .ADIOI_xxx_Resize = resize,
    .ADIOI_xxx_Delete = delete_file,
    .ADIOI_xxx_Feature = feature,
    .fsname = "DELTAFS: logs of each rank's own",
    .ADIOI_xxx_IreadStridedColl = ad_deltafs_iread_strided,
    .ADIOI_xxx_IwriteStridedColl = ad_deltafs_iwrite_strided,
    .ADIOI_xxx_SetLock = set_lock,
};
