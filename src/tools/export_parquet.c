/* Apache Parquet, after its specification: row groups, in each a chunk of pages for each column, and a footer that says
 * where they are. Pages have PLAIN encoding and are compressed by Snappy. There are no missing values, so all columns
 * are REQUIRED and need no levels. Chunks of integers have their minimum and maximum, by which readers skip row groups.
 *
 * Snappy is loaded here, because it needs the library of C++: each start of the command would take twice as long. */
#include <dlfcn.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>
#include "tools/attribute_text.h"
#include "tools/export_block.h"
#include "tools/thrift.h"

#define LIBRARY     "libsnappy.so.1"
#define MAGIC       "PAR1"
#define MAGIC_SIZE  4
#define GROUP_BYTES ((size_t)32 << 20) /* of a row group, before compression */
#define PAGE_BYTES  ((size_t)1 << 20)  /* of a page; more if a single value is larger */

/* Numbers of the format. */
enum { INT32 = 1, INT64 = 2, FLOAT = 4, DOUBLE = 5, BYTE_ARRAY = 6, FIXED_LEN_BYTE_ARRAY = 7 }; /* Type */
enum { UINT_8 = 11, INT_8 = 15 };                                                               /* ConvertedType */
enum { LOGICAL_INTEGER = 10 };                                                                  /* of LogicalType */
enum { REQUIRED = 0, PLAIN = 0, RLE = 3, SNAPPY = 1, DATA_PAGE = 0, VERSION = 2 };

struct chunk {
    uint64_t offset, plain, packed; /* bytes before and after compression */
    uint64_t least, most;           /* of integers */
};

struct parquet {
    struct export_block block; /* the row group that is collected */
    struct chunk *chunk;       /* of each row group, those of its columns */
    uint64_t *rows;            /* of each row group */
    size_t groups;
    uint64_t at, count; /* bytes of the file, rows */
    uint8_t *plain;     /* a page of numbers that are stored in fewer bytes */
    char *packed;
    size_t packed_room;
    struct thrift thrift;
    size_t (*packed_max)(size_t);
    snappy_status (*pack)(const char *, size_t, char *, size_t *);
};

/* ---- Types ---- */

static int is_integer(const struct export_column *c)
{
    return c->kind == 'i' || c->kind == 'u';
}

static int type_of(const struct export_column *c)
{
    if (c->kind == 'f')
        return c->size == 4 ? FLOAT : DOUBLE;
    if (is_integer(c))
        return c->size == 8 ? INT64 : INT32;
    return c->kind == 'S' || c->size == 0 ? BYTE_ARRAY : FIXED_LEN_BYTE_ARRAY;
}

/* Bytes of a value in a page, or 0: its size and its bytes. */
static size_t width_of(const struct export_column *c)
{
    return type_of(c) == BYTE_ARRAY ? 0 : type_of(c) == INT32 ? 4 : c->size;
}

/* ---- Snappy ---- */

