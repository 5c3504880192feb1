/* Indexes by value that are written together with their directory: each record that is appended is appended to them,
 * too, and their epochs are written at the same time, but that of the directory is committed first. If an index cannot
 * follow, the directory is complete without it: the index ends there, and closing the directory says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/coding.h"
#include "base/memory.h"
#include "base/options.h"
#include "directory/dir.h"
#include "query/value_index.h"

#define AT_ONCE     1024                 /* records */
#define SHARE       4                    /* of the option memory that each index has */
#define MEMORY_MIN  (UINT64_C(8) << 20)  /* bytes that an index needs, */
#define MEMORY_AUTO (UINT64_C(32) << 20) /* and has if the option is auto */

static const char discarded[] = "the epoch of the directory is discarded";

/* A column that an index has. */
struct carried {
    size_t from, size;
};

struct follower {
    struct value_request request;
    struct expr *value;
    struct expr_bound *bound;
    struct expr_work *work;
    struct expr_column *column;
    uint64_t print;
    struct carried *carried;
    size_t carries, carried_size;
    deltafs_dir *index; /* NULL: it could not follow */
    struct buffer values;
};

struct followers {
    struct follower *each;
    size_t count, capacity;
    deltafs_schema *schema; /* of the directory */
    int failed;             /* the first status with which an index ended, and its message */
    struct error error;
};

/* ---- Records ---- */

static void follower_lose(struct followers *all, struct follower *f, const struct error *e)
{
    if (all->failed == DELTAFS_OK) {
        all->failed = e->status;
        all->error = *e;
    }
    if (f->index)
        deltafs_close(f->index);
    f->index = NULL;
}

/* At most AT_ONCE records. */
static int follower_put(const struct followers *all, struct follower *f, size_t n, const uint8_t *keys,
                        size_t key_stride, const uint8_t *values, size_t value_stride)
{
    double value[AT_ONCE];
    uint64_t code[AT_ONCE];
    size_t size = sizeof(uint64_t) + f->carried_size, columns;
    const uint32_t *number = expr_columns(f->bound, &columns);

    for (size_t i = 0; i < columns; i++)
        f->column[i] =
            number[i] == COLUMN_KEY
                ? (struct expr_column){keys, key_stride}
                : (struct expr_column){values + deltafs_schema_field(all->schema, number[i])->offset, value_stride};
    expr_eval(f->work, n, f->column, value);
    value_index_codes(value, n, code);
    uint8_t *to = f->values.bytes;
    for (size_t i = 0; i < n; i++, to += size) {
        memcpy(to, keys + i * key_stride, sizeof(uint64_t));
        uint8_t *at = to + sizeof(uint64_t);
        for (size_t k = 0; k < f->carries; at += f->carried[k++].size)
            memcpy(at, values + i * value_stride + f->carried[k].from, f->carried[k].size);
    }
    return deltafs_append_many(f->index, n, code, sizeof *code, f->values.bytes, size, size);
}

static void followers_append(void *ctx, size_t n, const uint8_t *keys, size_t key_stride, const uint8_t *values,
                             size_t value_stride)
{
    struct followers *all = ctx;

    for (size_t k = 0; k < all->count; k++) {
        struct follower *f = &all->each[k];
        for (size_t at = 0, some; at < n && f->index; at += some) {
            some = n - at < AT_ONCE ? n - at : AT_ONCE;
            /* What is wrong is said at the end of the epoch, to all ranks. */
            follower_put(all, f, some, keys + at * key_stride, key_stride, values + at * value_stride, value_stride);
        }
    }
}

/* ---- Epochs ---- */

static int follower_end(struct follower *f, uint64_t label, int is_ending, struct error *e)
{
    if (is_ending)
        return dir_epoch_end(f->index, label, e);
    deltafs_epoch_cancel(f->index, discarded);
    dir_epoch_end(f->index, label, e);
    return DELTAFS_OK;
}

