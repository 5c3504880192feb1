/* deltafs scan: all records. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include "tools/cmd.h"
#include "tools/print.h"
#include "tools/rows.h"
#include "tools/text.h"

static int scan_record(const struct deltafs_record *record, void *arg)
{
    print_record(arg, record);
    return ferror(stdout); /* no use to go on */
}

/* Scan an open directory. */
static int scan_print(deltafs_dir *d, enum print_format format, const struct deltafs_range *range, int64_t partition)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct printer p;
    int status, code = EXIT_OK;

    if (deltafs_stat(d, &stat) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(d));
    if (partition >= (int64_t)stat.partitions)
        return text_fail(EXIT_USAGE, "scan: no partition %" PRId64 "; there are 0 to %" PRIu32, partition,
                         stat.partitions - 1);
    if (print_begin(&p, format, stat.schema) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    status = partition < 0 ? deltafs_scan(d, range, scan_record, &p, NULL)
                           : deltafs_scan_partition(d, (uint32_t)partition, range, scan_record, &p, NULL);
    if (status != DELTAFS_OK)
        code = text_fail(text_exit_code(status), "%s", deltafs_errmsg(d));
    print_end(&p);
    return code;
}

static int scan_run(const char *path, enum print_format format, const struct deltafs_range *range, int64_t partition)
{
    deltafs_dir *d;
    deltafs_fileindex *k;
    int code = rows_open(text_path(path), &k);

    if (code == EXIT_OK && k) {
        deltafs_fileindex_close(k);
        code = text_fail(EXIT_TROUBLE,
                         "%s: an index, which has no records of its own; 'deltafs get' reads rows through it, and "
                         "'deltafs info' lists its files",
                         text_path(path));
    }
    if (code == EXIT_OK)
        code = cmd_open(path, &d);
    if (code != EXIT_OK)
        return code;
    code = scan_print(d, format, range, partition);
    deltafs_close(d);
    return cmd_finish(code);
}

int cmd_scan(int argc, char **argv)
{
    static const struct option options[] = {{"epochs", required_argument, NULL, 'e'},
                                            {"format", required_argument, NULL, 'f'},
                                            {"partition", required_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};
    enum print_format format = PRINT_TABLE;
    struct deltafs_range range;
    int c, code = EXIT_OK, has_range = 0;
    int64_t partition = -1;
    uint64_t number;

    while (code == EXIT_OK && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'e') {
            has_range = 1;
            code = cmd_range(optarg, &range);
        } else if (c == 'f') {
            if (print_format_parse(optarg, &format) != 0)
                code = text_fail(EXIT_USAGE, "scan: no format '%s'; there are table, csv, json, raw", optarg);
        } else if (c == 'p') {
            if (text_number(optarg, &number) != 0 || number > UINT32_MAX)
                code = text_fail(EXIT_USAGE, "scan: partition '%s' is no number", optarg);
            else
                partition = (int64_t)number;
        } else {
            return cmd_usage("scan");
        }
    }
    if (code != EXIT_OK)
        return code;
    if (argc - optind != 1) {
        text_fail(EXIT_USAGE, "scan: one DIR must be given");
        return cmd_usage("scan");
    }
    return scan_run(argv[optind], format, has_range ? &range : NULL, partition);
}