/* Functions and data pointers have one size where there is dlsym. */
static int snappy_look_up(void *library, const char *name, void *pointer)
{
    void *symbol = library ? dlsym(library, name) : NULL;

    memcpy(pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}

static int snappy_load(const struct export *x)
{
    struct parquet *p = x->state;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (snappy_look_up(library, "snappy_max_compressed_length", &p->packed_max) &&
        snappy_look_up(library, "snappy_compress", &p->pack))
        return EXIT_OK;
    return text_fail(EXIT_TROUBLE,
                     "export: %s: Parquet needs the library Snappy (Debian: libsnappy1v5), but %s; install it, or "
                     "choose another format",
                     x->name, dlerror());
}

/* ---- Pages ---- */

static int parquet_write(struct export *x, const void *bytes, size_t n)
{
    struct parquet *p = x->state;

    p->at += n;
    return export_write(x, bytes, n);
}

/* Write what is in p->thrift. */
static int parquet_write_thrift(struct export *x)
{
    struct parquet *p = x->state;

    if (p->thrift.is_failed)
        return text_fail(EXIT_TROUBLE, "export: no memory for the structure of %s", x->name);
    return parquet_write(x, p->thrift.bytes, p->thrift.used);
}

static int page_pack(struct export *x, const uint8_t *bytes, size_t n, size_t *packed)
{
    struct parquet *p = x->state;
    size_t room = p->packed_max(n);

    if (room > p->packed_room) {
        free(p->packed);
        p->packed = malloc(room);
        p->packed_room = p->packed ? room : 0;
        if (!p->packed)
            return text_fail(EXIT_TROUBLE, "export: no memory for a page of %zu bytes", room);
    }
    *packed = p->packed_room;
    if (p->pack((const char *)bytes, n, p->packed, packed) != SNAPPY_OK)
        return text_fail(EXIT_TROUBLE, "export: a page of %zu bytes cannot be compressed", n);
    return EXIT_OK;
}

static int page_write(struct export *x, struct chunk *chunk, const uint8_t *bytes, size_t n, size_t values)
{
    struct parquet *p = x->state;
    struct thrift *t = &p->thrift;
    size_t packed;
    int code = page_pack(x, bytes, n, &packed);

    if (code != EXIT_OK)
        return code;
    thrift_clear(t);
    thrift_add_begin(t);
    thrift_i32(t, 1, DATA_PAGE);
    thrift_i32(t, 2, (int32_t)n);
    thrift_i32(t, 3, (int32_t)packed);
    thrift_begin(t, 5);
    thrift_i32(t, 1, (int32_t)values);
    thrift_i32(t, 2, PLAIN);
    thrift_i32(t, 3, RLE); /* of the levels, which are not there */
    thrift_i32(t, 4, RLE);
    thrift_end(t);
    thrift_end(t);
    chunk->plain += t->used + n;
    chunk->packed += t->used + packed;
    code = parquet_write_thrift(x);
    return code == EXIT_OK ? parquet_write(x, p->packed, packed) : code;
}

/* ---- Columns of a row group ---- */

static uint64_t load(const uint8_t *bytes, const struct export_column *c)
{
    unsigned unused = 64 - 8 * c->size;
    uint64_t n = 0;

    for (size_t i = c->size; i-- > 0;)
        n = n << 8 | bytes[i];
    return c->kind == 'i' ? (uint64_t)((int64_t)(n << unused) >> unused) : n;
}

static int is_less(const struct export_column *c, uint64_t a, uint64_t b)
{
    return c->kind == 'i' ? (int64_t)a < (int64_t)b : a < b;
}

static void chunk_find_limits(struct chunk *chunk, const struct export_column *c, const uint8_t *bytes, size_t values)
{
    chunk->least = chunk->most = load(bytes, c);
    for (size_t i = 1; i < values; i++) {
        uint64_t n = load(bytes + i * c->size, c);
        chunk->least = is_less(c, n, chunk->least) ? n : chunk->least;
        chunk->most = is_less(c, chunk->most, n) ? n : chunk->most;
    }
}

/* Values that all have the same size. */
static int chunk_write_fixed(struct export *x, struct chunk *chunk, size_t c)
{
    const struct parquet *p = x->state;
    const struct export_column *column = &x->column[c];
    const uint8_t *bytes = p->block.part[c].bytes;
    size_t width = width_of(column), most = PAGE_BYTES / width > 0 ? PAGE_BYTES / width : 1;
    int code = EXIT_OK;

    if (is_integer(column))
        chunk_find_limits(chunk, column, bytes, p->block.rows);
    for (size_t row = 0, n; row < p->block.rows && code == EXIT_OK; row += n) {
        const uint8_t *page = bytes + row * column->size;
        n = p->block.rows - row < most ? p->block.rows - row : most;
        for (size_t i = 0; i < n && column->size < width; i++) {
            uint64_t value = load(page + i * column->size, column);
            for (size_t k = 0; k < width; k++)
                p->plain[i * width + k] = (uint8_t)(value >> 8 * k);
        }
        code = page_write(x, chunk, column->size < width ? p->plain : page, n * width, n);
    }
    return code;
}

/* Values with their sizes before them. */
static int chunk_write_sized(struct export *x, struct chunk *chunk, size_t c)
{
    static const struct export_column size_column = {.kind = 'u', .size = 4};
    const struct parquet *p = x->state;
    const struct export_part *part = &p->block.part[c];
    int code = EXIT_OK;

    for (size_t first = 0, at; first < part->used && code == EXIT_OK; first = at) {
        size_t n = 0;
        for (at = first; at < part->used && at - first < PAGE_BYTES; n++)
            at += 4 + load(part->bytes + at, &size_column);
        code = page_write(x, chunk, part->bytes + first, at - first, n);
    }
    return code;
}

/* Write the row group that is collected. */
static int parquet_put_group(struct export *x)
{
    struct parquet *p = x->state;
    int code = EXIT_OK;

    uint64_t *rows = realloc(p->rows, (p->groups + 1) * sizeof *rows);
    p->rows = rows ? rows : p->rows;
    struct chunk *chunk = realloc(p->chunk, (p->groups + 1) * x->columns * sizeof *chunk);
    p->chunk = chunk ? chunk : p->chunk;
    if (!rows || !chunk)
        return text_fail(EXIT_TROUBLE, "export: no memory for %zu row groups", p->groups + 1);
    chunk += p->groups * x->columns;
    rows[p->groups++] = p->block.rows;
    for (size_t c = 0; c < x->columns && code == EXIT_OK; c++) {
        chunk[c] = (struct chunk){.offset = p->at};
        code = width_of(&x->column[c]) > 0 ? chunk_write_fixed(x, &chunk[c], c) : chunk_write_sized(x, &chunk[c], c);
    }
    export_block_clear(&p->block, x);
    return code;
}

/* ---- The footer ---- */

static void footer_column(struct thrift *t, const struct export_column *c)
{
    int type = type_of(c), log = c->size == 1 ? 0 : c->size == 2 ? 1 : c->size == 4 ? 2 : 3;

    thrift_add_begin(t);
    thrift_i32(t, 1, type);
    if (type == FIXED_LEN_BYTE_ARRAY)
        thrift_i32(t, 2, (int32_t)c->size);
    thrift_i32(t, 3, REQUIRED);
    thrift_text(t, 4, c->name);
    if (is_integer(c)) {
        thrift_i32(t, 6, (c->kind == 'i' ? INT_8 : UINT_8) + log);
        thrift_begin(t, 10);
        thrift_begin(t, LOGICAL_INTEGER);
        thrift_i8(t, 1, 8 << log);
        thrift_bool(t, 2, c->kind == 'i');
        thrift_end(t);
        thrift_end(t);
    }
    thrift_end(t);
}

static void footer_schema(const struct export *x, struct thrift *t)
{
    thrift_list(t, 2, THRIFT_STRUCT, 1 + x->columns);
    thrift_add_begin(t);
    thrift_text(t, 4, "schema");
    thrift_i32(t, 5, (int32_t)x->columns);
    thrift_end(t);
    for (size_t c = 0; c < x->columns; c++)
        footer_column(t, &x->column[c]);
}

static void footer_limits(struct thrift *t, const struct export_column *c, const struct chunk *chunk)
{
    uint8_t least[8], most[8];

    for (int i = 0; i < 8; i++) {
        least[i] = (uint8_t)(chunk->least >> 8 * i);
        most[i] = (uint8_t)(chunk->most >> 8 * i);
    }
    thrift_begin(t, 12);
    thrift_i64(t, 3, 0); /* missing values */
    thrift_binary(t, 5, most, width_of(c));
    thrift_binary(t, 6, least, width_of(c));
    thrift_end(t);
}

static void footer_chunk(struct thrift *t, const struct export_column *c, const struct chunk *chunk, uint64_t rows)
{
    thrift_add_begin(t);
    thrift_i64(t, 2, (int64_t)chunk->offset);
    thrift_begin(t, 3);
    thrift_i32(t, 1, type_of(c));
    thrift_list(t, 2, THRIFT_I32, 1);
    thrift_add_i32(t, PLAIN);
    thrift_list(t, 3, THRIFT_BINARY, 1);
    thrift_add_text(t, c->name);
    thrift_i32(t, 4, SNAPPY);
    thrift_i64(t, 5, (int64_t)rows);
    thrift_i64(t, 6, (int64_t)chunk->plain);
    thrift_i64(t, 7, (int64_t)chunk->packed);
    thrift_i64(t, 9, (int64_t)chunk->offset);
    if (is_integer(c))
        footer_limits(t, c, chunk);
    thrift_end(t);
    thrift_end(t);
}

static void footer_groups(const struct export *x, struct thrift *t)
{
    const struct parquet *p = x->state;

    thrift_list(t, 4, THRIFT_STRUCT, p->groups);
    for (size_t g = 0; g < p->groups; g++) {
        const struct chunk *chunk = &p->chunk[g * x->columns];
        uint64_t plain = 0, packed = 0;
        thrift_add_begin(t);
        thrift_list(t, 1, THRIFT_STRUCT, x->columns);
        for (size_t c = 0; c < x->columns; c++) {
            footer_chunk(t, &x->column[c], &chunk[c], p->rows[g]);
            plain += chunk[c].plain;
            packed += chunk[c].packed;
        }
        thrift_i64(t, 2, (int64_t)plain);
        thrift_i64(t, 3, (int64_t)p->rows[g]);
        thrift_i64(t, 5, (int64_t)chunk[0].offset);
        thrift_i64(t, 6, (int64_t)packed);
        thrift_end(t);
    }
}

/* The attributes of the directory, as info --json prints them. */
static int footer_attributes(const struct export *x, struct thrift *t)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    if (out)
        attributes_json(out, x->dir);
    if (!out || fclose(out) != 0) {
        free(text);
        return text_fail(EXIT_TROUBLE, "export: no memory for the attributes");
    }
    thrift_list(t, 5, THRIFT_STRUCT, 1);
    thrift_add_begin(t);
    thrift_text(t, 1, "deltafs.attributes");
    thrift_text(t, 2, text);
    thrift_end(t);
    free(text);
    return EXIT_OK;
}

