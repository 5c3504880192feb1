/* Snapshots: what a namespace has at a commit of each table, with the layers below it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "base/path.h"
#include "base/sized.h"
#include "io/io_format.h"
#include "io/lease.h"
#include "namespace/head.h"
#include "namespace/pin.h"
#include "namespace/snapshot.h"
#include "namespace/view.h"

/* ---- Calls ---- */

int snapshot_call_begin(struct snapshot_call *c)
{
    *c = (struct snapshot_call){.io = io_default()};
    int status = error_of_call(deltafs_options_create(&c->options), &c->error);
    c->sync = status == DELTAFS_OK && deltafs_private_options_number(c->options, OPTION_SYNC) != SYNC_NONE;
    return status;
}

int snapshot_call_end(struct snapshot_call *c, int status)
{
    deltafs_options_destroy(c->options);
    return error_of_thread(status, &c->error);
}

int snapshot_no_argument(const char *call, const char *argument)
{
    return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID, "%s: %s must be given", call, argument);
}

char *snapshot_path(const char *path)
{
    char *absolute = path_absolute(path);

    for (size_t n = absolute ? strlen(absolute) : 0; n > 1 && absolute[n - 1] == '/'; n--)
        absolute[n - 1] = '\0';
    return absolute;
}

uint64_t snapshot_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int snapshot_call_on(const char *call, const char *path, snapshot_call_fn *fn, void *result, size_t size, void *out)
{
    struct snapshot_call c;

    if (!path || !*path)
        return snapshot_no_argument(call, "path");
    char *absolute = snapshot_path(path);
    int status = snapshot_call_begin(&c);
    if (status == DELTAFS_OK)
        status = absolute ? fn(&c, absolute, result) : error_no_memory(&c.error, strlen(path), "a path");
    if (status == DELTAFS_OK && out)
        status = sized_fill(out, result, size, call, &c.error);
    free(absolute);
    return snapshot_call_end(&c, status);
}

/* ---- Publishing ---- */

/* Add a table as it is now. One that has no entry may have the bytes of a file whose entry is in another table. */
static int add_table(struct snapshot_call *c, const struct table *table, struct layers *layers)
{
    char path[PATH_ROOM];
    struct stat st;
    uint64_t from = table->epochs.first > 0 ? table->epochs.first - 1 : 0;
    struct layer_table t = {.number = table->number, .limit = from, .from = from};

    if (table_last_label(table) > from)
        t.limit = table_last_label(table);
    else if (from == 0 && (stat(table_path(path, table->path, table->number, "/" MANIFEST_NAME), &st) != 0 ||
                           stat(table_path(path, table->path, table->number, TABLE_DATA), &st) != 0))
        return DELTAFS_OK; /* its creation was interrupted, or it has nothing */
    return layers_add_table(layers, &t, &c->error);
}

/* Add the namespace as it is now on top of what is below it. */
static int add_namespace(struct snapshot_call *c, const char *path, struct head *head, struct layers *layers)
{
    static const struct layers none = {0};
    struct tables t;
    size_t below = 0;
    int status = head->below.count > 0 ? layers_append(layers, &head->below, &below, &c->error) : DELTAFS_OK;

    if (status == DELTAFS_OK)
        status = layers_add_namespace(layers, head->uuid, path, &c->error);
    if (status == DELTAFS_OK && head->below.count > 0)
        status = layers_add_input(layers, below, &c->error);
    if (status != DELTAFS_OK)
        return status;
    status = tables_init(&t, &c->io, path, 0, &none, c->options, &c->error);
    layers->layer[layers->count - 1].is_complete = t.is_complete;
    for (size_t i = 0; i < t.count && status == DELTAFS_OK; i++)
        status = add_table(c, &t.table[i], layers);
    tables_fini(&t);
    return status;
}

/* With a pin in the namespace that keeps all: find out what it has, and keep that. */
static int publish_pinned(struct snapshot_call *c, const char *path, struct head *head, const struct pin *pin,
                          struct snapshot *s)
{
    uint64_t seconds = deltafs_private_options_number(c->options, OPTION_LEASE);
    int status = views_check_collection(&c->io, path, seconds, &c->error);

