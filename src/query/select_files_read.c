/* The part of a select's thread that reads files of an index: the rows of a share of a table. */
#include <stdlib.h>
#include <string.h>
#include "query/select.h"

/* A deltafs_row_fn. */
static int read_row(const struct deltafs_row *row, void *worker)
{
    struct worker *w = worker;
    const struct deltafs_select *s = w->select;
    const struct deltafs_record record = {.key = row->key, .label = row->label, .value = row->value, .size = row->size};

    if (s->only.is_given && !key_set_has(&s->only, s->manifest, &record))
        return 0;
    return worker_take(&record, w);
}

/* Which fields the rows, or their test, need; freed by the caller. */
static uint8_t *wanted_fields(const struct worker *w)
{
    const deltafs_schema *schema = w->select->plan.schema;
    const uint8_t *bytes = w->eval.row.bytes; /* NULL: all */
    uint8_t *wanted = malloc(w->select->files->fields + 1);

    for (size_t i = 0; wanted && i < w->select->files->fields; i++)
        wanted[i] = !bytes || bytes[deltafs_schema_field(schema, i)->offset];
    return wanted;
}

int worker_read_files(struct worker *w, struct error *damage)
{
    struct table_part part;
    struct error e = {.status = DELTAFS_OK};
    int stopped = 0;

    if (!select_files_part(w->select->files, w->epoch, w->partition, &part))
        return DELTAFS_OK;
    uint8_t *wanted = wanted_fields(w);
    part.wanted = wanted;
    if (!wanted)
        return error_no_memory(&w->error, w->select->files->fields, "columns");
    int status = fileindex_scan_part(w->index, &part, read_row, w, &stopped, &e);
    free(wanted);
    if (stopped)
        return w->error.status;
    if (status == DELTAFS_ERR_MEMORY)
        w->error = e;
    else
        *damage = e;
    return w->error.status;
}
