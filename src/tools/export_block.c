#include <stdlib.h>
#include <string.h>
#include "tools/export_block.h"

#define ROOM_MIN 4096

int export_block_init(struct export_block *b, const struct export *x)
{
    *b = (struct export_block){.part = calloc(x->columns, sizeof *b->part)};
    return b->part ? EXIT_OK : text_fail(EXIT_TROUBLE, "export: no memory for %zu columns", x->columns);
}

static int part_grow(struct export_part *p, size_t more)
{
    size_t room = p->room > 0 ? p->room : ROOM_MIN;

    while (room - p->used < more)
        room *= 2;
    if (room == p->room)
        return EXIT_OK;
    uint8_t *bytes = realloc(p->bytes, room);
    if (!bytes)
        return text_fail(EXIT_TROUBLE, "export: no memory for %zu bytes of a column", room);
    p->bytes = bytes;
    p->room = room;
    return EXIT_OK;
}

/* Cells with their sizes. */
static int part_add_sized(struct export_part *p, const struct export *x, size_t c, const struct deltafs_record *row,
                          size_t count)
{
    uint8_t number[8];
    size_t size;
    int code = EXIT_OK;

    for (size_t i = 0; i < count && code == EXIT_OK; i++) {
        const void *cell = export_cell(x, c, &row[i], number, &size);
        if (x->column[c].kind == 'S')
            size = strnlen(cell, size);
        code = part_grow(p, 4 + size);
        if (code != EXIT_OK)
            break;
        for (int k = 0; k < 4; k++)
            p->bytes[p->used++] = (uint8_t)(size >> 8 * k);
        memcpy(p->bytes + p->used, cell, size);
        p->used += size;
    }
    return code;
}

static int part_add(struct export_part *p, const struct export *x, size_t c, const struct deltafs_record *row,
                    size_t count)
{
    size_t size = x->column[c].size * count;
    int code = p->has_sizes ? part_add_sized(p, x, c, row, count) : part_grow(p, size);

    if (code == EXIT_OK && !p->has_sizes) {
        export_gather(x, c, row, count, p->bytes + p->used);
        p->used += size;
    }
    return code;
}

int export_block_add(struct export_block *b, const struct export *x, const struct deltafs_record *row, size_t count)
{
    int code = EXIT_OK;

    for (size_t c = 0; c < x->columns && code == EXIT_OK; c++) {
        b->bytes -= b->part[c].used;
        code = part_add(&b->part[c], x, c, row, count);
        b->bytes += b->part[c].used;
    }
    b->rows += count;
    return code;
}

void export_block_clear(struct export_block *b, const struct export *x)
{
    for (size_t c = 0; c < x->columns; c++)
        b->part[c].used = 0;
    b->rows = 0;
    b->bytes = 0;
}

void export_block_fini(struct export_block *b, const struct export *x)
{
    for (size_t c = 0; b->part && c < x->columns; c++)
        free(b->part[c].bytes);
    free(b->part);
}
