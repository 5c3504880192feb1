/* Renaming.
 *
 * The entries of a folder are found by their whole paths. So a folder is renamed by creating the new one, giving each
 * entry its new name, one folder after the other, and removing the old one; no bytes move. That is not done at once. An
 * entry gets its new name before it loses the old one, so nothing is lost if the process is killed meanwhile. The new
 * folder says which one it is made from: so a renaming goes on where it was interrupted. */
#include <stdlib.h>
#include <sys/stat.h>
#include "base/options.h"
#include "pool/pool_client.h"

/* An entry that gets another name. */
struct moving {
    struct pool_place from, to;
    uint64_t id, old;        /* old: what had the new name; 0: nothing */
    uint32_t mode, old_mode; /* types */
};

/* ---- Names of files ---- */

/* The old name has gone already: another process has renamed or removed the file. The new name is taken back, since the
 * file may have got another one. */
static int name_restore(struct deltafs_pool *p, struct moving *n, struct error *e)
{
    struct pool_call c = pool_call_at(POOL_RESTORE, &n->to);

    c.request.id = n->id;
    c.request.value = n->old;
    c.request.mode = n->old_mode;
    int status = pool_ask(p, &c, n->to.path, e);
    if (status == DELTAFS_OK && c.answer.value)
        n->old = 0;
    return status == DELTAFS_ERR_NOT_FOUND || status == POOL_HAS_CHANGED ? DELTAFS_OK : status;
}

/* The entries get their new names. */
static int names_link(struct deltafs_pool *p, struct moving *n, size_t count, struct error *e)
{
    struct pool_call calls[POOL_SLOTS];

    for (size_t i = 0; i < count; i++) {
        calls[i] = pool_call_at(POOL_LINK, &n[i].to);
        calls[i].request.id = n[i].id;
        calls[i].request.mode = n[i].mode;
    }
    int status = pool_link_calls(&p->link, calls, count, e);
    for (size_t i = 0; i < count && status == DELTAFS_OK; i++) {
        const struct pool_answer *a = &calls[i].answer;
        status = a->status;
        if (status == POOL_NEEDS_FOLDER)
            status = pool_ask_in_folder(p, &n[i].to, &calls[i], e);
        else if (status < 0)
            status = pool_refuse(status, n[i].to.path, e);
        n[i].old = status == DELTAFS_OK && a->attributes.id != n[i].id ? a->attributes.id : 0;
        n[i].old_mode = a->attributes.mode;
    }
    return status;
}

/* Up to POOL_SLOTS entries, no folders, get their new names, and then all of them lose the old ones. What had the new
 * ones is removed. *late gets the number of those that other processes have renamed or removed meanwhile. */
static int names_move(struct deltafs_pool *p, struct moving *n, size_t count, size_t *late, struct error *e)
{
    struct pool_call calls[POOL_SLOTS];
    int status = names_link(p, n, count, e);

    *late = 0;
    if (status != DELTAFS_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        calls[i] = pool_call_at(POOL_UNLINK, &n[i].from);
        calls[i].request.id = n[i].id;
    }
    status = pool_link_calls(&p->link, calls, count, e);
    for (size_t i = 0; i < count && status == DELTAFS_OK; i++) {
        status = calls[i].answer.status;
        if (status == DELTAFS_ERR_NOT_FOUND || status == POOL_HAS_CHANGED) {
            ++*late;
            status = name_restore(p, &n[i], e);
        } else if (status < 0) {
            status = pool_refuse(status, n[i].from.path, e);
        }
        if (status == DELTAFS_OK && n[i].old != 0)
            status = pool_remove_inode(p, n[i].old, n[i].to.path, e);
    }
    return status;
}

/* ---- Folders ---- */

struct folder_move {
    struct deltafs_pool *pool;
    struct pool_place from, to; /* the folder that is being emptied, and the one that gets what is in it */
    size_t end;                 /* bytes of the path of the one that is renamed */
    int vain;                   /* times that it was not empty at the end, one after the other */
    size_t count;
    struct moving entry[POOL_SLOTS];
};

