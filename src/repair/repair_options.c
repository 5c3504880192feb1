/* deltafs_repair: its options and arguments. */
#include <stdio.h>
#include "base/sized.h"
#include "base/options.h"
#include "repair/repair_parts.h"

/* Only the options lease and memory apply: what else the environment has is for directories that are created. */
static int repair_set_options(deltafs_options *o, const struct deltafs_repair_options *options)
{
    char lease[32];
    int status = DELTAFS_OK;

    for (int i = 0; i < OPTION_COUNT && status == DELTAFS_OK; i++)
        if (i != OPTION_LEASE && i != OPTION_MEMORY)
            status = deltafs_private_options_reset(o, (enum option_id)i, deltafs_private_thread_error());
    snprintf(lease, sizeof lease, "%llu", (unsigned long long)options->lease);
    if (status == DELTAFS_OK && options->has_lease)
        status = deltafs_options_set(o, "lease", lease);
    return status;
}

int deltafs_repair(const char *path, const struct deltafs_repair_options *options, deltafs_repair_fn fn, void *arg)
{
    struct deltafs_repair_options given = {.struct_size = sizeof given};
    struct error *e = deltafs_private_thread_error();
    deltafs_options *o = NULL;

    if (!path || !*path)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_repair: path must be given");
    if (options && sized_take(&given, options, sizeof given, "deltafs_repair", e) != DELTAFS_OK)
        return e->status;
    if (given.has_label && given.has_drop_from)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_repair: has_label and has_drop_from exclude each other");
    int status = deltafs_options_create(&o);
    if (status == DELTAFS_OK)
        status = repair_set_options(o, &given);
    if (status == DELTAFS_OK)
        status = repair_directory(path, &given, o, fn, arg, e);
    deltafs_options_destroy(o);
    return status;
}
