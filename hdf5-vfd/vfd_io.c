/* Vector and selection I/O: HDF5 hands over many pieces in one call, and one call of the library takes them.
 *
 * A selection is walked as two lists of runs, of the file and of memory, which have the same bytes in the same order.
 * Runs are collected, some at a time, with their bytes one after another, as deltafs_logical_write_list has them. */
#include <stdlib.h>
#include <string.h>
#include "h5fd.h"

#define RUNS_MAX   1024              /* of each list at a time */
#define GATHER_MAX ((size_t)1 << 20) /* bytes that are copied together, so that they stay in the processor's cache */
#define SHORT_RUN  1024u       /* bytes; runs that are shorter, and close together, are read with what is between */
#define SPREAD_MAX 4           /* times their bytes */
#define LONG_RUN   (64u << 10) /* bytes of a run that is not gathered */

int vfd_check_range(struct vfd_file *f, enum vfd_fault fault, uint64_t at, uint64_t size)
{
    /* Of the end, a reader beside a writer (SWMR) knows what it was when it opened the file. */
    int is_beside = fault == VFD_CANNOT_READ && (f->head.access_flags & VFD_SWMR_READ);

    if (at <= INT64_MAX && size <= INT64_MAX - at && (is_beside || at + size <= f->end))
        return 0;
    return vfd_fail(f->calls, fault, "deltafs: %s: %ju bytes at offset %ju are beyond the end, %ju", f->path,
                    (uintmax_t)size, (uintmax_t)at, (uintmax_t)f->end);
}

/* ---- Transfers ---- */

/* The runs of one dataspace. */
struct runs {
    hid_t iterator;
    hsize_t offset[RUNS_MAX]; /* in bytes */
    size_t size[RUNS_MAX];
    size_t count, next;
};

/* A transfer: pieces of the file, and their bytes. */
struct vfd_transfer {
    struct vfd_file *f;
    int is_write;
    struct runs file, memory;
    struct deltafs_extent piece[RUNS_MAX];
    uint8_t *place[RUNS_MAX]; /* of a piece's bytes in the program's memory */
    size_t count, bytes;
    int is_scattered; /* the places do not follow one another */
    uint8_t *gather;
};

static int runs_fill(const struct vfd_calls *calls, struct runs *r)
{
    size_t elements;

    if (r->next < r->count)
        return 0;
    r->next = r->count = 0;
    /* Zero-sized runs are none. */
    if (calls->sequences(r->iterator, RUNS_MAX, SIZE_MAX / 2, &r->count, &elements, r->offset, r->size) < 0)
        return -1;
    return r->count > 0 ? 0 : -1;
}

static void transfer_copy(struct vfd_transfer *t)
{
    uint8_t *at = t->gather;

    for (size_t i = 0; i < t->count; i++) {
        size_t size = (size_t)t->piece[i].size;
        memcpy(t->is_write ? at : t->place[i], t->is_write ? t->place[i] : at, size);
        at += size;
    }
}

/* From where to where in the file all runs are, if they are so short and close that it is read as one; or 0. */
static size_t transfer_span(const struct vfd_transfer *t)
{
    const struct deltafs_extent *first = t->piece, *last = &t->piece[t->count - 1];

    if (t->is_write || t->count < 2 || t->bytes / t->count >= SHORT_RUN || last->offset < first->offset)
        return 0;
    uint64_t span = last->offset - first->offset + last->size;
    for (size_t i = 1; i < t->count; i++)
        if (t->piece[i].offset < t->piece[i - 1].offset + t->piece[i - 1].size)
            return 0;
    return span <= GATHER_MAX && span / SPREAD_MAX <= t->bytes ? (size_t)span : 0;
}

/* Returns -1 if the span cannot be read, which may be because of the bytes between the runs: these are not wanted. */
static int transfer_sieve(struct vfd_transfer *t, size_t span)
{
    const struct deltafs_extent whole = {t->piece[0].offset, span};

    if (t->f->kind->move(t->f, 0, 1, &whole, t->gather) != 0)
        return -1;
    for (size_t i = 0; i < t->count; i++)
        memcpy(t->place[i], t->gather + (t->piece[i].offset - whole.offset), (size_t)t->piece[i].size);
    return 0;
}

