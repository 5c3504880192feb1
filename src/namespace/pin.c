#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/memory.h"
#include "base/number.h"
#include "namespace/entry_format.h"
#include "namespace/pin.h"

/* ---- Writing ---- */

static const char *pin_path(char path[PATH_ROOM], const char *folder, const uint8_t uuid[16])
{
    char text[UUID_TEXT_SIZE];

    uuid_to_text(uuid, text);
    return io_path_in(path, folder, PIN_NAME "%s", text);
}

/* Of the layers that are the namespace of `of`; NULL: all is kept. */
static int write_lines(struct io_file *file, const struct layer *of, const struct pin *pin, const struct layers *layers,
                       struct error *e)
{
    char text[UUID_TEXT_SIZE];
    uint64_t size = 0;

    uuid_to_text(pin->uuid, text);
    int status = textlog_append_id(file, &size, text, e);
    if (status == DELTAFS_OK)
        status = textlog_append(file, &size, 0, e, "Pin time=%lld holder=%s", (long long)time(NULL), pin->holder);
    for (size_t i = 0; of && i < layers->count; i++) {
        const struct layer *layer = &layers->layer[i];
        int is = layer->path && memcmp(layer->uuid, of->uuid, sizeof of->uuid) == 0;
        if (is && status == DELTAFS_OK)
            status = textlog_append(file, &size, 0, e, "Layer");
        for (size_t k = 0; is && k < layer->tables; k++)
            if (status == DELTAFS_OK)
                status = layer_table_write(&layer->table[k], file, &size, e);
    }
    if (status == DELTAFS_OK && (of || pin->has_view))
        status = textlog_append(file, &size, 0, e, of ? "End" : "begun");
    return status == DELTAFS_OK && pin->sync ? io_file_sync(file, e) : status;
}

static int explain(const char *path, struct error *e)
{
    return error_set(e, e->status, "%s; a snapshot needs a pin in the namespace %s: get permission to write there",
                     e->text, path);
}

/* Write a pin of the namespace at `path`. It has its name when it is complete. */
static int write_pin(struct io *io, const char *path, const struct pin *pin, const struct layer *of,
                     const struct layers *layers, struct error *e)
{
    char name[PATH_ROOM], aside[PATH_ROOM], text[UUID_TEXT_SIZE];
    struct io_file file;

    if (strchr(pin->holder, '\n'))
        return error_set(e, DELTAFS_ERR_NAME, "%s: a path with a newline cannot be that of a snapshot", pin->holder);
    uuid_to_text(pin->uuid, text);
    int status =
        io_file_open(io, io_path_in(aside, path, "." PIN_NAME "%s", text), O_CREAT | O_EXCL | O_WRONLY, &file, e);
    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_IO ? explain(path, e) : status;
    status = io_file_finish(&file, write_lines(&file, of, pin, layers, e), e);
    if (status == DELTAFS_OK)
        status = io_rename(io, aside, pin_path(name, path, pin->uuid), e);
    if (status != DELTAFS_OK)
        io_unlink(io, aside, error_ignored());
    return status == DELTAFS_OK && pin->sync ? io_sync_folder(io, path, e) : status;
}

int pin_begin(struct io *io, const char *path, const struct pin *pin, struct error *e)
{
    int status = write_pin(io, path, pin, NULL, NULL, e);

    if (status != DELTAFS_OK)
        pin_remove(io, path, pin->uuid, error_ignored());
    return status;
}

int pin_set(struct io *io, const struct layer *of, const struct pin *pin, const struct layers *layers, struct error *e)
{
    return write_pin(io, of->path, pin, of, layers, e);
}

int pin_layers(struct io *io, const struct pin *pin, const struct layers *layers, struct error *e)
{
    int status = DELTAFS_OK;

    for (size_t i = 0; i < layers->count && status == DELTAFS_OK; i++)
        if (layers_has_path(layers, i))
            status = pin_set(io, &layers->layer[i], pin, layers, e);
    if (status != DELTAFS_OK)
        pin_remove_layers(io, pin->uuid, layers, error_ignored());
    return status;
}

