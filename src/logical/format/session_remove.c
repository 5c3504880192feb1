/* Removing sessions and containers: a walk over all files, first to check that all are ours, then to remove them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/collective.h"
#include "io/volume.h"
#include "logical/format/logical_format.h"
#include "logical/format/names.h"
#include "logical/format/session.h"

struct walk {
    struct io *io;
    const char *container, *uuid_text;
    int is_removing, sync;
    char part[16]; /* the name of the session's folder */
};

static struct volume_part walk_part(const struct walk *w)
{
    return (struct volume_part){w->io, w->container, w->uuid_text, w->part};
}

static int walk_foreign(const char *path, struct error *e)
{
    return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: is no part of a logical file: it, and what is around it, stays",
                     path);
}

/* What is missing has been removed by another process. */
static int walk_status(int status)
{
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

static int walk_sync(const struct walk *w, const char *path, struct error *e)
{
    return w->sync ? walk_status(io_sync_folder(w->io, path, e)) : DELTAFS_OK;
}

/* Only a bucket may be a symbolic link, to its place on a volume. */
static int walk_check_link(struct walk *w, const char *path, enum name kind, uint32_t number, struct error *e)
{
    char target[PATH_MAX];
    const struct volume_part part = walk_part(w);

    if (kind == NAME_BUCKET)
        return volume_check_bucket(&part, number, e);
    int status = io_readlink(w->io, path, target, sizeof target, e);
    return status == DELTAFS_OK ? walk_foreign(path, e) : status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

/* The folder contains nothing any more, or only the file that has marked it until now. */
static int walk_finish(struct walk *w, const char *path, enum name kind, uint32_t number, struct error *e)
{
    char mark[PATH_ROOM];
    const struct volume_part part = walk_part(w);
    int status = DELTAFS_OK;

    if (kind == NAME_BUCKET)
        return volume_remove_bucket(&part, number, e);
    if (kind == NAME_SESSION)
        status = walk_sync(w, path, e);
    if (status == DELTAFS_OK && (kind == NAME_SESSION || kind == NAME_CONTAINER))
        status = walk_status(
            io_unlink(w->io, io_path_in(mark, path, kind == NAME_SESSION ? SESSION_GONE_NAME : MANIFEST_NAME), e));
    return status == DELTAFS_OK ? walk_status(io_rmdir(w->io, path, e)) : status;
}

static int walk_folder(struct walk *w, const char *folder, enum name kind, uint32_t number, struct error *e);

static int walk_entry(struct walk *w, const char *path, enum name in, const char *text, struct error *e)
{
    uint32_t number;
    enum name kind = name_of(in, text, &number);
    int status;

    if (kind == NAME_FOREIGN)
        return walk_foreign(path, e);
    /* While the manifest exists, another attempt can find and remove the rest; likewise the mark of a session. OWNER
     * goes with the empty bucket. */
    if (kind == NAME_MANIFEST || kind == NAME_REMOVED || kind == NAME_OWNER)
        return DELTAFS_OK;
    if (kind > NAME_MANIFEST)
        return w->is_removing ? walk_status(io_unlink(w->io, path, e)) : DELTAFS_OK;
    if (kind == NAME_SESSION)
        snprintf(w->part, sizeof w->part, "%s", text);
    status = walk_check_link(w, path, kind, number, e);
    return status == DELTAFS_OK ? walk_folder(w, path, kind, number, e) : status;
}

/* A missing folder is empty. */
static int walk_folder(struct walk *w, const char *folder, enum name kind, uint32_t number, struct error *e)
{
    char path[PATH_ROOM];
    struct bytes names = {{0}, 0};
    int status = io_names(w->io, folder, &names, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = DELTAFS_OK;
    else if (status == DELTAFS_OK && !w->is_removing && eaccess(folder, W_OK | X_OK) != 0 && errno != ENOENT)
        status = error_system(e, errno, "remove what is in", folder);
    for (size_t at = 0; at < names.used && status == DELTAFS_OK;) {
        const char *name = (const char *)names.buffer.bytes + at;
        status = walk_entry(w, io_path_in(path, folder, "%s", name), kind, name, e);
        at += strlen(name) + 1;
    }
    buffer_fini(&names.buffer);
    return status == DELTAFS_OK && w->is_removing ? walk_finish(w, folder, kind, number, e) : status;
}

int session_remove(const struct container *c, struct io *io, uint32_t number, int sync, struct error *e)
{
    struct walk w = {.io = io, .container = c->path, .uuid_text = c->uuid_text, .sync = sync};
    char path[PATH_ROOM], name[PATH_ROOM], gone[PATH_ROOM];
    const char *folder = strrchr(session_folder(c, number, path), '/') + 1;
    int status = walk_entry(&w, path, NAME_CONTAINER, folder, e);

    session_path(c, number, SESSION_NAME, name);
    session_path(c, number, SESSION_GONE_NAME, gone);
    w.is_removing = 1;
    if (status == DELTAFS_OK)
        status = walk_status(io_rename(io, name, gone, e));
    if (status == DELTAFS_OK)
        status = walk_sync(&w, path, e);
    return status == DELTAFS_OK ? walk_entry(&w, path, NAME_CONTAINER, folder, e) : status;
}

int session_remove_remains(const struct container *c, struct io *io, uint32_t number, int sync, struct error *e)
{
    int is_removed, status = session_is_removed(c, io, number, &is_removed, e);

    if (status != DELTAFS_OK || !is_removed)
        return status;
    status = container_record(c, io, RECORD_REMOVED, &number, 1, 1, e);
    return status == DELTAFS_OK ? session_remove(c, io, number, sync, e) : status;
}

/* Whether it is a logical file, or what the creation of one, or damage, has left. */
static int container_may_remove(struct container *c, struct io *io, const char *path, struct error *e)
{
    unsigned seen;
    int status = container_open(c, io, path, O_RDONLY, 0, e);

    if (status == DELTAFS_ERR_NOT_FOUND && names_in(io, path, NAME_CONTAINER, &seen, error_ignored()) == DELTAFS_OK &&
        seen == 1u << NAME_ASIDE)
        return DELTAFS_OK;
    /* Without its UUID, what it has on volumes is not known to be its own. */
    return status == DELTAFS_ERR_DAMAGED && container_is_broken(io, path) ? DELTAFS_OK : status;
}

static int container_remove_folder(struct io *io, const char *path, struct error *e)
{
    struct container c;
    struct walk w = {.io = io, .container = path, .uuid_text = c.uuid_text};
    uint8_t uuid[FORMAT_UUID_SIZE];
    char hidden[PATH_ROOM], text[UUID_TEXT_SIZE];
    const char *slash = strrchr(path, '/');
    int status = container_may_remove(&c, io, path, e);

    if (status == DELTAFS_OK)
        status = walk_folder(&w, path, NAME_CONTAINER, 0, e);
    if (status == DELTAFS_OK)
        status = uuid_create(uuid, e);
    if (status == DELTAFS_OK) {
        uuid_to_text(uuid, text);
        snprintf(hidden, sizeof hidden, "%.*s.deltafs-removed-%s", slash ? (int)(slash - path) + 1 : 0, path, text);
        status = io_rename(io, path, hidden, e);
    }
    w.container = hidden;
    w.is_removing = status == DELTAFS_OK;
    /* Without this, a crash could restore the name, but not the contents. */
    if (status == DELTAFS_OK)
        status = io_sync_parent(io, hidden, e);
    if (status == DELTAFS_OK)
        status = walk_folder(&w, hidden, NAME_CONTAINER, 0, e);
    if (w.is_removing && status != DELTAFS_OK)
        error_set(e, status, "%s; the rest of what was removed is in %s", e->text, hidden);
    container_fini(&c);
    return status;
}

int container_remove(struct io *io, const char *path, struct error *e)
{
    char target[PATH_MAX], *name = strdup(path), kind;

    if (!name)
        return error_no_memory(e, strlen(path) + 1, "a path");
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/';)
        name[--n] = '\0';
    int status = io_readlink(io, name, target, sizeof target, e);
    if (status == DELTAFS_ERR_NOT_FOUND) {
        status = container_remove_folder(io, name, e);
    } else if (status == DELTAFS_OK) {
        status = container_kind(io, name, &kind, e);
        if (status == DELTAFS_OK && kind != 'f')
            status = error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: leads to something else than a logical file", name);
        if (status == DELTAFS_OK)
            status = io_unlink(io, name, e);
    }
    free(name);
    return status;
}
