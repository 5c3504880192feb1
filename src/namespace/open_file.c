/* Open files. All handles of a file share one struct open_file. A file that is written is held as a whole; of one that
 * is only read, the chunk that was read last. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/sized.h"
#include "namespace/shared.h"

struct open_file {
    struct open_file *next; /* in its bucket */
    unsigned users;
    struct entry_id parent; /* its name, */
    uint64_t key;
    char name[ENTRY_NAME_MAX];
    size_t name_size;
    int is_removed; /* which it has no more */
    struct inode inode;
    int is_changed; /* its bytes are to be written */
    int is_whole;   /* `bytes` are all of it; else the chunk `chunk`, of chunk_size bytes */
    struct buffer bytes;
    uint64_t chunk;
    size_t chunk_size;
};

struct deltafs_namespace_file {
    deltafs_namespace *ns;
    struct open_file *file;
    int can_read, can_write, is_append;
};

/* ---- Which are open ---- */

static size_t bucket_of(const struct entry_id *id)
{
    return (size_t)((id->number ^ id->table) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % OPEN_BUCKETS;
}

static struct open_file *find_open(const deltafs_namespace *ns, const struct entry_id *id)
{
    struct open_file *f = ns->opens > 0 ? ns->open[bucket_of(id)] : NULL;

    while (f && !id_is_same(&f->inode.id, id))
        f = f->next;
    return f;
}

const struct inode *ns_current(const deltafs_namespace *ns, const struct inode *inode)
{
    const struct open_file *f = find_open(ns, &inode->id);

    return f ? &f->inode : inode;
}

static void set_name(struct open_file *f, const struct entry_name *name)
{
    f->parent = name->parent;
    f->key = name->key;
    f->name_size = name->size;
    memcpy(f->name, name->text, name->size);
}

void ns_note_removed(deltafs_namespace *ns, const struct entry_id *id)
{
    struct open_file *f = find_open(ns, id);

    if (f)
        f->is_removed = 1;
}

void ns_note_moved(deltafs_namespace *ns, const struct inode *inode, const struct entry_name *to)
{
    struct open_file *f = find_open(ns, &inode->id);

    if (!f)
        return;
    set_name(f, to);
    f->inode.stamp = inode->stamp;
}

void ns_note_attributes(deltafs_namespace *ns, const struct inode *inode)
{
    struct open_file *f = find_open(ns, &inode->id);

    if (!f)
        return;
    f->inode.stamp = inode->stamp;
    f->inode.mtime = inode->mtime;
    f->inode.atime = inode->atime;
    f->inode.uid = inode->uid;
    f->inode.gid = inode->gid;
    f->inode.mode = inode->mode;
}

/* The open file for what has this name; one more user. */
static int share_file(deltafs_namespace *ns, const struct entry_name *name, const struct inode *inode,
                      struct open_file **out)
{
    struct open_file *f = find_open(ns, &inode->id);

    if (!f) {
        f = calloc(1, sizeof *f);
        if (!f)
            return error_no_memory(&ns->error, sizeof *f, "a file");
        f->inode = *inode;
        f->is_whole = inode->size == 0;
        set_name(f, name);
        f->next = ns->open[bucket_of(&inode->id)];
        ns->open[bucket_of(&inode->id)] = f;
        ns->opens++;
    }
    f->users++;
    *out = f;
    return DELTAFS_OK;
}

static void free_file(deltafs_namespace *ns, struct open_file *f)
{
    struct open_file **link = &ns->open[bucket_of(&f->inode.id)];

    while (*link != f)
        link = &(*link)->next;
    *link = f->next;
    ns->opens--;
    buffer_fini(&f->bytes);
    free(f);
}

void ns_free_files(deltafs_namespace *ns)
{
    for (size_t i = 0; i < OPEN_BUCKETS; i++)
        while (ns->open[i])
            free_file(ns, ns->open[i]);
}

/* ---- Bytes ---- */

static size_t chunk_bytes(const struct open_file *f, uint64_t chunk)
{
    uint64_t left = f->inode.size - chunk * CHUNK_SIZE;

    return left < CHUNK_SIZE ? (size_t)left : CHUNK_SIZE;
}

int ns_read_own_chunk(deltafs_namespace *ns, const struct entry_id *place, size_t size, uint8_t *to)
{
    int status = place->number > ns->own.data_label ? ns_commit_data(ns) : DELTAFS_OK;

    return status == DELTAFS_OK ? tables_read_chunk(&ns->tables, place, size, to, &ns->error) : status;
}

static int read_chunk(deltafs_namespace *ns, const struct open_file *f, uint64_t chunk, uint8_t *to)
{
    struct entry_id place = {f->inode.data.table, f->inode.data.number + chunk};
    size_t size = chunk_bytes(f, chunk);

    if (place.table == ns->own.number)
        return ns_read_own_chunk(ns, &place, size, to);
    return ns->shared ? shared_read(ns, &place, size, to)
                      : tables_read_chunk(&ns->tables, &place, size, to, &ns->error);
}

/* Have all bytes in memory. */
static int load_whole(deltafs_namespace *ns, struct open_file *f)
{
    if (f->is_whole)
        return DELTAFS_OK;
    f->chunk_size = 0;
    int status = buffer_reserve(&f->bytes, f->inode.size, "a file", &ns->error);
    for (uint64_t k = 0; k * CHUNK_SIZE < f->inode.size && status == DELTAFS_OK; k++)
        status = read_chunk(ns, f, k, f->bytes.bytes + k * CHUNK_SIZE);
    f->is_whole = status == DELTAFS_OK;
    return status;
}

/* Have a chunk in memory. */
static int load_chunk(deltafs_namespace *ns, struct open_file *f, uint64_t chunk)
{
    if (f->chunk_size > 0 && f->chunk == chunk)
        return DELTAFS_OK;
    f->chunk_size = 0;
    int status = buffer_reserve(&f->bytes, CHUNK_SIZE, "a file", &ns->error);
    if (status == DELTAFS_OK)
        status = read_chunk(ns, f, chunk, f->bytes.bytes);
    if (status != DELTAFS_OK)
        return status;
    f->chunk = chunk;
    f->chunk_size = chunk_bytes(f, chunk);
    return DELTAFS_OK;
}

static int read_bytes(deltafs_namespace *ns, struct open_file *f, uint64_t offset, uint8_t *to, size_t size)
{
    int status = DELTAFS_OK;

    if (f->is_whole) {
        memcpy(to, f->bytes.bytes + offset, size);
        return DELTAFS_OK;
    }
    for (size_t some; size > 0 && status == DELTAFS_OK; size -= some) {
        size_t at = (size_t)(offset % CHUNK_SIZE);
        some = CHUNK_SIZE - at < size ? CHUNK_SIZE - at : size;
        status = load_chunk(ns, f, offset / CHUNK_SIZE);
        if (status == DELTAFS_OK)
            memcpy(to, f->bytes.bytes + at, some);
        to += some;
        offset += some;
    }
    return status;
}

/* The bytes have changed. */
static void touch(deltafs_namespace *ns, struct open_file *f)
{
    f->inode.stamp = ns_stamps(ns, 1);
    f->inode.mtime = (int64_t)f->inode.stamp;
    f->is_changed = 1;
}

static int set_size(deltafs_namespace *ns, struct open_file *f, uint64_t size)
{
    if (size > FILE_MAX)
        return error_set(&ns->error, DELTAFS_ERR_TOO_LARGE, "%s: %.*s: a file of %llu bytes; at most %u are possible",
                         ns->path, (int)f->name_size, f->name, (unsigned long long)size, FILE_MAX);
    if (size == 0) {
        f->is_whole = 1;
        f->chunk_size = 0;
    }
    int status = load_whole(ns, f);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&f->bytes, size, "a file", &ns->error);
    if (status != DELTAFS_OK)
        return status;
    if (size > f->inode.size)
        memset(f->bytes.bytes + f->inode.size, 0, size - f->inode.size);
    f->inode.size = size;
    touch(ns, f);
    return DELTAFS_OK;
}