static int is_below(const struct pool_place *place, const struct pool_place *folder)
{
    return place->n > folder->n && memcmp(place->path, folder->path, folder->n) == 0 && place->path[folder->n] == '/';
}

/* One that is there is replaced if it is empty; or used, if this renaming has begun before. */
static int folder_create(struct deltafs_pool *p, const struct pool_attributes *from, const struct pool_place *to,
                         uint64_t *id, struct error *e)
{
    int status = DELTAFS_OK;

    for (int i = 0; i < POOL_TRIES; i++) {
        struct pool_call c = pool_call_at(POOL_CREATE, to);
        const struct pool_attributes *there = &c.answer.attributes;
        c.request.mode = from->mode;
        c.request.id = from->id;
        status = pool_ask_in_folder(p, to, &c, e);
        *id = there->id;
        if (status != DELTAFS_ERR_EXISTS)
            return status;
        if (!S_ISDIR(there->mode))
            return pool_refuse(DELTAFS_ERR_NOT_FOLDER, to->path, e);
        if (there->size == from->id)
            return DELTAFS_OK;
        status = pool_rmdir(p, to, e);
        if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND)
            return status;
    }
    return pool_too_many_tries(to->path, e);
}

/* Begin with the folder at m->from. */
static int folder_begin(struct folder_move *m, struct error *e)
{
    struct pool_call look = pool_call_at(POOL_LOOKUP, &m->from);
    const struct pool_attributes *a = &look.answer.attributes;
    uint64_t id;
    int status = pool_ask(m->pool, &look, m->from.path, e);

    if (status == DELTAFS_OK && !S_ISDIR(a->mode))
        status = pool_refuse(DELTAFS_ERR_NOT_FOLDER, m->from.path, e);
    if (status == DELTAFS_OK)
        status = folder_create(m->pool, a, &m->to, &id, e);
    if (status != DELTAFS_OK)
        return status;
    struct pool_call set = pool_call_id(POOL_SET, id);
    set.request.flags = POOL_SET_MODE | POOL_SET_UID | POOL_SET_GID | POOL_SET_MTIME | POOL_SET_ATIME;
    set.request.mode = a->mode;
    set.request.uid = a->uid;
    set.request.gid = a->gid;
    set.request.mtime = a->mtime;
    set.request.atime = a->atime;
    return pool_ask(m->pool, &set, m->to.path, e);
}

static int move_entries(struct folder_move *m, struct error *e)
{
    size_t count = m->count, late;

    m->count = 0;
    m->vain = count > 0 ? 0 : m->vain;
    return count > 0 ? names_move(m->pool, m->entry, count, &late, e) : DELTAFS_OK;
}

static int both_enter(const struct deltafs_pool *p, struct pool_place *from, struct pool_place *to, const char *name,
                      struct error *e)
{
    int status = pool_place_add(p, from, name, strlen(name), e);

    return status == DELTAFS_OK ? pool_place_add(p, to, name, strlen(name), e) : status;
}

static int move_entry(struct folder_move *m, const struct deltafs_pool_entry *entry, struct error *e)
{
    struct moving *n = &m->entry[m->count];

    n->from = m->from;
    n->to = m->to;
    int status = both_enter(m->pool, &n->from, &n->to, entry->name, e);
    if (status != DELTAFS_OK)
        return status;
    n->id = entry->inode;
    n->mode = entry->mode;
    return ++m->count == POOL_SLOTS ? move_entries(m, e) : DELTAFS_OK;
}

/* Move what is in the folder, up to the first folder there, whose name is put into `below`. */
static int move_some(struct folder_move *m, char below[POOL_NAME_MAX + 1], struct error *e)
{
    const struct deltafs_pool_entry *entry = NULL;
    deltafs_pool_list *l = NULL;
    int status = pool_list_open(m->pool, &m->from, &l, e);

    below[0] = '\0';
    while (status == DELTAFS_OK && (status = pool_list_next(l, &entry, e)) == DELTAFS_OK && entry) {
        if (S_ISDIR(entry->mode)) {
            memcpy(below, entry->name, strlen(entry->name) + 1);
            break;
        }
        status = move_entry(m, entry, e);
    }
    deltafs_pool_list_close(l);
    return error_first(status, move_entries(m, error_after(status, e)));
}

