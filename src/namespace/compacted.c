#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "namespace/compacted.h"
#include "namespace/entry_format.h"

#define NAME_ASIDE "." COMPACTED_NAME "."

void compacted_fini(struct compacted *c)
{
    free(c->table);
    *c = (struct compacted){.table = NULL};
}

int compacted_add(struct compacted *c, uint64_t number, uint64_t limit, struct error *e)
{
    int status = memory_extend(NULL, &c->table, c->count, &c->room, sizeof *c->table, "tables", e);

    if (status == DELTAFS_OK)
        c->table[c->count++] = (struct layer_table){.number = number, .limit = limit};
    return status;
}

/* ---- Reading ---- */

static int take_id(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct compacted *c = arg;
    char text[UUID_TEXT_SIZE];

    return textlog_take_id(fields, path, offset, c->uuid, text, e);
}

static int take_into(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct compacted *c = arg;
    uint64_t complete = 0;
    size_t n;

    if (textlog_number(fields, "table", &c->into.number) != 0 || textlog_number(fields, "limit", &c->into.limit) != 0 ||
        (textlog_field(fields, "complete", &n) && textlog_number(fields, "complete", &complete) != 0))
        return error_damaged(e, path, offset, "the line of the new table is malformed");
    c->is_complete = complete != 0;
    return DELTAFS_OK;
}

static int take_table(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct layer_table t;

    if (layer_table_take(fields, &t) != 0)
        return error_damaged(e, path, offset, "a table that is replaced is malformed");
    return compacted_add(arg, t.number, t.limit, e);
}

static int take_line(void *arg, char *line, const char *path, uint64_t offset, struct error *e)
{
    static const struct textlog_word words[] = {
        {"Deltafs", take_id}, {"Compacted", take_into}, {"Table", take_table}, {NULL, NULL}};

    return textlog_take(words, arg, line, path, offset, e);
}

static int compare_tables(const void *a, const void *b)
{
    return compare_u64(&((const struct layer_table *)a)->number, &((const struct layer_table *)b)->number);
}

int compacted_read(struct io *io, const char *path, struct compacted *out, struct error *e)
{
    char name[PATH_ROOM];
    struct io_file file;
    uint64_t end;

    *out = (struct compacted){.table = NULL};
    int status = io_file_open(io, io_path_in(name, path, COMPACTED_NAME), O_RDONLY, &file, e);
    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
    status = io_file_finish(&file, textlog_read(&file, NULL, take_line, out, &end, e), e);
    if (status == DELTAFS_OK && out->count > 0)
        qsort(out->table, out->count, sizeof *out->table, compare_tables);
    if (status != DELTAFS_OK)
        compacted_fini(out);
    return status;
}

int compacted_has_changed(struct io *io, const char *path, const uint8_t uuid[16])
{
    struct compacted now;
    int status = compacted_read(io, path, &now, error_ignored());
    int has_changed = status == DELTAFS_OK && memcmp(now.uuid, uuid, sizeof now.uuid) != 0;

    compacted_fini(&now);
    return has_changed;
}

uint64_t compacted_limit(const struct compacted *c, uint64_t number)
{
    const struct layer_table key = {.number = number},
                             *t = c->count > 0 ? bsearch(&key, c->table, c->count, sizeof *c->table, compare_tables)
                                               : NULL;

    return t ? t->limit : 0;
}

/* ---- Writing ---- */

static int write_lines(struct io_file *file, const struct compacted *c, int sync, struct error *e)
{
    char text[UUID_TEXT_SIZE];
    uint64_t size = 0;

    uuid_to_text(c->uuid, text);
    int status = textlog_append_id(file, &size, text, e);
    if (status == DELTAFS_OK)
        status = textlog_append(file, &size, 0, e, "Compacted table=0x%016" PRIx64 " limit=%" PRIu64 "%s",
                                c->into.number, c->into.limit, c->is_complete ? " complete=1" : "");
    for (size_t i = 0; i < c->count && status == DELTAFS_OK; i++)
        status = layer_table_write(&c->table[i], file, &size, e);
    return status == DELTAFS_OK && sync ? io_file_sync(file, e) : status;
}

int compacted_is_aside(const char *name)
{
    return strncmp(name, NAME_ASIDE, strlen(NAME_ASIDE)) == 0;
}

int compacted_write(struct io *io, const char *path, const struct compacted *c, int sync, struct error *e)
{
    char name[PATH_ROOM], aside[PATH_ROOM], text[UUID_TEXT_SIZE];
    struct io_file file;

    uuid_to_text(c->uuid, text);
    int status =
        io_file_open(io, io_path_in(aside, path, NAME_ASIDE "%s", text), O_CREAT | O_EXCL | O_WRONLY, &file, e);
    if (status != DELTAFS_OK)
        return status;
    status = io_file_finish(&file, write_lines(&file, c, sync, e), e);
    if (status == DELTAFS_OK)
        status = io_rename(io, aside, io_path_in(name, path, COMPACTED_NAME), e);
    if (status != DELTAFS_OK)
        io_unlink(io, aside, error_ignored());
    return status == DELTAFS_OK && sync ? io_sync_folder(io, path, e) : status;
}
