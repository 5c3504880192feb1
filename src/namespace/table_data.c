#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "namespace/table_data.h"

static int get_chunk(const struct tables *t, struct table *table, uint64_t key, deltafs_records **records,
                     struct error *e)
{
    int status = table_open_data(t, table, key, e);

    return status == DELTAFS_OK ? error_of_call(deltafs_get(table->data, key, NULL, records), e) : status;
}

/* The record of a place. DELTAFS_ERR_NOT_FOUND, without a message. */
static int find_chunk(struct tables *t, const struct entry_id *place, deltafs_records **records, struct error *e)
{
    struct table *table = tables_find(t, place->table);
    int status = table ? get_chunk(t, table, place->number, records, e) : DELTAFS_ERR_NOT_FOUND;

    if (status == DELTAFS_ERR_CHANGED) { /* by a collection */
        table_close_data(table);
        status = get_chunk(t, table, place->number, records, e);
    }
    return status;
}

/* Read a chunk by the stream of its table, if that has it. */
static int read_from_stream(const struct tables *t, struct table *table, uint64_t key, size_t room, void *bytes,
                            size_t *got)
{
    if (!table || table_open_data(t, table, key, error_ignored()) != DELTAFS_OK)
        return 0;
    const struct deltafs_record *record = chunk_stream_find(&table->stream, table->data, key, room);
    if (!record)
        return 0;
    *got = record->size;
    memcpy(bytes, record->value, *got);
    return 1;
}

int tables_read_chunk(struct tables *t, const struct entry_id *place, size_t room, void *bytes, size_t *got,
                      struct error *e)
{
    struct table *table = tables_find(t, place->table);
    deltafs_records *records = NULL;
    char path[PATH_ROOM];
    int status = table && !table->journal ? table_open_journal(t, table, e) : DELTAFS_OK;

    if (status != DELTAFS_OK)
        return status;
    const struct journal_record *r = table ? table_journaled_one(table, JOURNAL_CHUNK, place->number, NULL) : NULL;
    if (r && r->size <= room) {
        *got = r->size;
        memcpy(bytes, journal_bytes(table->journal, r), *got);
        return DELTAFS_OK;
    }
    if (read_from_stream(t, table, place->number, room, bytes, got))
        return DELTAFS_OK;
    status = find_chunk(t, place, &records, e);
    int is_sound = status == DELTAFS_OK && records->count == 1 && records->record[0].size <= room;
    if (is_sound) {
        *got = records->record[0].size;
        memcpy(bytes, records->record[0].value, *got);
    } else if (status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND) {
        status = error_set(e, DELTAFS_ERR_DAMAGED, "%s: the bytes of a file, with the key %llu, are missing",
                           table_path(path, table ? table->path : ".", place->table, TABLE_DATA),
                           (unsigned long long)place->number);
    }
    deltafs_records_destroy(records);
    return status;
}

/* Read a part of a list of places, and pass those of chunks that are stored. */
static int each_chunk(struct tables *t, const struct entry_id *part, size_t size, uint8_t *bytes, tables_place_fn *fn,
                      void *arg, struct error *e)
{
    size_t got = 0;
    int status = tables_read_chunk(t, part, size, bytes, &got, e);

    if (status == DELTAFS_OK && got != size)
        status = error_set(e, DELTAFS_ERR_DAMAGED, "the list of a file's chunks, with the key %llu, is incomplete",
                           (unsigned long long)part->number);
    for (size_t i = 0; i < size && status == DELTAFS_OK; i += PLACE_SIZE) {
        const struct entry_id chunk = {get_u64(bytes + i), get_u64(bytes + i + 8)};
        if (chunk.table != 0)
            status = fn(arg, &chunk, e);
    }
    return status;
}

int tables_each_place(struct tables *t, const struct inode *file, tables_place_fn *fn, void *arg, struct error *e)
{
    uint64_t left = (file->size + CHUNK_SIZE - 1) / CHUNK_SIZE * PLACE_SIZE;
    struct entry_id part = file->data;

    if (left <= PLACE_SIZE)
        return part.table != 0 ? fn(arg, &part, e) : DELTAFS_OK;
    uint8_t *bytes = malloc(CHUNK_SIZE);
    int status = bytes ? DELTAFS_OK : error_no_memory(e, CHUNK_SIZE, "places of a file");
    for (size_t size; left > 0 && status == DELTAFS_OK; left -= size, part.number++) {
        size = left < CHUNK_SIZE ? (size_t)left : CHUNK_SIZE;
        status = fn(arg, &part, e);
        if (status == DELTAFS_OK)
            status = each_chunk(t, &part, size, bytes, fn, arg, e);
    }
    free(bytes);
    return status;
}
