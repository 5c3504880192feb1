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
#include "base/hash.h"
#include "base/path.h"
#include "fileindex/fileindex_format.h"
#include "fileindex/index_paths.h"
#include "directory/dir.h"
#include "fileindex/indexer.h"

int indexer_share(const struct collective *group, void *bytes, size_t n, struct error *e)
{
    struct bytes message = {{0}, 0};

    if (group->ranks <= 1)
        return e->status;
    if (group->rank == 0 && e->status == DELTAFS_OK)
        bytes_append(&message, bytes, n, e);
    int status = collective_broadcast(group, &message, e);
    if (status == DELTAFS_OK)
        status = collective_agree(group, e);
    if (status == DELTAFS_OK)
        memcpy(bytes, message.buffer.bytes, n);
    buffer_fini(&message.buffer);
    return status;
}

/* ---- Opening ---- */

/* What the index's directory is made with: the caller's options but those that are about something else. */
static int indexer_options(deltafs_indexer *ix, const deltafs_options *given, struct error *e)
{
    static const enum option_id reset[] = {OPTION_KEYS,   OPTION_VALUE_SIZE, OPTION_VOLUMES,
                                           OPTION_COMMIT, OPTION_LAYOUT,     OPTION_INDEX_BY};
    int status = deltafs_options_create(&ix->options);

    if (status == DELTAFS_OK && given)
        status = deltafs_private_options_copy(ix->options, given, deltafs_private_thread_error());
    for (size_t i = 0; i < sizeof reset / sizeof reset[0] && status == DELTAFS_OK; i++)
        status = deltafs_private_options_reset(ix->options, reset[i], deltafs_private_thread_error());
    if (status == DELTAFS_OK && !deltafs_private_options_is_given(ix->options, OPTION_SYNC))
        status = deltafs_options_set(ix->options, "sync", "none");
    if (status == DELTAFS_OK)
        status = deltafs_options_set(ix->options, "schema", FILEINDEX_SCHEMA);
    if (error_of_call(status, e) != DELTAFS_OK)
        return status;
    deltafs_private_options_mark_index(ix->options);
    ix->sync = deltafs_private_options_number(ix->options, OPTION_SYNC) != SYNC_NONE;
    return DELTAFS_OK;
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
    char *whole = status == DELTAFS_OK ? path_absolute(index) : NULL;
    if (whole)
        status = index_paths_init(&ix->place, whole, e);
    else if (status == DELTAFS_OK)
        status = error_no_memory(e, strlen(index), "a path");
    free(whole);
    free(beside);
    return status;
}

static int indexer_read_once(deltafs_indexer *ix, struct error *e)
{
    struct manifest m = {0};
    int status = manifest_read(&ix->io, ix->place.path, &m, e);

    sources_fini(&ix->sources);
    manifest_fini(&ix->manifest);
    ix->manifest = (struct manifest){0};
    ix->is_made = status != DELTAFS_ERR_NOT_FOUND;
    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
    status = sources_read(&ix->io, ix->place.sources, &ix->sources, e);
    /* One that was just made, and its job died before it could say what it is. */
    if (status == DELTAFS_ERR_NOT_FOUND && m.epoch_count == 0 && strcmp(m.schema, FILEINDEX_SCHEMA) == 0)
        status = sources_create(&ix->io, ix->place.sources, m.uuid_text, ix->sync, e) == DELTAFS_OK
                     ? sources_read(&ix->io, ix->place.sources, &ix->sources, e)
                     : e->status;
    else if (status == DELTAFS_ERR_NOT_FOUND && m.is_index)
        status = manifest_check_sources(&ix->io, ix->place.path, &m, e);
    else if (status == DELTAFS_ERR_NOT_FOUND)
        status = error_set(e, DELTAFS_ERR_NOT_DELTAFS,
                           "%s: is a directory of records, not an index of files; name another index", ix->place.path);
    if (status == DELTAFS_OK)
        status = sources_check_uuid(&ix->sources, ix->place.sources, m.uuid_text, e);
    ix->next = m.epoch_count > 0 ? m.epoch[m.epoch_count - 1].label + 1 : 1;
    if (ix->next <= ix->sources.last)
        ix->next = ix->sources.last + 1;
    ix->first_own = ix->next;
    ix->manifest = m;
    return status;
}

