/* A logical file that the ranks of a communicator open together: their collective calls, as the core asks for them. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>
#include "mpi/job.h"
#include "mpi/logical_group.h"

#define ROUND (UINT64_C(1) << 30) /* bytes of one call: MPI's counts are ints */

static int group_agree(void *ctx, struct error *e)
{
    struct logical_job *j = ctx;

    return agree_status(&j->agree, e);
}

static int group_max(void *ctx, uint64_t *values, int n, struct error *e)
{
    struct logical_job *j = ctx;

    return agree_reduce(&j->agree, values, n, MPI_MAX, e);
}

static int group_broadcast_from(struct logical_job *j, int root, uint8_t *bytes, uint64_t n, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint64_t at = 0; at < n && status == DELTAFS_OK; at += ROUND) {
        MPI_Request request;
        int part = (int)(n - at < ROUND ? n - at : ROUND);
        int code = MPI_Ibcast(bytes + at, part, MPI_BYTE, root, j->agree.comm, &request);
        status = code == MPI_SUCCESS ? agree_wait(&j->agree, &request, "broadcast", e)
                                     : agree_mpi_error(e, code, "broadcast");
    }
    return status;
}

static int group_broadcast(void *ctx, void *bytes, size_t n, struct error *e)
{
    return group_broadcast_from(ctx, 0, bytes, n, e);
}

static int group_gather_sizes(struct logical_job *j, uint64_t n, struct error *e)
{
    MPI_Request request;
    int code = MPI_Iallgather(&n, 1, MPI_UINT64_T, j->sizes, 1, MPI_UINT64_T, j->agree.comm, &request);

    return code == MPI_SUCCESS ? agree_wait(&j->agree, &request, "gather", e) : agree_mpi_error(e, code, "gather");
}

/* All at once, where MPI can count them. */
static int group_gather_few(struct logical_job *j, const void *mine, uint8_t *to, struct error *e)
{
    MPI_Request request;
    uint64_t at = 0;

    for (int i = 0; i < j->agree.ranks; i++) {
        j->counts[i] = (int)j->sizes[i];
        j->places[i] = (int)at;
        at += j->sizes[i];
    }
    int code = MPI_Iallgatherv(mine, j->counts[j->agree.rank], MPI_BYTE, to, j->counts, j->places, MPI_BYTE,
                               j->agree.comm, &request);
    return code == MPI_SUCCESS ? agree_wait(&j->agree, &request, "gather", e) : agree_mpi_error(e, code, "gather");
}

static int group_gather(void *ctx, const void *mine, size_t n, struct bytes *all, struct error *e)
{
    struct logical_job *j = ctx;
    struct error own = {0};
    uint64_t total = 0;
    int status = group_gather_sizes(j, n, e);

    if (status != DELTAFS_OK)
        return status;
    for (int i = 0; i < j->agree.ranks; i++)
        total += j->sizes[i];
    buffer_reserve(&all->buffer, all->used + total, "what other ranks wrote", &own);
    if (agree_status(&j->agree, &own) != DELTAFS_OK) {
        *e = own;
        return own.status;
    }
    uint8_t *to = all->buffer.bytes + all->used;
    all->used += total;
    if (total <= ROUND)
        return total == 0 ? DELTAFS_OK : group_gather_few(j, mine, to, e);
    for (int i = 0; i < j->agree.ranks && status == DELTAFS_OK; i++) {
        if (i == j->agree.rank)
            memcpy(to, mine, n);
        status = group_broadcast_from(j, i, to, j->sizes[i], e);
        to += j->sizes[i];
    }
    return status;
}

void logical_job_destroy(void *job)
{
    struct logical_job *j = job;

    if (j->agree.comm != MPI_COMM_NULL)
        MPI_Comm_free(&j->agree.comm);
    free(j->sizes);
    free(j->counts);
    free(j->places);
    deltafs_options_destroy(j->options);
    free(j->path);
    free(j);
}

struct logical_group logical_job_group(struct logical_job *j)
{
    return (struct logical_group){.ctx = j,
                                  .rank = (uint32_t)j->agree.rank,
                                  .ranks = (uint32_t)j->agree.ranks,
                                  .agree = group_agree,
                                  .max = group_max,
                                  .broadcast = group_broadcast,
                                  .gather = group_gather,
                                  .destroy = logical_job_destroy};
}

