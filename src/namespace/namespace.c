#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "base/path.h"
#include "directory/serial.h"
#include "namespace/head.h"
#include "namespace/namespace.h"
#include "namespace/registry.h"

#define NAMES_RESERVE (1u << 20) /* bytes for the names that one call looks up */
#define FILE_RESERVE  512        /* for that of each open file, which a commit may have to note */
#define NAMES_SHARE   2          /* names get this part of the memory, the rest is for the table and its data */
#define FILTER_SHARE  8          /* and the filter this part of that, */
#define RECENT_SHARE  8          /* and bytes of files that are not committed this */
#define WRITER_MEMORY (32u << 20)

/* ---- Messages ---- */

int deltafs_namespace_errno(int status)
{
    switch (status) {
    case DELTAFS_OK:
        return 0;
    case DELTAFS_ERR_NOT_FOUND:
        return ENOENT;
    case DELTAFS_ERR_EXISTS:
        return EEXIST;
    case DELTAFS_ERR_NOT_FOLDER:
        return ENOTDIR;
    case DELTAFS_ERR_FOLDER:
        return EISDIR;
    case DELTAFS_ERR_NOT_EMPTY:
        return ENOTEMPTY;
    case DELTAFS_ERR_LOOP:
        return ELOOP;
    case DELTAFS_ERR_NAME:
        return ENAMETOOLONG;
    case DELTAFS_ERR_TOO_LARGE:
        return EFBIG;
    case DELTAFS_ERR_MODE:
        return EROFS;
    case DELTAFS_ERR_BUSY:
        return EBUSY;
    case DELTAFS_ERR_CONFLICT:
        return EEXIST;
    case DELTAFS_ERR_MEMORY:
        return ENOMEM;
    case DELTAFS_ERR_NO_SPACE:
        return ENOSPC;
    case DELTAFS_ERR_INVALID:
    case DELTAFS_ERR_OPTION:
        return EINVAL;
    default:
        return EIO;
    }
}

int ns_fail(deltafs_namespace *ns, int status, const char *path)
{
    static const struct {
        int status;
        const char *text;
    } texts[] = {{DELTAFS_ERR_NOT_FOUND, "no such file or folder"},
                 {DELTAFS_ERR_EXISTS, "exists already"},
                 {DELTAFS_ERR_NOT_FOLDER, "not a folder"},
                 {DELTAFS_ERR_FOLDER, "is a folder"},
                 {DELTAFS_ERR_NOT_EMPTY, "the folder is not empty"},
                 {DELTAFS_ERR_LOOP, "too many symbolic links, or one that must not be followed"},
                 {DELTAFS_ERR_NAME, "the name or the path is too long"},
                 {DELTAFS_ERR_BUSY, "is the root"},
                 {DELTAFS_ERR_INVALID, "not possible with a path that ends in '.' or '..'"}};
    size_t i = 0;

    while (texts[i].status != status)
        i++;
    return error_set(&ns->error, status, "%s:/%s: %s", ns->path, path[0] == '/' ? path + 1 : path, texts[i].text);
}

int ns_no_argument(deltafs_namespace *ns, const char *call, const char *argument)
{
    return error_set(&ns->error, DELTAFS_ERR_INVALID, "%s: %s must be given", call, argument);
}

/* ---- Calls ---- */

int ns_begin(deltafs_namespace *ns, const char *call, int is_change)
{
    if (!ns)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID, "%s: no namespace", call);
    if (ns->shared)
        shared_begin(ns);
    if (is_change && ns->is_snapshot)
        return ns_end(
            ns, error_set(&ns->error, DELTAFS_ERR_MODE, "%s: %s is a snapshot, which never changes", call, ns->path));
    if (is_change && ns->own.number == 0)
        return ns_end(ns, error_set(&ns->error, DELTAFS_ERR_MODE, "%s: %s is open for reading; open it with O_RDWR",
                                    call, ns->path));
    if (is_change && ns_check_sound(ns) != DELTAFS_OK)
        return ns_end(ns, ns->error.status);
    int status = ns->shared ? DELTAFS_OK : ns_make_room(ns);
    return status == DELTAFS_OK ? status : ns_end(ns, status);
}

static int has_room(const deltafs_namespace *ns, size_t bytes)
{
    return name_table_left(&ns->names) >= bytes + ns->opens * FILE_RESERVE;
}

int ns_has_room(const deltafs_namespace *ns)
{
    return has_room(ns, NAMES_RESERVE / 2);
}

int ns_make_room(deltafs_namespace *ns)
{
    if (has_room(ns, NAMES_RESERVE))
        return DELTAFS_OK;
    ns->own.is_memory_full = 1;
    int status = ns_commit(ns);
    ns->own.is_memory_full = 0;
    if (status == DELTAFS_OK) {
        name_table_clear(&ns->names);
        ns->clears++;
        ns_forget_walks(ns);
    }
    return status;
}

