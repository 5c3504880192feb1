/* Indexing a logical file when it is closed: what its options, or a deltafs.conf beside it, say of its rows. */
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>
#include "fileindex/indexer.h"
#include "mpi/job/hdf5_tables.h"
#include "mpi/job/logical_job.h"

/* A file that was closed, on rank 0. */
struct closed {
    struct h5rows tables;
    struct source_identity is; /* before these were looked for; of no kind, if that took no look at the file */
};

/* Rank 0: the tables that the option key names. Of an HDF5 file in which it names nothing, or of one that is none,
 * there are none: the option may stand in the environment, for all files of a program. */
static int close_tables(const struct logical_job *j, uint64_t size, struct closed *c, struct error *e)
{
    struct h5rows *out = &c->tables;
    const char *key = deltafs_private_options_text(j->options, OPTION_KEY);
    uint64_t label = deltafs_private_options_number(j->options, OPTION_EPOCH);

    if (h5rows_is_pattern(key)) {
        int status = deltafs_private_indexer_identify(j->path, &c->is, e);
        if (status == DELTAFS_OK)
            status = hdf5_tables_read(j->path, key, label == OPTION_AUTO ? NULL : &label, out, e);
        if (status == DELTAFS_OK || (status != DELTAFS_ERR_NOT_FOUND && hdf5_tables_is(j->path)))
            return status;
        *e = (struct error){0};
        return DELTAFS_OK;
    }
    out->table = calloc(1, sizeof(struct deltafs_table *));
    if (!out->table)
        return error_no_memory(e, sizeof(struct deltafs_table *), "a table");
    int status = deltafs_table_from_options(j->path, j->options, size, &out->table[0]);
    out->count = status == DELTAFS_OK;
    if (status != DELTAFS_OK)
        *e = *deltafs_private_thread_error();
    return status;
}

static void close_free(const struct logical_job *j, struct h5rows *tables)
{
    if (j->options && h5rows_is_pattern(deltafs_private_options_text(j->options, OPTION_KEY))) {
        h5rows_fini(tables);
        return;
    }
    for (size_t i = 0; i < tables->count; i++)
        deltafs_table_destroy(tables->table[i]);
    free(tables->table);
}

/* Collective: rank 0's tables into the index. */
static int close_index(struct logical_job *j, const struct closed *c, const struct key_writer *own_writes,
                       struct error *e)
{
    const struct h5rows *tables = &c->tables;
    const char *index = j->options ? deltafs_private_options_text(j->options, OPTION_INDEX) : "";
    deltafs_indexer *ix;
    int status = job_indexer_open(j, *index ? index : NULL, j->path, j->options, &ix, e);

    if (status != DELTAFS_OK)
        return status;
    if (c->is.kind)
        deltafs_private_indexer_expect(ix, j->path, &c->is);
    if (own_writes)
        deltafs_private_indexer_written(ix, own_writes);
    status = deltafs_indexer_add(ix, j->path, tables->count, (const struct deltafs_table *const *)tables->table);
    if (status != DELTAFS_OK)
        error_set(e, status, "%s", deltafs_errmsg(NULL));
    int closed = deltafs_indexer_close(ix);
    if (status == DELTAFS_OK && closed != DELTAFS_OK)
        *e = *deltafs_private_thread_error();
    return status != DELTAFS_OK ? status : closed;
}

int keys_after_close(struct logical_job *j, uint64_t size, const struct key_writer *own_writes, struct error *e)
{
    enum { NOTHING, TABLES, FAILED } found = NOTHING;
    struct closed closed = {.is = {0}};
    struct error own = {0};

    if (j->group.rank == 0) {
        if (deltafs_folder_options(j->path, j->options) != DELTAFS_OK)
            own = *deltafs_private_thread_error();
        else if (*deltafs_private_options_text(j->options, OPTION_KEY) != '\0')
            own.status = close_tables(j, size, &closed, &own);
        found = own.status != DELTAFS_OK ? FAILED : closed.tables.count > 0 ? TABLES : NOTHING;
    }
    int status = mpi_broadcast(&j->group, &found, sizeof found, &own);
    if (status == DELTAFS_OK && found == FAILED)
        status = mpi_agree(&j->group, &own);
    if (status == DELTAFS_OK && found == TABLES)
        status = close_index(j, &closed, own_writes, &own);
    close_free(j, &closed.tables);
    if (status != DELTAFS_OK)
        error_set(e, status,
                  "%s; the file is written and closed, but its keys are not indexed (after you remove the error, run "
                  "'deltafs-mpi index')",
                  own.text);
    return status;
}
