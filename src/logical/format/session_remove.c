/* Removing sessions and containers: a walk over all that is there, first to look whether it is all ours, then to remove
 * it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "logical/format/session.h"
#include "logical/format/session_names.h"
#include "io/store_format.h"
#include "io/volume.h"

struct names {
    char **name;
    size_t count, capacity;
};

static int names_add(void *arg, const char *name, struct error *e)
{
    struct names *n = arg;

    if (n->count == n->capacity) {
        size_t capacity = n->capacity ? 2 * n->capacity : 64;
        char **grown = realloc(n->name, capacity * sizeof *grown);
        if (!grown)
            return error_no_memory(e, capacity * sizeof *grown, "names");
        n->name = grown;
        n->capacity = capacity;
    }
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
};

/* Do `step` with all names in a folder; one that is not there is empty. */
static int walk_folder(const struct walk *w, const char *folder,
                       int (*step)(const struct walk *w, const char *path, const char *name, void *arg,
                                   struct error *e),
                       void *arg, struct error *e)
{
    struct names n = {0};
    int status = io_list(w->io, folder, names_add, &n, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = DELTAFS_OK;
    else if (status == DELTAFS_OK && !w->is_removing && eaccess(folder, W_OK | X_OK) != 0 && errno != ENOENT)
        status = error_system(e, errno, "remove what is in", folder);
    for (size_t i = 0; i < n.count && status == DELTAFS_OK; i++) {
        size_t room = strlen(folder) + strlen(n.name[i]) + 2;
        char *path = malloc(room);
        if (path)
            snprintf(path, room, "%s/%s", folder, n.name[i]);
        status = path ? step(w, path, n.name[i], arg, e) : error_no_memory(e, room, "a path");
        free(path);
    }
    names_fini(&n);
    return status;
}

static int walk_foreign(const char *path, struct error *e)
{
    return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: is no part of a logical file: it, and what is around it, stays",
                     path);
}

/* What is not there any more, another process has removed. */
static int walk_result(int rc, const char *what, const char *path, struct error *e)
{
    return rc < 0 && rc != -ENOENT ? error_system(e, -rc, what, path) : DELTAFS_OK;
}

static int walk_unlink(const struct walk *w, const char *path, struct error *e)
{
    return w->is_removing ? walk_result(w->io->ops->unlink(w->io->ctx, path), "remove", path, e) : DELTAFS_OK;
}

static int walk_in_bucket(const struct walk *w, const char *path, const char *name, void *arg, struct error *e)
{
    uint32_t writer;
    int kind;

    (void)arg;
    return is_name_log(name, &writer, &kind) ? walk_unlink(w, path, e) : walk_foreign(path, e);
}

static int walk_bucket(const struct walk *w, const char *path, const char *part, uint32_t bucket, struct error *e)
{
    int is_link, status = volume_check_bucket(w->io, w->uuid_text, part, bucket, path, &is_link, e);

    if (status == DELTAFS_OK)
        status = walk_folder(w, path, walk_in_bucket, NULL, e);
    return status == DELTAFS_OK && w->is_removing ? volume_remove_bucket(w->io, w->uuid_text, part, bucket, path, e)
                                                  : status;
}

static int walk_in_session(const struct walk *w, const char *path, const char *name, void *arg, struct error *e)
{
    uint32_t bucket, writer;
    int kind;

    if (is_name_bucket(name, &bucket))
        return walk_bucket(w, path, arg, bucket, e);
    if (w->is_removing && strcmp(name, SESSION_GONE_NAME) == 0)
        return DELTAFS_OK;
    return is_name_of_session(name) || is_name_log(name, &writer, &kind) ? walk_unlink(w, path, e)
                                                                         : walk_foreign(path, e);
}

static int walk_sync(const struct walk *w, const char *path, struct error *e)
{
    int rc = w->sync ? -EINTR : 0;

    while (rc == -EINTR)
        rc = w->io->ops->sync_folder(w->io->ctx, path);
    return walk_result(rc, "sync the folder", path, e);
}

/* Nothing but what says that the session is being removed is left in its folder. */
static int walk_finish_session(const struct walk *w, const char *path, struct error *e)
{
    char *name = io_path(path, SESSION_GONE_NAME);
    int status = name ? walk_sync(w, path, e) : error_no_memory(e, strlen(path), "a path");

    if (status == DELTAFS_OK)
        status = walk_unlink(w, name, e);
    free(name);
    return status == DELTAFS_OK ? walk_result(w->io->ops->rmdir(w->io->ctx, path), "remove the folder", path, e)
                                : status;
}

static int walk_session(const struct walk *w, const char *path, uint32_t number, struct error *e)
{
    char part[16], target[PATH_MAX];

    snprintf(part, sizeof part, SESSION_FOLDER, number);
    int status = io_readlink(w->io, path, target, sizeof target, e);
    if (status != DELTAFS_ERR_NOT_FOUND)
        return status == DELTAFS_OK ? walk_foreign(path, e) : status;
    status = walk_folder(w, path, walk_in_session, part, e);
    return status == DELTAFS_OK && w->is_removing ? walk_finish_session(w, path, e) : status;
}

static int walk_in_bucket_of_keys(const struct walk *w, const char *path, const char *name, void *arg, struct error *e)
{
    (void)arg;
    return is_name_log_of_keys(name) ? walk_unlink(w, path, e) : walk_foreign(path, e);
}

