#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/path.h"
#include "io/io_format.h"
#include "io/textlog.h"
#include "io/volume.h"

#define TRIES 100 /* while others remove the folder above */

static int volumes_add(struct volumes *v, const char *folder, struct error *e)
{
    if (folder[0] != '/')
        return error_set(e, DELTAFS_ERR_OPTION, "option volumes: '%s' is not a path from the root", folder);
    if (v->count == VOLUMES_MAX)
        return error_set(e, DELTAFS_ERR_OPTION, "option volumes: more than %u of them", VOLUMES_MAX);
    for (uint32_t i = 0; i < v->count; i++)
        if (strcmp(v->folder[i], folder) == 0)
            return error_set(e, DELTAFS_ERR_OPTION, "option volumes: '%s' is named twice", folder);
    v->folder[v->count++] = folder;
    return DELTAFS_OK;
}

int volumes_parse(struct volumes *v, const char *text, struct error *e)
{
    int status = DELTAFS_OK;

    *v = (struct volumes){0};
    if (*text == '\0')
        return DELTAFS_OK;
    v->text = strdup(text);
    if (!v->text)
        return error_no_memory(e, strlen(text) + 1, "the volumes");
    for (char *p = v->text, *end; p && status == DELTAFS_OK; p = end) {
        end = strchr(p, ':');
        if (end)
            *end++ = '\0';
        status = volumes_add(v, p, e);
    }
    if (status != DELTAFS_OK)
        volumes_fini(v);
    return status;
}

void volumes_choose(struct volumes *v, const struct volume_part *p, uint32_t buckets)
{
    const struct volumes all = *v;
    char name[PATH_ROOM];

    if (all.count == 0)
        return;
    io_path_in(name, p->uuid_text, "%s", p->part);
    uint32_t first = (uint32_t)(hash_bytes(name, strlen(name)) % all.count);
    for (v->count = 0; v->count < all.count && v->count < buckets; v->count++)
        v->folder[v->count] = all.folder[(first + v->count) % all.count];
}

void volumes_fini(struct volumes *v)
{
    free(v->text);
    *v = (struct volumes){0};
}

/* ---- Which container a bucket on a volume belongs to ---- */

/* A copy of the container has links to the same bucket, and the same UUID, but another folder. Device numbers differ
 * between hosts and change when a system starts; the time of birth tells apart what has the same inode elsewhere. */
struct owner {
    uint64_t inode, born;
    char path[PATH_ROOM]; /* as it was created */
};

static int owner_find(const struct volume_part *p, struct owner *o, struct error *e)
{
    struct io_file folder;
    struct io_attributes a;
    int status = io_file_open(p->io, p->container, O_RDONLY, &folder, e);

    if (status != DELTAFS_OK)
        return status;
    status = io_file_attributes(&folder, &a, e);
    *o = (struct owner){.inode = a.inode, .born = a.born};
    return io_file_finish(&folder, status, e);
}

static int owner_write(const struct volume_part *p, const char *target, struct error *e)
{
    struct owner o;
    struct io_file file;
    char name[PATH_ROOM], *path = path_absolute(p->container);
    uint64_t size = 0;

    if (!path)
        return error_no_memory(e, strlen(p->container), "a path");
    for (char *c = path; (c = strchr(c, '\n'));)
        *c = '?';
    int status = owner_find(p, &o, e);
    if (status == DELTAFS_OK)
        status = io_file_open(p->io, io_path_in(name, target, OWNER_NAME), O_RDWR | O_CREAT | O_EXCL, &file, e);
    if (status == DELTAFS_OK) {
        status = textlog_append(&file, &size, 0, e, "Owner inode=%" PRIu64 " born=%" PRIu64 " path=%s", o.inode, o.born,
                                path);
        status = io_file_finish(&file, status, e);
    }
    free(path);
    return status;
}

