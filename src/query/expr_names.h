/* Messages about names. */
#ifndef DELTAFS_QUERY_EXPR_NAMES_H
#define DELTAFS_QUERY_EXPR_NAMES_H

#include "query/expr.h"

/* There is no `name`: sets the error, with the name that is most like it, and all that there are. */
int expr_unknown(const struct expr_scope *scope, uint32_t offset, const char *name, struct error *e);

#endif
