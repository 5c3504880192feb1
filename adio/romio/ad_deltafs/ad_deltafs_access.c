/* One access, of any shape in memory and in the file, as calls of the library: lists of extents and the bytes that
 * belong there, one after another. Bytes that are not so in memory are copied together, a part at a time. */
#include "ad_deltafs.h"

/* Extents in a call, and bytes that are copied together for one: enough that a call's own cost does not count. */
#define PART_EXTENTS 8192
#define PART_BYTES   ((ADIO_Offset)4 << 20)

struct part {
    struct deltafs_extent *extent;
    size_t extents;
    ADIO_Offset bytes;
    char *copy; /* NULL if memory is contiguous */
};

void ad_deltafs_access_init(struct ad_deltafs_access *a, ADIO_File fd, const void *buffer, MPI_Count count,
                            MPI_Datatype datatype, int file_ptr_type, ADIO_Offset offset)
{
    MPI_Count size;

    a->fd = fd;
    a->buffer = (char *)buffer;
    MPI_Type_size_x(datatype, &size);
    a->bytes = count * size;
    ad_deltafs_tiles_memory(&a->memory, datatype);
    a->is_contiguous = a->memory.blocks == 1 && a->memory.index == a->memory.whole;
    ad_deltafs_tiles_view(&a->view, fd, file_ptr_type, offset);
    if (a->view.size == 0)
        a->bytes = 0;
}

/* The extents of the next part, of at most `left` bytes. */
static void part_cut(struct part *p, struct ad_deltafs_access *a, ADIO_Offset left)
{
    ADIO_Offset most = p->copy && left > PART_BYTES ? PART_BYTES : left;

    p->extents = 0;
    p->bytes = 0;
    while (p->bytes < most) {
        ADIO_Offset offset;
        if (p->extents == PART_EXTENTS)
            break;
        ADIO_Offset size = ad_deltafs_tiles_next(&a->view, most - p->bytes, &offset);
        struct deltafs_extent *last = p->extents > 0 ? &p->extent[p->extents - 1] : NULL;
        if (last && last->offset + last->size == (uint64_t)offset) {
            last->size += (uint64_t)size;
        } else {
            p->extent[p->extents].offset = (uint64_t)offset;
            p->extent[p->extents].size = (uint64_t)size;
            p->extents++;
        }
        p->bytes += size;
    }
}

/* Copy a part's bytes together from memory, or out to it. */
static void part_copy(struct part *p, struct ad_deltafs_access *a, int is_out)
{
    for (ADIO_Offset done = 0; done < p->bytes;) {
        ADIO_Offset offset;
        ADIO_Offset size = ad_deltafs_tiles_next(&a->memory, p->bytes - done, &offset);
        if (is_out)
            memcpy(a->buffer + offset, p->copy + done, (size_t)size);
        else
            memcpy(p->copy + done, a->buffer + offset, (size_t)size);
        done += size;
    }
}

static int part_init(struct part *p, const struct ad_deltafs_access *a, const char *where)
{
    ADIO_Offset bytes = a->bytes < PART_BYTES ? a->bytes : PART_BYTES;

    p->extent = malloc(PART_EXTENTS * sizeof *p->extent);
    p->copy = a->is_contiguous ? NULL : malloc((size_t)bytes);
    if (p->extent && (a->is_contiguous || p->copy))
        return MPI_SUCCESS;
    free(p->extent);
    free(p->copy);
    return ad_deltafs_error(where, DELTAFS_ERR_MEMORY, "no memory for the pieces of an access");
}

static void part_fini(struct part *p)
{
    free(p->extent);
    free(p->copy);
}

int ad_deltafs_access_write(struct ad_deltafs_access *a, const char *where)
{
    const struct ad_deltafs_library *library = ad_deltafs_loaded();
    deltafs_logical *handle = ad_deltafs_handle(a->fd);
    struct part part;
    int status = DELTAFS_OK;

    if (a->bytes == 0)
        return MPI_SUCCESS;
    int error_code = part_init(&part, a, where);
    if (error_code != MPI_SUCCESS)
        return error_code;
    for (ADIO_Offset done = 0; done < a->bytes && status == DELTAFS_OK; done += part.bytes) {
        part_cut(&part, a, a->bytes - done);
        if (part.copy)
            part_copy(&part, a, 0);
        const char *bytes = part.copy ? part.copy : a->buffer + done;
        if (part.extents == 1)
            status = library->logical_write(handle, part.extent->offset, bytes, (size_t)part.bytes);
        else
            status = library->logical_write_list(handle, part.extents, part.extent, bytes);
    }
    part_fini(&part);
    return ad_deltafs_file_error(where, a->fd, status);
}

int ad_deltafs_access_read(struct ad_deltafs_access *a, const char *where, ADIO_Offset *moved)
{
    const struct ad_deltafs_library *library = ad_deltafs_loaded();
    deltafs_logical *handle = ad_deltafs_handle(a->fd);
    struct part part;
    int status = DELTAFS_OK;
    size_t got = 0;

    *moved = 0;
    if (a->bytes == 0)
        return MPI_SUCCESS;
    int error_code = part_init(&part, a, where);
    if (error_code != MPI_SUCCESS)
        return error_code;
    for (ADIO_Offset done = 0; done < a->bytes; done += part.bytes) {
        part_cut(&part, a, a->bytes - done);
        char *bytes = part.copy ? part.copy : a->buffer + done;
        if (part.extents == 1)
            status = library->logical_read(handle, part.extent->offset, bytes, (size_t)part.bytes, &got);
        else
            status = library->logical_read_list(handle, part.extents, part.extent, bytes, &got);
        if (status != DELTAFS_OK)
            break;
        int is_end = (ADIO_Offset)got < part.bytes;
        part.bytes = (ADIO_Offset)got; /* what is beyond the file's end stays as it was in memory */
        if (part.copy)
            part_copy(&part, a, 1);
        *moved += part.bytes;
        if (is_end)
            break;
    }
    part_fini(&part);
    return ad_deltafs_file_error(where, a->fd, status);
}
