/* H5Pset_fapl_deltafs: the driver for files that the ranks of a communicator have open together.
 *
 * HDF5 takes it that what one rank has written, another reads after a barrier, of which it tells its driver nothing: so
 * it does with metadata that it evicts from its cache, and with the fill value of a contiguous dataset, which rank 0
 * writes. A logical file shows it only after a collective call, and there is none between the two: to have the ranks
 * share what they wrote (deltafs_logical_share) with each collective transfer, flush and truncation leaves these out.
 * So a file open for writing is in atomic mode, in which each read sees all that was written before it, unless the hint
 * deltafs_atomic is no: for programs that keep all metadata in the cache, and read only what was flushed.
 *
 * HDF5 writes the fill value of new chunks in a collective call, of which each rank writes a share, and lets a rank
 * that is through write values to any of them: so a rank comes out of a collective write when all have written.
 *
 * With a driver that knows MPI, HDF5 may describe a collective transfer by MPI datatypes, which it hands to its own
 * driver past the functions of this one: functions of HDF5 that are not public tell them. An HDF5 that hides those
 * is refused, since such a transfer would be taken for one of bytes.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_hdf5.h>
#include <deltafs/deltafs_mpi.h>
#include "vfd_types.h"

#define INFO_MAGIC 0x64667368u

/* In the property list. */
struct mpi_fapl {
    uint32_t magic;
    MPI_Comm comm;
    MPI_Info info;
};

/* Of an open file. */
struct vfd_mpi {
    MPI_Comm comm;
    MPI_Info info;
    int rank, ranks;
    uint64_t size; /* as all know it: when the file was opened, or cut */
};

static H5FD_class_t mpi_class;
static hid_t mpi_driver = H5I_INVALID_HID;

static struct vfd_mpi *mpi_of(const H5FD_t *file)
{
    return ((const struct vfd_file *)file)->mpi;
}

/* ---- The property list ---- */

static herr_t mpi_fapl_free(void *p)
{
    struct mpi_fapl *fapl = p;

    if (fapl->comm != MPI_COMM_NULL)
        MPI_Comm_free(&fapl->comm);
    if (fapl->info != MPI_INFO_NULL)
        MPI_Info_free(&fapl->info);
    free(fapl);
    return 0;
}

static void *mpi_fapl_make(MPI_Comm comm, MPI_Info info)
{
    struct mpi_fapl *fapl = calloc(1, sizeof *fapl);

    if (!fapl)
        return NULL;
    *fapl = (struct mpi_fapl){.magic = INFO_MAGIC, .comm = MPI_COMM_NULL, .info = MPI_INFO_NULL};
    if (MPI_Comm_dup(comm, &fapl->comm) == MPI_SUCCESS &&
        (info == MPI_INFO_NULL || MPI_Info_dup(info, &fapl->info) == MPI_SUCCESS))
        return fapl;
    mpi_fapl_free(fapl);
    return NULL;
}

static void *mpi_fapl_copy(const void *p)
{
    const struct mpi_fapl *fapl = p;

    return mpi_fapl_make(fapl->comm, fapl->info);
}

static void *mpi_fapl_get(H5FD_t *file)
{
    return mpi_fapl_make(mpi_of(file)->comm, mpi_of(file)->info);
}

/* ---- Opening and closing ---- */

/* All ranks are well: 0, or -1. */
static int mpi_agree(const struct vfd_mpi *m, int rc)
{
    int worst = rc < 0 ? -1 : 0;

    if (MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_INT, MPI_MIN, m->comm) != MPI_SUCCESS)
        return -1;
    return worst;
}

static void mpi_free(struct vfd_mpi *m)
{
    if (!m)
        return;
    if (m->comm != MPI_COMM_NULL)
        MPI_Comm_free(&m->comm);
    if (m->info != MPI_INFO_NULL)
        MPI_Info_free(&m->info);
    free(m);
}

/* Rank 0 says what is there: 'f', or '\0' for a file to be made, is opened together; the rest by each. */
static int mpi_is_logical(struct vfd_file *f, const struct vfd_mpi *m, unsigned flags)
{
    char *container = NULL, kind = '\0';
    const char *key = NULL;
    int is_logical = 0;

    if (m->rank == 0 && vfd_find_key(f->calls, f->path, &container, &key) == 0 && !key)
        is_logical = (deltafs_kind(f->path, &kind) == DELTAFS_OK && kind == 'f') || (!kind && (flags & VFD_CREATE));
    free(container);
    MPI_Bcast(&is_logical, 1, MPI_INT, 0, m->comm);
    return is_logical;
}

/* ---- The index of its keys ---- */

