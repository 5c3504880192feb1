/* The HDF5 driver "deltafs": what its parts share.
 *
 * HDF5 calls a driver's table (vfd_class.c) for a file. What is at the file's path decides its kind (vfd_open.c):
 *
 *   logical    a logical file of DeltaFS, read and written (vfd_logical.c); what is created is one
 *   plain      an ordinary file that exists already, treated as HDF5's own driver does (vfd_plain.c)
 *   pool       a file of a pool that runs, read and written (vfd_pool.c)
 *   image      a particle's records, or a directory's description, as an HDF5 file made in memory (vfd_image.c);
 *              read-only
 *
 * HDF5 may be linked statically, or be hidden in a Python package. So the plugin references no symbol of HDF5. It looks
 * up the few functions that it calls in the object that called the driver (vfd_calls.c).
 *
 * All functions here return 0, or -1 after vfd_fail has pushed the error on HDF5's stack. */
#ifndef DELTAFS_H5FD_H
#define DELTAFS_H5FD_H

#include <stddef.h>
#include <stdint.h>
#include <H5FDdevelop.h>
#include <H5PLextern.h>
#include <deltafs/deltafs_fileindex.h>
#include <deltafs/deltafs_logical.h>
#include <deltafs/deltafs_pool.h>

/* HDF5's own constants for these are function calls. */
enum vfd_flag {
    VFD_RDWR = 0x01,
    VFD_TRUNC = 0x02,
    VFD_EXCL = 0x04,
    VFD_CREATE = 0x10,
    VFD_SWMR_WRITE = 0x20,
    VFD_SWMR_READ = 0x40,
};

enum vfd_fault {
    VFD_CANNOT_OPEN,
    VFD_CANNOT_CLOSE,
    VFD_CANNOT_READ,
    VFD_CANNOT_WRITE,
    VFD_CANNOT_FLUSH,
    VFD_CANNOT_TRUNCATE,
    VFD_CANNOT_LOCK,
    VFD_CANNOT_DELETE,
    VFD_UNSUPPORTED,
    VFD_FAULTS
};

/* HDF5's functions, as the object has them that called the driver; any may be NULL. */
struct vfd_calls {
    const void *base; /* where that object is loaded */
    struct vfd_calls *next;
    __typeof__(H5Epush2) *push;
    const hid_t *error_class, *major, *minor[VFD_FAULTS];
    __typeof__(H5Pget_driver_config_str) *config;
    __typeof__(H5Ssel_iter_create) *select;
    __typeof__(H5Ssel_iter_get_seq_list) *sequences;
    __typeof__(H5Ssel_iter_close) *unselect;
    __typeof__(H5Sget_select_npoints) *count;
};

struct vfd_file;

struct vfd_kind {
    unsigned long features; /* HDF5's H5FD_FEAT_ */
    /* Read or write pieces whose bytes follow one another; what is beyond the end reads as zeros. */
    int (*move)(struct vfd_file *f, int is_write, size_t n, const struct deltafs_extent *piece, void *bytes);
    int (*size)(struct vfd_file *f, uint64_t *out);
    int (*flush)(struct vfd_file *f); /* NULL: there is nothing to do, here and below */
    int (*truncate)(struct vfd_file *f, uint64_t size);
    int (*close)(struct vfd_file *f);
};

struct vfd_file {
    H5FD_t head; /* HDF5's; must be first */
    /* Always NULL: H5Fset_mpi_atomicity takes any driver that knows MPI for HDF5's own, which has its MPI_File here. */
    const void *no_mpi_file;
    const struct vfd_calls *calls;
    const struct vfd_kind *kind;
    char *path;     /* from the root: a program may change its folder while it has a file open */
    char *identity; /* two files are the same if this is */
    uint64_t end;   /* of the addresses that HDF5 has given out */
    int fd;         /* of the plain file, or of the folder, for its lock; or -1 */
    int is_writable;
    int is_changed; /* through this handle: truncated or written */
    int is_bare;    /* created or emptied when it was opened, and no more than a superblock written since */
    deltafs_logical *logical;
    deltafs_pool *pool;
    deltafs_pool_file *pooled;
    uint8_t *image;
    size_t image_size;
    deltafs_options *options; /* of a file that one process has open, for its index */
    void *mpi;                /* struct vfd_mpi, where the file is open in parallel (vfd_mpi.c) */
};

/* From the file access property list's configuration string. */
struct vfd_config {
    deltafs_options *options;
    uint64_t records; /* bytes of memory for the records in a directory's description */
};

