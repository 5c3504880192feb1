#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
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
    uint32_t chunk;
    int cache;             /* this rank's */
    uint32_t base[STAGES]; /* of a stage its first ring */
    uint32_t count;
    struct ring **out, **in;
    uint8_t *filling; /* of each ring that leads to others a chunk to fill */
    MPI_Win window;   /* MPI_WIN_NULL: alone on the node */
    int held;         /* a file that holds shared memory; -1: none */
    uint64_t memory;
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

int rings_cache(void)
{
    cpu_set_t set;
    int cache = 0;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
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

/* Find the rings that lead to others, in their segments. */
static int rings_find(struct rings *r, const struct plan *p, uint32_t rank, struct error *e)
{
    const struct router *router = &p->router;
    uint32_t first = layout_first(&router->layout, layout_node(&router->layout, rank));

    for (int stage = 0; stage < STAGES; stage++) {
        uint32_t n = stage_is_net(stage) ? 0 : router_peers(router, rank, (enum router_stage)stage);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t peer = router_peer(router, rank, (enum router_stage)stage, i);
            uint32_t own = router_peer_index(router, peer, (enum router_stage)stage, rank);
            MPI_Aint size;
            int unit, code;
            uint8_t *segment;
            code = MPI_Win_shared_query(r->window, (int)(peer - first), &size, &unit, (void *)&segment);
            if (code != MPI_SUCCESS)
                return mpi_error(e, code, "find the memory of another rank");
            r->out[r->base[stage] + i] = ring_at(segment, plan_ring(p), r->base[stage] + own);
        }
    }
    return DELTAFS_OK;
}

/* Hold shared memory by a file without a name. */
static int rings_hold(struct rings *r, uint64_t bytes, uint64_t all, struct error *e)
{
    struct rlimit limit;

    if (access(SHARED_FOLDER, W_OK) != 0)
        return DELTAFS_OK; /* MPI shares memory in some other way */
    /* To go beyond the limit is a signal, which is the program's: so it is looked at first. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < all + SHARED_SLACK)
        return error_system(e, EFBIG, "share memory between ranks in", SHARED_FOLDER);
    r->held = open(SHARED_FOLDER, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (r->held < 0)
        return error_system(e, errno, "share memory between ranks in", SHARED_FOLDER);
    int errnum;
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

static int rings_allocate(struct rings *r, const struct plan *p, MPI_Comm node, struct error *e)
{
    uint64_t bytes = r->count * plan_ring(p) + RING_LINE;
    uint8_t *segment;
    MPI_Info info;

    /* Each rank's part on pages of its own, which it touches first: they lie near the one who reads from them. */
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    int code = MPI_Win_allocate_shared((MPI_Aint)bytes, 1, info, node, (void *)&segment, &r->window);
    MPI_Info_free(&info);
    if (code != MPI_SUCCESS) {
        r->window = MPI_WIN_NULL;
        return mpi_error(e, code, "allocate memory that the ranks of a node share");
    }
    MPI_Win_set_errhandler(r->window, MPI_ERRORS_RETURN);
    memset(segment, 0, bytes);
    for (uint32_t i = 0; i < r->count; i++) {
        r->in[i] = ring_at(segment, plan_ring(p), i);
        r->in[i]->cache = r->cache;
    }
    return DELTAFS_OK;
}

int rings_create(const struct plan *p, uint32_t rank, struct rings **out, struct error *e)
{
    struct rings *r = calloc(1, sizeof *r);

    if (!r)
        return error_no_memory(e, sizeof *r, "channels within a node");
    *r = (struct rings){.chunk = p->chunk, .window = MPI_WIN_NULL, .held = -1};
    for (int i = 0; i < STAGES; i++) {
        r->base[i] = r->count;
        r->count += stage_is_net(i) ? 0 : router_peers(&p->router, rank, (enum router_stage)i);
    }
    r->out = calloc(r->count + 1u, sizeof(struct ring *));
    r->in = calloc(r->count + 1u, sizeof(struct ring *));
    r->memory = r->count * (plan_ring(p) + p->chunk + 2 * sizeof(struct ring *));
    /* Whole lines. */
    r->filling = aligned_alloc(RING_LINE, ((size_t)r->count * p->chunk / RING_LINE + 1) * RING_LINE);
    if (!r->out || !r->in || !r->filling) {
        error_no_memory(e, (size_t)r->count * (p->chunk + 2 * sizeof(struct ring *)), "channels within a node");
        rings_destroy(r, 0);
        return e->status;
    }
    uint32_t ranks = layout_size(&p->router.layout, layout_node(&p->router.layout, rank));
    uint64_t bytes = r->count * plan_ring(p) + RING_LINE;
    if (r->count > 0 && rings_hold(r, bytes, ranks * bytes, e) != DELTAFS_OK) {
        rings_destroy(r, 0);
        return e->status;
    }
    *out = r;
    return DELTAFS_OK;
}

int rings_share(struct rings *r, const struct plan *p, uint32_t rank, int cache, MPI_Comm node, struct error *e)
{
    if (r->count == 0)
        return DELTAFS_OK; /* alone on the node */
    r->cache = cache;
    rings_let_go(r);
    int status = rings_allocate(r, p, node, e);
    return status == DELTAFS_OK ? rings_find(r, p, rank, e) : status;
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

uint64_t rings_memory(const struct rings *r)
{
    return r->memory;
}

static uint8_t *ring_chunk(const struct rings *r, struct ring *ring, uint64_t number)
{
    return ring->chunks + number % PLAN_CHUNKS * r->chunk;
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
    return ring_is_near(r, ring) ? ring_chunk(r, ring, filled) : r->filling + (size_t)index * r->chunk;
}

void ring_send(struct rings *r, uint32_t index, uint32_t bytes)
{
    struct ring *ring = r->out[index];
    uint64_t filled = atomic_load_explicit(&ring->filled, memory_order_relaxed);

    if (!ring_is_near(r, ring))
        stream_copy(ring_chunk(r, ring, filled), r->filling + (size_t)index * r->chunk, bytes);
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
