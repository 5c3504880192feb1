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
#include <unistd.h>
#include "directory/dir.h"
#include "directory/format/directory_format.h"
#include "directory/format/partition.h"
#include "directory/read/reader.h"
#include "directory/write/writer.h"
#include "fileindex/fileindex_format.h"
#include "fileindex/fileindex_lookup.h"
#include "fileindex/indexer.h"
#include "io/io_format.h"
#include "io/lease.h"

struct compaction {
    deltafs_indexer *old, *next;
    deltafs_fileindex *from; /* the old one, open for reading */
    struct lease lease;      /* of the old one, on rank 0 */
    int is_ours;             /* on rank 0: what is at `beside` is to be removed */
    uint32_t partitions;
    size_t tables;
    uint64_t stored;     /* bytes of the old one; on rank 0 */
    char path[PATH_MAX]; /* of the index's folder itself, if a link leads to it */
    char beside[PATH_MAX + sizeof FILEINDEX_NEXT];
};

/* ---- The old index ---- */

/* Rank 0: find it, and whether what a job that died has left in it must be discarded. Changes nothing. */
static int compact_find(struct compaction *c, int *is_left, struct error *e)
{
    deltafs_indexer *ix = c->old;
    struct stat st;
    int status = ix->dir ? DELTAFS_OK : indexer_read(ix, e);

    if (status != DELTAFS_OK)
        return status;
    if (!ix->is_made)
        return error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: there is no index of keys", ix->place.path);
    *is_left = !ix->dir && !ix->manifest.is_closed;
    char *real = realpath(ix->place.path, NULL);
    if (!real)
        return error_system(e, errno, "find", ix->place.path);
    if (strlen(real) + sizeof FILEINDEX_NEXT > sizeof c->path)
        status = error_system(e, ENAMETOOLONG, "compact", real);
    else
        snprintf(c->path, sizeof c->path, "%s", real);
    free(real);
    snprintf(c->beside, sizeof c->beside, "%s" FILEINDEX_NEXT, c->path);
    if (status == DELTAFS_OK && lstat(c->beside, &st) == 0)
        status = error_set(e, DELTAFS_ERR_EXISTS,
                           "%s: exists already; if it is left of a compaction that did not end, remove it (rm -r)",
                           c->beside);
    return status;
}

/* Collective: find it, and close it if this handle has it open. */
static int compact_begin(struct compaction *c, struct error *e)
{
    deltafs_indexer *ix = c->old;
    int is_left = 0;

    if (ix->group.rank == 0)
        e->status = compact_find(c, &is_left, e);
    int status = indexer_share(&ix->group, &is_left, sizeof is_left, e);
    if (status == DELTAFS_OK)
        status = indexer_share(&ix->group, c->path, sizeof c->path, e);
    snprintf(c->beside, sizeof c->beside, "%s" FILEINDEX_NEXT, c->path);
    if (status == DELTAFS_OK && is_left)
        status = indexer_open_dir(ix, e);
    if (status == DELTAFS_OK) {
        status = error_of_call(deltafs_close(ix->dir), e);
        ix->dir = NULL;
    }
    return status;
}

/* Whether an index is whole. What is missing from it must not be missed without a word. */
static int compact_check(const deltafs_fileindex *k, const struct manifest *m, struct error *e)
{
    if (!m->is_closed)
        return error_set(e, DELTAFS_ERR_BUSY, "%s: another job has written it just now; try again", k->place.path);
    *e = k->lines;
    if (e->status == DELTAFS_OK)
        keys_check_finished(k, m, e);
    if (e->status == DELTAFS_OK && k->entry_count == 0)
        error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: no file is indexed here; to free its space, remove it (rm -r)",
                  k->place.path);
    for (size_t i = 0; i < k->entry_count && e->status == DELTAFS_OK; i++)
        if (k->entry[i].is_lost)
            keys_entry_lost(k, &k->entry[i], e);
    return e->status;
}

