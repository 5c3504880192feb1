/* deltafs export: trajectories or whole epochs as a file for other programs. */
#include <stdlib.h>
#include <string.h>
#include "tools/cmd.h"
#include "tools/copy.h"
#include "tools/export.h"
#include "tools/target.h"

static const struct export_format *const formats[] = {&export_csv, &export_jsonl, &export_npy, &export_npz,
                                                      &export_parquet};

#define FORMATS (sizeof formats / sizeof formats[0])

struct values {
    const char *keys_file, *fields, *to;
    struct command_range epochs;
    const struct export_format *format;
    int is_hex, is_forced;
};

static const char *export_parse_format(const char *text, void *out)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (strcmp(text, formats[i]->name) == 0) {
            *(const struct export_format **)out = formats[i];
            return NULL;
        }
    return "is no format; give csv, jsonl, npy, npz or parquet";
}

/* ---- The command ---- */

/* The directory's properties, and how many rows are expected if no keys are given. */
static int export_look(const struct values *v, struct export *x)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct deltafs_epoch_stat e = {.struct_size = sizeof e};
    int status = deltafs_stat(x->dir, &stat);

    x->value_size = status == DELTAFS_OK && stat.value_size > 0 ? (uint32_t)stat.value_size : 0;
    x->has_bytes_keys = status == DELTAFS_OK && strcmp(stat.keys, "bytes") == 0;
    for (uint64_t i = 0; i < stat.epochs && status == DELTAFS_OK; i++) {
        status = deltafs_epoch_stat(x->dir, i, &e);
        if (!v->epochs.is_given || (e.label >= v->epochs.range.first && e.label <= v->epochs.range.last))
            x->expected += e.records;
    }
    return text_of_call(status);
}

static int export_collect_keys(const struct values *v, const struct command_call *c, struct key_list *keys)
{
    int code = key_list_check_hex(keys);

    for (int i = 1; i < c->count && code == EXIT_OK; i++)
        code = key_list_add(keys, c->operand[i], strlen(c->operand[i]));
    return code == EXIT_OK && v->keys_file ? key_list_read(keys, v->keys_file) : code;
}

/* Write the file; the rest is known to be right. */
static int export_make(const struct values *v, struct export *x, struct export_source *s)
{
    struct export_file file = {.is_forced = v->is_forced};
    int code = export_file_make(&file, v->to, x);

    if (code != EXIT_OK)
        return code;
    code = export_read(s, x, v->format);
    if (code == EXIT_OK && s->rows == 0 && !s->is_not_found)
        code = text_fail(s->is_damaged ? EXIT_TROUBLE : EXIT_NOT_FOUND, "export: no records");
    int finished = export_file_finish(&file, x, code == EXIT_OK && s->rows > 0);
    code = code == EXIT_OK ? finished : code;
    if (code == EXIT_OK && s->is_damaged)
        return text_fail(EXIT_TROUBLE, "export: %s has the rows that can be read, but not all", x->name);
    return code == EXIT_OK && s->is_not_found ? EXIT_NOT_FOUND : code;
}

static int export_open_and_make(const struct values *v, const struct command_call *c)
{
    struct key_list keys = {.command = "export", .is_hex = v->is_hex};
    struct export x = {.has_keys = c->count > 1 || v->keys_file};
    struct export_source s = {
        .fields = v->fields, .range = v->epochs.is_given ? &v->epochs.range : NULL, .keys = x.has_keys ? &keys : NULL};
    int code = target_open_records(text_path(c->operand[0]), &x.dir);

    if (code == EXIT_OK)
        code = export_look(v, &x);
    keys.is_bytes = x.has_bytes_keys;
    if (code == EXIT_OK)
        code = export_collect_keys(v, c, &keys);
    if (code == EXIT_OK)
        code = export_make(v, &x, &s);
    export_columns_free(&x);
    key_list_fini(&keys);
    deltafs_close(x.dir);
    copy_release_signals();
    return code;
}

static int export_run(const struct command_call *c)
{
    const struct values *v = c->values;

    if (!v->format || !v->to)
        return text_fail(EXIT_USAGE, "export: --%s is missing", v->format ? "output" : "format");
    if (strcmp(v->to, "-") == 0 && !v->format->is_text)
        return text_fail(EXIT_USAGE, "export: %s cannot be written to standard output; give a file", v->format->name);
    return export_open_and_make(v, c);
}

static const struct command_option options[] = {
    {"format", 0, "F", "csv, jsonl (JSON, an object in each line), npy or npz (NumPy), parquet", export_parse_format,
     offsetof(struct values, format)},
    {"output", 'o', "FILE", "the file to be made; of csv and jsonl, - is standard output", cmd_parse_text,
     offsetof(struct values, to)},
    {"force", 'f', NULL, "replace an existing file", NULL, offsetof(struct values, is_forced)},
    {"keys", 0, "FILE",
     "read more keys from a file (- is standard input): separated by blanks, or one\n"
     "                         key of bytes on each line",
     cmd_parse_text, offsetof(struct values, keys_file)},
    {"hex", 0, NULL, "take keys of bytes in hexadecimal, separated by blanks", NULL, offsetof(struct values, is_hex)},
    {"epochs", 0, "A[:B]", "only epochs with labels from A to B; A: and :B have one end", cmd_parse_range,
     offsetof(struct values, epochs)},
    {"fields", 0, "F,...", "only these columns, also computed ones, and attributes that are one number", cmd_parse_text,
     offsetof(struct values, fields)},
    {0}};

const struct command cmd_export = {.name = "export",
                                   .usage = "DIR [KEY...] --format F -o FILE [OPTION...]",
                                   .text = "Write trajectories to a file, key by key, or, without keys, whole epochs.",
                                   .missing = "DIR is missing",
                                   .least = 1,
                                   .size = sizeof(struct values),
                                   .option = options,
                                   .run = export_run};
