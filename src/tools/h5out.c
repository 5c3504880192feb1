#include <deltafs/deltafs_fileindex.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/h5out.h"
#include "tools/text.h"

/* Numbers of HDF5's. */
enum { TRUNCATE = 2, CLOSE_STRONG = 3, SCALAR = 0, SELECT_SET = 0, UPWARD = 0, ZEROS = 1 };

static const struct type {
    char kind;
    uint32_t size;
    const char *stored, *host;
} types[H5OUT_TYPES] = {
    {'i', 1, "H5T_STD_I8LE_g", "H5T_NATIVE_INT8_g"},    {'i', 2, "H5T_STD_I16LE_g", "H5T_NATIVE_INT16_g"},
    {'i', 4, "H5T_STD_I32LE_g", "H5T_NATIVE_INT32_g"},  {'i', 8, "H5T_STD_I64LE_g", "H5T_NATIVE_INT64_g"},
    {'u', 1, "H5T_STD_U8LE_g", "H5T_NATIVE_UINT8_g"},   {'u', 2, "H5T_STD_U16LE_g", "H5T_NATIVE_UINT16_g"},
    {'u', 4, "H5T_STD_U32LE_g", "H5T_NATIVE_UINT32_g"}, {'u', 8, "H5T_STD_U64LE_g", "H5T_NATIVE_UINT64_g"},
    {'f', 4, "H5T_IEEE_F32LE_g", "H5T_NATIVE_FLOAT_g"}, {'f', 8, "H5T_IEEE_F64LE_g", "H5T_NATIVE_DOUBLE_g"},
};

static size_t type_of(char kind, uint32_t size)
{
    size_t i = 0;

    while (i + 1 < H5OUT_TYPES && (types[i].kind != kind || types[i].size != size))
        i++;
    return i;
}

/* ---- The library ---- */

/* Functions and data pointers have one size where there is dlsym. */
static int look_up(struct h5out *h, void *library, const char *name, void *pointer)
{
    void *symbol = dlsym(library, name);

    memcpy(pointer, &symbol, sizeof symbol);
    if (!symbol && h->code == EXIT_OK)
        h->code = text_fail(EXIT_TROUBLE, "export: HDF5 here has no %s: name another one in DELTAFS_HDF5", name);
    return symbol != NULL;
}

static void look_up_id(struct h5out *h, void *library, const char *name, h5out_id *out)
{
    const h5out_id *id;

    if (look_up(h, library, name, &id))
        *out = *id;
}

static void look_all_up(struct h5out *h, void *library)
{
#define H5OUT_LOOK_UP(result, name, symbol, parameters) look_up(h, library, symbol, &h->name)
    H5OUT_FUNCTIONS(H5OUT_LOOK_UP);
#undef H5OUT_LOOK_UP
    for (size_t i = 0; i < H5OUT_TYPES; i++) {
        look_up_id(h, library, types[i].stored, &h->stored[i]);
        look_up_id(h, library, types[i].host, &h->host[i]);
    }
    look_up_id(h, library, "H5T_C_S1_g", &h->text);
    look_up_id(h, library, "H5P_CLS_FILE_ACCESS_ID_g", &h->access_class);
    look_up_id(h, library, "H5P_CLS_DATASET_CREATE_ID_g", &h->create_class);
}

/* ---- Failures ---- */

#define WHY_ROOM 256

/* The first cause that HDF5 names, into *arg. Where it is the system's, HDF5's text has much besides. */
static int take_first(unsigned n, const struct h5out_error *error, void *arg)
{
    static const char before[] = "error message = '";
    const char *text = error->text ? error->text : "", *from = strstr(text, before);

    if (n == 0 && from)
        snprintf(arg, WHY_ROOM, "%.*s", (int)strcspn(from + sizeof before - 1, "'"), from + sizeof before - 1);
    else if (n == 0)
        snprintf(arg, WHY_ROOM, "%s", text);
    return 0;
}

/* At its own exit, HDF5 would try again to write what it could not write, and may crash at that. */
static void leave(void)
{
    fflush(NULL);
    _exit(EXIT_TROUBLE);
}

static void fail(struct h5out *h)
{
    char why[WHY_ROOM] = "";

    if (h->code != EXIT_OK)
        return;
    atexit(leave);
    h->walk_errors(0, UPWARD, take_first, why);
    h->code = text_fail(EXIT_TROUBLE, "cannot write to %s: %s", h->name, *why != '\0' ? why : "HDF5 does not say why");
}

static h5out_id check(struct h5out *h, h5out_id result)
{
    if (result < 0)
        fail(h);
    return result;
}

/* ---- The file ---- */

