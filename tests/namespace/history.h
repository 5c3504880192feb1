/* Random histories of a namespace: each call is made on a namespace and on a tree, which must say the same. */
#ifndef DELTAFS_TEST_HISTORY_H
#define DELTAFS_TEST_HISTORY_H

#include "tree.h"
#include "unit_help.h"

/* Make `n` calls with names below the folder `below` ("": the root). With `ns` NULL only the tree gets them. With
 * `commits` some of the calls are commits. */
void history_run(struct rng *r, unsigned n, const char *below, int commits, deltafs_namespace *ns, struct tree *root);

#endif
