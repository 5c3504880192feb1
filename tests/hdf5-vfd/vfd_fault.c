/* For LD_PRELOAD: one call of one rank, or of a process, fails.
 *
 *   VFD_FAULT=[RANK:]size   deltafs_logical_size
 *   VFD_FAULT=[RANK:]resize the same, from the second call on
 *   VFD_FAULT=[RANK:]long   deltafs_logical_read_list of one extent of more than 100000 bytes
 *   VFD_FAULT=[RANK:]short  deltafs_logical_read_list and _write_list of one extent of less than 100
 *   VFD_FAULT=[RANK:]reads  deltafs_logical_read_list of 8000 bytes or more: of values, not of metadata
 *   VFD_FAULT=[RANK:]writes deltafs_logical_write_list of as many
 *   VFD_FAULT=[RANK:]full   deltafs_logical_write_list of one extent of less, which may be of metadata
 *   VFD_FAULT=[RANK:]stat   stat, where the driver calls it
 *   VFD_FAULT=[RANK:]fstat  the same of fstat
 *   VFD_FAULT=[RANK:]dir    deltafs_open
 *   VFD_FAULT=[RANK:]scan   deltafs_scan, as of an option memory that is too small for it
 *   VFD_FAULT=[RANK:]name   strdup, where the driver calls it
 *   VFD_FAULT=[RANK:]memory realloc of a mebibyte or more, where the driver calls it */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <deltafs/deltafs_logical.h>

#define MANY 8000

static int fault_is(const char *what)
{
    const char *fault = getenv("VFD_FAULT"), *rank = getenv("PMI_RANK"), *colon = fault ? strchr(fault, ':') : NULL;

    if (!rank)
        rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!fault || strcmp(colon ? colon + 1 : fault, what) != 0)
        return 0;
    return !colon || (rank && atoi(rank) == atoi(fault));
}

static int fault_is_driver(const void *caller)
{
    Dl_info where;

    return dladdr(caller, &where) && where.dli_fname &&
           (strstr(where.dli_fname, "libh5fd_deltafs") || strstr(where.dli_fname, "libdeltafs_hdf5"));
}

/* HDF5 loads a plugin, and DeltaFS with it, where nobody else sees them. */
static void *fault_real(const char *name)
{
    void *next = dlsym(RTLD_NEXT, name), *library = next ? NULL : dlopen("libdeltafs.so.0", RTLD_LAZY | RTLD_NOLOAD);

    return library ? dlsym(library, name) : next;
}

int deltafs_logical_size(deltafs_logical *file, uint64_t *size)
{
    static int (*real)(deltafs_logical *, uint64_t *);
    static int calls;

    if (!real)
        *(void **)&real = fault_real("deltafs_logical_size");
    return fault_is("size") || (fault_is("resize") && calls++ > 0) ? DELTAFS_ERR_IO : real(file, size);
}

static uint64_t fault_size(size_t n, const struct deltafs_extent *piece)
{
    uint64_t size = 0;

    for (size_t i = 0; i < n; i++)
        size += piece[i].size;
    return size;
}

int deltafs_logical_read_list(deltafs_logical *file, size_t n, const struct deltafs_extent *piece, void *bytes,
                              size_t *got)
{
    static int (*real)(deltafs_logical *, size_t, const struct deltafs_extent *, void *, size_t *);

    if (!real)
        *(void **)&real = fault_real("deltafs_logical_read_list");
    uint64_t size = fault_size(n, piece);
    return (n == 1 && size > 100000 && fault_is("long")) || (n == 1 && size < 100 && fault_is("short")) ||
                   (size >= MANY && fault_is("reads"))
               ? DELTAFS_ERR_DAMAGED
               : real(file, n, piece, bytes, got);
}

int deltafs_logical_write_list(deltafs_logical *file, size_t n, const struct deltafs_extent *piece, const void *bytes)
{
    static int (*real)(deltafs_logical *, size_t, const struct deltafs_extent *, const void *);

    if (!real)
        *(void **)&real = fault_real("deltafs_logical_write_list");
    uint64_t size = fault_size(n, piece);
    if (size >= MANY ? fault_is("writes") : n == 1 && fault_is("full"))
        return DELTAFS_ERR_NO_SPACE;
    return n == 1 && size < 100 && fault_is("short") ? DELTAFS_ERR_IO : real(file, n, piece, bytes);
}

int deltafs_open(const char *path, const deltafs_options *options, deltafs_dir **out)
{
    static int (*real)(const char *, const deltafs_options *, deltafs_dir **);

    if (!real)
        *(void **)&real = fault_real("deltafs_open");
    return fault_is("dir") ? DELTAFS_ERR_IO : real(path, options, out);
}

int deltafs_scan(deltafs_dir *dir, const struct deltafs_range *range, deltafs_record_fn fn, void *arg, int *stopped)
{
    static int (*real)(deltafs_dir *, const struct deltafs_range *, deltafs_record_fn, void *, int *);

    if (!real)
        *(void **)&real = fault_real("deltafs_scan");
    return fault_is("scan") ? DELTAFS_ERR_MEMORY : real(dir, range, fn, arg, stopped);
}

char *strdup(const char *text)
{
    static char *(*real)(const char *);

    if (!real)
        *(void **)&real = fault_real("strdup");
    return fault_is("name") && fault_is_driver(__builtin_return_address(0)) ? NULL : real(text);
}

void *realloc(void *old, size_t size)
{
    static void *(*real)(void *, size_t);

    if (!real)
        *(void **)&real = fault_real("realloc");
    return size >= 1 << 20 && fault_is("memory") && fault_is_driver(__builtin_return_address(0)) ? NULL
                                                                                                 : real(old, size);
}

int stat(const char *path, struct stat *out)
{
    static int (*real)(const char *, struct stat *);

    if (!real)
        *(void **)&real = fault_real("stat64");
    if (!fault_is("stat") || !fault_is_driver(__builtin_return_address(0)))
        return real(path, out);
    errno = EIO;
    return -1;
}

int fstat(int fd, struct stat *out)
{
    static int (*real)(int, struct stat *);

    if (!real)
        *(void **)&real = fault_real("fstat64");
    if (!fault_is("fstat") || !fault_is_driver(__builtin_return_address(0)))
        return real(fd, out);
    errno = EIO;
    return -1;
}
