/* Builds the merged extent index. Rank 0 lists the sessions and, if they are few, their logs. Each rank reads a share
 * of the extent logs, and all exchange what they have read (the parallel index read of PLFS; He et al., CLUSTER'13).
 * Where ranks outnumber processors, a collective call costs more than many small files, so the calls are few and carry
 * errors along with their data. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "io/io_format.h"
#include "logical/format/logical_format.h"
#include "logical/logical.h"
#include "logical/format/flat.h"
#include "io/log.h"

#define TRIES        100 /* while other processes remove sessions */
#define FEW_SESSIONS 1   /* for each rank; if there are more, rank 0 does not inspect them for all */

/* ---- Which logs there are ---- */

/* A session to be read. The numbers of the writers that have logs follow, unless all have. */
struct row {
    struct session session;
    uint32_t writers;
    int is_all;
};

/* What rank 0 broadcasts. Rows follow, to be divided among the ranks; or, if there are too many sessions, their
 * numbers: then each rank inspects a share of them. */
struct table_head {
    uint8_t uuid[16];
    uint64_t numbers;
};

/* Whether and how a failed attempt is repeated. */
enum retry { RETRY_NOT, RETRY_AGAIN, RETRY_WITH_LOSS, RETRY_NEVER };

/* What rank 0 found. */
struct listing {
    uint32_t *number; /* of all sessions */
    size_t count;
    struct bytes table;
};

const struct session *logical_known(const deltafs_logical *f, uint32_t number)
{
    for (size_t i = 0; i < f->known_count; i++)
        if (f->known[i].number == number)
            return &f->known[i];
    return NULL;
}

/* Whether everything that the session's closing line names must exist. */
static int logical_is_whole(const deltafs_logical *f, const struct session *s)
{
    return s->is_closed && (s->is_synced || !f->accepts_loss);
}

/* The writers that have extent logs. */
static int logical_logs(deltafs_logical *f, const struct session *s, uint32_t **writer, size_t *n, struct error *e)
{
    int status = session_logs(&f->container, &f->io, s, LOG_KIND_EXTENTS, writer, n, e);

    return status == DELTAFS_OK && logical_is_whole(f, s) ? session_check_logs(&f->container, &f->io, s, *writer, *n, e)
                                                          : status;
}

static int logical_put_row(deltafs_logical *f, const struct session *s, struct bytes *rows, struct error *e)
{
    struct row row = {.session = *s};
    uint32_t *writer = NULL;
    size_t n = 0;
    int is_flat = s->is_closed && s->has_index, status = DELTAFS_OK;

    row.is_all = !is_flat && logical_is_whole(f, s) && s->logs == s->writers;
    if (!is_flat && !row.is_all)
        status = logical_logs(f, s, &writer, &n, e);
    row.writers = row.is_all ? s->writers : (uint32_t)n;
    if (status == DELTAFS_OK)
        status = bytes_append(rows, &row, sizeof row, e);
    if (status == DELTAFS_OK)
        status = bytes_append(rows, writer, n * sizeof *writer, e);
    free(writer);
    return status;
}

