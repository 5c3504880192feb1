/* Verifying a namespace: the texts in its folder, each table and its data as the directories that they are, and that
 * each folder that has a name now can be listed, and each file has its bytes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "namespace/compacted.h"
#include "namespace/head.h"
#include "namespace/namespace.h"
#include "namespace/pin.h"
#include "namespace/registry.h"
#include "namespace/table_data.h"
#include "repair/repair_namespace.h"

/* ---- The namespace's folder ---- */

int namespace_check_texts(struct io *io, const char *path, struct damages *d, struct error *e)
{
    struct head head;
    struct compacted compacted;
    struct pins pins;
    int status = head_read(io, path, &head, e);

    layers_fini(&head.below);
    if (status == DELTAFS_ERR_NOT_FOUND || status == DELTAFS_ERR_NOT_DELTAFS)
        return status;
    damages_of(d, status, e);
    damages_of(d, compacted_read(io, path, &compacted, e), e);
    compacted_fini(&compacted);
    damages_of(d, pins_read(io, path, &pins, e), e);
    pins_fini(&pins);
    return DELTAFS_OK;
}

int namespace_each_directory(struct io *io, const char *path, void (*fn)(void *arg, const char *directory), void *arg,
                             struct error *e)
{
    char directory[PATH_ROOM];
    uint64_t *number = NULL;
    size_t count = 0;
    int status = tables_list(io, path, &number, &count, e);

    for (size_t i = 0; i < count && status == DELTAFS_OK; i++) {
        fn(arg, table_path(directory, path, number[i], ""));
        fn(arg, table_path(directory, path, number[i], TABLE_DATA));
    }
    free(number);
    return status;
}

static int check_journals(struct io *io, const char *path, struct damages *d, struct deltafs_verify_counts *counts,
                          struct error *e)
{
    char name[PATH_ROOM];
    uint64_t *number = NULL;
    size_t count = 0;
    int status = tables_list(io, path, &number, &count, e);

    for (size_t i = 0; i < count && status == DELTAFS_OK; i++) {
        struct journal j;
        damages_of(d, journal_read(&j, io, table_path(name, path, number[i], TABLE_JOURNAL), number[i], e), e);
        counts->records += j.committed;
        counts->bytes += j.end;
        journal_fini(&j);
    }
    free(number);
    return status;
}

/* ---- Its names ---- */

/* Folders that are still to be listed. */
struct names {
    deltafs_namespace *ns;
    const char *shown; /* the namespace, in messages */
    struct damages *damages;
    char **folder; /* paths */
    size_t folders, room;
    uint8_t *bytes;
    struct deltafs_verify_counts counts; /* of names, and of bytes that were read */
};

static void report(struct names *n, const char *path, const char *what)
{
    struct error e;

    error_set(&e, n->ns->error.status, "%s:%s: %s: %s", n->shown, path, what, n->ns->error.text);
    damages_add(n->damages, &e);
}

static int read_place(void *arg, const struct entry_id *place, struct error *e)
{
    struct names *n = arg;
    size_t got = 0;
    int status = tables_read_chunk(&n->ns->tables, place, CHUNK_SIZE, n->bytes, &got, e);

    n->counts.bytes += got;
    return status;
}

static void check_file(struct names *n, const char *path)
{
    deltafs_namespace *ns = n->ns;
    struct found f;
    int status = ns_begin(ns, "deltafs_namespace_verify", 0);

    if (status == DELTAFS_OK)
        status = walk_to_existing(ns, &ns->walk, path, 0, &f);
    if (status == DELTAFS_OK && f.inode.size > 0)
        status = tables_each_place(&ns->tables, &f.inode, read_place, n, &ns->error);
    if (ns_end(ns, status) != DELTAFS_OK)
        report(n, path, "its bytes cannot all be read");
}

static char *join(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);

    if (path)
        snprintf(path, size, "%s%s%s", folder, folder[1] == '\0' ? "" : "/", name);
    return path;
}

static int add_folder(struct names *n, char *path, struct error *e)
{
    int status = memory_extend(NULL, &n->folder, n->folders, &n->room, sizeof *n->folder, "folders", e);

    if (status == DELTAFS_OK)
        n->folder[n->folders++] = path;
    return status;
}

/* `path` is freed, or kept. */
static int take_entry(struct names *n, char *path, uint32_t mode, struct error *e)
{
    int status = DELTAFS_OK;

    if (!path)
        return error_no_memory(e, ENTRY_NAME_MAX, "a path");
    if (S_ISDIR(mode)) {
        status = add_folder(n, path, e);
        if (status == DELTAFS_OK)
            return status;
    } else if (S_ISREG(mode)) {
        check_file(n, path);
    }
    free(path);
    return status;
}