static void followers_epoch_end(void *ctx, uint64_t label, int is_ending)
{
    struct followers *all = ctx;
    struct error e;

    for (size_t k = 0; k < all->count; k++)
        if (all->each[k].index && follower_end(&all->each[k], label, is_ending, &e) != DELTAFS_OK)
            follower_lose(all, &all->each[k], &e);
}

/* Nothing is committed without what it was computed of. */
static int follower_wait(struct follower *f, uint64_t label, int is_committed, struct error *e)
{
    struct error refused, ignored;

    if (!is_committed) {
        error_set(&refused, DELTAFS_ERR_CANCELLED, "%s", discarded);
        dir_epoch_wait(f->index, &refused, e);
        return DELTAFS_OK;
    }
    int status = value_index_print(f->index, label, f->print, &refused);
    if (status == DELTAFS_OK)
        return dir_epoch_wait(f->index, NULL, e);
    *e = refused;
    dir_epoch_wait(f->index, &refused, &ignored);
    return status;
}

static void followers_epoch_wait(void *ctx, uint64_t label, int is_committed)
{
    struct followers *all = ctx;
    struct error e;

    for (size_t k = 0; k < all->count; k++)
        if (all->each[k].index && follower_wait(&all->each[k], label, is_committed, &e) != DELTAFS_OK)
            follower_lose(all, &all->each[k], &e);
}

/* ---- The end ---- */

static void follower_fini(struct follower *f)
{
    value_request_fini(&f->request);
    expr_work_destroy(f->work);
    expr_bound_destroy(f->bound);
    expr_destroy(f->value);
    free(f->column);
    free(f->carried);
    buffer_fini(&f->values);
}

static int followers_close(void *ctx, struct error *e)
{
    struct followers *all = ctx;

    for (size_t k = 0; k < all->count; k++) {
        struct follower *f = &all->each[k];
        int status = f->index ? deltafs_close(f->index) : DELTAFS_OK;
        f->index = NULL;
        if (status != DELTAFS_OK && status != DELTAFS_ERR_UNCOMMITTED)
            follower_lose(all, f, deltafs_private_thread_error());
        follower_fini(f);
    }
    int status = all->failed;
    if (status != DELTAFS_OK)
        error_set(e, status,
                  "the directory is complete, but an index by value of it is not: %s; to complete it, run "
                  "'deltafs-mpi index --by'",
                  all->error.text);
    deltafs_schema_destroy(all->schema);
    free(all->each);
    free(all);
    return status;
}

static const struct dir_follower calls = {followers_append, followers_epoch_end, followers_epoch_wait, followers_close};

/* ---- Opening ---- */

/* The names are those of columns. */
static int follower_bind(const struct followers *all, struct follower *f, struct error *e)
{
    const struct manifest none = {.keys = KEYS_U64, .schema = (char *)(uintptr_t) ""};
    struct columns c = {.manifest = &none, .schema = all->schema, .last = UINT64_MAX};
    const struct expr_scope scope = columns_scope(&c);
    size_t n;
    int status = expr_parse(f->request.value, &f->value, e);

    if (status == DELTAFS_OK)
        status = expr_bind(f->value, &scope, EXPR_NUMBER, &f->bound, e);
    if (status == DELTAFS_OK)
        status = expr_work_create(f->bound, &f->work, e);
    if (status != DELTAFS_OK)
        return status;
    const uint32_t *number = expr_columns(f->bound, &n);
    for (size_t i = 0; i < n; i++)
        if (number[i] == COLUMN_EPOCH)
            return error_set(e, DELTAFS_ERR_INVALID, "the epoch of a record is not known when it is appended");
    f->print = expr_fingerprint(f->bound);
    f->column = calloc(n + 1, sizeof *f->column);
    return f->column ? DELTAFS_OK : error_no_memory(e, n * sizeof *f->column, "an index");
}

