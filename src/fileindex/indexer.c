/* Indexing files. Rank 0 describes what is to be indexed, in the lines that SOURCES will have. All ranks parse them,
 * read their shares of each table's key column, and append the keys with row numbers to the index, one epoch for each
 * table. Rank 0 appends the lines when the epochs are committed, while the index is still this job's alone. A crash
 * before that leaves epochs that no line names, and no reader uses them.
 *
 * Keys are read from the finished file, not taken from the writes one by one. So records that were written in pieces,
 * out of order, by several ranks or twice are indexed as they are in the end. They are read back, except keys that were
 * captured while they were written, if this job has just closed the file. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "fileindex/fileindex_format.h"
#include "fileindex/index_paths.h"
#include "directory/dir.h"
#include "fileindex/indexer.h"

struct deltafs_indexer {
    struct io io;
    struct collective group;
    struct indexer_calls calls;
    struct index_paths place; /* of rank 0; of the others no more than a handle needs */
    struct io there;          /* it is found by this one, wherever the process is; files are where that is */
    char *whole;              /* its path for those who make it or open it */
    deltafs_options *options;
    int sync;
    deltafs_dir *dir; /* open from the first file that is added on */
    int is_made;      /* on rank 0: the index was there */
    struct sources sources;
    struct manifest manifest; /* of the index, as it was when it was last read */
    uint64_t next;            /* sequence of the next epoch */
    uint64_t first_own;       /* of the first that this job has made */
    char expected[PATH_MAX];  /* on rank 0: a file that was looked at, and what it was; "": none */
    struct source_identity is;
    int is_writer; /* of the files that are added */
    struct key_writer writer;
};

/* Rank 0's `n` bytes to all. */
static int indexer_broadcast(deltafs_indexer *ix, void *bytes, size_t n, struct error *e)
{
    struct bytes message = {{0}, 0};
    struct error own = {0};

    if (ix->group.ranks <= 1 || n == 0)
        return DELTAFS_OK;
    if (ix->group.rank == 0)
        bytes_append(&message, bytes, n, &own);
    int status = collective_broadcast(&ix->group, &message, &own);
    if (status == DELTAFS_OK)
        status = collective_agree(&ix->group, &own);
    if (status == DELTAFS_OK)
        memcpy(bytes, message.buffer.bytes, n);
    else
        *e = own;
    buffer_fini(&message.buffer);
    return status;
}

/* ---- Opening ---- */

/* What the index's directory is made with: the caller's options but those that are about something else. */
static int indexer_options(deltafs_indexer *ix, const deltafs_options *given, struct error *e)
{
    static const enum option_id reset[] = {OPTION_KEYS, OPTION_VALUE_SIZE, OPTION_VOLUMES, OPTION_COMMIT,
                                           OPTION_LAYOUT};
    int status = deltafs_options_create(&ix->options);

    if (status != DELTAFS_OK) {
        *e = *deltafs_private_thread_error();
        return status;
    }
    if (given)
        status = deltafs_private_options_copy(ix->options, given, e);
    for (size_t i = 0; i < sizeof reset / sizeof reset[0] && status == DELTAFS_OK; i++)
        status = deltafs_private_options_reset(ix->options, reset[i], e);
    if (status != DELTAFS_OK)
        return status;
    if (!deltafs_private_options_is_given(ix->options, OPTION_SYNC))
        status = deltafs_options_set(ix->options, "sync", "none");
    if (status == DELTAFS_OK)
        status = deltafs_options_set(ix->options, "schema", FILEINDEX_SCHEMA);
    if (status != DELTAFS_OK)
        *e = *deltafs_private_thread_error();
    ix->sync = deltafs_private_options_number(ix->options, OPTION_SYNC) != SYNC_NONE;
    return status;
}

static int indexer_place(deltafs_indexer *ix, const char *index, const char *path, struct error *e)
{
    char *beside = NULL, kind;
    int status = DELTAFS_OK;

    if (!index || !*index) {
        status = key_file_kind(&ix->io, path, &kind, e);
        if (status == DELTAFS_OK)
            status = index_paths_beside(path, kind, &beside, e);
        index = beside;
    }
    if (status == DELTAFS_OK)
        status = index_paths_init(&ix->place, index, e);
    if (status == DELTAFS_OK)
        status = io_stay(&ix->there, index, e);
    if (status == DELTAFS_OK && !(ix->whole = io_whole(&ix->there, index)))
        status = error_no_memory(e, strlen(index), "a path");
    free(beside);
    return status;
}