/* Minima and maxima are in the order of their types; readers ignore them unless that is said. */
static void footer_orders(const struct export *x, struct thrift *t)
{
    thrift_list(t, 7, THRIFT_STRUCT, x->columns);
    for (size_t c = 0; c < x->columns; c++) {
        thrift_add_begin(t);
        thrift_begin(t, 1);
        thrift_end(t);
        thrift_end(t);
    }
}

static int footer_write(struct export *x)
{
    struct parquet *p = x->state;
    struct thrift *t = &p->thrift;
    char version[64];
    uint8_t size[4];

    snprintf(version, sizeof version, "deltafs version %s", deltafs_version());
    thrift_clear(t);
    thrift_add_begin(t);
    thrift_i32(t, 1, VERSION);
    footer_schema(x, t);
    thrift_i64(t, 3, (int64_t)p->count);
    footer_groups(x, t);
    int code = footer_attributes(x, t);
    thrift_text(t, 6, version);
    footer_orders(x, t);
    thrift_end(t);
    for (int i = 0; i < 4; i++)
        size[i] = (uint8_t)(t->used >> 8 * i);
    if (code == EXIT_OK)
        code = parquet_write_thrift(x);
    if (code == EXIT_OK)
        code = parquet_write(x, size, sizeof size);
    return code == EXIT_OK ? parquet_write(x, MAGIC, MAGIC_SIZE) : code;
}

