/* What a condition says about a value. */
#ifndef DELTAFS_QUERY_BOUNDS_H
#define DELTAFS_QUERY_BOUNDS_H

#include "query/expr.h"

/* Where the condition holds, low <= value <= high; if low > high it holds nowhere. With is_all, it holds where
 * all_above < value < all_below; these are infinite only if there is no such bound. */
struct bounds {
    int is_found; /* it says something */
    int is_all;   /* and nothing about anything else */
    double low, high;
    double all_above, all_below;
};

/* What `condition` says about the value whose fingerprint is `of`: by comparisons with constants that are joined by
 * `and`. Names and types in it must be right; otherwise nothing is found. DELTAFS_ERR_MEMORY. */
int bounds_find(const struct expr *condition, const struct expr_scope *scope, uint64_t of, struct bounds *out,
                struct error *e);

#endif
