/* A server of a pool: the loop that serves clients and other servers, until a client stops the pool. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>
#include <deltafs/deltafs_mpi.h>
#include "base/options.h"
#include "base/sized.h"
#include "base/thread.h"
#include "mpi/rank_group.h"
#include "mpi/pool/pool_peers.h"
#include "pool/pool_spin.h"

#define BURST     64         /* requests of clients between two looks at other things */
#define WORK      50000      /* nanoseconds of work after which others may have the processor */
#define NAP       1000000    /* nanoseconds that it sleeps at most: nothing wakes it when a message comes */
#define LONG_IDLE 1000000000 /* nanoseconds without work after which it sleeps longer, */
#define LONG_NAP  2000000    /* to take no more than a hundredth of a processor */
#define ALONE_NAP 100000000  /* the same without other servers: clients wake it */
#define NAP_MIN   20000      /* nanoseconds */
#define ROUNDS    8          /* looks at MPI after work and sleep: a message takes some until it is there */
#define LOOK      1000000    /* how often a busy server lets clients in, and one looks for messages that expects none */
#define END_MAX   (UINT64_C(10) * 1000000000) /* how long it waits for the others' end */

struct pool_server {
    struct rank_group group;
    struct pool_point point;
    struct bytes nodes; /* POINT_NODE_ROOM bytes each */
    uint64_t number;    /* of the pool */
    struct pool_service service;
    struct pool_door *door;
    struct pool_peers *peers;
    int (*should_stop)(void *arg);
    void *arg;
    MPI_Request end;
    uint64_t ending; /* since when; 0: not */
    int has_ended;   /* all others are ending, too */
    int is_published;
    int is_alone; /* all servers are on this node, where clients ask each directly */
    struct pool_spin spin;
};

static void server_wait(void *arg)
{
    (void)arg;
    mpi_pause(0);
}

/* ---- Beginning ---- */

/* "%n" in a path is the server's number. */
static char *local_path(const char *text, uint32_t server)
{
    size_t room = strlen(text) + 32;
    char *out = malloc(room);
    const char *mark = strstr(text, "%n");

    if (out && mark)
        snprintf(out, room, "%.*s%u%s", (int)(mark - text), text, server, mark + 2);
    else if (out)
        snprintf(out, room, "%s", text);
    return out;
}

static int server_begin(struct pool_server *v, const struct deltafs_mpi_pool *o, struct error *e)
{
    uint32_t server = v->service.server;
    const struct pool_door_options door = {.server = server,
                                           .servers = v->service.servers,
                                           .number = v->number,
                                           .is_local = o->placement == DELTAFS_POOL_LOCAL,
                                           .memory = o->memory > 0 ? o->memory : POOL_MEMORY};
    char *local = local_path(o->local, server);
    int status = local ? DELTAFS_OK : error_no_memory(e, strlen(o->local), "a path");

    if (status == DELTAFS_OK)
        status = pool_point_init(&v->point, o->point, 1, e);
    if (status == DELTAFS_OK)
        status = pool_store_create(local, server, &v->service.store, e);
    if (status == DELTAFS_OK)
        status = pool_service_begin(&v->service, e);
    if (status == DELTAFS_OK)
        status = pool_door_open(&v->point, &door, &v->door, e);
    free(local);
    return status;
}

static int all_are_here(const char *nodes, uint32_t servers)
{
    for (uint32_t i = 1; i < servers; i++)
        if (strcmp(nodes, nodes + (size_t)i * POINT_NODE_ROOM) != 0)
            return 0;
    return 1;
}

/* Collective: open all that a server needs, and let clients in when all servers have. */
static int servers_begin(struct pool_server *v, const struct deltafs_mpi_pool *o, struct error *e)
{
    char node[POINT_NODE_ROOM] = "";

    v->service.server = (uint32_t)v->group.rank;
    v->service.servers = (uint32_t)v->group.ranks;
    gethostname(node, sizeof node - 1);
    if (v->group.rank == 0 && getrandom(&v->number, sizeof v->number, 0) != (ssize_t)sizeof v->number)
        v->number = thread_clock();
    if (mpi_broadcast(&v->group, &v->number, sizeof v->number, e) != DELTAFS_OK ||
        mpi_gather(&v->group, node, sizeof node, &v->nodes, e) != DELTAFS_OK)
        return e->status;
    const char *nodes = (const char *)v->nodes.buffer.bytes;
    if (v->service.servers > POOL_MOST)
        error_set(e, DELTAFS_ERR_INVALID, "a pool has at most %u servers", POOL_MOST);
    else
        server_begin(v, o, e);
    if (mpi_agree(&v->group, e) != DELTAFS_OK)
        return e->status;
    pool_peers_create(v->group.comm, &v->service, v->door, &v->peers, e);
    if (mpi_agree(&v->group, e) != DELTAFS_OK)
        return e->status;
    v->is_alone = all_are_here(nodes, v->service.servers);
    v->is_published = 1;
    pool_point_publish(&v->point, v->number, nodes, v->service.servers, e);
    return mpi_agree(&v->group, e);
}

/* ---- Serving ---- */