void h5out_open(struct h5out *h, const char *path, const char *name)
{
    void *library;

    *h = (struct h5out){.name = name};
    h->code = text_of_call(deltafs_hdf5_library(NULL, &library));
    if (h->code == EXIT_OK)
        look_all_up(h, library);
    if (h->code != EXIT_OK)
        return;
    h->set_handler(0, NULL, NULL);
    h5out_id access = check(h, h->plist(h->access_class));
    /* Whatever driver the environment names. */
    check(h, h->set_driver(access));
    check(h, h->set_close_degree(access, CLOSE_STRONG));
    h->file = check(h, h->file_create(path, TRUNCATE, 0, access));
    h->plist_close(access);
    if (h->code != EXIT_OK)
        h->file = 0;
}

int h5out_close(struct h5out *h)
{
    if (h->file && h->code == EXIT_OK)
        check(h, h->file_close(h->file));
    h->file = 0;
    return h->code;
}

/* ---- Groups and attributes ---- */

h5out_id h5out_group(struct h5out *h, h5out_id place, const char *name)
{
    return check(h, h->group(place, name, 0, 0, 0));
}

void h5out_object_close(struct h5out *h, h5out_id object)
{
    check(h, h->object_close(object));
}

static void put_attribute(struct h5out *h, h5out_id object, const char *name, h5out_id stored, h5out_id host,
                          h5out_id space, const void *value)
{
    h5out_id attribute = check(h, h->attribute(object, name, stored, space, 0, 0));

    check(h, h->attribute_write(attribute, host, value));
    h->attribute_close(attribute);
    h->space_close(space);
}

void h5out_text(struct h5out *h, h5out_id object, const char *name, const char *text)
{
    h5out_id type = check(h, h->type_copy(h->text));

    check(h, h->type_set_size(type, strlen(text) + (*text == '\0')));
    check(h, h->type_set_padding(type, ZEROS));
    put_attribute(h, object, name, type, type, check(h, h->space(SCALAR)), text);
    h->type_close(type);
}

void h5out_numbers(struct h5out *h, h5out_id object, const char *name, char kind, uint32_t size, size_t count,
                   const void *value)
{
    size_t type = type_of(kind, size);
    const uint64_t extent = count;

    put_attribute(h, object, name, h->stored[type], h->host[type],
                  check(h, count > 0 ? h->space_simple(1, &extent, NULL) : h->space(SCALAR)), value);
}

void h5out_f8(struct h5out *h, h5out_id object, const char *name, double value)
{
    h5out_numbers(h, object, name, 'f', 8, 0, &value);
}

/* ---- Arrays ---- */

void h5out_array_make(struct h5out *h, struct h5out_array *a, h5out_id place, const char *name, uint64_t rows,
                      int is_growing)
{
    const uint64_t now[2] = {rows, a->width}, most[2] = {is_growing ? UINT64_MAX : rows, a->width};
    int dimensions = a->width > 0 ? 2 : 1;
    h5out_id create = check(h, h->plist(h->create_class));
    h5out_id space = check(h, h->space_simple(dimensions, now, most));

    if (is_growing)
        check(h, h->set_chunk(create, dimensions, now));
    a->id = check(h, h->dataset(place, name, h->stored[type_of(a->kind, a->size)], space, 0, create, 0));
    a->rows = rows;
    h->space_close(space);
    h->plist_close(create);
}

void h5out_array_write(struct h5out *h, struct h5out_array *a, uint64_t first, uint64_t rows, const void *values,
                       int is_host)
{
    const uint64_t all[2] = {first + rows, a->width}, start[2] = {first, 0}, count[2] = {rows, a->width};
    size_t type = type_of(a->kind, a->size);

    if (all[0] > a->rows) {
        check(h, h->dataset_extend(a->id, all));
        a->rows = all[0];
    }
    h5out_id memory = check(h, h->space_simple(a->width > 0 ? 2 : 1, count, NULL));
    h5out_id file = check(h, h->dataset_space(a->id));
    check(h, h->space_select(file, SELECT_SET, start, NULL, count, NULL));
    check(h, h->dataset_write(a->id, is_host ? h->host[type] : h->stored[type], memory, file, 0, values));
    h->space_close(memory);
    h->space_close(file);
}

void h5out_array_close(struct h5out *h, struct h5out_array *a)
{
    h5out_object_close(h, a->id);
    a->id = 0;
}

void h5out_put(struct h5out *h, h5out_id place, const char *name, char kind, uint64_t rows, const void *values)
{
    struct h5out_array a = {.kind = kind, .size = 8};

    h5out_array_make(h, &a, place, name, rows, 0);
    if (rows > 0)
        h5out_array_write(h, &a, 0, rows, values, 1);
    h5out_array_close(h, &a);
}
