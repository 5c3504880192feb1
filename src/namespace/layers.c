#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/memory.h"
#include "base/number.h"
#include "namespace/layers.h"

static const char *const policies[] = {[DELTAFS_SNAPSHOT_NEWEST] = "newest",
                                       [DELTAFS_SNAPSHOT_FIRST] = "first",
                                       [DELTAFS_SNAPSHOT_LAST] = "last",
                                       [DELTAFS_SNAPSHOT_ERROR] = "error"};

#define POLICIES (sizeof policies / sizeof policies[0])

static struct layer *last_of(const struct layers *l)
{
    return l->layer + l->count - 1;
}

void layers_fini(struct layers *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->layer[i].path);
        free(l->layer[i].table);
        free(l->layer[i].input);
    }
    free(l->layer);
    *l = (struct layers){0};
}

/* ---- Adding ---- */

static int add(struct layers *l, const struct layer *layer, struct error *e)
{
    int status = memory_extend(NULL, &l->layer, l->count, &l->room, sizeof *l->layer, "layers", e);

    if (status == DELTAFS_OK)
        l->layer[l->count++] = *layer;
    return status;
}

int layers_add_namespace(struct layers *l, const uint8_t uuid[16], const char *path, struct error *e)
{
    struct layer layer = {.path = strdup(path)};

    if (!layer.path)
        return error_no_memory(e, strlen(path), "layers");
    memcpy(layer.uuid, uuid, sizeof layer.uuid);
    int status = add(l, &layer, e);
    if (status != DELTAFS_OK)
        free(layer.path);
    return status;
}

int layers_add_merge(struct layers *l, int policy, struct error *e)
{
    return add(l, &(struct layer){.policy = policy}, e);
}

int layers_add_table(struct layers *l, const struct layer_table *t, struct error *e)
{
    struct layer *last = last_of(l);
    int status = memory_extend(NULL, &last->table, last->tables, &last->table_room, sizeof *last->table, "layers", e);

    if (status == DELTAFS_OK)
        last->table[last->tables++] = *t;
    return status;
}

int layers_add_input(struct layers *l, size_t input, struct error *e)
{
    struct layer *last = last_of(l);
    int status = memory_extend(NULL, &last->input, last->inputs, &last->input_room, sizeof *last->input, "layers", e);

    if (status == DELTAFS_OK)
        last->input[last->inputs++] = input;
    return status;
}

static int is_same(const struct layer *a, const struct layer *b)
{
    int is = memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0 && a->policy == b->policy && a->tables == b->tables &&
             a->inputs == b->inputs && a->is_complete == b->is_complete && !a->path == !b->path &&
             (!a->path || strcmp(a->path, b->path) == 0);

    for (size_t i = 0; i < a->tables && is; i++)
        is = a->table[i].number == b->table[i].number && a->table[i].limit == b->table[i].limit &&
             a->table[i].from == b->table[i].from;
    for (size_t i = 0; i < a->inputs && is; i++)
        is = a->input[i] == b->input[i];
    return is;
}

int layers_are_same(const struct layers *a, const struct layers *b)
{
    int is = a->count == b->count;

    for (size_t i = 0; i < a->count && is; i++)
        is = is_same(&a->layer[i], &b->layer[i]);
    return is;
}

/* Add a copy of a layer, whose inputs have the numbers `place` here. */
static int add_copy(struct layers *l, const struct layer *from, const size_t *place, struct error *e)
{
    int status = from->path ? layers_add_namespace(l, from->uuid, from->path, e) : layers_add_merge(l, from->policy, e);

    if (status == DELTAFS_OK)
        last_of(l)->is_complete = from->is_complete;
    for (size_t i = 0; i < from->tables && status == DELTAFS_OK; i++)
        status = layers_add_table(l, &from->table[i], e);
    for (size_t i = 0; i < from->inputs && status == DELTAFS_OK; i++)
        status = layers_add_input(l, place[from->input[i]], e);
    return status;
}

/* The first layer that is the same as the last one; removes that if it is another. */
static size_t unite_last(struct layers *l)
{
    struct layers last = {.layer = last_of(l), .count = 1};
    size_t i = 0;

    while (!is_same(&l->layer[i], last.layer))
        i++;
    if (i == l->count - 1)
        return i;
    l->count--;
    free(last.layer->path);
    free(last.layer->table);
    free(last.layer->input);
    return i;
}

