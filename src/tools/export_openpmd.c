/* openPMD 1.1.0, after its standard, in HDF5: a group for each epoch, with the particles in arrays by column, which the
 * standard calls records. A record of several components is a group of arrays. If all particles have the same value, it
 * is a group without an array. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "tools/export_hdf5.h"

#define SPEED_OF_LIGHT 299792458.0
#define SPECIES        "particles" /* the name of the particles, if there is no attribute species */

typedef double dimension_array[7];

/* The names that the standard has for our columns, and the units of these. The axis is 0 if it is a record alone. */
static const struct known {
    const char *column, *record;
    char axis;
    dimension_array dimension;
} known[] = {{"key", "id", 0, {0}},
             {"x", "position", 'x', {1}},
             {"y", "position", 'y', {1}},
             {"z", "position", 'z', {1}},
             {"ux", "momentum", 'x', {1, 1, -1}},
             {"uy", "momentum", 'y', {1, 1, -1}},
             {"uz", "momentum", 'z', {1, 1, -1}},
             {"w", "weighting", 0, {0}}};
static const char *const taken[] = {"id",        "position", "positionOffset", "momentum",
                                    "weighting", "mass",     "charge",         "particlePatches"};

#define KNOWN (sizeof known / sizeof known[0])
#define TAKEN (sizeof taken / sizeof taken[0])

struct openpmd {
    struct h5out h5;
    struct export_block block;
    struct h5out_array *array; /* by column, of the epoch that is written; and its rows: */
    uint64_t rows, label;
    h5out_id data, species; /* groups; species is 0 between epochs */
    char *name;             /* of the species */
};

static const struct known *openpmd_known(const struct export *x, size_t c)
{
    for (size_t i = 0; i < KNOWN; i++)
        if (strcmp(known[i].column, x->column[c].name) == 0)
            return &known[i];
    return NULL;
}

/* ---- Units ---- */

static int openpmd_has_unit(const struct export *x, const char *name, struct deltafs_attribute *a)
{
    struct openpmd *o = x->state;

    *a = (struct deltafs_attribute){.struct_size = sizeof *a};
    return deltafs_attribute_get(x->dir, name, o->label, a) == DELTAFS_OK && a->unit_si > 0;
}

/* The unit of an attribute or column; else 1, and the dimension that is given. */
static double openpmd_unit(const struct export *x, const char *name, const dimension_array usual,
                           dimension_array dimension)
{
    struct deltafs_attribute a;
    int has = openpmd_has_unit(x, name, &a);

    memcpy(dimension, has ? a.unit_dimension : usual, sizeof(dimension_array));
    return has ? a.unit_si : 1;
}

static void openpmd_put_record(struct openpmd *o, h5out_id record, const dimension_array dimension)
{
    h5out_numbers(&o->h5, record, "unitDimension", 'f', 8, 7, dimension);
    h5out_f8(&o->h5, record, "timeOffset", 0);
}

/* A component, or a record alone, whose value is the same everywhere. */
static void openpmd_put_constant(struct openpmd *o, h5out_id group, double value, double unit)
{
    h5out_f8(&o->h5, group, "value", value);
    h5out_f8(&o->h5, group, "unitSI", unit);
    h5out_numbers(&o->h5, group, "shape", 'u', 8, 1, &o->rows);
}

static void openpmd_put_offsets(struct export *x)
{
    struct openpmd *o = x->state;
    dimension_array dimension;
    h5out_id record = h5out_group(&o->h5, o->species, "positionOffset");

    for (size_t c = EXPORT_VALUES; c < x->columns; c++) {
        if (export_hdf5_axis(&x->column[c]) < 0)
            continue;
        const struct known *k = openpmd_known(x, c);
        double unit = openpmd_unit(x, k->column, k->dimension, dimension);
        h5out_id component = h5out_group(&o->h5, record, k->column);
        openpmd_put_constant(o, component, 0, unit);
        h5out_object_close(&o->h5, component);
        if (k->axis == 'x')
            openpmd_put_record(o, record, dimension);
    }
    h5out_object_close(&o->h5, record);
}

static void openpmd_put_single(struct openpmd *o, const char *name, double value, double unit,
                               const dimension_array dimension)
{
    h5out_id record = h5out_group(&o->h5, o->species, name);

    openpmd_put_constant(o, record, value, unit);
    openpmd_put_record(o, record, dimension);
    h5out_object_close(&o->h5, record);
}

/* The name of the first column with a momentum, or NULL. */
static const char *openpmd_momentum(const struct export *x)
{
    for (size_t c = EXPORT_VALUES; c < x->columns; c++) {
        const struct known *k = openpmd_known(x, c);
        if (k && strcmp(k->record, "momentum") == 0)
            return k->column;
    }
    return NULL;
}