int indexer_read(deltafs_indexer *ix, struct error *e)
{
    char uuid[UUID_TEXT_SIZE] = "";
    int status;

    /* MANIFEST and SOURCES may be of two indexes, if a compaction replaces the first between the two readings. */
    while ((status = indexer_read_once(ix, e)) == DELTAFS_ERR_DAMAGED && strcmp(uuid, ix->manifest.uuid_text) != 0)
        strcpy(uuid, ix->manifest.uuid_text);
    return status;
}

static void indexer_free(deltafs_indexer *ix)
{
    deltafs_options_destroy(ix->options);
    index_paths_fini(&ix->place);
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

static int alone_open(void *ctx, int is_made, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    (void)ctx;
    return is_made ? deltafs_reopen(path, options, out) : deltafs_create(path, options, out);
}

const struct indexer_calls indexer_alone = {.open = alone_open};

int deltafs_indexer_open(const char *index, const char *path, const deltafs_options *options, deltafs_indexer **out)
{
    const struct collective alone = COLLECTIVE_ALONE;
    struct error own = {0};

    if ((!index && !path) || !out)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_indexer_open: index or path, and out, must be given");
    return error_of_thread(deltafs_private_indexer_open_group(index, path, options, &alone, &indexer_alone, out, &own),
                           &own);
}

/* ---- Asking what is indexed ---- */

static int indexer_identify(deltafs_indexer *ix, const char *path, struct source_identity *out, struct error *e)
{
    struct key_file file;
    char kind;
    int status = key_file_kind(&ix->io, path, &kind, e);

    if (status == DELTAFS_OK)
        status = key_file_open(&file, &ix->io, path, kind, NULL, NULL, e);
    if (status != DELTAFS_OK)
        return status;
    status = key_file_identity(&file, 1, out, e);
    key_file_close(&file);
    return status;
}

/* Those of this job count as there. */
static int is_source_lost(const deltafs_indexer *ix, const struct source_entry *s)
{
    int is_lost = 0;

    for (size_t i = 0; i < s->table_count && !is_lost; i++)
        is_lost = s->table[i].sequence < ix->first_own && source_table_is_lost(&s->table[i], &ix->manifest);
    return is_lost;
}

/* Whether the path of a source leads to the file that is really at `real`. */
static int source_is_at(const deltafs_indexer *ix, const struct source_entry *s, const char *real)
{
    char *path = index_paths_path_out(&ix->place, s->path), *place = path ? path_resolve(path) : NULL;
    int is_at = place && strcmp(place, real) == 0;

    free(path);
    free(place);
    return is_at;
}

/* The next source from *from on that is this one by another name, because a link was put in the place of its file or of
 * a folder; or NULL. *from gets the number behind it. */
static const struct source_entry *indexer_alias(const deltafs_indexer *ix, const struct source_entry *s,
                                                const char *real, size_t *from)
{
    while (*from < ix->sources.count) {
        const struct source_entry *t = &ix->sources.source[(*from)++];
        if (source_identity_is_same(&t->identity, &s->identity) && strcmp(t->path, s->path) != 0 &&
            source_is_at(ix, t, real))
            return t;
    }
    return NULL;
}

static int indexer_look(deltafs_indexer *ix, const char *path, int *has, struct error *e)
{
    struct source_entry is = {0};
    char *real = NULL;
    size_t from = 0;
    int status = indexer_identify(ix, path, &is.identity, e);

    if (status == DELTAFS_OK)
        status = index_paths_name(&ix->place, &ix->sources, path, &real, &is.path, e);
    if (status == DELTAFS_OK) {
        const struct source_entry *s = sources_find(&ix->sources, is.path),
                                  *alias = indexer_alias(ix, &is, real, &from);
        ix->is = is.identity;
        snprintf(ix->expected, sizeof ix->expected, "%s", path);
        /* Under two names it would be found twice. */
        int is_once = !s || !alias;
        s = s ? s : alias;
        *has = is_once && s && source_identity_is_same(&is.identity, &s->identity) && !is_source_lost(ix, s);
    }
    free(real);
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
    if (indexer_share(&ix->group, &answer, sizeof answer, &own) == DELTAFS_OK)
        *has = answer;
    return error_of_thread(own.status, &own);
}

/* ---- Adding a file ---- */

/* Rank 0: the lines of the file, whose sequences come later. */
static int indexer_compose(deltafs_indexer *ix, const char *path, struct key_file *file, const struct file_tables *t,
                           struct bytes *out, struct error *e)
{
    size_t n = t->rows.count;
    struct source_entry s = {.table_count = n, .table = calloc(n, sizeof *s.table)};
    char *text = NULL, *real = NULL;
    int status =
        s.table ? index_paths_name(&ix->place, &ix->sources, path, &real, &s.path, e) : error_no_memory(e, n, "tables");

    if (status == DELTAFS_OK)
        status = key_file_identity(file, 1, &s.identity, e);
    /* Tables that were looked for in another state of the file are not this file's. */
    if (status == DELTAFS_OK && t->identity.kind && !source_identity_is_same(&s.identity, &t->identity))
        status = error_set(e, DELTAFS_ERR_CHANGED,
                           "%s: was written to while it was looked for what to index; index it again", path);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        s.table[i] = (struct source_table){
            .table = *t->rows.table[i], .has_padding = t->padding != OPTION_AUTO, .padding = t->padding};
    if (status == DELTAFS_OK)
        status = sources_format(&s, 1, SOURCE_TABLES | SOURCE_END, &text, e);
    if (status == DELTAFS_OK)
        status = bytes_append(out, text, strlen(text) + 1, e);
    free(text);
    free(real);
    free(s.table);
    free(s.path);
    return status;
}

#define SHARE_ROWS 4096 /* that are appended at once */

/* What is known of rows when their keys have been read. */
struct share_sum {
    uint64_t hash;
    uint64_t padding; /* rows that are left out */
};

struct share {
    deltafs_dir *dir; /* NULL: only the sum is wanted */
    const struct source_table *table;
    struct share_sum sum;
    deltafs_indexer *indexer;
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
    uint64_t group = first / s->group, next = (group + 1) * s->group; /* the row that the next group begins with */

    (void)e;
    s->sum.hash += hash_rows(first, key, n);
    s->indexer->rows_read += n;
    for (size_t i = 0; i < n; i++) {
        if (first + i == next) {
            group++;
            next += s->group;
        }
        if (source_table_is_padding(s->table, key[i])) {
            s->sum.padding++;
            continue;
        }
        if (!s->dir)
            continue;
        s->key[s->n] = key[i];
        put_u32(s->value + s->n * FILEINDEX_VALUE, (uint32_t)group);
        if (++s->n == SHARE_ROWS)
            share_flush(s);
    }
    return DELTAFS_OK;
}

/* This process's share of the rows: into `dir`, if that is given, and the sum of them. */
static int share_scan(deltafs_indexer *ix, deltafs_dir *dir, struct key_file *file, const char *path,
                      const struct source_table *source, const struct key_writer *writer, struct share_sum *sum,
                      struct error *e)
{
    const struct deltafs_table *t = &source->table;
    const struct deltafs_column *key = &t->column[t->key];
    uint64_t rank = ix->group.rank, ranks = ix->group.ranks, part = t->rows / ranks, rest = t->rows % ranks;
    uint64_t from = rank * part + (rank < rest ? rank : rest), end = from + part + (rank < rest);
    struct share *s = malloc(sizeof *s);

    if (!s)
        return error_no_memory(e, sizeof *s, "numbers of rows");
    s->dir = dir;
    s->indexer = ix;
    s->table = source;
    s->sum = (struct share_sum){0};
    s->group = source_table_group(source);
    s->n = 0;
    int status = writer && key->piece_count == 0 && !key->dataset
                     ? key_column_scan_written(file, key, t->rows, from, end, writer, path, share_append, s, e)
                     : key_column_scan(file, key, from, end, path, share_append, s, e);
    if (dir)
        share_flush(s);
    *sum = s->sum;
    free(s);
    return status;
}

/* Collective: the hash and the number of all ranks' rows. An error in *e becomes that of all. */
static int share_add_up(const deltafs_indexer *ix, struct share_sum sum, struct source_table *t, struct error *e)
{
    struct bytes all = {{0}, 0};
    int status = collective_gather(&ix->group, &sum, sizeof sum, &all, e);

    t->hash = 0;
    t->has_hash = status == DELTAFS_OK;
    t->records = t->table.rows;
    for (size_t at = 0; at < all.used && status == DELTAFS_OK; at += sizeof sum) {
        memcpy(&sum, all.buffer.bytes + at, sizeof sum);
        t->hash += sum.hash;
        t->records -= sum.padding;
    }
    buffer_fini(&all.buffer);
    return status;
}

/* Collective: one table, as an epoch. */
static int indexer_add_table(deltafs_indexer *ix, struct key_file *file, const char *path, struct source_table *t,
                             const struct key_writer *writer, struct error *e)
{
    struct error own = {0};
    struct share_sum sum = {0};

    own.status = share_scan(ix, ix->dir, file, path, t, writer, &sum, &own);
    if (own.status != DELTAFS_OK)
        deltafs_epoch_cancel(ix->dir, own.text);
    int status = deltafs_epoch_end(ix->dir, t->sequence);
    if (status == DELTAFS_ERR_CANCELLED)
        status = collective_agree(&ix->group, &own);
    else if (status != DELTAFS_OK)
        own = *deltafs_private_thread_error();
    else
        status = share_add_up(ix, sum, t, &own);
    if (status != DELTAFS_OK)
        *e = own;
    return status;
}

/* ---- Adding a file again ---- */

/* Rank 0: the table in the index that has the keys of `t`, and that none of the `n` other tables has been given; or one
 * that may have them, if those of `t` are not known. */
static const struct source_table *indexer_like(const deltafs_indexer *ix, const struct source_entry *old,
                                               const struct source_table *t, const struct source_table *others,
                                               size_t n)
{
    for (size_t i = 0; i < old->table_count; i++) {
        const struct source_table *o = &old->table[i];
        int is_free = o->has_hash && o->table.rows == t->table.rows && o->group == t->group &&
                      o->has_padding == t->has_padding && o->padding == t->padding &&
                      (o->sequence >= ix->first_own || !source_table_is_lost(o, &ix->manifest));
        for (size_t k = 0; k < n && is_free; k++)
            is_free = others[k].sequence != o->sequence;
        if (is_free && (!t->has_hash || t->hash == o->hash))
            return o;
    }
    return NULL;
}

/* Collective: the file has changed, and is indexed again. A table whose keys are those that the index has of one, in
 * the same rows, gets its epoch. If the file has not changed, the caller wants it to be indexed again. */
static int indexer_reuse(deltafs_indexer *ix, struct key_file *file, const char *path, struct source_entry *s,
                         const struct key_writer *writer, struct error *e)
{
    const struct source_entry *old = ix->group.rank == 0 ? sources_find(&ix->sources, s->path) : NULL;
    int status = DELTAFS_OK;

    if (old && source_identity_is_same(&old->identity, &s->identity))
        old = NULL;
    for (size_t i = 0; i < s->table_count && status == DELTAFS_OK; i++) {
        struct source_table *t = &s->table[i];
        struct share_sum sum = {0};
        uint64_t found[2] = {old && indexer_like(ix, old, t, s->table, i), 0};
        status = indexer_share(&ix->group, found, sizeof found, e);
        if (status != DELTAFS_OK || !found[0])
            continue;
        e->status = share_scan(ix, NULL, file, path, t, writer, &sum, e);
        status = share_add_up(ix, sum, t, e);
        if (status == DELTAFS_OK && old) {
            const struct source_table *same = indexer_like(ix, old, t, s->table, i);
            found[1] = same ? same->sequence : 0;
        }
        if (status == DELTAFS_OK)
            status = indexer_share(&ix->group, found, sizeof found, e);
        t->sequence = found[1];
    }
    return status;
}

/* ---- The whole file ---- */

int indexer_open_dir(deltafs_indexer *ix, struct error *e)
{
    struct error own = {0};
    uint64_t state[2];
    int is_made = ix->is_made, status = indexer_share(&ix->group, &is_made, sizeof is_made, e);

    if (status != DELTAFS_OK)
        return status;
    /* One that is there has as many as it has. */
    if (is_made)
        deltafs_private_options_reset(ix->options, OPTION_PARTITIONS, &own);
    status = ix->calls.open(ix->group.ctx, is_made, ix->place.path, ix->options, &ix->dir);
    if (error_of_call(status, e) != DELTAFS_OK)
        return status;
    /* What others have added by now, and the first line of SOURCES. */
    if (ix->group.rank == 0)
        e->status = indexer_read(ix, e);
    state[0] = ix->next;
    state[1] = ix->sources.version;
    status = indexer_share(&ix->group, state, sizeof state, e);
    if (status == DELTAFS_OK) {
        ix->next = state[0];
        ix->sources.version = state[1];
    } else {
        deltafs_close(ix->dir);
        ix->dir = NULL;
    }
    return status;
}

int indexer_write(deltafs_indexer *ix, const struct source_entry *s, size_t n, unsigned lines, struct error *e)
{
    char *text = NULL;
    int status = sources_format(s, n, lines, &text, e);

    if (status == DELTAFS_OK)
        status = sources_append(&ix->io, ix->place.sources, &ix->sources, text, ix->sync, e);
    free(text);
    return status;
}

/* Rank 0: from now on they count, or are forgotten. */
static int indexer_append(deltafs_indexer *ix, struct source_entry *s, size_t n, struct error *e)
{
    int status = indexer_write(ix, s, n, SOURCE_END, e);

    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        status = sources_add(&ix->sources, &s[i], e);
    return status;
}

static void entries_free(struct source_entry *s, size_t n)
{
    for (size_t i = 0; s && i < n; i++)
        source_fini(&s[i]);
    free(s);
}

/* A source that is to go, behind *n others. */
static int entries_forget(struct source_entry *s, size_t *n, const char *name, struct error *e)
{
    s[*n] = (struct source_entry){.path = strdup(name)};
    return s[*n].path ? ((*n)++, DELTAFS_OK) : error_no_memory(e, strlen(name), "a path");
}

/* Rank 0: a source was begun, and its indexing has failed. What the index had of it before stays. */
static void indexer_abandon(deltafs_indexer *ix, const char *name)
{
    struct source_entry gone = {.path = (char *)(uintptr_t)name};

    if (ix->sources.version > 2 && !sources_find(&ix->sources, name))
        indexer_write(ix, &gone, 1, SOURCE_END, error_ignored());
}

/* Rank 0: note the source, now that its epochs are committed. By another name it is forgotten, or all of its rows would
 * be found twice. */
static int indexer_note(deltafs_indexer *ix, const char *path, struct source_entry *s, struct error *e)
{
    struct source_entry *all = calloc(ix->sources.count + 1, sizeof *all);
    const struct source_entry *alias;
    const char *name = s->path; /* which stays where it is */
    char *real = path_resolve(path);
    size_t n = 1, from = 0;
    int status = all && real ? DELTAFS_OK : error_no_memory(e, ix->sources.count * sizeof *all, "a file's lines");

    while (status == DELTAFS_OK && (alias = indexer_alias(ix, s, real, &from)))
        status = entries_forget(all, &n, alias->path, e);
    if (status == DELTAFS_OK) {
        all[0] = *s;
        *s = (struct source_entry){0};
        status = indexer_append(ix, all, n, e);
    }
    if (status != DELTAFS_OK)
        indexer_abandon(ix, name);
    entries_free(all, n);
    free(real);
    return status;
}

/* Collective: the lines of the source's tables, which come before their epochs. */
static int indexer_begin(deltafs_indexer *ix, struct source_entry *s, struct error *e)
{
    unsigned lines = ix->sources.version > 2 ? SOURCE_BEGIN | SOURCE_TABLES : SOURCE_TABLES;

    for (size_t i = 0; i < s->table_count; i++)
        if (s->table[i].sequence == 0)
            s->table[i].sequence = ix->next++;
    if (ix->group.rank == 0)
        e->status = indexer_write(ix, s, 1, lines, e);
    return collective_agree(&ix->group, e);
}

/* Collective: the epochs of all tables of a source. */
static int indexer_add_epochs(deltafs_indexer *ix, uint64_t first, struct key_file *file, const char *path,
                              struct source_entry *s, const struct key_writer *writer, struct error *e)
{
    struct error own = {0};
    int status = DELTAFS_OK;

    /* Those before `first` are in the index. */
    for (size_t i = 0; i < s->table_count && status == DELTAFS_OK; i++) {
        if (s->table[i].sequence < first)
            continue;
        status = indexer_add_table(ix, file, path, &s->table[i], writer, e);
        uint64_t rows = s->table[i].records, records = status == DELTAFS_OK ? dir_last_records(ix->dir) : rows;
        /* An epoch that has not each row once is not used: no line of SOURCES names it. */
        if (ix->group.rank == 0 && own.status == DELTAFS_OK && records != rows)
            error_set(&own, DELTAFS_ERR_CHANGED,
                      "%s: %" PRIu64 " keys were found in its %" PRIu64 " rows, as if it had been written to "
                      "meanwhile; index it again",
                      path, records, rows);
    }
    if (status != DELTAFS_OK)
        return status;
    *e = own;
    return collective_agree(&ix->group, e);
}

/* Collective: all tables of a source whose lines all ranks have. *indexed gets the number of their rows, added. */
static int indexer_add_tables(deltafs_indexer *ix, struct key_file *file, const char *path, struct source_entry *s,
                              const struct key_writer *writer, uint64_t *indexed, struct error *e)
{
    int status = ix->dir ? DELTAFS_OK : indexer_open_dir(ix, e);
    uint64_t first = ix->next, rows = 0;

    for (size_t i = 0; i < s->table_count; i++) {
        source_table_choose_group(&s->table[i], ix->sources.version);
        rows += s->table[i].table.rows;
    }
    ix->rows_read = 0;
    ix->rows = rows / ix->group.ranks;
    if (status == DELTAFS_OK)
        status = indexer_reuse(ix, file, path, s, writer, e);
    if (status == DELTAFS_OK)
        status = indexer_begin(ix, s, e);
    if (status != DELTAFS_OK)
        return status;
    status = indexer_add_epochs(ix, first, file, path, s, writer, e);
    ix->rows = ix->rows_read = 0;
    if (status != DELTAFS_OK) {
        if (ix->group.rank == 0)
            indexer_abandon(ix, s->path);
        return status;
    }
    for (size_t i = 0; i < s->table_count; i++)
        *indexed += s->table[i].records;
    if (ix->group.rank == 0)
        e->status = indexer_note(ix, path, s, e);
    return collective_agree(&ix->group, e);
}

/* What rank 0 broadcasts about the file. */
struct indexed_file {
    char kind;
    char path[PATH_MAX];
};

/* Rank 0. */
static int indexer_look_at(deltafs_indexer *ix, const char *path, const struct file_tables *t, struct indexed_file *out,
                           struct error *e)
{
    if (!path || t->rows.count == 0 || strlen(path) >= sizeof out->path)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_indexer_add: path and tables must be given");
    snprintf(out->path, sizeof out->path, "%s", path);
    return key_file_kind(&ix->io, path, &out->kind, e);
}

/* Collective, with the open file. */
static int indexer_add_open(deltafs_indexer *ix, const char *path, struct key_file *file, const struct file_tables *t,
                            uint64_t *indexed, struct error *e)
{
    struct source_entry s = {0};
    struct bytes text = {{0}, 0};

    if (ix->group.rank == 0)
        e->status = indexer_compose(ix, path, file, t, &text, e);
    int status = collective_broadcast(&ix->group, &text, e);
    if (status == DELTAFS_OK && e->status == DELTAFS_OK)
        e->status = source_parse((char *)text.buffer.bytes, path, &s, e);
    if (status == DELTAFS_OK)
        status = collective_agree(&ix->group, e);
    if (status == DELTAFS_OK)
        status = indexer_add_tables(ix, file, path, &s, t->writer, indexed, e);
    source_fini(&s);
    buffer_fini(&text.buffer);
    return status;
}

int indexer_add(deltafs_indexer *ix, const char *path, const struct file_tables *t, uint64_t *indexed, struct error *e)
{
    struct key_file file = {.kind = 0};
    struct indexed_file what = {.kind = '-'};

    if (ix->group.rank == 0 && e->status == DELTAFS_OK)
        e->status = indexer_look_at(ix, path, t, &what, e);
    int status = indexer_share(&ix->group, &what, sizeof what, e);
    if (status != DELTAFS_OK)
        return status;
    e->status = key_file_open(&file, &ix->io, what.path, what.kind, ix->calls.open_logical, ix->group.ctx, e);
    file.hdf5 = deltafs_private_options_text(ix->options, OPTION_HDF5);
    if (e->status == DELTAFS_OK && key_file_is_incomplete(&file))
        error_set(e, DELTAFS_ERR_DAMAGED,
                  "%s: bytes of it are lost, so it is not indexed; 'deltafs verify' names what is missing", what.path);
    status = collective_agree(&ix->group, e);
    if (status == DELTAFS_OK)
        status = indexer_add_open(ix, what.path, &file, t, indexed, e);
    key_file_close(&file);
    return status;
}

int deltafs_indexer_add(deltafs_indexer *ix, const char *path, size_t n, const struct deltafs_table *const *table)
{
    struct file_tables t = {.rows = {table ? n : 0, (struct deltafs_table **)(uintptr_t)table}};
    struct error own = {0};
    uint64_t indexed = 0;

    if (!ix)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID, "deltafs_indexer_add: no handle");
    t.padding = deltafs_private_options_number(ix->options, OPTION_PADDING);
    if (path && strcmp(path, ix->expected) == 0)
        t.identity = ix->is;
    ix->expected[0] = '\0';
    return error_of_thread(indexer_add(ix, path, &t, &indexed, &own), &own);
}

