#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "mpi/rank_group.h"

#define IDLE_YIELDS 1000 /* pauses of a wait before a rank sleeps */
#define IDLE_NS     50000
#define ROUND       (UINT64_C(1) << 30)                  /* bytes of one call: MPI's counts are ints */
#define FIRST_BYTES (GROUP_ROOM - sizeof(uint64_t))      /* bytes of a broadcast that go with its size */
#define GATHER_MIN  (64u << 10)                          /* bytes of a gather for which there is memory at once */
#define FAILED      UINT64_MAX                           /* instead of a size */
#define GATHER_ROOM (sizeof(uint64_t) + 2 * sizeof(int)) /* bytes for each rank */
/* More than any MPI's version takes: MPI_MAX_LIBRARY_VERSION_STRING is that of the MPI that this is compiled with. */
#define VERSION_ROOM (16u << 10)

/* What rank 0 sends first. */
struct first_part {
    uint64_t size;
    uint8_t bytes[FIRST_BYTES];
};

_Static_assert(sizeof(struct error) <= FIRST_BYTES, "an error goes in the first part");

static const char gathered[] = "what other ranks wrote";

int mpi_error(struct error *e, int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;

    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "error %d", code);
    return error_set(e, DELTAFS_ERR_MPI, "MPI failed to %s: %s", what, text);
}

int mpi_check_kind(struct error *e)
{
#ifdef OPEN_MPI
    static const char mine[] = "Open MPI", *const others[] = {"MPICH", "MVAPICH", "Intel(R) MPI", "MPI VERSION"};
#else
    static const char mine[] = "MPICH", *const others[] = {"Open MPI", "IBM Spectrum MPI"};
#endif
    char text[VERSION_ROOM] = "";
    int length;

    PMPI_Get_library_version(text, &length);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strncmp(text, others[i], strlen(others[i])) == 0)
            return error_set(e, DELTAFS_ERR_MPI,
                             "this libdeltafs_mpi is built for %s, and the program runs with %.*s: compile the program "
                             "with the mpicc of %s, or use a DeltaFS that was configured with the program's MPI",
                             mine, (int)strcspn(text, ",\n"), text, mine);
    return DELTAFS_OK;
}

static _Thread_local unsigned idle; /* pauses since this thread last had something to do, or its wait began */

void mpi_pause(int has_moved)
{
    const struct timespec nap = {.tv_nsec = IDLE_NS};

    idle = has_moved ? 0 : idle + 1;
    if (idle > IDLE_YIELDS)
        nanosleep(&nap, NULL);
    else if (!has_moved)
        sched_yield();
}

void mpi_group_lose(struct rank_group *g, const struct error *e)
{
    if (!mpi_group_is_lost(g))
        g->lost = *e;
}

int mpi_group_check(const struct rank_group *g, struct error *e)
{
    if (mpi_group_is_lost(g))
        *e = g->lost;
    return g->lost.status;
}

int mpi_group_fail(struct rank_group *g, int code, const char *what, struct error *e)
{
    mpi_error(e, code, what);
    mpi_group_lose(g, e);
    return e->status;
}

/* Complete a call of MPI that returned `code`. If it works in the room, the wait can be abandoned. */
static int group_complete(struct rank_group *g, int code, MPI_Request *request, int is_in_room, const char *what,
                          struct error *e)
{
    int done = 0;

    g->is_held |= is_in_room && code == MPI_SUCCESS;
    while (code == MPI_SUCCESS && (code = MPI_Test(request, &done, MPI_STATUS_IGNORE)) == MPI_SUCCESS && !done) {
        g->wait(g->arg);
        if (is_in_room && mpi_group_check(g, e) != DELTAFS_OK)
            return e->status;
    }
    idle = 0;
    if (code != MPI_SUCCESS)
        return mpi_group_fail(g, code, what, e);
    if (is_in_room)
        g->is_held = 0;
    return DELTAFS_OK;
}

