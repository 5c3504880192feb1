/* Containers of logical files with sessions, as tests make them below unit_path(). */
#ifndef DELTAFS_UNIT_CONTAINER_H
#define DELTAFS_UNIT_CONTAINER_H

#include "logical/format/session.h"
#include "unit_help.h"

int unit_container_open(struct container *c, const char *name, int flags, struct error *e);
/* A new one. */
void unit_container_make(const char *name, struct container *c);
/* A session with the logs of every third writer. */
void unit_session_make(const struct container *c, uint32_t writers, const char *volumes, struct session *s);
/* How many sessions there are, and the first. */
int unit_session_list(const struct container *c, struct session *first, size_t *n, struct error *e);
/* How many files and folders there are at a path. */
unsigned unit_count_entries(const char *path);

#endif
