/* The rows of an export, by deltafs_select_*. Whole epochs are passed on as they are read. Trajectories are collected
 * for as many keys at a time as fit into BATCH_BYTES, and sorted: by key as given, then by epoch. How many that are is
 * estimated; if they turn out to have more bytes, they are read again, half as many at a time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/caret.h"
#include "tools/copy.h"
#include "tools/export.h"
#include "tools/progress.h"

#define BATCH_BYTES   ((uint64_t)128 << 20) /* of rows that are collected */
#define BATCH_MIN     64                    /* keys to begin with, at least */
#define BYTES_AT_ONCE ((size_t)1 << 20)
#define ROWS_AT_ONCE  4096 /* given to a format */
#define MISSING_NAMED 8    /* keys */
#define SIZE_ASSUMED  64   /* bytes of a value, if they can have any size */

/* A key that was given, for searching by the key. */
struct wanted {
    uint64_t number;
    const char *bytes; /* NULL if keys are numbers */
    size_t size, at;   /* `at`: which of all, as given */
};

/* A row that is collected. */
struct kept {
    struct deltafs_record record;
    size_t at, order; /* of its key; of its arrival */
};

struct values {
    struct values *next;
    uint8_t bytes[];
};

struct reading {
    struct export_source *source;
    struct export *x;
    const struct export_format *format;
    struct wanted *wanted; /* sorted, each key once */
    size_t wanted_count;
    uint8_t *found; /* by `at` */
    struct progress bar;
    uint64_t label; /* of the last row */
    int has_begun;
    /* Of the keys first to end - 1. */
    size_t first, end, most; /* at most so many */
    struct kept *kept;
    size_t kept_count, kept_capacity;
    uint64_t kept_bytes;
    struct values *values;
};

/* ---- The library's answers ---- */

static int read_fail(const struct reading *r, int status)
{
    const char *message = deltafs_errmsg(NULL);
    int code = text_fail(text_exit_code(status), "%s: %s", r->x->command, message);

    caret_show("fields", r->source->fields, message);
    return code;
}

/* Begin with the first rows. */
static int read_begin(struct reading *r)
{
    r->x->state = calloc(1, r->format->state_size);
    if (!r->x->state)
        return text_fail(EXIT_TROUBLE, "%s: no memory for %s", r->x->command, r->format->name);
    r->has_begun = 1;
    return r->format->begin(r->x);
}

/* The next rows; *count is 0 at the end. */
static int read_next(struct reading *r, deltafs_select *select, const struct deltafs_record **row, size_t *count)
{
    int status = deltafs_select_next(select, row, count), code;

    if (status == DELTAFS_OK)
        return copy_is_interrupted() ? EXIT_TROUBLE : EXIT_OK;
    *count = 0;
    code = read_fail(r, status);
    if (status != DELTAFS_ERR_DAMAGED && status != DELTAFS_ERR_IO)
        return code;
    r->source->is_damaged = 1;
    return EXIT_OK;
}

static int read_open(struct reading *r, deltafs_select **out)
{
    const struct key_list *k = r->source->keys;
    struct deltafs_key_list keys = {.count = r->end - r->first};
    struct deltafs_select_options o = {
        .struct_size = sizeof o, .fields = r->source->fields, .range = r->source->range, .keys = k ? &keys : NULL};

    if (k && keys.count > 0) {
        keys.number = k->number + r->first;
        keys.bytes = (const void *const *)k->bytes + r->first;
        keys.size = k->size + r->first;
    }
    int status = deltafs_select_open(r->x->dir, &o, out);
    return status == DELTAFS_OK ? EXIT_OK : read_fail(r, status);
}

/* ---- Keys ---- */

