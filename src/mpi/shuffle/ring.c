#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include "base/simd_stream.h"
#include "mpi/rank_group.h"
#include "mpi/shuffle/ring.h"

#define SHARED_FOLDER "/dev/shm"
#define SHARED_SLACK  (64u << 10) /* bytes that MPI adds, about */
#define CACHE_PATH    "/sys/devices/system/cpu/cpu%zu/cache/index3/shared_cpu_list"

struct ring {
    _Alignas(RING_LINE) _Atomic uint64_t filled;  /* chunks, ever; the producer's */
    _Alignas(RING_LINE) _Atomic uint64_t emptied; /* the consumer's, as is: */
    int cache;                                    /* 0: not known; does not change once the ring is used */
    _Alignas(RING_LINE) uint8_t chunks[];
};

_Static_assert(sizeof(struct ring) == RING_HEADER, "plan.c computes with it");
_Static_assert(RING_LINE == STREAM_LINE, "a chunk is copied line by line");
_Static_assert(offsetof(struct ring, chunks) == RING_HEADER, "no chunk shares a line with a counter");

struct rings {
    const struct plan *plan;
    uint32_t rank;
    int cache; /* this rank's */
    uint32_t count;
    struct ring **out, **in;
    uint8_t *filling; /* of each ring that leads to others a chunk to fill */
    MPI_Win window;   /* MPI_WIN_NULL: alone on the node */
    int held;         /* a file that holds shared memory; -1: none */
};

/* One more than the first of the processors that share a cache with this one; 0 if the system does not tell. */
static int cache_of(size_t processor)
{
    char path[sizeof CACHE_PATH + 16];
    int first;

    snprintf(path, sizeof path, CACHE_PATH, processor);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    int found = fscanf(f, "%d", &first) == 1 && first >= 0 ? first + 1 : 0;
    fclose(f);
    return found;
}

/* Whether this system runs in a virtual machine: its processors may be moved about, to where they share no cache. */
static int is_virtual(void)
{
#ifdef __x86_64__
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c >> 31 & 1);
#else
    return 0;
#endif
}

int rings_cache(void)
{
    cpu_set_t set;
    int cache = 0;

    if (is_virtual() || sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        int its = CPU_ISSET(i, &set) ? cache_of(i) : cache;
        if (CPU_ISSET(i, &set) && (its == 0 || (cache != 0 && its != cache)))
            return 0;
        cache = its;
    }
    return cache;
}

/* A segment begins where MPI puts it; its rings at the next line. */
static struct ring *ring_at(uint8_t *segment, uint64_t ring_bytes, uint32_t i)
{
    uintptr_t begin = ((uintptr_t)segment + RING_LINE - 1) & ~(uintptr_t)(RING_LINE - 1);

    return (struct ring *)(begin + ring_bytes * i);
}

/* Find the rings that lead to others, in their segments. In all of them the rings have the same order. */
static int rings_find(struct rings *r, struct error *e)
{
    const struct router *router = &r->plan->router;
    uint32_t first = layout_first(&router->layout, layout_node(&router->layout, r->rank)), base = 0;

    for (enum router_stage stage = 0; stage < STAGES; stage++) {
        uint32_t n = stage_is_net(stage) ? 0 : router_peers(router, r->rank, stage);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t peer = router_peer(router, r->rank, stage, i);
            uint32_t own = router_peer_index(router, peer, stage, r->rank);
            MPI_Aint size;
            int unit;
            uint8_t *segment;
            int code = MPI_Win_shared_query(r->window, (int)(peer - first), &size, &unit, (void *)&segment);
            if (code != MPI_SUCCESS)
                return mpi_error(e, code, "find the memory of another rank");
            r->out[base + i] = ring_at(segment, plan_ring(r->plan), base + own);
        }
        base += n;
    }
    return DELTAFS_OK;
}

