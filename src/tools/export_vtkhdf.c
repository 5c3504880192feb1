/* VTKHDF 2.0, after its specification: poly data whose points are the rows, with one line for each key. The points are
 * in the order of the rows; which of them a line has is known at the end. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "tools/export_hdf5.h"

#define POINTS_MAX ((uint64_t)8 << 20) /* each takes a struct point in memory */

struct point {
    uint64_t key, row;
};

struct vtkhdf {
    struct h5out h5;
    struct export_block block;
    struct h5out_array points, time, *array; /* by column */
    int has_time;
    h5out_id root, point_data;
    uint64_t rows; /* written */
    struct point *point;
    size_t count, room;
};

/* ---- Points ---- */

static int vtkhdf_refuse_size(uint64_t rows)
{
    return text_fail(EXIT_USAGE,
                     "export: %" PRIu64 " rows%s are too many for vtkhdf, which takes %" PRIu64 ": choose %s", rows,
                     rows == POINTS_MAX + 1 ? " and more" : "", POINTS_MAX, "keys, or fewer epochs");
}

static int vtkhdf_add_points(struct export *x, const struct deltafs_record *row, size_t count)
{
    struct vtkhdf *v = x->state;

    if (v->count + count > POINTS_MAX)
        return vtkhdf_refuse_size(POINTS_MAX + 1);
    if (v->count + count > v->room) {
        size_t room = 2 * (v->count + count);
        struct point *point = realloc(v->point, room * sizeof *point);
        if (!point)
            return text_fail(EXIT_TROUBLE, "export: no memory for %zu points", room);
        v->point = point;
        v->room = room;
    }
    for (size_t i = 0; i < count; i++, v->count++)
        v->point[v->count] = (struct point){row[i].key, v->count};
    return EXIT_OK;
}

/* x, y and z of each row. */
static int vtkhdf_put_points(struct export *x)
{
    struct vtkhdf *v = x->state;
    size_t size = v->points.size;
    uint8_t *points = malloc(v->block.rows * 3 * size);

    if (!points)
        return text_fail(EXIT_TROUBLE, "export: no memory for %zu points", v->block.rows);
    for (size_t c = EXPORT_VALUES; c < x->columns; c++) {
        const struct export_column *column = &x->column[c];
        const uint8_t *cell = v->block.part[c].bytes;
        int axis = export_hdf5_axis(column);
        for (size_t i = 0; axis >= 0 && i < v->block.rows; i++, cell += column->size) {
            double number = export_number(column, cell);
            float single = (float)number;
            memcpy(points + (3 * i + (size_t)axis) * size, size == 4 ? (void *)&single : (void *)&number, size);
        }
    }
    h5out_array_write(&v->h5, &v->points, v->rows, v->block.rows, points, 1);
    free(points);
    return v->h5.code;
}

/* The physical time of each row. Without one, it is not a number. */
static int vtkhdf_put_time(struct export *x)
{
    struct vtkhdf *v = x->state;
    const uint8_t *labels = v->block.part[EXPORT_EPOCH].bytes;
    double *time = malloc((v->block.rows + 1) * sizeof *time);

    if (!time)
        return text_fail(EXIT_TROUBLE, "export: no memory for %zu times", v->block.rows);
    for (size_t i = 0; i < v->block.rows; i++) {
        if (i > 0 && memcmp(labels + 8 * i, labels + 8 * (i - 1), 8) == 0)
            time[i] = time[i - 1];
        else if (!export_hdf5_number(x, "time", export_hdf5_label(labels + 8 * i), &time[i], NULL))
            time[i] = strtod("nan", NULL);
    }
    h5out_array_write(&v->h5, &v->time, v->rows, v->block.rows, time, 1);
    free(time);
    return v->h5.code;
}