static int mpi_share(void *group, int value, char *message, size_t size)
{
    const struct vfd_mpi *m = group;

    return MPI_Bcast(&value, 1, MPI_INT, 0, m->comm) == MPI_SUCCESS &&
                   MPI_Bcast(message, (int)size, MPI_CHAR, 0, m->comm) == MPI_SUCCESS
               ? value
               : -1;
}

static int mpi_open_indexer(void *group, const char *collection, const char *path, const deltafs_options *options,
                            deltafs_indexer **out)
{
    const struct vfd_mpi *m = group;

    return deltafs_mpi_indexer_open(m->comm, collection, path, options, out);
}

static const struct vfd_indexing mpi_first = {.is_first = 1, .share = mpi_share, .open = mpi_open_indexer};
static const struct vfd_indexing mpi_other = {.is_first = 0, .share = mpi_share, .open = mpi_open_indexer};

/* Rank 0 says whether they are wanted. */
static int mpi_keys(struct vfd_file *f, struct vfd_mpi *m, const char *path, const struct vfd_config *config)
{
    int rc = f->is_writable && m->rank == 0 ? vfd_keys_begin(f, path, config, 0) : 0, is_wanted = f->keys != NULL;

    MPI_Bcast(&is_wanted, 1, MPI_INT, 0, m->comm);
    if (is_wanted && m->rank != 0)
        rc = vfd_keys_begin(f, path, config, 1);
    rc = mpi_agree(m, rc);
    if (rc == 0 && f->keys) {
        f->keys->how = m->rank == 0 ? &mpi_first : &mpi_other;
        f->keys->group = m;
    }
    return rc;
}

/* ---- Opening ---- */

static int mpi_open_logical(struct vfd_file *f, struct vfd_mpi *m, unsigned flags, const struct vfd_config *config,
                            int is_atomic)
{
    if (flags & (VFD_SWMR_WRITE | VFD_SWMR_READ))
        return vfd_fail(f->calls, VFD_UNSUPPORTED, "deltafs: %s: a logical file is not for SWMR", f->path);
    char *path = vfd_absolute(f->path);
    int rc = mpi_agree(m, path ? 0 : -1);
    if (rc == 0)
        rc = mpi_keys(f, m, path, config);
    int status = rc == 0 ? deltafs_mpi_logical_open(m->comm, path, vfd_open_flags(flags), config->options, &f->logical)
                         : DELTAFS_ERR_MEMORY;
    free(path);
    if (rc != 0)
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", f->path);
    if (status != DELTAFS_OK)
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s", deltafs_logical_errmsg(NULL));
    f->kind = &vfd_logical_kind;
    if (!f->is_writable || !is_atomic || deltafs_logical_set_atomic(f->logical, 1) == DELTAFS_OK)
        return 0;
    vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s", deltafs_logical_errmsg(f->logical));
    f->kind->close(f);
    return -1;
}

static int mpi_has_atomic(MPI_Info info)
{
    char value[8] = "";
    int is_set = 0;

    if (info != MPI_INFO_NULL)
        MPI_Info_get(info, "deltafs_atomic", sizeof value - 1, value, &is_set);
    return !is_set || strcmp(value, "no") != 0;
}

/* The hints that are options, without the driver's own. */
static int mpi_hints(struct vfd_file *f, const struct vfd_mpi *m, struct vfd_config *config)
{
    MPI_Info hints = MPI_INFO_NULL;
    char value[8];
    int is_set, status = DELTAFS_OK;

    if (m->info == MPI_INFO_NULL)
        return 0;
    if (MPI_Info_dup(m->info, &hints) != MPI_SUCCESS)
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: its hints cannot be read", f->path);
    MPI_Info_get(hints, "deltafs_atomic", sizeof value - 1, value, &is_set);
    if (is_set)
        MPI_Info_delete(hints, "deltafs_atomic");
    status = deltafs_mpi_options_from_info(hints, config->options);
    MPI_Info_free(&hints);
    return status == DELTAFS_OK ? 0 : vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s", deltafs_errmsg(NULL));
}

/* HDF5 reads the file or makes a new one, as this says; so it must be the same on ranks that come late, too. */
static int mpi_set_size(struct vfd_file *f, struct vfd_mpi *m)
{
    uint64_t size = 0;
    int rc = m->rank == 0 ? f->kind->size(f, &size) : 0;

    if (mpi_agree(m, rc) != 0 || MPI_Bcast(&size, 1, MPI_UINT64_T, 0, m->comm) != MPI_SUCCESS)
        return -1;
    m->size = size;
    return 0;
}

static haddr_t mpi_get_size(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return mpi_of(file)->size;
}

