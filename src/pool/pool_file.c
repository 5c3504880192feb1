/* Open files of a pool. Nothing is kept of a file but its number: all bytes, and the size, are on the servers. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/options.h"
#include "base/sized.h"
#include "pool/pool_client.h"

struct deltafs_pool_file {
    struct deltafs_pool *pool;
    uint64_t id;
    int flags;
    _Atomic uint64_t end;          /* where it ended when that was last known: so far it is read at first */
    struct pool_attributes opened; /* as they were found by the name; id 0: another server has them */
    char name[];                   /* the path, for messages */
};

/* ---- Opening ---- */

static int file_create(struct deltafs_pool *p, const struct pool_place *place, int flags, uint32_t mode,
                       struct pool_attributes *out, struct error *e)
{
    struct pool_call c = pool_call_at(POOL_CREATE, place);

    c.request.mode = S_IFREG | (mode & 07777);
    c.request.value = p->link.is_local ? p->link.server + 1 : 0;
    c.request.uid = geteuid();
    c.request.gid = getegid();
    int status = pool_ask_in_folder(p, place, &c, e);
    if (status == DELTAFS_ERR_EXISTS && !(flags & O_EXCL) && place->n > 1)
        status = DELTAFS_OK;
    else if (status == DELTAFS_ERR_EXISTS && !(flags & O_EXCL))
        status = pool_refuse(DELTAFS_ERR_FOLDER, place->path, e);
    if (status == DELTAFS_OK)
        *out = c.answer.attributes;
    return status;
}

/* Find a file, or create it, also one that a link leads to. */
static int file_find(struct deltafs_pool *p, struct pool_place *place, int flags, uint32_t mode,
                     struct pool_attributes *out, struct error *e)
{
    int is_new = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL), status;

    do {
        struct pool_call c = pool_call_at(POOL_LOOKUP, place);
        if (flags & O_CREAT) {
            status = file_create(p, place, flags, mode, out, e);
        } else {
            status = pool_ask(p, &c, place->path, e);
            *out = c.answer.attributes;
        }
        if (status == DELTAFS_OK && S_ISLNK(out->mode))
            status = POOL_IS_LINK;
    } while (pool_follow(p, place, !is_new && !(flags & O_NOFOLLOW), &status, e));
    return status == DELTAFS_OK && S_ISDIR(out->mode) ? pool_refuse(DELTAFS_ERR_FOLDER, place->path, e) : status;
}

/* The size that came with the attributes of what was found at a place. */
static uint64_t size_found(const struct pool_place *place, const struct pool_attributes *a)
{
    return pool_id_server(a->id) == place->owner ? a->size : POOL_SIZE_UNKNOWN;
}

int deltafs_pool_file_open(deltafs_pool *pool, const char *path, int flags, uint32_t mode, deltafs_pool_file **out)
{
    struct error e = {.status = DELTAFS_OK};
    struct deltafs_pool_file *f = NULL;
    struct pool_place place;
    struct pool_attributes a = {.id = 0};
    int status = pool_place_set(pool, &place, path, &e);

    if (status == DELTAFS_OK)
        status = file_find(pool, &place, flags, mode, &a, &e);
    if (status == DELTAFS_OK && !(f = malloc(sizeof *f + place.n + 1)))
        status = error_no_memory(&e, sizeof *f + place.n + 1, "an open file");
    if (status == DELTAFS_OK && flags & O_TRUNC)
        status = pool_truncate(pool, a.id, 0, size_found(&place, &a), place.path, &e);
    if (status != DELTAFS_OK) {
        free(f);
        return error_of_thread(status, &e);
    }
    *f = (struct deltafs_pool_file){.pool = pool, .id = a.id, .flags = flags, .end = flags & O_TRUNC ? 0 : a.size};
    if (pool_id_server(a.id) == place.owner)
        f->opened = a;
    if (flags & O_TRUNC)
        f->opened.size = 0;
    memcpy(f->name, place.path, place.n + 1);
    *out = f;
    return DELTAFS_OK;
}

