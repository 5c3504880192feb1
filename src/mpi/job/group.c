/* The collective operations of base/collective.h over MPI. */
#include <stdlib.h>
#include <string.h>
#include "mpi/job/group.h"
#include "mpi/job/job.h"

#define ROUND       (UINT64_C(1) << 30) /* bytes of one call: MPI's counts are ints */
#define FIRST_BYTES 4080                /* bytes of a broadcast that go with its size */
#define GATHER_MIN  (64u << 10)         /* bytes of a gather for which there is room before sizes are known */
#define FAILED      UINT64_MAX          /* instead of a size */

/* What rank 0 sends first. */
struct first_part {
    uint64_t has_failed, size;
    uint8_t bytes[FIRST_BYTES];
};

static int group_agree(void *ctx, struct error *e)
{
    struct mpi_group *g = ctx;

    return agree_status(&g->agree, e);
}

static int group_max(void *ctx, uint64_t *values, int n, struct error *e)
{
    struct mpi_group *g = ctx;

    return agree_reduce(&g->agree, values, n, MPI_MAX, e);
}

static int group_broadcast_from(struct mpi_group *g, int root, uint8_t *bytes, uint64_t n, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint64_t at = 0; at < n && status == DELTAFS_OK; at += ROUND) {
        MPI_Request request;
        int part = (int)(n - at < ROUND ? n - at : ROUND);
        int code = MPI_Ibcast(bytes + at, part, MPI_BYTE, root, g->agree.comm, &request);
        status = code == MPI_SUCCESS ? agree_wait(&g->agree, &request, "broadcast", e)
                                     : agree_mpi_error(e, code, "broadcast");
    }
    return status;
}

/* Rank 0 has failed: send its error to all. */
static int group_broadcast_error(struct mpi_group *g, const struct error *own, struct error *e)
{
    struct error verdict = {0};

    if (g->agree.rank == 0)
        verdict = *own;
    agree_status(&g->agree, &verdict);
    *e = verdict;
    return verdict.status;
}

/* Few bytes go in one call. */
int mpi_group_broadcast(struct mpi_group *g, struct bytes *b, struct error *e)
{
    struct first_part first = {.has_failed = (uint64_t)(e->status != DELTAFS_OK), .size = b->used};
    struct error own = *e;
    size_t n = b->used < sizeof first.bytes ? b->used : sizeof first.bytes;

    if (n > 0 && g->agree.rank == 0)
        memcpy(first.bytes, b->buffer.bytes, n);
    if (agree_broadcast(&g->agree, &first, sizeof first, e) != DELTAFS_OK)
        return e->status;
    if (first.has_failed)
        return group_broadcast_error(g, &own, e);
    if (own.status == DELTAFS_OK)
        buffer_reserve(&b->buffer, first.size, "a message of rank 0", &own);
    int is_long = first.size > sizeof first.bytes, status = is_long ? agree_status(&g->agree, &own) : DELTAFS_OK;
    *e = own;
    if (status != DELTAFS_OK)
        return status;
    n = is_long ? sizeof first.bytes : (size_t)first.size;
    b->used = own.status == DELTAFS_OK ? (size_t)first.size : 0;
    if (b->used > 0)
        memcpy(b->buffer.bytes, first.bytes, n);
    return is_long ? group_broadcast_from(g, 0, b->buffer.bytes + n, first.size - n, e) : DELTAFS_OK;
}

/* Gather all sizes; an error of any rank becomes that of all. */
static int group_gather_sizes(struct mpi_group *g, uint64_t n, struct error *e)
{
    uint64_t size = e->status == DELTAFS_OK ? n : FAILED;
    struct error own = *e;
    MPI_Request request;
    int code = MPI_Iallgather(&size, 1, MPI_UINT64_T, g->sizes, 1, MPI_UINT64_T, g->agree.comm, &request);
    int status =
        code == MPI_SUCCESS ? agree_wait(&g->agree, &request, "gather", e) : agree_mpi_error(e, code, "gather");

    for (int i = 0; i < g->agree.ranks && status == DELTAFS_OK; i++)
        if (g->sizes[i] == FAILED) {
            status = agree_status(&g->agree, &own);
            *e = own;
        }
    return status;
}