int logical_job_create(MPI_Comm comm, struct logical_job **out, struct error *e)
{
    struct agree a = {.wait = job_wait, .comm = MPI_COMM_NULL};
    struct logical_job *j = calloc(1, sizeof *j);
    MPI_Request request;
    int code = MPI_Comm_idup(comm, &a.comm, &request);

    if (code != MPI_SUCCESS)
        agree_mpi_error(e, code, "duplicate the communicator");
    if (code != MPI_SUCCESS || agree_wait(&a, &request, "duplicate the communicator", e) != DELTAFS_OK) {
        free(j);
        return e->status;
    }
    MPI_Comm_set_errhandler(a.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(a.comm, &a.rank);
    MPI_Comm_size(a.comm, &a.ranks);
    a.name = a.rank;
    struct error own = {0};
    if (j) {
        j->sizes = calloc((size_t)a.ranks, sizeof *j->sizes);
        j->counts = calloc((size_t)a.ranks, sizeof *j->counts);
        j->places = calloc((size_t)a.ranks, sizeof *j->places);
        j->agree.comm = MPI_COMM_NULL;
    }
    if (!j || !j->sizes || !j->counts || !j->places)
        error_no_memory(&own, sizeof *j + (size_t)a.ranks * 16, "a file's handle");
    if (agree_status(&a, &own) != DELTAFS_OK) {
        *e = own;
        if (j)
            logical_job_destroy(j);
        MPI_Comm_free(&a.comm);
        return own.status;
    }
    j->agree = a;
    *out = j;
    return DELTAFS_OK;
}

/* ---- Opening ---- */

/* Rank 0's call, as text: the path, then name and value of each option. */
static int call_encode(const char *path, const deltafs_options *o, struct bytes *out, struct error *e)
{
    const struct deltafs_option_info *row;
    int status = bytes_append(out, path, strlen(path) + 1, e);

    for (size_t i = 0; (row = deltafs_option_at(i)) && status == DELTAFS_OK; i++) {
        const char *value;
        deltafs_options_get(o, row->name, &value);
        status = bytes_append(out, value, strlen(value) + 1, e);
    }
    return status;
}

static int call_decode(const struct bytes *in, deltafs_options *o, struct error *e)
{
    const struct deltafs_option_info *row;
    const char *text = (const char *)in->buffer.bytes + strlen((const char *)in->buffer.bytes) + 1;

    for (size_t i = 0; (row = deltafs_option_at(i)); i++) {
        if (deltafs_options_set(o, row->name, text) != DELTAFS_OK) {
            *e = *deltafs_thread_error();
            return e->status;
        }
        text += strlen(text) + 1;
    }
    return DELTAFS_OK;
}

/* Collective: rank 0's call to all; `o` gets its options. */
static int call_share(struct logical_job *j, const char *path, int *flags, const deltafs_options *given,
                      deltafs_options *o, struct bytes *call, struct error *e)
{
    struct error own = {0};
    uint64_t head[2] = {0, (uint64_t)(unsigned)*flags};

    if (j->agree.rank == 0 && call_encode(path, given ? given : o, call, &own) == DELTAFS_OK)
        head[0] = call->used;
    int status = agree_broadcast(&j->agree, head, sizeof head, e);
    if (status == DELTAFS_OK)
        buffer_reserve(&call->buffer, head[0], "a path", &own);
    if (status == DELTAFS_OK && agree_status(&j->agree, &own) != DELTAFS_OK) {
        *e = own;
        status = own.status;
    }
    if (status == DELTAFS_OK)
        status = group_broadcast_from(j, 0, call->buffer.bytes, head[0], e);
    call->used = head[0];
    *flags = (int)(unsigned)head[1];
    if (status == DELTAFS_OK)
        call_decode(call, o, &own);
    if (status == DELTAFS_OK && agree_status(&j->agree, &own) != DELTAFS_OK) {
        *e = own;
        status = own.status;
    }
    return status;
}

/* Rank 0: what the close needs of the opening. */
static int job_keep_call(struct logical_job *j, const char *path, const deltafs_options *o, struct error *e)
{
    j->path = strdup(path);
    if (!j->path)
        return error_no_memory(e, strlen(path), "a path");
    if (deltafs_options_create(&j->options) != DELTAFS_OK) {
        *e = *deltafs_thread_error();
        return e->status;
    }
    return deltafs_options_copy(j->options, o, e);
}

static int job_open_logical(struct logical_job *j, const char *path, int flags, const deltafs_options *given,
                            deltafs_logical **out, struct error *e)
{
    const struct logical_group group = logical_job_group(j);
    deltafs_options *o = NULL;
    struct bytes call = {{0}, 0};
    struct error own = {0};

    if (!out || (j->agree.rank == 0 && (!path || !*path || (flags & O_ACCMODE) == O_ACCMODE)))
        error_set(&own, DELTAFS_ERR_INVALID, "deltafs_mpi_logical_open: path, flags and out must be given");
    else if (deltafs_options_create(&o) != DELTAFS_OK)
        own = *deltafs_thread_error();
    else if (j->agree.rank == 0)
        job_keep_call(j, path, given ? given : o, &own);
    int status = agree_status(&j->agree, &own);
    *e = own;
    if (status == DELTAFS_OK)
        status = call_share(j, path, &flags, given, o, &call, e);
    if (status == DELTAFS_OK)
        status = deltafs_logical_open_group((const char *)call.buffer.bytes, flags, o, &group, out, e);
    deltafs_options_destroy(o);
    buffer_fini(&call.buffer);
    return status;
}

int deltafs_mpi_logical_open(MPI_Comm comm, const char *path, int flags, const deltafs_options *options,
                             deltafs_logical **out)
{
    struct error *e = deltafs_thread_error();
    struct logical_job *j;
    int status = logical_job_create(comm, &j, e);

    if (status != DELTAFS_OK)
        return status;
    status = job_open_logical(j, path, flags, options, out, e);
    if (status != DELTAFS_OK)
        logical_job_destroy(j);
    return status;
}

int deltafs_mpi_logical_close(deltafs_logical *f)
{
    struct error *e = deltafs_thread_error(), own = {0};

    if (!f || f->group.destroy != logical_job_destroy)
        return deltafs_logical_close(f);
    struct logical_job *j = f->group.ctx;
    uint64_t written[2] = {f->has_logs && f->mode != O_RDONLY, f->size};
    int is_read_only = f->mode == O_RDONLY;
    int asked = is_read_only ? DELTAFS_OK : agree_reduce(&j->agree, written, 2, MPI_MAX, &own);
    f->group.destroy = NULL;
    int status = deltafs_logical_close(f);
    if (status != DELTAFS_OK)
        own = *e;
    if (status == DELTAFS_OK && asked == DELTAFS_OK && written[0])
        status = keys_after_close(j, written[1], &own);
    logical_job_destroy(j);
    if (status != DELTAFS_OK)
        *e = own;
    return status;
}
