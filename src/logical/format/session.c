#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/number.h"
#include "logical/format/extents.h"
#include "logical/format/logical_format.h"
#include "logical/format/session.h"
#include "logical/format/names.h"
#include "io/volume.h"

#define SESSION_NAME_ROOM 16
#define WRITERS_A_FOLDER  64  /* with two logs each, no folder is slow */
#define TRIES             100 /* while others create and remove sessions */

/* ---- Paths ---- */

char *session_path(const struct container *c, uint32_t number, const char *name, char path[PATH_ROOM])
{
    return io_path_in(path, c->path, SESSION_FOLDER "/%s", number, name);
}

char *session_folder(const struct container *c, uint32_t number, char path[PATH_ROOM])
{
    return io_path_in(path, c->path, SESSION_FOLDER, number);
}

static char *session_bucket(const struct container *c, uint32_t number, uint32_t bucket, char path[PATH_ROOM])
{
    return io_path_in(path, c->path, SESSION_FOLDER "/" BUCKET_NAME, number, bucket);
}

char *session_log_path(const struct container *c, const struct session *s, uint32_t writer, int kind,
                       char path[PATH_ROOM])
{
    char name[32], bucket[8] = "";

    if (s->buckets > 0)
        snprintf(bucket, sizeof bucket, BUCKET_NAME "/", writer % s->buckets & 0xff);
    snprintf(name, sizeof name, kind == LOG_KIND_FRAMES ? LOG_NAME_FRAMES : LOG_NAME_EXTENTS, writer);
    return io_path_in(path, c->path, SESSION_FOLDER "/%s%s", s->number, bucket, name);
}

/* What has its buckets; `name` gets the name of its folder. */
static struct volume_part session_part(const struct container *c, struct io *io, uint32_t number,
                                       char name[SESSION_NAME_ROOM])
{
    snprintf(name, SESSION_NAME_ROOM, SESSION_FOLDER, number);
    return (struct volume_part){io, c->path, c->uuid_text, name};
}

int session_check_folder(const struct container *c, struct io *io, uint32_t number, struct error *e)
{
    char path[PATH_ROOM], target[PATH_MAX];

    if (io_readlink(io, session_folder(c, number, path), target, sizeof target, error_ignored()) != DELTAFS_OK)
        return DELTAFS_OK;
    return error_set(
        e, DELTAFS_ERR_NOT_DELTAFS,
        "%s: is a symbolic link, so nothing is written there; put the folder itself, or a copy of it, in its "
        "place",
        path);
}

/* ---- Reading ---- */

static int session_take_first(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct session *s = arg;
    uint64_t writers, buckets;

    if (textlog_number(fields, "writers", &writers) != 0 || textlog_number(fields, "order", &s->order) != 0 ||
        textlog_number(fields, "buckets", &buckets) != 0 || writers == 0 || writers > SESSION_WRITERS_MAX ||
        buckets > SESSION_BUCKETS_MAX || s->order > INT64_MAX)
        return error_damaged(e, path, offset, "the session's line is malformed");
    s->writers = (uint32_t)writers;
    s->buckets = (uint32_t)buckets;
    return DELTAFS_OK;
}

static int session_take_close(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct session *s = arg;
    uint64_t logs, synced = 1; /* by default */

    if (textlog_number(fields, "logs", &logs) != 0 || textlog_number(fields, "order", &s->last_order) != 0 ||
        textlog_number(fields, "size", &s->size) != 0 || logs > s->writers || s->size > INT64_MAX ||
        s->last_order > INT64_MAX)
        return error_damaged(e, path, offset, "the closing line is malformed");
    textlog_number(fields, "synced", &synced);
    s->logs = (uint32_t)logs;
    s->is_closed = 1;
    s->is_synced = synced != 0;
    return DELTAFS_OK;
}

static int session_take(void *arg, char *line, const char *path, uint64_t offset, struct error *e)
{
    static const struct textlog_word words[] = {
        {"Session", session_take_first}, {"close", session_take_close}, {NULL, NULL}};

    return textlog_take(words, arg, line, path, offset, e);
}

