/* What a pool should answer: names and files in memory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/hash.h"
#include "tests/pool/pool_reference.h"

struct node node[NODES_MAX];
size_t nodes;
const char *point;

uint64_t entry_sum(const char *name, uint32_t mode)
{
    return hash_bytes(name, strlen(name)) ^ (S_ISDIR(mode) ? 1 : 0);
}

const char *target_of(const char *text, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s%s", *text == '@' ? point : "", text + (*text == '@'));
    return out;
}

static size_t node_find(const char *path)
{
    size_t i = 0;

    while (i < nodes && strcmp(node[i].path, path) != 0)
        i++;
    return i;
}

static struct inode *inode_of(const char *path)
{
    size_t i = node_find(path);

    return i < nodes ? node[i].inode : NULL;
}

static struct inode *parent_of(const char *path)
{
    char parent[64];

    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    return inode_of(*parent ? parent : "/");
}

/* What is still to go, behind a link. */
static int enter_link(char *out, char rest[512], const char *at, const char *target, int *links)
{
    char more[512];

    if (++*links > 40)
        return DELTAFS_ERR_LOOP;
    *strrchr(out, '/') = '\0';
    if (*target == '@')
        *out = '\0';
    if (snprintf(more, sizeof more, "%s/%s", target + (*target == '@'), at) >= (int)sizeof more)
        return DELTAFS_ERR_NAME;
    memcpy(rest, more, sizeof more);
    return DELTAFS_OK;
}

int resolve(const char *path, int has_last, char out[64])
{
    char rest[512], name[64];
    const char *at = rest;
    int links = 0, status = DELTAFS_OK;

    snprintf(rest, sizeof rest, "%s", path);
    out[0] = '\0';
    while (status == DELTAFS_OK && *(at += strspn(at, "/"))) {
        size_t n = strcspn(at, "/");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        at += n;
        int is_end = at[strspn(at, "/")] == '\0';
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0) {
            if (!*out)
                return DELTAFS_ERR_LOOP; /* only links have it */
            *strrchr(out, '/') = '\0';
            continue;
        }
        if (strlen(out) + 2 + n > 64)
            return DELTAFS_ERR_NAME;
        snprintf(out + strlen(out), 64 - strlen(out), "/%s", name);
        const struct inode *inode = inode_of(out);
        if (!inode)
            status = is_end ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND;
        else if (S_ISLNK(inode->mode) && (!is_end || has_last)) {
            status = enter_link(out, rest, at, inode->target, &links);
            at = rest;
        } else if (!S_ISDIR(inode->mode) && !is_end)
            status = DELTAFS_ERR_NOT_FOLDER;
    }
    if (!*out)
        snprintf(out, 64, "/");
    return status;
}

static void node_add(const char *path, struct inode *inode)
{
    snprintf(node[nodes].path, sizeof node[nodes].path, "%s", path);
    node[nodes++].inode = inode;
}

struct inode *inode_create(const char *path, uint32_t mode)
{
    struct inode *inode = calloc(1, sizeof *inode);

    inode->mode = mode;
    if (S_ISREG(mode))
        inode->bytes = calloc(1, FILE_MAX);
    node_add(path, inode);
    return inode;
}

static void inode_release(struct inode *inode)
{
    if (inode->is_removed && inode->opened == 0) {
        free(inode->bytes);
        free(inode);
    }
}

void node_remove(const char *path, int is_removed)
{
    size_t i = node_find(path);
    struct inode *inode = node[i].inode;

    node[i] = node[--nodes];
    inode->is_removed = is_removed;
    inode_release(inode);
}

int is_below(const char *path, const char *of)
{
    size_t n = strlen(of);

    return strncmp(path, of, n) == 0 && path[n] == '/';
}

static int is_child(const char *path, const char *of)
{
    size_t n = strcmp(of, "/") == 0 ? 0 : strlen(of);

    return strncmp(path, of, n) == 0 && path[n] == '/' && path[n + 1] != '\0' && !strchr(path + n + 1, '/');
}

