#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "pool/pool_path.h"
#include "pool/server/pool_service.h"
#include "pool/server/service_parts.h"

int64_t service_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- Folders ---- */

/* The folder of this path, whose name this server has. */
static int folder_find(struct service_call *c, const char *path, size_t n, struct pool_inode *inode, struct error *e)
{
    struct pool_name name;
    int status = pool_store_find(c->store, path, n, &name, e);

    if (status == DELTAFS_OK && !S_ISDIR(name.mode))
        return e->status = DELTAFS_ERR_NOT_FOLDER;
    return status == DELTAFS_OK ? pool_store_inode(c->store, name.id, inode, e) : status;
}

/* Make a server a member. Entries with the generation `over`, or older ones, are not taken there any more. */
static int folder_register(struct service_call *c, const char *path, size_t n, uint32_t member, uint32_t over,
                           struct pool_folder *folder, struct error *e)
{
    struct pool_inode inode;
    int is_new = 0, status = folder_find(c, path, n, &inode, e);

    if (status == DELTAFS_OK)
        status = pool_store_member_add(c->store, inode.attributes.id, member, &is_new, e);
    if (status == DELTAFS_OK && (is_new || over >= inode.attributes.generation)) {
        inode.members++;
        if (over >= inode.attributes.generation)
            inode.attributes.generation = over + 1;
        status = pool_store_inode_put(c->store, &inode, 0, e);
    }
    if (status == DELTAFS_OK)
        *folder = (struct pool_folder){.id = inode.attributes.id, .generation = inode.attributes.generation};
    return status;
}

/* Whether entries of this generation are taken. */
static int folder_accept(struct service_call *c, const char *path, size_t n, const struct pool_folder *folder,
                         struct error *e)
{
    uint32_t over = 0;
    int status = pool_store_forgotten(c->store, folder->id, &over, e);

    if (status == DELTAFS_OK && over >= folder->generation) {
        c->answer->value = over;
        return POOL_NEEDS_FOLDER;
    }
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND)
        return status;
    return pool_store_know(c->store, path, n, folder, e);
}

int service_folder_check(struct service_call *c, struct error *e)
{
    size_t n = pool_path_parent(c->path, c->n);
    struct pool_folder folder = {.id = c->r->folder, .generation = c->r->generation};
    int status = pool_store_known(c->store, c->path, n, &folder, e);

    if (status != DELTAFS_ERR_NOT_FOUND)
        return status;
    if (c->r->flags & POOL_HAS_FOLDER)
        return folder_accept(c, c->path, n, &folder, e);
    c->answer->value = 0;
    if (pool_owner(c->path, n, c->v->servers) != c->v->server)
        return POOL_NEEDS_FOLDER;
    status = folder_register(c, c->path, n, c->v->server, 0, &folder, e);
    if (status == DELTAFS_OK)
        status = folder_accept(c, c->path, n, &folder, e);
    if (status == POOL_NEEDS_FOLDER) {
        status = folder_register(c, c->path, n, c->v->server, (uint32_t)c->answer->value, &folder, e);
        status = status == DELTAFS_OK ? folder_accept(c, c->path, n, &folder, e) : status;
    }
    return status;
}

static int do_register(struct service_call *c, struct error *e)
{
    struct pool_folder folder;

    if (c->r->value >= c->v->servers)
        return error_set(e, DELTAFS_ERR_INVALID, "there is no such server");
    int status = folder_register(c, c->path, c->n, (uint32_t)c->r->value, c->r->generation, &folder, e);
    if (status == DELTAFS_OK) {
        c->answer->attributes.id = folder.id;
        c->answer->attributes.generation = folder.generation;
    }
    return status;
}

