/* deltafs verify: read everything, and say what is damaged. */
#include <getopt.h>
#include <inttypes.h>
#include "tools/cmd.h"

static void verify_damage(int status, const char *message, void *arg)
{
    (void)arg;
    text_fail(status, "%s", message);
}

int cmd_verify(int argc, char **argv)
{
    static const struct option options[] = {{NULL, 0, NULL, 0}};
    struct deltafs_verify_stat v;
    struct deltafs_stat stat;
    deltafs_dir *d;

    if (getopt_long(argc, argv, "", options, NULL) != -1)
        return cmd_usage("verify");
    if (argc - optind != 1) {
        text_fail(EXIT_USAGE, "verify: one DIR must be given");
        return cmd_usage("verify");
    }
    int code = cmd_open(argv[optind], &d);
    if (code != EXIT_OK)
        return code;
    int status = deltafs_verify(d, verify_damage, NULL, &v);
    if (status != DELTAFS_OK && v.damages == 0)
        text_fail(0, "%s", deltafs_errmsg(d));
    printf("%s: %" PRIu64 " records in %" PRIu64 " blocks and %" PRIu64 " leaves read, %" PRIu64 " damages\n",
           argv[optind], v.records, v.blocks, v.leaves, v.damages);
    if (deltafs_stat(d, &stat) == DELTAFS_OK && !stat.is_closed)
        printf("%s: not closed: being written, or its writer was cut short; committed epochs are not affected\n",
               argv[optind]);
    deltafs_close(d);
    return cmd_finish(status == DELTAFS_OK ? EXIT_OK : EXIT_TROUBLE);
}
