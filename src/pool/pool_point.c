#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/hash.h"
#include "base/path.h"
#include "pool/pool_path.h"
#include "pool/pool_point.h"
#include "pool/pool_protocol.h"

#define SERVERS_MAGIC "deltafs pool"

static int no_pool(const char *point, struct error *e)
{
    return error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: no pool is mounted here on this machine", point);
}

/* Only this user can be in the folder, or make one of its name. */
static int folder_check(const char *path, struct error *e)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return errno == ENOENT ? (e->status = DELTAFS_ERR_NOT_FOUND) : error_system(e, errno, "use", path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
        return error_set(e, DELTAFS_ERR_IO,
                         "%s: is no folder of this user with mode 700; remove it, or set DELTAFS_POOL_DIR to another",
                         path);
    return DELTAFS_OK;
}

static int folder_make(const char *path, int is_created, struct error *e)
{
    if (is_created && mkdir(path, 0700) != 0 && errno != EEXIST)
        return error_system(e, errno, "create the folder", path);
    return folder_check(path, e);
}

/* The path from the root as a text: what is at the mount point does not matter, and may be the pool itself. */
static int point_name(const char *point, char **out, struct error *e)
{
    char normal[POOL_PATH_MAX + 1];
    size_t n;
    char *absolute = path_absolute(point);
    int status =
        absolute ? pool_path_normalise(absolute, normal, &n, e) : error_no_memory(e, strlen(point), "a mount point");

    free(absolute);
    if (status == DELTAFS_OK && !(*out = strdup(normal)))
        status = error_no_memory(e, n, "a mount point");
    return status;
}

int pool_point_init(struct pool_point *p, const char *point, int is_created, struct error *e)
{
    const char *given = getenv("DELTAFS_POOL_DIR");
    char above[PATH_MAX], folder[PATH_MAX];
    int n, status = point_name(point, &p->point, e);

    p->folder = NULL;
    if (status != DELTAFS_OK)
        return status;
    if (given && *given)
        n = snprintf(above, sizeof above, "%s", given);
    else
        n = snprintf(above, sizeof above, "/tmp/deltafs-pool-%u", (unsigned)geteuid());
    uint64_t hash = hash_bytes(p->point, strlen(p->point));
    if (n >= PATH_MAX || snprintf(folder, sizeof folder, "%s/%016llx", above, (unsigned long long)hash) >= PATH_MAX)
        error_system(e, ENAMETOOLONG, "use", "DELTAFS_POOL_DIR");
    else if (folder_make(above, is_created, e) == DELTAFS_OK && folder_make(folder, is_created, e) == DELTAFS_OK &&
             !(p->folder = strdup(folder)))
        error_no_memory(e, strlen(folder), "a mount point");
    if (p->folder)
        return DELTAFS_OK;
    status = e->status == DELTAFS_ERR_NOT_FOUND ? no_pool(point, e) : e->status;
    pool_point_fini(p);
    return status;
}

void pool_point_fini(struct pool_point *p)
{
    free(p->point);
    free(p->folder);
    *p = (struct pool_point){.point = NULL};
}

int pool_point_socket(const struct pool_point *p, uint32_t server, struct sockaddr_un *out, struct error *e)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(out->sun_path, sizeof out->sun_path, "%s/%u", p->folder, server);
    if (n < (int)sizeof out->sun_path)
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_NAME, "%s: is too long for a socket; set DELTAFS_POOL_DIR to a shorter path",
                     p->folder);
}

static int file_path(const struct pool_point *p, const char *name, char path[PATH_MAX], struct error *e)
{
    if (snprintf(path, PATH_MAX, "%s/%s", p->folder, name) < PATH_MAX)
        return DELTAFS_OK;
    return error_system(e, ENAMETOOLONG, "use", p->folder);
}

int pool_point_publish(const struct pool_point *p, uint64_t number, const char *nodes, uint32_t servers,
                       struct error *e)
{
    char path[PATH_MAX], aside[PATH_MAX], name[32];

    snprintf(name, sizeof name, "servers.%ld", (long)getpid());
    if (file_path(p, "servers", path, e) != DELTAFS_OK || file_path(p, name, aside, e) != DELTAFS_OK)
        return e->status;
    FILE *f = fopen(aside, "we");
    if (!f)
        return error_system(e, errno, "create", aside);
    fprintf(f, SERVERS_MAGIC " %d %u %016" PRIx64 " %s\n", POOL_VERSION, servers, number, p->point);
    for (uint32_t i = 0; i < servers; i++)
        fprintf(f, "%s\n", nodes + (size_t)i * POINT_NODE_ROOM);
    int is_written = fflush(f) == 0 && !ferror(f);
    if (fclose(f) != 0 || !is_written || rename(aside, path) != 0) {
        int errnum = errno;
        unlink(aside);
        return error_system(e, errnum, "write", path);
    }
    return DELTAFS_OK;
}

static int members_read(FILE *f, const struct pool_point *p, const char *path, uint64_t *number, char **nodes,
                        uint32_t *servers, struct error *e)
{
    char line[PATH_MAX + 64];
    unsigned version, count;
    int at = 0;

    if (!fgets(line, sizeof line, f) ||
        sscanf(line, SERVERS_MAGIC " %u %u %" SCNx64 " %n", &version, &count, number, &at) != 3 || at == 0 ||
        count == 0 || count > POOL_MOST)
        return error_set(e, DELTAFS_ERR_IO, "%s: is no list of servers", path);
    line[strcspn(line, "\n")] = '\0';
    if (version != POOL_VERSION)
        return error_set(e, DELTAFS_ERR_VERSION, "%s: the pool's servers are of another version of DeltaFS", p->point);
    if (strcmp(line + at, p->point) != 0)
        return error_set(e, DELTAFS_ERR_IO, "%s: is of another mount point", path);
    char *out = calloc(count, POINT_NODE_ROOM);
    if (!out)
        return error_no_memory(e, (size_t)count * POINT_NODE_ROOM, "the names of nodes");
    for (uint32_t i = 0; i < count; i++) {
        char *node = out + (size_t)i * POINT_NODE_ROOM;
        if (!fgets(node, POINT_NODE_ROOM, f)) {
            free(out);
            return error_set(e, DELTAFS_ERR_IO, "%s: is incomplete", path);
        }
        node[strcspn(node, "\n")] = '\0';
    }
    *nodes = out;
    *servers = count;
    return DELTAFS_OK;
}

int pool_point_read(const struct pool_point *p, uint64_t *number, char **nodes, uint32_t *servers, struct error *e)
{
    char path[PATH_MAX];

    if (file_path(p, "servers", path, e) != DELTAFS_OK)
        return e->status;
    FILE *f = fopen(path, "re");
    if (!f)
        return errno == ENOENT ? no_pool(p->point, e) : error_system(e, errno, "open", path);
    int status = members_read(f, p, path, number, nodes, servers, e);
    fclose(f);
    return status;
}

void pool_point_unpublish(const struct pool_point *p)
{
    char path[PATH_MAX];

    if (file_path(p, "servers", path, error_ignored()) == DELTAFS_OK)
        unlink(path);
}

void pool_point_remove(const struct pool_point *p)
{
    rmdir(p->folder);
}
