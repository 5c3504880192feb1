/* H5Pset_fapl_deltafs: the driver for files that the ranks of a communicator open together.
 *
 * HDF5 assumes that a rank can read what another wrote as soon as both have passed a barrier: metadata that leaves its
 * cache, and the fill value of a contiguous dataset, which rank 0 writes. There is no collective call in between, after
 * which a logical file would show such writes. So a file that is open for writing is in atomic mode: each read sees,
 * and each write wins over, all earlier writes. With the hint deltafs_atomic=no, ranks see, and win over, what others
 * wrote before the last collective write, flush or truncation; deltafs-hdf5(7) says for which programs that is enough.
 *
 * Each rank writes a share of the fill value of new chunks. A rank that has finished may then write values to any of
 * them. So a rank leaves a collective write only when all have written, and its later writes win.
 *
 * HDF5 may describe a collective transfer by MPI datatypes, which it hands over through functions that are not public.
 * Without these, such a transfer would be taken for one of bytes; so an HDF5 that hides them is refused. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_hdf5.h>
#include <deltafs/deltafs_mpi.h>
#include "vfd_types.h"

#define INFO_MAGIC 0x64667368u
#define BCAST_MAX  (1 << 30) /* bytes at a time: MPI counts by int */
#define HEAP_BEGIN "GCOL\1"  /* of a collection of a global heap, which HDF5 writes as a whole, */
#define HEAP_MIN   4096      /* and which has at least so many bytes */

/* In the property list, and of an open file. */
struct vfd_mpi {
    uint32_t magic;
    MPI_Comm comm; /* a copy */
    MPI_Info info;
    int rank, ranks;
    /* Of an open file: */
    uint64_t size; /* the same on all ranks: as of the open, or the last truncation */
    /* Metadata that this rank could not write: the first reason, or "", and from where to where they all are: heaps are
     * the second. */
    char lost_why[VFD_MESSAGE_MAX];
    struct {
        uint64_t from, end; /* end 0: none */
    } lost[2];
};

static H5FD_class_t mpi_class;
static hid_t mpi_driver = H5I_INVALID_HID;

static struct vfd_mpi *mpi_of(const H5FD_t *file)
{
    return ((const struct vfd_file *)file)->mpi;
}

static herr_t mpi_free(void *p)
{
    struct vfd_mpi *m = p;

    if (!m)
        return 0;
    if (m->comm != MPI_COMM_NULL)
        MPI_Comm_free(&m->comm);
    if (m->info != MPI_INFO_NULL)
        MPI_Info_free(&m->info);
    free(m);
    return 0;
}

static struct vfd_mpi *mpi_create(void)
{
    struct vfd_mpi *m = calloc(1, sizeof *m);

    if (m)
        *m = (struct vfd_mpi){.magic = INFO_MAGIC, .comm = MPI_COMM_NULL, .info = MPI_INFO_NULL};
    return m;
}

/* Copy the communicator, which is collective, and the hints. Returns 0 or -1. */
static int mpi_dup(struct vfd_mpi *m, const struct vfd_mpi *from)
{
    if (MPI_Comm_dup(from->comm, &m->comm) != MPI_SUCCESS)
        return -1;
    MPI_Comm_rank(m->comm, &m->rank);
    MPI_Comm_size(m->comm, &m->ranks);
    return from->info == MPI_INFO_NULL || MPI_Info_dup(from->info, &m->info) == MPI_SUCCESS ? 0 : -1;
}

static void *mpi_copy(const void *from)
{
    struct vfd_mpi *m = mpi_create();

    if (m && mpi_dup(m, from) == 0)
        return m;
    mpi_free(m);
    return NULL;
}

static void *mpi_fapl_get(H5FD_t *file)
{
    return mpi_copy(mpi_of(file));
}

/* ---- Agreement between the ranks ----
 *
 * An error of one rank in a collective call is carried to the next of these calls, after which all ranks have it, with
 * their own message or that of the first rank that failed. An error of an independent read or write stays with its
 * rank, but for metadata that cannot be written (mpi_lose). */

