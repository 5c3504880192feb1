/* Transfers that HDF5 describes by MPI datatypes: `count` of one in memory, and bytes of the file by another, as a
 * file's view has them. Both are taken apart into runs of bytes, by what they were made of. */
#include <stdlib.h>
#include "datatype.h"
#include "vfd_types.h"

/* Runs of bytes in the order of a type. */
struct flat {
    struct {
        MPI_Aint at, size;
    } * run;
    size_t count, room;
};

static int flat_add(void *arg, MPI_Count at, MPI_Count size)
{
    struct flat *l = arg;

    if (l->count > 0 && l->run[l->count - 1].at + l->run[l->count - 1].size == at) {
        l->run[l->count - 1].size += size;
        return 0;
    }
    if (l->count == l->room) {
        size_t room = 2 * l->room + 64;
        void *grown = realloc(l->run, room * sizeof *l->run);
        if (!grown)
            return 1;
        l->run = grown;
        l->room = room;
    }
    l->run[l->count].at = at;
    l->run[l->count++].size = size;
    return 0;
}

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
        datatype_walk(memory_type, (MPI_Count)count, 0, flat_add, &memory) != 0 ||
        datatype_walk(file_type, 1, 0, flat_add, &file) != 0 || (memory.count > 0 && file.count == 0))
        rc = vfd_fail(f->calls, VFD_UNSUPPORTED, "deltafs: %s: a transfer of MPI datatypes that cannot be followed",
                      f->path);
    else
        rc = types_walk(f, is_write, base, bytes, &memory, &file, extent);
    free(memory.run);
    free(file.run);
    return rc;
}
