/* HDF5's functions that find a file's datasets, from any HDF5 that the process has or can load.
 *
 * They are looked up at run time and declared here. So no header of HDF5 is needed, and one binary works with
 * HDF5 1.10, 1.12, 1.14 and 2, which all have these functions with these parameters. Object identifiers have 64 bits
 * since 1.10. */
#ifndef DELTAFS_H5LIB_H
#define DELTAFS_H5LIB_H

#include "base/error.h"

typedef int64_t h5_id;

/* Called for each link of a group; *info begins with the link's type. */
typedef int (*h5_link_fn)(h5_id group, const char *name, const void *info, void *arg);

/* Called for each chunk that a dataset has, with the place of its first element. */
typedef int (*h5_chunk_fn)(const uint64_t *at, unsigned filters, uint64_t address, uint64_t size, void *arg);

/* One entry of HDF5's error stack. */
struct h5_error {
    h5_id class, major, minor;
    unsigned line;
    const char *function, *file, *text;
};
typedef int (*h5_error_fn)(unsigned n, const struct h5_error *error, void *arg);

/* HDF5's numbers. */
enum {
    H5_GROUP = 2, /* H5Iget_type */
    H5_DATASET = 5,
    H5_HARD_LINK = 0,
    H5_COMPACT = 0, /* H5Pget_layout */
    H5_CONTIGUOUS = 1,
    H5_CHUNKED = 2,
    H5_INTEGER = 0, /* H5Tget_class */
    H5_FLOAT = 1,
    H5_STRING = 3,
    H5_BITFIELD = 4,
    H5_OPAQUE = 5,
    H5_COMPOUND = 6,
    H5_REFERENCE = 7,
    H5_ENUM = 8,
    H5_LIST = 9, /* of variable length */
    H5_ARRAY = 10,
    H5_LITTLE = 0, /* H5Tget_order */
    H5_BIG = 1,
    H5_NO_ORDER = 4
};
#define H5_NO_ADDRESS UINT64_MAX

/* Result, name and parameters of each; `use` makes what is wanted of it. */
#define H5LIB_FUNCTIONS(use)                                                                                           \
    use(int, open, "H5open", (void));                                                                                  \
    use(int, version, "H5get_libversion", (unsigned *major, unsigned *minor, unsigned *release));                      \
    use(int, free, "H5free_memory", (void *bytes));                                                                    \
    use(int, handler_is_two, "H5Eauto_is_v2", (h5_id stack, unsigned *is_two));                                        \
    use(int, get_handler, "H5Eget_auto2", (h5_id stack, int (**fn)(h5_id, void *), void **arg));                       \
    use(int, set_handler, "H5Eset_auto2", (h5_id stack, int (*fn)(h5_id, void *), void *arg));                         \
    use(int, walk_errors, "H5Ewalk2", (h5_id stack, int direction, h5_error_fn fn, void *arg));                        \
    use(h5_id, driver_add, "H5FDregister", (const void *class));                                                       \
    use(int, driver_remove, "H5FDunregister", (h5_id driver));                                                         \
    use(int, set_driver, "H5Pset_driver", (h5_id fapl, h5_id driver, const void *info));                               \
    use(h5_id, file_open, "H5Fopen", (const char *name, unsigned flags, h5_id fapl));                                  \
    use(int, file_close, "H5Fclose", (h5_id file));                                                                    \
    use(h5_id, file_plist, "H5Fget_create_plist", (h5_id file));                                                       \
    use(h5_id, object_open, "H5Oopen", (h5_id place, const char *name, h5_id lapl));                                   \
    use(int, object_close, "H5Oclose", (h5_id object));                                                                \
    use(int, id_type, "H5Iget_type", (h5_id id));                                                                      \
    use(h5_id, dataset_space, "H5Dget_space", (h5_id dataset));                                                        \
    use(h5_id, dataset_type, "H5Dget_type", (h5_id dataset));                                                          \
    use(h5_id, dataset_plist, "H5Dget_create_plist", (h5_id dataset));                                                 \
    use(uint64_t, dataset_offset, "H5Dget_offset", (h5_id dataset));                                                   \
    use(uint64_t, dataset_stored, "H5Dget_storage_size", (h5_id dataset));                                             \
    use(int, dimensions, "H5Sget_simple_extent_ndims", (h5_id space));                                                 \
    use(int, extent, "H5Sget_simple_extent_dims", (h5_id space, uint64_t * now, uint64_t * most));                     \
    use(int64_t, points, "H5Sget_simple_extent_npoints", (h5_id space));                                               \
    use(h5_id, space_create, "H5Screate_simple", (int dimensions, const uint64_t *now, const uint64_t *most));         \
    use(int, select, "H5Sselect_hyperslab",                                                                            \
        (h5_id space, int how, const uint64_t *start, const uint64_t *stride, const uint64_t *count,                   \
         const uint64_t *block));                                                                                      \
    use(int, dataset_read, "H5Dread", (h5_id dataset, h5_id type, h5_id memory, h5_id file, h5_id dxpl, void *out));   \
    use(int, attribute_exists, "H5Aexists", (h5_id object, const char *name));                                         \
    use(h5_id, attribute_open, "H5Aopen", (h5_id object, const char *name, h5_id aapl));                               \
    use(h5_id, attribute_type, "H5Aget_type", (h5_id attribute));                                                      \
    use(h5_id, attribute_space, "H5Aget_space", (h5_id attribute));                                                    \
    use(int, attribute_read, "H5Aread", (h5_id attribute, h5_id type, void *out));                                     \
    use(int, attribute_close, "H5Aclose", (h5_id attribute));                                                          \
    use(int, space_close, "H5Sclose", (h5_id space));                                                                  \
    use(h5_id, plist_create, "H5Pcreate", (h5_id class));                                                              \
    use(int, plist_close, "H5Pclose", (h5_id plist));                                                                  \
    use(int, user_block, "H5Pget_userblock", (h5_id plist, uint64_t * size));                                          \
    use(int, layout, "H5Pget_layout", (h5_id plist));                                                                  \
    use(int, chunk, "H5Pget_chunk", (h5_id plist, int dimensions, uint64_t *size));                                    \
    use(int, filters, "H5Pget_nfilters", (h5_id plist));                                                               \
    use(int, externals, "H5Pget_external_count", (h5_id plist));                                                       \
    use(int, class, "H5Tget_class", (h5_id type));                                                                     \
    use(size_t, size, "H5Tget_size", (h5_id type));                                                                    \
    use(size_t, precision, "H5Tget_precision", (h5_id type));                                                          \
    use(int, order, "H5Tget_order", (h5_id type));                                                                     \
    use(int, sign, "H5Tget_sign", (h5_id type));                                                                       \
    use(h5_id, super, "H5Tget_super", (h5_id type));                                                                   \
    use(int, is_variable, "H5Tis_variable_str", (h5_id type));                                                         \
    use(int, members, "H5Tget_nmembers", (h5_id type));                                                                \
    use(char *, member_name, "H5Tget_member_name", (h5_id type, unsigned i));                                          \
    use(size_t, member_offset, "H5Tget_member_offset", (h5_id type, unsigned i));                                      \
    use(h5_id, member_type, "H5Tget_member_type", (h5_id type, unsigned i));                                           \
    use(int, array_dimensions, "H5Tget_array_ndims", (h5_id type));                                                    \
    use(int, array_extent, "H5Tget_array_dims2", (h5_id type, uint64_t * now));                                        \
    use(int, has_class, "H5Tdetect_class", (h5_id type, int class));                                                   \
    use(int, equal, "H5Tequal", (h5_id a, h5_id b));                                                                   \
    use(int, type_close, "H5Tclose", (h5_id type))

