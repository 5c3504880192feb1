/* Compaction: what of an index is still used is copied to a new one beside it, and the two exchange their names. Each
 * table keeps its lines and the number of its epoch, so the answers stay the same, in the same order, and no file that
 * is indexed is needed.
 *
 * The old index is this job's alone, by its lease, from before it is read until it is removed. The new one is on
 * storage before the names are exchanged, which happens at once. So whatever ends the job, there is one whole index at
 * its path, and what is left beside it (INDEX.compact) is not needed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "directory/dir.h"
#include "directory/read/reader.h"
#include "directory/write/writer.h"
#include "fileindex/fileindex_format.h"
#include "fileindex/fileindex_lookup.h"
#include "fileindex/indexer.h"
#include "io/io_format.h"
#include "io/lease.h"

#define NEXT ".compact"

struct compaction {
    deltafs_indexer *old, *next;
    deltafs_fileindex *from; /* the old one, open for reading */
    struct lease lease;      /* of the old one, on rank 0 */
    int is_ours;             /* on rank 0: what is at `beside` is to be removed */
    uint32_t partitions;
    size_t tables;
    uint64_t stored;     /* bytes of the old one; on rank 0 */
    char path[PATH_MAX]; /* of the index's folder itself, if a link leads to it */
    char beside[PATH_MAX + sizeof NEXT];
};

/* Rank 0: lock the index. */
static int compact_lock(struct compaction *c, struct error *e)
{
    deltafs_indexer *ix = c->old;
    char *real = realpath(ix->place.path, NULL);
    struct stat st;
    int status = DELTAFS_OK;

    if (!real)
        return error_system(e, errno, "find", ix->place.path);
    if (strlen(real) + sizeof NEXT > sizeof c->path)
        status = error_system(e, ENAMETOOLONG, "compact", real);
    else
        snprintf(c->path, sizeof c->path, "%s", real);
    free(real);
    if (status == DELTAFS_OK)
        status =
            lease_take(&c->lease, &ix->io, c->path, deltafs_private_options_number(ix->options, OPTION_LEASE), 0, e);
    snprintf(c->beside, sizeof c->beside, "%s" NEXT, c->path);
    if (status == DELTAFS_OK && lstat(c->beside, &st) == 0)
        status = error_set(e, DELTAFS_ERR_EXISTS,
                           "%s: exists already; if it is left of a compaction that did not end, remove it (rm -r)",
                           c->beside);
    return status;
}

/* Whether the old index is whole. What is missing from it must not be missed without a word. */
static int compact_check(struct compaction *c, const struct manifest *m, struct error *e)
{
    deltafs_fileindex *k = c->from;

    if (!m->is_closed)
        return error_set(e, DELTAFS_ERR_BUSY, "%s: another job has written it just now; try again", c->path);
    *e = k->lines;
    if (e->status == DELTAFS_OK)
        keys_check_finished(k, m, e);
    if (e->status == DELTAFS_OK && k->entry_count == 0)
        error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: no file is indexed here; to free its space, remove it (rm -r)",
                  c->path);
    for (size_t i = 0; i < k->entry_count && e->status == DELTAFS_OK; i++)
        if (k->entry[i].is_lost)
            keys_entry_lost(k, &k->entry[i], e);
    return e->status;
}

/* Collective: lock the old index, and open it for reading. */
static int compact_open(struct compaction *c, struct error *e)
{
    const struct collective *group = &c->old->group;
    struct reader *reader;
    struct error *why;

    if (group->rank == 0)
        e->status = compact_lock(c, e);
    int status = indexer_share(group, c->path, sizeof c->path, e);
    if (status != DELTAFS_OK)
        return status;
    snprintf(c->beside, sizeof c->beside, "%s" NEXT, c->path);
    status = error_of_call(deltafs_fileindex_open(c->path, c->old->options, &c->from), e);
    if (status == DELTAFS_OK)
        status = error_of_call(dir_reader(c->from->dir, "deltafs_indexer_compact", NULL, &reader, &why), e);
    if (status == DELTAFS_OK) {
        c->partitions = reader->manifest.partitions;
        c->tables = c->from->entry_count;
        status = compact_check(c, &reader->manifest, e);
    }
    if (status == DELTAFS_OK && group->rank == 0)
        error_of_call(deltafs_bytes_stored(c->from->dir, &c->stored), e);
    return collective_agree(group, e);
}

