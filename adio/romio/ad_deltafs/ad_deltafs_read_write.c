/* One access, of any shape in memory and in the file, as calls of the library: lists of extents and the bytes that
 * belong there, one after another. Bytes that are not so in memory are copied together, a part at a time. In atomic
 * mode an access is one part, whatever that takes. */
#include "ad_deltafs.h"
#include "mpiu_greq.h"

/* Extents in a call, and bytes that are copied together for one: enough that a call's own cost does not count. */
#define PART_EXTENTS 1024
#define PART_BYTES   ((ADIO_Offset)4 << 20)
#define ENDLESS      INT64_MAX

/* ---- Tiles ---- */

/* A data type that is laid one after another from a base on: a file view, or the memory that is read or written. */
struct tiles {
    ADIO_Offset base;   /* where tile 0 begins */
    ADIO_Offset extent; /* from one tile to the next */
    ADIO_Offset size;   /* bytes of data in one */
    const ADIO_Offset *index;
    const ADIO_Offset *length;
    MPI_Count blocks;
    ADIO_Offset tile; /* the place in it: tile, block, and bytes of the block that are done */
    MPI_Count block;
    ADIO_Offset done;
};

static void tiles_init(struct tiles *t, MPI_Datatype datatype, ADIO_Offset base)
{
    static const ADIO_Offset index = 0, length = ENDLESS;
    MPI_Count lower;
    int is_contiguous = datatype == MPI_BYTE;

    *t = (struct tiles){.base = base, .size = ENDLESS, .extent = ENDLESS, .index = &index, .length = &length};
    t->blocks = 1; /* a contiguous type is one endless block */
    if (!is_contiguous)
        ADIOI_Datatype_iscontig(datatype, &is_contiguous);
    if (is_contiguous)
        return;
    MPI_Type_size_x(datatype, &t->size);
    MPI_Type_get_extent_x(datatype, &lower, &t->extent);
    if (t->size == 0)
        return;
    const ADIOI_Flatlist_node *flat = ADIOI_Flatten_and_find(datatype);
    t->index = flat->indices;
    t->length = flat->blocklens;
    t->blocks = flat->count;
}

/* Go to the next block that has data, unless this one has some left. */
static void tiles_settle(struct tiles *t)
{
    while (t->done >= t->length[t->block]) {
        t->done -= t->length[t->block];
        if (++t->block == t->blocks) {
            t->block = 0;
            t->tile++;
        }
    }
}

/* Pass over `bytes` of data. */
static void tiles_pass(struct tiles *t, ADIO_Offset bytes)
{
    t->tile += bytes / t->size;
    t->done += bytes % t->size;
    tiles_settle(t);
}

/* Go to the first data at `where` or behind it. In a view data lies in ascending order. */
static void tiles_find(struct tiles *t, ADIO_Offset where)
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

/* Where the next piece begins. */
static ADIO_Offset tiles_where(const struct tiles *t)
{
    return t->base + t->tile * t->extent + t->index[t->block] + t->done;
}

/* Take the next piece of at most `most` bytes: its size and where it begins. */
static ADIO_Offset tiles_next(struct tiles *t, ADIO_Offset most, ADIO_Offset *offset)
{
    ADIO_Offset size = t->length[t->block] - t->done;

    if (size > most)
        size = most;
    *offset = tiles_where(t);
    t->done += size;
    tiles_settle(t);
    return size;
}

/* ---- An access in parts ---- */

enum { WRITE = 1, CONTIG = 2 }; /* kinds of accesses, for what they are in struct access */

struct access {
    const char *where; /* its name in messages */
    int is_write;
    int is_contig; /* in the file, and by bytes and not by the view */
    ADIO_File fd;
    char *buffer;
    ADIO_Offset bytes; /* in all */
    struct tiles memory;
    struct tiles view;
};

struct part {
    struct deltafs_extent *extent; /* `few`, except in atomic mode */
    struct deltafs_extent few[PART_EXTENTS];
    size_t extents;
    size_t room;
    ADIO_Offset bytes;
    char *copy; /* NULL if memory is contiguous */
};

static int part_init(struct part *p, const struct access *a)
{
    p->extent = p->few;
    p->room = PART_EXTENTS;
    p->copy = NULL;
    if (a->bytes == 0 || a->memory.length[0] == ENDLESS)
        return DELTAFS_OK;
    p->copy = malloc((size_t)(a->fd->atomicity || a->bytes < PART_BYTES ? a->bytes : PART_BYTES));
    return p->copy ? DELTAFS_OK : DELTAFS_ERR_MEMORY;
}

static void part_fini(struct part *p)
{
    if (p->extent != p->few)
        free(p->extent);
    free(p->copy);
}