    if (status == DELTAFS_OK)
        status = add_namespace(c, path, head, &s->layers);
    if (status == DELTAFS_OK)
        status = pin_set(&c->io, &s->layers.layer[s->layers.count - 1], pin, &s->layers, &c->error);
    return status == DELTAFS_OK ? registry_publish(&c->io, pin->holder, s, c->sync, &c->error) : status;
}

static int publish(struct snapshot_call *c, const char *path, const char *name)
{
    struct snapshot s = {.time = snapshot_time()};
    struct head head = {0};
    struct pin pin = {.holder = name, .sync = c->sync};
    struct views views = {.lease = NULL};
    int status = registry_check(name, &c->error);

    if (status == DELTAFS_OK)
        status = head_read(&c->io, path, &head, &c->error);
    if (status == DELTAFS_OK)
        status = uuid_create(s.uuid, &c->error);
    if (status == DELTAFS_OK)
        status = views_begin(&views, &c->io, path, NULL, &c->error);
    memcpy(pin.uuid, s.uuid, sizeof pin.uuid);
    pin.has_view = views_are_sure(&views);
    if (status == DELTAFS_OK)
        status = pin_begin(&c->io, path, &pin, &c->error);
    if (status == DELTAFS_OK) {
        status = publish_pinned(c, path, &head, &pin, &s);
        if (status != DELTAFS_OK && !registry_may_have(&c->io, name, &s))
            pin_remove(&c->io, path, s.uuid, error_ignored());
    }
    views_end(&views);
    layers_fini(&head.below);
    snapshot_fini(&s);
    return status;
}

int deltafs_snapshot_publish(const char *path, const char *snapshot)
{
    struct snapshot_call c;

    if (!path || !*path || !snapshot)
        return snapshot_no_argument("deltafs_snapshot_publish", "path and snapshot");
    char *absolute = snapshot_path(path);
    int status = snapshot_call_begin(&c);
    if (status == DELTAFS_OK && !absolute)
        status = error_no_memory(&c.error, strlen(path), "a path");
    if (status == DELTAFS_OK)
        status = publish(&c, absolute, snapshot);
    free(absolute);
    return snapshot_call_end(&c, status);
}

int deltafs_snapshot_withdraw(const char *snapshot)
{
    struct snapshot s;
    struct snapshot_call c;

    if (!snapshot)
        return snapshot_no_argument("deltafs_snapshot_withdraw", "snapshot");
    int status = snapshot_call_begin(&c);
    if (status == DELTAFS_OK)
        status = registry_read(&c.io, snapshot, &s, &c.error);
    if (status == DELTAFS_OK) {
        status = registry_withdraw(&c.io, &s, c.sync, &c.error);
        snapshot_fini(&s);
    }
    return snapshot_call_end(&c, status);
}

/* ---- Looking ---- */

struct deltafs_snapshot {
    struct snapshot snapshot;
};

int deltafs_snapshot_open(const char *snapshot, deltafs_snapshot **out)
{
    struct snapshot_call c;

    if (!snapshot || !out)
        return snapshot_no_argument("deltafs_snapshot_open", "snapshot and out");
    deltafs_snapshot *h = calloc(1, sizeof *h);
    int status = snapshot_call_begin(&c);
    if (status == DELTAFS_OK && !h)
        status = error_no_memory(&c.error, sizeof *h, "a snapshot");
    if (status == DELTAFS_OK)
        status = registry_read(&c.io, snapshot, &h->snapshot, &c.error);
    if (status == DELTAFS_OK)
        *out = h;
    else
        free(h);
    return snapshot_call_end(&c, status);
}

int deltafs_snapshot_close(deltafs_snapshot *h)
{
    if (h)
        snapshot_fini(&h->snapshot);
    free(h);
    return DELTAFS_OK;
}