/* Returns 0 if `rc` is 0 on all ranks; otherwise -1, with the message of the first rank that failed. */
static int mpi_settle(MPI_Comm comm, const struct vfd_calls *calls, enum vfd_fault fault, int rc)
{
    char message[VFD_MESSAGE_MAX];
    int rank, first;

    MPI_Comm_rank(comm, &rank);
    first = rc == 0 ? INT_MAX : rank;
    if (MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm) != MPI_SUCCESS)
        return rc == 0 ? vfd_fail(calls, fault, "deltafs: the ranks cannot communicate") : -1;
    if (first == INT_MAX)
        return 0;
    snprintf(message, sizeof message, "%s", vfd_last_message());
    if (MPI_Bcast(message, sizeof message, MPI_CHAR, first, comm) != MPI_SUCCESS)
        snprintf(message, sizeof message, "deltafs: a rank has failed");
    return rc == 0 ? vfd_fail(calls, fault, "%s (rank %d)", message, first) : -1;
}

/* The same, and *found becomes what it is on rank 0. */
static int mpi_follow(MPI_Comm comm, const struct vfd_calls *calls, enum vfd_fault fault, int rc, uint64_t *found)
{
    rc = mpi_settle(comm, calls, fault, rc);
    if (MPI_Bcast(found, 1, MPI_UINT64_T, 0, comm) != MPI_SUCCESS && rc == 0)
        rc = vfd_fail(calls, fault, "deltafs: the ranks cannot communicate");
    return rc;
}

/* mpi_settle for metadata that any rank could not write since the file was opened. */
static int mpi_settle_lost(const struct vfd_file *f, enum vfd_fault fault)
{
    const struct vfd_mpi *m = f->mpi;
    int rc = m->lost_why[0] ? vfd_fail(f->calls, fault, "%s", m->lost_why) : 0;

    return mpi_settle(m->comm, f->calls, fault, rc);
}

/* What H5Pset_fapl_deltafs has put into the property list; NULL after an error. */
static const struct vfd_mpi *mpi_of_list(hid_t fapl, const struct vfd_calls *calls, enum vfd_fault fault,
                                         const char *name)
{
    const struct vfd_mpi *m = H5Pget_driver_info(fapl);

    if (m && m->magic == INFO_MAGIC)
        return m;
    vfd_fail(calls, fault, "deltafs: %s: the property list is not H5Pset_fapl_deltafs'", name);
    return NULL;
}

/* ---- Opening ---- */

static int mpi_open_logical(struct vfd_file *f, unsigned flags, const struct vfd_config *config, int is_atomic)
{
    const struct vfd_mpi *m = f->mpi;
    int rc = f->is_writable && m->rank == 0 ? vfd_logical_options(f, config) : 0;

    if (mpi_settle(m->comm, f->calls, VFD_CANNOT_OPEN, rc) != 0)
        return -1;
    int status = deltafs_mpi_logical_open(m->comm, f->path, vfd_open_flags(flags), config->options, &f->logical);
    if (status == DELTAFS_OK && f->is_writable && is_atomic)
        status = deltafs_logical_set_atomic(f->logical, 1);
    f->kind = &vfd_logical_kind;
    f->is_changed = (flags & VFD_TRUNC) != 0;
    return vfd_result(f->calls, VFD_CANNOT_OPEN, status);
}

/* Each rank by itself. Rank 0 alone creates the file, so that a later rank does not truncate it again. */
static int mpi_open_each(struct vfd_file *f, unsigned flags, int (*open)(struct vfd_file *f, unsigned flags))
{
    const struct vfd_mpi *m = f->mpi;
    int rc = m->rank == 0 ? open(f, flags) : 0;

    rc = mpi_settle(m->comm, f->calls, VFD_CANNOT_OPEN, rc);
    if (rc == 0 && m->rank != 0)
        rc = open(f, flags & ~(unsigned)(VFD_TRUNC | VFD_EXCL | VFD_CREATE));
    return mpi_settle(m->comm, f->calls, VFD_CANNOT_OPEN, rc);
}

