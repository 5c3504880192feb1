/* Coming to know what stands where. Rank 0 looks which sessions there are, and, if they are few, which logs; each rank
 * reads a share of the extent logs, and all get what all have read (PLFS calls this the parallel index read; He et al.,
 * CLUSTER'13). Where ranks outnumber processors each collective call costs more than many small files: they are few,
 * and carry errors with what they are for. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "logical/logical.h"
#include "logical/format/flat.h"
#include "io/log.h"
#include "io/store_format.h"

#define TRIES        100 /* while others remove what is being read */
#define FEW_SESSIONS 1   /* for each rank: more are not looked at by rank 0 for all */

/* ---- Which logs there are ---- */

/* A session that is to be read; the numbers of its writers that have logs follow, unless all have. */
struct row {
    struct session session;
    uint32_t writers;
    int is_all;
};

/* What rank 0 tells the others. Behind it come rows, for all to share; or, where there are so many sessions that each
 * rank looks at a share of them for itself, their numbers. */
struct table_head {
    uint8_t uuid[16];
    uint64_t numbers;
};

/* Whether, and how, what failed is tried again. */
enum retry { RETRY_NOT, RETRY_ANEW, RETRY_FORGIVING, RETRY_NEVER };

/* What rank 0 has found. */
struct look {
    uint32_t *number; /* of all sessions */
    size_t count;
    struct bytes table;
};

static const struct session *logical_known(const deltafs_logical *f, uint32_t number)
{
    for (size_t i = 0; i < f->known_count; i++)
        if (f->known[i].number == number)
            return &f->known[i];
    return NULL;
}