static int serve_clients(struct pool_server *v)
{
    struct pool_answer answer;
    struct pool_job *job;
    int n = 0;

    while (n < BURST && (job = pool_door_next(v->door))) {
        n++;
        if (job->request.server != v->service.server) {
            pool_peers_ask(v->peers, job);
            continue;
        }
        pool_service_do(&v->service, &job->request, job->bytes, job->bytes, &answer);
        pool_door_answer(v->door, job, &answer);
    }
    return n > 0;
}

/* Whether the server can end: all others are ending, too, and nothing is under way. */
static int server_is_done(struct pool_server *v)
{
    if (!v->ending && (v->service.is_stopping || (v->should_stop && v->should_stop(v->arg)))) {
        v->ending = thread_clock();
        if (MPI_Ibarrier(v->group.comm, &v->end) != MPI_SUCCESS)
            return 1;
    }
    if (v->ending && !v->has_ended)
        MPI_Test(&v->end, &v->has_ended, MPI_STATUS_IGNORE);
    return v->ending && ((v->has_ended && pool_peers_are_idle(v->peers)) || thread_clock() - v->ending > END_MAX);
}

/* How long to sleep after so long without work: an eighth of that, so that sleeping makes what asks many servers in
 * turn only a little slower. Clients wake the server; what comes from other nodes does not. */
static uint32_t nap(const struct pool_server *v, uint64_t idle)
{
    int is_long = v->is_alone || idle > LONG_IDLE;
    uint64_t most = v->ending ? NAP : v->service.servers == 1 ? ALONE_NAP : is_long ? LONG_NAP : NAP;

    if (v->is_alone || idle / 8 > most)
        return (uint32_t)most;
    return idle / 8 > NAP_MIN ? (uint32_t)(idle / 8) : NAP_MIN;
}

static int server_loop(struct pool_server *v, struct error *e)
{
    uint64_t now = thread_clock(), worked = now, looked = 0, polled = 0, given = 0;
    int rounds = ROUNDS, slack = prctl(PR_GET_TIMERSLACK), status = DELTAFS_OK;

    prctl(PR_SET_TIMERSLACK, 1); /* naps are as short as they should be, not 50 us longer */

    while (status == DELTAFS_OK && !server_is_done(v)) {
        int has_worked = serve_clients(v), has_moved = 0;
        if (!v->is_alone || v->ending || now - polled > LOOK) {
            status = pool_peers_poll(v->peers, &has_moved, e);
            polled = now;
        }
        pool_door_wake(v->door);
        now = thread_clock();
        if (has_worked || has_moved) {
            worked = now;
            rounds = ROUNDS;
        }
        uint32_t sleep = 0;
        if (worked != now || now - given > WORK) {
            given = now;
            if (!pool_spin(&v->spin, worked) && worked != now && (v->is_alone || rounds-- <= 0))
                sleep = nap(v, now - worked);
        }
        if (sleep > 0 || now - looked > LOOK) {
            pool_door_wait(v->door, sleep);
            v->service.clients = pool_door_clients(v->door);
            looked = now;
            rounds = sleep > 0 ? ROUNDS : rounds;
        }
    }
    prctl(PR_SET_TIMERSLACK, slack);
    return status;
}

/* ---- Ending ---- */

static void server_end(struct pool_server *v)
{
    if (v->is_published)
        pool_point_unpublish(&v->point); /* before a next pool can have begun here */
    pool_store_destroy(v->service.store);
    pool_locks_fini(&v->service.locks);
    pool_peers_destroy(v->peers);
    pool_door_close(v->door);
    if (v->point.folder)
        pool_point_remove(&v->point);
    pool_point_fini(&v->point);
    buffer_fini(&v->nodes.buffer);
}

int deltafs_mpi_pool_serve(MPI_Comm comm, const struct deltafs_mpi_pool *pool)
{
    struct error e = {.status = DELTAFS_OK};
    struct rank_group *group;
    struct deltafs_mpi_pool o;
    int status = pool ? sized_take(&o, pool, sizeof o, "deltafs_mpi_pool_serve", &e)
                      : error_set(&e, DELTAFS_ERR_INVALID, "deltafs_mpi_pool_serve: the struct must be given");

    if (status == DELTAFS_OK && (!o.local || !o.point))
        status = error_set(&e, DELTAFS_ERR_INVALID, "deltafs_mpi_pool_serve: local and point must be given");
    if (status == DELTAFS_OK)
        status = mpi_group_create(comm, sizeof(struct pool_server), server_wait, &group, &e);
    if (status != DELTAFS_OK)
        return error_of_thread(status, &e);
    struct pool_server *v = (struct pool_server *)(void *)group;
    v->should_stop = o.should_stop;
    v->arg = o.arg;
    status = servers_begin(v, &o, &e);
    if (status == DELTAFS_OK && o.started)
        o.started(o.arg);
    if (status == DELTAFS_OK)
        status = server_loop(v, &e);
    int is_lost = status == DELTAFS_OK && v->ending && !v->has_ended;
    server_end(v);
    if (is_lost)
        status = error_set(&e, DELTAFS_ERR_MPI, "other servers of the pool do not end");
    if (is_lost)
        mpi_group_lose(group, &e);
    mpi_group_destroy(group);
    return error_of_thread(status, &e);
}
