/* The driver's table of functions. */
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <errno.h>
#include "h5fd.h"

#define DRIVER_VALUE 511 /* HDF5 leaves 256 to 511 to drivers that it does not know */

static H5FD_t *class_open(const char *name, unsigned flags, hid_t fapl, haddr_t max)
{
    const struct vfd_calls *calls = vfd_calls_at(__builtin_return_address(0));
    struct vfd_config config;

    (void)max;
    if (vfd_config_init(&config, calls, fapl) != 0)
        return NULL;
    struct vfd_file *f = vfd_file_create(calls, name, flags);
    if (f && vfd_file_open(f, flags, &config) == 0) {
        f->options = config.options;
        return &f->head;
    }
    vfd_config_fini(&config);
    vfd_file_free(f);
    return NULL;
}

static herr_t class_close(H5FD_t *file)
{
    struct vfd_file *f = (struct vfd_file *)file;
    int rc = f->kind->close ? f->kind->close(f) : 0;

    vfd_file_free(f);
    return rc;
}

static int class_compare(const H5FD_t *a, const H5FD_t *b)
{
    return strcmp(((const struct vfd_file *)a)->identity, ((const struct vfd_file *)b)->identity);
}

/* Without a file: what the driver can do with files of its own. */
static herr_t class_query(const H5FD_t *file, unsigned long *flags)
{
    const struct vfd_file *f = (const struct vfd_file *)file;

    if (flags)
        *flags = f ? f->kind->features : vfd_logical_kind.features;
    return 0;
}

static haddr_t class_get_end(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return ((const struct vfd_file *)file)->end;
}

static herr_t class_set_end(H5FD_t *file, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    ((struct vfd_file *)file)->end = end;
    return 0;
}

static haddr_t class_get_size(const H5FD_t *file, H5FD_mem_t type)
{
    /* The kind's function takes a file that it may note an error in. */
    struct vfd_file *f = (struct vfd_file *)(uintptr_t)file;
    uint64_t size;

    (void)type;
    return f->kind->size(f, &size) == 0 ? size : HADDR_UNDEF;
}

/* A file descriptor: of a logical file its folder's. */
static herr_t class_get_handle(H5FD_t *file, hid_t fapl, void **handle)
{
    struct vfd_file *f = (struct vfd_file *)file;

    (void)fapl;
    *handle = &f->fd;
    return 0;
}

static herr_t class_move(struct vfd_file *f, int is_write, haddr_t at, size_t size, void *bytes)
{
    if (vfd_check_range(f, is_write ? VFD_CANNOT_WRITE : VFD_CANNOT_READ, at, size) != 0)
        return -1;
    return f->kind->move(f, is_write, 1, &(struct deltafs_extent){at, size}, bytes);
}

static herr_t class_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t size, void *bytes)
{
    (void)type;
    (void)dxpl;
    return class_move((struct vfd_file *)file, 0, at, size, bytes);
}

static herr_t class_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t size, const void *bytes)
{
    (void)type;
    (void)dxpl;
    return class_move((struct vfd_file *)file, 1, at, size, (void *)(uintptr_t)bytes);
}

/* The close comes right after, and is as durable as the option sync says. */
static herr_t class_flush(H5FD_t *file, hid_t dxpl, hbool_t is_closing)
{
    struct vfd_file *f = (struct vfd_file *)file;

    (void)dxpl;
    return f->is_writable && !is_closing && f->kind->flush ? f->kind->flush(f) : 0;
}

/* The file's end comes to where HDF5's addresses end. */
static herr_t class_truncate(H5FD_t *file, hid_t dxpl, hbool_t is_closing)
{
    struct vfd_file *f = (struct vfd_file *)file;
    uint64_t size;

    (void)dxpl;
    (void)is_closing;
    f->is_bare = 0;
    if (!f->is_writable || !f->kind->truncate)
        return 0;
    if (f->kind->size(f, &size) != 0)
        return -1;
    return size == f->end ? 0 : f->kind->truncate(f, f->end);
}

/* Advisory, as HDF5's own; some file systems have no locks. */
static herr_t class_flock(struct vfd_file *f, int operation)
{
    if (f->fd < 0 || flock(f->fd, operation | LOCK_NB) == 0 || errno == ENOSYS || errno == EOPNOTSUPP)
        return 0;
    return vfd_fail(
        f->calls, VFD_CANNOT_LOCK, "deltafs: %s: cannot be locked: %s (errno = %d)%s", f->path, strerror(errno), errno,
        errno == EWOULDBLOCK ? " (another program has it open; HDF5_USE_FILE_LOCKING=FALSE ignores that)" : "");
}

static herr_t class_lock(H5FD_t *file, hbool_t is_for_writing)
{
    return class_flock((struct vfd_file *)file, is_for_writing ? LOCK_EX : LOCK_SH);
}

static herr_t class_unlock(H5FD_t *file)
{
    return class_flock((struct vfd_file *)file, LOCK_UN);
}

static herr_t class_delete(const char *name, hid_t fapl)
{
    (void)fapl;
    return vfd_delete(vfd_calls_at(__builtin_return_address(0)), name);
}

const H5FD_class_t vfd_class = {
    .version = H5FD_CLASS_VERSION,
    .value = DRIVER_VALUE,
    .name = "deltafs",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .open = class_open,
    .close = class_close,
    .cmp = class_compare,
    .query = class_query,
    .get_eoa = class_get_end,
    .set_eoa = class_set_end,
    .get_eof = class_get_size,
    .get_handle = class_get_handle,
    .read = class_read,
    .write = class_write,
    .read_vector = vfd_read_vector,
    .write_vector = vfd_write_vector,
    .read_selection = vfd_read_selection,
    .write_selection = vfd_write_selection,
    .flush = class_flush,
    .truncate = class_truncate,
    .lock = class_lock,
    .unlock = class_unlock,
    .del = class_delete,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};
