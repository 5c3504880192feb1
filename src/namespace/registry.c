#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/path.h"
#include "namespace/entry_format.h"
#include "namespace/pin.h"
#include "namespace/registry.h"
#include "namespace/text_folder.h"

#define REGISTRY_VARIABLE "DELTAFS_REGISTRY"
#define WITHDRAWN         ".withdrawn." /* before the UUID, of a snapshot that is being removed */

void snapshot_fini(struct snapshot *s)
{
    free(s->folder);
    layers_fini(&s->layers);
}

/* ---- Names ---- */

int registry_is_name(const char *text)
{
    struct stat st;

    return strchr(text, '@') && lstat(text, &st) != 0;
}

/* A name is one of a folder, in paths that are split at '@' and ':'. */
static int name_is_possible(const char *name)
{
    size_t n = strlen(name);

    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        if (*p <= ' ' || *p == 127 || strchr("/:@", *p))
            return 0;
    return n > 0 && n <= SNAPSHOT_NAME_MAX && name[0] != '.' && strcmp(name, REGISTRY_NAME) != 0;
}

int registry_check(const char *text, struct error *e)
{
    const char *at = strrchr(text, '@');

    if (!at)
        return error_set(e, DELTAFS_ERR_INVALID, "'%s' names no snapshot; give REGISTRY@NAME", text);
    if (!name_is_possible(at + 1))
        return error_set(e, DELTAFS_ERR_INVALID,
                         "'%s': a snapshot cannot have this name; it has 1 to %d bytes without '/', ':', '@' and "
                         "blanks, and does not begin with '.'",
                         at + 1, SNAPSHOT_NAME_MAX);
    return DELTAFS_OK;
}

void registry_path_fini(struct registry_path *p)
{
    free(p->folder);
    free(p->text);
    *p = (struct registry_path){0};
}

int registry_path_init(struct registry_path *p, const char *text, struct error *e)
{
    const char *of = text && *text ? text : getenv(REGISTRY_VARIABLE);
    size_t room = 1;

    *p = (struct registry_path){0};
    if (!of || !*of)
        return error_set(
            e, DELTAFS_ERR_INVALID,
            "no registry is given; give REGISTRY@NAME, or set the environment variable " REGISTRY_VARIABLE);
    for (const char *c = of; (c = strchr(c, ':')); c++)
        room++;
    p->text = strdup(of);
    p->folder = calloc(room, sizeof *p->folder);
    if (!p->text || !p->folder) {
        registry_path_fini(p);
        return error_no_memory(e, strlen(of), "the registries");
    }
    for (char *save, *one = strtok_r(p->text, ":", &save); one; one = strtok_r(NULL, ":", &save)) {
        for (size_t n = strlen(one); n > 1 && one[n - 1] == '/'; n--)
            one[n - 1] = '\0';
        p->folder[p->count++] = one;
    }
    if (p->count == 0) {
        registry_path_fini(p);
        return error_set(e, DELTAFS_ERR_INVALID, "%s: is no list of registries: FOLDER, or FOLDER:FOLDER...", of);
    }
    return DELTAFS_OK;
}

/* The registries of "REG@NAME"; *name is within the text. */
static int split(const char *text, struct registry_path *p, const char **name, struct error *e)
{
    int status = registry_check(text, e);

    *p = (struct registry_path){0};
    if (status != DELTAFS_OK)
        return status;
    const char *at = strrchr(text, '@');
    char *folders = strndup(text, (size_t)(at - text));
    if (!folders)
        return error_no_memory(e, strlen(text), "the registries");
    status = registry_path_init(p, folders, e);
    free(folders);
    *name = at + 1;
    return status;
}

/* ---- Creating ---- */

static int registry_write(void *arg, struct io_file *file, uint64_t *size, struct error *e)
{
    (void)arg;
    return textlog_append(file, size, 0, e, "Registry");
}

static const struct text_folder registry_text = {REGISTRY_NAME, "registry", registry_write, NULL};

/* Create the registry if there is none. */
static int registry_create(struct io *io, const char *folder, int sync, struct error *e)
{
    char path[PATH_ROOM];
    struct stat st;
    uint8_t uuid[16];

    if (stat(io_path_in(path, folder, REGISTRY_NAME), &st) == 0)
        return DELTAFS_OK;
    int status = uuid_create(uuid, e);
    if (status == DELTAFS_OK)
        status = text_folder_create(&registry_text, io, folder, uuid, sync, e);
    if (status == DELTAFS_OK || status == DELTAFS_ERR_EXISTS)
        return DELTAFS_OK;
    return path_explain_missing(folder, e);
}

