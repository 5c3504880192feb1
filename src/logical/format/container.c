/* Creating, opening and recognizing a logical file's container. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/path.h"
#include "logical/format/logical_format.h"
#include "logical/format/names.h"
#include "logical/format/session.h"

#define TRIES       100        /* while other processes create and remove it */
#define APPEND_MS   1000       /* in which another process ends a line that it is appending */
#define NAME_PREFIX "deltafs:" /* of names in MPI-IO, which does not pass it on */

/* What is at a path. */
enum place {
    PLACE_NOTHING,
    PLACE_CONTAINER,
    PLACE_DIRECTORY, /* of particles */
    PLACE_FILE,      /* an ordinary one */
    PLACE_EMPTY,     /* a folder */
    PLACE_BEGUN,     /* a container whose creation runs, or was interrupted */
    PLACE_BROKEN,    /* a container that has sessions, and no manifest that can be read */
    PLACE_FOREIGN    /* any other folder */
};

/* ---- The manifest ---- */

struct head {
    struct container *container;
    enum place place;
    uint64_t end; /* of the complete lines */
};

static int head_take_id(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct container *c = ((struct head *)arg)->container;

    return textlog_take_id(fields, path, offset, c->uuid, c->uuid_text, e);
}

static int head_take_file(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    uint64_t frame, group;

    if (textlog_number(fields, "frame", &frame) != 0 || textlog_number(fields, "group", &group) != 0)
        return error_damaged(e, path, offset, "the logical file's line is malformed");
    if (frame != FRAME_SIZE || group != FRAME_GROUP)
        return error_set(e, DELTAFS_ERR_VERSION,
                         "%s: groups of %" PRIu64 " frames of %" PRIu64 " bytes are not known to DeltaFS %s; use a "
                         "newer DeltaFS",
                         path, group, frame, deltafs_version());
    ((struct head *)arg)->place = PLACE_CONTAINER;
    return DELTAFS_OK;
}

/* Where the session is among those that are recorded, or belongs. */
static size_t recorded_index(const struct container *c, uint32_t number)
{
    size_t at = c->recorded_count;

    while (at > 0 && c->recorded[at - 1].number >= number)
        at--;
    return at;
}

static int head_take_record(struct head *h, enum record what, const char *fields, const char *path, uint64_t offset,
                            struct error *e)
{
    struct container *c = h->container;
    uint64_t number;

    if (textlog_number(fields, "number", &number) != 0 || number > UINT32_MAX)
        return error_damaged(e, path, offset, "the line of a session is malformed");
    size_t at = recorded_index(c, (uint32_t)number);
    int is_known = at < c->recorded_count && c->recorded[at].number == number;
    if (what == RECORD_REMOVED) {
        if (is_known)
            memmove(c->recorded + at, c->recorded + at + 1, (--c->recorded_count - at) * sizeof *c->recorded);
        return DELTAFS_OK;
    }
    if (!is_known) {
        int status = memory_extend(NULL, &c->recorded, c->recorded_count, &c->recorded_capacity, sizeof *c->recorded,
                                   "a file's sessions", e);
        if (status != DELTAFS_OK)
            return status;
        memmove(c->recorded + at + 1, c->recorded + at, (c->recorded_count++ - at) * sizeof *c->recorded);
    }
    c->recorded[at] = (struct recorded){(uint32_t)number, what == RECORD_LOST};
    return DELTAFS_OK;
}

static int head_take_created(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    return head_take_record(arg, RECORD_CREATED, fields, path, offset, e);
}

static int head_take_removed(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    return head_take_record(arg, RECORD_REMOVED, fields, path, offset, e);
}

static int head_take_lost(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    return head_take_record(arg, RECORD_LOST, fields, path, offset, e);
}

static const char *const record_word[] = {"session", "removed", "lost"};

