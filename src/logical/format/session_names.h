/* The names in a logical file's container. */
#ifndef DELTAFS_LOGICAL_SESSION_NAMES_H
#define DELTAFS_LOGICAL_SESSION_NAMES_H

#include <stdint.h>

int is_name_aside(const char *name);                     /* of a manifest that is being made */
int is_name_kept(const char *name);                      /* that a repair leaves in the container's folder */
int is_name_session(const char *name, uint32_t *number); /* of a session's folder */
int is_name_bucket(const char *name, uint32_t *bucket);
int is_name_log(const char *name, uint32_t *writer, int *kind);
int is_name_of_session(const char *name); /* of a file in a session's folder that is no log */
/* In the folder of its keys, and in the buckets there; also with what repair puts behind a name, ".damaged". */
int is_name_of_keys(const char *name);
int is_name_log_of_keys(const char *name);

#endif
