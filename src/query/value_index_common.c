/* What is to be indexed by value, and the index that there may be. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "directory/dir.h"
#include "query/value_index.h"

/* ---- The request ---- */

/* The columns to carry are at the end: " +NAME +NAME". Returns where they begin. */
static char *request_carried(char *text)
{
    char *end = text + strlen(text), *at = end;

    for (;;) {
        while (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '.'))
            at--;
        if (at == end || at < text + 3 || at[-1] != '+' || at[-2] != ' ')
            return end;
        at -= 2;
        while (at > text && at[-1] == ' ')
            at--;
        end = at;
    }
}

/* The name is that of a folder, too: none that leads elsewhere. */
static int request_has_name(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return 0;
    return n > 0 && !isdigit((unsigned char)text[0]);
}

int value_request_take(struct value_request *r, const char *text, size_t length, struct error *e)
{
    const char *colon = memchr(text, ':', length);
    size_t n = colon ? (size_t)(colon - text) : 0;

    if (n >= sizeof r->name || !request_has_name(text, n))
        return error_set(e, DELTAFS_ERR_INVALID,
                         "index '%.*s': give NAME:EXPRESSION, such as energy:ux*ux+uy*uy+uz*uz, with letters, digits "
                         "and '_' in the name, and no digit at its begin; columns to carry follow, each with a space "
                         "and a '+' before it",
                         (int)length, text);
    memcpy(r->name, text, n);
    r->name[n] = '\0';
    r->value = strndup(colon + 1, length - n - 1);
    r->fields = calloc(length + 1, 1);
    if (!r->value || !r->fields)
        return error_no_memory(e, length, "an index");
    char *from = request_carried(r->value), *to = r->fields;
    for (const char *p = from; *p; p++) {
        if (*p == '+' && to > r->fields)
            *to++ = ',';
        else if (*p != '+' && *p != ' ')
            *to++ = *p;
    }
    *from = '\0';
    return DELTAFS_OK;
}

void value_request_fini(struct value_request *r)
{
    free(r->value);
    free(r->fields);
}

/* ---- The index ---- */

static char *index_path(char path[PATH_ROOM], const char *of, const struct value_request *r)
{
    return io_path_in(path, of, "%s/%s", VALUE_INDEX_FOLDER, r->name);
}

static int is_text(deltafs_dir *d, const char *name, const char *text)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};

    return deltafs_attribute_get(d, name, UINT64_MAX, &a) == DELTAFS_OK && a.type == DELTAFS_ATTRIBUTE_TEXT &&
           strcmp(a.value, text) == 0;
}

int value_index_schema(int has_rows, const char *carried, char **out, struct error *e)
{
    static const char row[] = VALUE_INDEX_ROW ":u8,", key[] = VALUE_INDEX_KEY ":u8";
    size_t room = sizeof row + sizeof key + strlen(carried) + 1;

    *out = malloc(room);
    if (!*out)
        return error_no_memory(e, room, "a schema");
    snprintf(*out, room, "%s%s%s%s", has_rows ? row : "", key, *carried ? "," : "", carried);
    return DELTAFS_OK;
}

/* The part of such a schema. */
static const char *carried_columns(const char *schema)
{
    const char *key = strstr(schema, VALUE_INDEX_KEY), *comma = key ? strchr(key, ',') : NULL;

    return comma ? comma + 1 : "none";
}

static int look_refuse(const char *path, const char *other, const char *is, const char *schema, struct error *e)
{
    return other ? error_set(e, DELTAFS_ERR_INVALID, "%s: is the index of another %s; remove it before: deltafs rm %s",
                             path, other, path)
                 : error_set(e, DELTAFS_ERR_INVALID,
                             "%s: the columns that it carries are: %s; asked for: %s; remove it before: deltafs rm %s",
                             path, carried_columns(is), carried_columns(schema), path);
}

/* Nothing is lost with an index: its records are those of the directory. */
static int look_discard(const char *path, struct value_index_state *s, struct error *e)
{
    int status = dir_check_lease(path, s->options, e);

    s->is_made = s->has_epochs = 0;
    return status == DELTAFS_OK ? dir_remove_own(path, s->options, e) : status;
}

/* Of the index that is open. */
static int look_into(deltafs_dir *d, const char *path, const struct value_request *r, const char *schema,
                     struct value_index_state *s, struct error *e)
{
    struct deltafs_epoch_stat last = {.struct_size = sizeof last};
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    int status = error_of_call(deltafs_stat(d, &stat), e);