/* A session that is not valid, or has just been removed, has no row. */
static int logical_find_row(deltafs_logical *f, uint32_t number, struct bytes *rows, struct error *e)
{
    struct session s;
    int status = session_read(&f->container, &f->io, number, &s, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        return DELTAFS_OK;
    return status == DELTAFS_OK ? logical_put_row(f, &s, rows, e) : status;
}

/* Whether a session may contain something new. */
static int logical_may_be_new(const deltafs_logical *f, uint32_t number, int with_own)
{
    const struct session *before = logical_known(f, number);
    int is_own = f->has_session && number == f->session.number;

    return (!before || !before->is_closed) && (!is_own || with_own);
}

/* List all sessions that may contain something new: rows, or numbers if there are more than `few`. */
static int logical_make_table(deltafs_logical *f, int with_own, size_t few, struct listing *listing, struct error *e)
{
    struct table_head head = {.numbers = 0};
    int status = session_numbers(&f->container, &f->io, &listing->number, &listing->count, e);

    for (size_t i = 0; i < listing->count; i++)
        head.numbers += (uint64_t)logical_may_be_new(f, listing->number[i], with_own);
    int is_few = head.numbers <= few;
    memcpy(head.uuid, f->container.uuid, sizeof head.uuid);
    head.numbers = is_few ? 0 : head.numbers;
    if (status == DELTAFS_OK)
        status = bytes_append(&listing->table, &head, sizeof head, e);
    for (size_t i = 0; i < listing->count && status == DELTAFS_OK; i++)
        if (logical_may_be_new(f, listing->number[i], with_own))
            status = is_few ? logical_find_row(f, listing->number[i], &listing->table, e)
                            : bytes_append(&listing->table, &listing->number[i], sizeof *listing->number, e);
    return status;
}

/* Whether a listed session is gone: another process truncated the file to zero and removed it meanwhile. Failing to
 * read it is no damage; a new listing shows the truncation. */
static int listing_is_outdated(deltafs_logical *f, const struct listing *listing)
{
    uint32_t *now = NULL;
    size_t n = 0, k = 0;
    struct error ignored;
    int status = session_numbers(&f->container, &f->io, &now, &n, &ignored);

    for (size_t i = 0; i < n && k < listing->count; i++)
        k += now[i] == listing->number[k];
    free(now);
    return status == DELTAFS_OK && k < listing->count;
}

/* The valid sessions at the end of an attempt. A removal deletes a session's SESSION file first and its folder last, so
 * the folder alone does not tell a session under removal from one that a crash has damaged. */
struct snapshot {
    struct session *session;
    size_t count;
    int is_taken;
    int is_fresh; /* taken in this attempt */
    int has_lost; /* a session of the last snapshot is gone, or there was no last one */
};

static int scan_sessions_take(deltafs_logical *f, struct snapshot *c, struct error *e)
{
    struct snapshot now = {.is_taken = 1, .is_fresh = 1, .has_lost = !c->is_taken};
    int status = session_list(&f->container, &f->io, &now.session, &now.count, e);

    if (status != DELTAFS_OK)
        return status;
    for (size_t i = 0, k = 0; i < c->count; i++) {
        const struct session *before = &c->session[i];
        while (k < now.count && now.session[k].number < before->number)
            k++;
        now.has_lost |=
            k == now.count || now.session[k].number != before->number || now.session[k].order != before->order;
    }
    free(c->session);
    *c = now;
    return DELTAFS_OK;
}

/* An attempt begins: no snapshot has been taken in it yet. */
static void scan_sessions_begin(struct snapshot *c)
{
    c->is_fresh = c->has_lost = 0;
}

/* If a session was removed during an attempt that accepts loss, the missing parts may be its own: do not accept the
 * result. */
static int logical_settle(deltafs_logical *f, struct snapshot *snapshot, struct error *e)
{
    int status = f->accepts_loss ? scan_sessions_take(f, snapshot, e) : DELTAFS_OK;

    if (!f->accepts_loss || status != DELTAFS_OK)
        return status;
    return snapshot->has_lost
               ? error_set(e, DELTAFS_ERR_DAMAGED, "%s: other processes keep removing its sessions while it is read",
                           f->container.path)
               : DELTAFS_OK;
}

/* Decide what follows an attempt that ended with `status`. A session that was closed but not synced is first expected
 * to be complete: a missing log may have been removed meanwhile. If the same sessions are valid before and after the
 * attempt, a crash has lost the log, and the rest is the file. DELTAFS_ERR_NOT_FOUND also means removal: the session's
 * number may be in use again. */
static enum retry logical_retry(deltafs_logical *f, const struct listing *listing, struct snapshot *snapshot,
                                int status)
{
    int is_missing = status == DELTAFS_ERR_DAMAGED || status == DELTAFS_ERR_NOT_FOUND;
    struct error ignored;

    if (status == DELTAFS_OK)
        return RETRY_NOT;
    if (is_missing && container_check(&f->container, &f->io, &ignored) == DELTAFS_ERR_NOT_FOUND)
        return RETRY_NOT;
    if (is_missing && !snapshot->is_fresh && scan_sessions_take(f, snapshot, &ignored) != DELTAFS_OK)
        return RETRY_NOT;
    if (listing_is_outdated(f, listing) || snapshot->has_lost)
        return RETRY_AGAIN;
    return status == DELTAFS_ERR_DAMAGED && !f->accepts_loss ? RETRY_WITH_LOSS : RETRY_NOT;
}

/* The attempts have ended. */
static void logical_end_attempts(deltafs_logical *f, int status)
{
    f->is_cut |= f->accepts_loss && status == DELTAFS_OK;
    f->accepts_loss = 0;
}

/* The path may name another file by now: then that is the error. Returns the status. */
static int logical_explain(deltafs_logical *f, struct error *e)
{
    struct error gone = {0};

    if ((e->status == DELTAFS_ERR_DAMAGED || e->status == DELTAFS_ERR_NOT_FOUND) &&
        container_check(&f->container, &f->io, &gone) == DELTAFS_ERR_NOT_FOUND)
        *e = gone;
    return e->status;
}

static void listing_fini(struct listing *listing)
{
    free(listing->number);
    buffer_fini(&listing->table.buffer);
    *listing = (struct listing){0};
}

static void logical_remember(deltafs_logical *f, const struct session *s)
{
    struct session *known = (struct session *)(uintptr_t)logical_known(f, s->number);

    if (!known)
        known = &f->known[f->known_count++];
    *known = *s;
    if (s->order >= f->order)
        f->order = s->order + 1;
}

/* A range of rows of a table. */
struct rows {
    const uint8_t *at, *end;
};

static struct rows rows_of(const struct bytes *rows)
{
    return (struct rows){rows->buffer.bytes, rows->buffer.bytes + rows->used};
}

static struct table_head table_head(const struct bytes *table)
{
    struct table_head head;

    memcpy(&head, table->buffer.bytes, sizeof head);
    return head;
}

static struct rows table_rows(const struct bytes *table)
{
    struct rows rows = rows_of(table);

    rows.at = table_head(table).numbers > 0 ? rows.end : rows.at + sizeof(struct table_head);
    return rows;
}

/* The next row, and its writers' numbers. */
static int rows_next(struct rows *rows, struct row *row, const uint8_t **writers)
{
    if (rows->at == rows->end)
        return 0;
    memcpy(row, rows->at, sizeof *row);
    if (!row->session.is_closed)
        row->session.logs = row->writers;
    *writers = rows->at + sizeof *row;
    rows->at = *writers + (row->is_all ? 0 : row->writers * sizeof(uint32_t));
    return 1;
}

/* Reserve room for these sessions, so that remembering them cannot fail. */
static int logical_reserve_known(deltafs_logical *f, struct rows rows, struct error *e)
{
    size_t n = f->known_count;
    const uint8_t *writers;
    struct row row;

    while (rows_next(&rows, &row, &writers))
        n++;
    if (n <= f->known_capacity)
        return DELTAFS_OK;
    struct session *grown = realloc(f->known, n * sizeof *grown);
    if (!grown)
        return error_no_memory(e, n * sizeof *grown, "a file's sessions");
    f->known = grown;
    f->known_capacity = n;
    return DELTAFS_OK;
}

/* Remember these sessions, after all of them have been read: a session known to be closed is not read again. */
static void logical_remember_all(deltafs_logical *f, struct rows rows)
{
    const uint8_t *writers;
    struct row row;

    while (rows_next(&rows, &row, &writers))
        logical_remember(f, &row.session);
}

/* ---- Reading logs ---- */

static size_t logical_logs_index(const deltafs_logical *f, uint32_t session, uint32_t writer)
{
    size_t low = 0, high = f->logs_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct writer_logs *s = f->logs[middle];
        if (s->session < session || (s->session == session && s->writer < writer))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct writer_logs *logical_writer_logs(deltafs_logical *f, uint32_t session, uint32_t writer, struct error *e)
{
    size_t at = logical_logs_index(f, session, writer);

    if (at < f->logs_count && f->logs[at]->session == session && f->logs[at]->writer == writer)
        return f->logs[at];
    struct writer_logs *s = calloc(1, sizeof *s);
    if (!s)
        error_no_memory(e, sizeof *s, "a writer's logs");
    if (!s || memory_extend(NULL, &f->logs, f->logs_count, &f->logs_capacity, sizeof *f->logs, "a writer's logs", e)) {
        free(s);
        return NULL;
    }
    memmove(f->logs + at + 1, f->logs + at, (f->logs_count - at) * sizeof *f->logs);
    f->logs_count++;
    *s = (struct writer_logs){.session = session, .writer = writer};
    f->logs[at] = s;
    return s;
}

/* The state at the start of an attempt; each log's entry keeps its own part. */
struct mark {
    size_t received, unexchanged;
};

static struct mark logical_mark(deltafs_logical *f)
{
    for (size_t i = 0; i < f->logs_count; i++) {
        f->logs[i]->began = f->logs[i]->from;
        f->logs[i]->was_last = f->logs[i]->is_last;
    }
    return (struct mark){f->received.used, f->unexchanged.used};
}

/* The attempt failed: go back to its start. */
static void logical_rewind(deltafs_logical *f, const struct mark *mark)
{
    f->received.used = mark->received;
    f->unexchanged.used = mark->unexchanged;
    for (size_t i = 0; i < f->logs_count; i++) {
        f->logs[i]->from = f->logs[i]->began;
        f->logs[i]->is_last = f->logs[i]->was_last;
    }
}

/* A log that must exist is missing. */
static int logical_miss_log(deltafs_logical *f, const struct session *s, const char *path, struct error *e)
{
    uint32_t *writer = NULL;
    size_t n = 0;
    int status = logical_logs(f, s, &writer, &n, e);

    free(writer);
    return status == DELTAFS_OK ? error_damaged(e, path, 0, "the file is missing") : status;
}

static int logical_read_log(deltafs_logical *f, const struct session *s, uint32_t writer, struct bytes *out,
                            struct error *e)
{
    struct writer_logs *logs = logical_writer_logs(f, s->number, writer, e);
    int is_whole = logical_is_whole(f, s);
    char path[PATH_ROOM];

    if (!logs)
        return e->status;
    session_log_path(&f->container, s, writer, LOG_KIND_EXTENTS, path);
    int status = extent_log_read(&f->io, path, s->number, writer, f->container.uuid, is_whole, &logs->from,
                                 &logs->is_last, &out->buffer, &out->used, e);
    /* The writer has not created the log yet, or a crash has lost it. */
    if (status == DELTAFS_ERR_NOT_FOUND)
        status = is_whole ? logical_miss_log(f, s, path, e) : DELTAFS_OK;
    return status;
}

int logical_read_own(deltafs_logical *f, struct bytes *out, struct error *e)
{
    char path[PATH_ROOM];
    uint64_t from = 0;
    int is_last = 0;

    session_log_path(&f->container, &f->session, f->group.rank, LOG_KIND_EXTENTS, path);
    int status = extent_log_read(&f->io, path, f->session.number, f->group.rank, f->container.uuid, 1, &from, &is_last,
                                 &out->buffer, &out->used, e);
    return status == DELTAFS_OK ? status : logical_explain(f, e);
}

/* Read a closed session's index from one file; if that is damaged or missing, from the logs. */
static int logical_read_flat(deltafs_logical *f, const struct session *s, struct bytes *out, struct error *e)
{
    size_t before = out->used, n = 0;
    uint32_t *writer = NULL;
    struct error unsound; /* apart from *e, whose status must not change on success */
    int status = flat_read(&f->container, &f->io, s, &out->buffer, &out->used, &unsound);

    if (status == DELTAFS_OK)
        return status;
    out->used = before;
    if (status != DELTAFS_ERR_DAMAGED && status != DELTAFS_ERR_NOT_FOUND) {
        *e = unsound;
        return status;
    }
    status = logical_logs(f, s, &writer, &n, e);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        status = logical_read_log(f, s, writer[i], out, e);
    free(writer);
    return status;
}

static int is_share(uint64_t number, uint32_t rank, uint32_t ranks)
{
    return ranks > 0 && number % ranks == rank;
}

/* Append to `out` the share of rank `rank` among `ranks` of the rows' logs. */
static int logical_read_rows(deltafs_logical *f, struct rows rows, uint32_t rank, uint32_t ranks, struct bytes *out,
                             struct error *e)
{
    int status = DELTAFS_OK;
    const uint8_t *writers;
    struct row row;

    while (status == DELTAFS_OK && rows_next(&rows, &row, &writers)) {
        const struct session *s = &row.session;
        if (s->is_closed && s->has_index && is_share(s->number, rank, ranks))
            status = logical_read_flat(f, s, out, e);
        for (uint32_t i = 0; i < row.writers && status == DELTAFS_OK; i++) {
            uint32_t writer = i;
            if (!row.is_all)
                memcpy(&writer, writers + i * sizeof writer, sizeof writer);
            int is_self = f->has_session && s->number == f->session.number && writer == f->group.rank;
            if (!is_self && is_share(s->number + (uint64_t)writer, rank, ranks))
                status = logical_read_log(f, s, writer, out, e);
        }
    }
    return status;
}

/* The same for a table; nothing if `ranks` is 0. Sessions given by number are inspected first: `found` gets their rows.
 */
static int logical_read_share(deltafs_logical *f, const struct bytes *table, uint32_t rank, uint32_t ranks,
                              struct bytes *found, struct bytes *out, struct error *e)
{
    const uint8_t *numbers = table->buffer.bytes + sizeof(struct table_head);
    uint64_t n = table_head(table).numbers;
    uint32_t number;
    int status = DELTAFS_OK;

    for (uint64_t i = 0; i < n && status == DELTAFS_OK; i++)
        if (is_share(i, rank, ranks)) {
            memcpy(&number, numbers + i * sizeof number, sizeof number);
            status = logical_find_row(f, number, found, e);
        }
    if (status == DELTAFS_OK)
        status = logical_read_rows(f, rows_of(found), 0, 1, out, e);
    return status == DELTAFS_OK ? logical_read_rows(f, table_rows(table), rank, ranks, out, e) : status;
}

/* ---- The map ---- */

static int logical_map(const struct extent *x, void *arg, struct error *e)
{
    deltafs_logical *f = arg;

    /* The process's own writes are in the map already. */
    if (f->has_session && x->session == f->session.number && x->writer == f->group.rank)
        return DELTAFS_OK;
    return extent_map_add(&f->map, x, e);
}

int logical_add_batches(deltafs_logical *f, const struct bytes *b, struct error *e)
{
    size_t used;
    int is_last;
    int status = extent_batches_decode(b->buffer.bytes, b->used, log_seed(f->container.uuid), f->container.path, 0,
                                       logical_map, f, &used, &is_last, e);

    if (status == DELTAFS_OK && extent_map_order(&f->map) >= f->order)
        f->order = extent_map_order(&f->map) + 1;
    return status;
}

/* Add what was read; it is not read again, whatever else fails. */
static int logical_add_received(deltafs_logical *f, struct error *e)
{
    int status = logical_add_batches(f, &f->received, e);

    if (status == DELTAFS_OK) {
        buffer_fini(&f->received.buffer);
        f->received = (struct bytes){{.memory = &f->memory}, 0};
    }
    return status;
}

void logical_find_size(deltafs_logical *f)
{
    uint64_t size = extent_map_size(&f->map);

    if (logical_can_read(f) || size > f->size)
        f->size = size;
}

int logical_refresh_alone(deltafs_logical *f, struct error *e)
{
    struct listing listing = {0};
    struct snapshot snapshot = {0};
    enum retry retry = RETRY_NOT;
    int status;

    for (int i = 0; i == 0 || (retry != RETRY_NOT && i < TRIES); i++) {
        const struct mark mark = logical_mark(f);
        f->accepts_loss = retry == RETRY_WITH_LOSS;
        scan_sessions_begin(&snapshot);
        listing_fini(&listing);
        status = logical_make_table(f, !logical_is_alone(f), SIZE_MAX, &listing, e);
        if (status == DELTAFS_OK)
            status = logical_reserve_known(f, table_rows(&listing.table), e);
        if (status == DELTAFS_OK)
            status = logical_read_rows(f, table_rows(&listing.table), 0, 1, &f->received, e);
        if (status == DELTAFS_OK)
            status = logical_settle(f, &snapshot, e);
        if (status != DELTAFS_OK)
            logical_rewind(f, &mark);
        retry = logical_retry(f, &listing, &snapshot, status);
    }
    logical_end_attempts(f, status);
    free(snapshot.session);
    if (status != DELTAFS_OK)
        status = logical_explain(f, e);
    if (status == DELTAFS_OK) {
        logical_remember_all(f, table_rows(&listing.table));
        status = logical_add_received(f, e);
    }
    if (status == DELTAFS_OK)
        logical_find_size(f);
    listing_fini(&listing);
    return status;
}

/* For a write-only file, rank 0 alone reads the index: it needs the size and the order. */
static int logical_refresh_first(deltafs_logical *f, struct listing *listing, struct snapshot *snapshot,
                                 struct error *e)
{
    const struct mark mark = logical_mark(f);
    struct rows rows = table_rows(&listing->table);
    int status = logical_reserve_known(f, rows, e);

    if (status == DELTAFS_OK)
        status = logical_read_rows(f, rows, 0, 1, &f->received, e);
    if (status == DELTAFS_OK)
        status = logical_settle(f, snapshot, e);
    if (status != DELTAFS_OK) {
        logical_rewind(f, &mark);
        return status;
    }
    logical_remember_all(f, rows);
    status = logical_add_received(f, e);
    listing->table.used = sizeof(struct table_head);
    return status;
}

/* Whether each rank reads a share; else rank 0 reads for all. */
static int is_read_in_shares(const deltafs_logical *f)
{
    return f->index != EXTENTS_BROADCAST;
}

/* Read this rank's share of the logs and exchange it. *e may be an error already, and may afterwards be an error of
 * this rank alone. */
static int logical_exchange(deltafs_logical *f, const struct bytes *table, struct bytes *found, struct bytes *rows,
                            struct bytes *all, struct snapshot *snapshot, struct error *e)
{
    uint32_t ranks = is_read_in_shares(f) ? f->group.ranks : f->group.rank == 0;
    uint64_t numbers = e->status == DELTAFS_OK ? table_head(table).numbers : 0;

    if (e->status == DELTAFS_OK)
        e->status = logical_read_share(f, table, f->group.rank, ranks, found, &f->unexchanged, e);
    int status = numbers > 0 ? collective_gather(&f->group, found->buffer.bytes, found->used, rows, e) : DELTAFS_OK;
    if (status != DELTAFS_OK)
        return status;
    if (e->status == DELTAFS_OK)
        e->status = logical_reserve_known(f, numbers > 0 ? rows_of(rows) : table_rows(table), e);
    status = collective_gather(&f->group, f->unexchanged.buffer.bytes, f->unexchanged.used, all, e);
    if (status == DELTAFS_OK && f->accepts_loss) {
        e->status = f->group.rank == 0 ? logical_settle(f, snapshot, e) : DELTAFS_OK;
        status = collective_agree(&f->group, e);
    }
    if (status != DELTAFS_OK)
        return status;
    logical_remember_all(f, numbers > 0 ? rows_of(rows) : table_rows(table));
    e->status = logical_add_batches(f, all, e);
    if (e->status == DELTAFS_OK)
        e->status = logical_add_received(f, e);
    return DELTAFS_OK;
}

static int logical_refresh_table(deltafs_logical *f, const struct bytes *table, struct snapshot *snapshot,
                                 struct error *e)
{
    struct bytes found = {{0}, 0}, rows = {{0}, 0}, all = {{.memory = &f->memory}, 0};

    if (e->status == DELTAFS_OK) {
        memcpy(f->container.uuid, table_head(table).uuid, sizeof f->container.uuid);
        uuid_to_text(f->container.uuid, f->container.uuid_text);
    }
    int status = logical_can_read(f) ? logical_exchange(f, table, &found, &rows, &all, snapshot, e) : DELTAFS_OK;
    buffer_fini(&found.buffer);
    buffer_fini(&rows.buffer);
    buffer_fini(&all.buffer);
    return status;
}

/* One attempt; *retry (an enum retry) gets whether another is worthwhile. *e as in logical_exchange. */
static int logical_refresh_once(deltafs_logical *f, struct snapshot *snapshot, uint64_t *retry, struct error *e)
{
    size_t few = is_read_in_shares(f) && logical_can_read(f) ? (size_t)FEW_SESSIONS * f->group.ranks : SIZE_MAX;
    enum retry own = e->status == DELTAFS_OK ? RETRY_NOT : RETRY_NEVER;
    const struct mark mark = logical_mark(f);
    struct listing listing = {0};
    struct error second;

    if (f->group.rank == 0 && e->status == DELTAFS_OK) {
        e->status = logical_make_table(f, 0, few, &listing, e);
        if (e->status == DELTAFS_OK && !logical_can_read(f))
            e->status = logical_refresh_first(f, &listing, snapshot, e);
    }
    int status = collective_broadcast(&f->group, &listing.table, e);
    if (status == DELTAFS_OK)
        status = logical_refresh_table(f, &listing.table, snapshot, e);
    if (status != DELTAFS_OK && logical_can_read(f))
        logical_rewind(f, &mark);
    *retry = f->group.rank == 0 && own == RETRY_NOT ? logical_retry(f, &listing, snapshot, status) : own;
    if (status != DELTAFS_OK && collective_max(&f->group, retry, 1, &second) != DELTAFS_OK)
        *retry = RETRY_NOT;
    listing_fini(&listing);
    return status;
}

int logical_refresh(deltafs_logical *f, struct error *e)
{
    struct snapshot snapshot = {0};
    uint64_t retry = RETRY_NOT;
    int status = DELTAFS_OK;

    if (logical_is_alone(f)) {
        status = logical_refresh_alone(f, e);
        f->order++;
        return status;
    }
    for (int i = 0; i == 0 || (retry != RETRY_NOT && retry != RETRY_NEVER && i < TRIES); i++) {
        f->accepts_loss = retry == RETRY_WITH_LOSS;
        scan_sessions_begin(&snapshot);
        if (i > 0)
            e->status = DELTAFS_OK;
        status = logical_refresh_once(f, &snapshot, &retry, e);
    }
    free(snapshot.session);
    if (status == DELTAFS_OK && e->status == DELTAFS_OK)
        logical_find_size(f);
    uint64_t most[3] = {f->order, f->size, e->status != DELTAFS_OK};
    struct error own = *e;
    if (status == DELTAFS_OK)
        status = collective_max(&f->group, most, 3, e);
    logical_end_attempts(f, status);
    if (status != DELTAFS_OK)
        return status;
    *e = own;
    f->order = most[0] + 1;
    f->size = most[1];
    /* After an error, exchange everything once more: logs are not read twice. */
    if (!most[2] && logical_can_read(f))
        f->unexchanged.used = 0;
    return most[2] ? collective_agree(&f->group, e) : DELTAFS_OK;
}

void logical_refresh_again(deltafs_logical *f)
{
    for (size_t i = 0; i < f->logs_count; i++) {
        f->logs[i]->from = 0;
        f->logs[i]->is_last = 0;
    }
    for (size_t i = 0; i < f->known_count; i++)
        f->known[i].is_closed = 0;
}
