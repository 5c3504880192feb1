/* Entries of a pool: attributes and names. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/options.h"
#include "base/sized.h"
#include "base/thread.h"
#include "pool/pool_client.h"

int pool_too_many_tries(const char *name, struct error *e)
{
    return error_set(e, DELTAFS_ERR_IO, "%s: other processes create and remove the folder all the time", name);
}

#define FEW_TRIES 4
#define PAUSE     20000 /* nanoseconds more after each try, at most */

/* Processes that take turns can disturb each other in the same way each time: wait for a random time. */
static void pause_before(int attempt)
{
    uint64_t random = thread_clock() * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    const struct timespec pause = {.tv_nsec = (long)(random % PAUSE) * attempt};

    if (attempt >= FEW_TRIES)
        nanosleep(&pause, NULL);
}

int pool_ask_in_folder(struct deltafs_pool *p, const struct pool_place *place, struct pool_call *c, struct error *e)
{
    struct pool_place parent;
    int status = pool_ask(p, c, place->path, e);

    for (int i = 0; status == POOL_NEEDS_FOLDER; i++) {
        if (i == POOL_TRIES)
            return pool_too_many_tries(place->path, e);
        pause_before(i);
        pool_place_parent(p, place, &parent);
        struct pool_call r = pool_call_at(POOL_REGISTER, &parent);
        r.request.value = place->owner;
        r.request.generation = (uint32_t)c->answer.value;
        status = pool_ask(p, &r, parent.path, e);
        if (status != DELTAFS_OK)
            return status;
        c->request.flags |= POOL_HAS_FOLDER;
        c->request.folder = r.answer.attributes.id;
        c->request.generation = r.answer.attributes.generation;
        status = pool_ask(p, c, place->path, e);
    }
    return status;
}

/* ---- Attributes ---- */

int pool_look_id(struct deltafs_pool *p, uint64_t id, const char *name, struct pool_attributes *out, struct error *e)
{
    struct pool_call c = pool_call_id(POOL_STAT, id);
    int status = pool_ask(p, &c, name, e);

    if (status == DELTAFS_OK)
        *out = c.answer.attributes;
    return status;
}

int pool_stat_of(const struct pool_attributes *a, struct deltafs_pool_stat *out, const char *call, struct error *e)
{
    const struct deltafs_pool_stat all = {.inode = a->id,
                                          .mode = a->mode,
                                          .uid = a->uid,
                                          .gid = a->gid,
                                          .size = S_ISDIR(a->mode) ? 0 : a->size,
                                          .mtime = a->mtime,
                                          .atime = a->atime,
                                          .ctime = a->ctime};

    return sized_fill(out, &all, sizeof all, call, e);
}

int deltafs_pool_stat(deltafs_pool *pool, const char *path, int flags, struct deltafs_pool_stat *out)
{
    struct error e = {.status = DELTAFS_OK};
    struct pool_place place;
    struct pool_attributes a;
    int status = pool_place_set(pool, &place, path, &e);

    if (status == DELTAFS_OK)
        status = pool_find(pool, &place, !(flags & AT_SYMLINK_NOFOLLOW), &a, &e);
    if (status == DELTAFS_OK && pool_id_server(a.id) != place.owner)
        status = pool_look_id(pool, a.id, place.path, &a, &e);
    if (status == DELTAFS_OK)
        status = pool_stat_of(&a, out, "deltafs_pool_stat", &e);
    return error_of_thread(status, &e);
}

_Static_assert((int)DELTAFS_POOL_MODE == (int)POOL_SET_MODE && (int)DELTAFS_POOL_ATIME == (int)POOL_SET_ATIME,
               "public numbers are those of the protocol");

int deltafs_pool_set_attributes(deltafs_pool *pool, const char *path, int flags,
                                const struct deltafs_pool_attributes *attributes)
{
    const uint32_t known = POOL_SET_MODE | POOL_SET_UID | POOL_SET_GID | POOL_SET_MTIME | POOL_SET_ATIME;
    struct error e = {.status = DELTAFS_OK};
    struct deltafs_pool_attributes a;
    struct pool_place place;
    struct pool_attributes found;
    int status = sized_take(&a, attributes, sizeof a, "deltafs_pool_set_attributes", &e);

    if (status == DELTAFS_OK)
        status = pool_place_set(pool, &place, path, &e);
    if (status == DELTAFS_OK)
        status = pool_find(pool, &place, !(flags & AT_SYMLINK_NOFOLLOW), &found, &e);
    if (status == DELTAFS_OK) {
        struct pool_call c = pool_call_id(POOL_SET, found.id);
        c.request.flags = a.set & known;
        c.request.mode = a.mode;
        c.request.uid = a.uid;
        c.request.gid = a.gid;
        c.request.mtime = a.mtime;
        c.request.atime = a.atime;
        status = pool_ask(pool, &c, place.path, &e);
    }
    return error_of_thread(status, &e);
}

