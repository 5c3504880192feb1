/* Which pool a path leads into. Its files that are opened this way share one connection of the process, as each takes
 * memory of the server. */
#include <pthread.h>
#include <stdlib.h>
#include "base/options.h"
#include "base/path.h"
#include "pool/pool_client.h"

_Static_assert(DELTAFS_POOL_PATH_ROOM == POOL_PATH_MAX + 1, "a path has room");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct deltafs_pool *shared; /* a list */

/* What another user may have put there is no pool. */
static int is_point(const char *path, uint64_t *number)
{
    struct pool_point point;
    char *nodes = NULL;
    uint32_t servers;

    if (pool_point_init(&point, path, 0, error_ignored()) != DELTAFS_OK)
        return 0;
    int status = pool_point_read(&point, number, &nodes, &servers, error_ignored());
    free(nodes);
    pool_point_fini(&point);
    return status == DELTAFS_OK || status == DELTAFS_ERR_VERSION;
}

/* Under the lock. What is open of an earlier pool at this point is not for files of this one. */
static int open_shared(const char *point, uint64_t number, struct deltafs_pool **out, struct error *e)
{
    struct deltafs_pool *p = shared;
    int status = DELTAFS_OK;

    while (p && (p->link.number != number || strcmp(p->link.point.point, point) != 0))
        p = p->next;
    if (!p) {
        if (!(p = malloc(sizeof *p)))
            return error_no_memory(e, sizeof *p, "a handle of a pool");
        status = pool_link_open(&p->link, point, e);
        p->users = 0;
        p->next = shared;
        if (status == DELTAFS_OK)
            shared = p;
        else
            free(p);
    }
    if (status == DELTAFS_OK) {
        p->users++;
        *out = p;
    }
    return status;
}

int pool_leave(struct deltafs_pool *p)
{
    struct deltafs_pool **at = &shared;

    pthread_mutex_lock(&lock);
    while (*at && *at != p)
        at = &(*at)->next;
    int is_last = !*at || --p->users == 0;
    if (*at && is_last)
        *at = p->next;
    pthread_mutex_unlock(&lock);
    return is_last;
}

int deltafs_pool_open_path(const char *path, deltafs_pool **out, char *inside)
{
    struct error e = {.status = DELTAFS_OK};
    char whole[POOL_PATH_MAX + 1], point[POOL_PATH_MAX + 1];
    uint64_t number = 0;
    size_t n = 0;

    if (!path || !out || !inside)
        return error_of_thread(
            error_set(&e, DELTAFS_ERR_INVALID, "deltafs_pool_open_path: path, out and inside must be given"), &e);
    char *absolute = path_absolute(path);
    if (!absolute)
        return error_of_thread(error_no_memory(&e, strlen(path), "a path"), &e);
    /* What cannot be a path in a pool may be one of something else. */
    if (*absolute == '/' && pool_path_normalise(absolute, whole, &n, error_ignored()) != DELTAFS_OK)
        n = 0;
    free(absolute);
    memcpy(point, whole, n);
    point[n] = '\0';
    while (n > 1 && !is_point(point, &number)) {
        n = pool_path_parent(point, n);
        point[n] = '\0';
    }
    if (n == 0 || (n == 1 && !is_point(point, &number)))
        return error_of_thread(
            error_set(&e, DELTAFS_ERR_NOT_FOUND, "%s: no pool is mounted here, or above it, on this machine", path),
            &e);
    pthread_mutex_lock(&lock);
    int status = open_shared(point, number, out, &e);
    pthread_mutex_unlock(&lock);
    if (status == DELTAFS_OK)
        strcpy(inside, n == 1 ? whole : whole[n] ? whole + n : "/");
    return error_of_thread(status, &e);
}