int deltafs_indexer_progress(const deltafs_indexer *ix, double *share)
{
    if (!ix || !share)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_indexer_progress: the handle and share must be given");
    uint64_t all = ix->rows, read = ix->rows_read;
    *share = read < all ? (double)read / (double)all : all > 0;
    return DELTAFS_OK;
}

/* ---- Forgetting files ---- */

static int indexer_has_not(const deltafs_indexer *ix, const char *path, struct error *e)
{
    return error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: is not indexed in %s", path, ix->place.path);
}

/* Rank 0: the source of this name; or, if there is none, those whose paths lead to this file. */
static int indexer_name_one(deltafs_indexer *ix, const char *path, struct source_entry *out, size_t *n, struct error *e)
{
    char *real = NULL, *name = NULL;
    int status = index_paths_name(&ix->place, &ix->sources, path, &real, &name, e);
    int is_named = status == DELTAFS_OK && sources_find(&ix->sources, name);

    if (is_named)
        status = entries_forget(out, n, name, e);
    for (size_t i = 0; i < ix->sources.count && status == DELTAFS_OK && !is_named; i++)
        if (source_is_at(ix, &ix->sources.source[i], real))
            status = entries_forget(out, n, ix->sources.source[i].path, e);
    free(real);
    free(name);
    return status == DELTAFS_OK && *n == 0 ? indexer_has_not(ix, path, e) : status;
}

