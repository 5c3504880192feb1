/* What a namespace consists of. */
#include <stdlib.h>
#include <string.h>
#include "base/sized.h"
#include "namespace/compacted.h"
#include "namespace/head.h"
#include "namespace/pin.h"
#include "namespace/tables.h"

/* Add what a directory has; *is_there: it has something. */
static int add_directory(const char *directory, uint64_t *records, uint64_t *bytes, int *is_there, struct error *e)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    uint64_t stored = 0;
    deltafs_dir *d = NULL;
    int status = error_of_call(deltafs_open(directory, NULL, &d), e);

    if (table_is_empty(directory, status))
        return DELTAFS_OK;
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_stat(d, &stat), e);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_bytes_stored(d, &stored), e);
    deltafs_close(d);
    *records += stat.records;
    *bytes += stored;
    *is_there |= stat.records > 0;
    return status;
}

/* The label of a directory's last epoch; 0: it has none, or cannot be read. */
static uint64_t last_label(const char *directory)
{
    uint64_t label = 0;
    deltafs_dir *d = NULL;

    if (deltafs_open(directory, NULL, &d) == DELTAFS_OK)
        deltafs_last_label(d, &label);
    deltafs_close(d);
    return label;
}

/* Add what the journal of a table has, and no epoch. */
static int add_journal(struct io *io, const char *path, uint64_t number, struct deltafs_namespace_info *i,
                       int *is_there, struct error *e)
{
    char name[PATH_ROOM];
    struct journal j;
    size_t count = 0;
    int status = journal_read(&j, io, table_path(name, path, number, TABLE_JOURNAL), number, e);

    if (j.last_label > 0)
        journal_drop(&j, last_label(table_path(name, path, number, "")));
    journal_find(&j, JOURNAL_ENTRY, 0, UINT64_MAX, &count);
    i->records += count;
    i->bytes_stored += j.end;
    *is_there |= count > 0;
    journal_fini(&j);
    return status;
}

static int add_tables(struct io *io, const char *path, struct deltafs_namespace_info *i, struct error *e)
{
    char directory[PATH_ROOM];
    uint64_t *number = NULL, chunks = 0;
    size_t count = 0;
    int status = tables_list(io, path, &number, &count, e);

    for (size_t k = 0; k < count && status == DELTAFS_OK; k++) {
        int is_there = 0;
        table_path(directory, path, number[k], "");
        status = add_journal(io, path, number[k], i, &is_there, e);
        if (status == DELTAFS_OK)
            status = add_directory(directory, &i->records, &i->bytes_stored, &is_there, e);
        table_path(directory, path, number[k], TABLE_DATA);
        if (status == DELTAFS_OK)
            status = add_directory(directory, &chunks, &i->data_stored, &is_there, e);
        i->tables += (uint64_t)is_there;
    }
    free(number);
    return status;
}

static int add_texts(struct io *io, const char *path, struct deltafs_namespace_info *i, struct error *e)
{
    struct compacted compacted;
    struct pins pins;
    struct head head;
    int status = head_read(io, path, &head, e);

    uuid_to_text(head.uuid, i->uuid);
    i->layers = head.below.count;
    layers_fini(&head.below);
    if (status != DELTAFS_OK)
        return status;
    status = compacted_read(io, path, &compacted, e);
    i->is_compacted = status == DELTAFS_OK && compacted.into.number != 0;
    i->is_complete = status == DELTAFS_OK && compacted.is_complete;
    compacted_fini(&compacted);
    if (status != DELTAFS_OK)
        return status;
    status = pins_read(io, path, &pins, e);
    i->pins = pins.pins;
    pins_fini(&pins);
    return status;
}

int deltafs_namespace_info(const char *path, struct deltafs_namespace_info *out)
{
    static const char call[] = "deltafs_namespace_info";
    struct deltafs_namespace_info i = {.struct_size = sizeof i};
    struct io io = io_default();
    struct error e;

    if (!path || !*path || !out)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID, "%s: path and out must be given", call);
    int status = add_texts(&io, path, &i, &e);
    if (status == DELTAFS_OK)
        status = add_tables(&io, path, &i, &e);
    if (status == DELTAFS_OK)
        status = sized_fill(out, &i, sizeof i, call, &e);
    return error_of_thread(status, &e);
}