/* Go to a folder below, or from one that is empty to the one above. All that was listed has gone then, so the list of
 * that begins again. A tree of any depth takes the memory of one folder. */
static int move_step(struct folder_move *m, struct error *e)
{
    char below[POOL_NAME_MAX + 1];
    int status = move_some(m, below, e);

    if (status == DELTAFS_OK && below[0]) {
        status = both_enter(m->pool, &m->from, &m->to, below, e);
        return status == DELTAFS_OK ? folder_begin(m, e) : status;
    }
    if (status == DELTAFS_OK)
        status = pool_rmdir(m->pool, &m->from, e);
    if (status == DELTAFS_ERR_NOT_EMPTY) /* another process has put something into it */
        return m->vain++ < POOL_TRIES ? DELTAFS_OK : pool_too_many_tries(m->from.path, e);
    if (status == DELTAFS_OK) {
        pool_place_up(m->pool, &m->from);
        pool_place_up(m->pool, &m->to);
        m->vain = 0;
    }
    return status;
}

static int folder_move(struct deltafs_pool *p, const struct pool_place *from, const struct pool_place *to,
                       struct error *e)
{
    if (from->n == 1 || to->n == 1)
        return pool_refuse(DELTAFS_ERR_BUSY, "/", e);
    if (is_below(to, from))
        return error_set(e, DELTAFS_ERR_INVALID, "%s: is in the folder that is renamed", to->path);
    struct folder_move *m = malloc(sizeof *m);
    if (!m)
        return error_no_memory(e, sizeof *m, "renaming a folder");
    m->pool = p;
    m->from = *from;
    m->to = *to;
    m->end = from->n;
    m->vain = 0;
    m->count = 0;
    int status = folder_begin(m, e);
    while (status == DELTAFS_OK && m->from.n >= m->end)
        status = move_step(m, e);
    free(m);
    return status;
}

/* ---- Any ---- */

static int any_move(struct deltafs_pool *p, const struct pool_place *from, const struct pool_attributes *a,
                    const struct pool_place *to, struct error *e)
{
    if (from->n == to->n && memcmp(from->path, to->path, from->n) == 0)
        return DELTAFS_OK;
    if (S_ISDIR(a->mode))
        return folder_move(p, from, to, e);
    struct moving n = {.from = *from, .to = *to, .id = a->id, .mode = a->mode & S_IFMT};
    size_t late;
    int status = names_move(p, &n, 1, &late, e);
    return status == DELTAFS_OK && late > 0 ? pool_refuse(DELTAFS_ERR_NOT_FOUND, from->path, e) : status;
}

/* Whether a folder would be moved into itself is known only when links have been followed. */
static int follow_folder(struct deltafs_pool *p, struct pool_place *to, struct error *e)
{
    struct pool_attributes there;
    int status = pool_find(p, to, 0, &there, e);

    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

int deltafs_pool_rename(deltafs_pool *pool, const char *from, const char *to)
{
    struct error e = {.status = DELTAFS_OK};
    struct pool_place a, b;
    struct pool_attributes found;
    int status = pool_place_set(pool, &a, from, &e);

    if (status == DELTAFS_OK)
        status = pool_place_set(pool, &b, to, &e);
    if (status == DELTAFS_OK)
        status = pool_find(pool, &a, 0, &found, &e);
    if (status == DELTAFS_OK && S_ISDIR(found.mode))
        status = follow_folder(pool, &b, &e);
    if (status == DELTAFS_OK)
        do
            status = any_move(pool, &a, &found, &b, &e);
        while (pool_follow(pool, &b, 0, &status, &e));
    return error_of_thread(status, &e);
}