/* A folder that is no symbolic link, with such names in it. */
static int walk_own_folder(const struct walk *w, const char *path,
                           int (*step)(const struct walk *w, const char *path, const char *name, void *arg,
                                       struct error *e),
                           struct error *e)
{
    char target[PATH_MAX];
    int status = io_readlink(w->io, path, target, sizeof target, e);

    if (status != DELTAFS_ERR_NOT_FOUND)
        return status == DELTAFS_OK ? walk_foreign(path, e) : status;
    status = walk_folder(w, path, step, NULL, e);
    return status == DELTAFS_OK && w->is_removing ? io_rmdir(w->io, path, e) : status;
}

static int walk_in_keys(const struct walk *w, const char *path, const char *name, void *arg, struct error *e)
{
    uint32_t bucket;

    (void)arg;
    if (is_name_bucket(name, &bucket))
        return walk_own_folder(w, path, walk_in_bucket_of_keys, e);
    return is_name_of_keys(name) ? walk_unlink(w, path, e) : walk_foreign(path, e);
}

/* All but the manifest: as long as that is there, the rest can be found and removed by another attempt. */
static int walk_in_container(const struct walk *w, const char *path, const char *name, void *arg, struct error *e)
{
    uint32_t number;

    (void)arg;
    if (is_name_session(name, &number))
        return walk_session(w, path, number, e);
    if (strcmp(name, FILEINDEX_FOLDER) == 0)
        return walk_own_folder(w, path, walk_in_keys, e);
    if (strcmp(name, MANIFEST_NAME) == 0)
        return DELTAFS_OK;
    return is_name_kept(name) || is_name_aside(name) || strcmp(name, LOCK_NAME) == 0 ? walk_unlink(w, path, e)
                                                                                     : walk_foreign(path, e);
}

/* Remove a session; with `has_text` it counts up to then. */
static int session_take_away(const struct container *c, struct io *io, uint32_t number, int has_text, int sync,
                             struct error *e)
{
    struct walk w = {.io = io, .uuid_text = c->uuid_text};
    char *path = io_path(c->path, SESSION_FOLDER, number), *name = session_path(c, number, SESSION_NAME);
    char *gone = session_path(c, number, SESSION_GONE_NAME);
    int status =
        path && name && gone ? walk_session(&w, path, number, e) : error_no_memory(e, strlen(c->path), "a path");

    w.is_removing = 1;
    w.sync = sync;
    if (status == DELTAFS_OK && has_text)
        status = walk_result(io->ops->rename(io->ctx, name, gone), "rename", name, e);
    if (status == DELTAFS_OK)
        status = walk_sync(&w, path, e);
    if (status == DELTAFS_OK)
        status = walk_session(&w, path, number, e);
    free(path);
    free(name);
    free(gone);
    return status;
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

/* Remove what is at `path`, which nobody knows by this name. */
static int container_remove_aside(struct walk *w, const char *path, struct error *e)
{
    char *name = io_path(path, MANIFEST_NAME);
    int status = name ? walk_folder(w, path, walk_in_container, NULL, e) : error_no_memory(e, strlen(path), "a path");

    int rc = status == DELTAFS_OK ? w->io->ops->unlink(w->io->ctx, name) : 0;
    if (rc < 0 && rc != -ENOENT)
        status = error_system(e, -rc, "remove", name);
    free(name);
    return status == DELTAFS_OK ? io_rmdir(w->io, path, e) : status;
}

/* A name of its own beside `path`. */
static char *container_hidden(const char *path, struct error *e)
{
    uint8_t uuid[FORMAT_UUID_SIZE];
    char text[UUID_TEXT_SIZE];
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    size_t room = (size_t)folder + sizeof ".deltafs-removed-" + sizeof text;
    char *out = malloc(room);

    if (!out)
        error_no_memory(e, room, "a path");
    if (!out || uuid_create(uuid, e) != DELTAFS_OK) {
        free(out);
        return NULL;
    }
    uuid_to_text(uuid, text);
    snprintf(out, room, "%.*s.deltafs-removed-%s", folder, path, text);
    return out;
}

/* Whether the folder has but what a maker leaves that died before the manifest was in place. */
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
    int is_new, status = container_open(&c, io, path, O_RDONLY, 0, &is_new, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = container_is_begun(&w, path, e);
    /* Without its UUID, what it has on volumes is not known to be its own. */
    if (status == DELTAFS_ERR_DAMAGED && container_is_broken(io, path))
        status = DELTAFS_OK;
    if (status == DELTAFS_OK)
        status = walk_folder(&w, path, walk_in_container, NULL, e);
    char *hidden = status == DELTAFS_OK ? container_hidden(path, e) : NULL;
    if (status == DELTAFS_OK)
        status = hidden ? io_rename(io, path, hidden, e) : e->status;
    w.is_removing = status == DELTAFS_OK;
    /* Else a crash could bring the name back, and not what was removed. */
    if (status == DELTAFS_OK)
        status = io_sync_parent(io, hidden, e);
    if (status == DELTAFS_OK)
        status = container_remove_aside(&w, hidden, e);
    if (w.is_removing && status != DELTAFS_OK)
        error_set(e, status, "%s; the rest of what was removed is in %s", e->text, hidden);
    free(hidden);
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