static int transfer_flush(struct vfd_transfer *t)
{
    if (t->count == 0)
        return 0;
    size_t span = transfer_span(t);
    int rc = 0;

    if ((span || t->is_scattered) && !t->gather && !(t->gather = malloc(GATHER_MAX)))
        return vfd_fail(t->f->calls, VFD_UNSUPPORTED, "deltafs: %s: no memory", t->f->path);
    if (!span || transfer_sieve(t, span) != 0) {
        if (t->is_scattered && t->is_write)
            transfer_copy(t);
        rc = t->f->kind->move(t->f, t->is_write, t->count, t->piece, t->is_scattered ? t->gather : t->place[0]);
        if (t->is_scattered && !t->is_write && rc == 0)
            transfer_copy(t);
    }
    t->count = t->bytes = 0;
    t->is_scattered = 0;
    return rc;
}

int vfd_transfer_add(struct vfd_transfer *t, uint64_t at, uint8_t *place, size_t size)
{
    if (vfd_check_range(t->f, t->is_write ? VFD_CANNOT_WRITE : VFD_CANNOT_READ, at, size) != 0)
        return -1;
    int is_long = size >= LONG_RUN;
    if ((t->count == RUNS_MAX || is_long || size > GATHER_MAX - t->bytes) && transfer_flush(t) != 0)
        return -1;
    if (t->count > 0 && place != t->place[t->count - 1] + t->piece[t->count - 1].size)
        t->is_scattered = 1;
    t->piece[t->count] = (struct deltafs_extent){at, size};
    t->place[t->count++] = place;
    t->bytes += size;
    return is_long ? transfer_flush(t) : 0;
}

/* One pair of dataspaces. */
static int transfer_walk(struct vfd_transfer *t, uint64_t base, uint8_t *bytes, uint64_t left)
{
    const struct vfd_calls *calls = t->f->calls;
    struct runs *file = &t->file, *memory = &t->memory;

    while (left > 0) {
        if (runs_fill(calls, file) != 0 || runs_fill(calls, memory) != 0)
            return vfd_fail(calls, VFD_UNSUPPORTED, "deltafs: %s: a selection that cannot be followed", t->f->path);
        size_t i = file->next, k = memory->next;
        size_t size = file->size[i] < memory->size[k] ? file->size[i] : memory->size[k];
        if (size == 0 || size > left || file->offset[i] > UINT64_MAX - base)
            return vfd_fail(calls, VFD_UNSUPPORTED, "deltafs: %s: a selection of the wrong size", t->f->path);
        if (vfd_transfer_add(t, base + file->offset[i], bytes + memory->offset[k], size) != 0)
            return -1;
        file->offset[i] += size;
        memory->offset[k] += size;
        file->next += (file->size[i] -= size) == 0;
        memory->next += (memory->size[k] -= size) == 0;
        left -= size;
    }
    return 0;
}

static int transfer_pair(struct vfd_transfer *t, hid_t memory, hid_t space, uint64_t base, size_t element,
                         uint8_t *bytes)
{
    const struct vfd_calls *calls = t->f->calls;
    hssize_t n = calls->count(space);
    int rc;

    if (n == 0)
        return 0;
    if (n < 0 || (uint64_t)n > INT64_MAX / (element ? element : 1))
        return vfd_fail(calls, VFD_UNSUPPORTED, "deltafs: %s: a selection that cannot be counted", t->f->path);
    t->file.count = t->file.next = t->memory.count = t->memory.next = 0;
    t->file.iterator = calls->select(space, element, 0);
    t->memory.iterator = calls->select(memory, element, 0);
    if (t->file.iterator >= 0 && t->memory.iterator >= 0)
        rc = transfer_walk(t, base, bytes, (uint64_t)n * element);
    else
        rc = vfd_fail(calls, VFD_UNSUPPORTED, "deltafs: %s: a selection that cannot be followed", t->f->path);
    if (t->file.iterator >= 0)
        calls->unselect(t->file.iterator);
    if (t->memory.iterator >= 0)
        calls->unselect(t->memory.iterator);
    return rc == 0 ? 0 : vfd_fail_again(calls);
}