static int owner_remove(const struct volume_part *p, const char *target, struct error *e)
{
    char name[PATH_ROOM];
    int status = io_unlink(p->io, io_path_in(name, target, OWNER_NAME), e);

    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

static int owner_take_line(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct owner *o = arg;
    const char *text = strstr(fields, "path=");

    if (textlog_number(fields, "inode", &o->inode) != 0 || textlog_number(fields, "born", &o->born) != 0 || !text)
        return error_damaged(e, path, offset, "the line is malformed; remove the file");
    snprintf(o->path, sizeof o->path, "%s", text + strlen("path="));
    return DELTAFS_OK;
}

static int owner_take(void *arg, char *line, const char *path, uint64_t offset, struct error *e)
{
    static const struct textlog_word words[] = {{"Owner", owner_take_line}, {NULL, NULL}};

    return textlog_take(words, arg, line, path, offset, e);
}

/* Whether the container is the one that `target` was made for. Where that is not recorded, as in version 0.1, it is. */
static int owner_check(const struct volume_part *p, const char *path, const char *target, struct error *e)
{
    struct owner is, own = {0};
    struct io_file file;
    uint64_t end;
    char name[PATH_ROOM];
    int status = io_file_open(p->io, io_path_in(name, target, OWNER_NAME), O_RDONLY, &file, e);

    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
    status =
        textlog_read(&file, "remove the file, if the bucket is not of another container", owner_take, &own, &end, e);
    status = io_file_finish(&file, status, e);
    if (status != DELTAFS_OK || own.path[0] == '\0')
        return status;
    status = owner_find(p, &is, e);
    if (status != DELTAFS_OK || (is.inode == own.inode && (is.born == own.born || is.born == 0 || own.born == 0)))
        return status;
    return error_set(
        e, DELTAFS_ERR_NOT_DELTAFS,
        "%s: leads to %s, which belongs to %s: %s is a copy of that, or was moved, or its file system changes inode "
        "numbers (FUSE and CIFS may); if there is no other, remove the file " OWNER_NAME " from each such folder; if "
        "there is, replace each such link by a copy of its folder",
        path, target, own.path, p->container);
}

/* VOLUME/deltafs.UUID, and with a part the folder of that. */
static char *volume_path(char path[PATH_ROOM], const char *volume, const struct volume_part *p, const char *part)
{
    return io_path_in(path, volume, VOLUME_FOLDER "%s%s", p->uuid_text, *part ? "/" : "", part);
}

static char *bucket_path(char path[PATH_ROOM], const struct volume_part *p, uint32_t bucket)
{
    return io_path_in(path, p->container, "%s%s" BUCKET_NAME, p->part, *p->part ? "/" : "", bucket);
}

/* A link in the place of a container's own folder on a volume leads to what may be another's. */
static int volume_check_folder(const struct volume_part *p, const char *path, struct error *e)
{
    char target[PATH_MAX];
    int status = io_readlink(p->io, path, target, sizeof target, e);

    if (status == DELTAFS_OK)
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS,
                         "%s: is a symbolic link, so nothing is written or removed there; put the folder itself, or a "
                         "copy of it, in its place",
                         path);
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

/* Another process that removes the last part on the volume removes its root, too: then make it again. */
static int volume_make(const char *volume, const struct volume_part *p, struct error *e)
{
    char root[PATH_ROOM], path[PATH_ROOM];
    int status = DELTAFS_ERR_NOT_FOUND;

    volume_path(root, volume, p, "");
    for (int i = 0; i < TRIES && status == DELTAFS_ERR_NOT_FOUND; i++) {
        status = io_mkdir(p->io, root, e);
        if (!*p->part || (status != DELTAFS_OK && status != DELTAFS_ERR_EXISTS))
            return status;
        status = volume_check_folder(p, root, e);
        if (status == DELTAFS_OK)
            status = io_mkdir(p->io, volume_path(path, volume, p, p->part), e);
    }
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_ERR_BUSY : status;
}

int volumes_make(const struct volumes *v, const struct volume_part *p, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < v->count && status == DELTAFS_OK; i++)
        status = volume_make(v->folder[i], p, e);
    return status;
}

int volumes_make_bucket(const struct volumes *v, const struct volume_part *p, uint32_t bucket, struct error *e)
{
    char path[PATH_ROOM], folder[PATH_ROOM], target[PATH_ROOM];

    bucket_path(path, p, bucket);
    if (v->count == 0)
        return io_mkdir(p->io, path, e);
    volume_path(folder, v->folder[bucket % v->count], p, p->part);
    int status = io_mkdir(p->io, io_path_in(target, folder, BUCKET_NAME, bucket), e);
    if (status != DELTAFS_OK)
        return status;
    status = owner_write(p, target, e);
    if (status == DELTAFS_OK)
        status = io_symlink(p->io, target, path, e);
    if (status != DELTAFS_OK) {
        owner_remove(p, target, error_ignored());
        p->io->ops->rmdir(p->io->ctx, target);
    }
    return status;
}

int volumes_sync(const struct volumes *v, const struct volume_part *p, struct error *e)
{
    char path[PATH_ROOM];
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < v->count && status == DELTAFS_OK; i++) {
        status = io_sync_folder(p->io, v->folder[i], e);
        if (status == DELTAFS_OK)
            status = io_sync_folder(p->io, volume_path(path, v->folder[i], p, ""), e);
        if (status == DELTAFS_OK && *p->part)
            status = io_sync_folder(p->io, volume_path(path, v->folder[i], p, p->part), e);
    }
    return status;
}