static int do_members(struct service_call *c, struct error *e)
{
    struct pool_inode inode;
    size_t count = 0;
    int status = folder_find(c, c->path, c->n, &inode, e);

    if (status == DELTAFS_OK)
        status = pool_store_members(c->store, inode.attributes.id, (uint32_t)c->r->offset, c->out,
                                    POOL_REMOTE_BYTES / sizeof(uint32_t), &count, e);
    if (status == DELTAFS_OK) {
        c->answer->attributes = inode.attributes;
        c->answer->value = inode.members;
        c->answer->bytes = (uint32_t)(count * sizeof(uint32_t));
    }
    return status;
}

static int do_list(struct service_call *c, struct error *e)
{
    size_t used, room = POOL_REMOTE_BYTES;
    int status = pool_store_list(c->store, c->path, c->n, c->after, c->after_n, c->out, room, &used, e);

    c->answer->bytes = (uint32_t)used;
    return status;
}

/* If nothing is in the folder, take nothing more with this generation. A request that is late changes nothing: what was
 * forgotten stays so. */
static int folder_forget(struct service_call *c, struct pool_folder folder, struct error *e)
{
    struct pool_folder known;
    uint32_t over = 0;
    uint8_t entry[POOL_ENTRY_BYTES(POOL_NAME_MAX)];
    size_t used;
    int status = pool_store_list(c->store, c->path, c->n, "", 0, entry, sizeof entry, &used, e);

    if (status == DELTAFS_OK && used > 0)
        return e->status = DELTAFS_ERR_NOT_EMPTY;
    if (status == DELTAFS_OK)
        status = pool_store_known(c->store, c->path, c->n, &known, e);
    if (status == DELTAFS_OK && (known.id != folder.id || known.generation > folder.generation))
        return POOL_HAS_CHANGED;
    if (status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND)
        status = pool_store_forgotten(c->store, folder.id, &over, e);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND)
        return status;
    folder.generation = over > folder.generation ? over : folder.generation;
    /* With one server no request can come late. */
    return pool_store_forget(c->store, c->path, c->n, c->v->servers > 1 ? &folder : NULL, e);
}

static int do_forget(struct service_call *c, struct error *e)
{
    return folder_forget(c, (struct pool_folder){.id = c->r->id, .generation = c->r->generation}, e);
}

static int do_rmdir(struct service_call *c, struct error *e)
{
    struct pool_inode inode;
    int status = folder_find(c, c->path, c->n, &inode, e);

    if (status != DELTAFS_OK)
        return status;
    if (c->n == 1)
        return error_set(e, DELTAFS_ERR_BUSY, "the root cannot be removed");
    const struct pool_folder folder = {.id = inode.attributes.id, .generation = inode.attributes.generation};
    if (c->v->servers == 1) /* nobody else has to be asked */
        status = folder_forget(c, folder, e);
    else if (inode.attributes.id != c->r->id || inode.attributes.generation != c->r->generation ||
             inode.members != c->r->value)
        return POOL_HAS_CHANGED;
    if (status == DELTAFS_OK)
        status = pool_store_members_remove(c->store, inode.attributes.id, e);
    if (status == DELTAFS_OK)
        status = pool_store_inode_remove(c->store, &inode, e);
    return status == DELTAFS_OK ? pool_store_remove(c->store, c->path, c->n, e) : status;
}

/* ---- Attributes ---- */

static int inode_find(struct service_call *c, struct pool_inode *inode, struct error *e)
{
    return pool_store_inode(c->store, c->r->id, inode, e);
}

static int do_stat(struct service_call *c, struct error *e)
{
    struct pool_inode inode;
    int status = inode_find(c, &inode, e);

    if (status == DELTAFS_OK)
        c->answer->attributes = inode.attributes;
    return status;
}

