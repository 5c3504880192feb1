/* Opening: one collective call of the library. */
#include "ad_deltafs.h"

#include <fcntl.h>

static int open_flags(int access_mode)
{
    int flags = access_mode & ADIO_RDONLY ? O_RDONLY : access_mode & ADIO_WRONLY ? O_WRONLY : O_RDWR;

    if (access_mode & ADIO_CREATE)
        flags |= O_CREAT;
    if (access_mode & ADIO_EXCL)
        flags |= O_EXCL;
    return flags;
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

/* The library, and the options and the memory of this rank: *message is set if that fails. */
static int prepare(ADIO_File fd, int access_mode, struct ad_deltafs_file **file, deltafs_options **options,
                   const char **message)
{
    const struct ad_deltafs_library *library = ad_deltafs_library(message);

    if (!library)
        return DELTAFS_ERR_MPI;
    *file = calloc(1, sizeof **file);
    if (!*file || pthread_mutex_init(&(*file)->lock, NULL) != 0) {
        *message = "no memory for a file's handle";
        return DELTAFS_ERR_MEMORY;
    }
    int status = library->options_create(options);
    if (status == DELTAFS_OK)
        status = library->mpi_options_from_info(fd->info, *options);
    /* The rows of a file that the close deletes are not indexed. */
    if (status == DELTAFS_OK && access_mode & ADIO_DELETE_ON_CLOSE)
        status = library->options_set(*options, "key", "");
    if (status != DELTAFS_OK)
        *message = library->errmsg(NULL);
    return status;
}

/* MPI_File_get_info shows the options in use that mean something for a logical file. */
static void show_options(ADIO_File fd, const deltafs_options *options)
{
    const struct ad_deltafs_library *library = ad_deltafs_loaded();
    static const char *const shown[] = {"epoch",  "extents", "index", "key",    "memory",
                                        "schema", "skip",    "sync",  "volumes"};

    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        char key[64];
        const char *value;
        snprintf(key, sizeof key, "deltafs_%s", shown[i]);
        if (library->options_get(options, shown[i], &value) == DELTAFS_OK && value[0] != '\0')
            ADIOI_Info_set(fd->info, key, value);
    }
}

/* `file` stays the caller's if this fails. */
static int open_file(ADIO_File fd, int access_mode, struct ad_deltafs_file *file, const deltafs_options *options,
                     const char *where)
{
    const struct ad_deltafs_library *library = ad_deltafs_loaded();
    uint64_t size = 0;

    int status = library->mpi_logical_open(fd->comm, fd->filename, open_flags(access_mode), options, &file->handle);
    if (status == DELTAFS_ERR_NOT_DELTAFS && access_mode & ADIO_EXCL)
        status = DELTAFS_ERR_EXISTS;
    if (status != DELTAFS_OK)
        return ad_deltafs_error(where, status, library->errmsg(NULL));
    fd->fs_ptr = file;
    fd->is_open = 1;
    fd->dirty_write = 0;
    if (access_mode & ADIO_APPEND) {
        status = library->logical_size(file->handle, &size);
        fd->fp_ind = (ADIO_Offset)size;
    }
    return ad_deltafs_last_error(where, status);
}

/* Collective over fd->comm. */
static int open_on(ADIO_File fd, int access_mode)
{
    static const char where[] = "ADIOI_DELTAFS_OPENCOLL";
    struct ad_deltafs_file *file = NULL;
    deltafs_options *options = NULL;
    const char *message = "";
    int error_code;
    int threads;

    int status = prepare(fd, access_mode, &file, &options, &message);
    MPI_Query_thread(&threads);
    int mine[2] = {status, threads != MPI_THREAD_MULTIPLE};
    int least[2] = {status, 0};
    MPI_Allreduce(mine, least, 2, MPI_INT, MPI_MIN, fd->comm);
    if (least[0] != DELTAFS_OK) {
        error_code =
            ad_deltafs_error(where, least[0], status != DELTAFS_OK ? message : "another rank could not open it");
    } else {
        file->has_threads = !least[1];
        error_code = open_file(fd, access_mode, file, options, where);
        if (error_code == MPI_SUCCESS)
            show_options(fd, options);
    }
    if (!fd->fs_ptr)
        free(file);
    if (options)
        ad_deltafs_loaded()->options_destroy(options);
    return error_code;
}

void ad_deltafs_open_coll(ADIO_File fd, int rank, int access_mode, int *error_code)
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
    *error_code = open_on(fd, access_mode);
}

/* Not used, as opening is not put off (ADIO_SCALABLE_OPEN); but ROMIO may call it where it forgets to ask. */
void ad_deltafs_open(ADIO_File fd, int *error_code)
{
    *error_code = open_on(fd, fd->access_mode);
}
