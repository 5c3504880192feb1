/* Opening and closing a logical file with all ranks of a communicator. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>
#include "base/path.h"
#include "mpi/job/job.h"
#include "mpi/job/job_call.h"
#include "mpi/job/logical_job.h"

int logical_job_create(MPI_Comm comm, struct logical_job **out, struct error *e)
{
    struct rank_group *group;
    int status = mpi_group_create(comm, sizeof **out, job_wait, &group, e);

    if (status == DELTAFS_OK)
        *out = (struct logical_job *)(void *)group;
    return status;
}

void logical_job_destroy(struct rank_group *group)
{
    struct logical_job *j = (struct logical_job *)(void *)group;

    deltafs_options_destroy(j->options);
    free(j->path);
    mpi_group_destroy(group);
}

/* ---- Opening ---- */

/* Rank 0: all options of the call, in `o`. An error in deltafs.conf beside the file is reported when the file is
 * closed.
 */
static int call_options(const struct logical_job *j, int flags, const deltafs_options *given, deltafs_options *o,
                        struct error *e)
{
    if (given && deltafs_private_options_copy(o, given, e) != DELTAFS_OK)
        return e->status;
    if ((flags & O_ACCMODE) != O_RDONLY)
        deltafs_folder_options(j->path, o);
    return DELTAFS_OK;
}

/* Rank 0: what the close needs of the opening. */
static int job_keep_call(struct logical_job *j, const char *path, const deltafs_options *o, struct error *e)
{
    j->path = path_absolute(path);
    if (!j->path)
        return error_no_memory(e, strlen(path), "a path");
    if (error_of_call(deltafs_options_create(&j->options), e) != DELTAFS_OK)
        return e->status;
    int status = deltafs_private_options_copy(j->options, o, e);
    const char *given = deltafs_private_options_text(j->options, OPTION_INDEX);
    if (status != DELTAFS_OK || *given == '\0' || *given == '/')
        return status;
    char *index = path_absolute(given);
    if (!index)
        return error_no_memory(e, strlen(given), "a path");
    status = error_of_call(deltafs_options_set(j->options, "index", index), e);
    free(index);
    return status;
}

/* Whether rows are shared out by who wrote them, the same on all ranks: all have kept keys, and none has many times as
 * many to read back as it would have of equal shares. */
static int is_by_writer(const struct logical_job *j, const struct captured_keys *kept, const uint64_t written[3])
{
    uint64_t size = written[1], missed = written[2];

    return missed == 0 || (missed != deltafs_private_captured_keys_missed(NULL) &&
                           missed / 2 <= deltafs_private_captured_keys_rows(kept, size) / (uint64_t)j->group.ranks);
}

/* Close the file, and index its rows if its options name a key. The job outlives the file for that. */
static int job_close_logical(deltafs_logical *f)
{
    struct error *e = deltafs_private_thread_error(), own = {0};
    struct logical_job *j = (struct logical_job *)(void *)f->group.ctx;
    uint64_t written[3] = {f->has_logs && f->mode != O_RDONLY, f->size,
                           deltafs_private_captured_keys_missed(f->captured)};
    int is_read_only = f->mode == O_RDONLY;
    struct captured_keys *kept = f->captured;
    struct key_writer own_writes = {.session = f->session.number, .writer = f->group.rank, .keys = kept};
    memcpy(own_writes.uuid, f->container.uuid, sizeof own_writes.uuid);
    int asked = is_read_only ? DELTAFS_OK : mpi_reduce(&j->group, written, 3, MPI_MAX, &own);
    f->group.destroy = NULL;
    f->captured = NULL;
    int status = deltafs_private_logical_close(f);
    if (status != DELTAFS_OK)
        own = *e;
    else if (asked != DELTAFS_OK)
        status = asked;
    else if (written[0])
        status = job_index_closed(j, is_by_writer(j, kept, written) ? &own_writes : NULL, &own);
    deltafs_private_captured_keys_destroy(kept);
    logical_job_destroy(&j->group);
    if (status != DELTAFS_OK)
        *e = own;
    return status;
}

/* What of this rank's goes wrong here, the opening takes to all. */
int logical_job_open(struct logical_job *j, const char *path, int flags, const deltafs_options *given,
                     deltafs_logical **out, struct error *e)
{
    struct collective group = mpi_group_collective(&j->group);
    deltafs_options *o = NULL;
    struct bytes call = {{0}, 0};

    group.destroy = logical_job_destroy;
    e->status = DELTAFS_OK;
    if (!out || (j->group.rank == 0 && (!path || !*path || (flags & O_ACCMODE) == O_ACCMODE)))
        error_set(e, DELTAFS_ERR_INVALID, "deltafs_mpi_logical_open: path, flags and out must be given");
    else
        e->status = error_of_call(deltafs_options_create(&o), e);
    if (e->status == DELTAFS_OK && j->group.rank == 0)
        job_keep_call(j, path, given ? given : o, e);
    if (e->status == DELTAFS_OK && j->group.rank == 0)
        call_options(j, flags, given, o, e);
    if (j->path)
        path = j->path;
    int status = job_call_share(&j->group, &path, &flags, o, &call, e);
    if (status == DELTAFS_OK)
        status = deltafs_private_logical_open_group(path, flags, o, &group, out, e);
    if (status == DELTAFS_OK)
        (*out)->on_close = job_close_logical;
    if (status == DELTAFS_OK && (flags & O_ACCMODE) != O_RDONLY)
        deltafs_private_logical_capture_keys(*out, o);
    deltafs_options_destroy(o);
    buffer_fini(&call.buffer);
    return status;
}

int deltafs_mpi_logical_open(MPI_Comm comm, const char *path, int flags, const deltafs_options *options,
                             deltafs_logical **out)
{
    struct error *e = deltafs_private_thread_error();
    struct logical_job *j;

    if (logical_job_create(comm, &j, e) != DELTAFS_OK)
        return e->status;
    int status = logical_job_open(j, path, flags, options, out, e);
    if (status != DELTAFS_OK)
        logical_job_destroy(&j->group);
    return status;
}