static int part_grow(struct part *p)
{
    struct deltafs_extent *old = p->extent == p->few ? NULL : p->extent;
    struct deltafs_extent *more = realloc(old, 4 * p->room * sizeof *more);

    if (!more)
        return DELTAFS_ERR_MEMORY;
    if (!old)
        memcpy(more, p->few, sizeof p->few);
    p->extent = more;
    p->room *= 4;
    return DELTAFS_OK;
}

/* The extents of the next part, of at most `left` bytes. */
static int part_cut(struct part *p, struct access *a, ADIO_Offset left)
{
    ADIO_Offset most = p->copy && !a->fd->atomicity && left > PART_BYTES ? PART_BYTES : left;

    p->extents = 0;
    p->bytes = 0;
    while (p->bytes < most) {
        struct deltafs_extent *last = p->extents > 0 ? &p->extent[p->extents - 1] : NULL;
        ADIO_Offset offset = tiles_where(&a->view);
        int is_next = last && last->offset + last->size == (uint64_t)offset;
        if (!is_next && p->extents == p->room) {
            if (!a->fd->atomicity)
                break;
            if (part_grow(p) != DELTAFS_OK)
                return DELTAFS_ERR_MEMORY;
        }
        ADIO_Offset size = tiles_next(&a->view, most - p->bytes, &offset);
        if (is_next)
            last->size += (uint64_t)size;
        else
            p->extent[p->extents++] = (struct deltafs_extent){(uint64_t)offset, (uint64_t)size};
        p->bytes += size;
    }
    return DELTAFS_OK;
}

/* Copy `bytes` of a part together from memory, or out to it. */
static void part_copy(struct part *p, struct access *a, ADIO_Offset bytes)
{
    for (ADIO_Offset done = 0; p->copy && done < bytes;) {
        ADIO_Offset offset;
        ADIO_Offset size = tiles_next(&a->memory, bytes - done, &offset);
        char *memory = a->buffer + offset, *copy = p->copy + done;
        memcpy(a->is_write ? copy : memory, a->is_write ? memory : copy, (size_t)size);
        done += size;
    }
}

/* Write one part, or read it; *got is set to the bytes that were. A part that is read ends early at the file's end:
 * memory behind that is left as it was if it is not contiguous, and becomes zeros if it is. */
static int part_move(struct part *p, struct access *a, char *bytes, size_t *got)
{
    deltafs_mpi_file *handle = ((struct ad_deltafs_file *)a->fd->fs_ptr)->handle;
    int status;

    if (a->is_write) {
        part_copy(p, a, p->bytes);
        *got = (size_t)p->bytes;
        return ad_deltafs_library.mpi_file_write_list(handle, p->extents, p->extent, bytes);
    }
    status = ad_deltafs_library.mpi_file_read_list(handle, p->extents, p->extent, bytes, got);
    if (status == DELTAFS_OK)
        part_copy(p, a, (ADIO_Offset)*got);
    return status;
}

/* *moved is set to the bytes that were written or read. The view is passed over as far as was asked for, also where
 * that is beyond the file's end. */
static int access_move(struct access *a, ADIO_Offset *moved)
{
    struct part part;
    const char *message = "no memory for the pieces of an access";
    ADIO_Offset cut = 0;
    size_t got = 0;
    int status = part_init(&part, a);

    *moved = 0;
    while (*moved == cut && cut < a->bytes && status == DELTAFS_OK) {
        status = part_cut(&part, a, a->bytes - cut);
        if (status != DELTAFS_OK)
            break;
        status = part_move(&part, a, part.copy ? part.copy : a->buffer + cut, &got);
        if (status != DELTAFS_OK)
            message = ad_deltafs_library.errmsg(NULL);
        cut += part.bytes;
        *moved += (ADIO_Offset)got;
    }
    if (a->bytes > cut)
        tiles_pass(&a->view, a->bytes - cut);
    part_fini(&part);
    return ad_deltafs_error(a->where, status, message);
}

/* An access as ROMIO asks for it: the buffer is not written to if it is written from. As in ROMIO's own drivers, the
 * individual pointer goes behind what was read by a contiguous access, and behind what was asked for by another. The
 * bytes moved are set in *status, or, if `request` is not NULL, in a completed request: there is none after an error.
 */