static int do_set(struct service_call *c, struct error *e)
{
    const struct pool_request *r = c->r;
    struct pool_inode inode;
    struct pool_attributes *a = &inode.attributes;
    int status = inode_find(c, &inode, e);

    if (status != DELTAFS_OK)
        return status;
    if (r->flags & POOL_SET_MODE)
        a->mode = (a->mode & S_IFMT) | (r->mode & SERVICE_MODE_BITS);
    if (r->flags & POOL_SET_UID)
        a->uid = r->uid;
    if (r->flags & POOL_SET_GID)
        a->gid = r->gid;
    if (r->flags & POOL_SET_MTIME)
        a->mtime = r->mtime;
    if (r->flags & POOL_SET_ATIME)
        a->atime = r->atime;
    a->ctime = service_now();
    c->answer->attributes = *a;
    return pool_store_inode_put(c->store, &inode, 0, e);
}

static int inode_grow(struct service_call *c, struct pool_inode *inode, uint64_t size, struct error *e)
{
    if (inode->attributes.size < size)
        inode->attributes.size = size;
    inode->attributes.mtime = inode->attributes.ctime = service_now();
    return pool_store_inode_put(c->store, inode, 0, e);
}

static int size_check(const struct service_call *c, struct error *e)
{
    return c->r->size <= POOL_FILE_MAX ? DELTAFS_OK : (e->status = DELTAFS_ERR_TOO_LARGE);
}

static int do_grow(struct service_call *c, struct error *e)
{
    struct pool_inode inode;
    int status = size_check(c, e);

    if (status == DELTAFS_OK)
        status = inode_find(c, &inode, e);
    return status == DELTAFS_OK ? inode_grow(c, &inode, c->r->size, e) : status;
}

static int do_append(struct service_call *c, struct error *e)
{
    struct pool_inode inode;
    int status = inode_find(c, &inode, e);

    if (status != DELTAFS_OK)
        return status;
    uint64_t size = inode.attributes.size, at = inode.appended > size ? inode.appended : size;
    if (c->r->size > POOL_FILE_MAX - at)
        return e->status = DELTAFS_ERR_TOO_LARGE;
    inode.appended = at + c->r->size;
    c->answer->value = at;
    return pool_store_inode_put(c->store, &inode, 0, e);
}

/* The size is the last thing to change: if the client is killed before, nothing is left that would be read again when
 * the file grows. */
static int do_truncate(struct service_call *c, struct error *e)
{
    struct pool_inode inode;
    uint64_t size = c->r->size;
    int is_more = 0, status = size_check(c, e);

    if (status == DELTAFS_OK)
        status = inode_find(c, &inode, e);
    if (status != DELTAFS_OK)
        return status;
    if (!S_ISREG(inode.attributes.mode))
        return e->status = DELTAFS_ERR_FOLDER;
    c->answer->value = inode.attributes.size;
    if (size < inode.attributes.size)
        status = pool_store_cut(c->store, c->r->id, size, &is_more, e);
    if (status != DELTAFS_OK || is_more)
        return is_more ? POOL_HAS_CHANGED : status;
    inode.attributes.size = size;
    inode.appended = 0;
    inode.attributes.mtime = inode.attributes.ctime = service_now();
    return pool_store_inode_put(c->store, &inode, 0, e);
}

/* ---- Bytes ---- */

static int bytes_check(const struct service_call *c, uint64_t n, struct error *e)
{
    uint64_t offset = c->r->offset;

    if (n == 0 || n > POOL_SLOT_BYTES || offset >= POOL_FILE_MAX || offset % POOL_CHUNK + n > POOL_CHUNK)
        return error_set(e, DELTAFS_ERR_INVALID, "a bad range of bytes");
    return DELTAFS_OK;
}

static int do_read(struct service_call *c, struct error *e)
{
    uint64_t n = c->r->size;
    struct pool_inode inode;
    int status = bytes_check(c, n, e);

    if (status == DELTAFS_OK && c->r->flags & POOL_HAS_INODE) {
        status = inode_find(c, &inode, e);
        uint64_t size = status == DELTAFS_OK ? inode.attributes.size : 0, offset = c->r->offset;
        n = size <= offset ? 0 : size - offset < n ? size - offset : n;
        c->answer->attributes.size = size;
    }
    if (status == DELTAFS_OK && n > 0)
        status = pool_store_read(c->store, c->r->id, c->r->offset, c->out, (size_t)n, e);
    c->answer->bytes = (uint32_t)n;
    return status;
}