/* The lines of an open session file; *end: where they end. */
static int session_read_file(struct io_file *file, struct session *s, uint64_t *end, struct error *e)
{
    static const char advice[] = "nothing is read of the logical file while it is so: restore a copy of this file";
    int status = textlog_read(file, advice, session_take, s, end, e);

    if (status == DELTAFS_OK && s->writers == 0)
        return error_damaged(e, file->path, 0, "it has no complete line");
    return status;
}

int session_read(const struct container *c, struct io *io, uint32_t number, struct session *s, struct error *e)
{
    char path[PATH_ROOM];
    struct io_file file;
    struct error ignored;
    uint64_t end;
    int status = io_file_open_name(io, session_path(c, number, SESSION_NAME, path), O_RDONLY, &file, e);

    *s = (struct session){.number = number};
    if (status != DELTAFS_OK)
        return status;
    status = session_read_file(&file, s, &end, e);
    io_file_close(&file, &ignored);
    if (status != DELTAFS_OK || !s->is_closed)
        return status;
    /* If it cannot be opened for another reason, reading it reports that. */
    int found = io_file_open(io, session_path(c, number, SESSION_INDEX_NAME, path), O_RDONLY, &file, &ignored);
    s->has_index = found != DELTAFS_ERR_NOT_FOUND && found != DELTAFS_ERR_MEMORY;
    io_file_close(&file, &ignored);
    return status;
}

int session_is_removed(const struct container *c, struct io *io, uint32_t number, int *is_removed, struct error *e)
{
    char path[PATH_ROOM];
    struct io_file file;
    struct error ignored;
    int status = io_file_open(io, session_path(c, number, SESSION_NAME, path), O_RDONLY, &file, e);

    io_file_close(&file, &ignored);
    *is_removed = 0;
    if (status != DELTAFS_ERR_NOT_FOUND)
        return status;
    status = io_file_open(io, session_path(c, number, SESSION_GONE_NAME, path), O_RDONLY, &file, e);
    io_file_close(&file, &ignored);
    *is_removed = status == DELTAFS_OK;
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

/* What the manifest says of a session now; *is_recorded: anything. */
static int session_find_record(const struct container *c, struct io *io, uint32_t number, struct recorded *out,
                               int *is_recorded, struct error *e)
{
    struct container now;
    int status = container_read(c, io, &now, e);

    *is_recorded = 0;
    for (size_t i = 0; i < now.recorded_count && status == DELTAFS_OK; i++)
        if (now.recorded[i].number == number) {
            *out = now.recorded[i];
            *is_recorded = 1;
        }
    container_fini(&now);
    return status;
}

/* What others do at the same time is no damage: a session is recorded when SESSION is there, and a removal is recorded
 * before SESSION goes. So it is missing if it was recorded, then not there, and then still recorded. */
int session_check_missing(const struct container *c, struct io *io, uint32_t number, int *is_lost, struct error *e)
{
    struct recorded r;
    struct session s;
    char path[PATH_ROOM];
    int is_recorded, is_removed = 0;

    for (int i = 0; i < 2; i++) {
        int status = session_find_record(c, io, number, &r, &is_recorded, e);
        if (status != DELTAFS_OK || !is_recorded)
            return status;
        if (r.is_lost && is_lost) {
            *is_lost = 1;
            return DELTAFS_OK;
        }
        status = session_read(c, io, number, &s, e);
        if (status != DELTAFS_ERR_NOT_FOUND)
            return status;
        status = session_is_removed(c, io, number, &is_removed, e);
        if (status != DELTAFS_OK || is_removed)
            return status;
    }
    return error_damaged(e, session_path(c, number, SESSION_NAME, path), 0,
                         "it is missing, although MANIFEST says that there is such a session: restore it and what was "
                         "beside it from a copy; 'deltafs repair' says what else can be done");
}

/* ---- Listing ---- */

/* Numbers out of names. */
struct numbers {
    uint32_t *number;
    size_t count, capacity;
    enum name in, name; /* which names count */
};

static int numbers_add(void *arg, const char *name, struct error *e)
{
    struct numbers *n = arg;
    uint32_t number;

    if (name_of(n->in, name, &number) != n->name)
        return DELTAFS_OK;
    int status = memory_extend(NULL, &n->number, n->count, &n->capacity, sizeof number, "names", e);
    if (status == DELTAFS_OK)
        n->number[n->count++] = number;
    return status;
}

/* All names have been listed: return the sorted numbers. */
static int numbers_finish(struct numbers *n, int status, uint32_t **number, size_t *count)
{
    if (status != DELTAFS_OK) {
        free(n->number);
        return status;
    }
    if (n->count > 0)
        qsort(n->number, n->count, sizeof *n->number, compare_u32);
    *number = n->number;
    *count = n->count;
    return DELTAFS_OK;
}

int session_numbers(const struct container *c, struct io *io, uint32_t **number, size_t *count, struct error *e)
{
    struct numbers n = {.in = NAME_CONTAINER, .name = NAME_SESSION};

    return numbers_finish(&n, io_list(io, c->path, numbers_add, &n, e), number, count);
}

int session_is_listed(const uint32_t *number, size_t n, uint32_t which)
{
    return n > 0 && bsearch(&which, number, n, sizeof *number, compare_u32) != NULL;
}

int session_list(const struct container *c, struct io *io, struct session **out, size_t *count, struct error *e)
{
    uint32_t *number = NULL;
    struct session *list = NULL;
    size_t n = 0, k = 0;
    int status = session_numbers(c, io, &number, &n, e);

    if (status == DELTAFS_OK && !(list = malloc((n + 1) * sizeof *list)))
        status = error_no_memory(e, (n + 1) * sizeof *list, "the sessions");
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        status = session_read(c, io, number[i], &list[k], e);
        k += status == DELTAFS_OK;
        if (status == DELTAFS_ERR_NOT_FOUND)
            status = DELTAFS_OK;
    }
    free(number);
    if (status != DELTAFS_OK) {
        free(list);
        return status;
    }
    *out = list;
    *count = k;
    return DELTAFS_OK;
}

