/* A read-only driver that is registered with HDF5 at run time, for one file. HDF5 defines a table of functions for
 * drivers (H5FD_class_t). From its member `name` on, the table begins alike in all versions since 1.10. Since 1.14 two
 * numbers come before that, and more functions behind `write`. All that are behind `write` may be NULL. HDF5 copies as
 * much of the table as it knows, so one table with enough zeros at its end serves all versions. */
#include <stdlib.h>
#include <string.h>
#include "hdf5/h5file.h"

#define READ_ONLY    0
#define CLOSE_STRONG 3   /* H5F_CLOSE_STRONG: with all that is open in it */
#define DRIVER_VALUE 510 /* HDF5 leaves 256 to 511 to drivers that it does not know */
#define CACHE_READS  0x6 /* H5FD_FEAT_ACCUMULATE_METADATA */

struct driver_file {
    uint64_t head[32]; /* HDF5's H5FD_t, which has fewer bytes */
    const struct h5source *source;
    uint64_t end; /* of the addresses that HDF5 has given out */
};

/* The file that this thread opens. NULL: another thread has asked for it (HDF5 may open files asynchronously). */
static _Thread_local const struct h5source *opening;

static void *driver_open(const char *name, unsigned flags, h5_id fapl, uint64_t most)
{
    struct driver_file *f = flags == READ_ONLY && opening ? calloc(1, sizeof *f) : NULL;

    (void)name;
    (void)fapl;
    (void)most;
    if (f)
        f->source = opening;
    return f;
}

static int driver_close(void *file)
{
    free(file);
    return 0;
}

static int driver_query(const void *file, unsigned long *flags)
{
    (void)file;
    *flags = CACHE_READS;
    return 0;
}

static uint64_t driver_get_end(const void *file, int type)
{
    (void)type;
    return ((const struct driver_file *)file)->end;
}

static int driver_set_end(void *file, int type, uint64_t end)
{
    (void)type;
    ((struct driver_file *)file)->end = end;
    return 0;
}

static uint64_t driver_size(const void *file, int type)
{
    (void)type;
    return ((const struct driver_file *)file)->source->size;
}

/* Zeros behind the end. */
static int driver_read(void *file, int type, h5_id dxpl, uint64_t at, size_t size, void *bytes)
{
    const struct h5source *s = ((struct driver_file *)file)->source;
    uint64_t here = at < s->size ? s->size - at : 0;
    size_t n = size < here ? size : (size_t)here;
    struct error ignored; /* HDF5 gives its own */

    (void)type;
    (void)dxpl;
    memset((uint8_t *)bytes + n, 0, size - n);
    return n == 0 || s->read(s->ctx, at, bytes, n, &ignored) == DELTAFS_OK ? 0 : -1;
}

static int driver_write(void *file, int type, h5_id dxpl, uint64_t at, size_t size, const void *bytes)
{
    (void)file;
    (void)type;
    (void)dxpl;
    (void)at;
    (void)size;
    (void)bytes;
    return -1;
}

struct driver_class {
    unsigned version;
    int value;
    struct {
        const char *name; /* the table of versions before 1.14 begins here */
        uint64_t most;
        int close_degree;
        void *terminate, *superblock[3];
        size_t fapl_size;
        void *fapl[3];
        size_t dxpl_size;
        void *dxpl[2];
        void *(*open)(const char *name, unsigned flags, h5_id fapl, uint64_t most);
        int (*close)(void *file);
        void *compare;
        int (*query)(const void *file, unsigned long *flags);
        void *allocation[3];
        uint64_t (*get_end)(const void *file, int type);
        int (*set_end)(void *file, int type, uint64_t end);
        uint64_t (*size)(const void *file, int type);
        void *handle;
        int (*read)(void *file, int type, h5_id dxpl, uint64_t at, size_t size, void *bytes);
        int (*write)(void *file, int type, h5_id dxpl, uint64_t at, size_t size, const void *bytes);
        void *rest[24];
    } table;
};

static const struct driver_class driver = {
    .version = 1,
    .value = DRIVER_VALUE,
    .table = {.name = "deltafs_read",
              .most = INT64_MAX,
              .close_degree = CLOSE_STRONG,
              .open = driver_open,
              .close = driver_close,
              .query = driver_query,
              .get_end = driver_get_end,
              .set_end = driver_set_end,
              .size = driver_size,
              .read = driver_read,
              .write = driver_write},
};

/* The signature is at the beginning or, behind a user block, at a power of two from 512 on. */
int h5file_check(const struct h5source *s, struct error *e)
{
    static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    uint8_t bytes[sizeof signature];

    for (uint64_t at = 0; at + sizeof bytes <= s->size; at = at ? 2 * at : 512) {
        int status = s->read(s->ctx, at, bytes, sizeof bytes, e);
        if (status != DELTAFS_OK || memcmp(bytes, signature, sizeof bytes) == 0)
            return status;
    }
    return error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: is not an HDF5 file", s->path);
}

int h5file_open(const struct h5lib *lib, const struct h5source *source, struct h5file *out, struct error *e)
{
    char why[512];
    h5_id fapl = lib->plist_create(*lib->file_access);
    out->driver = lib->driver_add(lib->is_new ? (const void *)&driver : &driver.table);
    opening = source;
    out->file = fapl >= 0 && out->driver >= 0 && lib->set_driver(fapl, out->driver, NULL) >= 0
                    ? lib->file_open(source->path, READ_ONLY, fapl)
                    : -1;
    opening = NULL;
    h5lib_why(lib, why, sizeof why);
    if (fapl >= 0)
        lib->plist_close(fapl);
    if (out->file >= 0)
        return DELTAFS_OK;
    h5file_close(lib, out);
    return error_set(e, DELTAFS_ERR_IO, "%s: HDF5 cannot open it: %s", source->path, why);
}

void h5file_close(const struct h5lib *lib, struct h5file *f)
{
    if (f->file >= 0)
        lib->file_close(f->file);
    if (f->driver >= 0)
        lib->driver_remove(f->driver);
}
