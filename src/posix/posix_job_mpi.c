/* The companion of libdeltafs_posix for one MPI. */
#include <mpi.h>
#include <deltafs/deltafs_mpi.h>
#include "posix/posix_job.h"

static struct {
    MPI_Comm comm; /* of all ranks, for nothing else */
    void (*finish)(void);
} job;

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first, while all of MPI can still be used. */
static int end(MPI_Comm self, int key, void *value, void *extra)
{
    (void)self;
    (void)key;
    (void)value;
    (void)extra;
    job.finish();
    return MPI_Comm_free(&job.comm);
}

static int be_called_at_the_end(void)
{
    int key, code = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &key, NULL);

    if (code == MPI_SUCCESS)
        code = MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    return code == MPI_SUCCESS ? MPI_Comm_free_keyval(&key) : code;
}

/* Whether the program's MPI is the one that this is built for: libdeltafs_mpi says so when it is given a handle of it.
 */
static const char *check_kind(void)
{
    deltafs_options *options = NULL;
    int status = deltafs_options_create(&options);

    if (status == DELTAFS_OK)
        status = deltafs_mpi_options_from_info(MPI_INFO_NULL, options);
    deltafs_options_destroy(options);
    return status == DELTAFS_OK ? NULL : deltafs_errmsg(NULL);
}

static const char *job_join(void (*finish)(void), int *size)
{
    const char *wrong = check_kind();

    job.finish = finish;
    if (wrong)
        return wrong;
    if (MPI_Comm_dup(MPI_COMM_WORLD, &job.comm) != MPI_SUCCESS ||
        MPI_Comm_set_errhandler(job.comm, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Comm_size(job.comm, size) != MPI_SUCCESS || be_called_at_the_end() != MPI_SUCCESS)
        return "MPI cannot copy MPI_COMM_WORLD";
    return NULL;
}

static int job_most_of_all(uint64_t *numbers, int n)
{
    return MPI_Allreduce(MPI_IN_PLACE, numbers, n, MPI_UINT64_T, MPI_MAX, job.comm) == MPI_SUCCESS ? 0 : -1;
}

static int job_open_or_create(const char *path, const deltafs_options *options, int is_new, deltafs_dir **out)
{
    return is_new ? deltafs_mpi_create(job.comm, path, options, out) : deltafs_mpi_reopen(job.comm, path, options, out);
}

DELTAFS_API const struct job_companion *deltafs_posix_job(void)
{
    static const struct job_companion companion = {
        .join = job_join, .most = job_most_of_all, .open = job_open_or_create};

    return &companion;
}
