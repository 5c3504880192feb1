/* VPIC's particle dumps, version 0, as dump_particles of VPIC 1.x writes them, one file a rank and step:
 *   0 size bytes 8 2 4 4 8   5 i16 0xcafe   7 i32 0xdeadbeef   11 f32 1   15 f64 1   23 i32 version 0   27 i32 dump
 * type 3 31 i32 step   35 i32 nx ny nz   47 f32 dt dx dy dz x0 y0 z0 cvac eps0 damp   87 i32 rank nproc   95 i32
 * species 99 f32 charge/mass   103 i32 bytes of a particle (32)   107 i32 dimensions (1)   111 i32 n   115 n particles
 * and, where particles have IDs, behind them: i32 8, i32 1, i32 n, and n IDs of 8 bytes, in the particles' order.
 * Byte order is the writing machine's; only little-endian is read. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_query.h>
#include "tools/import.h"

#define VPIC_SCHEMA "dx:f4,dy:f4,dz:f4,i:i4,ux:f4,uy:f4,uz:f4,w:f4,rank:u4"

#define VPIC_HEADER    115
#define VPIC_GRID      35 /* nx */
#define VPIC_GRID_SIZE 52 /* up to damp */
#define VPIC_RANKS_MAX (1 << 20)
#define VPIC_Q_M       99
#define VPIC_PARTICLE  32
#define VPIC_ID        8
#define VPIC_ARRAY     12 /* header of the array of IDs */

