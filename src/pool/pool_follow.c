/* Symbolic links. A path that passes through none is found by one request. Only if that fails, or finds a link, the
 * path is followed here, name by name. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/options.h"
#include "pool/pool_client.h"

#define LINKS_MAX 40 /* as Linux has it */

struct walk {
    struct deltafs_pool *pool;
    struct pool_place *place; /* where it has come to */
    int links;
    const char *at; /* what is still to go, in: */
    char rest[2 * (POOL_PATH_MAX + 1)];
};

static int read_target(struct deltafs_pool *p, uint64_t id, char target[POOL_PATH_MAX + 1], size_t *n, const char *name,
                       struct error *e)
{
    struct pool_call c = pool_call_id(POOL_READ, id);

    c.request.flags = POOL_HAS_INODE;
    c.request.size = POOL_PATH_MAX;
    c.out = target;
    c.room = POOL_PATH_MAX;
    int status = pool_ask(p, &c, name, e);
    *n = status == DELTAFS_OK ? c.answer.bytes : 0;
    if (status == DELTAFS_OK && (*n == 0 || *n > POOL_PATH_MAX))
        return error_set(e, DELTAFS_ERR_IO, "%s: a server sent a bad target", name);
    target[*n] = '\0';
    return status;
}

static int leads_out(const struct walk *w, struct error *e)
{
    return error_set(e, DELTAFS_ERR_LOOP, "%s: a symbolic link there leads out of the pool", w->place->path);
}

/* What is to go: `text`, and then what there was. */
static int walk_put(struct walk *w, const char *text, size_t n, struct error *e)
{
    size_t size = strlen(w->at) + 1;

    if (n + size > sizeof w->rest)
        return error_set(e, DELTAFS_ERR_NAME, "%s: a path that is too long", w->place->path);
    memmove(w->rest + n, w->at, size);
    memcpy(w->rest, text, n);
    w->at = w->rest;
    return DELTAFS_OK;
}

/* A target that begins with '/' is a path of the system, where the pool is at its mount point. */
static int walk_link(struct walk *w, uint64_t id, struct error *e)
{
    const char *point = w->pool->link.point.point;
    size_t above = strcmp(point, "/") == 0 ? 0 : strlen(point), n;
    char text[POOL_PATH_MAX + 1], *target = text;
    int status = read_target(w->pool, id, text, &n, w->place->path, e);

    if (status == DELTAFS_OK && ++w->links > LINKS_MAX)
        status = pool_refuse(DELTAFS_ERR_LOOP, w->place->path, e);
    if (status != DELTAFS_OK)
        return status;
    if (*target == '/') {
        if (strncmp(target, point, above) != 0 || (target[above] != '/' && target[above] != '\0'))
            return leads_out(w, e);
        target += above;
        n -= above;
        pool_place_root(w->place);
    } else {
        pool_place_up(w->pool, w->place);
    }
    return walk_put(w, target, n, e);
}

static int walk_name(struct walk *w, const char *name, size_t n, int has_last, struct error *e)
{
    int is_end = w->at[strspn(w->at, "/")] == '\0', status = pool_place_add(w->pool, w->place, name, n, e);
    struct pool_call look = pool_call_at(POOL_LOOKUP, w->place);

    if (status == DELTAFS_OK)
        status = pool_ask(w->pool, &look, w->place->path, e);
    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND && is_end ? DELTAFS_OK : status;
    const struct pool_attributes *a = &look.answer.attributes;
    if (S_ISLNK(a->mode) && (!is_end || has_last))
        return walk_link(w, a->id, e);
    return S_ISDIR(a->mode) || is_end ? DELTAFS_OK : pool_refuse(DELTAFS_ERR_NOT_FOLDER, w->place->path, e);
}

static int walk_step(struct walk *w, int has_last, struct error *e)
{
    const char *name = w->at;
    size_t n = strcspn(name, "/");
    int is_dot = n == 1 && name[0] == '.', is_up = n == 2 && name[0] == '.' && name[1] == '.';

    w->at += n;
    if (is_up && w->place->n == 1 && w->links > 0)
        return leads_out(w, e);
    if (is_up)
        pool_place_up(w->pool, w->place);
    return is_dot || is_up ? DELTAFS_OK : walk_name(w, name, n, has_last, e);
}

/* Find the place that a path leads to: its path has no links, but maybe the last name. What it ends in need not be
 * there. `has_last`: follow a link that it ends in. */
static int walk(struct deltafs_pool *p, const char *path, int has_last, struct pool_place *out, struct error *e)
{
    struct walk w;
    int status;

    w.pool = p;
    w.place = out;
    w.links = 0;
    w.at = "";
    pool_place_root(out);
    for (status = walk_put(&w, path, strlen(path), e); status == DELTAFS_OK && *(w.at += strspn(w.at, "/"));)
        status = walk_step(&w, has_last, e);
    return status;
}

/* Whether a path has ".." behind a name, which may be a link. */
static int has_up(const char *path)
{
    int has_name = 0;

    for (size_t n; *(path += strspn(path, "/")); path += n) {
        n = strcspn(path, "/");
        int is_up = n == 2 && path[0] == '.' && path[1] == '.';
        if (is_up && has_name)
            return 1;
        has_name |= !is_up && !(n == 1 && path[0] == '.');
    }
    return 0;
}

