/* Coming to know what stands where. Rank 0 looks which sessions and logs there are; each rank reads a share of the
 * extent logs, and all get what all have read (PLFS calls this the parallel index read; He et al., CLUSTER'13). */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/logical.h"
#include "store/flat.h"
#include "store/log.h"
#include "store/store_format.h"

#define TRIES 100 /* while others remove what is being read */

/* ---- Which logs there are ---- */

/* A session in the table of those to be read; its writers' numbers follow, of those that have logs. */
struct row {
    struct session session;
    uint64_t writers;
};

/* Whether, and how, what failed is tried again. */
enum retry { RETRY_NOT, RETRY_ANEW, RETRY_FORGIVING };

/* What rank 0 has found. */
struct look {
    struct session *session; /* all of them */
    size_t sessions;
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

static int logical_put_row(deltafs_logical *f, const struct session *s, struct bytes *table, struct error *e)
{
    struct row row = {.session = *s};
    uint32_t *writer = NULL;
    size_t n = 0;
    int is_flat = s->is_closed && s->has_index;
    int status = is_flat ? DELTAFS_OK : logical_logs(f, s, &writer, &n, e);

    row.writers = n;
    if (status == DELTAFS_OK)
        status = bytes_append(table, &row, sizeof row, e);
    if (status == DELTAFS_OK)
        status = bytes_append(table, writer, n * sizeof *writer, e);
    free(writer);
    return status;
}

/* All sessions with something new in them. */
static int logical_make_table(deltafs_logical *f, int with_own, struct look *look, struct error *e)
{
    int status = session_list(&f->container, &f->io, &look->session, &look->sessions, e);

    for (size_t i = 0; i < look->sessions && status == DELTAFS_OK; i++) {
        const struct session *s = &look->session[i], *before = logical_known(f, s->number);
        int is_own = f->has_session && s->number == f->session.number;
        if ((!before || !before->is_closed) && (!is_own || with_own))
            status = logical_put_row(f, s, &look->table, e);
    }
    return status;
}

/* Whether a session that was there has gone: another process cut the file to nothing and removed it meanwhile. What
 * could not be read of it is no damage; a new look shows the truncation instead. */
static int look_is_outdated(deltafs_logical *f, const struct look *look)
{
    struct session *now = NULL;
    size_t n = 0, k = 0;
    struct error ignored;
    int status = session_list(&f->container, &f->io, &now, &n, &ignored);

    for (size_t i = 0; i < n && k < look->sessions; i++)
        k += now[i].number == look->session[k].number;
    free(now);
    return status == DELTAFS_OK && k < look->sessions;
}

/* What to do about an attempt to read what `look` has found, which has ended with `status`. A session that was closed
 * and not synced is expected to be whole at first: what is not there may have been removed meanwhile. If it was not, a
 * crash has taken it, and what is left is the file. */
static enum retry logical_retry(deltafs_logical *f, const struct look *look, int status)
{
    if (status == DELTAFS_OK)
        return RETRY_NOT;
    if (look_is_outdated(f, look))
        return RETRY_ANEW;
    for (size_t i = 0; i < look->sessions && status == DELTAFS_ERR_DAMAGED && !f->is_forgiving; i++)
        if (look->session[i].is_closed && !look->session[i].is_synced)
            return RETRY_FORGIVING;
    return RETRY_NOT;
}

/* What is left is taken for the file, or not: that ends with the attempts to read it. */
static void logical_forgive(deltafs_logical *f, int status)
{
    f->is_cut |= f->is_forgiving && status == DELTAFS_OK;
    f->is_forgiving = 0;
}

static void look_fini(struct look *look)
{
    free(look->session);
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

/* The next row of the table. Its writers' numbers begin at the returned place. */
static size_t table_row(const struct bytes *table, size_t at, struct row *row)
{
    memcpy(row, table->buffer.bytes + at, sizeof *row);
    if (!row->session.is_closed)
        row->session.logs = (uint32_t)row->writers;
    return at + sizeof *row;
}

/* Room for all sessions of the table, so that remembering them cannot fail. */
static int logical_reserve_known(deltafs_logical *f, const struct bytes *table, struct error *e)
{
    size_t n = f->known_count;
    struct row row;

    for (size_t at = 0; at < table->used; n++)
        at = table_row(table, at, &row) + row.writers * sizeof(uint32_t);
    if (n <= f->known_capacity)
        return DELTAFS_OK;
    struct session *grown = realloc(f->known, n * sizeof *grown);
    if (!grown)
        return error_no_memory(e, n * sizeof *grown, "a file's sessions");
    f->known = grown;
    f->known_capacity = n;
    return DELTAFS_OK;
}

/* All that the table speaks of has been read. Not before: what is known to be closed is not read again. */
static void logical_remember_all(deltafs_logical *f, const struct bytes *table)
{
    struct row row;

    for (size_t at = 0; at < table->used; at += row.writers * sizeof(uint32_t)) {
        at = table_row(table, at, &row);
        logical_remember(f, &row.session);
    }
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

static int logical_read_log(deltafs_logical *f, const struct session *s, uint32_t writer, struct bytes *out,
                            struct error *e)
{
    struct source *source = logical_source(f, s->number, writer, e);
    char *path = source ? session_log_path(&f->container, s, writer, LOG_KIND_EXTENTS) : NULL;
    int is_whole = logical_is_whole(f, s);
    int status = path ? extent_log_read(&f->io, path, s->number, writer, f->container.uuid, is_whole, &source->from,
                                        &source->is_last, &out->buffer, &out->used, e)
                      : error_no_memory(e, strlen(f->container.path), "a writer's logs");

    free(path);
    /* A log that its writer is about to make, or a crash has taken. */
    return status == DELTAFS_ERR_NOT_FOUND && !is_whole ? DELTAFS_OK : status;
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
    return status;
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

/* The share of rank `rank` among `ranks` of what the table has, behind `out`; of no ranks it is nothing. */
static int logical_read_share(deltafs_logical *f, const struct bytes *table, uint32_t rank, uint32_t ranks,
                              struct bytes *out, struct error *e)
{
    int status = logical_reserve_known(f, table, e);
    struct row row;
    uint32_t writer;

    for (size_t at = 0; at < table->used && status == DELTAFS_OK;) {
        at = table_row(table, at, &row);
        if (row.session.is_closed && row.session.has_index && is_share(row.session.number, rank, ranks))
            status = logical_read_flat(f, &row.session, out, e);
        for (uint64_t i = 0; i < row.writers; i++, at += sizeof writer) {
            memcpy(&writer, table->buffer.bytes + at, sizeof writer);
            int is_self = f->has_session && row.session.number == f->session.number && writer == f->group.rank;
            if (status == DELTAFS_OK && !is_self && is_share(row.session.number + (uint64_t)writer, rank, ranks))
                status = logical_read_log(f, &row.session, writer, out, e);
        }
    }
    return status;
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
static int logical_add_heard(deltafs_logical *f, struct error *e)
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

int logical_learn_alone(deltafs_logical *f, struct error *e)
{
    struct look look = {0};
    enum retry retry = RETRY_NOT;
    int status;

    for (int i = 0; i == 0 || (retry != RETRY_NOT && i < TRIES); i++) {
        f->is_forgiving |= retry == RETRY_FORGIVING;
        look_fini(&look);
        status = logical_make_table(f, !logical_is_alone(f), &look, e);
        if (status == DELTAFS_OK)
            status = logical_read_share(f, &look.table, 0, 1, &f->heard, e);
        retry = logical_retry(f, &look, status);
    }
    logical_forgive(f, status);
    if (status == DELTAFS_OK) {
        logical_remember_all(f, &look.table);
        status = logical_add_heard(f, e);
    }
    if (status == DELTAFS_OK)
        logical_find_size(f);
    look_fini(&look);
    return status;
}

/* Rank 0's bytes to all. */
static int logical_share_table(deltafs_logical *f, struct bytes *table, struct error *e)
{
    uint64_t n = table->used;
    int status = f->group.broadcast(f->group.ctx, &n, sizeof n, e);

    if (status == DELTAFS_OK)
        e->status = buffer_reserve(&table->buffer, n, "a file's sessions", e);
    if (status == DELTAFS_OK)
        status = logical_agree(f, e);
    if (status == DELTAFS_OK)
        status = f->group.broadcast(f->group.ctx, table->buffer.bytes, n, e);
    table->used = n;
    return status;
}

/* Who reads what, and what of it everybody gets. Of a file that is open for writing only, rank 0 alone wants to know.
 */
static int logical_exchange(deltafs_logical *f, const struct bytes *table, struct error *e)
{
    uint32_t ranks = f->group.ranks, rank = f->group.rank;
    int is_for_one = !logical_can_read(f);
    struct bytes *news = &f->news, all = {{.memory = &f->memory}, 0};

    e->status = DELTAFS_OK;
    if (f->index == INDEX_EACH && !is_for_one)
        e->status = logical_read_share(f, table, 0, 1, &f->heard, e);
    else if (is_for_one || f->index == INDEX_BROADCAST)
        e->status = logical_read_share(f, table, 0, rank == 0, news, e);
    else
        e->status = logical_read_share(f, table, rank, ranks, news, e);
    int status = logical_agree(f, e);
    if (status == DELTAFS_OK)
        logical_remember_all(f, table);
    if (status == DELTAFS_OK && !is_for_one)
        status = f->group.gather(f->group.ctx, news->buffer.bytes, news->used, &all, e);
    if (status == DELTAFS_OK)
        e->status = logical_add_batches(f, is_for_one ? news : &all, e);
    if (status == DELTAFS_OK && e->status == DELTAFS_OK)
        e->status = logical_add_heard(f, e);
    if (status == DELTAFS_OK)
        status = logical_agree(f, e);
    if (status == DELTAFS_OK)
        news->used = 0;
    buffer_fini(&all.buffer);
    return status;
}

/* One attempt, and in *retry, an enum retry, whether it is worth another. */
static int logical_learn_once(deltafs_logical *f, uint64_t *retry, struct error *e)
{
    struct look look = {0};
    struct error second;

    e->status = f->group.rank == 0 ? logical_make_table(f, 0, &look, e) : DELTAFS_OK;
    int status = logical_agree(f, e);
    if (status == DELTAFS_OK)
        status = logical_share_table(f, &look.table, e);
    if (status == DELTAFS_OK)
        status = logical_exchange(f, &look.table, e);
    *retry = f->group.rank == 0 ? logical_retry(f, &look, status) : RETRY_NOT;
    if (status != DELTAFS_OK && f->group.broadcast(f->group.ctx, retry, sizeof *retry, &second) != DELTAFS_OK)
        *retry = RETRY_NOT;
    look_fini(&look);
    return status;
}

int logical_learn(deltafs_logical *f, struct error *e)
{
    uint64_t retry = RETRY_NOT;
    int status;

    if (logical_is_alone(f)) {
        status = logical_learn_alone(f, e);
        f->order++;
        return status;
    }
    for (int i = 0; i == 0 || (retry != RETRY_NOT && i < TRIES); i++) {
        f->is_forgiving |= retry == RETRY_FORGIVING;
        status = logical_learn_once(f, &retry, e);
    }
    logical_forgive(f, status);
    if (status == DELTAFS_OK)
        logical_find_size(f);
    uint64_t most[2] = {f->order, f->size};
    if (status == DELTAFS_OK)
        status = f->group.max(f->group.ctx, most, 2, e);
    if (status == DELTAFS_OK) {
        f->order = most[0] + 1;
        f->size = most[1];
    }
    return status;
}

/* What the group's ranks have published, and not told each other: from all to all. */
static int logical_tell(deltafs_logical *f, struct error *e)
{
    struct bytes all = {{0}, 0};
    int status = f->group.gather(f->group.ctx, f->news.buffer.bytes, f->news.used, &all, e);

    if (status != DELTAFS_OK)
        return status;
    e->status = logical_add_batches(f, &all, e);
    buffer_fini(&all.buffer);
    status = logical_agree(f, e);
    if (status == DELTAFS_OK)
        f->news.used = 0;
    return status;
}

int logical_share(deltafs_logical *f, struct error *e)
{
    int has_news = f->list.count > 0 || f->unpublished.used > 0 || f->news.used > 0;
    uint64_t most[2] = {f->order, (uint64_t)has_news};
    int status = f->group.max(f->group.ctx, most, 2, e);

    if (status != DELTAFS_OK || !most[1])
        return status;
    e->status = logical_publish(f, 0, 0, e);
    status = logical_agree(f, e);
    if (status == DELTAFS_OK)
        status = logical_tell(f, e);
    if (status != DELTAFS_OK)
        return status;
    f->order = most[0] + 1;
    logical_find_size(f);
    return DELTAFS_OK;
}

void logical_learn_anew(deltafs_logical *f)
{
    for (size_t i = 0; i < f->source_count; i++) {
        f->source[i]->from = 0;
        f->source[i]->is_last = 0;
    }
    for (size_t i = 0; i < f->known_count; i++)
        f->known[i].is_closed = 0;
}

void logical_reclaim(deltafs_logical *f)
{
    struct error ignored;
    size_t kept = 0;

    /* Whoever has the file open for reading still has its old bytes as far as its logs are open, as with any file. */
    for (size_t i = 0; i < f->known_count; i++) {
        if (!f->known[i].is_closed)
            f->known[kept++] = f->known[i];
        else if (f->group.rank == 0)
            session_remove(&f->container, &f->io, &f->known[i], f->sync != SYNC_NONE, &ignored);
    }
    f->known_count = kept;
}