/* Find the columns to carry; `schema` gets those of the index. */
static int follower_carry(const struct followers *all, struct follower *f, struct bytes *schema, struct error *e)
{
    struct columns c = {.schema = all->schema};
    size_t capacity = 0;
    char *rest = f->request.fields;
    int status = bytes_append(schema, VALUE_INDEX_KEY ":u8", sizeof VALUE_INDEX_KEY ":u8" - 1, e);

    for (char *name; status == DELTAFS_OK && (name = strsep(&rest, ",")) && *name;) {
        char type[32];
        size_t i = columns_field(&c, name);
        if (i == columns_fields(&c))
            return error_set(e, DELTAFS_ERR_INVALID, "there is no column '%s' to carry", name);
        const struct deltafs_field *field = deltafs_schema_field(all->schema, i);
        status = memory_extend(NULL, &f->carried, f->carries, &capacity, sizeof *f->carried, "an index", e);
        if (status != DELTAFS_OK)
            break;
        f->carried[f->carries++] = (struct carried){field->offset, field->size};
        f->carried_size += field->size;
        int n = snprintf(type, sizeof type, ":%c%u", field->kind, field->size);
        status = bytes_append(schema, ",", 1, e);
        if (status == DELTAFS_OK)
            status = bytes_append(schema, field->name, strlen(field->name), e);
        if (status == DELTAFS_OK)
            status = bytes_append(schema, type, (size_t)n, e);
    }
    return status == DELTAFS_OK ? bytes_append(schema, "", 1, e) : status;
}

static int follower_options(const deltafs_options *of, const char *schema, deltafs_options **o, struct error *e)
{
    uint64_t memory = deltafs_private_options_number(of, OPTION_MEMORY);
    char text[32];
    int status = value_index_options(of, o, e);

    snprintf(text, sizeof text, "%llu", (unsigned long long)(memory == OPTION_AUTO ? MEMORY_AUTO : memory / SHARE));
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_options_set(*o, "memory", text), e);
    return status == DELTAFS_OK ? error_of_call(deltafs_options_set(*o, "schema", schema), e) : status;
}

/* By one rank: the index that there is. */
static int follower_look(const char *path, struct follower *f, const char *schema, struct value_index_state *s,
                         struct error *e)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct deltafs_attribute column = {.struct_size = sizeof column};
    deltafs_dir *d;
    int status = error_of_call(deltafs_open(path, NULL, &d), e);

    if (status != DELTAFS_OK)
        return status;
    status = error_of_call(deltafs_stat(d, &stat), e);
    if (status == DELTAFS_OK)
        memcpy(s->made_of, stat.uuid, sizeof s->made_of);
    s->has_column = deltafs_attribute_get(d, f->request.name, UINT64_MAX, &column) == DELTAFS_OK;
    deltafs_close(d);
    return status == DELTAFS_OK ? value_index_look(path, &f->request, schema, s, e) : status;
}

/* Collective. */
static int follower_open(struct followers *all, struct follower *f, deltafs_dir *d, const char *path,
                         const struct value_index_ranks *ranks, const deltafs_options *of, struct error *e)
{
    struct value_index_state state = {.options = of};
    struct bytes schema = {{0}, 0};
    deltafs_options *o = NULL;
    int status = follower_bind(all, f, e);

    if (status == DELTAFS_OK)
        status = follower_carry(all, f, &schema, e);
    if (status == DELTAFS_OK)
        status = buffer_reserve(&f->values, AT_ONCE * (sizeof(uint64_t) + f->carried_size), "an index", e);
    if (status == DELTAFS_OK && ranks->group->rank == 0) {
        status = follower_options(of, (const char *)schema.buffer.bytes, &o, e);
        if (status == DELTAFS_OK)
            status = follower_look(path, f, (const char *)schema.buffer.bytes, &state, e);
    }
    if (status == DELTAFS_ERR_INVALID)
        error_set(e, status, "option index_by: '%s': %s", f->request.name, e->text);
    e->status = status;
    status = collective_agree(ranks->group, e);
    if (status == DELTAFS_OK)
        status = value_index_agree(ranks->group, &state, e);
    if (status == DELTAFS_OK)
        status = value_index_open(ranks, path, &f->request, &state, o, &f->index, e);
    const struct deltafs_attribute column = {.struct_size = sizeof column,
                                             .name = f->request.name,
                                             .type = DELTAFS_ATTRIBUTE_EXPRESSION,
                                             .value = f->request.value};
    if (status == DELTAFS_OK && !state.has_column)
        status = error_of_call(deltafs_attribute_set(d, &column), e);
    deltafs_options_destroy(o);
    buffer_fini(&schema.buffer);
    return status;
}

