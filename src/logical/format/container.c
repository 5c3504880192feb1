/* Making, opening and telling a logical file's container. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "base/path.h"
#include "fileindex/fileindex_format.h"
#include "logical/format/logical_format.h"
#include "logical/format/session.h"
#include "logical/format/session_names.h"

#define TRIES 100 /* where others make and remove it at the same time */

/* What there is at a path where no manifest could be read. */
enum place { PLACE_NOTHING, PLACE_FILE, PLACE_EMPTY, PLACE_BEGUN, PLACE_BROKEN, PLACE_FOREIGN };

struct names_seen {
    int manifests, sessions, additions, others;
};

static int place_name(void *arg, const char *name, struct error *e)
{
    struct names_seen *seen = arg;
    uint32_t number;

    (void)e;
    if (is_name_session(name, &number))
        seen->sessions = 1;
    else if (strcmp(name, LOCK_NAME) == 0 || strcmp(name, FILEINDEX_FOLDER) == 0)
        seen->additions = 1;
    else if (is_name_kept(name) || is_name_aside(name) || strcmp(name, MANIFEST_NAME) == 0)
        seen->manifests = 1;
    else
        seen->others = 1;
    return DELTAFS_OK;
}

static int place_find(struct io *io, const char *path, enum place *place, struct error *e)
{
    struct names_seen seen = {0};
    int status = io_list(io, path, place_name, &seen, e);

    *place = seen.others      ? PLACE_FOREIGN
             : seen.sessions  ? PLACE_BROKEN
             : seen.additions ? PLACE_FOREIGN
             : seen.manifests ? PLACE_BEGUN
                              : PLACE_EMPTY;
    if (status == DELTAFS_ERR_NOT_FOUND)
        *place = PLACE_NOTHING;
    else if (status == DELTAFS_ERR_NOT_DELTAFS)
        *place = PLACE_FILE;
    else
        return status;
    return DELTAFS_OK;
}

int container_is_broken(struct io *io, const char *path)
{
    enum place place;
    struct error ignored;

    return place_find(io, path, &place, &ignored) == DELTAFS_OK && place == PLACE_BROKEN;
}

/* Read the manifest of a logical file. */
static int container_read(struct container *c, struct io *io, const char *path, int *has_manifest, struct error *e)
{
    struct manifest m;
    int status = manifest_read_any(io, path, &m, e);

    *has_manifest = status == DELTAFS_OK;
    if (status != DELTAFS_OK)
        return status;
    memcpy(c->uuid, m.uuid, sizeof c->uuid);
    memcpy(c->uuid_text, m.uuid_text, sizeof c->uuid_text);
    if (!m.is_file)
        status = error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: is a directory of DeltaFS, not a logical file", path);
    manifest_fini(&m);
    return status;
}

/* A manifest with a UUID of its own, in place if there is none. DELTAFS_ERR_EXISTS, or _NOT_FOUND if the folder has
 * gone. */
static int container_write(struct container *c, struct io *io, const char *path, int sync, struct error *e)
{
    char aside[PATH_ROOM], name[PATH_ROOM];
    struct manifest m = {.is_file = 1};
    int status = uuid_create(c->uuid, e);

    if (status != DELTAFS_OK)
        return status;
    uuid_to_text(c->uuid, c->uuid_text);
    memcpy(m.uuid_text, c->uuid_text, sizeof m.uuid_text);
    status = manifest_write(io, io_path_in(aside, path, MANIFEST_ASIDE_NAME, c->uuid_text), &m, sync, e);
    if (status == DELTAFS_OK)
        status = io_link(io, aside, io_path_in(name, path, MANIFEST_NAME), e);
    io->ops->unlink(io->ctx, aside);
    return status;
}

/* Make what is not there. DELTAFS_ERR_EXISTS if others were faster; _BUSY if what was there has changed meanwhile. */
static int container_make(struct container *c, struct io *io, const char *path, enum place place, int sync,
                          struct error *e)
{
    int status = place == PLACE_NOTHING ? io_mkdir(io, path, e) : DELTAFS_OK, is_ours = place == PLACE_NOTHING;
    char target[PATH_MAX];

    if (status == DELTAFS_ERR_EXISTS) {
        is_ours = 0;
        status = DELTAFS_OK;
    }
    if (status != DELTAFS_OK)
        return status;
    status = container_write(c, io, path, sync, e);
    if (status == DELTAFS_ERR_NOT_FOUND && io_readlink(io, path, target, sizeof target, e) == DELTAFS_OK)
        return error_set(e, status, "%s: is a symbolic link that leads to nothing", path);
    if (status == DELTAFS_ERR_NOT_FOUND)
        return error_set(e, DELTAFS_ERR_BUSY, "%s: another process is removing it", path);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_EXISTS && is_ours)
        io->ops->rmdir(io->ctx, path);
    return status;
}

