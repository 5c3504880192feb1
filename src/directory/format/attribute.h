/* Attributes: lines "attribute ..." of the manifest, each a fact about the directory from a label on. */
#ifndef DELTAFS_DIRECTORY_ATTRIBUTE_H
#define DELTAFS_DIRECTORY_ATTRIBUTE_H

#include <deltafs/deltafs_query.h>
#include "io/textlog.h"

#define ATTRIBUTE_WORD       "attribute"
#define ATTRIBUTE_NAME_MAX   255
#define ATTRIBUTE_DIMENSIONS 7

/* In the order of the manifest, without those that later ones replace: of one name, `from` grows. */
struct attributes {
    struct deltafs_attribute *item;
    size_t count, capacity;
};

/* Append the line of an attribute, which has been checked. In pieces, so that an array takes no memory: after a failure
 * the caller removes what is behind *size. */
int attribute_append(struct io_file *file, uint64_t *size, const struct deltafs_attribute *a, int sync,
                     struct error *e);

/* Take the fields of a line. A type that is not known is skipped. */
int attributes_parse(struct attributes *all, const char *fields, const char *path, uint64_t offset, struct error *e);

/* What `name` is for `label`; NULL if there is none. */
const struct deltafs_attribute *attributes_find(const struct attributes *all, const char *name, uint64_t label);
void attributes_fini(struct attributes *all);

#endif
