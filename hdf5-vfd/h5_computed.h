/* Computed columns in HDF5 files: a dataset of floats for each; and units, as openPMD has them. */
#ifndef DELTAFS_H5_COMPUTED_H
#define DELTAFS_H5_COMPUTED_H

#include <deltafs/deltafs_query.h>
#include "h5_image.h"

struct h5_computed {
    deltafs_dir *dir;
    deltafs_columns *columns;
    deltafs_schema *schema; /* of stored columns, then of computed ones */
    size_t first, count;    /* of the computed ones in it; none: the rest is not used */
    struct h5_bytes *value; /* of each, of the records that were added */
};

/* Close with h5_computed_close, also after an error. */
int h5_computed_open(struct h5_computed *c, deltafs_dir *dir, const char *schema);
void h5_computed_close(struct h5_computed *c);

/* Compute the columns of records, which come behind those that were added before. A lack of memory is noted in `value`.
 */
int h5_computed_add(struct h5_computed *c, size_t n, const struct deltafs_record *records);
/* Put the columns into the image, each as a dataset of `parent`, with its unit as it is for `label`; or, if the records
 * could not be added, why. No record is added any more then. */
void h5_computed_put(struct h5_computed *c, int status, uint64_t label, struct h5_bytes *image,
                     struct h5_bytes *parent);

/* unitSI and unitDimension, with `prefix` before these names; nothing if the unit is not known. */
void h5_unit(struct h5_bytes *o, const char *prefix, const struct deltafs_attribute *a);

#endif
