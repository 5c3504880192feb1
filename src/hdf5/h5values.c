#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "hdf5/h5values.h"

#define SELECT_SET 0 /* H5S_SELECT_SET */

struct h5values {
    struct h5lib lib;
    struct h5source source;
    struct h5file file;
    struct opened {
        char *path;
        h5_id id;
    } * dataset;
    size_t count, capacity;
};

static int values_transfer(const struct h5lib *lib, h5_id dataset, h5_id type, h5_id space, uint64_t first,
                           uint64_t rows, void *out, char why[static H5_WHY])
{
    uint64_t extent[32] = {0}, start[32] = {first};
    int dimensions = lib->dimensions(space);

    if (dimensions < 1 || dimensions > 32 || lib->extent(space, extent, NULL) < 0)
        return -1;
    extent[0] = rows;
    h5_id memory = lib->space_create(dimensions, extent, NULL);
    int rc = memory < 0 ? -1 : lib->select(space, SELECT_SET, start, NULL, extent, NULL);
    if (rc >= 0)
        rc = lib->dataset_read(dataset, type, memory, space, 0, out);
    if (rc < 0)
        h5lib_why(lib, why, H5_WHY); /* the next call forgets it */
    if (memory >= 0)
        lib->space_close(memory);
    return rc >= 0 ? 0 : -1;
}

/* Whether an element has as many bytes as the caller has room for. */
static int values_fit(const struct h5lib *lib, h5_id type, h5_id space, size_t row)
{
    uint64_t extent[32] = {0, 1};
    int dimensions = lib->dimensions(space);

    size_t size = lib->size(type);

    return (dimensions == 1 || dimensions == 2) && lib->extent(space, extent, NULL) >= 0 && size > 0 &&
           row % size == 0 && (dimensions == 2 ? extent[1] : 1) == row / size;
}

int h5values_get(const struct h5lib *lib, h5_id dataset, size_t row, uint64_t first, uint64_t rows, void *out,
                 char why[static H5_WHY])
{
    h5_id type = lib->dataset_type(dataset), space = lib->dataset_space(dataset);
    int rc = -1;

    *why = '\0';
    if (type >= 0 && space >= 0 && values_fit(lib, type, space, row))
        rc = values_transfer(lib, dataset, type, space, first, rows, out, why);
    if (space >= 0)
        lib->space_close(space);
    if (type >= 0)
        lib->type_close(type);
    return rc;
}

/* ---- An open file ---- */

int h5values_open(const char *library, const struct h5source *source, struct h5values **out, struct error *e)
{
    struct h5lib_handler saved;
    struct h5values *v = calloc(1, sizeof *v);

    if (!v)
        return error_no_memory(e, sizeof *v, "an HDF5 file");
    v->source = *source;
    h5lib_lock();
    int status = h5lib_load(&v->lib, library, e);
    if (status == DELTAFS_OK) {
        h5lib_hush(&v->lib, &saved);
        status = h5file_open(&v->lib, &v->source, &v->file, e);
        h5lib_unhush(&v->lib, &saved);
    }
    h5lib_unlock();
    if (status == DELTAFS_OK)
        *out = v;
    else
        free(v);
    return status;
}

/* The dataset, open from its first use on; -1: it cannot be opened. */
static h5_id values_find(struct h5values *v, const char *path, struct error *e)
{
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->dataset[i].path, path) == 0)
            return v->dataset[i].id;
    if (memory_extend(NULL, &v->dataset, v->count, &v->capacity, sizeof *v->dataset, "datasets", e) != DELTAFS_OK)
        return -1;
    struct opened *new = &v->dataset[v->count];
    new->path = strdup(path);
    new->id = new->path ? v->lib.object_open(v->file.file, path, 0) : -1;
    if (new->id < 0)
        free(new->path);
    else
        v->count++;
    return new->id;
}

int h5values_read(struct h5values *v, const char *dataset, size_t row, uint64_t first, uint64_t rows, void *out,
                  struct error *e)
{
    struct h5lib_handler saved;
    char why[H5_WHY] = "";

    h5lib_lock();
    h5lib_hush(&v->lib, &saved);
    h5_id id = values_find(v, dataset, e);
    if (id < 0)
        h5lib_why(&v->lib, why, sizeof why);
    int rc = id < 0 ? -1 : h5values_get(&v->lib, id, row, first, rows, out, why);
    h5lib_unhush(&v->lib, &saved);
    h5lib_unlock();
    return rc == 0 ? DELTAFS_OK
                   : error_set(e, DELTAFS_ERR_IO, "%s: HDF5 cannot read %s%s%s", v->source.path, dataset,
                               *why ? ": " : "", why);
}

void h5values_close(struct h5values *v)
{
    struct h5lib_handler saved;

    if (!v)
        return;
    h5lib_lock();
    h5lib_hush(&v->lib, &saved);
    for (size_t i = 0; i < v->count; i++) {
        v->lib.object_close(v->dataset[i].id);
        free(v->dataset[i].path);
    }
    h5file_close(&v->lib, &v->file);
    h5lib_unhush(&v->lib, &saved);
    h5lib_unlock();
    free(v->dataset);
    free(v);
}