/* Whether the file of a source has gone; it is an error if it cannot be looked for. */
static int source_has_gone(deltafs_indexer *ix, const char *name, int *has_gone, struct error *e)
{
    char *path = index_paths_path_out(&ix->place, name), kind;
    int status = path ? key_file_kind(&ix->io, path, &kind, e) : error_no_memory(e, strlen(name), "a path");

    free(path);
    *has_gone = status == DELTAFS_ERR_NOT_FOUND;
    /* It may have become something else, which is there. */
    return *has_gone || status == DELTAFS_ERR_NOT_DELTAFS ? DELTAFS_OK : status;
}

/* Rank 0: the sources whose files have gone. */
static int indexer_name_gone(deltafs_indexer *ix, struct source_entry *out, size_t *n, struct error *e)
{
    int status = DELTAFS_OK, has_gone;

    for (size_t i = 0; i < ix->sources.count && status == DELTAFS_OK; i++) {
        status = source_has_gone(ix, ix->sources.source[i].path, &has_gone, e);
        if (status == DELTAFS_OK && has_gone)
            status = entries_forget(out, n, ix->sources.source[i].path, e);
    }
    if (status == DELTAFS_OK && *n > 0 && *n == ix->sources.count)
        return error_set(e, DELTAFS_ERR_CHANGED,
                         "%s: none of its %zu files is there, as if it had been moved without them, or "
                         "their file system were not mounted; nothing is forgotten: name the files, or remove the "
                         "index",
                         ix->place.path, *n);
    return status;
}