static void access_run(const char *where, int kind, ADIO_File fd, const void *buf, AD_DELTAFS_WHAT, ADIO_Status *status,
                       ADIO_Request *request, int *error_code)
{
    struct access access = {.where = where, .is_write = kind & WRITE, .is_contig = kind & CONTIG, .fd = fd},
                  *a = &access;
    MPI_Count size;
    ADIO_Offset moved;

    ad_deltafs_enter(fd);
    if (file_ptr_type == ADIO_INDIVIDUAL && a->is_contig)
        offset = fd->fp_ind;
    a->buffer = (char *)(uintptr_t)buf;
    MPI_Type_size_x(datatype, &size);
    tiles_init(&a->memory, a->is_contig ? MPI_BYTE : datatype, 0);
    tiles_init(&a->view, a->is_contig ? MPI_BYTE : fd->filetype, a->is_contig ? offset : fd->disp);
    a->bytes = a->view.size == 0 ? 0 : count * size;
    if (a->bytes > 0) {
        tiles_settle(&a->memory);
        if (a->is_contig)
            tiles_settle(&a->view);
        else if (file_ptr_type == ADIO_INDIVIDUAL)
            tiles_find(&a->view, fd->fp_ind);
        else
            tiles_pass(&a->view, offset * fd->etype_size);
    }
    if (a->is_write)
        fd->dirty_write = 1;
    *error_code = access_move(a, &moved);
    if (*error_code != MPI_SUCCESS)
        moved = 0;
    else if (file_ptr_type == ADIO_INDIVIDUAL && a->is_contig)
        fd->fp_ind += moved;
    else if (file_ptr_type == ADIO_INDIVIDUAL && a->bytes > 0)
        fd->fp_ind = tiles_where(&a->view);
    ad_deltafs_leave(fd);
    if (!request) {
        MPIR_Status_set_bytes(status, datatype, moved);
        return;
    }
    *request = MPI_REQUEST_NULL;
    if (*error_code == MPI_SUCCESS)
        MPIO_Completed_request_create(&fd, moved, error_code, request);
}

/* ---- ROMIO's operations ---- */

#define BLOCKING(name, where, kind, buffer)                                                                            \
    void ad_deltafs_##name(ADIO_File fd, buffer buf, AD_DELTAFS_WHAT, ADIO_Status *status, int *error_code)            \
    {                                                                                                                  \
        access_run("ADIOI_DELTAFS_" where, kind, fd, buf, count, datatype, file_ptr_type, offset, status, NULL,        \
                   error_code);                                                                                        \
    }
#define NONBLOCKING(name, where, kind, buffer)                                                                         \
    void ad_deltafs_##name(ADIO_File fd, buffer buf, AD_DELTAFS_WHAT, ADIO_Request *request, int *error_code)          \
    {                                                                                                                  \
        access_run("ADIOI_DELTAFS_" where, kind, fd, buf, count, datatype, file_ptr_type, offset, NULL, request,       \
                   error_code);                                                                                        \
    }
BLOCKING(read_contig, "READCONTIG", CONTIG, void *)
BLOCKING(read_strided, "READSTRIDED", 0, void *)
BLOCKING(write_contig, "WRITECONTIG", WRITE | CONTIG, const void *)
BLOCKING(write_strided, "WRITESTRIDED", WRITE, const void *)
NONBLOCKING(iread_contig, "IREADCONTIG", CONTIG, void *)
NONBLOCKING(iread_strided, "IREADSTRIDED", 0, void *)
NONBLOCKING(iwrite_contig, "IWRITECONTIG", WRITE | CONTIG, const void *)
NONBLOCKING(iwrite_strided, "IWRITESTRIDED", WRITE, const void *)

/* A rank that reads back what it wrote finds it in one log, whatever the pattern in the file: nothing is gained by
 * reading for each other, except where the hint asks for it. That is wrong where the file is written, too: a rank must
 * see what it has just written itself, and another that reads for it cannot see that yet. */
void ad_deltafs_read_coll(ADIO_File fd, void *buf, AD_DELTAFS_WHAT, ADIO_Status *status, int *error_code)
{
    int shared = ad_deltafs_library.mpi_file_exchange(ad_deltafs_enter_all(fd));

    *error_code = ad_deltafs_last_error("ADIOI_DELTAFS_READCOLL", shared);
    ad_deltafs_leave(fd);
    if (*error_code != MPI_SUCCESS)
        MPIR_Status_set_bytes(status, datatype, 0);
    else if (fd->hints->cb_read == ADIOI_HINT_ENABLE && fd->access_mode & ADIO_RDONLY)
        ADIOI_GEN_ReadStridedColl(fd, buf, count, datatype, file_ptr_type, offset, status, error_code);
    else
        ad_deltafs_read_strided(fd, buf, count, datatype, file_ptr_type, offset, status, error_code);
}

/* Each rank writes its own extents. Then the ranks that may read see them, and later writes win over them. */
void ad_deltafs_write_coll(ADIO_File fd, const void *buf, AD_DELTAFS_WHAT, ADIO_Status *status, int *error_code)
{
    ad_deltafs_write_strided(fd, buf, count, datatype, file_ptr_type, offset, status, error_code);
    int shared = ad_deltafs_library.mpi_file_exchange(ad_deltafs_enter_all(fd));
    if (*error_code == MPI_SUCCESS)
        *error_code = ad_deltafs_last_error("ADIOI_DELTAFS_WRITECOLL", shared);
    ad_deltafs_leave(fd);
}
