/* Builds the merged extent index. Rank 0 lists the sessions and, if they are few, their logs. Each rank reads a share
 * of the extent logs, and all exchange what they have read (the parallel index read of PLFS; He et al., CLUSTER'13).
 * Where ranks outnumber processors, a collective call costs more than many small files, so the calls are few and carry
 * errors along with their data.
 *
 * An attempt fails if another process truncates the file to zero and removes sessions meanwhile, or if a crash has lost
 * a part of a session that was closed without a sync. Rank 0 tells them apart: a removal deletes SESSION first. After a
 * removal the attempt is repeated; after a loss it is repeated once more, and accepts that logs are incomplete. */
#include <stdlib.h>
#include <string.h>
#include "io/log.h"
#include "logical/format/logical_format.h"
#include "logical/logical.h"

#define TRIES        100 /* while other processes remove sessions */
#define FEW_SESSIONS 1   /* for each rank; if there are more, rank 0 does not inspect them for all */

/* ---- Which logs there are ---- */

/* A session to be read. A table of them, which rank 0 broadcasts, begins with the file's UUID. */
struct row {
    struct session session;
    uint32_t logs;  /* writers that have logs; their numbers follow, unless all have */
    int is_unknown; /* only the session's number is known: one rank inspects it, and reads all its logs */
};

/* The current row, where its writers' numbers are, and where the next row is. */
struct rows {
    struct row row;
    const uint8_t *writers, *next, *end;
};

static struct rows rows_begin(const struct bytes *b, size_t from)
{
    from = from < b->used ? from : b->used;
    return (struct rows){.next = b->buffer.bytes + from, .end = b->buffer.bytes + b->used};
}

static struct rows table_begin(const struct bytes *table)
{
    return rows_begin(table, FORMAT_UUID_SIZE);
}

static int rows_next(struct rows *r)
{
    if (r->next == r->end)
        return 0;
    memcpy(&r->row, r->next, sizeof r->row);
    r->writers = r->next + sizeof r->row;
    r->next = r->writers + (r->row.logs < r->row.session.writers ? r->row.logs * sizeof(uint32_t) : 0);
    return 1;
}

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

/* Append the row of a session; none if it is not valid, or has just been removed. */
static int logical_put_row(deltafs_logical *f, uint32_t number, struct bytes *rows, struct error *e)
{
    struct row row = {0};
    struct session *s = &row.session;
    uint32_t *writer = NULL;
    size_t n = 0;
    int status = session_read(&f->container, &f->io, number, s, e), added;

    if (status == DELTAFS_ERR_NOT_FOUND)
        return session_check_missing(&f->container, &f->io, number, &f->is_cut, e);
    if (status != DELTAFS_OK)
        return status;
    if (!s->has_index && logical_is_whole(f, s) && s->logs == s->writers)
        n = s->writers;
    else if (!s->has_index)
        status = logical_logs(f, s, &writer, &n, e);
    row.logs = (uint32_t)n;
    if (!s->is_closed)
        s->logs = row.logs;
    /* Also after an error: table_is_outdated needs the row. */
    added = bytes_append(rows, &row, sizeof row, error_after(status, e));
    if (added == DELTAFS_OK && n < s->writers)
        added = bytes_append(rows, writer, n * sizeof *writer, error_after(status, e));
    free(writer);
    return error_first(status, added);
}

/* List all sessions that may contain something new; `with_own`: also this handle's. If they are more than `few`, only
 * their numbers. At first, those that are recorded must be there. */
static int logical_make_table(deltafs_logical *f, int with_own, size_t few, struct bytes *table, struct error *e)
{
    uint32_t *number = NULL;
    size_t n = 0, kept = 0;
    int status = session_numbers(&f->container, &f->io, &number, &n, e);

    for (size_t i = 0; i < f->container.recorded_count && status == DELTAFS_OK; i++)
        if (!session_is_listed(number, n, f->container.recorded[i].number))
            status = session_check_missing(&f->container, &f->io, f->container.recorded[i].number, &f->is_cut, e);
    if (status == DELTAFS_OK)
        container_forget(&f->container);
    for (size_t i = 0; i < n; i++) {
        const struct session *before = logical_known(f, number[i]);
        int is_own = f->has_session && number[i] == f->session.number;
        if ((!before || !before->is_closed) && (!is_own || with_own))
            number[kept++] = number[i];
    }
    table->used = 0;
    if (status == DELTAFS_OK)
        status = bytes_append(table, f->container.uuid, sizeof f->container.uuid, e);
    for (size_t i = 0; i < kept && status == DELTAFS_OK; i++) {
        const struct row row = {.session.number = number[i], .is_unknown = 1};
        status = kept <= few ? logical_put_row(f, number[i], table, e) : bytes_append(table, &row, sizeof row, e);
    }
    free(number);
    return status;
}

