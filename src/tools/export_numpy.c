#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "tools/export_numpy.h"

#define MAGIC      "\x93NUMPY"
#define MAGIC_SIZE 6
#define ALIGNMENT  64
#define SHORT_MAX  65535 /* bytes of a header of version 1 */
#define DIGITS_MAX 20    /* of a count */

int numpy_check(const struct export *x, const char *format)
{
    if (x->column[EXPORT_KEY].size == 0)
        return text_fail(EXIT_USAGE, "export: %s has no place for keys of bytes; use csv, jsonl or parquet", format);
    if (x->column[EXPORT_VALUES].size == 0)
        return text_fail(EXIT_USAGE, "export: %s has no place for values of different sizes; use csv, jsonl or parquet",
                         format);
    return EXIT_OK;
}

void numpy_type(const struct export_column *c, char out[NUMPY_TYPE_ROOM])
{
    const char *order = c->kind == 'S' || c->kind == 'V' || c->size == 1 ? "|" : "<";

    snprintf(out, NUMPY_TYPE_ROOM, "%s%c%" PRIu32, order, c->kind, c->size);
}

char *numpy_header(const char *type, uint64_t count, size_t *size)
{
    size_t used = strlen("{'descr': , 'fortran_order': False, 'shape': (,), }\n") + strlen(type) + DIGITS_MAX;
    size_t before = MAGIC_SIZE + 2 + (used + ALIGNMENT <= SHORT_MAX ? 2 : 4);
    size_t all = (before + used + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, length = all - before;
    char *out = malloc(all + 1);

    if (!out)
        return NULL;
    memcpy(out, MAGIC, MAGIC_SIZE);
    out[MAGIC_SIZE] = before == MAGIC_SIZE + 4 ? 1 : 2; /* the version */
    out[MAGIC_SIZE + 1] = 0;
    for (size_t i = MAGIC_SIZE + 2; i < before; i++)
        out[i] = (char)(length >> 8 * (i - MAGIC_SIZE - 2));
    int n = snprintf(out + before, length + 1, "{'descr': %s, 'fortran_order': False, 'shape': (%" PRIu64 ",), }", type,
                     count);
    memset(out + before + n, ' ', length - (size_t)n);
    out[all - 1] = '\n';
    *size = all;
    return out;
}
