#include <dlfcn.h>
#include <link.h>
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
static int h5lib_look_up(void *object, const char *name, void *pointer, char *message)
{
    void *symbol = dlsym(object, name);

    memcpy(pointer, &symbol, sizeof symbol);
    if (symbol)
        return 0;
    if (message)
        snprintf(message, H5LIB_MESSAGE_MAX, "HDF5 here has no %s: it must be 1.10 or later", name);
    return -1;
}

/* A number of HDF5's, set by H5open. If the program itself uses it, the program has the variable, and the library's own
 * is never set. */
static int h5lib_look_up_id(void *object, const char *name, const h5_id **id, char *message)
{
    if (h5lib_look_up(object, name, id, message) != 0)
        return -1;
    return **id > 0 ? 0 : h5lib_look_up(RTLD_DEFAULT, name, id, message);
}

static int h5lib_fill(struct h5lib *lib, void *object, char message[H5LIB_MESSAGE_MAX])
{
    static const char *const floats[] = {"H5T_IEEE_F32LE_g", "H5T_IEEE_F64LE_g", "H5T_IEEE_F32BE_g",
                                         "H5T_IEEE_F64BE_g"};
    unsigned major = 0, minor = 0, release;

    *lib = (struct h5lib){.object = object ? object : RTLD_DEFAULT};
    object = lib->object;
#define H5LIB_LOOK_UP(result, name, symbol, parameters)                                                                \
    if (h5lib_look_up(object, symbol, &lib->name, message) != 0)                                                       \
    return -1
    H5LIB_FUNCTIONS(H5LIB_LOOK_UP);
#undef H5LIB_LOOK_UP
    if (h5lib_look_up(object, "H5Literate2", &lib->links, NULL) != 0 &&
        h5lib_look_up(object, "H5Literate", &lib->links, message) != 0)
        return -1;
    h5lib_look_up(object, "H5Dget_chunk_info_by_coord", &lib->chunk_place, NULL);
    h5lib_look_up(object, "H5Pset_driver_by_name", &lib->set_driver, NULL);
    if (lib->version(&major, &minor, &release) < 0 || (major == 1 && minor < 10) || lib->open() < 0) {
        snprintf(message, H5LIB_MESSAGE_MAX, "HDF5 %u.%u here cannot be used: it must be 1.10 or later", major, minor);
        return -1;
    }
    /* 1.13 and releases of 1.12 have one whose function gets other things. */
    if (major > 1 || minor >= 14)
        h5lib_look_up(object, "H5Dchunk_iter", &lib->chunks, NULL);
    if (h5lib_look_up_id(object, "H5P_CLS_FILE_ACCESS_ID_g", &lib->file_access, message) != 0)
        return -1;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
        if (h5lib_look_up_id(object, floats[i], &lib->floats[i], message) != 0)
            return -1;
    return 0;
}

int h5lib_find(struct h5lib *lib, void *object, char message[H5LIB_MESSAGE_MAX])
{
    int status = h5lib_fill(lib, object, message);

    if (status != 0)
        *lib = (struct h5lib){0}; /* none, and not half of one */
    return status;
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

int h5lib_here(struct h5lib *lib, char message[H5LIB_MESSAGE_MAX])
{
    char *path = NULL;

    if (dlsym(RTLD_DEFAULT, "H5Fopen"))
        return h5lib_find(lib, NULL, message);
    /* A Python package's is not among those whose symbols all see. */
    dl_iterate_phdr(h5lib_is_loaded, &path);
    void *object = path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD) : NULL;
    free(path);
    if (object)
        return h5lib_find(lib, object, message);
    snprintf(message, H5LIB_MESSAGE_MAX, "there is no HDF5 library in this process");
    return -1;
}

int h5lib_load(struct h5lib *lib, const char *name, char message[H5LIB_MESSAGE_MAX])
{
    if (name && *name) {
        void *object = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        if (object)
            return h5lib_find(lib, object, message);
        snprintf(message, H5LIB_MESSAGE_MAX, "HDF5 cannot be loaded: %s", dlerror());
        return -1;
    }
    if (h5lib_here(lib, message) == 0)
        return 0;
    for (size_t i = 0; i < sizeof h5lib_names / sizeof *h5lib_names; i++) {
        void *object = dlopen(h5lib_names[i], RTLD_LAZY | RTLD_LOCAL);
        if (object)
            return h5lib_find(lib, object, message);
    }
    snprintf(message, H5LIB_MESSAGE_MAX,
             "HDF5's library is not found: install it (Debian: libhdf5-103-1, libhdf5-310), or name it in the "
             "environment variable DELTAFS_HDF5");
    return -1;
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
