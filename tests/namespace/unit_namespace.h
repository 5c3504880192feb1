/* What the tests of namespaces share. Each call but try_open fails the test if the namespace's call fails. */
#ifndef DELTAFS_UNIT_NAMESPACE_H
#define DELTAFS_UNIT_NAMESPACE_H

#include <deltafs/deltafs_namespace.h>
#include <stdnoreturn.h>
#include "unit_help.h"

/* unit_setup, for tests that need nothing to be durable: they are quicker. */
int setup_unsynced(void **state);

/* Open with the option memory=`memory`. A status. */
int try_open(const char *path, int flags, const char *memory, deltafs_namespace **out);
deltafs_namespace *open_ns(const char *path, int flags);
/* A new namespace of this name in the test's folder. */
deltafs_namespace *new_ns(const char *name);
/* One as earlier versions made it: each commit is an epoch. */
deltafs_namespace *new_ns_without_journals(const char *name);
void close_ns(deltafs_namespace *ns);
/* REGISTRY@NAME, in the registry of the test's folder; valid until the teardown. */
const char *named(const char *name);

/* Of a link, its own. */
struct deltafs_namespace_stat stat_of(deltafs_namespace *ns, const char *path);
int has(deltafs_namespace *ns, const char *path);
/* A file that has this text and nothing else. */
void put_file(deltafs_namespace *ns, const char *path, const char *text);
void check_file(deltafs_namespace *ns, const char *path, const char *text);
/* The names in a folder, sorted, with blanks between them; valid until the next call. */
const char *list_names(deltafs_namespace *ns, const char *path);
/* How many names an ordinary folder has that begin so. */
unsigned count_names(const char *path, const char *begin);
/* How many tables a namespace has; the name of one of them. */
unsigned count_tables(const char *path, char name[32]);
/* Make epochs of what closed writers have left in journals. */
void make_epochs(const char *path);
/* Die at once, with all that is open; and whether a process has died so, by what waitpid says. */
noreturn void die(void);
int has_died(int ended);
/* Remove the leases of readers, as if they could not have written them. */
void remove_leases(const char *path);

#endif