/* ---- The format ---- */

static int parquet_begin(struct export *x)
{
    struct parquet *p = x->state;
    int code = snappy_load(x);

    if (code == EXIT_OK)
        code = export_block_init(&p->block, x);
    for (size_t c = 0; c < x->columns && code == EXIT_OK; c++)
        p->block.part[c].has_sizes = width_of(&x->column[c]) == 0;
    p->plain = malloc(PAGE_BYTES);
    if (code == EXIT_OK && !p->plain)
        code = text_fail(EXIT_TROUBLE, "export: no memory for a page");
    return code == EXIT_OK ? parquet_write(x, MAGIC, MAGIC_SIZE) : code;
}

static int parquet_rows(struct export *x, const struct deltafs_record *row, size_t count)
{
    struct parquet *p = x->state;
    int code = export_block_add(&p->block, x, row, count);

    p->count += count;
    return code == EXIT_OK && p->block.bytes >= GROUP_BYTES ? parquet_put_group(x) : code;
}

static int parquet_end(struct export *x)
{
    const struct parquet *p = x->state;
    int code = p->block.rows > 0 ? parquet_put_group(x) : EXIT_OK;

    return code == EXIT_OK ? footer_write(x) : code;
}

static void parquet_release(struct export *x)
{
    struct parquet *p = x->state;

    export_block_fini(&p->block, x);
    thrift_fini(&p->thrift);
    free(p->chunk);
    free(p->rows);
    free(p->plain);
    free(p->packed);
}

const struct export_format export_parquet = {.name = "parquet",
                                             .state_size = sizeof(struct parquet),
                                             .begin = parquet_begin,
                                             .rows = parquet_rows,
                                             .end = parquet_end,
                                             .release = parquet_release};