static void vtkhdf_make_arrays(struct export *x, int is_growing)
{
    struct vtkhdf *v = x->state;

    h5out_array_make(&v->h5, &v->points, v->root, "Points", v->block.rows, is_growing);
    for (size_t c = EXPORT_EPOCH; c < x->columns; c++) {
        v->array[c] = (struct h5out_array){.kind = x->column[c].kind, .size = x->column[c].size};
        if (export_hdf5_axis(&x->column[c]) < 0)
            h5out_array_make(&v->h5, &v->array[c], v->point_data, x->column[c].name, v->block.rows, is_growing);
    }
    if (v->has_time)
        h5out_array_make(&v->h5, &v->time, v->point_data, "time", v->block.rows, is_growing);
}

/* Write the rows that are collected; all that there are, if there are no arrays yet and they are not growing. */
static int vtkhdf_put_rows(struct export *x, int is_growing)
{
    struct vtkhdf *v = x->state;

    if (!v->points.id)
        vtkhdf_make_arrays(x, is_growing);
    for (size_t c = EXPORT_EPOCH; c < x->columns && v->h5.code == EXIT_OK && v->block.rows > 0; c++)
        if (export_hdf5_axis(&x->column[c]) < 0)
            h5out_array_write(&v->h5, &v->array[c], v->rows, v->block.rows, v->block.part[c].bytes, 0);
    if (v->h5.code == EXIT_OK && v->block.rows > 0)
        v->h5.code = vtkhdf_put_points(x);
    if (v->has_time && v->h5.code == EXIT_OK && v->block.rows > 0)
        v->h5.code = vtkhdf_put_time(x);
    v->rows += v->block.rows;
    export_block_clear(&v->block, x);
    return v->h5.code;
}

/* ---- Lines ---- */

static int point_compare(const void *a, const void *b)
{
    const struct point *p = a, *q = b;
    int order = (p->key > q->key) - (p->key < q->key);

    return order != 0 ? order : (p->row > q->row) - (p->row < q->row);
}

/* The kinds of cells that there are none of. */
static void vtkhdf_put_no_cells(struct vtkhdf *v, const char *name)
{
    static const int64_t none = 0;
    h5out_id group = h5out_group(&v->h5, v->root, name);

    h5out_put(&v->h5, group, "NumberOfCells", 'i', 1, &none);
    h5out_put(&v->h5, group, "NumberOfConnectivityIds", 'i', 1, &none);
    h5out_put(&v->h5, group, "Offsets", 'i', 1, &none);
    h5out_put(&v->h5, group, "Connectivity", 'i', 0, NULL);
    h5out_object_close(&v->h5, group);
}

/* `number`: room for a number of each point, and one more. */
static void vtkhdf_put_lines(struct vtkhdf *v, uint64_t *number)
{
    h5out_id group = h5out_group(&v->h5, v->root, "Lines"), data = h5out_group(&v->h5, v->root, "CellData");
    size_t lines = 0;

    for (size_t i = 0; i < v->count; i++)
        number[i] = v->point[i].row;
    h5out_put(&v->h5, group, "Connectivity", 'i', v->count, number);
    for (size_t i = 0; i < v->count; i++)
        if (i == 0 || v->point[i].key != v->point[i - 1].key)
            number[lines++] = i;
    number[lines] = v->count;
    h5out_put(&v->h5, group, "Offsets", 'i', lines + 1, number);
    for (size_t i = 0; i < lines; i++)
        number[i] = v->point[number[i]].key;
    h5out_put(&v->h5, data, "key", 'u', lines, number);
    h5out_put(&v->h5, group, "NumberOfCells", 'i', 1, &(int64_t){(int64_t)lines});
    h5out_put(&v->h5, group, "NumberOfConnectivityIds", 'i', 1, &(int64_t){(int64_t)v->count});
    h5out_put(&v->h5, v->root, "NumberOfPoints", 'i', 1, &(int64_t){(int64_t)v->count});
    h5out_object_close(&v->h5, data);
    h5out_object_close(&v->h5, group);
}

/* ---- The format ---- */