/* Collective: create the new index. */
static int compact_create(struct compaction *c, struct error *e)
{
    struct collective group = c->old->group;
    char partitions[16];

    group.destroy = NULL;
    int status =
        deltafs_private_indexer_open_group(c->beside, NULL, c->old->options, &group, &c->old->calls, &c->next, e);
    if (status != DELTAFS_OK)
        return status;
    snprintf(partitions, sizeof partitions, "%" PRIu32, c->partitions);
    c->next->sync = 1;
    status = deltafs_options_set(c->next->options, "sync", "close");
    if (status == DELTAFS_OK)
        status = deltafs_options_set(c->next->options, "partitions", partitions);
    error_of_call(status, e);
    status = collective_agree(&group, e);
    if (status != DELTAFS_OK)
        return status;
    status = indexer_open_dir(c->next, e);
    c->is_ours = status != DELTAFS_ERR_EXISTS;
    return status;
}

/* ---- Copying ---- */

#define COPY_RECORDS 4096 /* that are appended at once */

struct copy {
    deltafs_dir *to;
    size_t n;
    uint64_t key[COPY_RECORDS];
    uint8_t value[COPY_RECORDS * FILEINDEX_VALUE];
};

/* An error here is returned at the epoch's end. */
static void copy_flush(struct copy *k)
{
    deltafs_append_many(k->to, k->n, k->key, sizeof k->key[0], k->value, FILEINDEX_VALUE, FILEINDEX_VALUE);
    k->n = 0;
}

static int copy_record(const struct deltafs_record *r, void *arg)
{
    struct copy *k = arg;

    k->key[k->n] = r->key;
    memcpy(k->value + k->n * FILEINDEX_VALUE, r->value, FILEINDEX_VALUE);
    if (++k->n == COPY_RECORDS)
        copy_flush(k);
    return 0;
}

/* This rank's share of an epoch. */
static int copy_share(struct compaction *c, uint64_t sequence, struct error *e)
{
    const struct collective *group = &c->old->group;
    struct copy *k = malloc(sizeof *k);
    int status = DELTAFS_OK;

    if (!k)
        return error_no_memory(e, sizeof *k, "records");
    k->to = c->next->dir;
    k->n = 0;
    for (uint32_t p = group->rank; p < c->partitions && status == DELTAFS_OK; p += group->ranks)
        status = error_of_call(
            deltafs_scan_partition(c->from->dir, p, &(struct deltafs_range){sequence, sequence}, copy_record, k, NULL),
            e);
    copy_flush(k);
    free(k);
    return status;
}

/* Collective: a table's epoch. */
static int copy_table(struct compaction *c, const struct source_table *t, struct error *e)
{
    const struct collective *group = &c->old->group;
    struct error own = {0};

    if (group->rank == 0)
        lease_renew(&c->lease, NULL, &own);
    if (own.status == DELTAFS_OK)
        copy_share(c, t->sequence, &own);
    if (own.status != DELTAFS_OK)
        deltafs_epoch_cancel(c->next->dir, own.text);
    int status = deltafs_epoch_end(c->next->dir, t->sequence);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_CANCELLED)
        return error_of_call(status, e);
    if (status == DELTAFS_OK && group->rank == 0 && dir_last_records(c->next->dir) != t->records)
        error_set(&own, DELTAFS_ERR_DAMAGED,
                  "%s: epoch %" PRIu64 " has %" PRIu64 " records, of which %" PRIu64 " are found; run deltafs verify",
                  c->path, t->sequence, t->records, dir_last_records(c->next->dir));
    *e = own;
    return collective_agree(group, e);
}

/* Collective: all that is used, in the order of the epochs. */
static int compact_copy(struct compaction *c, struct error *e)
{
    const deltafs_fileindex *k = c->from;
    int status = DELTAFS_OK;

    for (size_t i = 0; i < k->entry_count && status == DELTAFS_OK; i++)
        status = copy_table(c, k->by_sequence[i]->table, e);
    if (status != DELTAFS_OK)
        return status;
    for (size_t i = 0; i < k->sources.count; i++)
        for (size_t t = 0; t < k->sources.source[i].table_count; t++) {
            struct source_table *table = &k->sources.source[i].table[t];
            table->group = source_table_group(table); /* of an index of the first version, too */
        }
    if (c->old->group.rank == 0)
        e->status =
            indexer_write(c->next, k->sources.source, k->sources.count, SOURCE_BEGIN | SOURCE_TABLES | SOURCE_END, e);
    return collective_agree(&c->old->group, e);
}

/* ---- The exchange, by rank 0 ---- */

