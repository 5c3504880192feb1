/* Several snapshots as one: merges, namespaces on top of snapshots, views. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "namespace/head.h"
#include "namespace/pin.h"
#include "namespace/snapshot.h"

/* Snapshots that were read, and the layers of them all, with the merge on top if they are several. */
struct inputs {
    size_t count;
    const char *const *name;
    uint8_t (*uuid)[16];
    struct layers layers;
};

static void inputs_fini(struct inputs *in)
{
    free(in->uuid);
    layers_fini(&in->layers);
}

static int append(struct snapshot_call *c, struct inputs *in, size_t i, size_t *top)
{
    struct snapshot s;
    int status = registry_read(&c->io, in->name[i], &s, &c->error);

    if (status != DELTAFS_OK)
        return status;
    memcpy(in->uuid[i], s.uuid, sizeof s.uuid);
    status = layers_append(&in->layers, &s.layers, top, &c->error);
    snapshot_fini(&s);
    return status;
}

/* `top`: of each input. */
static int add_merge(struct snapshot_call *c, struct inputs *in, const size_t *top, int policy)
{
    int status = layers_add_merge(&in->layers, policy, &c->error);

    for (size_t i = 0; i < in->count && status == DELTAFS_OK; i++)
        status = layers_add_input(&in->layers, top[i], &c->error);
    return status;
}

static int check_conflicts(struct snapshot_call *c, const struct inputs *in)
{
    deltafs_snapshot_paths *paths;
    const char *path = NULL;
    int status = error_of_call(deltafs_snapshot_conflicts_open(in->count, in->name, &paths), &c->error);

    if (status != DELTAFS_OK)
        return status;
    status = error_of_call(deltafs_snapshot_paths_next(paths, &path), &c->error);
    if (status == DELTAFS_OK && path)
        status = error_set(&c->error, DELTAFS_ERR_CONFLICT,
                           "%s: the snapshots have changed it differently; 'deltafs snapshot conflicts' lists all such "
                           "paths, and a policy chooses",
                           path);
    deltafs_snapshot_paths_close(paths);
    return status;
}

static int inputs_read(struct snapshot_call *c, struct inputs *in, int policy)
{
    size_t *top = calloc(in->count, sizeof *top);
    int status = DELTAFS_OK;

    in->uuid = calloc(in->count, sizeof *in->uuid);
    if (!top || !in->uuid)
        status = error_no_memory(&c->error, in->count * sizeof *in->uuid, "snapshots");
    for (size_t i = 0; i < in->count && status == DELTAFS_OK; i++)
        status = append(c, in, i, &top[i]);
    if (status == DELTAFS_OK && in->count > 1)
        status = add_merge(c, in, top, policy);
    free(top);
    if (status == DELTAFS_OK)
        status = layers_check_copies(&in->layers, &c->error);
    return status == DELTAFS_OK && policy == DELTAFS_SNAPSHOT_ERROR ? check_conflicts(c, in) : status;
}

/* As long as the inputs are in their registries, their pins are there. */
static int inputs_confirm(struct snapshot_call *c, const struct inputs *in)
{
    int status = DELTAFS_OK;

    for (size_t i = 0; i < in->count && status == DELTAFS_OK; i++)
        status = registry_confirm(&c->io, in->name[i], in->uuid[i], &c->error);
    return status;
}

/* Pin what the inputs have. */
static int inputs_pin(struct snapshot_call *c, const struct inputs *in, const struct pin *pin)
{
    int status = pin_layers(&c->io, pin, &in->layers, &c->error);

    if (status == DELTAFS_OK)
        status = inputs_confirm(c, in);
    if (status != DELTAFS_OK)
        pin_remove_layers(&c->io, pin->uuid, &in->layers, error_ignored());
    return status;
}

/* ---- Merging ---- */

static int merge(struct snapshot_call *c, struct inputs *in, int policy, const char *name)
{
    struct snapshot s = {.time = snapshot_time()};
    struct pin pin = {.holder = name, .sync = c->sync};
    int status = registry_check(name, &c->error);

    if (status == DELTAFS_OK)
        status = inputs_read(c, in, policy);
    if (status == DELTAFS_OK)
        status = uuid_create(s.uuid, &c->error);
    memcpy(pin.uuid, s.uuid, sizeof pin.uuid);
    if (status == DELTAFS_OK)
        status = inputs_pin(c, in, &pin);
    if (status != DELTAFS_OK)
        return status;
    s.layers = in->layers;
    status = registry_publish(&c->io, name, &s, c->sync, &c->error);
    if (status != DELTAFS_OK && !registry_may_have(&c->io, name, &s))
        pin_remove_layers(&c->io, s.uuid, &in->layers, error_ignored());
    return status;
}

static int check_policy(const char *call, int policy)
{
    if (policy >= DELTAFS_SNAPSHOT_NEWEST && policy <= DELTAFS_SNAPSHOT_ERROR)
        return DELTAFS_OK;
    return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID, "%s: policy %d is none", call, policy);
}