int deltafs_pool_file_close(deltafs_pool_file *file)
{
    free(file);
    return DELTAFS_OK;
}

int deltafs_pool_file_stat(deltafs_pool_file *file, struct deltafs_pool_stat *out)
{
    struct error e = {.status = DELTAFS_OK};
    struct pool_attributes a;
    int status = pool_look_id(file->pool, file->id, file->name, &a, &e);

    if (status == DELTAFS_OK)
        status = pool_stat_of(&a, out, "deltafs_pool_file_stat", &e);
    return error_of_thread(status, &e);
}

int deltafs_pool_file_stat_opened(deltafs_pool_file *file, struct deltafs_pool_stat *out)
{
    struct error e = {.status = DELTAFS_OK};

    if (file->opened.id == 0)
        return deltafs_pool_file_stat(file, out);
    return error_of_thread(pool_stat_of(&file->opened, out, "deltafs_pool_file_stat_opened", &e), &e);
}

/* ---- Locks ---- */

static int file_lock(struct deltafs_pool_file *f, struct deltafs_pool_lock *lock, int is_test, struct error *e)
{
    struct pool_call c = pool_call_id(POOL_LOCK, f->id);

    if (lock->type > POOL_EXCLUSIVE || lock->from > INT64_MAX || lock->size > INT64_MAX)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: no such lock", f->name);
    c.request.offset = lock->from;
    c.request.size = lock->size > 0 ? lock->from + lock->size : UINT64_MAX;
    c.request.mode = lock->type;
    c.request.gid = (uint32_t)is_test;
    c.request.uid = (uint32_t)getpid();
    int status = pool_ask(f->pool, &c, f->name, e);
    if (is_test && status == DELTAFS_OK)
        lock->type = DELTAFS_POOL_UNLOCKED;
    if (is_test && status == POOL_IS_LOCKED) {
        const struct pool_attributes *a = &c.answer.attributes;
        lock->type = a->mode;
        lock->process = a->uid;
        lock->from = a->id;
        lock->size = a->size == UINT64_MAX ? 0 : a->size - a->id;
        return DELTAFS_OK;
    }
    return status == POOL_IS_LOCKED ? error_set(e, DELTAFS_ERR_BUSY, "%s: is locked by another process", f->name)
                                    : status;
}

int deltafs_pool_file_lock(deltafs_pool_file *file, const struct deltafs_pool_lock *lock)
{
    struct error e = {.status = DELTAFS_OK};
    struct deltafs_pool_lock l;
    int status = sized_take(&l, lock, sizeof l, "deltafs_pool_file_lock", &e);

    return error_of_thread(status == DELTAFS_OK ? file_lock(file, &l, 0, &e) : status, &e);
}

int deltafs_pool_file_find_lock(deltafs_pool_file *file, struct deltafs_pool_lock *lock)
{
    struct error e = {.status = DELTAFS_OK};
    struct deltafs_pool_lock l;
    int status = sized_take(&l, lock, sizeof l, "deltafs_pool_file_find_lock", &e);

    if (status == DELTAFS_OK)
        status = file_lock(file, &l, 1, &e);
    if (status == DELTAFS_OK)
        status = sized_fill(lock, &l, sizeof l, "deltafs_pool_file_find_lock", &e);
    return error_of_thread(status, &e);
}

/* ---- Size ---- */

/* What other servers have is removed first: if this process is killed, nothing is left that would be read again when
 * the file grows. */
int pool_truncate(struct deltafs_pool *p, uint64_t id, uint64_t size, uint64_t before, const char *name,
                  struct error *e)
{
    struct pool_call c = pool_call_id(POOL_TRUNCATE, id);
    struct pool_attributes a = {.size = before};
    int has_others = p->link.servers > 1, status = DELTAFS_OK;

    if (has_others && before == POOL_SIZE_UNKNOWN)
        status = pool_look_id(p, id, name, &a, e);
    if (has_others && status == DELTAFS_OK)
        status = pool_cut(p, id, size, a.size, 0, name, e);
    c.request.size = size;
    if (status == DELTAFS_OK)
        do
            status = pool_ask(p, &c, name, e);
        while (status == POOL_HAS_CHANGED);
    if (status != DELTAFS_OK || !has_others || c.answer.value <= a.size) /* else it has grown meanwhile */
        return status;
    return pool_cut(p, id, size, c.answer.value, 0, name, e);
}