/* Hold `bytes` of shared memory by a file without a name; `all`: what the ranks of the node take together. */
static int rings_hold(struct rings *r, uint64_t bytes, uint64_t all, struct error *e)
{
    struct rlimit limit;
    int errnum = 0;

    if (access(SHARED_FOLDER, W_OK) != 0)
        return DELTAFS_OK; /* MPI shares memory in some other way */
    /* To go beyond the limit is a signal, which is the program's: so it is looked at first. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < all + SHARED_SLACK)
        errnum = EFBIG;
    else if ((r->held = open(SHARED_FOLDER, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) < 0)
        errnum = errno;
    else
        while ((errnum = posix_fallocate(r->held, 0, (off_t)(bytes + SHARED_SLACK))) == EINTR)
            continue;
    return errnum == 0 ? DELTAFS_OK : error_system(e, errnum, "share memory between ranks in", SHARED_FOLDER);
}

static void rings_let_go(struct rings *r)
{
    if (r->held >= 0)
        close(r->held);
    r->held = -1;
}

/* Of this rank's segment, which may begin anywhere. */
static uint64_t rings_bytes(const struct rings *r)
{
    return r->count * plan_ring(r->plan) + RING_LINE;
}

int rings_create(const struct plan *p, uint32_t rank, int cache, struct rings **out, struct error *e)
{
    struct rings *r = calloc(1, sizeof *r);

    if (!r)
        return error_no_memory(e, sizeof *r, "channels within a node");
    *r = (struct rings){.plan = p, .rank = rank, .cache = cache, .window = MPI_WIN_NULL, .held = -1};
    for (enum router_stage i = 0; i < STAGES; i++)
        r->count += stage_is_net(i) ? 0 : router_peers(&p->router, rank, i);
    r->out = calloc(r->count + 1u, sizeof(struct ring *));
    r->in = calloc(r->count + 1u, sizeof(struct ring *));
    /* Whole lines. */
    r->filling = aligned_alloc(RING_LINE, ((size_t)r->count * p->chunk / RING_LINE + 1) * RING_LINE);
    uint32_t ranks = layout_size(&p->router.layout, layout_node(&p->router.layout, rank));
    int status = DELTAFS_OK;
    if (!r->out || !r->in || !r->filling)
        status =
            error_no_memory(e, (size_t)r->count * (p->chunk + 2 * sizeof(struct ring *)), "channels within a node");
    else if (r->count > 0)
        status = rings_hold(r, rings_bytes(r), ranks * rings_bytes(r), e);
    if (status == DELTAFS_OK)
        *out = r;
    else
        rings_destroy(r, 0);
    return status;
}

int rings_share(struct rings *r, MPI_Comm node, struct error *e)
{
    uint8_t *segment;
    MPI_Info info;

    if (r->count == 0)
        return DELTAFS_OK; /* alone on the node */
    rings_let_go(r);
    /* Each rank's part on pages of its own, which it touches first: they lie near the one who reads from them. */
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    int code = MPI_Win_allocate_shared((MPI_Aint)rings_bytes(r), 1, info, node, (void *)&segment, &r->window);
    MPI_Info_free(&info);
    if (code != MPI_SUCCESS) {
        r->window = MPI_WIN_NULL;
        return mpi_error(e, code, "allocate memory that the ranks of a node share");
    }
    MPI_Win_set_errhandler(r->window, MPI_ERRORS_RETURN);
    memset(segment, 0, rings_bytes(r));
    for (uint32_t i = 0; i < r->count; i++) {
        r->in[i] = ring_at(segment, plan_ring(r->plan), i);
        r->in[i]->cache = r->cache;
    }
    return rings_find(r, e);
}

void rings_destroy(struct rings *r, int is_lost)
{
    if (!r)
        return;
    if (r->window != MPI_WIN_NULL && !is_lost)
        MPI_Win_free(&r->window);
    rings_let_go(r);
    free(r->out);
    free(r->in);
    free(r->filling);
    free(r);
}

static uint8_t *ring_chunk(const struct rings *r, struct ring *ring, uint64_t number)
{
    return ring->chunks + number % PLAN_CHUNKS * r->plan->chunk;
}

/* Whether the consumer finds in its cache what this rank leaves in its own. */
static int ring_is_near(const struct rings *r, const struct ring *ring)
{
    return !STREAM_IS_PAST_CACHES || (r->cache != 0 && ring->cache == r->cache);
}

uint8_t *ring_acquire(struct rings *r, uint32_t index)
{
    struct ring *ring = r->out[index];
    uint64_t filled = atomic_load_explicit(&ring->filled, memory_order_relaxed);

    if (filled - atomic_load_explicit(&ring->emptied, memory_order_acquire) >= PLAN_CHUNKS)
        return NULL;
    return ring_is_near(r, ring) ? ring_chunk(r, ring, filled) : r->filling + (size_t)index * r->plan->chunk;
}

void ring_send(struct rings *r, uint32_t index, uint32_t bytes)
{
    struct ring *ring = r->out[index];
    uint64_t filled = atomic_load_explicit(&ring->filled, memory_order_relaxed);

    if (!ring_is_near(r, ring))
        stream_copy(ring_chunk(r, ring, filled), r->filling + (size_t)index * r->plan->chunk, bytes);
    atomic_store_explicit(&ring->filled, filled + 1, memory_order_release);
}

const uint8_t *ring_peek(struct rings *r, uint32_t index)
{
    struct ring *ring = r->in[index];
    uint64_t emptied = atomic_load_explicit(&ring->emptied, memory_order_relaxed);

    if (atomic_load_explicit(&ring->filled, memory_order_acquire) == emptied)
        return NULL;
    return ring_chunk(r, ring, emptied);
}

void ring_release(struct rings *r, uint32_t index)
{
    struct ring *ring = r->in[index];

    atomic_store_explicit(&ring->emptied, atomic_load_explicit(&ring->emptied, memory_order_relaxed) + 1,
                          memory_order_release);
}