/* A missing folder has no logs: a crash has left none, or the closing line says how many are missing. A missing volume
 * is an error. */
static int session_list_bucket(const struct container *c, struct io *io, uint32_t number, uint32_t bucket,
                               struct numbers *n, struct error *e)
{
    char target[PATH_MAX], path[PATH_ROOM];
    struct error no_link;
    int status = io_list(io, session_bucket(c, number, bucket, path), numbers_add, n, e);

    return status == DELTAFS_ERR_NOT_FOUND &&
                   io_readlink(io, path, target, sizeof target, &no_link) == DELTAFS_ERR_NOT_FOUND
               ? DELTAFS_OK
               : status;
}

int session_logs(const struct container *c, struct io *io, const struct session *s, int kind, uint32_t **writer,
                 size_t *count, struct error *e)
{
    struct numbers n = {.in = s->buckets > 0 ? NAME_BUCKET : NAME_SESSION,
                        .name = kind == LOG_KIND_FRAMES ? NAME_FRAMES : NAME_EXTENTS};
    char path[PATH_ROOM];
    int status = s->buckets == 0 ? io_list(io, session_folder(c, s->number, path), numbers_add, &n, e) : DELTAFS_OK;

    for (uint32_t b = 0; b < s->buckets && status == DELTAFS_OK; b++)
        status = session_list_bucket(c, io, s->number, b, &n, e);
    return numbers_finish(&n, status, writer, count);
}

static int guess_bucket(void *arg, const char *name, struct error *e)
{
    struct session *s = arg;
    uint32_t bucket;

    (void)e;
    if (name_of(NAME_SESSION, name, &bucket) == NAME_BUCKET && bucket >= s->buckets)
        s->buckets = bucket + 1;
    return DELTAFS_OK;
}