/* Use rank 0's image on all ranks: one made later could have more. */
static int mpi_open_particles(struct vfd_file *f, const struct vfd_here *here, const struct vfd_config *config)
{
    const struct vfd_mpi *m = f->mpi;
    int rc = m->rank == 0 ? vfd_image_open(f, here, config) : 0;
    uint64_t size = f->image_size;

    rc = mpi_follow(m->comm, f->calls, VFD_CANNOT_OPEN, rc, &size);
    if (rc == 0 && m->rank != 0 && !(f->image = malloc((size_t)size)))
        rc = vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", f->path);
    rc = mpi_settle(m->comm, f->calls, VFD_CANNOT_OPEN, rc);
    for (uint64_t at = 0; at < size && rc == 0; at += BCAST_MAX)
        if (MPI_Bcast(f->image + at, size - at < BCAST_MAX ? (int)(size - at) : BCAST_MAX, MPI_BYTE, 0, m->comm) !=
            MPI_SUCCESS)
            rc = vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: the ranks cannot communicate");
    f->image_size = (size_t)size;
    f->kind = &vfd_image_kind;
    return rc;
}

/* The hints: options, and the driver's own, whether a file for writing is in atomic mode. */
static int mpi_hints(const struct vfd_file *f, struct vfd_config *config, uint64_t *is_atomic)
{
    const struct vfd_mpi *m = f->mpi;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int is_set = 0, rc = 0;
    MPI_Info hints;

    if (m->info == MPI_INFO_NULL)
        return 0;
    if (MPI_Info_get(m->info, "deltafs_atomic", MPI_MAX_INFO_VAL, value, &is_set) != MPI_SUCCESS ||
        MPI_Info_dup(m->info, &hints) != MPI_SUCCESS)
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: its hints cannot be read", f->path);
    if (is_set) {
        MPI_Info_delete(hints, "deltafs_atomic");
        *is_atomic = strcmp(value, "no") != 0;
    }
    if (is_set && *is_atomic && strcmp(value, "yes") != 0)
        rc = vfd_fail(f->calls, VFD_CANNOT_OPEN,
                      "deltafs: %s: hint deltafs_atomic: '%s' is not valid; it takes no or yes", f->path, value);
    else
        rc = vfd_result(f->calls, VFD_CANNOT_OPEN, deltafs_mpi_options_from_info(hints, config->options));
    MPI_Info_free(&hints);
    return rc;
}

static haddr_t mpi_get_size(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return mpi_of(file)->size;
}

/* Rank 0 decides what is there. */
static int mpi_open_here(struct vfd_file *f, unsigned flags, const struct vfd_config *config, int is_atomic)
{
    const struct vfd_mpi *m = f->mpi;
    struct vfd_here here = {.what = VFD_NOTHING};
    int rc = m->rank == 0 ? vfd_look_to_open(f, flags, &here) : 0;
    uint64_t what = here.what;

    rc = mpi_follow(m->comm, f->calls, VFD_CANNOT_OPEN, rc, &what);
    if (rc == 0 && what == VFD_PARTICLES)
        rc = mpi_open_particles(f, &here, config);
    else if (rc == 0 && what == VFD_PLAIN)
        rc = mpi_open_each(f, flags, vfd_plain_open);
    else if (rc == 0 && what == VFD_POOL)
        rc = mpi_open_each(f, flags, vfd_pool_open);
    else if (rc == 0)
        rc = mpi_open_logical(f, flags, config, is_atomic);
    vfd_here_fini(&here);
    return rc;
}