/* ---- Removing ---- */

/* Servers that have chunks of the file between two sizes, each once; `from` is where to go on. That of the attributes
 * has removed what it has, if one request is enough for that. */
static size_t cut_calls(const struct deltafs_pool *p, uint64_t id, uint64_t size, uint64_t before, uint32_t flags,
                        uint64_t *from, struct pool_call calls[POOL_SLOTS])
{
    uint32_t servers = p->link.servers;
    uint64_t last = (before - 1) / POOL_CHUNK, first = size / POOL_CHUNK;
    int is_done = last - first < POOL_CUT_CHUNKS, is_local = (id & POOL_ID_LOCAL) != 0,
        is_all = !is_local && last - first + 1 >= servers;
    uint64_t end = is_all ? servers : is_local ? first + 1 : last + 1;
    size_t n = 0;

    for (*from = !is_all && *from == 0 ? first : *from; *from < end && n < POOL_SLOTS; ++*from) {
        uint32_t server = is_all ? (uint32_t)*from : pool_chunk_owner(id, *from, servers);
        int is_there = is_done && server == pool_id_server(id);
        for (size_t i = 0; i < n && !is_there; i++)
            is_there = calls[i].request.server == server;
        if (is_there)
            continue;
        calls[n] = pool_call_of(POOL_CUT, server);
        calls[n].request.id = id;
        calls[n].request.flags = flags;
        calls[n++].request.size = size;
    }
    return n;
}

/* Ask servers until they have nothing more. */
static int cut_all(struct deltafs_pool *p, struct pool_call *calls, size_t n, struct error *e)
{
    int status = DELTAFS_OK;

    while (status == DELTAFS_OK && n > 0) {
        size_t more = 0;
        status = pool_link_calls(&p->link, calls, n, e);
        for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
            int refused = calls[i].answer.status;
            if (refused < 0)
                status = error_set(e, refused, "%s", deltafs_strerror(refused));
            else if (calls[i].answer.value)
                calls[more++] = calls[i];
        }
        n = more;
    }
    return status;
}

int pool_cut(struct deltafs_pool *p, uint64_t id, uint64_t size, uint64_t before, uint32_t flags, const char *name,
             struct error *e)
{
    struct pool_call calls[POOL_SLOTS];
    uint64_t from = 0;
    size_t n;
    int status = DELTAFS_OK;

    if (before <= size)
        return DELTAFS_OK;
    while (status == DELTAFS_OK && (n = cut_calls(p, id, size, before, flags, &from, calls)) > 0)
        status = cut_all(p, calls, n, e);
    return status == DELTAFS_OK ? status : error_set(e, status, "%s: %s", name, e->text);
}

