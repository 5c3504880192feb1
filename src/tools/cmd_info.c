/* deltafs info: what a directory, a logical file or an index has in it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_namespace.h>
#include "tools/attribute_text.h"
#include "tools/cmd.h"
#include "tools/target.h"

/* Of each epoch, where keys are not placed by their hash: else, and if an index log cannot be read, NULL. */
static double *info_balance(const struct target *t)
{
    double *balance = strcmp(t->of_dir.partitioner, "hash") != 0 ? calloc(t->of_dir.epochs + 1, sizeof *balance) : NULL;

    if (balance && deltafs_balance(t->dir, balance) != DELTAFS_OK) {
        text_fail(0, "%s", deltafs_errmsg(t->dir));
        free(balance);
        balance = NULL;
    }
    return balance;
}

static void info_epoch(const struct report *r, const struct deltafs_epoch_stat *e, int has_balance,
                       const double *balance)
{
    if (!r->is_json) {
        printf("%20" PRIu64 " %16" PRIu64 " %16" PRIu64 " %16" PRIu64, e->label, e->records, e->bytes_raw,
               e->bytes_stored);
        if (balance)
            printf(" %8.2f", *balance);
        putchar('\n');
        return;
    }
    printf("{\"label\": %" PRIu64 ", \"records\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"bytes_stored\": %" PRIu64,
           e->label, e->records, e->bytes_raw, e->bytes_stored);
    if (balance)
        printf(", \"balance\": %.4f", *balance);
    else if (has_balance)
        printf(", \"balance\": null");
    putchar('}');
}

static void info_epochs(struct report *r, const struct target *t, const char *path)
{
    uint64_t n = t->of_dir.epochs, stored = 0;
    int has_balance = strcmp(t->of_dir.partitioner, "hash") != 0;
    double *balance = info_balance(t);

    report_number(r, "epochs", NULL, n);
    report(r, NULL, "epochs", "[");
    if (!r->is_json && n > 0)
        printf("\n%20s %16s %16s %16s%s\n", "label", "records", "bytes raw", "bytes stored",
               balance ? "  balance" : "");
    for (uint64_t i = 0; i < n; i++) {
        struct deltafs_epoch_stat e = {.struct_size = sizeof e};
        deltafs_epoch_stat(t->dir, i, &e);
        stored += e.bytes_stored;
        if (r->is_json)
            printf("%s\n  ", i > 0 ? "," : "");
        info_epoch(r, &e, has_balance, balance ? &balance[i] : NULL);
    }
    free(balance);
    if (r->is_json)
        putchar(']');
    /* A truncated log is not searched for here, but may be noticed. */
    if (t->stored < stored)
        text_fail(0,
                  "%s: its files have %" PRIu64 " bytes, and its epochs need %" PRIu64
                  ": a file is truncated; run 'deltafs verify %s'",
                  path, t->stored, stored, path);
}

/* The tables that are indexed. */
static void info_sources(struct report *r, deltafs_fileindex *index)
{
    struct deltafs_table_stat t = {.struct_size = sizeof t};
    char path[1024], table[256];

    report(r, NULL, "sources", "[");
    if (!r->is_json)
        printf("\n%20s %16s  %s\n", "timestep", "rows", "indexed file");
    for (size_t i = 0; deltafs_fileindex_table(index, i, &t) == DELTAFS_OK; i++) {
        if (!r->is_json) {
            text_show(t.path, strlen(t.path), path, sizeof path);
            text_show(t.table, strlen(t.table), table, sizeof table);
            printf("%20" PRIu64 " %16" PRIu64 "  %s%s%s\n", t.label, t.rows, path, *table ? " " : "", table);
            continue;
        }
        struct report row = {.is_json = 1};
        printf("%s{", i > 0 ? ",\n" : "\n");
        report_number(&row, NULL, "label", t.label);
        report_number(&row, NULL, "rows", t.rows);
        report_text(&row, NULL, "kind", t.kind == 'f' ? "logical" : "plain");
        report_text(&row, NULL, "path", t.path);
        report_text(&row, NULL, "table", t.table);
        report_text(&row, NULL, "key", t.key);
        report_text(&row, NULL, "schema", t.schema);
        putchar('}');
    }
    if (r->is_json)
        putchar(']');
}

static int info_print(const char *path, int is_json, deltafs_fileindex *index)
{
    struct report r = {.is_json = is_json};
    struct target t;
    int code = target_open(path, &t);

    if (code != EXIT_OK)
        return code;
    if (!index && t.kind != TARGET_LOGICAL && t.kind != TARGET_DIRECTORY)
        return target_open_directory(path, &t.dir); /* the message says what it is instead */
    fputs(is_json ? "{" : "", stdout);
    target_report(&r, &t);
    if (t.kind == TARGET_DIRECTORY && (is_json || !index))
        info_epochs(&r, &t, path);
    if (t.kind == TARGET_DIRECTORY)
        attributes_report(&r, t.dir);
    if (index)
        info_sources(&r, index);
    fputs(is_json ? "\n}\n" : "", stdout);
    target_close(&t);
    return EXIT_OK;
}

static int info_namespace(const char *path, int is_json)
{
    struct deltafs_namespace_info i = {.struct_size = sizeof i};
    struct report r = {.is_json = is_json};
    int code = text_of_call(deltafs_namespace_info(path, &i));

    if (code != EXIT_OK)
        return code;
    fputs(is_json ? "{" : "", stdout);
    report_text(&r, "kind", "kind", "namespace");
    report_text(&r, "UUID", "uuid", i.uuid);
    report_number(&r, "layers below", "layers", i.layers);
    if (i.is_complete)
        report(&r, "names of layers", NULL, "in its own tables");
    report_number(&r, "pins", "pins", i.pins);
    report_number(&r, "tables", "tables", i.tables);
    report(&r, NULL, "is_compacted", i.is_compacted ? "true" : "false");
    report(&r, NULL, "is_complete", i.is_complete ? "true" : "false");
    report_number(&r, "records of names", "records", i.records);
    report_number(&r, "bytes stored", "bytes_stored", i.bytes_stored);
    report_number(&r, "bytes of files", "data_stored", i.data_stored);
    fputs(is_json ? "\n}\n" : "", stdout);
    return EXIT_OK;
}

static int info_one(void *values, const char *path)
{
    if (target_is_namespace(path))
        return info_namespace(path, *(int *)values);
    deltafs_fileindex *index;
    int found = target_open_index(path, &index), code = found;

    /* All else about a logical file is printed also if its index cannot be read. */
    if (found == EXIT_OK || target_is_logical(path))
        code = info_print(path, *(int *)values, index);
    deltafs_fileindex_close(index);
    return code != EXIT_OK ? code : found;
}

static const struct command_option options[] = {{"json", 0, NULL, "for programs", NULL, 0}, {0}};

const struct command cmd_info = {
    .name = "info",
    .usage = "DIR|FILE|NS [OPTION...]",
    .text = "Print a directory's schema, epochs, records, bytes and attributes; of a logical file, what stat\n"
            "    prints; of an index, its files; of a namespace, its tables, records and bytes.",
    .missing = "one DIR, FILE or NS must be given",
    .least = 1,
    .most = 1,
    .size = sizeof(int),
    .option = options,
    .each = info_one};