static int mpi_open_file(struct vfd_file *f, unsigned flags, hid_t fapl)
{
    struct vfd_mpi *m = f->mpi;
    struct vfd_config config = {0};
    uint64_t is_atomic = 1;
    int rc = vfd_config_init(&config, f->calls, fapl);

    if (rc == 0)
        rc = mpi_hints(f, &config, &is_atomic);
    /* Switching atomic mode on is a collective call, so rank 0's value counts. */
    rc = mpi_follow(m->comm, f->calls, VFD_CANNOT_OPEN, rc, &is_atomic);
    if (rc == 0)
        rc = mpi_open_here(f, flags, &config, is_atomic != 0);
    vfd_config_fini(&config);
    /* HDF5 reads the file or creates a new one, depending on this size. So it must be the same on all ranks. */
    if (rc == 0 && m->rank == 0)
        rc = f->kind->size(f, &m->size);
    rc = mpi_follow(m->comm, f->calls, VFD_CANNOT_OPEN, rc, &m->size);
    if (rc != 0 && f->logical)
        f->kind->close(f);
    return rc;
}

static H5FD_t *mpi_open(const char *name, unsigned flags, hid_t id, haddr_t max)
{
    const struct vfd_calls *calls = vfd_calls_at(__builtin_return_address(0));
    const struct vfd_mpi *fapl = mpi_of_list(id, calls, VFD_CANNOT_OPEN, name);

    (void)max;
    if (!fapl)
        return NULL;
    struct vfd_file *f = vfd_file_create(calls, name, flags);
    int rc = f ? 0 : -1;
    if (f && !(f->mpi = mpi_create()))
        rc = vfd_fail(calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", name);
    rc = mpi_settle(fapl->comm, calls, VFD_CANNOT_OPEN, rc);
    if (rc == 0 && mpi_dup(f->mpi, fapl) != 0)
        rc = vfd_fail(calls, VFD_CANNOT_OPEN, "deltafs: %s: its communicator or hints cannot be copied", name);
    if (mpi_settle(fapl->comm, calls, VFD_CANNOT_OPEN, rc) == 0 && mpi_open_file(f, flags, id) == 0)
        return &f->head;
    if (f)
        mpi_free(f->mpi);
    vfd_file_free(f);
    return NULL;
}

/* By the path, of which all ranks have the same. */
static int mpi_compare(const H5FD_t *a, const H5FD_t *b)
{
    return strcmp(((const struct vfd_file *)a)->path, ((const struct vfd_file *)b)->path);
}

static herr_t mpi_close(H5FD_t *file)
{
    struct vfd_file *f = (struct vfd_file *)file;
    struct vfd_mpi *m = f->mpi;
    int lost = f->is_writable ? mpi_settle_lost(f, VFD_CANNOT_CLOSE) : 0;

    herr_t rc = vfd_class.close(file);
    mpi_free(m);
    return lost != 0 ? lost : rc;
}

static herr_t mpi_terminate(void)
{
    mpi_driver = H5I_INVALID_HID;
    return 0;
}

/* ---- What differs ---- */

static herr_t mpi_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    if (flags)
        *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_HAS_MPI |
                 H5FD_FEAT_ALLOCATE_EARLY | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

/* Collective: afterwards all ranks see what all have written, and the same size. Rank 0 decides whether the file is
 * truncated. */
static herr_t mpi_truncate(H5FD_t *file, hid_t dxpl, hbool_t is_closing)
{
    struct vfd_file *f = (struct vfd_file *)file;
    struct vfd_mpi *m = f->mpi;
    uint64_t size = 0;
    int rc = 0;

    if (!f->is_writable)
        return 0;
    if (mpi_settle_lost(f, VFD_CANNOT_TRUNCATE) != 0 || (f->logical && f->kind->flush(f) != 0))
        return -1;
    if (m->rank == 0)
        rc = f->logical ? f->kind->size(f, &size) : vfd_class.truncate(file, dxpl, is_closing);
    rc = mpi_follow(m->comm, f->calls, VFD_CANNOT_TRUNCATE, rc, &size);
    if (rc == 0 && f->logical && size != f->end)
        rc = f->kind->truncate(f, f->end);
    if (rc == 0)
        m->size = f->end;
    return rc;
}

static herr_t mpi_flush(H5FD_t *file, hid_t dxpl, hbool_t is_closing)
{
    const struct vfd_file *f = (const struct vfd_file *)file;

    if (f->is_writable && !is_closing && mpi_settle_lost(f, VFD_CANNOT_FLUSH) != 0)
        return -1;
    return vfd_class.flush(file, dxpl, is_closing);
}

/* Collective: no rank continues before the file is gone. */
static herr_t mpi_delete(const char *name, hid_t id)
{
    const struct vfd_calls *calls = vfd_calls_at(__builtin_return_address(0));
    const struct vfd_mpi *m = mpi_of_list(id, calls, VFD_CANNOT_DELETE, name);

    if (!m)
        return -1;
    MPI_Barrier(m->comm);
    return mpi_settle(m->comm, calls, VFD_CANNOT_DELETE, m->rank == 0 ? vfd_delete(calls, name) : 0);
}

static herr_t mpi_control(H5FD_t *file, uint64_t code, uint64_t flags, const void *input, void **output)
{
    struct vfd_file *f = (struct vfd_file *)file;
    const struct vfd_mpi *m = f->mpi;
    int is_asked = output && *output;

    (void)input;
    if (is_asked && code == H5FD_CTL_GET_MPI_COMMUNICATOR_OPCODE)
        **(MPI_Comm **)output = m->comm;
    else if (is_asked && code == H5FD_CTL_GET_MPI_INFO_OPCODE)
        **(MPI_Info **)output = m->info;
    else if (is_asked && code == H5FD_CTL_GET_MPI_RANK_OPCODE)
        **(int **)output = m->rank;
    else if (is_asked && code == H5FD_CTL_GET_MPI_SIZE_OPCODE)
        **(int **)output = m->ranks;
    else if (is_asked && code == H5FD_CTL_GET_MPI_FILE_SYNC_OPCODE)
        **(hbool_t **)output = 0;
    else if (flags & H5FD_CTL_FAIL_IF_UNKNOWN_FLAG)
        return vfd_fail(f->calls, VFD_UNSUPPORTED,
                        "deltafs: %s: an unknown control code, or one without a place for its answer", f->path);
    return 0;
}

/* HDF5's private functions that say how a transfer is described. */
static int (*mpi_get_mode)(int *mode);
static int (*mpi_get_types)(MPI_Datatype *memory, MPI_Datatype *file);
static int (*mpi_get_how)(int *how);

static int mpi_is_collective(void)
{
    int mode = H5FD_MPIO_INDEPENDENT;

    return mpi_get_mode(&mode) >= 0 && mode == H5FD_MPIO_COLLECTIVE;
}

/* Whether the current transfer is of `count` items of an MPI datatype, not of bytes. */
static int mpi_has_types(MPI_Datatype *memory, MPI_Datatype *file)
{
    return mpi_is_collective() && mpi_get_types(memory, file) >= 0 && (*memory != MPI_BYTE || *file != MPI_BYTE);
}

/* Whether all ranks make this transfer together: HDF5's own driver then makes MPI's collective calls. */
static int mpi_is_together(void)
{
    int how = H5FD_MPIO_INDIVIDUAL_IO;

    return mpi_is_collective() && mpi_get_how(&how) >= 0 && how == H5FD_MPIO_COLLECTIVE_IO;
}

/* After a write that ended with `rc`. Without atomic mode, later writes must win over it. */
static herr_t mpi_written(H5FD_t *file, herr_t rc)
{
    struct vfd_file *f = (struct vfd_file *)file;

    if (!mpi_is_together())
        return rc;
    if (mpi_settle(mpi_of(file)->comm, f->calls, VFD_CANNOT_WRITE, rc) != 0)
        return -1;
    return f->logical ? vfd_result(f->calls, VFD_CANNOT_WRITE, deltafs_logical_exchange(f->logical)) : 0;
}

/* The same for a read: of filtered chunks, HDF5 reads what it does not overwrite, and all ranks write then. */
static herr_t mpi_have_read(H5FD_t *file, herr_t rc)
{
    return mpi_is_together() ? mpi_settle(mpi_of(file)->comm, ((struct vfd_file *)file)->calls, VFD_CANNOT_READ, rc)
                             : rc;
}

/* HDF5 lets several ranks write metadata and waits for all of them. So a rank continues after an error, which the next
 * flush, truncation and close report to all ranks. Until then it does not read the bytes that were there before. */
static void mpi_lose(struct vfd_mpi *m, int is_heap, uint64_t at, uint64_t size)
{
    uint64_t end = size < UINT64_MAX - at ? at + size : UINT64_MAX;

    if (!m->lost_why[0])
        snprintf(m->lost_why, sizeof m->lost_why, "%s", vfd_last_message());
    int is_first = m->lost[is_heap].end == 0;
    m->lost[is_heap].from = is_first || at < m->lost[is_heap].from ? at : m->lost[is_heap].from;
    m->lost[is_heap].end = end > m->lost[is_heap].end ? end : m->lost[is_heap].end;
}

static int mpi_check_lost(const struct vfd_file *f, int is_heap, uint64_t at, uint64_t size)
{
    const struct vfd_mpi *m = f->mpi;

    if (at >= m->lost[is_heap].end || (at < m->lost[is_heap].from && size <= m->lost[is_heap].from - at))
        return 0;
    return vfd_fail(f->calls, VFD_CANNOT_READ, "%s (and what was to be written is to be read)", m->lost_why);
}

/* While values are transferred together, a rank may have to read metadata by itself. */
static herr_t mpi_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t size, void *bytes)
{
    MPI_Datatype in_memory, in_file;

    int is_heap = type == H5FD_MEM_DRAW && !mpi_is_together(); /* or values */
    if ((is_heap || type != H5FD_MEM_DRAW) && mpi_check_lost((const struct vfd_file *)file, is_heap, at, size) != 0)
        return -1;
    if (type != H5FD_MEM_DRAW)
        return vfd_class.read(file, type, dxpl, at, size, bytes);
    if (mpi_has_types(&in_memory, &in_file))
        return mpi_have_read(file, vfd_types_transfer((struct vfd_file *)file, 0, at, bytes, size, in_memory, in_file));
    return mpi_have_read(file, vfd_class.read(file, type, dxpl, at, size, bytes));
}