/* The second line says what the container is. A directory's further lines are not examined. */
static int head_take(void *arg, char *line, const char *path, uint64_t offset, struct error *e)
{
    static const struct textlog_word words[] = {{"Deltafs", head_take_id},      {"File", head_take_file},
                                                {"session", head_take_created}, {"removed", head_take_removed},
                                                {"lost", head_take_lost},       {NULL, NULL}};
    struct head *h = arg;

    if (offset > 0 && h->place == PLACE_NOTHING && strncmp(line, "Directory ", 10) == 0)
        h->place = PLACE_DIRECTORY;
    if (h->place == PLACE_DIRECTORY)
        return DELTAFS_OK;
    if (offset > 0 && (h->place == PLACE_NOTHING) != (strncmp(line, "File ", 5) == 0))
        return error_damaged(e, path, offset, "a line '%.20s' does not belong here", line);
    return textlog_take(words, arg, line, path, offset, e);
}

/* *place stays PLACE_NOTHING if the file does not begin as a manifest does. */
static int head_read(struct io_file *file, struct head *h, struct error *e)
{
    static const char advice[] =
        "nothing is read of the logical file while it is so: 'deltafs repair' restores it, or restore a copy of it";
    char begin[8] = "";
    int status = io_file_read(file, 0, begin, sizeof begin, e);

    if (status == DELTAFS_ERR_DAMAGED || (status == DELTAFS_OK && memcmp(begin, "Deltafs ", sizeof begin) != 0))
        return DELTAFS_OK;
    if (status == DELTAFS_OK)
        status = textlog_read(file, advice, head_take, h, &h->end, e);
    if (status == DELTAFS_OK && h->place == PLACE_NOTHING)
        status = error_damaged(e, file->path, h->end, "the manifest is incomplete; restore a copy of it");
    return status;
}

/* ---- What is at a path ---- */

/* Without a manifest that can be read. */
static int place_find(struct io *io, const char *path, enum place *place, struct error *e)
{
    unsigned seen, additions = 1u << NAME_LOCK | 1u << NAME_INDEX;
    int status = names_in(io, path, NAME_CONTAINER, &seen, e);

    *place = seen & 1u << NAME_FOREIGN   ? PLACE_FOREIGN
             : seen & 1u << NAME_SESSION ? PLACE_BROKEN
             : seen & additions          ? PLACE_FOREIGN
             : seen                      ? PLACE_BEGUN
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

    return place_find(io, path, &place, error_ignored()) == DELTAFS_OK && place == PLACE_BROKEN;
}

/* Also sets the UUIDs of `c`, and what is recorded, if there is a manifest. */
static int container_look(struct container *c, struct io *io, const char *path, enum place *place, struct error *e)
{
    struct head h = {.container = c};
    struct io_file file;
    char name[PATH_ROOM];

    c->recorded_count = 0;
    int status = io_file_open_name(io, io_path_in(name, path, MANIFEST_NAME), O_RDONLY, &file, e);

    if (status == DELTAFS_OK) {
        status = head_read(&file, &h, e);
        io_file_close(&file, error_ignored());
    }
    *place = h.place;
    if (status == DELTAFS_ERR_NOT_FOUND || (status == DELTAFS_OK && h.place == PLACE_NOTHING))
        return place_find(io, path, place, e);
    return status == DELTAFS_OK ? status : io_explain(name, 0, "put the manifest itself, or a copy of it, there", e);
}

/* The error for a place that cannot be opened, or DELTAFS_OK if a container can be created there. */
static int container_refuse(const char *path, int flags, enum place place, struct error *e)
{
    static const char *const what[] = {
        [PLACE_CONTAINER] = "a logical file",      [PLACE_DIRECTORY] = "a directory of DeltaFS",
        [PLACE_FILE] = "an ordinary file",         [PLACE_EMPTY] = "an empty folder",
        [PLACE_BROKEN] = "a damaged logical file", [PLACE_FOREIGN] = "a folder of something else",
    };

    if ((flags & O_EXCL) && what[place])
        return error_set(e, DELTAFS_ERR_EXISTS, "%s: exists already, as %s", path, what[place]);
    switch (place) {
    case PLACE_BROKEN:
        return error_set(e, DELTAFS_ERR_DAMAGED,
                         "%s/" MANIFEST_NAME ": damaged at offset 0: it is missing, or does not begin as a manifest "
                         "does; nothing is read of the logical file while it is so: restore a copy of it",
                         path);
    case PLACE_NOTHING:
    case PLACE_EMPTY:
    case PLACE_BEGUN:
        if (flags & O_CREAT)
            return DELTAFS_OK;
        return error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: %s", path,
                         place == PLACE_NOTHING ? "there is no such file"
                                                : "an empty folder, or a logical file whose creation is running or was "
                                                  "interrupted");
    default:
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: is %s, not a logical file of DeltaFS", path, what[place]);
    }
}