void volumes_unmake(const struct volumes *v, const struct volume_part *p)
{
    char path[PATH_ROOM];

    for (uint32_t i = 0; i < v->count; i++) {
        if (volume_check_folder(p, volume_path(path, v->folder[i], p, ""), error_ignored()) != DELTAFS_OK)
            continue;
        p->io->ops->rmdir(p->io->ctx, volume_path(path, v->folder[i], p, p->part));
        p->io->ops->rmdir(p->io->ctx, volume_path(path, v->folder[i], p, ""));
    }
}

/* ---- A bucket that exists ---- */

/* Where the bucket at `path` leads; DELTAFS_ERR_NOT_FOUND if it is no link. */
static int volume_target(const struct volume_part *p, uint32_t bucket, const char *path, char target[PATH_MAX],
                         struct error *e)
{
    char folder[PATH_ROOM], end[PATH_ROOM];
    int status = io_readlink(p->io, path, target, PATH_MAX, e);

    if (status != DELTAFS_OK)
        return status;
    io_path_in(end, volume_path(folder, "", p, p->part), BUCKET_NAME, bucket);
    size_t n = strlen(target), m = strlen(end);
    if (n <= m || target[0] != '/' || strcmp(target + n - m, end) != 0)
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS,
                         "%s: leads to %s, which is not this container's: the option volumes makes links to "
                         "VOLUME%s; put the bucket's own folder in the place of the link",
                         path, target, end);
    /* The bucket, the part and the container's root on the volume. */
    for (size_t length = n; length > n - m && status == DELTAFS_OK;) {
        snprintf(folder, sizeof folder, "%.*s", (int)length, target);
        status = volume_check_folder(p, folder, e);
        length = (size_t)(strrchr(folder, '/') - folder);
    }
    return status;
}

int volume_check_bucket(const struct volume_part *p, uint32_t bucket, struct error *e)
{
    char path[PATH_ROOM], target[PATH_MAX];
    int status = volume_target(p, bucket, bucket_path(path, p, bucket), target, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        return DELTAFS_OK;
    return status == DELTAFS_OK ? owner_check(p, path, target, e) : status;
}

int volume_check_buckets(const struct volume_part *p, uint32_t count, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t b = 0; b < count && status == DELTAFS_OK; b++)
        status = volume_check_bucket(p, b, e);
    return status;
}

static int bucket_refuse_name(void *arg, const char *name, struct error *e)
{
    return strcmp(name, OWNER_NAME) == 0
               ? DELTAFS_OK
               : error_set(e, DELTAFS_ERR_IO, "%s: still has %s, so it stays; remove or move that, and try again",
                           (const char *)arg, name);
}

/* OWNER goes last: what has anything else stays the container's. A missing folder is empty. */
static int bucket_empty(const struct volume_part *p, char *folder, struct error *e)
{
    int status = io_list(p->io, folder, bucket_refuse_name, folder, e);

    if (status == DELTAFS_OK)
        return owner_remove(p, folder, e);
    return status == DELTAFS_ERR_NOT_FOUND || status == DELTAFS_ERR_NOT_DELTAFS ? DELTAFS_OK : status;
}

/* The folder of a bucket, if it has nothing but OWNER. Of an empty one this takes no memory. */
static int bucket_remove(const struct volume_part *p, char *folder, struct error *e)
{
    int rc = p->io->ops->rmdir(p->io->ctx, folder);

    if (rc == 0 || rc == -ENOENT || rc == -ENOTDIR)
        return DELTAFS_OK;
    if (rc != -ENOTEMPTY && rc != -EEXIST)
        return error_system(e, -rc, "remove the folder", folder);
    int status = bucket_empty(p, folder, e);
    return status == DELTAFS_OK ? io_rmdir(p->io, folder, e) : status;
}

int volume_remove_bucket(const struct volume_part *p, uint32_t bucket, struct error *e)
{
    char path[PATH_ROOM], target[PATH_MAX];
    int status = volume_target(p, bucket, bucket_path(path, p, bucket), target, e);

    if (status == DELTAFS_ERR_NOT_FOUND) {
        status = bucket_remove(p, path, e);
    } else if (status == DELTAFS_OK && (status = bucket_remove(p, target, e)) == DELTAFS_OK) {
        /* The link last: as long as it is there, another attempt finds the rest. What has other buckets stays. */
        for (int up = *p->part ? 2 : 1; up > 0; up--) {
            *strrchr(target, '/') = '\0';
            int rc = p->io->ops->rmdir(p->io->ctx, target);
            if (rc != 0 && rc != -ENOENT && rc != -ENOTDIR && rc != -ENOTEMPTY && rc != -EEXIST)
                return error_system(e, -rc, "remove the folder", target);
        }
        status = io_unlink(p->io, path, e);
    }
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}