/* What the index has: nothing, if there is none. */
static int indexer_read(deltafs_indexer *ix, struct error *e)
{
    struct manifest m = {0};
    int status = manifest_read(&ix->there, ix->place.path, &m, e);

    sources_fini(&ix->sources);
    manifest_fini(&ix->manifest);
    ix->manifest = (struct manifest){0};
    ix->is_made = status != DELTAFS_ERR_NOT_FOUND;
    if (status == DELTAFS_ERR_NOT_FOUND) {
        index_paths_settle(&ix->place, &ix->there, &ix->sources);
        return DELTAFS_OK;
    }
    if (status != DELTAFS_OK)
        return status;
    status = sources_read(&ix->there, ix->place.sources, &ix->sources, e);
    /* One that was just made, and its job died before it could say what it is. */
    if (status == DELTAFS_ERR_NOT_FOUND && m.epoch_count == 0 && strcmp(m.schema, FILEINDEX_SCHEMA) == 0)
        status = sources_create(&ix->there, ix->place.sources, m.uuid_text, ix->sync, e) == DELTAFS_OK
                     ? sources_read(&ix->there, ix->place.sources, &ix->sources, e)
                     : e->status;
    else if (status == DELTAFS_ERR_NOT_FOUND)
        status = error_set(e, DELTAFS_ERR_NOT_DELTAFS,
                           "%s: is a directory of records, not an index of files; name another index", ix->place.path);
    if (status == DELTAFS_OK)
        status = sources_check_uuid(&ix->sources, ix->place.sources, m.uuid_text, e);
    if (status == DELTAFS_OK)
        index_paths_settle(&ix->place, &ix->there, &ix->sources);
    ix->next = m.epoch_count > 0 ? m.epoch[m.epoch_count - 1].label + 1 : 1;
    if (ix->next <= ix->sources.last)
        ix->next = ix->sources.last + 1;
    ix->first_own = ix->next;
    ix->manifest = m;
    return status;
}

static void indexer_free(deltafs_indexer *ix)
{
    deltafs_options_destroy(ix->options);
    index_paths_fini(&ix->place);
    io_leave(&ix->there);
    free(ix->whole);
    sources_fini(&ix->sources);
    manifest_fini(&ix->manifest);
    free(ix);
}

int deltafs_private_indexer_open_group(const char *index, const char *path, const deltafs_options *options,
                                       const struct collective *group, const struct indexer_calls *calls,
                                       deltafs_indexer **out, struct error *e)
{
    deltafs_indexer *ix = calloc(1, sizeof *ix);
    struct error own = {0};

    if (!ix) {
        error_no_memory(e, sizeof *ix, "a handle");
        return collective_agree(group, e);
    }
    ix->io = io_default();
    ix->there = io_default();
    ix->group = *group;
    ix->calls = *calls;
    own.status = indexer_options(ix, group->rank == 0 ? options : NULL, &own);
    if (own.status == DELTAFS_OK && group->rank == 0)
        own.status = indexer_place(ix, index, path, &own);
    if (own.status == DELTAFS_OK && group->rank == 0)
        own.status = indexer_read(ix, &own);
    if (collective_agree(&ix->group, &own) == DELTAFS_OK) {
        *out = ix;
        return DELTAFS_OK;
    }
    *e = own;
    indexer_free(ix);
    return e->status;
}

static int alone_create(void *ctx, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    (void)ctx;
    return deltafs_create(path, options, out);
}

static int alone_reopen(void *ctx, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    (void)ctx;
    return deltafs_reopen(path, options, out);
}