static int snapshot_write(void *arg, struct io_file *file, uint64_t *size, struct error *e)
{
    const struct snapshot *s = arg;
    char count[LAYERS_COUNT_ROOM];

    layers_count_text(&s->layers, count);
    int status = textlog_append(file, size, 0, e, "Snapshot time=%" PRIu64 "%s", s->time, count);

    return status == DELTAFS_OK ? layers_write(&s->layers, file, size, e) : status;
}

int registry_publish(struct io *io, const char *text, const struct snapshot *s, int sync, struct error *e)
{
    struct snapshot copy = *s;
    const struct text_folder t = {SNAPSHOT_NAME, "snapshot", snapshot_write, &copy};
    struct registry_path p;
    char path[PATH_ROOM];
    const char *name;
    int status = split(text, &p, &name, e);

    if (status == DELTAFS_OK)
        status = registry_create(io, p.folder[0], sync, e);
    if (status == DELTAFS_OK)
        status = text_folder_create(&t, io, io_path_in(path, p.folder[0], "%s", name), s->uuid, sync, e);
    if (status == DELTAFS_ERR_EXISTS)
        error_set(e, status, "%s@%s: the snapshot exists already; 'deltafs snapshot withdraw' removes it", p.folder[0],
                  name);
    registry_path_fini(&p);
    return status;
}

/* ---- Reading ---- */

static int take_id(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct snapshot *s = arg;
    char uuid_text[UUID_TEXT_SIZE];

    return textlog_take_id(fields, path, offset, s->uuid, uuid_text, e);
}

static int take_time(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct snapshot *s = arg;

    return textlog_number(fields, "time", &s->time) == 0 && layers_take_count(&s->layers, fields) == 0
               ? DELTAFS_OK
               : error_damaged(e, path, offset, "the time of the snapshot is malformed");
}

static int take_layer(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct snapshot *s = arg;

    return layers_take_layer(&s->layers, fields, path, offset, e);
}

static int take_table(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct snapshot *s = arg;

    return layers_take_table(&s->layers, fields, path, offset, e);
}

static int take_line(void *arg, char *line, const char *path, uint64_t offset, struct error *e)
{
    static const struct textlog_word words[] = {
        {"Deltafs", take_id}, {"Snapshot", take_time}, {"Layer", take_layer}, {"Table", take_table}, {NULL, NULL}};

    return textlog_take(words, arg, line, path, offset, e);
}

/* Read a snapshot of this registry. */
static int snapshot_read(struct io *io, const char *folder, const char *name, struct snapshot *out, struct error *e)
{
    static const struct text_folder t = {.file = SNAPSHOT_NAME, .kind = "snapshot"};
    char path[PATH_ROOM], text[PATH_ROOM];

    io_path_in(path, folder, "%s", name);
    *out = (struct snapshot){.folder = strdup(path)};
    int status = out->folder ? text_folder_read(&t, io, path, take_line, out, e) : error_no_memory(e, 1, "a snapshot");
    if (status == DELTAFS_OK && out->layers.count == 0)
        status = error_damaged(e, path, 0, "the snapshot has no layers");
    if (status == DELTAFS_OK)
        status = layers_check_count(&out->layers, io_path_in(text, path, SNAPSHOT_NAME), e);
    if (status != DELTAFS_OK)
        snapshot_fini(out);
    return status;
}

int registry_read(struct io *io, const char *text, struct snapshot *out, struct error *e)
{
    struct registry_path p;
    const char *name;
    int status = split(text, &p, &name, e);
    size_t i;

    if (status != DELTAFS_OK)
        return status;
    for (i = 0, status = DELTAFS_ERR_NOT_FOUND; i < p.count && status == DELTAFS_ERR_NOT_FOUND; i++)
        status = snapshot_read(io, p.folder[i], name, out, e);
    if (status == DELTAFS_ERR_NOT_FOUND)
        error_set(e, status, "%s: there is no such snapshot", text);
    registry_path_fini(&p);
    return status;
}

int registry_confirm(struct io *io, const char *text, const uint8_t uuid[16], struct error *e)
{
    struct snapshot s;
    int status = registry_read(io, text, &s, e);

    if (status != DELTAFS_OK)
        return status;
    if (memcmp(s.uuid, uuid, sizeof s.uuid) != 0)
        status = error_set(e, DELTAFS_ERR_CHANGED, "%s: is another snapshot by now", text);
    snapshot_fini(&s);
    return status;
}

