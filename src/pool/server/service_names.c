/* Names in a server of a pool, and the attributes and bytes that go with them. */
#include <string.h>
#include <sys/stat.h>
#include "pool/server/pool_service.h"
#include "pool/server/service_parts.h"

/* The attributes of a name, if they are here. */
static int name_attributes(struct service_call *c, const struct pool_name *name, struct error *e)
{
    struct pool_inode inode;

    c->answer->attributes = (struct pool_attributes){.id = name->id, .mode = name->mode};
    if (pool_id_server(name->id) != c->v->server)
        return DELTAFS_OK;
    int status = pool_store_inode(c->store, name->id, &inode, e);
    if (status == DELTAFS_OK)
        c->answer->attributes = inode.attributes;
    return status;
}

int service_lookup(struct service_call *c, struct error *e)
{
    struct pool_name name;
    int status = pool_store_find(c->store, c->path, c->n, &name, e);

    return status == DELTAFS_OK ? name_attributes(c, &name, e) : status;
}

/* Create a name and its attributes. */
static int entry_create(struct service_call *c, uint32_t mode, uint64_t size, uint32_t holder, struct error *e)
{
    const struct pool_request *r = c->r;

    if (c->n == 1)
        return e->status = DELTAFS_ERR_EXISTS;
    int status = service_folder_check(c, e);
    if (status != DELTAFS_OK)
        return status;
    const uint64_t id = pool_store_number(c->store, holder);
    struct pool_name new = {.id = id, .mode = mode & S_IFMT, .links = 1}, name = new;
    status = pool_store_put(c->store, c->path, c->n, &name, 1, e);
    if (status == DELTAFS_ERR_EXISTS) {
        status = name_attributes(c, &name, e);
        if (status != DELTAFS_ERR_NOT_FOUND)
            return error_first(status, e->status = DELTAFS_ERR_EXISTS);
        /* A rename was interrupted, and then the file was removed by its other name. */
        status = pool_store_put(c->store, c->path, c->n, &new, 0, e);
    }
    if (status != DELTAFS_OK)
        return status;
    const int64_t time = service_now();
    struct pool_inode inode = {.attributes = {.id = id,
                                              .size = size,
                                              .mode = mode & (S_IFMT | SERVICE_MODE_BITS),
                                              .uid = r->uid,
                                              .gid = r->gid,
                                              .mtime = time,
                                              .atime = time,
                                              .ctime = time,
                                              .generation = 1}};
    status = pool_store_inode_put(c->store, &inode, 1, e);
    if (status != DELTAFS_OK)
        pool_store_remove(c->store, c->path, c->n, error_ignored());
    c->answer->attributes = inode.attributes;
    return status;
}

int service_create(struct service_call *c, struct error *e)
{
    const struct pool_request *r = c->r;

    if (r->value > c->v->servers)
        return error_set(e, DELTAFS_ERR_INVALID, "there is no such server");
    if (!S_ISREG(r->mode) && !S_ISDIR(r->mode))
        return error_set(e, DELTAFS_ERR_INVALID, "a bad type");
    return entry_create(c, r->mode, S_ISDIR(r->mode) ? r->id : 0, (uint32_t)r->value, e);
}

/* Another entry gets this name; what had it is answered: number 0 is nothing. */
int service_link(struct service_call *c, struct error *e)
{
    const struct pool_request *r = c->r;
    struct pool_name name = {.id = r->id, .mode = r->mode & S_IFMT, .links = 1}, old = {.id = 0};

    if (c->n == 1)
        return error_set(e, DELTAFS_ERR_BUSY, "the root cannot be replaced");
    int status = service_folder_check(c, e);
    if (status == DELTAFS_OK) {
        status = pool_store_find(c->store, c->path, c->n, &old, e);
        status = status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
    }
    if (status == DELTAFS_OK && S_ISDIR(old.mode))
        return e->status = DELTAFS_ERR_FOLDER;
    if (old.id == name.id)
        name.links += old.links;
    if (status == DELTAFS_OK)
        status = pool_store_put(c->store, c->path, c->n, &name, 0, e);
    c->answer->attributes = (struct pool_attributes){.id = old.id, .mode = old.mode};
    return status;
}

/* A rename comes too late. If another process has given the entry the same name, this stays. */
int service_restore(struct service_call *c, struct error *e)
{
    struct pool_name name;
    int status = pool_store_find(c->store, c->path, c->n, &name, e);

    if (status != DELTAFS_OK)
        return status;
    if (name.id != c->r->id || S_ISDIR(name.mode))
        return POOL_HAS_CHANGED;
    if (name.links <= 1 && c->r->value == 0)
        return pool_store_remove(c->store, c->path, c->n, e);
    if (name.links > 1) {
        name.links--;
    } else {
        name = (struct pool_name){.id = c->r->value, .mode = c->r->mode & S_IFMT, .links = 1};
        c->answer->value = 1;
    }
    return pool_store_put(c->store, c->path, c->n, &name, 0, e);
}

/* Remove the attributes of a file or a link, and the bytes that are here. */
static int entry_remove(struct service_call *c, uint64_t id, struct error *e)
{
    struct pool_inode inode;
    int status = pool_store_inode(c->store, id, &inode, e);

    if (status != DELTAFS_OK)
        return status;
    if (S_ISDIR(inode.attributes.mode))
        return e->status = DELTAFS_ERR_FOLDER;
    c->answer->attributes = inode.attributes;
    status = pool_store_inode_remove(c->store, &inode, e);
    if (status == DELTAFS_OK)
        pool_locks_forget(&c->v->locks, id);
    return status == DELTAFS_OK && inode.attributes.size > 0 ? pool_store_cut(c->store, id, 0, NULL, e) : status;
}

int service_remove(struct service_call *c, struct error *e)
{
    return entry_remove(c, c->r->id, e);
}

/* The target is stored as the bytes of a file would be, and always on the server that has the attributes. */
int service_symlink(struct service_call *c, struct error *e)
{
    if (c->after_n == 0 || memchr(c->after, '\0', c->after_n))
        return error_set(e, DELTAFS_ERR_INVALID, "a bad target");
    int status = entry_create(c, S_IFLNK | 0777, c->after_n, 0, e);
    if (status != DELTAFS_OK)
        return status;
    uint64_t id = c->answer->attributes.id;
    status = pool_store_write(c->store, id, 0, c->after, c->after_n, e);
    if (status != DELTAFS_OK) {
        pool_store_remove(c->store, c->path, c->n, error_ignored());
        entry_remove(c, id, error_ignored());
    }
    return status;
}

int service_unlink(struct service_call *c, struct error *e)
{
    struct pool_name name;
    int status = pool_store_find(c->store, c->path, c->n, &name, e);

    if (status != DELTAFS_OK)
        return status;
    if (S_ISDIR(name.mode))
        return e->status = DELTAFS_ERR_FOLDER;
    if (c->r->id != 0 && c->r->id != name.id)
        return POOL_HAS_CHANGED;
    status = pool_store_remove(c->store, c->path, c->n, e);
    if (status != DELTAFS_OK)
        return status;
    c->answer->attributes = (struct pool_attributes){.id = name.id, .mode = name.mode};
    c->answer->value = c->r->flags & POOL_HAS_INODE && pool_id_server(name.id) == c->v->server;
    status = c->answer->value ? entry_remove(c, name.id, e) : DELTAFS_OK;
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status; /* it was removed by its other name */
}