/* ---- Creating ---- */

/* Write the manifest aside, and let link(2) decide who gives it its name: DELTAFS_ERR_EXISTS if there is one already,
 * _NOT_FOUND if the folder is gone. */
static int container_write(const struct container *c, struct io *io, const char *path, int sync, struct error *e)
{
    char aside[PATH_ROOM], name[PATH_ROOM];
    struct io_file file;
    uint64_t size = 0;
    int status = io_file_open(io, io_path_in(aside, path, MANIFEST_ASIDE_NAME, c->uuid_text), O_RDWR | O_CREAT | O_EXCL,
                              &file, e);

    if (status != DELTAFS_OK)
        return status;
    status = textlog_append_id(&file, &size, c->uuid_text, e);
    if (status == DELTAFS_OK)
        status = textlog_append(&file, &size, sync, e, "File frame=%d group=%d", FRAME_SIZE, FRAME_GROUP);
    status = io_file_finish(&file, status, e);
    if (status == DELTAFS_OK)
        status = io_link(io, aside, io_path_in(name, path, MANIFEST_NAME), e);
    io->ops->unlink(io->ctx, aside);
    return status;
}

/* Whether there is a folder that a program has made itself under the name that it gives MPI-IO: "deltafs:out" where out
 * is missing. */
static int container_find_literal(const char *missing, char literal[PATH_ROOM])
{
    const char *slash = strrchr(missing, '/'), *name = slash ? slash + 1 : missing;

    snprintf(literal, PATH_ROOM, "%.*s" NAME_PREFIX "%s", (int)(name - missing), missing, name);
    if (access(literal, F_OK) == 0)
        return 1;
    /* One that makes all the folders of deltafs:/scratch/out begins in the working directory. */
    snprintf(literal, PATH_ROOM, NAME_PREFIX "%s", missing);
    return access(literal, F_OK) == 0;
}

/* Its folder could not be made. */
static int container_explain(const char *path, struct error *e)
{
    char *missing = e->status == DELTAFS_ERR_NOT_FOUND ? path_missing(path) : NULL, literal[PATH_ROOM];

    path_explain_missing(path, e);
    if (missing && container_find_literal(missing, literal))
        error_set(e, e->status,
                  "%s: cannot be created: the folder %s does not exist, but a folder named %s does, which the program "
                  "has made itself; give it names without " NAME_PREFIX ", and start it by 'deltafs run'",
                  path, missing, literal);
    free(missing);
    return e->status;
}

/* Create the folder and the manifest, as far as they are missing. DELTAFS_ERR_BUSY: others changed the place meanwhile.
 */
static int container_create(const struct container *c, struct io *io, const char *path, enum place place, int sync,
                            struct error *e)
{
    int status = place == PLACE_NOTHING ? io_mkdir(io, path, e) : DELTAFS_ERR_EXISTS;
    int is_ours = status == DELTAFS_OK;
    char target[PATH_MAX];

    if (!is_ours && status != DELTAFS_ERR_EXISTS)
        return container_explain(path, e);
    status = container_write(c, io, path, sync, e);
    if (status == DELTAFS_ERR_NOT_FOUND && io_readlink(io, path, target, sizeof target, e) == DELTAFS_OK)
        return error_set(e, status, "%s: is a symbolic link that leads to nothing", path);
    if (status == DELTAFS_ERR_NOT_FOUND || status == DELTAFS_ERR_EXISTS)
        return error_set(e, DELTAFS_ERR_BUSY, "%s: other processes keep creating and removing it", path);
    if (status != DELTAFS_OK && is_ours)
        io->ops->rmdir(io->ctx, path);
    return status;
}

