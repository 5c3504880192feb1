#include <inttypes.h>
#include <string.h>
#include "tools/rows.h"
#include "tools/text.h"

int rows_open(const char *path, deltafs_fileindex **out)
{
    int status = deltafs_fileindex_open(path, NULL, out);

    if (status == DELTAFS_OK)
        return EXIT_OK;
    *out = NULL;
    return status == DELTAFS_ERR_NOT_FOUND ? EXIT_OK : text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
}

static int rows_print(const struct deltafs_row *row, void *arg)
{
    const struct deltafs_record record = {.key = row->key, .label = row->label, .value = row->value, .size = row->size};

    if (print_schema(arg, row->schema) != DELTAFS_OK)
        return 1;
    print_record(arg, &record);
    return 0;
}

int rows_get(deltafs_fileindex *k, enum print_format format, const uint64_t *keys, size_t n,
             const struct deltafs_range *range)
{
    struct deltafs_table_stat table = {.struct_size = sizeof table};
    struct printer p;
    const uint64_t *missing;
    size_t count;
    int code = EXIT_OK;

    if (print_begin(&p, format, deltafs_fileindex_table(k, 0, &table) == DELTAFS_OK ? table.schema : "") != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    for (size_t i = 0; i < n; i++) {
        int has_failed = 0, status = deltafs_fileindex_get(k, keys[i], range, rows_print, &p, &has_failed);
        if (has_failed)
            return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
        if (status == DELTAFS_ERR_NOT_FOUND) {
            text_fail(0, "get: key %" PRIu64 " not found%s", keys[i], range ? " in these epochs" : "");
            code = code == EXIT_OK ? EXIT_NOT_FOUND : code;
        } else if (status != DELTAFS_OK) {
            code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
            if (deltafs_fileindex_missing(k, &missing, &count) == DELTAFS_OK)
                print_missing(missing, count);
        }
    }
    print_end(&p);
    return code;
}

void rows_print_stats(const deltafs_fileindex *k, const struct timespec *start)
{
    struct deltafs_io_stat io = {.struct_size = sizeof io};
    struct timespec end;

    deltafs_fileindex_io_stat(k, &io);
    clock_gettime(CLOCK_MONOTONIC, &end);
    fprintf(stderr, "stats: reads=%" PRIu64 " bytes_read=%" PRIu64 " seconds=%.6f\n", io.reads, io.bytes_read,
            (double)(end.tv_sec - start->tv_sec) + 1e-9 * (double)(end.tv_nsec - start->tv_nsec));
}

static void list_json(deltafs_fileindex *k)
{
    struct deltafs_table_stat t = {.struct_size = sizeof t};
    size_t i;

    printf(",\n \"sources\": [");
    for (i = 0; deltafs_fileindex_table(k, i, &t) == DELTAFS_OK; i++) {
        printf("%s\n  {\"label\": %" PRIu64 ", \"rows\": %" PRIu64 ", \"kind\": \"%s\", \"path\": ", i > 0 ? "," : "",
               t.label, t.rows, t.kind == 'f' ? "logical" : "plain");
        print_json_text(t.path, strlen(t.path));
        printf(", \"table\": ");
        print_json_text(t.table, strlen(t.table));
        printf(", \"key\": ");
        print_json_text(t.key, strlen(t.key));
        printf(", \"schema\": \"%s\"}", t.schema);
    }
    printf("%s]", i > 0 ? "\n " : "");
}

void rows_list(deltafs_fileindex *k, int is_json)
{
    struct deltafs_table_stat t = {.struct_size = sizeof t};
    char path[1024], table[256];

    if (is_json) {
        list_json(k);
        return;
    }
    printf("\n%20s %16s  %s\n", "timestep", "rows", "indexed file");
    for (size_t i = 0; deltafs_fileindex_table(k, i, &t) == DELTAFS_OK; i++) {
        text_show(t.path, strlen(t.path), path, sizeof path);
        text_show(t.table, strlen(t.table), table, sizeof table);
        printf("%20" PRIu64 " %16" PRIu64 "  %s%s%s\n", t.label, t.rows, path, *table ? " " : "", table);
    }
}
