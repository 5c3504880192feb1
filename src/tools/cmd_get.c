/* deltafs get: the records of some keys, or the rows of files whose keys are indexed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "tools/caret.h"
#include "tools/cmd.h"
#include "tools/key_list.h"
#include "tools/print.h"
#include "tools/progress.h"
#include "tools/target.h"

#define MISSING_NAMED 8 /* epochs that are missing from the answer */

struct get {
    enum print_format format;
    struct command_range epochs;
    int is_stats;
    const char *keys_file, *fields;
    struct key_list keys;
    uint64_t *missing; /* labels of epochs that could not be read for some key */
    size_t missing_count;
};

/* ---- Answers ---- */

static int get_not_found(const struct get *g, size_t i)
{
    const char *where = g->epochs.is_given ? " in these epochs" : "";
    char key[4 * KEY_MAX + 1];

    if (!g->keys.is_bytes)
        return text_fail(EXIT_NOT_FOUND, "get: key %" PRIu64 " not found%s", g->keys.number[i], where);
    text_show(g->keys.bytes[i], g->keys.size[i], key, sizeof key);
    return text_fail(EXIT_NOT_FOUND, "get: key '%s' not found%s", key, where);
}

static void get_add_missing(struct get *g, const uint64_t *label, size_t n)
{
    uint64_t *all = realloc(g->missing, (g->missing_count + n + 1) * sizeof *all);

    if (!all)
        return; /* the damage itself is reported */
    for (size_t i = 0; i < n; i++)
        all[g->missing_count++] = label[i];
    g->missing = all;
}

static int label_compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Name the epochs that are missing from the answer: the first few labels, and how many more. */
static void get_print_missing(const struct get *g)
{
    char text[MISSING_NAMED * 24] = "";
    size_t used = 0, n = 0;

    if (g->missing_count == 0)
        return;
    qsort(g->missing, g->missing_count, sizeof *g->missing, label_compare);
    for (size_t i = 0; i < g->missing_count; i++) {
        if (i > 0 && g->missing[i] == g->missing[i - 1])
            continue;
        if (n++ < MISSING_NAMED)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64, n > 1 ? ", " : "", g->missing[i]);
    }
    if (n > MISSING_NAMED)
        text_fail(0, "missing from the answer: epochs %s and %zu more; verify lists the damage", text,
                  n - MISSING_NAMED);
    else
        text_fail(0, "missing from the answer: epoch%s %s; verify lists the damage", text_plural(n), text);
}

static int get_print_row(const struct deltafs_row *row, void *arg)
{
    const struct deltafs_record record = {.key = row->key, .label = row->label, .value = row->value, .size = row->size};

    if (print_schema(arg, row->schema) != DELTAFS_OK)
        return 1;
    print_record(arg, &record);
    return 0;
}

/* Whether a table of the index has a column of this name. */
static int index_has_field(deltafs_fileindex *index, const char *name, size_t size)
{
    struct deltafs_table_stat table = {.struct_size = sizeof table};
    const char *before = NULL;

    for (size_t i = 0; deltafs_fileindex_table(index, i, &table) == DELTAFS_OK; i++) {
        if ((!before || strcmp(before, table.schema) != 0) && print_has_field(table.schema, name, size))
            return 1;
        before = table.schema;
    }
    return 0;
}

