/* What the calls for snapshots have in common. Each takes no handle: it makes what it needs of the environment. */
#ifndef DELTAFS_NAMESPACE_SNAPSHOT_H
#define DELTAFS_NAMESPACE_SNAPSHOT_H

#include "namespace/namespace.h"
#include "namespace/registry.h"

struct snapshot_call {
    struct io io;
    deltafs_options *options;
    int sync;
    struct error error;
};

int snapshot_call_begin(struct snapshot_call *c);
/* Leaves the message with the thread; returns the status. */
int snapshot_call_end(struct snapshot_call *c, int status);
/* A call for the namespace at `path`: `fn` does it, with the path from the root, and fills the `size` bytes of
 * `result`, which `out` gets (NULL: nobody). */
typedef int snapshot_call_fn(struct snapshot_call *c, const char *path, void *result);
int snapshot_call_on(const char *call, const char *path, snapshot_call_fn *fn, void *result, size_t size, void *out);
int snapshot_no_argument(const char *call, const char *argument);
/* Open several snapshots as one, for reading. */
int snapshot_open_view(struct snapshot_call *c, size_t count, const char *const *snapshots, int policy,
                       int finds_conflicts, const deltafs_options *options, deltafs_namespace **out);
/* The path of a namespace from the root, without slashes at its end (to be freed; NULL without memory). */
char *snapshot_path(const char *path);
/* Nanoseconds since 1970. */
uint64_t snapshot_time(void);

#endif
