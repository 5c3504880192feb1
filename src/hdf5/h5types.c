#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "hdf5/h5types.h"

#define COLUMNS_MAX  1000      /* as a schema's fields */
#define ELEMENTS_MAX 16        /* of an array, to be columns of their own */
#define NESTING_MAX  8         /* compounds and arrays in one another */
#define VALUE_MAX    (1 << 20) /* bytes */

static const char valid[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";

void h5types_drop(struct h5columns *columns, size_t first)
{
    while (columns->count > first) {
        const struct deltafs_column *c = &columns->column[--columns->count];
        free((char *)(uintptr_t)c->name);
        free((struct deltafs_piece *)(uintptr_t)c->piece);
        free((char *)(uintptr_t)c->dataset);
        free((void *)(uintptr_t)c->constant);
    }
}

void h5types_fini(struct h5columns *columns)
{
    h5types_drop(columns, 0);
    free(columns->column);
    *columns = (struct h5columns){0};
}

/* As a schema takes it, and unlike the others'. NULL without memory. */
static char *types_name(const struct h5columns *columns, const char *name)
{
    size_t size = strlen(name) + 16;
    char *made = malloc(size);

    if (!made)
        return NULL;
    snprintf(made, size, "%s", *name ? name : "_");
    for (char *p = made; *p; p++)
        if (!strchr(valid, *p))
            *p = '_';
    size_t end = strlen(made);
    for (size_t i = 0, n = 1; i < columns->count;) {
        if (strcmp(columns->column[i++].name, made) == 0) {
            snprintf(made + end, size - end, ".%zu", ++n);
            i = 0;
        }
    }
    return made;
}

static int types_column(struct h5columns *out, const char *name, char kind, size_t size, int is_big, uint64_t offset)
{
    struct error e;
    char *own;

    if (size == 0 || size > VALUE_MAX)
        return 0;
    if (out->count == COLUMNS_MAX)
        return -1;
    if (memory_extend(NULL, &out->column, out->count, &out->capacity, sizeof *out->column, "columns", &e) !=
            DELTAFS_OK ||
        !(own = types_name(out, name)))
        return -1;
    out->column[out->count++] = (struct deltafs_column){
        .name = own, .kind = kind, .size = (uint32_t)size, .is_big_endian = is_big, .offset = offset};
    return 0;
}

static int types_number(const struct h5lib *lib, h5_id type, char kind, const char *name, uint64_t offset,
                        struct h5columns *out)
{
    size_t size = lib->size(type);
    int order = lib->order(type), is_whole = size == 1 || size == 2 || size == 4 || size == 8;

    if (is_whole && lib->precision(type) == 8 * size && (size == 1 || order == H5_LITTLE || order == H5_BIG))
        return types_column(out, name, kind, size, size > 1 && order == H5_BIG, offset);
    return types_column(out, name, 'V', size, 0, offset);
}

static int types_float(const struct h5lib *lib, h5_id type, const char *name, uint64_t offset, struct h5columns *out)
{
    for (int i = 0; i < 4; i++)
        if (lib->equal(type, *lib->floats[i]) > 0)
            return types_column(out, name, 'f', lib->size(type), i >= 2, offset);
    return types_column(out, name, 'V', lib->size(type), 0, offset);
}

static int types_any(const struct h5lib *lib, h5_id type, const char *name, uint64_t offset, int nesting,
                     struct h5columns *out);

char *h5types_join(const char *name, const char *part)
{
    char *joined;

    return asprintf(&joined, "%s%s%s", name, *name ? "." : "", part) < 0 ? NULL : joined;
}

static int types_member(const struct h5lib *lib, h5_id type, unsigned i, const char *name, uint64_t offset, int nesting,
                        struct h5columns *out)
{
    char *member = lib->member_name(type, i), *joined = member ? h5types_join(name, member) : NULL;
    h5_id inner = lib->member_type(type, i);
    int rc = -1;

    if (joined && inner >= 0)
        rc = types_any(lib, inner, joined, offset + lib->member_offset(type, i), nesting, out);
    if (inner >= 0)
        lib->type_close(inner);
    free(joined);
    if (member)
        lib->free(member);
    return rc;
}

/* A long array has no columns; nor has one whose first element has none, so that time goes by the columns. */
static int types_array(const struct h5lib *lib, h5_id type, const char *name, uint64_t offset, int nesting,
                       struct h5columns *out)
{
    size_t before = out->count;
    uint64_t extent[32], n = 1;
    int dimensions = lib->array_dimensions(type), rc = 0;

    if (dimensions < 1 || dimensions > 32 || lib->array_extent(type, extent) < 0)
        return -1;
    for (int i = 0; i < dimensions && n <= ELEMENTS_MAX; i++)
        n *= extent[i];
    if (n > ELEMENTS_MAX)
        return 0;
    h5_id inner = lib->super(type);
    for (uint64_t i = 0; i < n && rc == 0 && (i == 0 || out->count > before); i++) {
        char number[24];
        snprintf(number, sizeof number, "%ju", (uintmax_t)i);
        char *joined = h5types_join(name, number);
        rc = joined && inner >= 0 ? types_any(lib, inner, joined, offset + i * lib->size(inner), nesting, out) : -1;
        free(joined);
    }
    if (inner >= 0)
        lib->type_close(inner);
    return rc;
}

static int types_enum(const struct h5lib *lib, h5_id type, const char *name, uint64_t offset, struct h5columns *out)
{
    h5_id inner = lib->super(type);
    int rc = inner < 0 ? -1 : types_number(lib, inner, lib->sign(inner) ? 'i' : 'u', name, offset, out);

    if (inner >= 0)
        lib->type_close(inner);
    return rc;
}

static int types_any(const struct h5lib *lib, h5_id type, const char *name, uint64_t offset, int nesting,
                     struct h5columns *out)
{
    int rc = 0;

    if (nesting > NESTING_MAX)
        return 0;
    switch (lib->class(type)) {
    case H5_INTEGER:
        return types_number(lib, type, lib->sign(type) ? 'i' : 'u', name, offset, out);
    case H5_BITFIELD:
        return types_number(lib, type, 'u', name, offset, out);
    case H5_FLOAT:
        return types_float(lib, type, name, offset, out);
    case H5_ENUM:
        return types_enum(lib, type, name, offset, out);
    case H5_STRING:
        return lib->is_variable(type) ? 0 : types_column(out, name, 'S', lib->size(type), 0, offset);
    case H5_OPAQUE:
        return types_column(out, name, 'V', lib->size(type), 0, offset);
    case H5_COMPOUND:
        for (int i = 0; i < lib->members(type) && rc == 0; i++)
            rc = types_member(lib, type, (unsigned)i, name, offset, nesting + 1, out);
        return rc;
    case H5_ARRAY:
        return types_array(lib, type, name, offset, nesting + 1, out);
    default:
        return 0;
    }
}

int h5types_add(const struct h5lib *lib, h5_id type, const char *name, uint64_t offset, struct h5columns *out)
{
    return types_any(lib, type, name, offset, 0, out);
}