    if (status == DELTAFS_OK && stat.epochs > 0)
        status = error_of_call(deltafs_epoch_stat(d, stat.epochs - 1, &last), e);
    if (status != DELTAFS_OK)
        return status;
    s->is_made = 1;
    s->has_epochs = stat.epochs > 0;
    s->last = last.label;
    const char *other = !is_text(d, VALUE_INDEX_MADE, s->made_of)  ? "directory"
                        : !is_text(d, VALUE_INDEX_VALUE, r->value) ? "expression"
                                                                   : NULL;
    if (!other && strcmp(stat.schema, schema) == 0)
        return DELTAFS_OK;
    /* Its creation, or its first epoch, was interrupted. */
    if (stat.epochs == 0)
        return look_discard(path, s, e);
    return look_refuse(path, other, stat.schema, schema, e);
}

int value_index_look(const char *of, const struct value_request *r, const char *schema, struct value_index_state *s,
                     struct error *e)
{
    char path[PATH_ROOM];
    deltafs_dir *d;
    int status = deltafs_open(index_path(path, of, r), NULL, &d);

    if (status == DELTAFS_ERR_NOT_FOUND)
        return DELTAFS_OK;
    if (status == DELTAFS_ERR_NOT_DELTAFS || status == DELTAFS_ERR_DAMAGED)
        return look_discard(path, s, e);
    if (status != DELTAFS_OK)
        return error_of_call(status, e);
    status = look_into(d, path, r, schema, s, e);
    deltafs_close(d);
    return status;
}

int value_index_has(deltafs_dir *index, const struct deltafs_epoch_stat *epoch, uint64_t label, uint64_t records,
                    uint64_t print)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};

    return epoch->label == label && epoch->records == records &&
           deltafs_attribute_get(index, VALUE_INDEX_PRINT, label, &a) == DELTAFS_OK && a.from == label &&
           a.type == DELTAFS_ATTRIBUTE_U8 && *(const uint64_t *)a.value == print;
}

int value_index_agree_on(const struct collective *group, const char *path, uint64_t value, struct error *e)
{
    uint64_t both[] = {value, ~value};
    int status = collective_max(group, both, 2, e);

    if (status == DELTAFS_OK && both[0] != ~both[1])
        status = error_set(e, DELTAFS_ERR_BUSY, "%s: is being changed; index it again when that is done", path);
    return status;
}

int value_index_agree(const struct collective *group, struct value_index_state *s, struct error *e)
{
    uint64_t known[] = {(uint64_t)s->is_made, (uint64_t)s->has_epochs, s->last, (uint64_t)s->has_column};
    int status = collective_max(group, known, 4, e);

    s->is_made = known[0] > 0;
    s->has_epochs = known[1] > 0;
    s->last = known[2];
    s->has_column = known[3] > 0;
    return status;
}

static int index_set(deltafs_dir *index, const char *name, uint64_t from, int type, const void *value, struct error *e)
{
    const struct deltafs_attribute a = {
        .struct_size = sizeof a, .name = name, .from = from, .type = type, .count = 1, .value = value};

    return error_of_call(deltafs_attribute_set(index, &a), e);
}

int value_index_print(deltafs_dir *index, uint64_t label, uint64_t print, struct error *e)
{
    return index_set(index, VALUE_INDEX_PRINT, label, DELTAFS_ATTRIBUTE_U8, &print, e);
}

int value_index_options(const deltafs_options *of, deltafs_options **out, struct error *e)
{
    static const enum option_id own[] = {OPTION_SCHEMA, OPTION_VALUE_SIZE, OPTION_KEYS,  OPTION_LAYOUT,
                                         OPTION_COMMIT, OPTION_PROGRESS,   OPTION_STATS, OPTION_INDEX_BY};
    int status = error_of_call(deltafs_options_create(out), e);

    if (status == DELTAFS_OK && of)
        status = deltafs_private_options_copy(*out, of, e);
    for (size_t i = 0; i < sizeof own / sizeof own[0] && status == DELTAFS_OK; i++)
        status = deltafs_private_options_reset(*out, own[i], e);
    /* A range of values touches few partitions. */
    uint64_t partitions = status == DELTAFS_OK ? deltafs_private_options_number(*out, OPTION_PARTITIONS) : 0;
    int has_ranges = partitions == OPTION_AUTO || partitions <= PARTITIONS_RANGE_MAX;
    return status == DELTAFS_OK
               ? deltafs_private_options_prefer(*out, OPTION_PARTITIONER, has_ranges ? "range" : "hash", e)
               : status;
}

/* Whether there is nothing there that can be read. Other errors may pass, and what could not be read is there then. */
static int is_none(int status)
{
    return status == DELTAFS_ERR_NOT_FOUND || status == DELTAFS_ERR_NOT_DELTAFS || status == DELTAFS_ERR_DAMAGED ||
           status == DELTAFS_ERR_VERSION;
}

