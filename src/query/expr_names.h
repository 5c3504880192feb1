/* Messages about names. */
#ifndef DELTAFS_QUERY_EXPR_NAMES_H
#define DELTAFS_QUERY_EXPR_NAMES_H

#include "query/expr.h"

/* Whether it is one of the scope's names, which may have no meaning in it. */
int expr_is_named(const struct expr_scope *scope, const char *name);

/* `name` has no meaning: sets the error, with the name that is most like it, and all that there are.
 * DELTAFS_ERR_NOT_FOUND if it is one of the scope's names, DELTAFS_ERR_INVALID otherwise. */
int expr_unknown(const struct expr_scope *scope, uint32_t offset, const char *name, struct error *e);

#endif