int registry_may_have(struct io *io, const char *text, const struct snapshot *s)
{
    struct snapshot there;
    int status = registry_read(io, text, &there, error_ignored());

    if (status != DELTAFS_OK)
        return status != DELTAFS_ERR_NOT_FOUND && status != DELTAFS_ERR_NOT_DELTAFS && status != DELTAFS_ERR_INVALID;
    int is = memcmp(there.uuid, s->uuid, sizeof there.uuid) == 0;
    snapshot_fini(&there);
    return is;
}

char *deltafs_private_registry_whole(const char *text)
{
    struct io io = io_default();
    struct snapshot s;

    if (!registry_is_name(text) || registry_read(&io, text, &s, error_ignored()) != DELTAFS_OK)
        return path_absolute(text);
    char *whole = path_absolute(s.folder);
    if (whole)
        *strrchr(whole, '/') = '@';
    snapshot_fini(&s);
    return whole;
}

struct each {
    int (*fn)(void *arg, const char *name, struct error *e);
    void *arg;
};

static int each_name(void *arg, const char *name, struct error *e)
{
    const struct each *each = arg;

    return name_is_possible(name) ? each->fn(each->arg, name, e) : DELTAFS_OK;
}

static int take_registry_line(void *arg, char *line, const char *path, uint64_t offset, struct error *e)
{
    static const struct textlog_word words[] = {{"Deltafs", take_id}, {"Registry", textlog_skip}, {NULL, NULL}};

    return textlog_take(words, arg, line, path, offset, e);
}

int registry_each(struct io *io, const char *folder, int (*fn)(void *arg, const char *name, struct error *e), void *arg,
                  struct error *e)
{
    struct each each = {fn, arg};
    struct snapshot none;
    int status = text_folder_read(&registry_text, io, folder, take_registry_line, &none, e);

    return status == DELTAFS_OK ? io_list(io, folder, each_name, &each, e) : status;
}

/* ---- Withdrawing ---- */

struct withdrawal {
    struct io *io;
    const char *folder;
    char own[sizeof WITHDRAWN + UUID_TEXT_SIZE];
    struct error error; /* of the own */
};

static int finish_one(struct withdrawal *w, const char *name, struct error *e)
{
    char path[PATH_ROOM], text[PATH_ROOM];
    struct snapshot s;
    int status = snapshot_read(w->io, w->folder, name, &s, e);

    if (status == DELTAFS_OK) {
        status = pin_remove_layers(w->io, s.uuid, &s.layers, e);
        if (status == DELTAFS_OK)
            status = io_unlink(w->io, io_path_in(text, s.folder, SNAPSHOT_NAME), e);
        snapshot_fini(&s);
    } else if (status == DELTAFS_ERR_NOT_DELTAFS) {
        status = DELTAFS_OK; /* the file was removed */
    }
    return status == DELTAFS_OK ? io_rmdir(w->io, io_path_in(path, w->folder, "%s", name), e) : status;
}

/* Another process may be finishing the same. Others that cannot be finished are left to the next withdrawal. */
static int finish_withdrawal(void *arg, const char *name, struct error *e)
{
    struct withdrawal *w = arg;
    struct error one;

    (void)e;
    if (strncmp(name, WITHDRAWN, strlen(WITHDRAWN)) != 0)
        return DELTAFS_OK;
    int status = finish_one(w, name, &one);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND && strcmp(name, w->own) == 0)
        w->error = one;
    return DELTAFS_OK;
}

int registry_withdraw(struct io *io, const struct snapshot *s, int sync, struct error *e)
{
    char aside[PATH_ROOM], uuid[UUID_TEXT_SIZE];
    char *folder = path_parent(s->folder);
    struct withdrawal w = {.io = io, .folder = folder, .error.status = DELTAFS_OK};

    if (!folder)
        return error_no_memory(e, strlen(s->folder), "a path");
    uuid_to_text(s->uuid, uuid);
    snprintf(w.own, sizeof w.own, WITHDRAWN "%s", uuid);
    int status = io_rename(io, s->folder, io_path_in(aside, folder, "%s", w.own), e);
    if (status == DELTAFS_OK && sync)
        status = io_sync_parent(io, s->folder, e);
    if (status == DELTAFS_OK)
        status = io_list(io, folder, finish_withdrawal, &w, e);
    if (status == DELTAFS_OK && w.error.status != DELTAFS_OK) {
        *e = w.error;
        status = e->status;
    }
    free(folder);
    return status;
}
