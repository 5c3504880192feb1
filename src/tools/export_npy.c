/* One structured array of NumPy: a row is the key, the epoch, and the value as it is stored. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/export_numpy.h"

struct npy {
    char *type; /* in Python's notation */
    uint64_t count;
};

static char *npy_make_type(const struct export *x)
{
    size_t room = 4, used = 1;
    char type[NUMPY_TYPE_ROOM];

    for (size_t c = 0; c < x->columns; c++)
        room += strlen(x->column[c].name) + NUMPY_TYPE_ROOM + strlen("('', ''), ");
    char *out = malloc(room);
    if (!out)
        return NULL;
    strcpy(out, "[");
    for (size_t c = 0; c < x->columns; c++) {
        numpy_type(&x->column[c], type);
        used += (size_t)snprintf(out + used, room - used, "('%s', '%s'), ", x->column[c].name, type);
    }
    strcpy(out + used, "]");
    return out;
}

/* At the place of the file where it is now. */
static int npy_write_header(struct export *x)
{
    struct npy *npy = x->state;
    size_t size;
    char *header = numpy_header(npy->type, npy->count, &size);

    if (!header)
        return text_fail(EXIT_TROUBLE, "export: no memory for a header");
    int code = export_write(x, header, size);
    free(header);
    return code;
}

static int npy_begin(struct export *x)
{
    struct npy *npy = x->state;
    int code = numpy_check(x, "npy");

    if (code != EXIT_OK)
        return code;
    npy->type = npy_make_type(x);
    return npy->type ? npy_write_header(x) : text_fail(EXIT_TROUBLE, "export: no memory for a header");
}

static int npy_rows(struct export *x, const struct deltafs_record *row, size_t count)
{
    struct npy *npy = x->state;
    int code = EXIT_OK;
    uint8_t number[8];
    size_t size;

    for (size_t i = 0; i < count && code == EXIT_OK; i++) {
        for (size_t c = EXPORT_KEY; c < EXPORT_VALUES && code == EXIT_OK; c++) {
            const void *cell = export_cell(x, c, &row[i], number, &size);
            code = export_write(x, cell, size);
        }
        if (code == EXIT_OK)
            code = export_write(x, row[i].value, row[i].size);
    }
    npy->count += count;
    return code;
}

/* Now that the number of rows is known. */
static int npy_end(struct export *x)
{
    return fseek(x->file, 0, SEEK_SET) == 0 ? npy_write_header(x) : export_fail_write(x);
}

static void npy_release(struct export *x)
{
    struct npy *npy = x->state;

    free(npy->type);
}

const struct export_format export_npy = {.name = "npy",
                                         .state_size = sizeof(struct npy),
                                         .begin = npy_begin,
                                         .rows = npy_rows,
                                         .end = npy_end,
                                         .release = npy_release};
