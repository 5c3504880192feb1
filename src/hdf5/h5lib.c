#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hdf5/h5lib.h"

#define WALK_UPWARD 0 /* the cause first */

/* Names that HDF5 has in distributions and in places of its own, serial ones first: a parallel one may be of another
 * MPI than the process. */
static const char *const h5lib_names[] = {
#ifdef H5LIB_CONFIGURED
    H5LIB_CONFIGURED,
#endif
    "libhdf5_serial.so.103", "libhdf5_serial.so.310", "libhdf5_serial.so.320", "libhdf5_serial.so", "libhdf5.so",
    "libhdf5.so.320",        "libhdf5.so.310",        "libhdf5.so.200",        "libhdf5.so.103",
};

/* Functions and data pointers have one size where there is dlsym. */
static int h5lib_look_up(void *object, const char *name, void *pointer)
{
    void *symbol = dlsym(object, name);

    memcpy(pointer, &symbol, sizeof symbol);
    return symbol ? 0 : -1;
}

/* A number of HDF5's, set by H5open. If the program itself uses it, the program has the variable, and the library's own
 * is never set. */
static int h5lib_look_up_id(void *object, const char *name, const h5_id **id)
{
    if (h5lib_look_up(object, name, id) != 0)
        return -1;
    return **id > 0 ? 0 : h5lib_look_up(RTLD_DEFAULT, name, id);
}

/* Returns the name of a function that is missing, or NULL. */
static const char *h5lib_functions(struct h5lib *lib, void *object)
{
#define H5LIB_LOOK_UP(result, name, symbol, parameters)                                                                \
    if (h5lib_look_up(object, symbol, &lib->name) != 0)                                                                \
    return symbol
    H5LIB_FUNCTIONS(H5LIB_LOOK_UP);
#undef H5LIB_LOOK_UP
    if (h5lib_look_up(object, "H5Literate2", &lib->links) != 0 && h5lib_look_up(object, "H5Literate", &lib->links) != 0)
        return "H5Literate";
    h5lib_look_up(object, "H5Dget_chunk_info_by_coord", &lib->chunk_place);
    return NULL;
}

static const char *h5lib_numbers(struct h5lib *lib, void *object)
{
    static const char *const floats[] = {"H5T_IEEE_F32LE_g", "H5T_IEEE_F64LE_g", "H5T_IEEE_F32BE_g",
                                         "H5T_IEEE_F64BE_g"};

    if (h5lib_look_up_id(object, "H5P_CLS_FILE_ACCESS_ID_g", &lib->file_access) != 0)
        return "H5P_FILE_ACCESS";
    if (h5lib_look_up_id(object, "H5T_NATIVE_UINT64_g", &lib->u64) != 0)
        return "H5T_NATIVE_UINT64";
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        if (h5lib_look_up_id(object, floats[i], &lib->floats[i]) != 0)
            return floats[i];
    return NULL;
}

/* The functions of `object`, as dlopen returned it, or of the process. */
static int h5lib_find(struct h5lib *lib, void *object, struct error *e)
{
    unsigned major = 0, minor = 0, release;

    *lib = (struct h5lib){.library = object};
    const char *missing = h5lib_functions(lib, object);
    if (!missing && (lib->version(&major, &minor, &release) < 0 || (major == 1 && minor < 10) || lib->open() < 0))
        return error_set(e, DELTAFS_ERR_VERSION, "HDF5 %u.%u here cannot be used: it must be 1.10 or later", major,
                         minor);
    if (!missing)
        missing = h5lib_numbers(lib, object);
    if (missing)
        return error_set(e, DELTAFS_ERR_VERSION, "HDF5 here has no %s: it must be 1.10 or later", missing);
    lib->is_new = major > 1 || minor >= 14;
    /* 1.13 and releases of 1.12 have one whose function gets other things. */
    if (lib->is_new)
        h5lib_look_up(object, "H5Dchunk_iter", &lib->chunks);
    return DELTAFS_OK;
}