static int32_t vpic_i32(const uint8_t *p)
{
    return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

/* Print the schema of a particle, with the error bounds of `bounds`, of which all fields must be the particle's. */
static int vpic_print_schema(char *out, const deltafs_schema *particle, const deltafs_schema *bounds)
{
    size_t used = 0, found = 0, count = bounds ? deltafs_schema_count(bounds) : 0;

    for (size_t i = 0; i < deltafs_schema_count(particle); i++) {
        struct deltafs_field f = *deltafs_schema_field(particle, i);
        for (size_t k = 0; k < count; k++) {
            const struct deltafs_field *b = deltafs_schema_field(bounds, k);
            if (strcmp(b->name, f.name) == 0 && b->kind == f.kind && b->size == f.size && b->bound > 0) {
                f.bound = b->bound;
                found++;
            }
        }
        used = import_print_field(out, used, &f);
    }
    return found == count ? EXIT_OK
                          : text_keep(EXIT_USAGE,
                                      "import: --schema: for VPIC, give fields of a particle with their error bounds, "
                                      "such as ux:f4~1e-4; the fields are %s",
                                      VPIC_SCHEMA);
}

static int vpic_begin(struct import_layout *l)
{
    const struct import_options *o = &l->options;
    deltafs_schema *particle = NULL, *bounds = NULL;
    int code = EXIT_OK;

    if (o->key || o->skip.is_given || o->epoch.is_given)
        return text_keep(EXIT_USAGE,
                         "import: --key, --skip and --epoch are for --format raw; files of vpic have this in "
                         "their headers");
    if (o->schema && deltafs_schema_parse(o->schema, &bounds) != DELTAFS_OK)
        return text_keep(EXIT_USAGE, "import: --schema: %s", deltafs_errmsg(NULL));
    l->size = VPIC_PARTICLE;
    l->has_part = 1;
    if (deltafs_schema_parse(VPIC_SCHEMA, &particle) != DELTAFS_OK ||
        !(l->schema = calloc(IMPORT_FIELD_ROOM, sizeof VPIC_SCHEMA)))
        code = text_keep(EXIT_TROUBLE, "import: no memory for a schema");
    if (code == EXIT_OK)
        code = vpic_print_schema(l->schema, particle, bounds);
    deltafs_schema_destroy(particle);
    deltafs_schema_destroy(bounds);
    return code;
}

/* What is wrong with a header, and where; or NULL. */
static const char *vpic_check_header(const uint8_t *h, unsigned *offset)
{
    static const uint8_t sizes[5] = {8, 2, 4, 4, 8}, one4[4] = {0, 0, 0x80, 0x3f};
    static const uint8_t one8[8] = {0, 0, 0, 0, 0, 0, 0xf0, 0x3f};
    const struct {
        unsigned offset;
        int is_right;
        const char *wrong;
    } checks[] = {
        {0, memcmp(h, sizes, 5) == 0, "no VPIC dump, or of a machine with other sizes of its types"},
        {5, h[5] != 0xca || h[6] != 0xfe, "a VPIC dump of a big-endian machine, which is not supported"},
        {5, h[5] == 0xfe && h[6] == 0xca, "no VPIC dump: 0xcafe is missing"},
        {7, vpic_i32(h + 7) == (int32_t)0xdeadbeef, "no VPIC dump: 0xdeadbeef is missing"},
        {11, memcmp(h + 11, one4, 4) == 0 && memcmp(h + 15, one8, 8) == 0, "floats are not IEEE 754 little-endian"},
        {23, vpic_i32(h + 23) == 0, "a dump version other than 0"},
        {27, vpic_i32(h + 27) == 3, "a VPIC dump of another kind than particles"},
        {31, vpic_i32(h + 31) >= 0, "a negative step"},
        {87, vpic_i32(h + 87) >= 0 && vpic_i32(h + 87) < vpic_i32(h + 91), "a rank that is not below the ranks"},
        {91, vpic_i32(h + 91) <= VPIC_RANKS_MAX, "more ranks than 1048576"},
        {95, vpic_i32(h + 95) >= 0, "a negative species"},
        {103, vpic_i32(h + 103) == VPIC_PARTICLE, "particles of another size than 32 bytes"},
        {107, vpic_i32(h + 107) == 1, "particles not in one dimension"},
        {111, vpic_i32(h + 111) >= 0, "a negative number of particles"},
    };

    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (!checks[i].is_right) {
            *offset = checks[i].offset;
            return checks[i].wrong;
        }
    return NULL;
}

static int vpic_inspect(const struct import_layout *l, const struct input *in, struct import_file *out)
{
    uint8_t h[VPIC_HEADER], ids[VPIC_ARRAY];
    unsigned offset;

    (void)l;
    if (in->size < VPIC_HEADER)
        return text_keep(EXIT_TROUBLE, "%s: of %" PRIu64 " bytes, too short for a VPIC particle dump (damaged?)",
                         in->path, in->size);
    int code = input_read(in, 0, h, sizeof h);
    if (code != EXIT_OK)
        return code;
    const char *wrong = vpic_check_header(h, &offset);
    if (wrong)
        return text_keep(EXIT_TROUBLE, "%s: damaged or not a VPIC particle dump: at offset %u: %s", in->path, offset,
                         wrong);
    uint64_t n = (uint64_t)vpic_i32(h + 111), particles_end = VPIC_HEADER + n * VPIC_PARTICLE;
    uint64_t size = particles_end + VPIC_ARRAY + n * VPIC_ID;
    if (in->size == particles_end)
        return text_keep(EXIT_TROUBLE,
                         "%s: has no particle IDs after its particles; only dumps of VPIC built with particle IDs can "
                         "be imported",
                         in->path);
    if (in->size != size)
        return text_keep(EXIT_TROUBLE,
                         "%s: %s: of %" PRIu64 " bytes, and its header's %" PRIu64 " particles with IDs make %" PRIu64,
                         in->path, in->size < size ? "truncated" : "has bytes too many", in->size, n, size);
    code = input_read(in, particles_end, ids, sizeof ids);
    if (code != EXIT_OK)
        return code;
    if (vpic_i32(ids) != VPIC_ID || vpic_i32(ids + 4) != 1 || (uint64_t)vpic_i32(ids + 8) != n)
        return text_keep(EXIT_TROUBLE,
                         "%s: damaged: at offset %" PRIu64 ": the header of the IDs does not say %" PRIu64
                         " IDs of 8 bytes",
                         in->path, particles_end, n);
    *out = (struct import_file){.label = (uint64_t)vpic_i32(h + 31),
                                .records = n,
                                .part = (uint64_t)vpic_i32(h + 87),
                                .parts = (uint64_t)vpic_i32(h + 91),
                                .kind = (uint64_t)vpic_i32(h + 95),
                                .values = VPIC_HEADER,
                                .keys = particles_end + VPIC_ARRAY};
    memcpy(out->facts, h + VPIC_GRID, VPIC_GRID_SIZE);
    memcpy((uint8_t *)out->facts + VPIC_GRID_SIZE, h + VPIC_Q_M, sizeof(float));
    return EXIT_OK;
}

/* ---- The grid, from which positions are computed ---- */

/* The attributes of a directory that headers have, and where: in the facts of a file. */
static const struct vpic_fact {
    const char *name;
    size_t at;
    int is_whole; /* an i32, else an f32 */
} vpic_facts[] = {{"nx", 0, 1},    {"ny", 4, 1},
                  {"nz", 8, 1},    {"dt", 12, 0},
                  {"hx", 16, 0},   {"hy", 20, 0},
                  {"hz", 24, 0},   {"x0", 28, 0},
                  {"y0", 32, 0},   {"z0", 36, 0},
                  {"cvac", 40, 0}, {"eps0", 44, 0},
                  {"damp", 48, 0}, {"q_m", VPIC_GRID_SIZE, 0}};

static double vpic_number(const struct import_file *f, const struct vpic_fact *fact)
{
    const uint8_t *p = (const uint8_t *)f->facts + fact->at;
    int32_t bits = vpic_i32(p);
    float real;

    memcpy(&real, &bits, sizeof real);
    return fact->is_whole ? bits : (double)real;
}

/* Whether all files have the same number: the first, into *number. */
static int vpic_is_single(const struct import_file *f, size_t n, const struct vpic_fact *fact, double *number)
{
    *number = vpic_number(&f[0], fact);
    for (size_t i = 1; i < n; i++)
        if (vpic_number(&f[i], fact) != *number)
            return 0;
    return 1;
}

/* Set a number, or an array with one for each rank. A rank whose file is not there has NaN. */
static int vpic_set_number(deltafs_dir *d, const struct import_file *f, size_t n, const struct vpic_fact *fact)
{
    size_t parts = (size_t)f->parts;
    double single;
    int is_single = vpic_is_single(f, n, fact, &single);
    double *number = is_single ? &single : malloc(parts * sizeof *number);
    const struct deltafs_attribute a = {.struct_size = sizeof a,
                                        .name = fact->name,
                                        .from = f->label,
                                        .type = DELTAFS_ATTRIBUTE_F8,
                                        .count = is_single ? 1 : parts,
                                        .value = number};

    for (size_t i = 0; !is_single && number && i < parts; i++)
        number[i] = strtod("nan", NULL);
    for (size_t i = 0; !is_single && number && i < n; i++)
        number[f[i].part] = vpic_number(&f[i], fact);
    int status = deltafs_attribute_set(d, &a); /* without memory: it has no value, which is an error on all ranks */
    if (!is_single)
        free(number);
    return status;
}

/* A computed column; each "#" in the text stands for [rank] if the number before it differs between the ranks. */
static int vpic_set_column(deltafs_dir *d, const struct import_file *f, size_t n, const char *name, const char *text)
{
    char expression[256];
    size_t used = 0;

    for (const char *p = text; *p && used < sizeof expression; p++) {
        double single;
        int is_single = 0;
        for (size_t i = 0; *p == '#' && i < sizeof vpic_facts / sizeof vpic_facts[0]; i++)
            if (strncmp(p - 2, vpic_facts[i].name, 2) == 0)
                is_single = vpic_is_single(f, n, &vpic_facts[i], &single);
        if (*p != '#')
            expression[used++] = *p;
        else if (!is_single)
            used += (size_t)snprintf(expression + used, sizeof expression - used, "[rank]");
    }
    expression[used] = '\0';
    const struct deltafs_attribute a = {.struct_size = sizeof a,
                                        .name = name,
                                        .from = f->label,
                                        .type = DELTAFS_ATTRIBUTE_EXPRESSION,
                                        .value = expression};
    return deltafs_attribute_set(d, &a);
}

/* Whether the grid is as it was. */
static int vpic_is_same(const struct import_file *f, size_t n, const struct import_file *before, size_t before_n)
{
    for (size_t i = 0; i < n && before_n == n; i++)
        if (f[i].part != before[i].part || memcmp(f[i].facts, before[i].facts, sizeof f->facts) != 0)
            return 0;
    return before_n == n;
}

/* Cells are numbered along x first, with one more at each end of each axis; dx, dy, dz go from -1 to 1 in a cell. */
static int vpic_set_facts(deltafs_dir *d, const struct import_file *f, size_t n, const struct import_file *before,
                          size_t before_n)
{
    static const char *const columns[][2] = {
        {"x", "x0# + (i % (nx#+2) - 1 + (dx+1)/2) * hx#"},
        {"y", "y0# + (i // (nx#+2) % (ny#+2) - 1 + (dy+1)/2) * hy#"},
        {"z", "z0# + (i // ((nx#+2)*(ny#+2)) - 1 + (dz+1)/2) * hz#"},
    };
    const double time = (double)f->label * vpic_number(f, &vpic_facts[3]);
    const struct deltafs_attribute a = {.struct_size = sizeof a,
                                        .name = "time",
                                        .from = f->label,
                                        .type = DELTAFS_ATTRIBUTE_F8,
                                        .count = 1,
                                        .value = &time};
    int status = deltafs_attribute_set(d, &a);

    if (vpic_is_same(f, n, before, before_n))
        return status;
    for (size_t i = 0; i < sizeof vpic_facts / sizeof vpic_facts[0] && status == DELTAFS_OK; i++)
        status = vpic_set_number(d, f, n, &vpic_facts[i]);
    for (size_t i = 0; i < 3 && status == DELTAFS_OK; i++)
        status = vpic_set_column(d, f, n, columns[i][0], columns[i][1]);
    return status;
}

const struct import_format import_vpic = {
    .name = "vpic", .begin = vpic_begin, .inspect = vpic_inspect, .set_facts = vpic_set_facts};
