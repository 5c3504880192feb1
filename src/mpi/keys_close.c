/* Indexing a logical file when it is closed: what its options, or a deltafs.conf beside it, say of its rows. */
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>
#include "mpi/logical_group.h"

static int close_table(const struct logical_job *j, uint64_t size, struct deltafs_table **out, struct error *e)
{
    const char *key = deltafs_options_text(j->options, OPTION_KEY);

    if (strchr(key, '/'))
        return error_set(e, DELTAFS_ERR_OPTION, "option key: '%.200s' names an HDF5 dataset, which cannot be indexed",
                         key);
    int status = deltafs_table_of_options(j->path, j->options, size, out);
    if (status != DELTAFS_OK)
        *e = *deltafs_thread_error();
    return status;
}

/* Collective: rank 0's table into the collection. */
static int close_index(struct logical_job *j, const struct deltafs_table *table, struct error *e)
{
    const char *collection = j->options ? deltafs_options_text(j->options, OPTION_COLLECTION) : "";
    deltafs_indexer *ix;
    int status = keys_index_open(j, *collection ? collection : NULL, j->path, j->options, &ix, e);

    if (status != DELTAFS_OK)
        return status;
    status = deltafs_indexer_add(ix, j->path, 1, &table);
    if (status != DELTAFS_OK)
        error_set(e, status, "%s", deltafs_indexer_errmsg(ix));
    int closed = deltafs_indexer_close(ix);
    if (status == DELTAFS_OK && closed != DELTAFS_OK)
        *e = *deltafs_thread_error();
    return status != DELTAFS_OK ? status : closed;
}

int keys_after_close(struct logical_job *j, uint64_t size, struct error *e)
{
    enum { NOTHING, TABLE, FAILED } found = NOTHING;
    struct deltafs_table *table = NULL;
    struct error own = {0};

    if (j->agree.rank == 0) {
        if (deltafs_keys_options(j->path, j->options) != DELTAFS_OK)
            own = *deltafs_thread_error();
        else if (*deltafs_options_text(j->options, OPTION_KEY) != '\0' &&
                 close_table(j, size, &table, &own) == DELTAFS_OK)
            found = TABLE;
        found = own.status != DELTAFS_OK ? FAILED : found;
    }
    int status = agree_broadcast(&j->agree, &found, sizeof found, &own);
    if (status == DELTAFS_OK && found == FAILED)
        status = agree_status(&j->agree, &own);
    if (status == DELTAFS_OK && found == TABLE)
        status = close_index(j, table, &own);
    deltafs_table_destroy(table);
    if (status != DELTAFS_OK)
        error_set(e, status,
                  "%.800s; the file is written and closed, but its keys are not indexed ('deltafs-mpi index' can do "
                  "that later)",
                  own.text);
    return status;
}