/* A file is removed while another process writes to it: bytes that come later would stay for ever, since the server of
 * the attributes may have let the file grow before. */
static uint64_t *removed_place(const struct service_call *c)
{
    return &c->v->removed[c->r->id % SERVICE_REMOVED];
}

static int do_write(struct service_call *c, struct error *e)
{
    uint64_t n = c->r->bytes;
    struct pool_inode inode;
    int status = bytes_check(c, n, e), has_inode = c->r->flags & POOL_HAS_INODE;

    if (status == DELTAFS_OK && has_inode)
        status = inode_find(c, &inode, e);
    else if (status == DELTAFS_OK && *removed_place(c) == c->r->id)
        status = e->status = DELTAFS_ERR_NOT_FOUND;
    if (status == DELTAFS_OK)
        status = pool_store_write(c->store, c->r->id, c->r->offset, c->in, (size_t)n, e);
    return status == DELTAFS_OK && has_inode ? inode_grow(c, &inode, c->r->offset + n, e) : status;
}

static int do_cut(struct service_call *c, struct error *e)
{
    int is_more = 0, status = pool_store_cut(c->store, c->r->id, c->r->size, &is_more, e);

    if (c->r->flags & POOL_IS_REMOVED)
        *removed_place(c) = c->r->id;
    c->answer->value = is_more != 0;
    return status;
}

static int do_status(struct service_call *c, struct error *e)
{
    struct pool_status s = {.operations = c->v->operations, .clients = c->v->clients};

    (void)e;
    pool_store_status(c->store, &s);
    memcpy(c->out, &s, sizeof s);
    c->answer->bytes = sizeof s;
    return DELTAFS_OK;
}

static int do_stop(struct service_call *c, struct error *e)
{
    (void)e;
    c->v->is_stopping = 1;
    return DELTAFS_OK;
}

/* ---- Locks ---- */

static int do_lock(struct service_call *c, struct error *e)
{
    const struct pool_request *r = c->r;
    const struct pool_range range = {.id = r->id,
                                     .client = r->value,
                                     .from = r->offset,
                                     .to = r->size,
                                     .lock = (enum pool_lock)r->mode,
                                     .process = r->uid};
    struct pool_inode inode;
    int status = inode_find(c, &inode, e);

    if (status != DELTAFS_OK)
        return status;
    if (range.from >= range.to || r->mode > POOL_EXCLUSIVE)
        return error_set(e, DELTAFS_ERR_INVALID, "a bad lock");
    const struct pool_range *other = pool_locks_other(&c->v->locks, &range);
    if (!other)
        return r->gid ? DELTAFS_OK : pool_locks_set(&c->v->locks, &range, e);
    c->answer->attributes = (struct pool_attributes){
        .id = other->from, .size = other->to, .mode = (uint32_t)other->lock, .uid = other->process};
    return POOL_IS_LOCKED;
}

static int do_leave(struct service_call *c, struct error *e)
{
    (void)e;
    pool_locks_leave(&c->v->locks, c->r->value);
    return DELTAFS_OK;
}

/* ---- All requests ---- */

