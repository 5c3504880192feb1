/* Repairing the texts of a logical file, MANIFEST and each SESSION: a byte that is wrong is found by its line's
 * checksum (text_repair.c). Where more is wrong, or a text is missing, it is made anew from what the logs tell: their
 * headers have the UUID, their names the writers. A session whose text was made anew counts as one that was not closed:
 * what its logs have is there, and what they may have lost is not told any more. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "logical/format/logical_format.h"
#include "logical/logical.h"
#include "base/sized.h"
#include "repair/repair_parts.h"
#include "io/log.h"

struct mending {
    struct container c;
    struct io io;
    int dry_run;
    deltafs_repair_fn fn;
    void *arg;
    char note[1024]; /* what text_repair_text says of the last byte */
};

static void text_repair_note(void *arg, const char *message)
{
    struct mending *m = arg;

    snprintf(m->note, sizeof m->note, "%s", message);
}

/* Tell what is done; `kept`: where what was there is kept, NULL if nothing was. */
static void text_repair_tell(const struct mending *m, const char *kept)
{
    char said[sizeof m->note + 300];

    snprintf(said, sizeof said, "%s%s%s", m->note, kept ? "; the former one is saved as " : "",
             kept ? strrchr(kept, '/') + 1 : "");
    if (m->fn)
        m->fn(DELTAFS_OK, said, m->arg);
}