/* Rank 0, while the index is this job's: drop those that another job has forgotten since, or that are there again. */
static int indexer_forget_names(deltafs_indexer *ix, struct source_entry *gone, size_t *n, int is_any, struct error *e)
{
    size_t kept = 0;
    int status = DELTAFS_OK;

    for (size_t i = 0; i < *n; i++) {
        int goes = sources_find(&ix->sources, gone[i].path) != NULL;
        if (goes && is_any && status == DELTAFS_OK)
            status = source_has_gone(ix, gone[i].path, &goes, e);
        struct source_entry s = gone[i];
        gone[i] = (struct source_entry){0};
        if (goes)
            gone[kept++] = s;
        else
            source_fini(&s);
    }
    *n = kept;
    return status == DELTAFS_OK ? indexer_append(ix, gone, kept, e) : status;
}

/* Collective: *count gets how many. Rank 0 has room for all names in `gone`. */
static int indexer_forget(deltafs_indexer *ix, const char *path, struct source_entry *gone, size_t *n, struct error *e)
{
    uint64_t wanted;

    if (ix->group.rank == 0 && e->status == DELTAFS_OK && !ix->is_made)
        error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: there is no index of keys", ix->place.path);
    else if (ix->group.rank == 0 && e->status == DELTAFS_OK)
        e->status = path ? indexer_name_one(ix, path, gone, n, e) : indexer_name_gone(ix, gone, n, e);
    wanted = *n;
    int status = indexer_share(&ix->group, &wanted, sizeof wanted, e);
    if (status != DELTAFS_OK || wanted == 0)
        return status;
    if (!ix->dir)
        status = indexer_open_dir(ix, e);
    if (status != DELTAFS_OK)
        return status;
    if (ix->group.rank == 0)
        e->status = indexer_forget_names(ix, gone, n, !path, e);
    if (ix->group.rank == 0 && e->status == DELTAFS_OK && path && *n == 0)
        indexer_has_not(ix, path, e);
    wanted = *n;
    status = indexer_share(&ix->group, &wanted, sizeof wanted, e);
    *n = (size_t)wanted;
    return status;
}

int deltafs_indexer_forget(deltafs_indexer *ix, const char *path, uint64_t *forgotten)
{
    struct error own = {0};
    size_t n = 0;

    if (!ix || !forgotten)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_indexer_forget: the handle and forgotten must be given");
    size_t room = ix->sources.count;
    struct source_entry *gone = calloc(room + 1, sizeof *gone);
    if (!gone)
        error_no_memory(&own, room * sizeof *gone, "names");
    int status = indexer_forget(ix, path, gone, &n, &own);
    *forgotten = status == DELTAFS_OK ? n : 0;
    entries_free(gone, ix->group.rank == 0 ? room : 0);
    return error_of_thread(status, &own);
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
