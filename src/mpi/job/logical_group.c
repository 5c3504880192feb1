/* A logical file that the ranks of a communicator open together: their collective calls, as the core asks for them. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>
#include "base/path.h"
#include "mpi/job/job.h"
#include "mpi/job/logical_group.h"

#define ROUND      (UINT64_C(1) << 30) /* bytes of one call: MPI's counts are ints */
#define TELL_MIN   4080                /* bytes that are told in one call */
#define GATHER_MIN (64u << 10)         /* bytes there is room for before it is known how many come */
#define FAILED     UINT64_MAX          /* instead of a size */

/* Rank 0's word. */
struct told {
    uint64_t has_failed, size;
    uint8_t bytes[TELL_MIN];
};

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

/* Rank 0 has failed: its error to all. */
static int group_broadcast_error(struct logical_job *j, const struct error *own, struct error *e)
{
    struct error verdict = {0};

    if (j->agree.rank == 0)
        verdict = *own;
    agree_status(&j->agree, &verdict);
    *e = verdict;
    return verdict.status;
}

/* What is short goes in one call. */
static int group_broadcast(void *ctx, struct bytes *b, struct error *e)
{
    struct logical_job *j = ctx;
    struct told told = {.has_failed = (uint64_t)(e->status != DELTAFS_OK), .size = b->used};
    struct error own = *e;
    size_t n = b->used < sizeof told.bytes ? b->used : sizeof told.bytes;

    if (n > 0 && j->agree.rank == 0)
        memcpy(told.bytes, b->buffer.bytes, n);
    if (agree_broadcast(&j->agree, &told, sizeof told, e) != DELTAFS_OK)
        return e->status;
    if (told.has_failed)
        return group_broadcast_error(j, &own, e);
    if (own.status == DELTAFS_OK)
        buffer_reserve(&b->buffer, told.size, "what rank 0 says", &own);
    int is_long = told.size > sizeof told.bytes, status = is_long ? agree_status(&j->agree, &own) : DELTAFS_OK;
    *e = own;
    if (status != DELTAFS_OK)
        return status;
    n = is_long ? sizeof told.bytes : (size_t)told.size;
    b->used = own.status == DELTAFS_OK ? (size_t)told.size : 0;
    if (b->used > 0)
        memcpy(b->buffer.bytes, told.bytes, n);
    return is_long ? group_broadcast_from(j, 0, b->buffer.bytes + n, told.size - n, e) : DELTAFS_OK;
}