/* Points are single floats if x, y and z are. */
static uint32_t vtkhdf_point_size(const struct export *x)
{
    for (size_t c = EXPORT_VALUES; c < x->columns; c++)
        if (export_hdf5_axis(&x->column[c]) >= 0 && (x->column[c].kind != 'f' || x->column[c].size != 4))
            return 8;
    return 4;
}

/* Whether there is an attribute time, and no column of this name. */
static int vtkhdf_has_time(const struct export *x)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};
    double time;

    for (size_t c = EXPORT_VALUES; c < x->columns; c++)
        if (strcmp(x->column[c].name, "time") == 0)
            return 0;
    return export_hdf5_number(x, "time", UINT64_MAX, &time, &a);
}

static void vtkhdf_put_root(struct vtkhdf *v)
{
    static const int64_t version[2] = {2, 0};

    v->root = h5out_group(&v->h5, v->h5.file, "VTKHDF");
    h5out_numbers(&v->h5, v->root, "Version", 'i', 8, 2, version);
    h5out_text(&v->h5, v->root, "Type", "PolyData");
    v->point_data = h5out_group(&v->h5, v->root, "PointData");
    vtkhdf_put_no_cells(v, "Vertices");
    vtkhdf_put_no_cells(v, "Polygons");
    vtkhdf_put_no_cells(v, "Strips");
}

static int vtkhdf_begin(struct export *x)
{
    struct vtkhdf *v = x->state;
    int code = export_hdf5_check(x, "vtkhdf");

    if (code == EXIT_OK && !x->has_keys && x->expected > POINTS_MAX)
        code = vtkhdf_refuse_size(x->expected);
    if (code == EXIT_OK)
        code = export_block_init(&v->block, x);
    if (code != EXIT_OK)
        return code;
    v->points = (struct h5out_array){.kind = 'f', .size = vtkhdf_point_size(x), .width = 3};
    v->time = (struct h5out_array){.kind = 'f', .size = 8};
    v->has_time = vtkhdf_has_time(x);
    v->array = calloc(x->columns, sizeof *v->array);
    if (!v->array)
        return text_fail(EXIT_TROUBLE, "export: no memory for %zu arrays", x->columns);
    h5out_open(&v->h5, x->path, x->name);
    if (v->h5.code == EXIT_OK)
        vtkhdf_put_root(v);
    return v->h5.code;
}

static int vtkhdf_rows(struct export *x, const struct deltafs_record *row, size_t count)
{
    struct vtkhdf *v = x->state;
    int code = vtkhdf_add_points(x, row, count);

    if (code == EXIT_OK)
        code = export_block_add(&v->block, x, row, count);
    return code == EXIT_OK && v->block.bytes >= HDF5_BLOCK_BYTES ? vtkhdf_put_rows(x, 1) : code;
}

static int vtkhdf_end(struct export *x)
{
    struct vtkhdf *v = x->state;
    int code = vtkhdf_put_rows(x, 0);
    uint64_t *number = code == EXIT_OK ? malloc((v->count + 1) * sizeof *number) : NULL;

    if (code == EXIT_OK && !number)
        code = text_fail(EXIT_TROUBLE, "export: no memory for %zu points", v->count);
    if (code != EXIT_OK)
        return code;
    /* Trajectories come one after the other. */
    if (!x->has_keys)
        qsort(v->point, v->count, sizeof *v->point, point_compare);
    vtkhdf_put_lines(v, number);
    free(number);
    return h5out_close(&v->h5);
}

static void vtkhdf_release(struct export *x)
{
    struct vtkhdf *v = x->state;

    h5out_close(&v->h5);
    export_block_fini(&v->block, x);
    free(v->array);
    free(v->point);
}

const struct export_format export_vtkhdf = {.name = "vtkhdf",
                                            .state_size = sizeof(struct vtkhdf),
                                            .begin = vtkhdf_begin,
                                            .rows = vtkhdf_rows,
                                            .end = vtkhdf_end,
                                            .release = vtkhdf_release};