static int check_access(const struct deltafs_pool_file *f, int refused, const char *what, struct error *e)
{
    if ((f->flags & O_ACCMODE) != refused)
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_INVALID, "%s: is not open for %s", f->name, what);
}

int deltafs_pool_file_truncate(deltafs_pool_file *file, uint64_t size)
{
    struct error e = {.status = DELTAFS_OK};
    int status = check_access(file, O_RDONLY, "writing", &e);

    if (status == DELTAFS_OK)
        status = pool_truncate(file->pool, file->id, size, POOL_SIZE_UNKNOWN, file->name, &e);
    return error_of_thread(status, &e);
}

int deltafs_pool_file_extend(deltafs_pool_file *file, uint64_t size)
{
    struct error e = {.status = DELTAFS_OK};
    struct pool_call c = pool_call_id(POOL_GROW, file->id);
    int status = check_access(file, O_RDONLY, "writing", &e);

    c.request.size = size;
    if (status == DELTAFS_OK && size > POOL_FILE_MAX)
        status = pool_refuse(DELTAFS_ERR_TOO_LARGE, file->name, &e);
    if (status == DELTAFS_OK)
        status = pool_ask(file->pool, &c, file->name, &e);
    return error_of_thread(status, &e);
}

int deltafs_pool_truncate(deltafs_pool *pool, const char *path, uint64_t size)
{
    struct error e = {.status = DELTAFS_OK};
    struct pool_place place;
    struct pool_attributes a = {.id = 0};
    int status = pool_place_set(pool, &place, path, &e);

    if (status == DELTAFS_OK)
        status = file_find(pool, &place, 0, 0, &a, &e);
    if (status == DELTAFS_OK)
        status = pool_truncate(pool, a.id, size, size_found(&place, &a), place.path, &e);
    return error_of_thread(status, &e);
}

/* ---- Bytes ---- */

#define PIECES (POOL_SLOTS - 1) /* of one round; one call more is about the size */

/* Calls for the first pieces of a range, at most `room`, each within a chunk; returns their number, and *covered gets
 * their bytes. */
static size_t pieces_make(const struct deltafs_pool_file *f, enum pool_op op, uint64_t offset, size_t size,
                          struct pool_call *calls, size_t room, size_t *covered)
{
    const struct pool_link *l = &f->pool->link;
    size_t n;

    *covered = 0;
    for (n = 0; n < room && *covered < size; n++) {
        uint64_t at = offset + *covered;
        uint32_t server = pool_chunk_owner(f->id, at / POOL_CHUNK, l->servers);
        size_t most = pool_link_is_near(l, server) ? POOL_SLOT_BYTES : POOL_REMOTE_BYTES,
               rest = POOL_CHUNK - at % POOL_CHUNK, bytes = size - *covered;
        bytes = bytes < most ? bytes : most;
        bytes = bytes < rest ? bytes : rest;
        calls[n] = pool_call_of(op, server);
        calls[n].request.id = f->id;
        calls[n].request.offset = at;
        if (op == POOL_READ)
            calls[n].request.size = bytes;
        else
            calls[n].request.bytes = (uint32_t)bytes;
        if (server == pool_id_server(f->id))
            calls[n].request.flags = POOL_HAS_INODE;
        *covered += bytes;
    }
    return n;
}

/* Make the calls; the first error is that of the file. */
static int pieces_do(struct deltafs_pool_file *f, struct pool_call *calls, size_t n, struct error *e)
{
    int status = pool_link_calls(&f->pool->link, calls, n, e);

    if (status != DELTAFS_OK)
        return error_set(e, status, "%s: %s", f->name, e->text);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        if (calls[i].answer.status < 0)
            status = pool_refuse(calls[i].answer.status, f->name, e);
    return status;
}

