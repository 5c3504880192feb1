/* What the formats openpmd and vtkhdf have in common. */
#ifndef DELTAFS_TOOLS_EXPORT_HDF5_H
#define DELTAFS_TOOLS_EXPORT_HDF5_H

#include "tools/export_block.h"
#include "tools/h5out.h"

#define HDF5_BLOCK_BYTES ((size_t)1 << 20) /* rows are collected up to here, and written */

/* Refuse rows that the formats have no place for: keys of bytes, columns that are no numbers, no x, y and z. */
int export_hdf5_check(const struct export *x, const char *format);

/* Which axis a column is, 0 to 2, or -1. */
int export_hdf5_axis(const struct export_column *c);

/* The attribute of this name, if it is a number that is valid for the label: its value. *a may be NULL. */
int export_hdf5_number(const struct export *x, const char *name, uint64_t label, double *value,
                       struct deltafs_attribute *a);

/* A label as a block has it. */
uint64_t export_hdf5_label(const uint8_t bytes[8]);

#endif
