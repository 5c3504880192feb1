#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/coding.h"
#include "base/uuid.h"
#include "directory/dir.h"
#include "directory/format/directory_format.h"
#include "directory/format/manifest.h"
#include "directory/serial.h"
#include "io/io_format.h"
#include "namespace/own_table.h"
#include "namespace/view.h"

/* So many tables are asked whether somebody writes them: more would take a job of many writers too long. */
#define TRIES_MAX 4

#define COPY_MEMORY (16u << 20)

/* ---- Options ---- */

static int set_option(deltafs_options *o, const char *name, const char *value, struct error *e)
{
    return error_of_call(deltafs_options_set(o, name, value), e);
}

/* The options of both directories: those of the caller, but for what is the same in every table. */
static int own_options(struct own_table *own, const deltafs_options *given, uint64_t memory, struct error *e)
{
    static const enum option_id not_used[] = {OPTION_COMMIT,    OPTION_KEYS,        OPTION_LAYOUT,
                                              OPTION_OLD_LABEL, OPTION_PARTITIONER, OPTION_SCHEMA,
                                              OPTION_STATS,     OPTION_VALUE_SIZE,  OPTION_VOLUMES};
    char bytes[32];
    int status = error_of_call(deltafs_options_create(&own->options), e);

    if (status == DELTAFS_OK && given)
        status = deltafs_private_options_copy(own->options, given, e);
    for (size_t i = 0; i < sizeof not_used / sizeof not_used[0] && status == DELTAFS_OK; i++)
        status = deltafs_private_options_reset(own->options, not_used[i], e);
    if (status == DELTAFS_OK)
        status = set_option(own->options, "partitions", "1", e);
    snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)memory);
    return status == DELTAFS_OK ? set_option(own->options, "memory", bytes, e) : status;
}

/* ---- Opening ---- */

static void raise_label(deltafs_dir *dir, uint64_t *label)
{
    uint64_t last;

    if (deltafs_last_label(dir, &last) == DELTAFS_OK && last > *label)
        *label = last;
}

/* Whether chunks can be put into a table's data; not if its creation was interrupted. */
static int has_usable_data(const struct own_table *own, uint64_t number)
{
    char path[PATH_ROOM];
    struct manifest m = {0};
    int status = manifest_read(own->io, table_path(path, own->path, number, TABLE_DATA), &m, error_ignored());

    manifest_fini(&m);
    return status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND;
}

/* Whether this user may write to a table; with `is_gone`, only its data is there, after a compaction. */
static int may_take(const struct own_table *own, uint64_t number, int is_gone)
{
    char path[PATH_ROOM];

    return eaccess(table_path(path, own->path, number, is_gone ? TABLE_DATA : ""), W_OK | X_OK) == 0 &&
           has_usable_data(own, number);
}

/* ---- The journal ---- */

static char *journal_path(char path[PATH_ROOM], const struct own_table *own)
{
    return table_path(path, own->path, own->number, TABLE_JOURNAL);
}

/* Put what a journal has into the directories, but for chunks that are in an epoch of the data. */
static int put_records(struct own_table *own, struct error *e)
{
    const struct journal *j = &own->journal;
    uint64_t label = j->last_label;
    int status = DELTAFS_OK;

    for (const struct journal_record *r = j->record; r < j->record + j->committed && status == DELTAFS_OK; r++) {
        if (r->kind == JOURNAL_ENTRY)
            status = error_of_call(deltafs_append(own->dir, r->key, journal_bytes(j, r), r->size), e);
        if (r->kind != JOURNAL_CHUNK)
            continue;
        status = own_table_open_data(own, &label, e);
        if (status != DELTAFS_OK || r->key <= own->data_label)
            continue;
        own->has_data = 1;
        own->last_chunk = r->key > own->last_chunk ? r->key : own->last_chunk;
        status = error_of_call(deltafs_append(own->data, r->key, journal_bytes(j, r), r->size), e);
    }
    return status;
}

static int sync_file(struct io *io, const char *path, struct error *e)
{
    struct io_file file;
    int status = io_file_open(io, path, O_RDONLY, &file, e);

    if (status == DELTAFS_ERR_NOT_FOUND)
        return DELTAFS_OK;
    return status == DELTAFS_OK ? io_file_finish(&file, io_file_sync(&file, e), e) : status;
}

/* What the writer before this one has left may be durable in the journal, whatever the option sync was or is. So the
 * epochs that have it are made durable before the journal is removed: those of the data before those of the table, and
 * of each the logs before the lines that make them count. */
