/* What the tests of snapshots share. Each call fails the test if what it does fails. */
#ifndef DELTAFS_UNIT_SNAPSHOT_H
#define DELTAFS_UNIT_SNAPSHOT_H

#include "unit_namespace.h"

deltafs_namespace *open_view(const char *path, int flags, const char *a, const char *b, int policy);
void publish(const char *path, const char *name);
/* A namespace whose file "/file" is in a snapshot of it. */
void new_published(const char *name, const char *text, const char *snapshot);
void withdraw(const char *name);
unsigned count_pins(const char *path);

#endif