/* The mass and charge, if they are attributes. Readers divide the momentum by mass and speed of light: unless both
 * have units, the mass is such that this gives the column as it is. */
static void openpmd_put_mass_and_charge(const struct export *x)
{
    static const dimension_array mass = {0, 1}, charge = {0, 0, 1, 1};
    struct openpmd *o = x->state;
    const char *momentum = openpmd_momentum(x);
    struct deltafs_attribute a;
    dimension_array dimension;
    double value;

    int has_units = !momentum || (openpmd_has_unit(x, "mass", &a) && openpmd_has_unit(x, momentum, &a));
    if (has_units && export_hdf5_number(x, "mass", o->label, &value, NULL)) {
        double unit = openpmd_unit(x, "mass", mass, dimension);
        openpmd_put_single(o, "mass", value, unit, dimension);
    } else if (momentum)
        openpmd_put_single(o, "mass", 1, openpmd_unit(x, momentum, mass, dimension) / SPEED_OF_LIGHT, mass);
    if (export_hdf5_number(x, "charge", o->label, &value, NULL)) {
        double unit = openpmd_unit(x, "charge", charge, dimension);
        openpmd_put_single(o, "charge", value, unit, dimension);
    }
}

/* ---- Arrays ---- */

/* Whether no column before this one is of the same record. */
static int openpmd_is_first(const struct export *x, size_t c)
{
    const struct known *k = openpmd_known(x, c);

    for (size_t i = EXPORT_VALUES; i < c; i++) {
        const struct known *before = openpmd_known(x, i);
        if (before && strcmp(before->record, k->record) == 0)
            return 0;
    }
    return 1;
}

/* The path of a column's array. */
static void openpmd_path(const struct export *x, size_t c, char *out, size_t room)
{
    const struct known *k = openpmd_known(x, c);
    const char *name = k ? k->record : x->column[c].name;
    int is_taken = 0;

    for (size_t i = 0; i < TAKEN && !k; i++)
        is_taken = is_taken || strcmp(taken[i], name) == 0;
    snprintf(out, room, "%s%s%s%.1s", is_taken ? "value." : "", name, k && k->axis ? "/" : "", k ? &k->axis : "");
}

static void openpmd_make_array(struct export *x, size_t c, int is_growing)
{
    static const dimension_array none = {0};
    struct openpmd *o = x->state;
    const struct known *k = openpmd_known(x, c);
    dimension_array dimension;
    char path[512];

    double unit = openpmd_unit(x, x->column[c].name, k ? k->dimension : none, dimension);
    if (k && k->axis && openpmd_is_first(x, c)) {
        h5out_id record = h5out_group(&o->h5, o->species, k->record);
        openpmd_put_record(o, record, dimension);
        h5out_object_close(&o->h5, record);
    }
    openpmd_path(x, c, path, sizeof path);
    o->array[c] = (struct h5out_array){.kind = x->column[c].kind, .size = x->column[c].size};
    h5out_array_make(&o->h5, &o->array[c], o->species, path, o->block.rows, is_growing);
    h5out_f8(&o->h5, o->array[c].id, "unitSI", unit);
    if (!k || !k->axis)
        openpmd_put_record(o, o->array[c].id, dimension);
}

/* Write the rows that are collected; all that the epoch has, if it has no arrays yet and is not growing. */
static int openpmd_put_rows(struct export *x, int is_growing)
{
    struct openpmd *o = x->state;

    for (size_t c = 0; c < x->columns && o->h5.code == EXIT_OK; c++) {
        if (c == EXPORT_EPOCH)
            continue;
        if (!o->array[c].id)
            openpmd_make_array(x, c, is_growing);
        if (o->block.rows > 0)
            h5out_array_write(&o->h5, &o->array[c], o->rows, o->block.rows, o->block.part[c].bytes, 0);
    }
    o->rows += o->block.rows;
    export_block_clear(&o->block, x);
    return o->h5.code;
}

/* ---- Epochs ---- */