/* How much of a range is read at first: what is behind the end of the file is not looked for on all servers. */
static size_t read_most(struct deltafs_pool_file *f, uint64_t offset, size_t size)
{
    uint64_t end = atomic_load_explicit(&f->end, memory_order_relaxed);

    /* An empty file may have been written since. */
    if (end == 0 || (end > offset && end - offset >= size))
        return size;
    uint64_t most = end > offset ? end - offset : POOL_BLOCK;
    return size < most ? size : (size_t)most;
}

/* Read pieces of the range; *end gets where the file ends. */
static int read_some(struct deltafs_pool_file *f, uint64_t offset, uint8_t *out, size_t size, size_t *covered,
                     uint64_t *end, struct error *e)
{
    struct pool_call calls[POOL_SLOTS];
    size_t n = pieces_make(f, POOL_READ, offset, read_most(f, offset, size), calls, PIECES, covered), place = 0;
    /* The server of the attributes says the size. */
    int is_asked = n > 1 || !(calls[0].request.flags & POOL_HAS_INODE);

    for (size_t i = 0; i < n; i++) {
        calls[i].out = out + place;
        calls[i].room = (size_t)calls[i].request.size;
        place += calls[i].room;
        calls[i].request.flags = is_asked ? 0 : POOL_HAS_INODE;
    }
    if (is_asked)
        calls[n++] = pool_call_id(POOL_STAT, f->id);
    int status = pieces_do(f, calls, n, e);
    if (status != DELTAFS_OK)
        return status;
    *end = calls[n - 1].answer.attributes.size;
    atomic_store_explicit(&f->end, *end, memory_order_relaxed);
    return DELTAFS_OK;
}

int deltafs_pool_file_read(deltafs_pool_file *file, uint64_t offset, void *bytes, size_t size, size_t *got)
{
    struct error e = {.status = DELTAFS_OK};
    size_t done = 0, covered = 0;
    uint64_t end = POOL_FILE_MAX;
    int status = check_access(file, O_WRONLY, "reading", &e);

    if (offset >= POOL_FILE_MAX)
        size = 0;
    else if (size > POOL_FILE_MAX - offset)
        size = (size_t)(POOL_FILE_MAX - offset);
    while (status == DELTAFS_OK && done < size && offset + done < end) {
        status = read_some(file, offset + done, (uint8_t *)bytes + done, size - done, &covered, &end, &e);
        done += status == DELTAFS_OK ? covered : 0;
    }
    if (status == DELTAFS_OK)
        *got = offset + done <= end ? done : end > offset ? (size_t)(end - offset) : 0;
    return error_of_thread(status, &e);
}

/* A file that is gone keeps nothing of what was written to it. */
static void write_undo(struct deltafs_pool_file *f, struct pool_call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        calls[i] = pool_call_of(POOL_CUT, calls[i].request.server);
        calls[i].request.id = f->id;
        calls[i].request.flags = POOL_IS_REMOVED;
    }
    pool_link_calls(&f->pool->link, calls, n, error_ignored());
}

/* A server had no room for its piece. The file has at least the size that the others' need, so that they are removed
 * with it. */
static void write_reach(struct deltafs_pool_file *f, const struct pool_call *calls, size_t n)
{
    struct pool_call c = pool_call_id(POOL_GROW, f->id);

    for (size_t i = 0; i < n; i++) {
        uint64_t end = calls[i].request.offset + calls[i].request.bytes;
        c.request.size = c.request.size < end ? end : c.request.size;
    }
    pool_link_calls(&f->pool->link, &c, 1, error_ignored());
}

/* What is left to write: `n` extents, without the first bytes of the first one. */
struct to_write {
    const struct deltafs_extent *extent;
    size_t n;
    uint64_t done;
    const uint8_t *bytes;
};