/* Gather all bytes in one call, if MPI can count them. */
static int group_gather_few(struct mpi_group *g, const void *mine, uint8_t *to, struct error *e)
{
    MPI_Request request;
    uint64_t at = 0;

    for (int i = 0; i < g->agree.ranks; i++) {
        g->counts[i] = (int)g->sizes[i];
        g->places[i] = (int)at;
        at += g->sizes[i];
    }
    int code = MPI_Iallgatherv(mine, g->counts[g->agree.rank], MPI_BYTE, to, g->counts, g->places, MPI_BYTE,
                               g->agree.comm, &request);
    return code == MPI_SUCCESS ? agree_wait(&g->agree, &request, "gather", e) : agree_mpi_error(e, code, "gather");
}

static int group_gather(void *ctx, const void *mine, size_t n, struct bytes *all, struct error *e)
{
    static const char what[] = "what other ranks wrote";
    struct mpi_group *g = ctx;
    uint64_t total = 0;

    if (e->status == DELTAFS_OK)
        buffer_reserve(&all->buffer, all->used + GATHER_MIN, what, e);
    int status = group_gather_sizes(g, n, e);
    if (status != DELTAFS_OK)
        return status;
    for (int i = 0; i < g->agree.ranks; i++)
        total += g->sizes[i];
    if (total > GATHER_MIN) {
        buffer_reserve(&all->buffer, all->used + total, what, e);
        status = agree_status(&g->agree, e);
    }
    if (status != DELTAFS_OK)
        return status;
    uint8_t *to = all->buffer.bytes + all->used;
    all->used += total;
    if (total <= ROUND)
        return total == 0 ? DELTAFS_OK : group_gather_few(g, mine, to, e);
    for (int i = 0; i < g->agree.ranks && status == DELTAFS_OK; i++) {
        if (i == g->agree.rank)
            memcpy(to, mine, n);
        status = group_broadcast_from(g, i, to, g->sizes[i], e);
        to += g->sizes[i];
    }
    return status;
}

/* Collective: the ranks of `comm`, over a duplicate of it. */
static int group_join(MPI_Comm comm, struct agree *a, struct error *e)
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

static int group_broadcast(void *ctx, struct bytes *b, struct error *e)
{
    return mpi_group_broadcast(ctx, b, e);
}

static const struct collective_calls group_calls = {
    .agree = group_agree, .max = group_max, .broadcast = group_broadcast, .gather = group_gather};

struct collective mpi_group_collective(struct mpi_group *g)
{
    return (struct collective){
        .calls = &group_calls, .ctx = g, .rank = (uint32_t)g->agree.rank, .ranks = (uint32_t)g->agree.ranks};
}

void mpi_group_fini(struct mpi_group *g)
{
    if (g->agree.comm != MPI_COMM_NULL)
        MPI_Comm_free(&g->agree.comm);
    free(g->sizes);
    free(g->counts);
    free(g->places);
}

int mpi_group_create(MPI_Comm comm, size_t size, struct mpi_group **out, struct error *e)
{
    struct agree a = {.wait = job_wait, .met = job_met, .comm = MPI_COMM_NULL};
    struct error own = {0};

    if (group_join(comm, &a, e) != DELTAFS_OK)
        return e->status;
    struct mpi_group *g = calloc(1, size);
    if (g) {
        g->sizes = calloc((size_t)a.ranks, sizeof *g->sizes);
        g->counts = calloc((size_t)a.ranks, sizeof *g->counts);
        g->places = calloc((size_t)a.ranks, sizeof *g->places);
        g->agree = a;
    }
    if (!g || !g->sizes || !g->counts || !g->places)
        error_no_memory(&own, (size_t)a.ranks * 16, "a file's handle");
    if (agree_status(&a, &own) == DELTAFS_OK) {
        *out = g;
        return DELTAFS_OK;
    }
    struct mpi_group none = {.agree = a};
    *e = own;
    mpi_group_fini(g ? g : &none);
    free(g);
    return e->status;
}