int deltafs_indexer_open(const char *index, const char *path, const deltafs_options *options, deltafs_indexer **out)
{
    const struct collective alone = COLLECTIVE_ALONE;
    static const struct indexer_calls calls = {.create = alone_create, .reopen = alone_reopen};
    struct error *e = deltafs_private_thread_error(), own = {0};

    if ((!index && !path) || !out)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_indexer_open: index or path, and out, must be given");
    int status = deltafs_private_indexer_open_group(index, path, options, &alone, &calls, out, &own);
    if (status != DELTAFS_OK)
        *e = own;
    return status;
}

/* ---- Asking what is indexed ---- */

static int indexer_identify(struct io *io, const char *path, struct source_identity *out, struct error *e)
{
    struct key_file file;
    char kind;
    int status = key_file_kind(io, path, &kind, e);

    if (status == DELTAFS_OK)
        status = key_file_open(&file, io, path, kind, NULL, NULL, e);
    if (status != DELTAFS_OK)
        return status;
    status = key_file_identity(&file, 1, out, e);
    key_file_close(&file);
    return status;
}

int deltafs_private_indexer_identify(const char *path, struct source_identity *out, struct error *e)
{
    struct io io = io_default();

    return indexer_identify(&io, path, out, e);
}

void deltafs_private_indexer_expect(deltafs_indexer *ix, const char *path, const struct source_identity *is)
{
    ix->is = *is;
    snprintf(ix->expected, sizeof ix->expected, "%s", path);
}

void deltafs_private_indexer_written(deltafs_indexer *ix, const struct key_writer *w)
{
    ix->writer = *w;
    ix->is_writer = 1;
}

/* Whether an epoch that SOURCES names is not there, or another: a power loss, or a repair, has taken it. */
static int is_epoch_lost(const struct manifest *m, const struct source_table *t)
{
    for (size_t i = 0; i < m->epoch_count; i++)
        if (m->epoch[i].label == t->sequence)
            return m->epoch[i].records != t->table.rows;
    return 1;
}

/* Those of this job count as there. */
static int is_source_lost(const deltafs_indexer *ix, const struct source_entry *s)
{
    int is_lost = 0;

    for (size_t i = 0; i < s->table_count && !is_lost; i++)
        is_lost = s->table[i].sequence < ix->first_own && is_epoch_lost(&ix->manifest, &s->table[i]);
    return is_lost;
}

/* Where the file of a source really is; NULL: nowhere, or there is no memory. */
static const char *source_place(const deltafs_indexer *ix, struct source_entry *s)
{
    char *path = index_paths_path_out(&ix->place, s->path), *whole = path ? io_whole(&ix->there, path) : NULL;

    free(s->place);
    s->place = whole ? realpath(whole, NULL) : NULL;
    free(path);
    free(whole);
    return s->place;
}

/* Whether two sources are one file, which a link leads to. What was found before is believed where it says no: there
 * may be many sources of the same size and time, and each is compared with all. */
static int is_same_file(const deltafs_indexer *ix, struct source_entry *s, struct source_entry *t)
{
    if ((!s->place && !source_place(ix, s)) || (!t->place && !source_place(ix, t)) || strcmp(s->place, t->place) != 0)
        return 0;
    return source_place(ix, s) && source_place(ix, t) && strcmp(s->place, t->place) == 0;
}

/* The first source from *from on that is the same file as this one, by another name. *from gets the number of the next
 * one. NULL: there is none. */
static const struct source_entry *indexer_alias(deltafs_indexer *ix, struct source_entry *s, size_t *from)
{
    while (*from < ix->sources.count) {
        struct source_entry *t = &ix->sources.source[(*from)++];
        if (source_identity_is_same(&t->identity, &s->identity) && strcmp(t->path, s->path) != 0 &&
            is_same_file(ix, s, t))
            return t;
    }
    return NULL;
}

static int indexer_look(deltafs_indexer *ix, const char *path, int *has, struct error *e)
{
    struct source_entry is = {0};
    int status = index_paths_name(&ix->place, &ix->there, &ix->sources, path, &is.path, e);

    *has = 0;
    if (status == DELTAFS_OK)
        status = indexer_identify(&ix->io, path, &is.identity, e);
    if (status == DELTAFS_OK) {
        size_t from = 0;
        const struct source_entry *s = sources_find(&ix->sources, is.path), *alias = indexer_alias(ix, &is, &from);
        deltafs_private_indexer_expect(ix, path, &is.identity);
        /* Under two names it would be found twice. */
        if (!s || !alias)
            s = s ? s : alias;
        else
            s = NULL;
        *has = s && source_identity_is_same(&is.identity, &s->identity) && !is_source_lost(ix, s);
    }
    source_fini(&is);
    return status;
}