struct vfd_transfer *vfd_transfer_begin(struct vfd_file *f, int is_write)
{
    struct vfd_transfer *t = malloc(sizeof *t);

    if (!t) {
        vfd_fail(f->calls, VFD_UNSUPPORTED, "deltafs: %s: no memory", f->path);
        return NULL;
    }
    /* Not its long lists, for the sake of short transfers. */
    t->f = f;
    t->is_write = is_write;
    t->count = t->bytes = 0;
    t->is_scattered = 0;
    t->gather = NULL;
    return t;
}

int vfd_transfer_end(struct vfd_transfer *t, int rc)
{
    if (rc == 0)
        rc = transfer_flush(t);
    free(t->gather);
    free(t);
    return rc;
}

/* HDF5 shortens lists of sizes: from an entry of 0 on, all are as the one before. */
static size_t size_at(const size_t *sizes, size_t i, size_t *last, int *is_last)
{
    if (!*is_last && i > 0 && sizes[i] == 0)
        *is_last = 1;
    if (!*is_last)
        *last = sizes[i];
    return *last;
}

static int transfer_run(struct vfd_file *f, int is_write, size_t count, const hid_t *memory, const hid_t *space,
                        const haddr_t *offsets, const size_t *element_sizes, void *const *bytes)
{
    const struct vfd_calls *calls = f->calls;
    size_t element = 0;
    void *place = NULL;
    int rc = 0, is_last_size = 0, is_last_place = 0;

    if (!calls->select || !calls->sequences || !calls->unselect || !calls->count)
        return vfd_fail(calls, VFD_UNSUPPORTED, "deltafs: %s: this HDF5 has no iterators over selections", f->path);
    struct vfd_transfer *t = vfd_transfer_begin(f, is_write);
    if (!t)
        return -1;
    for (size_t i = 0; i < count && rc == 0; i++) {
        if (!is_last_place && !(is_last_place = i > 0 && !bytes[i])) /* a short list, too */
            place = bytes[i];
        rc = transfer_pair(t, memory[i], space[i], offsets[i], size_at(element_sizes, i, &element, &is_last_size),
                           place);
    }
    return vfd_transfer_end(t, rc);
}

herr_t vfd_read_selection(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t memory[], hid_t space[],
                          haddr_t offsets[], size_t element_sizes[], void *bytes[])
{
    (void)type;
    (void)dxpl;
    return transfer_run((struct vfd_file *)file, 0, count, memory, space, offsets, element_sizes, bytes);
}

herr_t vfd_write_selection(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t memory[], hid_t space[],
                           haddr_t offsets[], size_t element_sizes[], const void *bytes[])
{
    (void)type;
    (void)dxpl;
    return transfer_run((struct vfd_file *)file, 1, count, memory, space, offsets, element_sizes,
                        (void *const *)(const void *)bytes);
}

/* ---- Vectors ---- */

static int vector_run(struct vfd_file *f, int is_write, uint32_t count, const haddr_t *at, const size_t *sizes,
                      void *const *bytes)
{
    struct vfd_transfer *t = vfd_transfer_begin(f, is_write);
    size_t last = 0;
    int rc = 0, is_last = 0;

    if (!t)
        return -1;
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        size_t size = size_at(sizes, i, &last, &is_last);
        rc = size > 0 ? vfd_transfer_add(t, at[i], bytes[i], size) : 0;
    }
    return vfd_transfer_end(t, rc);
}

herr_t vfd_read_vector(H5FD_t *file, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t at[], size_t sizes[],
                       void *bytes[])
{
    (void)dxpl;
    (void)types;
    return vector_run((struct vfd_file *)file, 0, count, at, sizes, bytes);
}

herr_t vfd_write_vector(H5FD_t *file, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t at[], size_t sizes[],
                        const void *bytes[])
{
    (void)dxpl;
    (void)types;
    return vector_run((struct vfd_file *)file, 1, count, at, sizes, (void *const *)(const void *)bytes);
}
