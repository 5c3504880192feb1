/* Repairing the texts of a logical file, MANIFEST and each SESSION. They have no copy: one that is damaged or missing
 * is rebuilt from the logs, whose headers have the UUID and whose names the writers. A session whose text is rebuilt
 * counts as not closed: what its logs have is read, and what they may have lost is not reported. A session of which
 * nothing is left is recorded as lost: the file can be read without it, and verify goes on reporting it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "logical/format/logical_format.h"
#include "logical/logical.h"
#include "base/sized.h"
#include "repair/repair_parts.h"
#include "io/log.h"

struct logical_repair {
    struct container c;
    struct io io;
    int dry_run, is_rebuilt; /* the manifest is: it records no sessions */
    deltafs_repair_fn fn;
    void *arg;
};

/* Move a damaged text away, to a name of its own, if there is one at all; then say what takes its place. */
static int logical_repair_keep(struct logical_repair *r, const char *folder, const char *name, const char *what,
                               struct error *e)
{
    char path[PATH_ROOM], kept[PATH_ROOM], text[2 * PATH_ROOM + 300];
    struct io_file file;
    int status = io_file_open(&r->io, io_path_in(path, folder, "%s", name), O_RDONLY, &file, e), is_there = !status;

    io_file_close(&file, error_ignored());
    const char *name_kept = is_there ? repair_kept_name(&r->io, path, kept) : "";
    if (is_there && !r->dry_run)
        status = io_rename(&r->io, path, kept, e);
    snprintf(text, sizeof text, "%s: is %s; it is rebuilt, %s%s%s", path, is_there ? "damaged" : "missing", what,
             is_there ? "; the former one is saved as " : "", name_kept);
    status = status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
    if (status == DELTAFS_OK && r->fn)
        r->fn(DELTAFS_OK, text, r->arg);
    return status;
}

/* ---- Sessions ---- */

/* Nothing is left of a session. If it must be there, record that it is lost. */
static int logical_repair_lose(struct logical_repair *r, const char *folder, uint32_t number, struct error *e)
{
    char text[PATH_ROOM + 300];
    struct session s;
    int is_lost = 0;

    if (r->is_rebuilt || session_read(&r->c, &r->io, number, &s, error_ignored()) != DELTAFS_ERR_NOT_FOUND)
        return DELTAFS_OK;
    int status = session_check_missing(&r->c, &r->io, number, &is_lost, e);
    if (status != DELTAFS_ERR_DAMAGED)
        return status;
    status = r->dry_run ? DELTAFS_OK : container_record(&r->c, &r->io, RECORD_LOST, &number, 1, 1, e);
    snprintf(text, sizeof text,
             "%s: what was written in this session is missing, and nothing can rebuild it; restore the folder from a "
             "copy; until then the file is read without it, and is incomplete",
             folder);
    if (status == DELTAFS_OK && r->fn)
        r->fn(DELTAFS_OK, text, r->arg);
    return status;
}

static int logical_repair_rebuild(struct logical_repair *r, const char *folder, uint32_t number, struct error *e)
{
    struct session s;
    uint32_t *writer = NULL;
    size_t n = 0;
    char aside[PATH_ROOM];
    int status = session_guess(&r->c, &r->io, number, &s, &writer, &n, e);

    if (status == DELTAFS_OK && n > 0)
        status = session_check_folder(&r->c, &r->io, number, e);
    free(writer);
    if (status == DELTAFS_ERR_NOT_FOUND || (status == DELTAFS_OK && n == 0))
        return logical_repair_lose(r, folder, number, e);
    if (status != DELTAFS_OK)
        return status;
    status = logical_repair_keep(r, folder, SESSION_NAME, "from the logs, as of a session that was not closed", e);
    if (status != DELTAFS_OK || r->dry_run)
        return status;
    status = io_unlink(&r->io, io_path_in(aside, folder, SESSION_NEW_NAME), e); /* of an interrupted repair */
    if (status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND)
        status = session_write(&r->c, &r->io, &s, 1, e);
    return status == DELTAFS_OK ? io_sync_folder(&r->io, folder, e) : status;
}

/* Finish a removal that was interrupted. */
static int logical_repair_remove(struct logical_repair *r, const char *folder, uint32_t number, struct error *e)
{
    struct container c;
    char text[PATH_ROOM + 100];
    int status = DELTAFS_OK;

    if (!r->dry_run) {
        status = container_open(&c, &r->io, r->c.path, O_RDONLY, 0, e);
        if (status == DELTAFS_OK)
            status = session_remove_remains(&c, &r->io, number, 1, e);
        container_fini(&c);
    }
    snprintf(text, sizeof text, "%s: what is left of a session that was removed is deleted", folder);
    if (status == DELTAFS_OK && r->fn)
        r->fn(DELTAFS_OK, text, r->arg);
    return status;
}

static int logical_repair_session(struct logical_repair *r, uint32_t number, struct error *e)
{
    char folder[PATH_ROOM];
    struct session s;
    int is_removed = 0, status = session_read(&r->c, &r->io, number, &s, e);

    if (status != DELTAFS_ERR_DAMAGED && status != DELTAFS_ERR_NOT_FOUND)
        return status;
    io_path_in(folder, r->c.path, SESSION_FOLDER, number);
    status = session_is_removed(&r->c, &r->io, number, &is_removed, e);
    if (status != DELTAFS_OK)
        return status;
    return is_removed ? logical_repair_remove(r, folder, number, e) : logical_repair_rebuild(r, folder, number, e);
}

