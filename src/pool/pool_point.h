/* Where a mount point's servers and clients on a machine find each other: a folder that only the user can enter,
 * $DELTAFS_POOL_DIR or /tmp/deltafs-pool-UID, and in it one for each mount point, with a socket for each server that
 * runs on this machine, and a file that names all servers of the pool. */
#ifndef DELTAFS_POOL_POINT_H
#define DELTAFS_POOL_POINT_H

#include <stdio.h>
#include <sys/un.h>
#include "base/error.h"

#define POINT_NODE_ROOM 66 /* HOST_NAME_MAX, and in the list a newline and the end */

struct pool_point {
    char *point;  /* an absolute path */
    char *folder; /* of this mount point */
};

/* The names of things for a mount point; `is_created`: create the folders. DELTAFS_ERR_NOT_FOUND: there is no pool.
 * DELTAFS_ERR_IO: another user could get at them. End with pool_point_fini. */
int pool_point_init(struct pool_point *p, const char *point, int is_created, struct error *e);
void pool_point_fini(struct pool_point *p);

/* The address of a server's socket. */
int pool_point_socket(const struct pool_point *p, uint32_t server, struct sockaddr_un *out, struct error *e);

/* Publish the pool's number, which another one at this mount point, before it or behind it, does not have, and the
 * names of the nodes of `servers` servers, POINT_NODE_ROOM bytes each. */
int pool_point_publish(const struct pool_point *p, uint64_t number, const char *nodes, uint32_t servers,
                       struct error *e);
/* Read them: *nodes is to be freed. DELTAFS_ERR_NOT_FOUND: there is no pool. */
int pool_point_read(const struct pool_point *p, uint64_t *number, char **nodes, uint32_t *servers, struct error *e);
/* Remove what this server has published: the pool ends. */
void pool_point_unpublish(const struct pool_point *p);
/* Remove the folder, if it is empty. */
void pool_point_remove(const struct pool_point *p);

#endif
