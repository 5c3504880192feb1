#include <stdlib.h>
#include <string.h>
#include "hdf5/h5place.h"
#include "hdf5/h5values.h"

#define WIDTH_MAX  16         /* of a second dimension */
#define PIECES_MAX 8192       /* of a column; more are no longer a short list */
#define CHUNKS_MAX (1u << 22) /* whose places are collected: 32 MiB */
#define ROWS_MAX   (UINT64_C(1) << 38)

#define NO_LIST 1 /* no status: the values are not in a short list of places, but HDF5 can read them */

int h5place_shape(struct h5dataset *d)
{
    uint64_t extent[32] = {0, 1};
    h5_id space = d->lib->dataset_space(d->id);
    int dimensions = space < 0 ? -1 : d->lib->dimensions(space);

    if (dimensions == 1 || dimensions == 2)
        d->lib->extent(space, extent, NULL);
    if (space >= 0)
        d->lib->space_close(space);
    d->rows = extent[0];
    d->width = dimensions == 2 ? extent[1] : 1;
    int is_fit = (dimensions == 1 || dimensions == 2) && d->width >= 1 && d->width <= WIDTH_MAX && d->rows <= ROWS_MAX;
    return is_fit ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND;
}

static int target_refuse(const struct h5dataset *d, const char *is, struct error *e)
{
    return error_set(
        e, DELTAFS_ERR_INVALID,
        "%s: %s %s, so its values cannot be read from this file directly; 'h5repack -f NONE -l CONTI IN OUT' "
        "makes a file that can be indexed",
        d->path, d->name, is);
}

/* A piece behind those that there are, or more of the last one. */
static int place_add(struct deltafs_piece *piece, size_t *count, uint64_t first, uint64_t rows, uint64_t offset,
                     uint64_t stride)
{
    struct deltafs_piece *last = *count > 0 ? &piece[*count - 1] : NULL;

    if (last && last->offset + last->rows * stride == offset)
        last->rows += rows;
    else if (*count == PIECES_MAX)
        return -1;
    else
        piece[(*count)++] = (struct deltafs_piece){first, rows, offset};
    return 0;
}

/* Where the chunks are, in the order of their rows. */
struct chunks {
    uint64_t rows; /* of a chunk */
    uint64_t count;
    uint64_t *address;
};

static int chunks_note(const uint64_t *at, unsigned filters, uint64_t address, uint64_t size, void *arg)
{
    struct chunks *c = arg;

    (void)filters;
    (void)size;
    if (at[0] / c->rows < c->count)
        c->address[at[0] / c->rows] = address;
    return 0;
}

static int chunks_fail(const struct h5dataset *d, struct error *e)
{
    return error_set(e, DELTAFS_ERR_IO, "%s: %s: HDF5 does not say where its chunks are", d->path, d->name);
}

static int chunks_find(struct chunks *c, const struct h5dataset *d, struct error *e)
{
    for (uint64_t i = 0; i < c->count; i++)
        c->address[i] = H5_NO_ADDRESS;
    return !d->lib->chunks || d->lib->chunks(d->id, 0, chunks_note, c) >= 0 ? DELTAFS_OK : chunks_fail(d, e);
}

/* Older versions must be asked for each chunk, which takes a time that grows with the square of their number: so only
 * until the pieces are too many. */
static int place_chunks(const struct h5dataset *d, const struct chunks *c, struct deltafs_piece *piece, size_t *count,
                        struct error *e)
{
    uint64_t stride = d->size * d->width, stored;
    unsigned filters;

    for (uint64_t i = 0; i < c->count; i++) {
        const uint64_t where[2] = {i * c->rows, 0};
        if (!d->lib->chunks && d->lib->chunk_place(d->id, where, &filters, &c->address[i], &stored) < 0)
            return chunks_fail(d, e);
        uint64_t at = i * c->rows, rows = d->rows - at < c->rows ? d->rows - at : c->rows;
        if (c->address[i] == H5_NO_ADDRESS ||
            place_add(piece, count, at, rows, c->address[i] + d->user_block, stride) != 0)
            return NO_LIST;
    }
    return d->rows > 0 ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND;
}

/* Each column has pieces of its own, which differ by where the column is in a row. */
static int place_share(struct h5columns *columns, size_t first, const struct deltafs_piece *piece, size_t count,
                       struct error *e)
{
    for (size_t i = first; i < columns->count; i++) {
        struct deltafs_column *c = &columns->column[i];
        if (count == 1) {
            c->offset += piece->offset;
            continue;
        }
        struct deltafs_piece *own = malloc(count * sizeof *own);
        if (!own)
            return error_no_memory(e, count * sizeof *own, "the pieces of a column");
        for (size_t k = 0; k < count; k++)
            own[k] = (struct deltafs_piece){piece[k].first, piece[k].rows, piece[k].offset + c->offset};
        c->piece = own;
        c->piece_count = count;
        c->offset = 0;
    }
    return DELTAFS_OK;
}