static herr_t mpi_read_vector(H5FD_t *file, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t at[],
                              size_t sizes[], void *bytes[])
{
    return mpi_have_read(file, vfd_read_vector(file, dxpl, count, types, at, sizes, bytes));
}

static herr_t mpi_read_selection(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t memory[], hid_t space[],
                                 haddr_t offsets[], size_t element_sizes[], void *bytes[])
{
    return mpi_have_read(file,
                         vfd_read_selection(file, type, dxpl, count, memory, space, offsets, element_sizes, bytes));
}

/* Heaps of values without a fixed size are metadata that HDF5 gives to a driver as values. Values that begin as a heap
 * does are taken for one. */
static int mpi_is_metadata(H5FD_mem_t type, size_t size, const void *bytes)
{
    return type != H5FD_MEM_DRAW || (size >= HEAP_MIN && memcmp(bytes, HEAP_BEGIN, sizeof HEAP_BEGIN - 1) == 0);
}

static herr_t mpi_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t size, const void *bytes)
{
    MPI_Datatype in_memory, in_file;

    if (type == H5FD_MEM_DRAW && mpi_has_types(&in_memory, &in_file))
        return mpi_written(file, vfd_types_transfer((struct vfd_file *)file, 1, at, (uint8_t *)(uintptr_t)bytes, size,
                                                    in_memory, in_file));
    herr_t rc = mpi_written(file, vfd_class.write(file, type, dxpl, at, size, bytes));
    if (rc == 0 || !mpi_is_metadata(type, size, bytes) || mpi_is_together())
        return rc;
    mpi_lose(mpi_of(file), type == H5FD_MEM_DRAW, at, size);
    return 0;
}

