/* deltafs info: what a directory, or a logical file, holds. */
#include <getopt.h>
#include <inttypes.h>
#include "tools/cmd.h"
#include "tools/place.h"
#include "tools/rows.h"

static void info_value_size(const struct deltafs_stat *s, const char *unknown)
{
    if (s->value_size < 0)
        printf("%s", unknown);
    else
        printf("%" PRId64, s->value_size);
}

/* `k` is NULL if it is no index of files. */
static void info_json(deltafs_dir *d, const struct deltafs_stat *s, uint64_t bytes_stored, deltafs_keys *k)
{
    printf("{\n \"version\": %" PRIu32 ",\n \"uuid\": \"%s\",\n \"closed\": %s,\n \"partitions\": %" PRIu32
           ",\n \"keys\": \"%s\",\n \"place\": \"%s\",\n",
           s->version, s->uuid, s->is_closed ? "true" : "false", s->partitions, s->keys, s->place);
    printf(" \"value_size\": ");
    info_value_size(s, "null");
    printf(",\n \"schema\": \"%s\",\n \"records\": %" PRIu64 ",\n \"bytes_raw\": %" PRIu64 ",\n"
           " \"bytes_stored\": %" PRIu64 ",\n \"epochs\": [",
           s->schema, s->records, s->bytes_raw, bytes_stored);
    for (uint64_t i = 0; i < s->epochs; i++) {
        struct deltafs_epoch_stat e;
        deltafs_epoch_stat(d, i, &e);
        printf("%s\n  {\"label\": %" PRIu64 ", \"records\": %" PRIu64 ", \"bytes\": %" PRIu64
               ", \"bytes_stored\": %" PRIu64 "}",
               i > 0 ? "," : "", e.label, e.records, e.bytes_raw, e.bytes_stored);
    }
    printf("%s]", s->epochs > 0 ? "\n " : "");
    if (k)
        rows_list(k, 1);
    printf("\n}\n");
}

static void info_table(deltafs_dir *d, const struct deltafs_stat *s, uint64_t bytes_stored)
{
    printf("format version  %" PRIu32 "\nuuid            %s\nclosed          %s\npartitions      %" PRIu32 "\n",
           s->version, s->uuid, s->is_closed ? "yes" : "no (being written, or its writer was cut short)",
           s->partitions);
    printf("keys            %s\nplace           %s\nvalue size      ", s->keys, s->place);
    info_value_size(s, "any");
    printf("\nschema          %s\nrecords         %" PRIu64 "\nbytes raw       %" PRIu64 "\nbytes stored    %" PRIu64,
           s->schema[0] ? s->schema : "none", s->records, s->bytes_raw, bytes_stored);
    if (!s->is_closed)
        printf(" (what is not committed yet, or never will be, too)");
    else if (s->bytes_raw > 0)
        printf(" (%.3f of raw)", (double)bytes_stored / (double)s->bytes_raw);
    printf("\nepochs          %" PRIu64 "\n", s->epochs);
    if (s->epochs > 0)
        printf("\n%20s %16s %16s %16s\n", "label", "records", "bytes raw", "bytes stored");
    for (uint64_t i = 0; i < s->epochs; i++) {
        struct deltafs_epoch_stat e;
        deltafs_epoch_stat(d, i, &e);
        printf("%20" PRIu64 " %16" PRIu64 " %16" PRIu64 " %16" PRIu64 "\n", e.label, e.records, e.bytes_raw,
               e.bytes_stored);
    }
}

/* A log that is cut short is not looked for here, but it may show. */
static void info_hint(deltafs_dir *d, const struct deltafs_stat *s, uint64_t bytes_stored, const char *path)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < s->epochs; i++) {
        struct deltafs_epoch_stat e;
        deltafs_epoch_stat(d, i, &e);
        sum += e.bytes_stored;
    }
    if (bytes_stored < sum)
        text_fail(EXIT_OK,
                  "%s: its files have %" PRIu64 " bytes, and its epochs should have %" PRIu64
                  ": something is cut short; run 'deltafs verify %s'",
                  path, bytes_stored, sum, path);
}

static int info_logical(const char *path, int is_json)
{
    struct deltafs_logical_stat s;
    deltafs_logical *f;
    int code = place_open(path, &f);

    if (code != EXIT_OK)
        return code;
    if (deltafs_logical_stat(f, &s) != DELTAFS_OK) {
        code = text_fail(EXIT_TROUBLE, "%s", deltafs_logical_errmsg(f));
    } else if (is_json) {
        puts("{");
        place_print_json(&s);
        puts("}");
    } else {
        place_print(&s);
    }
    deltafs_logical_close(f);
    return cmd_finish(code);
}

int cmd_info(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
    struct deltafs_stat stat;
    deltafs_dir *d;
    int c, json = 0;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c != 'j')
            return cmd_usage("info");
        json = 1;
    }
    if (argc - optind != 1) {
        text_fail(EXIT_USAGE, "info: one DIR or FILE must be given");
        return cmd_usage("info");
    }
    const char *path = text_path(argv[optind]);
    if (place_is_logical(path))
        return info_logical(path, json);
    deltafs_keys *k;
    int code = rows_open(path, &k);
    if (code != EXIT_OK)
        return code;
    code = cmd_open(path, &d);
    if (code != EXIT_OK) {
        deltafs_keys_close(k);
        return code;
    }
    uint64_t bytes_stored;
    int status = deltafs_stat(d, &stat);
    if (status == DELTAFS_OK)
        status = deltafs_bytes_stored(d, &bytes_stored);
    if (status != DELTAFS_OK)
        code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(d));
    else if (json)
        info_json(d, &stat, bytes_stored, k);
    else
        info_table(d, &stat, bytes_stored);
    if (status == DELTAFS_OK && !json && k)
        rows_list(k, 0);
    if (status == DELTAFS_OK)
        info_hint(d, &stat, bytes_stored, path);
    deltafs_keys_close(k);
    deltafs_close(d);
    return cmd_finish(code);
}
