/* The parts of the client API (deltafs_pool.h), for its own files. */
#ifndef DELTAFS_POOL_CLIENT_H
#define DELTAFS_POOL_CLIENT_H

#include <string.h>
#include <deltafs/deltafs_pool.h>
#include "pool/pool_link.h"
#include "pool/pool_path.h"

#define POOL_TRIES 64 /* of a sequence that another process disturbs */

struct deltafs_pool {
    struct pool_link link;
    unsigned users; /* of a shared one (pool_find.c) */
    struct deltafs_pool *next;
};

/* Whether nobody else uses the handle, which then is not shared any more. */
int pool_leave(struct deltafs_pool *p);

/* A path, and the server that has its name. */
struct pool_place {
    char path[POOL_PATH_MAX + 1];
    size_t n;
    uint32_t owner;
    int is_followed; /* it is where links have led */
};

/* Where the path leads that a call is given; links are followed later, if need be. */
int pool_place_set(struct deltafs_pool *p, struct pool_place *place, const char *path, struct error *e);
void pool_place_root(struct pool_place *place);
/* Go to the folder above; that of the root is the root. */
void pool_place_up(const struct deltafs_pool *p, struct pool_place *place);
/* Go to a name in the folder. */
int pool_place_add(const struct deltafs_pool *p, struct pool_place *place, const char *name, size_t n, struct error *e);
/* The folder that it is in. */
void pool_place_parent(const struct deltafs_pool *p, const struct pool_place *place, struct pool_place *out);

static inline struct pool_call pool_call_of(enum pool_op op, uint32_t server)
{
    return (struct pool_call){.request = {.op = op, .server = server}};
}
/* About a path, at its owner. */
struct pool_call pool_call_at(enum pool_op op, const struct pool_place *place);
/* About an entry, at the server that has its attributes. */
struct pool_call pool_call_id(enum pool_op op, uint64_t id);

/* Make one call. A negative status is returned, with a message about `name`; one that is no error is returned, too. */
int pool_ask(struct deltafs_pool *p, struct pool_call *c, const char *name, struct error *e);
/* The message for a status that a server has answered. */
int pool_refuse(int status, const char *name, struct error *e);

/* Create or link an entry: as pool_ask, but this server becomes a member of the folder first, if it is none. */
int pool_ask_in_folder(struct deltafs_pool *p, const struct pool_place *place, struct pool_call *c, struct error *e);

/* Another process has disturbed it so often. */
int pool_too_many_tries(const char *name, struct error *e);

/* What a request to look at a place finds to be a link. */
#define POOL_IS_LINK 16

/* A request about the place has failed with *status, or has found a link that is to be followed: POOL_IS_LINK. Returns
 * whether it is to be made again, since the path leads elsewhere: *place is changed then. Else *status is what is
 * wrong. `has_last`: a link that the path ends in is followed, too. */
int pool_follow(struct deltafs_pool *p, struct pool_place *place, int has_last, int *status, struct error *e);

/* Find what is at a place, through links. Only the id and the type are sure to be there. */
int pool_find(struct deltafs_pool *p, struct pool_place *place, int has_last, struct pool_attributes *out,
              struct error *e);
/* All attributes of an entry. */
int pool_look_id(struct deltafs_pool *p, uint64_t id, const char *name, struct pool_attributes *out, struct error *e);
int pool_stat_of(const struct pool_attributes *a, struct deltafs_pool_stat *out, const char *call, struct error *e);

/* Remove what is stored behind `size` bytes of a file that had `before`. The server of its attributes has begun.
 * `flags`: POOL_IS_REMOVED. */
int pool_cut(struct deltafs_pool *p, uint64_t id, uint64_t size, uint64_t before, uint32_t flags, const char *name,
             struct error *e);
#define POOL_SIZE_UNKNOWN UINT64_MAX
int pool_truncate(struct deltafs_pool *p, uint64_t id, uint64_t size, uint64_t before, const char *name,
                  struct error *e);

/* Remove a file that has no name any more. That it is gone already is fine. */
int pool_remove_inode(struct deltafs_pool *p, uint64_t id, const char *name, struct error *e);
int pool_rmdir(struct deltafs_pool *p, const struct pool_place *place, struct error *e);

/* As in deltafs_pool.h. */
int pool_list_open(struct deltafs_pool *p, const struct pool_place *place, deltafs_pool_list **out, struct error *e);
int pool_list_next(deltafs_pool_list *l, const struct deltafs_pool_entry **entry, struct error *e);

#endif
