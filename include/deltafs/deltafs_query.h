/* DeltaFS: attributes of directories, units of columns, computed columns. A directory can carry facts about its data:
 * the grid of the simulation, physical constants, the physical time of each epoch, the units of its columns. Such a
 * fact is an attribute. It has a name, and a number, an array of numbers or a text as its value. An attribute can also
 * be an expression: it defines a computed column, which is available wherever a stored column is.
 *
 * The conventions of deltafs.h apply. Names of attributes consist of letters, digits and '_', and do not begin with a
 * digit. An attribute cannot have the name of a stored column, nor one of these: key, epoch, and, or, not.
 *
 * A value is valid from a label on, because facts such as a grid may change in the course of a simulation. The value
 * for a label is the one that was set last, of all those that are valid from this label or a smaller one on. So
 * a value that is set again for the same label, or a smaller one, replaces the former. The physical time of an epoch is
 * the attribute "time": set it for each epoch, with the label of the epoch as `from`.
 *
 * Attributes are stored in the manifest of the directory. Older versions of DeltaFS ignore them.
 */
#ifndef DELTAFS_QUERY_H
#define DELTAFS_QUERY_H

#include <deltafs/deltafs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an attribute is, and what its `value` points to. */
enum deltafs_attribute_type {
    DELTAFS_ATTRIBUTE_F8 = 1,         /* const double *, of `count` numbers */
    DELTAFS_ATTRIBUTE_I8 = 2,         /* const int64_t * */
    DELTAFS_ATTRIBUTE_U8 = 3,         /* const uint64_t * */
    DELTAFS_ATTRIBUTE_TEXT = 4,       /* const char *, up to a zero */
    DELTAFS_ATTRIBUTE_EXPRESSION = 5, /* the same: the expression of a computed column */
    DELTAFS_ATTRIBUTE_COLUMN = 6      /* no value: the attribute gives the unit of the stored column of this name */
};

struct deltafs_attribute {
    size_t struct_size; /* see convention 7 of deltafs.h */
    const char *name;
    uint64_t from;     /* the label from which on it is valid; 0: for all epochs */
    int type;          /* enum deltafs_attribute_type */
    size_t count;      /* numbers; 1 for a single number. Of a text: its bytes (not used when it is set) */
    const void *value; /* see the type */
    double unit_si;    /* by how much a value is multiplied to be in SI units; 0: the unit is not known */
    /* The powers of length, mass, time, electric current, temperature, amount of substance and luminous intensity in
     * the unit, in this order, as openPMD has them. A velocity: 1, 0, -1, 0, 0, 0, 0. */
    double unit_dimension[7];
};

/* Set an attribute of a directory that is open for writing. The attribute is stored at once, whatever happens to the
 * current epoch. It can be set at any time: before the first epoch, and between or within epochs. Readers that are open
 * see it after deltafs_refresh.
 *
 * In a job, the call is collective: all ranks call it, and all get the same status. The attribute of rank 0 is stored;
 * on the other ranks `attribute` is ignored and may be NULL.
 *
 * DELTAFS_ERR_INVALID: the name is not possible, or the attribute is longer than 16 MiB as a text. If storing fails,
 * the directory is as before, or the call says that no epoch can be committed any more. */
DELTAFS_API int deltafs_attribute_set(deltafs_dir *dir, const struct deltafs_attribute *attribute);

/* Set an attribute of a directory that no program has open for writing, and whose last writer closed it. No epoch is
 * read or changed. DELTAFS_ERR_MODE: its writer did not close it; run deltafs_repair first. DELTAFS_ERR_BUSY: another
 * process is writing the directory, or may be (see the option lease). The other errors are those of deltafs_open and
 * deltafs_attribute_set. Not collective. */
DELTAFS_API int deltafs_attribute_set_closed(const char *path, const struct deltafs_attribute *attribute);

/* Get the attribute `name` as it is valid for `label`. The directory must be open for reading. The name and value in
 * *out belong to the handle, until it is refreshed or closed. DELTAFS_ERR_NOT_FOUND if there is no such attribute, or
 * if it is valid from a later label on. */
DELTAFS_API int deltafs_attribute_get(deltafs_dir *dir, const char *name, uint64_t label,
                                      struct deltafs_attribute *out);

/* Get attribute number `i`, from 0 on (deltafs_stat has their number), in the order in which they were set. A name has
 * one attribute for each label from which on it has another value; those that were replaced are left out.
 * DELTAFS_ERR_NOT_FOUND if there are fewer. */
DELTAFS_API int deltafs_attribute_at(deltafs_dir *dir, size_t i, struct deltafs_attribute *out);

#ifdef __cplusplus
}
#endif
#endif
