#include <string.h>
#include "mpi/job/job_call.h"

/* The flags, and as texts the path and the value of each option. */
static int call_encode(const char *path, int flags, const deltafs_options *o, struct bytes *out, struct error *e)
{
    const struct deltafs_option_info *row;
    int status = bytes_append(out, &flags, sizeof flags, e);

    if (status == DELTAFS_OK)
        status = bytes_append(out, path, strlen(path) + 1, e);
    for (size_t i = 0; (row = deltafs_option_at(i)) && status == DELTAFS_OK; i++) {
        const char *value;
        deltafs_options_get(o, row->name, &value);
        status = bytes_append(out, value, strlen(value) + 1, e);
    }
    return status;
}

int job_call_share(struct rank_group *group, const char **path, int *flags, deltafs_options *o, struct bytes *call,
                   struct error *e)
{
    const struct deltafs_option_info *row;

    if (group->rank == 0 && e->status == DELTAFS_OK)
        e->status = call_encode(*path, *flags, o, call, e);
    int status = mpi_broadcast_bytes(group, call, e);
    if (status != DELTAFS_OK || e->status != DELTAFS_OK)
        return status;
    const char *text = (const char *)call->buffer.bytes + sizeof *flags;
    memcpy(flags, call->buffer.bytes, sizeof *flags);
    *path = group->rank == 0 ? *path : text;
    for (size_t i = 0; (row = deltafs_option_at(i)) && e->status == DELTAFS_OK; i++) {
        text += strlen(text) + 1;
        e->status = error_of_call(deltafs_options_set(o, row->name, text), e);
    }
    return status;
}
