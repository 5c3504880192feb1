#include <string.h>
#include "tools/export_hdf5.h"

static const char axes[] = "xyz";

int export_hdf5_axis(const struct export_column *c)
{
    const char *at = c->name[0] != '\0' && c->name[1] == '\0' ? strchr(axes, c->name[0]) : NULL;

    return at ? (int)(at - axes) : -1;
}

int export_hdf5_check(const struct export *x, const char *format)
{
    int has[3] = {0};

    if (x->column[EXPORT_KEY].size == 0)
        return text_fail(EXIT_USAGE, "export: %s has no place for keys of bytes; use csv, jsonl or parquet", format);
    for (size_t c = EXPORT_VALUES; c < x->columns; c++) {
        const struct export_column *column = &x->column[c];
        if (column->kind == 'S' || column->kind == 'V')
            return text_fail(EXIT_USAGE,
                             "export: %s has no place for the column %s, which is no number; "
                             "choose others with --fields",
                             format, column->name);
        if (export_hdf5_axis(column) >= 0)
            has[export_hdf5_axis(column)] = 1;
    }
    for (int i = 0; i < 3; i++)
        if (!has[i])
            return text_fail(EXIT_USAGE,
                             "export: %s needs the columns x, y and z, and %c is missing: name it in --fields, or "
                             "define it, as by 'deltafs attr DIR %c==0'",
                             format, axes[i], axes[i]);
    return EXIT_OK;
}

int export_hdf5_number(const struct export *x, const char *name, uint64_t label, double *value,
                       struct deltafs_attribute *a)
{
    struct deltafs_attribute own = {.struct_size = sizeof own};

    if (deltafs_attribute_get(x->dir, name, label, &own) != DELTAFS_OK || own.count != 1)
        return 0;
    if (a)
        *a = own;
    switch (own.type) {
    case DELTAFS_ATTRIBUTE_F8:
        *value = *(const double *)own.value;
        return 1;
    case DELTAFS_ATTRIBUTE_I8:
        *value = (double)*(const int64_t *)own.value;
        return 1;
    case DELTAFS_ATTRIBUTE_U8:
        *value = (double)*(const uint64_t *)own.value;
        return 1;
    default:
        return 0;
    }
}

uint64_t export_hdf5_label(const uint8_t bytes[8])
{
    uint64_t label = 0;

    for (int i = 8; i-- > 0;)
        label = label << 8 | bytes[i];
    return label;
}
