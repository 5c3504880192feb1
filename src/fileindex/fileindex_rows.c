/* Reading rows of a source file: where their values are, and those of HDF5 datasets. */
#include <stdlib.h>
#include "base/number.h"
#include "fileindex/fileindex_lookup.h"

#define SLICE_GAP 512 /* bytes between two columns that are read rather than passed over */

static int compare_extents(const void *a, const void *b)
{
    const struct deltafs_extent *x = a, *y = b;

    return compare(x->offset, y->offset);
}

/* Join extents that are sorted by offset, if few bytes are between them. Returns how many remain; *bytes: of all. */
static size_t extents_join(struct deltafs_extent *x, size_t n, uint64_t *bytes)
{
    size_t count = 0;

    *bytes = 0;
    for (size_t i = 0; i < n; i++) {
        struct deltafs_extent *last = count > 0 ? &x[count - 1] : NULL;
        if (!last || x[i].offset > last->offset + last->size + SLICE_GAP) {
            x[count++] = x[i];
            *bytes += x[i].size;
        } else if (x[i].offset + x[i].size > last->offset + last->size) {
            *bytes += x[i].offset + x[i].size - (last->offset + last->size);
            last->size = x[i].offset + x[i].size - last->offset;
        }
    }
    return count;
}

int rows_find(deltafs_fileindex *k, const struct deltafs_column *column, size_t n, const uint8_t *wanted, uint64_t from,
              uint64_t end, uint64_t *bytes, struct error *e)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        for (uint64_t row = from, run; row < end; row += run) {
            const struct deltafs_column *c = &column[i];
            run = column_run(c, row, end);
            if (c->dataset || c->constant || (wanted && !wanted[i]))
                continue;
            if (buffer_reserve(&k->slices, (count + 1) * sizeof(struct deltafs_extent), "a row's places", e) !=
                DELTAFS_OK)
                return e->status;
            ((struct deltafs_extent *)(void *)k->slices.bytes)[count++] =
                (struct deltafs_extent){column_place(c, row), (run - 1) * c->stride + c->size};
        }
    if (count > 0)
        qsort(k->slices.bytes, count, sizeof(struct deltafs_extent), compare_extents);
    k->slice_count = extents_join((void *)k->slices.bytes, count, bytes);
    return DELTAFS_OK;
}

int rows_read(deltafs_fileindex *k, struct key_file *file, uint64_t bytes, struct error *e)
{
    int status = k->slice_count > 0 ? buffer_reserve(&k->group, bytes, "rows", e) : DELTAFS_OK;

    return status == DELTAFS_OK && k->slice_count > 0
               ? key_file_read(file, k->slice_count, (const void *)k->slices.bytes, k->group.bytes, e)
               : status;
}

const uint8_t *rows_value(const deltafs_fileindex *k, uint64_t place)
{
    const struct deltafs_extent *x = (const void *)k->slices.bytes;
    const uint8_t *at = k->group.bytes;

    while (place - x->offset >= x->size)
        at += x++->size;
    return at + (place - x->offset);
}

int rows_elements(deltafs_fileindex *k, const struct keys_entry *entry, struct key_file *file,
                  const struct deltafs_column *c, uint64_t first, uint64_t rows, const uint8_t **value, struct error *e)
{
    int status = buffer_reserve(&k->elements, (size_t)(rows * c->stride), "elements of a dataset", e);

    if (status == DELTAFS_OK)
        status = key_file_elements(file, c, k->source[entry->source].path, first, rows, k->elements.bytes, e);
    *value = k->elements.bytes + c->offset;
    return status;
}
