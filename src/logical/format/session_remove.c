/* Removing sessions and containers: a walk over all files, first to check that all are ours, then to remove them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fileindex/fileindex_format.h"
#include "logical/format/logical_format.h"
#include "logical/format/session.h"
#include "logical/format/session_names.h"
#include "io/volume.h"

struct names {
    char **name;
    size_t count, capacity;
};

static int names_add(void *arg, const char *name, struct error *e)
{
    struct names *n = arg;

    int status = memory_extend(NULL, &n->name, n->count, &n->capacity, sizeof *n->name, "names", e);
    if (status != DELTAFS_OK)
        return status;
    n->name[n->count] = strdup(name);
    return n->name[n->count++] ? DELTAFS_OK : error_no_memory(e, strlen(name) + 1, "names");
}

static void names_fini(struct names *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n->name);
}

struct walk {
    struct io *io;
    const char *uuid_text;
    int is_removing, sync;
    char part[16]; /* the name of the session's folder */
};

typedef int walk_fn(struct walk *w, const char *path, const char *name, struct error *e);

/* Call `step` for each name in a folder; a missing folder is empty. */
static int walk_folder(struct walk *w, const char *folder, walk_fn *step, struct error *e)
{
    char path[PATH_ROOM];
    struct names n = {0};
    int status = io_list(w->io, folder, names_add, &n, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = DELTAFS_OK;
    else if (status == DELTAFS_OK && !w->is_removing && eaccess(folder, W_OK | X_OK) != 0 && errno != ENOENT)
        status = error_system(e, errno, "remove what is in", folder);
    for (size_t i = 0; i < n.count && status == DELTAFS_OK; i++)
        status = step(w, io_path_in(path, folder, "%s", n.name[i]), n.name[i], e);
    names_fini(&n);
    return status;
}

static int walk_foreign(const char *path, struct error *e)
{
    return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: is no part of a logical file: it, and what is around it, stays",
                     path);
}

/* If the file is missing, another process has removed it. */
static int walk_result(int rc, const char *what, const char *path, struct error *e)
{
    return rc < 0 && rc != -ENOENT ? error_system(e, -rc, what, path) : DELTAFS_OK;
}

static int walk_unlink(struct walk *w, const char *path, struct error *e)
{
    return w->is_removing ? walk_result(w->io->ops->unlink(w->io->ctx, path), "remove", path, e) : DELTAFS_OK;
}

static int walk_in_bucket(struct walk *w, const char *path, const char *name, struct error *e)
{
    uint32_t writer;
    int kind;

    return is_name_log(name, &writer, &kind) ? walk_unlink(w, path, e) : walk_foreign(path, e);
}

static int walk_bucket(struct walk *w, const char *path, uint32_t bucket, struct error *e)
{
    int is_link, status = volume_check_bucket(w->io, w->uuid_text, w->part, bucket, path, &is_link, e);

    if (status == DELTAFS_OK)
        status = walk_folder(w, path, walk_in_bucket, e);
    return status == DELTAFS_OK && w->is_removing ? volume_remove_bucket(w->io, w->uuid_text, w->part, bucket, path, e)
                                                  : status;
}

static int walk_in_session(struct walk *w, const char *path, const char *name, struct error *e)
{
    uint32_t bucket, writer;
    int kind;

    if (is_name_bucket(name, &bucket))
        return walk_bucket(w, path, bucket, e);
    if (w->is_removing && strcmp(name, SESSION_GONE_NAME) == 0)
        return DELTAFS_OK;
    return is_name_of_session(name) || is_name_log(name, &writer, &kind) ? walk_unlink(w, path, e)
                                                                         : walk_foreign(path, e);
}

static int walk_sync(struct walk *w, const char *path, struct error *e)
{
    int rc = w->sync ? -EINTR : 0;

    while (rc == -EINTR)
        rc = w->io->ops->sync_folder(w->io->ctx, path);
    return walk_result(rc, "sync the folder", path, e);
}

/* The folder contains nothing but the file that marks the removal. */
static int walk_finish_session(struct walk *w, const char *path, struct error *e)
{
    char name[PATH_ROOM];
    int status = walk_sync(w, path, e);

    if (status == DELTAFS_OK)
        status = walk_unlink(w, io_path_in(name, path, SESSION_GONE_NAME), e);
    return status == DELTAFS_OK ? walk_result(w->io->ops->rmdir(w->io->ctx, path), "remove the folder", path, e)
                                : status;
}

/* A folder that must not be a symbolic link; `finish` removes it when it is empty. */
static int walk_own_folder(struct walk *w, const char *path, walk_fn *step,
                           int (*finish)(struct walk *w, const char *path, struct error *e), struct error *e)
{
    char target[PATH_MAX];
    int status = io_readlink(w->io, path, target, sizeof target, e);

    if (status != DELTAFS_ERR_NOT_FOUND)
        return status == DELTAFS_OK ? walk_foreign(path, e) : status;
    status = walk_folder(w, path, step, e);
    return status == DELTAFS_OK && w->is_removing ? finish(w, path, e) : status;
}

static int walk_session(struct walk *w, const char *path, struct error *e)
{
    snprintf(w->part, sizeof w->part, "%s", strrchr(path, '/') + 1);
    return walk_own_folder(w, path, walk_in_session, walk_finish_session, e);
}

