/* What the formats npy and npz have in common: arrays as NumPy stores them. */
#ifndef DELTAFS_TOOLS_EXPORT_NUMPY_H
#define DELTAFS_TOOLS_EXPORT_NUMPY_H

#include "tools/export.h"

#define NUMPY_TYPE_ROOM 16

/* Refuse columns that an array cannot have. */
int numpy_check(const struct export *x, const char *format);

/* NumPy's name for the type of a column, such as "<f4". */
void numpy_type(const struct export_column *c, char out[NUMPY_TYPE_ROOM]);

/* Make what comes before the `count` elements of an array, whose type is `type` in Python's notation. Its *size does
 * not depend on the count. Returns NULL if there is no memory; to be freed. */
char *numpy_header(const char *type, uint64_t count, size_t *size);

#endif