static int check_folder(struct names *n, const char *path, struct error *e)
{
    const struct deltafs_namespace_entry *entry = NULL;
    deltafs_namespace_list *list = NULL;
    int listed = deltafs_namespace_list_open(n->ns, path, &list), status = DELTAFS_OK;

    while (listed == DELTAFS_OK && status == DELTAFS_OK) {
        listed = deltafs_namespace_list_next(list, &entry);
        if (listed != DELTAFS_OK || !entry)
            break;
        n->counts.records++;
        status = take_entry(n, join(path, entry->name), entry->stat.mode, e);
    }
    if (listed != DELTAFS_OK)
        report(n, path, "its names cannot all be read");
    deltafs_namespace_list_close(list);
    return status;
}

static int check_all(struct names *n, struct error *e)
{
    char *root = strdup("/");
    int status = take_entry(n, root, S_IFDIR, e);

    n->bytes = malloc(CHUNK_SIZE);
    if (status == DELTAFS_OK && !n->bytes)
        status = error_no_memory(e, CHUNK_SIZE, "a file");
    while (n->folders > 0 && status == DELTAFS_OK) {
        char *path = n->folder[--n->folders];
        status = check_folder(n, path, e);
        free(path);
    }
    while (n->folders > 0)
        free(n->folder[--n->folders]);
    free(n->folder);
    free(n->bytes);
    return status;
}

int namespace_check_names(const char *path, struct damages *d, struct deltafs_verify_counts *out, struct error *e)
{
    struct names n = {.shown = path, .damages = d};
    int status = error_of_call(deltafs_namespace_open(path, O_RDONLY, NULL, &n.ns), e);

    if (status != DELTAFS_OK)
        return status;
    status = check_all(&n, e);
    int closed = error_of_call(deltafs_namespace_close(n.ns), error_after(status, e));
    if (out) {
        out->records = n.counts.records;
        out->bytes = n.counts.bytes;
    }
    return error_first(status, closed);
}

/* ---- All of it ---- */

struct namespace_verify {
    struct io io;
    struct damages damages;
    struct deltafs_verify_counts counts;
};

static void pass_on(int status, const char *message, void *arg)
{
    struct error e;

    error_set(&e, status, "%s", message);
    damages_add(arg, &e);
}

static void verify_one(void *arg, const char *directory)
{
    struct namespace_verify *v = arg;
    struct deltafs_verify_counts n = {.struct_size = sizeof n};
    struct error e;
    deltafs_dir *d = NULL;
    uint64_t before = v->damages.count;
    int status = error_of_call(deltafs_open(directory, NULL, &d), &e);

    if (table_is_empty(directory, status))
        return;
    if (status == DELTAFS_ERR_NOT_DELTAFS)
        status = e.status = DELTAFS_ERR_DAMAGED;
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_verify(d, pass_on, &v->damages, &n), &e);
    if (v->damages.count == before)
        damages_of(&v->damages, status, &e);
    deltafs_close(d);
    v->counts.records += n.records;
    v->counts.bytes += n.bytes;
    v->counts.blocks += n.blocks;
    v->counts.leaves += n.leaves;
}

/* What is in the tables is verified with their namespaces; this is what the snapshot has of them. */
static int verify_snapshot(struct namespace_verify *v, const char *name, struct error *e)
{
    int status = namespace_check_names(name, &v->damages, &v->counts, e);

    if (status != DELTAFS_ERR_DAMAGED)
        return status;
    if (v->damages.count == 0) /* otherwise that is why it cannot be opened */
        damages_of(&v->damages, status, e);
    return DELTAFS_OK;
}

static int verify_namespace(struct namespace_verify *v, const char *path, struct error *e)
{
    struct views views = {.count = 0};
    int status = namespace_check_texts(&v->io, path, &v->damages, e);

    if (status == DELTAFS_OK)
        status = views_begin(&views, &v->io, path, NULL, e);
    if (status == DELTAFS_OK)
        status = namespace_each_directory(&v->io, path, verify_one, v, e);
    if (status == DELTAFS_OK)
        status = check_journals(&v->io, path, &v->damages, &v->counts, e);
    if (status == DELTAFS_OK) {
        int checked = namespace_check_names(path, &v->damages, NULL, e);
        if (v->damages.count == 0) /* otherwise that is why it cannot be opened */
            damages_of(&v->damages, checked, e);
    }
    views_end(&views);
    return status;
}

int deltafs_namespace_verify(const char *path, deltafs_damage_fn fn, void *arg, struct deltafs_verify_counts *out)
{
    static const char call[] = "deltafs_namespace_verify";
    struct namespace_verify v = {
        .io = io_default(), .damages = {.fn = fn, .arg = arg}, .counts = {.struct_size = sizeof v.counts}};
    struct error *thread = deltafs_private_thread_error(), e;

    if (!path || !*path)
        return error_set(thread, DELTAFS_ERR_INVALID, "%s: path must be given", call);
    int status = registry_is_name(path) ? verify_snapshot(&v, path, &e) : verify_namespace(&v, path, &e);
    return status != DELTAFS_OK ? error_of_thread(status, &e) : damages_end(&v.damages, &v.counts, out, call, thread);
}