static void openpmd_begin_epoch(struct export *x, uint64_t label)
{
    struct openpmd *o = x->state;
    struct deltafs_attribute a = {.struct_size = sizeof a};
    char name[24];
    double time, dt;

    o->label = label;
    o->rows = 0;
    snprintf(name, sizeof name, "%" PRIu64, label);
    h5out_id epoch = h5out_group(&o->h5, o->data, name);
    if (!export_hdf5_number(x, "time", label, &time, &a))
        time = (double)label;
    h5out_f8(&o->h5, epoch, "time", time);
    h5out_f8(&o->h5, epoch, "timeUnitSI", a.unit_si > 0 ? a.unit_si : 1);
    if (!export_hdf5_number(x, "dt", label, &dt, NULL))
        dt = 1;
    h5out_f8(&o->h5, epoch, "dt", dt);
    h5out_id particles = h5out_group(&o->h5, epoch, "particles");
    o->species = h5out_group(&o->h5, particles, o->name);
    h5out_object_close(&o->h5, particles);
    h5out_object_close(&o->h5, epoch);
}

static int openpmd_end_epoch(struct export *x)
{
    struct openpmd *o = x->state;
    int code = openpmd_put_rows(x, 0);

    if (code != EXIT_OK)
        return code;
    openpmd_put_offsets(x);
    openpmd_put_mass_and_charge(x);
    for (size_t c = 0; c < x->columns; c++)
        if (o->array[c].id)
            h5out_array_close(&o->h5, &o->array[c]);
    h5out_object_close(&o->h5, o->species);
    o->species = 0;
    return o->h5.code;
}

/* ---- The format ---- */

/* The attribute species, if it can be a name in the file. */
static char *openpmd_species(const struct export *x)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};
    int has = deltafs_attribute_get(x->dir, "species", UINT64_MAX, &a) == DELTAFS_OK;
    const char *name = has && a.type == DELTAFS_ATTRIBUTE_TEXT ? a.value : "";

    return strdup(*name != '\0' && *name != '.' && !strchr(name, '/') ? name : SPECIES);
}

static void openpmd_put_root(struct openpmd *o)
{
    const uint32_t extension = 0;

    h5out_text(&o->h5, o->h5.file, "openPMD", "1.1.0");
    h5out_numbers(&o->h5, o->h5.file, "openPMDextension", 'u', 4, 0, &extension);
    h5out_text(&o->h5, o->h5.file, "basePath", "/data/%T/");
    h5out_text(&o->h5, o->h5.file, "particlesPath", "particles/");
    h5out_text(&o->h5, o->h5.file, "iterationEncoding", "groupBased");
    h5out_text(&o->h5, o->h5.file, "iterationFormat", "/data/%T/");
    h5out_text(&o->h5, o->h5.file, "software", "deltafs");
    h5out_text(&o->h5, o->h5.file, "softwareVersion", deltafs_version());
    o->data = h5out_group(&o->h5, o->h5.file, "data");
}

static int openpmd_begin(struct export *x)
{
    struct openpmd *o = x->state;
    int code = export_hdf5_check(x, "openpmd");

    if (code == EXIT_OK)
        code = export_block_init(&o->block, x);
    if (code != EXIT_OK)
        return code;
    o->array = calloc(x->columns, sizeof *o->array);
    o->name = openpmd_species(x);
    if (!o->array || !o->name)
        return text_fail(EXIT_TROUBLE, "export: no memory for %zu arrays", x->columns);
    h5out_open(&o->h5, x->path, x->name);
    if (o->h5.code == EXIT_OK)
        openpmd_put_root(o);
    return o->h5.code;
}

static int openpmd_rows(struct export *x, const struct deltafs_record *row, size_t count)
{
    struct openpmd *o = x->state;
    int code = EXIT_OK;

    for (size_t i = 0, n; i < count && code == EXIT_OK; i += n) {
        if (o->species && row[i].label != o->label)
            code = openpmd_end_epoch(x);
        if (!o->species && code == EXIT_OK)
            openpmd_begin_epoch(x, row[i].label);
        for (n = 1; i + n < count && row[i + n].label == row[i].label;)
            n++;
        if (code == EXIT_OK)
            code = export_block_add(&o->block, x, &row[i], n);
        if (code == EXIT_OK && o->block.bytes >= HDF5_BLOCK_BYTES)
            code = openpmd_put_rows(x, 1);
    }
    return code;
}

static int openpmd_end(struct export *x)
{
    struct openpmd *o = x->state;
    int code = openpmd_end_epoch(x);

    return code == EXIT_OK ? h5out_close(&o->h5) : code;
}

static void openpmd_release(struct export *x)
{
    struct openpmd *o = x->state;

    h5out_close(&o->h5);
    export_block_fini(&o->block, x);
    free(o->array);
    free(o->name);
}

const struct export_format export_openpmd = {.name = "openpmd",
                                             .is_by_epoch = 1,
                                             .state_size = sizeof(struct openpmd),
                                             .begin = openpmd_begin,
                                             .rows = openpmd_rows,
                                             .end = openpmd_end,
                                             .release = openpmd_release};
