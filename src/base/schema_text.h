#ifndef DELTAFS_BASE_SCHEMA_TEXT_H
#define DELTAFS_BASE_SCHEMA_TEXT_H

#include "base/error.h"

#define SCHEMA_FIELDS_MAX 1000 /* so that a schema found on disk costs no time worth speaking of */

/* The text of a schema with one NAME:TYPE for each field, to be freed: arrays and NumPy's types are replaced.
 * DELTAFS_ERR_SCHEMA for mistakes in these, and DELTAFS_ERR_MEMORY. */
int schema_text_plain(const char *text, char **out, struct error *e);

/* Such a text in two, to be freed: without error bounds, and the bounds, "1e-4,0,...", of each field one, 0 for none;
 * NULL if no field has one. */
int schema_text_split(const char *text, char **plain, char **bounds, struct error *e);
/* And as it was. DELTAFS_ERR_SCHEMA, without a message, if there is not one bound for each field. */
int schema_text_join(const char *plain, const char *bounds, char **out, struct error *e);

#endif
