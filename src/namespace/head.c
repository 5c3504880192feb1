#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "namespace/head.h"
#include "namespace/text_folder.h"

#define ROOT_MODE 0755

static int head_write(void *arg, struct io_file *file, uint64_t *size, struct error *e)
{
    const struct layers *below = arg;
    char count[LAYERS_COUNT_ROOM];
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    layers_count_text(below, count);
    int status = textlog_append(file, size, 0, e, "Journals");
    if (status == DELTAFS_OK)
        status = textlog_append(file, size, 0, e, "Namespace mode=%u uid=%u gid=%u time=%" PRIu64 "%s", ROOT_MODE,
                                geteuid(), getegid(), (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, count);
    return status == DELTAFS_OK ? layers_write(below, file, size, e) : status;
}

int head_create(struct io *io, const char *path, const uint8_t uuid[16], const struct layers *below, int sync,
                struct error *e)
{
    struct layers copy = *below;
    const struct text_folder t = {NAMESPACE_NAME, "namespace", head_write, &copy};

    return text_folder_create(&t, io, path, uuid, sync, e);
}

/* ---- Reading ---- */

struct reading {
    struct head *head;
    int has_root;
};

static int take_id(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct reading *r = arg;
    char uuid_text[UUID_TEXT_SIZE];

    return textlog_take_id(fields, path, offset, r->head->uuid, uuid_text, e);
}

static int take_root(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct reading *r = arg;
    uint64_t mode, uid, gid, time;

    if (layers_take_count(&r->head->below, fields) != 0 || textlog_number(fields, "mode", &mode) != 0 ||
        textlog_number(fields, "uid", &uid) != 0 || textlog_number(fields, "gid", &gid) != 0 ||
        textlog_number(fields, "time", &time) != 0 || mode > 07777 || uid > UINT32_MAX || gid > UINT32_MAX ||
        time > INT64_MAX)
        return error_damaged(e, path, offset, "the attributes of the root are malformed");
    r->head->root = (struct inode){.id = {0, 1},
                                   .stamp = time,
                                   .mtime = (int64_t)time,
                                   .atime = (int64_t)time,
                                   .uid = (uint32_t)uid,
                                   .gid = (uint32_t)gid,
                                   .mode = (uint16_t)mode,
                                   .type = ENTRY_FOLDER};
    r->has_root = 1;
    return DELTAFS_OK;
}

static int take_journals(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct reading *r = arg;

    r->head->has_journals = 1;
    return textlog_skip(arg, fields, path, offset, e);
}

static int take_layer(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct reading *r = arg;

    return layers_take_layer(&r->head->below, fields, path, offset, e);
}

static int take_table(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct reading *r = arg;

    return layers_take_table(&r->head->below, fields, path, offset, e);
}

static int take_line(void *arg, char *line, const char *path, uint64_t offset, struct error *e)
{
    static const struct textlog_word words[] = {{"Deltafs", take_id},        {"Namespace", take_root},
                                                {"Journals", take_journals}, {"Layer", take_layer},
                                                {"Table", take_table},       {NULL, NULL}};

    return textlog_take(words, arg, line, path, offset, e);
}

int head_read(struct io *io, const char *path, struct head *out, struct error *e)
{
    static const struct text_folder t = {.file = NAMESPACE_NAME, .kind = "namespace"};
    struct reading r = {.head = out};
    char name[PATH_ROOM];

    io_path_in(name, path, NAMESPACE_NAME);
    *out = (struct head){.root = {.type = ENTRY_FOLDER}};
    int status = text_folder_read(&t, io, path, take_line, &r, e);
    if (status == DELTAFS_OK && !r.has_root)
        status = error_damaged(e, name, 0, "there is no line of the root");
    return status == DELTAFS_OK ? layers_check_count(&out->below, name, e) : status;
}

int head_check_layers(struct io *io, const char *path, const struct layers *layers, struct inode *root, struct error *e)
{
    struct head head;
    int status = DELTAFS_OK;

    for (size_t i = 0; i < layers->count && status == DELTAFS_OK; i++) {
        const struct layer *layer = &layers->layer[i];
        if (!layer->path)
            continue;
        status = head_read(io, layer->path, &head, e);
        layers_fini(&head.below);
        if (status == DELTAFS_OK && memcmp(head.uuid, layer->uuid, sizeof head.uuid) != 0)
            status = error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: is another namespace by now", layer->path);
        if (status != DELTAFS_OK)
            return error_set(e, status, "%s: %s; the namespaces of a snapshot must stay where they are", path, e->text);
        if (root && root->id.number == 0)
            *root = head.root;
    }
    return status;
}
