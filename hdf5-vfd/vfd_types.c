/* Transfers that HDF5 describes by MPI datatypes: `count` of one in memory, and bytes of the file by another, as a
 * file's view has them. Both are taken apart into runs of bytes, by what they were made of. */
#include <stdlib.h>
#include "vfd_types.h"

/* Runs of bytes in the order of a type. */
struct flat {
    struct {
        MPI_Aint at, size;
    } * run;
    size_t count, room;
};

static int flat_add(struct flat *l, MPI_Aint at, MPI_Aint size)
{
    if (size == 0)
        return 0;
    if (l->count > 0 && l->run[l->count - 1].at + l->run[l->count - 1].size == at) {
        l->run[l->count - 1].size += size;
        return 0;
    }
    if (l->count == l->room) {
        size_t room = 2 * l->room + 64;
        void *grown = realloc(l->run, room * sizeof *l->run);
        if (!grown)
            return -1;
        l->run = grown;
        l->room = room;
    }
    l->run[l->count].at = at;
    l->run[l->count++].size = size;
    return 0;
}

static int flat_type(struct flat *l, MPI_Datatype type, MPI_Aint at);

static int is_named(MPI_Datatype type)
{
    int integers, addresses, types, combiner;

    return MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
           combiner == MPI_COMBINER_NAMED;
}

/* `n` of a type, one behind the other. */
static int flat_block(struct flat *l, MPI_Datatype type, MPI_Aint n, MPI_Aint at)
{
    MPI_Aint low, extent;
    int size, rc = 0;

    if (MPI_Type_get_extent(type, &low, &extent) != MPI_SUCCESS || MPI_Type_size(type, &size) != MPI_SUCCESS)
        return -1;
    if (is_named(type) && extent == size)
        return flat_add(l, at, n * extent);
    for (MPI_Aint i = 0; i < n && rc == 0; i++)
        rc = flat_type(l, type, at + i * extent);
    return rc;
}

/* What a type was made of. */
struct contents {
    int integers, addresses, types, combiner;
    int *integer;
    MPI_Aint *address;
    MPI_Datatype *type;
};

static int flat_contents(struct flat *l, const struct contents *c, MPI_Aint at)
{
    const int *n = c->integer;
    MPI_Datatype old = c->type[0];
    MPI_Aint low, extent;
    int rc = MPI_Type_get_extent(old, &low, &extent) == MPI_SUCCESS ? 0 : -1;

    switch (c->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        return flat_type(l, old, at);
    case MPI_COMBINER_CONTIGUOUS:
        return flat_block(l, old, n[0], at);
    case MPI_COMBINER_VECTOR:
        for (int i = 0; i < n[0] && rc == 0; i++)
            rc = flat_block(l, old, n[1], at + i * extent * n[2]);
        return rc;
    case MPI_COMBINER_HVECTOR:
        for (int i = 0; i < n[0] && rc == 0; i++)
            rc = flat_block(l, old, n[1], at + i * c->address[0]);
        return rc;
    case MPI_COMBINER_INDEXED:
        for (int i = 0; i < n[0] && rc == 0; i++)
            rc = flat_block(l, old, n[1 + i], at + extent * n[1 + n[0] + i]);
        return rc;
    case MPI_COMBINER_HINDEXED:
        for (int i = 0; i < n[0] && rc == 0; i++)
            rc = flat_block(l, old, n[1 + i], at + c->address[i]);
        return rc;
    case MPI_COMBINER_INDEXED_BLOCK:
        for (int i = 0; i < n[0] && rc == 0; i++)
            rc = flat_block(l, old, n[1], at + extent * n[2 + i]);
        return rc;
    case MPI_COMBINER_HINDEXED_BLOCK:
        for (int i = 0; i < n[0] && rc == 0; i++)
            rc = flat_block(l, old, n[1], at + c->address[i]);
        return rc;
    case MPI_COMBINER_STRUCT:
        for (int i = 0; i < n[0] && rc == 0; i++)
            rc = flat_block(l, c->type[i], n[1 + i], at + c->address[i]);
        return rc;
    default:
        return -1;
    }
}

