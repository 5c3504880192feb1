/* Volumes: other folders, usually on other storage, over which a container's buckets are spread. A bucket is then a
 * symbolic link from the container to VOLUME/deltafs.UUID/PART/bb: reading and writing follow it. */
#ifndef DELTAFS_IO_VOLUME_H
#define DELTAFS_IO_VOLUME_H

#include "io/io.h"

#define VOLUMES_MAX 256u

struct volumes {
    char *text; /* of all names */
    const char *folder[VOLUMES_MAX];
    uint32_t count;
};

/* The option's text: absolute paths, separated by ':'; "" is none. DELTAFS_ERR_OPTION. */
int volumes_parse(struct volumes *v, const char *text, struct error *e);
void volumes_fini(struct volumes *v);

/* Make the part's folder on each volume: DELTAFS_ERR_EXISTS if one has it. `part`: a name, or "" for a container that
 * has but one. */
int volumes_make(const struct volumes *v, struct io *io, const char *uuid_text, const char *part, struct error *e);
/* Make a bucket's folder on its volume, and at `path` the link to it; without volumes the folder is at `path`. */
int volumes_make_bucket(const struct volumes *v, struct io *io, const char *uuid_text, const char *part,
                        uint32_t bucket, const char *path, struct error *e);
/* Make all that was made on the volumes durable. */
int volumes_sync(const struct volumes *v, struct io *io, const char *uuid_text, const char *part, struct error *e);
/* Remove what volumes_make has made, as far as it is empty. */
void volumes_unmake(const struct volumes *v, struct io *io, const char *uuid_text, const char *part);

/* What is at a bucket's path: *is_link, and then whether it leads where volumes_make_bucket's do; if not,
 * DELTAFS_ERR_NOT_DELTAFS. */
int volume_check_bucket(struct io *io, const char *uuid_text, const char *part, uint32_t bucket, const char *path,
                        int *is_link, struct error *e);
/* Remove an empty bucket: the folder, or the link, that folder on its volume, and what is empty above it there. */
int volume_remove_bucket(struct io *io, const char *uuid_text, const char *part, uint32_t bucket, const char *path,
                         struct error *e);

#endif