/* There is no container at the path: what to say of it, or DELTAFS_OK if one can be made there. */
static int container_refuse(const char *path, int flags, enum place place, struct error *e)
{
    if ((flags & O_EXCL) && place == PLACE_EMPTY)
        return error_set(e, DELTAFS_ERR_EXISTS, "%s: exists already, as an empty folder", path);
    if ((flags & O_CREAT) && place != PLACE_FILE && place != PLACE_FOREIGN && place != PLACE_BROKEN)
        return DELTAFS_OK;
    switch (place) {
    case PLACE_BROKEN:
        return flags & O_EXCL ? error_set(e, DELTAFS_ERR_EXISTS, "%s: exists already, and is damaged", path)
                              : error_set(e, DELTAFS_ERR_DAMAGED,
                                          "%s/" MANIFEST_NAME ": damaged at offset 0: it is missing, or does not begin "
                                          "as a manifest does; nothing is read of the logical file while it is so: put "
                                          "a copy of it back",
                                          path);
    case PLACE_NOTHING:
        return error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: there is no such file", path);
    case PLACE_EMPTY:
    case PLACE_BEGUN:
        return error_set(e, DELTAFS_ERR_NOT_FOUND,
                         "%s: an empty folder, or a logical file whose creation is running or was interrupted", path);
    default:
        return error_set(e, flags & O_EXCL ? DELTAFS_ERR_EXISTS : DELTAFS_ERR_NOT_DELTAFS,
                         "%s: is %s, not a logical file of DeltaFS", path,
                         place == PLACE_FILE ? "an ordinary file" : "a folder of something else");
    }
}

/* One attempt; DELTAFS_ERR_BUSY if it is worth another. */
static int container_try(struct container *c, struct io *io, const char *path, int flags, int sync, int *is_new,
                         struct error *e)
{
    struct container made;
    enum place place;
    int has_manifest, status = container_read(c, io, path, &has_manifest, e);

    if (status == DELTAFS_OK || has_manifest) {
        if ((flags & O_CREAT) && (flags & O_EXCL))
            return error_set(e, DELTAFS_ERR_EXISTS, "%s: exists already", path);
        return status;
    }
    if (status != DELTAFS_ERR_NOT_FOUND && status != DELTAFS_ERR_NOT_DELTAFS)
        return status;
    status = place_find(io, path, &place, e);
    if (status == DELTAFS_OK)
        status = container_refuse(path, flags, place, e);
    if (status != DELTAFS_OK)
        return status;
    status = container_make(c, io, path, place, sync, e);
    if (status == DELTAFS_OK)
        *is_new = 1;
    if (status != DELTAFS_ERR_EXISTS)
        return status;
    /* Over a network a link can be made, and said to have been there. */
    memcpy(&made, c, sizeof made);
    if (container_read(c, io, path, &has_manifest, e) == DELTAFS_OK &&
        memcmp(made.uuid, c->uuid, sizeof c->uuid) == 0) {
        *is_new = 1;
        return DELTAFS_OK;
    }
    return error_set(e, DELTAFS_ERR_BUSY, "%s: another process has made it meanwhile", path);
}

int container_open(struct container *c, struct io *io, const char *path, int flags, int sync, int *is_new,
                   struct error *e)
{
    int status = DELTAFS_ERR_BUSY;

    *c = (struct container){0};
    *is_new = 0;
    for (int i = 0; i < TRIES && status == DELTAFS_ERR_BUSY; i++)
        status = container_try(c, io, path, flags, sync, is_new, e);
    if (status == DELTAFS_OK && !(c->path = path_absolute(path)))
        status = error_no_memory(e, strlen(path) + 1, "a path");
    return status;
}

void container_fini(struct container *c)
{
    free(c->path);
    *c = (struct container){0};
}

int container_check(const struct container *c, struct io *io, struct error *e)
{
    struct container now = {0};
    int has_manifest, status = container_read(&now, io, c->path, &has_manifest, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        return error_set(e, status, "%s: was deleted meanwhile", c->path);
    if (has_manifest && memcmp(now.uuid, c->uuid, sizeof now.uuid) != 0)
        return error_set(e, DELTAFS_ERR_NOT_FOUND,
                         "%s: was deleted and created again meanwhile; the new file is unchanged", c->path);
    return status;
}

int container_kind(struct io *io, const char *path, char *kind, struct error *e)
{
    struct container c;
    int has_manifest, status = container_read(&c, io, path, &has_manifest, e);

    if (!has_manifest && (status == DELTAFS_ERR_DAMAGED || status == DELTAFS_ERR_NOT_DELTAFS) &&
        container_is_broken(io, path))
        status = DELTAFS_OK;
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_DELTAFS)
        return status;
    *kind = status == DELTAFS_OK ? 'f' : has_manifest ? 'd' : '-';
    return DELTAFS_OK;
}