static int get_check_fields(const struct get *g, deltafs_fileindex *index, const char *schema)
{
    char message[512];

    for (const char *name = g->fields; name; name = strchr(name, ',') ? strchr(name, ',') + 1 : NULL) {
        size_t size = strcspn(name, ",");
        if (index_has_field(index, name, size))
            continue;
        snprintf(message, sizeof message,
                 "fields: offset %zu: no indexed file has a column '%.*s'; the first file has these: %s",
                 (size_t)(name - g->fields), size < 100 ? (int)size : 100, name, schema);
        text_fail(EXIT_USAGE, "get: %s", message);
        caret_show("fields", g->fields, message);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

/* The rows of files whose keys are indexed. */
static int get_rows(struct get *g, deltafs_fileindex *index, struct deltafs_io_stat *io)
{
    const struct deltafs_range *range = g->epochs.is_given ? &g->epochs.range : NULL;
    struct deltafs_table_stat table = {.struct_size = sizeof table};
    struct printer p;
    const uint64_t *missing;
    const char *schema = deltafs_fileindex_table(index, 0, &table) == DELTAFS_OK ? table.schema : "";
    size_t n;
    int code = get_check_fields(g, index, schema), has_failed = 0;

    if (code != EXIT_OK)
        return code;
    if (print_begin(&p, g->format, schema, g->fields) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    for (size_t i = 0; i < g->keys.count && !has_failed; i++) {
        int status = deltafs_fileindex_get(index, g->keys.number[i], range, get_print_row, &p, &has_failed);
        if (status == DELTAFS_ERR_NOT_FOUND) {
            int not_found = get_not_found(g, i);
            code = code == EXIT_OK ? not_found : code;
        } else if (status != DELTAFS_OK || has_failed) {
            code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
            if (deltafs_fileindex_missing(index, &missing, &n) == DELTAFS_OK)
                get_add_missing(g, missing, n);
        }
    }
    print_end(&p);
    deltafs_fileindex_io_stat(index, io);
    return code;
}

static int get_print(struct get *g, deltafs_dir *d, const char *schema, deltafs_records **found, int code)
{
    struct printer p;
    int status = print_begin_records(&p, g->format, d, schema, g->fields);

    if (status != DELTAFS_OK)
        return print_begin_failed("get", g->fields, status);
    for (size_t i = 0; i < g->keys.count; i++)
        for (size_t k = 0; found[i] && k < found[i]->count; k++)
            print_record(&p, &found[i]->record[k]);
    if (print_end(&p) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    for (size_t i = 0; i < g->keys.count && code <= EXIT_NOT_FOUND; i++)
        if (!found[i])
            get_not_found(g, i);
    return code;
}

static int get_records(struct get *g, deltafs_dir *d, const char *schema, struct deltafs_io_stat *io)
{
    const struct deltafs_range *range = g->epochs.is_given ? &g->epochs.range : NULL;
    deltafs_records **found = calloc(g->keys.count + 1, sizeof *found);
    int status = DELTAFS_OK;

    if (!found)
        return text_fail(EXIT_TROUBLE, "get: no memory for %zu keys", g->keys.count);
    if (g->keys.count > 0)
        status = g->keys.is_bytes ? deltafs_get_many_bytes(d, g->keys.count, (const void *const *)g->keys.bytes,
                                                           g->keys.size, range, found)
                                  : deltafs_get_many(d, g->keys.count, g->keys.number, range, found);
    int code = text_exit_code(status);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND)
        text_fail(code, "%s", deltafs_errmsg(d));
    deltafs_io_stat(d, io);
    code = get_print(g, d, schema, found, code);
    for (size_t i = 0; i < g->keys.count; i++) {
        if (found[i])
            get_add_missing(g, found[i]->missing, found[i]->missing_count);
        deltafs_records_destroy(found[i]);
    }
    free(found);
    return code;
}

/* ---- The command ---- */

/* All keys, once it is known what the directory's are. */
static int get_collect_keys(struct get *g, char **argument, int n)
{
    int code = key_list_check_hex(&g->keys);

    for (int i = 0; i < n && code == EXIT_OK; i++)
        code = key_list_add(&g->keys, argument[i], strlen(argument[i]));
    return code == EXIT_OK && g->keys_file ? key_list_read(&g->keys, g->keys_file) : code;
}

static int get_all(struct get *g, const struct command_call *c, struct deltafs_io_stat *io)
{
    const char *path = text_path(c->operand[0]);
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    deltafs_fileindex *index;
    deltafs_dir *d;
    int code = target_open_rows(path, &index, &d);

    if (d && deltafs_stat(d, &stat) != DELTAFS_OK)
        code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(d));
    g->keys.is_bytes = d && code == EXIT_OK && strcmp(stat.keys, "bytes") == 0;
    if (code == EXIT_OK)
        code = get_collect_keys(g, c->operand + 1, c->count - 1);
    if (code == EXIT_OK)
        code = index ? get_rows(g, index, io) : get_records(g, d, stat.schema, io);
    deltafs_fileindex_close(index);
    deltafs_close(d);
    return code;
}

static int get_run(const struct command_call *c)
{
    struct get *g = c->values;
    struct deltafs_io_stat io = {.struct_size = sizeof io};
    double start = progress_now();

    g->keys.command = "get";
    if (c->count == 1 && !g->keys_file)
        return text_fail(EXIT_USAGE, "get: KEY is missing");
    int code = print_check_fields("get", g->format, g->fields);
    if (code != EXIT_OK)
        return code;
    code = get_all(g, c, &io);
    get_print_missing(g);
    if (g->is_stats)
        fprintf(stderr, "stats: reads=%" PRIu64 " bytes_read=%" PRIu64 " seconds=%.6f\n", io.reads, io.bytes_read,
                progress_now() - start);
    key_list_fini(&g->keys);
    free(g->missing);
    return code;
}

static const struct command_option options[] = {
    {"keys", 0, "FILE",
     "read more keys from a file (- is standard input): separated by blanks, or one\n"
     "                         key of bytes on each line",
     cmd_parse_text, offsetof(struct get, keys_file)},
    {"hex", 0, NULL, "take keys of bytes in hexadecimal, separated by blanks", NULL, offsetof(struct get, keys.is_hex)},
    {"epochs", 0, "A[:B]", "only epochs with labels from A to B; A: and :B have one end", cmd_parse_range,
     offsetof(struct get, epochs)},
    {"fields", 0, "F,...", "only these columns, also computed ones, and attributes that are one number", cmd_parse_text,
     offsetof(struct get, fields)},
    {"format", 0, "F", "a table for people (default), csv, json, or the raw bytes of the values", print_parse_format,
     offsetof(struct get, format)},
    {"stats", 0, NULL, "print the number of reads on standard error", NULL, offsetof(struct get, is_stats)},
    {0}};

const struct command cmd_get = {.name = "get",
                                .usage = "DIR KEY... [OPTION...]",
                                .text = "Print the records of keys, epoch by epoch.",
                                .missing = "DIR and KEY are missing",
                                .least = 1,
                                .size = sizeof(struct get),
                                .option = options,
                                .run = get_run};
