#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "io/io_format.h"
#include "namespace/entry_format.h"
#include "namespace/view.h"

#define TRIES 3 /* as a collection may remove the file before it has its name */

/* ---- Holding ---- */

static void take(struct lease *l, struct io *io, const char *folder)
{
    char path[PATH_ROOM], aside[PATH_ROOM], text[UUID_TEXT_SIZE];
    uint8_t uuid[FORMAT_UUID_SIZE];
    int status = DELTAFS_ERR_NOT_FOUND;

    for (int i = 0; i < TRIES && status == DELTAFS_ERR_NOT_FOUND; i++) {
        status = uuid_create(uuid, error_ignored());
        if (status != DELTAFS_OK)
            return;
        uuid_to_text(uuid, text);
        status = lease_create(l, io, io_path_in(aside, folder, "." VIEW_NAME "%s", text),
                              io_path_in(path, folder, VIEW_NAME "%s", text), error_ignored());
    }
    if (status != DELTAFS_OK)
        *l = (struct lease){.file.path = NULL};
}

int views_begin(struct views *v, struct io *io, const char *path, const struct layers *layers, struct error *e)
{
    size_t most = path ? 1 : layers->count;

    *v = (struct views){.lease = calloc(most, sizeof *v->lease)};
    if (!v->lease)
        return error_no_memory(e, most * sizeof *v->lease, "leases");
    for (size_t i = 0; i < most; i++)
        if (path || layers_has_path(layers, i))
            take(&v->lease[v->count++], io, path ? path : layers->layer[i].path);
    return DELTAFS_OK;
}

void views_end(struct views *v)
{
    for (size_t i = 0; i < v->count; i++)
        lease_drop(&v->lease[i], error_ignored());
    free(v->lease);
    *v = (struct views){.lease = NULL};
}

int views_are_sure(const struct views *v)
{
    for (size_t i = 0; i < v->count; i++)
        if (!v->lease[i].is_sure)
            return 0;
    return 1;
}

/* ---- Respecting ---- */

struct checking {
    struct io *io;
    const char *path;
    uint64_t seconds;
};

static int refuse(const char *path, const struct lease_holder *h, struct error *e)
{
    if (h->host[0] == '\0')
        return error_set(e, DELTAFS_ERR_BUSY,
                         "%s: a process may have the namespace open, but who it is cannot be read; collect when it has "
                         "ended, or remove this file",
                         path);
    return error_set(e, DELTAFS_ERR_BUSY,
                     "%s: process %" PRIu64 " on host %s (job %.60s) has the namespace open, or was killed on a host "
                     "whose locks are not visible here; collect when it has ended, or remove this file",
                     path, h->pid, h->host, h->job);
}

static int check_view(void *arg, const char *name, struct error *e)
{
    const struct checking *c = arg;
    const char *shown = name[0] == '.' ? name + 1 : name;
    struct lease_holder h;
    char path[PATH_ROOM];

    if (strncmp(shown, VIEW_NAME, strlen(VIEW_NAME)) != 0)
        return DELTAFS_OK;
    if (lease_find_holder(c->io, io_path_in(path, c->path, "%s", name), c->seconds, &h))
        return refuse(path, &h, e);
    int status = io_unlink(c->io, path, e);
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

int views_check(struct io *io, const char *path, uint64_t seconds, struct error *e)
{
    struct checking c = {io, path, seconds};

    return io_list(io, path, check_view, &c, e);
}

int views_check_collection(struct io *io, const char *path, uint64_t seconds, struct error *e)
{
    if (!lease_may_be_held(io, path, seconds))
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_BUSY,
                     "%s/" LEASE_NAME ": what the namespace does not need is being collected ('deltafs snapshot gc'); "
                     "try again when that is done; if no such command runs any more, remove this file",
                     path);
}