static const struct {
    int (*run)(struct service_call *c, struct error *e);
    int has_path;
} service_ops[POOL_OPS] = {
    [POOL_STATUS] = {do_status, 0},      [POOL_STOP] = {do_stop, 0},         [POOL_LOOKUP] = {service_lookup, 1},
    [POOL_CREATE] = {service_create, 1}, [POOL_LINK] = {service_link, 1},    [POOL_RESTORE] = {service_restore, 1},
    [POOL_UNLINK] = {service_unlink, 1}, [POOL_REGISTER] = {do_register, 1}, [POOL_MEMBERS] = {do_members, 1},
    [POOL_FORGET] = {do_forget, 1},      [POOL_RMDIR] = {do_rmdir, 1},       [POOL_LIST] = {do_list, 1},
    [POOL_STAT] = {do_stat, 0},          [POOL_SET] = {do_set, 0},           [POOL_GROW] = {do_grow, 0},
    [POOL_APPEND] = {do_append, 0},      [POOL_TRUNCATE] = {do_truncate, 0}, [POOL_REMOVE] = {service_remove, 0},
    [POOL_READ] = {do_read, 0},          [POOL_WRITE] = {do_write, 0},       [POOL_CUT] = {do_cut, 0},
    [POOL_LOCK] = {do_lock, 0},          [POOL_LEAVE] = {do_leave, 0},       [POOL_SYMLINK] = {service_symlink, 1}};

/* Copy the path, and what is behind it. */
static int take_path(struct service_call *c, char after[POOL_PATH_MAX + 1], struct error *e)
{
    const char *in = c->in;
    size_t bytes = c->r->bytes;

    c->n = strnlen(in, bytes <= POOL_PATH_MAX ? bytes : POOL_PATH_MAX);
    memcpy(c->path, in, c->n);
    c->path[c->n] = '\0';
    if (c->n + 1 < bytes) {
        c->after_n = bytes - c->n - 1;
        if (c->after_n > POOL_PATH_MAX)
            return error_set(e, DELTAFS_ERR_INVALID, "a text that is too long");
        memcpy(after, in + c->n + 1, c->after_n);
    }
    c->after = after;
    return pool_path_is_normal(c->path, c->n) ? DELTAFS_OK : error_set(e, DELTAFS_ERR_INVALID, "a bad path");
}

void pool_answer_error(const struct error *e, void *out, struct pool_answer *answer)
{
    size_t n = strlen(e->text);

    answer->status = e->status;
    memcpy(out, e->text, n);
    answer->bytes = (uint32_t)n;
}

void pool_service_do(struct pool_service *v, const struct pool_request *r, const void *in, void *out,
                     struct pool_answer *answer)
{
    struct service_call c;
    char after[POOL_PATH_MAX + 1];
    struct error e;

    /* The paths are not cleared: they are long. */
    c.v = v;
    c.store = v->store;
    c.r = r;
    c.n = c.after_n = 0;
    c.in = in;
    c.out = out;
    c.answer = answer;
    e.status = DELTAFS_OK;
    e.text[0] = '\0';
    v->operations++;
    *answer = (struct pool_answer){.bytes = 0};
    int status =
        r->op < POOL_OPS && service_ops[r->op].run ? DELTAFS_OK : error_set(&e, DELTAFS_ERR_INVALID, "a bad request");
    if (status == DELTAFS_OK && service_ops[r->op].has_path)
        status = take_path(&c, after, &e);
    if (status == DELTAFS_OK)
        status = service_ops[r->op].run(&c, &e);
    answer->status = status;
    if (status < 0) {
        e.status = status;
        pool_answer_error(&e, out, answer);
    }
}

int pool_service_begin(struct pool_service *v, struct error *e)
{
    struct pool_name name = {.id = POOL_ROOT_ID, .mode = S_IFDIR, .links = 1};
    const int64_t time = service_now();
    struct pool_inode inode = {.attributes = {.id = POOL_ROOT_ID,
                                              .mode = S_IFDIR | 0700,
                                              .uid = geteuid(),
                                              .gid = getegid(),
                                              .mtime = time,
                                              .atime = time,
                                              .ctime = time,
                                              .generation = 1}};

    if (v->server != 0)
        return DELTAFS_OK;
    int status = pool_store_put(v->store, "/", 1, &name, 0, e);
    return status == DELTAFS_OK ? pool_store_inode_put(v->store, &inode, 1, e) : status;
}
