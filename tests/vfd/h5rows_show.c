/* Prints, as JSON, where an HDF5 file has the rows that a pattern names: what `deltafs-mpi index` goes by.
 *
 *     h5rows_show FILE PATTERN [LIBHDF5] */
#include <inttypes.h>
#include <stdio.h>
#include "hdf5/h5rows.h"

static void show_column(const struct deltafs_column *c, int is_last)
{
    printf("  {\"name\": \"%s\", \"type\": \"%c%c%" PRIu32 "\", \"stride\": %" PRIu64 ", \"offset\": %" PRIu64
           ", \"pieces\": [",
           c->name, c->is_big_endian ? '>' : '<', c->kind, c->size, c->stride, c->offset);
    for (size_t i = 0; i < c->piece_count; i++)
        printf("%s[%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]", i ? ", " : "", c->piece[i].first, c->piece[i].rows,
               c->piece[i].offset);
    printf("]}%s\n", is_last ? "" : ",");
}

int main(int argc, char **argv)
{
    char message[H5LIB_MESSAGE_MAX] = "";
    struct h5lib lib;
    struct h5rows rows;

    if (argc != 3 && argc != 4)
        return 2;
    if (h5lib_load(&lib, argv[3], message) != 0 ||
        h5rows_of_file(&lib, argv[1], 0, argv[1], argv[2], NULL, &rows, message) != DELTAFS_OK) {
        fprintf(stderr, "%s\n", message);
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