/* Open an index that must be whole. *k is to be closed also after an error. */
static int compact_open_whole(const struct compaction *c, const char *path, deltafs_fileindex **k,
                              struct reader **reader, struct error *e)
{
    struct error *why;
    int status = error_of_call(deltafs_fileindex_open(path, c->old->options, k), e);

    if (status == DELTAFS_OK)
        status = error_of_call(dir_reader((*k)->dir, "deltafs_indexer_compact", NULL, reader, &why), e);
    return status == DELTAFS_OK ? compact_check(*k, &(*reader)->manifest, e) : status;
}

/* The first of this rank's partitions, or of another's. It has them in the new index, too. */
static uint32_t compact_first(const struct compaction *c, uint32_t rank)
{
    return partition_first((int)rank, c->partitions, (int)c->old->group.ranks);
}

/* Collective: lock the old index, and open it for reading. */
static int compact_open(struct compaction *c, struct error *e)
{
    const struct collective *group = &c->old->group;
    struct reader *reader;

    if (group->rank == 0)
        e->status = lease_take(&c->lease, &c->old->io, c->path,
                               deltafs_private_options_number(c->old->options, OPTION_LEASE), 0, e);
    if (group->rank == 0 && e->status == DELTAFS_OK)
        e->status = dir_check_value_indexes(c->path, c->old->options, e); /* which are removed at the end */
    int status = collective_agree(group, e);
    if (status != DELTAFS_OK)
        return status;
    status = compact_open_whole(c, c->path, &c->from, &reader, e);
    if (status == DELTAFS_OK) {
        c->partitions = reader->manifest.partitions;
        c->tables = c->from->entry_count;
        status = reader_keep(reader, compact_first(c, group->rank + 1) - compact_first(c, group->rank), e);
    }
    if (status == DELTAFS_OK && group->rank == 0)
        error_of_call(deltafs_bytes_stored(c->from->dir, &c->stored), e);
    status = collective_agree(group, e);
    /* The ranks take the same steps. On a network file system one may still see what SOURCES was before. */
    uint64_t n = c->tables, last = status == DELTAFS_OK ? c->from->sources.last : 0, most[] = {n, ~n, last, ~last};
    if (status == DELTAFS_OK)
        status = collective_max(group, most, 4, e);
    if (status == DELTAFS_OK && (most[0] != ~most[1] || most[2] != ~most[3]))
        status = error_set(e, DELTAFS_ERR_BUSY,
                           "%s: was written just now, and not all ranks see that yet; run the command again", c->path);
    return status;
}

/* ---- The new index ---- */

#define NAME_ROOM 64 /* of what is in an index */

/* Give what is at `name` in the new index group and mode of the old one's, and the owner of the old index. */
static int keep_access(const struct compaction *c, const char *name, struct error *e)
{
    char from[sizeof c->path + NAME_ROOM], to[sizeof c->beside + NAME_ROOM];
    struct stat index, was, is;
    int status = DELTAFS_OK;

    snprintf(from, sizeof from, "%s%s", c->path, name);
    snprintf(to, sizeof to, "%s%s", c->beside, name);
    int fd = open(to, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &is) != 0 || stat(c->path, &index) != 0)
        status = error_system(e, errno, "open", to);
    else if (stat(from, &was) != 0) /* MANIFEST.copy may be missing */
        status = errno == ENOENT ? DELTAFS_OK : error_system(e, errno, "find", from);
    else if ((is.st_uid != index.st_uid || is.st_gid != was.st_gid) && fchown(fd, index.st_uid, was.st_gid) != 0)
        status = error_set(e, DELTAFS_ERR_IO,
                           "%s: cannot get the owner %lu and the group %lu of the index (%s); compact it as its owner, "
                           "who must be in that group",
                           to, (unsigned long)index.st_uid, (unsigned long)was.st_gid, strerror(errno));
    else if (((is.st_mode ^ was.st_mode) & 07777) != 0 && fchmod(fd, was.st_mode & 07777) != 0)
        status = error_system(e, errno, "set the mode of", to);
    if (fd >= 0)
        close(fd);
    return status;
}