static int place_chunked(const struct h5dataset *d, h5_id plist, struct h5columns *columns, size_t first,
                         struct error *e)
{
    uint64_t chunk[2] = {0, 0};
    int dimensions = d->lib->chunk(plist, 2, chunk), has_width = dimensions == 2;
    size_t count = 0;

    if (dimensions < 1 || chunk[0] == 0 || (has_width && chunk[1] != d->width) || !d->lib->chunk_place)
        return NO_LIST;
    if (chunk[0] > ROWS_MAX)
        chunk[0] = ROWS_MAX;
    struct chunks chunks = {.rows = chunk[0], .count = (d->rows + chunk[0] - 1) / chunk[0]};
    if (chunks.count > CHUNKS_MAX)
        return NO_LIST;
    struct deltafs_piece *piece = malloc((chunks.count < PIECES_MAX ? chunks.count + 1 : PIECES_MAX) * sizeof *piece);
    chunks.address = malloc((chunks.count + 1) * sizeof *chunks.address);
    int status = piece && chunks.address ? chunks_find(&chunks, d, e) : error_no_memory(e, 0, "the places of chunks");
    if (status == DELTAFS_OK)
        status = place_chunks(d, &chunks, piece, &count, e);
    if (status == DELTAFS_OK)
        status = place_share(columns, first, piece, count, e);
    free(chunks.address);
    free(piece);
    return status;
}

static int place_contiguous(const struct h5dataset *d, h5_id plist, struct h5columns *columns, size_t first,
                            struct error *e)
{
    if (d->lib->externals(plist) > 0)
        return target_refuse(d, "is in other files", e);
    /* Of one that has none, the place is a wrong one if there is a user block. */
    uint64_t address = d->lib->dataset_stored(d->id) > 0 ? d->lib->dataset_offset(d->id) : H5_NO_ADDRESS;
    if (address == H5_NO_ADDRESS)
        return DELTAFS_ERR_NOT_FOUND;
    for (size_t i = first; i < columns->count; i++)
        columns->column[i].offset += address;
    return DELTAFS_OK;
}

/* HDF5 is to read the values. A last row that it can read shows that it has the filters. */
static int place_dataset(const struct h5dataset *d, struct h5columns *columns, size_t first, struct error *e)
{
    size_t size = d->size * d->width;
    uint8_t *row = malloc(size);
    char why[H5_WHY];

    if (!row)
        return error_no_memory(e, size, "a row");
    int rc = h5values_get(d->lib, d->id, size, d->rows - 1, 1, row, why);
    free(row);
    if (rc != 0)
        return error_set(e, DELTAFS_ERR_IO, "%s: %s: HDF5 cannot read its values%s%s", d->path, d->name,
                         *why ? ": " : "", why);
    for (size_t i = first; i < columns->count; i++) {
        columns->column[i].dataset = strdup(d->name);
        if (!columns->column[i].dataset)
            return error_no_memory(e, strlen(d->name) + 1, "a dataset's path");
    }
    return DELTAFS_OK;
}

/* Whether elements have parts that HDF5 would allocate: texts of any length, lists, references. */
static int has_parts(const struct h5dataset *d)
{
    static const int classes[] = {H5_STRING, H5_REFERENCE, H5_LIST};
    h5_id type = d->lib->dataset_type(d->id);
    int has = type < 0;

    if (type < 0 || d->lib->class(type) == H5_STRING) {
        has |= type >= 0 && d->lib->is_variable(type);
    } else {
        for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
            has |= d->lib->has_class(type, classes[i]) != 0;
    }
    if (type >= 0)
        d->lib->type_close(type);
    return has;
}

int h5place_set(const struct h5dataset *d, struct h5columns *columns, size_t first, struct error *e)
{
    h5_id plist = d->lib->dataset_plist(d->id);
    int layout = plist < 0 ? -1 : d->lib->layout(plist), status;

    for (size_t i = first; i < columns->count; i++)
        columns->column[i].stride = d->size * d->width;
    if (layout == H5_CONTIGUOUS)
        status = place_contiguous(d, plist, columns, first, e);
    else if (layout == H5_CHUNKED)
        status = d->lib->filters(plist) > 0 ? NO_LIST : place_chunked(d, plist, columns, first, e);
    else
        status = layout == H5_COMPACT ? NO_LIST : target_refuse(d, "is virtual", e);
    if (status == NO_LIST && d->lib->dataset_stored(d->id) == 0)
        status = DELTAFS_ERR_NOT_FOUND;
    else if (status == NO_LIST && has_parts(d))
        status = target_refuse(d, "is compressed, or not in one piece, and has texts, lists or references in it", e);
    else if (status == NO_LIST)
        status = place_dataset(d, columns, first, e);
    if (plist >= 0)
        d->lib->plist_close(plist);
    return status;
}