int has_children(const char *path)
{
    for (size_t i = 0; i < nodes; i++)
        if (is_child(node[i].path, path))
            return 1;
    return 0;
}

/* Whether something can be created there. */
static int expect_place(const char *path)
{
    const struct inode *parent = parent_of(path);

    if (!parent)
        return DELTAFS_ERR_NOT_FOUND;
    return S_ISDIR(parent->mode) ? DELTAFS_OK : DELTAFS_ERR_NOT_FOLDER;
}

static void inode_cut(struct inode *inode, uint64_t size)
{
    if (size < inode->size)
        memset(inode->bytes + size, 0, inode->size - size);
    inode->size = size;
}

static int expect_open(const struct operation *given, struct inode **f)
{
    struct operation real = *given, *o = &real;
    int status = resolve(given->path, (o->flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL), o->path);

    if (status != DELTAFS_OK)
        return status;
    struct inode *inode = inode_of(o->path);
    if (!inode && !(o->flags & O_CREAT))
        return DELTAFS_ERR_NOT_FOUND;
    if (o->flags & O_CREAT && strcmp(o->path, "/") != 0 && (status = expect_place(o->path)) != DELTAFS_OK)
        return status;
    if (inode && o->flags & O_CREAT && o->flags & O_EXCL)
        return DELTAFS_ERR_EXISTS;
    if (inode && S_ISDIR(inode->mode))
        return DELTAFS_ERR_FOLDER;
    if (!inode)
        inode = inode_create(o->path, S_IFREG | 0600);
    if (o->flags & O_TRUNC)
        inode_cut(inode, 0);
    inode->opened++;
    *f = inode;
    return DELTAFS_OK;
}

int expect_file(struct inode **f, const struct operation *o, struct result *r)
{
    struct inode *inode = *f;
    uint64_t end = o->offset + o->size;

    if (o->kind == OPEN)
        return expect_open(o, f);
    if (o->kind == CLOSE) {
        *f = NULL;
        inode->opened--;
        inode_release(inode);
        return DELTAFS_OK;
    }
    if (inode->is_removed)
        return DELTAFS_ERR_NOT_FOUND;
    if (o->kind == WRITE) {
        memset(inode->bytes + o->offset, o->fill, o->size);
        if (o->size > 0 && end > inode->size) /* no bytes do not change the size */
            inode->size = end;
    } else if (o->kind == READ) {
        r->value = inode->size <= o->offset ? 0 : end < inode->size ? o->size : inode->size - o->offset;
        r->hash = hash_bytes(inode->bytes + o->offset, r->value);
    } else if (o->kind == STAT_FILE) {
        r->value = inode->size;
        r->mode = inode->mode;
    } else {
        inode_cut(inode, o->size);
    }
    return DELTAFS_OK;
}

/* A folder takes all below it along. */
static void node_rename(const char *from, const char *to)
{
    char path[64];

    for (size_t i = 0; i < nodes; i++)
        if (strcmp(node[i].path, from) == 0 || is_below(node[i].path, from)) {
            snprintf(path, sizeof path, "%.30s%.30s", to, node[i].path + strlen(from));
            memcpy(node[i].path, path, sizeof path);
        }
}

static int expect_rename(struct operation *o, const struct inode *from)
{
    int is_folder = S_ISDIR(from->mode), status;
    char real[64];

    if ((status = resolve(o->to, 0, real)) == DELTAFS_OK)
        memcpy(o->to, real, sizeof real);
    else if (!is_folder || status != DELTAFS_ERR_NOT_FOUND)
        return status;
    const struct inode *to = inode_of(o->to);
    if (strcmp(o->path, o->to) == 0)
        return DELTAFS_OK;
    if (strcmp(o->to, "/") == 0 || (is_folder && strcmp(o->path, "/") == 0))
        return DELTAFS_ERR_BUSY;
    if (is_folder && is_below(o->to, o->path))
        return DELTAFS_ERR_INVALID;
    if (status != DELTAFS_OK || (status = expect_place(o->to)) != DELTAFS_OK)
        return status;
    if (to && S_ISDIR(to->mode) != is_folder)
        return is_folder ? DELTAFS_ERR_NOT_FOLDER : DELTAFS_ERR_FOLDER;
    if (to && is_folder && has_children(o->to))
        return DELTAFS_ERR_NOT_EMPTY;
    if (to)
        node_remove(o->to, 1);
    node_rename(o->path, o->to);
    return DELTAFS_OK;
}