int deltafs_indexer_has(deltafs_indexer *ix, const char *path, int *has)
{
    struct error own = {0};
    int answer = 0;

    if (!ix || !has || (ix->group.rank == 0 && !path))
        error_set(&own, DELTAFS_ERR_INVALID, "deltafs_indexer_has: the handle, path and has must be given");
    if (!ix || !has)
        return (*deltafs_private_thread_error() = own).status;
    if (own.status == DELTAFS_OK && ix->group.rank == 0)
        own.status = indexer_look(ix, path, &answer, &own);
    if (collective_agree(&ix->group, &own) == DELTAFS_OK)
        indexer_broadcast(ix, &answer, sizeof answer, &own);
    if (own.status != DELTAFS_OK)
        *deltafs_private_thread_error() = own;
    else
        *has = answer;
    return own.status;
}

/* ---- Adding a file ---- */

/* Collective: rank 0's text to all, who free it. */
static int indexer_share_text(deltafs_indexer *ix, char **text, struct error *e)
{
    uint64_t n = *text ? strlen(*text) + 1 : 0;
    int status = indexer_broadcast(ix, &n, sizeof n, e);

    if (status != DELTAFS_OK)
        return status;
    struct error own = {0};
    if (ix->group.rank != 0 && !(*text = malloc(n)))
        error_no_memory(&own, n, "a text");
    if (collective_agree(&ix->group, &own) != DELTAFS_OK) {
        *e = own;
        return own.status;
    }
    return indexer_broadcast(ix, *text, n, e);
}

/* Rank 0: the lines of the file, whose sequences come later. */
static int indexer_compose(deltafs_indexer *ix, const char *path, struct key_file *file, size_t n,
                           const struct deltafs_table *const *table, char **text, struct error *e)
{
    struct source_entry s = {.table_count = n, .table = calloc(n, sizeof *s.table)};
    int status = s.table ? index_paths_name(&ix->place, &ix->there, &ix->sources, path, &s.path, e)
                         : error_no_memory(e, n, "tables");

    if (status == DELTAFS_OK)
        status = key_file_identity(file, 1, &s.identity, e);
    /* What was looked for before, in another state of the file, are not its tables. */
    if (status == DELTAFS_OK && strcmp(ix->expected, path) == 0 && !source_identity_is_same(&s.identity, &ix->is))
        status = error_set(e, DELTAFS_ERR_CHANGED,
                           "%s: was written to while it was looked for what to index; index it again", path);
    ix->expected[0] = '\0';
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        s.table[i].table = *table[i];
    if (status == DELTAFS_OK)
        status = source_format(&s, text, e);
    free(s.table);
    free(s.path);
    return status;
}

#define SHARE_ROWS 4096 /* that are appended at once */

struct share {
    deltafs_dir *dir;
    uint32_t group; /* rows that have the same number */
    size_t n;
    uint64_t key[SHARE_ROWS];
    uint8_t value[SHARE_ROWS * FILEINDEX_VALUE];
};

/* An error here is returned at the epoch's end. */
static void share_flush(struct share *s)
{
    deltafs_append_many(s->dir, s->n, s->key, sizeof s->key[0], s->value, FILEINDEX_VALUE, FILEINDEX_VALUE);
    s->n = 0;
}

static int share_append(void *arg, uint64_t first, const uint64_t *key, size_t n, struct error *e)
{
    struct share *s = arg;

    (void)e;
    while (n > 0) {
        size_t part = n < SHARE_ROWS - s->n ? n : SHARE_ROWS - s->n;
        memcpy(s->key + s->n, key, part * sizeof *key);
        for (size_t i = 0; i < part; i++)
            put_u32(s->value + (s->n + i) * FILEINDEX_VALUE, (uint32_t)((first + i) / s->group));
        s->n += part;
        first += part;
        key += part;
        n -= part;
        if (s->n == SHARE_ROWS)
            share_flush(s);
    }
    return DELTAFS_OK;
}