/* One attempt; DELTAFS_ERR_BUSY if it is worth another. `made` is what it may create. Over a network, a link can be
 * created and reported to exist already: the next attempt then finds our own UUID. */
static int container_try(struct container *c, const struct container *made, struct io *io, const char *path, int flags,
                         int sync, struct error *e)
{
    enum place place;
    int status = container_look(c, io, path, &place, e);

    if (status != DELTAFS_OK)
        return status;
    int is_ours = memcmp(c->uuid, made->uuid, sizeof c->uuid) == 0;
    if (place == PLACE_CONTAINER && (!(flags & O_EXCL) || is_ours))
        return DELTAFS_OK;
    status = container_refuse(path, flags, place, e);
    if (status == DELTAFS_OK)
        status = container_create(made, io, path, place, sync, e);
    if (status == DELTAFS_OK) {
        memcpy(c->uuid, made->uuid, sizeof c->uuid);
        memcpy(c->uuid_text, made->uuid_text, sizeof c->uuid_text);
    }
    return status;
}

void container_forget(struct container *c)
{
    free(c->recorded);
    c->recorded = NULL;
    c->recorded_count = c->recorded_capacity = 0;
}

int container_open(struct container *c, struct io *io, const char *path, int flags, int sync, struct error *e)
{
    struct container made = {0};
    int status = uuid_create(made.uuid, e);

    *c = made;
    uuid_to_text(made.uuid, made.uuid_text);
    if (status == DELTAFS_OK)
        status = DELTAFS_ERR_BUSY;
    for (int i = 0; i < TRIES && status == DELTAFS_ERR_BUSY; i++)
        status = container_try(c, &made, io, path, flags, sync, e);
    if (status == DELTAFS_OK && !(c->path = path_absolute(path)))
        status = error_no_memory(e, strlen(path) + 1, "a path");
    if (status != DELTAFS_OK)
        container_forget(c);
    return status;
}

int container_restore(struct container *c, struct io *io, struct error *e)
{
    int status = container_write(c, io, c->path, 1, e);

    return status == DELTAFS_OK ? io_sync_folder(io, c->path, e) : status;
}

void container_fini(struct container *c)
{
    free(c->path);
    container_forget(c);
    *c = (struct container){0};
}

static int container_compare(const struct container *c, const struct container *now, struct error *e)
{
    return memcmp(now->uuid, c->uuid, sizeof now->uuid) == 0
               ? DELTAFS_OK
               : error_set(e, DELTAFS_ERR_NOT_FOUND,
                           "%s: was deleted and created again meanwhile; the new file is unchanged", c->path);
}

int container_read(const struct container *c, struct io *io, struct container *now, struct error *e)
{
    enum place place;

    *now = (struct container){0};
    int status = container_look(now, io, c->path, &place, e);
    if (status != DELTAFS_OK)
        return status;
    if (place == PLACE_NOTHING)
        return error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: was deleted meanwhile", c->path);
    if (place != PLACE_CONTAINER && place != PLACE_DIRECTORY)
        return container_refuse(c->path, 0, place, e);
    return container_compare(c, now, e);
}

int container_check(const struct container *c, struct io *io, struct error *e)
{
    struct container now;
    int status = container_read(c, io, &now, e);

    container_fini(&now);
    return status;
}

/* ---- Recording sessions ---- */

/* Where the complete lines end, and the file. */
static int container_find_end(const struct container *c, struct io_file *file, uint64_t *end, uint64_t *size,
                              struct error *e)
{
    struct container now = {0};
    struct head h = {.container = &now};
    int status = io_file_refresh(file, e); /* it was opened before another process appended to it */

    if (status == DELTAFS_OK)
        status = head_read(file, &h, e);
    if (status == DELTAFS_OK)
        status = container_compare(c, &now, e);
    container_fini(&now);
    *end = h.end;
    return status == DELTAFS_OK ? io_file_size(file, size, e) : status;
}

/* Behind the complete lines. What a crash has left there is truncated. Without a lock, it may be a line that another
 * process is appending: then wait for its end. */