/* Take the option apart. */
static int followers_take(struct followers *all, const char *text, struct error *e)
{
    int status = DELTAFS_OK;

    for (size_t n; *text && status == DELTAFS_OK; text += n + (text[n] == ';')) {
        n = strcspn(text, ";");
        status = memory_extend(NULL, &all->each, all->count, &all->capacity, sizeof *all->each, "an index", e);
        if (status != DELTAFS_OK)
            break;
        struct follower *f = &all->each[all->count++];
        *f = (struct follower){.carries = 0};
        status = value_request_take(&f->request, text, n, e);
    }
    return status;
}

int deltafs_private_value_index_follow(deltafs_dir *d, const char *path, const char *text,
                                       const struct value_index_ranks *ranks, const deltafs_options *o, struct error *e)
{
    struct followers *all = calloc(1, sizeof *all);
    int status = all && text ? DELTAFS_OK : error_no_memory(e, sizeof *all, "an index");

    if (status == DELTAFS_OK && *dir_schema(d) == '\0')
        status = error_set(e, DELTAFS_ERR_INVALID, "%s: option index_by: there is no schema", path);
    if (status == DELTAFS_OK && dir_keys(d) == KEYS_BYTES)
        status = error_set(e, DELTAFS_ERR_INVALID, "%s: option index_by: keys are bytes; it needs numbers", path);
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_schema_parse(dir_schema(d), &all->schema), e);
    if (status == DELTAFS_OK)
        status = followers_take(all, text, e);
    e->status = status;
    status = collective_agree(ranks->group, e);
    for (size_t i = 0; status == DELTAFS_OK && i < all->count; i++)
        status = follower_open(all, &all->each[i], d, path, ranks, o, e);
    if (status == DELTAFS_OK) {
        dir_follow(d, &calls, all);
        return status;
    }
    if (all)
        followers_close(all, &(struct error){.status = DELTAFS_OK});
    return status;
}

int deltafs_private_value_index_share(const deltafs_options *o, deltafs_options **out, struct error *e)
{
    const char *text = deltafs_private_options_text(o, OPTION_INDEX_BY);
    uint64_t memory = deltafs_private_options_number(o, OPTION_MEMORY), count = *text != '\0';
    char left[32];

    *out = NULL;
    if (count == 0)
        return DELTAFS_OK;
    if (deltafs_private_options_number(o, OPTION_COMMIT) == COMMIT_ASYNC)
        return error_set(e, DELTAFS_ERR_OPTION, "option index_by: needs commit=wait");
    if (memory == OPTION_AUTO)
        return DELTAFS_OK;
    for (const char *p = text; (p = strchr(p, ';')) != NULL && p[1] != '\0'; p++)
        count++;
    if (memory / SHARE < MEMORY_MIN || count >= SHARE)
        return error_set(e, DELTAFS_ERR_OPTION,
                         "option index_by: each index has a quarter of the option memory, and at least 8M; give more "
                         "memory, or auto, or fewer indexes");
    int status = error_of_call(deltafs_options_create(out), e);
    if (status == DELTAFS_OK)
        status = deltafs_private_options_copy(*out, o, e);
    snprintf(left, sizeof left, "%llu", (unsigned long long)(memory - count * (memory / SHARE)));
    if (status == DELTAFS_OK)
        status = error_of_call(deltafs_options_set(*out, "memory", left), e);
    if (status != DELTAFS_OK) {
        deltafs_options_destroy(*out);
        *out = NULL;
    }
    return status;
}