int pin_remove(struct io *io, const char *path, const uint8_t uuid[16], struct error *e)
{
    char name[PATH_ROOM];
    int status = io_unlink(io, pin_path(name, path, uuid), e);

    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

int pin_remove_layers(struct io *io, const uint8_t uuid[16], const struct layers *layers, struct error *e)
{
    int status = DELTAFS_OK;

    for (size_t i = 0; i < layers->count; i++)
        if (layers_has_path(layers, i))
            status = error_first(status, pin_remove(io, layers->layer[i].path, uuid, error_after(status, e)));
    return status;
}

/* ---- Reading ---- */

struct reading {
    struct io *io;
    const char *path;
    struct pins *pins;
    size_t layers; /* of the pins before this one */
    int has_begun, has_end;
};

static int take_layer(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct pins *p = ((struct reading *)arg)->pins;
    int status = memory_extend(NULL, &p->layer, p->layers, &p->layer_room, sizeof *p->layer, "pins", e);

    if (status == DELTAFS_OK)
        p->layer[p->layers++] = (struct pin_layer){.first = p->count};
    return status == DELTAFS_OK ? textlog_skip(arg, fields, path, offset, e) : status;
}

static int take_table(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct reading *r = arg;
    struct pins *p = r->pins;
    struct layer_table t;

    if (layer_table_take(fields, &t) != 0 || p->layers == r->layers ||
        (p->layer[p->layers - 1].count > 0 && t.number <= p->table[p->count - 1].number))
        return error_damaged(e, path, offset, "a table of a pin is malformed");
    int status = memory_extend(NULL, &p->table, p->count, &p->room, sizeof *p->table, "pins", e);
    if (status != DELTAFS_OK)
        return status;
    p->table[p->count++] = t;
    p->layer[p->layers - 1].count++;
    return status;
}

static int take_begun(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct reading *r = arg;

    r->has_begun = 1;
    return textlog_skip(arg, fields, path, offset, e);
}

static int take_end(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct reading *r = arg;

    r->has_end = 1;
    return textlog_skip(arg, fields, path, offset, e);
}

static int take_line(void *arg, char *line, const char *path, uint64_t offset, struct error *e)
{
    static const struct textlog_word words[] = {
        {"Deltafs", textlog_skip}, {"Pin", textlog_skip}, {"Layer", take_layer}, {"Table", take_table},
        {"End", take_end},         {"begun", take_begun}, {NULL, NULL}};

    return textlog_take(words, arg, line, path, offset, e);
}

static int read_pin(void *arg, const char *name, struct error *e)
{
    struct reading *r = arg;
    char path[PATH_ROOM];
    struct io_file file;
    uint64_t end;

    if (strncmp(name, PIN_NAME, strlen(PIN_NAME)) != 0)
        return DELTAFS_OK;
    int status = io_file_open(r->io, io_path_in(path, r->path, "%s", name), O_RDONLY, &file, e);
    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status; /* it was just removed */
    r->has_begun = r->has_end = 0;
    r->layers = r->pins->layers;
    r->pins->pins++;
    status = io_file_finish(&file, textlog_read(&file, NULL, take_line, r, &end, e), e);
    r->pins->keep_all |= !r->has_end;
    r->pins->begun |= r->has_begun;
    return status;
}

int pins_read(struct io *io, const char *path, struct pins *out, struct error *e)
{
    struct reading r = {.io = io, .path = path, .pins = out};

    *out = (struct pins){0};
    int status = io_list(io, path, read_pin, &r, e);
    if (status != DELTAFS_OK)
        pins_fini(out);
    return status;
}

static int remove_begun(void *arg, const char *name, struct error *e)
{
    struct reading *r = arg;
    char path[PATH_ROOM];

    pins_fini(r->pins);
    int status = read_pin(r, name, e);
    if (status != DELTAFS_OK || !r->pins->begun)
        return status;
    status = io_unlink(r->io, io_path_in(path, r->path, "%s", name), e);
    return status == DELTAFS_ERR_NOT_FOUND ? DELTAFS_OK : status;
}

int pins_remove_begun(struct io *io, const char *path, struct error *e)
{
    struct pins one = {0};
    struct reading r = {.io = io, .path = path, .pins = &one};
    int status = io_list(io, path, remove_begun, &r, e);

    pins_fini(&one);
    return status;
}

void pins_fini(struct pins *p)
{
    free(p->table);
    free(p->layer);
    *p = (struct pins){0};
}

const struct layer_table *pin_layer_table(const struct pins *p, const struct pin_layer *layer, uint64_t number)
{
    const struct layer_table *table = p->table + layer->first;
    size_t i = layer->count > 0 ? number_position(&table->number, layer->count, sizeof *table, number) : 0;

    return i < layer->count && table[i].number == number ? &table[i] : NULL;
}