static int sync_epochs(const struct own_table *own, const char *suffix, struct error *e)
{
    char folder[PATH_ROOM], path[PATH_ROOM];
    struct io *io = own->io;

    if (access(table_path(folder, own->path, own->number, suffix), F_OK) != 0) /* there are only names */
        return DELTAFS_OK;
    int status = sync_file(io, io_path_in(path, folder, LOG_NAME_DATA, 0u, 0u), e);
    if (status == DELTAFS_OK)
        status = sync_file(io, io_path_in(path, folder, LOG_NAME_INDEX, 0u, 0u), e);
    if (status == DELTAFS_OK)
        status = io_sync_folder(io, io_path_in(path, folder, BUCKET_NAME, 0u), e);
    if (status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND) /* it has no epoch */
        status = sync_file(io, io_path_in(path, folder, MANIFEST_NAME), e);
    if (status == DELTAFS_OK)
        status = sync_file(io, io_path_in(path, folder, MANIFEST_COPY_NAME), e);
    if (status == DELTAFS_OK)
        status = io_sync_folder(io, folder, e);
    return status == DELTAFS_OK ? io_sync_folder(io, own->path, e) : status;
}

/* Make epochs of what is in the journal, and of all else that was put; the data's label is above the keys of all its
 * chunks. */
static int make_epochs(struct own_table *own, uint64_t data_label, uint64_t label, struct error *e)
{
    char path[PATH_ROOM];
    int status = own_table_commit_data(own, data_label, e);

    if (status == DELTAFS_OK && own->is_inherited)
        status = sync_epochs(own, TABLE_DATA, e);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_epoch_end(own->dir, label), e);
    if (status == DELTAFS_OK && own->is_inherited)
        status = sync_epochs(own, "", e);
    if (status == DELTAFS_OK)
        status = journal_remove(&own->journal, own->io, journal_path(path, own), e);
    own->is_inherited &= status != DELTAFS_OK;
    own->has_failed |= status != DELTAFS_OK;
    return status;
}

/* Forget a table, which stays as it was. */
static void own_release(struct own_table *own)
{
    journal_fini(&own->journal);
    deltafs_close(own->data);
    deltafs_close(own->dir);
    own->dir = own->data = NULL;
    own->has_data = own->is_inherited = 0;
    own->data_label = own->last_chunk = 0;
}

static int read_journal(struct own_table *own, struct error *e)
{
    char path[PATH_ROOM];

    return journal_read(&own->journal, own->io, journal_path(path, own), own->number, e);
}

/* What the writer before this one has left in the journal is put into the directories, and this one goes on with the
 * journal. One of which all is in epochs is removed. */
