#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "io/io_format.h"
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

void volumes_fini(struct volumes *v)
{
    free(v->text);
    *v = (struct volumes){0};
}

/* VOLUME/deltafs.UUID, and with a part the folder of that. */
static char *volume_path(char path[PATH_ROOM], const char *volume, const char *uuid_text, const char *part)
{
    return io_path_in(path, volume, VOLUME_FOLDER "%s%s", uuid_text, *part ? "/" : "", part);
}

/* Another process that removes the last part on the volume removes its root, too: then make it again. */
static int volume_make(struct io *io, const char *volume, const char *uuid_text, const char *part, struct error *e)
{
    char root[PATH_ROOM], path[PATH_ROOM];
    int status = DELTAFS_ERR_NOT_FOUND;

    volume_path(root, volume, uuid_text, "");
    for (int i = 0; i < TRIES && status == DELTAFS_ERR_NOT_FOUND; i++) {
        status = io_mkdir(io, root, e);
        if (!*part || (status != DELTAFS_OK && status != DELTAFS_ERR_EXISTS))
            return status;
        status = io_mkdir(io, volume_path(path, volume, uuid_text, part), e);
    }
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_ERR_BUSY : status;
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
    char folder[PATH_ROOM], target[PATH_ROOM];

    if (v->count == 0)
        return io_mkdir(io, path, e);
    volume_path(folder, v->folder[bucket % v->count], uuid_text, part);
    int status = io_mkdir(io, io_path_in(target, folder, BUCKET_NAME, bucket), e);
    if (status != DELTAFS_OK)
        return status;
    status = io_symlink(io, target, path, e);
    if (status != DELTAFS_OK)
        io->ops->rmdir(io->ctx, target);
    return status;
}

int volumes_sync(const struct volumes *v, struct io *io, const char *uuid_text, const char *part, struct error *e)
{
    char path[PATH_ROOM];
    int status = DELTAFS_OK;

    for (uint32_t i = 0; i < v->count && status == DELTAFS_OK; i++) {
        status = io_sync_folder(io, v->folder[i], e);
        if (status == DELTAFS_OK)
            status = io_sync_folder(io, volume_path(path, v->folder[i], uuid_text, ""), e);
        if (status == DELTAFS_OK && *part)
            status = io_sync_folder(io, volume_path(path, v->folder[i], uuid_text, part), e);
    }
    return status;
}

void volumes_unmake(const struct volumes *v, struct io *io, const char *uuid_text, const char *part)
{
    char path[PATH_ROOM];

    for (uint32_t i = 0; i < v->count; i++) {
        io->ops->rmdir(io->ctx, volume_path(path, v->folder[i], uuid_text, part));
        io->ops->rmdir(io->ctx, volume_path(path, v->folder[i], uuid_text, ""));
    }
}

/* ---- A bucket that exists ---- */

/* Where the link at `path` leads; DELTAFS_ERR_NOT_FOUND if it is none. */
static int volume_target(struct io *io, const char *uuid_text, const char *part, uint32_t bucket, const char *path,
                         char target[PATH_MAX], struct error *e)
{
    char folder[PATH_ROOM], end[PATH_ROOM];
    int status = io_readlink(io, path, target, PATH_MAX, e);

    if (status != DELTAFS_OK)
        return status;
    io_path_in(end, volume_path(folder, "", uuid_text, part), BUCKET_NAME, bucket);
    size_t n = strlen(target), m = strlen(end);
    if (n <= m || target[0] != '/' || strcmp(target + n - m, end) != 0)
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: leads to %s, which is none of the container's", path, target);
    return DELTAFS_OK;
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

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = io_rmdir(io, path, e);
    else if (status == DELTAFS_OK) {
        /* The link last: as long as it is there, another attempt finds the rest. What has other buckets stays. */
        for (int up = 0; up < (*part ? 3 : 2); up++) {
            int rc = io->ops->rmdir(io->ctx, target);
            int is_fine = rc == 0 || rc == -ENOENT || rc == -ENOTDIR || (up > 0 && (rc == -ENOTEMPTY || rc == -EEXIST));
            if (!is_fine)
                return error_system(e, -rc, "remove the folder", target);
            *strrchr(target, '/') = '\0';
        }
        status = io_unlink(io, path, e);
    }
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}
