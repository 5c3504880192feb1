/* Patterns for HDF5's datasets (see h5rows.h), and paths as the names on the way from the root. */
#ifndef DELTAFS_H5MATCH_H
#define DELTAFS_H5MATCH_H

#include <stddef.h>
#include <stdint.h>

#define H5MATCH_DEPTH 16 /* names of a path or pattern, at most */

struct h5pattern {
    char *text; /* cut into its parts */
    size_t parts;
    const char *part[H5MATCH_DEPTH];
    int is_rooted;
};

#define H5MATCH_BELOW 8 /* names below those that a pattern matches, at most */

struct h5path {
    size_t depth;
    const char *name[H5MATCH_DEPTH + H5MATCH_BELOW];
};

/* 0, or -1 if it has no parts, or too many, or there is no memory. */
int h5match_parse(const char *text, struct h5pattern *out);
void h5match_fini(struct h5pattern *p);

/* Whether a group can have matches in it. */
int h5match_may_enter(const struct h5pattern *p, const struct h5path *group);

enum h5match { H5MATCH_NO, H5MATCH_YES, H5MATCH_MEMBERLESS };

/* Whether the pattern names this dataset; of a compound one a member, which is *member then. MEMBERLESS: of a compound
 * one, but no member. */
enum h5match h5match_dataset(const struct h5pattern *p, const struct h5path *dataset, int is_compound,
                             const char **member);

/* The number at the end of the first name that the pattern does not spell out, or with `is_spelled` of the first that
 * it does: 1, or 0 and *label as it was. A dataset's own name counts if it is compound. */
int h5match_label(const struct h5pattern *p, const struct h5path *dataset, int is_compound, int is_spelled,
                  uint64_t *label);

#endif
