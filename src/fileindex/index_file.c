/* Indexing a file by what options say of its rows: a close does it, and `deltafs-mpi index`. Rank 0 opens the file,
 * notes its state, and finds its tables. It reads through the same handle as the indexer does; HDF5, which finds the
 * datasets, is given a driver that reads so (hdf5/h5file.h). */
#include <stdlib.h>
#include <string.h>
#include "fileindex/indexer.h"
#include "hdf5/h5rows.h"

/* ---- Tables ---- */

static int file_read(void *ctx, uint64_t offset, void *bytes, size_t size, struct error *e)
{
    const struct deltafs_extent extent = {offset, size};

    return key_file_read(ctx, 1, &extent, bytes, e);
}

/* A key without '/' is a field of records, and an HDF5 file has none. */
static int refuse_hdf5(struct key_file *file, const char *path, const deltafs_options *o, const struct file_tables *t,
                       struct error *e)
{
    const struct h5source source = {path, t->identity.size, file_read, file};
    const char *key = deltafs_private_options_text(o, OPTION_KEY);

    if (*deltafs_private_options_text(o, OPTION_SCHEMA) != '\0' || h5file_check(&source, error_ignored()) != DELTAFS_OK)
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_OPTION,
                     "%s: is an HDF5 file, and the key '%s' has no '/': give the path of the dataset with the keys, "
                     "such as '/%s' or '/Step#*/%s'",
                     path, key, key, key);
}

static int find_datasets(struct key_file *file, const char *path, const deltafs_options *o, struct file_tables *out,
                         struct error *e)
{
    const struct h5source source = {path, out->identity.size, file_read, file};
    uint64_t label = deltafs_private_options_number(o, OPTION_EPOCH);
    struct h5lib lib;
    int status = h5file_check(&source, e);

    if (status != DELTAFS_OK)
        return status;
    h5lib_lock();
    status = h5lib_load(&lib, deltafs_private_options_text(o, OPTION_HDF5), e);
    if (status == DELTAFS_OK)
        status = h5rows_read(&lib, &source, deltafs_private_options_text(o, OPTION_KEY),
                             label == OPTION_AUTO ? NULL : &label, &out->rows, e);
    h5lib_unlock();
    return status;
}

/* The one table of a stream of records. */
static int find_records(const char *path, const deltafs_options *o, struct file_tables *out, struct error *e)
{
    struct deltafs_table **table = out->rows.table = calloc(1, sizeof *table);

    if (!table)
        return error_no_memory(e, sizeof *table, "a table");
    int status = error_of_call(deltafs_table_from_options(path, o, out->identity.size, table), e);
    out->rows.count = status == DELTAFS_OK;
    return status;
}

/* DELTAFS_ERR_NOT_FOUND if the key is a path of datasets, and the file has none of them. Free with h5rows_fini, also
 * after an error. */
static int find_tables(const char *path, const deltafs_options *o, struct file_tables *out, struct error *e)
{
    struct io io = io_default();
    struct key_file file;
    char kind;

    e->status = key_file_kind(&io, path, &kind, e);
    if (e->status == DELTAFS_OK)
        e->status = key_file_open(&file, &io, path, kind, NULL, NULL, e);
    if (e->status != DELTAFS_OK)
        return e->status;
    out->padding = deltafs_private_options_number(o, OPTION_PADDING);
    e->status = key_file_identity(&file, 1, &out->identity, e);
    if (e->status == DELTAFS_OK && strchr(deltafs_private_options_text(o, OPTION_KEY), '/'))
        e->status = find_datasets(&file, path, o, out, e);
    else if (e->status == DELTAFS_OK && refuse_hdf5(&file, path, o, out, e) == DELTAFS_OK)
        e->status = find_records(path, o, out, e);
    key_file_close(&file);
    return e->status;
}

/* ---- Indexing ---- */

int deltafs_indexer_add_file(deltafs_indexer *ix, const char *path, const deltafs_options *options, uint64_t *rows)
{
    struct error own = {0};
    struct file_tables t = {.writer = NULL};
    uint64_t indexed = 0;

    if (!ix)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID, "deltafs_indexer_add_file: no handle");
    if (ix->group.rank == 0 && (!path || !options))
        error_set(&own, DELTAFS_ERR_INVALID, "deltafs_indexer_add_file: path and options must be given");
    else if (ix->group.rank == 0)
        find_tables(path, options, &t, &own);
    int status = indexer_add(ix, path, &t, &indexed, &own);
    if (status == DELTAFS_OK && rows)
        *rows += indexed;
    h5rows_fini(&t.rows);
    return error_of_thread(status, &own);
}

/* Rank 0: the tables of a file that was closed, if its options name any. */
static void closed_tables(const char *path, deltafs_options *o, struct file_tables *t, struct error *e)
{
    if (error_of_call(deltafs_folder_options(path, o), e) == DELTAFS_OK &&
        *deltafs_private_options_text(o, OPTION_KEY) != '\0' && find_tables(path, o, t, e) == DELTAFS_ERR_NOT_FOUND)
        e->status = DELTAFS_OK;
}

int deltafs_private_index_closed(const char *path, deltafs_options *options, const struct collective *group,
                                 const struct indexer_calls *calls, const struct key_writer *own, struct error *e)
{
    struct file_tables t = {.writer = own};
    deltafs_indexer *ix = NULL;
    uint64_t tables = 0, indexed = 0;

    *e = (struct error){0};
    if (group->rank == 0)
        closed_tables(path, options, &t, e);
    tables = t.rows.count;
    int status = indexer_share(group, &tables, sizeof tables, e);
    if (status == DELTAFS_OK && tables > 0)
        status = deltafs_private_indexer_open_group(
            options ? deltafs_private_options_text(options, OPTION_INDEX) : NULL, path, options, group, calls, &ix, e);
    if (ix) {
        status = indexer_add(ix, path, &t, &indexed, e);
        status = error_first(status, error_of_call(deltafs_indexer_close(ix), error_after(status, e)));
    }
    h5rows_fini(&t.rows);
    if (status != DELTAFS_OK)
        error_set(e, status,
                  "%s; the file is written and closed, but its keys are not indexed (after you remove the error, run "
                  "'deltafs-mpi index')",
                  e->text);
    return status;
}

int deltafs_index_closed(const char *path, deltafs_options *options)
{
    const struct collective alone = COLLECTIVE_ALONE;
    struct error own;

    if (!path || !options)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_index_closed: path and options must be given");
    return error_of_thread(deltafs_private_index_closed(path, options, &alone, &indexer_alone, NULL, &own), &own);
}