/* This process's share of the rows. */
static int share_scan(deltafs_indexer *ix, struct key_file *file, const char *path, const struct source_table *source,
                      struct error *e)
{
    const struct deltafs_table *t = &source->table;
    const struct deltafs_column *key = &t->column[t->key];
    uint64_t rank = ix->group.rank, ranks = ix->group.ranks, part = t->rows / ranks, rest = t->rows % ranks;
    uint64_t from = rank * part + (rank < rest ? rank : rest), end = from + part + (rank < rest);
    struct share *s = malloc(sizeof *s);

    if (!s)
        return error_no_memory(e, sizeof *s, "numbers of rows");
    s->dir = ix->dir;
    s->group = source_table_group(source);
    s->n = 0;
    int status = ix->is_writer && key->piece_count == 0
                     ? key_column_scan_written(file, key, t->rows, from, end, &ix->writer, path, share_append, s, e)
                     : key_column_scan(file, key, from, end, path, share_append, s, e);
    share_flush(s);
    free(s);
    return status;
}

/* Collective: one table, as an epoch. */
static int indexer_add_table(deltafs_indexer *ix, struct key_file *file, const char *path, const struct source_table *t,
                             struct error *e)
{
    struct error own = {0};

    own.status = share_scan(ix, file, path, t, &own);
    if (own.status != DELTAFS_OK)
        deltafs_epoch_cancel(ix->dir, own.text);
    int status = deltafs_epoch_end(ix->dir, t->sequence);
    if (status == DELTAFS_ERR_CANCELLED)
        status = collective_agree(&ix->group, &own);
    else if (status != DELTAFS_OK)
        own = *deltafs_private_thread_error();
    if (status != DELTAFS_OK)
        *e = own;
    return status;
}

/* Collective: open the index for writing, or make it. It is this job's from then on, until it is closed. */
static int indexer_open_dir(deltafs_indexer *ix, struct error *e)
{
    struct error own = {0};
    int is_made = ix->is_made, status = indexer_broadcast(ix, &is_made, sizeof is_made, e);

    if (status != DELTAFS_OK)
        return status;
    /* One that is there has as many as it has. */
    if (is_made)
        deltafs_private_options_reset(ix->options, OPTION_PARTITIONS, &own);
    status = is_made ? ix->calls.reopen(ix->group.ctx, ix->whole, ix->options, &ix->dir)
                     : ix->calls.create(ix->group.ctx, ix->whole, ix->options, &ix->dir);
    if (status != DELTAFS_OK) {
        *e = *deltafs_private_thread_error();
        return status;
    }
    /* What others have added by now, and the first line of SOURCES. */
    if (ix->group.rank == 0)
        own.status = indexer_read(ix, &own);
    status = collective_agree(&ix->group, &own);
    if (status != DELTAFS_OK) {
        *e = own;
        deltafs_close(ix->dir);
        ix->dir = NULL;
    }
    return status;
}

/* Rank 0: the lines of `n` sources into SOURCES, none after an error. */
static int indexer_append(deltafs_indexer *ix, struct source_entry *s, size_t n, struct error *e)
{
    char *all = NULL, *text;
    size_t size = 0;
    FILE *f = open_memstream(&all, &size);
    int status = f ? DELTAFS_OK : error_no_memory(e, 0, "a file's lines");

    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        text = NULL;
        status = source_format(&s[i], &text, e);
        if (status == DELTAFS_OK && fputs(text, f) < 0)
            status = error_no_memory(e, strlen(text), "a file's lines");
        free(text);
    }
    if (f && fclose(f) != 0 && status == DELTAFS_OK)
        status = error_no_memory(e, size, "a file's lines");
    if (status == DELTAFS_OK)
        status = sources_append(&ix->there, ix->place.sources, &ix->sources.size, all, ix->sync, e);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        status = sources_add(&ix->sources, &s[i], e);
    free(all);
    return status;
}

/* Rank 0. */
static int indexer_forget_source(deltafs_indexer *ix, const char *name, struct error *e)
{
    struct source_entry none = {.path = strdup(name)};
    int status = none.path ? indexer_append(ix, &none, 1, e) : error_no_memory(e, strlen(name), "a path");

    source_fini(&none);
    return status;
}

