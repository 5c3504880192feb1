/* Repairing a namespace: each table, and its data, as the directories that they are; and of damaged journals what can
 * be read. Then it is found out which names, and bytes of files, are lost. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/sized.h"
#include "io/lease.h"
#include "repair/repair_namespace.h"

struct namespace_repair {
    struct io io;
    struct deltafs_repair_options options;
    uint64_t lease;         /* seconds */
    struct damages damages; /* what cannot be repaired */
    deltafs_repair_fn fn;
    void *arg;
    uint64_t repaired;
};

/* How long a lease counts: as the caller says, or else the option of the environment. */
static int set_lease(struct namespace_repair *r, struct error *e)
{
    deltafs_options *o = NULL;
    int status = error_of_call(deltafs_options_create(&o), e);

    if (status == DELTAFS_OK)
        r->lease = r->options.has_lease ? r->options.lease : deltafs_private_options_number(o, OPTION_LEASE);
    deltafs_options_destroy(o);
    return status;
}

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

/* ---- Journals ---- */

/* A damaged one. */
struct damaged_journal {
    const char *folder;
    char name[32], path[PATH_ROOM];
    uint64_t table;
    struct journal journal; /* with what can be read */
    struct text old;
    size_t lost; /* bytes */
};

static int write_journal(struct namespace_repair *r, struct damaged_journal *d, struct error *e)
{
    char kept[PATH_ROOM];
    const char *kept_name = repair_kept_name(&r->io, d->path, kept);
    const struct text new = {.bytes = (char *)d->journal.bytes.bytes, .n = d->journal.end};
    struct error said;
    int status = r->options.dry_run ? DELTAFS_OK : text_replace(&r->io, d->folder, d->name, &new, kept, e);

    if (status != DELTAFS_OK)
        return status;
    error_set(
        &said, DELTAFS_OK,
        "%s: damaged; it is written again with what can be read, %zu of %zu bytes; the damaged one is saved as %s",
        d->path, new.n, d->old.n, kept_name);
    pass_on(DELTAFS_OK, said.text, r);
    error_set(&said, DELTAFS_ERR_DAMAGED, "%s: %zu bytes, and the commits in them, are lost", d->path, d->lost);
    pass_on(DELTAFS_ERR_DAMAGED, said.text, r);
    return DELTAFS_OK;
}

/* While nobody writes the table. */
static int repair_journal(struct namespace_repair *r, struct damaged_journal *d, struct error *e)
{
    char directory[PATH_ROOM];
    struct lease lease = {.is_sure = 0};
    int status = DELTAFS_OK;

    if (!r->options.dry_run)
        status = lease_take(&lease, &r->io, table_path(directory, d->folder, d->table, ""), r->lease, 0, e);
    if (status != DELTAFS_OK)
        return status;
    status = text_load(&r->io, d->folder, d->name, &d->old, e);
    if (status == DELTAFS_OK)
        status = journal_salvage(&d->journal, d->path, (const uint8_t *)d->old.bytes, d->old.n, d->table, &d->lost, e);
    if (status == DELTAFS_OK)
        status = write_journal(r, d, e);
    journal_fini(&d->journal);
    text_fini(&d->old);
    return error_first(status, lease_drop(&lease, error_after(status, e)));
}

static int repair_journals(struct namespace_repair *r, const char *folder, struct error *e)
{
    uint64_t *number = NULL;
    size_t count = 0;
    int status = tables_list(&r->io, folder, &number, &count, e);

    for (size_t i = 0; i < count && status == DELTAFS_OK; i++) {
        struct damaged_journal d = {.folder = folder, .table = number[i]};
        struct error found;
        snprintf(d.name, sizeof d.name, TABLE_NAME TABLE_JOURNAL, (unsigned long long)number[i]);
        io_path_in(d.path, folder, "%s", d.name);
        int read = journal_read(&d.journal, &r->io, d.path, number[i], &found);
        journal_fini(&d.journal);
        if (read == DELTAFS_ERR_DAMAGED)
            read = repair_journal(r, &d, &found);
        damages_of(&r->damages, read, &found);
    }
    free(number);
    return status;
}

/* ---- Names ---- */

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
    int status = set_lease(&r, &e);
    if (status == DELTAFS_OK)
        status = namespace_check_texts(&r.io, path, &r.damages, &e);
    if (status == DELTAFS_OK)
        status = namespace_each_directory(&r.io, path, repair_one, &r, &e);
    if (status == DELTAFS_OK)
        status = repair_journals(&r, path, &e);
    if (status == DELTAFS_OK)
        status = repair_names(&r, path, &e);
    if (status == DELTAFS_OK && r.damages.count > 0) {
        e = r.damages.first;
        status = e.status;
    }
    return error_of_thread(status, &e);
}