/* The path of a loaded object that is HDF5, into *arg. */
static int h5lib_is_loaded(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash ? slash + 1 : info->dlpi_name;

    (void)size;
    if (strncmp(name, "libhdf5", 7) == 0)
        *(char **)arg = strdup(info->dlpi_name);
    return *(char **)arg != NULL;
}

/* HDF5 as the process has it already, but for symbols that all see, as those of a Python package; or NULL. */
static void *h5lib_here(void)
{
    char *path = NULL;

    dl_iterate_phdr(h5lib_is_loaded, &path);
    void *object = path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD) : NULL;
    free(path);
    return object;
}

/* Load the object. Where the program has an HDF5, as one that is linked statically to it, the loaded one must not call
 * that: it uses its own symbols first. */
static void *h5lib_open(const char *name)
{
    void *object = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    int own = dlsym(RTLD_DEFAULT, "H5open") ? RTLD_DEEPBIND : 0;

    return object ? object : dlopen(name, RTLD_LAZY | RTLD_LOCAL | own);
}

/* HDF5 by its usual names, or NULL. */
static void *h5lib_search(void)
{
    void *object = h5lib_here();

    for (size_t i = 0; i < sizeof h5lib_names / sizeof *h5lib_names && !object; i++)
        object = h5lib_open(h5lib_names[i]);
    return object;
}

int h5lib_load(struct h5lib *lib, const char *name, struct error *e)
{
    int is_named = name && *name;
    struct error own = {0};

    /* Not dlopen(NULL): this library may have been loaded together with HDF5 out of sight of the program. What is seen
     * of one that is linked statically (-rdynamic) may be a part of it. */
    if (!is_named && dlsym(RTLD_DEFAULT, "H5Fopen") && h5lib_find(lib, RTLD_DEFAULT, &own) == DELTAFS_OK)
        return DELTAFS_OK;
    void *object = is_named ? h5lib_open(name) : h5lib_search();
    if (!object && is_named)
        return error_set(e, DELTAFS_ERR_INVALID, "HDF5 cannot be loaded: %s", dlerror());
    if (object)
        return h5lib_find(lib, object, e);
    return error_set(
        e, DELTAFS_ERR_INVALID,
        "HDF5's shared library is not found%s: install it (Debian: libhdf5-103-1, libhdf5-310, libhdf5-320), or name "
        "it in the environment variable DELTAFS_HDF5",
        own.status != DELTAFS_OK ? ", and the one that is linked to the program lacks functions" : "");
}

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

void h5lib_lock(void)
{
    pthread_mutex_lock(&one_at_a_time);
}

void h5lib_unlock(void)
{
    pthread_mutex_unlock(&one_at_a_time);
}

void h5lib_hush(const struct h5lib *lib, struct h5lib_handler *saved)
{
    unsigned is_two = 0;

    *saved = (struct h5lib_handler){0};
    saved->is_saved =
        lib->handler_is_two(0, &is_two) >= 0 && is_two && lib->get_handler(0, &saved->fn, &saved->arg) >= 0;
    if (saved->is_saved)
        lib->set_handler(0, NULL, NULL);
}

void h5lib_unhush(const struct h5lib *lib, const struct h5lib_handler *saved)
{
    if (saved->is_saved)
        lib->set_handler(0, saved->fn, saved->arg);
}

struct h5lib_text {
    char *text;
    size_t size;
};

static int h5lib_take(unsigned n, const struct h5_error *error, void *arg)
{
    const struct h5lib_text *t = arg;

    if (n == 0 && error->text)
        snprintf(t->text, t->size, "%s", error->text);
    return 0;
}

void h5lib_why(const struct h5lib *lib, char *text, size_t size)
{
    struct h5lib_text t = {text, size};

    *text = '\0';
    lib->walk_errors(0, WALK_UPWARD, h5lib_take, &t);
}
