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

/* What has buckets. */
struct volume_part {
    struct io *io;
    const char *container; /* its path */
    const char *uuid_text;
    const char *part; /* the folder in it, and on each volume, that has the buckets; "": the container itself */
};

/* Those of all volumes that get one of the part's buckets, in the order of these. A hash decides which is the first, so
 * that what has one bucket only is spread, too. */
void volumes_choose(struct volumes *v, const struct volume_part *p, uint32_t buckets);

/* Make the part's folder on each volume: DELTAFS_ERR_EXISTS if one has it. */
int volumes_make(const struct volumes *v, const struct volume_part *p, struct error *e);
/* Make a bucket's folder on its volume, record there whose it is, and make the link to it; without volumes the folder
 * is in the container. */
int volumes_make_bucket(const struct volumes *v, const struct volume_part *p, uint32_t bucket, struct error *e);
/* Make all that was made on the volumes durable. */
int volumes_sync(const struct volumes *v, const struct volume_part *p, struct error *e);
/* Remove what volumes_make has made, as far as it is empty. */
void volumes_unmake(const struct volumes *v, const struct volume_part *p);

/* Before something in a bucket is changed or removed: if it is a link, that it leads where volumes_make_bucket's do,
 * and that what is there was made for this container. DELTAFS_ERR_NOT_DELTAFS. */
int volume_check_bucket(const struct volume_part *p, uint32_t bucket, struct error *e);
/* The same of all buckets, the first `count` numbers. */
int volume_check_buckets(const struct volume_part *p, uint32_t count, struct error *e);
/* Remove an empty bucket: the folder, or the link, that folder on its volume, and what is empty above it there. */
int volume_remove_bucket(const struct volume_part *p, uint32_t bucket, struct error *e);

#endif
