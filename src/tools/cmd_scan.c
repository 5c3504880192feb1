/* deltafs scan: all records. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include "tools/cmd.h"
#include "tools/print.h"
#include "tools/progress.h"
#include "tools/target.h"

struct scan {
    struct command_range epochs;
    const char *keys; /* a range of them */
    enum print_format format;
    const char *fields;
    struct command_number partition;
};

struct printing {
    struct printer p;
    struct progress bar; /* shown if the records go to a file or a pipe */
};

static int scan_record(const struct deltafs_record *record, void *arg)
{
    struct printing *s = arg;

    int status = print_copied(&s->p, record);
    progress_add(&s->bar, 1);
    return status != DELTAFS_OK || ferror(stdout); /* no use to go on */
}

/* Print a range of keys that are texts: A, A:B, A: or :B. */
static int scan_names(const char *text, deltafs_dir *d, const struct deltafs_range *epochs, struct printing *out)
{
    const char *colon = strchr(text, ':'), *last = colon ? colon + 1 : text;
    size_t n = colon ? (size_t)(colon - text) : strlen(text);

    return deltafs_scan_range_bytes(d, n > 0 ? text : NULL, n, *last ? last : NULL, strlen(last), epochs, scan_record,
                                    out, NULL);
}

/* Print what is wanted of an open directory; `k`: the range of keys, if they are numbers. */
static int scan_records(const struct scan *s, const struct command_range *k, deltafs_dir *d, struct printing *out)
{
    const struct deltafs_range *range = s->epochs.is_given ? &s->epochs.range : NULL;

    if (k->is_given)
        return deltafs_scan_range(d, k->range.first, k->range.last, range, scan_record, out, NULL);
    if (s->keys)
        return scan_names(s->keys, d, range, out);
    if (s->partition.is_given)
        return deltafs_scan_partition(d, (uint32_t)s->partition.value, range, scan_record, out, NULL);
    return deltafs_scan(d, range, scan_record, out, NULL);
}

/* Scan an open directory. */
static int scan_print(const struct scan *s, deltafs_dir *d)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    int is_all = !s->epochs.is_given && !s->keys && !s->partition.is_given;
    struct command_range k = {0};
    struct printing out;
    int code = EXIT_OK;

    if (deltafs_stat(d, &stat) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    if (s->partition.is_given && s->partition.value >= stat.partitions)
        return text_fail(EXIT_USAGE, "scan: no partition %" PRIu64 "; there are 0 to %" PRIu32, s->partition.value,
                         stat.partitions - 1);
    if (s->keys && strcmp(stat.keys, "u64") == 0) {
        const char *wrong = cmd_parse_keys(s->keys, &k);
        if (wrong)
            return text_fail(EXIT_USAGE, "scan: --key-range: '%s' %s", s->keys, wrong);
    }
    int status = print_begin_records(&out.p, s->format, d, stat.schema, s->fields);
    if (status != DELTAFS_OK)
        return print_begin_failed("scan", s->fields, status);
    progress_begin(&out.bar, stat.records, is_all && !isatty(STDOUT_FILENO));
    status = scan_records(s, &k, d, &out);
    progress_end(&out.bar);
    print_flush(&out.p);
    if (status != DELTAFS_OK)
        code = text_fail(text_exit_code(status), "%s", deltafs_errmsg(NULL));
    if (print_end(&out.p) != DELTAFS_OK)
        code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    return code;
}

static int scan_one(void *values, const char *path)
{
    const struct scan *s = values;
    deltafs_dir *d;
    int code = print_check_fields("scan", s->format, s->fields);

    if (s->keys && s->partition.is_given)
        return text_fail(EXIT_USAGE, "scan: give --key-range or --partition, not both: the records of a range of keys "
                                     "are in all partitions");
    if (code == EXIT_OK)
        code = target_open_records(path, &d);
    if (code != EXIT_OK)
        return code;
    code = scan_print(values, d);
    deltafs_close(d);
    return code;
}

static const struct command_option options[] = {
    {"epochs", 0, "A[:B]", "only epochs with labels from A to B; A: and :B have one end", cmd_parse_range,
     offsetof(struct scan, epochs)},
    {"key-range", 0, "A[:B]", "only keys from A to B, ordered by epoch and key; A: and :B have one end", cmd_parse_text,
     offsetof(struct scan, keys)},
    {"format", 0, "F", "a table for people (default), csv, json, or the raw bytes of the values", print_parse_format,
     offsetof(struct scan, format)},
    {"fields", 0, "F,...", "only these columns, also computed ones, and attributes that are one number", cmd_parse_text,
     offsetof(struct scan, fields)},
    {"partition", 0, "P", "only the records of one partition", cmd_parse_number, offsetof(struct scan, partition)},
    {0}};

const struct command cmd_scan = {.name = "scan",
                                 .usage = "DIR [OPTION...]",
                                 .text = "Print all records: by partition, epoch, key (keys of bytes: by their hash).",
                                 .missing = "one DIR must be given",
                                 .least = 1,
                                 .most = 1,
                                 .size = sizeof(struct scan),
                                 .option = options,
                                 .each = scan_one};