int deltafs_snapshot_stat(const deltafs_snapshot *h, struct deltafs_snapshot_stat *out)
{
    static const char call[] = "deltafs_snapshot_stat";
    struct deltafs_snapshot_stat s = {.struct_size = sizeof s};

    if (!h || !out)
        return snapshot_no_argument(call, "snapshot and out");
    uuid_to_text(h->snapshot.uuid, s.uuid);
    s.time = (int64_t)h->snapshot.time;
    s.path = h->snapshot.folder;
    s.layers = h->snapshot.layers.count;
    return sized_fill(out, &s, sizeof s, call, deltafs_private_thread_error());
}

int deltafs_snapshot_layer(const deltafs_snapshot *h, size_t i, struct deltafs_snapshot_layer *out)
{
    static const char call[] = "deltafs_snapshot_layer";
    struct error *e = deltafs_private_thread_error();

    if (!h || !out)
        return snapshot_no_argument(call, "snapshot and out");
    if (i >= h->snapshot.layers.count)
        return error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: there is no layer %zu", call, i);
    const struct layer *layer = &h->snapshot.layers.layer[i];
    const struct deltafs_snapshot_layer l = {.struct_size = sizeof l,
                                             .path = layer->path,
                                             .policy = layer->policy,
                                             .is_complete = layer->is_complete,
                                             .tables = layer->tables,
                                             .inputs = layer->inputs,
                                             .input = layer->input};
    return sized_fill(out, &l, sizeof l, call, e);
}

/* ---- Lists ---- */

struct deltafs_snapshot_list {
    const char *folder; /* that is being listed */
    char **name;
    size_t names, room, next;
};

static int take_name(void *arg, const char *name, struct error *e)
{
    deltafs_snapshot_list *l = arg;
    size_t size = strlen(l->folder) + strlen(name) + 2;
    int status = memory_extend(NULL, &l->name, l->names, &l->room, sizeof *l->name, "a list of snapshots", e);
    char *text = status == DELTAFS_OK ? malloc(size) : NULL;

    if (!text)
        return status != DELTAFS_OK ? status : error_no_memory(e, size, "a list of snapshots");
    snprintf(text, size, "%s@%s", l->folder, name);
    l->name[l->names++] = text;
    return DELTAFS_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_fill(deltafs_snapshot_list *l, struct snapshot_call *c, const char *registry)
{
    struct registry_path p;
    int status = registry_path_init(&p, registry, &c->error);

    if (status != DELTAFS_OK)
        return status;
    for (size_t i = 0; i < p.count && status == DELTAFS_OK; i++) {
        size_t first = l->names;
        l->folder = p.folder[i];
        status = registry_each(&c->io, p.folder[i], take_name, l, &c->error);
        if (l->names > first)
            qsort(l->name + first, l->names - first, sizeof *l->name, compare_names);
    }
    registry_path_fini(&p);
    return status;
}

int deltafs_snapshot_list_open(const char *registry, deltafs_snapshot_list **out)
{
    struct snapshot_call c;

    if (!out)
        return snapshot_no_argument("deltafs_snapshot_list_open", "out");
    deltafs_snapshot_list *l = calloc(1, sizeof *l);
    int status = snapshot_call_begin(&c);
    if (status == DELTAFS_OK)
        status = l ? list_fill(l, &c, registry) : error_no_memory(&c.error, sizeof *l, "a list of snapshots");
    if (status == DELTAFS_OK)
        *out = l;
    else
        deltafs_snapshot_list_close(l);
    return snapshot_call_end(&c, status);
}

int deltafs_snapshot_list_next(deltafs_snapshot_list *l, const char **snapshot)
{
    if (!l || !snapshot)
        return snapshot_no_argument("deltafs_snapshot_list_next", "list and snapshot");
    *snapshot = l->next < l->names ? l->name[l->next++] : NULL;
    return DELTAFS_OK;
}

int deltafs_snapshot_list_close(deltafs_snapshot_list *l)
{
    for (size_t i = 0; l && i < l->names; i++)
        free(l->name[i]);
    if (l)
        free(l->name);
    free(l);
    return DELTAFS_OK;
}
