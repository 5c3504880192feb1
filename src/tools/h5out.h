/* Writing an HDF5 file, with the HDF5 that indexes use. Its functions are looked up at run time, so no header of HDF5
 * is needed, as in src/hdf5/h5lib.h.
 *
 * Functions that return nothing, or a number of HDF5's, print a message at the first failure and set `code`. All later
 * calls are harmless then. So it is enough to look at `code` from time to time. */
#ifndef DELTAFS_TOOLS_H5OUT_H
#define DELTAFS_TOOLS_H5OUT_H

#include <stddef.h>
#include <stdint.h>

typedef int64_t h5out_id;

/* One entry of HDF5's error stack. */
struct h5out_error {
    h5out_id class, major, minor;
    unsigned line;
    const char *function, *file, *text;
};

/* Result, name and parameters of each function; `use` makes what is wanted of it. */
#define H5OUT_FUNCTIONS(use)                                                                                           \
    use(int, set_handler, "H5Eset_auto2", (h5out_id stack, void *fn, void *arg));                                      \
    use(int, walk_errors, "H5Ewalk2",                                                                                  \
        (h5out_id stack, int direction, int (*fn)(unsigned, const struct h5out_error *, void *), void *arg));          \
    use(h5out_id, plist, "H5Pcreate", (h5out_id class));                                                               \
    use(int, plist_close, "H5Pclose", (h5out_id plist));                                                               \
    use(int, set_driver, "H5Pset_fapl_sec2", (h5out_id fapl));                                                         \
    use(int, set_close_degree, "H5Pset_fclose_degree", (h5out_id fapl, int degree));                                   \
    use(int, set_chunk, "H5Pset_chunk", (h5out_id dcpl, int dimensions, const uint64_t *size));                        \
    use(h5out_id, file_create, "H5Fcreate", (const char *name, unsigned flags, h5out_id fcpl, h5out_id fapl));         \
    use(int, file_close, "H5Fclose", (h5out_id file));                                                                 \
    use(h5out_id, group, "H5Gcreate2",                                                                                 \
        (h5out_id place, const char *name, h5out_id lcpl, h5out_id gcpl, h5out_id gapl));                              \
    use(int, object_close, "H5Oclose", (h5out_id object));                                                             \
    use(h5out_id, type_copy, "H5Tcopy", (h5out_id type));                                                              \
    use(int, type_set_size, "H5Tset_size", (h5out_id type, size_t size));                                              \
    use(int, type_set_padding, "H5Tset_strpad", (h5out_id type, int padding));                                         \
    use(int, type_close, "H5Tclose", (h5out_id type));                                                                 \
    use(h5out_id, space, "H5Screate", (int class));                                                                    \
    use(h5out_id, space_simple, "H5Screate_simple", (int dimensions, const uint64_t *now, const uint64_t *most));      \
    use(int, space_select, "H5Sselect_hyperslab",                                                                      \
        (h5out_id space, int how, const uint64_t *start, const uint64_t *stride, const uint64_t *count,                \
         const uint64_t *block));                                                                                      \
    use(int, space_close, "H5Sclose", (h5out_id space));                                                               \
    use(h5out_id, attribute, "H5Acreate2",                                                                             \
        (h5out_id object, const char *name, h5out_id type, h5out_id space, h5out_id acpl, h5out_id aapl));             \
    use(int, attribute_write, "H5Awrite", (h5out_id attribute, h5out_id type, const void *value));                     \
    use(int, attribute_close, "H5Aclose", (h5out_id attribute));                                                       \
    use(h5out_id, dataset, "H5Dcreate2",                                                                               \
        (h5out_id place, const char *name, h5out_id type, h5out_id space, h5out_id lcpl, h5out_id dcpl,                \
         h5out_id dapl));                                                                                              \
    use(int, dataset_extend, "H5Dset_extent", (h5out_id dataset, const uint64_t *size));                               \
    use(h5out_id, dataset_space, "H5Dget_space", (h5out_id dataset));                                                  \
    use(int, dataset_write, "H5Dwrite",                                                                                \
        (h5out_id dataset, h5out_id type, h5out_id memory, h5out_id file, h5out_id dxpl, const void *values))

enum { H5OUT_TYPES = 10 };

struct h5out {
#define H5OUT_POINTER(result, name, symbol, parameters) result(*name) parameters
    H5OUT_FUNCTIONS(H5OUT_POINTER);
#undef H5OUT_POINTER
    h5out_id stored[H5OUT_TYPES], host[H5OUT_TYPES], text, access_class, create_class;
    h5out_id file;    /* 0: none is open */
    const char *name; /* of the file, for messages */
    int code;         /* the exit code of the first failure */
};

/* An array of rows: numbers, or with a width so many numbers in each row. */
struct h5out_array {
    h5out_id id;   /* 0: not made yet */
    char kind;     /* 'f', 'i' or 'u' */
    uint32_t size; /* bytes of a number */
    unsigned width;
    uint64_t rows;
};

/* Look HDF5 up, and make the file `path`, or make it empty. `name` is for messages. */
void h5out_open(struct h5out *h, const char *path, const char *name);
/* Write what is left, and close the file; after a failure, do nothing. Returns the exit code. */
int h5out_close(struct h5out *h);

h5out_id h5out_group(struct h5out *h, h5out_id place, const char *name);
void h5out_object_close(struct h5out *h, h5out_id object);

/* Attributes: a text of fixed size; `count` numbers as this machine has them, 0: a single one. */
void h5out_text(struct h5out *h, h5out_id object, const char *name, const char *text);
void h5out_numbers(struct h5out *h, h5out_id object, const char *name, char kind, uint32_t size, size_t count,
                   const void *value);
void h5out_f8(struct h5out *h, h5out_id object, const char *name, double value);

/* Make the array's dataset, with a->kind, a->size and a->width. It has `rows` rows; with `is_growing`, more may come.
 */
void h5out_array_make(struct h5out *h, struct h5out_array *a, h5out_id place, const char *name, uint64_t rows,
                      int is_growing);
/* Write `rows` rows from row `first` on: little-endian, or with is_host as this machine has them. */
void h5out_array_write(struct h5out *h, struct h5out_array *a, uint64_t first, uint64_t rows, const void *values,
                       int is_host);
void h5out_array_close(struct h5out *h, struct h5out_array *a);

/* All at once: an array of `rows` numbers of 8 bytes, as this machine has them. */
void h5out_put(struct h5out *h, h5out_id place, const char *name, char kind, uint64_t rows, const void *values);

#endif