static herr_t mpi_write_vector(H5FD_t *file, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t at[],
                               size_t sizes[], const void *bytes[])
{
    return mpi_written(file, vfd_write_vector(file, dxpl, count, types, at, sizes, bytes));
}

static herr_t mpi_write_selection(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t memory[],
                                  hid_t space[], haddr_t offsets[], size_t element_sizes[], const void *bytes[])
{
    return mpi_written(file,
                       vfd_write_selection(file, type, dxpl, count, memory, space, offsets, element_sizes, bytes));
}

static hid_t mpi_register(void)
{
    if (H5Iget_type(mpi_driver) == H5I_VFL)
        return mpi_driver;
    mpi_class = vfd_class;
    mpi_class.name = "deltafs-mpi";
    mpi_class.value = vfd_class.value - 1;
    mpi_class.fc_degree = H5F_CLOSE_SEMI; /* a collective close comes when the program closes the file */
    mpi_class.terminate = mpi_terminate;
    mpi_class.fapl_size = sizeof(struct vfd_mpi);
    mpi_class.fapl_get = mpi_fapl_get;
    mpi_class.fapl_copy = mpi_copy;
    mpi_class.fapl_free = mpi_free;
    mpi_class.open = mpi_open;
    mpi_class.close = mpi_close;
    mpi_class.cmp = mpi_compare;
    mpi_class.query = mpi_query;
    mpi_class.get_eof = mpi_get_size;
    mpi_class.read = mpi_read;
    mpi_class.write = mpi_write;
    mpi_class.read_vector = mpi_read_vector;
    mpi_class.read_selection = mpi_read_selection;
    mpi_class.write_vector = mpi_write_vector;
    mpi_class.write_selection = mpi_write_selection;
    mpi_class.flush = mpi_flush;
    mpi_class.truncate = mpi_truncate;
    mpi_class.lock = NULL;
    mpi_class.unlock = NULL;
    mpi_class.del = mpi_delete;
    mpi_class.ctl = mpi_control;
    mpi_driver = H5FDregister(&mpi_class);
    return mpi_driver;
}