static int mpi_open_file(struct vfd_file *f, struct vfd_mpi *m, unsigned flags, hid_t fapl)
{
    struct vfd_config config = {0};
    int rc = vfd_config_init(&config, f->calls, fapl), is_atomic = mpi_has_atomic(m->info);

    if (rc == 0)
        rc = mpi_hints(f, m, &config);
    if (mpi_agree(m, rc) != 0) {
        vfd_config_fini(&config);
        return rc == 0 ? vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: another rank cannot open it", f->path) : -1;
    }
    if (mpi_is_logical(f, m, flags)) {
        rc = mpi_open_logical(f, m, flags, &config, is_atomic);
    } else {
        /* Made by rank 0 alone, so that what it makes is not cut again by a rank that comes late. */
        if (m->rank == 0)
            rc = vfd_open_kinds(f, flags, &config);
        rc = mpi_agree(m, rc);
        if (rc == 0 && m->rank != 0)
            rc = vfd_open_kinds(f, flags & ~(unsigned)(VFD_TRUNC | VFD_EXCL | VFD_CREATE), &config);
    }
    vfd_config_fini(&config);
    int worst = mpi_agree(m, rc);
    if (worst != 0 && rc == 0) {
        if (f->kind->close)
            f->kind->close(f);
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: another rank cannot open it", f->path);
    }
    if (rc == 0 && mpi_set_size(f, m) != 0) {
        if (f->kind->close)
            f->kind->close(f);
        return vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: its size is not known", f->path);
    }
    return rc;
}

static H5FD_t *mpi_open(const char *name, unsigned flags, hid_t id, haddr_t max)
{
    const struct vfd_calls *calls = vfd_calls_at(__builtin_return_address(0));
    const struct mpi_fapl *fapl = H5Pget_driver_info(id);
    struct vfd_file *f = NULL;
    struct vfd_mpi *m = NULL;

    (void)max;
    if (!fapl || fapl->magic != INFO_MAGIC)
        return vfd_fail_null(calls, VFD_CANNOT_OPEN, "deltafs: %s: the property list is not H5Pset_fapl_deltafs'",
                             name);
    m = calloc(1, sizeof *m);
    f = m ? vfd_file_create(calls, name, flags) : NULL;
    if (!f) {
        free(m);
        return vfd_fail_null(calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", name);
    }
    m->comm = MPI_COMM_NULL;
    m->info = MPI_INFO_NULL;
    int rc = MPI_Comm_dup(fapl->comm, &m->comm) == MPI_SUCCESS ? 0 : -1;
    if (rc == 0 && fapl->info != MPI_INFO_NULL && MPI_Info_dup(fapl->info, &m->info) != MPI_SUCCESS)
        rc = -1;
    if (rc == 0) {
        MPI_Comm_rank(m->comm, &m->rank);
        MPI_Comm_size(m->comm, &m->ranks);
        rc = mpi_open_file(f, m, flags, id);
    }
    if (rc == 0 && !f->identity)
        rc = vfd_identify(f, f->path, NULL);
    if (rc == 0) {
        f->mpi = m;
        return &f->head;
    }
    mpi_free(m);
    vfd_file_free(f);
    return NULL;
}

static herr_t mpi_close(H5FD_t *file)
{
    struct vfd_mpi *m = mpi_of(file);
    herr_t rc = vfd_class.close(file);

    mpi_free(m);
    return rc;
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

/* Collective: after it, all see what all have written, and the same size. */
static herr_t mpi_truncate(H5FD_t *file, hid_t dxpl, hbool_t is_closing)
{
    struct vfd_file *f = (struct vfd_file *)file;
    int rc = 0;

    if (!f->is_writable)
        return 0;
    if (f->logical) {
        rc = f->kind->flush(f) == 0 ? vfd_class.truncate(file, dxpl, is_closing) : -1;
    } else {
        MPI_Barrier(mpi_of(file)->comm);
        if (mpi_of(file)->rank == 0)
            rc = vfd_class.truncate(file, dxpl, is_closing);
        rc = mpi_agree(mpi_of(file), rc);
    }
    if (rc == 0)
        mpi_of(file)->size = f->end;
    return rc;
}

static herr_t mpi_control(H5FD_t *file, uint64_t code, uint64_t flags, const void *input, void **output)
{
    const struct vfd_mpi *m = mpi_of(file);

    (void)input;
    if (code == H5FD_CTL_GET_MPI_COMMUNICATOR_OPCODE)
        **(MPI_Comm **)output = m->comm;
    else if (code == H5FD_CTL_GET_MPI_INFO_OPCODE)
        **(MPI_Info **)output = m->info;
    else if (code == H5FD_CTL_GET_MPI_RANK_OPCODE)
        **(int **)output = m->rank;
    else if (code == H5FD_CTL_GET_MPI_SIZE_OPCODE)
        **(int **)output = m->ranks;
    else if (code == H5FD_CTL_GET_MPI_FILE_SYNC_OPCODE)
        **(hbool_t **)output = 0;
    else if (flags & H5FD_CTL_FAIL_IF_UNKNOWN_FLAG)
        return vfd_fail(((struct vfd_file *)file)->calls, VFD_UNSUPPORTED, "deltafs: an unknown control code");
    return 0;
}

/* HDF5's own functions that tell how a transfer is described. */
static int (*mpi_get_mode)(int *mode);
static int (*mpi_get_types)(MPI_Datatype *memory, MPI_Datatype *file);
static int (*mpi_get_how)(int *how);

/* Whether the transfer under way is one of `count` of an MPI datatype, not of bytes. */
static int mpi_has_types(MPI_Datatype *memory, MPI_Datatype *file)
{
    int mode = H5FD_MPIO_INDEPENDENT;

    return mpi_get_mode(&mode) >= 0 && mode == H5FD_MPIO_COLLECTIVE && mpi_get_types(memory, file) >= 0 &&
           (*memory != MPI_BYTE || *file != MPI_BYTE);
}

/* Whether all ranks make this transfer together: HDF5's own driver then makes MPI's collective calls. */
static int mpi_is_together(void)
{
    int mode = H5FD_MPIO_INDEPENDENT, how = H5FD_MPIO_INDIVIDUAL_IO;

    return mpi_get_mode(&mode) >= 0 && mode == H5FD_MPIO_COLLECTIVE && mpi_get_how(&how) >= 0 &&
           how == H5FD_MPIO_COLLECTIVE_IO;
}

/* After a write that has ended with `rc`. */
static herr_t mpi_written(H5FD_t *file, herr_t rc)
{
    return mpi_is_together() ? mpi_agree(mpi_of(file), rc) : rc;
}

static herr_t mpi_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t size, void *bytes)
{
    MPI_Datatype in_memory, in_file;

    if (type == H5FD_MEM_DRAW && mpi_has_types(&in_memory, &in_file))
        return vfd_types_transfer((struct vfd_file *)file, 0, at, bytes, size, in_memory, in_file);
    return vfd_class.read(file, type, dxpl, at, size, bytes);
}

static herr_t mpi_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t size, const void *bytes)
{
    MPI_Datatype in_memory, in_file;

    if (type == H5FD_MEM_DRAW && mpi_has_types(&in_memory, &in_file))
        return mpi_written(file, vfd_types_transfer((struct vfd_file *)file, 1, at, (uint8_t *)(uintptr_t)bytes, size,
                                                    in_memory, in_file));
    return mpi_written(file, vfd_class.write(file, type, dxpl, at, size, bytes));
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
    mpi_class.fapl_size = sizeof(struct mpi_fapl);
    mpi_class.fapl_get = mpi_fapl_get;
    mpi_class.fapl_copy = mpi_fapl_copy;
    mpi_class.fapl_free = mpi_fapl_free;
    mpi_class.open = mpi_open;
    mpi_class.close = mpi_close;
    mpi_class.query = mpi_query;
    mpi_class.get_eof = mpi_get_size;
    mpi_class.read = mpi_read;
    mpi_class.write = mpi_write;
    mpi_class.write_vector = mpi_write_vector;
    mpi_class.write_selection = mpi_write_selection;
    mpi_class.truncate = mpi_truncate;
    mpi_class.lock = NULL;
    mpi_class.unlock = NULL;
    mpi_class.ctl = mpi_control;
    mpi_driver = H5FDregister(&mpi_class);
    return mpi_driver;
}

