/* deltafs flatten: logical files that are opened by reading one file for each session. */
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include "tools/cmd.h"
#include "tools/target.h"

static int flatten_one(const char *path)
{
    struct deltafs_logical_stat stat = {.struct_size = sizeof stat};
    deltafs_logical *f;
    int code = target_open(path, &f);

    if (code != EXIT_OK)
        return code;
    deltafs_logical_close(f);
    if (deltafs_logical_flatten(path) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    code = target_open(path, &f);
    if (code != EXIT_OK)
        return code;
    if (deltafs_logical_stat(f, &stat) != DELTAFS_OK)
        code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    else
        printf("%s: %" PRIu64 " of %" PRIu64 " session%s with the index in one file%s\n", path, stat.flat_sessions,
               stat.sessions, text_plural(stat.sessions), stat.is_closed ? "" : "; the others are not closed");
    deltafs_logical_close(f);
    return code;
}

int cmd_flatten(int argc, char **argv)
{
    static const struct option options[] = {{NULL, 0, NULL, 0}};
    int code = EXIT_OK;

    if (getopt_long(argc, argv, "", options, NULL) != -1)
        return cmd_usage("flatten");
    if (argc == optind) {
        text_fail(EXIT_USAGE, "flatten: FILE is missing");
        return cmd_usage("flatten");
    }
    for (int i = optind; i < argc; i++) {
        int one = flatten_one(text_path(argv[i]));
        code = one != EXIT_OK ? one : code;
    }
    return cmd_finish(code);
}