/* An error in one does not keep the others from being repaired; the first error is that of all. */
static int logical_repair_sessions(struct logical_repair *r, struct error *e)
{
    struct session s;
    uint32_t *number = NULL;
    size_t n = 0;
    int status = session_numbers(&r->c, &r->io, &number, &n, e);

    for (size_t i = 0; i < n; i++)
        status = error_first(status, logical_repair_session(r, number[i], error_after(status, e)));
    for (size_t i = 0; i < r->c.recorded_count; i++)
        if (!session_is_listed(number, n, r->c.recorded[i].number))
            status = error_first(status, logical_repair_session(r, r->c.recorded[i].number, error_after(status, e)));
    for (size_t i = 0; i < n && status == DELTAFS_OK && r->is_rebuilt && !r->dry_run; i++)
        if (session_read(&r->c, &r->io, number[i], &s, error_ignored()) == DELTAFS_OK)
            status = container_record(&r->c, &r->io, RECORD_CREATED, &number[i], 1, 1, e);
    free(number);
    return status;
}

/* ---- The manifest ---- */

/* The UUID in a log's header, which is the container's. */
static int logical_repair_log_uuid(struct logical_repair *r, const struct session *s, uint32_t writer, struct error *e)
{
    uint8_t h[LOG_HEADER_SIZE], want[LOG_HEADER_SIZE];
    struct io_file file;
    char path[PATH_ROOM];
    int status = io_file_open(&r->io, session_log_path(&r->c, s, writer, LOG_KIND_EXTENTS, path), O_RDONLY, &file, e);

    if (status != DELTAFS_OK)
        return status;
    status = io_file_read(&file, 0, h, sizeof h, e);
    io_file_close(&file, error_ignored());
    if (status != DELTAFS_OK)
        return status;
    log_put_header(want, LOG_KIND_EXTENTS, writer, h + sizeof h - sizeof r->c.uuid);
    if (memcmp(h, want, sizeof h) != 0)
        return DELTAFS_ERR_DAMAGED;
    memcpy(r->c.uuid, h + sizeof h - sizeof r->c.uuid, sizeof r->c.uuid);
    uuid_to_text(r->c.uuid, r->c.uuid_text);
    return DELTAFS_OK;
}

static int logical_repair_find_uuid(struct logical_repair *r, struct error *e)
{
    uint32_t *number = NULL;
    size_t sessions = 0;
    int status = session_numbers(&r->c, &r->io, &number, &sessions, e), is_found = 0;

    for (size_t i = 0; i < sessions && status == DELTAFS_OK && !is_found; i++) {
        struct session s;
        uint32_t *writer = NULL;
        size_t n = 0;
        session_guess(&r->c, &r->io, number[i], &s, &writer, &n, error_ignored());
        for (size_t k = 0; k < n && !is_found; k++)
            is_found = logical_repair_log_uuid(r, &s, writer[k], error_ignored()) == DELTAFS_OK;
        free(writer);
    }
    free(number);
    if (status != DELTAFS_OK || is_found)
        return status;
    return error_damaged(e, r->c.path, 0,
                         "MANIFEST is damaged, and no log has the file's UUID: restore a backup of it");
}

static int logical_repair_manifest(struct logical_repair *r, struct error *e)
{
    struct container c;
    int status = container_open(&c, &r->io, r->c.path, O_RDONLY, 0, e);

    if (status == DELTAFS_OK) {
        free(c.path); /* messages have the caller's path */
        c.path = r->c.path;
        r->c = c;
    }
    if (status != DELTAFS_ERR_DAMAGED)
        return status;
    r->is_rebuilt = 1;
    status = logical_repair_find_uuid(r, e);
    if (status == DELTAFS_OK)
        status = logical_repair_keep(r, r->c.path, MANIFEST_NAME,
                                     "with the UUID that the logs have and the sessions that are there (if another one "
                                     "is missing, nothing reports that any more)",
                                     e);
    return status == DELTAFS_OK && !r->dry_run ? container_restore(&r->c, &r->io, e) : status;
}

int deltafs_logical_repair(const char *path, const struct deltafs_repair_options *options, deltafs_repair_fn fn,
                           void *arg)
{
    struct deltafs_repair_options given = {.struct_size = sizeof given};
    struct logical_repair r = {.io = io_default(), .fn = fn, .arg = arg};
    struct error *e = deltafs_private_thread_error();

    if (options && sized_take(&given, options, sizeof given, "deltafs_logical_repair", e) != DELTAFS_OK)
        return e->status;
    if (given.has_label || given.has_drop_from)
        return error_set(e, DELTAFS_ERR_INVALID,
                         "deltafs_logical_repair: a logical file has no epochs: label and drop_from do not apply");
    r.dry_run = given.dry_run;

    if (!path)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_logical_repair: path must be given");
    r.c.path = strdup(path);
    int status = r.c.path ? logical_repair_manifest(&r, e) : error_no_memory(e, strlen(path), "a path");
    if (status == DELTAFS_OK)
        status = logical_repair_sessions(&r, e);
    container_fini(&r.c);
    return status;
}