static int walk_finish(struct walk *w, const char *path, struct error *e)
{
    return io_rmdir(w->io, path, e);
}

static int walk_in_bucket_of_keys(struct walk *w, const char *path, const char *name, struct error *e)
{
    return is_name_log_of_keys(name) ? walk_unlink(w, path, e) : walk_foreign(path, e);
}

static int walk_in_keys(struct walk *w, const char *path, const char *name, struct error *e)
{
    uint32_t bucket;

    if (is_name_bucket(name, &bucket))
        return walk_own_folder(w, path, walk_in_bucket_of_keys, walk_finish, e);
    return is_name_of_keys(name) ? walk_unlink(w, path, e) : walk_foreign(path, e);
}

/* All but the manifest: while it exists, another attempt can find and remove the rest. */
static int walk_in_container(struct walk *w, const char *path, const char *name, struct error *e)
{
    uint32_t number;

    if (is_name_session(name, &number))
        return walk_session(w, path, e);
    if (strcmp(name, FILEINDEX_FOLDER) == 0)
        return walk_own_folder(w, path, walk_in_keys, walk_finish, e);
    if (strcmp(name, MANIFEST_NAME) == 0)
        return DELTAFS_OK;
    return is_name_kept(name) || is_name_aside(name) || strcmp(name, LOCK_NAME) == 0 ? walk_unlink(w, path, e)
                                                                                     : walk_foreign(path, e);
}

/* Remove a session; `has_text`: its SESSION file exists. */
static int session_take_away(const struct container *c, struct io *io, uint32_t number, int has_text, int sync,
                             struct error *e)
{
    struct walk w = {.io = io, .uuid_text = c->uuid_text};
    char path[PATH_ROOM], name[PATH_ROOM], gone[PATH_ROOM];
    int status = walk_session(&w, session_folder(c, number, path), e);

    session_path(c, number, SESSION_NAME, name);
    session_path(c, number, SESSION_GONE_NAME, gone);
    w.is_removing = 1;
    w.sync = sync;
    if (status == DELTAFS_OK && has_text)
        status = walk_result(io->ops->rename(io->ctx, name, gone), "rename", name, e);
    if (status == DELTAFS_OK)
        status = walk_sync(&w, path, e);
    return status == DELTAFS_OK ? walk_session(&w, path, e) : status;
}

int session_remove(const struct container *c, struct io *io, const struct session *s, int sync, struct error *e)
{
    return session_take_away(c, io, s->number, 1, sync, e);
}

int session_remove_remains(const struct container *c, struct io *io, uint32_t number, int sync, struct error *e)
{
    int is_removed, status = session_is_removed(c, io, number, &is_removed, e);

    return status == DELTAFS_OK && is_removed ? session_take_away(c, io, number, 0, sync, e) : status;
}

/* Remove a container that has its hidden name. */
static int container_remove_aside(struct walk *w, const char *path, struct error *e)
{
    char name[PATH_ROOM];
    int status = walk_folder(w, path, walk_in_container, e);

    if (status == DELTAFS_OK)
        status = walk_unlink(w, io_path_in(name, path, MANIFEST_NAME), e);
    return status == DELTAFS_OK ? io_rmdir(w->io, path, e) : status;
}

/* A name of its own beside `path`. */
static int container_hidden(const char *path, char out[PATH_ROOM], struct error *e)
{
    uint8_t uuid[FORMAT_UUID_SIZE];
    char text[UUID_TEXT_SIZE];
    const char *slash = strrchr(path, '/');
    int status = uuid_create(uuid, e);

    if (status != DELTAFS_OK)
        return status;
    uuid_to_text(uuid, text);
    snprintf(out, PATH_ROOM, "%.*s.deltafs-removed-%s", slash ? (int)(slash - path) + 1 : 0, path, text);
    return DELTAFS_OK;
}

/* Whether the folder contains only what an interrupted creation leaves. */
static int container_is_begun(struct walk *w, const char *path, struct error *e)
{
    struct names n = {0};
    struct error ignored;
    int is_begun = io_list(w->io, path, names_add, &n, &ignored) == DELTAFS_OK && n.count > 0;

    for (size_t i = 0; i < n.count && is_begun; i++)
        is_begun = is_name_aside(n.name[i]);
    names_fini(&n);
    return is_begun ? DELTAFS_OK : e->status;
}

static int container_remove_folder(struct io *io, const char *path, struct error *e)
{
    struct container c;
    struct walk w = {.io = io, .uuid_text = c.uuid_text};
    char hidden[PATH_ROOM];
    int is_new, status = container_open(&c, io, path, O_RDONLY, 0, &is_new, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = container_is_begun(&w, path, e);
    /* Without its UUID, what it has on volumes is not known to be its own. */
    if (status == DELTAFS_ERR_DAMAGED && container_is_broken(io, path))
        status = DELTAFS_OK;
    if (status == DELTAFS_OK)
        status = walk_folder(&w, path, walk_in_container, e);
    if (status == DELTAFS_OK)
        status = container_hidden(path, hidden, e);
    if (status == DELTAFS_OK)
        status = io_rename(io, path, hidden, e);
    w.is_removing = status == DELTAFS_OK;
    /* Without this, a crash could restore the name, but not the contents. */
    if (status == DELTAFS_OK)
        status = io_sync_parent(io, hidden, e);
    if (status == DELTAFS_OK)
        status = container_remove_aside(&w, hidden, e);
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
