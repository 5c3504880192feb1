/* Open files. All handles of a file share one struct open_file, but for those of before and after a refresh that has
 * found other bytes of it: each has what there was when it was opened. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/sized.h"
#include "namespace/file_bytes.h"
#include "namespace/shared.h"

struct open_file {
    struct open_file *next; /* in its bucket */
    unsigned users;
    struct inode inode;
    int is_changed; /* it is to be committed again */
    struct file_bytes bytes;
    struct entry_id parent; /* its name, */
    uint64_t key;
    int is_removed; /* which it has no more */
    size_t name_size;
    char name[ENTRY_NAME_MAX];
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

/* The first of an entry, or the one after `f`. */
static struct open_file *next_open(const deltafs_namespace *ns, const struct entry_id *id, struct open_file *f)
{
    f = f ? f->next : ns->opens > 0 ? ns->open[bucket_of(id)] : NULL;
    while (f && !id_is_same(&f->inode.id, id))
        f = f->next;
    return f;
}

/* The open file for an entry in this state: one that was changed here, or has the same bytes. */
static struct open_file *find_open(const deltafs_namespace *ns, const struct inode *inode)
{
    struct open_file *f = next_open(ns, &inode->id, NULL);

    while (f && !ns->shared &&
           (f->is_removed ||
            !(f->is_changed || (f->inode.size == inode->size && id_is_same(&f->inode.data, &inode->data)))))
        f = next_open(ns, &inode->id, f);
    return f;
}

const struct inode *ns_current(const deltafs_namespace *ns, const struct inode *inode)
{
    const struct open_file *f = find_open(ns, inode);

    return f && (f->is_changed || ns->shared) ? &f->inode : inode;
}

const struct inode *ns_changed(const deltafs_namespace *ns, const struct inode *inode)
{
    const struct open_file *f = find_open(ns, inode);

    return f && f->is_changed ? &f->inode : inode;
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
    for (struct open_file *f = NULL; (f = next_open(ns, id, f)) != NULL;)
        f->is_removed = 1;
}

void ns_note_moved(deltafs_namespace *ns, const struct inode *inode, const struct entry_name *to)
{
    for (struct open_file *f = NULL; (f = next_open(ns, &inode->id, f)) != NULL;) {
        set_name(f, to);
        f->inode.stamp = inode->stamp;
    }
}

void ns_note_attributes(deltafs_namespace *ns, const struct inode *inode)
{
    for (struct open_file *f = NULL; (f = next_open(ns, &inode->id, f)) != NULL;) {
        f->inode.stamp = inode->stamp;
        f->inode.mtime = inode->mtime;
        f->inode.atime = inode->atime;
        f->inode.uid = inode->uid;
        f->inode.gid = inode->gid;
        f->inode.mode = inode->mode;
    }
}

/* The open file for what has this name; one more user. */
static int share_file(deltafs_namespace *ns, const struct entry_name *name, const struct inode *inode,
                      struct open_file **out)
{
    struct open_file *f = find_open(ns, inode);