herr_t H5Pset_fapl_deltafs(hid_t fapl, MPI_Comm comm, MPI_Info info)
{
    const struct mpi_fapl mine = {.magic = INFO_MAGIC, .comm = comm, .info = info};
    const struct vfd_calls *calls = vfd_calls_at((const void *)(uintptr_t)H5Pset_driver);

    if (comm == MPI_COMM_NULL)
        return vfd_fail(calls, VFD_CANNOT_OPEN, "H5Pset_fapl_deltafs: a communicator must be given");
    *(void **)&mpi_get_mode = dlsym(RTLD_DEFAULT, "H5CX_get_io_xfer_mode");
    *(void **)&mpi_get_types = dlsym(RTLD_DEFAULT, "H5CX_get_mpi_coll_datatypes");
    *(void **)&mpi_get_how = dlsym(RTLD_DEFAULT, "H5CX_get_mpio_coll_opt");
    if (!mpi_get_mode || !mpi_get_types || !mpi_get_how)
        return vfd_fail(calls, VFD_UNSUPPORTED,
                        "H5Pset_fapl_deltafs: this HDF5 does not tell how it describes collective transfers; use "
                        "H5Pset_fapl_mpio, and file names with the prefix deltafs:");
    hid_t driver = mpi_register();
    return driver < 0 ? -1 : H5Pset_driver(fapl, driver, &mine);
}