/* Whether all that the session's closing line speaks of must be there. */
static int logical_is_whole(const deltafs_logical *f, const struct session *s)
{
    return s->is_closed && (s->is_synced || !f->is_forgiving);
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

/* A session that does not count, or has just been removed, has no row. */
static int logical_find_row(deltafs_logical *f, uint32_t number, struct bytes *rows, struct error *e)
{
    struct session s;
    int status = session_read(&f->container, &f->io, number, &s, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        return DELTAFS_OK;
    return status == DELTAFS_OK ? logical_put_row(f, &s, rows, e) : status;
}

/* Whether a session may have something new in it. */
static int logical_is_news(const deltafs_logical *f, uint32_t number, int with_own)
{
    const struct session *before = logical_known(f, number);
    int is_own = f->has_session && number == f->session.number;

    return (!before || !before->is_closed) && (!is_own || with_own);
}

/* All sessions with something new in them: rows, or numbers if there are more than `few`. */
static int logical_make_table(deltafs_logical *f, int with_own, size_t few, struct look *look, struct error *e)
{
    struct table_head head = {.numbers = 0};
    int status = session_numbers(&f->container, &f->io, &look->number, &look->count, e);

    for (size_t i = 0; i < look->count; i++)
        head.numbers += (uint64_t)logical_is_news(f, look->number[i], with_own);
    int is_few = head.numbers <= few;
    memcpy(head.uuid, f->container.uuid, sizeof head.uuid);
    head.numbers = is_few ? 0 : head.numbers;
    if (status == DELTAFS_OK)
        status = bytes_append(&look->table, &head, sizeof head, e);
    for (size_t i = 0; i < look->count && status == DELTAFS_OK; i++)
        if (logical_is_news(f, look->number[i], with_own))
            status = is_few ? logical_find_row(f, look->number[i], &look->table, e)
                            : bytes_append(&look->table, &look->number[i], sizeof *look->number, e);
    return status;
}

/* Whether a session that was there has gone: another process cut the file to nothing and removed it meanwhile. What
 * could not be read of it is no damage; a new look shows the truncation instead. */
static int look_is_outdated(deltafs_logical *f, const struct look *look)
{
    uint32_t *now = NULL;
    size_t n = 0, k = 0;
    struct error ignored;
    int status = session_numbers(&f->container, &f->io, &now, &n, &ignored);

    for (size_t i = 0; i < n && k < look->count; i++)
        k += now[i] == look->number[k];
    free(now);
    return status == DELTAFS_OK && k < look->count;
}

/* The sessions that counted when an attempt had ended. The first thing that a removal takes of a session is its text,
 * and the last its folder: one whose logs are about to go is not told by its folder from one that a crash has hurt. */
struct census {
    struct session *session;
    size_t count;
    int is_taken;
    int is_fresh; /* at this attempt, of which the next speaks */
    int has_lost; /* one that counted the last time does not any more; or there was no last time */
};

static int scan_sessions_take(deltafs_logical *f, struct census *c, struct error *e)
{
    struct census now = {.is_taken = 1, .is_fresh = 1, .has_lost = !c->is_taken};
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

/* An attempt begins: nobody has looked yet which sessions count at its end. */
static void scan_sessions_begin(struct census *c)
{
    c->is_fresh = c->has_lost = 0;
}

/* What is left is not taken for the file if a session went while it was read: that may be what was missing. */
static int logical_settle(deltafs_logical *f, struct census *census, struct error *e)
{
    int status = f->is_forgiving ? scan_sessions_take(f, census, e) : DELTAFS_OK;

    if (!f->is_forgiving || status != DELTAFS_OK)
        return status;
    return census->has_lost ? error_set(e, DELTAFS_ERR_DAMAGED,
                                        "%s: sessions are removed while it is read, again and again", f->container.path)
                            : DELTAFS_OK;
}

/* What to do about an attempt to read what `look` has found, which has ended with `status`. A session that was closed
 * and not synced is expected to be whole at first: what is not there may have been removed meanwhile. If all sessions
 * that counted before an attempt count after it too, a crash has taken it, and what is left is the file. Not found is
 * what has been removed, too: its number may have been claimed again since. */
static enum retry logical_retry(deltafs_logical *f, const struct look *look, struct census *census, int status)
{
    int is_missing = status == DELTAFS_ERR_DAMAGED || status == DELTAFS_ERR_NOT_FOUND;
    struct error ignored;

    if (status == DELTAFS_OK)
        return RETRY_NOT;
    if (is_missing && container_check(&f->container, &f->io, &ignored) == DELTAFS_ERR_NOT_FOUND)
        return RETRY_NOT;
    if (is_missing && !census->is_fresh && scan_sessions_take(f, census, &ignored) != DELTAFS_OK)
        return RETRY_NOT;
    if (look_is_outdated(f, look) || census->has_lost)
        return RETRY_ANEW;
    return status == DELTAFS_ERR_DAMAGED && !f->is_forgiving ? RETRY_FORGIVING : RETRY_NOT;
}

/* The attempts to read it have ended. */
static void logical_forgive(deltafs_logical *f, int status)
{
    f->is_cut |= f->is_forgiving && status == DELTAFS_OK;
    f->is_forgiving = 0;
}

/* What is read by its path may be another file's by now: then that is the error. Returns its status. */
static int logical_explain(deltafs_logical *f, struct error *e)
{
    struct error gone = {0};

    if ((e->status == DELTAFS_ERR_DAMAGED || e->status == DELTAFS_ERR_NOT_FOUND) &&
        container_check(&f->container, &f->io, &gone) == DELTAFS_ERR_NOT_FOUND)
        *e = gone;
    return e->status;
}

static void look_fini(struct look *look)
{
    free(look->number);
    buffer_fini(&look->table.buffer);
    *look = (struct look){0};
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

/* The rows of a table, from one place to another. */
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

/* The next row, and where its writers' numbers are. */
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

/* Room for these sessions, so that remembering them cannot fail. */
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

/* All of these sessions have been read. Not before: what is known to be closed is not read again. */
static void logical_remember_all(deltafs_logical *f, struct rows rows)
{
    const uint8_t *writers;
    struct row row;

    while (rows_next(&rows, &row, &writers))
        logical_remember(f, &row.session);
}

/* ---- Their readers ---- */

static size_t logical_source_place(const deltafs_logical *f, uint32_t session, uint32_t writer)
{
    size_t low = 0, high = f->source_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct source *s = f->source[middle];
        if (s->session < session || (s->session == session && s->writer < writer))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct source *logical_source(deltafs_logical *f, uint32_t session, uint32_t writer, struct error *e)
{
    size_t at = logical_source_place(f, session, writer);

    if (at < f->source_count && f->source[at]->session == session && f->source[at]->writer == writer)
        return f->source[at];
    struct source *s = calloc(1, sizeof *s);
    if (f->source_count == f->source_capacity && s) {
        size_t capacity = f->source_capacity ? 2 * f->source_capacity : 64;
        struct source **grown = realloc(f->source, capacity * sizeof *grown);
        if (grown) {
            f->source = grown;
            f->source_capacity = capacity;
        }
    }
    if (!s || f->source_count == f->source_capacity) {
        free(s);
        error_no_memory(e, sizeof *s, "a writer's logs");
        return NULL;
    }
    memmove(f->source + at + 1, f->source + at, (f->source_count - at) * sizeof *f->source);
    f->source_count++;
    *s = (struct source){.session = session, .writer = writer};
    f->source[at] = s;
    return s;
}

/* How much of others' logs had been read when an attempt began; their sources keep how far. */
struct mark {
    size_t heard, news;
};

static struct mark logical_mark(deltafs_logical *f)
{
    for (size_t i = 0; i < f->source_count; i++) {
        f->source[i]->began = f->source[i]->from;
        f->source[i]->was_last = f->source[i]->is_last;
    }
    return (struct mark){f->heard.used, f->news.used};
}

/* The attempt has failed: the next one reads it all again. */
static void logical_rewind(deltafs_logical *f, const struct mark *mark)
{
    f->heard.used = mark->heard;
    f->news.used = mark->news;
    for (size_t i = 0; i < f->source_count; i++) {
        f->source[i]->from = f->source[i]->began;
        f->source[i]->is_last = f->source[i]->was_last;
    }
}

/* A log is not there that should be. */
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
    struct source *source = logical_source(f, s->number, writer, e);
    char *path = source ? session_log_path(&f->container, s, writer, LOG_KIND_EXTENTS) : NULL;
    int is_whole = logical_is_whole(f, s);
    int status = path ? extent_log_read(&f->io, path, s->number, writer, f->container.uuid, is_whole, &source->from,
                                        &source->is_last, &out->buffer, &out->used, e)
                      : error_no_memory(e, strlen(f->container.path), "a writer's logs");

    /* A log that its writer is about to make, or a crash has taken. */
    if (status == DELTAFS_ERR_NOT_FOUND)
        status = is_whole ? logical_miss_log(f, s, path, e) : DELTAFS_OK;
    free(path);
    return status;
}

int logical_read_own(deltafs_logical *f, struct bytes *out, struct error *e)
{
    char *path = session_log_path(&f->container, &f->session, f->group.rank, LOG_KIND_EXTENTS);
    uint64_t from = 0;
    int is_last = 0;
    int status = path ? extent_log_read(&f->io, path, f->session.number, f->group.rank, f->container.uuid, 1, &from,
                                        &is_last, &out->buffer, &out->used, e)
                      : error_no_memory(e, strlen(f->container.path), "a path");

    free(path);
    return status == DELTAFS_OK ? status : logical_explain(f, e);
}

/* A closed session's index in one file; where that is damaged or has gone, what it was made of. */
static int logical_read_flat(deltafs_logical *f, const struct session *s, struct bytes *out, struct error *e)
{
    size_t before = out->used, n = 0;
    uint32_t *writer = NULL;
    struct error unsound; /* not the caller's, whose status counts even where this goes well */
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

/* The share of rank `rank` among `ranks` of what the rows speak of, behind `out`. */
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

/* The same of a table; of no ranks it is nothing. What it has numbers of is found first: `found` gets the rows. */
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

    /* What it wrote itself it has already. */
    if (f->has_session && x->session == f->session.number && x->writer == f->group.rank)
        return DELTAFS_OK;
    return extent_map_add(&f->map, x, e);
}

static int logical_add_batches(deltafs_logical *f, const struct bytes *b, struct error *e)
{
    size_t used;
    int is_last;
    int status = extent_batches_decode(b->buffer.bytes, b->used, log_seed(f->container.uuid), f->container.path, 0,
                                       logical_map, f, &used, &is_last, e);

    if (status == DELTAFS_OK && extent_map_order(&f->map) >= f->order)
        f->order = extent_map_order(&f->map) + 1;
    return status;
}

/* Whatever else goes wrong: what was read of a log is not read again. */
static int logical_add_received(deltafs_logical *f, struct error *e)
{
    int status = logical_add_batches(f, &f->heard, e);

    if (status == DELTAFS_OK) {
        buffer_fini(&f->heard.buffer);
        f->heard = (struct bytes){{.memory = &f->memory}, 0};
    }
    return status;
}

static void logical_find_size(deltafs_logical *f)
{
    uint64_t size = extent_map_size(&f->map);

    if (logical_can_read(f) || size > f->size)
        f->size = size;
}

int logical_refresh_alone(deltafs_logical *f, struct error *e)
{
    struct look look = {0};
    struct census census = {0};
    enum retry retry = RETRY_NOT;
    int status;

    for (int i = 0; i == 0 || (retry != RETRY_NOT && i < TRIES); i++) {
        const struct mark mark = logical_mark(f);
        f->is_forgiving = retry == RETRY_FORGIVING;
        scan_sessions_begin(&census);
        look_fini(&look);
        status = logical_make_table(f, !logical_is_alone(f), SIZE_MAX, &look, e);
        if (status == DELTAFS_OK)
            status = logical_reserve_known(f, table_rows(&look.table), e);
        if (status == DELTAFS_OK)
            status = logical_read_rows(f, table_rows(&look.table), 0, 1, &f->heard, e);
        if (status == DELTAFS_OK)
            status = logical_settle(f, &census, e);
        if (status != DELTAFS_OK)
            logical_rewind(f, &mark);
        retry = logical_retry(f, &look, &census, status);
    }
    logical_forgive(f, status);
    free(census.session);
    if (status != DELTAFS_OK)
        status = logical_explain(f, e);
    if (status == DELTAFS_OK) {
        logical_remember_all(f, table_rows(&look.table));
        status = logical_add_received(f, e);
    }
    if (status == DELTAFS_OK)
        logical_find_size(f);
    look_fini(&look);
    return status;
}

/* Rank 0 alone wants to know what is in a file that is open for writing only: where it ends, and what comes first. */
static int logical_refresh_first(deltafs_logical *f, struct look *look, struct census *census, struct error *e)
{
    const struct mark mark = logical_mark(f);
    struct rows rows = table_rows(&look->table);
    int status = logical_reserve_known(f, rows, e);

    if (status == DELTAFS_OK)
        status = logical_read_rows(f, rows, 0, 1, &f->heard, e);
    if (status == DELTAFS_OK)
        status = logical_settle(f, census, e);
    if (status != DELTAFS_OK) {
        logical_rewind(f, &mark);
        return status;
    }
    logical_remember_all(f, rows);
    status = logical_add_received(f, e);
    look->table.used = sizeof(struct table_head);
    return status;
}

/* Whether each rank reads a share; else one reads for all, or each for itself. */
static int is_read_in_shares(const deltafs_logical *f)
{
    return f->index == EXTENTS_PARALLEL || f->index == EXTENTS_FLATTEN;
}

/* Each reads a share of the logs, or what its way of learning has it read; and what the others have read of them all
 * get. *e may be an error already, and may be one of this rank's alone afterwards. */
static int logical_exchange(deltafs_logical *f, const struct bytes *table, struct bytes *found, struct bytes *rows,
                            struct bytes *all, struct census *census, struct error *e)
{
    uint32_t ranks = is_read_in_shares(f) ? f->group.ranks : 1, rank = ranks > 1 ? f->group.rank : 0;
    uint64_t numbers = e->status == DELTAFS_OK ? table_head(table).numbers : 0;
    struct bytes *to = f->index == EXTENTS_EACH ? &f->heard : &f->news;

    if (f->index == EXTENTS_BROADCAST && f->group.rank != 0)
        ranks = 0;
    if (e->status == DELTAFS_OK)
        e->status = logical_read_share(f, table, rank, ranks, found, to, e);
    int status = numbers > 0 ? f->group.gather(f->group.ctx, found->buffer.bytes, found->used, rows, e) : DELTAFS_OK;
    if (status != DELTAFS_OK)
        return status;
    if (e->status == DELTAFS_OK)
        e->status = logical_reserve_known(f, numbers > 0 ? rows_of(rows) : table_rows(table), e);
    status = f->group.gather(f->group.ctx, f->news.buffer.bytes, f->news.used, all, e);
    if (status == DELTAFS_OK && f->is_forgiving) {
        e->status = f->group.rank == 0 ? logical_settle(f, census, e) : DELTAFS_OK;
        status = logical_agree(f, e);
    }
    if (status != DELTAFS_OK)
        return status;
    logical_remember_all(f, numbers > 0 ? rows_of(rows) : table_rows(table));
    e->status = logical_add_batches(f, all, e);
    if (e->status == DELTAFS_OK)
        e->status = logical_add_received(f, e);
    return DELTAFS_OK;
}

static int logical_refresh_table(deltafs_logical *f, const struct bytes *table, struct census *census, struct error *e)
{
    struct bytes found = {{0}, 0}, rows = {{0}, 0}, all = {{.memory = &f->memory}, 0};

    if (e->status == DELTAFS_OK) {
        memcpy(f->container.uuid, table_head(table).uuid, sizeof f->container.uuid);
        manifest_uuid_text(f->container.uuid, f->container.uuid_text);
    }
    int status = logical_can_read(f) ? logical_exchange(f, table, &found, &rows, &all, census, e) : DELTAFS_OK;
    buffer_fini(&found.buffer);
    buffer_fini(&rows.buffer);
    buffer_fini(&all.buffer);
    return status;
}

/* One attempt, and in *retry, an enum retry, whether it is worth another. *e as logical_exchange has it. */
static int logical_refresh_once(deltafs_logical *f, struct census *census, uint64_t *retry, struct error *e)
{
    size_t few = is_read_in_shares(f) && logical_can_read(f) ? (size_t)FEW_SESSIONS * f->group.ranks : SIZE_MAX;
    enum retry own = e->status == DELTAFS_OK ? RETRY_NOT : RETRY_NEVER;
    const struct mark mark = logical_mark(f);
    struct look look = {0};
    struct error second;

    if (f->group.rank == 0 && e->status == DELTAFS_OK) {
        e->status = logical_make_table(f, 0, few, &look, e);
        if (e->status == DELTAFS_OK && !logical_can_read(f))
            e->status = logical_refresh_first(f, &look, census, e);
    }
    int status = f->group.tell(f->group.ctx, &look.table, e);
    if (status == DELTAFS_OK)
        status = logical_refresh_table(f, &look.table, census, e);
    if (status != DELTAFS_OK && logical_can_read(f))
        logical_rewind(f, &mark);
    *retry = f->group.rank == 0 && own == RETRY_NOT ? logical_retry(f, &look, census, status) : own;
    if (status != DELTAFS_OK && f->group.max(f->group.ctx, retry, 1, &second) != DELTAFS_OK)
        *retry = RETRY_NOT;
    look_fini(&look);
    return status;
}

int logical_refresh(deltafs_logical *f, struct error *e)
{
    struct census census = {0};
    uint64_t retry = RETRY_NOT;
    int status = DELTAFS_OK;

    if (logical_is_alone(f)) {
        status = logical_refresh_alone(f, e);
        f->order++;
        return status;
    }
    for (int i = 0; i == 0 || (retry != RETRY_NOT && retry != RETRY_NEVER && i < TRIES); i++) {
        f->is_forgiving = retry == RETRY_FORGIVING;
        scan_sessions_begin(&census);
        if (i > 0)
            e->status = DELTAFS_OK;
        status = logical_refresh_once(f, &census, &retry, e);
    }
    free(census.session);
    if (status == DELTAFS_OK && e->status == DELTAFS_OK)
        logical_find_size(f);
    uint64_t most[3] = {f->order, f->size, e->status != DELTAFS_OK};
    struct error own = *e;
    if (status == DELTAFS_OK)
        status = f->group.max(f->group.ctx, most, 3, e);
    logical_forgive(f, status);
    if (status != DELTAFS_OK)
        return status;
    *e = own;
    f->order = most[0] + 1;
    f->size = most[1];
    /* Else all is told once more: what one of them could not take in, nobody reads again. */
    if (!most[2] && logical_can_read(f))
        f->news.used = 0;
    return most[2] ? logical_agree(f, e) : DELTAFS_OK;
}

/* What the group's ranks have published, and not told each other: from all to all. */
static int logical_broadcast(deltafs_logical *f, struct error *e)
{
    struct bytes all = {{0}, 0};
    int status = logical_gather(f, f->news.buffer.bytes, f->news.used, &all, e);

    if (status != DELTAFS_OK)
        return status;
    e->status = logical_add_batches(f, &all, e);
    buffer_fini(&all.buffer);
    status = logical_agree(f, e);
    if (status == DELTAFS_OK)
        f->news.used = 0;
    return status;
}

/* Of a file that is open for writing only nobody is told anything; but what is written from now on comes behind what
 * any of them has written. */
static int logical_share_order(deltafs_logical *f, struct error *e)
{
    struct error own = {.status = DELTAFS_OK};
    uint64_t most[2] = {f->order, logical_seal(f, 0, &own) != DELTAFS_OK};
    int status = f->group.max(f->group.ctx, most, 2, e);

    if (status != DELTAFS_OK)
        return status;
    if (most[1]) {
        *e = own;
        return logical_agree(f, e);
    }
    f->order = most[0] + 1;
    return DELTAFS_OK;
}

int logical_share(deltafs_logical *f, struct error *e)
{
    if (!logical_can_read(f))
        return logical_share_order(f, e);
    int has_news = f->list.count > 0 || f->unpublished.used > 0 || f->news.used > 0;
    uint64_t most[2] = {f->order, (uint64_t)has_news};
    int status = f->group.max(f->group.ctx, most, 2, e);

    if (status != DELTAFS_OK || !most[1])
        return status;
    e->status = logical_publish(f, 0, 0, e);
    status = logical_agree(f, e);
    if (status == DELTAFS_OK)
        status = logical_broadcast(f, e);
    if (status != DELTAFS_OK)
        return status;
    f->order = most[0] + 1;
    logical_find_size(f);
    return DELTAFS_OK;
}

void logical_refresh_again(deltafs_logical *f)
{
    for (size_t i = 0; i < f->source_count; i++) {
        f->source[i]->from = 0;
        f->source[i]->is_last = 0;
    }
    for (size_t i = 0; i < f->known_count; i++)
        f->known[i].is_closed = 0;
}

/* What removals that were cut short have left below the own session. */
static void logical_recreate_session_remains(deltafs_logical *f)
{
    uint32_t *number = NULL;
    size_t n = 0;
    struct error ignored;

    session_numbers(&f->container, &f->io, &number, &n, &ignored);
    for (size_t i = 0; i < n && number[i] < f->session.number; i++)
        session_remove_remains(&f->container, &f->io, number[i], f->sync != SYNC_NONE, &ignored);
    free(number);
}

void logical_recreate_session(deltafs_logical *f)
{
    struct error ignored;
    size_t kept = 0;

    /* Whoever has the file open for reading still has its old bytes as far as its logs are open, as with any file. What
     * is numbered above the own session stays until one above it cuts the file: that one stays then, and so a number is
     * never below one that was there, of which others may know that it is closed, or read as far as its logs went. */
    for (size_t i = 0; i < f->known_count; i++) {
        if (!f->known[i].is_closed || f->known[i].number > f->session.number)
            f->known[kept++] = f->known[i];
        else if (f->group.rank == 0)
            session_remove(&f->container, &f->io, &f->known[i], f->sync != SYNC_NONE, &ignored);
    }
    f->known_count = kept;
    if (f->group.rank == 0)
        logical_recreate_session_remains(f);
}