int session_guess(const struct container *c, struct io *io, uint32_t number, struct session *s, uint32_t **writer,
                  size_t *count, struct error *e)
{
    char path[PATH_ROOM];

    *s = (struct session){.number = number};
    int status = io_list(io, session_folder(c, number, path), guess_bucket, s, e);
    if (status != DELTAFS_OK)
        return status;
    status = session_logs(c, io, s, LOG_KIND_EXTENTS, writer, count, e);
    if (status == DELTAFS_ERR_NOT_FOUND) /* a volume is missing, not the session */
        status = e->status = DELTAFS_ERR_IO;
    if (status == DELTAFS_OK && *count > 0)
        s->writers = (*writer)[*count - 1] + 1;
    return status;
}

int session_check_logs(const struct container *c, struct io *io, const struct session *s, const uint32_t *writer,
                       size_t count, struct error *e)
{
    uint32_t *data = NULL;
    size_t n = 0, i = 0;
    char path[PATH_ROOM];

    if (count == s->logs)
        return DELTAFS_OK;
    int status = session_logs(c, io, s, LOG_KIND_FRAMES, &data, &n, e);
    while (i < n && i < count && data[i] == writer[i])
        i++;
    if (status == DELTAFS_OK && i < n && count < s->logs)
        status = error_damaged(e, session_log_path(c, s, data[i], LOG_KIND_EXTENTS, path), 0,
                               "the file is missing, the first of %zu", s->logs - count);
    else if (status == DELTAFS_OK)
        status = error_damaged(e, session_folder(c, s->number, path), 0,
                               "it was closed with %" PRIu32 " writers' logs, and has %zu", s->logs, count);
    free(data);
    return status;
}

/* ---- Creating ---- */

static uint32_t session_buckets(uint32_t writers, uint32_t volumes)
{
    uint32_t n = writers <= WRITERS_A_FOLDER ? 0 : (writers + WRITERS_A_FOLDER - 1) / WRITERS_A_FOLDER;

    if (volumes > 0 && n <= volumes)
        n = writers < volumes ? writers : volumes;
    else if (volumes > 0)
        n = (n + volumes - 1) / volumes * volumes;
    if (n > SESSION_BUCKETS_MAX)
        n = SESSION_BUCKETS_MAX - (volumes > 0 ? SESSION_BUCKETS_MAX % volumes : 0);
    return n;
}

/* Whether the session has, or has had, logs. One that cannot be examined may have. */
static int session_has_logs(const struct container *c, struct io *io, uint32_t number)
{
    struct session s;
    uint32_t *writer = NULL;
    size_t n = 0;
    int is_removed, status = session_is_removed(c, io, number, &is_removed, error_ignored());

    if (status != DELTAFS_OK || is_removed)
        return 1;
    status = session_guess(c, io, number, &s, &writer, &n, error_ignored());
    free(writer);
    return status != DELTAFS_OK || n > 0;
}

/* Create the folder of the next free number, `from` or above. Between the listing and that, others may have created and
 * removed a session with this number. Only a session above it that has logs can have removed it; that one still exists,
 * or another such one does, and then the number is not used again. Sessions that are being created have no logs. */
static int session_number(const struct container *c, struct io *io, uint64_t from, uint32_t *number, struct error *e)
{
    char path[PATH_ROOM];
    uint32_t *now = NULL;
    size_t n = 0;
    int is_used = 1, status = session_numbers(c, io, &now, &n, e);

    for (int i = 0; i < TRIES && is_used && status == DELTAFS_OK; i++) {
        uint64_t next = n > 0 && now[n - 1] >= from ? (uint64_t)now[n - 1] + 1 : from;
        free(now);
        now = NULL;
        n = 0;
        do {
            if (next > UINT32_MAX)
                return error_damaged(e, c->path, 0, "there is no number left for another session");
            *number = (uint32_t)next++;
            status = io_mkdir(io, session_folder(c, *number, path), e);
        } while (status == DELTAFS_ERR_EXISTS);
        if (status != DELTAFS_OK)
            return status;
        status = session_numbers(c, io, &now, &n, e);
        is_used = 0;
        for (size_t k = n; k > 0 && now[k - 1] > *number && !is_used; k--)
            is_used = session_has_logs(c, io, now[k - 1]);
        if (status != DELTAFS_OK || is_used)
            io->ops->rmdir(io->ctx, path);
    }
    free(now);
    return status == DELTAFS_OK && is_used
               ? error_set(e, DELTAFS_ERR_BUSY, "%s: other processes keep creating and removing sessions", c->path)
               : status;
}