/* Note a file's new state under its name. If it does not have that any more, another rank has renamed it, which ends
 * with the lock, or removed it. */
static int put_state(deltafs_namespace *ns, struct open_file *f)
{
    struct entry_name name = {f->parent, f->key, f->name, f->name_size};

    if (!ns->shared)
        return ns_put(ns, &name, &f->inode, "", 0);
    int status = shared_put_data(ns, &name, &f->inode);
    if (status != SHARED_STALE)
        return status;
    status = shared_lock(ns);
    if (status != DELTAFS_OK)
        return status;
    name = (struct entry_name){f->parent, f->key, f->name, f->name_size};
    status = shared_put_data(ns, &name, &f->inode);
    shared_unlock(ns);
    if (status != SHARED_STALE)
        return status;
    f->is_removed = 1;
    return DELTAFS_OK;
}

/* Write the bytes of a file that has changed, and note its new state under its name. */
static int flush_file(deltafs_namespace *ns, struct open_file *f)
{
    uint64_t chunks = (f->inode.size + CHUNK_SIZE - 1) / CHUNK_SIZE;
    int status = DELTAFS_OK;

    if (!f->is_changed || f->is_removed)
        return DELTAFS_OK;
    if (ns->broken.status != DELTAFS_OK) {
        ns->error = ns->broken;
        return ns->error.status;
    }
    if (chunks > 0) {
        status = own_table_open_data(&ns->own, &ns->last_stamp, &ns->error);
        f->inode.data = (struct entry_id){ns->own.number, ns_stamps(ns, chunks)};
    }
    for (uint64_t k = 0; k < chunks && status == DELTAFS_OK; k++)
        status = own_table_put_chunk(&ns->own, f->inode.data.number + k, f->bytes.bytes + k * CHUNK_SIZE,
                                     chunk_bytes(f, k), &ns->error);
    if (status != DELTAFS_OK)
        return status;
    f->inode.stamp = ns_stamps(ns, 1);
    status = put_state(ns, f);
    f->is_changed = status != DELTAFS_OK;
    return status;
}

