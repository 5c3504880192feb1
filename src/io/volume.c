#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "io/io_format.h"
#include "io/volume.h"

#define TRIES 100 /* while others remove what is above */

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

void volumes_fini(struct volumes *v)
{
    free(v->text);
    *v = (struct volumes){0};
}

/* VOLUME/deltafs.UUID, and with a part the folder of that. */
static char *volume_root(const char *volume, const char *uuid_text)
{
    return io_path(volume, VOLUME_FOLDER, uuid_text);
}

static char *volume_part(const char *volume, const char *uuid_text, const char *part)
{
    return *part ? io_path(volume, VOLUME_FOLDER "/%s", uuid_text, part) : volume_root(volume, uuid_text);
}

/* DELTAFS_ERR_BUSY: the root has gone in between. Who removes the last part there removes it too. */
static int volume_try(struct io *io, const char *root, const char *path, struct error *e)
{
    int status = io_mkdir(io, root, e);

    if (strcmp(root, path) == 0 || (status != DELTAFS_OK && status != DELTAFS_ERR_EXISTS))
        return status;
    status = io_mkdir(io, path, e);
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_ERR_BUSY : status;
}

static int volume_make(struct io *io, const char *volume, const char *uuid_text, const char *part, struct error *e)
{
    char *root = volume_root(volume, uuid_text), *path = volume_part(volume, uuid_text, part);
    int status = root && path ? DELTAFS_ERR_BUSY : error_no_memory(e, strlen(volume), "a path");

    for (int i = 0; i < TRIES && status == DELTAFS_ERR_BUSY; i++)
        status = volume_try(io, root, path, e);
    free(root);
    free(path);
    return status;
}

int volumes_make(const struct volumes *v, struct io *io, const char *uuid_text, const char *part, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < v->count && status == DELTAFS_OK; i++)
        status = volume_make(io, v->folder[i], uuid_text, part, e);
    return status;
}

int volumes_make_bucket(const struct volumes *v, struct io *io, const char *uuid_text, const char *part,
                        uint32_t bucket, const char *path, struct error *e)
{
    char *folder = volume_part(v->folder[bucket % v->count], uuid_text, part), *target = NULL;

    if (folder)
        target = io_path(folder, BUCKET_NAME, bucket);
    int status = target ? io_mkdir(io, target, e) : error_no_memory(e, 1, "a path");
    if (status == DELTAFS_OK) {
        status = io_symlink(io, target, path, e);
        if (status != DELTAFS_OK)
            io->ops->rmdir(io->ctx, target);
    }
    free(folder);
    free(target);
    return status;
}

int volumes_sync(const struct volumes *v, struct io *io, const char *uuid_text, const char *part, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < v->count && status == DELTAFS_OK; i++) {
        char *root = volume_root(v->folder[i], uuid_text), *path = volume_part(v->folder[i], uuid_text, part);
        status = root && path ? io_sync_folder(io, v->folder[i], e) : error_no_memory(e, 1, "a path");
        if (status == DELTAFS_OK)
            status = io_sync_folder(io, root, e);
        if (status == DELTAFS_OK && *part)
            status = io_sync_folder(io, path, e);
        free(root);
        free(path);
    }
    return status;
}

void volumes_unmake(const struct volumes *v, struct io *io, const char *uuid_text, const char *part)
{
    for (uint32_t i = 0; i < v->count; i++) {
        char *root = volume_root(v->folder[i], uuid_text), *path = volume_part(v->folder[i], uuid_text, part);
        if (path)
            io->ops->rmdir(io->ctx, path);
        if (root)
            io->ops->rmdir(io->ctx, root);
        free(root);
        free(path);
    }
}

/* ---- A bucket that is there ---- */

/* Where the link at `path` leads; DELTAFS_ERR_NOT_FOUND if it is none. */
static int volume_target(struct io *io, const char *uuid_text, const char *part, uint32_t bucket, const char *path,
                         char target[PATH_MAX], struct error *e)
{
    int status = io_readlink(io, path, target, PATH_MAX, e);

    if (status != DELTAFS_OK)
        return status;
    char *end = *part ? io_path("", VOLUME_FOLDER "/%s/" BUCKET_NAME, uuid_text, part, bucket)
                      : io_path("", VOLUME_FOLDER "/" BUCKET_NAME, uuid_text, bucket);
    if (!end)
        return error_no_memory(e, 1, "a path");
    size_t n = strlen(target), m = strlen(end);
    if (n <= m || target[0] != '/' || strcmp(target + n - m, end) != 0)
        status =
            error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: leads to %s, which is none of the container's", path, target);
    free(end);
    return status;
}

int volume_check_bucket(struct io *io, const char *uuid_text, const char *part, uint32_t bucket, const char *path,
                        int *is_link, struct error *e)
{
    char target[PATH_MAX];
    int status = volume_target(io, uuid_text, part, bucket, path, target, e);

    *is_link = status != DELTAFS_ERR_NOT_FOUND;
    return *is_link ? status : DELTAFS_OK;
}

int volume_remove_bucket(struct io *io, const char *uuid_text, const char *part, uint32_t bucket, const char *path,
                         struct error *e)
{
    char target[PATH_MAX];
    int status = volume_target(io, uuid_text, part, bucket, path, target, e);

    if (status == DELTAFS_ERR_NOT_FOUND) {
        int rc = io->ops->rmdir(io->ctx, path);
        return rc < 0 && rc != -ENOENT ? error_system(e, -rc, "remove the folder", path) : DELTAFS_OK;
    }
    if (status != DELTAFS_OK)
        return status;
    /* The link last: as long as it is there, another attempt finds the rest. What holds other buckets stays. */
    for (int up = 0; up < (*part ? 3 : 2); up++) {
        int rc = io->ops->rmdir(io->ctx, target);
        int is_fine = rc == 0 || rc == -ENOENT || rc == -ENOTDIR || (up > 0 && (rc == -ENOTEMPTY || rc == -EEXIST));
        if (!is_fine)
            return error_system(e, -rc, "remove the folder", target);
        *strrchr(target, '/') = '\0';
    }
    int rc = io->ops->unlink(io->ctx, path);
    return rc < 0 && rc != -ENOENT ? error_system(e, -rc, "remove", path) : DELTAFS_OK;
}