int pool_remove_inode(struct deltafs_pool *p, uint64_t id, const char *name, struct error *e)
{
    struct pool_call c = pool_call_id(POOL_REMOVE, id);
    int status = pool_ask(p, &c, name, e);

    if (status == DELTAFS_OK)
        status = pool_cut(p, id, 0, c.answer.attributes.size, POOL_IS_REMOVED, name, e);
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

static int remove_file(struct deltafs_pool *p, const struct pool_place *place, struct error *e)
{
    struct pool_call c = pool_call_at(POOL_UNLINK, place);
    const struct pool_attributes *a = &c.answer.attributes;

    c.request.flags = POOL_HAS_INODE;
    int status = pool_ask(p, &c, place->path, e);
    if (status != DELTAFS_OK)
        return status;
    return c.answer.value ? pool_cut(p, a->id, 0, a->size, POOL_IS_REMOVED, place->path, e)
                          : pool_remove_inode(p, a->id, place->path, e);
}

int deltafs_pool_unlink(deltafs_pool *pool, const char *path)
{
    struct error e = {.status = DELTAFS_OK};
    struct pool_place place;
    int status = pool_place_set(pool, &place, path, &e);

    if (status == DELTAFS_OK)
        do
            status = remove_file(pool, &place, &e);
        while (pool_follow(pool, &place, 0, &status, &e));
    return error_of_thread(status, &e);
}

/* ---- Folders ---- */

static int make_folder(struct deltafs_pool *p, const struct pool_place *place, uint32_t mode, struct error *e)
{
    struct pool_call c = pool_call_at(POOL_CREATE, place);

    c.request.mode = S_IFDIR | (mode & 07777);
    c.request.uid = geteuid();
    c.request.gid = getegid();
    return pool_ask_in_folder(p, place, &c, e);
}

int deltafs_pool_mkdir(deltafs_pool *pool, const char *path, uint32_t mode)
{
    struct error e = {.status = DELTAFS_OK};
    struct pool_place place;
    int status = pool_place_set(pool, &place, path, &e);

    if (status == DELTAFS_OK)
        do
            status = make_folder(pool, &place, mode, &e);
        while (pool_follow(pool, &place, 0, &status, &e));
    return error_of_thread(status, &e);
}

/* All members of a folder have nothing in it, and take nothing more with this generation; or POOL_HAS_CHANGED. */
static int forget(struct deltafs_pool *p, const struct pool_place *place, const struct pool_answer *folder,
                  const uint32_t *members, size_t count, struct error *e)
{
    struct pool_call calls[POOL_SLOTS];
    int status = DELTAFS_OK;

    for (size_t at = 0, n; at < count && status == DELTAFS_OK; at += n) {
        for (n = 0; at + n < count && n < POOL_SLOTS; n++) {
            calls[n] = pool_call_at(POOL_FORGET, place);
            calls[n].request.server = members[at + n];
            calls[n].request.id = folder->attributes.id;
            calls[n].request.generation = folder->attributes.generation;
        }
        status = pool_link_calls(&p->link, calls, n, e);
        for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
            status = calls[i].answer.status;
            status = status < 0 ? pool_refuse(status, place->path, e) : status;
        }
    }
    return status;
}

/* One attempt, with POOL_REMOTE_BYTES for lists; POOL_HAS_CHANGED: another process has disturbed it. */
static int rmdir_try(struct deltafs_pool *p, const struct pool_place *place, uint32_t *members, struct error *e)
{
    uint32_t first = 0;
    struct pool_answer folder = {.status = 0}; /* as it was before any member was asked */
    size_t count = 1;
    int status = DELTAFS_OK;

    while (count > 0 && status == DELTAFS_OK) {
        struct pool_call c = pool_call_at(POOL_MEMBERS, place);
        c.request.offset = first;
        c.out = members;
        c.room = POOL_REMOTE_BYTES;
        status = pool_ask(p, &c, place->path, e);
        count = status == DELTAFS_OK ? c.answer.bytes / sizeof members[0] : 0;
        folder = first == 0 ? c.answer : folder;
        if (count > 0)
            status = forget(p, place, &folder, members, count, e);
        first = count > 0 ? members[count - 1] + 1 : first;
    }
    if (status != DELTAFS_OK)
        return status;
    struct pool_call end = pool_call_at(POOL_RMDIR, place);
    end.request.id = folder.attributes.id;
    end.request.generation = folder.attributes.generation;
    end.request.value = folder.value;
    return pool_ask(p, &end, place->path, e);
}

int pool_rmdir(struct deltafs_pool *p, const struct pool_place *place, struct error *e)
{
    int status = POOL_HAS_CHANGED;

    if (place->n == 1)
        return pool_refuse(DELTAFS_ERR_BUSY, place->path, e);
    if (p->link.servers == 1) {
        struct pool_call c = pool_call_at(POOL_RMDIR, place);
        return pool_ask(p, &c, place->path, e);
    }
    uint32_t *members = malloc(POOL_REMOTE_BYTES); /* the stack of a program's thread may be small */
    if (!members)
        return error_no_memory(e, POOL_REMOTE_BYTES, "the servers of a folder");
    for (int i = 0; i < POOL_TRIES && status == POOL_HAS_CHANGED; i++) {
        pause_before(i);
        status = rmdir_try(p, place, members, e);
    }
    free(members);
    return status == POOL_HAS_CHANGED ? pool_too_many_tries(place->path, e) : status;
}

int deltafs_pool_rmdir(deltafs_pool *pool, const char *path)
{
    struct error e = {.status = DELTAFS_OK};
    struct pool_place place;
    int status = pool_place_set(pool, &place, path, &e);

    if (status == DELTAFS_OK)
        do
            status = pool_rmdir(pool, &place, &e);
        while (pool_follow(pool, &place, 0, &status, &e));
    return error_of_thread(status, &e);
}
