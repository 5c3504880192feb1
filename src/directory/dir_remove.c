/* Removing and renaming directories. A directory that is removed first gets a hidden name, so nobody finds half of one;
 * its manifest goes last, so another attempt under that name finds the rest. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <deltafs/deltafs.h>
#include "base/collective.h"
#include "base/thread.h"
#include "directory/dir.h"
#include "directory/format/manifest.h"
#include "io/io_format.h"
#include "io/lease.h"
#include "io/volume.h"

#define HIDDEN_NAME ".deltafs-removed-"

struct removal {
    struct io io;
    const char *path; /* of the directory */
    char uuid_text[UUID_TEXT_SIZE];
    int is_removing; /* 0: only check that all is the directory's */
    const deltafs_options *options;
};

static int removal_busy(const char *path, struct error *e)
{
    return error_set(e, DELTAFS_ERR_BUSY,
                     "%s: a job is writing it, or may be; 'deltafs info' names the job; if that has ended, set "
                     "DELTAFS_LEASE=0",
                     path);
}

static int removal_foreign(const char *path, struct error *e)
{
    return error_set(e, DELTAFS_ERR_NOT_DELTAFS,
                     "%s: is no part of the directory; move it away, then the directory can be removed", path);
}

/* Call `each` for each name in a folder; one that is missing is empty. */
static int removal_each(struct removal *r, const char *folder,
                        int (*each)(struct removal *r, const char *folder, const char *name, struct error *e),
                        struct error *e)
{
    struct bytes names = {{0}, 0};
    int status = io_names(&r->io, folder, &names, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        status = DELTAFS_OK;
    for (size_t at = 0; at < names.used && status == DELTAFS_OK;) {
        const char *name = (const char *)names.buffer.bytes + at;
        status = each(r, folder, name, e);
        at += strlen(name) + 1;
    }
    buffer_fini(&names.buffer);
    return status;
}

static int removal_unlink(struct removal *r, const char *path, struct error *e)
{
    int status = r->is_removing ? io_unlink(&r->io, path, e) : DELTAFS_OK;

    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

/* Logs, and what repair has saved of them: p or v, eight hexadecimal digits, and an ending. */
static int is_log(const char *name)
{
    return (*name == 'p' || *name == 'v') && strspn(name + 1, "0123456789abcdef") == 8 && name[9] == '.';
}

static int removal_log(struct removal *r, const char *folder, const char *name, struct error *e)
{
    char path[PATH_ROOM];

    io_path_in(path, folder, "%s", name);
    if (strcmp(name, OWNER_NAME) == 0) /* goes with the bucket */
        return DELTAFS_OK;
    return is_log(name) ? removal_unlink(r, path, e) : removal_foreign(path, e);
}

int dir_is_being_removed(const char *path)
{
    const char *slash = strrchr(path, '/');

    return strncmp(slash ? slash + 1 : path, HIDDEN_NAME, strlen(HIDDEN_NAME)) == 0;
}

static int removal_bucket(struct removal *r, const char *folder, uint32_t bucket, struct error *e)
{
    const struct volume_part part = {&r->io, r->path, r->uuid_text, ""};
    char target[PATH_MAX];
    int status = volume_check_bucket(&part, bucket, e);

    /* An earlier attempt may have removed it. */
    if (status == DELTAFS_OK && !r->is_removing && !dir_is_being_removed(r->path) &&
        io_readlink(&r->io, folder, target, sizeof target, error_ignored()) == DELTAFS_OK && access(folder, F_OK) != 0)
        return error_set(e, DELTAFS_ERR_IO, "%s: leads to %s, which is missing; if its volume is not mounted, mount it",
                         folder, target);
    if (status == DELTAFS_OK)
        status = removal_each(r, folder, removal_log, e);
    return status == DELTAFS_OK && r->is_removing ? volume_remove_bucket(&part, bucket, e) : status;
}

static int removal_entry(struct removal *r, const char *folder, const char *name, struct error *e)
{
    static const char *const files[] = {MANIFEST_NAME, SOURCES_NAME, LEASE_NAME};
    char path[PATH_ROOM];

    io_path_in(path, folder, "%s", name);
    if (strcmp(name, VALUE_INDEX_FOLDER) == 0)
        return r->is_removing ? io_rmdir(&r->io, path, e) : DELTAFS_OK;
    if (strlen(name) == 2 && strspn(name, "0123456789abcdef") == 2)
        return removal_bucket(r, path, (uint32_t)strtoul(name, NULL, 16), e);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t n = strlen(files[i]);
        if (strncmp(name, files[i], n) == 0 && (name[n] == '\0' || name[n] == '.'))
            return strcmp(name, MANIFEST_NAME) == 0 ? DELTAFS_OK : removal_unlink(r, path, e);
    }
    return removal_foreign(path, e);
}

/* Whether it is a directory. A damaged one may be removed, too, if it says what its name on volumes is. */
static int removal_check(struct removal *r, struct error *e)
{
    struct manifest m = {0};
    char target[PATH_MAX];
    int status = io_readlink(&r->io, r->path, target, sizeof target, e);

    if (status == DELTAFS_OK)
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: a symbolic link, not a directory", r->path);
    status = manifest_read(&r->io, r->path, &m, e);
    if (status == DELTAFS_ERR_DAMAGED) {
        manifest_fini(&m);
        m = (struct manifest){0};
        manifest_read_head(&r->io, r->path, &m);
        status = m.uuid_text[0] != '\0' ? DELTAFS_OK : status;
    }
    memcpy(r->uuid_text, m.uuid_text, sizeof r->uuid_text);
    manifest_fini(&m);
    return status == DELTAFS_OK ? removal_each(r, r->path, removal_entry, e) : status;
}

static int removal_hide(struct removal *r, char hidden[PATH_ROOM], struct error *e)
{
    const char *slash = strrchr(r->path, '/');
    uint8_t uuid[16];
    char text[UUID_TEXT_SIZE];
    int status = uuid_create(uuid, e);

    if (status != DELTAFS_OK)
        return status;
    uuid_to_text(uuid, text);
    snprintf(hidden, PATH_ROOM, "%.*s" HIDDEN_NAME "%s", slash ? (int)(slash - r->path) + 1 : 0, r->path, text);
    status = io_rename(&r->io, r->path, hidden, e);
    if (status != DELTAFS_OK)
        return status;
    r->path = hidden;
    /* Without this, a crash could restore the name, but not the contents. */
    return io_sync_parent(&r->io, hidden, e);
}

/* With the lease, which is removed with the rest. */
static int removal_run(struct removal *r, struct error *e)
{
    char hidden[PATH_ROOM] = "", path[PATH_ROOM];
    int status = removal_hide(r, hidden, e);

    r->is_removing = 1;
    if (status == DELTAFS_OK)
        status = removal_each(r, r->path, removal_entry, e);
    if (status == DELTAFS_OK)
        status = removal_unlink(r, io_path_in(path, r->path, MANIFEST_NAME), e);
    if (status == DELTAFS_OK)
        status = io_rmdir(&r->io, r->path, e);
    if (status != DELTAFS_OK && r->path == hidden)
        error_set(e, status, "%s; the rest of what was removed is in %s", e->text, hidden);
    return status;
}

/* The option lease. */
static int lease_seconds(const deltafs_options *given, uint64_t *seconds)
{
    deltafs_options *own = NULL;
    int status = given ? DELTAFS_OK : deltafs_options_create(&own);

    *seconds = status == DELTAFS_OK ? deltafs_private_options_number(given ? given : own, OPTION_LEASE) : 0;
    deltafs_options_destroy(own);
    return status;
}

int dir_check_lease(const char *path, const deltafs_options *o, struct error *e)
{
    struct io io = io_default();
    uint64_t seconds;
    int status = error_of_call(lease_seconds(o, &seconds), e);

    return status == DELTAFS_OK && lease_may_be_held(&io, path, seconds) ? removal_busy(path, e) : status;
}

static int removal_check_index(struct removal *r, const char *folder, const char *name, struct error *e)
{
    char path[PATH_ROOM];

    return dir_check_lease(io_path_in(path, folder, "%s", name), r->options, e);
}

int dir_check_value_indexes(const char *path, const deltafs_options *o, struct error *e)
{
    struct removal r = {.io = io_default(), .options = o};
    char folder[PATH_ROOM];

    return removal_each(&r, io_path_in(folder, path, VALUE_INDEX_FOLDER), removal_check_index, e);
}

/* A copy without slashes at its end. */
static char *path_copy(const char *path, struct error *e)
{
    char *copy = strdup(path);

    if (!copy)
        error_no_memory(e, strlen(path) + 1, "a path");
    for (size_t n = copy ? strlen(copy) : 0; n > 1 && copy[n - 1] == '/';)
        copy[--n] = '\0';
    return copy;
}

/* What deltafs_remove does. */
static int remove_directory(const char *path, const deltafs_options *o, struct error *e)
{
    struct removal r = {.io = io_default()};
    struct lease lease;
    uint64_t seconds;
    int status = error_of_call(lease_seconds(o, &seconds), e);
    char *copy = status == DELTAFS_OK ? path_copy(path, e) : NULL;

    if (!copy)
        return e->status;
    r.path = copy;
    status = removal_check(&r, e);
    if (status == DELTAFS_OK)
        status = dir_check_value_indexes(r.path, o, e);
    if (status == DELTAFS_OK) {
        status = lease_take(&lease, &r.io, r.path, seconds, 1, e);
        if (status == DELTAFS_OK) {
            status = dir_remove_value_indexes(r.path, o, e);
            if (status == DELTAFS_OK)
                status = removal_run(&r, e);
            io_file_close(&lease.file, error_ignored());
        }
    }
    free(copy);
    return status;
}

int deltafs_remove(const char *path)
{
    struct error *e = deltafs_private_thread_error();

    if (!path || !*path)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_remove: path must be given");
    return remove_directory(path, NULL, e);
}

int dir_remove_own(const char *path, const deltafs_options *o, struct error *e)
{
    struct removal r = {.io = io_default(), .path = path};
    int status = remove_directory(path, o, e);

    if (status != DELTAFS_ERR_NOT_DELTAFS && status != DELTAFS_ERR_DAMAGED)
        return status;
    /* Its creation was interrupted, or its manifest is gone: all else must be its own. */
    status = removal_each(&r, path, removal_entry, e);
    return status == DELTAFS_OK ? removal_run(&r, e) : status;
}

static int removal_index(struct removal *r, const char *folder, const char *name, struct error *e)
{
    char path[PATH_ROOM];

    return dir_remove_own(io_path_in(path, folder, "%s", name), r->options, e);
}

int dir_remove_value_indexes(const char *path, const deltafs_options *o, struct error *e)
{
    struct removal r = {.io = io_default(), .options = o};
    char folder[PATH_ROOM];

    return removal_each(&r, io_path_in(folder, path, VALUE_INDEX_FOLDER), removal_index, e);
}

int deltafs_rename(const char *from, const char *to)
{
    struct error *e = deltafs_private_thread_error();
    struct io io = io_default();
    struct manifest m = {0};
    uint64_t seconds;

    if (!from || !*from || !to || !*to)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_rename: both paths must be given");
    int status = lease_seconds(NULL, &seconds);
    if (status == DELTAFS_OK)
        status = manifest_read(&io, from, &m, e);
    if (status == DELTAFS_OK && m.is_index)
        status = error_set(
            e, DELTAFS_ERR_MODE,
            "%s: is an index, which finds its files from where it is: remove it, and index the files again", from);
    manifest_fini(&m);
    if (status == DELTAFS_OK && lease_may_be_held(&io, from, seconds))
        status = removal_busy(from, e);
    if (status != DELTAFS_OK)
        return status;
    status = io_rename(&io, from, to, e);
    return status == DELTAFS_OK ? io_sync_parent(&io, to, e) : status;
}