/* Rank 0: note the source, now that its epochs are committed. By another name it is forgotten, or all of its rows would
 * be found twice. */
static int indexer_note(deltafs_indexer *ix, struct source_entry *s, struct error *e)
{
    struct source_entry *all = calloc(ix->sources.count + 1, sizeof *all);
    const struct source_entry *alias;
    size_t n = 1, from = 0;
    int status = all ? DELTAFS_OK : error_no_memory(e, ix->sources.count * sizeof *all, "a file's lines");

    while (status == DELTAFS_OK && (alias = indexer_alias(ix, s, &from)))
        if (!(all[n++].path = strdup(alias->path)))
            status = error_no_memory(e, strlen(alias->path), "a path");
    if (status == DELTAFS_OK) {
        all[0] = *s;
        *s = (struct source_entry){0};
        status = indexer_append(ix, all, n, e);
    }
    for (size_t i = 0; all && i < n; i++)
        source_fini(&all[i]);
    free(all);
    return status;
}

/* Rank 0: whether the epoch that was just committed has each row of the table once. Nothing is found by one that has
 * not: no line of SOURCES names it. */
static int indexer_check_epoch(const deltafs_indexer *ix, const char *path, const struct deltafs_table *t,
                               struct error *e)
{
    uint64_t records = dir_last_records(ix->dir);

    if (records == t->rows)
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_CHANGED,
                     "%s: %" PRIu64 " keys were found in its %" PRIu64 " rows, as if it had been written to "
                     "meanwhile; index it again",
                     path, records, t->rows);
}

/* Collective: all tables of a source whose lines all ranks have. */
static int indexer_add_tables(deltafs_indexer *ix, struct key_file *file, const char *path, struct source_entry *s,
                              struct error *e)
{
    struct error own = {0};
    int status = ix->dir ? DELTAFS_OK : indexer_open_dir(ix, e);

    if (status == DELTAFS_OK)
        status = indexer_broadcast(ix, &ix->next, sizeof ix->next, e);
    if (status == DELTAFS_OK)
        status = indexer_broadcast(ix, &ix->sources.version, sizeof ix->sources.version, e);
    for (size_t i = 0; i < s->table_count && status == DELTAFS_OK; i++) {
        s->table[i].sequence = ix->next++;
        source_table_choose_group(&s->table[i], ix->sources.version);
        status = indexer_add_table(ix, file, path, &s->table[i], e);
        if (status == DELTAFS_OK && ix->group.rank == 0 && own.status == DELTAFS_OK)
            own.status = indexer_check_epoch(ix, path, &s->table[i].table, &own);
    }
    if (status != DELTAFS_OK)
        return status;
    if (ix->group.rank == 0 && own.status == DELTAFS_OK)
        own.status = indexer_note(ix, s, &own);
    if (collective_agree(&ix->group, &own) != DELTAFS_OK)
        *e = own;
    return own.status;
}

/* Collective: rank 0's lines, taken apart. */
static int indexer_share_source(deltafs_indexer *ix, const char *path, struct key_file *file, size_t n,
                                const struct deltafs_table *const *table, struct source_entry *s, struct error *e)
{
    char *text = NULL;
    struct error own = {0};

    if (ix->group.rank == 0)
        own.status = indexer_compose(ix, path, file, n, table, &text, &own);
    int status = collective_agree(&ix->group, &own);
    if (status == DELTAFS_OK)
        status = indexer_share_text(ix, &text, &own);
    if (status == DELTAFS_OK) {
        own.status = source_parse(text, path, s, &own);
        status = collective_agree(&ix->group, &own);
    }
    free(text);
    if (status != DELTAFS_OK)
        *e = own;
    return status;
}

/* What rank 0 broadcasts about the file. */
struct indexed_file {
    char kind;
    char path[PATH_MAX];
};

/* Rank 0. */
static int indexer_look_at(deltafs_indexer *ix, const char *path, size_t n, const struct deltafs_table *const *table,
                           struct indexed_file *out, struct error *e)
{
    if (!path || n == 0 || !table || strlen(path) >= sizeof out->path)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_indexer_add: path and tables must be given");
    snprintf(out->path, sizeof out->path, "%s", path);
    return key_file_kind(&ix->io, path, &out->kind, e);
}