/* Calls for some of it; *end gets where the file has to end, or 0 if a server does that with what it writes. */
static size_t write_make(const struct deltafs_pool_file *f, struct to_write *w, struct pool_call calls[PIECES],
                         uint64_t *end)
{
    int is_set = 1;
    size_t n = 0, covered;

    *end = 0;
    while (n < PIECES && w->n > 0) {
        uint64_t at = w->extent->offset + w->done;
        size_t k = pieces_make(f, POOL_WRITE, at, (size_t)(w->extent->size - w->done), calls + n, PIECES - n, &covered);
        for (size_t last = n + k; n < last; w->bytes += calls[n++].request.bytes)
            calls[n].in = w->bytes;
        if (covered > 0 && at + covered > *end) {
            *end = at + covered;
            is_set = (calls[n - 1].request.flags & POOL_HAS_INODE) != 0;
        }
        w->done += covered;
        if (w->done == w->extent->size) {
            w->extent++;
            w->n--;
            w->done = 0;
        }
    }
    *end = is_set ? 0 : *end;
    return n;
}

static int write_some(struct deltafs_pool_file *f, struct to_write *w, struct error *e)
{
    struct pool_call calls[POOL_SLOTS];
    uint64_t end;
    size_t n = write_make(f, w, calls, &end), all = n;

    if (end > 0) {
        calls[all] = pool_call_id(POOL_GROW, f->id);
        calls[all++].request.size = end;
    }
    int status = all > 0 ? pieces_do(f, calls, all, e) : DELTAFS_OK;
    if (status == DELTAFS_ERR_NOT_FOUND)
        write_undo(f, calls, n);
    else if (status == DELTAFS_ERR_NO_SPACE && n > 1)
        write_reach(f, calls, n);
    return status;
}

static int write_all(struct deltafs_pool_file *f, size_t n, const struct deltafs_extent *extent, const void *bytes,
                     struct error *e)
{
    struct to_write w = {.extent = extent, .n = n, .bytes = bytes};
    int status = DELTAFS_OK;

    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        if (extent[i].offset > POOL_FILE_MAX || extent[i].size > POOL_FILE_MAX - extent[i].offset)
            status = pool_refuse(DELTAFS_ERR_TOO_LARGE, f->name, e);
    while (status == DELTAFS_OK && w.n > 0)
        status = write_some(f, &w, e);
    return status;
}

/* Write all of it; at the end if `is_appended`: then *offset gets where that was. */
static int file_write(struct deltafs_pool_file *f, uint64_t *offset, const uint8_t *bytes, size_t size, int is_appended,
                      struct error *e)
{
    struct pool_call c = pool_call_id(POOL_APPEND, f->id);
    int status = check_access(f, O_RDONLY, "writing", e);

    c.request.size = size;
    if (status == DELTAFS_OK && is_appended)
        status = pool_ask(f->pool, &c, f->name, e);
    if (status == DELTAFS_OK && is_appended)
        *offset = c.answer.value;
    return status == DELTAFS_OK ? write_all(f, 1, &(struct deltafs_extent){*offset, size}, bytes, e) : status;
}

int deltafs_pool_file_write(deltafs_pool_file *file, uint64_t offset, const void *bytes, size_t size)
{
    struct error e = {.status = DELTAFS_OK};

    return error_of_thread(file_write(file, &offset, bytes, size, file->flags & O_APPEND, &e), &e);
}

int deltafs_pool_file_write_list(deltafs_pool_file *file, size_t n, const struct deltafs_extent *extent,
                                 const void *bytes)
{
    struct error e = {.status = DELTAFS_OK};
    int status = check_access(file, O_RDONLY, "writing", &e);

    if (status == DELTAFS_OK && file->flags & O_APPEND)
        status = error_set(&e, DELTAFS_ERR_INVALID, "%s: is open for appending", file->name);
    return error_of_thread(status == DELTAFS_OK ? write_all(file, n, extent, bytes, &e) : status, &e);
}

int deltafs_pool_file_append(deltafs_pool_file *file, const void *bytes, size_t size, uint64_t *offset)
{
    struct error e = {.status = DELTAFS_OK};
    uint64_t at = 0;
    int status = file_write(file, &at, bytes, size, 1, &e);

    if (status == DELTAFS_OK)
        *offset = at;
    return error_of_thread(status, &e);
}