static int own_resume(struct own_table *own, struct error *e)
{
    char path[PATH_ROOM];
    uint64_t label = 0;

    raise_label(own->dir, &label);
    if (own->journal.last_label > label) {
        own->is_inherited = 1;
        return put_records(own, e);
    }
    int is_there = own->journal.last_label > 0, status = DELTAFS_OK;
    journal_fini(&own->journal);
    if (is_there)
        status = sync_epochs(own, TABLE_DATA, e);
    if (is_there && status == DELTAFS_OK)
        status = sync_epochs(own, "", e);
    if (status == DELTAFS_OK)
        status = io_unlink(own->io, journal_path(path, own), e);
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

/* Take over a table, unless it is damaged, and stays as it is for a repair, or somebody else has it: then own->dir is
 * NULL. A damaged journal is an error: nobody can open the namespace. */
static int own_take_one(struct own_table *own, uint64_t number, struct error *e)
{
    char path[PATH_ROOM];

    own->number = number;
    int is_gone = access(table_path(path, own->path, number, ""), F_OK) != 0;
    if (!may_take(own, number, is_gone))
        return DELTAFS_OK;
    int status = serial_open_directory(path, own->options, !is_gone, 0, &own->dir, e);
    int read = status == DELTAFS_OK && !is_gone ? read_journal(own, e) : DELTAFS_OK;
    if (status == DELTAFS_OK && read == DELTAFS_OK && !is_gone)
        status = own_resume(own, e);
    if (status == DELTAFS_OK && read == DELTAFS_OK)
        return DELTAFS_OK;
    own_release(own);
    if (status == DELTAFS_ERR_BUSY || status == DELTAFS_ERR_NOT_DELTAFS || status == DELTAFS_ERR_NOT_FOUND ||
        status == DELTAFS_ERR_EXISTS || status == DELTAFS_ERR_DAMAGED)
        return DELTAFS_OK;
    return error_first(status, read);
}

/* Take over one of the tables that are there. */
static int own_take(struct own_table *own, uint64_t random, struct error *e)
{
    uint64_t *number = NULL;
    size_t count = 0;
    int status = tables_list(own->io, own->path, &number, &count, e);

    for (size_t i = 0; i < count && i < TRIES_MAX && status == DELTAFS_OK && !own->dir; i++)
        status = own_take_one(own, number[(random + i) % count], e);
    free(number);
    return status;
}

/* A new table: its number is random and not 0, and nobody has it, for creating its folder succeeds. */
static int own_create(struct own_table *own, uint64_t random, struct error *e)
{
    char path[PATH_ROOM];
    int status = DELTAFS_ERR_EXISTS;

    for (own->number = random; status == DELTAFS_ERR_EXISTS; own->number++)
        status = serial_open_directory(table_path(path, own->path, own->number, ""), own->options, 0, 0, &own->dir, e);
    own->number--;
    return status;
}

/* `is_new`: no table is taken over. */
static int open_any(struct own_table *own, int is_new, const deltafs_options *given, uint64_t memory, struct error *e)
{
    uint8_t random[16];
    int status = uuid_create(random, e);

    if (status == DELTAFS_OK)
        status = own_options(own, given, memory, e);
    if (status == DELTAFS_OK && !is_new)
        status = own_take(own, get_u64(random), e);
    if (status == DELTAFS_OK && !own->dir)
        status = own_create(own, (get_u64(random) ^ get_u64(random + 8)) | 1, e);
    if (status == DELTAFS_OK)
        status =
            views_check_collection(own->io, own->path, deltafs_private_options_number(own->options, OPTION_LEASE), e);
    return status;
}

int own_table_open(struct own_table *own, struct io *io, const char *path, const deltafs_options *given,
                   uint64_t memory, uint64_t *label, struct error *e)
{
    *own = (struct own_table){.path = path, .io = io};
    int status = open_any(own, 0, given, memory, e);

    if (status != DELTAFS_OK) {
        own_release(own);
        own->number = 0;
        return status;
    }
    raise_label(own->dir, label);
    if (own->data) /* it had chunks in the journal */
        raise_label(own->data, label);
    if (own->journal.last_label > *label)
        *label = own->journal.last_label;
    own->journal.table = own->number;
    return status;
}

int own_table_create(struct own_table *own, struct io *io, const char *path, const deltafs_options *given,
                     uint64_t memory, struct error *e)
{
    *own = (struct own_table){.path = path, .io = io};
    return open_any(own, 1, given, memory, e);
}

int own_table_create_data(const char *path, const deltafs_options *given, deltafs_dir **out, struct error *e)
{
    struct own_table own = {.options = NULL};
    int status = own_options(&own, given, COPY_MEMORY, e);

    if (status == DELTAFS_OK)
        status = serial_open_directory(path, own.options, 0, 0, out, e);
    deltafs_options_destroy(own.options);
    return status;
}

int own_table_open_data(struct own_table *own, uint64_t *label, struct error *e)
{
    char path[PATH_ROOM];

    if (own->data)
        return DELTAFS_OK;
    table_path(path, own->path, own->number, TABLE_DATA);
    int status = serial_open_directory(path, own->options, 1, 0, &own->data, e);
    if (status == DELTAFS_ERR_NOT_FOUND)
        status = serial_open_directory(path, own->options, 0, 0, &own->data, e);
    if (status != DELTAFS_OK)
        return status;
    raise_label(own->data, label);
    raise_label(own->data, &own->data_label);
    return DELTAFS_OK;
}

/* ---- Writing ---- */

/* Put a record into a directory, and into the journal's next group. */
static int own_put(struct own_table *own, deltafs_dir *dir, int kind, uint64_t key, const void *bytes, size_t size,
                   struct error *e)
{
    int status = error_of_call(deltafs_append(dir, key, bytes, size), e);

    if (status == DELTAFS_OK && own->has_journal)
        status = journal_put(&own->journal, kind, key, bytes, size, e);
    own->has_failed |= status != DELTAFS_OK;
    return status;
}

int own_table_put_chunk(struct own_table *own, uint64_t key, const void *bytes, size_t size, struct error *e)
{
    own->has_data = 1;
    own->last_chunk = key;
    return own_put(own, own->data, JOURNAL_CHUNK, key, bytes, size, e);
}

int own_table_put(struct own_table *own, uint64_t key, const struct entry *entry, struct error *e)
{
    uint8_t bytes[ENTRY_SIZE_MAX];

    return own_put(own, own->dir, JOURNAL_ENTRY, key, bytes, entry_encode(entry, bytes), e);
}

int own_table_is_little(const struct own_table *own)
{
    return own->has_journal && !own->has_failed && !own->journal.is_full;
}

int own_table_commit_data(struct own_table *own, uint64_t label, struct error *e)
{
    if (!own->has_data)
        return DELTAFS_OK;
    /* The chunks of the group are in this epoch; entries, if it has any, come into the next one of the table. */
    journal_abort(&own->journal);
    own->has_data = 0;
    own->data_label = label;
    int status = error_of_call(deltafs_epoch_end(own->data, label), e);
    own->has_failed |= status != DELTAFS_OK;
    return status;
}

static int commit_to_journal(struct own_table *own, uint64_t label, struct error *e)
{
    char path[PATH_ROOM];
    int sync = deltafs_private_options_number(own->options, OPTION_SYNC) == SYNC_COMMIT;
    int status = dir_renew_lease(own->dir, e);

    if (status == DELTAFS_OK)
        status = journal_commit(&own->journal, own->io, journal_path(path, own), label, sync, e);
    if (status == DELTAFS_OK)
        status = dir_confirm_lease(own->dir, e);
    own->has_failed |= status != DELTAFS_OK;
    return status;
}

int own_table_commit(struct own_table *own, uint64_t label, int *is_epoch, struct error *e)
{
    int status = DELTAFS_OK;

    *is_epoch = !own_table_is_little(own);
    if (!*is_epoch) {
        status = commit_to_journal(own, label, e);
        *is_epoch = own->journal.end > JOURNAL_FULL;
    }
    return status == DELTAFS_OK && *is_epoch ? make_epochs(own, label, label, e) : status;
}

/* ---- Closing ---- */

/* Without a commit, or after a failed one, records are left that the close discards. */
static int close_directory(deltafs_dir *dir, struct error *e)
{
    int status = error_of_call(deltafs_close(dir), e);

    return status == DELTAFS_ERR_UNCOMMITTED ? DELTAFS_OK : status;
}

/* Epochs of all that is in the journal. */
static int end_journal(struct own_table *own, struct error *e)
{
    uint64_t label = own->journal.last_label;

    if (label == 0 || own->has_failed)
        return DELTAFS_OK;
    return make_epochs(own, label > own->last_chunk ? label : own->last_chunk + 1, label, e);
}

/* The same of a table that gets nothing more. */
static int end_journal_merged(struct own_table *own, struct error *e)
{
    uint64_t label = own->journal.last_label;
    int status = end_journal(own, e);

    if (status == DELTAFS_OK && label > 0)
        own_table_merge(own, label + 1);
    return status;
}

int own_table_end_journal(struct own_table *own, struct error *e)
{
    int status = end_journal(own, e);

    status = error_first(status, journal_close(&own->journal, error_after(status, e)));
    status = error_first(status, close_directory(own->data, error_after(status, e)));
    own->data = NULL;
    own->has_journal = 0;
    return status;
}

/* What is in the journal stays there. */
static int leave_journal(struct own_table *own, struct error *e)
{
    uint64_t sync = deltafs_private_options_number(own->options, OPTION_SYNC);
    int status = sync == SYNC_CLOSE ? journal_sync(&own->journal, e) : DELTAFS_OK;

    if (status != DELTAFS_OK || own->has_failed || sync == SYNC_NONE || !own->journal.file.path)
        return status;
    status = dir_renew_lease(own->dir, e);
    return status == DELTAFS_OK ? journal_seal(&own->journal, e) : status;
}

/* What is in the journal stays there if it has at most so many bytes. A table that has got nothing stays: it cannot be
 * removed without another writer taking it over just then. */
static int own_close(struct own_table *own, size_t left, struct error *e)
{
    int status = DELTAFS_OK;

    if (own->journal.end > left)
        status = end_journal_merged(own, e);
    else if (own->journal.end > 0)
        status = leave_journal(own, e);
    status = error_first(status, journal_close(&own->journal, error_after(status, e)));
    status = error_first(status, close_directory(own->data, error_after(status, e)));
    status = error_first(status, close_directory(own->dir, error_after(status, e)));
    deltafs_options_destroy(own->options);
    return status;
}

int own_table_close(struct own_table *own, struct error *e)
{
    return own_close(own, JOURNAL_LEFT, e);
}

int own_table_recover(struct io *io, const char *path, uint64_t number, const deltafs_options *given, struct error *e)
{
    char name[PATH_ROOM];
    struct own_table own = {.path = path, .io = io, .number = number};
    int status = own_options(&own, given, COPY_MEMORY, e);

    if (status == DELTAFS_OK)
        status = serial_open_directory(table_path(name, path, number, ""), own.options, 1, 0, &own.dir, e);
    if (status == DELTAFS_OK)
        status = read_journal(&own, e);
    if (status == DELTAFS_OK)
        status = own_resume(&own, e);
    if (status != DELTAFS_OK)
        own_release(&own);
    return error_first(status, own_close(&own, 0, error_after(status, e)));
}
