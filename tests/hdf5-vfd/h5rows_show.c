/* Prints, as JSON, where an HDF5 file has the rows that a pattern names: what `deltafs-mpi index` goes by.
 *
 *     h5rows_show FILE PATTERN [LIBHDF5 [each]]
 *
 * `each`: HDF5 is asked for each chunk, as older ones must be. Else one that can tell of all of them is not. */
#include <inttypes.h>
#include <stdio.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "hdf5/h5rows.h"

static void show_column(const struct deltafs_column *c, int is_last)
{
    printf("  {\"name\": \"%s\", \"type\": \"%c%c%" PRIu32 "\", \"stride\": %" PRIu64 ", \"offset\": %" PRIu64
           ", \"pieces\": [",
           c->name, c->is_big_endian ? '>' : '<', c->kind, c->size, c->stride, c->offset);
    for (size_t i = 0; i < c->piece_count; i++)
        printf("%s[%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", i ? ", " : "", c->piece[i].first, c->piece[i].rows,
               c->piece[i].offset);
    printf("]");
    if (c->dataset)
        printf(", \"dataset\": \"%s\"", c->dataset);
    for (uint32_t i = 0; c->constant && i < c->size; i++)
        printf("%s%02x%s", i ? "" : ", \"constant\": \"", ((const uint8_t *)c->constant)[i],
               i + 1 < c->size ? "" : "\"");
    printf("}%s\n", is_last ? "" : ",");
}

static int (*chunk_place)(h5_id dataset, const uint64_t *at, unsigned *filters, uint64_t *address, uint64_t *size);
static unsigned asked;

static int count_and_place(h5_id dataset, const uint64_t *at, unsigned *filters, uint64_t *address, uint64_t *size)
{
    asked++;
    return chunk_place(dataset, at, filters, address, size);
}

static int read_plain(void *ctx, uint64_t offset, void *bytes, size_t size, struct error *e)
{
    (void)e;
    return pread(*(int *)ctx, bytes, size, (off_t)offset) == (ssize_t)size ? DELTAFS_OK : DELTAFS_ERR_IO;
}

int main(int argc, char **argv)
{
    struct error e = {0};
    struct h5lib lib;
    struct h5rows rows;
    struct stat st;

    if (argc < 3 || argc > 5)
        return 2;
    int fd = open(argv[1], O_RDONLY), status = h5lib_load(&lib, argv[3], &e);
    const struct h5source source = {argv[1], fstat(fd, &st) == 0 ? (uint64_t)st.st_size : 0, read_plain, &fd};
    if (status == 0 && argc == 5)
        lib.chunks = NULL;
    chunk_place = lib.chunk_place;
    if (lib.chunks)
        lib.chunk_place = count_and_place;
    if (status != 0 || h5rows_read(&lib, &source, argv[2], NULL, &rows, &e) != DELTAFS_OK) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    if (asked > 0) {
        fprintf(stderr, "HDF5 was asked for each of %u chunks\n", asked);
        return 1;
    }
    printf("[");
    for (size_t i = 0; i < rows.count; i++) {
        const struct deltafs_table *t = rows.table[i];
        printf("%s{\"name\": \"%s\", \"label\": %" PRIu64 ", \"rows\": %" PRIu64 ", \"key\": %zu, \"columns\": [\n",
               i ? ",\n " : "", t->name, t->label, t->rows, t->key);
        for (size_t k = 0; k < t->column_count; k++)
            show_column(&t->column[k], k + 1 == t->column_count);
        printf("  ]}");
    }
    printf("]\n");
    h5rows_fini(&rows);
    return 0;
}