struct h5lib {
    void *library; /* for dlsym */
#define H5LIB_POINTER(result, name, symbol, parameters) result(*name) parameters
    H5LIB_FUNCTIONS(H5LIB_POINTER);
#undef H5LIB_POINTER
    /* H5Literate, which is H5Literate2 since 1.12. */
    int (*links)(h5_id group, int index, int order, uint64_t *at, h5_link_fn fn, void *arg);
    /* Where the chunk is that begins at these elements; NULL before 1.10.5. */
    int (*chunk_place)(h5_id dataset, const uint64_t *at, unsigned *filters, uint64_t *address, uint64_t *size);
    /* All chunks in one walk, where the above takes a walk for each; NULL before 1.14. */
    int (*chunks)(h5_id dataset, h5_id dxpl, h5_chunk_fn fn, void *arg);
    const h5_id *file_access; /* the class of file access property lists */
    const h5_id *u64;         /* of this machine */
    const h5_id *floats[4];   /* IEEE, little-endian of 4 and 8 bytes, big-endian of 4 and 8 */
    int is_new;               /* 1.14 or later */
};

/* Find the library `name`; if that is NULL or empty, HDF5 as the process has it (its own or a Python package's), or
 * else the first that is found under HDF5's usual names. */
int h5lib_load(struct h5lib *lib, const char *name, struct error *e);

/* Between these two calls no other thread of DeltaFS uses HDF5, which may not be made for threads. */
void h5lib_lock(void);
void h5lib_unlock(void);

/* Between these two calls HDF5 prints no errors. If the program has set an error handler of HDF5 1.6 (H5Eset_auto1),
 * which cannot be restored, nothing changes. */
struct h5lib_handler {
    int is_saved;
    int (*fn)(h5_id, void *);
    void *arg;
};
void h5lib_hush(const struct h5lib *lib, struct h5lib_handler *saved);
void h5lib_unhush(const struct h5lib *lib, const struct h5lib_handler *saved);

/* What HDF5 says of its last error, the cause of it; "" if nothing. */
void h5lib_why(const struct h5lib *lib, char *text, size_t size);

#endif