/* Collective: the file, open on all ranks. */
static int indexer_open_file(deltafs_indexer *ix, const struct indexed_file *what, struct key_file *file,
                             struct error *e)
{
    struct error own = {0};

    own.status = key_file_open(file, &ix->io, what->path, what->kind, ix->calls.open_logical, ix->group.ctx, &own);
    int status = collective_agree(&ix->group, &own);
    if (status == DELTAFS_OK)
        return status;
    *e = own;
    key_file_close(file);
    return status;
}

/* Collective. */
static int indexer_add(deltafs_indexer *ix, const char *path, size_t n, const struct deltafs_table *const *table,
                       struct error *e)
{
    struct key_file file;
    struct source_entry s = {0};
    struct indexed_file what = {.kind = '-'};
    struct error own = {0};

    if (ix->group.rank == 0)
        own.status = indexer_look_at(ix, path, n, table, &what, &own);
    int status = collective_agree(&ix->group, &own);
    *e = own;
    if (status == DELTAFS_OK)
        status = indexer_broadcast(ix, &what, sizeof what, e);
    if (status == DELTAFS_OK)
        status = indexer_open_file(ix, &what, &file, e);
    if (status != DELTAFS_OK)
        return status;
    status = indexer_share_source(ix, what.path, &file, n, table, &s, e);
    if (status == DELTAFS_OK)
        status = indexer_add_tables(ix, &file, what.path, &s, e);
    source_fini(&s);
    key_file_close(&file);
    return status;
}

int deltafs_indexer_add(deltafs_indexer *ix, const char *path, size_t n, const struct deltafs_table *const *table)
{
    struct error own = {0};

    if (!ix)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID, "deltafs_indexer_add: no handle");
    int status = indexer_add(ix, path, n, table, &own);
    if (status != DELTAFS_OK)
        *deltafs_private_thread_error() = own;
    return status;
}

/* ---- Forgetting files ---- */

/* On rank 0: the names of sources that are to go. */
struct names {
    char **name;
    uint64_t count;
};

static void names_fini(struct names *n)
{
    for (uint64_t i = 0; i < n->count; i++)
        free(n->name[i]);
    free(n->name);
}

static int names_add(const deltafs_indexer *ix, struct names *n, const char *name, struct error *e)
{
    if (!n->name)
        n->name = calloc(ix->sources.count + 1, sizeof *n->name);
    if (!n->name || !(n->name[n->count] = strdup(name)))
        return error_no_memory(e, strlen(name), "names");
    n->count++;
    return DELTAFS_OK;
}

static int indexer_has_not(const deltafs_indexer *ix, const char *path, struct error *e)
{
    return error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: is not indexed in %s", path, ix->place.path);
}

/* Rank 0: the source that is called so; or, if there is none, those that are this file by other names. */
static int indexer_name_one(deltafs_indexer *ix, const char *path, struct names *out, struct error *e)
{
    struct source_entry is = {0};
    int status = index_paths_name(&ix->place, &ix->there, &ix->sources, path, &is.path, e);

    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND ? indexer_has_not(ix, path, e) : status;
    if (sources_find(&ix->sources, is.path))
        status = names_add(ix, out, is.path, e);
    else
        source_place(ix, &is);
    for (size_t i = 0; is.place && i < ix->sources.count && status == DELTAFS_OK; i++) {
        struct source_entry *s = &ix->sources.source[i];
        if (source_place(ix, s) && strcmp(s->place, is.place) == 0)
            status = names_add(ix, out, s->path, e);
    }
    source_fini(&is);
    return status == DELTAFS_OK && out->count == 0 ? indexer_has_not(ix, path, e) : status;
}

/* Whether the file of a source has gone; it is an error if it cannot be looked for. */
static int source_has_gone(deltafs_indexer *ix, const char *name, int *has_gone, struct error *e)
{
    char *path = index_paths_path_out(&ix->place, name), kind;
    int status = path ? key_file_kind(&ix->there, path, &kind, e) : error_no_memory(e, strlen(name), "a path");

    free(path);
    *has_gone = status == DELTAFS_ERR_NOT_FOUND;
    /* It may have become something else, which is there. */
    return *has_gone || status == DELTAFS_ERR_NOT_DELTAFS ? DELTAFS_OK : status;
}