int layers_append(struct layers *l, const struct layers *from, size_t *top, struct error *e)
{
    size_t *place = calloc(from->count, sizeof *place);
    int status = place ? DELTAFS_OK : error_no_memory(e, from->count * sizeof *place, "layers");

    for (size_t i = 0; i < from->count && status == DELTAFS_OK; i++) {
        status = add_copy(l, &from->layer[i], place, e);
        if (status == DELTAFS_OK)
            *top = place[i] = unite_last(l);
    }
    free(place);
    return status;
}

int layers_has_path(const struct layers *l, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (l->layer[k].path && l->layer[i].path && strcmp(l->layer[k].path, l->layer[i].path) == 0)
            return 0;
    return l->layer[i].path != NULL;
}

void layers_note_asked(const struct layers *l, int is_complete, uint8_t *is_asked)
{
    memset(is_asked, l->is_resolved, l->count);
    if (l->count > 0)
        is_asked[l->count - 1] |= !is_complete;
    for (size_t i = l->count; i > 0; i--) {
        const struct layer *layer = &l->layer[i - 1];
        for (size_t k = 0; is_asked[i - 1] && !layer->is_complete && k < layer->inputs; k++)
            is_asked[layer->input[k]] = 1;
    }
}

static int is_copy(const struct layer *a, const struct layer *b)
{
    struct stat x, y;

    return a->path && b->path && memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0 && strcmp(a->path, b->path) != 0 &&
           stat(a->path, &x) == 0 && stat(b->path, &y) == 0 && (x.st_ino != y.st_ino || x.st_dev != y.st_dev);
}

int layers_check_copies(const struct layers *l, struct error *e)
{
    for (size_t i = 0; i < l->count; i++)
        for (size_t k = 0; k < i; k++)
            if (is_copy(&l->layer[i], &l->layer[k]))
                return error_set(e, DELTAFS_ERR_INVALID,
                                 "%s: is a copy of the namespace %s, made outside of DeltaFS; the two cannot be seen "
                                 "as one, so copy one of them by 'deltafs ns cp -r'",
                                 l->layer[i].path, l->layer[k].path);
    return DELTAFS_OK;
}

/* ---- Writing ---- */

static void put_text(struct textlog_line *line, const char *text)
{
    textlog_line_put(line, text, strlen(text));
}

/* One line, in pieces, as a merge may have any number of inputs. */
static int write_layer(const struct layer *layer, struct io_file *file, uint64_t *size, struct error *e)
{
    struct textlog_line line;
    char text[32], uuid[UUID_TEXT_SIZE];

    uuid_to_text(layer->uuid, uuid);
    textlog_line_begin(&line, file, *size, e);
    put_text(&line, "Layer ");
    put_text(&line, layer->path ? "uuid=" : "policy=");
    put_text(&line, layer->path ? uuid : policies[layer->policy]);
    put_text(&line, " inputs=");
    for (size_t i = 0; i < layer->inputs; i++)
        textlog_line_put(&line, text, (size_t)snprintf(text, sizeof text, "%s%zu", i > 0 ? "," : "", layer->input[i]));
    if (layer->is_complete)
        put_text(&line, " complete=1");
    if (layer->path) {
        put_text(&line, " path=");
        put_text(&line, layer->path);
    }
    return textlog_line_end(&line, size, 0);
}

int layer_table_write(const struct layer_table *t, struct io_file *file, uint64_t *size, struct error *e)
{
    char from[32] = "";

    if (t->from > 0)
        snprintf(from, sizeof from, " from=%" PRIu64, t->from);
    return textlog_append(file, size, 0, e, "Table number=0x%016" PRIx64 " limit=%" PRIu64 "%s", t->number, t->limit,
                          from);
}

int layers_write(const struct layers *l, struct io_file *file, uint64_t *size, struct error *e)
{
    int status = DELTAFS_OK;

    for (const struct layer *layer = l->layer; layer < l->layer + l->count && status == DELTAFS_OK; layer++) {
        if (layer->path && strchr(layer->path, '\n'))
            return error_set(e, DELTAFS_ERR_NAME, "%s: a namespace of a snapshot has no newline in its path",
                             layer->path);
        status = write_layer(layer, file, size, e);
        for (size_t i = 0; i < layer->tables && status == DELTAFS_OK; i++)
            status = layer_table_write(&layer->table[i], file, size, e);
    }
    return status;
}