int ns_end(deltafs_namespace *ns, int status)
{
    if (status != DELTAFS_OK)
        *deltafs_private_thread_error() = ns->error;
    if (ns->shared)
        shared_end(ns);
    return status;
}

uint64_t ns_stamps(deltafs_namespace *ns, uint64_t n)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    uint64_t first = now > ns->last_stamp ? now : ns->last_stamp + 1;
    ns->last_stamp = first + n - 1;
    return first;
}

/* ---- Opening ---- */

static int read_head(deltafs_namespace *ns, struct error *e)
{
    struct head head;
    int status = head_read(&ns->io, ns->path, &head, e);

    layers_fini(&ns->layers);
    ns->root = head.root;
    ns->has_journals = head.has_journals;
    ns->layers = head.below;
    memcpy(ns->uuid, head.uuid, sizeof ns->uuid);
    return status;
}

/* Create the namespace if that is asked for, and read its head. */
static int open_head(deltafs_namespace *ns, int flags, const deltafs_options *o, const struct ns_new *n,
                     struct error *e)
{
    int sync = deltafs_private_options_number(o, OPTION_SYNC) != SYNC_NONE;
    int status = read_head(ns, e);

    if (status == DELTAFS_OK && (flags & O_CREAT) && (flags & O_EXCL))
        return error_set(e, DELTAFS_ERR_EXISTS, "%s: exists already", ns->path);
    if (!(flags & O_CREAT) || (status != DELTAFS_ERR_NOT_FOUND && status != DELTAFS_ERR_NOT_DELTAFS))
        return status;
    status = head_create(&ns->io, ns->path, n->uuid, &n->below, sync, e);
    if (status == DELTAFS_ERR_EXISTS && !(flags & O_EXCL)) /* another process was faster */
        status = DELTAFS_OK;
    return status == DELTAFS_OK ? read_head(ns, e) : status;
}

static int open_snapshot(deltafs_namespace *ns, int is_writer, struct error *e)
{
    struct snapshot s;

    if (is_writer)
        return error_set(
            e, DELTAFS_ERR_MODE,
            "%s: a snapshot never changes; create a namespace on top of it ('deltafs ns create NS --on %s')", ns->path,
            ns->path);
    int status = registry_read(&ns->io, ns->path, &s, e);

    if (status != DELTAFS_OK)
        return status;
    ns->layers = s.layers;
    memcpy(ns->uuid, s.uuid, sizeof ns->uuid);
    s.layers = (struct layers){0};
    snapshot_fini(&s);
    return DELTAFS_OK;
}

static int open_memory(deltafs_namespace *ns, int is_writer, const deltafs_options *o, uint64_t *memory,
                       struct error *e)
{
    *memory = deltafs_private_options_number(o, OPTION_MEMORY);
    if (*memory == OPTION_AUTO)
        *memory = SERIAL_MEMORY_DEFAULT;
    if (is_writer && *memory < WRITER_MEMORY)
        return error_set(e, DELTAFS_ERR_MEMORY,
                         "option memory: %llu bytes are too few to write to a namespace; give %u",
                         (unsigned long long)*memory, WRITER_MEMORY);
    size_t names = *memory / NAMES_SHARE, filter = is_writer ? names / FILTER_SHARE : 0;
    size_t recent = is_writer ? names / RECENT_SHARE : 0;
    int status = is_writer ? name_filter_init(&ns->committed, filter, e) : DELTAFS_OK;
    ns->recent = recent_of(recent);
    return status == DELTAFS_OK ? name_table_init(&ns->names, names - filter - recent, e) : status;
}

/* Know the layers, and the root. */
static int open_layers(deltafs_namespace *ns, int flags, const deltafs_options *o, const struct ns_new *n,
                       struct error *e)
{
    size_t top;
    int status;

    if (n->is_view)
        status = layers_append(&ns->layers, &n->below, &top, e);
    else
        status = ns->is_snapshot ? open_snapshot(ns, (flags & O_ACCMODE) == O_RDWR, e) : open_head(ns, flags, o, n, e);
    return status == DELTAFS_OK
               ? head_check_layers(&ns->io, ns->path, &ns->layers, ns->is_snapshot ? &ns->root : NULL, e)
               : status;
}

/* Hold leases. A snapshot that has its name when they are held is not withdrawn yet, so all that it has is there. */
static int open_views(deltafs_namespace *ns, int is_view, struct error *e)
{
    int status = views_begin(&ns->views, &ns->io, ns->is_snapshot ? NULL : ns->path, &ns->layers, e);

    return status == DELTAFS_OK && ns->is_snapshot && !is_view ? registry_confirm(&ns->io, ns->path, ns->uuid, e)
                                                               : status;
}