    if (f && !f->is_changed && !ns->shared) { /* others may have given it another name, or attributes */
        f->inode = *inode;
        set_name(f, name);
    }
    if (!f) {
        f = malloc(sizeof *f);
        if (!f)
            return error_no_memory(&ns->error, sizeof *f, "a file");
        memset(f, 0, offsetof(struct open_file, name));
        f->inode = *inode;
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
    file_bytes_fini(&f->bytes);
    free(f);
}

void ns_free_files(deltafs_namespace *ns)
{
    for (size_t i = 0; i < OPEN_BUCKETS; i++)
        while (ns->open[i])
            free_file(ns, ns->open[i]);
}

/* ---- Changes ---- */

/* The bytes have changed. */
static void touch(deltafs_namespace *ns, struct open_file *f)
{
    f->inode.stamp = ns_stamps(ns, 1);
    f->inode.mtime = (int64_t)f->inode.stamp;
    f->is_changed = 1;
}

static int set_size(deltafs_namespace *ns, struct open_file *f, uint64_t size)
{
    int status = file_bytes_resize(ns, &f->bytes, &f->inode, size);

    if (status == DELTAFS_OK)
        touch(ns, f);
    return status;
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
    int status = DELTAFS_OK;

    if (!f->is_changed || f->is_removed)
        return DELTAFS_OK;
    if (ns->broken.status != DELTAFS_OK) {
        ns->error = ns->broken;
        return ns->error.status;
    }
    status = file_bytes_store(ns, &f->bytes, &f->inode);
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

/* What open(2) does with a name, up to the inode; *is_new: it was created. */
static int find_or_create(deltafs_namespace *ns, const char *path, int flags, uint32_t mode, struct found *f,
                          int *is_new)
{
    int is_exclusive = (flags & O_CREAT) && (flags & O_EXCL);
    int is_read = (flags & (O_ACCMODE | O_CREAT | O_TRUNC)) == O_RDONLY;
    unsigned how = ((flags & O_NOFOLLOW) || is_exclusive ? 0 : WALK_FOLLOWS) | (is_read ? WALK_INODE : 0);
    int status = walk_to(ns, &ns->walk, path, how, f);

    *is_new = 0;
    if (status != DELTAFS_OK)
        return status;
    if (f->inode.type == ENTRY_REMOVED && (flags & O_CREAT)) {
        if (f->last.is_folder)
            return ns_fail(ns, DELTAFS_ERR_FOLDER, path);
        struct entry_name name = walk_name(&ns->walk, f, 0);
        f->inode = ns_new_inode(ns, ENTRY_FILE, mode);
        *is_new = 1;
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
    int status, is_new;

    if (ns->shared)
        ns->shared->assumes_new = (flags & O_CREAT) && (flags & O_EXCL);
    do
        status = find_or_create(ns, path, flags, mode, &f, &is_new);
    while (shared_again(ns, &status));
    if (status != DELTAFS_OK)
        return status;
    struct entry_name name = f.node ? node_name(f.node) : walk_name(&ns->walk, &f, 0);
    if (h->can_read && ns->listed)
        list_note_opened(ns, &name);
    status = share_file(ns, &name, &f.inode, &h->file);
    if (status == DELTAFS_OK && (flags & O_TRUNC) && !is_new)
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
    deltafs_namespace_file *h = malloc(sizeof *h);
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
    status = n > 0 ? file_bytes_read(h->ns, &h->file->bytes, &h->file->inode, offset, bytes, n) : DELTAFS_OK;
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
    uint64_t was = f->inode.size;
    status = file_bytes_write(h->ns, &f->bytes, &f->inode, offset, bytes, size);
    if (status == DELTAFS_OK || f->inode.size != was)
        touch(h->ns, f);
    return ns_end(h->ns, status);
}

int deltafs_namespace_file_truncate(deltafs_namespace_file *h, uint64_t size)
{
    int status = file_begin(h, "deltafs_namespace_file_truncate", h && h->can_write);

    return status == DELTAFS_OK ? ns_end(h->ns, set_size(h->ns, h->file, size)) : status;
}

int deltafs_namespace_file_sync(deltafs_namespace_file *h)
{
    int status = file_begin(h, "deltafs_namespace_file_sync", 1);

    if (status != DELTAFS_OK)
        return status;
    deltafs_namespace *ns = h->ns;
    if (ns->own.number == 0)
        return ns_end(ns, DELTAFS_OK);
    if (!ns->shared && ns->broken.status == DELTAFS_OK)
        return ns_end(ns, ns_commit(ns));
    status = ns->broken.status;
    if (status != DELTAFS_OK)
        ns->error = ns->broken;
    else
        status = flush_file(ns, h->file);
    return ns_end(ns, status == DELTAFS_OK ? ns_commit_data(ns) : status);
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

int deltafs_namespace_truncate(deltafs_namespace *ns, const char *path, uint64_t size)
{
    deltafs_namespace_file *h;
    int status = deltafs_namespace_file_open(ns, path, O_WRONLY, 0, &h);

    if (status != DELTAFS_OK)
        return status;
    status = deltafs_namespace_file_truncate(h, size);
    int closed = deltafs_namespace_file_close(h);
    return status == DELTAFS_OK ? closed : status;
}