int mpi_reduce(struct rank_group *g, uint64_t *values, int n, MPI_Op op, struct error *e)
{
    size_t size = (size_t)n * sizeof *values;
    MPI_Request request;

    if (mpi_group_check(g, e) != DELTAFS_OK)
        return e->status;
    memcpy(g->room, values, size);
    int code = MPI_Iallreduce(MPI_IN_PLACE, g->room, n, MPI_UINT64_T, op, g->comm, &request);
    int status = group_complete(g, code, &request, 1, "reduce", e);
    if (status == DELTAFS_OK)
        memcpy(values, g->room, size);
    return status;
}

static int group_broadcast_from(struct rank_group *g, int root, void *bytes, uint64_t n, struct error *e)
{
    uint8_t *at = bytes;

    if (mpi_group_check(g, e) != DELTAFS_OK)
        return e->status;
    for (size_t part; n > 0; at += part, n -= part) {
        MPI_Request request;
        int is_in_room = n <= sizeof g->room;
        part = n < ROUND ? (size_t)n : ROUND;
        void *place = is_in_room ? memcpy(g->room, at, part) : at;
        int code = MPI_Ibcast(place, (int)part, MPI_BYTE, root, g->comm, &request);
        if (group_complete(g, code, &request, is_in_room, "broadcast", e) != DELTAFS_OK)
            return e->status;
        if (is_in_room)
            memcpy(at, place, part);
    }
    return DELTAFS_OK;
}

int mpi_broadcast(struct rank_group *g, void *bytes, size_t n, struct error *e)
{
    return group_broadcast_from(g, 0, bytes, n, e);
}

int mpi_agree(struct rank_group *g, struct error *e)
{
    uint64_t none = (uint64_t)g->ranks, first = e->status != DELTAFS_OK ? (uint64_t)g->rank : none;

    if (mpi_reduce(g, &first, 1, MPI_MIN, e) != DELTAFS_OK || first == none)
        return e->status;
    /* An earlier agreement may have named another rank. */
    if (first == (uint64_t)g->rank && g->ranks > 1 && strncmp(e->text, "rank ", 5) != 0)
        error_set(e, e->status, "rank %d: %s", g->name, e->text);
    group_broadcast_from(g, (int)first, e, sizeof *e, e);
    return e->status;
}

int mpi_broadcast_bytes(struct rank_group *g, struct bytes *b, struct error *e)
{
    struct first_part first = {.size = e->status == DELTAFS_OK ? b->used : FAILED};
    size_t n = b->used < sizeof first.bytes ? b->used : sizeof first.bytes;

    if (g->rank == 0 && first.size == FAILED)
        memcpy(first.bytes, e, sizeof *e);
    else if (g->rank == 0 && n > 0)
        memcpy(first.bytes, b->buffer.bytes, n);
    if (mpi_broadcast(g, &first, sizeof first, e) != DELTAFS_OK)
        return e->status;
    if (first.size == FAILED) {
        memcpy(e, first.bytes, sizeof *e);
        return e->status;
    }
    if (e->status == DELTAFS_OK)
        buffer_reserve(&b->buffer, first.size, "a message of rank 0", e);
    int is_long = first.size > sizeof first.bytes;
    if (is_long && mpi_agree(g, e) != DELTAFS_OK)
        return e->status;
    b->used = e->status == DELTAFS_OK ? (size_t)first.size : 0;
    n = b->used < sizeof first.bytes ? b->used : sizeof first.bytes;
    if (n > 0)
        memcpy(b->buffer.bytes, first.bytes, n);
    return is_long ? mpi_broadcast(g, b->buffer.bytes + n, b->used - n, e) : DELTAFS_OK;
}