static int session_make_buckets(const struct container *c, struct io *io, const struct session *s,
                                const struct volumes *all, int sync, struct error *e)
{
    char name[SESSION_NAME_ROOM];
    const struct volume_part part = session_part(c, io, s->number, name);
    struct volumes v = *all;

    volumes_choose(&v, &part, s->buckets);
    int status = volumes_make(&v, &part, e);
    for (uint32_t b = 0; b < s->buckets && status == DELTAFS_OK; b++)
        status = volumes_make_bucket(&v, &part, b, e);
    return status == DELTAFS_OK && sync ? volumes_sync(&v, &part, e) : status;
}

int session_write(const struct container *c, struct io *io, const struct session *s, int sync, struct error *e)
{
    struct io_file file;
    uint64_t size = 0;
    char aside[PATH_ROOM], path[PATH_ROOM];
    int status =
        io_file_open(io, session_path(c, s->number, SESSION_NEW_NAME, aside), O_RDWR | O_CREAT | O_EXCL, &file, e);

    if (status == DELTAFS_OK)
        status = textlog_append(&file, &size, sync, e, "Session writers=%" PRIu32 " order=%" PRIu64 " buckets=%" PRIu32,
                                s->writers, s->order, s->buckets);
    status = io_file_finish(&file, status, e);
    return status == DELTAFS_OK ? io_rename(io, aside, session_path(c, s->number, SESSION_NAME, path), e) : status;
}

int session_create(const struct container *c, struct io *io, uint32_t writers, uint64_t order, const char *volumes,
                   int sync, struct session *out, struct error *e)
{
    struct session s = {.writers = writers, .order = order};
    struct volumes v;
    struct error ignored;
    char name[SESSION_NAME_ROOM];

    if (writers == 0 || writers > SESSION_WRITERS_MAX)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: %" PRIu32 " writers: there can be 1 to %u", c->path, writers,
                         SESSION_WRITERS_MAX);
    int status = volumes_parse(&v, volumes, e);
    if (status != DELTAFS_OK)
        return status;
    s.buckets = session_buckets(writers, v.count);
    /* A crash may have lost the folder of an unsynced session, but not its part of a volume: that part stays, and its
     * number is skipped. */
    for (int i = 0; i == 0 || (status == DELTAFS_ERR_EXISTS && v.count > 0 && i < TRIES); i++) {
        status = session_number(c, io, i == 0 ? 0 : (uint64_t)s.number + 1, &s.number, e);
        if (status != DELTAFS_OK)
            break;
        status = session_make_buckets(c, io, &s, &v, sync, e);
        if (status == DELTAFS_OK)
            status = session_write(c, io, &s, sync, e);
        if (status == DELTAFS_OK) {
            /* Not synced: session_sync does that once the session is durable. A record without it is damage. */
            status = container_record(c, io, RECORD_CREATED, &s.number, 1, 0, e);
            /* A session that may be recorded stays: without logs it does no harm. BUSY: no line was appended. */
            if (status != DELTAFS_OK && status != DELTAFS_ERR_BUSY &&
                container_record(c, io, RECORD_REMOVED, &s.number, 1, 0, &ignored) != DELTAFS_OK)
                break;
        }
        if (status != DELTAFS_OK) {
            const struct volume_part part = session_part(c, io, s.number, name);
            session_remove(c, io, s.number, 0, &ignored);
            volumes_unmake(&v, &part);
        }
    }
    volumes_fini(&v);
    if (status == DELTAFS_OK)
        *out = s;
    return status;
}