int ns_flush_files(deltafs_namespace *ns)
{
    int status = DELTAFS_OK;

    for (size_t i = 0; ns->opens > 0 && i < OPEN_BUCKETS; i++)
        for (struct open_file *f = ns->open[i]; f && status == DELTAFS_OK; f = f->next)
            status = flush_file(ns, f);
    return status;
}

/* ---- Public functions ---- */

/* What open(2) does with a name, up to the inode; `is_new`: it was created. */
static int find_or_create(deltafs_namespace *ns, const char *path, int flags, uint32_t mode, struct found *f)
{
    int is_exclusive = (flags & O_CREAT) && (flags & O_EXCL);
    int status = walk_to(ns, &ns->walk, path, !(flags & O_NOFOLLOW) && !is_exclusive, f);

    if (status != DELTAFS_OK)
        return status;
    if (f->inode.type == ENTRY_REMOVED && (flags & O_CREAT)) {
        if (f->last.is_folder)
            return ns_fail(ns, DELTAFS_ERR_FOLDER, path);
        struct entry_name name = walk_name(&ns->walk, f, 0);
        f->inode = ns_new_inode(ns, ENTRY_FILE, mode);
        return ns_put(ns, &name, &f->inode, "", 0);
    }
    if (f->inode.type == ENTRY_REMOVED || is_exclusive)
        return ns_fail(ns, is_exclusive ? DELTAFS_ERR_EXISTS : DELTAFS_ERR_NOT_FOUND, path);
    return f->inode.type == ENTRY_FILE
               ? DELTAFS_OK
               : ns_fail(ns, f->inode.type == ENTRY_FOLDER ? DELTAFS_ERR_FOLDER : DELTAFS_ERR_LOOP, path);
}

static int open_path(deltafs_namespace *ns, const char *path, int flags, uint32_t mode,
                     struct deltafs_namespace_file *h)
{
    struct found f;
    int status;

    if (ns->shared)
        ns->shared->assumes_new = (flags & O_CREAT) && (flags & O_EXCL);
    do
        status = find_or_create(ns, path, flags, mode, &f);
    while (shared_again(ns, &status));
    if (status != DELTAFS_OK)
        return status;
    struct entry_name name = f.node ? node_name(f.node) : walk_name(&ns->walk, &f, 0);
    status = share_file(ns, &name, &f.inode, &h->file);
    if (status == DELTAFS_OK && (flags & O_TRUNC) && h->file->inode.size > 0)
        status = set_size(ns, h->file, 0);
    return status;
}

