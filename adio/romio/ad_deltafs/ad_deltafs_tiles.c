/* Walking through a data type that is laid one after another: the pieces of a file view, or of memory. */
#include "ad_deltafs.h"

#define ENDLESS INT64_MAX

static void tiles_set(struct ad_deltafs_tiles *t, MPI_Datatype datatype, ADIO_Offset base)
{
    MPI_Count size;
    MPI_Count lower;
    MPI_Count extent;
    int is_contiguous;

    memset(t, 0, sizeof *t);
    t->base = base;
    ADIOI_Datatype_iscontig(datatype, &is_contiguous);
    if (is_contiguous) {
        t->whole[1] = ENDLESS;
        t->index = &t->whole[0];
        t->length = &t->whole[1];
        t->blocks = 1;
        t->size = t->extent = ENDLESS;
        return;
    }
    MPI_Type_size_x(datatype, &size);
    MPI_Type_get_extent_x(datatype, &lower, &extent);
    t->size = size;
    t->extent = extent;
    if (size == 0)
        return;
    const ADIOI_Flatlist_node *flat = ADIOI_Flatten_and_find(datatype);
    t->index = flat->indices;
    t->length = flat->blocklens;
    t->blocks = flat->count;
}

/* Go to the next block that has data, unless this one has some left. */
static void tiles_settle(struct ad_deltafs_tiles *t)
{
    while (t->done >= t->length[t->block]) {
        t->done = 0;
        if (++t->block == t->blocks) {
            t->block = 0;
            t->tile++;
        }
    }
}

/* Pass over `bytes` of data. */
static void tiles_skip(struct ad_deltafs_tiles *t, ADIO_Offset bytes)
{
    t->tile = bytes / t->size;
    t->done = bytes % t->size;
    while (t->done >= t->length[t->block])
        t->done -= t->length[t->block++];
    tiles_settle(t);
}

/* Go to the first data at `where` or behind it. In a view data lies in ascending order. */
static void tiles_find(struct ad_deltafs_tiles *t, ADIO_Offset where)
{
    ADIO_Offset offset = where - t->base;

    tiles_settle(t); /* to the first block that has data */
    if (offset > t->index[t->block] && t->extent > 0)
        t->tile = (offset - t->index[t->block]) / t->extent;
    offset -= t->tile * t->extent;
    while (t->block < t->blocks && t->index[t->block] + t->length[t->block] <= offset)
        t->block++;
    if (t->block == t->blocks) {
        t->block = 0;
        t->tile++;
    } else if (offset > t->index[t->block]) {
        t->done = offset - t->index[t->block];
    }
    tiles_settle(t);
}

void ad_deltafs_tiles_memory(struct ad_deltafs_tiles *t, MPI_Datatype datatype)
{
    tiles_set(t, datatype, 0);
    if (t->size > 0)
        tiles_settle(t);
}

void ad_deltafs_tiles_view(struct ad_deltafs_tiles *t, ADIO_File fd, int file_ptr_type, ADIO_Offset offset)
{
    tiles_set(t, fd->filetype, fd->disp);
    if (t->size == 0)
        return;
    if (file_ptr_type == ADIO_INDIVIDUAL)
        tiles_find(t, fd->fp_ind);
    else
        tiles_skip(t, offset * fd->etype_size);
}

ADIO_Offset ad_deltafs_tiles_where(const struct ad_deltafs_tiles *t)
{
    return t->base + t->tile * t->extent + t->index[t->block] + t->done;
}

ADIO_Offset ad_deltafs_tiles_next(struct ad_deltafs_tiles *t, ADIO_Offset most, ADIO_Offset *offset)
{
    if (t->size == 0)
        return 0;
    ADIO_Offset size = t->length[t->block] - t->done;
    if (size > most)
        size = most;
    *offset = ad_deltafs_tiles_where(t);
    t->done += size;
    tiles_settle(t);
    return size;
}

void ad_deltafs_tiles_pass(struct ad_deltafs_tiles *t, ADIO_Offset bytes)
{
    ADIO_Offset ignored;

    while (bytes > 0)
        bytes -= ad_deltafs_tiles_next(t, bytes, &ignored);
}