/* IO_AWAITED: an open that catches up would sync the file and ignore the error. */
int container_sync(const struct container *c, struct io *io, struct error *e)
{
    struct io_file file;
    char path[PATH_ROOM];
    int status = io_file_open(io, io_path_in(path, c->path, MANIFEST_NAME), O_RDONLY | IO_AWAITED, &file, e);

    if (status == DELTAFS_OK)
        status = io_file_finish(&file, io_file_sync(&file, e), e);
    if (status == DELTAFS_OK)
        status = io_sync_folder(io, c->path, e);
    return status == DELTAFS_OK ? io_sync_parent(io, c->path, e) : status;
}

int session_sync(const struct container *c, struct io *io, const struct session *s, const char *volumes,
                 struct error *e)
{
    struct volumes v;
    char name[SESSION_NAME_ROOM], path[PATH_ROOM];
    const struct volume_part part = session_part(c, io, s->number, name);
    int status = volumes_parse(&v, volumes, e);

    if (status != DELTAFS_OK)
        return status;
    volumes_choose(&v, &part, s->buckets);
    status = volumes_sync(&v, &part, e);
    if (status == DELTAFS_OK)
        status = io_sync_folder(io, session_folder(c, s->number, path), e);
    if (status == DELTAFS_OK)
        status = container_sync(c, io, e);
    volumes_fini(&v);
    return status;
}

int session_sync_folder(const struct container *c, struct io *io, const struct session *s, uint32_t writer,
                        struct error *e)
{
    char path[PATH_ROOM];

    if (s->buckets > 0)
        session_bucket(c, s->number, writer % s->buckets, path);
    else
        session_folder(c, s->number, path);
    return io_sync_folder(io, path, e);
}

/* ---- Closing ---- */

int session_close(const struct container *c, struct io *io, struct session *s, uint32_t logs, uint64_t order,
                  uint64_t size, int sync, struct error *e)
{
    struct io_file file;
    struct session now = {.number = s->number};
    uint64_t end = 0;
    char path[PATH_ROOM];
    int status = io_file_open(io, session_path(c, s->number, SESSION_NAME, path), O_RDWR, &file, e);

    if (status == DELTAFS_OK)
        status = session_read_file(&file, &now, &end, e);
    if (status == DELTAFS_OK && (now.writers != s->writers || now.order != s->order || now.buckets != s->buckets))
        status = error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: is another session's: this one was removed meanwhile", path);
    /* An earlier attempt may have left an incomplete line. */
    if (status == DELTAFS_OK)
        status = io_file_truncate(&file, end, e);
    if (status == DELTAFS_OK)
        status =
            textlog_append(&file, &end, sync, e, "close logs=%" PRIu32 " order=%" PRIu64 " size=%" PRIu64 " synced=%d",
                           logs, order, size, sync != 0);
    status = io_file_finish(&file, status, e);
    if (status != DELTAFS_OK)
        return status;
    s->is_closed = 1;
    s->is_synced = sync != 0;
    s->logs = logs;
    s->last_order = order;
    s->size = size;
    return DELTAFS_OK;
}

int session_write_index(const struct container *c, struct io *io, uint32_t number, const void *batches, size_t n,
                        int sync, struct error *e)
{
    char aside[PATH_ROOM], path[PATH_ROOM];
    int status = session_check_folder(c, io, number, e);

    if (status != DELTAFS_OK)
        return status;
    status =
        extent_index_write(io, session_path(c, number, SESSION_INDEX_NEW, aside), number, c->uuid, batches, n, sync, e);
    if (status == DELTAFS_OK)
        status = io_rename(io, aside, session_path(c, number, SESSION_INDEX_NAME, path), e);
    if (status != DELTAFS_OK)
        io->ops->unlink(io->ctx, aside);
    return status == DELTAFS_OK && sync ? io_sync_parent(io, path, e) : status;
}