/* Rank 0: all of the new index. */
static int keep_access_of_all(const struct compaction *c, struct error *e)
{
    static const char *const names[] = {"", "/" MANIFEST_NAME, "/" MANIFEST_COPY_NAME, "/" SOURCES_NAME};
    char name[NAME_ROOM];
    int status = DELTAFS_OK;

    for (size_t i = 0; i < sizeof names / sizeof names[0] && status == DELTAFS_OK; i++)
        status = keep_access(c, names[i], e);
    for (uint32_t b = 0; b < BUCKET_COUNT && b < c->partitions && status == DELTAFS_OK; b++) {
        snprintf(name, sizeof name, "/" BUCKET_NAME, b);
        status = keep_access(c, name, e);
    }
    for (uint32_t p = 0; p < c->partitions && status == DELTAFS_OK; p++) {
        snprintf(name, sizeof name, "/" LOG_NAME_DATA, p % BUCKET_COUNT, p);
        status = keep_access(c, name, e);
        snprintf(name, sizeof name, "/" LOG_NAME_INDEX, p % BUCKET_COUNT, p);
        if (status == DELTAFS_OK)
            status = keep_access(c, name, e);
    }
    return status;
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
    if (status != DELTAFS_OK)
        return status;
    /* At once: what nobody else may read is not to be read from here, and what cannot be kept is known now. */
    if (group.rank == 0)
        e->status = keep_access(c, "", e);
    return collective_agree(&group, e);
}

/* ---- Copying ---- */

/* An error here is returned at the epoch's end. */
static int copy_record(const struct deltafs_record *r, void *to)
{
    return deltafs_append(to, r->key, r->value, r->size);
}

/* This rank's share of an epoch. */
static int copy_share(struct compaction *c, uint64_t sequence, struct error *e)
{
    const struct deltafs_range epoch = {sequence, sequence};
    uint32_t end = compact_first(c, c->old->group.rank + 1);
    int status = DELTAFS_OK;

    for (uint32_t p = compact_first(c, c->old->group.rank); p < end && status == DELTAFS_OK; p++)
        status = error_of_call(deltafs_scan_partition(c->from->dir, p, &epoch, copy_record, c->next->dir, NULL), e);
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
    struct reader *reader;
    int status = compact_open_whole(c, c->beside, &k, &reader, e);

    if (status == DELTAFS_OK && k->entry_count != c->tables)
        status = error_damaged(e, k->place.sources, 0, "it names %zu tables instead of %zu", k->entry_count, c->tables);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_bytes_stored(k->dir, stored), e);
    deltafs_fileindex_close(k);
    return status;
}

/* Remove the index that is at `beside`, of which no more than a part may be there. */
static int beside_remove(struct compaction *c, struct error *e)
{
    const struct writer_config config = {.path = c->beside, .partitions = c->partitions};
    struct lease none = {.file.fd = -1};
    struct io *io = &c->old->io;
    char path[PATH_ROOM];

    /* Indexes by value are those of the old directory: their attributes say so. */
    int status = dir_remove_value_indexes(c->beside, c->old->options, e);
    if (status != DELTAFS_OK)
        return status;
    io_rmdir(io, io_path_in(path, c->beside, VALUE_INDEX_FOLDER), error_ignored());
    io->ops->unlink(io->ctx, io_path_in(path, c->beside, SOURCES_NAME));
    deltafs_private_writer_remove_container(&config, &none);
    status = io_rmdir(io, c->beside, e);
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

    if (e->status == DELTAFS_OK && next_check(c, &stored, e) == DELTAFS_OK && keep_access_of_all(c, e) == DELTAFS_OK)
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
    *freed = 0;
    int status = compact_begin(&c, &own);
    if (status == DELTAFS_OK)
        status = compact(&c, freed, &own);
    return error_of_thread(status, &own);
}