static int open_parts(deltafs_namespace *ns, int flags, const deltafs_options *o, const struct ns_new *n,
                      struct error *e)
{
    int is_writer = (flags & O_ACCMODE) == O_RDWR;
    uint64_t memory;
    int status = open_layers(ns, flags, o, n, e);

    if (status == DELTAFS_OK)
        status = open_memory(ns, is_writer, o, &memory, e);
    /* The own table first: nobody else writes it by the time that it is read. Or the leases. */
    if (status == DELTAFS_OK)
        status = is_writer ? own_table_open(&ns->own, &ns->io, ns->path, o, memory / 4, &ns->last_stamp, e)
                           : open_views(ns, n->is_view, e);
    ns->own.has_journal = ns->has_journals;
    ns->layers.is_resolved = n->finds_conflicts || resolver_is_needed(&ns->layers);
    if (status == DELTAFS_OK)
        status =
            tables_init(&ns->tables, &ns->io, ns->is_snapshot ? NULL : ns->path, ns->own.number, &ns->layers, o, e);
    if (status == DELTAFS_OK && is_writer)
        tables_use_journal(&ns->tables, ns->own.number, &ns->own.journal);
    ns->has_resolver = status == DELTAFS_OK && ns->layers.is_resolved;
    if (ns->has_resolver)
        status = resolver_init(&ns->resolver, &ns->layers, &ns->tables, e);
    if (status == DELTAFS_OK && ns->tables.last_label > ns->last_stamp)
        ns->last_stamp = ns->tables.last_label;
    ns->first_stamp = ns->last_stamp;
    return status;
}

int ns_free(deltafs_namespace *ns, struct error *e)
{
    ns_free_files(ns);
    tables_fini(&ns->tables);
    int status = own_table_close(&ns->own, e);
    name_table_fini(&ns->names);
    name_filter_fini(&ns->committed);
    recent_fini(&ns->recent);
    walk_fini(&ns->walk);
    walk_fini(&ns->other);
    layers_fini(&ns->layers);
    resolver_fini(&ns->resolver);
    views_end(&ns->views);
    free(ns->path);
    free(ns);
    return status;
}

static deltafs_namespace *ns_create(const char *path, int is_snapshot)
{
    deltafs_namespace *ns = calloc(1, sizeof *ns);

    if (!ns)
        return NULL;
    *ns = (deltafs_namespace){.error.text = "no error",
                              .io = io_default(),
                              .path = is_snapshot ? strdup(path) : path_absolute(path),
                              .is_snapshot = is_snapshot,
                              .uid = geteuid(),
                              .gid = getegid()};
    for (size_t n = ns->path ? strlen(ns->path) : 0; n > 1 && ns->path[n - 1] == '/'; n--)
        ns->path[n - 1] = '\0';
    if (!ns->path) {
        free(ns);
        ns = NULL;
    }
    return ns;
}

int ns_open(const char *path, int flags, const deltafs_options *options, const struct ns_new *create,
            deltafs_namespace **out)
{
    struct error *thread = deltafs_private_thread_error(), e;
    struct ns_new plain = {.is_view = 0};
    deltafs_options *defaults = NULL;
    deltafs_namespace *ns = ns_create(path, create ? create->is_view : !(flags & O_CREAT) && registry_is_name(path));

    if (!ns)
        return error_no_memory(thread, sizeof *ns + strlen(path), "a namespace");
    int status = options ? DELTAFS_OK : error_of_call(deltafs_options_create(&defaults), &e);
    if (status == DELTAFS_OK && !create)
        status = uuid_create(plain.uuid, &e);
    if (status == DELTAFS_OK)
        status = open_parts(ns, flags, options ? options : defaults, create ? create : &plain, &e);
    deltafs_options_destroy(defaults);
    if (status == DELTAFS_OK)
        *out = ns;
    else
        ns_free(ns, error_ignored());
    return error_of_thread(status, &e);
}

int deltafs_namespace_open(const char *path, int flags, const deltafs_options *options, deltafs_namespace **out)
{
    int access = flags & O_ACCMODE;

    if (!path || !*path || !out || access == O_WRONLY || ((flags & O_CREAT) && access != O_RDWR))
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_namespace_open: path and out must be given, and flags must be O_RDONLY or O_RDWR, "
                         "O_CREAT only with O_RDWR");
    return ns_open(path, flags, options, NULL, out);
}

int deltafs_namespace_close(deltafs_namespace *ns)
{
    struct error e;

    if (!ns)
        return DELTAFS_OK;
    if (ns->shared)
        return shared_close(ns);
    int status = ns->broken.status;
    if (status == DELTAFS_OK)
        status = ns_commit(ns);
    if (status != DELTAFS_OK)
        e = ns->broken.status != DELTAFS_OK ? ns->broken : ns->error;
    status = error_first(status, ns_free(ns, error_after(status, &e)));
    return error_of_thread(status, &e);
}