int deltafs_namespace_file_open(deltafs_namespace *ns, const char *path, int flags, uint32_t mode,
                                deltafs_namespace_file **out)
{
    static const char call[] = "deltafs_namespace_file_open";
    int access = flags & O_ACCMODE, is_change = access != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
    int status = ns_begin(ns, call, is_change);

    if (status != DELTAFS_OK)
        return status;
    if (!path || !out)
        return ns_end(ns, ns_no_argument(ns, call, "path and out"));
    deltafs_namespace_file *h = calloc(1, sizeof *h);
    if (!h)
        return ns_end(ns, error_no_memory(&ns->error, sizeof *h, "a file"));
    *h = (deltafs_namespace_file){.ns = ns,
                                  .can_read = access != O_WRONLY,
                                  .can_write = access != O_RDONLY,
                                  .is_append = (flags & O_APPEND) != 0};
    status = open_path(ns, path, flags, mode, h);
    if (status == DELTAFS_OK)
        *out = h;
    else
        free(h);
    return ns_end(ns, status);
}

/* Begin a call with a file; it must be open for this. */
static int file_begin(deltafs_namespace_file *h, const char *call, int is_possible)
{
    int status = ns_begin(h ? h->ns : NULL, call, 0);

    if (status == DELTAFS_OK && !is_possible)
        status = ns_end(h->ns, error_set(&h->ns->error, DELTAFS_ERR_INVALID,
                                         "%s: the file is not open for this, or an "
                                         "argument is missing",
                                         call));
    return status;
}

int deltafs_namespace_file_read(deltafs_namespace_file *h, uint64_t offset, void *bytes, size_t size, size_t *got)
{
    int status = file_begin(h, "deltafs_namespace_file_read", h && h->can_read && bytes && got);

    if (status != DELTAFS_OK)
        return status;
    uint64_t end = h->file->inode.size, left = offset < end ? end - offset : 0;
    size_t n = left < size ? (size_t)left : size;
    status = n > 0 ? read_bytes(h->ns, h->file, offset, bytes, n) : DELTAFS_OK;
    if (status == DELTAFS_OK)
        *got = n;
    return ns_end(h->ns, status);
}

int deltafs_namespace_file_write(deltafs_namespace_file *h, uint64_t offset, const void *bytes, size_t size)
{
    int status = file_begin(h, "deltafs_namespace_file_write", h && h->can_write && bytes);

    if (status != DELTAFS_OK)
        return status;
    if (size == 0)
        return ns_end(h->ns, DELTAFS_OK);
    struct open_file *f = h->file;
    if (h->is_append)
        offset = f->inode.size;
    uint64_t end = offset <= FILE_MAX && size <= FILE_MAX ? offset + size : UINT64_MAX;
    status = set_size(h->ns, f, end > f->inode.size ? end : f->inode.size);
    if (status == DELTAFS_OK)
        memcpy(f->bytes.bytes + offset, bytes, size);
    return ns_end(h->ns, status);
}

int deltafs_namespace_file_truncate(deltafs_namespace_file *h, uint64_t size)
{
    int status = file_begin(h, "deltafs_namespace_file_truncate", h && h->can_write);

    return status == DELTAFS_OK ? ns_end(h->ns, set_size(h->ns, h->file, size)) : status;
}

int deltafs_namespace_file_stat(deltafs_namespace_file *h, struct deltafs_namespace_stat *out)
{
    struct deltafs_namespace_stat s;
    int status = file_begin(h, "deltafs_namespace_file_stat", out != NULL);

    if (status != DELTAFS_OK)
        return status;
    inode_to_stat(&h->file->inode, &s);
    return ns_end(h->ns, sized_fill(out, &s, sizeof s, "deltafs_namespace_file_stat", &h->ns->error));
}

int deltafs_namespace_file_close(deltafs_namespace_file *h)
{
    if (!h)
        return DELTAFS_OK;
    deltafs_namespace *ns = h->ns;
    struct open_file *f = h->file;
    int status = ns_begin(ns, "deltafs_namespace_file_close", 0);
    free(h);
    if (--f->users > 0)
        return status == DELTAFS_OK ? ns_end(ns, status) : status;
    int has_begun = status == DELTAFS_OK;
    if (status == DELTAFS_OK)
        status = flush_file(ns, f);
    if (f->is_changed && !f->is_removed)
        ns_break(ns, status);
    free_file(ns, f);
    return has_begun ? ns_end(ns, status) : status;
}