/* Gather all sizes, and make room for all bytes; an error of any rank becomes that of all. */
static int group_gather_sizes(struct rank_group *g, uint64_t n, struct bytes *all, uint64_t *total, struct error *e)
{
    MPI_Request request;

    if (e->status == DELTAFS_OK)
        buffer_reserve(&all->buffer, all->used + GATHER_MIN, gathered, e);
    if (!g->sizes) {
        g->sizes = calloc((size_t)g->ranks, GATHER_ROOM);
        if (!g->sizes)
            error_no_memory(e, (size_t)g->ranks * GATHER_ROOM, "the sizes of messages");
        if (mpi_agree(g, e) != DELTAFS_OK) {
            free(g->sizes);
            g->sizes = NULL;
            return e->status;
        }
    }
    uint64_t size = e->status == DELTAFS_OK ? n : FAILED;
    int code = MPI_Iallgather(&size, 1, MPI_UINT64_T, g->sizes, 1, MPI_UINT64_T, g->comm, &request);
    if (group_complete(g, code, &request, 0, "gather", e) != DELTAFS_OK)
        return e->status;
    for (int i = 0; i < g->ranks; i++) {
        if (g->sizes[i] == FAILED)
            return mpi_agree(g, e);
        *total += g->sizes[i];
    }
    if (*total <= GATHER_MIN)
        return DELTAFS_OK;
    buffer_reserve(&all->buffer, all->used + *total, gathered, e);
    return mpi_agree(g, e);
}

/* Gather all bytes in one call, if MPI can count them. */
static int group_gather_few(struct rank_group *g, const void *mine, uint8_t *to, struct error *e)
{
    int *counts = (int *)(void *)(g->sizes + g->ranks), *places = counts + g->ranks, at = 0;
    MPI_Request request;

    for (int i = 0; i < g->ranks; i++) {
        counts[i] = (int)g->sizes[i];
        places[i] = at;
        at += counts[i];
    }
    int code = MPI_Iallgatherv(mine, counts[g->rank], MPI_BYTE, to, counts, places, MPI_BYTE, g->comm, &request);
    return group_complete(g, code, &request, 0, "gather", e);
}

int mpi_gather(struct rank_group *g, const void *mine, size_t n, struct bytes *all, struct error *e)
{
    uint64_t total = 0;
    int status = group_gather_sizes(g, n, all, &total, e);

    if (status != DELTAFS_OK || total == 0)
        return status;
    uint8_t *to = all->buffer.bytes + all->used;
    all->used += total;
    if (total <= ROUND)
        return group_gather_few(g, mine, to, e);
    for (int i = 0; i < g->ranks && status == DELTAFS_OK; i++) {
        if (i == g->rank)
            memcpy(to, mine, n);
        status = group_broadcast_from(g, i, to, g->sizes[i], e);
        to += g->sizes[i];
    }
    return status;
}

/* Rank 0: where each rank's bytes go to, and room for all of them. `sizes` is what GATHER_ROOM says. */
static int group_place(const struct rank_group *g, uint64_t *sizes, struct bytes *all, struct error *e)
{
    int *counts = (int *)(void *)(sizes + g->ranks), *places = counts + g->ranks;
    uint64_t total = 0;

    for (int i = 0; i < g->ranks && total <= ROUND; i++) {
        counts[i] = (int)sizes[i];
        places[i] = (int)total;
        total += sizes[i];
    }
    if (total > ROUND)
        return error_no_memory(e, (size_t)total, gathered);
    int status = buffer_reserve(&all->buffer, total + 1, gathered, e);
    all->used = status == DELTAFS_OK ? total : 0;
    return status;
}

