/* deltafs info: what a directory, or a logical file, holds. */
#include <getopt.h>
#include <inttypes.h>
#include "tools/cmd.h"
#include "tools/target.h"
#include "tools/rows.h"

static void info_value_size(const struct deltafs_stat *s, const char *unknown)
{
    if (s->value_size < 0)
        printf("%s", unknown);
    else
        printf("%" PRId64, s->value_size);
}

/* `k` is NULL if it is no index of files. */
static void info_json(deltafs_dir *d, const struct deltafs_stat *s, uint64_t bytes_stored, deltafs_fileindex *k)
{
    printf("{\n \"version\": %" PRIu32 ",\n \"uuid\": \"%s\",\n \"closed\": %s,\n \"partitions\": %" PRIu32
           ",\n \"keys\": \"%s\",\n \"place\": \"%s\",\n",
           s->version, s->uuid, s->is_closed ? "true" : "false", s->partitions, s->keys, s->layout);
    printf(" \"value_size\": ");
    info_value_size(s, "null");
    printf(",\n \"schema\": \"%s\",\n \"records\": %" PRIu64 ",\n \"bytes_raw\": %" PRIu64 ",\n"
           " \"bytes_stored\": %" PRIu64 ",\n \"epochs\": [",
           s->schema, s->records, s->bytes_raw, bytes_stored);
    for (uint64_t i = 0; i < s->epochs; i++) {
        struct deltafs_epoch_stat e = {.struct_size = sizeof e};
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

/* What both of a directory and of an index begin with. */
static void info_head(const struct deltafs_stat *s)
{
    printf("format version  %" PRIu32 "\nuuid            %s\nclosed          %s\npartitions      %" PRIu32 "\n",
           s->version, s->uuid, s->is_closed ? "yes" : "no (being written, or its writer died)", s->partitions);
}

/* And how many they are for each of `of` units. */
static void info_bytes_stored(const struct deltafs_stat *s, uint64_t bytes_stored, uint64_t of, const char *unit)
{
    printf("bytes stored    %" PRIu64, bytes_stored);
    if (!s->is_closed)
        printf(" (what is not committed yet, or never will be, too)");
    else if (of > 0)
        printf(" (%.3f %s)", (double)bytes_stored / (double)of, unit);
    putchar('\n');
}

static void info_table(deltafs_dir *d, const struct deltafs_stat *s, uint64_t bytes_stored)
{
    info_head(s);
    printf("keys            %s\nlayout          %s\nvalue size      ", s->keys, s->layout);
    info_value_size(s, "any");
    printf("\nschema          %s\nrecords         %" PRIu64 "\nbytes raw       %" PRIu64 "\n",
           s->schema[0] ? s->schema : "none", s->records, s->bytes_raw);
    info_bytes_stored(s, bytes_stored, s->bytes_raw, "of raw");
    printf("epochs          %" PRIu64 "\n", s->epochs);
    if (s->epochs > 0)
        printf("\n%20s %16s %16s %16s\n", "label", "records", "bytes raw", "bytes stored");
    for (uint64_t i = 0; i < s->epochs; i++) {
        struct deltafs_epoch_stat e = {.struct_size = sizeof e};
        deltafs_epoch_stat(d, i, &e);
        printf("%20" PRIu64 " %16" PRIu64 " %16" PRIu64 " %16" PRIu64 "\n", e.label, e.records, e.bytes_raw,
               e.bytes_stored);
    }
}

/* The index's own records and labels say nothing to who asks. */
static void info_index(deltafs_fileindex *k, const struct deltafs_stat *s, uint64_t bytes_stored)
{
    struct deltafs_table_stat t = {.struct_size = sizeof t};
    uint64_t rows = 0;

    for (size_t i = 0; deltafs_fileindex_table(k, i, &t) == DELTAFS_OK; i++)
        rows += t.rows;
    info_head(s);
    printf("index of        %" PRIu64 " rows of other files\n", rows);
    info_bytes_stored(s, bytes_stored, rows, "a row");
    rows_list(k, 0);
}

/* A truncated log is not searched for here, but may be noticed. */
static void info_hint(deltafs_dir *d, const struct deltafs_stat *s, uint64_t bytes_stored, const char *path)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < s->epochs; i++) {
        struct deltafs_epoch_stat e = {.struct_size = sizeof e};
        deltafs_epoch_stat(d, i, &e);
        sum += e.bytes_stored;
    }
    if (bytes_stored < sum)
        text_fail(EXIT_OK,
                  "%s: its files have %" PRIu64 " bytes, and its epochs need %" PRIu64
                  ": a file is truncated; run 'deltafs verify %s'",
                  path, bytes_stored, sum, path);
}

/* What is in the file has been said; `k`: the index of its keys, NULL if there is none. */
static void info_end_file(deltafs_fileindex *k, int is_json)
{
    if (k)
        rows_list(k, is_json);
    if (is_json)
        printf("\n}\n");
}

static int info_logical(const char *path, deltafs_fileindex *k, int is_json)
{
    struct deltafs_logical_stat s = {.struct_size = sizeof s};
    deltafs_logical *f;
    int code = target_open(path, &f);

    if (code != EXIT_OK)
        return code;
    if (deltafs_logical_stat(f, &s) != DELTAFS_OK) {
        code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    } else {
        if (is_json)
            puts("{");
        if (is_json)
            target_print_json(&s);
        else
            target_print(&s);
        info_end_file(k, is_json);
    }
    deltafs_logical_close(f);
    return cmd_finish(code);
}

/* A file, or a folder, that is no part of DeltaFS, and has an index of keys. */
static int info_plain(const struct target *p, deltafs_fileindex *k, int is_json)
{
    if (is_json)
        puts("{");
    target_print_plain(p, is_json);
    info_end_file(k, is_json);
    return cmd_finish(EXIT_OK);
}

/* `k` is NULL if it is no index of files. */
static int info_directory(const char *path, deltafs_fileindex *k, int is_json)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    deltafs_dir *d;
    uint64_t bytes_stored;
    int code = cmd_open(path, &d);

    if (code != EXIT_OK)
        return code;
    int status = deltafs_stat(d, &stat);
    if (status == DELTAFS_OK)
        status = deltafs_bytes_stored(d, &bytes_stored);
    if (status != DELTAFS_OK)
        code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(d));
    else if (is_json)
        info_json(d, &stat, bytes_stored, k);
    else if (k)
        info_index(k, &stat, bytes_stored);
    else
        info_table(d, &stat, bytes_stored);
    if (status == DELTAFS_OK)
        info_hint(d, &stat, bytes_stored, path);
    deltafs_close(d);
    return cmd_finish(code);
}

static int info_path(const char *path, int is_json)
{
    struct target p;
    deltafs_fileindex *k;
    int found = rows_open(path, &k), code;

    /* What else there is of a logical file is said also where the index of its keys cannot be read. */
    if (target_is_logical(path))
        code = info_logical(path, k, is_json);
    else if (found != EXIT_OK)
        code = found;
    else if (k && target_look(path, &p) == EXIT_OK && p.kind != TARGET_DIRECTORY)
        code = info_plain(&p, k, is_json);
    else
        code = info_directory(path, k, is_json);
    deltafs_fileindex_close(k);
    return code != EXIT_OK ? code : found;
}

int cmd_info(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
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
    return info_path(text_path(argv[optind]), json);
}
