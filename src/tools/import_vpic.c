/* VPIC's particle dumps, version 0, as dump_particles of VPIC 1.x writes them, one file a rank and step:
 *   0 size bytes 8 2 4 4 8   5 i16 0xcafe   7 i32 0xdeadbeef   11 f32 1   15 f64 1   23 i32 version 0   27 i32 dump
 * type 3 31 i32 step   35 i32 nx ny nz   47 f32 dt dx dy dz x0 y0 z0 cvac eps0 damp   87 i32 rank nproc   95 i32
 * species 99 f32 charge/mass   103 i32 bytes of a particle (32)   107 i32 dimensions (1)   111 i32 n   115 n particles
 * and, where particles have IDs, behind them: i32 8, i32 1, i32 n, and n IDs of 8 bytes, in the particles' order.
 * Byte order is the writing machine's; only little-endian is read. */
#include <inttypes.h>
#include <string.h>
#include "tools/import.h"

#define VPIC_HEADER   115
#define VPIC_PARTICLE 32
#define VPIC_ID       8
#define VPIC_ARRAY    12 /* header of the array of IDs */

static int32_t vpic_i32(const uint8_t *p)
{
    return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

static int vpic_begin(struct import_layout *l)
{
    const struct import_options *o = &l->options;

    if (o->schema || o->key || o->skip.is_given || o->epoch.is_given)
        return text_keep(EXIT_USAGE, "import: --schema, --key, --skip and --epoch are for --format raw; files of vpic "
                                     "have this in their headers");
    l->size = VPIC_PARTICLE;
    l->schema = strdup("dx:f4,dy:f4,dz:f4,i:i4,ux:f4,uy:f4,uz:f4,w:f4");
    return l->schema ? EXIT_OK : text_keep(EXIT_TROUBLE, "import: no memory for a schema");
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
    return EXIT_OK;
}

const struct import_format import_vpic = {.name = "vpic", .begin = vpic_begin, .inspect = vpic_inspect};