/* Everybody's sizes, and whether all are well. */
static int group_gather_sizes(struct logical_job *j, uint64_t n, struct error *e)
{
    uint64_t size = e->status == DELTAFS_OK ? n : FAILED;
    struct error own = *e;
    MPI_Request request;
    int code = MPI_Iallgather(&size, 1, MPI_UINT64_T, j->sizes, 1, MPI_UINT64_T, j->agree.comm, &request);
    int status =
        code == MPI_SUCCESS ? agree_wait(&j->agree, &request, "gather", e) : agree_mpi_error(e, code, "gather");

    for (int i = 0; i < j->agree.ranks && status == DELTAFS_OK; i++)
        if (j->sizes[i] == FAILED) {
            status = agree_status(&j->agree, &own);
            *e = own;
        }
    return status;
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
    static const char what[] = "what other ranks wrote";
    struct logical_job *j = ctx;
    uint64_t total = 0;

    if (e->status == DELTAFS_OK)
        buffer_reserve(&all->buffer, all->used + GATHER_MIN, what, e);
    int status = group_gather_sizes(j, n, e);
    if (status != DELTAFS_OK)
        return status;
    for (int i = 0; i < j->agree.ranks; i++)
        total += j->sizes[i];
    if (total > GATHER_MIN) {
        buffer_reserve(&all->buffer, all->used + total, what, e);
        status = agree_status(&j->agree, e);
    }
    if (status != DELTAFS_OK)
        return status;
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

static void job_fini(struct logical_job *j)
{
    if (j->agree.comm != MPI_COMM_NULL)
        MPI_Comm_free(&j->agree.comm);
    free(j->sizes);
    free(j->counts);
    free(j->places);
    deltafs_options_destroy(j->options);
    free(j->path);
}

void logical_job_destroy(void *job)
{
    job_fini(job);
    free(job);
}

struct logical_group logical_job_group(struct logical_job *j)
{
    return (struct logical_group){.ctx = j,
                                  .rank = (uint32_t)j->agree.rank,
                                  .ranks = (uint32_t)j->agree.ranks,
                                  .agree = group_agree,
                                  .max = group_max,
                                  .tell = group_broadcast,
                                  .gather = group_gather,
                                  .destroy = logical_job_destroy};
}

/* Collective: the ranks of `comm`, over a duplicate of it. */
static int job_join(MPI_Comm comm, struct agree *a, struct error *e)
{
    MPI_Request request;
    int code = MPI_Comm_idup(comm, &a->comm, &request);

    if (code != MPI_SUCCESS)
        return agree_mpi_error(e, code, "duplicate the communicator");
    if (agree_wait(a, &request, "duplicate the communicator", e) != DELTAFS_OK)
        return e->status;
    MPI_Comm_set_errhandler(a->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(a->comm, &a->rank);
    MPI_Comm_size(a->comm, &a->ranks);
    a->name = a->rank;
    return DELTAFS_OK;
}

/* NULL, or one with what could be had. */
static struct logical_job *job_make(const struct agree *a)
{
    struct logical_job *j = calloc(1, sizeof *j);

    if (!j)
        return NULL;
    j->agree = *a;
    j->sizes = calloc((size_t)a->ranks, sizeof *j->sizes);
    j->counts = calloc((size_t)a->ranks, sizeof *j->counts);
    j->places = calloc((size_t)a->ranks, sizeof *j->places);
    return j;
}

static void job_check(const struct logical_job *j, struct error *e)
{
    if (!j->sizes || !j->counts || !j->places)
        error_no_memory(e, (size_t)j->agree.ranks * 16, "a file's handle");
}

int logical_job_create(MPI_Comm comm, struct logical_job **out, struct error *e)
{
    struct agree a = {.wait = job_wait, .met = job_met, .comm = MPI_COMM_NULL};
    struct error own = {0};

    if (job_join(comm, &a, e) != DELTAFS_OK)
        return e->status;
    struct logical_job *j = job_make(&a), none = {.agree = a};
    job_check(j ? j : &none, &own);
    if (agree_status(&a, &own) != DELTAFS_OK) {
        *e = own;
        job_fini(j ? j : &none);
        free(j);
        return own.status;
    }
    *out = j;
    return DELTAFS_OK;
}

/* ---- Opening ---- */

/* Rank 0's call: its flags, and as texts the path, as it is wherever another rank is, and the value of each option. */
static int call_encode(const char *path, int flags, const deltafs_options *o, struct bytes *out, struct error *e)
{
    const struct deltafs_option_info *row;
    int status = bytes_append(out, &flags, sizeof flags, e);

    if (status == DELTAFS_OK)
        status = bytes_append(out, path, strlen(path) + 1, e);
    for (size_t i = 0; (row = deltafs_option_at(i)) && status == DELTAFS_OK; i++) {
        const char *value;
        deltafs_options_get(o, row->name, &value);
        status = bytes_append(out, value, strlen(value) + 1, e);
    }
    return status;
}

static const char *call_path(const struct bytes *in)
{
    return in->used > 0 ? (const char *)in->buffer.bytes + sizeof(int) : NULL;
}

static int call_decode(const struct bytes *in, int *flags, deltafs_options *o, struct error *e)
{
    const struct deltafs_option_info *row;
    const char *text = call_path(in) + strlen(call_path(in)) + 1;

    memcpy(flags, in->buffer.bytes, sizeof *flags);
    for (size_t i = 0; (row = deltafs_option_at(i)); i++) {
        if (deltafs_options_set(o, row->name, text) != DELTAFS_OK) {
            *e = *deltafs_private_thread_error();
            return e->status;
        }
        text += strlen(text) + 1;
    }
    return DELTAFS_OK;
}

/* Rank 0: its call as the others get it. What stands beside the file of the rows in it will be looked at when it is
 * closed; what is wrong with that is said then. */
static int call_compose(const struct logical_job *j, int flags, const deltafs_options *given, deltafs_options *o,
                        struct bytes *call, struct error *e)
{
    if (given && deltafs_private_options_copy(o, given, e) != DELTAFS_OK)
        return e->status;
    if ((flags & O_ACCMODE) != O_RDONLY)
        deltafs_folder_options(j->path, o);
    *e = (struct error){0};
    return call_encode(j->path, flags, o, call, e);
}

/* Collective: rank 0's call to all; `o` gets its options. */
static int call_share(struct logical_job *j, int *flags, const deltafs_options *given, deltafs_options *o,
                      struct bytes *call, struct error *e)
{
    if (j->agree.rank == 0 && e->status == DELTAFS_OK)
        call_compose(j, *flags, given, o, call, e);
    int status = group_broadcast(j, call, e);
    if (status == DELTAFS_OK && e->status == DELTAFS_OK)
        call_decode(call, flags, o, e);
    return status;
}

/* Rank 0: what the close needs of the opening. */
static int job_keep_call(struct logical_job *j, const char *path, const deltafs_options *o, struct error *e)
{
    j->path = path_absolute(path);
    if (!j->path)
        return error_no_memory(e, strlen(path), "a path");
    if (deltafs_options_create(&j->options) != DELTAFS_OK) {
        *e = *deltafs_private_thread_error();
        return e->status;
    }
    int status = deltafs_private_options_copy(j->options, o, e);
    const char *given = deltafs_private_options_text(j->options, OPTION_INDEX);
    if (status != DELTAFS_OK || *given == '\0' || *given == '/')
        return status;
    char *index = path_absolute(given);
    if (!index)
        return error_no_memory(e, strlen(given), "a path");
    status = deltafs_options_set(j->options, "index", index);
    if (status != DELTAFS_OK)
        *e = *deltafs_private_thread_error();
    free(index);
    return status;
}

/* Whether rows are shared out by who wrote them, the same on all ranks: all have kept keys, and none has many times as
 * many to read back as it would have of equal shares. */
static int is_by_writer(const struct logical_job *j, const struct captured_keys *kept, const uint64_t written[3])
{
    uint64_t size = written[1], missed = written[2];

    return missed == 0 || (missed != deltafs_private_captured_keys_missed(NULL) &&
                           missed / 2 <= deltafs_private_captured_keys_rows(kept, size) / (uint64_t)j->agree.ranks);
}

/* Close the file, and index its rows if its options name a key. The job outlives the file for that. */
static int job_close_logical(deltafs_logical *f)
{
    struct error *e = deltafs_private_thread_error(), own = {0};
    struct logical_job *j = f->group.ctx;
    uint64_t written[3] = {f->has_logs && f->mode != O_RDONLY, f->size,
                           deltafs_private_captured_keys_missed(f->captured)};
    int is_read_only = f->mode == O_RDONLY;
    struct captured_keys *kept = f->captured;
    struct key_writer own_writes = {.session = f->session.number, .writer = f->group.rank, .keys = kept};
    memcpy(own_writes.uuid, f->container.uuid, sizeof own_writes.uuid);
    int asked = is_read_only ? DELTAFS_OK : agree_reduce(&j->agree, written, 3, MPI_MAX, &own);
    f->group.destroy = NULL;
    f->captured = NULL;
    int status = deltafs_private_logical_close(f);
    if (status != DELTAFS_OK)
        own = *e;
    else if (asked != DELTAFS_OK)
        status = asked;
    else if (written[0])
        status = keys_after_close(j, written[1], is_by_writer(j, kept, written) ? &own_writes : NULL, &own);
    deltafs_private_captured_keys_destroy(kept);
    logical_job_destroy(j);
    if (status != DELTAFS_OK)
        *e = own;
    return status;
}

/* What of this rank's goes wrong here, the opening takes to all. */
static int job_open_logical(struct logical_job *j, const char *path, int flags, const deltafs_options *given,
                            deltafs_logical **out, struct error *e)
{
    struct logical_group group = logical_job_group(j);
    deltafs_options *o = NULL;
    struct bytes call = {{0}, 0};

    group.close = job_close_logical;
    e->status = DELTAFS_OK;
    if (!out || (j->agree.rank == 0 && (!path || !*path || (flags & O_ACCMODE) == O_ACCMODE)))
        error_set(e, DELTAFS_ERR_INVALID, "deltafs_mpi_logical_open: path, flags and out must be given");
    else if (deltafs_options_create(&o) != DELTAFS_OK)
        *e = *deltafs_private_thread_error();
    else
        job_check(j, e);
    if (e->status == DELTAFS_OK && j->agree.rank == 0)
        job_keep_call(j, path, given ? given : o, e);
    int status = call_share(j, &flags, given, o, &call, e);
    if (status == DELTAFS_OK)
        status =
            deltafs_private_logical_open_group(j->agree.rank == 0 ? path : call_path(&call), flags, o, &group, out, e);
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
    struct agree a = {.wait = job_wait, .met = job_met, .comm = MPI_COMM_NULL};

    if (job_join(comm, &a, e) != DELTAFS_OK)
        return e->status;
    struct logical_job *j = job_make(&a), none = {.agree = a};
    int status = job_open_logical(j ? j : &none, path, flags, options, out, e);
    if (status != DELTAFS_OK) {
        job_fini(j ? j : &none);
        free(j);
    }
    return status;
}