int pool_place_set(struct deltafs_pool *p, struct pool_place *place, const char *path, struct error *e)
{
    if (!path || !*path)
        return error_set(e, path ? DELTAFS_ERR_NOT_FOUND : DELTAFS_ERR_INVALID, "an empty path names nothing");
    place->is_followed = 0;
    if (strstr(path, "..") && has_up(path))
        return walk(p, path, 0, place, e);
    if (pool_path_normalise(path, place->path, &place->n, e) != DELTAFS_OK)
        return error_set(e, e->status, "%s: %s", path, e->text);
    place->owner = pool_owner(place->path, place->n, p->link.servers);
    return DELTAFS_OK;
}

/* Most paths that are not found are in a folder that is there: then no link leads elsewhere. */
static int is_missing(struct deltafs_pool *p, const struct pool_place *place)
{
    struct pool_place above;

    pool_place_parent(p, place, &above);
    struct pool_call c = pool_call_at(POOL_LOOKUP, &above);
    return above.n == 1 ||
           (pool_ask(p, &c, above.path, error_ignored()) == DELTAFS_OK && S_ISDIR(c.answer.attributes.mode));
}

int pool_follow(struct deltafs_pool *p, struct pool_place *place, int has_last, int *status, struct error *e)
{
    int may_be = *status == DELTAFS_ERR_NOT_FOUND || *status == DELTAFS_ERR_NOT_FOLDER;
    struct pool_place to;
    struct error why;

    if (*status == POOL_IS_LINK && (place->is_followed || !has_last))
        *status = pool_refuse(DELTAFS_ERR_LOOP, place->path, e);
    if (place->is_followed || (!may_be && *status != POOL_IS_LINK) ||
        (*status == DELTAFS_ERR_NOT_FOUND && is_missing(p, place)))
        return 0;
    int walked = walk(p, place->path, has_last, &to, &why);
    if (walked != DELTAFS_OK && walked != *status) {
        *status = walked;
        *e = why;
    }
    if (walked != DELTAFS_OK || (to.n == place->n && memcmp(to.path, place->path, to.n) == 0))
        return 0;
    *place = to;
    place->is_followed = 1;
    return 1;
}

int pool_find(struct deltafs_pool *p, struct pool_place *place, int has_last, struct pool_attributes *out,
              struct error *e)
{
    int status;

    do {
        struct pool_call c = pool_call_at(POOL_LOOKUP, place);
        status = pool_ask(p, &c, place->path, e);
        if (status == DELTAFS_OK && S_ISLNK(c.answer.attributes.mode) && has_last)
            status = POOL_IS_LINK;
        else if (status == DELTAFS_OK)
            *out = c.answer.attributes;
    } while (pool_follow(p, place, has_last, &status, e));
    return status;
}

/* ---- Calls ---- */

static int link_create(struct deltafs_pool *p, const char *target, const struct pool_place *place, struct error *e)
{
    char text[2 * (POOL_PATH_MAX + 1)];
    struct pool_call c = pool_call_at(POOL_SYMLINK, place);
    size_t n = strlen(target);

    memcpy(text, place->path, place->n + 1);
    memcpy(text + place->n + 1, target, n);
    c.in = text;
    c.request.bytes = (uint32_t)(place->n + 1 + n);
    c.request.uid = geteuid();
    c.request.gid = getegid();
    return pool_ask_in_folder(p, place, &c, e);
}

int deltafs_pool_symlink(deltafs_pool *pool, const char *target, const char *path)
{
    struct error e = {.status = DELTAFS_OK};
    struct pool_place place;
    int status = pool_place_set(pool, &place, path, &e);

    if (status == DELTAFS_OK && (!target || !*target))
        status = error_set(&e, target ? DELTAFS_ERR_NOT_FOUND : DELTAFS_ERR_INVALID, "%s: a link needs a target",
                           place.path);
    else if (status == DELTAFS_OK && strlen(target) > POOL_PATH_MAX)
        status = error_set(&e, DELTAFS_ERR_NAME, "%s: a target of more than %d bytes", place.path, POOL_PATH_MAX);
    if (status == DELTAFS_OK)
        do
            status = link_create(pool, target, &place, &e);
        while (pool_follow(pool, &place, 0, &status, &e));
    return error_of_thread(status, &e);
}

int deltafs_pool_readlink(deltafs_pool *pool, const char *path, char *target, size_t room, size_t *size)
{
    struct error e = {.status = DELTAFS_OK};
    char text[POOL_PATH_MAX + 1];
    struct pool_attributes a;
    struct pool_place place;
    size_t n = 0;
    int status = pool_place_set(pool, &place, path, &e);

    if (status == DELTAFS_OK)
        status = pool_find(pool, &place, 0, &a, &e);
    if (status == DELTAFS_OK && !S_ISLNK(a.mode))
        status = error_set(&e, DELTAFS_ERR_INVALID, "%s: is no symbolic link", place.path);
    if (status == DELTAFS_OK)
        status = read_target(pool, a.id, text, &n, place.path, &e);
    if (status == DELTAFS_OK) {
        memcpy(target, text, n < room ? n : room);
        *size = n;
    }
    return error_of_thread(status, &e);
}