/* Rank 0: the sources whose files have gone. */
static int indexer_name_gone(deltafs_indexer *ix, struct names *out, struct error *e)
{
    int status = DELTAFS_OK, has_gone;

    for (size_t i = 0; i < ix->sources.count && status == DELTAFS_OK; i++) {
        status = source_has_gone(ix, ix->sources.source[i].path, &has_gone, e);
        if (status == DELTAFS_OK && has_gone)
            status = names_add(ix, out, ix->sources.source[i].path, e);
    }
    if (status == DELTAFS_OK && out->count > 0 && out->count == ix->sources.count)
        return error_set(e, DELTAFS_ERR_CHANGED,
                         "%s: none of its %" PRIu64 " files is there, as if it had been moved without them, or "
                         "their file system were not mounted; nothing is forgotten: name the files, or remove the "
                         "index",
                         ix->place.path, out->count);
    return status;
}

/* Rank 0, while the index is this job's. Another may have done it before, or indexed one that is there again. */
static int indexer_forget_names(deltafs_indexer *ix, const struct names *n, const char *path, uint64_t *count,
                                struct error *e)
{
    int status = DELTAFS_OK;

    for (uint64_t i = 0; i < n->count && status == DELTAFS_OK; i++) {
        int goes = sources_find(&ix->sources, n->name[i]) != NULL;
        if (goes && !path)
            status = source_has_gone(ix, n->name[i], &goes, e);
        if (!goes || status != DELTAFS_OK)
            continue;
        status = indexer_forget_source(ix, n->name[i], e);
        *count += status == DELTAFS_OK;
    }
    return status == DELTAFS_OK && path && *count == 0 ? indexer_has_not(ix, path, e) : status;
}

/* Collective: *count gets how many. */
static int indexer_forget(deltafs_indexer *ix, const char *path, struct names *names, uint64_t *count, struct error *e)
{
    struct error own = {0};

    if (ix->group.rank == 0 && !ix->is_made)
        error_set(&own, DELTAFS_ERR_NOT_FOUND, "%s: there is no index of keys", ix->place.path);
    else if (ix->group.rank == 0)
        own.status = path ? indexer_name_one(ix, path, names, &own) : indexer_name_gone(ix, names, &own);
    int status = collective_agree(&ix->group, &own);
    uint64_t wanted = names->count;
    *e = own;
    if (status == DELTAFS_OK)
        status = indexer_broadcast(ix, &wanted, sizeof wanted, e);
    if (status == DELTAFS_OK && wanted == 0)
        return DELTAFS_OK;
    if (status == DELTAFS_OK && !ix->dir)
        status = indexer_open_dir(ix, e);
    if (status != DELTAFS_OK)
        return status;
    if (ix->group.rank == 0)
        own.status = indexer_forget_names(ix, names, path, count, &own);
    status = collective_agree(&ix->group, &own);
    *e = own;
    return status == DELTAFS_OK ? indexer_broadcast(ix, count, sizeof *count, e) : status;
}

int deltafs_indexer_forget(deltafs_indexer *ix, const char *path, uint64_t *forgotten)
{
    struct error own = {0};
    struct names names = {.count = 0};

    if (!ix || !forgotten)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_indexer_forget: the handle and forgotten must be given");
    *forgotten = 0;
    int status = indexer_forget(ix, path, &names, forgotten, &own);
    names_fini(&names);
    if (status != DELTAFS_OK)
        *deltafs_private_thread_error() = own;
    return status;
}

int deltafs_indexer_close(deltafs_indexer *ix)
{
    struct error *e = deltafs_private_thread_error();

    if (!ix)
        return DELTAFS_OK;
    struct collective group = ix->group;
    int status = deltafs_close(ix->dir);
    indexer_free(ix);
    collective_destroy(&group);
    if (status == DELTAFS_OK)
        e->status = DELTAFS_OK;
    return status;
}