int deltafs_snapshot_merge(size_t count, const char *const *inputs, int policy, const char *snapshot)
{
    static const char call[] = "deltafs_snapshot_merge";
    struct inputs in = {.count = count, .name = inputs};
    struct snapshot_call c;

    if (count == 0 || !inputs || !snapshot)
        return snapshot_no_argument(call, "inputs and snapshot");
    int status = check_policy(call, policy);
    if (status != DELTAFS_OK)
        return status;
    status = snapshot_call_begin(&c);
    if (status == DELTAFS_OK)
        status = merge(&c, &in, policy, snapshot);
    inputs_fini(&in);
    return snapshot_call_end(&c, status);
}

/* ---- Views ---- */

/* Another process may have created the namespace: then it must be on the same snapshots, and has its own pins. */
static int check_same(struct snapshot_call *c, const struct inputs *in, const struct pin *pin, deltafs_namespace *ns)
{
    if (memcmp(ns->uuid, pin->uuid, sizeof ns->uuid) == 0)
        return DELTAFS_OK;
    pin_remove_layers(&c->io, pin->uuid, &in->layers, error_ignored());
    if (layers_are_same(&ns->layers, &in->layers))
        return DELTAFS_OK;
    return error_set(&c->error, DELTAFS_ERR_EXISTS, "%s: exists already, and not on these snapshots", ns->path);
}

/* After a failure: whether the namespace was created nevertheless, or may have been. */
static int may_exist(struct snapshot_call *c, const char *path, const struct pin *pin)
{
    struct head head;
    int status = head_read(&c->io, path, &head, error_ignored());
    int may = status == DELTAFS_OK ? memcmp(head.uuid, pin->uuid, sizeof head.uuid) == 0
                                   : status != DELTAFS_ERR_NOT_FOUND && status != DELTAFS_ERR_NOT_DELTAFS;

    layers_fini(&head.below);
    return may;
}

static int create_on(struct snapshot_call *c, const struct inputs *in, const char *path, int flags,
                     const deltafs_options *options, deltafs_namespace **out)
{
    struct ns_new create = {.below = in->layers};
    deltafs_namespace *ns = NULL;
    char *absolute = snapshot_path(path);
    struct pin pin = {.holder = absolute, .sync = c->sync};
    int status = absolute ? uuid_create(create.uuid, &c->error) : error_no_memory(&c->error, strlen(path), "a path");

    memcpy(pin.uuid, create.uuid, sizeof pin.uuid);
    if (status == DELTAFS_OK)
        status = inputs_pin(c, in, &pin);
    if (status == DELTAFS_OK) {
        status = error_of_call(ns_open(path, flags, options, &create, &ns), &c->error);
        if (status != DELTAFS_OK && !may_exist(c, absolute, &pin))
            pin_remove_layers(&c->io, pin.uuid, &in->layers, error_ignored());
    }
    if (status == DELTAFS_OK) {
        status = check_same(c, in, &pin, ns);
        if (status != DELTAFS_OK)
            deltafs_namespace_close(ns);
    }
    free(absolute);
    if (status == DELTAFS_OK)
        *out = ns;
    return status;
}

int snapshot_open_view(struct snapshot_call *c, size_t count, const char *const *snapshots, int policy,
                       int finds_conflicts, const deltafs_options *options, deltafs_namespace **out)
{
    struct inputs in = {.count = count, .name = snapshots};
    deltafs_namespace *ns = NULL;
    int status = inputs_read(c, &in, policy);

    if (status == DELTAFS_OK) {
        const struct ns_new view = {.below = in.layers, .is_view = 1, .finds_conflicts = finds_conflicts};
        status = error_of_call(ns_open(snapshots[0], O_RDONLY, options, &view, &ns), &c->error);
    }
    if (status == DELTAFS_OK)
        status = inputs_confirm(c, &in);
    if (status == DELTAFS_OK)
        *out = ns;
    else
        deltafs_namespace_close(ns);
    inputs_fini(&in);
    return status;
}

int deltafs_namespace_open_view(const char *path, int flags, size_t count, const char *const *snapshots, int policy,
                                const deltafs_options *options, deltafs_namespace **out)
{
    static const char call[] = "deltafs_namespace_open_view";
    int wanted = path ? O_RDWR | O_CREAT : O_RDONLY;
    struct inputs in = {.count = count, .name = snapshots};
    struct snapshot_call c;

    if (count == 0 || !snapshots || !out || (path && !*path) || (flags & ~O_EXCL) != wanted)
        return snapshot_no_argument(call,
                                    "snapshots and out, and as flags O_RDWR | O_CREAT with a path, O_RDONLY without,");
    int status = check_policy(call, policy);
    if (status != DELTAFS_OK)
        return status;
    status = snapshot_call_begin(&c);
    if (status == DELTAFS_OK && !path) {
        status = snapshot_open_view(&c, count, snapshots, policy, 0, options, out);
    } else if (status == DELTAFS_OK) {
        status = inputs_read(&c, &in, policy);
        if (status == DELTAFS_OK)
            status = create_on(&c, &in, path, flags, options, out);
    }
    inputs_fini(&in);
    return snapshot_call_end(&c, status);
}
