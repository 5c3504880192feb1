/* deltafs rm: remove logical files, also what they have on other volumes. */
#include <errno.h>
#include <getopt.h>
#include "tools/cmd.h"
#include "tools/target.h"

static int rm_one(const char *path, int is_forced)
{
    struct target p;

    int is_missing = lstat(path, &p.stat) != 0;
    if (is_missing && is_forced && errno == ENOENT)
        return EXIT_OK;
    if (!is_missing && S_ISLNK(p.stat.st_mode))
        return text_fail(EXIT_TROUBLE, "%s: a symbolic link, not a logical file; 'rm' removes it", path);
    /* The file is not opened: a damaged one can be removed, too, unless it is not clear what it is. */
    int code = target_look(path, &p);
    if (code != EXIT_OK)
        return is_missing ? code : text_fail(code, "%s: is not removed; 'rm -r' removes whatever it is", path);
    if (p.kind == TARGET_DIRECTORY)
        return text_fail(EXIT_TROUBLE, "%s: a DeltaFS directory, not a logical file; 'rm -r' removes it", path);
    if (p.kind == TARGET_FOLDER)
        return text_fail(EXIT_TROUBLE, "%s: a folder that is not a logical file; it is unchanged", path);
    if (p.kind != TARGET_LOGICAL)
        return text_fail(EXIT_TROUBLE, "%s: a plain file, not a logical file; 'rm' removes it", path);
    if (deltafs_logical_remove(path) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    return EXIT_OK;
}

int cmd_rm(int argc, char **argv)
{
    static const struct option options[] = {{"force", no_argument, NULL, 'f'}, {NULL, 0, NULL, 0}};
    int c, code = EXIT_OK, is_forced = 0;

    while ((c = getopt_long(argc, argv, "f", options, NULL)) != -1) {
        if (c != 'f')
            return cmd_usage("rm");
        is_forced = 1;
    }
    if (argc == optind && !is_forced) {
        text_fail(EXIT_USAGE, "rm: FILE is missing");
        return cmd_usage("rm");
    }
    for (int i = optind; i < argc; i++) {
        int one = rm_one(text_path(argv[i]), is_forced);
        code = one != EXIT_OK ? one : code;
    }
    return code;
}