/* Whether a session of the table has been removed since, or may have been; its number may be in use again. */
static int table_is_outdated(deltafs_logical *f, const struct bytes *table)
{
    struct session now;
    struct rows r = table_begin(table);
    int is_outdated = 0;

    while (!is_outdated && rows_next(&r)) {
        int status = session_read(&f->container, &f->io, r.row.session.number, &now, error_ignored());
        is_outdated = r.row.is_unknown || status != DELTAFS_OK || now.order != r.row.session.order;
    }
    return is_outdated;
}

/* Remember the sessions of the rows after all of them have been read: a session known to be closed is not read again.
 * The second function cannot fail after the first. */
static int logical_reserve_known(deltafs_logical *f, struct rows r, struct error *e)
{
    size_t n = f->known_count;

    while (rows_next(&r))
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

static void logical_remember(deltafs_logical *f, struct rows r)
{
    while (rows_next(&r)) {
        const struct session *s = &r.row.session;
        struct session *known = (struct session *)(uintptr_t)logical_known(f, s->number);
        if (r.row.is_unknown)
            continue;
        if (!known)
            known = &f->known[f->known_count++];
        *known = *s;
        if (s->order >= f->order)
            f->order = s->order + 1;
    }
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
    int status = extent_batches_decode(b->buffer.bytes, b->used, log_seed(f->container.uuid), f->container.path, 0,
                                       logical_map, f, NULL, NULL, e);

    if (status == DELTAFS_OK && f->map.order >= f->order)
        f->order = f->map.order + 1;
    return status;
}

static int logical_take_batches(void *f, const void *batches, size_t n, struct error *e)
{
    const struct bytes b = {{.bytes = (void *)(uintptr_t)batches}, n};

    return logical_add_batches(f, &b, e);
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

/* Logs are read from their beginnings again. Adding an extent to the map twice is harmless. */
static void logical_forget_logs(deltafs_logical *f)
{
    for (size_t i = 0; i < f->logs_count; i++) {
        f->logs[i]->from = 0;
        f->logs[i]->is_last = 0;
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

/* Append what the log has that was not read yet to the batches that are not in the map yet. Nobody else needs what a
 * process reads for itself: it goes into the map piece by piece, so that the memory for it depends on the map, not on
 * how much others have written. */
static int logical_read_log(deltafs_logical *f, const struct session *s, uint32_t writer, struct error *e)
{
    struct writer_logs *logs = logical_writer_logs(f, s->number, writer, e);
    int is_whole = logical_is_whole(f, s);
    char path[PATH_ROOM];

    if (!logs)
        return e->status;
    session_log_path(&f->container, s, writer, LOG_KIND_EXTENTS, path);
    const struct extent_sink sink = {logical_take_batches, f};
    struct buffer pieces = {.memory = &f->memory};
    int status = f->reads_alone ? extent_log_pass(&f->io, path, s->number, writer, f->container.uuid, is_whole,
                                                  &logs->from, &logs->is_last, &pieces, &sink, e)
                                : extent_log_read(&f->io, path, s->number, writer, f->container.uuid, is_whole,
                                                  &logs->from, &logs->is_last, &f->batches.buffer, &f->batches.used, e);
    buffer_fini(&pieces);
    /* The writer has not created the log yet, or a crash has lost it. */
    if (status == DELTAFS_ERR_NOT_FOUND)
        status = is_whole ? logical_miss_log(f, s, path, e) : DELTAFS_OK;
    return status;
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

/* Read a closed session's index from one file; if that cannot be read, from the logs, which have the same. */
static int logical_read_flat(deltafs_logical *f, const struct session *s, struct error *e)
{
    size_t n = 0;
    uint32_t *writer = NULL;
    struct error own; /* apart from *e, whose status must not change on success */
    char path[PATH_ROOM];
    int status = extent_index_read(&f->io, session_path(&f->container, s->number, SESSION_INDEX_NAME, path), s->number,
                                   f->container.uuid, &f->batches.buffer, &f->batches.used, &own);

    if (status == DELTAFS_ERR_MEMORY)
        *e = own;
    if (status == DELTAFS_OK || status == DELTAFS_ERR_MEMORY)
        return status;
    status = logical_logs(f, s, &writer, &n, e);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        status = logical_read_log(f, s, writer[i], e);
    free(writer);
    return status;
}

static int is_share(uint64_t number, uint32_t rank, uint32_t ranks)
{
    return ranks > 0 && number % ranks == rank;
}

/* Read the share of rank `rank` among `ranks` of the rows' logs; nothing if `ranks` is 0. Sessions of which only the
 * number is known are inspected first: `found` gets their rows. */
static int logical_read_rows(deltafs_logical *f, struct rows r, uint32_t rank, uint32_t ranks, struct bytes *found,
                             struct error *e)
{
    int status = DELTAFS_OK;

    for (uint64_t numbers = 0; status == DELTAFS_OK && rows_next(&r);) {
        const struct session *s = &r.row.session;
        size_t before = found->used;
        if (r.row.is_unknown && is_share(numbers++, rank, ranks)) {
            status = logical_put_row(f, s->number, found, e);
            if (status == DELTAFS_OK)
                status = logical_read_rows(f, rows_begin(found, before), 0, 1, found, e);
        }
        if (s->has_index && is_share(s->number, rank, ranks))
            status = logical_read_flat(f, s, e);
        for (uint32_t i = 0; i < r.row.logs && status == DELTAFS_OK; i++) {
            uint32_t writer = i;
            if (r.row.logs < s->writers)
                memcpy(&writer, r.writers + i * sizeof writer, sizeof writer);
            int is_self = f->has_session && s->number == f->session.number && writer == f->group.rank;
            if (!is_self && is_share(s->number + (uint64_t)writer, rank, ranks))
                status = logical_read_log(f, s, writer, e);
        }
    }
    return status;
}

/* ---- The size ---- */

void logical_find_size(deltafs_logical *f)
{
    uint64_t size = extent_map_size(&f->map);

    if (logical_can_read(f) || size > f->size)
        f->size = size;
}

/* ---- Attempts ---- */

/* Read this rank's share and exchange it: `all` gets the batches of all ranks, if there are several. */
static int refresh_read(deltafs_logical *f, const struct collective *g, struct bytes *table, struct bytes *all,
                        struct error *e)
{
    uint32_t ranks = f->index != EXTENTS_BROADCAST ? g->ranks : g->rank == 0; /* else rank 0 reads for all */
    struct bytes found = {{0}, 0};
    struct rows first = table_begin(table);
    int status = DELTAFS_OK;

    if (e->status == DELTAFS_OK)
        e->status = logical_read_rows(f, first, g->rank, ranks, &found, e);
    /* Exchange the rows of sessions that only one rank has inspected. A rank with an error makes the next call, which
     * matches. The ranks' errors become those of all. */
    if (e->status == DELTAFS_OK && rows_next(&first) && first.row.is_unknown)
        status = collective_gather(g, found.buffer.bytes, found.used, table, e);
    buffer_fini(&found.buffer);
    if (status == DELTAFS_OK && e->status == DELTAFS_OK)
        e->status = logical_reserve_known(f, table_begin(table), e);
    if (status == DELTAFS_OK)
        status = g->ranks > 1 ? collective_gather(g, f->batches.buffer.bytes, f->batches.used, all, e) : e->status;
    if (status != DELTAFS_OK || !f->accepts_loss)
        return status;
    /* What is missing may be what others have removed meanwhile. */
    if (g->rank == 0 && table_is_outdated(f, table))
        error_set(e, DELTAFS_ERR_BUSY, "%s: other processes keep removing its sessions while it is read",
                  f->container.path);
    return collective_agree(g, e);
}

/* One attempt. If this fails, the status is that of all ranks; otherwise *e may be an error of this rank alone. */
static int refresh_try(deltafs_logical *f, const struct collective *g, int with_own, size_t few, struct bytes *table,
                       struct error *e)
{
    struct bytes all = {{.memory = &f->memory}, 0};
    size_t before = f->batches.used;

    if (g->rank == 0 && e->status == DELTAFS_OK)
        e->status = logical_make_table(f, with_own, few, table, e);
    int status = collective_broadcast(g, table, e);
    if (status == DELTAFS_OK && e->status == DELTAFS_OK) {
        memcpy(f->container.uuid, table->buffer.bytes, sizeof f->container.uuid);
        uuid_to_text(f->container.uuid, f->container.uuid_text);
    }
    if (status == DELTAFS_OK)
        status = refresh_read(f, g, table, &all, e);
    if (status == DELTAFS_OK) {
        logical_remember(f, table_begin(table));
        e->status = logical_add_batches(f, g->ranks > 1 ? &all : &f->batches, e);
    } else {
        f->batches.used = before;
        logical_forget_logs(f);
    }
    buffer_fini(&all.buffer);
    return status;
}

/* How an attempt that failed is repeated. */
enum retry { RETRY_NOT, RETRY_AGAIN, RETRY_WITH_LOSS };

/* DELTAFS_ERR_NOT_FOUND means a removal: the session's number may be in use again. */
static enum retry refresh_retry(deltafs_logical *f, const struct bytes *table, int status)
{
    if (status == DELTAFS_ERR_BUSY)
        return RETRY_AGAIN;
    if ((status != DELTAFS_ERR_DAMAGED && status != DELTAFS_ERR_NOT_FOUND) ||
        container_check(&f->container, &f->io, error_ignored()) == DELTAFS_ERR_NOT_FOUND)
        return RETRY_NOT;
    if (status == DELTAFS_ERR_NOT_FOUND || table_is_outdated(f, table))
        return RETRY_AGAIN;
    return f->accepts_loss ? RETRY_NOT : RETRY_WITH_LOSS;
}

/* Refresh the map together with the ranks of `g`; *e may be an error of rank 0. */
static int refresh_group(deltafs_logical *f, const struct collective *g, int with_own, struct error *e)
{
    size_t few = f->index != EXTENTS_BROADCAST && g->ranks > 1 ? (size_t)FEW_SESSIONS * g->ranks : SIZE_MAX;
    int can_retry = e->status == DELTAFS_OK, status = DELTAFS_OK;
    uint64_t retry = RETRY_AGAIN;
    struct bytes table = {{0}, 0};

    for (int i = 0; retry != RETRY_NOT && i < TRIES; i++) {
        f->accepts_loss = retry == RETRY_WITH_LOSS;
        f->reads_alone = g->ranks <= 1;
        if (i > 0)
            e->status = DELTAFS_OK;
        status = refresh_try(f, g, with_own, i == 0 ? few : SIZE_MAX, &table, e);
        retry = RETRY_NOT;
        if (status != DELTAFS_OK && g->rank == 0 && can_retry)
            retry = refresh_retry(f, &table, status);
        if (status != DELTAFS_OK && collective_max(g, &retry, 1, error_ignored()) != DELTAFS_OK)
            retry = RETRY_NOT;
    }
    buffer_fini(&table.buffer);
    f->is_cut |= f->accepts_loss && status == DELTAFS_OK;
    f->accepts_loss = 0;
    if (status == DELTAFS_OK)
        return DELTAFS_OK;
    if (g->rank == 0 && can_retry)
        logical_explain(f, e);
    return collective_agree(g, e);
}

static int refresh_alone(deltafs_logical *f, int with_own, struct error *e)
{
    const struct collective alone = COLLECTIVE_ALONE;
    int status = refresh_group(f, &alone, with_own, e);

    if (status == DELTAFS_OK)
        status = e->status;
    if (status != DELTAFS_OK)
        return status;
    buffer_fini(&f->batches.buffer);
    f->batches = (struct bytes){{.memory = &f->memory}, 0};
    logical_find_size(f);
    return DELTAFS_OK;
}

int logical_refresh_alone(deltafs_logical *f, struct error *e)
{
    e->status = DELTAFS_OK;
    return refresh_alone(f, !logical_is_alone(f), e);
}

/* For a write-only file, rank 0 alone reads the index, for the size and the order; the other ranks get the UUID. */
static int refresh_first(deltafs_logical *f, struct error *e)
{
    struct bytes uuid = {{0}, 0};

    if (f->group.rank == 0 && e->status == DELTAFS_OK)
        e->status = refresh_alone(f, 0, e);
    if (f->group.rank == 0 && e->status == DELTAFS_OK)
        e->status = bytes_append(&uuid, f->container.uuid, sizeof f->container.uuid, e);
    int status = collective_broadcast(&f->group, &uuid, e);
    if (status == DELTAFS_OK && uuid.used == sizeof f->container.uuid) {
        memcpy(f->container.uuid, uuid.buffer.bytes, sizeof f->container.uuid);
        uuid_to_text(f->container.uuid, f->container.uuid_text);
    }
    buffer_fini(&uuid.buffer);
    return status;
}

int logical_refresh(deltafs_logical *f, struct error *e)
{
    int status;

    if (logical_is_alone(f)) {
        status = logical_refresh_alone(f, e);
        f->order++;
        return status;
    }
    status = logical_can_read(f) ? refresh_group(f, &f->group, 0, e) : refresh_first(f, e);
    if (status != DELTAFS_OK)
        return status;
    if (e->status == DELTAFS_OK)
        logical_find_size(f);
    struct error own = *e;
    uint64_t most[4] = {f->order, f->size, own.status != DELTAFS_OK, f->is_cut != 0};
    status = collective_max(&f->group, most, 4, e);
    if (status != DELTAFS_OK)
        return status;
    *e = own;
    f->order = most[0] + 1;
    f->size = most[1];
    f->is_cut = most[3] != 0;
    /* After an error, exchange everything once more: logs are not read twice. */
    if (!most[2] && logical_can_read(f))
        f->batches.used = 0;
    return most[2] ? collective_agree(&f->group, e) : DELTAFS_OK;
}

void logical_refresh_again(deltafs_logical *f)
{
    logical_forget_logs(f);
    for (size_t i = 0; i < f->known_count; i++)
        f->known[i].is_closed = 0;
}