/* Where what is in a text's place is kept; *kept is NULL if nothing is there. */
static int text_repair_find_kept(struct mending *m, const char *folder, const char *name, char **kept, struct error *e)
{
    char *path = io_path(folder, "%s", name);
    struct io_file file;
    struct error ignored;
    int status = path ? io_file_open(&m->io, path, O_RDONLY, &file, e) : error_no_memory(e, 1, "a path");

    *kept = NULL;
    if (status == DELTAFS_OK) {
        io_file_close(&file, &ignored);
        *kept = text_repair_kept_name(&m->io, path);
        status = *kept ? DELTAFS_OK : error_no_memory(e, 1, "a path");
    }
    free(path);
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

/* Try the text's lines; *is_done: they can be put right, and are, or are said to be. */
static int text_repair_lines(struct mending *m, const char *folder, const char *name, const char *kept, int *is_done,
                             struct error *e)
{
    char *text = NULL;
    size_t n;

    m->note[0] = '\0';
    int status = text_repair_text(&m->io, folder, name, text_repair_note, m, &text, &n, e);
    *is_done = status == DELTAFS_OK && m->note[0];
    if (*is_done && !m->dry_run)
        status = text_repair_replace(&m->io, folder, name, text, n, kept, e);
    if (*is_done && status == DELTAFS_OK)
        text_repair_tell(m, kept);
    free(text);
    return status == DELTAFS_ERR_DAMAGED || status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

/* What is in its place is kept, and makes room. */
static int text_repair_keep(struct mending *m, const char *folder, const char *name, const char *kept, struct error *e)
{
    char *from = io_path(folder, "%s", name);
    int status = !from ? error_no_memory(e, 1, "a path") : kept ? io_rename(&m->io, from, kept, e) : DELTAFS_OK;

    free(from);
    return status;
}

static void text_repair_tell_anew(struct mending *m, const char *folder, const char *name, const char *kept,
                                  const char *what)
{
    snprintf(m->note, sizeof m->note, "%s/%s: %s; it is rebuilt, %s", folder, name,
             kept ? "has more than one wrong byte" : "is missing", what);
    text_repair_tell(m, kept);
}

/* ---- Sessions ---- */

/* What a repair that was cut short has begun to write. */
static int text_repair_clear(struct mending *m, const char *folder, struct error *e)
{
    char *aside = io_path(folder, SESSION_NEW_NAME);
    int rc = aside ? m->io.ops->unlink(m->io.ctx, aside) : 0, status = DELTAFS_OK;

    if (!aside)
        status = error_no_memory(e, 1, "a path");
    else if (rc < 0 && rc != -ENOENT)
        status = error_system(e, -rc, "remove", aside);
    free(aside);
    return status;
}

static int text_repair_session_anew(struct mending *m, const char *folder, uint32_t number, const char *kept,
                                    struct error *e)
{
    struct session s;
    uint32_t *writer = NULL;
    size_t n = 0;
    int status = session_guess(&m->c, &m->io, number, &s, &writer, &n, e);

    free(writer);
    /* One that was being claimed does not count. */
    if (status != DELTAFS_OK || n == 0)
        return status;
    if (!m->dry_run) {
        status = text_repair_keep(m, folder, SESSION_NAME, kept, e);
        if (status == DELTAFS_OK)
            status = text_repair_clear(m, folder, e);
        if (status == DELTAFS_OK)
            status = session_write(&m->c, &m->io, &s, 1, e);
        if (status == DELTAFS_OK)
            status = io_sync_folder(&m->io, folder, e);
    }
    if (status == DELTAFS_OK)
        text_repair_tell_anew(m, folder, SESSION_NAME, kept, "from the logs, as of a session that was not closed");
    return status;
}

/* What a removal that was cut short has left. */
static int text_repair_remove(struct mending *m, uint32_t number, struct error *e)
{
    struct container c;
    int status = DELTAFS_OK;

    if (!m->dry_run) {
        status = container_open(&c, &m->io, m->c.path, O_RDONLY, 0, e);
        if (status == DELTAFS_OK)
            status = session_remove_remains(&c, &m->io, number, 1, e);
        container_fini(&c);
    }
    snprintf(m->note, sizeof m->note, "%s/" SESSION_FOLDER ": what is left of a session that was removed goes",
             m->c.path, number);
    if (status == DELTAFS_OK)
        text_repair_tell(m, NULL);
    return status;
}

static int text_repair_session(struct mending *m, uint32_t number, struct error *e)
{
    struct session s;
    char *kept = NULL;
    int is_done = 0, is_removed = 0, status = session_read(&m->c, &m->io, number, &s, e);

    if (status != DELTAFS_ERR_DAMAGED && status != DELTAFS_ERR_NOT_FOUND)
        return status;
    status = session_is_removed(&m->c, &m->io, number, &is_removed, e);
    if (status != DELTAFS_OK || is_removed)
        return status == DELTAFS_OK ? text_repair_remove(m, number, e) : status;
    char *folder = io_path(m->c.path, SESSION_FOLDER, number);
    if (!folder)
        return error_no_memory(e, 1, "a path");
    status = text_repair_find_kept(m, folder, SESSION_NAME, &kept, e);
    if (status == DELTAFS_OK)
        status = text_repair_lines(m, folder, SESSION_NAME, kept, &is_done, e);
    if (status == DELTAFS_OK && !is_done)
        status = text_repair_session_anew(m, folder, number, kept, e);
    free(kept);
    free(folder);
    return status;
}

/* What is wrong with one does not keep the others from being mended; the first error is that of all. */
static int text_repair_sessions(struct mending *m, struct error *e)
{
    uint32_t *number = NULL;
    size_t n = 0;
    int status = session_numbers(&m->c, &m->io, &number, &n, e);

    for (size_t i = 0; i < n; i++)
        status = error_first(status, text_repair_session(m, number[i], error_after(status, e)));
    free(number);
    return status;
}

/* ---- The manifest ---- */

/* The UUID in a log's header, which is the container's. */
static int text_repair_log_uuid(struct mending *m, const struct session *s, uint32_t writer, struct error *e)
{
    uint8_t h[LOG_HEADER_SIZE], want[LOG_HEADER_SIZE];
    struct io_file file;
    struct error ignored;
    char path[PATH_ROOM];
    int status = io_file_open(&m->io, session_log_path(&m->c, s, writer, LOG_KIND_EXTENTS, path), O_RDONLY, &file, e);

    if (status != DELTAFS_OK)
        return status;
    status = io_file_read(&file, 0, h, sizeof h, e);
    io_file_close(&file, &ignored);
    if (status != DELTAFS_OK)
        return status;
    log_put_header(want, LOG_KIND_EXTENTS, writer, h + sizeof h - sizeof m->c.uuid);
    if (memcmp(h, want, sizeof h) != 0)
        return DELTAFS_ERR_DAMAGED;
    memcpy(m->c.uuid, h + sizeof h - sizeof m->c.uuid, sizeof m->c.uuid);
    uuid_to_text(m->c.uuid, m->c.uuid_text);
    return DELTAFS_OK;
}

static int text_repair_find_uuid(struct mending *m, struct error *e)
{
    uint32_t *number = NULL;
    size_t sessions = 0;
    struct error ignored;
    int status = session_numbers(&m->c, &m->io, &number, &sessions, e), is_found = 0;

    for (size_t i = 0; i < sessions && status == DELTAFS_OK && !is_found; i++) {
        struct session s;
        uint32_t *writer = NULL;
        size_t n = 0;
        session_guess(&m->c, &m->io, number[i], &s, &writer, &n, &ignored);
        for (size_t k = 0; k < n && !is_found; k++)
            is_found = text_repair_log_uuid(m, &s, writer[k], &ignored) == DELTAFS_OK;
        free(writer);
    }
    free(number);
    if (status != DELTAFS_OK || is_found)
        return status;
    return error_damaged(e, m->c.path, 0,
                         "MANIFEST is damaged, and no log tells the file's UUID: put a copy of it back");
}

static int text_repair_manifest_anew(struct mending *m, const char *kept, struct error *e)
{
    int status = text_repair_find_uuid(m, e);

    if (status == DELTAFS_OK && !m->dry_run) {
        status = text_repair_keep(m, m->c.path, MANIFEST_NAME, kept, e);
        if (status == DELTAFS_OK)
            status = container_restore(&m->c, &m->io, e);
    }
    if (status == DELTAFS_OK)
        text_repair_tell_anew(m, m->c.path, MANIFEST_NAME, kept, "with the UUID that the logs have");
    return status;
}

static int text_repair_manifest(struct mending *m, struct error *e)
{
    struct container c;
    char *kept = NULL;
    int is_done = 0, status = container_open(&c, &m->io, m->c.path, O_RDONLY, 0, e);

    container_fini(&c);
    if (status != DELTAFS_ERR_DAMAGED)
        return status;
    status = text_repair_find_kept(m, m->c.path, MANIFEST_NAME, &kept, e);
    if (status == DELTAFS_OK)
        status = text_repair_lines(m, m->c.path, MANIFEST_NAME, kept, &is_done, e);
    if (status == DELTAFS_OK && !is_done)
        status = text_repair_manifest_anew(m, kept, e);
    free(kept);
    return status;
}

int deltafs_logical_repair(const char *path, const struct deltafs_repair_options *options, deltafs_repair_fn fn,
                           void *arg)
{
    struct deltafs_repair_options given = {.struct_size = sizeof given};
    struct mending m = {.io = io_default(), .fn = fn, .arg = arg};
    struct error *e = deltafs_private_thread_error();

    if (options && sized_take(&given, options, sizeof given, "deltafs_logical_repair", e) != DELTAFS_OK)
        return e->status;
    if (given.has_label || given.has_drop_from)
        return error_set(e, DELTAFS_ERR_INVALID,
                         "deltafs_logical_repair: a logical file has no epochs: label and drop_from do not apply");
    m.dry_run = given.dry_run;

    if (!path)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_logical_repair: path must be given");
    m.c.path = strdup(path);
    int status = m.c.path ? text_repair_manifest(&m, e) : error_no_memory(e, strlen(path), "a path");
    if (status == DELTAFS_OK)
        status = text_repair_sessions(&m, e);
    free(m.c.path);
    return status;
}
