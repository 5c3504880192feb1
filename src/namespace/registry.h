/* Registries: folders of snapshots.
 *
 *     REGISTRY          Deltafs version=1 uuid=UUID
 *                       Registry
 *     NAME/SNAPSHOT     Deltafs version=1 uuid=UUID
 *                       Snapshot time=T lines=N
 *                       and its layers (layers.h)
 *
 * The folder of a snapshot is created with its text in it, and given its name by one rename(2). Of several jobs that
 * publish the same name one succeeds; those that publish others do not meet, and nothing has to be locked. Withdrawing
 * gives the folder another name, removes the pins, and then the folder. If a crash interrupts that, the next withdrawal
 * finishes it.
 *
 * A snapshot is named REG@NAME. REG is one folder or several, joined by ':', which are searched in this order; without
 * any, they are those of the environment variable DELTAFS_REGISTRY. */
#ifndef DELTAFS_NAMESPACE_REGISTRY_H
#define DELTAFS_NAMESPACE_REGISTRY_H

#include "base/private.h"
#include "namespace/layers.h"

struct snapshot {
    uint8_t uuid[16];
    uint64_t time; /* nanoseconds since 1970: when it was published */
    char *folder;  /* in its registry */
    struct layers layers;
};

void snapshot_fini(struct snapshot *s);

/* Whether the text names a snapshot, and not a namespace: it has a '@', and nothing is at that path. */
int registry_is_name(const char *text);
/* Check that the text is REG@NAME, with a NAME that is possible. */
int registry_check(const char *text, struct error *e);
/* Find a snapshot and read it. DELTAFS_ERR_NOT_FOUND. */
int registry_read(struct io *io, const char *text, struct snapshot *out, struct error *e);
/* A name of the same namespace or snapshot for processes with other working folders and environments; to be freed. A
 * snapshot that cannot be read is taken for a namespace. NULL: no memory. */
DELTAFS_PRIVATE char *deltafs_private_registry_whole(const char *text);
/* DELTAFS_OK if the snapshot that was read with this UUID still has this name. */
int registry_confirm(struct io *io, const char *text, const uint8_t uuid[16], struct error *e);
/* Give a snapshot its name, in the first registry of the text, which is created if it does not exist. */
int registry_publish(struct io *io, const char *text, const struct snapshot *s, int sync, struct error *e);
/* After that has failed: whether the snapshot has its name nevertheless, or may have it, so that its pins must stay. */
int registry_may_have(struct io *io, const char *text, const struct snapshot *s);
/* Remove a snapshot that was read, and its pins. */
int registry_withdraw(struct io *io, const struct snapshot *s, int sync, struct error *e);

/* The registries of a list, as REG in a name; "" or NULL: those of the environment. */
struct registry_path {
    char *text;
    size_t count;
    char **folder;
};
int registry_path_init(struct registry_path *p, const char *text, struct error *e);
void registry_path_fini(struct registry_path *p);
/* Pass the name of each snapshot of a registry to `fn`. DELTAFS_ERR_NOT_FOUND, _NOT_DELTAFS: it is none. */
int registry_each(struct io *io, const char *folder, int (*fn)(void *arg, const char *name, struct error *e), void *arg,
                  struct error *e);

#endif