/* ---- How many lines ---- */

static uint64_t lines_of(const struct layers *l)
{
    uint64_t n = l->count;

    for (size_t i = 0; i < l->count; i++)
        n += l->layer[i].tables;
    return n;
}

void layers_count_text(const struct layers *l, char text[LAYERS_COUNT_ROOM])
{
    text[0] = '\0';
    if (l->count > 0)
        snprintf(text, LAYERS_COUNT_ROOM, " lines=%" PRIu64, lines_of(l));
}

int layers_take_count(struct layers *l, const char *fields)
{
    size_t n;

    return textlog_field(fields, "lines", &n) ? textlog_number(fields, "lines", &l->lines) : 0;
}

int layers_check_count(const struct layers *l, const char *path, struct error *e)
{
    if (l->lines == 0 || l->lines == lines_of(l))
        return DELTAFS_OK;
    return error_damaged(e, path, 0, "it has lost lines of layers and tables; bring back a copy of it");
}

/* ---- Reading ---- */

static int take_policy(const char *fields, int *policy)
{
    char word[16];

    if (textlog_text(fields, "policy", word, sizeof word) != 0)
        return -1;
    for (size_t i = 0; i < POLICIES; i++)
        if (strcmp(word, policies[i]) == 0) {
            *policy = (int)i;
            return 0;
        }
    return -1;
}

/* The numbers "I,I,...", of layers that are there already. */
static int take_inputs(struct layers *l, const char *fields, struct error *e)
{
    size_t n = 0;
    const char *text = textlog_field(fields, "inputs", &n), *end = text ? text + n : NULL;
    int status = DELTAFS_OK;

    while (text && text < end && status == DELTAFS_OK) {
        char *after;
        unsigned long long i = *text >= '0' && *text <= '9' ? strtoull(text, &after, 10) : l->count;
        if (i >= l->count - 1 || (after < end && *after != ','))
            return -1;
        status = layers_add_input(l, (size_t)i, e);
        text = after + 1;
    }
    return status;
}

/* The field "complete", which is optional and before the path. Returns 0, or -1. */
static int take_complete(struct layer *layer, const char *fields, const char *path)
{
    uint64_t complete = 0;
    size_t n;
    const char *at = textlog_field(fields, "complete", &n);

    if (at && at < path && textlog_number(fields, "complete", &complete) != 0)
        return -1;
    layer->is_complete = complete != 0;
    return 0;
}

int layers_take_layer(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct layers *l = arg;
    char text[UUID_TEXT_SIZE];
    uint8_t uuid[16];
    size_t n;
    int policy = DELTAFS_SNAPSHOT_NEWEST;
    const char *of = textlog_field(fields, "path", &n); /* the last field; it may have blanks */

    int is_good = of ? textlog_text(fields, "uuid", text, sizeof text) == 0 && uuid_parse(text, uuid) == 0 && *of == '/'
                     : take_policy(fields, &policy) == 0;
    if (!is_good)
        return error_damaged(e, path, offset, "a layer is malformed");
    int status = of ? layers_add_namespace(l, uuid, of, e) : layers_add_merge(l, policy, e);
    if (status == DELTAFS_OK && of && take_complete(last_of(l), fields, of) != 0)
        return error_damaged(e, path, offset, "a layer is malformed");
    if (status == DELTAFS_OK)
        status = take_inputs(l, fields, e);
    if (status == -1 || (status == DELTAFS_OK && (of ? last_of(l)->inputs > 1 : last_of(l)->inputs == 0)))
        return error_damaged(e, path, offset, "the inputs of a layer are malformed");
    return status;
}

int layer_table_take(const char *fields, struct layer_table *out)
{
    size_t n;

    *out = (struct layer_table){0};
    if (textlog_field(fields, "from", &n) && textlog_number(fields, "from", &out->from) != 0)
        return -1;
    if (textlog_number(fields, "number", &out->number) != 0 || textlog_number(fields, "limit", &out->limit) != 0)
        return -1;
    return out->from <= out->limit ? 0 : -1;
}

int layers_take_table(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct layers *l = arg;
    struct layer_table t;

    if (l->count == 0 || !last_of(l)->path || layer_table_take(fields, &t) != 0)
        return error_damaged(e, path, offset, "a table of a layer is malformed");
    return layers_add_table(l, &t, e);
}
