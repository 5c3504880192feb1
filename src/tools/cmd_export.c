/* deltafs export: trajectories or whole epochs as a file for other programs. */
#include <string.h>
#include "tools/export.h"

static const struct export_format *const formats[] = {&export_csv,     &export_jsonl,  &export_npy,    &export_npz,
                                                      &export_openpmd, &export_vtkhdf, &export_parquet};

#define FORMATS      (sizeof formats / sizeof formats[0])
#define FORMAT_NAMES "csv, jsonl, npy, npz, openpmd, vtkhdf or parquet"

static const char *export_parse_format(const char *text, void *out)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (strcmp(text, formats[i]->name) == 0) {
            *(const struct export_format **)out = formats[i];
            return NULL;
        }
    return "is no format; give " FORMAT_NAMES;
}

/* The format that a file's ending names, or NULL. */
static const struct export_format *export_format_of(const char *to)
{
    const char *dot = to ? strrchr(to, '.') : NULL;
    const struct export_format *format = NULL;

    if (dot)
        export_parse_format(dot + 1, &format);
    return format;
}

static int export_no_format(const char *to)
{
    const char *dot = to ? strrchr(to, '.') : NULL;

    if (dot && (strcmp(dot, ".h5") == 0 || strcmp(dot, ".hdf5") == 0))
        return text_fail(EXIT_USAGE, "export: --format is missing: %s may be openpmd or vtkhdf", to);
    return text_fail(EXIT_USAGE, "export: --format is missing; give " FORMAT_NAMES);
}

static int export_run(const struct command_call *c)
{
    struct export_request *r = c->values;
    struct export x = {.command = "export"};
    struct key_list keys = {0};

    if (!r->format)
        r->format = export_format_of(r->to);
    if (!r->format)
        return export_no_format(r->to);
    if (!r->to)
        return text_fail(EXIT_USAGE, "export: --output is missing");
    if (strcmp(r->to, "-") == 0 && !r->format->is_text)
        return text_fail(EXIT_USAGE, "export: %s cannot be written to standard output; give a file", r->format->name);
    int code = export_open(&x, r, c, &keys);
    if (code == EXIT_OK)
        code = export_make(&x, r, &keys);
    export_close(&x, &keys);
    return code;
}

static const struct command_option options[] = {
    {"format", 0, "F",
     "if the file's ending does not say it: csv, jsonl (JSON, an object in each line), npy or npz (NumPy), openpmd,\n"
     "                         vtkhdf (ParaView), parquet",
     export_parse_format, offsetof(struct export_request, format)},
    {"output", 'o', "FILE", "the file to be made; of csv and jsonl, - is standard output", cmd_parse_text,
     offsetof(struct export_request, to)},
    {"force", 'f', NULL, "replace an existing file", NULL, offsetof(struct export_request, is_forced)},
    {"keys", 0, "FILE",
     "read more keys from a file (- is standard input): separated by blanks, or one\n"
     "                         key of bytes on each line",
     cmd_parse_text, offsetof(struct export_request, keys_file)},
    {"hex", 0, NULL, "take keys of bytes in hexadecimal, separated by blanks", NULL,
     offsetof(struct export_request, is_hex)},
    {"epochs", 0, "A[:B]", "only epochs with labels from A to B; A: and :B have one end", cmd_parse_range,
     offsetof(struct export_request, epochs)},
    {"fields", 0, "F,...", "only these columns, also computed ones, and attributes that are one number", cmd_parse_text,
     offsetof(struct export_request, fields)},
    {0}};

const struct command cmd_export = {.name = "export",
                                   .usage = "DIR [KEY...] -o FILE [--format F] [OPTION...]",
                                   .text = "Write trajectories to a file, key by key, or, without keys, whole epochs.",
                                   .missing = "DIR is missing",
                                   .least = 1,
                                   .size = sizeof(struct export_request),
                                   .option = options,
                                   .run = export_run};