herr_t H5Pset_fapl_deltafs(hid_t fapl, MPI_Comm comm, MPI_Info info)
{
    const struct vfd_mpi mine = {.magic = INFO_MAGIC, .comm = comm, .info = info};
    const struct vfd_calls *calls = vfd_calls_at((const void *)(uintptr_t)H5Pset_driver);

    if (comm == MPI_COMM_NULL)
        return vfd_fail(calls, VFD_CANNOT_OPEN, "H5Pset_fapl_deltafs: a communicator must be given");
    if (deltafs_mpi_options_from_info(MPI_INFO_NULL, NULL) != DELTAFS_OK) /* which asks for the MPI that runs */
        return vfd_fail(calls, VFD_CANNOT_OPEN, "H5Pset_fapl_deltafs: %s", deltafs_errmsg(NULL));
    *(void **)&mpi_get_mode = dlsym(RTLD_DEFAULT, "H5CX_get_io_xfer_mode");
    *(void **)&mpi_get_types = dlsym(RTLD_DEFAULT, "H5CX_get_mpi_coll_datatypes");
    *(void **)&mpi_get_how = dlsym(RTLD_DEFAULT, "H5CX_get_mpio_coll_opt");
    if (!mpi_get_mode || !mpi_get_types || !mpi_get_how)
        return vfd_fail(calls, VFD_UNSUPPORTED,
                        "H5Pset_fapl_deltafs: this HDF5 does not say how it describes collective transfers; use "
                        "H5Pset_fapl_mpio, and file names with the prefix deltafs:");
    hid_t driver = mpi_register();
    return driver < 0 ? -1 : H5Pset_driver(fapl, driver, &mine);
}
