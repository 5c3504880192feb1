/* Repairing a namespace: each table, and its data, as the directories that they are; then it is found out which names,
 * and bytes of files, are lost. */
#include "base/sized.h"
#include "repair/repair_namespace.h"

struct namespace_repair {
    struct io io;
    struct deltafs_repair_options options;
    struct damages damages; /* what cannot be repaired */
    deltafs_repair_fn fn;
    void *arg;
    uint64_t repaired;
};

static void pass_on(int status, const char *message, void *arg)
{
    struct namespace_repair *r = arg;
    struct error e;

    if (status < 0) {
        error_set(&e, status, "%s", message);
        damages_add(&r->damages, &e);
        return;
    }
    r->repaired += status == DELTAFS_OK;
    if (r->fn)
        r->fn(status, message, r->arg);
}

static void repair_one(void *arg, const char *directory)
{
    struct namespace_repair *r = arg;
    struct error e;
    uint64_t before = r->damages.count;
    int status = error_of_call(deltafs_repair(directory, &r->options, pass_on, r), &e);

    if (!table_is_empty(directory, status) && r->damages.count == before)
        damages_of(&r->damages, status, &e);
}

/* In a dry run, names cannot all be read before what was found is repaired. */
static int repair_names(struct namespace_repair *r, const char *path, struct error *e)
{
    if (r->options.dry_run && r->repaired > 0)
        return DELTAFS_OK;
    int status = namespace_check_names(path, &r->damages, NULL, e);
    return r->damages.count > 0 ? DELTAFS_OK : status;
}

int deltafs_namespace_repair(const char *path, const struct deltafs_repair_options *options, deltafs_repair_fn fn,
                             void *arg)
{
    static const char call[] = "deltafs_namespace_repair";
    struct namespace_repair r = {.io = io_default(),
                                 .options = {.struct_size = sizeof r.options},
                                 .damages = {.fn = fn, .arg = arg},
                                 .fn = fn,
                                 .arg = arg};
    struct error *thread = deltafs_private_thread_error(), e;

    if (!path || !*path)
        return error_set(thread, DELTAFS_ERR_INVALID, "%s: path must be given", call);
    if (options && sized_take(&r.options, options, sizeof r.options, call, thread) != DELTAFS_OK)
        return thread->status;
    if (r.options.has_label || r.options.has_drop_from)
        return error_set(thread, DELTAFS_ERR_INVALID,
                         "%s: label and drop_from are for one directory: repair the table that needs it by itself",
                         call);
    struct deltafs_verify_counts counts = {0};
    int status = namespace_check_texts(&r.io, path, &r.damages, &e);
    if (status == DELTAFS_OK)
        status = namespace_each_directory(&r.io, path, repair_one, &r, &e);
    if (status == DELTAFS_OK)
        status = namespace_check_journals(&r.io, path, &r.damages, &counts, &e);
    if (status == DELTAFS_OK)
        status = repair_names(&r, path, &e);
    if (status == DELTAFS_OK && r.damages.count > 0) {
        e = r.damages.first;
        status = e.status;
    }
    return error_of_thread(status, &e);
}