/* Whether the new index has what the old one has. *stored gets its bytes. */
static int next_check(struct compaction *c, uint64_t *stored, struct error *e)
{
    deltafs_fileindex *k = NULL;
    int status = error_of_call(deltafs_fileindex_open(c->beside, c->old->options, &k), e);

    if (status != DELTAFS_OK)
        return status;
    *e = k->lines;
    for (size_t i = 0; i < k->entry_count && e->status == DELTAFS_OK; i++)
        if (k->entry[i].is_lost)
            keys_entry_lost(k, &k->entry[i], e);
    if (e->status == DELTAFS_OK && k->entry_count != c->tables)
        error_damaged(e, k->place.sources, 0, "it names %zu tables instead of %zu", k->entry_count, c->tables);
    if (e->status == DELTAFS_OK)
        error_of_call(deltafs_bytes_stored(k->dir, stored), e);
    deltafs_fileindex_close(k);
    return e->status;
}

/* Remove the index that is at `beside`, of which no more than a part may be there. */
static int beside_remove(struct compaction *c, struct error *e)
{
    const struct writer_config config = {.path = c->beside, .partitions = c->partitions};
    struct lease none = {.file.fd = -1};
    struct io *io = &c->old->io;
    char path[PATH_ROOM];

    io->ops->unlink(io->ctx, io_path_in(path, c->beside, SOURCES_NAME));
    deltafs_private_writer_remove_container(&config, &none);
    int status = io_rmdir(io, c->beside, e);
    return status == DELTAFS_ERR_NOT_FOUND ? (e->status = DELTAFS_OK) : status;
}

static int next_exchange(struct compaction *c, struct error *e)
{
    struct io *io = &c->old->io;
    char path[PATH_ROOM];
    int status = lease_renew(&c->lease, NULL, e);

    if (status != DELTAFS_OK)
        return status;
    c->is_ours = 0;
    status = io_exchange(io, c->path, c->beside, e);
    if (status != DELTAFS_OK)
        return error_set(e, status,
                         "%s; the index is as it was, and the compacted one is complete in %s: while no program uses "
                         "the index, put that in its place (mv), or remove it (rm -r)",
                         e->text, c->beside);
    /* A job that has opened the old one's lease by now finds it removed, and opens the new one's. */
    io->ops->unlink(io->ctx, io_path_in(path, c->beside, LEASE_NAME));
    io_file_close(&c->lease.file, error_ignored());
    status = io_sync_parent(io, c->path, e);
    if (status == DELTAFS_OK)
        status = beside_remove(c, e);
    return status == DELTAFS_OK
               ? status
               : error_set(e, status, "%s; %s is compacted, and what is in %s is not needed: remove it", e->text,
                           c->path, c->beside);
}

/* Rank 0, when both are closed: exchange them, or remove the new one. */
static void compact_end(struct compaction *c, uint64_t *freed, struct error *e)
{
    uint64_t stored = 0;

    if (e->status == DELTAFS_OK && next_check(c, &stored, e) == DELTAFS_OK)
        next_exchange(c, e);
    if (c->is_ours)
        beside_remove(c, error_ignored());
    lease_drop(&c->lease, error_ignored());
    *freed = e->status == DELTAFS_OK && c->stored > stored ? c->stored - stored : 0;
}

/* Collective. */
static int compact(struct compaction *c, uint64_t *freed, struct error *e)
{
    const struct collective *group = &c->old->group;
    int status = compact_open(c, e);

    if (status == DELTAFS_OK)
        status = compact_create(c, e);
    if (status == DELTAFS_OK)
        status = compact_copy(c, e);
    /* Some network file systems cannot remove a folder while files in it are open. */
    deltafs_fileindex_close(c->from);
    int closed = deltafs_indexer_close(c->next);
    if (status == DELTAFS_OK)
        error_of_call(closed, e);
    if (group->rank == 0)
        compact_end(c, freed, e);
    return indexer_share(group, freed, sizeof *freed, e);
}

int deltafs_indexer_compact(deltafs_indexer *ix, uint64_t *freed)
{
    struct compaction c = {.old = ix, .lease.file.fd = -1};
    struct error own = {0};

    if (!ix || !freed)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_indexer_compact: the handle and freed must be given");
    if (ix->group.rank == 0 && !ix->is_made)
        error_set(&own, DELTAFS_ERR_NOT_FOUND, "%s: there is no index of keys", ix->place.path);
    *freed = 0;
    int status = collective_agree(&ix->group, &own);
    /* What a job that died has left of the index is discarded. */
    if (status == DELTAFS_OK && !ix->dir)
        status = indexer_open_dir(ix, &own);
    if (status == DELTAFS_OK) {
        status = error_of_call(deltafs_close(ix->dir), &own);
        ix->dir = NULL;
    }
    if (status == DELTAFS_OK)
        status = compact(&c, freed, &own);
    return error_of_thread(status, &own);
}
