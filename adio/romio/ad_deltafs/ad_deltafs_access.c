/* One access, of any shape in memory and in the file, as calls of the library: lists of extents and the bytes that
 * belong there, one after another. Bytes that are not so in memory are copied together, a part at a time. In atomic
 * mode an access is one part, whatever that takes. */
#include "ad_deltafs.h"

/* Extents in a call, and bytes that are copied together for one: enough that a call's own cost does not count. */
#define PART_EXTENTS 8192
#define PART_BYTES   ((ADIO_Offset)4 << 20)

struct part {
    struct deltafs_extent *extent; /* `few`, while they will do */
    struct deltafs_extent few[64];
    size_t extents;
    size_t room;
    int is_all; /* to be the only part */
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

/* Room for one more extent. */
static int part_has_room(struct part *p)
{
    if (p->extents < p->room)
        return 1;
    if (!p->is_all && p->room >= PART_EXTENTS)
        return 0;
    struct deltafs_extent *old = p->extent == p->few ? NULL : p->extent;
    struct deltafs_extent *more = realloc(old, 4 * p->room * sizeof *more);
    if (!more)
        return 0;
    if (!old)
        memcpy(more, p->few, sizeof p->few);
    p->extent = more;
    p->room *= 4;
    return 1;
}

/* The extents of the next part, of at most `left` bytes. False if there should be no other, and memory does not
 * suffice. */
static int part_cut(struct part *p, struct ad_deltafs_access *a, ADIO_Offset left)
{
    ADIO_Offset most = p->copy && !p->is_all && left > PART_BYTES ? PART_BYTES : left;

    p->extents = 0;
    p->bytes = 0;
    while (p->bytes < most && part_has_room(p)) {
        ADIO_Offset offset;
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
    return p->bytes > 0 && (!p->is_all || p->bytes == left);
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

static int no_memory(const char *where)
{
    return ad_deltafs_error(where, DELTAFS_ERR_MEMORY, "no memory for the pieces of an access");
}

static int part_init(struct part *p, const struct ad_deltafs_access *a, const char *where)
{
    p->extent = p->few;
    p->room = sizeof p->few / sizeof p->few[0];
    p->is_all = a->fd->atomicity;
    p->copy = NULL;
    if (!a->is_contiguous)
        p->copy = malloc((size_t)(p->is_all || a->bytes < PART_BYTES ? a->bytes : PART_BYTES));
    return a->is_contiguous || p->copy ? MPI_SUCCESS : no_memory(where);
}

static void part_fini(struct part *p)
{
    if (p->extent != p->few)
        free(p->extent);
    free(p->copy);
}

int ad_deltafs_access_write(struct ad_deltafs_access *a, const char *where)
{
    const struct ad_deltafs_library *library = ad_deltafs_loaded();
    deltafs_logical *handle = ((struct ad_deltafs_file *)a->fd->fs_ptr)->handle;
    struct part part;

    if (a->bytes == 0)
        return MPI_SUCCESS;
    int error_code = part_init(&part, a, where);
    for (ADIO_Offset done = 0; done < a->bytes && error_code == MPI_SUCCESS; done += part.bytes) {
        if (!part_cut(&part, a, a->bytes - done)) {
            error_code = no_memory(where);
            break;
        }
        if (part.copy)
            part_copy(&part, a, 0);
        const char *bytes = part.copy ? part.copy : a->buffer + done;
        int status = part.extents == 1 ? library->logical_write(handle, part.extent->offset, bytes, (size_t)part.bytes)
                                       : library->logical_write_list(handle, part.extents, part.extent, bytes);
        error_code = ad_deltafs_last_error(where, status);
    }
    part_fini(&part);
    return error_code;
}

int ad_deltafs_access_read(struct ad_deltafs_access *a, const char *where, ADIO_Offset *moved)
{
    const struct ad_deltafs_library *library = ad_deltafs_loaded();
    deltafs_logical *handle = ((struct ad_deltafs_file *)a->fd->fs_ptr)->handle;
    struct part part;
    int is_end = 0;

    ADIO_Offset cut = 0;

    *moved = 0;
    if (a->bytes == 0)
        return MPI_SUCCESS;
    int error_code = part_init(&part, a, where);
    while (*moved < a->bytes && error_code == MPI_SUCCESS && !is_end) {
        size_t got = 0;
        if (!part_cut(&part, a, a->bytes - *moved)) {
            error_code = no_memory(where);
            break;
        }
        char *bytes = part.copy ? part.copy : a->buffer + *moved;
        int status = part.extents == 1
                         ? library->logical_read(handle, part.extent->offset, bytes, (size_t)part.bytes, &got)
                         : library->logical_read_list(handle, part.extents, part.extent, bytes, &got);
        error_code = ad_deltafs_last_error(where, status);
        if (error_code != MPI_SUCCESS)
            break;
        cut += part.bytes;
        is_end = (ADIO_Offset)got < part.bytes;
        part.bytes = (ADIO_Offset)got; /* a copy's memory is left as it was beyond the file's end */
        if (part.copy)
            part_copy(&part, a, 1);
        *moved += part.bytes;
    }
    if (error_code == MPI_SUCCESS)
        ad_deltafs_tiles_pass(&a->view, a->bytes - cut);
    part_fini(&part);
    return error_code;
}