int mpi_gather_first(struct rank_group *g, const void *mine, size_t n, struct bytes *all, struct error *e)
{
    uint64_t size = n, *sizes = g->rank == 0 ? calloc((size_t)g->ranks, GATHER_ROOM) : NULL;
    int *counts = (int *)(void *)(sizes ? sizes + g->ranks : NULL);
    MPI_Request request;

    if (n > ROUND || (g->rank == 0 && !sizes))
        error_no_memory(e, n > ROUND ? n : (size_t)g->ranks * GATHER_ROOM, gathered);
    int status = mpi_agree(g, e);
    if (status == DELTAFS_OK) {
        int code = MPI_Igather(&size, 1, MPI_UINT64_T, sizes, 1, MPI_UINT64_T, 0, g->comm, &request);
        status = group_complete(g, code, &request, 0, "gather", e);
    }
    if (status == DELTAFS_OK) {
        e->status = g->rank == 0 ? group_place(g, sizes, all, e) : DELTAFS_OK;
        status = mpi_agree(g, e);
    }
    if (status == DELTAFS_OK) {
        int code = MPI_Igatherv(mine, (int)n, MPI_BYTE, all->buffer.bytes, counts, counts ? counts + g->ranks : NULL,
                                MPI_BYTE, 0, g->comm, &request);
        status = group_complete(g, code, &request, 0, "gather", e);
    }
    free(sizes);
    return status;
}

static int group_max(struct rank_group *g, uint64_t *values, int n, struct error *e)
{
    return mpi_reduce(g, values, n, MPI_MAX, e);
}

/* A program that uses sessions alone has no MPI_COMM_WORLD. */
static int group_job(const struct rank_group *g)
{
    int has_world = 0, is_over = 0, job = g->ranks;

    if (MPI_Initialized(&has_world) == MPI_SUCCESS && has_world && MPI_Finalized(&is_over) == MPI_SUCCESS && !is_over)
        MPI_Comm_size(MPI_COMM_WORLD, &job);
    return job;
}

struct collective mpi_group_collective(struct rank_group *g)
{
    static const struct collective_calls calls = {
        .agree = mpi_agree, .max = group_max, .broadcast = mpi_broadcast_bytes, .gather = mpi_gather};

    return (struct collective){.calls = &calls,
                               .ctx = g,
                               .rank = (uint32_t)g->rank,
                               .ranks = (uint32_t)g->ranks,
                               .job = (uint32_t)group_job(g)};
}

struct rank_group mpi_group_part(const struct rank_group *g, MPI_Comm comm)
{
    struct rank_group part = *g;

    part.comm = comm;
    part.sizes = NULL;
    MPI_Comm_rank(comm, &part.rank);
    MPI_Comm_size(comm, &part.ranks);
    return part;
}

void mpi_group_end_part(struct rank_group *g, struct rank_group *part)
{
    if (mpi_group_is_lost(part))
        mpi_group_lose(g, &part->lost);
    free(part->sizes);
}

int mpi_group_create(MPI_Comm comm, size_t size, void (*wait)(void *arg), struct rank_group **out, struct error *e)
{
    struct rank_group g = {.wait = wait};
    MPI_Request request;

    if (mpi_check_kind(e) != DELTAFS_OK)
        return e->status;
    int code = MPI_Comm_idup(comm, &g.comm, &request);
    e->status = DELTAFS_OK;
    if (group_complete(&g, code, &request, 0, "duplicate the communicator", e) != DELTAFS_OK)
        return e->status;
    MPI_Comm_set_errhandler(g.comm, MPI_ERRORS_RETURN);
    g = mpi_group_part(&g, g.comm);
    g.name = g.rank;
    struct rank_group *created = calloc(1, size);
    if (!created)
        error_no_memory(e, size, "a handle");
    if (mpi_agree(&g, e) != DELTAFS_OK) {
        MPI_Comm_free(&g.comm);
        free(created);
        return e->status;
    }
    *created = g;
    *out = created;
    return DELTAFS_OK;
}

void mpi_group_destroy(struct rank_group *g)
{
    if (g->comm != MPI_COMM_NULL && !mpi_group_is_lost(g))
        MPI_Comm_free(&g->comm);
    free(g->sizes);
    if (!g->is_held)
        free(g);
}