/* Remove the index if it has epochs behind `last`; `has` 0: if it has any. */
static int prune_one(const char *folder, const char *name, const deltafs_options *o, int has, uint64_t last,
                     struct error *e)
{
    char path[PATH_ROOM];
    uint64_t own;
    deltafs_dir *d;

    io_path_in(path, folder, "%s", name);
    if (dir_is_being_removed(path))
        return dir_remove_own(path, o, e);
    int status = deltafs_open(path, NULL, &d);
    if (status != DELTAFS_OK)
        return is_none(status) ? DELTAFS_OK : error_of_call(status, e);
    int is_ahead = deltafs_last_label(d, &own) == DELTAFS_OK && (!has || own > last);
    deltafs_close(d);
    return is_ahead ? dir_remove_own(path, o, e) : DELTAFS_OK;
}

int deltafs_private_value_index_prune(const char *of, const deltafs_options *o, struct error *e)
{
    struct io io = io_default();
    struct bytes names = {{0}, 0};
    char folder[PATH_ROOM];
    uint64_t last = 0;
    int has = 0;
    deltafs_dir *d;

    io_path_in(folder, of, VALUE_INDEX_FOLDER);
    int status = io_names(&io, folder, &names, e);
    if (status == DELTAFS_OK && names.used > 0) {
        status = error_of_call(deltafs_open(of, NULL, &d), e);
        if (status == DELTAFS_OK) {
            has = deltafs_last_label(d, &last) == DELTAFS_OK;
            deltafs_close(d);
        }
    }
    if (is_none(status)) { /* whoever reopens the directory says what is wrong with it */
        status = e->status = DELTAFS_OK;
        names.used = 0;
    }
    for (size_t at = 0; at < names.used && status == DELTAFS_OK;) {
        const char *name = (const char *)names.buffer.bytes + at;
        status = prune_one(folder, name, o, has, last, e);
        at += strlen(name) + 1;
    }
    buffer_fini(&names.buffer);
    return status;
}

/* The folder of indexes. */
static int make_folder(const char *of, struct error *e)
{
    struct io io = io_default();
    char path[PATH_ROOM];
    int status = io_mkdir(&io, io_path_in(path, of, VALUE_INDEX_FOLDER), e);

    e->status = status == DELTAFS_ERR_EXISTS ? DELTAFS_OK : status;
    return e->status;
}

/* Collective: open the index, or a new one. */
static int open_any(const struct value_index_ranks *ranks, const char *of, const char *path,
                    struct value_index_state *s, deltafs_options *o, deltafs_dir **out, struct error *e)
{
    /* It has the partitions that it has. */
    e->status = s->is_made && o ? deltafs_private_options_reset(o, OPTION_PARTITIONS, e) : DELTAFS_OK;
    if (e->status == DELTAFS_OK && s->is_made && o)
        e->status = deltafs_private_options_reset(o, OPTION_PARTITIONER, e);
    if (e->status == DELTAFS_OK && !s->is_made && ranks->group->rank == 0)
        make_folder(of, e);
    int status = collective_agree(ranks->group, e);

    if (status == DELTAFS_OK)
        status = error_of_call(ranks->open(ranks->ctx, s->is_made, path, o, out), e);
    if (status != DELTAFS_ERR_DAMAGED || !s->is_made)
        return status;
    s->is_made = s->has_epochs = 0;
    e->status = ranks->group->rank == 0 ? dir_remove_own(path, s->options, e) : DELTAFS_OK;
    status = collective_agree(ranks->group, e);
    return status == DELTAFS_OK ? error_of_call(ranks->open(ranks->ctx, 0, path, o, out), e) : status;
}

int value_index_open(const struct value_index_ranks *ranks, const char *of, const struct value_request *r,
                     struct value_index_state *s, deltafs_options *o, deltafs_dir **out, struct error *e)
{
    char path[PATH_ROOM];
    int status = open_any(ranks, of, index_path(path, of, r), s, o, out, e);

    if (status != DELTAFS_OK || s->is_made)
        return status;
    status = index_set(*out, VALUE_INDEX_MADE, 0, DELTAFS_ATTRIBUTE_TEXT, s->made_of, e);
    if (status == DELTAFS_OK)
        status = index_set(*out, VALUE_INDEX_VALUE, 0, DELTAFS_ATTRIBUTE_TEXT, r->value, e);
    if (status == DELTAFS_OK)
        return status;
    deltafs_close(*out);
    *out = NULL;
    return status;
}