static int container_append(const struct container *c, struct io_file *file, int is_locked, enum record what,
                            const uint32_t *number, size_t n, int sync, struct error *e)
{
    uint64_t size = 0, end = 0;
    unsigned waited = 0;
    int status = container_find_end(c, file, &end, &size, e);

    while (status == DELTAFS_OK && size > end && !is_locked && waited < APPEND_MS && client_cached_pause(&waited))
        status = container_find_end(c, file, &end, &size, e);
    if (status == DELTAFS_OK && size > end)
        status = is_locked ? io_file_truncate(file, end, e)
                           : error_set(e, DELTAFS_ERR_BUSY,
                                       "%s: the last line, at offset %" PRIu64 ", is incomplete, and without locks on "
                                       "this file system another process may be writing it; if none writes the file, "
                                       "remove the line ('truncate -s %" PRIu64 " %s') and try again",
                                       file->path, end, end, file->path);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        status = textlog_append(file, &end, sync && i == n - 1, e, "%s number=%" PRIu32, record_word[what], number[i]);
    return status;
}

/* Where the file system has no locks, O_APPEND keeps lines of several processes apart. The lock is released before the
 * file is closed: a process that was forked meanwhile has the file open, too. */
int container_record(const struct container *c, struct io *io, enum record what, const uint32_t *number, size_t n,
                     int sync, struct error *e)
{
    char path[PATH_ROOM], aside[PATH_ROOM];
    struct io_file file;
    int status = DELTAFS_OK, flags = O_RDWR | O_APPEND;

    if (n > 0)
        status = io_file_open(io, io_path_in(path, c->path, MANIFEST_NAME), flags, &file, e);
    /* Its creation has not removed the first name yet, or was interrupted before that. */
    if (status == DELTAFS_ERR_IO) {
        io_unlink(io, io_path_in(aside, c->path, MANIFEST_ASIDE_NAME, c->uuid_text), error_ignored());
        status = io_file_open(io, path, flags, &file, e);
    }
    if (status == DELTAFS_ERR_NOT_FOUND)
        return error_set(e, status, "%s: was deleted meanwhile", c->path);
    if (n == 0 || status != DELTAFS_OK)
        return status;
    int is_locked = io_file_lock_wait(&file, 0, 1, 0, error_ignored()) == DELTAFS_OK;
    status = container_append(c, &file, is_locked, what, number, n, sync, e);
    if (is_locked)
        io_file_unlock(&file, 0, 1, error_ignored());
    return io_file_finish(&file, status, e);
}

static int is_there(struct io *io, const char *path)
{
    struct io_file file;
    int status = io_file_open(io, path, O_RDONLY, &file, error_ignored());

    io_file_close(&file, error_ignored());
    return status == DELTAFS_OK;
}

/* Whether a folder without a readable manifest is a directory of DeltaFS: it has the first bucket, and a manifest or
 * its copy. */
static int is_broken_directory(struct io *io, const char *path)
{
    char name[PATH_ROOM];

    return is_there(io, io_path_in(name, path, BUCKET_NAME, 0u)) &&
           (is_there(io, io_path_in(name, path, MANIFEST_NAME)) ||
            is_there(io, io_path_in(name, path, MANIFEST_COPY_NAME)));
}

int container_kind(struct io *io, const char *path, char *kind, struct error *e)
{
    struct error own; /* a success leaves the message of an earlier failure in *e */
    struct container c = {0};
    enum place place;
    int status = container_look(&c, io, path, &place, &own);

    container_fini(&c);

    if (status == DELTAFS_ERR_DAMAGED && container_is_broken(io, path)) {
        *kind = 'f';
        return DELTAFS_OK;
    }
    if ((status == DELTAFS_ERR_DAMAGED || (status == DELTAFS_OK && place == PLACE_FOREIGN)) &&
        is_broken_directory(io, path)) {
        *kind = 'd';
        return DELTAFS_OK;
    }
    if (status == DELTAFS_OK && place == PLACE_NOTHING)
        status = container_refuse(path, 0, place, &own);
    if (status == DELTAFS_OK)
        *kind = place == PLACE_CONTAINER || place == PLACE_BROKEN ? 'f' : place == PLACE_DIRECTORY ? 'd' : '-';
    else
        *e = own;
    return status;
}
