#include <stdio.h>
#include <string.h>
#include "mpi/agree.h"

int agree_mpi_error(struct error *e, int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;

    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS)
        snprintf(text, sizeof text, "error %d", code);
    return error_set(e, DELTAFS_ERR_MPI, "MPI failed to %s: %s", what, text);
}

/* The same where ranks agree. */
static int agree_lose(const struct agree *a, int code, const char *what, struct error *e)
{
    if (a->lose)
        a->lose(a->arg);
    return agree_mpi_error(e, code, what);
}

static int agree_met(const struct agree *a)
{
    if (a->met)
        a->met(a->arg);
    return DELTAFS_OK;
}

int agree_wait(const struct agree *a, MPI_Request *request, const char *what, struct error *e)
{
    int done = 0;

    for (;;) {
        int code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return agree_lose(a, code, what, e);
        if (done)
            return agree_met(a);
        a->wait(a->arg);
    }
}

static int agree_check(const struct agree *a, struct error *e)
{
    return a->check ? a->check(a->arg, e) : DELTAFS_OK;
}

/* Where MPI is to work on `n` bytes: in the room, where they are copied to, or where they are. */
static void *agree_place(const struct agree *a, void *bytes, size_t n)
{
    return a->room && n <= sizeof a->room->bytes ? memcpy(a->room->bytes, bytes, n) : bytes;
}

/* Complete a collective call that MPI does at `place`. */
static int agree_complete(const struct agree *a, MPI_Request *request, const void *place, void *bytes, size_t n,
                          const char *what, struct error *e)
{
    int done = 0, code, status;

    if (place == bytes)
        return agree_wait(a, request, what, e);
    a->room->is_held = 1;
    while ((code = MPI_Test(request, &done, MPI_STATUS_IGNORE)) == MPI_SUCCESS && !done) {
        a->wait(a->arg);
        status = agree_check(a, e);
        if (status != DELTAFS_OK)
            return status;
    }
    if (code != MPI_SUCCESS)
        return agree_lose(a, code, what, e);
    a->room->is_held = 0;
    memcpy(bytes, place, n);
    return agree_met(a);
}

int agree_reduce(const struct agree *a, uint64_t *values, int n, MPI_Op op, struct error *e)
{
    MPI_Request request;
    size_t size = (size_t)n * sizeof *values;

    if (agree_check(a, e) != DELTAFS_OK)
        return e->status;
    void *place = agree_place(a, values, size);
    int code = MPI_Iallreduce(MPI_IN_PLACE, place, n, MPI_UINT64_T, op, a->comm, &request);
    return code == MPI_SUCCESS ? agree_complete(a, &request, place, values, size, "reduce", e)
                               : agree_lose(a, code, "reduce", e);
}

static int agree_broadcast_from(const struct agree *a, int root, void *bytes, int n, struct error *e)
{
    MPI_Request request;

    if (agree_check(a, e) != DELTAFS_OK)
        return e->status;
    void *place = agree_place(a, bytes, (size_t)n);
    int code = MPI_Ibcast(place, n, MPI_BYTE, root, a->comm, &request);
    return code == MPI_SUCCESS ? agree_complete(a, &request, place, bytes, (size_t)n, "broadcast", e)
                               : agree_lose(a, code, "broadcast", e);
}

int agree_broadcast(const struct agree *a, void *bytes, int n, struct error *e)
{
    return agree_broadcast_from(a, 0, bytes, n, e);
}

int agree_status(const struct agree *a, struct error *e)
{
    uint64_t none = (uint64_t)a->ranks, first = e->status != DELTAFS_OK ? (uint64_t)a->rank : none;
    struct error own = *e, failed;

    if (agree_reduce(a, &first, 1, MPI_MIN, &failed) != DELTAFS_OK) {
        *e = failed;
        return e->status;
    }
    if (first == none)
        return DELTAFS_OK;
    if (first == (uint64_t)a->rank && a->ranks > 1)
        snprintf(e->text, sizeof e->text, "rank %d: %.*s", a->name, ERROR_TEXT_MAX - 32, own.text);
    if (agree_broadcast_from(a, (int)first, e, sizeof *e, &failed) != DELTAFS_OK)
        *e = failed;
    return e->status;
}