static int flat_type(struct flat *l, MPI_Datatype type, MPI_Aint at)
{
    struct contents c = {0};
    int size, rc = -1;

    if (MPI_Type_get_envelope(type, &c.integers, &c.addresses, &c.types, &c.combiner) != MPI_SUCCESS)
        return -1;
    if (c.combiner == MPI_COMBINER_NAMED)
        return MPI_Type_size(type, &size) == MPI_SUCCESS ? flat_add(l, at, size) : -1;
    c.integer = calloc((size_t)c.integers + 1, sizeof *c.integer);
    c.address = calloc((size_t)c.addresses + 1, sizeof *c.address);
    c.type = calloc((size_t)c.types + 1, sizeof *c.type);
    if (c.integer && c.address && c.type && c.types > 0 &&
        MPI_Type_get_contents(type, c.integers, c.addresses, c.types, c.integer, c.address, c.type) == MPI_SUCCESS) {
        rc = flat_contents(l, &c, at);
        for (int i = 0; i < c.types; i++)
            if (!is_named(c.type[i]))
                MPI_Type_free(&c.type[i]);
    }
    free(c.integer);
    free(c.address);
    free(c.type);
    return rc;
}

/* ---- Transfers ---- */

/* Runs of the file beside those of memory, cut where either ends; the file's type comes again and again. */
static int types_walk(struct vfd_file *f, int is_write, uint64_t base, uint8_t *bytes, const struct flat *memory,
                      const struct flat *file, MPI_Aint extent)
{
    struct vfd_transfer *t = vfd_transfer_begin(f, is_write);
    MPI_Aint in_file = 0, in_memory = 0, tile = 0;
    size_t k = 0;
    int rc = t ? 0 : -1;

    for (size_t i = 0; i < memory->count && rc == 0;) {
        MPI_Aint left = file->run[k].size - in_file, size = memory->run[i].size - in_memory;
        size = size < left ? size : left;
        MPI_Aint at = tile + file->run[k].at + in_file;
        if (at < 0 || (uint64_t)at > INT64_MAX - base)
            rc = vfd_fail(f->calls, VFD_UNSUPPORTED, "deltafs: %s: a file's view with such an offset", f->path);
        else
            rc = vfd_transfer_add(t, base + (uint64_t)at, bytes + memory->run[i].at + in_memory, (size_t)size);
        in_memory += size;
        in_file += size;
        if (in_memory == memory->run[i].size) {
            in_memory = 0;
            i++;
        }
        if (in_file == file->run[k].size) {
            in_file = 0;
            k = (k + 1) % file->count;
            tile += k == 0 ? extent : 0;
        }
    }
    return t ? vfd_transfer_end(t, rc) : rc;
}

int vfd_types_transfer(struct vfd_file *f, int is_write, uint64_t base, uint8_t *bytes, size_t count,
                       MPI_Datatype memory_type, MPI_Datatype file_type)
{
    struct flat memory = {0}, file = {0};
    MPI_Aint low, extent;
    int rc = 0;

    if (count == 0)
        return 0;
    if (count > INT64_MAX / 2 || MPI_Type_get_extent(file_type, &low, &extent) != MPI_SUCCESS ||
        flat_block(&memory, memory_type, (MPI_Aint)count, 0) != 0 || flat_type(&file, file_type, 0) != 0)
        rc = vfd_fail(f->calls, VFD_UNSUPPORTED, "deltafs: %s: a transfer of MPI datatypes that cannot be followed",
                      f->path);
    else if (memory.count > 0 && file.count == 0)
        rc = vfd_fail(f->calls, VFD_UNSUPPORTED, "deltafs: %s: a transfer to no place of the file", f->path);
    else
        rc = types_walk(f, is_write, base, bytes, &memory, &file, extent);
    free(memory.run);
    free(file.run);
    return rc;
}