static int wanted_compare(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    size_t size = x->size < y->size ? x->size : y->size;
    int order = x->bytes ? memcmp(x->bytes, y->bytes, size) : (x->number > y->number) - (x->number < y->number);

    return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

static int wanted_compare_first(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;
    int order = wanted_compare(a, b);

    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

/* A key that is given more than once counts where it comes first. */
static int read_sort_keys(struct reading *r)
{
    const struct key_list *k = r->source->keys;
    size_t n = 0;

    r->wanted = calloc(k->count + 1, sizeof *r->wanted);
    r->found = calloc(k->count + 1, 1);
    if (!r->wanted || !r->found)
        return text_fail(EXIT_TROUBLE, "%s: no memory for %zu keys", r->x->command, k->count);
    for (size_t i = 0; i < k->count; i++)
        r->wanted[i] = (struct wanted){k->number[i], k->bytes[i], k->bytes[i] ? k->size[i] : 0, i};
    qsort(r->wanted, k->count, sizeof *r->wanted, wanted_compare_first);
    for (size_t i = 0; i < k->count; i++) {
        if (n > 0 && wanted_compare(&r->wanted[i], &r->wanted[n - 1]) == 0)
            r->found[r->wanted[i].at] = 1;
        else
            r->wanted[n++] = r->wanted[i];
    }
    r->wanted_count = n;
    return EXIT_OK;
}

/* Which of the given keys a row has. */
static size_t read_key_of(struct reading *r, const struct deltafs_record *row)
{
    const struct wanted key = {.number = row->key, .bytes = row->key_bytes, .size = row->key_bytes ? row->key_size : 0};
    const struct wanted *w = bsearch(&key, r->wanted, r->wanted_count, sizeof *r->wanted, wanted_compare);

    r->found[w->at] = 1;
    return w->at;
}

static void read_name_missing(const struct reading *r, size_t i)
{
    const struct key_list *k = r->source->keys;
    const char *where = r->source->range ? " in these epochs" : "";
    char key[4 * KEY_MAX + 1];

    if (!k->is_bytes) {
        text_fail(0, "%s: key %" PRIu64 " not found%s", r->x->command, k->number[i], where);
        return;
    }
    text_show(k->bytes[i], k->size[i], key, sizeof key);
    text_fail(0, "%s: key '%s' not found%s", r->x->command, key, where);
}

/* Name the first few keys that are not found, and how many more. */
static void read_report_missing(struct reading *r)
{
    size_t missing = 0;

    for (size_t i = 0; i < r->source->keys->count; i++)
        if (!r->found[i] && missing++ < MISSING_NAMED)
            read_name_missing(r, i);
    if (missing > MISSING_NAMED)
        text_fail(0, "%s: %zu more key%s not found", r->x->command, missing - MISSING_NAMED,
                  text_plural(missing - MISSING_NAMED));
    r->source->is_not_found = missing > 0;
}

/* ---- By epoch ---- */

static int read_give(struct reading *r, const struct deltafs_record *row, size_t count)
{
    int code = r->has_begun ? EXIT_OK : read_begin(r);

    if (code == EXIT_OK)
        code = r->format->rows(r->x, row, count);
    r->source->rows += count;
    return code;
}

static int read_by_epoch(struct reading *r, deltafs_select *select)
{
    const struct deltafs_record *row;
    size_t count = 1;
    int code = EXIT_OK;

    while (code == EXIT_OK && (code = read_next(r, select, &row, &count)) == EXIT_OK && count > 0) {
        for (size_t i = 0; i < count && r->source->keys; i++) {
            read_key_of(r, &row[i]);
            progress_add(&r->bar, row[i].label != r->label);
            r->label = row[i].label;
        }
        if (!r->source->keys)
            progress_add(&r->bar, count);
        code = read_give(r, row, count);
    }
    return code;
}

/* ---- By key ---- */

static int kept_compare(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    int order = (x->at > y->at) - (x->at < y->at);

    if (order == 0)
        order = (x->record.label > y->record.label) - (x->record.label < y->record.label);
    return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

static int read_grow(struct reading *r, size_t more)
{
    size_t capacity = r->kept_capacity > 0 ? r->kept_capacity : ROWS_AT_ONCE;

    while (capacity < r->kept_count + more)
        capacity *= 2;
    if (capacity == r->kept_capacity)
        return EXIT_OK;
    struct kept *kept = realloc(r->kept, capacity * sizeof *kept);
    if (!kept)
        return text_fail(EXIT_TROUBLE, "%s: no memory for %zu rows", r->x->command, capacity);
    r->kept = kept;
    r->kept_capacity = capacity;
    return EXIT_OK;
}

static int read_keep(struct reading *r, const struct deltafs_record *row, size_t count)
{
    size_t size = 0;
    int code = read_grow(r, count);

    for (size_t i = 0; i < count; i++)
        size += row[i].size;
    struct values *values = code == EXIT_OK ? malloc(sizeof *values + size) : NULL;
    if (!values)
        return code != EXIT_OK ? code
                               : text_fail(EXIT_TROUBLE, "%s: no memory for %zu bytes of values", r->x->command, size);
    values->next = r->values;
    r->values = values;
    r->kept_bytes += size + count * sizeof *r->kept;
    uint8_t *to = values->bytes;
    for (size_t i = 0; i < count; i++) {
        struct kept kept = {.record = row[i], .at = read_key_of(r, &row[i]), .order = r->kept_count};
        /* Not if the key was in a batch before. */
        if (kept.at < r->first)
            continue;
        kept.record.key_bytes = row[i].key_bytes ? r->source->keys->bytes[kept.at] : NULL;
        kept.record.value = row[i].size > 0 ? memcpy(to, row[i].value, row[i].size) : to;
        to += row[i].size;
        r->kept[r->kept_count++] = kept;
    }
    return EXIT_OK;
}

/* Show that the keys before this one are done. */
static void read_add_keys(struct reading *r, size_t at)
{
    progress_add(&r->bar, at - r->bar.done);
}

static int read_give_kept(struct reading *r)
{
    struct deltafs_record row[ROWS_AT_ONCE];
    int code = EXIT_OK;

    if (r->kept_count > 0)
        qsort(r->kept, r->kept_count, sizeof *r->kept, kept_compare);
    for (size_t at = 0, n; at < r->kept_count && code == EXIT_OK; at += n) {
        size_t size = 0;
        for (n = 0; n < ROWS_AT_ONCE && size < BYTES_AT_ONCE && at + n < r->kept_count; n++) {
            row[n] = r->kept[at + n].record;
            size += row[n].size;
        }
        code = read_give(r, row, n);
        read_add_keys(r, r->kept[at + n - 1].at);
    }
    return code;
}

static void read_drop_kept(struct reading *r)
{
    for (struct values *v = r->values, *next; v; v = next) {
        next = v->next;
        free(v);
    }
    r->values = NULL;
    r->kept_count = 0;
    r->kept_bytes = 0;
}

static int read_is_full(const struct reading *r)
{
    return r->kept_bytes > BATCH_BYTES && r->end - r->first > 1;
}

static int read_batch(struct reading *r, deltafs_select *select)
{
    const struct deltafs_record *row;
    size_t count = 1;
    int code = EXIT_OK;

    while (code == EXIT_OK && !read_is_full(r) && (code = read_next(r, select, &row, &count)) == EXIT_OK && count > 0)
        code = read_keep(r, row, count);
    if (read_is_full(r)) {
        r->most = (r->end - r->first) / 2;
        r->end = r->first;
    } else if (code == EXIT_OK) {
        code = read_give_kept(r);
    }
    read_drop_kept(r);
    read_add_keys(r, r->end);
    return code;
}

/* ---- All ---- */

/* Epochs in the range. */
static uint64_t read_epochs(const struct reading *r)
{
    const struct deltafs_range *range = r->source->range;
    struct deltafs_epoch_stat e = {.struct_size = sizeof e};
    uint64_t n = 0;

    for (uint64_t i = 0; deltafs_epoch_stat(r->x->dir, i, &e) == DELTAFS_OK; i++)
        n += !range || (e.label >= range->first && e.label <= range->last);
    return n;
}

/* How many keys are read at a time. */
static size_t read_batch_keys(const struct reading *r)
{
    uint64_t epochs = read_epochs(r), each = sizeof(struct kept), keys;

    if (r->format->is_by_epoch)
        return r->source->keys->count;
    each += r->x->value_size > 0 ? r->x->value_size : SIZE_ASSUMED;
    keys = BATCH_BYTES / each / (epochs > 0 ? epochs : 1);
    return keys > BATCH_MIN ? (size_t)keys : BATCH_MIN;
}

static int read_part(struct reading *r)
{
    deltafs_select *select;
    int code = read_open(r, &select);

    if (code != EXIT_OK)
        return code;
    if (!r->x->column)
        code = export_columns_make(r->x, deltafs_select_schema(select));
    if (code == EXIT_OK)
        code = r->source->keys && !r->format->is_by_epoch ? read_batch(r, select) : read_by_epoch(r, select);
    deltafs_select_close(select);
    return code;
}

static int read_parts(struct reading *r)
{
    size_t all = r->source->keys ? r->source->keys->count : 0;
    int code;

    r->most = r->source->keys ? read_batch_keys(r) : 0;
    do {
        r->end = all - r->first < r->most ? all : r->first + r->most;
        code = read_part(r);
        r->first = r->end;
    } while (code == EXIT_OK && r->first < all);
    return code;
}

int export_read(struct export_source *s, struct export *x, const struct export_format *format)
{
    struct reading r = {.source = s, .x = x, .format = format, .label = UINT64_MAX};
    uint64_t total = !s->keys ? x->expected : format->is_by_epoch ? read_epochs(&r) : s->keys->count;
    int code = s->keys ? read_sort_keys(&r) : EXIT_OK;

    progress_begin(&r.bar, total, x->path || !isatty(STDOUT_FILENO));
    if (code == EXIT_OK)
        code = read_parts(&r);
    if (code == EXIT_OK && r.has_begun)
        code = format->end(x);
    progress_end(&r.bar);
    if (code == EXIT_OK && s->keys && !s->is_damaged)
        read_report_missing(&r);
    if (r.has_begun && format->release)
        format->release(x);
    free(x->state);
    free(r.kept);
    free(r.wanted);
    free(r.found);
    return code;
}