static int expect_rmdir(const char *path, const struct inode *inode)
{
    if (strcmp(path, "/") == 0)
        return DELTAFS_ERR_BUSY;
    if (!inode)
        return DELTAFS_ERR_NOT_FOUND;
    if (!S_ISDIR(inode->mode))
        return DELTAFS_ERR_NOT_FOLDER;
    if (has_children(path))
        return DELTAFS_ERR_NOT_EMPTY;
    node_remove(path, 1);
    return DELTAFS_OK;
}

static int expect_mkdir(const char *path)
{
    if (strcmp(path, "/") == 0)
        return DELTAFS_ERR_EXISTS;
    int status = expect_place(path);
    if (status == DELTAFS_OK && inode_of(path))
        status = DELTAFS_ERR_EXISTS;
    if (status == DELTAFS_OK)
        inode_create(path, S_IFDIR | 0700);
    return status;
}

static int expect_list(const char *path, const struct inode *inode, struct result *r)
{
    if (!S_ISDIR(inode->mode))
        return DELTAFS_ERR_NOT_FOLDER;
    for (size_t i = 0; i < nodes; i++) {
        if (!is_child(node[i].path, path))
            continue;
        r->hash += entry_sum(strrchr(node[i].path, '/') + 1, node[i].inode->mode);
        r->value++;
    }
    return DELTAFS_OK;
}

static int expect_link(const char *path, const char *target)
{
    char whole[PATH_MAX];
    int status = expect_mkdir(path);

    if (status != DELTAFS_OK)
        return status;
    struct inode *inode = inode_of(path);
    inode->mode = S_IFLNK | 0777;
    inode->size = strlen(target_of(target, whole));
    snprintf(inode->target, sizeof inode->target, "%s", target);
    return DELTAFS_OK;
}

static int expect_readlink(const struct inode *inode, struct result *r)
{
    char whole[PATH_MAX];

    if (!S_ISLNK(inode->mode))
        return DELTAFS_ERR_INVALID;
    r->value = inode->size;
    r->hash = hash_bytes(target_of(inode->target, whole), inode->size);
    return DELTAFS_OK;
}

int expect_path(const struct operation *given, struct result *r)
{
    struct operation real = *given, *o = &real;
    int has_last = o->kind == STAT || o->kind == LIST || o->kind == CUT || o->kind == CHMOD;
    int status = resolve(given->path, has_last, o->path);

    if (status != DELTAFS_OK)
        return status;
    struct inode *inode = inode_of(o->path);
    if (o->kind == MKDIR)
        return expect_mkdir(o->path);
    if (o->kind == LINK)
        return expect_link(o->path, o->to);
    if (o->kind == RMDIR)
        return expect_rmdir(o->path, inode);
    if (!inode)
        return DELTAFS_ERR_NOT_FOUND;
    if (o->kind == READLINK)
        return expect_readlink(inode, r);
    if (o->kind == RENAME)
        return expect_rename(o, inode);
    if (o->kind == LIST)
        return expect_list(o->path, inode, r);
    if (o->kind == STAT || o->kind == LSTAT) {
        r->value = inode->size;
        r->mode = inode->mode;
        return DELTAFS_OK;
    }
    if (o->kind == CHMOD) {
        inode->mode = (inode->mode & S_IFMT) | ((uint32_t)o->size & 0777);
        return DELTAFS_OK;
    }
    if (S_ISDIR(inode->mode))
        return DELTAFS_ERR_FOLDER;
    if (o->kind == UNLINK)
        node_remove(o->path, 1);
    else
        inode_cut(inode, o->size);
    return DELTAFS_OK;
}
