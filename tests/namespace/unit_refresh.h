/* What the tests of refreshing a handle share. Each call fails the test if the namespace's call fails. */
#ifndef DELTAFS_UNIT_REFRESH_H
#define DELTAFS_UNIT_REFRESH_H

#include "unit_namespace.h"

void refresh(deltafs_namespace *ns);
void commit(deltafs_namespace *ns);
const char *path_of(const deltafs_namespace *ns);
deltafs_namespace *create_one(const char *name, int has_journals);
deltafs_namespace_file *open_file(deltafs_namespace *ns, const char *path, int flags);
void close_file(deltafs_namespace_file *f);
/* Many names in a commit, which is an epoch by itself. */
void make_many(deltafs_namespace *ns, const char *folder, unsigned n);
/* A folder has for the handle what it has for one that is opened now. */
void check_as_opened(deltafs_namespace *ns, const char *folder);
/* `a` makes each kind of change, of names that `b` has looked up, and of others; `b` sees them when it is refreshed. */
void see_changes(deltafs_namespace *a, deltafs_namespace *b);

#endif