/* What is at a path. */
enum vfd_what {
    VFD_NOTHING,
    VFD_PARTICLES, /* a directory of DeltaFS, or a subfile of one */
    VFD_PLAIN,
    VFD_LOGICAL,
    VFD_POOL,
    VFD_FOLDER /* of something else */
};

struct vfd_here {
    enum vfd_what what;
    const char *key; /* the subfile's name in the path, of the directory `container`; or NULL */
    char *container;
    deltafs_pool *pool; /* stays connected until the file is open */
};

/* ---- vfd_calls.c ---- */

/* The functions of the object that has the code at `address`; never NULL. */
const struct vfd_calls *vfd_calls_at(const void *address);
int vfd_fail(const struct vfd_calls *calls, enum vfd_fault fault, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The last one of this thread once more: any public function of HDF5 that was called since has cleared the stack. */
int vfd_fail_again(const struct vfd_calls *calls);
/* 0 for DELTAFS_OK; otherwise vfd_fail with the message of the library's last call. */
int vfd_result(const struct vfd_calls *calls, enum vfd_fault fault, int status);

#define VFD_MESSAGE_MAX 2048 /* bytes */
const char *vfd_last_message(void);

/* ---- vfd_config.c ---- */

int vfd_config_init(struct vfd_config *config, const struct vfd_calls *calls, hid_t fapl);
void vfd_config_fini(struct vfd_config *config);

/* ---- vfd_open.c ---- */

/* HDF5's flags, as open(2) has them. */
int vfd_open_flags(unsigned flags);
/* A handle without a kind yet. */
struct vfd_file *vfd_file_create(const struct vfd_calls *calls, const char *path, unsigned flags);
int vfd_file_open(struct vfd_file *f, unsigned flags, const struct vfd_config *config);
void vfd_file_free(struct vfd_file *f);
/* What f is to be opened as: VFD_PARTICLES, VFD_PLAIN, VFD_LOGICAL or VFD_POOL. End with vfd_here_fini, whatever is
 * returned. */
int vfd_look_to_open(const struct vfd_file *f, unsigned flags, struct vfd_here *here);
void vfd_here_fini(struct vfd_here *here);
int vfd_delete(const struct vfd_calls *calls, const char *name);

/* ---- The kinds ---- */

int vfd_logical_open(struct vfd_file *f, unsigned flags, const struct vfd_config *config);
/* Before a file is opened for writing: take a deltafs.conf beside it into account. An option key that is not a pattern
 * for datasets is for other files, or a mistake. */
int vfd_logical_options(struct vfd_file *f, const struct vfd_config *config);
extern const struct vfd_kind vfd_logical_kind;
int vfd_plain_open(struct vfd_file *f, unsigned flags);
int vfd_pool_open(struct vfd_file *f, unsigned flags);
int vfd_pool_delete(const struct vfd_calls *calls, const char *path);
extern const struct vfd_kind vfd_image_kind;
int vfd_image_open(struct vfd_file *f, const struct vfd_here *here, const struct vfd_config *config);

/* Identity from device and number of what is at `path`, or is open already, and `key`. */
int vfd_identify(struct vfd_file *f, const char *path, const char *key);

/* ---- vfd_io.c: many pieces at once ---- */

herr_t vfd_read_vector(H5FD_t *file, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t at[], size_t sizes[],
                       void *bytes[]);
herr_t vfd_write_vector(H5FD_t *file, hid_t dxpl, uint32_t count, H5FD_mem_t types[], haddr_t at[], size_t sizes[],
                        const void *bytes[]);
herr_t vfd_read_selection(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t memory[], hid_t space[],
                          haddr_t offsets[], size_t element_sizes[], void *bytes[]);
herr_t vfd_write_selection(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t memory[], hid_t space[],
                           haddr_t offsets[], size_t element_sizes[], const void *bytes[]);
/* Within what HDF5 has given out, and not beyond what a file can have. */
int vfd_check_range(struct vfd_file *f, enum vfd_fault fault, uint64_t at, uint64_t size);

/* A transfer of pieces of the file from or to places in memory, many of them together. vfd_transfer_end does what is
 * left, unless rc says that something has failed already, and frees; returns rc or its own outcome. */
struct vfd_transfer;
struct vfd_transfer *vfd_transfer_begin(struct vfd_file *f, int is_write);
int vfd_transfer_add(struct vfd_transfer *t, uint64_t at, uint8_t *place, size_t size);
int vfd_transfer_end(struct vfd_transfer *t, int rc);

/* ---- vfd_class.c ---- */

extern const H5FD_class_t vfd_class;

#endif
